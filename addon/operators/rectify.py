# SPDX-License-Identifier: GPL-3.0-or-later
"""Rectify a shot on other processes, while the user goes on; choose whether that is needed."""

import contextlib
import time
from dataclasses import replace
from functools import partial

import bpy

from ...controller.exceptions import CheckpointError, PoiseError, SimulationError
from ...controller.processes.workers import WorkerPool
from ...controller.search.optimization import load_cma
from ...controller.search.rectification import Rectification
from ..blender import checkpoints, preferences, session
from ..blender.chosen import chosen_armature
from ..blender.locks import claimed
from ..blender.redrawing import redraw, redraw_sidebars, redraw_views
from ..blender.translations import tr
from ..jobs.job import Job, SimulateJob, in_background, reading_stages, simulating
from ..jobs.modal import JobOperator, poll_animated, poll_idle
from ..settings import method
from ..settings.properties import shot_options
from ..shots import rectify
from ..shots.shot import Shot
from ..shots.tuning import clock
from .bake import poll_rectified

#: The ghost plays, and rests at the end for so long [s].
_REST = 0.5
_TAKEN = (
    "Another Blender rectifies this very clip with the same settings: wait for it, or choose "
    "another seed."
)


class RectifyJob(SimulateJob):
    """Read an armature's animation, measure the body and rectify it, or choose what will do.

    search: rectification.Rectification, once it has begun; None before. resumed_at: moment [s] at
    which an earlier search was taken up again; None if it began anew. chooses: whether it rectifies
    only what needs it. balanced: whether balance alone was tried before, which then is the result
    of the armature. What is rectified becomes the result unless the job is cancelled; a checkpoint
    of it stays in either case.
    """

    rectifies = True

    def __init__(self, scene, options, workers, choosing=False, earlier=None, frame=None):
        """workers: processes. choosing: rectify only what needs it. earlier: Shot that was
        rectified, to search anew from `frame` on, None for the first thing that happens."""
        shot = Shot(scene, options)
        chosen = (("checking the clip", self._choose()),) if choosing else ()
        stages = (*reading_stages(shot, choosing), *chosen, ("rectifying", self._perform()))
        Job.__init__(self, shot, stages)
        # Read now and not again.
        self._settings = rectify.rectify_settings(scene.poise.rectification)
        self.chooses, self._helps = choosing, scene.poise.help_if_needed
        self._workers, self._earlier, self._frame = workers, earlier, frame
        self._began = 0.0
        self.search = self.resumed_at = None
        self.balanced = False
        self._warning = self._doubt = ""

    # --- Going on -------------------------------------------------------------------------------

    @property
    def waits(self):
        """The workers do it."""
        return self.search is not None

    @property
    def owns_scene(self):
        """Once everything is read, the scene is free again."""
        return self.doing == "reading"

    def _choose(self):
        """The stage that looks at the clip."""
        choice = yield from in_background(lambda: method.choose(self.shot))
        self.shot.decide(choice)

    def _perform(self):
        """The stage that simulates, or rectifies, or both, and judges what came of it."""
        yield from self._simulate_or_rectify()
        yield from in_background(self.shot.judge)

    def _simulate_or_rectify(self):
        shot = self.shot
        if shot.choice is not None and shot.choice.method == "balance":
            self.doing = "simulating"
            yield from simulating(shot)
            yield from in_background(shot.judge)
            chosen = shot.choice
            if not (yield from in_background(lambda: method.look_back(shot))):
                return
            self._keep_balanced(chosen)
            if self._helps and (yield from self._help()):
                return
            self.doing = "rectifying"
            yield from self._rectify()
            yield from in_background(lambda: method.take_better(shot))
            return
        yield from self._rectify()

    def _help(self):
        """Let it try with help from outside; whether that is to be kept."""
        shot = self.shot
        first = shot.balanced()
        for tried in method.helps(shot):
            yield from in_background(partial(shot.help, tried.share, tried.rate))
            with contextlib.suppress(SimulationError):  # thrown about it is not kept
                yield from simulating(shot)
            if (yield from in_background(partial(method.keeps_help, shot, first, tried))):
                return True
        return False

    def _keep_balanced(self, chosen):
        """What balance alone did is the result, however the search ends. chosen: the Choice."""
        shot = self.shot.balanced()
        shot.decide(method.stopped(chosen))
        session.keep(self.scene_name, self.armature_name, shot, self.settings)
        self.balanced = True

    def _rectify(self):
        """Leaves no process behind, however it ends."""
        shot = self.shot
        doubts = (yield from in_background(shot.check)).doubts
        if doubts:
            self._doubt = f"The clip may be timed otherwise: {doubts[0].sentence}."
        start = self._earlier and rectify.start_of(shot, self._earlier, self._frame)
        with contextlib.ExitStack() as leave:
            pool = WorkerPool(self._workers)
            leave.callback(pool.terminate)
            search = yield from self._open(leave, pool, start)
            leave.callback(self._leave, search)
            self.search = search
            shot.follow(search)
            self._began = time.perf_counter()
            if search.nodes:
                self.resumed_at = search.nodes[-1].sample / shot.reading.motion.rate
            # The second look hands out what follows from what the first one has taken.
            while not (search.poll() or search.poll()):
                done, count = search.progress
                yield done / max(1, count)
            search.stop()
            if len(search.recording) < 2:
                raise PoiseError(search.outcome().why)
            shot.settle(search)

    def _open(self, leave, pool, start):
        """Make the Rectification; it takes up an earlier one of the same problem and settings."""
        yield from in_background(_load_optimiser)
        shot, problem = self.shot, rectify.problem_of(self.shot)

        def made(path=None):
            return Rectification(problem, shot.gains, self._settings, pool, path, start)

        search = yield from in_background(made)
        try:
            folder = checkpoints.folder()
            checkpoints.forget_old(folder)
            named = shot.scene, shot.armature, search.key, start is not None
            path = rectify.checkpoint(folder, *named)
            leave.enter_context(claimed(path, _TAKEN))
        except (CheckpointError, OSError) as error:
            self._warning = f"No checkpoint can be kept ({error}): it cannot be resumed later."
            return search
        try:
            return (yield from in_background(lambda: made(path)))
        except CheckpointError:
            path.unlink()
            self._warning = "What was kept of an earlier search is damaged: this one begins anew."
            return made(path)

    @staticmethod
    def _leave(search):
        """Stop a search; keep its checkpoint if there is anything left to do."""
        search.stop()
        if search.ended in ("done", "stuck"):
            search.forget()

    # --- What there is to show ------------------------------------------------------------------

    @property
    def seconds(self):
        """How far it has come [s]."""
        return max(0, self.search.progress[0] - 1) / self.shot.reading.motion.rate

    @property
    def text(self):
        """What is going on, for the progress bar."""
        if self.search is None:
            return super().text if self.doing == "simulating" else self.doing.capitalize()
        duration = self.shot.reading.motion.duration
        return f"Rectifying: {self.seconds:.2f} of {duration:.2f} s"

    @property
    def note(self):
        """How long it will take."""
        if self.search is None:
            return super().note
        left = self.search.time_left()
        return "" if left is None else f"{clock(left)} left"

    @property
    def warning(self):
        """What is wrong, if anything is."""
        return (self.search and self.search.warning) or self._warning or self._doubt

    @property
    def shown(self):
        """Changes when the panel does."""
        if self.search is None:
            return self.text, round(self.progress, 2)
        return self.text, self.warning, len(self.search.nodes), int(self.search.wall)

    def ghost(self):
        """What is committed so far: at the current frame, or playing."""
        if self.search is None or self.recording is None:
            return super().ghost()
        playing = any(
            window.screen.is_animation_playing for window in bpy.context.window_manager.windows
        )
        if playing or not self.shot.scene.poise.rectification.play:
            return self.shot, None
        return self.shot, self._playhead()

    def _playhead(self):
        """The sample of a loop over what is committed, in real time."""
        rate, count = self.shot.reading.motion.rate, len(self.recording)
        elapsed = int((time.perf_counter() - self._began) * rate)
        return min(elapsed % (count + int(_REST * rate)), count - 1)

    # --- Ends -----------------------------------------------------------------------------------

    def stop_searching(self):
        """End at the next turn, with what there is."""
        self.search.stop()

    @property
    def can_resume(self):
        """Whether the same search would go on where this one is."""
        return bool(self.search is not None and self.search.nodes and not self._warning)


def _load_optimiser():
    """Take the second that this takes, before it is needed."""
    try:
        load_cma()
    except ImportError as error:
        raise PoiseError(
            f"The optimiser cannot be loaded ({error}): install Poise again, with its wheels."
        ) from error


# --- Operators -----------------------------------------------------------------------------------


class PerformOperator(JobOperator):
    """An operator whose job may rectify: what is committed plays, and is kept."""

    _shown = None

    @property
    def hint(self):
        """What the status bar says meanwhile."""
        if self._job.rectifies and self._job.chooses:
            return "Poise: Esc to stop; if it rectifies, Keep in the sidebar keeps that"
        if self._job.rectifies:
            return "Poise is at work: Esc discards what is rectified, Keep in the sidebar keeps it"
        return "Poise: Esc to stop"

    def modal(self, context, event):
        """One event; where an animation plays, Esc stops that."""
        job = self._job
        if event.type == "ESC" and job.waits and context.screen.is_animation_playing:
            return {"PASS_THROUGH"}
        return super().modal(context, event)

    def redraw(self, context):
        """While it rectifies, draw no more than has changed: the user's work needs the time."""
        job = self._job
        if not job.waits:
            return super().redraw(context)
        if job.shown != self._shown:
            redraw_sidebars()
        elif context.scene.poise.ghost != "HIDDEN" and self.may_draw():
            redraw_views()
        self._shown = job.shown
        return False  # there is hardly any work in such a turn

    @property
    def stopped(self):
        """What Esc reports."""
        job = self._job
        if not job.rectifies or not (job.balanced or job.can_resume):
            return super().stopped
        if not job.balanced:
            return "Stopped: the result is as it was. Rectify goes on where this search stopped"
        if not job.can_resume:
            return "Stopped: what balance alone did stays"
        return "Stopped: what balance alone did stays. Rectify goes on where this search stopped"

    def finished(self):
        """Report the outcome."""
        shot = self._job.shot
        duration = shot.reading.motion.duration
        if shot.rectified is not None:
            kind = "INFO" if shot.rectified.success else "WARNING"
            self.report({kind}, tr(rectify.outcome_words(shot.rectified, duration)))
        elif shot.recording.success:
            self.report({"INFO"}, tr(f"Simulated {duration:.2f} s"))
        else:
            kind = "INFO" if shot.recording.filled else "WARNING"
            self.report({kind}, tr(shot.why))


class POISE_OT_rectify(PerformOperator, bpy.types.Operator):
    """Rectify an armature's animation."""

    bl_idname = "poise.rectify"
    bl_label = "Rectify Motion for Physics"
    bl_description = (
        "Search small changes of the animation with which a simulated body performs it to the "
        "end. Blender stays free; what is finished plays as the ghost. Keep ends it with that, Esc "
        "discards"
    )
    bl_options = set()  # not REGISTER: nobody wants to repeat this by accident

    @classmethod
    def poll(cls, context):
        """Needs an animated armature."""
        return poll_animated(cls, context)

    def make_job(self, context, armature):
        """The job of this operator."""
        workers = preferences.workers(context.scene.poise.tuning)
        return RectifyJob(context.scene, shot_options(context, armature), workers)


class POISE_OT_push_here(PerformOperator, bpy.types.Operator):
    """Search anew from a disturbance on."""

    bl_idname = "poise.push_here"
    bl_label = "Rectify from Push On"
    bl_description = (
        "Keep the rectified motion up to the first push or thing (or up to the current frame), and "
        "search anew from that state on: the body stumbles, steps and returns to the animation"
    )
    bl_options = set()

    @classmethod
    def poll(cls, context):
        """Needs a rectified result."""
        return poll_rectified(cls, context) and poll_animated(cls, context)

    def make_job(self, context, armature):
        """The job of this operator."""
        scene = context.scene
        earlier = session.result_of(scene, armature).shot
        frame = scene.frame_current if scene.poise.rectification.since == "FRAME" else None
        options = shot_options(context, armature)
        if earlier.mended:
            options = replace(options, cleaning=earlier.options.cleaning)
        workers = preferences.workers(scene.poise.tuning)
        return RectifyJob(scene, options, workers, earlier=earlier, frame=frame)


class POISE_OT_forget_rectification(bpy.types.Operator):
    """Remove what is kept of unfinished searches."""

    bl_idname = "poise.forget_rectification"
    bl_label = "Forget Unfinished Rectification"
    bl_description = "Forget the unfinished search of this animation, so that the next begins anew"
    bl_options = {"INTERNAL"}

    @classmethod
    def poll(cls, context):
        """Needs one."""
        if not poll_idle(cls, context):
            return False
        if not rectify.kept(context.scene, chosen_armature(context)[0]):
            cls.poll_message_set(tr("No unfinished search of this animation is kept"))
            return False
        return True

    def execute(self, context):
        """Remove the files."""
        rectify.forget(context.scene, chosen_armature(context)[0])
        redraw()
        return {"FINISHED"}


class _AtWork:
    """A button for the rectification at work."""

    bl_options = {"INTERNAL"}

    @classmethod
    def poll(cls, _context):
        """Needs one."""
        job = session.job()
        if job is None or not job.rectifies or job.search is None:
            cls.poll_message_set(tr("Poise is not rectifying"))
            return False
        return True


class POISE_OT_keep_rectified(_AtWork, bpy.types.Operator):
    """End the rectification with what there is."""

    @classmethod
    def poll(cls, context):
        """Needs something that is rectified."""
        if not _AtWork.poll.__func__(cls, context):
            return False
        if len(session.job().search.recording) < 2:
            cls.poll_message_set(tr("Nothing is rectified yet: wait a moment, or discard"))
            return False
        return True

    bl_idname = "poise.keep_rectified"
    bl_label = "Stop and Keep Rectified"
    bl_description = (
        "Stop, and keep what is rectified as the result. It can be baked, and resumed later"
    )

    def execute(self, _context):
        """Stop; the operator that runs notices at its next turn."""
        session.job().stop_searching()
        return {"FINISHED"}


class POISE_OT_discard_rectified(_AtWork, bpy.types.Operator):
    """End the rectification with nothing."""

    bl_idname = "poise.discard_rectified"
    bl_label = "Stop and Discard Rectified"
    bl_description = (
        "Stop, and leave the result as it was before the search: by balance alone, where Automatic "
        "has tried that. Rectify can still resume it"
    )

    def execute(self, _context):
        """Stop; the operator that runs notices at its next turn."""
        session.job().cancel()
        return {"FINISHED"}
