# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line: `poise bake shot.blend …` and `poise inspect shot.blend …`.

`blender --background shot.blend --command poise …` and `python -m poise …` both end up in `main`.
Messages and progress go to standard error, because PyBullet writes to standard output.
"""

import argparse
import json
import os
import re
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import bpy

from ..controller import BALANCE_MODES
from ..controller.exceptions import PoiseError
from .bake import BakeOptions
from .shot import Shot, ShotOptions, versions

#: Exit status.
STOOD, FAILED, WRONG_USAGE, FELL = 0, 1, 2, 3

#: First bytes of a .blend file: plain, or compressed with gzip or Zstandard.
SIGNATURES = (b"BLENDER", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


class FileError(PoiseError):
    """A file cannot be read, or may not be written."""


def main(arguments, program="poise"):
    """Run the command with its arguments (a list of str); returns the exit status."""
    try:
        options = _parser(program).parse_args(arguments)
        return options.run(options)
    except SystemExit as end:  # argparse has said why, or given its help
        return end.code or 0
    except PoiseError as error:
        _say(f"poise: {error}")
    except KeyboardInterrupt:
        _say("poise: stopped; nothing was written.")
    return FAILED


def register():
    """Make `blender --command poise …` known to Blender."""
    global _handle
    _handle = bpy.utils.register_cli_command("poise", _run_in_blender)


def unregister():
    """Undo `register`."""
    bpy.utils.unregister_cli_command(_handle)


_handle = None


def _run_in_blender(arguments):
    return main(arguments, program="blender --background shot.blend --command poise")


def _bake(options):
    """`poise bake`: simulate, write the .blend and the report; the exit status."""
    source = _open(options.file)
    output = _output(options, source)
    compressed = source is not None and not _starts_with(source, b"BLENDER")
    report_path = _report_path(options, source, output)
    _check_target(output, options.overwrite or options.in_place)

    shot = Shot(bpy.context.scene, _shot_options(options))
    _follow("reading", shot.read())
    shot.prepare()
    _simulate(shot)
    shot.bake()
    _follow("measuring", shot.measure())

    report = {"file": str(output), **shot.report()}
    with _written(output) as temporary:
        _save(temporary, compressed)
        if report_path:
            _write_json(report_path, report)
    _tell_result(report)
    return STOOD if report["success"] else FELL


def _inspect(options):
    """`poise inspect`: tell what would be simulated; the exit status."""
    source = _open(options.file)
    report_path = _report_path(options, source)
    shot = Shot(bpy.context.scene, _shot_options(options))
    _follow("reading", shot.read())
    shot.prepare()
    inspection = {"file": str(source), **shot.inspection()}
    if report_path:
        _write_json(report_path, inspection)
    print("\n".join(_lines_of_inspection(inspection)), flush=True)
    return STOOD


# --- Arguments ----------------------------------------------------------------------------------


def _parser(program):
    parser = argparse.ArgumentParser(
        prog=program,
        description="Give an armature's action physics, and bake the result to a new action.",
        epilog="exit status: 0 baked and stood; 1 could not run, nothing written; 2 wrong usage; "
        "3 baked, but it fell, and the bake ends there",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"poise {versions()['poise']}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="bake | inspect")
    reading = _reading_arguments()
    bake = verbs.add_parser(
        "bake",
        parents=[reading],
        allow_abbrev=False,
        help="simulate, and write the .blend with the baked action",
    )
    _add_bake_arguments(bake)
    inspect = verbs.add_parser(
        "inspect",
        parents=[reading],
        allow_abbrev=False,
        help="tell what would be simulated: rig map, body, stance, ground",
    )
    for verb, run in ((bake, _bake), (inspect, _inspect)):
        verb.set_defaults(run=run, usage_error=verb.error)
    return parser


def _reading_arguments():
    """The arguments that both verbs have."""
    parser = argparse.ArgumentParser(add_help=False)
    add = parser.add_argument
    add("file", nargs="?", metavar="shot.blend", help="the file; without it, the one that is open")
    add("--armature", metavar="NAME", help="the armature object (the only, or only animated one)")
    add("--action", metavar="NAME", help="the action to read (what animates the armature now)")
    add(
        "--frames",
        type=_frames,
        metavar="A:B[:STEP]",
        help="the frames to simulate (all that are animated); --frames=-5:20 if A is negative",
    )
    add("--fps", type=_positive, help="frame rate of the animation [Hz] (the scene's)")
    add("--rig", metavar="NAME|FILE", help="a rig map (found by names, else by the skeleton)")
    add("--gains", metavar="FILE", help="gains of the controller (defaults)")
    add(
        "--balance",
        choices=BALANCE_MODES,
        help="how balance is kept (that of the gains file, else foot_forces)",
    )
    add("--rate", type=_positive, default=300.0, metavar="HZ", help="of the control [Hz] (300)")
    add("--mass", type=_positive, metavar="KG", help="of the body [kg] (from its height)")
    add("--noise", type=_not_negative, default=0.0, metavar="NM", help="of the motors [N m] (0)")
    add("--seed", type=int, default=0, help="of the motor noise (0)")
    add("--report", type=Path, metavar="FILE", help="write a report as JSON")
    add("--overwrite", action="store_true", help="replace files that exist")
    return parser


def _add_bake_arguments(parser):
    """The arguments of `bake` alone: which keys are written, and where."""
    default = BakeOptions()
    add = parser.add_argument_group("keys").add_argument
    thinning = parser.add_mutually_exclusive_group().add_argument
    thinning("--key-every", type=_count, metavar="N", help="key every n-th frame (1)")
    thinning("--tolerance", type=_positive, metavar="MM", help="as few keys as stay within it [mm]")
    thinning("--source-keys", action="store_true", help="key where the source has keys")
    add(
        "--interpolation",
        type=str.upper,
        choices=("LINEAR", "BEZIER", "CONSTANT"),
        default=default.interpolation,
        help=f"between keys ({default.interpolation})",
    )
    add(
        "--root-motion",
        type=str.upper,
        choices=("BONE", "OBJECT"),
        default=default.root_motion,
        help=f"what takes the displacement of the root ({default.root_motion})",
    )
    for name, end in (("--blend-in", "start"), ("--blend-out", "end")):
        add(
            name,
            type=_whole,
            default=0,
            metavar="N",
            help=f"frames over which the {end} blends with the source (0)",
        )
    add("--into", metavar="ACTION", help="add a slot to this action (Blender 4.4 and later)")
    target = parser.add_mutually_exclusive_group().add_argument
    target("--output", type=Path, metavar="FILE", help="the .blend to write (shot_poise.blend)")
    target("--in-place", action="store_true", help="write back to the file itself")


def _number(kind, least, text, what):
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not least <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not {what}")
    return value


def _positive(text):
    return _number(float, 1e-9, text, "a number above 0")


def _not_negative(text):
    return _number(float, 0, text, "a number of at least 0")


def _count(text):
    return _number(int, 1, text, "a whole number above 0")


def _whole(text):
    return _number(int, 0, text, "a whole number of at least 0")


def _frames(text):
    """'A:B' or 'A:B:STEP' -> tuple of float."""
    number = r"([-+]?\d+(?:\.\d+)?)"
    match = re.fullmatch(rf"{number}:{number}(?::{number})?", text)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is not a range of frames such as 1:120")
    return tuple(float(value) for value in match.groups() if value is not None)


def _shot_options(options):
    keys = BakeOptions()
    if options.verb == "bake":
        keys = BakeOptions(
            key_every=options.key_every or 1,
            tolerance=options.tolerance or 0.0,
            source_keys=options.source_keys,
            interpolation=options.interpolation,
            root_motion=options.root_motion,
            blend_in=options.blend_in,
            blend_out=options.blend_out,
            action=options.into,
        )
    return ShotOptions(
        armature=options.armature,
        action=options.action,
        frames=options.frames,
        fps=options.fps,
        rig=options.rig,
        gains=options.gains,
        balance=options.balance,
        rate=options.rate,
        mass=options.mass,
        noise=options.noise,
        seed=options.seed,
        keys=keys,
    )


# --- Files --------------------------------------------------------------------------------------


def _open(name):
    """Open a .blend file, or take the one that is open; its path, None if it was never saved."""
    if name is None:
        return Path(bpy.data.filepath) if bpy.data.filepath else None
    path = Path(name).absolute()
    if not path.exists():
        raise FileError(f"There is no file '{path}': check its name.")
    if path.is_dir():
        raise FileError(f"'{path}' is a folder: name a .blend file in it.")
    if not any(_starts_with(path, signature) for signature in SIGNATURES):
        raise FileError(f"'{path}' is not a .blend file: name a file that Blender saved.")
    try:
        bpy.ops.wm.open_mainfile(filepath=str(path), load_ui=False)
    except RuntimeError as error:
        reason = " ".join(str(error).removeprefix("Error: ").split()).rstrip(".")
        raise FileError(
            f"Blender {bpy.app.version_string} cannot open '{path}' ({reason}): "
            "save it again with a Blender that is not newer."
        ) from None
    return path


def _starts_with(path, signature):
    try:
        with path.open("rb") as file:
            return file.read(len(signature)) == signature
    except OSError as error:
        raise FileError(f"'{path}' cannot be read ({error.strerror}): check its rights.") from None


def _output(options, source):
    """Path of the .blend to write."""
    if options.output is not None:
        if source is not None and options.output.absolute() == source:
            options.usage_error("--output is the shot itself: say --in-place")
        return options.output.absolute()
    if source is None:
        options.usage_error("no file is open: name shot.blend, or an --output")
    return source if options.in_place else source.with_name(f"{source.stem}_poise.blend")


def _report_path(options, source, output=None):
    """Path of the report, None without; checked to be writable."""
    if options.report is None:
        return None
    path = options.report.absolute()
    if path in (source, output):
        options.usage_error("--report names the .blend file itself: name another file")
    _check_target(path, options.overwrite)
    return path


def _check_target(path, overwrite):
    """Raise FileError unless a file can be written there; called before any work is done."""
    if path.is_dir():
        raise FileError(f"'{path}' is a folder: name a file in it.")
    if path.exists() and not overwrite:
        raise FileError(f"'{path}' exists: name another file, or say --overwrite.")
    if not path.parent.is_dir():
        raise FileError(f"There is no folder '{path.parent}': make it, or name another one.")
    probe = _temporary(path)
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise FileError(
            f"Nothing can be written in '{path.parent}' ({error.strerror}): name another folder."
        ) from None


def _temporary(path):
    """A name beside a file, under which it is written before it takes the file's place."""
    return path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")


@contextmanager
def _written(path):
    """Give a temporary name to write to; it becomes the file only if all goes well."""
    temporary = _temporary(path)
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise FileError(f"'{path}' cannot be written ({error.strerror}).") from None
    finally:
        temporary.unlink(missing_ok=True)


def _save(path, compressed):
    try:
        bpy.ops.wm.save_as_mainfile(
            filepath=str(path), copy=True, compress=compressed, check_existing=False
        )
    except RuntimeError as error:
        raise FileError(f"'{path.parent}' cannot take the result ({str(error).strip()}).") from None


def _write_json(path, content):
    text = json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)
    with _written(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


# --- What is told -------------------------------------------------------------------------------


def _say(text, end="\n"):
    print(text, end=end, file=sys.stderr, flush=True)


def _follow(what, progress, tell=lambda share: ""):
    """Run a generator of progress (0 to 1), on one line that is rewritten on a terminal."""
    terminal = sys.stderr.isatty()
    shown = time.monotonic()
    share = 0.0
    for share in progress:
        if terminal and time.monotonic() - shown > 0.1:
            shown = time.monotonic()
            _say(f"\r{what} {share:4.0%}{tell(share)} ", end="")
    _say(f"{chr(13) if terminal else ''}{what} {share:4.0%}{tell(share)} ")


def _simulate(shot):
    """Simulate with progress and real-time factor."""
    motion = shot.reading.motion
    last = len(motion) - 1
    started = time.perf_counter()

    def factor(share):
        seconds = time.perf_counter() - started
        return f", {share * motion.duration / seconds:.1f} times real time" if seconds else ""

    _follow("simulating", (sample / last for sample in shot.simulate()), factor)


def _tell_result(report):
    first, last = report["frames"]
    _say(
        f"'{report['source_action'] or report['armature']}', frames {first:g} to {last:g}, "
        f"is baked to '{report['baked_action']}' in '{report['file']}'."
    )
    if report["success"]:
        _say("It stood to the end.")
    else:
        _say(f"{report['why']} The bake ends there.")
    for name, unit in report["units"].items():
        value, unit = report.get(name), "" if unit == "1" else unit
        if isinstance(value, dict) and "before" in value:
            _say(f"  {name:22} {_figure(value['before'])} before, {_figure(value['after'])} {unit}")
        elif name.endswith(("_error", "reward", "factor")) and value is not None:
            _say(f"  {name:22} {_figure(value)} {unit}")


def _figure(value):
    return "none" if value is None else f"{value:.3g}"


def _lines_of_inspection(inspection):
    """What `inspect` prints."""
    rig, body = inspection["rig"], inspection["body"]
    first, last = inspection["range"]
    yield f"armature  {inspection['armature']}, action {inspection['source_action']}"
    yield (
        f"frames    {first:g} to {last:g}, {inspection['samples']} samples at "
        f"{inspection['fps']:g} Hz"
    )
    yield f"body      {body['height']:.2f} m, {body['mass']:.1f} kg"
    yield f"ground    {body['ground']:.3f} m; 1 scene unit is {body['metres_per_unit']:g} m"
    yield "stance    " + ", ".join(f"{k} {v:.0%}" for k, v in inspection["stance"].items())
    how = "detected from the skeleton" if rig["detected"] else "known by its names"
    yield f"rig map   {rig['name']}, {how}"
    for slot, bones in rig["bones"].items():
        yield f"  {slot:12} {', '.join(bones)}"
    if rig["missing"]:
        yield f"  not found (optional): {', '.join(rig['missing'])}"
