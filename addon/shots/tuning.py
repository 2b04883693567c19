# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a search for gains, `scene.poise.tuning`, and its outcome in words."""

import bpy
from bpy.props import BoolProperty, IntProperty

from ...controller.options import options_of
from ...controller.processes.workers import processors
from ...controller.ranges import RANGES
from ...controller.search.optimization import SearchSettings
from ...controller.search.trial import DISTURBANCES
from ...controller.simulation.measures import LIMITS, MEASURES
from ..blender.options import offers, values_of

#: What is to be chosen of a search.
SEARCH = options_of(SearchSettings)


@offers(SEARCH | DISTURBANCES | LIMITS)
class POISE_PG_tuning(bpy.types.PropertyGroup):
    """How gains are searched in this scene."""

    workers: IntProperty(
        name="Workers",
        description="Trials at the same time, each in a process of its own. They change how long "
        "it takes, not what is found. 0: as the preferences of Poise say",
        **RANGES["processes"].limits,
        soft_max=processors(),
    )
    follow: BoolProperty(
        name="Follow Best",
        description="Simulate every new best candidate and show it as the ghost",
    )


def search_settings(tuning):
    """The settings of a scene as SearchSettings."""
    return SearchSettings(**values_of(SEARCH, tuning))


def disturbance(tuning):
    """What is drawn anew in every trial, as controller.Problem has it."""
    return values_of(DISTURBANCES, tuning)


def maxima(tuning):
    """The largest allowed errors by name."""
    return values_of(LIMITS, tuning)


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
