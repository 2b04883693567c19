# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of panels that *Full* and *Quick* show alike."""

import contextlib
from typing import TYPE_CHECKING, Any

from ...controller.checks.verdict import COMPARED
from ...controller.exceptions import GainsError, MotionError
from ..blender import session
from ..blender.chosen import chosen_frames
from ..blender.translations import tr
from ..jobs.modal import unreadable
from ..operators import (
    POISE_OT_cancel,
    POISE_OT_delete_bake,
    POISE_OT_discard_rectified,
    POISE_OT_keep_rectified,
    POISE_OT_show,
    POISE_OT_show_flaw,
    POISE_OT_simulate_together,
)
from ..operators.simulate import others_of
from ..rigs import bake_target, sampling, strips
from ..scene import bodies, contacts
from ..settings.properties import shot_options
from ..shots import outdated
from ..shots.shot import Shot, warnings_of
from .rows import draw_findings, fact, sentence

if TYPE_CHECKING:
    import bpy


def draw_range(
    layout: "bpy.types.UILayout", context: "bpy.types.Context", armature: "bpy.types.Object | None"
) -> None:
    """Which frames."""
    settings = context.scene.poise
    layout.row().prop(settings, "frames", expand=True)
    if settings.frames == "CUSTOM":
        sub = layout.column(align=True)
        sub.prop(settings, "first_frame", text="First")
        sub.prop(settings, "last_frame", text="Last")
    else:
        fact(layout, "Range", _range_words(context, armature))
    own = bodies.own_collider(context.scene, armature)
    if own:
        sentence(layout, context, own, "ERROR")
    frames = _range(context, armature)
    if frames is not None:
        seconds = _seconds(context, frames)
        slow = bodies.slowness(context.scene, armature, seconds, settings.rate)
        if slow:
            sentence(layout, context, slow, "TIME")


def draw_together(
    layout: "bpy.types.UILayout", context: "bpy.types.Context", armature: "bpy.types.Object | None"
) -> None:
    """The button for several armatures, where others are selected, too."""
    others = others_of(context, armature) if armature else ()
    if others:
        text = tr(f"Simulate {1 + len(others)} Together")
        layout.operator(POISE_OT_simulate_together.bl_idname, text=text, icon="COMMUNITY")
        frames = _range(context, armature)
        if frames is not None:
            settings, count = context.scene.poise, 1 + len(others)
            slow = bodies.slowness_together(count, _seconds(context, frames), settings.rate)
            if slow:
                sentence(layout, context, slow, "TIME")


def draw_scale(layout: "bpy.types.UILayout", shot: Shot) -> None:
    """How long a unit of the scene is, and whether that is guessed."""
    reading = shot.reading
    fact(layout, "Scale", f"1 unit = {reading.metres_per_unit:.4g} m")
    if reading.unit_guessed:
        fact(layout, "", "guessed by the size")


def _range_words(context: "bpy.types.Context", armature: "bpy.types.Object | None") -> str:
    """The frames that will be simulated."""
    frames, scene = _range(context, armature), context.scene
    if frames is None:
        return "–"
    preview = scene.poise.frames == "SCENE" and scene.use_preview_range
    first, last = frames
    return f"{first:g} to {last:g} (preview)" if preview else f"{first:g} to {last:g}"


def _range(
    context: "bpy.types.Context", armature: "bpy.types.Object | None"
) -> tuple[float, float] | None:
    """First and last frame that will be simulated; None if there are none."""
    chosen = chosen_frames(context.scene)
    if chosen is not None:
        return chosen
    if armature is None or armature.animation_data is None:
        return None
    try:
        return sampling.animated_range(armature, *bake_target.unbaked(armature))
    except MotionError:
        return None


def _seconds(context: "bpy.types.Context", frames: tuple[float, float]) -> float:
    """How long [s] frames from a first one to a last one last."""
    render = context.scene.render
    return (frames[1] - frames[0]) * render.fps_base / render.fps


def draw_unreadable(
    layout: "bpy.types.UILayout", context: "bpy.types.Context", armature: "bpy.types.Object | None"
) -> None:
    """Why there is nothing to simulate."""
    why = unreadable(armature) if armature else ""
    if why:
        sentence(layout, context, f"{why}.", "INFO")


def draw_choice(
    layout: "bpy.types.UILayout", context: "bpy.types.Context", shot: Shot | None
) -> None:
    """What Automatic chose for a shot, and why. shot: None if there is none."""
    if shot is not None and shot.choice is not None:
        icon = {"balance": "CON_FLOOR", "rectify": "MOD_SMOOTH"}[shot.choice.method]
        sentence(layout, context, shot.choice.why, icon)


def draw_job(layout: "bpy.types.UILayout", job: Any) -> None:
    """Progress of the job at work (jobs.job.Job), and the button that stops it."""
    row = layout.row(align=True)
    row.scale_y = 1.5
    row.progress(factor=job.progress, text=tr(job.text))
    rectifies = job.rectifies and job.search is not None
    if rectifies:
        row = layout.row(align=True)
        row.operator(POISE_OT_keep_rectified.bl_idname, text="Keep", icon="CHECKMARK")
        row.operator(POISE_OT_discard_rectified.bl_idname, text="Discard", icon="TRASH")
    else:
        row.operator(POISE_OT_cancel.bl_idname, text="", icon="X")
    row = layout.row()
    row.label(text=tr(job.note), translate=False)
    sub = row.row()
    sub.alignment = "RIGHT"
    balanced = rectifies and job.balanced
    sub.label(
        text="keeps balance" if balanced else "discards" if rectifies else "stops",
        icon="EVENT_ESC",
    )


def draw_start(
    layout: "bpy.types.UILayout",
    operator: "type[bpy.types.Operator]",
    text: str,
    icon: str,
) -> None:
    """The button that begins a job. While one is at work something else stands there: as long as
    the mouse rests on a button Blender leaves it as it was, which is grey, also once it may be
    pressed again."""
    if session.job() is None:
        layout.operator(operator.bl_idname, text=text, icon=icon)
    else:
        layout.progress(factor=0.0, text=tr(text))


def draw_outcome(
    layout: "bpy.types.UILayout", context: "bpy.types.Context", result: session.Result
) -> None:
    """Whether it is a keeper, or stood at least, in a box that tells at a glance."""
    recording, motion = result.recording, result.shot.reading.motion
    box = layout.box()
    last = motion.frame(len(motion) - 1)
    flaws, fell = result.shot.flaws, result.shot.fell_frame is not None
    how = "INFO" if recording.filled else "CANCEL"
    if not recording.success:
        if not fell:  # no search got farther
            sentence(box, context, result.shot.why, how)
    elif result.shot.verdict.keeper:
        text = f"Keeper: {motion.duration:.2f} s, to frame {last:g}"
        sentence(box, context, text, "CHECKMARK")
    else:
        text = f"Stood, but ({motion.duration:.2f} s, to frame {last:g}):"
        sentence(box, context, text, "INFO")

    def sign(flaw: Any) -> str:
        return how if fell and flaw is flaws[0] else "ERROR"

    draw_findings(box, context, flaws, POISE_OT_show_flaw, sign)
    for text, there in (*result.shot.arrivals, *result.shot.grasps):
        sentence(box, context, f"{text}.", "CHECKMARK" if there else "ERROR")
    if result.outside:
        sentence(box, context, f"{result.outside}.", "CON_TRACKTO")
    if result.shot.hit:
        sentence(box, context, f"{result.shot.hit}.", "FORCE_FORCE")
    for text in _ends(result.shot):
        sentence(box, context, text, "INFO")
    compared = COMPARED[result.shot.compared]
    if recording.success and compared:
        sentence(box, context, f"{compared[0].upper()}{compared[1:]}.", "BLANK1")


def _ends(shot: Shot) -> tuple[str, ...]:
    """Sentences on where the bake of a shot ends, as long as there is one."""
    ends = shot.ends
    bakes = bake_target.bakes_of(shot.armature) if ends else ()
    there = any(bake_target.mark_of(*one)["number"] == shot.baked.number for one in bakes)
    return ends if there else ()


def draw_warnings(
    layout: "bpy.types.UILayout", context: "bpy.types.Context", result: session.Result
) -> None:
    """What of the scene is not followed, and in which frames nothing is animated."""
    still = result.shot.reading.still
    for warning in (*warnings_of(context.scene), *([still] if still else [])):
        sentence(layout, context, warning, "INFO")


def draw_outdated(
    layout: "bpy.types.UILayout",
    context: "bpy.types.Context",
    armature: "bpy.types.Object",
    result: session.Result,
) -> None:
    """What has changed since."""
    if contacts.outdated(result.shot):
        sentence(layout, context, "The contacts have changed: simulate again.", "FILE_REFRESH")
    with contextlib.suppress(GainsError):
        options = shot_options(context, armature)
        now = outdated.settings_of(context.scene, armature, options)
        names = outdated.changed(result.settings, now)
        if "Action" not in names:  # another one has other keys
            names += _source_changed(context, armature, result)
        if names:
            sentence(layout, context, "Changed since then, so simulate again:", "FILE_REFRESH")
            sentence(layout, context, ", ".join(map(tr, names)), "BLANK1")


def _source_changed(
    context: "bpy.types.Context", armature: "bpy.types.Object", result: session.Result
) -> list[str]:
    """The names of what has changed of the source; nobody looks while something runs."""
    if result.lately is None or result.lately.settings is not result.settings:
        result.lately = outdated.Lately(result.settings)
    runs = context.screen.is_animation_playing or session.job() is not None
    return result.lately.known if runs else result.lately.names(armature)


def draw_ghost(layout: "bpy.types.UILayout", settings: "bpy.types.PropertyGroup") -> None:
    """How the ghost is shown."""
    layout.row().prop(settings, "ghost", expand=True)
    if settings.ghost == "BESIDE":
        row = layout.row()
        row.use_property_split = False
        row.prop(settings, "ghost_distance")


def draw_switch(
    layout: "bpy.types.UILayout", context: "bpy.types.Context", armature: "bpy.types.Object"
) -> None:
    """The switch between source and bake, if there is a bake."""
    animation = strips.shown(armature)
    baked = bake_target.mark_of(*animation) is not None
    bakes = bake_target.bakes_of(armature)
    if not bakes:
        return
    row = layout.row(align=True)
    for which, label, pressed in (("source", "Source", not baked), ("baked", "Baked", baked)):
        row.operator(POISE_OT_show.bl_idname, text=label, depress=pressed).which = which
    if len(bakes) == 1:
        row.operator(POISE_OT_delete_bake.bl_idname, text="", icon="TRASH")
        action = animation[0].name if animation[0] else tr("NLA strips")
        fact(layout, "Action", action, translate=False)
        return
    column = layout.column(align=True)
    for number, (action, slot) in enumerate(bakes, 1):
        row = column.row(align=True)
        name = action.name if bake_target.mark_of(action, slot)["whole"] else slot.name_display
        button = row.operator(
            POISE_OT_show.bl_idname,
            text=name,
            translate=False,
            depress=(action, slot) == animation,
        )
        button.which, button.bake = "baked", number
        row.operator(POISE_OT_delete_bake.bl_idname, text="", icon="TRASH").bake = number
