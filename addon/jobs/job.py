# SPDX-License-Identifier: GPL-3.0-or-later
"""Long work on a shot, in slices short enough that the window stays alive.

No operator in here: a job runs the same with and without a window.
"""

import contextlib
import math
import time
from concurrent.futures import ThreadPoolExecutor, wait

import bpy

from ...controller.exceptions import RigError
from ..blender import compat, session
from ..blender.evaluation import LastOfTurn
from ..blender.threads import switching_often
from ..rigs import bake_target, strips
from ..shots.cast import Cast
from ..shots.shot import Shot
from ..shots.tuning import LONG, clock

#: Look again after this long [s] at what others do.
PAUSE = 0.005

_DONE = object()


class Job:
    """Some stages of a shot, one after the other.

    stages: (what it is doing, generator) pairs; each generator yields its progress from 0 to 1.
    doing: the stage at work. progress: of that stage. settings: outdated.settings_of a shot that it
    reads, None for one that was read before.
    """

    #: The stages sample the scene at other frames: nothing else may touch it meanwhile.
    owns_scene = True
    #: Other processes do the work: one look in each turn is enough.
    waits = False
    #: It looks for gains, and is shown where these are.
    tunes = False
    #: It measures robustness, likewise.
    finds_limit = False
    #: It checks a clip, likewise.
    checks = False
    #: It is played, and so is what it shows.
    plays = False
    #: It rectifies, or may come to do so; what it has reached is kept.
    rectifies = False

    def __init__(self, shot, stages, others=()):
        """stages: what it is doing, and a generator of progress from 0 to 1, for each. others: the
        shots of those that are with the shot's armature in it."""
        self.shot, self.settings = shot, None
        self.shots = shot, *others
        self.scene_name, self.armature_name = shot.scene.name, shot.armature.name
        self._armature_names = [one.armature.name for one in self.shots]
        self.doing, self.progress = stages[0][0], 0.0
        self._since = math.inf
        self._work = self._stages(stages)

    def _stages(self, stages):
        for self.doing, generator in stages:
            self.progress, self._since = 0.0, time.perf_counter()
            with contextlib.closing(generator):
                yield True  # so that it is shown before it begins
                for self.progress in generator:
                    yield isinstance(self.progress, LastOfTurn)

    @property
    def text(self):
        """What is going on, for the progress bar."""
        return f"{self.doing.capitalize()}: {self.progress:.0%}"

    @property
    def note(self):
        """What else there is to say, for below the progress bar."""
        return ""

    @property
    def time_left(self):
        """How much longer the stage at work takes [s], at its pace so far; None in its first
        second, and if it is not long."""
        spent = time.perf_counter() - self._since
        if spent < 1 or not self.progress or spent / self.progress < LONG:
            return None
        return spent / self.progress - spent

    def start(self):
        """Become the job at work. Raises PoiseError if there is another one."""
        session.start(self)

    def step(self, budget):
        """Work for about `budget` seconds, or until another turn is to begin. Returns whether
        everything is done.

        Raises PoiseError if it cannot go on; the job is over then.
        """
        try:
            return self._step(budget)
        except BaseException:
            self.cancel()
            raise

    def _step(self, budget):
        self._demand_armature()
        scene = self.shot.scene
        frame, subframe = scene.frame_current, scene.frame_subframe
        try:
            begun = time.perf_counter()
            until = begun + budget
            while begun < until:
                last = next(self._work, _DONE)
                if last is _DONE:
                    self._finish()
                    return True
                now = time.perf_counter()
                # A piece like this one would be too long: that is for the next turn.
                if last or self.waits or now + (now - begun) > until:
                    break
                begun = now
        finally:
            # Reading samples other frames; the window shows the user's own all the while.
            if (scene.frame_current, scene.frame_subframe) != (frame, subframe):
                scene.frame_set(frame, subframe=subframe)
        return False

    def _demand_armature(self):
        scene = bpy.data.scenes.get(self.scene_name)
        if scene is None:
            raise RigError(
                f"The scene '{self.scene_name}' was deleted or renamed while Poise was "
                f"{self.doing}: undo that, or start again."
            )
        for name in self._armature_names:
            if name not in scene.objects:
                raise RigError(
                    f"The armature '{name}' was deleted or renamed while Poise was {self.doing}: "
                    "undo that, or start again."
                )

    def _finish(self):
        session.end(self)
        session.keep(self.scene_name, self.armature_name, self.shot, self.settings)
        for shot in self.shots[1:]:
            session.keep(self.scene_name, shot.armature.name, shot)

    def ghost(self):
        """What it shows of its simulation: (shot, index of the sample, None for the one at the
        current frame); None if there is nothing to show."""
        return None

    def ghosts(self):
        """All that it shows, a list of what `ghost` gives."""
        shown = self.ghost()
        return [] if shown is None else [shown]

    def cancel(self):
        """Stop, and leave the scene as it was."""
        session.end(self)
        # With the armature gone there is nothing to put back.
        with contextlib.suppress(ReferenceError):
            self._work.close()

    def run(self):
        """Do everything at once."""
        while not self.step(float("inf")):
            if self.waits:
                time.sleep(PAUSE)


class InspectJob(Job):
    """Read an armature's animation and measure the body."""

    def __init__(self, scene, options):
        shot = Shot(scene, options)
        super().__init__(shot, reading_stages(shot))


class SimulateJob(Job):
    """Read an armature's animation, measure the body and simulate it."""

    def __init__(self, scene, options):
        shot = Shot(scene, options)
        stages = ("simulating", simulating(shot)), ("judging", in_background(shot.judge))
        super().__init__(shot, (*reading_stages(shot), *stages))

    @property
    def owns_scene(self):
        """Once everything is read, the scene is free again."""
        return self.recording is None

    @property
    def recording(self):
        """What is simulated so far, or None."""
        recording = self.shot.recording
        return recording if recording is not None and len(recording) else None

    def ghost(self):
        """The newest sample."""
        return None if self.recording is None else (self.shot, len(self.recording) - 1)

    @property
    def text(self):
        """What is going on, for the progress bar: simulated time, once there is any."""
        if self.recording is None:
            return super().text
        motion = self.shot.reading.motion
        reached = (len(self.recording) - 1) / motion.rate
        return f"Simulating: {reached:.2f} of {motion.duration:.2f} s"

    @property
    def note(self):
        """How fast it is, and how long it will take, for below the progress bar."""
        factor, left = self.real_time_factor, self.time_left
        if not factor:
            return ""
        if left is None:
            return f"{factor:.1f} × real time"
        return f"{factor:.1f} × real time, {clock(left)} left"

    @property
    def real_time_factor(self):
        """Simulated seconds per second of computing; None before there are any."""
        recording = self.recording
        if recording is None or len(recording) < 2:
            return None
        return (len(recording) - 1) / self.shot.reading.motion.rate / recording.wall_time


class TogetherJob(SimulateJob):
    """Read the animations of several armatures, and simulate them in one world."""

    def __init__(self, scene, options, others, settings):
        """others: names of the other armatures. settings: function of an armature, what Job has."""
        self._cast = Cast(scene, options, others)
        shot, *rest = self._cast.shots
        stages = []
        for one in self._cast.shots:
            prepared = in_background(one.prepare)
            read = "reading", reading_source(one, self._cast.reading(one))
            stages += [read, ("measuring the body", prepared)]
        stages.append(("simulating together", self._simulating()))
        stages += [("judging", in_background(one.judge)) for one in self._cast.shots]
        Job.__init__(self, shot, stages, rest)
        self._settings = {one.armature.name: settings(one.armature) for one in self._cast.shots}
        self.settings = self._settings[self.armature_name]

    def _simulating(self):
        together = yield from in_background(lambda: self._cast.together)
        yield from in_background(together.begin)
        progress = 0.0
        for sample in self._cast.simulating():
            if sample is not None:
                progress = (sample + 1) / len(together)
            yield progress

    @property
    def notes(self):
        """Sentences on how they stand."""
        return self._cast.notes

    def ghosts(self):
        """The newest sample of each."""
        if self.recording is None:
            return []
        return [(one, len(one.recording) - 1) for one in self.shots if len(one.recording)]

    def _finish(self):
        session.end(self)
        for shot in self.shots:
            name = shot.armature.name
            session.keep(self.scene_name, name, shot, self._settings[name])


class BakeJob(Job):
    """Write keys, read them back and compare them with the source."""

    def __init__(self, shot, writing, others=()):
        """writing: a function of a shot, which gives its Shot.baking() or Shot.baking_target().
        others: shots to be baked with it."""
        stages = [("baking", writing(one)) for one in (shot, *others)]
        for one in (shot, *others):
            compare = in_background(one.compare)
            stages += [("comparing", one.read_back()), ("comparing", compare)]
        super().__init__(shot, stages, others)

    @property
    def baked(self):
        """Whether the keys are written."""
        return self.doing == "comparing"


def reading_stages(shot, mend=False):
    """The stages of a Job after which a shot is ready to be simulated. mend: as Shot.prepare has
    it."""
    prepared = in_background(lambda: shot.prepare(mend))
    return (("reading", reading_source(shot)), ("measuring the body", prepared))


def reading_source(shot, reading=None):
    """The stage that reads the source, also while its bake is shown. reading: how; None: as the
    shot does."""
    with showing_source(shot.scene, shot.armature):
        yield from reading or shot.read()


@contextlib.contextmanager
def showing_source(scene, armature):
    """Show the source of an armature, and then its bake again if that was shown."""
    shown = strips.read_of(armature)
    mark, state = bake_target.mark_of(*shown), bake_target.State(armature)
    changes = mark is not None or shown != compat.assigned(armature)
    if changes:
        state.show_source(*bake_target.without_bake(*shown))
    try:
        yield
    finally:
        if changes:
            state.put_back()
            scene.frame_set(scene.frame_current, subframe=scene.frame_subframe)


def in_background(function):
    """A stage that calls a function in a thread, and returns its result. It must not touch
    Blender's data: NumPy, files and imports are what the window need not wait for."""
    yield 0.0  # so that this is shown before it begins
    thread = ThreadPoolExecutor(1)
    try:
        with switching_often():
            future = thread.submit(function)
            while not wait([future], PAUSE).done:
                yield 0.0
    finally:  # stopped or not, nobody waits
        thread.shutdown(wait=False)
    return future.result()


def simulating(shot):
    """The stage that simulates a shot, as often as its waypoints take. PyBullet's first world takes
    as long as some turns."""
    while True:
        yield from in_background(shot.simulation.begin)
        progress = 0.0
        for sample in shot.simulating():
            if sample is not None:
                progress = (sample + 1) / len(shot.simulation)
            yield progress
        if not shot.simulation.reference.waypoints or not (yield from in_background(shot.aim)):
            return
