# SPDX-License-Identifier: GPL-3.0-or-later
"""Search gains for a shot on other processes, while the user goes on."""

import contextlib
import time

import bpy

from ...controller.exceptions import CheckpointError, PoiseError
from ...controller.processes.workers import WorkerPool
from ...controller.search.optimization import Search, load_cma
from ...controller.simulation.measures import T_MAX
from ..blender import checkpoints, preferences, session
from ..blender.locks import claimed
from ..blender.redrawing import redraw, redraw_sidebars
from ..blender.translations import tr
from ..jobs.job import Job, in_background, reading_stages
from ..jobs.modal import JobOperator, poll_animated
from ..settings import gains
from ..settings.properties import shot_options
from ..shots import tuning
from ..shots.shot import Shot

#: Simulate a preview for this long in each turn [s].
_SLICE = 0.008
_TAKEN = (
    "Another Blender tunes this very clip with the same settings: wait for it, or choose another "
    "seed."
)
#: Length of a trial [s].
DURATION = T_MAX
_DONE = object()


class OptimizeJob(Job):
    """Read an armature's animation, measure the body and search gains.

    search: optimization.Search, once everything is read; None before. resumed_at: the generation
    at which an earlier search was taken up again; None if it began anew. outcome: optimization.
    Outcome, once it is over. warning: a sentence, if something is wrong that does not end it.
    """

    tunes = True

    def __init__(self, scene, options, settings):
        """settings: POISE_PG_tuning, which is read now and not again."""
        shot = Shot(scene, options)
        super().__init__(shot, (*reading_stages(shot), ("tuning", self._tune())))
        self._settings = tuning.search_settings(settings)
        self._maxima = tuning.maxima(settings)
        self._disturbance = tuning.disturbance(settings)
        self._workers = preferences.workers(settings)
        self.search = self.resumed_at = self.outcome = None
        self._preview = Preview(shot)
        self._warning = ""

    # --- The search -----------------------------------------------------------------------------

    @property
    def owns_scene(self):
        """Once everything is read, the scene is free again."""
        return self.doing == "reading"

    @property
    def waits(self):
        """The workers do it."""
        return self.search is not None

    def _tune(self):
        """The stage that searches; leaves no process behind, however it ends."""
        with contextlib.ExitStack() as leave:
            pool = WorkerPool(self._workers)
            leave.callback(pool.terminate)
            folder = self._folder()
            problem = self.shot.problem(self._maxima, DURATION, self._disturbance)
            self.search = yield from self._open(
                leave, folder, (problem, self.shot.gains, self._settings, pool)
            )
            leave.callback(self._preview.close)
            leave.callback(self.search.stop)
            if self.search.generations:
                self.resumed_at = len(self.search.generations)
            while not self.search.poll():
                self._preview.advance(self._follows and self.search.best)
                done, count = self.search.progress
                yield done / max(1, count)
            if self.search.best is None:
                raise PoiseError(
                    "The budget was over before the first trial was: give the search more time."
                )
            # It may want what the workers have told.
            self.outcome = yield from in_background(self.search.outcome)

    def _folder(self):
        """The folder for the checkpoint, None if there is none to be had."""
        try:
            folder = checkpoints.folder()
        except CheckpointError as error:
            self._warning = f"{error} The search goes on, but cannot be resumed."
            return None
        checkpoints.forget_old(folder)
        return folder

    def _open(self, leave, folder, arguments):
        """Make the Search; it takes up an earlier one of the same problem and settings."""
        yield from in_background(_load_optimiser)
        search = yield from in_background(lambda: Search(*arguments))
        if folder is None:
            return search
        path = folder / f"{search.key}.json"
        try:
            leave.enter_context(claimed(path, _TAKEN))
        except OSError as error:
            self._warning = (
                f"The checkpoint '{path}' cannot be written ({error.strerror}): the search goes "
                "on, but cannot be resumed."
            )
            return search
        try:
            return (yield from in_background(lambda: Search(*arguments, path)))
        except CheckpointError:
            path.unlink()
            self._warning = "What was kept of an earlier search is damaged: this one begins anew."
            return Search(*arguments, path)

    @property
    def warning(self):
        """What is wrong, if anything is."""
        return (self.search and self.search.warning) or self._warning or self._preview.problem

    @property
    def text(self):
        """What is going on, for the progress bar."""
        if self.search is None:
            return super().text if self.doing == "reading" else f"{self.doing.capitalize()}…"
        doing = self.search.doing
        return doing[:1].upper() + doing[1:]

    @property
    def shown(self):
        """Changes when the panel does."""
        if self.search is None:
            return self.doing, round(self.progress, 2)
        search = self.search
        words = self.text, self.warning
        return *words, search.progress, int(search.wall), len(search.generations)

    def keep_best(self):
        """End at the next turn, with the best so far."""
        self.search.stop()

    def _finish(self):
        session.end(self)
        session.keep_outcome(self.scene_name, self.armature_name, self.outcome)
        self.search.forget()

    # --- The preview ----------------------------------------------------------------------------

    @property
    def _follows(self):
        return self.shot.scene.poise.tuning.follow

    def preview_best(self):
        """Simulate the best candidate so far and show it."""
        self._preview.begin(self.search.best)

    @property
    def previewing(self):
        """Whether the ghost moves by itself at the moment."""
        return self._preview.simulating

    def preview_words(self):
        """Which candidate the ghost shows; empty if none."""
        return self._preview.words()

    def ghost(self):
        """The candidate that was asked for."""
        return self._preview.ghost()


def _load_optimiser():
    """Take the second that this takes, before it is needed."""
    try:
        load_cma()
    except ImportError as error:
        raise PoiseError(
            f"The optimiser cannot be loaded ({error}): install Poise again, with its wheels."
        ) from error


class Preview:
    """The simulation of a candidate, in slices, by the window's own process."""

    def __init__(self, shot):
        """shot: what is tuned, which stays as it is."""
        self._source = shot
        self._steps = None
        self._shot = self._candidate = None
        self._next, self._next_candidate = None, None
        self.problem = ""

    @property
    def simulating(self):
        """Whether a simulation is under way."""
        return self._steps is not None

    def begin(self, candidate):
        """Simulate another candidate from now on; the one before is shown meanwhile."""
        self.close()
        self._next = self._source.with_gains(candidate.gains)
        self._next_candidate = candidate
        self._steps = self._next.simulation.pieces()

    def advance(self, followed=None):
        """Simulate for a moment. followed: the candidate to show next, None for none."""
        if self._steps is None:
            if followed and followed is not self._candidate:
                self.begin(followed)
            return
        until = time.perf_counter() + _SLICE
        try:
            while time.perf_counter() < until:
                if next(self._steps, _DONE) is _DONE:
                    self._steps = None
                    self._shot, self._candidate = self._next, self._next_candidate
                    return
        except PoiseError as error:
            self.problem = str(error)
            self._steps = None

    def close(self):
        """Stop simulating."""
        if self._steps is not None:
            self._steps.close()
            self._steps = None

    def words(self):
        """Which candidate is shown, and how far it comes."""
        if self._shot is None:
            return ""
        candidate, recording = self._candidate, self._shot.recording
        stands = "stands" if recording.success else f"falls at {recording.fell_at:.1f} s"
        return f"Ghost: generation {candidate.generation}, {stands}"

    def ghost(self):
        """(shot, sample) as Job.ghost has it."""
        if self._shot is not None:
            return self._shot, None
        if self._next is not None and len(self._next.recording):
            return self._next, len(self._next.recording) - 1
        return None


# --- Operators -----------------------------------------------------------------------------------


class POISE_OT_optimize(JobOperator, bpy.types.Operator):
    """Search gains for an armature's animation."""

    bl_idname = "poise.optimize"
    bl_label = "Optimize Physics Gains"
    bl_description = (
        "Look for gains with which the body performs this animation, beginning with those in use. "
        "Blender stays free meanwhile, but Poise itself does nothing else. Esc discards"
    )
    bl_options = {"UNDO"}  # not REGISTER: nobody wants to repeat this by accident

    stopped = "Stopped: the gains are as they were; Optimize goes on from there"

    hint = "Poise is tuning: Esc discards"

    _shown = None
    _ghost = ""

    @classmethod
    def poll(cls, context):
        """Needs an animated armature."""
        return poll_animated(cls, context)

    def make_job(self, context, armature):
        """The job of this operator."""
        options = shot_options(context, armature)
        return OptimizeJob(context.scene, options, context.scene.poise.tuning)

    def modal(self, context, event):
        """One event; where an animation plays, Esc stops that."""
        if event.type == "ESC" and context.screen.is_animation_playing:
            return {"PASS_THROUGH"}
        return super().modal(context, event)

    def redraw(self, _context):
        """Draw no more than has changed: the user's own work needs the time."""
        job = self._job
        ghost = job.preview_words()
        if ghost != self._ghost:
            redraw()
        elif job.previewing and self.may_draw():
            self._parts.draw()
        elif job.shown != self._shown:
            redraw_sidebars()
        self._shown, self._ghost = job.shown, ghost

    def finished(self):
        """Use what was found, and report it."""
        job = self._job
        outcome = job.outcome
        gains.keep(bpy.data.scenes[job.scene_name], outcome.gains)
        confirmed = outcome.confirmed_at is not None
        self.report({"INFO"} if confirmed else {"WARNING"}, tr(tuning.outcome_words(outcome)))


class _SearchOperator:
    """A button for the search at work."""

    bl_options = {"INTERNAL"}

    @classmethod
    def poll(cls, _context):
        """Needs a search that has tried something."""
        job = session.job()
        if job is None or not job.tunes:
            cls.poll_message_set(tr("Poise is not tuning"))
        elif job.search is None or job.search.best is None:
            cls.poll_message_set(tr("Nothing has been tried yet: wait a moment, or press Esc"))
        else:
            return True
        return False


class POISE_OT_keep_best(_SearchOperator, bpy.types.Operator):
    """End the search with the best gains so far."""

    bl_idname = "poise.keep_best"
    bl_label = "Stop and Keep Gains"
    bl_description = "Stop, and use the best gains that were found so far"

    def execute(self, _context):
        """Stop; the operator that runs notices at its next turn."""
        session.job().keep_best()
        return {"FINISHED"}


class POISE_OT_preview_best(_SearchOperator, bpy.types.Operator):
    """Show the best candidate so far."""

    bl_idname = "poise.preview_best"
    bl_label = "Preview Best Gains"
    bl_description = "Simulate the best candidate so far and show it as the ghost"

    def execute(self, _context):
        """Begin; the turns of the search go on with it."""
        session.job().preview_best()
        return {"FINISHED"}
