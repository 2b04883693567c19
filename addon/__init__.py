# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything of Poise that touches Blender.

Importing this package imports nothing of Blender's, so that one module of it can be used alone.
"""


def register():
    """Register the classes, the settings of a scene and the command `blender --command poise`; as
    Blender starts, once its window is there."""
    from .blender import threads

    global _start
    if threads.is_start():
        _start = threads.Start(_import, _register)
    else:
        _register()


def _import():
    _classes()
    _modules()


def _register():
    import bpy

    from .blender import translations

    global _start
    _start = None
    for cls in _classes():
        translations.separate(cls)
        bpy.utils.register_class(cls)
    for module in _modules():
        module.register()
    global _handle
    _handle = bpy.utils.register_cli_command("poise", _command)


def unregister():
    """Undo `register`: stop what runs and forget all results."""
    import bpy

    global _start
    if _start is not None:
        _start.give_up()
        _start = None
        return

    from .plots import tuning_plot

    bpy.utils.unregister_cli_command(_handle)
    for module in reversed(_modules()):
        module.unregister()
    tuning_plot.unregister()
    for cls in reversed(_classes()):
        bpy.utils.unregister_class(cls)


#: The command in Blender's list, and what waits for Blender's window.
_handle = _start = None


def _command(arguments):
    """What `blender --command poise …` does with its arguments; the exit status. It is imported
    here, since most who start Blender never need it."""
    from .command.command_line import run_in_blender

    return run_in_blender(arguments)


def _modules():
    """The modules with something to register beside classes, which are there by then."""
    from .blender import evaluation, session, translations
    from .overlays import (
        contact_bar,
        overlay,
        overlay_bar,
        overlay_marks,
        overlay_paths,
        play_marks,
    )
    from .scene import (
        holds,
        marked,
        mixture,
        objects,
        pushes,
        strength,
        walks,
        waypoints,
        weights,
    )
    from .settings import properties, takes
    from .window import menus

    return (
        properties,
        objects,
        weights,
        strength,
        mixture,
        marked.GET_UPS,
        marked.ACTS,
        walks,
        pushes,
        waypoints,
        holds,
        takes,
        evaluation,
        session,
        overlay,
        overlay_marks,
        overlay_paths,
        overlay_bar,
        contact_bar,
        play_marks,
        translations,
        menus,
    )


def _classes():
    from . import operators, staging
    from .scene import (
        holds,
        mixture,
        morphology,
        objects,
        pushes,
        strength,
        walks,
        waypoints,
        weights,
    )
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
        marked,
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
        *mixture.CLASSES,
        *weights_panel.CLASSES,
        *marked.CLASSES,
        *menus.CLASSES,
        *cache.CLASSES,
    )
