# SPDX-License-Identifier: GPL-3.0-or-later
"""Marks in the 3D views: each at its place, as long as its force, and only while it acts."""

import math
from types import SimpleNamespace

import bpy
import numpy as np
import pytest

from poise.addon.blender import session
from poise.addon.overlays import overlay, overlay_marks
from poise.addon.overlays.overlay_marks import Look
from poise.addon.settings import overlay_settings
from poise.addon.shots.shot import Shot
from poise.addon.sidebar import overlay_panel
from poise.controller import Simulation
from poise.controller.geometry.rotations import matrix_from_quaternion
from poise.controller.geometry.skeleton import FEET, SEGMENT_INDEX, SEGMENTS
from poise.controller.simulation.recording import Recording
from poise.controller.simulation.scenario import Push, Scenario, Solid, Thing, Throw

pytestmark = pytest.mark.usefixtures("registered")

SCALE = 400.0
RED, GREEN = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
#: Half a pyramid: faces in both directions.
HULL = Solid(
    "hull",
    vertices=np.array([[-1, -1, -0.5], [1, -1, -0.5], [0, 1, -0.5], [0, -0.2, 1.0]]) / 5,
    faces=np.array([[0, 1, 2], [0, 1, 3], [1, 2, 3], [0, 2, 3]]),
)
SCENARIO = Scenario(
    pushes=(
        Push(0.5, 0.2, (60.0, 0.0, 0.0)),
        Push(1.0, 0.1, ((0.0, 0.0, 0.0), (0.0, 40.0, 0.0)), "forearm_l", (0.0, 0.0, -0.1)),
        Push(1.5 + 0.001, 0.002, (0.0, 30.0, 0.0), "head"),
    ),
    things=(
        Thing("box", Solid("box", (0.1, 0.2, 0.3)), 1.0, 0.2, (2.0, 0.0, 1.5), spin=(3, 2, 1)),
        Thing("wedge", HULL, 1.0, 0.0, (-2.0, 0.0, 1.5), spin=(1, 2, 3)),
        Throw(0.5, 1.5, 0.3),
    ),
)


@pytest.fixture(scope="module")
def shot(standins):
    """A simulated Shot with two pushes that last, one shorter than a sample, and three things."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    clip = standins["stand"]
    bpy.ops.import_anim.bvh(filepath=str(clip.path), global_scale=clip.scale)
    bpy.context.scene.render.fps = clip.fps
    shot = Shot(bpy.context.scene)
    for _ in shot.read():
        pass
    shot.prepare()
    shot.simulation = Simulation(
        shot.character, shot.reading.motion, shot.gains, shot.simulation.settings, scenario=SCENARIO
    )
    assert shot.simulation.run().success
    return shot


@pytest.fixture
def recording(shot):
    """Its recording: 1.7 s at 60 Hz."""
    return shot.recording


def volume(points, triangles):
    """Volume of a closed mesh whose triangles are counter-clockwise from outside."""
    return np.linalg.det(points[triangles]).sum() / 6


def area(count):
    """Area of a regular polygon in the unit circle."""
    return count / 2 * math.sin(2 * math.pi / count)


# --- Solids --------------------------------------------------------------------------------------


@pytest.mark.parametrize("tip", [(0.3, -1.2, 0.5), (0.0, 0.0, 2.0), (0.02, 0.0, 0.0)])
def test_an_arrow_goes_from_tail_to_tip(tip):
    tail = np.array([0.5, 0.2, -0.3])
    length = np.linalg.norm(tip)
    points, normals, triangles = overlay_marks.arrows(tail[None], tail[None] + tip)
    along = (points - tail) @ np.array(tip) / length
    away = np.linalg.norm(points - tail - along[:, None] * np.array(tip) / length, axis=1)
    assert along.min() == pytest.approx(0, abs=1e-12)
    assert along.max() == pytest.approx(length)
    assert away[np.isclose(along, length)].max() == pytest.approx(0, abs=1e-9)
    size = min(1, 0.5 * length / overlay_marks.HEAD_LENGTH)
    head, shaft = size * overlay_marks.HEAD_LENGTH, size * overlay_marks.SHAFT
    assert away.max() == pytest.approx(size * overlay_marks.HEAD_RADIUS)
    cone = head * away.max() ** 2 / 3
    expected = area(16) * (cone + (length - head) * shaft**2)
    assert volume(points, triangles) == pytest.approx(expected)
    assert np.linalg.norm(normals, axis=1) == pytest.approx(1)


def test_many_rods_are_as_each_alone():
    random = np.random.default_rng(2)
    starts, ends = random.normal(size=(2, 5, 3))
    points, normals, triangles = overlay_marks.rods(starts, ends, 0.02)
    lengths = np.linalg.norm(ends - starts, axis=1)
    assert volume(points, triangles) == pytest.approx(area(8) * 0.02**2 * lengths.sum())
    for i in range(5):
        alone = overlay_marks.rods(starts[i : i + 1], ends[i : i + 1], 0.02)
        count = len(alone[0])
        assert points[i * count : (i + 1) * count] == pytest.approx(alone[0])
        assert normals[i * count : (i + 1) * count] == pytest.approx(alone[1])


def test_a_disc_lies_flat_and_looks_up():
    points, normals, triangles = overlay_marks.discs(np.array([[1.0, 2.0, 0.5]]), 0.1, 0.3)
    assert points[:, 2] == pytest.approx(0.5)
    assert normals == pytest.approx(np.tile([0, 0, 1], (len(points), 1)))
    radii = np.linalg.norm(points[:, :2] - [1, 2], axis=1)
    assert {round(r, 9) for r in radii.tolist()} == {0.1, 0.3}
    edges = points[triangles]
    faces = np.cross(edges[:, 1] - edges[:, 0], edges[:, 2] - edges[:, 0])[:, 2] / 2
    assert (faces > 0).all()
    assert faces.sum() == pytest.approx(area(24) * (0.3**2 - 0.1**2))


def test_the_hull_of_points():
    square = [(0, 0), (2, 0), (2, 1), (0, 1)]
    points = np.array([*square, (1, 0), (1, 0.5), (2, 1), (0, 0.4)], float)
    corners = points[overlay_marks.hull(points)]
    assert sorted(map(tuple, corners)) == sorted(square)
    x, y = corners.T
    assert (x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2 == 2  # counter-clockwise
    assert len(overlay_marks.hull(np.zeros((0, 2)))) == 0
    assert len(overlay_marks.hull(np.array([[0.0, 0], [1, 1], [2, 2], [0.5, 0.5]]))) == 2


# --- Forces --------------------------------------------------------------------------------------


def test_contact_arrows_are_the_forces_of_the_floor(recording):
    for sample in (25, 60, 100):
        ends = overlay_marks.contact_arrows(recording, sample, SCALE)
        assert len(ends) == 2
        for (tail, tip), cop, force in zip(
            ends, recording.cops[sample], recording.contact_forces[sample], strict=True
        ):
            assert np.array_equal(tail, cop)
            assert (tip - tail) * SCALE == pytest.approx(force)


def test_contact_arrows_carry_the_body(recording):
    lengths = [
        sum(tip[2] - tail[2] for tail, tip in overlay_marks.contact_arrows(recording, k, SCALE))
        for k in range(10, 30)
    ]
    weight = 9.81 * recording.character.mass / SCALE
    assert np.mean(lengths) == pytest.approx(weight, rel=0.03)


def test_a_foot_in_the_air_has_no_arrow():
    nothing = np.full(3, np.nan)
    lifted = SimpleNamespace(
        cops=np.array([[[0.0, 0.1, 0.0], nothing]]),
        contact_forces=np.array([[[0.0, 0.0, 600.0], [0.0, 0.0, 0.0]]]),
        presses=np.zeros((1, len(SEGMENTS), 6)),
    )
    ((tail, tip),) = overlay_marks.contact_arrows(lifted, 0, 600.0)
    assert np.array_equal(tip - tail, [0, 0, 1])
    lifted.cops[0, 0] = np.nan
    lifted.presses[0, SEGMENT_INDEX["trunk"]] = [0.0, 300.0, 0.0, 0.5, 0.2, 1.1]
    ((tail, tip),) = overlay_marks.contact_arrows(lifted, 0, 600.0)
    assert tail.tolist() == [0.5, 0.2, 1.1] and tip.tolist() == [0.5, 0.7, 1.1], "it leans"
    lifted.presses[:] = 0
    assert overlay_marks.contact_arrows(lifted, 0, 600.0) == []
    assert overlay_marks.centre_of_pressure(lifted, 0) is None


def test_the_centre_of_pressure_of_both_feet():
    both = SimpleNamespace(
        cops=np.array([[[0.0, 0.1, 0.0], [0.0, -0.3, 0.0]]]),
        contact_forces=np.array([[[5.0, 0.0, 300.0], [-5.0, 0.0, 100.0]]]),
    )
    assert overlay_marks.centre_of_pressure(both, 0) == pytest.approx([0, 0, 0])


def test_a_push_is_shown_while_it_acts(recording):
    shown = [k for k in range(len(recording)) if overlay_marks.push_arrows(recording, k, SCALE)]
    assert shown == [*range(30, 43), *range(60, 67), 90]
    ((tail, tip),) = overlay_marks.push_arrows(recording, 35, SCALE)
    trunk = recording.body_positions[35, SEGMENT_INDEX["trunk"]]
    assert tip == pytest.approx(trunk)
    assert (tip - tail) * SCALE == pytest.approx([60, 0, 0])


def test_a_push_on_a_point_that_grows(recording):
    character, index = recording.character, SEGMENT_INDEX["forearm_l"]
    lengths = []
    for sample in range(61, 66):
        ((tail, tip),) = overlay_marks.push_arrows(recording, sample, SCALE)
        elbow = recording.joints()[sample, index]
        frame = matrix_from_quaternion(recording.body_rotations[sample, index])
        assert tip == pytest.approx(elbow + frame @ [0, 0, -0.1])
        assert (tip - tail)[[0, 2]] == pytest.approx(0)
        lengths.append((tip - tail)[1] * SCALE)
    assert lengths == pytest.approx([40 * (k / 6) for k in range(1, 6)])
    assert character.centres[index, 2] != -0.1


# --- Balance -------------------------------------------------------------------------------------


def test_the_centre_of_mass_and_its_foot(recording):
    points, _, _, _ = overlay_marks.mesh(recording, 20, Look(SCALE, (("com", RED),)))
    com = recording.com[20]
    highest, lowest = points[points[:, 2].argmax()], points[:, 2].min()
    assert highest == pytest.approx(com + [0, 0, overlay_marks.BALL], abs=1e-9)
    floor = overlay_marks.floor_height(recording, 20)
    assert floor == pytest.approx(recording.character.ground, abs=5e-3)
    assert lowest == pytest.approx(floor + overlay_marks.FOOT_HEIGHT)
    flat = points[points[:, 2] < lowest + 1e-9]
    assert flat[:, :2].mean(0) == pytest.approx(com[:2])


def test_the_support_polygon_holds_the_centre_of_pressure(recording):
    for sample in (20, 40, 100):
        polygon = overlay_marks.support_polygon(recording, sample)
        assert polygon[:, 2] == pytest.approx(recording.character.ground, abs=0.015)
        inside = overlay_marks.centre_of_pressure(recording, sample)[:2]
        edges = np.roll(polygon, -1, 0)[:, :2] - polygon[:, :2]
        to = inside - polygon[:, :2]
        assert (edges[:, 0] * to[:, 1] - edges[:, 1] * to[:, 0] > -1e-6).all()
        points, *_ = overlay_marks.mesh(recording, sample, Look(SCALE, (("support", RED),)))
        assert np.ptp(points[:, 2]) < 0.05


class _Standing(SimpleNamespace):
    """A recording of one sample."""

    sole_corners, parts_down = Recording.sole_corners, Recording.parts_down


def _standing(recording, stance, tilt=0.0, slope=0.0):
    """A recording of one sample, like its first but for the stance and for feet that lie flat, of
    which the left one is pitched about the hinge of its toes. slope: of the floor along x."""
    character = recording.character
    rotations = np.tile([1.0, 0, 0, 0], (1, len(SEGMENTS), 1))
    rotations[0, SEGMENT_INDEX["foot_l"]] = [math.cos(tilt / 2), 0.0, math.sin(tilt / 2), 0.0]
    frames, foot = matrix_from_quaternion(rotations), character.feet[0]
    joints = recording.joints()[:1].copy()
    joints[0, FEET, 2] = foot.depth
    hinge = joints[0, FEET[0]] + foot.hinge
    joints[0, FEET[0]] = hinge - frames[0, FEET[0]] @ foot.hinge
    return _Standing(
        is_down=lambda _sample: False,
        character=character,
        stance=np.array([stance]),
        body_rotations=rotations,
        body_positions=character.body_centres(joints, frames),
        slopes=np.tile([slope, 0.0], (1, 2, 1)),
    )


@pytest.mark.parametrize(("stance", "feet"), [(0, 0), (1, 1), (2, 1), (3, 2)])
def test_the_support_polygon_is_of_the_feet_that_stand(recording, stance, feet):
    foot = recording.character.feet[0]
    polygon = overlay_marks.support_polygon(_standing(recording, stance), 0)
    if feet == 1:  # the sole itself
        sizes = np.ptp(polygon[:, :2], axis=0)
        assert sizes == pytest.approx([foot.heel + foot.toe, 2 * foot.half_width])
    if feet == 0:
        assert len(polygon) == 0
    if feet == 2:
        assert np.ptp(polygon[:, :2], axis=0).min() > 2 * foot.half_width


def test_a_foot_on_its_toes_stands_on_them_alone(recording):
    foot = recording.character.feet[0]
    toes = overlay_marks.support_polygon(_standing(recording, 1, tilt=0.5), 0)
    assert len(toes) == 4
    assert toes[:, 2] == pytest.approx(recording.character.ground, abs=0.01)
    along, across = np.ptp(toes[:, :2], axis=0)
    assert across == pytest.approx(2 * foot.half_width)
    assert along == pytest.approx(foot.toe - foot.ball, abs=0.015)


def test_a_foot_on_its_heel_stands_on_it_alone(recording):
    foot = recording.character.feet[0]
    edge = overlay_marks.support_polygon(_standing(recording, 1, tilt=-0.4), 0)
    assert len(edge) == 2
    assert np.linalg.norm(edge[0] - edge[1]) == pytest.approx(2 * foot.half_width)


def test_what_is_down_is_told_from_the_slope_under_a_foot(recording):
    foot = recording.character.feet[0]
    ramp = _standing(recording, 2, slope=-math.tan(0.2))
    assert np.ptp(overlay_marks.support_polygon(ramp, 0)[:, 0]) < foot.heel + foot.ball
    flat = _standing(recording, 2)
    assert np.ptp(overlay_marks.support_polygon(flat, 0)[:, 0]) == pytest.approx(
        foot.heel + foot.toe
    )


def test_nothing_supports_in_flight(recording):
    flying = _standing(recording, 0)
    assert overlay_marks.mesh(flying, 0, Look(SCALE, (("support", RED),))) is None


# --- Things --------------------------------------------------------------------------------------


def test_things_are_where_the_simulation_has_them(recording):
    look = Look(SCALE, (("things", GREEN),))
    points, _, colours, triangles = overlay_marks.mesh(recording, 60, look)
    assert (colours[:, :3] == GREEN).all()
    box = len(overlay.solid("box", (0.1, 0.2, 0.3))[0])
    frame = matrix_from_quaternion(recording.thing_rotations[60, 0])
    local = (points[:box] - recording.thing_positions[60, 0]) @ frame
    assert np.abs(local).max(0) == pytest.approx([0.1, 0.2, 0.3])
    frame = matrix_from_quaternion(recording.thing_rotations[60, 1])
    local = (points[box:] - recording.thing_positions[60, 1]) @ frame
    assert {tuple(p) for p in local.round(9)} == {tuple(p) for p in HULL.vertices.round(9)}
    hull = triangles[(triangles >= box).all(1)] - box
    expected = abs(np.linalg.det(HULL.vertices[1:] - HULL.vertices[0])) / 6
    assert volume(local, hull) == pytest.approx(expected)


def test_things_are_not_there_before_they_start(recording):
    look = Look(SCALE, (("things", GREEN),))
    counts = [len(overlay_marks.mesh(recording, k, look)[0]) for k in (5, 60, 100)]
    box = len(overlay.solid("box", (0.1, 0.2, 0.3))[0])
    sphere = len(overlay.solid("sphere", (1.0,))[0])
    assert counts == [12, 12 + box, 12 + box + sphere]
    last, _, _, _ = overlay_marks.mesh(recording, 100, look)
    distances = np.linalg.norm(last[-sphere:] - recording.thing_positions[100, 2], axis=1)
    assert distances == pytest.approx(SCENARIO.things[2].solid.size[0])


# --- What is shown -------------------------------------------------------------------------------


def test_the_mesh_has_what_the_switches_say(recording):
    settings = bpy.context.scene.poise.overlays
    for name in overlay_settings.MARKS:
        setattr(settings, name, False)
    assert overlay_marks.mesh(recording, 35, Look.of(settings)) is None
    settings.com, settings.pushes, settings.newtons_per_metre = True, True, 250.0
    settings.com_colour = GREEN
    look = Look.of(settings)
    assert look.newtons_per_metre == 250
    assert [name for name, _ in look.colours] == ["pushes", "com"]
    points, normals, colours, triangles = overlay_marks.mesh(recording, 35, look)
    assert len(points) == len(normals) == len(colours)
    assert triangles.min() == 0 and triangles.max() == len(points) - 1
    green = (colours[:, :3] == GREEN).all(1)
    push, _, _, _ = overlay_marks.mesh(recording, 35, Look(250.0, look.colours[:1]))
    assert np.array_equal(points[~green], push)
    assert np.ptp(push[:, 0]) == pytest.approx(60 / 250)


@pytest.fixture
def drawn(monkeypatch):
    """drawn(scene) -> what `_draw` would put on the screen there: a list of meshes."""
    monkeypatch.setattr(overlay, "batch", lambda *mesh: mesh)
    found = []
    monkeypatch.setattr(
        overlay, "draw_mesh", lambda _region, _view, mesh, hidden: found.append(mesh)
    )

    def draw(scene, show_overlays=True):
        space = SimpleNamespace(overlay=SimpleNamespace(show_overlays=show_overlays))
        view = SimpleNamespace(scene=scene, space_data=space, region=None, region_data=None)
        monkeypatch.setattr(overlay_marks, "bpy", SimpleNamespace(context=view))
        found.clear()
        overlay_marks._batch.cache_clear()
        overlay_marks._draw()
        return list(found)

    yield draw
    overlay_marks._batch.cache_clear()


def test_marks_follow_the_ghost(shot, drawn):
    scene = bpy.context.scene
    assert drawn(scene) == []  # no result, nothing drawn, no complaint
    armature = bpy.data.objects.new(shot.reading.armature, bpy.data.armatures.new("a"))
    scene.collection.objects.link(armature)
    session.keep(scene.name, armature.name, shot)
    scene.frame_set(36)
    ((over, *_),) = drawn(scene)
    expected, *_ = overlay_marks.mesh(shot.recording, 35, Look.of(scene.poise.overlays))
    assert over * shot.reading.metres_per_unit == pytest.approx(expected)
    scene.poise.ghost, scene.poise.ghost_distance = "BESIDE", 2.0
    ((beside, *_),) = drawn(scene)
    aside = overlay.aside(shot.reading.motion, 2.0) / shot.reading.metres_per_unit
    assert beside - over == pytest.approx(np.broadcast_to(aside, over.shape))
    scene.poise.ghost = "HIDDEN"
    assert drawn(scene) == []
    scene.poise.ghost = "OVER"
    assert drawn(scene, show_overlays=False) == []
    scene.frame_set(500)  # behind the end the last sample stays, and no force acts any more
    ((after, *_),) = drawn(scene)
    look = Look.of(scene.poise.overlays)
    assert len(after) < len(overlay_marks.mesh(shot.recording, 101, look)[0])
    last, *_ = overlay_marks.mesh(shot.recording, 101, look.without_forces())
    assert after * shot.reading.metres_per_unit == pytest.approx(last)


class _Layout:
    """Takes down the properties that a panel draws; refuses those that do not exist."""

    def __init__(self):
        self.names = []

    def prop(self, settings, name, **_):
        assert name in settings.bl_rna.properties
        self.names.append(name)

    def __getattr__(self, _name):
        return lambda **_: self


def test_the_panel_has_a_switch_and_a_colour_for_each():
    layout = _Layout()
    overlay_panel.POISE_PT_overlays.content(None, layout, bpy.context, None, "")
    wanted = {*overlay_settings.MARKS, *overlay_settings.PATHS, "stance", "newtons_per_metre"}
    for name in (*overlay_settings.MARKS, "trail", "arcs", *overlay_settings.STANCES):
        wanted.add(f"{name}_colour")
    assert set(layout.names) == wanted
    assert len(layout.names) == len(wanted)
    for prop in bpy.context.scene.poise.overlays.bl_rna.properties:
        if prop.identifier in wanted:
            assert prop.description
