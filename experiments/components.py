# SPDX-License-Identifier: GPL-3.0-or-later
"""The components of the balance controller, each as what it takes to leave it out of a trial.

Some are gains, and set to zero. The others are never missing in the product: the trial is given a
balance that does without them, or a reference.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import numpy as np

from ..controller import Simulation, SimulationError
from ..controller.body.momentum import GRAVITY
from ..controller.body.sole import Region, carrying
from ..controller.control.foot_forces import FootForces
from ..controller.control.foot_hold import FootHold
from ..controller.control.legs import AXES
from ..controller.control.virtual_forces import VirtualForces
from ..controller.gains.gains import BALANCE_MODES, WEIGHTS, Gains
from ..controller.geometry.stance import LEFT, RIGHT
from ..controller.search.trial import Problem
from ..controller.support.planting import physical


@dataclass(frozen=True)
class Component:
    """How to leave something out.

    words: what is left out. modes: of balance that have it. weights: names of the gains to set to
    zero. reference: (character, Reference) to the Reference without it. plant: what plants the
    reference in place of planting.physical. balance: {mode: class} without it.
    """

    words: str
    modes: tuple = BALANCE_MODES
    weights: tuple = ()
    reference: Callable | None = None
    plant: Callable = physical
    balance: dict = field(default_factory=dict)

    def gains(self, gains):
        """Gains without the component."""
        kept = np.array([name not in self.weights for name in WEIGHTS], float)
        return replace(gains, single=gains.single * kept, dual=gains.dual * kept)


class _PressesNothing:
    """The legs track joint angles, and that is all."""

    def press(self, _step, _state, _standing):
        """No torques."""
        return np.zeros(2 * AXES)


class _ForcesPressNothing(_PressesNothing, FootForces):
    pass


class _VirtualPressNothing(_PressesNothing, VirtualForces):
    pass


class _KnowsNothing(FootForces):
    """No torque is known before there is an error: no inverse dynamics."""

    def feed_forward(self, _step, _state, _inertia, bias):
        """Nothing."""
        return -bias, 0.0


class Tracking(_PressesNothing, _KnowsNothing):
    """Joint tracking alone: it does not know where feet should land either."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.stepping = None


def _still(character, reference):
    """The reference, its own accelerations taken for zero."""
    weight = np.zeros_like(reference.wrench)
    weight[:, 2] = character.mass * GRAVITY
    return replace(reference, wrench=weight, accelerations=np.zeros_like(reference.accelerations))


def _abrupt(_character, reference):
    """The reference, its feet loaded all at once."""
    load = np.stack([(reference.support & bit) > 0 for bit in (LEFT, RIGHT)], 1)
    return replace(reference, load=load.astype(float))


class _Halfway(FootForces):
    """As much weight on one foot as on the other, if both may."""

    weigh = staticmethod(lambda _x, _y, _a, _b, least, most: (least + most) / 2)


class _Boundless(FootForces):
    """The centre of pressure may be anywhere."""

    carry = staticmethod(lambda sole, *_: Region(*sole[:4], -_FAR, _FAR, -_FAR, _FAR))


class _Whole(FootForces):
    """All of the sole counts as down."""

    carry = staticmethod(
        lambda sole, _heel, share: carrying(sole._replace(tip_down=1.0), 1.0, share)
    )


class _Loose(FootHold):
    """Feet may tip and twist."""

    def goal(self, *_):
        """None."""


class _NoSprings(FootForces):
    holder = _Loose


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
        balance={"foot_forces": _KnowsNothing},
    ),
    "distribution": Component(
        "weight shifted to where it is wanted: each foot that may takes half",
        _FORCES,
        balance={"foot_forces": _Halfway},
    ),
    "soles": Component(
        "the soles' edges as limits of the centre of pressure",
        _FORCES,
        balance={"foot_forces": _Boundless},
    ),
    "phases": Component(
        "support by phase: all of a sole counts as down",
        _FORCES,
        balance={"foot_forces": _Whole},
    ),
    "springs": Component(
        "the springs that keep a standing foot from tipping and twisting",
        _FORCES,
        balance={"foot_forces": _NoSprings},
    ),
    "ramps": Component("the ramps of a foot's load around each step", _FORCES, reference=_abrupt),
    "lean": Component(
        "the hips' shift that brings the reference's weight above its soles",
        plant=partial(physical, rounds=0),
    ),
    "planting": Component(
        "that, and the reference's planted feet",
        plant=lambda _body, captured, *_: captured,
    ),
    "balance": Component(
        "all of balance: joints track the reference, legs press nothing",
        balance={"foot_forces": _ForcesPressNothing, "virtual_forces": _VirtualPressNothing},
    ),
}


@lru_cache(maxsize=4)
def _prepared(payload, name):
    """The problem and the reference without a component."""
    problem, component = Problem.from_bytes(payload), COMPONENTS[name]
    reference = problem.build_reference(component.plant)
    if component.reference:
        reference = component.reference(problem.character, reference)
    return problem, reference


def trial(payload, name, gains, seed):
    """One trial without a component.

    payload: of Problem.to_bytes. name: of the component. gains: of Gains.as_dict. seed: of the
    noise. Returns {"reward", "fell_at" [s] or None, "fell_measure" or None}.
    """
    component = COMPONENTS[name]
    problem, reference = _prepared(payload, name)
    character, settings = problem.character, problem.settings
    simulation = Simulation(
        character,
        problem.motion,
        component.gains(Gains.from_dict(gains, character)),
        replace(settings, seed=seed, recovery_steps=False),
        reference,
        balance=component.balance.get(settings.balance),
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
