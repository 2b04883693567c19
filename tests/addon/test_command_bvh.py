# SPDX-License-Identifier: GPL-3.0-or-later
"""BVH files: what is wrong with one is told with its line, before Blender's importer stumbles."""

import contextlib
import io

import bpy
import numpy as np
import pytest

from poise.addon.blender.files import FileError
from poise.addon.terminal import command_bvh, command_import

WHOLE = """HIERARCHY
ROOT Hips
{
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Spine
  {
    OFFSET 0 10 0
    CHANNELS 3 Zrotation Xrotation Yrotation
    End Site
    {
      OFFSET 0 5 0
    }
  }
}
MOTION
Frames: 3
Frame Time: 0.0333333
0 90 0 0 0 0 1 2 3
0 90 1 0 0 0 1 2 3
0 90 2 0 0 0 1 2 4
"""
COUNT = 500


def refusal(path):
    """What is said of a file; None if nothing."""
    try:
        with command_bvh.checked(path):
            return None
    except FileError as error:
        return str(error)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("HIERARCHY\n", "", "it does not begin with HIERARCHY"),
        (WHOLE, "", "it does not begin with HIERARCHY"),
        (WHOLE[WHOLE.index("MOTION") :], "", "it has no MOTION, so it was cut off"),
        ("OFFSET 0 10 0", "OFFSET 0 10", "line 8 has 2 numbers for OFFSET, not 3"),
        ("OFFSET 0 10 0", "OFFSET 0 nan 0", "line 8 has nan for a number"),
        ("CHANNELS 3", "CHANNELS 4", "line 9 announces 4 channels and names 3"),
        ("CHANNELS 3", "CHANNELS three", "line 9 has 'three' for a number"),
        ("ROOT Hips\n{", "ROOT Hips {", "line 2 has a brace beside something else"),
        ("JOINT Spine", "JOIN Spine", "line 6 begins with 'JOIN', which BVH does not know"),
        ("  OFFSET 0 0 0\n", "", "line 2 is not followed by lines of {, OFFSET, CHANNELS"),
        ("HIERARCHY\n", "HIERARCHY ", "line 1 has more than HIERARCHY"),
        ("JOINT Spine", "ROOT Spine", "line 6 begins a second skeleton: keep one"),
        ("Hips", "Hi\0ps", "line 2 has characters that are no text"),
        ("3 Zrotation X", "3 Zrotation Z", "line 9 names a channel twice"),
        ("3 Zrotation Xrotation", "2 Zrotation", "line 9 gives a joint some rotations"),
        ("CHANNELS 3 Z", "CHANNELS 3 W", "line 9 names a channel 'Wrotation'"),
        ("JOINT Spine", "JOINT", "line 6 gives a joint no name"),
        ("  }\n}\n", "  }\n", "not every joint of its HIERARCHY is closed"),
        ("  }\n}\n", "  }\n}\n}\n", "line 16 closes a joint that was not opened"),
        ("Frames: 3\n", "", "MOTION is not followed by lines as 'Frames: 10' and"),
        ("Frames: 3", "Frames: 0", "line 17 announces '0' frames"),
        ("Frames: 3", "Frames: 3.0", "line 17 announces '3.0' frames"),
        ("Frames: 3", "Frames: 2", "it announces 2 frames and has 3"),
        ("Frames: 3", "Frames: 4", "it announces 4 frames and has 3, so it was cut off"),
        ("0.0333333", "0", "line 18 lets a frame last 0 s: it must be from 0.0001 to 2 s"),
        ("0.0333333", "-0.03", "line 18 lets a frame last -0.03 s"),
        ("0.0333333", "0,0333", "line 18 has '0,0333' for a number: write decimal points"),
        (
            "0 90 1 0 0",
            "0 90 1 0",
            "line 20 has 8 of the 9 numbers of a frame, which are to be in one",
        ),
        ("0 90 1 0 0", "0 90 NaN 0 0", "line 20 has NaN for a number"),
        ("0 90 1 0 0", "0 90 1e999 0 0", "line 20 has 1e999 for a number"),
        (
            "0 90 1 0 0",
            "0 90 1 -1e300 0",
            "line 20 has -1e300, which is no angle, no length and no time",
        ),
        (
            "OFFSET 0 10 0",
            "OFFSET 0 1e12 0",
            "line 8 has 1e12, which is no angle, no length and no time",
        ),
        ("0 90 1 0 0", "0 90,5 1 0 0", "line 20 has '90,5' for a number: write decimal points"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, old, new, reason):
    path = tmp_path / "clip.bvh"
    assert WHOLE.count(old) == 1 or old in ("  }\n}\n", "0 90 1 0 0", "  OFFSET 0 0 0\n")
    path.write_text(WHOLE.replace(old, new, 1))
    assert refusal(path).startswith(f"'{path}' cannot be imported: {reason}")
    path.write_text(WHOLE)
    assert refusal(path) is None


def test_other_encodings_and_line_ends(tmp_path):
    path = tmp_path / "clip.bvh"
    path.write_bytes(b"\xef\xbb\xbf" + WHOLE.replace("\n", "\r\n").encode())
    with command_bvh.checked(path) as readable:
        assert readable != path and readable.name == path.name
        assert readable.read_bytes().startswith(b"HIERARCHY\r\n")
    assert not readable.exists() and path.read_bytes().startswith(b"\xef\xbb\xbf")
    path.write_bytes(WHOLE.replace("Hips", "Hüfte").encode("latin-1"))
    assert "is not text in UTF-8: save it in this encoding" in refusal(path)


def test_what_passes_is_imported_and_the_rest_refused_in_one_sentence(tmp_path):
    random = np.random.default_rng(5)
    path, whole = tmp_path / "clip.bvh", WHOLE.encode()
    passed = 0
    for _ in range(COUNT):
        at, length = int(random.integers(len(whole))), int(random.integers(1, 30))
        path.write_bytes(
            (
                whole[:at],
                whole[:at] + whole[at + length :],
                whole[: at + length] + whole[at:],
                whole[:at] + bytes([random.integers(256)]) + whole[at + 1 :],
                whole[:at] + b" " + whole[at:],
            )[random.integers(5)]
        )
        told = refusal(path)
        if told is not None:
            assert told.endswith(".") and "\n" not in told and str(path) in told
            continue
        passed += 1
        with contextlib.redirect_stdout(io.StringIO()):
            command_import._load_bvh(path, path, "Y", 0.01)
        (armature,) = (thing for thing in bpy.data.objects if thing.type == "ARMATURE")
        assert len(armature.data.bones) == 2
    assert COUNT / 10 < passed < COUNT / 2
