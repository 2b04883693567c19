# SPDX-License-Identifier: GPL-3.0-or-later
"""The window in German: quick and full mode, a fall, and that Blender shows Poise's own words."""

import bpy

SIMULATE = "bpy.ops.poise.simulate()"
LANGUAGE = "de_DE"
#: So hard [N] that no feet in place withstand it.
HARD = 900.0


def scenario(driver):
    """Look at it, and ask Blender for every label."""
    yield from driver.open("hips_twist", mode="QUICK")
    view = bpy.context.preferences.view
    view.language = LANGUAGE
    view.use_translate_interface = view.use_translate_tooltips = view.use_translate_reports = True
    yield 1.0
    _ask(driver)
    yield from _quick(driver)
    yield from _full(driver)


def _ask(driver):
    """Whether Blender finds the translation of every label where it will look for it."""
    translations = driver.module("blender.translations")
    collect = driver.module("translations.collect")
    german = translations.read(translations.FOLDER / "de.po")
    said = bpy.app.translations.pgettext_iface
    shown = []
    for cls in collect._classes():
        if issubclass(cls, bpy.types.Operator):
            shown.append((cls.bl_label, "Operator"))
        elif getattr(cls, "bl_label", ""):
            shown.append((cls.bl_label, "*"))
        for known in collect._properties(cls):
            names = [known.name]
            if known.type == "ENUM":
                names += [item.name for item in known.enum_items_static]
            shown += [(name, known.translation_context) for name in names]
    other = {
        (text, said(text, context), german[text])
        for text, context in shown
        if text in german and said(text, context) != german[text]
    }
    driver.check("all labels are German", not other, other)
    driver.check("they are many", len(shown) > 300, len(shown))


def _quick(driver):
    yield from driver.shot("german_1_quick")
    yield from driver.click(SIMULATE)
    yield lambda: driver.simulated_samples() > 30
    yield from driver.shot("german_2_simulating")
    yield lambda: driver.session.job() is None
    driver.check("it stands", driver.result.recording.success, driver.result.error)
    bpy.context.scene.frame_set(120)
    yield 1.0
    yield from driver.shot("german_3_stood")


def _full(driver):
    scene = bpy.context.scene
    scene.poise.mode = "FULL"
    yield 1.0
    yield from driver.shot("german_4_full")
    scene.frame_set(60)
    bpy.ops.poise.add_push()
    scene.poise.pushes.items[0].strength = HARD
    yield from driver.click(SIMULATE)
    yield lambda: driver.session.job() is None
    recording = driver.result.recording
    driver.check("it falls", recording is not None and not recording.success)
    translate = driver.module("blender.translations").tr
    why = translate(driver.result.shot.why)
    driver.check("why it fell is said in German", why.startswith("Gefallen bei "), why)
    yield 1.0
    yield from driver.shot("german_5_fell")
