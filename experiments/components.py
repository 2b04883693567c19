# SPDX-License-Identifier: GPL-3.0-or-later
"""The components of the balance controller, each as what it takes to leave it out of a trial.

Some are gains, and set to zero. The others are never missing in the product: for the length of one
trial a part of the controller is replaced by one that does without.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from unittest import mock

import numpy as np

from ..controller import Simulation, SimulationError
from ..controller.body.momentum import GRAVITY
from ..controller.body.sole import Region, carrying
from ..controller.control import controller, pressure
from ..controller.control.controller import Controller
from ..controller.control.foot_hold import FootHold
from ..controller.control.gains import BALANCE_MODES, WEIGHTS, Gains
from ..controller.control.legs import AXES
from ..controller.geometry.stance import LEFT, RIGHT
from ..controller.reference import planting
from ..controller.reference import reference as reference_module
from ..controller.search.trial import Problem
from ..controller.simulation import simulation


@dataclass(frozen=True)
class Component:
    """How to leave something out.

    words: what is left out. modes: of balance that have it. weights: names of the gains to set to
    zero. reference: (character, Reference) to the Reference without it. patches: of (module, name,
    replacement), in force while the reference is built and the trial runs.
    """

    words: str
    modes: tuple = BALANCE_MODES
    weights: tuple = ()
    reference: Callable | None = None
    patches: tuple = ()

    def gains(self, gains):
        """Gains without the component."""
        kept = np.array([name not in self.weights for name in WEIGHTS], float)
        return replace(gains, single=gains.single * kept, dual=gains.dual * kept)

    def left_out(self):
        """A context in which the parts of the controller are replaced."""
        stack = ExitStack()
        for module, name, value in self.patches:
            stack.enter_context(mock.patch.object(module, name, value))
        return stack


class _Unbalanced(Controller):
    """Tracks joint angles, and that is all."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.balance = lambda step, state: np.zeros(2 * AXES)


class _Reactive(Controller):
    """Foot forces without inverse dynamics: no torque is known before there is an error."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.feedforward = False


def _still(character, reference):
    """The reference, its own accelerations taken for zero."""
    weight = np.zeros_like(reference.wrench)
    weight[:, 2] = character.mass * GRAVITY
    return replace(reference, wrench=weight, accelerations=np.zeros_like(reference.accelerations))


def _abrupt(_character, reference):
    """The reference, its feet loaded all at once."""
    load = np.stack([(reference.support & bit) > 0 for bit in (LEFT, RIGHT)], 1)
    return replace(reference, load=load.astype(float))


def _halfway(_x, _y, _a, _b, least, most):
    """In place of pressure._share: as much weight on one foot as on the other, if both may."""
    return (least + most) / 2


def _boundless(sole, *_):
    """In place of sole.carrying: the centre of pressure may be anywhere."""
    return Region(*sole[:4], -_FAR, _FAR, -_FAR, _FAR)


def _whole(sole, _heel, share):
    """In place of sole.carrying: all of the sole counts as down."""
    return carrying(sole._replace(tip_down=1.0), 1.0, share)


_FAR = 100.0  # [m]
_FORCES = ("foot_forces",)

#: All components by name; the first leaves nothing out.
COMPONENTS = {
    "full": Component("nothing"),
    **{name: Component(f"the weight {name}", weights=(name,)) for name in WEIGHTS},
    "feedback": Component("all four weights", _FORCES, weights=WEIGHTS),
    "acceleration": Component(
        "the reference's own accelerations, fed forward", _FORCES, reference=_still
    ),
    "dynamics": Component(
        "inverse dynamics: torques for weight and acceleration, fed forward",
        _FORCES,
        patches=((simulation, "Controller", _Reactive),),
    ),
    "distribution": Component(
        "weight shifted to where it is wanted: each foot that may takes half",
        _FORCES,
        patches=((pressure, "_share", _halfway),),
    ),
    "soles": Component(
        "the soles' edges as limits of the centre of pressure",
        _FORCES,
        patches=((controller, "carrying", _boundless),),
    ),
    "phases": Component(
        "support by phase: all of a sole counts as down",
        _FORCES,
        patches=((controller, "carrying", _whole),),
    ),
    "springs": Component(
        "the springs that keep a standing foot from tipping and twisting",
        _FORCES,
        patches=((FootHold, "_goal", lambda *_: None),),
    ),
    "ramps": Component("the ramps of a foot's load around each step", _FORCES, reference=_abrupt),
    "lean": Component(
        "the hips' shift that brings the reference's weight above its soles",
        patches=((planting, "_ROUNDS", 0),),
    ),
    "planting": Component(
        "that, and the reference's planted feet",
        patches=((reference_module, "physical", lambda _body, captured, *_: captured),),
    ),
    "balance": Component(
        "all of balance: joints track the reference, legs press nothing",
        patches=((simulation, "Controller", _Unbalanced),),
    ),
}


@lru_cache(maxsize=4)
def _prepared(payload, name):
    """The problem and the reference without a component."""
    problem, component = Problem.from_bytes(payload), COMPONENTS[name]
    reference = problem.reference
    if component.reference:
        reference = component.reference(problem.character, reference)
    return problem, reference


def trial(payload, name, gains, seed):
    """One trial without a component.

    payload: of Problem.to_bytes. name: of the component. gains: of Gains.as_dict. seed: of the
    noise. Returns {"reward", "fell_at" [s] or None, "fell_measure" or None}.
    """
    component = COMPONENTS[name]
    with component.left_out():
        problem, reference = _prepared(payload, name)
        character = problem.character
        simulation = Simulation(
            character,
            problem.motion,
            component.gains(Gains.from_dict(gains, character)),
            replace(problem.settings, seed=seed, recovery_steps=False),
            reference,
        )
        recording = simulation.recording
        try:
            simulation.run()
        except SimulationError:
            return {"reward": 0.0, "fell_at": recording.measures.duration, "fell_measure": None}
    return {
        "reward": recording.reward,
        "fell_at": recording.fell_at,
        "fell_measure": recording.fell_measure,
    }
