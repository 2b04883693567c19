# SPDX-License-Identifier: GPL-3.0-or-later
"""What users choose of a simulation."""

from dataclasses import dataclass

from ..falls.behaviours import ONCE_UP, STAND, STOP, WHEN_IT_FALLS
from ..gains.styles import STYLE_WORDS
from ..options import option
from ..ranges import RANGES, Range

#: Of these, what trials of a search choose themselves; they end where a body falls.
OF_TRIALS = ("noise", "seed", "when_it_falls", "get_up", "once_up")


@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """What users choose of a simulation; the settings of one and the options of a shot have it.

    rate: of control and physics [Hz], by trial of 100 to 3333 Hz on a prototype. noise: of the
    motors [N m] as SCA12 counts it (their value is 5). cleaning: names of `cleaning.CLEANING`, what
    to mend of the motion first.
    """

    rate: float = option(
        300.0,
        "Rate (Hz)",
        "Steps of control and physics per second [Hz]; more is steadier and slower",
        Range("control rate", 50, 10_000, "Hz"),
        most=3000,
    )
    noise: float = option(
        0.0,
        "Motor Noise (N m)",
        "Random torques on all joints, as muscles twitch [N m]",
        Range("motor noise", 0, 1000, "N m"),
        most=20,
        step=0.5,
        digits=1,
    )
    seed: int = option(
        0,
        "Seed",
        "Number that the random torques are drawn from: the same seed gives the same result",
        RANGES["seed"],
        needs="noise",
        told="number that all that is random is drawn from: the same seed gives the same result",
    )
    recovery_steps: bool = option(
        True,
        "Recovery Steps",
        "Set a foot elsewhere where a push is too hard for feet in place. Foot Forces only",
        argument="--no-steps",
        told="keep the feet in place, whatever happens",
    )
    outside_help: float = option(
        0.0,
        "Help from Outside (× weight)",
        "What the animation asks for beyond what feet can press pushes and turns the body from "
        "outside, with at most so much of its weight [× weight]; the result tells how much it was. "
        "For the balance mode Foot Forces",
        Range("help from outside", 0, 1),
        digits=2,
    )
    cleaning: tuple[str, ...] = ()
    style: str = option(
        "close",
        "Style",
        "How firmly the upper body holds on to the animation. For the balance mode Foot Forces",
        choices=STYLE_WORDS,
    )
    when_it_falls: str = option(
        STOP,
        "When It Falls",
        "What the body does once its balance is lost",
        choices=WHEN_IT_FALLS,
    )
    get_up: bool = option(
        False,
        "Get Up",
        "Whoever lies still gets up, on a level floor",
        needs="when_it_falls",
    )
    once_up: str = option(
        STAND,
        "Once Up",
        "What the body does once it has got up",
        choices=ONCE_UP,
        needs="get_up",
        told="what the body does once it has got up (--get-up): stand still, or go on with the "
        "animation from where it lost its balance",
    )
