# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that Poise raises on purpose.

A message is one sentence for an animator: what is wrong, where, and what to do. The operators
and the command line show it as it is; any other exception is a bug and keeps its traceback.
"""


class PoiseError(Exception):
    """Base of all errors that are the input's fault, not the program's."""


class RigError(PoiseError):
    """The armature or its map cannot be turned into a biped."""


class MotionError(PoiseError):
    """The animation cannot serve as a reference: empty, not finite, in the air, popping."""


class GainsError(PoiseError):
    """A gains file cannot be used: unreadable, for another character, out of range."""


class PlanError(PoiseError):
    """A contact plan cannot be used: unreadable, contradicting itself or the clip."""


class SettingsError(PoiseError):
    """An option has a value that it cannot have."""


class SimulationError(PoiseError):
    """The simulation could not go on: a state that is not finite, or that explodes."""


class BakeError(PoiseError):
    """The result cannot be written to keys."""


class CheckpointError(PoiseError):
    """A search cannot be resumed from a checkpoint."""


class ExecutorError(PoiseError):
    """The processes that should run trials cannot be started, reached or kept alive."""


def demand(condition: object, problem: str) -> None:
    """Raise SettingsError with this sentence unless the condition holds."""
    if not condition:
        raise SettingsError(problem)
