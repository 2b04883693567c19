# SPDX-License-Identifier: GPL-3.0-or-later
"""What a .blend file links, before Blender opens it: that waits for whoever writes to a pipe."""

import contextlib
import gzip
import struct
import zlib
from collections.abc import Collection, Iterator
from io import SEEK_CUR
from pathlib import Path
from typing import BinaryIO, cast

from ..blender.files import FileError

try:
    import zstandard
except ImportError:  # that of a Linux distribution may come without: its files are not looked into
    zstandard = None  # type: ignore[assignment]

#: What reading a broken file ends with.
_BROKEN = (OSError, EOFError, ValueError, struct.error, zlib.error) + (
    (zstandard.ZstdError,) if zstandard else ()
)
_GZIP, _ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
#: Length of a file's header and what heads its blocks, by the header's eighth byte: those of
#: Blender 5 and later, whose code and length are first and fourth, and those before, of 32 and 64
#: bits, first and second.
_HEADS = {b"_": (12, "4siIii", 1), b"-": (12, "4siQii", 1), b"1": (17, "4siQqq", 3)}


def demand_openable(path: Path, seen: Collection[Path] = ()) -> set[Path]:
    """Raise FileError if a .blend file, or one that it links, links a pipe or a device. seen: paths
    that are known already."""
    seen = {*seen, path.resolve()}
    for library in _linked(path):
        there = library.resolve()
        if there in seen or not there.exists() or there.is_dir():
            continue
        if not there.is_file():
            raise FileError(
                f"The linked library '{library}' of '{path}' is a device or a pipe: put the file "
                "there that it was linked from."
            )
        seen |= demand_openable(there, seen)
    return seen


def _linked(path: Path) -> list[Path]:
    """Paths of the libraries of a .blend file; Blender says what is wrong with one that is no such
    file, or broken."""
    found = []
    with contextlib.suppress(*_BROKEN), path.open("rb") as file:
        for content in _blocks(_plain(file), b"LI"):
            names = [name for name in content.split(b"\0") if name.startswith(b"/")]
            found += [_absolute(name.decode("utf-8", "surrogateescape"), path) for name in names]
    return found


def _absolute(name: str, path: Path) -> Path:
    """What Blender's // stands for is the folder of the file."""
    return path.parent / name[2:] if name.startswith("//") else Path(name)


def _plain(file: BinaryIO) -> BinaryIO:
    """The content of a file without its compression."""
    start = file.read(4)
    file.seek(0)
    if start.startswith(_GZIP):
        return cast(BinaryIO, gzip.open(file))
    if start != _ZSTANDARD or zstandard is None:
        return file
    return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)


def _blocks(file: BinaryIO, wanted: bytes) -> Iterator[bytes]:
    """The contents of all blocks of a kind."""
    magic = file.read(8)
    length, form, size = _HEADS.get(magic[7:], (0, "", 0))
    if magic[:7] != b"BLENDER" or not length:
        return
    order = file.read(length - 8)
    big = length == 12 and order[:1] == b"V"
    head = struct.Struct((">" if big else "<") + form)
    while True:
        fields = head.unpack(file.read(head.size))
        code, count = fields[0].rstrip(b"\0"), fields[size]
        if code == b"ENDB" or count < 0:
            return
        if code == wanted:
            yield file.read(count)
        else:
            file.seek(count, SEEK_CUR)
