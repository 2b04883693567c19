# SPDX-License-Identifier: GPL-3.0-or-later
"""Bodies that faint, and limbs that are weak."""

import numpy as np
import pytest

from poise.controller import Character, Settings, SettingsError, Simulation
from poise.controller.falls.strength import LIMBS, Strength
from poise.controller.geometry.rotations import matrix_from_quaternion
from poise.controller.geometry.skeleton import SEGMENT_INDEX
from poise.controller.simulation.scenario import Push, Scenario

HEAD = SEGMENT_INDEX["head"]
LIMP, STIFF = (pytest.param(kind, marks=pytest.mark.slow) for kind in ("limp", "stiff"))


def simulation(motion, kind="limp", strength=None, get_up=False, **scenario):
    return Simulation(
        Character.from_motion(motion),
        motion,
        settings=Settings(when_it_falls=kind, get_up=get_up),
        scenario=Scenario(strength=strength or {}, **scenario),
    )


def until(motion, second, before=1.0, after=0.0):
    """(F,) one value up to a time [s], and another from there on."""
    time = np.arange(len(motion)) / motion.rate
    return np.where(time < second, before, after)


# --- What there is -------------------------------------------------------------------------------


def test_every_joint_belongs_to_a_limb(adult):
    for name in adult.dof_names:
        owners = [limb for limb, joints in LIMBS.items() if name.startswith(joints)]
        assert len(owners) == 2 and owners[0] == "tone", name


def test_shares_multiply_and_the_last_one_holds(adult):
    found = Strength.build(adult, {"tone": [1.0, 0.5], "leg_l": 0.5}, 4)
    names = list(adult.dof_names)
    assert found.joints[:, names.index("knee_l_pitch")] == pytest.approx([0.5, 0.25, 0.25, 0.25])
    assert found.joints[:, names.index("knee_r_pitch")] == pytest.approx([1, 0.5, 0.5, 0.5])
    assert not found.faints(3) and found.may_rise(0) and not found.may_rise(1)
    assert Strength.build(adult, {"tone": np.ones(4), "arm_l": 1.0}, 4) is None


@pytest.mark.slow(captured=False)
def test_full_strength_changes_nothing(swinging):
    one = simulation(swinging).run()
    other = simulation(swinging, strength={"tone": np.ones(len(swinging)), "leg_l": 1.0}).run()
    assert np.array_equal(one.body_positions, other.body_positions)


# --- Faints and weak limbs -----------------------------------------------------------------------


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize("kind", [LIMP, "brace", STIFF])
def test_who_faints_goes_down_at_once_whatever_the_way(make_motion, kind):
    motion = make_motion(5.0)
    recording = simulation(motion, kind, {"tone": until(motion, 1.0)}).run()
    assert recording.fell_at == pytest.approx(1.0, abs=0.1)
    assert recording.com[-1, 2] < 0.35 * recording.com[0, 2] and recording.rest_at is not None
    # Nothing holds it: the trunk falls as fast as what has lost consciousness.
    limp = simulation(motion, "limp", {"tone": until(motion, 1.0)}).run()
    low = [int(np.argmax(one.com[:, 2] < 0.5 * one.com[0, 2])) for one in (recording, limp)]
    assert low[0] == pytest.approx(low[1], abs=6)


@pytest.mark.slow(captured=False)
def test_until_it_faints_all_is_as_it_is_without(make_motion):
    motion = make_motion(2.0)
    one = simulation(motion).run()
    other = simulation(motion, strength={"tone": until(motion, 1.0)}).run()
    assert np.array_equal(one.body_positions[:60], other.body_positions[:60])
    assert not np.array_equal(one.body_positions[61], other.body_positions[61])


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize(("side", "sign"), [("l", 1.0), ("r", -1.0)])
def test_a_leg_that_gives_way_has_it_fall_to_that_side(make_motion, side, sign):
    motion = make_motion(4.0)
    recording = simulation(motion, "limp", {f"leg_{side}": until(motion, 1.0, after=0.0)}).run()
    assert 1.0 < recording.fell_at < 2.5
    fallen = round((recording.fell_at + 0.3) * motion.rate)
    way = recording.com[fallen] - recording.com[50]
    assert sign * way[1] > 0.02


@pytest.mark.slow
def test_a_knee_that_gives_way_bends_forward(walker):
    """Of a walk whose leg loses all strength in any phase of its step, also before it falls."""
    character, motion, _ = walker
    knee = list(character.dof_names).index("knee_l_pitch")
    reference = Simulation(character, motion).reference
    least = np.degrees(reference.angles[:, knee].min())
    for shot in range(40, 100, 12):
        weak = np.ones(len(motion))
        weak[shot:] = 0.0
        scenario = Scenario(strength={"leg_l": weak})
        settings = Settings(when_it_falls="brace")
        recording = Simulation(character, motion, settings=settings, scenario=scenario).run()
        root = recording.joints()[:, 0]
        frames = matrix_from_quaternion(recording.body_rotations)
        angles = recording.character.trajectory_of(motion.rate, root, frames).angles[:, knee]
        assert np.degrees(angles.min()) > min(least, 0.0) - 3


def test_a_little_weakness_is_stood_with(make_motion):
    motion = make_motion(3.0)
    recording = simulation(motion, strength={"tone": 0.7, "arm_l": 0.0}).run()
    assert recording.success


@pytest.mark.slow(captured=False)
def test_a_weak_arm_does_not_brace(make_motion):
    motion = make_motion(2.6)
    push = Push(0.5, 0.2, (600.0, 0.0, 0.0))
    arms = SEGMENT_INDEX["forearm_l"], SEGMENT_INDEX["forearm_r"]

    def ahead(strength):
        """How far both hands are ahead of the chest before that lands [m]."""
        recording = simulation(motion, "brace", strength, pushes=(push,)).run()
        chest = recording.joints()[:, HEAD]
        at = int(np.argmax(chest[:, 2] < 0.7))
        return recording.body_positions[at, list(arms), 0] - chest[at, 0]

    strong, weak = ahead({}), ahead({"arm_l": 0.0})
    assert strong[0] - weak[0] > 0.1 and strong[1] - weak[1] < 0.1


@pytest.mark.slow
def test_who_comes_to_gets_up_then_and_not_before(make_motion):
    motion = make_motion(14.0)
    time = np.arange(len(motion)) / motion.rate
    tone = np.where((time >= 1.0) & (time < 7.0), 0.0, 1.0)
    recording = simulation(motion, strength={"tone": tone}, get_up=True).run()
    assert 6.9 < recording.rest_at < 7.2 and recording.up_at is not None
    faint = simulation(motion, strength={"tone": np.where(time < 1, 1.0, 0.0)}, get_up=True).run()
    assert faint.up_at is None and faint.summary()["help"] is None


# --- What is told of it ---------------------------------------------------------------------------


@pytest.mark.slow(captured=False)
def test_the_reason_is_told(make_motion):
    motion = make_motion(3.0)
    frame = round(motion.frame(round(0.5 * motion.rate)))
    out = f"It is unconscious from frame {frame} on"
    faint = {"tone": until(motion, 0.5)}
    stopped = simulation(motion, "stop", faint).run()
    assert stopped.why().endswith(f"). {out}.") and "pose" not in stopped.why()
    assert simulation(motion, "limp", faint).run().why().endswith(f" {out}.")
    lies = simulation(motion, "limp", faint, get_up=True).run()
    assert lies.why().endswith(f" {out}, and does not get up.")
    tone = until(motion, 0.5) + until(motion, 2.0, before=0.0, after=1.0)
    wakes = simulation(motion, "limp", {"tone": tone}).run()
    last = round(motion.frame(round(2.0 * motion.rate) - 1))
    assert wakes.why().endswith(f" {out.removesuffix('on')}to {last}.")
    weak = {"leg_l": 0.0}
    stopped = simulation(motion, "stop", weak).run()
    assert stopped.why().endswith(": left leg at 0% of its strength.")
    lies = simulation(motion, "limp", weak, get_up=True).run()
    assert "It is too weak to get up at frame" in lies.why()
    push = Push(0.5, 0.2, (600.0, 0.0, 0.0))
    pushed = simulation(motion, "stop", {"neck": 0.8}, pushes=(push,)).run()
    assert pushed.fell_at is not None and not pushed.weakness


# --- What cannot be ------------------------------------------------------------------------------


def test_what_cannot_be_is_said(standing, adult):
    with pytest.raises(
        SettingsError, match=r"no limb 'tail' to be weak: choose one of tone, trunk"
    ):
        Strength.build(adult, {"tail": 0.5}, 3)
    with pytest.raises(SettingsError, match="strength of 'tone' is not always from 0 to 1"):
        Strength.build(adult, {"tone": [0.5, 1.5]}, 3)
    weights = {"arms": np.zeros(len(standing))}
    with pytest.raises(SettingsError, match="has all of its strength: set all physics weights"):
        simulation(standing, "stop", {"tone": 0.5}, weights=weights)


def test_scenarios_of_full_strength_are_written_as_before():
    assert "strength" not in Scenario().as_dict()
    weak = Scenario(strength={"tone": [1.0, 0.0]})
    assert Scenario.from_dict(weak.as_dict()) == weak
