# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything of Poise that touches Blender.

Importing this package imports nothing of Blender's, so that one module of it can be used alone.
"""


def register():
    """Register the classes, the settings of a scene and the command `blender --command poise`."""
    import bpy

    from .blender import evaluation, session, translations
    from .command import command_line
    from .overlays import (
        contact_bar,
        overlay,
        overlay_bar,
        overlay_marks,
        overlay_paths,
        play_marks,
    )
    from .scene import holds, objects, pushes, strength, walks, waypoints, weights
    from .settings import properties, takes
    from .window import menus

    for cls in _classes():
        translations.separate(cls)
        bpy.utils.register_class(cls)
    properties.register()
    objects.register()
    weights.register()
    strength.register()
    walks.register()
    pushes.register()
    waypoints.register()
    holds.register()
    takes.register()
    evaluation.register()
    session.register()
    overlay.register()
    overlay_marks.register()
    overlay_paths.register()
    overlay_bar.register()
    contact_bar.register()
    play_marks.register()
    translations.register()
    menus.register()
    command_line.register()


def unregister():
    """Undo `register`: stop what runs and forget all results."""
    import bpy

    from .blender import evaluation, session, translations
    from .command import command_line
    from .overlays import (
        contact_bar,
        overlay,
        overlay_bar,
        overlay_marks,
        overlay_paths,
        play_marks,
    )
    from .plots import tuning_plot
    from .scene import holds, objects, pushes, strength, walks, waypoints, weights
    from .settings import properties, takes
    from .window import menus

    command_line.unregister()
    menus.unregister()
    translations.unregister()
    play_marks.unregister()
    contact_bar.unregister()
    overlay_bar.unregister()
    overlay_paths.unregister()
    overlay_marks.unregister()
    overlay.unregister()
    session.unregister()
    evaluation.unregister()
    takes.unregister()
    tuning_plot.unregister()
    holds.unregister()
    waypoints.unregister()
    pushes.unregister()
    walks.unregister()
    strength.unregister()
    weights.unregister()
    objects.unregister()
    properties.unregister()
    for cls in reversed(_classes()):
        bpy.utils.unregister_class(cls)


def _classes():
    from . import operators, staging
    from .scene import holds, morphology, objects, pushes, strength, walks, waypoints, weights
    from .settings import gains, overlay_settings, properties, takes
    from .shots import clean_up, clip_check, rectify, robustness, tuning
    from .sidebar import (
        clean_up_panel,
        clip_check_panel,
        gains_panel,
        overlay_panel,
        panels,
        quick_panel,
        rectify_panel,
        robustness_panel,
        takes_panel,
        tuning_panel,
    )
    from .staging import (
        holds_panel,
        morphology_panel,
        objects_panel,
        pushes_panel,
        walks_panel,
        waypoints_panel,
        weights_panel,
    )
    from .window import cache, menus, preferences_panel, push_gizmo

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
        *holds.CLASSES,
        *pushes.CLASSES,
        *walks.CLASSES,
        *waypoints.CLASSES,
        *takes.CLASSES,
        *properties.CLASSES,
        *operators.CLASSES,
        *staging.OPERATORS,
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
        *waypoints_panel.CLASSES,
        *holds_panel.CLASSES,
        *pushes_panel.CLASSES,
        *push_gizmo.CLASSES,
        *objects_panel.CLASSES,
        *morphology_panel.CLASSES,
        *weights.CLASSES,
        *strength.CLASSES,
        *weights_panel.CLASSES,
        *menus.CLASSES,
        *cache.CLASSES,
    )
