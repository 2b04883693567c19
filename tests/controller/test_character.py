# SPDX-License-Identifier: GPL-3.0-or-later
from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Character, RigError, SettingsError, Simulation
from poise.controller.body import anthropometry
from poise.controller.geometry.skeleton import (
    FEET,
    JOINT_OF,
    LANDMARK_INDEX,
    PARENTS,
    SEGMENT_INDEX,
    SEGMENTS,
)


def test_mass_table_is_a_whole_body():
    table = anthropometry.TABLE
    single = sum(table[n].mass for n in ("pelvis", "trunk", "head"))
    paired = sum(table[n].mass for n in ("upper_arm", "forearm", "hand", "thigh", "shin", "foot"))
    assert single + 2 * paired == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("stature, low, high", [(0.9, 11, 15), (1.1, 16, 21), (1.8, 68, 74)])
def test_mass_from_stature(stature, low, high):
    """WHO medians: about 13 kg at 0.9 m and 18.5 kg at 1.1 m; 71 kg at 1.8 m."""
    assert low < anthropometry.mass_from_stature(stature) < high


def test_body_adds_up(make_motion, adult):
    assert adult.mass == pytest.approx(adult.masses.sum(), rel=1e-12)
    assert adult.height == pytest.approx(1.8, rel=0.02)
    assert adult.ground == pytest.approx(0, abs=0.01)
    assert len(adult.dof_names) == adult.dofs == 30
    # A rigid body's moments obey the triangle inequality.
    a, b, c = adult.inertias.T
    assert (a < b + c).all() and (b < a + c).all() and (c < a + b).all()
    heavier = Character.from_motion(make_motion(), mass=100)
    assert np.allclose(heavier.inertias / adult.inertias, 100 / adult.mass)


def test_left_and_right_are_alike(adult):
    for segment in SEGMENTS:
        if segment.endswith("_l"):
            left, right = SEGMENT_INDEX[segment], SEGMENT_INDEX[segment[:-1] + "r"]
            assert adult.masses[left] == adult.masses[right]
            assert np.allclose(adult.inertias[left], adult.inertias[right])


def test_joints_are_told_in_words(adult):
    told = {name: adult.joint_words(dof) for dof, name in enumerate(adult.dof_names)}
    assert told["spine_pitch"] == told["spine_twist"] == "spine"
    assert told["neck_roll"] == "neck"
    assert told["elbow_l_pitch"] == "left elbow"
    assert told["toe_r_pitch"] == "right toes"
    for name, words in told.items():
        assert name.split("_")[0] in words
        assert ("_l_" in name) == ("left" in words) and ("_r_" in name) == ("right" in words)


def test_coordinates_reproduce_the_motion(swinging):
    character = Character.from_motion(swinging)
    joints, _ = character.pose(character.trajectory(swinging))
    # The hinge of the toes is where the sole has it.
    indices = [LANDMARK_INDEX[JOINT_OF[s]] for s in SEGMENTS if not s.startswith("toe")]
    assert np.abs(joints[:, : len(indices)] - swinging.positions[:, indices]).max() < 1e-3


def test_limbs_move_about_their_joints(swinging):
    """A joint is as far from its parent's joint at every moment."""
    character = Character.from_motion(swinging)
    joints, _ = character.pose(character.trajectory(swinging))
    for child, parent in PARENTS.items():
        apart = joints[:, SEGMENT_INDEX[child]] - joints[:, SEGMENT_INDEX[parent]]
        assert np.ptp(np.linalg.norm(apart, axis=1)) < 1e-12


def test_knees_bend_backward_and_elbows_forward(make_motion):
    def bend(time):
        zero, ramp = np.zeros_like(time), np.linspace(0, 1, len(time))
        return {
            "shin_l": np.stack([zero, ramp, zero], 1),
            "forearm_r": np.stack([zero, -ramp, zero], 1),
        }

    character = Character.from_motion(motion := make_motion(sway=bend))
    angles = dict(zip(character.dof_names, character.trajectory(motion).angles[-1], strict=True))
    assert angles["knee_l_pitch"] == pytest.approx(1 + 0.04, abs=0.1)
    assert angles["elbow_r_pitch"] == pytest.approx(-1 - 0.06, abs=0.1)
    assert abs(angles["knee_r_pitch"]) < 0.1


@pytest.mark.parametrize("heading", [0.0, 1.0, np.pi / 2, -2.5])
def test_facing_does_not_matter(make_motion, heading):
    from poise.controller import Motion
    from poise.controller.geometry.rotations import multiply

    motion = make_motion()
    turn = np.array([np.cos(heading / 2), 0, 0, np.sin(heading / 2)])
    c, s = np.cos(heading), np.sin(heading)
    matrix = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    turned = Motion(
        "turned", motion.rate, multiply(turn, motion.rotations), motion.positions @ matrix.T
    )
    here, there = Character.from_motion(motion), Character.from_motion(turned)
    assert np.allclose(here.centres, there.centres, atol=1e-6)
    straight, round_ = here.trajectory(motion).angles, there.trajectory(turned).angles
    assert np.allclose(straight, round_, atol=1e-6)


def test_arm_axes_avoid_where_the_arms_are(make_motion):
    """Arms out to the side would lock a shoulder whose first axis points there."""

    def t_pose(time):
        ones = np.ones_like(time) * np.pi / 2
        zero = np.zeros_like(ones)
        return {
            "upper_arm_l": np.stack([ones, zero, zero], 1),
            "upper_arm_r": np.stack([-ones, zero, zero], 1),
        }

    character = Character.from_motion(motion := make_motion(sway=t_pose))
    angles = character.trajectory(motion).angles
    rolls = [n for n in character.dof_names if n.startswith("shoulder") and n.endswith("roll")]
    for name in rolls:
        assert np.abs(angles[:, character.dof_names.index(name)]).max() < np.radians(75)


@pytest.mark.parametrize("stature", [0.9, 1.9])
def test_a_child_and_an_adult_stand(make_motion, stature):
    motion = make_motion(stature=stature, seconds=3)
    character = Character.from_motion(motion)
    recording = Simulation(character, motion).run()
    assert recording.success
    assert recording.summary()["pose_error"] < 0.005 * stature
    assert np.abs(recording.com - recording.com[0]).max() < 0.01 * stature


def test_a_limb_without_length_is_refused(make_motion):
    motion = make_motion()
    motion.positions[:, LANDMARK_INDEX["elbow_l"]] = motion.positions[
        :, LANDMARK_INDEX["shoulder_l"]
    ]
    with pytest.raises(RigError, match="shorter than 1 cm: check the rig map"):
        Character.from_motion(motion)


def test_a_giant_is_refused(make_motion):
    with pytest.raises(RigError, match=r"177\.\d+ m tall: set the scale"):
        Character.from_motion(make_motion(stature=180))


@pytest.mark.parametrize("mass", [0, -5, float("nan"), 2000])
def test_odd_masses_are_refused(make_motion, mass):
    with pytest.raises(SettingsError, match="out of range"):
        Character.from_motion(make_motion(), mass=mass)


def test_feet_of_legs_that_stretch_are_where_the_animation_has_them(make_motion):
    """It rises out of reach of planted feet and crouches: a leg of one length stands as well."""
    motion = make_motion(seconds=3.0)
    up = 0.05 * np.sin(np.linspace(0, 2 * np.pi, len(motion)))
    below = [LANDMARK_INDEX[f"{n}_{s}"] for n in ("ankle", "ball", "toe") for s in "lr"]
    knees = [LANDMARK_INDEX[f"knee_{s}"] for s in "lr"]
    share = np.ones(len(LANDMARK_INDEX))
    share[below], share[knees] = 0.0, 0.5
    positions = motion.positions.copy()
    positions[..., 2] += up[:, None] * share
    moved = replace(motion, positions=positions)
    body = Character.from_motion(moved)
    as_animated, reached = (
        body.pose(one)[0][:, FEET] for one in (body.as_animated(moved), body.trajectory(moved))
    )
    ankles = positions[:, [LANDMARK_INDEX[f"ankle_{s}"] for s in "lr"]]
    low = up < 0
    assert np.linalg.norm(as_animated - ankles, axis=-1)[low].max() > 0.04
    assert np.linalg.norm(reached - ankles, axis=-1)[low].max() < 2e-3
    assert body.ground == pytest.approx(0, abs=2e-3)


def test_legs_that_keep_their_length_are_as_animated(make_motion):
    motion = make_motion()
    body = Character.from_motion(motion)
    trajectory = body.as_animated(motion)
    assert body.reached(trajectory, motion) is trajectory


@pytest.mark.parametrize(("raised", "share"), [(0.0, None), (0.5, 0.13), (-0.2, 0.085)])
def test_the_head_is_as_high_as_the_rigs(make_motion, raised, share):
    """A hat is no part of it, nor is a head that ends in the neck."""
    motion = make_motion(1.0)
    motion.positions[:, LANDMARK_INDEX["head_top"], 2] += raised
    character = Character.from_motion(motion)
    head = next(shape for shape in character.shapes if shape.segment == "head")
    middle = character.centres[SEGMENT_INDEX["head"], 2] + head.position[2]
    if share is None:
        neck, top = (motion.positions[0, LANDMARK_INDEX[name]] for name in ("neck", "head_top"))
        assert middle + head.size[0] == pytest.approx(np.linalg.norm(top - neck))
    else:
        assert middle == pytest.approx(share * character.height)
