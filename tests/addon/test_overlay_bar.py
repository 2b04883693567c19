# SPDX-License-Identifier: GPL-3.0-or-later
"""The stance bar: a rectangle a stretch of stance, in its colour, at its frames."""

from types import SimpleNamespace

import bpy
import numpy as np
import pytest

from poise.addon.overlays import overlay, overlay_bar
from poise.controller.geometry.stance import AIR, BALL, HEEL, SOLE
from poise.controller.simulation.scenario import Push

pytestmark = pytest.mark.usefixtures("registered")

COLOURS = {"dual": (0, 1, 0), "left": (1, 1, 0), "right": (0, 0, 1), "flight": (1, 1, 1)}
RED = (1, 0, 0)


def _recording(stance, reference, pushes=(), phases=None):
    class Recording(SimpleNamespace):
        def __len__(self):
            return len(self.stance)

    return Recording(
        stance=np.array(stance),
        reference_stance=np.array(reference),
        phases=np.zeros((len(stance), 2), int) if phases is None else np.array(phases[0]),
        reference_phases=np.zeros((len(stance), 2), int) if phases is None else np.array(phases[1]),
        scenario=SimpleNamespace(pushes=pushes),
        motion=SimpleNamespace(rate=10.0),
    )


def test_runs_of_equal_states():
    assert overlay_bar.runs([3, 3, 1, 1, 1, 0]) == [(0, 2, 3), (2, 5, 1), (5, 6, 0)]
    assert overlay_bar.runs([2]) == [(0, 1, 2)]
    assert overlay_bar.runs([]) == []


def test_stripes_of_simulation_and_reference():
    recording = _recording([3, 3, 1, 1, 2], [3, 1, 1, 0, 0])
    corners, paints = overlay_bar.stripes(recording, COLOURS)
    reference, simulation = overlay_bar.REFERENCE, overlay_bar.SIMULATION
    expected = [
        ((-0.5, 0.5, *reference), COLOURS["dual"]),
        ((0.5, 2.5, *reference), COLOURS["left"]),
        ((2.5, 4.5, *reference), COLOURS["flight"]),
        ((-0.5, 1.5, *simulation), COLOURS["dual"]),
        ((1.5, 3.5, *simulation), COLOURS["left"]),
        ((3.5, 4.5, *simulation), COLOURS["right"]),
    ]
    assert corners.tolist() == [list(map(float, where)) for where, _ in expected]
    assert paints.tolist() == [list(map(float, paint)) for _, paint in expected]


def test_phases_of_each_foot():
    simulation = [(HEEL, SOLE), (SOLE, BALL), (SOLE, AIR), (BALL, AIR)]
    reference = [(SOLE, SOLE)] * 2 + [(SOLE, AIR)] * 2
    recording = _recording([3, 3, 1, 1], [3, 3, 1, 1], phases=(simulation, reference))
    corners, paints = overlay_bar.stripes(recording, COLOURS)
    feet = corners[:, 2] >= min(low for pair in overlay_bar.FEET.values() for low, _ in pair)
    (left_low, left_high), (right_low, right_high) = (
        overlay_bar.FEET[side][1] for side in ("left", "right")
    )
    left, right = (left_low + left_high) / 2, (right_low + right_high) / 2
    expected = [
        ((-0.5, 3.5, *overlay_bar.FEET["left"][0]), "left"),
        ((-0.5, 0.5, left_low, left), "left"),
        ((0.5, 2.5, left_low, left_high), "left"),
        ((2.5, 3.5, left, left_high), "left"),
        ((-0.5, 1.5, *overlay_bar.FEET["right"][0]), "right"),
        ((-0.5, 0.5, right_low, right_high), "right"),
        ((0.5, 1.5, right, right_high), "right"),
    ]
    assert corners[feet].tolist() == [list(map(float, where)) for where, _ in expected]
    assert paints[feet].tolist() == [list(map(float, COLOURS[side])) for _, side in expected]


def test_the_stripes_do_not_overlap():
    right, left = overlay_bar.FEET["right"], overlay_bar.FEET["left"]
    stripes = overlay_bar.REFERENCE, overlay_bar.SIMULATION, *right, *left, overlay_bar.PUSHES
    edges = [edge for stripe in stripes for edge in stripe]
    assert edges == sorted(edges) and edges[0] > 0
    assert overlay_bar.PUSHES[1] < overlay_bar.OVER


def test_pushes_are_marked_as_far_as_the_recording_goes():
    pushes = tuple(Push(start, 0.2, (50.0, 0.0, 0.0)) for start in (0.0, 0.33, 5.0))
    recording = _recording([3] * 5, [3] * 5, pushes)
    corners, paints = overlay_bar.stripes(recording, COLOURS | {"pushes": RED})
    marked = corners[(paints == RED).all(1)]
    assert marked[:, :2] == pytest.approx(np.array([[0, 2], [3.3, 4.5]]))
    assert (marked[:, 2:] == overlay_bar.PUSHES).all()
    corners, _ = overlay_bar.stripes(recording, COLOURS)
    assert len(corners) == 2


def test_colours_are_those_of_the_settings():
    settings = bpy.context.scene.poise.overlays
    settings.left_colour = (0.25, 0.5, 0.75)
    colours = overlay_bar.colours_of(settings)
    assert colours["left"] == (0.25, 0.5, 0.75)
    assert set(colours) == {*COLOURS, "pushes"} == set(overlay_bar.WORDS)
    settings.pushes = False
    assert set(overlay_bar.colours_of(settings)) == set(COLOURS)


def test_the_chosen_armature_is_shown(monkeypatch):
    scene = bpy.context.scene
    shots = [SimpleNamespace(reading=SimpleNamespace(armature=name)) for name in ("one", "two")]
    monkeypatch.setattr(overlay, "ghosts", lambda _scene: [(shot, 0) for shot in shots])
    assert overlay_bar.shown(bpy.context) is None  # there is no armature
    for name in ("one", "two", "three"):
        armature = bpy.data.objects.new(name, bpy.data.armatures.new(name))
        scene.collection.objects.link(armature)
    scene.poise.armature = bpy.data.objects["two"]
    assert overlay_bar.shown(bpy.context) is shots[1]
    scene.poise.armature = bpy.data.objects["three"]
    assert overlay_bar.shown(bpy.context) is None


def test_nothing_is_drawn_without_a_result_or_over_drivers(monkeypatch):
    scene = bpy.context.scene
    editor = SimpleNamespace(scene=scene, space_data=SimpleNamespace(mode="TIMELINE"))
    editor.active_object = None
    monkeypatch.setattr(overlay_bar, "bpy", SimpleNamespace(context=editor))
    overlay_bar._draw()

    def looked(_context):
        raise AssertionError("it looks for a result")

    monkeypatch.setattr(overlay_bar, "shown", looked)
    editor.space_data.mode = "DRIVERS"
    overlay_bar._draw()
    editor.space_data.mode, scene.poise.overlays.stance = "DOPESHEET", False
    overlay_bar._draw()
    scene.poise.overlays.stance = True
    with pytest.raises(AssertionError, match="looks for"):
        overlay_bar._draw()
