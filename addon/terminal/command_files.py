# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that the command line opens and saves."""

import argparse
import contextlib
from pathlib import Path

import bpy

from ..baking import bake
from ..blender import compat
from ..blender.chosen import chosen_frames
from ..blender.files import FileError, check_target, same_file
from ..blender.locks import claimed
from ..blender.options import values_of
from ..rigs import bake_marks, strips
from .command_arguments import OF_SCENE, check_falls
from .command_import import FORMATS, import_shot
from .command_libraries import libraries_blamed, used_files
from .command_linked import demand_openable
from .command_progress import follow, say, tell_unit

#: What is taken for a shot, by its ending.
ENDINGS = (".blend", *FORMATS)

#: Options whose value may be a file that is read.
READ = (
    "contacts",
    "gains",
    "rig",
    "morphology",
    "warm_start",
    "checkpoint",
    "script",
    "skills",
)

#: First bytes of a .blend file: plain, or compressed with gzip or Zstandard.
SIGNATURES = (b"BLENDER", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


def demand_there(path: Path) -> None:
    """Raise FileError unless there is something of that name, where it leads if it is a link."""
    if path.exists():
        return
    if path.is_symlink():
        raise FileError(
            f"'{path}' is a link to '{path.readlink()}', which is not there: mend it, or remove it."
        )
    raise FileError(f"There is no file '{path}': check its name.")


def open_shot(name, up=None, unit=None):
    """Open a .blend file, import one of another format, or take what is open; its path, None if it
    was never saved.

    up, unit: of a .bvh file, as `command_import.import_shot` has them.
    """
    if up and (name is None or Path(name).suffix.lower() != ".bvh"):
        raise FileError("Only .bvh files do not say which way is up: leave out --up.")
    if name is None:
        return Path(bpy.data.filepath) if bpy.data.filepath else None
    path = Path(name).absolute()
    demand_there(path)
    if path.is_dir():
        raise FileError(f"'{path}' is a folder: name a .blend file in it.")
    if not path.is_file():  # reading from a pipe might never end
        raise FileError(f"'{path}' is a device or a pipe: name a file.")
    if path.suffix.lower() in FORMATS:
        import_shot(path, up, unit)
        return path
    if not any(_starts_with(path, signature) for signature in SIGNATURES):
        raise FileError(
            f"'{path}' is not a .blend file: name a file that Blender saved, or one with the "
            f"ending {', '.join(FORMATS)}."
        )
    demand_openable(path)
    try:
        bpy.ops.wm.open_mainfile(filepath=str(path), load_ui=False)
    except RuntimeError as error:
        reason = " ".join(str(error).removeprefix("Error: ").split()).rstrip(".")
        reason = reason.rpartition(f"{path}', ")[2]  # Blender names the file twice before it
        raise FileError(
            f"Blender {bpy.app.version_string} cannot open '{path}' ({reason}): "
            "take it from a backup, or save it again with a Blender that is not newer."
        ) from None
    return path


def chosen_scene(options):
    """The scene that `--scene` names, else the one that is open. Raises FileError."""
    if options.scene is None:
        return bpy.context.scene
    if options.scene not in bpy.data.scenes:
        known = ", ".join(f"'{scene.name}'" for scene in bpy.data.scenes)
        raise FileError(f"There is no scene '{options.scene}': choose one of {known}.")
    return bpy.data.scenes[options.scene]


def take_frames(options):
    """Have the frames that the scene's settings choose, unless `--frames` names some."""
    scene = chosen_scene(options)
    if options.frames is None and hasattr(scene, "poise"):
        options.frames = chosen_frames(scene)


def take_falls(options):
    """Have what the scene's settings say of falls, or else the defaults, wherever no argument does;
    checked as `check_falls` does."""
    scene, given = chosen_scene(options), argparse.Namespace(**vars(options))
    said = {name: one.default for name, one in OF_SCENE.items()}
    if hasattr(scene, "poise"):
        said = values_of(OF_SCENE, scene.poise)
    for name, value in said.items():
        if getattr(given, name) is None:
            setattr(options, name, value)
    check_falls(options, given)


def read_shot(kind, options, chosen):
    """A Shot or CleanShot of the chosen scene, read with progress. chosen: what that kind has for
    options."""
    with libraries_blamed():
        shot = kind(chosen_scene(options), chosen)
        read_with(shot, shot.read())
    return shot


def read_with(shot, reading):
    """Read a shot by a generator, with progress."""
    with libraries_blamed():
        _show_source(shot)
        follow("reading", reading)
    tell_unit(shot.reading)


def _show_source(shot):
    """Let an armature that shows a result of Poise's show its source, unless `--action` names what
    is to be read: what is read in the window, too."""
    named = shot.options.action is not None
    while True:  # what was cleaned and then simulated is a result twice
        action, slot = strips.read_of(shot.armature)
        mark = bake_marks.mark_of(action, slot)
        if mark is None or bake_marks.source_of(mark)[0] is None:
            if (action, slot) != compat.assigned(shot.armature):
                strips.assign(shot.armature, action, slot)
            return
        if named and compat.assigned(shot.armature)[0] is not None:  # no strip below it is heard
            return
        bake.restore(shot.scene, shot.armature)
        if not named:
            say(
                f"'{action.name}' is a result of Poise: its source is read; --action names another "
                "one."
            )


def compresses(options, source):
    """Whether what is written is compressed, which makes keys a fifth as large or less: all but a
    shot that is written back and was not."""
    in_place = options.in_place and source is not None
    return not (in_place and _starts_with(source, b"BLENDER"))


def _starts_with(path, signature):
    try:
        with path.open("rb") as file:
            return file.read(len(signature)) == signature
    except OSError as error:
        raise FileError(f"'{path}' cannot be read ({error.strerror}): check its rights.") from None


def target(options, source, ending):
    """Path to write to: --output, or beside the shot, under its name with an ending."""
    if options.output is not None:
        return options.output.absolute()
    if source is None:
        options.usage_error("no file is open: name shot.blend, or an --output")
    return source.with_name(source.stem + ending)


def output_target(options, source, ending):
    """Path of the .blend to write: the shot itself with --in-place, else as `target` has it;
    checked to be writable."""
    if options.in_place and source and source.suffix.lower() in FORMATS:
        options.usage_error(f"--in-place is for .blend files, and '{source.name}' is none")
    output = source if options.in_place and source else target(options, source, ending)
    if not options.in_place:
        blend = source is None or source.suffix.lower() not in FORMATS
        advice = "say --in-place" if blend else "let its name end with .blend"
        demand_other_than_shot(options, output, source, advice)
        demand_other(options, "--output", output, result=True)
        if output.suffix.lower() != ".blend" and not output.is_dir():
            options.usage_error("--output is to be a .blend file: let its name end with .blend")
    check_target(output, options.overwrite or options.in_place)
    return output


@contextlib.contextmanager
def only_writer(output):
    """Be the only process that works towards a file. Raises TakenError if there is another one,
    FileError if none can be told off."""
    with contextlib.ExitStack() as stack:
        taken = f"Another process writes '{output}': wait for it, or name another --output."
        try:
            stack.enter_context(claimed(output, taken))
        except OSError as error:
            raise FileError(f"'{output}' cannot be written ({error.strerror}).") from None
        yield


def report_target(options, *others):
    """Path of the report, None without; checked to be writable, and to be none of the others."""
    if options.report is None:
        return None
    path = options.report.absolute()
    demand_other(options, "--report", path, *others)
    check_target(path, options.overwrite)
    return path


def is_shot(path):
    """Whether a file is a shot by its ending, be it one that nobody named."""
    return path.suffix.lower() in ENDINGS


def demand_other(options, option, path, *others, result=False):
    """A usage error if what an option is to write is one of the others (None for none), or one of
    the files that are read: because options name them, or linked by what is open; or a shot, unless
    it is the result."""
    read = (getattr(options, name, None) for name in READ if option != f"--{name}")
    if any(other and same_file(path, other) for other in (*others, *read)):
        options.usage_error(f"{option} names '{path.name}' itself: name another file")
    if any(same_file(path, other) for other in used_files()):
        options.usage_error(f"{option} names '{path.name}', which the shot uses: name another file")
    if is_shot(path) and not result:
        options.usage_error(
            f"{option} names '{path.name}', which would be a shot: give it another ending"
        )


def demand_other_than_shot(options, output, source, advice):
    """A usage error if the output is the shot."""
    if source is not None and same_file(output, source):
        options.usage_error(f"--output is the shot itself: {advice}")


def save(path, compressed):
    """Save a copy of what is open."""
    try:
        bpy.ops.wm.save_as_mainfile(
            filepath=str(path), copy=True, compress=compressed, check_existing=False
        )
    except RuntimeError as error:
        reason = str(error).strip().removeprefix("Error: ").rstrip(".")
        raise FileError(
            f"'{path.parent}' cannot take the result ({reason}): see whether its disk is full."
        ) from None
