# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that Poise reads: whatever is done to one, it is read or refused in one sentence."""

import json
import os
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from poise.controller import documents
from poise.controller.body.morphology import Morphology
from poise.controller.contacts.contact_plan import ContactPlan
from poise.controller.exceptions import CheckpointError, PoiseError
from poise.controller.gains.gains import Gains
from poise.controller.reference.commands import Script
from poise.controller.search.polling import Checkpoint
from poise.controller.skills.skill_set import Pace, Skill, SkillSet

PLAN = {
    "version": 1,
    "fps": 60.0,
    "feet": {"left": {"heel": [[0.1, 0.4]], "ball": [[0.15, 0.6]]}, "right": {}},
}
SCRIPT = {
    "version": 1,
    "seconds": 20,
    "commands": [
        {"at": 0, "speed": 1.0, "heading": 90},
        {"at": 9, "sideways": 0.2},
        {"at": 12, "skill": "stand"},
        {"at": 15, "push": {"part": "chest", "newtons": 60, "direction": 180, "seconds": 0.3}},
        {"at": 17, "throw": {"mass": 3, "direction": 90}},
    ],
}
PRESETS = Path(documents.__file__).parents[1] / "presets"
COUNT = 500  # of each kind
#: What a value becomes.
ODD = (None, True, -1, 0, 1e308, float("nan"), "", "\ud83d", "x" * 999, [], [[]], {}, {"a": 1})


def _shipped(folder):
    return min(folder.glob("*.json"), key=lambda path: path.stat().st_size).read_bytes()


def _mutated(content, random):
    """Bytes of a JSON document with a fault: one that a disk, an editor or a hand makes."""
    kind = random.integers(7)
    at = int(random.integers(len(content)))
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + bytes([random.integers(256)]) + content[at + 1 :]
    if kind == 2:
        end = min(len(content), at + int(random.integers(1, 60)))
        return content[:at] + content[end:]
    if kind == 3:
        end = min(len(content), at + int(random.integers(1, 60)))
        return content[:end] + content[at:]
    data = json.loads(content)
    for _ in range(int(random.integers(1, 4))):
        _spoil(data, random, kind)
    return json.dumps(data).encode("utf-8", "surrogatepass")


def _spoil(data, random, kind):
    """Change one value, name or item somewhere in JSON-able data."""
    place = data
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = keys[random.integers(len(keys))]
        if not (isinstance(place[key], dict | list) and place[key] and random.random() < 0.8):
            break
        place = place[key]
    if kind == 4:
        place[key] = deepcopy(ODD[random.integers(len(ODD))])
    elif kind == 5:
        del place[key]
    elif isinstance(place, dict):
        place["odd" * int(random.integers(1, 3))] = place.pop(key)
    else:
        place.append(place[key])


def _checkpoint(path):
    Checkpoint(path, "search", "the clip").restore("1f", lambda data: None)


def _read_checkpoint(path):
    taken = []
    Checkpoint(path, "search", "the clip").restore("1f", taken.append)
    assert taken == [{"batches": [{"wall": 1.5, "results": [[0.25, {"3": 1}]]}]}]


def _made(kind, tmp_path):
    if kind == "plan":
        return json.dumps(PLAN).encode(), ContactPlan.load
    if kind == "script":
        return json.dumps(SCRIPT).encode(), Script.load
    if kind == "skills":
        read = ("walk.bvh", "", {"scene": None}, "Rig", "walk")
        walk = Skill("walk", *read, (3, 70), 1.25, 1.8, 70.0, (Pace(1.1, 1.0, 2, 0),))
        SkillSet((walk,), {"poise": "0"}, 5.0, 3).save(tmp_path / "made")
        return (tmp_path / "made").read_bytes(), SkillSet.load
    if kind == "gains":
        return _shipped(PRESETS / "gains"), Gains.load
    if kind == "morphology":
        return _shipped(PRESETS / "morphologies"), Morphology.load
    if kind == "rig map":
        pytest.importorskip("bpy")
        from poise.addon.rigs import rig

        return (PRESETS / "rigs" / "rigify.json").read_bytes(), rig.load
    path = tmp_path / "made"
    data = {"batches": [{"wall": 1.5, "results": [[0.25, {3: 1}]]}]}
    assert Checkpoint(path, "search", "the clip").write("1f", data) == ""
    return path.read_bytes(), _read_checkpoint


@pytest.mark.parametrize(
    "kind", ["plan", "gains", "morphology", "rig map", "checkpoint", "script", "skills"]
)
def test_what_is_spoilt_is_read_or_refused_in_one_sentence(kind, tmp_path):
    random = np.random.default_rng(7)
    content, load = _made(kind, tmp_path)
    path = tmp_path / "spoilt.json"
    path.write_bytes(content)
    load(path)
    refused = 0
    for _ in range(COUNT):
        path.write_bytes(_mutated(content, random))
        try:
            load(path)
        except PoiseError as error:
            refused += 1
            text = str(error)
            assert "\n" not in text and len(text) < 2000
            assert text.endswith(".") and str(path) in text, text
    assert refused > COUNT / 4


@pytest.mark.parametrize(
    "kind", ["plan", "gains", "morphology", "rig map", "checkpoint", "script", "skills"]
)
def test_what_is_nested_without_end_is_refused(kind, tmp_path):
    """Python's reader of JSON gives up with another error than for what is none."""
    _, load = _made(kind, tmp_path)
    path = tmp_path / "nested.json"
    for depth in (100, 100_000):
        for opened, closed in ((b"[", b"]"), (b'{"a":', b"}")):
            for content in (opened * depth, opened * depth + b"1" + closed * depth):
                path.write_bytes(content)
                with pytest.raises(PoiseError) as told:
                    load(path)
                text = str(told.value)
                assert "\n" not in text and len(text) < 2000 and text.endswith(".")
                assert "recursion" not in text
                assert depth == 100 or "is not JSON: it nests too deep" in text


def test_a_checkpoint_that_was_changed_is_refused(tmp_path):
    content, _ = _made("checkpoint", tmp_path)
    path = tmp_path / "made"
    path.write_bytes(content.replace(b"1.5", b"1.6"))
    with pytest.raises(CheckpointError, match="was changed since it was written: delete it"):
        _checkpoint(path)
    path.write_bytes(content.replace(b"1f", b"2f"))
    with pytest.raises(CheckpointError, match="belongs to another search: the clip differ"):
        _checkpoint(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_pipes_and_folders_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(PoiseError, match="is no file"):
            ContactPlan.load(path)


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "document.json"
    documents.write(path, '\ufeff{"ä": [1.5]}')
    assert documents.read(path, "it", pytest.fail) == {"ä": [1.5]}
    assert list(tmp_path.iterdir()) == [path]
