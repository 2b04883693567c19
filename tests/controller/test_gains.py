# SPDX-License-Identifier: GPL-3.0-or-later
import json

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
    assert len(Gains.default(adult).names) == 17


@pytest.mark.parametrize(
    "change, message",
    [
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
