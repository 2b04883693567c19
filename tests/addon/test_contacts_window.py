# SPDX-License-Identifier: GPL-3.0-or-later
"""Contacts in the window: found, changed at a frame, shown as spans; what is shown follows."""

from itertools import pairwise
from types import SimpleNamespace

import bpy
import numpy as np
import pytest

from poise.addon import (
    clean_up_panel,
    compat,
    contact_bar,
    contacts,
    live_contacts,
    panels,
    session,
)
from poise.addon.properties import chosen_armature
from poise.controller.contact_plan import FEET, POINTS, ContactPlan

pytestmark = pytest.mark.usefixtures("registered")

COLOURS = {"left": (1.0, 0.5, 0.0), "right": (0.0, 0.5, 1.0)}


@pytest.fixture
def armature(import_clip):
    """An armature that waves, standing."""
    return import_clip("wave")


@pytest.fixture
def walk(import_clip):
    """An armature that walks; its contacts are found."""
    armature = import_clip("walk")
    assert bpy.ops.poise.find_contacts() == {"FINISHED"}
    return armature


def choose(foot, point, frame):
    """Choose what is changed, and where."""
    settings = bpy.context.scene.poise.clean_up
    settings.foot, settings.point = foot.upper(), point.upper()
    bpy.context.scene.frame_set(frame)


def kept(armature):
    return contacts.kept(*contacts.source_of(armature))


def spans(armature, foot="left", point="ball"):
    """[(first frame, frame of its end)] of a part of a foot."""
    return [
        (round(first), round(end))
        for *names, first, end in kept(armature).spans()
        if names == [foot, point]
    ]


def test_found_contacts_are_kept_with_the_action(walk):
    assert kept(walk).last == 194
    assert spans(walk, "left", "heel")[0] == (20, 47)
    assert bpy.context.scene.frame_current == 1
    assert bpy.ops.poise.automatic_contacts() == {"FINISHED"}
    assert kept(walk) is None
    assert not bpy.ops.poise.automatic_contacts.poll()


def test_contacts_are_for_all_that_is_animated_or_chosen(import_clip):
    armature, scene = import_clip("wave"), bpy.context.scene
    scene.poise.frames, scene.poise.first_frame, scene.poise.last_frame = "CUSTOM", 20, 300
    assert bpy.ops.poise.find_contacts() == {"FINISHED"}
    assert (kept(armature).first, kept(armature).last) == (1, 300)


def test_spans_change_at_the_current_frame(walk):
    before = spans(walk)
    first, end = before[1]
    choose("left", "ball", first + 2)
    assert bpy.ops.poise.begin_contact() == {"FINISHED"}
    assert spans(walk)[1] == (first + 2, end)
    choose("left", "ball", end)
    assert bpy.ops.poise.end_contact() == {"FINISHED"}
    assert spans(walk)[1] == (first + 2, end + 1)
    heels = spans(walk, "left", "heel")
    choose("left", "heel", heels[1][0])
    assert bpy.ops.poise.delete_contact() == {"FINISHED"}
    assert spans(walk, "left", "heel") == [heels[0], heels[2]]
    assert bpy.ops.poise.add_contact() == {"FINISHED"}
    assert spans(walk, "left", "heel")[1] == (heels[1][0], heels[1][0] + 12)


def test_what_makes_no_sense_is_told_and_changes_nothing(walk):
    before = kept(walk)
    choose("left", "ball", spans(walk)[1][0] + 1)
    with pytest.raises(RuntimeError, match=r"stands at frame \d+ already"):
        bpy.ops.poise.add_contact()
    choose("left", "ball", 900)
    with pytest.raises(RuntimeError, match="Frame 900 is not among those"):
        bpy.ops.poise.end_contact()
    assert kept(walk) == before


def test_each_change_is_an_undo_step(walk):
    bpy.ops.ed.undo_push(message="found")
    before = spans(walk)
    name = walk.name
    choose("left", "ball", before[1][0] + 2)
    bpy.ops.poise.begin_contact()
    bpy.ops.ed.undo_push(message="changed")
    bpy.ops.ed.undo()
    assert spans(bpy.data.objects[name]) == before
    bpy.ops.ed.redo()
    assert spans(bpy.data.objects[name]) != before


def test_a_clean_up_that_is_shown_follows(walk):
    assert bpy.ops.poise.clean_up() == {"FINISHED"}
    clean = session.result_of(bpy.context.scene, walk).clean
    assert compat.assigned(walk)[0].name == "walk Poise Clean"

    def keys():
        return np.array(
            [k.co[1] for c in compat.curves(*compat.assigned(walk)) for k in c.keyframe_points]
        )

    before = keys()
    assert contacts.source_of(walk)[0].name == "walk"
    end = spans(walk)[1][1]
    choose("left", "ball", end - 8)
    assert bpy.ops.poise.end_contact() == {"FINISHED"}
    assert compat.assigned(walk)[0].name == "walk Poise Clean"
    assert np.abs(keys() - before).max() > 1e-4
    assert clean.plan == kept(walk).for_reading(clean.reading)
    assert contacts.kept(*compat.assigned(walk)) == kept(walk), "and is handed on"
    assert not live_contacts.clean_outdated(bpy.context.scene, walk)
    assert bpy.ops.poise.automatic_contacts() == {"FINISHED"}
    assert not live_contacts.clean_outdated(bpy.context.scene, walk)
    assert bpy.ops.poise.show(which="source") == {"FINISHED"}
    assert bpy.ops.poise.find_contacts() == {"FINISHED"}
    choose("left", "ball", end - 8)
    assert bpy.ops.poise.end_contact() == {"FINISHED"}
    assert live_contacts.clean_outdated(bpy.context.scene, walk)


def test_what_a_clean_up_finds_can_be_changed(armature):
    assert bpy.ops.poise.clean_up() == {"FINISHED"}
    assert kept(armature) is None
    choose("right", "tip", 100)
    assert bpy.ops.poise.end_contact() == {"FINISHED"}
    assert spans(armature, "right", "tip")[0] == (1, 101)


def test_panels_say_that_a_result_is_older(armature, draw_panels):
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    sentence = "The contacts have changed: simulate"

    def text():
        return draw_panels([panels.POISE_PT_result], armature).replace("\n", " ")

    assert sentence not in text()
    assert bpy.ops.poise.find_contacts() == {"FINISHED"}
    assert sentence in text()
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    assert sentence not in text()
    choose("left", "heel", 50)
    assert bpy.ops.poise.end_contact() == {"FINISHED"}
    assert sentence in text()
    assert bpy.ops.poise.automatic_contacts() == {"FINISHED"}
    assert sentence in text()


def test_panel_has_the_buttons_once_there_are_contacts(armature, draw_panels):
    text = draw_panels(clean_up_panel.CLASSES, armature)
    assert "poise.find_contacts" in text and "Begin Here" not in text
    assert bpy.ops.poise.find_contacts() == {"FINISHED"}
    text = draw_panels(clean_up_panel.CLASSES, armature)
    for word in ("frames 1 to 240", "Begin Here", "End Here", "Add Here", "Delete", "point"):
        assert word in text


def test_what_cannot_be_read_is_told_and_can_be_taken_away(armature, draw_panels):
    action, _ = compat.assigned(armature)
    action[contacts.PROPERTY] = "{"
    text = draw_panels(clean_up_panel.CLASSES, armature).replace("\n", " ")
    assert "cannot be read" in text and "Begin Here" not in text
    assert contact_bar.shown(bpy.context) is None
    with pytest.raises(RuntimeError, match="cannot be read"):
        bpy.ops.poise.simulate()
    assert action[contacts.PROPERTY] == "{"
    assert not bpy.ops.poise.end_contact.poll()
    assert bpy.ops.poise.automatic_contacts() == {"FINISHED"}
    assert contacts.PROPERTY not in action
    assert bpy.ops.poise.simulate() == {"FINISHED"}


def test_without_an_action_it_says_so(armature):
    compat.assign(armature, None)
    assert chosen_armature(bpy.context)[0] == armature
    assert live_contacts.known(bpy.context.scene, armature) is None
    assert not bpy.ops.poise.end_contact.poll()


# --- The bar -------------------------------------------------------------------------------------


def test_rows_do_not_overlap_each_other_or_the_stance_bar():
    from poise.addon import overlay_bar

    edges = sorted(contact_bar.row(foot, point) for foot in FEET for point in POINTS)
    assert overlay_bar.PUSHES[1] < overlay_bar.OVER + overlay_bar.TEXT < edges[0][0]
    for (_, high), (low, _) in pairwise(edges):
        assert high < low
    assert contact_bar.row("left", "heel") == edges[-1]
    for names in contact_bar.WORDS:
        assert contact_bar.row_at(contact_bar.row(*names)[0]) == names
    assert contact_bar.row_at(0) is None


def test_spans_are_rectangles_at_their_frames():
    plan = ContactPlan(10, {"left": {"heel": [(0, 0.5)]}, "right": {"tip": [(0.2, 0.4)]}})
    found = contacts.Kept(plan, 100.0, 109.0)
    corners, paints = contact_bar.rectangles(found, ("right", "tip"), COLOURS)
    assert corners.tolist() == [
        [99.5, 104.5, *contact_bar.row("left", "heel")],
        [101.5, 103.5, *contact_bar.row("right", "tip")],
    ]
    assert paints[1].tolist() == list(COLOURS["right"])
    assert paints[0].tolist() == [contact_bar.DIM * c for c in COLOURS["left"]]
    corners, paints = contact_bar.rectangles(
        contacts.Kept(ContactPlan(10, {}), 1, 9), ("left", "tip"), COLOURS
    )
    assert corners.shape == (0, 4) and paints.shape == (0, 3)


def test_the_bar_shows_the_contacts_of_the_chosen_armature(walk):
    context = SimpleNamespace(scene=bpy.context.scene, active_object=walk)
    assert contact_bar.shown(context) == kept(walk)
    bpy.context.scene.poise.overlays.contacts = False
    assert contact_bar.shown(context) is None
