# SPDX-License-Identifier: GPL-3.0-or-later
import errno
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from poise.controller import Character, Gains, GainsError


@pytest.fixture
def child(make_motion):
    return Character.from_motion(make_motion(stature=1.1))


def test_a_file_gives_the_same_gains_back(adult, tmp_path):
    gains = Gains.default(adult)
    gains.save(tmp_path / "gains.json")
    loaded = Gains.load(tmp_path / "gains.json", adult)
    assert loaded.as_dict() == gains.as_dict()


def test_gains_of_another_size_are_rescaled(adult, child, tmp_path):
    """Default gains follow the same law, so an adult's file becomes a child's defaults."""
    Gains.default(adult).save(tmp_path / "gains.json")
    loaded, own = Gains.load(tmp_path / "gains.json", child), Gains.default(child)
    assert np.allclose(loaded.stiffness, own.stiffness)
    assert np.allclose(loaded.damping, own.damping)
    assert np.allclose(loaded.dual, own.dual)
    assert own.stiffness.max() < 0.3 * Gains.default(adult).stiffness.max()


def test_left_and_right_share(adult):
    stiffness, damping = Gains.default(adult).per_dof(adult)
    by_name = dict(zip(adult.dof_names, zip(stiffness, damping, strict=True), strict=True))
    for name, values in by_name.items():
        if "_l_" in name:
            assert by_name[name.replace("_l_", "_r_")] == values
    assert len(Gains.default(adult).names) == 18


@pytest.mark.parametrize(
    "lacking, words",
    [
        (("toe_pitch",), "toes"),
        (("hip_roll",), "hip roll"),
        (("knee_pitch", "ankle_pitch", "ankle_roll", "ankle_twist"), "knee, ankle"),
    ],
)
def test_what_a_file_of_this_schema_lacks_has_the_defaults(adult, child, lacking, words, tmp_path):
    path = tmp_path / "gains.json"
    whole = Gains.default(child)
    data = replace(whole, stiffness=2 * whole.stiffness).as_dict()
    for group in ("stiffness", "damping"):
        for dof in lacking:
            del data[group][dof]
    path.write_text(json.dumps(data))
    found = Gains.load(path, adult)
    assert found.completed == (
        f"The gains file '{path}' has no gains for {words}: these have the defaults."
    )
    default = Gains.default(adult)
    double = np.where([name in lacking for name in found.names], 1, 2)
    assert found.names == default.names
    assert found.stiffness == pytest.approx(double * default.stiffness)
    assert found.damping == pytest.approx(default.damping)
    found.save(path)
    assert Gains.load(path, adult).completed == ""


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda d: d["stiffness"].clear(), "has no 'stiffness'"),
        (lambda d: [d[g].update(tail=1.0) for g in ("stiffness", "damping")], "differ in tail"),
        (lambda d: d["stiffness"].pop("knee_pitch"), "another character.*knee_pitch"),
        (lambda d: d["damping"].update(tail_pitch=1.0), "another character.*tail_pitch"),
        (lambda d: d["stiffness"].update(knee_pitch=-1), "knee_pitch as -1, out of range"),
        (lambda d: d["single"].update(trunk=1e9), r"trunk as 1e\+09, out of range"),
        (lambda d: d["dual"].update(momentum="high"), "momentum as 'high': it must be a number"),
        (lambda d: d["dual"].update(momentum=float("nan")), "must be a number"),
        (lambda d: d.update(balance="magic"), "names no balance mode"),
        (lambda d: d.update(schema=99), "not a gains file of schema"),
        (lambda d: d.pop("body"), "does not say what body"),
        (lambda d: d.pop("single"), "has no 'single'"),
    ],
)
def test_a_bad_file_is_refused(adult, tmp_path, change, message):
    data = Gains.default(adult).as_dict()
    change(data)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data))
    with pytest.raises(GainsError, match=message) as error:
        Gains.load(path, adult)
    assert str(path) in str(error.value)


def test_a_file_that_is_none(adult, tmp_path):
    with pytest.raises(GainsError, match="cannot be read: No such file"):
        Gains.load(tmp_path / "none.json", adult)
    (tmp_path / "text.json").write_text("hello")
    with pytest.raises(GainsError, match="is not JSON"):
        Gains.load(tmp_path / "text.json", adult)


def test_unknown_balance_mode(adult):
    with pytest.raises(GainsError, match="no balance mode 'magic': use foot_forces"):
        Gains.default(adult, "magic")


TUNED = {
    "clip": "arm",
    "frames": [1.0, 300.0],
    "duration": 4.98,
    "body": {"mass": 71.0, "height": 1.75},
    "optimiser": {"seed": 0, "elitist": False, "stopped_by": None},
    "figures": {"target": 1.8, "unseen_count": 8, "unseen_mean": 1.95, "unseen_min": 1.93},
    "features": {"dual": 1.0},
}


def test_what_it_was_tuned_on_survives(adult, tmp_path):
    gains = replace(Gains.default(adult), tuned=TUNED, name="Ärmchen", description="Swings.")
    gains.save(tmp_path / "gains.json")
    loaded = Gains.load(tmp_path / "gains.json", adult)
    assert loaded.tuned == TUNED
    assert (loaded.name, loaded.description) == ("Ärmchen", "Swings.")
    assert Gains.from_dict(loaded.as_dict(), adult).as_dict() == gains.as_dict()


def test_tuned_on_one_body_and_used_on_another(adult, child):
    """What is told of the tuning stays that of the body which was tuned."""
    gains = replace(Gains.default(adult), tuned=TUNED)
    assert Gains.from_dict(gains.as_dict(), child).tuned["body"] == TUNED["body"]


def test_without_a_character_gains_stay_as_they_are(child):
    gains = Gains.default(child)
    read = Gains.from_dict(gains.as_dict())
    assert read.as_dict() == gains.as_dict()
    assert read.body == (child.mass, child.height)


def test_schema_1_is_still_read(adult, tmp_path):
    gains = Gains.default(adult)
    old = gains.as_dict() | {"schema": 1}
    del old["tuned"]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(old))
    assert Gains.load(path, adult).as_dict() == gains.as_dict()


def test_limits_grow_with_the_body(make_motion):
    """What is in range for an adult is so for a giant, whose torques are 200 times as large."""
    giant = Character.from_motion(make_motion(stature=5.0), mass=1000)
    gains = Gains.default(giant)
    assert gains.stiffness.max() > 10000
    assert Gains.from_dict(gains.as_dict(), giant).as_dict() == gains.as_dict()


def deep(levels):
    return {"more": deep(levels - 1)} if levels else 1


@pytest.mark.parametrize(
    "tuned, message",
    [
        ("arm", "gives 'tuned' as 'arm': it must tell"),
        ({"figures": {"reward": float("nan")}}, "has nan in 'tuned': numbers must be finite"),
        ({"figures": [1, 10**400]}, "0… in 'tuned': numbers must be finite"),
        ({"clip": b"arm"}, "has b'arm' in 'tuned': it must be a number, text"),
        ({1: "arm"}, "has the key 1 in 'tuned'"),
        ({"clip": "x" * 10001}, "a text of more than 10000 letters"),
        ({"history": [0.0] * 10001}, "more than 10000 values"),
        (deep(9), "deeper than 8 levels"),
    ],
)
def test_what_it_was_tuned_on_is_checked(adult, tuned, message):
    data = Gains.default(adult).as_dict() | {"tuned": tuned}
    with pytest.raises(GainsError, match=message) as error:
        Gains.from_dict(data, adult, "the preset 'Odd'")
    assert str(error.value).startswith("The preset 'Odd' ")
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("key", ["name", "description"])
def test_words_are_texts(adult, key):
    data = Gains.default(adult).as_dict() | {key: 5}
    with pytest.raises(GainsError, match=f"gives '{key}' as 5: it must be a text"):
        Gains.from_dict(data, adult)


@pytest.mark.parametrize(
    "content, message",
    [
        (b'{"schema": 2, "schema": 2}', "is not JSON: it gives 'schema' twice"),
        (b'{"schema": 2,', "is not JSON: "),
        (b"[" * 100_000, "is not JSON: "),
        (b" " * 1_000_001, "is larger than 1 MB"),
        ('{"name": "Ä"}'.encode("latin-1"), "is not text in UTF-8"),
        ('{"name": "Ä"}'.encode("utf-16"), "is not text in UTF-8"),
        (b"", "is not JSON: "),
        (b"[]", "is not a gains file of schema 1 or 2"),
        (b"5", "is not a gains file of schema 1 or 2"),
    ],
)
def test_a_file_of_something_else(adult, tmp_path, content, message):
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    with pytest.raises(GainsError, match=message):
        Gains.load(path, adult)


def test_a_file_with_a_byte_order_mark(adult, tmp_path):
    gains = Gains.default(adult)
    path = tmp_path / "notepad.json"
    path.write_text(json.dumps(gains.as_dict()), encoding="utf-8-sig")
    assert Gains.load(path, adult).as_dict() == gains.as_dict()


def test_a_whole_number_that_is_too_long(adult, tmp_path):
    path = tmp_path / "long.json"
    text = json.dumps(Gains.default(adult).as_dict())
    path.write_text(text.replace('"trunk": ', f'"trunk": {"9" * 400}', 1))
    with pytest.raises(GainsError, match="must be a number"):
        Gains.load(path, adult)


def test_a_full_disk_keeps_the_old_file(adult, tmp_path, monkeypatch):
    path = tmp_path / "gains.json"
    path.write_text("old")

    def full(self, text, encoding):
        with self.open("w") as file:
            file.write(text[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(
        GainsError, match=r"cannot be written \(No space left on device\): make room"
    ):
        Gains.default(adult).save(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["gains.json"]


def test_a_folder_that_is_not_there(adult, tmp_path):
    with pytest.raises(GainsError, match=r"cannot be written \(No such file or directory\)"):
        Gains.default(adult).save(tmp_path / "none" / "gains.json")


def test_saving_leaves_nothing_else(adult, tmp_path):
    Gains.default(adult).save(tmp_path / "gains.json")
    Gains.default(adult).save(tmp_path / "gains.json")
    assert [p.name for p in tmp_path.iterdir()] == ["gains.json"]


def test_what_grows_beyond_the_limits_stops_there(adult, child):
    """So that gains which could be read can be saved, and read again."""
    data = Gains.default(child).as_dict()
    data["stiffness"]["spine_pitch"] = 10000.0
    grown = Gains.from_dict(data, adult)
    assert grown.stiffness.max() == pytest.approx(10000.0)
    assert Gains.from_dict(grown.as_dict(), adult).as_dict() == grown.as_dict()
