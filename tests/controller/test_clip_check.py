# SPDX-License-Identifier: GPL-3.0-or-later
"""The clip check and the cleaning: faults put into captured motion are found where they are, and
only there, and are gone afterwards."""

import re
from dataclasses import replace

import numpy as np
import pytest
from helpers.standins import captured

from poise.controller import Character, MotionError, Settings, SettingsError, Simulation
from poise.controller.checks.clip_check import MEASURES, check
from poise.controller.clean_up.leg_chain import Body
from poise.controller.geometry.rotations import exponential, matrix_from_quaternion, multiply, unit
from poise.controller.geometry.skeleton import LANDMARK_INDEX, LANDMARKS, SEGMENT_INDEX, SEGMENTS
from poise.controller.reference.cleaning import CLEANING, clean
from poise.controller.reference.performed import performed_motion
from poise.controller.reference.reference import Reference
from poise.controller.simulation.scenario import Collider, Scenario, Solid
from poise.controller.support.terrain import Terrain

bpy = pytest.importorskip("bpy")


BALANCE = ("arm", "bow", "hips_twist", "knee_raises", "single", "squat", "stand", "wave")
_motions = {}


@pytest.fixture
def clip(clips, request):
    """clip(name) -> Motion of a clip; each is read once."""

    def read(name):
        path = clips[name].path
        if path not in _motions:
            from poise.addon.rigs import reference

            armature = request.getfixturevalue("import_clip")(name)
            _motions[path] = reference.read(bpy.context.scene, armature).motion
        return _motions[path]

    return read


def checked(motion):
    return check(Character.from_motion(motion), motion)


def cleaned(motion, *names):
    """(ClipCheck, Trajectory) of the cleaned motion."""
    character = Character.from_motion(motion)
    trajectory = clean(character, character.trajectory(motion), names)
    return check(character, motion, names), trajectory


def spans(result, *kinds):
    return [(f.kind, f.subject, f.frames) for f in result.findings if f.kind in kinds]


# --- Faults to put into a motion ------------------------------------------------------------------


def moved(motion, first, last, by):
    """The body elsewhere from frame `first` to `last`."""
    positions = motion.positions.copy()
    positions[first - 1 : last] += by
    return replace(motion, positions=positions)


def bent(motion, first, last, angle=2.2, axis=(0.0, 1.0, 0.0)):
    """The left elbow turned from frame `first` to `last`, about an axis of the world."""
    rotations, positions = motion.rotations.copy(), motion.positions.copy()
    some = slice(first - 1, last)
    turn = exponential(angle * unit(np.array(axis)))
    forearm = SEGMENT_INDEX["forearm_l"]
    rotations[some, forearm] = multiply(turn, rotations[some, forearm])
    elbow = positions[some, LANDMARK_INDEX["elbow_l"]]
    for name in ("wrist_l", "fingertip_l"):
        point = LANDMARK_INDEX[name]
        away = positions[some, point] - elbow
        positions[some, point] = elbow + away @ matrix_from_quaternion(turn).T
    return replace(motion, rotations=rotations, positions=positions)


def twisted(motion, first, last, angle=3.1):
    """The left arm turned about itself from frame `first` to `last`, as retargeting does it."""
    rotations = motion.rotations.copy()
    wrist, shoulder = (
        motion.positions[:, LANDMARK_INDEX[name]] for name in ("wrist_l", "shoulder_l")
    )
    turns = exponential(unit(wrist - shoulder) * angle)
    for name in ("upper_arm_l", "forearm_l"):
        arm = SEGMENT_INDEX[name]
        turned = multiply(turns, rotations[:, arm])
        rotations[first - 1 : last, arm] = turned[first - 1 : last]
    return replace(motion, rotations=rotations)


def lifted(motion, first, last, height, ramp):
    """The body raised from frame `first` to `last`, on smooth ramps before and after."""
    frames = np.arange(1, len(motion) + 1)
    share = np.interp(frames, [first - ramp, first, last, last + ramp], [0, 1, 1, 0])
    rise = height * share * share * (3 - 2 * share)
    return moved(motion, 1, len(motion), np.stack([0 * rise, 0 * rise, rise], 1)[:, None])


def slid(motion, first, last, way):
    """The whole body pushed along from frame `first` to `last`."""
    share = np.interp(np.arange(1, len(motion) + 1), [first, last], [0, 1])
    return moved(motion, 1, len(motion), (share[:, None] * way)[:, None])


def mirrored(motion):
    def swap(names):
        other = {"l": "r", "r": "l"}
        return [
            names.index(n[:-1] + other[n[-1]]) if n.endswith(("_l", "_r")) else i
            for i, n in enumerate(names)
        ]

    rotations = motion.rotations[:, swap(SEGMENTS)] * [1, -1, 1, -1]
    positions = motion.positions[:, swap(LANDMARKS)] * [1, -1, 1]
    return replace(motion, rotations=rotations, positions=positions)


# --- What to do with a clip -----------------------------------------------------------------------


@pytest.mark.slow
def test_every_captured_clip_gets_the_way_that_carries_it(clip, clips):
    ways = {name: checked(clip(name)).recommend for name in clips}
    assert ways == {name: "balance" if name in BALANCE else "rectify" for name in clips}


@pytest.mark.slow
def test_no_captured_clip_has_a_fault_and_cleaning_leaves_it_as_it_is(clip, clips):
    for name in clips:
        motion = clip(name)
        character = Character.from_motion(motion)
        result = check(character, motion)
        assert not result.faults, name
        assert not spans(result, "skate", "sink"), name
        trajectory = character.trajectory(motion)
        assert clean(character, trajectory, CLEANING) is trajectory, name


def test_the_choice_does_not_depend_on_side_heading_place_or_size(clip):
    turn = exponential(np.array([0, 0, 1.1]))
    for name in ("bow", "dance", "walk"):
        motion = clip(name)
        result = checked(motion)
        turned = replace(
            motion,
            rotations=multiply(turn, motion.rotations),
            positions=motion.positions @ matrix_from_quaternion(turn).T + [3, -2, 0],
        )
        for other in (mirrored(motion), turned):
            assert checked(other).recommend == result.recommend, name
    one, two = checked(clip("walk")).measures, checked(mirrored(clip("walk"))).measures
    for measure in MEASURES:
        np.testing.assert_allclose(one[measure], two[measure], atol=1e-2, err_msg=measure)


@pytest.mark.slow
def test_a_slower_clip_is_easier_until_it_would_have_to_hang_in_the_air(clip):
    for name, way in (("hips_twist", "balance"), ("bow", "balance"), ("dance", "tune")):
        motion = clip(name)
        assert checked(replace(motion, rate=motion.rate / 2)).recommend == way, name
    jump = checked(replace(clip("jump"), rate=clip("jump").rate / 2))
    assert [f.kind for f in jump.faults] == ["float"]
    assert "floats" in jump.verdict


@pytest.mark.slow
def test_a_faster_clip_is_harder(clip):
    motion = clip("bow")
    verdicts = [checked(replace(motion, rate=factor * motion.rate)) for factor in (1, 1.9, 3)]
    assert [found.recommend for found in verdicts] == ["balance", "tune", "rectify"]


def test_a_person_who_stands_asks_nothing_of_the_floor_but_to_stand_on(standing):
    result = checked(standing)
    assert result.recommend == "balance"
    assert result.verdict.startswith("Balance alone will do")
    assert not result.findings
    assert result.shares["dual"] == 1
    for name in ("joint_speed", "com_acceleration", "zmp_outside", "friction", "foot_slide"):
        assert np.abs(result.measures[name]).max() < 1e-6, name


def test_a_body_on_its_head_is_told(standing):
    turned = standing.positions * [1, -1, -1] + [0, 0, 2]
    motion = replace(standing, positions=turned)
    assert "the feet are above the pelvis in 100% of the frames" in checked(motion).verdict
    for refuse in (
        lambda: Reference.build(Character.from_motion(standing), motion),
        lambda: Body.from_motion(motion),
    ):
        with pytest.raises(MotionError, match=r"'person' is upside down: .* Turn the armature"):
            refuse()


# --- Faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["walk", "jumping_jacks", "bow"])
def test_a_root_that_jumps_and_comes_back_is_found_and_mended(clip, name):
    motion = clip(name)
    broken = moved(motion, 41, 44, [0.4, 0, 0])
    result = checked(broken)
    assert spans(result, "pop", "teleport") == [("teleport", "whole body", (41, 44))]
    assert result.verdict.startswith("Mend first: frames 41-44: the whole body jumps (")
    mended, trajectory = cleaned(broken, "despike")
    assert not mended.faults
    assert mended.recommend == checked(motion).recommend
    whole = Character.from_motion(motion).trajectory(motion).root
    assert np.abs(trajectory.root - whole).max() < 0.02
    others = np.r_[0:40, 44 : len(motion)]
    np.testing.assert_array_equal(trajectory.root[others], whole[others])


def test_a_root_that_goes_on_elsewhere_is_brought_back(clip):
    motion = clip("walk")
    broken = moved(motion, 61, len(motion), [1.0, 0.5, 0])
    assert spans(checked(broken), "teleport") == [("teleport", "whole body", (60, 61))]
    mended, trajectory = cleaned(broken, "despike")
    assert not mended.faults
    whole = Character.from_motion(motion).trajectory(motion).root
    assert np.abs(trajectory.root - whole).max() < 0.02


@pytest.mark.slow(captured=False)
def test_what_mends_a_clip_without_asking_is_named(clip):
    motion = clip("hips_twist")
    both = checked(bent(lifted(motion, 50, 90, 0.3, 10), 21, 24))
    assert both.mends == ("despike", "ground")
    assert both.mending.startswith("Cleaned by itself (Despike, Ground): frames ")
    assert all(found.sentence in both.mending for found in both.faults), "all of them"
    worst = max(both.faults, key=lambda found: found.value / found.limit)
    assert worst.sentence in both.mending.split("; ")[0]
    for broken, name in (
        (bent(motion, 41, 44), "despike"),
        (moved(motion, 41, 44, [0.4, 0, 0]), "despike"),
        (lifted(motion, 50, 90, 0.3, 10), "ground"),
    ):
        found = checked(broken)
        assert found.mends == (name,)
        mended, _ = cleaned(broken, *found.mends)
        assert not mended.faults and mended.mends == () and mended.mending == ""
    skating = checked(slid(motion, 40, 60, np.array([0.4, 0, 0])))
    assert "ground" not in skating.mends, "who slides may be on ice"
    assert checked(motion).mends == () and checked(motion).mending == ""


@pytest.mark.slow
def test_a_joint_that_flips_is_found_and_mended(clip):
    motion = clip("hips_twist")
    broken = bent(motion, 41, 44)
    result = checked(broken)
    assert spans(result, "pop", "teleport") == [("pop", "left elbow", (41, 44))]
    assert result.recommend == "balance"
    mended, trajectory = cleaned(broken, "despike")
    assert not mended.faults
    character = Character.from_motion(motion)
    whole = character.pose(character.trajectory(motion))[0]
    away = np.linalg.norm(character.pose(trajectory)[0] - whole, axis=-1)
    assert away.max() < 0.02


@pytest.mark.parametrize("axis", [(0.0, 1.0, 0.0), (1.0, 0.3, 0.2), (0.2, -0.4, 1.0), None])
@pytest.mark.parametrize("name", ["hips_twist", "walk"])
def test_a_hand_goes_on_as_before_where_its_elbow_flipped(clip, name, axis):
    """An elbow is a hinge: what a flip has beside that, the hand kept, and its fingertips popped by
    13 cm. None: a forearm that turns over about itself."""
    whole = clip(name)
    whole = replace(whole, rotations=whole.rotations[:60], positions=whole.positions[:60])
    elbow, wrist = (whole.positions[:, LANDMARK_INDEX[point]] for point in ("elbow_l", "wrist_l"))
    broken = bent(whole, 41, 44, 2.8, wrist[42] - elbow[42] if axis is None else axis)
    character = Character.from_motion(whole)
    settings = Settings(cleaning=("despike",))
    with_pop = Simulation(character, broken, settings=settings)
    assert fingertips(performed_motion(with_pop.recording.cleaned())) == pytest.approx(
        fingertips(whole), abs=0.02
    )
    without = Simulation(character, whole, settings=settings).run()
    assert fingertips(performed_motion(with_pop.run())) == pytest.approx(
        fingertips(performed_motion(without)), abs=0.02
    )


def fingertips(motion):
    """(n, 2, 3) two points beside the left wrist [m] that turn with the forearm."""
    frames = matrix_from_quaternion(motion.rotations[:, SEGMENT_INDEX["forearm_l"]])
    ends = np.array([[0.1, 0.0, 0.1], [-0.1, 0.1, 0.0]])
    return motion.positions[:, LANDMARK_INDEX["wrist_l"], None] + ends @ np.swapaxes(frames, 1, 2)


@pytest.mark.parametrize("last", [44, None])
def test_an_arm_that_flips_about_itself_is_found_whether_it_comes_back_or_not(clip, last):
    motion = clip("jumping_jacks")
    broken = twisted(motion, 41, last or len(motion))
    frames = (41, 44) if last else (40, 41)
    found = spans(checked(broken), "pop", "teleport")
    assert ("pop", "left shoulder", frames) in found
    assert {span for *_, span in found} == {frames}
    mended, _ = cleaned(broken, "despike")
    assert not mended.faults


def test_a_bone_that_turns_over_unseen_by_the_joints_is_told_unless_it_is_cleaned(clip):
    motion = clip("hips_twist")
    rotations = motion.rotations.copy()
    arm = SEGMENT_INDEX["forearm_l"]
    along = unit(
        motion.positions[:, LANDMARK_INDEX["wrist_l"]]
        - motion.positions[:, LANDMARK_INDEX["elbow_l"]]
    )
    rotations[40:44, arm] = multiply(exponential(3.0 * along), rotations[:, arm])[40:44]
    broken = replace(motion, rotations=rotations)
    found = checked(broken).faults
    assert {f.subject for f in found} == {"left forearm"}
    assert [f.frames for f in found] == [(40, 41), (44, 45)]
    assert "the bone of the left forearm turns over by 1" in found[0].sentence
    assert not cleaned(broken, "despike")[0].faults


def test_pops_in_one_clip_are_told_apart(clip):
    broken = moved(twisted(clip("walk"), 30, 31), 50, 50, [0, 0.3, 0])
    found = spans(checked(broken), "pop", "teleport")
    assert ("pop", "left shoulder", (30, 31)) in found
    assert ("teleport", "whole body", (50, 50)) in found


@pytest.mark.parametrize("name", ["walk", "hips_twist", "bow", *captured("walk", "dance")])
def test_a_body_that_floats_comes_down(clip, name):
    motion = clip(name)
    broken = lifted(motion, 50, 90, 0.3, 10)
    result = checked(broken)
    ((_, _, (first, last)),) = spans(result, "float")
    assert 40 < first < 50 < 90 < last < 100
    assert re.search("the body floats, its feet up to (29|3[0-9]) cm", result.verdict)
    mended, trajectory = cleaned(broken, "ground")
    assert not mended.faults
    whole = Character.from_motion(motion).trajectory(motion).root
    assert np.abs(trajectory.root - whole).max() < 0.045
    np.testing.assert_array_equal(trajectory.root[:, :2], whole[:, :2])


@pytest.mark.slow
def test_a_flight_is_no_floating_and_survives_where_the_rest_comes_down(clip):
    motion = clip("jumping_jacks")
    assert len(spans(checked(motion), "flight")) > 3
    broken = lifted(motion, 1, 130, 0.4, 10)
    mended, trajectory = cleaned(broken, "ground")
    assert not mended.faults
    whole = Character.from_motion(motion).trajectory(motion).root
    assert np.abs(trajectory.root - whole)[:, 2].max() < 0.06
    assert np.ptp(trajectory.root[:110, 2]) > 0.8 * np.ptp(whole[:110, 2])


def test_a_clip_that_begins_in_the_air_is_checked_and_once_grounded_simulated(clip):
    broken = lifted(clip("hips_twist"), 1, 50, 0.5, 10)
    character = Character.from_motion(broken)
    with pytest.raises(MotionError, match=r"starts in the air, \d+ cm .*, or clean it with 'groun"):
        Simulation(character, broken)
    assert spans(check(character, broken), "float")[0][2][0] == 1
    settings = Settings(cleaning=("ground",))
    recording = Simulation(character, broken, settings=settings).run()
    assert recording.success, recording.why()


def test_the_bake_goes_from_the_animation_to_the_simulation_of_the_cleaned_motion(clip):
    motion = clip("stand")
    broken = moved(motion, 61, 64, [0.4, 0, 0])
    settings = Settings(cleaning=("despike",))
    recording = Simulation(Character.from_motion(broken), broken, settings=settings).run()
    assert recording.success
    away = np.linalg.norm(recording.root_displacement()[:, :2], axis=1)
    assert away[60:64].min() > 0.35  # back to where the body is
    assert np.delete(away, np.s_[60:64]).max() < 0.05


def test_a_body_that_slides_along_stands_again(clip):
    motion = clip("hips_twist")
    broken = slid(motion, 61, 71, np.array([0.2, 0, 0]))
    found = spans(checked(broken), "skate")
    assert {subject for _, subject, _ in found} == {"left foot", "right foot"}
    assert all(first >= 60 and last <= 72 for _, _, (first, last) in found)
    mended, trajectory = cleaned(broken, "unskate")
    assert not spans(mended, "skate")
    whole = Character.from_motion(motion).trajectory(motion).root
    assert np.abs(trajectory.root - whole).max() < 0.05


@pytest.mark.slow
def test_a_walk_on_the_spot_with_sliding_feet_goes_forward_again(clip):
    motion = clip("walk")
    way = (motion.positions[-1, 0] - motion.positions[0, 0]) * [1, 1, 0]
    share = np.linspace(0, 1, len(motion))[:, None]
    broken = moved(motion, 1, len(motion), -(share * way)[:, None])
    found = checked(broken)
    assert found.recommend == "rectify"
    assert {finding.kind for finding in found.faults} == {"treadmill"}
    mended, trajectory = cleaned(broken, "unskate")
    assert not mended.faults
    assert not spans(mended, "skate")
    far = (trajectory.root[-1] - trajectory.root[0]) @ way / np.linalg.norm(way) ** 2
    assert 0.8 < far < 1.05


def test_one_foot_that_skates_is_held_where_it_stands(clip):
    motion = clip("stand")
    character = Character.from_motion(motion)
    trajectory = character.trajectory(motion)
    from poise.controller.geometry.leg_bending import bend_leg

    joints, frames = (array.copy() for array in character.pose(trajectory))
    ankle = joints[:, SEGMENT_INDEX["foot_l"]].copy()
    ankle[:, 0] += np.interp(np.arange(len(ankle)), [60, 75], [0, 0.15])
    bend_leg(joints, frames, "l", ankle)
    broken = character.trajectory_of(trajectory.rate, joints[:, 0], frames)
    mended = clean(character, broken, ("unskate",))
    np.testing.assert_allclose(mended.root, broken.root)
    feet = character.pose(mended)[0][:, SEGMENT_INDEX["foot_l"]]
    speed = np.linalg.norm(np.diff(feet[:, :2], axis=0), axis=1) * motion.rate
    assert speed.max() < 0.3


def test_joints_that_nobody_has_are_named_by_their_frames(make_motion):
    def windmill(time):
        angle = 50.0 * np.clip(time - 0.5, 0, 0.7)
        zero = np.zeros_like(time)
        return {"upper_arm_l": np.stack([zero, angle, zero], 1)}

    motion = make_motion(seconds=2.0, rate=120.0, sway=windmill)
    result = checked(motion)
    assert result.faults and "50 rad/s" in result.verdict
    first, last = result.faults[0].frames
    assert 58 <= first <= 64 and 142 <= last <= 148


@pytest.mark.slow
def test_heights_are_those_over_what_is_under_the_feet(clip):
    walk = clip("walk")
    raised = replace(walk, positions=walk.positions + [0, 0, 0.3])
    podium = Collider("Podium", Solid("box", (20, 20, 0.1)), (0, 0, 0.2))
    terrain = Terrain.of(Scenario(colliders=(podium,), floor=0.0), 0.0, raised)
    result = check(Character.from_motion(raised, floor=0.3, terrain=terrain), raised, (), terrain)
    assert [f.sentence for f in result.findings] == [f.sentence for f in checked(walk).findings]
    assert np.allclose(result.measures["clearance"], checked(walk).measures["clearance"], atol=1e-3)


def test_cleaning_has_names(standing):
    with pytest.raises(
        SettingsError, match="no cleaning 'polish': use despike, ground, travel, unskate"
    ):
        Settings(cleaning=("polish",))


def test_the_result_is_told_as_json(clip):
    import json

    told = json.loads(json.dumps(checked(bent(clip("bow"), 41, 44)).as_dict()))
    assert told["findings"][0]["frames"] == [41, 44]
    assert told["findings"][0]["severity"] == "mend"
    assert told["measures"]["joint_speed"]["unit"] == "rad/s"
    assert set(told["measures"]) == set(MEASURES)


# --- Tempo ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["walk", "walk_slow", "walk_fast", "walk_zombie", "run_leap"])
def test_gaits_at_another_frame_rate_are_told(clip, name):
    """As Blender imports a clip of 60 frames a second into a scene of 24, unless told otherwise."""
    motion = clip(name)
    assert not [f for f in check_of(motion).findings if f.kind == "tempo"]
    found = check_of(replace(motion, rate=24.0))
    (finding,) = (f for f in found.findings if f.kind == "tempo")
    assert finding.severity == "note" and finding.frames == (1, motion.frame(len(motion) - 1))
    assert "as if in slow motion" in finding.sentence
    assert "perhaps it is of 60 frames a second, not 24" in finding.sentence
    assert finding.sentence in found.verdict, "also where it has faults, which come of that"


@pytest.mark.slow
def test_a_walk_that_is_played_too_fast_is_told(clip):
    found = check_of(replace(clip("walk"), rate=150.0))
    (finding,) = (f for f in found.findings if f.kind == "tempo")
    assert "played too fast, at 2.6 times the usual pace: perhaps it is of 60" in finding.sentence


@pytest.mark.parametrize(
    "name", ["walk", "walk_fast", *captured("walk_slow", "walk_fast", "walk_backward")]
)
def test_walks_at_twice_their_speed_are_told(clip, name):
    """As a clip of 60 frames a second that is played at 120."""
    motion = clip(name)
    assert not [f for f in check_of(motion).findings if f.kind == "tempo"]
    found = check_of(replace(motion, rate=120.0))
    (finding,) = (f for f in found.findings if f.kind == "tempo")
    assert "it steps as if played too fast, at " in finding.sentence


@pytest.mark.parametrize("held", [2, 3])
def test_a_clip_that_is_animated_on_twos_is_told(clip, held):
    motion = clip("squat")
    taken = np.arange(len(motion)) // held * held
    stepped = replace(motion, rotations=motion.rotations[taken], positions=motion.positions[taken])
    assert not check_of(motion).doubts
    found = check_of(stepped)
    (finding,) = found.doubts
    assert f"it holds each pose for {held} frames and then jumps" in finding.sentence
    assert found.faults or finding.sentence in found.verdict
    still = np.minimum(np.arange(len(motion)), 100)  # who comes to rest
    rests = replace(motion, rotations=motion.rotations[still], positions=motion.positions[still])
    assert not check_of(rests).doubts


@pytest.mark.parametrize(
    "name", ["dance", "side_kick", "wave", *captured("jumping_jacks", "dance", "jog_in_place")]
)
@pytest.mark.parametrize("factor", [0.4, 1.0])
def test_what_is_no_gait_has_no_tempo(clip, name, factor):
    motion = clip(name)
    motion = replace(motion, rate=factor * motion.rate)
    assert not [f for f in check_of(motion).findings if f.kind == "tempo"]


def check_of(motion):
    return check(Character.from_motion(motion), motion)
