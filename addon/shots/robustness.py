# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a measurement of robustness, `scene.poise.robustness`, and its outcome in
words."""

import bpy
from bpy.props import FloatProperty

from ...controller.options import options_of
from ...controller.ranges import RANGES
from ...controller.search.robustness import STEPS, LimitSettings
from ...controller.simulation.measures import MEASURES
from ..blender.options import offers, values_of

#: What is to be chosen of a measurement, beside the magnitudes.
LIMIT = options_of(LimitSettings)


@offers(LIMIT)
class POISE_PG_robustness(bpy.types.PropertyGroup):
    """How the robustness of a clip and its gains is measured in this scene."""

    push_start: FloatProperty(
        name="First Push (N)",
        description="Force of the first pushes [N]",
        default=STEPS["pushes"],
        **RANGES["force"].limits,
        soft_max=200.0,
        step=1000,
        precision=0,
    )
    push_step: FloatProperty(
        name="Raised by (N)",
        description="By how much pushes are raised each time [N]; single ones by half of it",
        default=STEPS["pushes"],
        **RANGES["force"].limits,
        soft_max=100.0,
        step=1000,
        precision=0,
    )
    sphere_start: FloatProperty(
        name="First Sphere (kg)",
        description="Mass of the first spheres [kg]",
        default=STEPS["spheres"],
        **RANGES["sphere"].limits,
        soft_max=5.0,
        step=25,
        precision=2,
    )
    sphere_step: FloatProperty(
        name="Raised by (kg)",
        description="By how much spheres are raised each time [kg]; single ones by half of it",
        default=STEPS["spheres"],
        **RANGES["sphere"].limits,
        soft_max=2.0,
        step=25,
        precision=2,
    )


def limit_settings(settings):
    """The settings of a scene as LimitSettings."""
    word = "push" if settings.kind == "PUSHES" else "sphere"
    return LimitSettings(
        # What is shown as 0.8 is not quite that in single precision.
        start=round(getattr(settings, f"{word}_start"), 4),
        step=round(getattr(settings, f"{word}_step"), 4),
        **values_of(LIMIT, settings),
    )


_ENDED = {"budget": "the budget was over before", "stopped": "it was stopped before"}


def outcome_words(outcome):
    """What a measurement came to, in a sentence without an end."""
    if outcome.ended == "falls":
        return _words_of_fall(outcome)
    name = "Push" if outcome.settings.kind == "pushes" else "Object"
    figure = f"{outcome.limit:g} {outcome.unit} ({outcome.speed(outcome.limit):.2f} m/s)"
    if not outcome.found:
        hits = outcome.settings.kind
        return f"{name} limit at least {figure}: {_ENDED[outcome.ended]} larger {hits} were tried"
    last = [rate for rate in outcome.rates if rate.magnitude <= outcome.limit][-1]
    fails = next(rate for rate in outcome.rates if rate.magnitude > outcome.limit)
    words = (
        f"{name} limit {figure}: {last.passed} of {last.count} sequences stand, {fails.passed} of "
        f"{fails.count} at {fails.magnitude:g} {outcome.unit}"
    )
    if not outcome.limit:
        words += "; begin with less for a finer answer"
    missing = outcome.settings.phases - len(outcome.single)
    if missing:
        words += f"; {_ENDED[outcome.ended]} {missing} moments of single ones were measured"
    return words


def _words_of_fall(outcome):
    rate = outcome.rates[0]
    words = f"The limit is 0: undisturbed, {rate.passed} of {rate.count} sequences stand"
    if outcome.fell_at is None:
        return f"{words}; tune it first"
    why = MEASURES[outcome.fell_measure].ended
    return f"{words}, and it falls at {outcome.fell_at:.1f} s ({why}); tune it first"


CLASSES = (POISE_PG_robustness,)
