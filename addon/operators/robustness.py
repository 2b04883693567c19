# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure how hard a character can be hit, on other processes, while the user goes on."""

import contextlib
from functools import partial

import bpy

from ...controller.exceptions import PoiseError
from ...controller.processes.workers import WorkerPool
from ...controller.search.robustness import LimitSearch
from ...controller.simulation.measures import T_MAX
from ..blender import preferences, session
from ..blender.chosen import chosen_armature
from ..blender.redrawing import redraw_sidebars
from ..blender.translations import tr
from ..jobs.job import Job, reading_stages
from ..jobs.modal import JobOperator, poll_animated
from ..plots import limit_plot
from ..settings.properties import shot_options
from ..shots import robustness
from ..shots.shot import Shot

#: Length of a sequence [s].
DURATION = T_MAX


class LimitJob(Job):
    """Read an armature's animation, measure the body and find its limit.

    search: robustness.LimitSearch, once everything is read; None before. What it has measured is
    kept however it ends.
    """

    finds_limit = True

    def __init__(self, scene, options, settings, workers):
        """settings: POISE_PG_robustness, which is read now and not again. workers: processes."""
        shot = Shot(scene, options)
        super().__init__(shot, (*reading_stages(shot), ("finding the limit", self._measure())))
        self._settings = robustness.limit_settings(settings)
        self._workers = workers
        self.search = None

    @property
    def owns_scene(self):
        """Once everything is read, the scene is free again."""
        return self.doing == "reading"

    @property
    def waits(self):
        """The workers do it."""
        return self.search is not None

    @property
    def outcome(self):
        """robustness.Outcome of what is measured so far; None before there is anything."""
        measured = self.search is not None and self.search.rates
        return self.search.outcome() if measured else None

    def _measure(self):
        """The stage that measures; leaves no process behind, however it ends."""
        with contextlib.ExitStack() as leave:
            pool = WorkerPool(self._workers)
            leave.callback(pool.terminate)
            problem = self.shot.problem(duration=DURATION)
            self.search = LimitSearch(problem, self.shot.gains, self._settings, pool)
            leave.callback(self.search.stop)
            while not self.search.poll():
                left = self.search.time_left()
                yield 0.0 if left is None else self.search.wall / (self.search.wall + left + 1e-9)
        if not self.search.rates:
            raise PoiseError(
                "The budget was over before the first sequences were: give it more time."
            )

    @property
    def text(self):
        """What is going on, for the progress bar."""
        if self.search is None:
            return super().text if self.doing == "reading" else f"{self.doing.capitalize()}…"
        doing = self.search.doing
        done, count = self.search.progress
        return f"{doing[:1].upper() + doing[1:]}: {done} of {count}"

    @property
    def shown(self):
        """Changes when the panel does."""
        wall = int(self.search.wall) if self.search is not None else 0
        return self.text, round(self.progress, 2), wall

    def cancel(self):
        """Stop, leave the scene as it was, and keep what is measured."""
        super().cancel()
        self._keep()

    def _finish(self):
        session.end(self)
        self._keep()

    def _keep(self):
        if self.outcome is not None:
            session.keep_limit(self.scene_name, self.armature_name, self.outcome)


class POISE_OT_find_limit(JobOperator, bpy.types.Operator):
    """Measure how hard a character can be hit."""

    bl_idname = "poise.find_limit"
    bl_label = "Find Limit of Robustness"
    bl_description = (
        "Measure how hard this character can be hit with the gains in use: sequences of pushes or "
        "spheres of rising magnitude, then single ones from all round. Blender stays free. "
        "Esc stops, and keeps what is measured"
    )

    hint = "Poise is finding the limit: Esc stops, and keeps what is measured"

    _shown = None

    @classmethod
    def poll(cls, context):
        """Needs an animated armature."""
        return poll_animated(cls, context)

    def make_job(self, context, armature):
        """The job of this operator."""
        settings = context.scene.poise
        options = shot_options(context, armature)
        workers = preferences.workers(settings.tuning)
        return LimitJob(context.scene, options, settings.robustness, workers)

    def modal(self, context, event):
        """One event; where an animation plays, Esc stops that."""
        if event.type == "ESC" and context.screen.is_animation_playing:
            return {"PASS_THROUGH"}
        return super().modal(context, event)

    def redraw(self, _context):
        """Draw no more than has changed: the user's own work needs the time."""
        if self._job.shown != self._shown:
            redraw_sidebars()
        self._shown = self._job.shown

    @property
    def stopped(self):
        """What Esc reports."""
        outcome = self._job.outcome
        return robustness.outcome_words(outcome) if outcome else "Stopped: nothing was measured yet"

    def finished(self):
        """Report what was found."""
        outcome = self._job.outcome
        complete = outcome.found and outcome.ended == "measured"
        self.report({"INFO"} if complete else {"WARNING"}, tr(robustness.outcome_words(outcome)))


class POISE_OT_show_limit(bpy.types.Operator):
    """Show the plot of what is withstood, as an image."""

    bl_idname = "poise.show_limit"
    bl_label = "Show Plot of Robustness"
    bl_description = (
        "Make an image of what is withstood in each direction, and show it in an Image Editor, "
        "from which it can be saved"
    )
    bl_options = {"UNDO"}

    @classmethod
    def poll(cls, context):
        """Needs single disturbances that were measured."""
        armature, reason = chosen_armature(context)
        outcome = armature and session.result_of(context.scene, armature).limit
        if armature is None:
            cls.poll_message_set(tr(reason))
        elif outcome is None or not outcome.single:
            cls.poll_message_set(tr("Nothing is measured by direction yet: use Find Limit"))
        else:
            return True
        return False

    def execute(self, context):
        """Make the image, and find it a place."""
        armature, _ = chosen_armature(context)
        image = limit_plot.as_image(session.result_of(context.scene, armature).limit)
        area = image_editor(context)
        if area is not None:
            area.spaces.active.image = image
            # A new window has no size before it is drawn.
            bpy.app.timers.register(partial(fit, image.name), first_interval=0.5)
        self.report({"INFO"}, tr(f"The plot is the image '{image.name}'"))
        return {"FINISHED"}


def fit(name):
    """Show all of an image, wherever it is shown."""
    for window in bpy.context.window_manager.windows:
        for area in window.screen.areas:
            image = area.spaces.active.image if area.ui_type == "IMAGE_EDITOR" else None
            if image is not None and image.name == name:
                region = next(region for region in area.regions if region.type == "WINDOW")
                ratio = min(region.width, region.height) / (1.04 * limit_plot.SIZE)
                with bpy.context.temp_override(window=window, area=area, region=region):
                    bpy.ops.image.view_all()  # its own fitting goes by halves
                    bpy.ops.image.view_zoom_ratio(ratio=ratio)


def image_editor(context):
    """An Image Editor that is open, or one in a new window; None without a display."""
    if bpy.app.background:
        return None
    manager = context.window_manager
    areas = (area for window in manager.windows for area in window.screen.areas)
    area = next((area for area in areas if area.ui_type == "IMAGE_EDITOR"), None)
    if area is None:
        bpy.ops.wm.window_new()
        area = manager.windows[-1].screen.areas[0]
        area.ui_type = "IMAGE_EDITOR"
    return area
