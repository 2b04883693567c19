# SPDX-License-Identifier: GPL-3.0-or-later
"""What all operators share that run a job in the window."""

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import bpy

from ...controller.exceptions import PoiseError
from ..blender import session
from ..blender.chosen import chosen_armature
from ..blender.redrawing import Parts, redraw, redraw_sidebars
from ..blender.translations import tr
from ..rigs import source_values
from ..rigs.sampling import is_constrained
from ..shots.outdated import in_full, settings_of
from ..shots.shot import Shot

#: Work this long in each turn [s], and ask for the next turn so often [s]: between two turns the
#: window draws, and the user has a say.
BUDGET = 0.010
PERIOD = 0.005
#: Look so often [s] at what other processes have done.
LOOK = 0.02
#: Draw what moves, and mere progress, at most so often [Hz], and in no more than this share of the
#: time: without a graphics card a drawing takes longer than the work of a turn.
RATE, PROGRESS_RATE, SHARE = 25.0, 5.0, 0.25

#: Moving about in the window harms nothing, even while the scene is being read.
_HARMLESS = ("MOUSEMOVE", "INBETWEEN_MOUSEMOVE", "WINDOW_DEACTIVATE", "MIDDLEMOUSE")
_HARMLESS_KINDS = ("WHEEL", "TRACKPAD", "NUMPAD_", "NDOF_")


class StatusBar:
    """What an operator says in the status bar, which is one of the workspace, and so goes with the
    user into another one."""

    def __init__(self, context: "bpy.types.Context", text: str) -> None:
        self._text = text
        self._say(context)

    def _say(self, context: "bpy.types.Context") -> None:
        self._workspace = context.workspace
        self._workspace.status_text_set(tr(self._text))

    def follow(self, context: "bpy.types.Context") -> None:
        """Say it where the user is now."""
        if context.workspace != self._workspace:
            self.clear()
            self._say(context)

    def clear(self) -> None:
        """Say nothing any more."""
        # It is that of the context which Blender clears, whatever it is asked of.
        context = bpy.context.temp_override(workspace=self._workspace)
        with contextlib.suppress(ReferenceError), context:  # the workspace was deleted
            self._workspace.status_text_set(None)


def poll_idle(cls: Any, context: "bpy.types.Context") -> bool:
    """Whether an armature can be told and nothing runs; else the reason greys the button."""
    armature, reason = chosen_armature(context)
    why = session.busy() or ("" if armature else reason)
    if why:
        cls.poll_message_set(tr(why))
    return not why


def poll_animated(cls: Any, context: "bpy.types.Context") -> bool:
    """Whether the chosen armature can be read now."""
    if not poll_idle(cls, context):
        return False
    armature, _ = chosen_armature(context)
    why = unreadable(armature)
    if why:
        cls.poll_message_set(tr(why))
    return not why


def unreadable(armature: "bpy.types.Object") -> str:
    """Why an armature cannot be read now, without a full stop; empty if it can."""
    animation = armature.animation_data
    if armature.mode == "EDIT":
        return f"'{armature.name}' is in Edit Mode: leave it first"
    action = animation and animation.action
    if action or source_values.others(animation) or is_constrained(armature):
        return ""
    return f"'{armature.name}' has no animation: give it an action"


class JobOperator:
    """An operator that works on a job: at once as a function, in slices in the window.

    Children define `make_job(context, armature)` and `finished()`.
    """

    if TYPE_CHECKING:  # the children's, and Blender's
        make_job: Callable[..., Any]
        finished: Callable[[], None]
        report: Callable[[set[str], str], None]

    #: What Esc reports.
    stopped = "Stopped: the scene is as it was"
    #: What the status bar says meanwhile.
    hint = "Poise: Esc to stop"

    _timer: Any = None
    _status: StatusBar | None = None
    _parts: Any = None
    _job: Any = None
    _whose: Any = None
    _seen: Any = None
    _fired = _turned = _drawn = _next = 0.0
    _draws = False

    def execute(self, context: "bpy.types.Context") -> set[str]:
        """Do everything at once."""
        try:
            self._begin(context)
            self._job.run()
            return self._succeed(context)
        except PoiseError as error:
            return self._fail(str(error))
        finally:
            self._job = None

    def invoke(self, context: "bpy.types.Context", _event: "bpy.types.Event") -> set[str]:
        """Begin, and go on in `modal`."""
        try:
            self._begin(context)
        except PoiseError as error:
            return self._fail(str(error))
        manager = context.window_manager
        self._timer = manager.event_timer_add(PERIOD, window=context.window)
        manager.modal_handler_add(self)
        self._status, self._parts = StatusBar(context, self.hint), Parts()
        redraw()
        return {"RUNNING_MODAL"}

    def modal(self, context: "bpy.types.Context", event: "bpy.types.Event") -> set[str]:
        """One event of the window: a turn of the timer works on the job."""
        result = {"CANCELLED"}  # so it is too if something is raised
        try:
            result = self._turn(context, event)
        finally:
            if result <= {"FINISHED", "CANCELLED"}:
                # Blender remembers the last 32 operators, which need not keep their shots alive.
                self._job = None
        return result

    def _turn(self, context: "bpy.types.Context", event: "bpy.types.Event") -> set[str]:
        job = self._job
        if session.job() is not job:  # stopped by a button
            return self._stop(context)
        if event.type == "ESC" and event.value == "PRESS":
            job.cancel()
            return self._stop(context)
        if event.type != "TIMER":
            if self.is_meant(context, event):
                return {"RUNNING_MODAL"}
            alone = job.owns_scene and not _harmless(context, event)
            return {"RUNNING_MODAL" if alone else "PASS_THROUGH"}
        if not self._is_own() or not self._begin_turn():
            return {"PASS_THROUGH"}
        if self._status is not None:
            self._status.follow(context)
        if self.redraw(context):  # which takes longer than a turn's work: that is for the next one
            return {"PASS_THROUGH"}
        try:
            done = job.step(BUDGET)
        except PoiseError as error:
            self._leave(context)
            return self._fail(str(error))
        except BaseException:
            self._leave(context)
            raise
        if not done:
            return {"PASS_THROUGH"}
        self._leave(context)
        return self._succeed(context)

    def is_meant(self, _context: "bpy.types.Context", _event: "bpy.types.Event") -> bool:
        """Do what an event means for the job. Returns whether it means anything."""
        return False

    def _is_own(self) -> bool:
        """Whether an event of a timer is of this operator's, which has fired since the last one:
        Blender's buttons and reports have timers, too, whose events come in the same turn."""
        fired, self._fired = self._fired, self._timer.time_duration
        return self._fired != fired

    def redraw(self, _context: "bpy.types.Context") -> bool:
        """Show what the last turn has changed: the progress, and the ghost where there is one.
        Returns whether that is drawn now."""
        job = self._job
        seen, still = (job.doing, job.progress), job.ghost() is None
        if seen == self._seen or not self.may_draw(PROGRESS_RATE if still else RATE):
            return False
        self._seen = seen
        if still:
            redraw_sidebars()
        else:
            self._parts.draw()
        return True

    def _begin_turn(self) -> bool:
        """Whether it is time for a turn. What was drawn in the one before took until now."""
        now = time.perf_counter()
        if self._draws:
            self._next, self._draws = self._drawn + (now - self._drawn) / SHARE, False
        if self._job.waits and now < self._turned + LOOK:
            return False
        self._turned = now
        return True

    def may_draw(self, rate: float = RATE) -> bool:
        """Whether it is time to draw again, at most so often [Hz]."""
        now = time.perf_counter()
        if now < max(self._next, self._drawn + 1 / rate):
            return False
        self._drawn, self._draws = now, True
        return True

    def cancel(self, context: "bpy.types.Context") -> None:
        """Blender ends the operator itself, with its window or its file."""
        self._job.cancel()
        self._leave(context)
        self._job = None

    def _begin(self, context: "bpy.types.Context") -> None:
        armature, reason = chosen_armature(context)
        if armature is None:
            raise PoiseError(f"{reason}.")
        self._whose = session.uids(context.scene, armature)
        job = self.make_job(context, armature)
        unread = job.shot.reading is None and isinstance(job.shot, Shot)
        if unread and job.settings is None:  # else the job knows them
            settings = settings_of(context.scene, armature, job.shot.options)
            job.settings = in_full(settings, armature)
        job.start()
        self._job = job

    def _leave(self, context: "bpy.types.Context") -> None:
        """Leave nothing behind in the window."""
        if self._timer is not None:
            context.window_manager.event_timer_remove(self._timer)
            self._timer = None
        if self._status is not None:
            self._status.clear()
        redraw()

    def _stop(self, context: "bpy.types.Context") -> set[str]:
        self._leave(context)
        self.report({"INFO"}, tr(self.stopped))
        return {"CANCELLED"}

    def _fail(self, message: str) -> set[str]:
        if self._whose is not None:
            session.complain(self._whose, message)
        redraw()
        self.report({"ERROR"}, tr(message))
        return {"CANCELLED"}

    def _succeed(self, context: "bpy.types.Context") -> set[str]:
        self.finished()
        redraw()
        return {"FINISHED"}


def _harmless(context: "bpy.types.Context", event: "bpy.types.Event") -> bool:
    """Whether an event cannot change the scene: moving about, and clicks in a sidebar, where
    Poise's Stop button is."""
    if event.type in _HARMLESS or event.type.startswith(_HARMLESS_KINDS):
        return True
    if event.type != "LEFTMOUSE":
        return False
    regions = (
        region
        for area in context.window.screen.areas
        if area.type == "VIEW_3D"
        for region in area.regions
        if region.type == "UI"
    )
    return any(
        0 <= event.mouse_x - region.x < region.width
        and 0 <= event.mouse_y - region.y < region.height
        for region in regions
    )
