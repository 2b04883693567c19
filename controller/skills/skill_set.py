# SPDX-License-Identifier: GPL-3.0-or-later
"""Skill sets: which clips a character walks by, and how fast it really goes with each.

    skills = SkillSet.load("hero.skills")
    skill = skills.choose(Script.load("take.json"))
    walk = Walk(cycle, seconds, commands=script.commands, trim=skill.trim, other=skill.other)

A file of skills is data alone. It names the clips that it was learned from, and what they were
then: who directs reads them again. Of a clip that others go over to it has the cycle.
"""

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from .. import documents
from ..exceptions import SettingsError
from ..reference.acts import Act
from ..reference.commands import Script
from ..reference.gait import Gait
from ..reference.state_machine import StateMachine, runs_from

VERSION = 1
_MADE_BY = "Poise learn"
#: A body that differs by less from the one that learned [m], [kg] is the same.
_SAME = 1e-3
#: A speed that is off by this share of it is as good as reached: 8 % off still counts as followed.
_NEAR = 0.05


@dataclass(frozen=True)
class Pace:
    """What came of a speed: told to the carrier, and reached by the body, the mean of all tries
    that stood [m/s]; of so many tries so many fell."""

    told: float
    reached: float
    tries: int
    fell: int


class Performed(NamedTuple):
    """An act, by its name, and the share of the weight that help from outside may be in it."""

    name: str
    outside_help: float


@dataclass(frozen=True)
class Skill:
    """A walk or run that was learned, or one that goes over to another one at other speeds.

    name: of its clip, or of both. file: path to it, from the folder of the skills if it is below
    that, else whole. digest: SHA-256 of its content. reading: arguments with which it was read, by
    name. armature, action: what was read. cycle: first and last frame. speed: of the cycle [m/s].
    height [m], mass [kg]: of the body. paces: rising, of which each one stood in all tries. other:
    the Gait that it goes over to, None for a clip alone. acts: what it performed between two walks,
    and stood in all tries. outside_help: share of the weight that help from outside may be at all
    paces.
    """

    name: str
    file: str
    digest: str
    reading: dict[str, Any]
    armature: str
    action: str | None
    cycle: tuple[float, float]
    speed: float
    height: float
    mass: float
    paces: tuple[Pace, ...]
    other: Gait | None = None
    acts: tuple[Performed, ...] = ()
    outside_help: float = 0.0

    @property
    def trim(self) -> tuple[tuple[float, float], ...]:
        """Speeds that are reached, rising, and what is told for them [m/s], as
        controller.reference.gait.Walk has it."""
        return tuple((one.reached, one.told) for one in self.paces)

    @property
    def slowest(self) -> float:
        """The lowest speed that it goes at [m/s]."""
        return self.paces[0].reached

    @property
    def fastest(self) -> float:
        """The highest speed that it goes at [m/s]."""
        return self.paces[-1].reached

    @property
    def performs(self) -> tuple[str, ...]:
        """Names of its acts."""
        return tuple(act.name for act in self.acts)

    @property
    def machine(self) -> StateMachine:
        """What it can be in, and what follows what."""
        runs = runs_from(self.speed, self.other, self.trim)
        return StateMachine.of(self.slowest, self.fastest, runs, self.performs)

    def goes_at(self, speed: float) -> bool:
        """Whether it goes at a speed [m/s], or at one so near that it counts as followed."""
        return (1 - _NEAR) * self.slowest <= speed <= (1 + _NEAR) * self.fastest

    def check_body(self, height: float, mass: float) -> None:
        """Raise SettingsError if a body [m], [kg] is another one than that which learned it."""
        if max(abs(height - self.height), abs(mass - self.mass)) > _SAME:
            raise SettingsError(
                f"'{self.name}' was learned by a body of {self.height:.2f} m, {self.mass:.1f} kg, "
                f"and this one has {height:.2f} m, {mass:.1f} kg: learn again."
            )

    def path(self, skills: Path) -> Path:
        """Where its file is that a file of skills names. Raises SettingsError where it is gone, or
        no longer what it was."""
        path = skills.absolute().parent / self.file
        source = f"'{path}', from which '{skills.name}' was learned,"
        if not path.is_file():
            _fail(source, "is not there: put it back, or learn again from where it is now")
        if documents.digest(path) != self.digest:
            _fail(source, "was changed since: learn again")
        return path


@dataclass(frozen=True)
class SkillSet:
    """What a character has learned; versions: of what it was measured with; noise [N m], seed: of
    the tries; acts: Act each that skills name."""

    skills: tuple[Skill, ...]
    versions: dict[str, str]
    noise: float
    seed: int
    acts: tuple[Act, ...] = ()

    def of(self, armature: str, action: str | None) -> Skill:
        """The fastest one that an armature learned from an action, by their names: it goes over to
        others. Raises SettingsError if there is none."""
        own = [one for one in self.skills if (one.armature, one.action) == (armature, action)]
        if own:
            return max(own, key=lambda skill: skill.fastest)
        known = ", ".join(f"'{one.action}' of '{one.armature}'" for one in self.skills)
        raise SettingsError(
            f"Nothing was learned from '{action}' of '{armature}', but from {known}: choose that "
            "armature and action, or other skills."
        )

    def acts_of(self, skill: Skill) -> tuple[Act, ...]:
        """What a skill performs, with the help that it needs."""
        known = {act.name: act for act in self.acts}
        return tuple(replace(known[one.name], outside_help=one.outside_help) for one in skill.acts)

    def choose(self, script: Script) -> Skill:
        """The skill that a script can be walked by, that whose own speeds are nearest to what is
        commanded. Raises SettingsError if there is none."""
        doing = [skill for skill in self.skills if set(script.acts) <= set(skill.performs)]
        if not doing:
            names = ", ".join(f"'{name}'" for name in script.acts)
            performed = "; ".join(
                f"'{skill.name}' performs " + (", ".join(skill.performs) or "nothing")
                for skill in self.skills
            )
            raise SettingsError(
                f"Nothing was learned that performs all of {names}, as the script commands: "
                f"{performed}. Learn them with --act, or command what is known."
            )
        able = [skill for skill in doing if all(map(skill.goes_at, script.speeds))]
        if able:
            return min(able, key=lambda skill: _farthest(skill, script.speeds))
        known = ", ".join(
            f"'{skill.name}' walks at {skill.slowest:.2f} to {skill.fastest:.2f} m/s"
            for skill in doing
        )
        slowest, fastest = min(script.speeds), max(script.speeds)
        commanded = (
            f"{slowest:g} m/s" if slowest == fastest else f"{slowest:g} m/s and at {fastest:g} m/s"
        )
        raise SettingsError(
            f"Nothing was learned that goes at {commanded}, as the script commands: {known}. "
            "Command speeds that one of them has, or learn a slower or a faster clip with them."
        )

    def save(self, path: str | os.PathLike) -> None:
        """Write it to a file, without a word of acts or help without any, so that it is as those
        that were written before there were such. Raises OSError."""
        content = {"made_by": _MADE_BY, "version": VERSION, **asdict(self)}
        for one in (content, *content["skills"]):
            for later in ("acts", "outside_help"):
                if not one.get(later, True):
                    del one[later]
        documents.write(path, json.dumps(content | {"checksum": _checksum(content)}, indent=1))

    @classmethod
    def load(cls, path: str | os.PathLike) -> "SkillSet":
        """Read a file that `save` wrote. Raises SettingsError for any other."""
        source = f"The skills '{path}'"
        content = documents.read(path, source, _fail)
        if not isinstance(content, dict) or content.get("made_by") != _MADE_BY:
            _fail(source, "are none: name a file that `poise learn` wrote")
        if content.get("version") != VERSION:
            _fail(
                source,
                f"are of version {str(content.get('version'))[:40]!r}, and this Poise reads "
                f"{VERSION}: learn again",
            )
        if content.pop("checksum", None) != _checksum(content):
            _fail(source, "are not as `poise learn` wrote them: learn again, or take a copy")
        del content["made_by"], content["version"]
        skills = tuple(map(_skill, content.pop("skills")))
        acts = tuple(map(Act.from_dict, content.pop("acts", ())))
        return cls(skills, acts=acts, **content)


def _skill(content: dict[str, Any]) -> Skill:
    """The Skill that `dataclasses.asdict` gave."""
    made = {
        "cycle": tuple(content["cycle"]),
        "paces": tuple(Pace(**one) for one in content["paces"]),
        "other": content["other"] and Gait.from_dict(content["other"]),
        "acts": tuple(Performed(*one) for one in content.get("acts", ())),
    }
    return Skill(**content | made)


def _farthest(skill: Skill, speeds: Sequence[float]) -> float:
    """How far a skill is to go from its own speeds: a ratio's logarithm, 0 for nothing."""
    own = sorted({skill.speed, skill.other.speed if skill.other else skill.speed})
    return max((abs(math.log(v / min(max(v, own[0]), own[-1]))) for v in speeds), default=0.0)


def _checksum(content: dict[str, Any]) -> str:
    """What tells that a file of skills is as it was written."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _fail(source: object, problem: str) -> NoReturn:
    raise SettingsError(f"{source} {problem}.")
