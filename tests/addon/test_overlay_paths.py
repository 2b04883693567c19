# SPDX-License-Identifier: GPL-3.0-or-later
"""Trails, arcs and footprints in the 3D views: where they are, and that they are made once."""

from types import SimpleNamespace

import bpy
import numpy as np
import pytest

from poise.addon.blender import session
from poise.addon.overlays import overlay, overlay_paths
from poise.addon.shots.shot import Shot, ShotOptions
from poise.controller.body import paths
from poise.controller.body.paths import Footprint
from poise.controller.geometry.stance import BALL, HEEL, SOLE

pytestmark = pytest.mark.usefixtures("registered")

WHITE, RED, GREEN = (1.0, 1.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
TRAIL, ARCS, PRINTS = ("trail", (WHITE,)), ("arcs", (WHITE,)), ("footprints", (RED, GREEN))


def jacks(clips):
    """Jumping jacks, simulated: 1.8 s at 60 Hz."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    clip = clips["jumping_jacks"]
    bpy.ops.import_anim.bvh(filepath=str(clip.path), global_scale=clip.scale)
    bpy.context.scene.render.fps = clip.fps
    shot = Shot(bpy.context.scene, ShotOptions(frames=(11, 120)))
    for _ in shot.read():
        pass
    for _ in shot.simulate():
        pass
    assert shot.recording.success
    return shot


@pytest.fixture(scope="module")
def shot(standins):
    """Jumping jacks that are keyed."""
    return jacks(standins)


@pytest.fixture
def recording(shot):
    """Its recording."""
    return shot.recording


def of(mesh, opacity):
    """The vertices of a mesh that have an opacity."""
    chosen = np.isclose(mesh["color"][:, 3], opacity)
    return {name: values[chosen] for name, values in mesh.items()}


def distances(path, rate):
    """How far each flight of a path is from a fall [m], at most."""
    for start, stop in path.flights:
        way = path.com[start:stop]
        arc = paths.fall(way[0], way[-1], len(way) - 1, rate)
        yield np.linalg.norm(arc - way, axis=1).max()


def test_a_simulated_flight_is_a_fall(recording):
    """The engine's own jumps, and how far keyed ones are from any."""
    rate = recording.motion.rate
    done = [*distances(paths.Performed(recording), rate)]
    source = [*distances(paths.Animated(recording), rate)]
    assert len(source) == 3 <= len(done)
    assert max(done) < 1e-4
    assert min(source) > 1e-3


@pytest.mark.slow
def test_a_captured_flight_is_nearly_one(clips):
    recording = jacks(clips).recording
    rate = recording.motion.rate
    done = [*distances(paths.Performed(recording), rate)]
    source = [*distances(paths.Animated(recording), rate)]
    assert len(source) == len(done) == 3
    assert max(done) < 1e-4
    assert min(source) > 1e-3 and max(source) < 0.02


def test_the_trail_goes_where_the_centre_of_mass_does(recording):
    mesh = overlay_paths.mesh(recording, (TRAIL,))
    result, animation = of(mesh, 1.0), of(mesh, overlay_paths.FAINT)
    for part, com in ((result, recording.com), (animation, paths.Animated(recording).com)):
        at = (part["place"][:, 2] - 11).astype(int)
        assert part["pos"] == pytest.approx(com[at])
        assert {*at.tolist()} == {*range(len(recording))}
    assert set(mesh["place"][:, 2].tolist()) == {*range(11, 121)}
    alone = (result["pos"] == result["next"]).all(1)
    assert alone.sum() == 6 * len(recording)  # a dot at each frame
    assert (result["place"][alone, 3] == overlay_paths.DOT / 2).all()
    assert not (animation["pos"] == animation["next"]).all(1).any()


def test_between_two_frames_no_dots_are(recording):
    """At 120 Hz in a scene of 60 every other sample is of a whole frame."""
    fine = SimpleNamespace(
        motion=SimpleNamespace(frame=lambda sample: 11.0 + sample / 2), com=recording.com
    )
    path = SimpleNamespace(com=recording.com)
    _, dots = overlay_paths._trail(fine, path, True, (WHITE,))
    assert np.unique(dots["place"][:, 2]).tolist() == [*range(11, 66)]


def test_an_arc_has_a_rib_for_each_frame(recording):
    mesh = overlay_paths.mesh(recording, (ARCS,))
    ribs = of(mesh, overlay_paths.RIBS)
    done = paths.Performed(recording)
    frames = [11 + k for start, stop in done.flights for k in range(start, stop)]
    assert ribs["place"][::6, 2].tolist() == frames
    assert ribs["pos"][::6] == pytest.approx(recording.com[np.array(frames) - 11])
    off = np.linalg.norm(ribs["next"][::6] - ribs["pos"][::6], axis=1)
    assert 0 < off.max() < 1e-4
    arcs = of(mesh, 1.0)
    assert len(arcs["pos"]) == 6 * sum(stop - start - 1 for start, stop in done.flights)
    assert (arcs["place"][:, 3] == overlay_paths.ARC / 2).all()


def test_whoever_never_flies_has_no_arcs(recording, monkeypatch):
    monkeypatch.setattr(paths, "flights", lambda *_: [])
    assert overlay_paths.mesh(recording, (ARCS,)) is None
    assert overlay_paths.mesh(recording, ()) is None


def test_footprints_lie_on_the_floor_under_the_feet(recording):
    mesh = overlay_paths.mesh(recording, (PRINTS,))
    done = paths.Performed(recording).footprints
    lines = of(mesh, 1.0)
    assert lines["pos"][:, 2] == pytest.approx(
        recording.character.ground + overlay_paths.HEIGHTS[1]
    )
    count = 6 * len(overlay_paths.OUTLINE)
    assert len(lines["pos"]) == count * len(done)
    for i, footprint in enumerate(done):
        one = slice(i * count, (i + 1) * count)
        assert (lines["color"][one, :3] == (RED, GREEN)[footprint.foot]).all()
        assert (lines["place"][one, 2] == 11 + footprint.sample).all()
        apart = lines["pos"][one, :2].mean(0) - footprint.corners[:, :2].mean(0)
        assert np.linalg.norm(apart) < 0.06
    filled = of(mesh, overlay_paths.FILLING)
    assert (filled["place"][:, [0, 1, 3]] == 0).all()
    assert {*filled["place"][:, 2]} == {*lines["place"][:, 2]}
    animated = of(mesh, overlay_paths.FAINT)  # outlines alone
    assert len(animated["pos"]) == count * len(paths.Animated(recording).footprints)


@pytest.mark.parametrize("foot", [0, 1])
def test_a_footprint_is_as_large_as_the_sole_and_shows_which_it_is(foot):
    corners = np.array([(x, y, 0.02) for x in (-0.05, 0.12, 0.2) for y in (-0.04, 0.04)])
    whole, front, back = (
        overlay_paths.sole(Footprint(0, foot, phase, corners)) for phase in (SOLE, BALL, HEEL)
    )
    assert [whole.min(0)[:2], whole.max(0)[:2]] == pytest.approx(
        np.array([(-0.05, -0.04), (0.2, 0.04)])
    )
    assert whole[:, 2] == pytest.approx(0.02)
    big_toe = whole[whole[:, 0].argmax()]
    assert np.sign(big_toe[1]) == (1 if foot else -1)  # inside
    assert front[:, 0].min() == pytest.approx(-0.05 + 0.17 * 0.9)
    assert front[:, 0].max() == pytest.approx(0.2)
    assert back[:, 0].max() == pytest.approx(-0.05 + 0.17 * 0.4)
    assert (overlay_paths.sole(Footprint(0, foot, SOLE, corners), -1.0)[:, 2] == -1).all()


def test_beside_the_result_moves_and_the_animation_stays(recording):
    over = overlay_paths.mesh(recording, (TRAIL, PRINTS))
    beside = overlay_paths.mesh(recording, (TRAIL, PRINTS), (0.0, 2.0, 0.0))
    for part in ("pos", "next"):
        moved = beside[part] - over[part]
        faint = np.isclose(over["color"][:, 3], overlay_paths.FAINT)
        assert (moved[faint] == 0).all()
        assert moved[~faint] == pytest.approx(np.tile([0, 2, 0], ((~faint).sum(), 1)))


def test_dots_thin_out_from_afar():
    assert [overlay_paths.dots_at(pixels) for pixels in (20, 7, 6.9, 0.6, 0.5)] == [1, 1, 5, 5, -1]


def test_the_mean_way_from_frame_to_frame():
    com = np.array([[0, 0, 1], [0.3, 0, 1], [0.3, 0.1, 1]])
    recording = SimpleNamespace(com=com, motion=SimpleNamespace(frame_step=0.5))
    assert overlay_paths.spacing(recording) == pytest.approx(0.4)
    recording.com = com[:1]
    assert overlay_paths.spacing(recording) == 0


@pytest.fixture
def drawn(monkeypatch):
    """drawn(scene) -> what `_draw` would put on the screen there: a list of (mesh, dots_at); its
    attribute `made` counts how many meshes it had to make."""
    found = []
    monkeypatch.setattr(overlay_paths, "batch", lambda mesh: mesh)
    monkeypatch.setattr(overlay_paths, "_pixels_per_unit", lambda *_: 100.0)
    monkeypatch.setattr(
        overlay_paths, "_draw_batch", lambda _context, mesh, _motion, every: found.append(mesh)
    )

    def draw(scene, show_overlays=True):
        space = SimpleNamespace(overlay=SimpleNamespace(show_overlays=show_overlays))
        context = SimpleNamespace(scene=scene, space_data=space)
        monkeypatch.setattr(overlay_paths, "bpy", SimpleNamespace(context=context))
        found.clear()
        overlay_paths._draw()
        return list(found)

    overlay_paths._batch.cache_clear()
    yield draw
    overlay_paths._batch.cache_clear()


def test_paths_are_drawn_of_results_and_made_once(shot, drawn, monkeypatch):
    scene = bpy.context.scene
    settings = scene.poise.overlays
    assert (settings.trail, settings.arcs, settings.footprints) == (False, True, False)
    assert drawn(scene) == []
    armature = bpy.data.objects.new(shot.reading.armature, bpy.data.armatures.new("a"))
    scene.collection.objects.link(armature)
    session.keep(scene.name, armature.name, shot)
    for frame in (11, 40, 200):
        scene.frame_set(frame)
        (arcs,) = drawn(scene)
    assert overlay_paths._batch.cache_info().misses == 1
    expected = overlay_paths.mesh(shot.recording, overlay_paths.colours_of(settings))
    assert arcs["pos"] * shot.reading.metres_per_unit == pytest.approx(expected["pos"])
    settings.trail = settings.footprints = True
    settings.left_colour = RED
    (everything,) = drawn(scene)
    assert len(everything["pos"]) > len(arcs["pos"])
    assert (everything["color"][:, :3] == RED).all(1).any()
    assert drawn(scene, show_overlays=False) == []
    scene.poise.ghost = "HIDDEN"
    assert drawn(scene) == []
    scene.poise.ghost = "OVER"
    job = SimpleNamespace(
        scene_name=scene.name, armature_name=armature.name, ghosts=lambda: [(shot, 3)]
    )
    monkeypatch.setattr(session, "_job", job)
    assert overlay.ghosts(scene) == [(shot, 3)]
    assert drawn(scene) == []  # it is in the making
    monkeypatch.setattr(session, "_job", None)
    settings.trail = settings.arcs = settings.footprints = False
    assert drawn(scene) == []
