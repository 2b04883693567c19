# SPDX-License-Identifier: GPL-3.0-or-later
"""Presets of gains: the list, the files, the menu's operators and the sliders."""

import errno
import json
from dataclasses import replace
from pathlib import Path

import bpy
import pytest

from poise.addon import presets
from poise.controller import Gains, GainsError
from poise.controller.adult import adult


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder for the user's presets."""
    folder = tmp_path / "user" / "gains"

    def user_resource(kind, path="", create=False):
        assert (kind, path) == ("CONFIG", "poise/gains")
        if create:
            folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    monkeypatch.setattr(bpy.utils, "user_resource", user_resource)
    presets.refresh()
    yield folder
    presets.refresh()


@pytest.fixture
def gains():
    return Gains.default(adult())


def names():
    return [preset.name for preset in presets.load_presets()]


def put(folder, name, content):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content, encoding="utf-8")
    presets.refresh()


# --- Files --------------------------------------------------------------------------------------


def test_the_shipped_ones_are_listed_first(gains):
    assert names() == ["Single Leg", "Standing", "Wide Stance"]
    presets.add("Arms", gains)
    assert names() == ["Single Leg", "Standing", "Wide Stance", "Arms"]
    assert [preset.shipped for preset in presets.load_presets()] == [True, True, True, False]


@pytest.mark.parametrize(
    "name, file",
    [
        ("Läufer 二", "Läufer 二.json"),
        ("a/b\\c:d*e?.f", "a_b_c_d_e_.f.json"),
        ("../../etc/x", "_.._etc_x.json"),
        ("con", "con_.json"),
        ("  two\n lines ", "two lines.json"),
        ("...", "_.json"),
        ("x" * 500, "x" * 60 + ".json"),
    ],
)
def test_names_of_any_letters(folder, gains, name, file):
    preset = presets.add(name, gains)
    assert [path.name for path in folder.iterdir()] == [file]
    assert preset.path == folder / file
    assert presets.find(preset.name).gains.as_dict() == gains.as_dict() | {
        "name": preset.name,
    }


@pytest.mark.parametrize("name", ["", "  ", "\n\t"])
def test_a_preset_needs_a_name(gains, name):
    with pytest.raises(GainsError, match="needs a name: type one"):
        presets.add(name, gains)


@pytest.mark.parametrize("name", ["Standing", "STANDING", " standing ", "Arms", "aRMS"])
def test_nothing_is_overwritten(folder, gains, name):
    presets.add("Arms", gains)
    before = (folder / "Arms.json").read_text()
    with pytest.raises(GainsError, match=r"There is a preset '.*' already: choose another"):
        presets.add(name, replace(gains, stiffness=0 * gains.stiffness))
    assert (folder / "Arms.json").read_text() == before
    assert len(list(folder.iterdir())) == 1


def test_names_that_become_the_same_file(folder, gains):
    presets.add("a:b", gains)
    with pytest.raises(GainsError, match="already"):
        presets.add("a?b", gains)


def test_removing(folder, gains):
    presets.add("Arms", gains)
    presets.remove("Arms")
    assert names() == ["Single Leg", "Standing", "Wide Stance"]
    assert not list(folder.iterdir())
    with pytest.raises(GainsError, match="There is no preset 'Arms' of gains: choose one of"):
        presets.remove("Arms")
    with pytest.raises(GainsError, match="'Standing' comes with Poise and cannot be removed"):
        presets.remove("Standing")
    assert "Standing" in names()


def test_a_broken_file_is_listed_with_its_error(folder):
    put(folder, "broken.json", "{")
    (preset,) = (p for p in presets.load_presets() if not p.shipped)
    assert (preset.name, preset.gains) == ("broken", None)
    assert "is not JSON" in preset.error
    with pytest.raises(GainsError, match="is not JSON"):
        presets.find("broken")
    presets.remove("broken")
    assert not list(folder.iterdir())


def test_two_files_of_the_same_name(folder, gains):
    for file in ("a.json", "b.json"):
        put(folder, file, json.dumps(gains.as_dict() | {"name": "Standing"}))
    assert names()[-2:] == ["Standing (2)", "Standing (3)"]
    assert presets.find("Standing").shipped
    presets.remove("Standing (3)")
    assert [path.name for path in folder.iterdir()] == ["a.json"]


def test_a_file_that_changes_is_read_again(folder, gains):
    presets.add("Arms", gains)
    put(folder, "Arms.json", json.dumps(gains.as_dict() | {"name": "Legs", "description": "new"}))
    assert presets.find("Legs").gains.description == "new"


def test_import_and_export(tmp_path, folder, gains):
    path = tmp_path / "from a friend.json"
    gains.save(path)
    assert presets.import_file(path).name == "from a friend"
    replace(gains, name="Bähm").save(path)
    assert presets.import_file(path).name == "Bähm"
    with pytest.raises(GainsError, match="There is a preset 'Bähm' already"):
        presets.import_file(path)
    path.write_text("hello")
    with pytest.raises(GainsError, match="is not JSON"):
        presets.import_file(path)
    assert len(list(folder.iterdir())) == 2


def test_a_folder_that_cannot_be_made(monkeypatch, gains):
    def refuse(*_args, create=False, **_more):
        if create:
            raise OSError(errno.EACCES, "Permission denied", "presets")
        return "none"

    monkeypatch.setattr(bpy.utils, "user_resource", refuse)
    presets.refresh()
    with pytest.raises(GainsError, match=r"'presets' for presets cannot be made \(Permission den"):
        presets.add("Arms", gains)
    assert len(names()) == 3


def test_an_extension_has_a_folder_of_its_own(monkeypatch, tmp_path):
    asked = {}

    def extension_path_user(package, *, path="", create=False):
        asked.update(package=package, path=path, create=create)
        return str(tmp_path)

    monkeypatch.setattr(presets, "__package__", "bl_ext.user_default.poise.addon")
    monkeypatch.setattr(bpy.utils, "extension_path_user", extension_path_user)
    assert presets.user_folder(create=True) == Path(tmp_path)
    assert asked == {"package": "bl_ext.user_default.poise", "path": "gains", "create": True}
