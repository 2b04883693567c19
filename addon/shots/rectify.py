# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a rectification, `scene.poise.rectification`, what it is given and what came of
it in words, and the checkpoints that the window keeps of it."""

import hashlib
import time

import bpy
import numpy as np
from bpy.props import BoolProperty, EnumProperty, FloatProperty

from ...controller.exceptions import CheckpointError, MotionError, SettingsError
from ...controller.falls.behaviours import STOP
from ...controller.geometry.rotations import quaternion_from_matrix
from ...controller.options import options_of
from ...controller.reference.gait import Endless
from ...controller.search.rectification import RectifySettings
from ...controller.simulation.measures import Measures
from ...controller.simulation.recording import Observation, Recording
from ...controller.simulation.scenario import Scenario
from ...controller.simulation.world import Contacts
from ..blender import checkpoints
from ..blender.options import property_of
from ..rigs import bake_target

#: What is to be chosen of a rectification.
RECTIFY = options_of(RectifySettings)
#: The folder of checkpoints is looked at again after this long [s]: the panel asks all the time.
_LOOK_AGAIN = 1.0
#: How the name of a checkpoint begins, for a search from the start and for one in the middle.
_KINDS = {False: "rectify", True: "push"}


class POISE_PG_rectification(bpy.types.PropertyGroup):
    """How clips are rectified in this scene."""

    preset: property_of(RECTIFY["preset"])
    search: property_of(RECTIFY["method"])
    seed: property_of(RECTIFY["seed"])
    budget: FloatProperty(
        name="Budget (min)",
        description="It ends after this time, with what it has reached [minutes]; 0 for no limit",
        min=0.0,
        max=1e5,
        soft_max=60.0,
        step=100,
        precision=1,
    )
    play: BoolProperty(
        name="Play Meanwhile",
        description="Play what is finished as the ghost, again and again, while the rest is "
        "computed; otherwise the ghost shows the current frame",
        default=True,
    )
    since: EnumProperty(
        name="From",
        description="Up to where the rectified motion is kept",
        items=(
            ("DISTURBANCE", "First Push", "The first push or thing that comes into play"),
            ("FRAME", "Current Frame", "The frame that is shown now"),
        ),
    )


CLASSES = (POISE_PG_rectification,)


def rectify_settings(settings):
    """POISE_PG_rectification as RectifySettings."""
    return RectifySettings(
        preset=settings.preset.lower(),
        method=settings.search.lower(),
        seed=settings.seed,
        budget=60.0 * settings.budget or None,
    )


def problem_of(shot):
    """What a prepared shot is to perform, as a Problem. Raises SettingsError for what cannot be
    rectified."""
    simulation = shot.simulation
    if isinstance(simulation.motion, Endless):
        raise SettingsError(
            "An endless walk is kept up by balance and cannot be rectified: choose the method "
            "Balance, or switch Locomotion off."
        )
    if simulation.settings.noise:
        raise SettingsError(
            "Motion with motor noise cannot be rectified, since it would be another each time: set "
            "the noise to 0 N m, or choose the method Balance."
        )
    # Strength, knock-outs with it, is refused with a sentence of its own.
    if simulation.settings.when_it_falls != STOP and not simulation.strength:
        raise SettingsError(
            "A motion is rectified so that it does not fall: set what it does when it falls to "
            "Stop, or choose the method Balance."
        )
    return shot.performance()


# --- Searching anew from a moment on -------------------------------------------------------------


def start_of(shot, earlier, frame=None):
    """Where to search anew, as Rectification takes it: (correction, sample).

    shot: prepared. earlier: shot of which the rectified motion is kept so far. frame: up to where;
    None for the first thing that happens to the character. Raises MotionError.
    """
    motion, recording = shot.reading.motion, earlier.recording
    if not _same(motion, earlier.reading.motion) or shot.options.morphology != (
        earlier.options.morphology
    ):
        raise MotionError(
            "The animation, its frames or the body have changed since it was rectified: Rectify "
            "first, without the push."
        )
    if frame is None:
        at = _first_event(shot.simulation.scenario, motion.duration)
    else:
        at = (frame - motion.first_frame) / (motion.frame_step * motion.rate)
    if at is None:
        raise MotionError(
            "Nothing pushes or hits the character in these frames: add a push, or choose to start "
            "at the current frame."
        )
    spacing = earlier.rectified.correction.spacing
    sample = max(0, int(at * motion.rate + 1e-6)) // spacing * spacing
    if sample >= len(recording) - 1:
        last = motion.frame(len(recording) - 1)
        raise MotionError(
            f"The rectified motion ends at frame {last:g}, before frame {motion.frame(sample):g} "
            "from which to search: rectify it farther, or start earlier."
        )
    return earlier.rectified.correction, sample


def _same(motion, other):
    return (
        motion.rate == other.rate
        and motion.first_frame == other.first_frame
        and motion.positions.shape == other.positions.shape
        and np.array_equal(motion.positions, other.positions, equal_nan=True)
        and np.array_equal(motion.rotations, other.rotations, equal_nan=True)
    )


def _first_event(scenario, duration):
    """When the first push or thing comes into play [s]; None if none does."""
    starts = [max(0.0, part.start) for part in (*scenario.pushes, *scenario.things)]
    return min((start for start in starts if start < duration), default=None)


# --- The target as an action of its own ----------------------------------------------------------


def target_recording(shot):
    """A Recording of the corrected animation, without any physics, as far as it was rectified."""
    character, simulation = shot.character, shot.simulation
    joints, frames = character.pose(shot.target)
    centres = joints + np.einsum("fsij,sj->fsi", frames, character.centres)
    turns = quaternion_from_matrix(frames)
    motion = simulation.motion
    posed = Recording(character, motion, simulation.reference, Measures(motion.rate), Scenario())
    no_cops = np.full((2, 3), np.nan)
    nothing = Contacts(np.zeros(2, bool), np.zeros((2, 3)), no_cops, np.zeros((2, 2)), 0)
    idle = np.zeros(character.dofs)
    for sample in range(len(shot.recording)):
        posed.add(sample, Observation(centres[sample], turns[sample], nothing, None, 0.0, idle))
    return posed


# --- In words ------------------------------------------------------------------------------------


def outcome_words(outcome, duration):
    """What a rectification came to, in a sentence without an end. duration: of the clip [s]."""
    reached = f"{outcome.reached:.2f} of {duration:.2f} s"
    return {
        "done": outcome.why.removesuffix(".") or f"Rectified: {duration:.2f} s",
        "budget": f"The budget was over at {reached}: give it more time, and resume",
        "stopped": f"Stopped at {reached}",
        "stuck": f"Found no way on at {reached}",
    }[outcome.ended]


# --- Checkpoints ---------------------------------------------------------------------------------


def clip_name(scene, armature):
    """A short name of an armature's animation in this file, for its checkpoints."""
    source, _ = bake_target.unbaked(armature)
    facts = (bpy.data.filepath, scene.name, armature.name, source.name if source else "")
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:12]


def checkpoint(folder, scene, armature, key, pushed):
    """Path of the checkpoint of a search of that key. pushed: it begins in the middle."""
    return folder / f"{_KINDS[pushed]}_{clip_name(scene, armature)}_{key}.json"


_looked = None, 0.0, None


def kept(scene, armature, pushed=None):
    """Checkpoints of an armature's animation: of searches from its start, of those that begin in
    the middle (pushed), or of both (None)."""
    global _looked
    name, now = clip_name(scene, armature), time.monotonic()
    if _looked[0] != name or now - _looked[1] > _LOOK_AGAIN:
        _looked = name, now, _look(name)
    return [p for p in _looked[2] if pushed is None or p.name.startswith(_KINDS[pushed])]


def forget(scene, armature):
    """Remove all checkpoints of an armature's animation."""
    global _looked
    for path in _look(clip_name(scene, armature)):
        path.unlink(missing_ok=True)
    _looked = None, 0.0, None


def _look(name):
    try:
        folder = checkpoints.folder()
        return [path for kind in _KINDS.values() for path in folder.glob(f"{kind}_{name}_*.json")]
    except (CheckpointError, OSError):  # none to be had, or one that has just gone
        return []
