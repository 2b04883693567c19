# SPDX-License-Identifier: GPL-3.0-or-later
"""References and simulations whose contacts a contact plan says."""

import numpy as np
import pytest

from poise.controller import Character, Problem, Reference, Settings, Simulation
from poise.controller.contacts.contact_plan import ContactPlan
from poise.controller.exceptions import PlanError
from poise.controller.geometry.stance import stance_of
from poise.controller.search.trial import problem_of

RATE = 60.0
_read = {}


def plan_of(contacts, rate=RATE):
    """The plan in which all of a sole stands where (F, 2) contacts say."""
    return ContactPlan.from_marks(np.repeat(contacts[:, :, None], 3, 2), rate)


def contacts_of(reference):
    """(F, 2) contacts of a reference."""
    return np.stack([reference.stance & 1, reference.stance >> 1], 1).astype(bool)


def same(one, other):
    """Whether two references are the same, bit for bit."""
    names = ("angles", "goals", "wrench", "load", "heels", "support", "base", "pelvis")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.fixture
def clip(request):
    """clip(name) -> (Character, Motion) of a clip."""

    def make(name):
        if name not in _read:
            bpy = request.getfixturevalue("blender")
            from poise.addon.rigs import reference

            armature = request.getfixturevalue("import_clip")(name)
            motion = reference.read(bpy.context.scene, armature).motion
            _read[name] = Character.from_motion(motion), motion
        return _read[name]

    return make


@pytest.fixture
def walk(clip):
    return clip("walk")


def test_found_contacts_as_a_plan_change_nothing(walk):
    character, motion = walk
    found = Reference.build(character, motion)
    planned = Reference.build(character, motion, plan=plan_of(contacts_of(found), motion.rate))
    assert same(found, planned) and found.travels == planned.travels


def test_contacts_are_the_plans(walk):
    """The left foot is let go six samples earlier than it was found to."""
    character, motion = walk
    contacts = contacts_of(Reference.build(character, motion))
    last = int(np.flatnonzero(contacts[:-1, 0] & ~contacts[1:, 0])[0])
    contacts[last - 5 : last + 1, 0] = False
    planned = Reference.build(character, motion, plan=plan_of(contacts, motion.rate))
    assert np.array_equal(planned.stance, stance_of(contacts))
    assert planned.support[planned.steps_per_sample * last] == stance_of(contacts[last])


def test_a_plan_at_another_rate_is_resampled(walk):
    character, motion = walk
    found = contacts_of(Reference.build(character, motion))
    plan = plan_of(np.repeat(found, 2, axis=0), 2 * motion.rate)
    assert np.array_equal(contacts_of(Reference.build(character, motion, plan=plan)), found)


def test_a_looped_clip_follows_the_plan_in_each_round(walk):
    character, motion = walk
    contacts = contacts_of(Reference.build(character, motion))
    contacts[30:36] = contacts[30]
    plan = plan_of(contacts, motion.rate)
    looped = Reference.build(character, motion, duration=3 * motion.duration, plan=plan)
    stance = looped.stance
    again = [
        i for i in range(1, len(stance) - 40) if np.array_equal(stance[i : i + 40], stance[:40])
    ]
    assert again, "a second round begins as the first"


def test_settings_and_problems_keep_their_plan(walk):
    _, motion = walk
    plan = ContactPlan.from_dict(
        {"version": 1, "fps": 60, "feet": {"left": {"heel": [[0, 0.5]]}, "right": {}}}
    )
    settings = Settings(contacts=plan)
    assert Settings.from_dict(settings.as_dict()) == settings
    assert "contacts" not in Settings().as_dict() and Settings.from_dict({}) == Settings()
    problem = Problem(motion, settings=settings)
    assert problem_of(problem.to_bytes()).settings == settings


def test_the_simulation_tracks_the_plan(walk):
    character, motion = walk
    contacts = contacts_of(Reference.build(character, motion))
    contacts[3:] |= contacts[:-3]  # each stance a little longer than found
    settings = Settings(contacts=plan_of(contacts, motion.rate))
    simulation = Simulation(character, motion, settings=settings)
    assert np.array_equal(contacts_of(simulation.reference), contacts)
    assert np.array_equal(Problem(motion, settings=settings).reference.stance, stance_of(contacts))


def test_refuses_a_plan_that_does_not_fit(walk):
    character, motion = walk
    plan = plan_of(contacts_of(Reference.build(character, motion)), motion.rate)
    longer = plan.grown("left", "tip", -1, end=len(motion) / motion.rate + 1)
    nothing = ContactPlan(plan.fps, {})
    for unfit, sentence in (
        (longer, r"tip of the left foot .* but the clip lasts from 0 to .* frames 1 to 194"),
        (nothing, "lets no foot stand from frame 1 to 194"),
    ):
        with pytest.raises(PlanError, match=sentence):
            Reference.build(character, motion, plan=unfit)


def test_refuses_a_stance_high_above_the_floor(clip):
    """A kick is no step, and the sentence names foot and frames."""
    character, motion = clip("kick")
    contacts = np.ones((len(motion), 2), bool)
    with pytest.raises(PlanError, match=r"lets the (left|right) foot stand from frame \d+ to \d+"):
        Reference.build(character, motion, plan=plan_of(contacts, motion.rate))


@pytest.mark.slow
def test_refuses_a_stance_in_free_flight(clip):
    character, motion = clip("run_leap")
    contacts = np.ones((len(motion), 2), bool)
    with pytest.raises(PlanError, match=r"while the body is in the air, from frame \d+ to \d+"):
        Reference.build(character, motion, plan=plan_of(contacts, motion.rate))


def test_a_part_of_a_plan():
    plan = ContactPlan(RATE, {"left": {"heel": [(0.1, 0.4), (0.6, 0.9)]}})
    part = plan.part(0.2, 0.5)
    assert part.feet["left"]["heel"] == ((0.0, pytest.approx(0.2)), (pytest.approx(0.4), 0.5))
    assert plan.part(1.0, 1.0).feet["left"]["heel"] == ()
