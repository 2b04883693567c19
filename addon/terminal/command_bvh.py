# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a BVH file, and in which line: Blender's importer does not say."""

import contextlib
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..blender.files import FileError

#: Lines with words on them: (number, words).
Lines = list[tuple[int, list[str]]]

_MARK = b"\xef\xbb\xbf"  # of an encoding, which some programs write first
#: What follows a line that begins so, each in a line of its own.
_FOLLOW = {
    "root": ("{", "offset", "channels"),
    "joint": ("{", "offset", "channels"),
    "end": ("{", "offset", "}"),
}
_KINDS = {*_FOLLOW, "{", "offset", "channels", "}"}
_CHANNELS = {f"{axis}{kind}" for axis in "xyz" for kind in ("position", "rotation")}
#: Angles [°] and lengths are smaller.
_LARGEST = 1e9
#: Slowest and fastest rate of a capture [Hz].
_RATES = 0.5, 10_000.0


@contextlib.contextmanager
def checked(path: Path) -> Iterator[Path]:
    """Where Blender's importer reads what is in a BVH file: there, or from a copy of that name that
    lives as long as the block, without the mark that some programs write first. Raises FileError
    for what it cannot read, or would misread."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileError(f"'{path}' cannot be read ({error.strerror}): check its rights.") from None
    try:
        _check(content.removeprefix(_MARK).decode("utf-8").splitlines())
    except UnicodeDecodeError:
        raise FileError(f"'{path}' is not text in UTF-8: save it in this encoding.") from None
    except _FaultError as error:
        raise FileError(f"'{path}' cannot be imported: {error}.") from None
    if not content.startswith(_MARK):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(content.removeprefix(_MARK))
        yield copy


class _FaultError(Exception):
    """What is wrong, and in which line."""


def _check(text: list[str]) -> None:
    """Raise _FaultError for lines that are no BVH file."""
    lines = [(number, words) for number, line in enumerate(text, 1) if (words := line.split())]
    if not lines or lines[0][1][0].lower() != "hierarchy":
        raise _FaultError("it does not begin with HIERARCHY, as BVH files do")
    if len(lines[0][1]) > 1:
        raise _FaultError(f"line {lines[0][0]} has more than HIERARCHY: Blender needs lines")
    at = next((i for i, (_, words) in enumerate(lines) if words[0].lower() == "motion"), None)
    channels = _channels(lines[1:at])
    if at is None:
        raise _FaultError("it has no MOTION, so it was cut off, or holds a skeleton alone")
    if not channels:
        raise _FaultError("none of its joints has channels")
    _check_rows(lines[at + 3 :], channels, _frames(lines[at + 1 : at + 3]))


def _channels(lines: Lines) -> int:
    """How many channels the joints have together."""
    count, depth = 0, 0
    kinds = [words[0].lower() for _, words in lines]
    for i, (number, words) in enumerate(lines):
        kind = kinds[i]
        if any(not word.isprintable() for word in words):
            raise _FaultError(f"line {number} has characters that are no text")
        if len(words) > 1 and (kind in "{}" or words[-1] in ("{", "}")):
            raise _FaultError(f"line {number} has a brace beside something else: give it its own")
        if kind == "root" and "root" in kinds[:i]:
            raise _FaultError(f"line {number} begins a second skeleton: keep one")
        if kind not in _KINDS:
            raise _FaultError(
                f"line {number} begins with '{words[0][:40]}', which BVH does not know"
            )
        following = _FOLLOW.get(kind, ())
        if tuple(kinds[i + 1 : i + 1 + len(following)]) != following:
            wanted = ", ".join(following).upper()
            raise _FaultError(f"line {number} is not followed by lines of {wanted}")
        depth += (kind == "{") - (kind == "}")
        if depth < 0:
            raise _FaultError(f"line {number} closes a joint that was not opened")
        if kind in ("root", "joint") and len(words) < 2:
            raise _FaultError(f"line {number} gives a joint no name")
        if kind == "offset":
            _check_offset(number, words)
        elif kind == "channels":
            _check_channels(number, words)
            count += len(words) - 2
    if depth:
        raise _FaultError("not every joint of its HIERARCHY is closed")
    return count


def _check_offset(line: int, words: list[str]) -> None:
    if len(words) != 4:
        raise _FaultError(f"line {line} has {len(words) - 1} numbers for OFFSET, not 3")
    for word in words[1:]:
        _number(word, line)


def _check_channels(line: int, words: list[str]) -> None:
    told = _number(words[1] if len(words) > 1 else "", line)
    names = [word.lower() for word in words[2:]]
    if told != len(names):
        raise _FaultError(f"line {line} announces {told:g} channels and names {len(names)}")
    for name, word in zip(names, words[2:], strict=True):
        if name not in _CHANNELS:
            raise _FaultError(f"line {line} names a channel '{word[:40]}'")
    if len(set(names)) < len(names):
        raise _FaultError(f"line {line} names a channel twice")
    if sum(name.endswith("rotation") for name in names) not in (0, 3):
        raise _FaultError(
            f"line {line} gives a joint some rotations: Blender needs all three, or none"
        )


def _frames(lines: Lines) -> int:
    """How many frames are announced."""
    heads = [[word.lower() for word in words] for _, words in lines]
    if len(heads) < 2 or heads[0][:1] != ["frames:"] or heads[1][:2] != ["frame", "time:"]:
        raise _FaultError("MOTION is not followed by lines as 'Frames: 10' and 'Frame Time: 0.04'")
    (first, frames), (second, time) = lines
    seconds = _number(time[2] if len(time) == 3 else "", second)
    told = frames[1] if len(frames) == 2 else ""
    if not (told.isascii() and told.isdigit() and int(told) > 0):
        raise _FaultError(f"line {first} announces '{told[:40]}' frames")
    slow, fast = _RATES
    if not 1 / fast <= seconds <= 1 / slow:
        raise _FaultError(
            f"line {second} lets a frame last {time[2]} s: it must be from {1 / fast:g} to "
            f"{1 / slow:g} s"
        )
    return int(told)


def _check_rows(rows: Lines, channels: int, frames: int) -> None:
    for number, words in rows:
        if len(words) != channels:
            raise _FaultError(
                f"line {number} has {len(words)} of the {channels} numbers of a frame, which are "
                "to be in one line"
            )
        try:
            values = [*map(float, words)]
            sound = math.isfinite(sum(values)) and max(map(abs, values)) < _LARGEST
        except ValueError:
            sound = False
        if not sound:
            for word in words:
                _number(word, number)
    if len(rows) < frames:
        raise _FaultError(f"it announces {frames} frames and has {len(rows)}, so it was cut off")
    if len(rows) > frames:
        raise _FaultError(f"it announces {frames} frames and has {len(rows)}")


def _number(word: str, line: int) -> float:
    """A finite number of a line."""
    try:
        value = float(word)
    except ValueError:
        why = ""
        if "," in word:
            why = ": write decimal points, and spaces between numbers, not commas"
        raise _FaultError(f"line {line} has '{word[:40]}' for a number{why}") from None
    if not math.isfinite(value):
        raise _FaultError(f"line {line} has {word} for a number")
    if abs(value) >= _LARGEST:
        raise _FaultError(f"line {line} has {word[:40]}, which is no angle, no length and no time")
    return value
