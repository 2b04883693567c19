# SPDX-License-Identifier: GPL-3.0-or-later
"""The preferences: where they hold, and the folder of unfinished searches."""

import os
import time
from types import SimpleNamespace

import bpy
import numpy as np
import pytest

from poise.addon.blender import checkpoints, preferences, session
from poise.addon.blender.locks import claimed
from poise.addon.overlays import overlay
from poise.addon.window import preferences_panel
from poise.controller import CheckpointError
from poise.controller.processes import workers

pytestmark = pytest.mark.usefixtures("registered")


@pytest.fixture
def enabled():
    """The preferences of Poise as an add-on that the user has enabled."""
    entry = bpy.context.preferences.addons.new()
    entry.module = preferences.PACKAGE
    yield entry.preferences
    bpy.context.preferences.addons.remove(entry)


@pytest.fixture
def cache(enabled, tmp_path):
    """The folder of checkpoints, in one that the user has chosen and that holds more."""
    enabled.cache = str(tmp_path)
    (tmp_path / "notes.json").write_text("{}")
    return checkpoints.folder()


def test_a_module_has_the_defaults():
    assert preferences.of() is preferences.DEFAULTS


def test_an_add_on_has_the_same_defaults(enabled):
    assert preferences.of() == enabled
    for name in preferences.Defaults.__dataclass_fields__:
        default = getattr(preferences.DEFAULTS, name)
        value = getattr(enabled, name)
        assert np.allclose(value, default) if isinstance(default, tuple) else value == default


def test_workers_are_those_of_the_scene_then_of_the_user_then_of_the_machine(enabled):
    settings = bpy.context.scene.poise.tuning
    assert preferences.workers(settings) == max(1, workers.processors() - 1)
    enabled.workers = 7
    assert preferences.workers(settings) == 7
    settings.workers = 3
    assert preferences.workers(settings) == 3


def test_ghosts_have_the_colours_of_the_user(enabled):
    enabled.body = 0.5, 0.25, 0.75, 1.0
    body, contact, fallen = overlay.colours_of_ghosts()
    assert body == (0.5, 0.25, 0.75, 1.0)
    assert np.allclose(contact, preferences.DEFAULTS.contact)
    assert np.allclose(fallen, preferences.DEFAULTS.fallen)


# --- The cache -----------------------------------------------------------------------------------


def test_the_cache_is_a_folder_of_its_own(cache, tmp_path):
    assert cache == tmp_path / "poise_checkpoints" and cache.is_dir()


def test_what_is_old_is_forgotten_in_its_own_folder_only(cache, tmp_path):
    old = time.time() - 90 * 24 * 3600
    (cache / "rectify_a_b.json").write_text("{}")
    for path in (cache / "rectify_a_b.json", tmp_path / "notes.json"):
        os.utime(path, (old, old))
    checkpoints.forget_old(checkpoints.folder())
    assert checkpoints.kept() == []
    assert (tmp_path / "notes.json").is_file()


def test_a_cache_that_cannot_be_made_is_told(enabled, tmp_path):
    (tmp_path / "file").write_text("")
    enabled.cache = "somewhere"
    with pytest.raises(CheckpointError, match="'somewhere' is no full path: choose another one"):
        checkpoints.folder()
    enabled.cache = str(tmp_path / "file")
    with pytest.raises(CheckpointError, match=r"cannot be made .* choose another one"):
        checkpoints.folder()
    assert "cannot be made" in checkpoints.size_words()
    with pytest.raises(RuntimeError, match="cannot be made"):
        bpy.ops.poise.clear_cache()
    with pytest.raises(RuntimeError, match="cannot be made"):
        bpy.ops.poise.open_cache()


def test_the_cache_tells_its_size_and_is_cleared(cache, tmp_path):
    assert checkpoints.size_words() == "None"
    with pytest.raises(RuntimeError, match="No unfinished search is kept"):
        bpy.ops.poise.clear_cache()
    (cache / "rectify_a_b.json").write_bytes(b" " * 1_500_000)
    (cache / "tuned.json").write_text("{}")
    assert checkpoints.size_words() == "2, 1.5 MB"
    assert bpy.ops.poise.clear_cache() == {"FINISHED"}
    assert list(cache.iterdir()) == []
    assert (tmp_path / "notes.json").is_file()


def test_what_another_blender_works_on_stays(cache, capfd):
    paths = [cache / "a.json", cache / "b.json"]
    for path in paths:
        path.write_text("{}")
    with claimed(paths[0], "taken"):
        bpy.ops.poise.clear_cache()
        assert checkpoints.kept() == paths[:1]
    assert "Kept, since another Blender works on them: 1" in capfd.readouterr().out
    assert checkpoints.clear() == 0


def test_nothing_is_cleared_under_a_search_at_work(cache):
    (cache / "a.json").write_text("{}")
    name = bpy.context.scene.name
    job = SimpleNamespace(doing="tuning", scene_name=name, cancel=lambda: session.end(job))
    session.start(job)
    with pytest.raises(RuntimeError, match="Poise is tuning: wait"):
        bpy.ops.poise.clear_cache()
    session.end(job)
    assert len(checkpoints.kept()) == 1


class Lines:
    """A stand-in for UILayout that takes down what is shown."""

    def __init__(self, texts):
        self.__dict__.update(texts=texts)

    def prop(self, data, name, text="", **_options):
        assert name in data.bl_rna.properties
        self.texts.append(text or data.bl_rna.properties[name].name)

    def operator(self, name, text="", **_options):
        getattr(bpy.ops.poise, name.partition(".")[2]).get_rna_type()
        self.texts.append(text)

    def label(self, text="", **_options):
        self.texts.append(text)

    def row(self, **_options):
        return Lines(self.texts)

    column = split = row


def test_the_preferences_show_everything(enabled, cache):
    texts = []
    values = {name: getattr(enabled, name) for name in preferences.Defaults.__dataclass_fields__}
    stand_in = SimpleNamespace(**values, bl_rna=enabled.bl_rna, layout=Lines(texts))
    preferences_panel.POISE_AP_preferences.draw(stand_in, bpy.context)
    assert texts == [
        "Workers, 0: automatic",
        "Cache Folder",
        "Unfinished Searches",
        "None",
        "Open",
        "Clear",
        "Ghost",
        "Touching Foot of Ghost",
        "Fallen Ghost",
    ]
