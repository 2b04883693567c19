# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the records of a binary FBX file fit into each other: Blender's importer believes their
lengths, and asks for gigabytes where one is wrong."""

import mmap
import struct
from pathlib import Path

from ..blender.files import FileError

_FIRST = 27  # [bytes] where the first record begins, after magic bytes and version
_LONG = 7500  # from this version on, lengths have 64 bits
#: Bytes of a value, and of each value of an array, by the letter of its type.
_VALUES = {"Z": 1, "B": 1, "C": 1, "Y": 2, "I": 4, "F": 4, "D": 8, "L": 8}
_ARRAYS = {"b": 1, "c": 1, "i": 4, "f": 4, "l": 8, "d": 8}
_PACKED = 1100  # times as long is what was compressed, at most


def check(path: Path) -> None:
    """Raise FileError for a file that was cut off, or whose records contradict each other.

    path: of a file that begins as binary FBX files do.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as all_:
            at = _fault(all_)
    except OSError as error:
        raise FileError(f"'{path}' cannot be read ({error.strerror}): check its rights.") from None
    if at is not None:
        raise FileError(
            f"'{path}' cannot be imported: what begins at its byte {at} was cut off or changed. "
            "Copy it again, or export it again."
        )


def _fault(content: mmap.mmap) -> int | None:
    """Where the first record begins that does not fit [bytes], None if all do."""
    at = _FIRST
    around: list[int] = []  # ends of the records that this one is in
    try:
        (version,) = struct.unpack_from("<I", content, _FIRST - 4)
        head = struct.Struct("<IIIB" if version < _LONG else "<QQQB")
        while True:
            end, count, _length, name = head.unpack_from(content, at)
            if end == 0:  # nothing follows in there
                if not around:
                    return None
                at += head.size
                if at != around.pop():
                    return at
            else:
                limit = around[-1] if around else len(content)
                after = _after_values(content, at + head.size + name, count, min(end, limit))
                if not after <= end <= limit:
                    return at
                at = after
                if after < end:
                    around.append(end)
            if around and at == around[-1]:
                return at  # without the mark of its end
    except struct.error:
        return at


def _after_values(content: mmap.mmap, at: int, count: int, end: int) -> int:
    """Where the values of a record end [bytes]; beyond `end` for those that cannot be."""
    for _ in range(count):
        if at >= end:
            return end + 1
        kind = chr(content[at])
        at += 1
        if kind in _VALUES:
            at += _VALUES[kind]
        elif kind in "RS":
            at += 4 + struct.unpack_from("<I", content, at)[0]
        elif kind in _ARRAYS:
            length, packed, size = struct.unpack_from("<III", content, at)
            at += 12 + size
            most = size * _PACKED if packed else size
            if length * _ARRAYS[kind] > most:
                return end + 1
        else:
            return end + 1
    return at
