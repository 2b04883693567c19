# SPDX-License-Identifier: GPL-3.0-or-later
"""FBX and glTF files with faults that disks, copies and other programs make: each is imported, or
refused in one sentence that names it."""

import json
import re
import struct

import bpy
import numpy as np
import pytest

from poise.addon.blender.files import FileError
from poise.addon.command import command_line
from poise.addon.terminal import command_fbx

#: What becomes of a length or a count in a file, and of a value in JSON.
LENGTHS = (0, 1, 255, 65536, 2**31 - 1, 2**32 - 1)
ODD = (None, True, -1, 0, 2**31, 1e308, float("nan"), "", "x" * 999, [], {}, {"a": 1})
#: What Blender's FBX exporter shall not do, so that it writes the one action as it is.
PLAIN = ("add_leaf_bones", "bake_anim_use_all_actions", "bake_anim_use_nla_strips")


@pytest.fixture
def whole(biped, tmp_path):
    """whole(ending) -> path of a file with the walking biped."""

    def export(ending):
        bpy.context.scene.frame_end = 30
        path = tmp_path / f"whole{ending}"
        if ending == ".fbx":
            bpy.ops.export_scene.fbx(filepath=str(path), **dict.fromkeys(PLAIN, False))
        else:
            kind = "GLB" if ending == ".glb" else "GLTF_SEPARATE"
            bpy.ops.export_scene.gltf(filepath=str(path), export_format=kind)
        return path

    return export


def _mutated(content, random):
    """Bytes of a file with a fault. The length that a .glb begins with mostly fits."""
    text = content[:1] == b"{"
    made = _changed_json(content, random) if text or content[:4] == b"glTF" else None
    if made is None or random.random() < 0.5:
        made = _changed(content, random)
    if content[:4] == b"glTF" and random.random() < 0.8:
        made = made[:8] + struct.pack("<I", len(made)) + made[12:]
    return made


def _changed(content, random):
    """Cut, flipped, without a part, with one twice, with two swapped, or with a wrong length."""
    at, other = sorted(random.integers(len(content), size=2).tolist())
    size = int(random.integers(1, 2000))
    end = min(other, at + size)
    kind = random.integers(6)
    if kind == 0:
        return content[:at]
    if kind == 1:
        made = bytearray(content)
        for place in random.integers(len(content), size=random.integers(1, 9)):
            made[place] = random.integers(256)
        return bytes(made)
    if kind == 2:
        return content[:at] + content[end:]
    if kind == 3:
        return content[:end] + content[at:]
    if kind == 4:
        last = other + end - at
        return (
            content[:at] + content[other:last] + content[end:other] + content[at:end]
        ) + content[last:]
    length = LENGTHS[random.integers(len(LENGTHS))]
    return content[:at] + struct.pack("<I", length) + content[at + 4 :]


def _changed_json(content, random):
    """A glTF file with other values, names or items in what it says of itself."""
    text = content[:1] == b"{"
    end = len(content) if text else 20 + struct.unpack_from("<I", content, 12)[0]
    data = json.loads(content[0 if text else 20 : end])
    for _ in range(random.integers(1, 4)):
        _spoil(data, random)
    head = json.dumps(data).encode()
    if text:
        return head
    head += b" " * (-len(head) % 4)
    return content[:12] + struct.pack("<I", len(head)) + b"JSON" + head + content[end:]


def _spoil(place, random):
    while place:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = keys[random.integers(len(keys))]
        if not isinstance(place[key], dict | list) or random.random() < 0.15:
            kind = random.integers(3)
            if kind == 0:
                place[key] = ODD[random.integers(len(ODD))]
            elif kind == 1:
                del place[key]
            elif isinstance(place, dict):
                place["odd"] = place.pop(key)
            else:
                place.append(place[key])
            return
        place = place[key]


@pytest.mark.parametrize("count", [15, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("ending", [".fbx", ".glb", ".gltf"])
def test_what_is_spoilt_is_imported_or_refused_in_one_sentence(whole, capfd, ending, count):
    path, random = whole(ending), np.random.default_rng(7)
    content, refused = path.read_bytes(), 0
    spoilt = path.with_stem("spoilt")
    for _ in range(count):
        spoilt.write_bytes(_mutated(content, random))
        capfd.readouterr()
        status = command_line.main(["inspect", str(spoilt)])
        lines = capfd.readouterr().err.splitlines()
        assert not [line for line in lines if "Traceback" in line]
        told = [line for line in lines if line.startswith("poise: ")]
        assert (status, len(told)) in ((0, 0), (1, 1)), lines
        for sentence in told:
            refused += 1
            assert sentence.endswith(".") and len(sentence) < 2000
            if "cannot be imported" in sentence:
                assert sentence.count(str(spoilt)) == 1 and "()" not in sentence
    assert refused > count / 4


# --- FBX ----------------------------------------------------------------------------------------


def _record(name, values=b"", count=0, inside=b"", length=None):
    """A record of an FBX file of version 7400 as a function of where it begins."""

    def at(start):
        begun = start + 13 + len(name) + len(values)
        parts = inside(begun) if callable(inside) else inside
        end = begun + len(parts) if length is None else start + length
        head = struct.pack("<IIIB", end, count, len(values), len(name))
        return head + name + values + parts

    return at


@pytest.mark.parametrize(
    "record",
    [
        _record(b"Many", b"I\0\0\0\0", count=2**24),  # Blender takes memory for all of them
        _record(b"Long", b"i" + struct.pack("<III", 2**30, 1, 4) + b"\0\0\0\0", count=1),
        _record(b"Text", b"S" + struct.pack("<I", 2**31) + b"abc", count=1),
        _record(b"Beyond", length=2**31),
        _record(b"Before", length=3),
        _record(b"Odd", b"?", count=1),
        _record(b"Parent", inside=_record(b"Child")),  # without the mark of its end
    ],
)
def test_records_that_do_not_fit_are_told_by_their_place(tmp_path, record):
    path = tmp_path / "odd.fbx"
    path.write_bytes(b"Kaydara FBX Binary  \0\x1a\0" + struct.pack("<I", 7400) + record(27))
    with pytest.raises(FileError, match=r"odd\.fbx' .*: what begins at its byte \d+ was cut off"):
        command_fbx.check(path)


def test_files_of_64_bits_are_walked_too(whole):
    path = whole(".fbx")
    command_fbx.check(path)
    content = path.read_bytes()
    assert re.match(rb"Kaydara FBX Binary  \0\x1a\0", content)
    assert struct.unpack_from("<I", content, 23)[0] < 7500
    long = content[:23] + struct.pack("<I", 7500) + _long(content, 27)
    path.write_bytes(long)
    command_fbx.check(path)
    path.write_bytes(long[: len(long) // 2])
    with pytest.raises(FileError, match="was cut off or changed"):
        command_fbx.check(path)


def _long(content, at):
    """The records of a file from one of 32 bits on, as those of 64 bits."""
    made = b""
    while True:
        (end,) = struct.unpack_from("<I", content, at)
        record, at = _lengthened(content, at, 27 + len(made))
        made += record
        if end == 0:
            return made


def _lengthened(content, at, start):
    """(a record in 64 bits that begins at `start`, where the one in 32 bits ends)."""
    end, count, length, name = struct.unpack_from("<IIIB", content, at)
    if end == 0:
        return bytes(25), at + 13
    at += 13
    body, at = content[at : at + name + length], at + name + length
    inside, begun = b"", start + 25 + len(body)
    while at < end:
        part, at = _lengthened(content, at, begun + len(inside))
        inside += part
    return struct.pack("<QQQB", begun + len(inside), count, length, name) + body + inside, at
