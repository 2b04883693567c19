# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything of Poise that touches Blender.

Importing this package imports nothing of Blender's, so that one module of it can be used alone.
"""


def register():
    """Register the classes, the settings of a scene and the command `blender --command poise`."""
    import bpy

    from . import (
        command_line,
        contact_bar,
        evaluation,
        menus,
        objects,
        overlay,
        overlay_bar,
        overlay_marks,
        overlay_paths,
        properties,
        pushes,
        session,
        takes,
        translations,
        weights,
    )

    for cls in _classes():
        translations.separate(cls)
        bpy.utils.register_class(cls)
    properties.register()
    objects.register()
    weights.register()
    pushes.register()
    takes.register()
    evaluation.register()
    session.register()
    overlay.register()
    overlay_marks.register()
    overlay_paths.register()
    overlay_bar.register()
    contact_bar.register()
    translations.register()
    menus.register()
    command_line.register()


def unregister():
    """Undo `register`: stop what runs and forget all results."""
    import bpy

    from . import (
        command_line,
        contact_bar,
        evaluation,
        menus,
        objects,
        overlay,
        overlay_bar,
        overlay_marks,
        overlay_paths,
        properties,
        pushes,
        session,
        takes,
        translations,
        tuning_plot,
        weights,
    )

    command_line.unregister()
    menus.unregister()
    translations.unregister()
    contact_bar.unregister()
    overlay_bar.unregister()
    overlay_paths.unregister()
    overlay_marks.unregister()
    overlay.unregister()
    session.unregister()
    evaluation.unregister()
    takes.unregister()
    tuning_plot.unregister()
    pushes.unregister()
    weights.unregister()
    objects.unregister()
    properties.unregister()
    for cls in reversed(_classes()):
        bpy.utils.unregister_class(cls)


def _classes():
    from . import (
        clean_up,
        clean_up_panel,
        clip_check,
        clip_check_panel,
        gains,
        gains_panel,
        menus,
        morphology,
        morphology_panel,
        objects,
        objects_panel,
        operators,
        overlay_panel,
        overlay_settings,
        panels,
        preferences_panel,
        properties,
        push_gizmo,
        pushes,
        pushes_panel,
        quick_panel,
        rectify,
        rectify_panel,
        robustness,
        robustness_panel,
        takes,
        takes_panel,
        tuning,
        tuning_panel,
        walks,
        walks_panel,
        weights,
        weights_panel,
    )
    from .operators import cache

    return (
        *preferences_panel.CLASSES,
        *gains.CLASSES,
        *rectify.CLASSES,
        *tuning.CLASSES,
        *robustness.CLASSES,
        *clip_check.CLASSES,
        *clean_up.CLASSES,
        *objects.CLASSES,
        *morphology.CLASSES,
        *overlay_settings.CLASSES,
        *pushes.CLASSES,
        *walks.CLASSES,
        *takes.CLASSES,
        *properties.CLASSES,
        *operators.CLASSES,
        *quick_panel.CLASSES,
        *takes_panel.CLASSES,
        *panels.CLASSES,
        *clip_check_panel.CLASSES,
        *clean_up_panel.CLASSES,
        *overlay_panel.CLASSES,
        *gains_panel.CLASSES,
        *rectify_panel.CLASSES,
        *tuning_panel.CLASSES,
        *robustness_panel.CLASSES,
        *walks_panel.CLASSES,
        *pushes_panel.CLASSES,
        *push_gizmo.CLASSES,
        *objects_panel.CLASSES,
        *morphology_panel.CLASSES,
        *weights.CLASSES,
        *weights_panel.CLASSES,
        *menus.CLASSES,
        *cache.CLASSES,
    )
