# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a search for gains, `scene.poise.tuning`, and its outcome in words."""

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty

from ...controller.processes.workers import processors
from ...controller.ranges import RANGES
from ...controller.search.optimization import SearchSettings
from ...controller.simulation.measures import MAXIMA, MEASURES

_DEFAULTS = SearchSettings()


class POISE_PG_tuning(bpy.types.PropertyGroup):
    """How gains are searched in this scene."""

    target: FloatProperty(
        name="Target Score",
        description="The search is over when this score is reached in new tries, with other "
        "noise. 1 is to stay upright to the end of 20 s, 2 to follow without any error. Papers "
        "call it the reward",
        default=_DEFAULTS.target,
        **RANGES["target"].limits,
        step=5,
        precision=2,
    )
    pushes: FloatProperty(
        name="Pushes (N)",
        description="Push the trunk with this force in every trial, for 0.2 s once a second, in "
        "random directions that each generation draws anew [N]; 0 for no pushes",
        **RANGES["force"].limits_from_zero,
        soft_max=300.0,
        step=1000,
        precision=0,
    )
    spheres: FloatProperty(
        name="Spheres (kg)",
        description="Throw a sphere of this mass at the neck in every trial, once a second, from "
        "random directions that each generation draws anew [kg]; 0 for no spheres",
        **RANGES["sphere"].limits_from_zero,
        soft_max=10.0,
        step=25,
        precision=2,
    )
    generations: IntProperty(
        name="Generations",
        description="The search is over after so many rounds of candidates",
        default=_DEFAULTS.generations,
        **RANGES["generations"].limits,
        soft_max=500,
    )
    budget: FloatProperty(
        name="Budget (s)",
        description="The search is over after this time [s]; 0 for no limit",
        **RANGES["budget"].limits_from_zero,
        soft_max=3600.0,
        step=1000,
        precision=0,
    )
    workers: IntProperty(
        name="Workers",
        description="Trials at the same time, each in a process of its own. They change how long "
        "it takes, not what is found. 0: as the preferences of Poise say",
        **RANGES["processes"].limits,
        soft_max=processors(),
    )
    seed: IntProperty(
        name="Seed",
        description="Number that all that is random is drawn from: the same seed finds the same",
        **RANGES["seed"].limits,
    )
    population: IntProperty(
        name="Population",
        description="Candidates of each generation, that is round; more search wider, but take "
        "longer",
        default=_DEFAULTS.population,
        **RANGES["population"].limits,
        soft_max=64,
    )
    parametrisation: EnumProperty(
        name="Search Space",
        description="What is searched",
        items=(
            ("FACTORS", "Factors", "Factors on the gains in use: the quicker way"),
            ("RANGES", "Ranges", "The same range for all joints, as in the paper"),
        ),
    )
    spread: FloatProperty(
        name="Spread",
        description="How far from the gains in use the search begins; 0.4 changes a gain by about "
        "a half",
        default=_DEFAULTS.spread,
        **RANGES["spread"].limits,
        step=5,
        precision=2,
    )
    restarts: IntProperty(
        name="Side by Side",
        description="Searches with random numbers of their own; worth it with workers to spare",
        default=_DEFAULTS.restarts,
        **RANGES["restarts"].limits,
    )
    pose_error: FloatProperty(
        name="Pose (m)",
        description="A trial ends where the body is this far from its pose [m]",
        default=MAXIMA["pose_error"],
        **RANGES["pose_error"].limits,
        soft_max=0.5,
        step=1,
        precision=3,
    )
    stance_error: FloatProperty(
        name="Wrong Feet (share)",
        description="A trial ends where other feet stand than in the animation for this share of "
        "2 s [share]",
        default=MAXIMA["stance_error"],
        **RANGES["stance_error"].limits,
        step=5,
        precision=2,
    )
    slide_error: FloatProperty(
        name="Foot Slide (m/s)",
        description="A trial ends where the feet slide faster [m/s]",
        default=MAXIMA["slide_error"],
        **RANGES["slide_error"].limits,
        soft_max=2.0,
        step=5,
        precision=3,
    )
    torque_error: FloatProperty(
        name="Torque (N m)",
        description="A trial ends where all joints together need more torque [N m]",
        default=MAXIMA["torque_error"],
        **RANGES["torque_error"].limits,
        soft_max=10000.0,
        step=10000,
        precision=0,
    )
    follow: BoolProperty(
        name="Follow Best",
        description="Simulate every new best candidate and show it as the ghost",
    )


def search_settings(tuning):
    """The settings of a scene as SearchSettings."""
    return SearchSettings(
        generations=tuning.generations,
        budget=tuning.budget or None,
        population=tuning.population,
        seed=tuning.seed,
        # What is shown as 1.80 is not quite that in single precision.
        target=round(tuning.target, 4),
        parametrisation=tuning.parametrisation.lower(),
        spread=round(tuning.spread, 4),
        restarts=tuning.restarts,
    )


def disturbance(tuning):
    """What is drawn anew in every trial, as controller.Problem has it."""
    return {"pushes": tuning.pushes, "spheres": round(tuning.spheres, 4)}


def maxima(tuning):
    """The largest allowed errors by name."""
    return {name: round(getattr(tuning, name), 6) for name in MAXIMA}


def outcome_words(outcome):
    """What a search came to, in a sentence without an end."""
    unseen, target = outcome.unseen, outcome.settings.target
    reached = sum(reward >= target for reward in unseen)
    mean = sum(unseen) / max(1, len(unseen))
    figures = f"score {mean:.2f}, reached in {reached} of {len(unseen)} new tries"
    if outcome.confirmed_at is not None:
        return f"Confirmed: {figures}, generation {outcome.confirmed_at}"
    last = outcome.history[-1].index
    why = {
        "generations": f"after {last} generations",
        "budget": f"when the budget was over, after generation {last}",
        "converged": f"when it found nothing new, after generation {last}",
        "stopped": f"when stopped after generation {last}",
    }[outcome.ended]
    best = max(generation.best for generation in outcome.history)
    words = f"Not confirmed {why}: {figures if unseen else f'score {best:.2f} at best'}"
    if outcome.fell_at is not None:
        words += f"; it falls at {outcome.fell_at:.1f} s ({MEASURES[outcome.fell_measure].ended})"
    return words


#: What takes longer than this [s] is told beforehand.
LONG = 10.0


def clock(seconds):
    """Seconds as minutes, and hours if need be."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


CLASSES = (POISE_PG_tuning,)
