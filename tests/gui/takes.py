# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes in the window: keep two, compare their ghosts, choose by a click, rename, bake to an action
and to an NLA strip, undo."""

import subprocess

import bpy

SIMULATE, BAKE = "bpy.ops.poise.simulate()", "bpy.ops.poise.bake()"
SOURCE = "bpy.ops.poise.show(which='source')"
KEEP = "bpy.ops.poise.keep_take()"
#: Frame at which the push shows, and its strength [N].
FRAME, PUSH = 60, 180.0
#: Where in the width of the sidebar the buttons of the list are.
ACROSS = 0.83


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    driver.rearrange(closed=("character", "measures", "gains"))
    yield from driver.open("hips_twist")
    scene = bpy.context.scene
    scene.poise.method, scene.poise.frames, scene.poise.last_frame = "BALANCE", "CUSTOM", 70
    scene.poise.first_frame = 1
    yield from _simulate(driver)
    yield from driver.click(KEEP)
    yield 0.5
    bpy.ops.poise.add_push()
    push = scene.poise.pushes.items[0]
    push.frame, push.strength = FRAME - 18, PUSH
    scene.frame_set(FRAME)
    yield from _simulate(driver)
    yield 1.0
    yield from driver.shot("takes_1_new_over_kept")
    yield from driver.click(KEEP, across=ACROSS)
    yield 0.5
    driver.check("there are two", _names() == ["Take 1", "Take 2: Pushes"], _names())
    scene.poise.style = "RELAXED"
    yield from _simulate(driver)
    scene.poise.ghost, scene.poise.ghost_distance = "BESIDE", 0.7
    driver.look_at((1.6, 0.0, 0.9), 5.0, (1.45, 0.0, 0.15))
    yield 1.0
    yield from driver.shot("takes_2_side_by_side")
    yield from _choose(driver)
    yield from _rename(driver)
    yield from _bake(driver)
    yield from _bake_to_strip(driver)


def _names():
    return [row.label for row in _list().items]


def _list():
    return bpy.context.window_manager.poise_takes


def _simulate(driver):
    before = driver.result.shot
    yield from driver.click(SIMULATE)
    yield lambda: driver.session.job() is None and driver.result.shot is not before


def _choose(driver):
    """A click on the first row."""
    yield from driver.find(KEEP, across=ACROSS)
    to_the_row = -int((ACROSS - 0.3) * driver.sidebar.width)
    _xdotool("mousemove_relative", "--", to_the_row, 6)
    yield 0.3
    _xdotool("click", 1)
    yield 0.5
    driver.check("a click chooses", _list().index == 0, _list().index)
    driver.check("nothing is lost", _names()[2:] == ["Take 3: Style"], _names())
    yield 0.5
    yield from driver.shot("takes_3_chosen")


def _rename(driver):
    """A double click on its name."""
    _xdotool("click", "--repeat", 2, "--delay", 60, 1)
    yield 0.5
    for keys in (["key", "ctrl+a"], ["type", "--delay", "60", "Still"], ["key", "Return"]):
        _xdotool(*keys)
        yield 0.5
    driver.check("a double click renames", _names()[0] == "Still", _names())


def _bake(driver):
    """It has the name of the take; undo takes the bake back, and no take."""
    bpy.ops.ed.undo_push(message="Renamed")
    before = driver.state()
    yield from driver.click(BAKE)
    yield lambda: driver.session.job() is None and driver.result.shot.measures
    shown = driver.state()["assigned"]
    driver.check("it is called after the take", shown.endswith("Poise Still"), shown)
    yield 0.5
    baked = driver.result.shot.baked
    _xdotool("mousemove_relative", 2, 1)  # where it still is
    yield 0.3
    _xdotool("click", 1)
    yield 0.5
    yield lambda: driver.session.job() is None
    again = driver.result.shot.baked is not baked
    driver.check("the button can be pressed again where the mouse is", again, shown)
    yield from driver.press("ctrl+z")
    yield 0.5
    kept = _names()
    yield from driver.press("ctrl+z")
    yield 0.5
    driver.check("undo takes the bake back", driver.state() == before, driver.state())
    driver.check("and no take", _names() == kept and _list().index == 0, _names())


def _bake_to_strip(driver):
    """On a track over the muted source; the switch mutes it, and one undo takes it away."""
    bpy.context.scene.poise.bake_to = "NLA"
    bpy.ops.ed.undo_push(message="To a strip")
    before = driver.state()
    yield from driver.click(BAKE)
    yield lambda: driver.session.job() is None and "hips_twist Poise Still" in bpy.data.actions
    heard = _heard(driver)
    driver.check("it is on a strip", heard == {"hips_twist": False, "Still": True}, heard)
    yield from driver.find(SOURCE, across=0.3)
    yield 0.5
    yield from driver.shot("takes_4_strip")
    yield from driver.click(SOURCE, across=0.3)
    yield 0.5
    shown = driver.state()["assigned"]
    driver.check("Source shows the source", shown == "hips_twist", shown)
    driver.check("without the strip", not any(_heard(driver).values()), _heard(driver))
    yield from driver.press("ctrl+z", "ctrl+z")
    yield 0.5
    driver.check("undo takes the strip away", driver.state() == before, driver.state())
    driver.check("and the tracks", not _heard(driver), _heard(driver))


def _heard(driver):
    """{name: whether it is heard} of the armature's tracks."""
    return {track.name: not track.mute for track in driver.armature.animation_data.nla_tracks}


def _xdotool(*arguments):
    subprocess.run(["xdotool", *map(str, arguments)], check=True)
