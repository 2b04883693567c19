# SPDX-License-Identifier: GPL-3.0-or-later
"""Contacts in the window: found, shown as a bar over the keys, changed at a frame, undone; the
clean-up that is shown follows."""

import bpy

FIND, CLEAN = "bpy.ops.poise.find_contacts()", "bpy.ops.poise.clean_up()"
DRAG, END = "bpy.ops.poise.drag_contacts()", "bpy.ops.poise.end_contact()"
#: The timeline is made higher by so much [pixels].
HIGHER = 110


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    driver.module("sidebar.clean_up_panel").POISE_PT_clean_up.bl_options = set()
    driver.rearrange(closed=("character", "bones"))
    yield from driver.open("walk")
    yield from _arrange(driver)
    yield from _find(driver)
    yield from _change(driver)
    yield from _drag(driver)
    yield from _follow(driver)


def _arrange(driver):
    """The layout that Blender starts with, and a higher timeline."""
    with bpy.context.temp_override(window=driver.window, area=driver.area):
        bpy.ops.screen.screen_full_area(use_hide_panels=False)
    yield 0.5
    screen = driver.window.screen
    driver.area = next(a for a in screen.areas if a.type == "VIEW_3D")
    driver.area.spaces.active.show_region_ui = True
    yield 0.3
    driver.sidebar.active_panel_category = "Poise"
    timeline = next(a for a in screen.areas if a.type == "DOPESHEET_EDITOR")
    x, y = timeline.x + 300, timeline.y + timeline.height
    driver.point_at(x, y)  # only over an edge Blender moves it
    yield 0.5
    with bpy.context.temp_override(window=driver.window, screen=screen):
        bpy.ops.screen.area_move(x=x, y=y, delta=HIGHER)
    yield 0.5


def _kept(driver):
    contacts = driver.module("scene.contacts")
    return contacts.kept(*contacts.source_of(driver.armature))


def _spans(driver):
    """(first frame, frame of its end) of the left ball's spans."""
    return [
        (round(first), round(end))
        for *names, first, end in _kept(driver).spans()
        if names == ["left", "ball"]
    ]


def _find(driver):
    before = driver.state()
    yield from driver.click(FIND)
    yield lambda: driver.session.job() is None and _kept(driver) is not None
    driver.check("it changes no keys", driver.state() == before, driver.state())
    driver.check("three steps are found", len(_spans(driver)) == 3, _spans(driver))
    yield 1.0
    yield from driver.shot("contacts_1_found")


def _change(driver):
    settings = bpy.context.scene.poise.clean_up
    settings.foot, settings.point = "LEFT", "BALL"
    before = _spans(driver)
    bpy.context.scene.frame_set(before[1][1] - 6)
    yield 0.5
    yield from driver.click(END, across=0.75)
    yield 1.0
    after = _spans(driver)
    driver.check("the span ends there", after[1] == (before[1][0], before[1][1] - 5), after)
    yield from driver.shot("contacts_2_ended")
    yield from driver.press("ctrl+z")
    yield 0.5
    driver.check("one undo brings it back", _spans(driver) == before, _spans(driver))
    yield from driver.press("ctrl+shift+z")
    yield 0.5
    driver.check("redo ends it again", _spans(driver) == after, _spans(driver))


def _drag(driver):
    before = _spans(driver)
    yield from _pull(driver, before)
    yield 1.0
    after = _spans(driver)
    driver.check("the end is dragged", after[0] == (before[0][0], before[0][1] - 5), after)
    yield from driver.shot("contacts_3_dragged")
    yield from driver.press("Escape", "ctrl+z")
    yield 0.5
    driver.check("one undo brings the end back", _spans(driver) == before, _spans(driver))


def _pull(driver, before):
    """Drag an end of the chosen row, five frames to the left, with the real mouse."""
    yield from driver.press()
    yield from driver.click(DRAG)
    yield 0.5
    area = next(a for a in driver.window.screen.areas if a.type == "DOPESHEET_EDITOR")
    region = next(r for r in area.regions if r.type == "WINDOW")
    bar, scale = driver.module("overlays.contact_bar"), bpy.context.preferences.system.ui_scale
    middle = bar.row("left", "ball")[0] + bar.HEIGHT / 2 - bar.sunk(region.height / scale)
    y = region.y + middle * scale

    def point_at(frame):
        driver.point_at(region.x + region.view2d.view_to_region(frame, 0, clip=False)[0], y)

    point_at(before[0][1] - 0.5)
    yield 0.5
    driver.mouse("mousedown")
    yield 0.3
    for step in range(1, 6):
        point_at(before[0][1] - 0.5 - step)
        yield 0.2
    driver.mouse("mouseup")


def _follow(driver):
    yield from driver.click(CLEAN)
    yield lambda: driver.result.clean is not None and driver.session.job() is None
    yield 1.0
    cleaned = driver.state()
    yield from driver.shot("contacts_4_cleaned")
    bpy.context.scene.frame_set(_spans(driver)[0][1] - 6)
    yield from driver.click(END, across=0.75)
    yield 0.5
    yield lambda: driver.session.job() is None
    yield 0.5
    followed = driver.state()
    driver.check("the clean-up follows", followed["keys"] != cleaned["keys"])
    driver.check("it is still shown", followed["assigned"] == cleaned["assigned"])
    yield from driver.shot("contacts_5_followed")
    yield from driver.press("ctrl+z")
    yield 1.0
    undone = driver.state()
    driver.check("one undo takes both back", undone["keys"] == cleaned["keys"])
    before = _spans(driver)
    yield from _pull(driver, before)
    yield 0.5
    yield lambda: driver.session.job() is None
    yield 0.5
    dragged = driver.state()
    driver.check("it follows the mouse, too", dragged["keys"] != cleaned["keys"])
    driver.check("to where it was let go", _spans(driver)[0][1] == before[0][1] - 5)
    yield from driver.press("Escape", "ctrl+z")
    yield 1.0
    undone = driver.state()
    driver.check("one undo takes that back", undone["keys"] == cleaned["keys"])
    driver.check("and the contact", _spans(driver) == before, _spans(driver))
