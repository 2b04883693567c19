# SPDX-License-Identifier: GPL-3.0-or-later
"""Poise as Blender starts: the window first, then Poise."""

import sys

import bpy
import pytest

from poise import addon
from poise.addon.blender import threads

TAB = "POISE_PT_starting"


def names():
    """What of Poise Blender knows."""
    found = {name for name in dir(bpy.types) if "poise" in name.lower()}
    return found | ({"the settings"} if hasattr(bpy.types.Scene, "poise") else set())


def turned(start):
    """Let the timer fire until it is done; returns how often it did."""
    turns = 1
    while start.turn() is not None:
        turns += 1
        if start._thread is not None:
            start._thread.join()
    return turns


@pytest.fixture
def start(blender, monkeypatch):
    """Poise that was registered as Blender started."""
    monkeypatch.setattr(threads, "is_start", lambda: True)
    addon.register()
    yield addon._start
    addon.unregister()


def test_after_the_start_all_is_as_where_it_is_registered_at_once(start):
    assert names() == {TAB}
    assert bpy.app.timers.is_registered(start.timer)
    interval = sys.getswitchinterval()
    assert turned(start) == 3
    assert sys.getswitchinterval() == interval
    found = names()
    addon.unregister()
    assert names() == set()
    addon._register()
    assert names() == found


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_disabled_before_it_is_there_it_never_comes(start, turns):
    interval = sys.getswitchinterval()
    for _ in range(turns):
        start.turn()
    addon.unregister()
    assert names() == set()
    assert not bpy.app.timers.is_registered(start.timer)
    assert sys.getswitchinterval() == interval
    addon.register()  # for the fixture
    assert names() == {TAB}


def test_the_tab_says_why_there_is_nothing(monkeypatch):
    def breaks():
        raise ImportError("no module named 'limbs'")

    start = threads.Start(breaks, lambda: None)
    try:
        with pytest.raises(ImportError, match="limbs"):
            turned(start)
        assert threads.POISE_PT_starting.problem == "Poise did not start: no module named 'limbs'"
    finally:
        start.give_up()
    assert names() == set()


@pytest.mark.parametrize(
    ("later", "arguments", "caller"),
    [
        (True, ["blender"], "load_scripts_extensions"),
        (True, ["blender", "--window-geometry", "0", "0", "640", "480"], "load_scripts"),
        (True, ["blender", "gone.blend", "--", "--python"], "load_scripts"),
        (False, ["blender", __file__], "load_scripts"),
        (False, ["blender", "--open-last"], "load_scripts"),
        (False, ["blender"], "addon_enable"),
        (False, ["blender", "--python", "setup.py"], "load_scripts_extensions"),
        (False, ["blender", "--python-expr", "pass"], "load_scripts_extensions"),
        (False, ["blender", "shot.blend", "-P", "setup.py"], "load_scripts_extensions"),
        (False, ["blender", "-c", "poise", "bake"], "load_scripts_extensions"),
    ],
)
def test_whoever_may_ask_for_it_at_once_gets_it_at_once(later, arguments, caller):
    assert threads.comes_later(arguments, {"<module>", "enable", caller}) is later


def test_without_a_window_it_is_there_at_once(monkeypatch):
    def load_scripts():
        return threads.is_start()

    monkeypatch.setattr(sys, "argv", ["blender"])
    assert bpy.app.background and not load_scripts()


def test_a_file_that_is_opened_before_keeps_its_settings(start, tmp_path):
    turned(start)
    scene, path = bpy.context.scene, str(tmp_path / "shot.blend")
    scene.poise.method = "BALANCE"
    scene.poise.pushes.items.add().strength = 33.0
    bpy.ops.wm.save_as_mainfile(filepath=path)
    addon.unregister()
    addon.register()  # as Blender starts once more
    bpy.ops.wm.open_mainfile(filepath=path)
    turned(addon._start)
    settings = bpy.context.scene.poise
    assert settings.method == "BALANCE"
    assert [push.strength for push in settings.pushes.items] == [33.0]
