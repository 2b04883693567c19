# SPDX-License-Identifier: GPL-3.0-or-later
"""Play a character: keys that lead it, the mouse that pulls it, and what is kept of that."""

import os
from dataclasses import replace
from functools import lru_cache
from math import atan2, floor, radians

import bpy
import numpy as np
from bpy_extras import view3d_utils
from bpy_extras.io_utils import ExportHelper
from mathutils import Vector

from ...controller.exceptions import PoiseError
from ...controller.geometry.skeleton import SEGMENTS
from ...controller.reference.commands import Script
from ...controller.skills.skill_set import SkillSet
from ..blender import session
from ..blender.chosen import chosen_armature
from ..blender.redrawing import redraw_sidebars, redraw_views
from ..blender.translations import tr
from ..jobs.modal import JobOperator, poll_animated
from ..jobs.play_job import PlayJob
from ..overlays import overlay
from ..rigs import bake_target
from ..scene import walks
from ..settings import takes
from ..settings.properties import shot_options

#: By what a key changes the speed and that to a side [m/s] and the heading [rad], and how far it
#: goes back [s].
SPEED_STEP, ASIDE_STEP, HEADING_STEP, BACK = 0.1, 0.1, radians(15), 1.0
#: The mouse takes hold of what is nearer to it than this [pixels of a standard screen].
REACH = 60
#: Keys that lead it.
_LEADS = {
    *("UP_ARROW", "DOWN_ARROW", "LEFT_ARROW", "RIGHT_ARROW", "SPACE"),
    *("A", "D", "F", "G", "P", "T"),
}
#: Keys by which it performs its acts, and which of them.
_ACTS = {
    key: at
    for at, name in enumerate(
        ("ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")
    )
    for key in (name, f"NUMPAD_{at + 1}")
}
#: Draw at most so often [Hz].
RATE = 60.0

KEYS = (
    "Poise: ↑ ↓ faster, slower   ← → turn   A D step aside   Space walk or stand   F push   "
    "T throw   1-9 perform   Drag pull   Right click go there   G along the curve   "
    "Backspace 1 s back   P pause   Enter keep   Esc discard"
)


class POISE_OT_play(JobOperator, bpy.types.Operator):
    """Play a character."""

    bl_idname = "poise.play"
    bl_label = "Play Character Live"
    bl_description = (
        "Lead the character with the keyboard while physics moves it: arrow keys for speed and "
        "heading, A and D to step to its left and right, Space to walk or stand, 1 to 9 to perform "
        "its acts, F to push, T to throw a ball, the mouse to pull. It falls as When It Falls "
        "says, and once it has got up it goes on as it is told. Enter keeps what was played as a "
        "take, Esc discards it. Nothing in the scene changes before that is baked"
    )
    bl_options = {"REGISTER"}

    #: What Esc reports.
    stopped = "Stopped: nothing of what was played is kept"
    hint = KEYS

    _seen_at = _mouse = _grip = _way = _state = None

    @classmethod
    def poll(cls, context):
        """Needs an animated armature."""
        return poll_animated(cls, context)

    def execute(self, _context):
        """Without a window nobody plays."""
        self.report({"ERROR"}, tr("Who plays needs a window: use a script, as poise direct does."))
        return {"CANCELLED"}

    def make_job(self, context, armature):
        """The job of this operator."""
        settings = context.scene.poise.walk
        options = shot_options(context, armature)
        cycle = (settings.first, settings.last) if settings.use_cycle else None
        walk, skill = walks.WalkOptions(1.0, cycle, ball=settings.ball), None
        if settings.skills:
            path = bpy.path.abspath(settings.skills)
            action, _ = bake_target.unbaked(armature)
            skills = SkillSet.load(path)
            skill = skills.of(armature.name, action and action.name)
            acts = skills.acts_of(skill)
            walk = replace(walk, cycle=skill.cycle, trim=skill.trim, other=skill.other, acts=acts)
            options = replace(options, outside_help=max(options.outside_help, skill.outside_help))
        self._seen_at, self._way = None, _way(context)
        return PlayJob(context.scene, options, walk, skill)

    def is_meant(self, context, event):
        """Lead the character, or pull it. Returns whether the event did that."""
        if not self._job.is_played:
            return False
        if event.value == "PRESS" and self._press(context, event):
            return True
        # No click reaches the sidebar: who changes the scene now would get another take.
        return self._point(context, event) or event.type == "LEFTMOUSE"

    def redraw(self, context):
        """Show where it is now."""
        job = self._job
        if not job.is_played:
            return JobOperator.redraw(self, context)
        seen = job.shown, job.play.sample, job.paused
        if seen == self._seen or not self.may_draw(RATE):
            return False
        self._seen = seen
        self._follow(context)
        self._pull(context)  # where the mouse is now that the view has moved
        redraw_views()  # without panels, which take long
        if (state := job.play.state) != self._state:
            self._state = state
            redraw_sidebars()
        return True

    def finished(self):
        """Keep it as a take, and report the outcome."""
        shot = self._job.shot
        name, recording = takes.keep(shot.scene, shot.armature).label, shot.recording
        seconds = shot.reading.motion.duration
        if self._job.differs:
            self.report(
                {"WARNING"},
                tr(f"'{name}' is not what was played: the scene was changed meanwhile"),
            )
        elif recording.up_at is not None:
            self.report(
                {"INFO"}, tr(f"Played {seconds:.1f} s, kept as '{name}': it fell, and got up again")
            )
        elif self._job.play.fell or not recording.success:
            seconds = seconds if recording.stood is None else recording.fell_at
            self.report({"WARNING"}, tr(f"It fell after {seconds:.1f} s, kept as '{name}'"))
        else:
            self.report({"INFO"}, tr(f"Played {seconds:.1f} s, kept as '{name}'"))

    # --- Keys -------------------------------------------------------------------------------------

    def _press(self, context, event):
        """Do what a key means. Returns whether it means anything."""
        job, kind = self._job, event.type
        play = job.play
        if event.ctrl or event.shift or event.alt or event.oskey:
            return False
        if event.is_repeat and kind not in {"UP_ARROW", "DOWN_ARROW"}:
            return True
        if (kind in _LEADS or kind in _ACTS) and (play.fell or job.goes_back):
            return True
        if kind == "UP_ARROW":
            if play.stands:
                play.wants(stands=False)
            else:
                play.wants(speed=_stepped(play.speed, SPEED_STEP))
        elif kind == "DOWN_ARROW":
            slower = _stepped(play.speed, -SPEED_STEP)
            play.wants(speed=slower, stands=play.stands or play.speed <= play.slowest)
        elif kind in {"LEFT_ARROW", "RIGHT_ARROW"}:
            step = HEADING_STEP if kind == "LEFT_ARROW" else -HEADING_STEP
            play.wants(heading=_stepped(play.heading, step))
        elif kind in {"A", "D"}:
            play.wants(aside=_stepped(play.aside, ASIDE_STEP if kind == "A" else -ASIDE_STEP))
        elif kind == "SPACE":
            play.wants(stands=not play.stands or bool(play.aside))
        elif kind in _ACTS:
            self._perform(_ACTS[kind])
        elif kind in {"F", "T"}:
            self._hit(context, kind == "T")
        elif kind == "G":
            self._go(context)
        elif kind == "P":
            job.paused = not job.paused
            return True
        elif kind == "BACK_SPACE":
            job.rewind(BACK)
            return True
        elif kind in {"RET", "NUMPAD_ENTER"}:
            job.keep()
            context.workspace.status_text_set(tr("Poise simulates the take: Esc discards it"))
            return True
        else:
            return False
        job.paused = False
        return True

    def _perform(self, number):
        """Have it perform one of its acts."""
        play = self._job.play
        if number >= len(play.acts):
            self.report(
                {"WARNING"},
                tr(
                    f"There is no act {number + 1}: add actions to the list of acts, or choose "
                    "skills that have some"
                ),
            )
            return
        try:
            play.perform(play.acts[number])
        except PoiseError as error:
            self.report({"ERROR"}, tr(str(error)))

    def _hit(self, context, throws):
        """Push it away from the view, or throw a ball from there."""
        play, view = self._job.play, _view(context)
        if view is None or not play.goes_on:
            return
        ahead = view.data.view_rotation @ Vector((0.0, 0.0, -1.0))
        direction = atan2(ahead.y, ahead.x) - play.yaw
        try:
            if throws:
                play.throw(direction)
            else:
                play.push(context.scene.poise.walk.push, direction)
        except PoiseError as error:
            self.report({"ERROR"}, tr(str(error)))

    def _go(self, context):
        """Go along the curve, or to the object."""
        job = self._job
        if self._way is None:
            self.report(
                {"WARNING"},
                tr("There is nothing to go to: choose a curve as Heading, or select an object"),
            )
            return
        aside = self._aside(context)[:2]
        job.play.goes_along(self._way * job.shot.reading.metres_per_unit - aside)

    # --- The mouse --------------------------------------------------------------------------------

    def _point(self, context, event):
        """Pull, go on pulling, or let go. Returns whether the mouse did that."""
        job = self._job
        if job.pull is not None:
            if event.type == "LEFTMOUSE" and event.value == "RELEASE":
                job.pull = None
                return True
            if event.type == "MOUSEMOVE":
                self._mouse = event.mouse_x, event.mouse_y
                return True
            return False
        if event.value != "PRESS":
            return False
        if event.type == "RIGHTMOUSE":
            return self._send(context, event)
        return event.type == "LEFTMOUSE" and (self._grab(context, event) or self._toss(context))

    def _send(self, context, event):
        """Send it to where the floor is under the mouse. Returns whether that is anywhere."""
        view, job, mouse = _view(context), self._job, (event.mouse_x, event.mouse_y)
        if view is None or not view.holds(mouse) or job.goes_back or job.play.fell:
            return False
        unit, place = job.shot.reading.metres_per_unit, view.place(mouse)
        origin = view3d_utils.region_2d_to_origin_3d(view.region, view.data, place)
        ray = view3d_utils.region_2d_to_vector_3d(view.region, view.data, place)
        down = job.play.character.ground / unit - origin.z
        if ray.z * down <= 0:
            self.report({"WARNING"}, tr("There is no floor: click on it below the horizon"))
            return True
        there = np.array(origin + down / ray.z * ray) * unit - self._aside(context)
        job.play.goes_to(there[:2])
        job.paused = False
        return True

    def _grab(self, context, event):
        """Take hold of what is under the mouse. Returns whether there is anything."""
        view, job, self._mouse = _view(context), self._job, (event.mouse_x, event.mouse_y)
        if view is None or not view.holds(self._mouse):
            return False
        unit = job.shot.reading.metres_per_unit
        best = REACH * context.preferences.system.ui_scale, None
        for segment, centre in zip(SEGMENTS, job.play.centres[-1], strict=True):
            seen = view3d_utils.location_3d_to_region_2d(
                view.region, view.data, (centre + self._aside(context)) / unit
            )
            if seen is not None:
                best = min(best, ((seen - view.place(self._mouse)).length, segment))
        if best[1] is None:
            return False
        job.pull, self._grip = (best[1], np.zeros(3)), np.zeros(3)
        self._pull(context)
        self._grip = job.aim() - job.held()  # where it is held: nothing pulls yet
        self._pull(context)
        return True

    def _toss(self, context):
        """Throw a ball, by a click beside the body. Returns whether that is in the view."""
        view, job = _view(context), self._job
        if view is None or not view.holds(self._mouse) or job.goes_back or job.play.fell:
            return False
        self._hit(context, True)
        job.paused = False
        return True

    def _pull(self, context):
        """Draw what is held to where the mouse is, as far away as it is itself."""
        view, job = _view(context), self._job
        if view is None or job.pull is None:
            return
        unit, aside = job.shot.reading.metres_per_unit, self._aside(context)
        depth = (job.held() - job.gone() + aside) / unit  # of what is drawn
        there = view3d_utils.region_2d_to_location_3d(
            view.region, view.data, view.place(self._mouse), depth
        )
        job.pull = job.pull[0], np.array(there) * unit - aside - self._grip

    def _aside(self, context):
        """(3,) [m] how far from where it is it is drawn."""
        return overlay.displacement(context.scene.poise, self._job.shown.reading.motion)

    def _follow(self, context):
        """Move the view along."""
        job, view = self._job, _view(context)
        place = job.play.centres[-1][0] * [1.0, 1.0, 0.0] / job.shot.reading.metres_per_unit
        before, self._seen_at = self._seen_at, place
        follows = view is not None and context.scene.poise.walk.follow
        job.drawn = job.play.centres[-1][0] if follows else None
        if follows and before is not None:
            moved = place - before
            view.data.view_location = [
                a + b for a, b in zip(view.data.view_location, moved, strict=True)
            ]
            view.data.update()  # else the mouse is seen as before, and pulls back


class _View:
    """The 3D view in which somebody plays."""

    def __init__(self, area, region):
        self.region, self.data = region, area.spaces.active.region_3d
        self._over = [one for one in area.regions if one.type != "WINDOW"]

    def place(self, mouse):
        """Where a place in the window is in it [pixels]."""
        return Vector((mouse[0] - self.region.x, mouse[1] - self.region.y))

    def holds(self, mouse):
        """Whether a place in the window is in it, and in nothing that lies over it, as the sidebar
        does."""
        return _holds(self.region, mouse) and not any(_holds(one, mouse) for one in self._over)


def _holds(region, mouse):
    """Whether a place in the window is in a region."""
    x, y = mouse[0] - region.x, mouse[1] - region.y
    return 0 <= x < region.width and 0 <= y < region.height


def _view(context):
    """The _View of the area in which the operator began; None if that shows something else now."""
    area = context.area
    if area is None or area.type != "VIEW_3D":
        return None
    region = next((one for one in area.regions if one.type == "WINDOW"), None)
    return None if region is None else _View(area, region)


def _way(context):
    """Where somebody who plays may send the character by a key, (n, 2) places in scene units: along
    the curve of Heading, or to what is selected beside it; None without either."""
    curve = context.scene.poise.walk.heading
    if curve is not None:
        return walks.plan_of(context.scene, curve.name)
    others = [thing for thing in context.selected_objects if thing.type != "ARMATURE"]
    return (
        np.array([thing.matrix_world.translation[:2] for thing in others[:1]]) if others else None
    )


def _stepped(value, step):
    """The next multiple of a step in its direction."""
    return step * (floor(value / step + 1e-6) + 1)


class POISE_OT_save_script(ExportHelper, bpy.types.Operator):
    """Write what was played as a script."""

    bl_idname = "poise.save_script"
    bl_label = "Save Script of Take"
    bl_description = (
        "Write what the chosen take was told as a script: bake --script and direct do the same "
        "again, to the last bit, or with what you change in it"
    )
    bl_options = {"REGISTER"}

    filename_ext = ".json"
    filter_glob: bpy.props.StringProperty(
        name="Filter", description="Files to list", default="*.json", options={"HIDDEN"}
    )

    @classmethod
    def poll(cls, context):
        """Needs a take that was played."""
        if played(context) is None:
            cls.poll_message_set(tr("No take that was played is chosen: play one"))
            return False
        return True

    def execute(self, context):
        """Write it."""
        walk = played(context)
        try:
            Script(walk.seconds, walk.commands, True).save(self.filepath)
        except OSError as error:
            self.report({"ERROR"}, tr(f"'{self.filepath}' cannot be written: {error.strerror}."))
            return {"CANCELLED"}
        self.report({"INFO"}, tr(f"Saved to '{self.filepath}'"))
        return {"FINISHED"}


def learned(context, armature):
    """The StateMachine of the skills that the panel has for an armature, and why there is none;
    None each of no skills."""
    path = bpy.path.abspath(context.scene.poise.walk.skills)
    if not path:
        return None, None
    changed = os.stat(path).st_mtime_ns if os.path.isfile(path) else None
    action, _ = bake_target.unbaked(armature)
    return _learned(path, changed, armature.name, action and action.name)


@lru_cache(maxsize=4)  # a panel is drawn often, and a file of skills may be long
def _learned(path, _changed, armature, action):
    try:
        return SkillSet.load(path).of(armature, action).machine, None
    except PoiseError as error:
        return None, str(error)


def played(context):
    """The WalkOptions of the result of the chosen armature, if that was played; else None."""
    armature, _ = chosen_armature(context)
    shot = session.result_of(context.scene, armature).shot if armature else None
    walk = shot.options.walk if shot is not None else None
    return walk if walk is not None and walk.played else None
