# SPDX-License-Identifier: GPL-3.0-or-later
"""`poise learn`: what clips a character walks by on command, and how fast; a file of skills.

What came of each speed goes to standard output, progress to standard error. No clip is ever saved.
"""

import argparse
import os
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import combinations
from math import pi, remainder
from pathlib import Path
from typing import Any

from ...controller import Character, documents
from ...controller.exceptions import MotionError, PoiseError, SettingsError
from ...controller.geometry.motion import Motion
from ...controller.reference.acts import Act
from ...controller.reference.commands import SKILLS
from ...controller.reference.gait import Gait, find_cycle
from ...controller.search.trial import NOISE
from ...controller.skills.learning import ALIKE, Learning
from ...controller.skills.skill_set import Performed, Skill, SkillSet
from ..blender.files import FileError, check_target, same_file, write_json, written
from ..scene.marked import ACTS, exhausted
from ..scene.walks import acts_of
from ..shots.shot import Shot, ShotOptions, versions
from ..terminal.command_arguments import (
    number,
    reading_options,
    seconds,
    whole,
)
from ..terminal.command_files import (
    chosen_scene,
    demand_other,
    is_shot,
    only_writer,
    open_shot,
    read_shot,
)
from ..terminal.command_libraries import warn
from ..terminal.command_progress import DONE, MISSED, LiveLine, say
from ..terminal.command_workers import executor_of, interrupts, worker_arguments

#: Look for finished tries this often [s].
_TURN = 0.01
#: A speed that is higher by less [m/s] is none to learn anything for.
_FASTER = 0.02
#: Arguments of reading that a file of skills keeps: who directs reads the clip with them again.
READING = ("scene", "armature", "action", "frames", "fps", "up", "unit", "rig", "mass")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `learn`, beside those of reading."""
    add = parser.add_argument
    add(
        "clips",
        nargs="+",
        type=Path,
        metavar="CLIP",
        help="walks and runs: .blend, .bvh, .fbx, .glb or .gltf files",
    )
    add(
        "--act",
        type=Path,
        action="append",
        default=[],
        metavar="CLIP",
        help="what it is to perform between two walks, under the name of the file: a clip that "
        "begins and ends on its feet, as a jump or a bow; again for each. Actions of the clips' "
        "files that are marked as acts are taken, too",
    )
    add("--output", type=Path, required=True, metavar="FILE", help="the skills to write")
    add("--mass", type=number("mass"), metavar="KG", help="of the body [kg] (from its height)")
    add("--seed", type=whole("seed"), default=0, metavar="N", help="of the motor noise (0)")
    add(
        "--budget",
        type=seconds,
        default=600.0,
        metavar="TIME",
        help="for all clips: 90, 120s, 10min; what is known by then is written (10min)",
    )
    worker_arguments(parser)


@dataclass(frozen=True)
class _Clip:
    """A clip as it was read. name: of its file, with the folder's where another one has it, too.
    skill: what was learned of it alone, None where it falls."""

    path: Path
    name: str
    reading: dict[str, Any]
    armature: str
    action: str | None
    motion: Motion
    body: Character
    acts: tuple[Act, ...] = ()
    skill: Skill | None = None


#: A clip, and its cycle as others go over to it.
_Walk = tuple[Gait, _Clip]


def run(options: argparse.Namespace) -> int:
    """`poise learn`: write the skills; the exit status."""
    output, report_path = _targets(options)
    end = time.monotonic() + options.budget
    with only_writer(output), executor_of(options) as executor:
        read = [_walk(options, path.absolute()) for path in options.clips]
        acts = _acts(options, read)
        learner = _Learner(options, output.parent, end, executor, acts)
        clips = [replace(clip, skill=learner.learned(clip)) for clip in read]
        found = [clip.skill for clip in clips if clip.skill is not None]
        if not found:
            raise PoiseError(next(iter(learner.failed.values())))
        found += learner.blends(clips)
        for sentence in learner.failed.values():
            say(sentence)
        kept = tuple(act for act in acts if any(act.name in skill.performs for skill in found))
        skills = SkillSet(tuple(found), versions(), NOISE, options.seed, kept)
        try:
            with written(output) as temporary:
                skills.save(temporary)
        except OSError as error:
            raise FileError(f"'{output}' cannot be written ({error.strerror}).") from None
    if report_path:
        write_json(report_path, {"file": str(output), **_report(skills)})
    if learner.cut:
        say("The budget was over before all speeds were tried: give it more time to learn more.")
    for skill in skills.skills:
        speeds = f"{skill.slowest:.2f} to {skill.fastest:.2f} m/s"
        if len(skill.paces) == 1:
            speeds = f"{skill.fastest:.2f} m/s alone"
        performs = f", and performs {', '.join(map(_told, skill.acts))}" if skill.acts else ""
        helped = f", {_helped(skill.outside_help)}" if skill.outside_help else ""
        say(f"'{skill.name}' walks at {speeds} on command, stops and turns{helped}{performs}.")
    for act in acts:
        if act not in kept:
            say(
                f"'{act.name}' cannot be performed: a body falls by it between two walks, even if "
                "it is helped from outside."
            )
    say(f"'{output}' is written: direct it with poise direct {output.name} --script take.json.")
    return MISSED if learner.failed or len(kept) < len(acts) else DONE


def _targets(options: argparse.Namespace) -> tuple[Path, Path | None]:
    """Paths of the skills and the report, which may be None; checked to be writable, and to be
    none of the clips."""
    for one, other in combinations((*options.clips, *options.act), 2):
        if same_file(one, other):
            options.usage_error(f"'{other}' is named twice: name each clip once")
    paths = [options.output.absolute()]
    if options.report is not None:
        paths.append(options.report.absolute())
    for option, path in zip(("--output", "--report"), paths, strict=False):
        for clip in (*options.clips, *options.act):
            if same_file(path, clip):
                options.usage_error(f"{option} names the clip '{clip.name}': name another file")
        if is_shot(path):
            options.usage_error(f"{option} is no clip: let its name end with .skills, or .json")
        demand_other(options, option, path)
        check_target(path, options.overwrite)
    if len(paths) == 2 and same_file(*paths):
        options.usage_error("--report names the skills themselves: name another file")
    return paths[0], paths[1] if len(paths) == 2 else None


def _walk(options: argparse.Namespace, path: Path) -> _Clip:
    """A clip, with what the actions of its file do that are marked as acts. Raises PoiseError."""
    clip, shot = _read(options, path)
    actions = ACTS.of(shot.armature)
    acts = acts_of(shot.scene, shot.reading, actions, options.mass, options.fps)
    return replace(clip, acts=exhausted(acts))


def _read(options: argparse.Namespace, path: Path) -> tuple[_Clip, Shot]:
    """What there is to learn from a file, and as what it was read. Raises PoiseError."""
    twins = sum(one.stem == path.stem for one in options.clips)
    options.file, up = str(path), options.up
    if path.suffix.lower() != ".bvh" and any(one.suffix.lower() == ".bvh" for one in options.clips):
        up = None
    open_shot(path, up, options.unit)
    warn(chosen_scene(options))
    shot = read_shot(Shot, options, ShotOptions(**reading_options(options), mass=options.mass))
    shot.embody()
    body = shot.character
    motion = body.travelled(shot.reading.motion)
    rig = options.rig
    if rig is not None and Path(rig).is_file():  # else it is a name
        rig = os.path.abspath(rig)
    clip = _Clip(
        path=path,
        name=path.stem if twins == 1 else f"{path.parent.name}/{path.stem}",
        reading={name: getattr(options, name) for name in READING} | {"up": up, "rig": rig},
        armature=shot.reading.armature,
        action=shot.reading.action,
        motion=motion,
        body=body,
    )
    return clip, shot


def _acts(options: argparse.Namespace, clips: Sequence[_Clip]) -> tuple[Act, ...]:
    """All that is to be performed, each name once. Raises PoiseError."""
    found = [act for clip in clips for act in clip.acts]
    for path in options.act:
        clip, _ = _read(options, path.absolute())
        found.append(Act.of(path.stem, clip.body, clip.motion))
    names = [act.name for act in found]
    for name in names:
        if names.count(name) > 1 or name in SKILLS:
            raise SettingsError(
                f"'{name}' means two things: rename the file, or the action, for acts have names "
                f"of their own, and not {' or '.join(SKILLS)}."
            )
    return tuple(found)


class _Learner:
    """Learns clips, one after the other. failed: sentences on those of which nothing was learned,
    by their names. cut: whether the budget was over before all was tried."""

    def __init__(
        self,
        options: argparse.Namespace,
        folder: Path,
        end: float,
        executor: Executor,
        acts: Sequence[Act],
    ) -> None:
        """folder: of the skills. end: of the budget, a time [s] of the clock. acts: to try."""
        self._options, self._folder, self._end, self._executor = options, folder, end, executor
        self._acts = acts
        self.failed: dict[str, str] = {}
        self.cut = False

    def learned(self, clip: _Clip, name: str = "", other: Gait | None = None) -> Skill | None:
        """The Skill of a clip that may go over to another Gait, and has a name of its own then;
        None where a body falls by it, or the budget is over before anything is known."""
        name = name or clip.name
        learning = Learning(
            clip.body,
            clip.motion,
            self._options.mass,
            self._options.seed,
            self._executor,
            max(0.0, self._end - time.monotonic()),
            other,
            self._acts if other is None else (),
        )
        line = LiveLine()
        with interrupts() as caught:
            try:
                _follow(learning, name, line, caught)
            finally:
                learning.stop()
                line.clear()
        if caught:
            raise KeyboardInterrupt
        self.cut = self.cut or learning.ended == "budget"
        if not learning.paces:
            if other is None:
                self.failed[clip.name] = _why(clip, learning)
            return None
        for pace in learning.paces:
            print(f"{name}  {pace.told:5.2f} m/s commanded  {pace.reached:5.2f} m/s walked")
        motion, cycle = clip.motion, learning.cycle
        return Skill(
            name=name,
            file=_from(self._folder, clip.path),
            digest=documents.digest(clip.path),
            reading=clip.reading,
            armature=clip.armature,
            action=clip.action,
            cycle=(motion.frame(cycle.first), motion.frame(cycle.last)),
            speed=learning.speed,
            height=clip.body.height,
            mass=clip.body.mass,
            paces=learning.paces,
            other=other,
            # Who goes over to another clip stands as before.
            acts=_performed(learning.acts) if clip.skill is None else clip.skill.acts,
            outside_help=learning.outside_help,
        )

    def blends(self, clips: Sequence[_Clip]) -> list[Skill]:
        """Skills that go over from a clip to a faster one, and faster so than alone: from each to
        the next one, and from the slowest to the fastest, of those that walk the same way."""
        walks, found = [], []
        for clip in clips if len(clips) > 1 else ():
            try:
                gait = Gait.of(clip.body, clip.motion, find_cycle(clip.body, clip.motion))
            except MotionError as error:
                say(str(error))
                continue
            walks.append((gait, clip))
        for (_, slow), (gait, fast) in _pairs(sorted(walks, key=lambda walk: walk[0].speed)):
            if slow.skill is None:
                continue
            skill = self.learned(slow, f"{slow.name} to {fast.name}", gait)
            if skill is not None and skill.fastest > slow.skill.fastest + _FASTER:
                found.append(skill)
                self.failed.pop(fast.name, None)  # who walks becomes one who runs by it
        return found


def _pairs(walks: Sequence[_Walk]) -> list[tuple[_Walk, _Walk]]:
    """What can go over to what, of clips in the order of their speeds."""
    alike = [
        (slow, fast)
        for slow, fast in combinations(range(len(walks)), 2)
        if walks[fast][0].speed - walks[slow][0].speed > _FASTER
        and abs(remainder(walks[fast][0].facing - walks[slow][0].facing, 2 * pi)) < ALIKE
    ]
    kept = []
    for slow, fast in alike:
        between = any((slow, one) in alike and (one, fast) in alike for one in range(len(walks)))
        ends = not any((one, slow) in alike or (fast, one) in alike for one in range(len(walks)))
        if ends or not between:
            kept.append((walks[slow], walks[fast]))
    return kept


def _performed(acts: Sequence[Act]) -> tuple[Performed, ...]:
    return tuple(Performed(act.name, act.outside_help) for act in acts)


def _told(act: Performed) -> str:
    """An act, and the help that it needs."""
    return f"{act.name} ({_helped(act.outside_help)})" if act.outside_help else act.name


def _helped(share: float) -> str:
    """A share of the weight that help from outside may be, in words."""
    return f"helped by up to {share:.0%} of the weight"


def _why(clip: _Clip, learning: Learning) -> str:
    """Why nothing was learned of a clip."""
    if learning.ended == "budget":
        return f"The budget was over before '{clip.path}' had been walked: give it more time."
    return (
        f"'{clip.path}' cannot be learned by itself: a body that walks, turns and stops by it "
        f"falls at its own speed of {learning.speed:.2f} m/s, and at slower ones. Choose another "
        "clip, or clean it first."
    )


def _follow(learning: Learning, name: str, line: LiveLine, caught: list[bool]) -> None:
    """Go on to the end, or to the first of those interrupts that are caught."""
    over = False
    while not over and not caught:
        over = learning.poll()
        done, tries = learning.progress
        known = f", {len(learning.paces)} speeds known" if learning.paces else ""
        line.show(f"learning '{name}': {done} of {tries} tries{known} ")
        time.sleep(0 if over else _TURN)


def _from(folder: Path, path: Path) -> str:
    """A path as seen from a folder if it is below that, so that both can be moved; else whole."""
    try:
        return path.relative_to(folder).as_posix()
    except ValueError:
        return os.fspath(path)


def _report(skills: SkillSet) -> dict[str, Any]:
    """What was learned, as a dict for JSON."""
    return {
        "skills": [
            {
                "name": skill.name,
                "file": skill.file,
                "armature": skill.armature,
                "action": skill.action,
                "cycle": list(skill.cycle),
                "speed": skill.speed,
                "slowest": skill.slowest,
                "fastest": skill.fastest,
                "paces": [{"told": one.told, "reached": one.reached} for one in skill.paces],
                "outside_help": skill.outside_help,
                "acts": [one._asdict() for one in skill.acts],
                "machine": skill.machine.as_dict(),
            }
            for skill in skills.skills
        ],
        "acts": [{"name": act.name, "lasts": act.seconds} for act in skills.acts],
        "seed": skills.seed,
        "noise": skills.noise,
        "versions": skills.versions,
        "units": {
            "cycle": "frame",
            "noise": "N m",
            "lasts": "s",
            "outside_help": "share of the weight",
            **dict.fromkeys(("speed", "slowest", "fastest", "told", "reached"), "m/s"),
        },
    }
