# SPDX-License-Identifier: GPL-3.0-or-later
"""Contacts in the window: found, changed at a frame, shown as spans; what is shown follows."""

from itertools import pairwise
from types import SimpleNamespace

import bpy
import numpy as np
import pytest

from poise.addon import staging
from poise.addon.blender import compat, session
from poise.addon.blender.chosen import chosen_armature
from poise.addon.overlays import contact_bar
from poise.addon.scene import contacts, live_contacts
from poise.addon.sidebar import clean_up_panel, panels
from poise.addon.staging.contacts import FollowJob
from poise.controller.contacts.contact_plan import FEET, POINTS, ContactPlan

pytestmark = pytest.mark.usefixtures("registered")

COLOURS = {"left": (1.0, 0.5, 0.0), "right": (0.0, 0.5, 1.0)}


@pytest.fixture
def wave(import_clip):
    """An armature that waves, standing."""
    return import_clip("wave")


@pytest.fixture
def walk(import_clip):
    """An armature that walks; its contacts are found."""
    armature = import_clip("walk")
    assert bpy.ops.poise.find_contacts() == {"FINISHED"}
    return armature


@pytest.fixture
def armature(walk):
    """Whom the window shows."""
    return walk


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
    assert spans(walk, "left", "heel")[0] == (34, 51)
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
    frame = heels[1][0] + 1
    choose("left", "heel", frame)
    assert bpy.ops.poise.delete_contact() == {"FINISHED"}
    assert spans(walk, "left", "heel") == [heels[0], heels[2]]
    assert bpy.ops.poise.add_contact() == {"FINISHED"}
    assert spans(walk, "left", "heel")[1] == (frame, frame + 12)


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
    clean = session.result_of(bpy.context.scene, walk).clean
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


def test_a_clean_up_follows_in_slices_and_esc_puts_all_back(walk, window):
    assert bpy.ops.poise.clean_up() == {"FINISHED"}
    shown, before = compat.assigned(walk)[0], kept(walk)
    clean = session.result_of(bpy.context.scene, walk).clean
    choose("left", "ball", spans(walk)[1][1] - 8)
    for stops in (True, False):
        operator = window.begin(staging.POISE_OT_end_contact)
        assert isinstance(session.job(), FollowJob)
        window.turn_until(operator, lambda: kept(walk) != before)  # solved, and written next
        assert session.result_of(bpy.context.scene, walk).clean is clean
        if stops:
            assert window.send(operator, "ESC") == {"CANCELLED"}
            assert kept(walk) == before and compat.assigned(walk)[0] == shown
            assert not live_contacts.clean_outdated(bpy.context.scene, walk)
    while (result := window.send(operator)) == {"PASS_THROUGH"}:
        pass
    assert result == {"FINISHED"} and session.job() is None
    followed = session.result_of(bpy.context.scene, walk).clean
    assert followed is not clean
    assert followed.plan == kept(walk).for_reading(followed.reading) != clean.plan


def test_what_a_clean_up_finds_can_be_changed(wave):
    assert bpy.ops.poise.clean_up() == {"FINISHED"}
    assert kept(wave) is None
    choose("right", "tip", 100)
    assert bpy.ops.poise.end_contact() == {"FINISHED"}
    assert spans(wave, "right", "tip")[0] == (1, 101)


def test_panels_say_that_a_result_is_older(wave, draw_panels):
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    sentence = "The contacts have changed: simulate"

    def text():
        return draw_panels([panels.POISE_PT_result], wave).replace("\n", " ")

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


def test_panel_has_the_buttons_once_there_are_contacts(wave, draw_panels):
    text = draw_panels(clean_up_panel.CLASSES, wave)
    assert "poise.find_contacts" in text and "Begin Here" not in text
    assert bpy.ops.poise.find_contacts() == {"FINISHED"}
    text = draw_panels(clean_up_panel.CLASSES, wave)
    for word in ("frames 1 to 240", "Begin Here", "End Here", "Add Here", "Delete", "point"):
        assert word in text


def test_what_cannot_be_read_is_told_and_can_be_taken_away(wave, draw_panels):
    action, _ = compat.assigned(wave)
    action[contacts.PROPERTY] = "{"
    text = draw_panels(clean_up_panel.CLASSES, wave).replace("\n", " ")
    assert "cannot be read" in text and "Begin Here" not in text
    assert contact_bar.shown(bpy.context) is None
    with pytest.raises(RuntimeError, match="cannot be read"):
        bpy.ops.poise.simulate()
    assert action[contacts.PROPERTY] == "{"
    assert not bpy.ops.poise.end_contact.poll()
    assert bpy.ops.poise.automatic_contacts() == {"FINISHED"}
    assert contacts.PROPERTY not in action
    assert bpy.ops.poise.simulate() == {"FINISHED"}


def test_without_an_action_it_says_so(wave):
    compat.assign(wave, None)
    assert chosen_armature(bpy.context)[0] == wave
    assert live_contacts.known(bpy.context.scene, wave) is None
    assert not bpy.ops.poise.end_contact.poll()


# --- The bar -------------------------------------------------------------------------------------


def test_rows_do_not_overlap_each_other_or_the_stance_bar():
    from poise.addon.overlays import overlay_bar

    edges = sorted(contact_bar.row(foot, point) for foot in FEET for point in POINTS)
    assert overlay_bar.PUSHES[1] < overlay_bar.OVER + overlay_bar.TEXT < edges[0][0]
    for (_, high), (low, _) in pairwise(edges):
        assert high < low
    assert contact_bar.row("left", "heel") == edges[-1]
    for names in contact_bar.WORDS:
        assert contact_bar.row_at(contact_bar.row(*names)[0]) == names
    assert contact_bar.row_at(0) is None


def test_rows_go_down_where_the_editor_is_low():
    top = contact_bar.row("left", "heel")[1]
    assert contact_bar.sunk(top + contact_bar.NUMBERS) == 0 < contact_bar.sunk(top)
    assert top - contact_bar.sunk(90) == 90 - contact_bar.NUMBERS
    lowest = contact_bar.row("right", "tip")[0]
    assert lowest - contact_bar.sunk(10) == contact_bar.LEAST


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


# --- The mouse -----------------------------------------------------------------------------------


class Editor:
    """A window with one Dope Sheet in it, of ten pixels a frame; the mouse in it."""

    def __init__(self, window):
        window.preferences = SimpleNamespace(system=SimpleNamespace(ui_scale=1.0))
        view = SimpleNamespace(region_to_view=lambda x, _y: (x / 10, 0.0))
        region = SimpleNamespace(type="WINDOW", x=50, y=20, width=3000, height=400, view2d=view)
        window.screen.areas.append(SimpleNamespace(type="DOPESHEET_EDITOR", regions=[region]))
        self.window = window
        self.drag = window.begin(staging.POISE_OT_drag_contacts)

    def send(self, kind, frame=0.0, foot="left", point="ball", value="PRESS", below=0):
        """An event over a row, at a frame."""
        event = SimpleNamespace(
            type=kind,
            value=value,
            mouse_x=50 + 10 * frame,
            mouse_y=20 + contact_bar.row(foot, point)[0] + 4 - below,
        )
        return self.drag.modal(self.window, event)


@pytest.fixture
def editor(walk, window):
    found = Editor(window)
    yield found
    found.send("ESC")
    found.send("ESC")


def test_an_end_is_dragged_from_frame_to_frame(walk, editor):
    first, end = spans(walk)[1]
    assert editor.send("LEFTMOUSE", end - 0.4) == {"RUNNING_MODAL"}
    assert editor.send("MOUSEMOVE", end - 7.2) == {"RUNNING_MODAL"}
    assert spans(walk)[1] == (first, end - 7)
    assert editor.send("MOUSEMOVE", end - 3.4) == {"RUNNING_MODAL"}
    assert editor.send("LEFTMOUSE", value="RELEASE") == {"RUNNING_MODAL"}
    assert spans(walk)[1] == (first, end - 3)
    editor.send("LEFTMOUSE", first - 0.5)
    editor.send("MOUSEMOVE", first + 1.6)
    editor.send("LEFTMOUSE", value="RELEASE")
    assert spans(walk)[1] == (first + 2, end - 3)
    assert editor.send("MOUSEMOVE", 3) == {"PASS_THROUGH"}, "nothing is held any more"


def test_an_end_is_dragged_in_a_low_timeline(walk, editor):
    area = editor.window.screen.areas[-1]
    area.regions[0].height = 90
    end = spans(walk)[1][1]
    editor.send("LEFTMOUSE", end - 0.4, below=contact_bar.sunk(90))
    editor.send("MOUSEMOVE", end - 7.2)
    editor.send("LEFTMOUSE", value="RELEASE")
    assert spans(walk)[1][1] == end - 7


def test_what_is_beside_the_ends_stays_with_blender(walk, editor):
    first, end = spans(walk)[1]
    before = kept(walk)
    assert editor.send("LEFTMOUSE", (first + end) / 2) == {"PASS_THROUGH"}
    assert editor.send("LEFTMOUSE", end, below=200) == {"PASS_THROUGH"}
    assert editor.send("LEFTMOUSE", end, foot="right", point="tip") == {"PASS_THROUGH"}
    settings = bpy.context.scene.poise.clean_up
    assert (settings.foot, settings.point) == ("RIGHT", "TIP"), "the row is chosen"
    assert editor.send("SPACE") == {"PASS_THROUGH"}
    assert kept(walk) == before


def test_esc_puts_back_and_then_stops(walk, editor):
    before = kept(walk)
    end = spans(walk)[1][1]
    editor.send("LEFTMOUSE", end - 0.5)
    editor.send("MOUSEMOVE", end - 9)
    assert kept(walk) != before
    assert editor.send("ESC") == {"RUNNING_MODAL"} and kept(walk) == before
    assert editor.send("ESC") == {"FINISHED"} and editor.window.status is None


def test_where_a_span_makes_no_sense_it_stays(walk, editor):
    first, end = spans(walk)[1]
    editor.send("LEFTMOUSE", end - 0.5)
    editor.send("MOUSEMOVE", end - 5.5)
    editor.send("MOUSEMOVE", first - 20)
    editor.send("LEFTMOUSE", value="RELEASE")
    assert spans(walk)[1] == (first, end - 5)
