# SPDX-License-Identifier: GPL-3.0-or-later
"""Get-ups of the animator's own: what fits, where it is put, what is refused, who gets up so."""

import json
from dataclasses import replace

import bpy
import numpy as np
import pytest
from helpers.commands import poise, save

from poise.addon.blender import compat
from poise.addon.rigs import reference, sampling
from poise.addon.scene.marked import GET_UPS, fits
from poise.addon.scene.pushes import PushOptions
from poise.addon.settings import quick
from poise.addon.shots import outdated
from poise.addon.shots.shot import Shot, ShotOptions
from poise.addon.staging import marked as marked_lists
from poise.controller import Character, Simulation
from poise.controller.exceptions import MotionError, SettingsError
from poise.controller.falls.acted import ActedRising, _placing, acted, fitting
from poise.controller.falls.compliance import arms_of, falling_body
from poise.controller.falls.posing import BodyPose, Tree
from poise.controller.falls.rising import KNOTS, Knot
from poise.controller.falls.stages import STAND, STEP_UP
from poise.controller.falls.standing import standing_still
from poise.controller.geometry.rotations import rotation_about
from poise.controller.geometry.skeleton import SEGMENT_INDEX
from poise.controller.reference.reference import Reference
from poise.controller.simulation.scenario import Scenario

pytestmark = pytest.mark.usefixtures("registered")

SIT_UP, PUSH_UP = "Sit Up", "Push Up"


@pytest.fixture
def scene():
    """The example, as the operator leaves it."""
    assert bpy.ops.poise.example_scene() == {"FINISHED"}
    return bpy.context.scene


@pytest.fixture
def armature(scene):
    return next(thing for thing in scene.objects if thing.type == "ARMATURE")


@pytest.fixture
def motions(scene, armature):
    """{name: Motion} of the example's get-ups, and of its wave."""
    names = (SIT_UP, PUSH_UP, "Wave (keyed)")
    return {name: reference.read(scene, armature, action=name).motion for name in names}


@pytest.fixture
def body(motions):
    return Character.from_motion(motions["Wave (keyed)"])


def lying(act, number, yaw=0.0, place=(0.0, 0.0, 0.0)):
    """A pose of a get-up, elsewhere."""
    turn, pose = rotation_about(2, yaw), act.knots[number].pose
    return BodyPose(turn @ pose.root + place, turn @ pose.frame, pose.angles)


# --- What fits -----------------------------------------------------------------------------------


def test_an_outline_that_was_turned_and_moved_is_found_there():
    outline = np.random.default_rng(0).normal(size=(1, 18, 3))
    turn, move = rotation_about(2, 2.5), np.array([3.0, -2.0, 0.0])
    yaws, moves, apart = _placing(outline, outline[0] @ turn.T + move)
    assert yaws == pytest.approx(2.5) and moves[0] == pytest.approx(move)
    assert apart == pytest.approx(0, abs=1e-12)
    lifted = _placing(outline, outline[0] + [0.0, 0.0, 0.3])[2]
    assert lifted == pytest.approx(0.3), "what is higher is no nearer elsewhere"


@pytest.mark.parametrize("yaw", [0.0, 2.0, -3.0])
def test_the_one_is_taken_that_begins_as_the_body_lies(body, motions, yaw):
    acts, tree = acted(body, [motions[SIT_UP], motions[PUSH_UP]]), Tree(body)
    assert [act.told for act in acts] == [
        *(SIT_UP, f"{SIT_UP} (mirrored)", PUSH_UP, f"{PUSH_UP} (mirrored)")
    ]
    for act in acts:
        number = len(act.outlines) - 1
        placed = tree.placed(lying(act, number, yaw, (4.0, 5.0, 0.7)))
        assert fitting(acts, body, placed, 0.7) == (act, number)


def test_a_back_is_no_front(body, motions):
    sits, pushes = (acted(body, [motions[name]]) for name in (SIT_UP, PUSH_UP))
    on_back, on_front = (Tree(body).placed(lying(acts[0], 0)) for acts in (sits, pushes))
    assert fitting(sits, body, on_front, 0.0) is None
    assert fitting(pushes, body, on_back, 0.0) is None
    assert fitting((), body, on_back, 0.0) is None


def test_mirrored_left_is_right(body, motions):
    plain, mirrored = acted(body, [motions[PUSH_UP]])
    names = ("foot", "shin", "thigh", "forearm", "upper_arm", "toe")
    other = list(range(len(SEGMENT_INDEX)))
    for name in names:
        left, right = (SEGMENT_INDEX[f"{name}_{side}"] for side in "lr")
        other[left], other[right] = right, left
    tree = Tree(body)
    for one, two in zip(plain.knots, mirrored.knots, strict=True):
        seen = tree.placed(one.pose).positions[other] * [1, -1, 1]
        assert tree.placed(two.pose).positions == pytest.approx(seen, abs=2e-3)
        assert two.com == pytest.approx(one.com * [1, -1, 1], abs=2e-3)


# --- The way -------------------------------------------------------------------------------------


@pytest.fixture
def way(body, motions):
    """way(name, yaw) of who lies nearly as a get-up begins, elsewhere: (ActedRising, pose, act)."""

    def make(name, yaw):
        wave = motions["Wave (keyed)"]
        standing = standing_still(body, wave, Reference.build(body, wave), 2).pose
        angles = np.zeros(body.dofs)
        falling = falling_body(body, angles)
        tree, acts = Tree(falling), acted(falling, [motions[name]])
        pose = lying(acts[0], 2, yaw, (1.0, 2.0, 0.5))
        placed = tree.placed(pose)
        fit = fitting(acts, falling, placed, 0.5)
        arms = arms_of(falling, angles)
        return ActedRising(tree, arms, standing, 0.5, fit, placed), pose, acts[0]

    return make


@pytest.mark.parametrize("name", [SIT_UP, PUSH_UP])
def test_it_is_performed_where_the_body_is(way, name):
    rising, pose, act = way(name, 1.3)
    tree = rising._tree
    last = Knot(pose, tree.placed(pose).com)
    enter, acting, *rest = rising.stages
    knots, _ = rising.begin(enter, pose, last)
    assert len(knots) == KNOTS + 1 and knots[0].pose is pose
    knots, places = rising.begin(acting, knots[-1].pose, knots[-1])
    assert len(places) == 0 and rising.missed(acting, pose, places) == 0
    assert acting.seconds == pytest.approx((len(knots) - 1) * act.interval)
    turn = rotation_about(2, 1.3)
    low, high = rising._limits.T
    for knot, own in zip(knots, act.knots[2:], strict=True):
        assert knot.com == pytest.approx(turn @ own.com + [1.0, 2.0, 0.5], abs=1e-6)
        inside = ((own.pose.angles >= low) & (own.pose.angles <= high)).all()
        if inside:
            seen = tree.placed(own.pose).positions @ turn.T + [1.0, 2.0, 0.5]
            assert tree.placed(knot.pose).positions == pytest.approx(seen, abs=1e-6)
    jumps = np.abs(np.diff([knot.pose.angles for knot in knots], axis=0))
    assert jumps.max() < 1.5, "arms take no turn of a circle"
    assert rest[-1] is STAND and rest[:-1] in ([], [STEP_UP])


def test_a_foot_steps_only_where_it_must(way, body, motions):
    """The example's ends as its wave stands; with feet apart one of them steps."""
    rising, *_ = way(SIT_UP, 0.0)
    assert STEP_UP not in rising.stages
    acts = acted(body, [motions[SIT_UP]])
    tree = Tree(body)
    placed = tree.placed(lying(acts[0], 0))
    angles = acts[0].knots[-1].pose.angles.copy()
    angles[body.dof_names.index("hip_l_pitch")] -= 0.4
    wide = acts[0].knots[-1].pose._replace(angles=angles)
    arms = arms_of(body, angles)
    stages = ActedRising(tree, arms, wide, 0.0, (acts[0], 0), placed).stages
    assert STEP_UP in stages


# --- What is refused -----------------------------------------------------------------------------


def part(motion, first, last):
    """Some samples of a motion."""
    kept = slice(first, last)
    return replace(motion, rotations=motion.rotations[kept], positions=motion.positions[kept])


def test_what_is_no_get_up_is_refused_in_a_sentence(body, motions):
    with pytest.raises(SettingsError, match=r"'Wave .keyed.' does not begin on the floor: .* 1, "):
        acted(body, [motions["Wave (keyed)"]])
    with pytest.raises(SettingsError, match=r"'Sit Up' does not end standing: .* 40, "):
        acted(body, [part(motions[SIT_UP], 0, 40)])


def test_a_scenario_with_get_ups_goes_through_json(motions):
    scenario = Scenario(get_ups=(motions[SIT_UP],))
    (back,) = Scenario.from_dict(json.loads(json.dumps(scenario.as_dict()))).get_ups
    np.testing.assert_array_equal(back.positions, motions[SIT_UP].positions)
    np.testing.assert_array_equal(back.rotations, motions[SIT_UP].rotations)
    assert (back.name, back.rate) == (SIT_UP, motions[SIT_UP].rate)
    assert "get_ups" not in Scenario().as_dict()


def test_it_is_told_of_this_fall_how_it_got_up(body, motions):
    scenario = Scenario(get_ups=(motions[SIT_UP],))
    recording = Simulation(body, motions["Wave (keyed)"], scenario=scenario).recording
    recording.fall()
    assert recording._by_which_way() == ""
    recording.rise(SIT_UP)
    recording.fall()
    assert recording._by_which_way() == f"It tried to get up as in '{SIT_UP}'."
    recording.rise("")
    recording.stands(None, None)
    assert f"it had failed as in '{SIT_UP}'" in recording._by_which_way()
    recording.fall()
    assert recording._by_which_way() == ""
    recording.rise("")
    recording.stands(None, None)
    assert "no get-up of the list begins nearly as it lay" in recording._by_which_way()
    assert recording.ways == ["", ""]


# --- In Blender ----------------------------------------------------------------------------------


def test_marks_are_the_actions_own(scene, armature):
    assert {action.name for action in GET_UPS.of(armature)} == {SIT_UP, PUSH_UP}
    other = bpy.data.objects.new("Horse", bpy.data.armatures.new("Horse"))
    assert GET_UPS.of(other) == []
    assert bpy.ops.poise.remove_get_up(action=PUSH_UP) == {"FINISHED"}
    assert [action.name for action in GET_UPS.of(armature)] == [SIT_UP]
    action = bpy.data.actions["Squat (keyed)"]
    action.use_fake_user = False
    uid = str(action.session_uid)
    assert bpy.ops.poise.add_get_up(action=uid) == {"FINISHED"}
    assert action.poise_get_up and action.use_fake_user, "or it would be lost with the file"
    foreign = action.copy()
    slot = compat.object_slot(foreign, armature)
    for curve in compat.curves(foreign, slot):
        if "Hips" not in curve.data_path:
            curve.data_path = curve.data_path.replace('["', '["Other')
    assert not fits(foreign, armature), "one name that both have is not enough"


def test_the_list_says_what_it_needs(scene, armature):
    drawn = []

    class Layout:
        active = True

        def column(self, **_):
            return self

        row = column

        def label(self, text="", **_):
            drawn.append(text)

        def operator(self, name, text="", **_):
            drawn.append(text or name)
            return self

    context = bpy.context
    sentences = []
    draw = marked_lists.POISE_PT_get_ups.content
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marked_lists, "sentence", lambda *given: sentences.append(given[2]))
        draw(None, Layout(), context, armature, "")
        assert drawn == [
            PUSH_UP,
            "poise.remove_get_up",
            SIT_UP,
            "poise.remove_get_up",
            "Add Get-Up",
        ]
        assert sentences == ["Choose how it falls, and Get Up, to have it do so."]
        sentences.clear()
        scene.poise.when_it_falls, scene.poise.get_up = "BRACE", True
        draw(None, Layout(), context, armature, "")
        assert sentences == []
        horse = bpy.data.objects.new("Horse", bpy.data.armatures.new("Horse"))
        draw(None, Layout(), context, horse, "")
        assert sentences[0] == f"Of other characters, without keys here: '{PUSH_UP}', '{SIT_UP}'."


def test_a_change_of_the_list_or_of_its_keys_is_one(scene, armature):
    options = ShotOptions(armature=armature.name, when_it_falls="brace", get_up=True)
    before = outdated.in_full(outdated.settings_of(scene, armature, options), armature)
    assert not outdated.source_changed(before, armature)
    assert "Get-Ups" not in quick.also_set(scene, armature)
    scene.poise.when_it_falls, scene.poise.get_up = "BRACE", True
    assert "Get-Ups" in quick.also_set(scene, armature)
    action = bpy.data.actions[SIT_UP]
    curve = compat.curves(action, compat.object_slot(action, armature))[0]
    curve.keyframe_points[1].co.y += 0.1
    assert outdated.source_changed(before, armature)
    action.poise_get_up = False
    now = outdated.settings_of(scene, armature, options)
    assert outdated.changed(before, now) == ["Get-Ups"]


def test_actions_that_are_none_of_its_are_refused(scene, armature):
    options = ShotOptions(armature=armature.name, when_it_falls="brace", get_up=True)
    with pytest.raises(MotionError, match="'Roll' cannot be read: There is no action"):
        sampling.run(Shot(scene, replace(options, get_up_by=("Roll",))).read())
    empty = bpy.data.actions.new("Of a horse")
    with pytest.raises(MotionError, match="'Of a horse' has no keys for"):
        sampling.run(Shot(scene, replace(options, get_up_by=(empty.name,))).read())
    assert armature.animation_data.action.name == "Wave (keyed)", "as it was"
    shot = Shot(scene, replace(options, get_up_by=("Wave (keyed)",)))
    sampling.run(shot.read())
    with pytest.raises(SettingsError, match="does not begin on the floor"):
        shot.prepare()


def test_reading_them_moves_nothing(scene, armature):
    """What a get-up keys beside what the shot does is as it was: object, scales, own properties."""
    action, bone = bpy.data.actions[SIT_UP], armature.pose.bones["LeftHand"]
    shown = compat.assigned(armature)
    armature["prop"] = 5.0
    compat.assign(armature, action, compat.object_slot(action, armature))
    armature.location, bone.scale = (3, 4, 0), (3, 3, 3)
    armature.keyframe_insert("location", frame=1)
    armature.keyframe_insert('["prop"]', frame=1)
    bone.keyframe_insert("scale", frame=1)
    compat.assign(armature, *shown)
    armature.location, bone.scale, armature["prop"] = (0, 0, 0), (1, 1, 1), 1.0
    bpy.context.view_layer.update()
    options = ShotOptions(armature=armature.name, when_it_falls="brace", get_up=True)
    sampling.run(Shot(scene, options).read())
    assert tuple(armature.location) == (0, 0, 0) and tuple(bone.scale) == (1, 1, 1)
    assert armature["prop"] == 1.0 and compat.assigned(armature) == shown
    assert tuple(armature.matrix_world.translation) == (0, 0, 0)


def test_what_cannot_be_read_is_named(scene, armature):
    action = bpy.data.actions[SIT_UP]
    curve = compat.curves(action, compat.object_slot(action, armature))[0]
    curve.keyframe_points[1].co.y = float("nan")
    options = ShotOptions(armature=armature.name, when_it_falls="brace", get_up=True)
    with pytest.raises(MotionError, match="The action 'Sit Up' cannot be read: "):
        sampling.run(Shot(scene, options).read())


def test_an_action_of_another_rig_is_refused_with_the_bones_that_it_keys(armature, scene):
    other = bpy.data.actions[SIT_UP].copy()
    other.name = "Others Up"
    curves = compat.curves(other, compat.object_slot(other, armature))
    for curve in curves:
        curve.data_path = curve.data_path.replace('bones["', 'bones["ORG-')
    options = ShotOptions(
        armature=armature.name, when_it_falls="brace", get_up=True, get_up_by=("Others Up",)
    )
    with pytest.raises(MotionError) as refused:
        sampling.run(Shot(scene, options).read())
    told = str(refused.value)
    assert told.startswith("The action 'Others Up' is of another rig: it keys 'ORG-")
    assert f" more, and '{armature.name}' has none of them. Choose an action of" in told


def test_the_command_needs_get_up(scene, tmp_path, capsys):
    shot = save(tmp_path)
    given = ("bake", shot, "--when-it-falls", "brace", "--get-up-by", SIT_UP)
    assert poise(*given) == 2
    assert "--get-up-by needs --get-up" in capsys.readouterr().err


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize("names", [(), (SIT_UP,)])
def test_who_has_fallen_gets_up_as_the_animator_has_it(scene, armature, names):
    """On its front; with the get-up from the back alone it does so in its own way, and says so."""
    push = PushOptions(pushes=((30, 0.2, (0.0, -550.0, 0.0), "trunk"),), ignore=True)
    given = {"when_it_falls": "brace", "get_up": True, "frames": (1, 260), "pushes": push}
    options = ShotOptions(armature=armature.name, get_up_by=names, **given)
    told = []
    for _ in range(2):
        shot = Shot(scene, options)
        sampling.run(shot.read())
        list(shot.simulate())
        told.append(shot.recording.body_positions)
    assert (told[0] == told[1]).all(), "to the last bit"
    recording = shot.recording
    (by,) = recording.summary()["got_up_by"]
    assert recording.up is not None
    assert recording.com[-1, 2] > 0.9 * recording.com[0, 2]
    assert 0 < recording.helped[0, 0] < 400
    if names:
        assert by is None and "in a way of Poise's own: no get-up of the list begins" in shot.why
    else:
        assert by.startswith(PUSH_UP) and f"It got up as in '{by}'." in shot.why


@pytest.mark.slow(captured=False)
@pytest.mark.once
def test_a_bake_shows_the_get_up(scene, tmp_path):
    bpy.data.actions[SIT_UP].poise_get_up = False
    shot, path = save(tmp_path), tmp_path / "report.json"
    given = ("--when-it-falls", "brace", "--get-up", "--frames=1:260", "--report", path)
    push = ("--no-pushes", "--push", "30,0.2,0,-550,0")
    assert poise("bake", shot, *given, *push) == 0
    report = json.loads(path.read_text())
    assert [name.split(" (")[0] for name in report["got_up_by"]] == [PUSH_UP]
    assert report["bake_error"] < 0.5
