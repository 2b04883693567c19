# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments that several commands have, and what their values may look like."""

import argparse
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ...controller import BALANCE_MODES
from ...controller.falls.behaviours import STAND, STOP
from ...controller.options import Option, options_of
from ...controller.ranges import RANGES, Range
from ...controller.reference.cleaning import CLEANING
from ...controller.simulation.simulation_options import OF_TRIALS, SimulationOptions
from ..scene import morphology
from ..settings import presets
from ..shots.shot import ShotOptions

_CHOSEN = options_of(SimulationOptions)
Number = TypeVar("Number", int, float)

#: What is chosen of simulations and trials alike, and of simulations alone.
TRIED = {name: one for name, one in _CHOSEN.items() if name not in OF_TRIALS}
SIMULATED = {name: _CHOSEN[name] for name in OF_TRIALS}
#: What is chosen of takes of what was learned.
DIRECTED = {"outside_help": _CHOSEN["outside_help"]} | SIMULATED
#: What the scene says where no argument does, as in the window.
OF_SCENE = {name: _CHOSEN[name] for name in ("when_it_falls", "get_up", "once_up")}
_SECONDS = {"": 1, "s": 1, "min": 60, "h": 3600}
SHOWN = 40  # characters of what is refused


def file_argument() -> argparse.ArgumentParser:
    """A parser of the file that a command is about."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument(
        "file",
        nargs="?",
        metavar="shot.blend",
        help="the file, or a .bvh, .fbx, .glb or .gltf to import; without it, what is open",
    )
    return parser


def reading_arguments(default: str = "the scene's choice") -> argparse.ArgumentParser:
    """A parser of what every command has: which animation is read, and the report. default: in
    words, which frames are read if none are given."""
    parser = argparse.ArgumentParser(add_help=False)
    add = parser.add_argument
    add("--scene", metavar="NAME", help="the scene that it is in (the one that is open)")
    add("--armature", metavar="NAME", help="the armature object (the only, or only animated one)")
    add("--action", metavar="NAME", help="the action to read (what animates the armature now)")
    add(
        "--frames",
        type=frames,
        metavar="A:B[:STEP]|action",
        help=f"the frames to simulate; action: all that are animated ({default})",
    )
    add("--fps", type=number("fps"), help="frame rate of the animation [Hz] (the scene's)")
    add("--up", choices=("Y", "Z"), type=str.upper, help="axis that is up in a .bvh file (guessed)")
    add(
        "--unit",
        type=number("unit"),
        metavar="M",
        help="length of the unit of a .bvh file, else of the scene [m] (the scene's own if legs "
        "have a length of people's, else from the legs)",
    )
    add("--rig", metavar="NAME|FILE", help="a rig map (found by names, else by the skeleton)")
    add("--report", type=Path, metavar="FILE", help="write a report as JSON")
    add("--overwrite", action="store_true", help="replace files that exist")
    return parser


def shot_arguments() -> argparse.ArgumentParser:
    """A parser of what every command has that simulates: which animation, which body."""
    parser = argparse.ArgumentParser(add_help=False, parents=[reading_arguments()])
    add = parser.add_argument
    add(
        "--balance",
        choices=BALANCE_MODES,
        help="how balance is kept (that of the gains, else foot_forces)",
    )
    add_options(parser, TRIED)
    add("--mass", type=number("mass"), metavar="KG", help="of the body [kg] (from its height)")
    add(
        "--clean",
        type=cleaning,
        default=(),
        metavar="NAMES",
        help=f"mend the animation first: {', '.join(CLEANING)}, or some of them (nothing)",
    )
    morphology.add_arguments(parser)
    return parser


def add_root_motion(add: Callable[..., Any]) -> None:
    """Add what takes the displacement of a body, by a parser's or a group's `add_argument`."""
    add(
        "--root-motion",
        type=str.lower,
        choices=("bone", "object", "none"),
        default="bone",
        help="what takes the displacement of the root; none: the body stays in place, and its way "
        "is left out evenly (%(default)s)",
    )


def check_falls(options: argparse.Namespace, given: argparse.Namespace) -> None:
    """Call `usage_error` for whoever is to get up, or to fall in some way, but not to fall, or to
    go on, but not to get up. given: the options before the scene's were added, which may ask for
    what means nothing, as in the window; what is None is not known yet."""
    if given.get_up and options.when_it_falls == STOP:
        options.usage_error("--get-up needs --when-it-falls limp, brace, roll or stiff")
    falls = options.when_it_falls != STOP or getattr(options, "knock_out", None) is not None
    if getattr(options, "falls_like", None) and not (falls or getattr(options, "together", None)):
        options.usage_error("--falls-like needs --when-it-falls limp, brace, roll or stiff")
    if given.once_up not in (None, STAND) and options.get_up is False:
        options.usage_error("--once-up needs --get-up")
    if getattr(options, "get_up_by", None) and options.get_up is False:
        options.usage_error("--get-up-by needs --get-up")


def reading_options(options: argparse.Namespace) -> dict[str, Any]:
    """{name: value} of what `reading_arguments` gave, as ShotOptions has them."""
    names = ("armature", "action", "frames", "fps", "rig")
    chosen = {name: getattr(options, name) for name in names}
    imported = str(options.file or "").lower().endswith(".bvh")  # in metres
    return chosen | {"unit": 1.0 if imported and options.unit else options.unit}


def shot_options(
    options: argparse.Namespace, gains: str | dict[str, Any] | None, **more: Any
) -> ShotOptions:
    """ShotOptions of what `shot_arguments` gave. gains: as ShotOptions has them."""
    return ShotOptions(
        **reading_options(options),
        gains=gains,
        balance=options.balance,
        mass=options.mass,
        cleaning=options.clean,
        morphology=morphology.chosen(options),
        **{name: getattr(options, name) for name in TRIED},
        **more,
    )


def gains_named(text: str | None) -> str | dict[str, Any] | None:
    """What ShotOptions takes as gains, for a file or a preset; None for None. Raises GainsError."""
    if text is None or Path(text).is_file():
        return text
    known = presets.load_presets()
    names = {preset.path.stem.casefold(): preset.name for preset in reversed(known)}
    names |= {preset.name.casefold(): preset.name for preset in known}
    name = names.get(text.casefold(), text)
    if name not in names.values() and (Path(name).name != name or Path(name).suffix):
        return text  # whoever reads the file will say why it cannot be
    preset = presets.find(name)
    assert preset.gains is not None  # else it is broken, and was refused
    # What had to be completed is told of the file.
    return str(preset.path) if preset.gains.completed else preset.gains.as_dict()


def add_options(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup, options: Mapping[str, Option]
) -> None:
    """Add arguments for options, {name: controller.options.Option}, with such names; those of
    OF_SCENE are None if they are not given."""
    for name, one in options.items():
        argument, of_scene = one.argument or f"--{name.replace('_', '-')}", name in OF_SCENE
        default = None if of_scene else one.default
        parser.add_argument(argument, dest=name, default=default, **_how(one, of_scene))


def _how(option: Option, of_scene: bool) -> dict[str, Any]:
    """What an argument takes for an option, and its help. of_scene: whether the scene says what it
    is if it is not given."""
    words, default = option.told or option.words, option.default
    words = words[0].lower() + words[1:]
    if isinstance(default, bool) and of_scene:
        return {"action": argparse.BooleanOptionalAction, "help": f"{words} (the scene's)"}
    if isinstance(default, bool):
        return {"action": "store_false" if default else "store_true", "help": words}
    shown = default if isinstance(default, str) else f"{default:g}" if default else option.zero
    shown = "the scene's" if of_scene else shown
    told = {"help": f"{words} ({shown or 0})"}
    if option.choices is not None:
        return {"choices": tuple(option.choices), **told}
    assert option.range is not None  # a number has one
    unit, whole = option.range.unit, isinstance(default, int)
    if unit == "s":
        told["help"] = f"{words}: 90, 120s, 2min, 1h ({shown})"
        return {"type": partial(seconds, allowed=option.range), "metavar": "TIME", **told}
    kind = partial(_number, *((int, "a whole number") if whole else (float, "a number")))
    metavar = unit.replace(" ", "").upper() or ("N" if whole else "X")
    return {"type": partial(kind, option.range), "metavar": metavar, **told}


def number(name: str) -> Callable[[str], float]:
    """The type of an argument that takes a number of `ranges.RANGES`."""
    return partial(_number, float, "a number", RANGES[name])


def whole(name: str) -> Callable[[str], int]:
    """The same of a whole number."""
    return partial(_number, int, "a whole number", RANGES[name])


def share(what: str, names: Collection[str], example: str) -> Callable[[str], tuple[str, float]]:
    """The type of an argument 'NAME=VALUE': a share of one of these. what, example: of it, for
    whoever gives something else."""
    return partial(_share, what, names, example)


def _share(what: str, names: Collection[str], example: str, text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    if name not in names or not re.fullmatch(r"0|1|0?\.\d+|[01]\.0*", value):
        raise argparse.ArgumentTypeError(
            f"'{text[:SHOWN]}' is not a {what} such as {example}, from 0 to 1, of "
            f"{', '.join(names)}"
        )
    return name, float(value)


def _number(kind: Callable[[str], Number], what: str, allowed: Range, text: str) -> Number:
    value: Number | None
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or value not in allowed:
        raise argparse.ArgumentTypeError(f"'{text[:SHOWN]}' is not {what} from {allowed}")
    return value


def frame(text: str) -> float:
    """A number of a frame -> float."""
    allowed = RANGES["frame"]
    if not re.fullmatch(r"[-+]?\d+(\.\d+)?", text) or float(text) not in allowed:
        raise argparse.ArgumentTypeError(
            f"'{text[:SHOWN]}' is not a frame such as 40, from {allowed}"
        )
    return float(text)


def frames(text: str) -> tuple[float, ...]:
    """'A:B' or 'A:B:STEP' -> tuple of float, empty for 'action': all that are animated."""
    if text == "action":
        return ()
    number = r"([-+]?\d+(?:\.\d+)?)"
    match = re.fullmatch(rf"{number}:{number}(?::{number})?", text)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is not a range of frames such as 1:120")
    return tuple(frame(value) for value in match.groups() if value is not None)


def cleaning(text: str) -> tuple[str, ...]:
    """'despike,ground' -> tuple of names of CLEANING, each once, in their order."""
    names = {name.strip() for name in text.split(",")}
    for name in sorted(names - set(CLEANING)):
        raise argparse.ArgumentTypeError(
            f"'{name}' is no cleaning: name some of {', '.join(CLEANING)}"
        )
    return tuple(name for name in CLEANING if name in names)


def seconds(text: str, allowed: Range = RANGES["budget"]) -> float:
    """'90', '120s', '2min' or '1h' -> seconds in that range."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) ?(s|min|h|)", text)
    value = float(match[1]) * _SECONDS[match[2]] if match else -1.0
    if value not in allowed:
        raise argparse.ArgumentTypeError(
            f"'{text[:SHOWN]}' is not a time such as 90, 120s, 2min or 1h, from {allowed}"
        )
    return value
