# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the command line: opened safely, and written whole or not at all."""

import json
import os
from contextlib import contextmanager
from pathlib import Path

import bpy

from ..controller.exceptions import PoiseError

#: First bytes of a .blend file: plain, or compressed with gzip or Zstandard.
SIGNATURES = (b"BLENDER", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


class FileError(PoiseError):
    """A file cannot be read, or may not be written."""


def open_shot(name):
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


def is_compressed(path):
    """Whether a .blend file is."""
    return not _starts_with(path, b"BLENDER")


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


def report_target(options, *others):
    """Path of the report, None without; checked to be writable, and to be none of the others."""
    if options.report is None:
        return None
    path = options.report.absolute()
    if path in others:
        options.usage_error(f"--report names '{path.name}' itself: name another file")
    check_target(path, options.overwrite)
    return path


def check_target(path, overwrite):
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
def written(path):
    """Give a temporary name to write to; it becomes the file only if all goes well."""
    temporary = _temporary(path)
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise FileError(f"'{path}' cannot be written ({error.strerror}).") from None
    finally:
        temporary.unlink(missing_ok=True)


def save(path, compressed):
    """Save a copy of what is open."""
    try:
        bpy.ops.wm.save_as_mainfile(
            filepath=str(path), copy=True, compress=compressed, check_existing=False
        )
    except RuntimeError as error:
        raise FileError(f"'{path.parent}' cannot take the result ({str(error).strip()}).") from None


def write_json(path, content):
    """Write plain data, all numbers of which must be finite."""
    text = json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)
    with written(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
