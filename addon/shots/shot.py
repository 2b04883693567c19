# SPDX-License-Identifier: GPL-3.0-or-later
"""One shot, from reading an armature's action to the report of its bake.

The command line, the operators and the demo all work through this. Everything that takes long is a
generator, so that whoever drives it can show progress and stop between two steps. Nothing in the
scene changes before `bake`.

    shot = Shot(bpy.context.scene, ShotOptions(armature="Hips"))
    for progress in shot.read(): …
    for sample in shot.simulate(): …
    shot.bake()
    for progress in shot.measure(): …
    shot.report()
"""

import copy
import platform
import time
import tomllib
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

import bpy
import numpy as np

from ... import controller
from ...controller.body.momentum import GRAVITY
from ...controller.body.morphology import Morphology
from ...controller.checks import clip_check
from ...controller.checks.verdict import judge_motions
from ...controller.contacts.contact_plan import ContactPlan
from ...controller.exceptions import (
    BakeError,
    GainsError,
    MotionError,
    RigError,
    SettingsError,
    SimulationError,
)
from ...controller.falls.behaviours import LIMP, STOP
from ...controller.geometry.stance import LEFT, RIGHT
from ...controller.options import options_of, units_of
from ...controller.reference.cleaning import CLEANING
from ...controller.reference.gait import Endless
from ...controller.reference.performed import performed_motion
from ...controller.search.arrival import THERE, Arrival, arrival_words
from ...controller.search.trial import NOISE, Problem
from ...controller.simulation import world
from ...controller.simulation.holds import at_times, grasp_words
from ...controller.simulation.measures import MAXIMA, T_MAX
from ...controller.simulation.measures import UNITS as MEASURE_UNITS
from ...controller.simulation.recording import hit_words
from ...controller.simulation.simulation_options import SimulationOptions
from ...controller.support.seats import seats_of
from ...controller.support.terrain import Terrain
from ..baking import bake, bake_objects, bake_proportions, ik_legs
from ..blender import compat, folders
from ..blender.pose import inverse, nearest_rotation
from ..rigs import (
    bake_target,
    leg_stretch,
    loose_bones,
    reference,
    rig,
    sampling,
    source_values,
    strips,
)
from ..scene import (
    bodies,
    contacts,
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
from ..scene.holds import HoldOptions
from ..scene.marked import GET_UPS
from ..scene.pushes import PushOptions
from ..scene.strength import StrengthOptions
from ..scene.walks import WalkOptions
from ..scene.waypoints import WaypointOptions
from ..scene.weights import WeightOptions
from . import rectify

MANIFEST = folders.ROOT / "blender_manifest.toml"

#: Farther from the origin [m] than this, positions are coarser than a millimetre.
MAX_EXTENT = 1e4

#: Unit of every figure in a report, by its key; shares and ratios have none.
UNITS = {
    "fell_at": "s",
    "rest_at": "s",
    "deepest": "mm",
    "up_at": "s",
    "went_on": "frame",
    "help": "N",
    "help_torque": "N m",
    "reached": "s",
    "cpu": "s",
    "wall": "s",
    "fell_frame": "frame",
    "fell_again": "frame",
    "stood_again": "frame",
    "frames": "frame",
    "range": "frame",
    **MEASURE_UNITS,
    "reward": "1",
    "tracking_error": "mm",
    "tracking_error_local": "mm",
    "residual": "N",
    "residual_most": "N",
    "few_corners": "share",
    "recovery_steps": "1",
    "start": "s",
    "frame": "frame",
    "duration": "s",
    "force": "N",
    "breaking": "N",
    "gap": "mm",
    "broke": "frame",
    "place": "m",
    "missed": "m",
    "at": "s",
    "speed": "m/s",
    "heading": "°",
    "sideways": "m/s",
    "reached_speed": "m/s",
    "began": "s",
    "ended": "s",
    "allowed_help": "share",
    "reached_heading": "°",
    "steps": "1",
    "point": "m",
    "impulse_per_mass": "m/s",
    "impulse": "N s",
    "residual_torque": "N m",
    "foot_slide": "m/s",
    "foot_penetration": "mm",
    "jitter": "m/s^3",
    "zmp_inside": "share",
    "pulls_on_ground": "share",
    "bake_error": "mm",
    "bake_time": "s per 1000 bone-frames",
    "real_time_factor": "simulated s per s",
    "physics_rate": "Hz",
    "fps": "Hz",
    **units_of(SimulationOptions),
    "mass": "kg",
    "height": "m",
    "ground": "m",
    "metres_per_unit": "m per scene unit",
    "stiffness": "N m/rad",
    "damping": "N m s/rad",
    "com_position": "N/m",
    "com_velocity": "N s/m",
    "trunk": "N m/rad",
    "momentum": "1/s",
}


@dataclass(frozen=True)
class ShotOptions(SimulationOptions):
    """What to simulate, and how, beside what is chosen of a simulation. None means: find out.

    armature: name of the armature object; None: the only one (that is animated).
    action: name of the action to read; None: what animates the armature now.
    frames: (first, last) or (first, last, step) in scene frames; None: all that is animated.
    fps: frame rate of the animation [Hz]; None: the scene's.
    rig: name of a rig map, or path to one; None: found by names, else detected.
    unit: length of a scene unit [m]; None: the scene's, if that gives the body legs.
    gains: path to a gains file, or what Gains.as_dict gave; None: the defaults of the balance mode.
    balance: "foot_forces" or "virtual_forces"; None: that of the gains file, else foot_forces.
    mass: of the body [kg], before its proportions are changed; None: from its height.
    morphology: the proportions of the body.
    weights: WeightOptions, what replaces the armature's own physics weights; None: nothing.
    strength: StrengthOptions, what replaces the armature's own strength; None: nothing.
    mixed: {behaviour: share}, what replaces the armature's own shares in how it falls; None:
        nothing.
    get_up_by: names of actions by which it gets up, instead of those that are marked.
    pushes: PushOptions, beside the scene's own or instead of them; None: nothing.
    others: names of armatures that are colliders, whether they are marked as such or not.
    together: names of armatures that are simulated with this one, in one world. led: whether it is
        the first of them, for which pushes are that name no character.
    waypoints: WaypointOptions, beside the scene's own; None: nothing.
    holds: HoldOptions, beside the scene's own; None: nothing.
    contacts: ContactPlan that says when feet stand, instead of one that is kept with the action;
        None: that one, or else what is found.
    walk: WalkOptions, to loop a walk or run for longer than it lasts; None: as it is.
    keys: how the result is written.
    """

    armature: str | None = None
    action: str | None = None
    frames: tuple[float, ...] | None = None
    fps: float | None = None
    rig: str | None = None
    unit: float | None = None
    gains: str | dict | None = None
    balance: str | None = None
    mass: float | None = None
    morphology: Morphology = field(default_factory=Morphology)
    weights: WeightOptions | None = None
    strength: StrengthOptions | None = None
    mixed: dict[str, float] | None = None
    get_up_by: tuple[str, ...] = ()
    pushes: PushOptions | None = None
    others: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    led: bool = True
    waypoints: WaypointOptions | None = None
    holds: HoldOptions | None = None
    contacts: ContactPlan | None = None
    walk: WalkOptions | None = None
    keys: bake.BakeOptions = field(default_factory=bake.BakeOptions)


def find_armature(scene, name=None, others=()):
    """The armature object of that name in a scene, or the only one (that is animated, and no
    collider). others: names of armatures that are colliders beside those that are marked.

    Raises RigError if there is none, or if there are several to choose from.
    """
    armatures = [thing for thing in scene.objects if thing.type == "ARMATURE"]
    if not armatures:
        raise RigError(
            f"The scene '{scene.name}' has no armature: "
            f"{_instanced(scene) or _elsewhere() or _NO_ARMATURE}."
        )
    names = ", ".join(f"'{thing.name}'" for thing in armatures)
    if name is not None:
        called = [thing for thing in armatures if thing.name == name]
        if len(called) > 1:
            raise RigError(
                f"The scene '{scene.name}' has several armatures '{name}', such as a linked one "
                "beside its override: take those that are not to move out of it, or rename one."
            )
        if called:
            return called[0]
        raise RigError(f"The scene '{scene.name}' has no armature '{name}': choose one of {names}.")
    if len(armatures) == 1:
        return armatures[0]
    animated = [thing for thing in armatures if _is_animated(thing)]
    free = [thing for thing in animated if not (thing.name in others or _is_collider(thing))]
    for found in (animated, free):
        if len(found) == 1:
            return found[0]
    raise RigError(f"The scene '{scene.name}' has several armatures: choose one of {names}.")


#: What all shots of one animation have in common, which need not be in memory for each.
_SHARED = ("bone_matrices", "basis_matrices")
#: What moves less [scene units, or of a turn] does not move.
_STILL = 1e-4
_NO_ARMATURE = "open a shot that has an animated character"


def _elsewhere():
    """What to do where other scenes have armatures; empty where none has."""
    others = [
        f"'{one.name}'"
        for one in bpy.data.scenes
        if any(thing.type == "ARMATURE" for thing in one.objects)
    ]
    return f"choose another scene, {' or '.join(others)}, which has one" if others else ""


def _instanced(scene):
    """What to do where an armature is in a collection that the scene has as an instance; empty
    where there is none."""
    for thing in scene.objects:
        inside = thing.instance_collection.all_objects if thing.instance_collection else ()
        for one in inside:
            if one.type == "ARMATURE":
                return (
                    f"'{one.name}' is in '{thing.name}', an instance of a collection; make that a "
                    "library override, or real (Object > Apply > Make Instances Real)"
                )
    return ""


def warnings_of(scene):
    """Sentences on what a scene says and Poise does not follow."""
    gravity = np.array(scene.gravity)
    if not scene.use_gravity or not np.allclose(gravity, (0, 0, -GRAVITY), atol=0.02):
        told = ", ".join(f"{one:g}" for one in gravity) + " m/s²" if scene.use_gravity else "off"
        yield (
            f"The scene's gravity ({told}) is not followed: bodies are simulated under "
            f"{GRAVITY:g} m/s² downward."
        )
    # What Rigify leaves in each of its rigs' files draws panels, and moves nothing.
    if bpy.app.autoexec_fail and "'rig_ui" not in bpy.app.autoexec_fail_message:
        yield (
            "Blender has blocked Python drivers or scripts of this file, which may change the "
            "pose: allow them (--enable-autoexec, or Auto Run Python Scripts) if you trust it."
        )


def _is_animated(thing):
    animation = thing.animation_data
    return animation is not None and bool(animation.action or source_values.others(animation))


def _is_collider(thing):
    return hasattr(thing, "poise") and thing.poise.role == "COLLIDER"


def uncarried_words(spans):
    """A sentence on (first, last) frames in which no contact carries a body; empty without any."""
    if not spans:
        return ""
    first, last = spans[0]
    others = f", and {len(spans) - 1} times more" if len(spans) > 1 else ""
    return (
        f"No foot stands from frame {first:g} to {last:g}{others}, though the body does not fall: "
        "correct the contacts there, or see whether the clip skates or hovers."
    )


class Flaw(NamedTuple):
    """Something to look at in a result: its frame, and all of it in words."""

    frame: float
    sentence: str


class ArmatureShot:
    """An armature of a scene, of which `options` say what is read: their armature, action, frames,
    fps, rig, unit and keys are as ShotOptions has them. Only its own methods change it."""

    #: The Choice of Automatic; None where it has chosen nothing.
    choice: Any = None

    def __init__(self, scene, options, others=()):
        """others: as `find_armature` has them. Raises RigError if the armature cannot be told,
        SettingsError for odd keys."""
        self.options = options
        options.keys.check()
        # Names, not references: an undo between two steps makes references invalid.
        self._scene = scene.name
        self._armature = find_armature(scene, options.armature, others).name

    @property
    def scene(self):
        """The scene that the shot is in."""
        return bpy.data.scenes[self._scene]

    @property
    def armature(self):
        """The armature object."""
        return self.scene.objects[self._armature]

    def renamed(self, scene, armature):
        """Go on with the scene and the armature under other names than they had."""
        self._scene, self._armature = scene, armature
        if self.reading is not None:
            self.reading = replace(self.reading, armature=armature)

    def find_source(self):
        """Go on with the action and slot that were read under the names that they have by now."""
        reading = self.reading
        if reading is None or reading.source is None:
            return
        known = bpy.data.actions.get((reading.action, reading.library))
        if compat.numbers(known, compat.find_slot(known, reading.slot)) == reading.source:
            return
        action, slot = compat.numbered(reading.source)
        if action is not None:
            self.reading = replace(reading, action=action.name, slot=compat.slot_name(slot))

    def share(self, other):
        """Use the arrays of another shot that was read of the same animation."""
        mine, theirs = self.reading, other.reading
        if all(np.array_equal(getattr(mine, n), getattr(theirs, n)) for n in _SHARED):
            self.reading = replace(mine, **{name: getattr(theirs, name) for name in _SHARED})

    def _reading(self):
        """Read the animation, which yields progress from 0 to 1 -> addon.reference.Reading, of
        which the bake can write all. Raises RigError, MotionError, BakeError."""
        options = self.options
        # Without a name the map is found from the animated frames, which only `reading` has.
        rig_map = rig.find(self.armature, name=options.rig) if options.rig else None
        reading = yield from reference.reading(
            self.scene,
            self.armature,
            frames=(*options.frames, 1.0)[:3] if options.frames else None,
            action=options.action,
            rig_map=rig_map,
            rate=options.fps,
            metres_per_unit=options.unit,
            stands=bool(getattr(options, "together", ())),
        )
        _check_curves(reading)
        bake_target.check_editable(self.armature)
        keys = options.keys
        source = compat.find_action(reading.action, reading.library) if reading.action else None
        if keys.action is not None:
            bake_target.chosen_action(keys.action, source)
        if keys.nla:
            strips.check(self.armature, source, compat.find_slot(source, reading.slot))
        bake_target.check_bones(self.armature, keys.keyed(reading.rig_map))
        return reading


class Shot(ArmatureShot):
    """The steps of one shot, and what each of them gave.

    reading: addon.reference.Reading, kept: ContactPlan that its action has, plan: the one in use,
        None if contacts are to be found, after `read`.
    objects: {field of controller.Scenario: value} of the objects that take part, after `read`.
    character, motion: of controller, what performs and what it performs, after `embody`, which
        `prepare` calls.
    cleaned: Motion that was cleaned, moved or commanded, with which results are compared then,
        after `prepare`; None where nothing was.
    reshaping: of controller.morphology, None if the body has the armature's proportions.
    simulation: of controller, after `prepare` (which `simulate` calls).
    checked: controller.clip_check.ClipCheck, after `check`.
    choice: addon.method.Choice of how to perform, None if there was nothing to choose.
    rectified: controller.rectification.Rectification while it goes on, then its RectifyOutcome;
        None where balance alone performs. target: Trajectory of the corrected reference, then.
    recording: what was simulated so far.
    baked: addon.bake.BakeResult, after `bake`. baked_objects: names of the objects with new keys.
    keys: BakeOptions of the last bake; before it, those of the options.
    measures: {name: (before, after)} of the bake, after `measure`.
    """

    def __init__(self, scene, options=None):
        """Raises RigError if the armature cannot be told, SettingsError for an odd option."""
        options = options or ShotOptions()
        super().__init__(scene, options, options.others)
        self.reading = self.kept = self.plan = None
        self.objects = {}
        self._carrier = ""
        self._pushes, self._weights, self._strength, self._waypoints = (), {}, {}, ()
        self._mixed: dict[str, Any] = {}
        self._get_ups, self._knocked_out = (), False
        self.character = self.motion = self.checked = self._performed = None
        self.reshaping = self.cleaned = None
        self.gains = None
        self.simulation = None
        self.rectified = self.target = self.helped = None
        self.keys = self.options.keys
        self.baked = self._back_at = None
        self.baked_objects = []
        self.measures = {}
        self._after = None
        self._of_keys, self._of_simulation = None, (None, 0, None)  # verdicts
        #: Segments of legs that stretch in the animation, and no more where they are simulated.
        self.stretched = ()
        #: What was cleaned without being asked for, in a sentence.
        self.mended = ""
        self._seconds = {}

    @property
    def recording(self):
        """What was simulated so far; None before `prepare`."""
        performed = self.rectified or self.simulation
        return None if performed is None else performed.recording

    @property
    def ends(self):
        """Sentences on where the bake ends, if that is not where the animation and the scene do,
        on where it is the animation again, and on how fast it would go where it stays in place."""
        if self.baked is None:
            return ()
        found, at = [], self.baked.frames[1]
        if self._back_at is not None:
            found.append(f"It is exactly the animation again from frame {self._back_at:g} on.")
        last, end = float(self.reading.frames[-1]), self.scene.frame_end
        if at < last:  # it fell, or was kept early
            found.append(
                f"The bake ends at frame {at:g}, as the result does: the animation goes on to "
                f"{last:g}."
            )
        if at > end:
            found.append(
                f"It goes on to frame {at:g}, and the scene ends at {end}: lengthen the scene to "
                "see all of it."
            )
        if stays := self.baked.stays(self.reading):
            found.append(stays)
        return tuple(found)

    @property
    def why(self):
        """Sentences on why the last frame was not reached; empty if it was."""
        why = self.recording.why()
        if not why:
            return self.rectified.why if self.rectified else ""
        return f"{why} {self._doubt}".rstrip()

    @property
    def _doubt(self):
        """A sentence on where a contact plan lets nothing carry the body, which nothing holds."""
        if self.plan is None or self.recording.scenario.holds:
            return ""
        frame = self.recording.motion.frame
        return uncarried_words([tuple(map(frame, span)) for span in self.recording.uncarried()])

    def read(self):
        """Read the animation; yields progress from 0 to 1. Raises PoiseError."""
        options = self.options
        started = time.perf_counter()
        self.reading = yield from self._reading()
        self._seconds["reading"] = time.perf_counter() - started
        yield 1.0
        self.plan = self._plan()
        if options.walk is not None:
            acts = yield from walks.collecting(
                self.scene, self.reading, options.walk, options.mass, options.fps
            )
            self.reading = walks.endless(self.scene, self.reading, options.walk, options.mass, acts)
        options.keys.check_blends(self.reading.frames)
        check_extent(self.reading.motion)
        self.objects = yield from objects.collecting(
            self.scene, self.reading, options.others, options.together
        )
        parent = self.armature.parent
        self._carrier = parent.name if parent else self.armature.name
        self._pushes = yield from pushes.collecting(
            self.scene, self.reading, options.pushes, options.led
        )
        self._waypoints = yield from waypoints.collecting(
            self.scene, self.reading, options.waypoints
        )
        held = yield from holds.collecting(
            self.scene, self.reading, self.objects, options.holds, options.together
        )
        if held:
            self.objects = self.objects | {"holds": held}
        self._weights = weights.collect(self.scene, self.reading, options.weights)
        self._strength = strength.collect(self.scene, self.reading, options.strength)
        self._mixed = mixture.collect(self.scene, self.reading, options.mixed)
        out = strength.knock_out(self.armature, options.strength)
        self._knocked_out = out is not None and out <= self.reading.frames[-1]
        yield 1.0
        if options.get_up:
            own = options.get_up_by or GET_UPS.of(self.armature)
            self._get_ups = yield from marked.collecting(self.scene, self.reading, own, options.fps)
        if options.morphology:
            bake_proportions.check(self.armature, self.reading.rig_map)
        else:
            self.stretched = leg_stretch.find(self.armature, self.reading)
        yield 1.0

    def choose(self, *frames):
        """Read these frames, as ShotOptions has them, instead of those of the options."""
        self.options = replace(self.options, frames=frames)

    def _plan(self):
        """The ContactPlan of what was read; None if contacts are to be found."""
        given = self.options.contacts
        if self.options.walk is None:
            if given is not None:
                contacts.check_rate(given, self.reading)
                return given
            self.kept = contacts.plan_for(self.reading)
            return self.kept
        if given is not None:
            raise SettingsError(
                "An endless walk finds its own contacts, round after round: leave out the contact "
                "plan, or simulate the clip as it is."
            )
        return None

    @property
    def notes(self):
        """Sentences on what was read, after `read`: frames without animation, how much longer it
        takes for the other bodies, and that it is none of them itself."""
        limbs, seconds = self.objects.get("limbs", ()), self.reading.motion.duration
        found = [self.reading.still, bodies.slowness_of(limbs, seconds, self.options.rate)]
        if _is_collider(self.armature) and not (limbs or self.options.together):
            found.append(bodies.own_collider(self.scene, self.armature))
        return [sentence for sentence in found if sentence]

    # From here to the bake nothing of Blender's data is touched: it may be done in a thread.

    def embody(self):
        """Measure the body from what was read. Raises PoiseError."""
        motion, morphology = self.reading.motion, self.options.morphology
        if morphology and isinstance(motion, Endless):
            raise SettingsError(
                "An endless walk keeps the armature's own proportions: set them back, or "
                "simulate the clip as it is."
            )
        scenario = controller.Scenario(**self.objects)
        self._performed = Problem(
            motion, self.options.mass, scenario=scenario, morphology=morphology
        )
        self.character, self.motion = self._performed.character, self._performed.shaped_motion
        self.reshaping, self.checked = self._performed.reshaping, None
        self.gains = self._gains()

    def check(self):
        """What the clip asks of the body, cleaned as it is to be, after `embody` -> ClipCheck."""
        if self.checked is None:
            cleaning = self.options.cleaning
            motion = self.motion
            clip = motion.source if isinstance(motion, Endless) else motion
            self.checked = clip_check.check(
                self.character,
                clip,
                cleaning,
                self._terrain(clip),
                self._ride(),
                self._held(),
                self._seats(),
            )
        return self.checked

    def _seats(self):
        """seats.Seats of the motion; None where it never sits, or goes round."""
        if isinstance(self.motion, Endless):
            return None
        return seats_of(controller.Scenario(**self.objects), self.character.ground, self.motion)

    def _held(self):
        """(F,) samples in which limbs are held; None where none ever is, or the clip goes round."""
        if isinstance(self.motion, Endless):
            return None
        return at_times(self.objects.get("holds", ()), self.motion)

    def _ride(self):
        """clip_check.Ride: what moves the armature beside its own channels; None if nothing does,
        or a collider moves."""
        reading = self.reading
        if isinstance(self.motion, Endless):
            return None
        carried = reading.object_matrices @ inverse(reading.object_bases)
        moves = any(collider.moves for collider in self.objects.get("colliders", ()))
        if moves or np.ptp(carried, axis=0).max() < _STILL:
            return None
        return clip_check.Ride(
            self._carrier,
            carried[:, :3, 3] * reading.metres_per_unit,
            nearest_rotation(carried[:, :3, :3]),
        )

    def _terrain(self, motion):
        """terrain.Terrain under a motion, None for a level floor."""
        scenario = controller.Scenario(**self.objects)
        return Terrain.of(scenario, self.character.ground, motion)

    def prepare(self, mend=False):
        """Build the body and its simulation from what was read. Raises PoiseError.

        mend: clean what pops or floats, too, and let `mended` tell.
        """
        if self.options.together and any(np.any(one < 1) for one in self._weights.values()):
            raise SettingsError(
                f"Parts of '{self._armature}' follow the animation, and feel nobody's push: set "
                "all of its physics weights to 1, or make it a collider of the others."
            )
        self.rectified = self.helped = None
        self.embody()
        if mend and not isinstance(self.motion, Endless):
            self._mend()
        options = self.options
        if "despike" not in options.cleaning:
            reference.check_pops(self.reading)
        body = self.character.actor or self.character
        shoves, thrown = walks.commanded_blows(self.reading.motion, self.character, options.walk)
        objects = self.objects | {"things": (*self.objects.get("things", ()), *thrown)}
        scenario = controller.Scenario(
            pushes.collect(self._pushes, self.reading.motion, body, options.pushes, self.reshaping)
            + shoves,
            **objects,
            weights=self._weights,
            strength=self._strength,
            mixed=self._mixed,
            get_ups=self._get_ups
            if self.reshaping is None
            else tuple(self.reshaping.applied(one) for one in self._get_ups),
        )
        chosen = {f.name: getattr(options, f.name) for f in fields(SimulationOptions)}
        if (self._knocked_out or options.together) and options.when_it_falls == STOP:
            chosen["when_it_falls"] = LIMP
        settings = controller.Settings(
            **chosen,
            balance=self.gains.balance,
            contacts=self.plan,
            waypoints=self._waypoints,
        )
        self._performed = self._performed.under(settings, scenario)
        try:
            simulation = self._performed.simulation(self.gains, settings.seed)
        except MotionError as error:
            # Where it begins above what it should stand on, the check knows on what.
            found = (one for one in self.check().findings if one.kind == "support")
            missing = next(found, None) if not isinstance(self.motion, Endless) else None
            if missing is None:
                raise
            told = f"{missing.sentence[0].upper()}{missing.sentence[1:]}."
            raise MotionError(told) from error
        self._tried(self._performed, simulation)
        cleaned = self.simulation.recording.cleaned()
        self.cleaned = cleaned and performed_motion(cleaned, self._chains())

    def _tried(self, problem, simulation):
        """Have a simulation of a problem as what performs."""
        self._performed, self.simulation = problem, simulation
        self._arrival = Arrival(problem, self.gains, simulation)

    def aim(self):
        """Once `simulation` has ended: whether the body is to try again to get to its waypoints, by
        another one, which is prepared. Else the best one is taken."""
        again = self._arrival.again()
        self._performed, self.simulation = self._arrival.problem, self._arrival.simulation
        return again

    def _mend(self):
        """Switch on the cleaning that the clip asks for, beside what was chosen."""
        found, chosen = self.check(), self.options.cleaning
        mends = set(found.mends)
        if self.objects.get("holds"):
            mends.discard("ground")  # who hangs is meant to
        if not mends <= set(chosen):
            names = tuple(name for name in CLEANING if name in {*chosen, *mends})
            self.options = replace(self.options, cleaning=names)
            self.mended, self.checked = found.mending, None

    def prepare_with(self, gains):
        """`prepare` anew, with other Gains and their balance mode."""
        self.options = replace(self.options, gains=gains.as_dict(), balance=None)
        self.prepare()

    def _gains(self):
        """The chosen gains, or the defaults of the balance mode."""
        given, balance = self.options.gains, self.options.balance
        if given is None:
            motion = self.reading.motion
            walking = isinstance(motion, Endless) and motion.walk.directed
            balance = balance or "foot_forces"
            return controller.Gains.default(self.character, balance, walking)
        if isinstance(given, dict):
            source = "the chosen set of gains"
            gains = controller.Gains.from_dict(given, self.character, source)
        else:
            source = f"the gains file '{given}'"
            gains = controller.Gains.load(given, self.character)
        if balance not in (None, gains.balance):
            raise GainsError(
                f"{source[0].upper()}{source[1:]} is for the balance mode '{gains.balance}', not "
                f"'{balance}': choose that mode, or other gains."
            )
        return gains

    def performance(self):
        """What is simulated, after `prepare`, as any process can do it -> controller.trial.Problem
        with the same settings, and all that happens; without what balance was ahead by of its
        waypoints."""
        settings = replace(self._performed.settings, waypoints=self._waypoints)
        if settings == self._performed.settings:
            return self._performed
        return self._performed.under(settings, self._performed.scenario)

    def problem(self, maxima=None, duration=T_MAX, disturbance=None):
        """What gains can be tuned for: the `performance`, but for the noise, and without what
        `left_out` tells; what stands in the scene is in every trial.

        maxima: largest allowed errors by name, None for measures.MAXIMA. duration: of a trial [s].
        disturbance: as Problem has it, by kind; None or 0 for none.
        """
        problem = self.performance()
        settings = replace(
            problem.settings,
            noise=NOISE,
            seed=0,
            when_it_falls=STOP,
            get_up=False,
            duration=duration,
            maxima=dict(maxima or MAXIMA),
            waypoints=(),
        )
        drawn = {kind: size for kind, size in (disturbance or {}).items() if size}
        motion = problem.motion
        if isinstance(motion, Endless) and duration is not None:
            motion = replace(motion.walk, seconds=duration).motion(self.character, motion.source)
        scenario = controller.Scenario(**self._standing())
        return replace(
            problem, motion=motion, settings=settings, disturbance=drawn, scenario=scenario
        )

    def _standing(self):
        """What of the objects is there at any time."""
        still = tuple(c for c in self.objects.get("colliders", ()) if not c.moves)
        return self.objects | {"things": (), "colliders": still, "limbs": (), "holds": ()}

    @property
    def left_out(self):
        """A sentence on what of the scene the trials of `problem` leave out, after `prepare`."""
        scenario = self.simulation.scenario
        names = (
            ("pushes", scenario.pushes),
            ("things", scenario.things),
            ("colliders that move", [c for c in scenario.colliders if c.moves]),
            ("other bodies", scenario.limbs),
            ("waypoints", self._waypoints),
            ("holds", scenario.holds),
            ("physics weights", self._weights),
            ("strength", self._strength),
            ("mixed falls", self._mixed),
        )
        out = ", ".join(name for name, there in names if there)
        return out and f"Trials repeat the clip and leave out what happens once: {out}."

    def simulate(self):
        """Simulate; yields the number of each sample reached, 0, 1, 2, … Ends where it falls. Where
        a waypoint is missed it begins anew, see `aim`.

        Raises BakeError before any work if the armature could not take the result.
        """
        while True:
            yield from (sample for sample in self.simulating() if sample is not None)
            if not self.aim():
                return

    def simulating(self):
        """One try of it, in pieces short enough for a window: yields None where a sample has
        several."""
        bake_target.check_editable(self.armature)
        if self.simulation is None:
            self.prepare()
        yield from self.simulation.pieces()

    def decide(self, choice):
        """Perform as a Choice says; by balance alone, nothing stays of a rectification."""
        self.choice = choice
        if choice.method == "balance":
            self.rectified = None

    def balanced(self):
        """What balance alone did, once there is a choice, beside whatever follows -> Shot."""
        other = copy.copy(self)
        other.decide(replace(self.choice, method="balance"))
        return other

    def help(self, share, rate):
        """Prepare it anew with help from outside, of at most a share of the weight, at a rate of
        the control of at least so much [Hz]."""
        problem = self.performance()
        rate = max(rate, problem.settings.rate)
        settings = replace(problem.settings, outside_help=share, rate=rate)
        self.options = replace(self.options, outside_help=share, rate=rate)
        helped = problem.under(settings, problem.scenario)
        self._tried(helped, helped.simulation(self.gains, settings.seed))

    def set_aside(self):
        """Remember what help from outside has come to, beside whatever follows."""
        self.helped = copy.copy(self)

    def take(self, other):
        """Perform as a copy of it does, from before `help` or from when that was set aside."""
        self.options = other.options
        self._tried(other._performed, other.simulation)

    def with_gains(self, gains):
        """The same reference and scene, to be simulated with other Gains, beside it -> Shot."""
        other, problem = copy.copy(self), self.performance()
        other.gains = gains
        other._tried(problem, problem.simulation(gains, problem.settings.seed))
        return other

    def follow(self, search):
        """Have what a Rectification commits, while it goes on, as what was simulated so far."""
        self.rectified = search

    def settle(self, search):
        """Have what a Rectification has come to as the result."""
        search.recording.wall_time = search.wall
        self.rectified, self.target = search.outcome(), search.target_trajectory()

    def bake(self):
        """`baking` from beginning to end -> BakeResult."""
        return sampling.run(self.baking())

    def baking(self, keys=None):
        """Write what was simulated to a new action; yields progress from 0 to 1, returns a
        BakeResult. Raises BakeError. keys: BakeOptions; None: those of the options.

        Where a fall ends the simulation, the bake ends there.
        """
        recording = self.recording
        if len(recording) < 2:
            raise SimulationError(
                f"'{self.armature.name}' falls at once, at frame {self.reading.motion.frame(0):g}: "
                "neither its feet nor a seat carry it there, so nothing can be baked. Start from a "
                "frame in which it stands, or sits upright: nobody lies, kneels or crawls by "
                "balance."
            )
        planned = bake_objects.plan(self.scene, self.reading, recording)
        yield from self._writing(recording, "simulation", keys)
        self.baked_objects = bake_objects.bake_things(
            self.scene, self.reading, planned, self.keys.take
        )
        return self.baked

    def bake_target(self):
        """`baking_target` from beginning to end -> BakeResult."""
        return sampling.run(self.baking_target())

    def baking_target(self, keys=None):
        """Write the rectified animation without any physics to an action of its own; yields
        progress from 0 to 1, returns a BakeResult. keys: as `baking` has them.

        It ends where the rectified motion does. Raises BakeError.
        """
        if self.rectified is None:
            raise BakeError(
                f"'{self.armature.name}' was not rectified, so there is no correction to bake: "
                "rectify it first."
            )
        yield from self._writing(rectify.target_recording(self), "target", keys)
        self.baked_objects = []
        return self.baked

    def _writing(self, recording, kind, keys):
        yield 0.0
        started = time.perf_counter()
        self.keys = keys or self.options.keys
        deltas = recording.differences(self.stretched)
        back = recording.back_at(*deltas)
        self._back_at = None if back is None else _frame_at(self.reading.motion, back)
        yield 0.0
        self.baked = yield from bake.baking(
            self.scene,
            self.reading,
            *deltas,
            self.keys,
            self.reshaping,
            kind,
            dict.fromkeys(self.stretched, recording.simulated_legs()),
            recording.hold,
        )
        contacts.hand_on(self.armature)
        self.measures, self._of_keys = {}, None  # until it is read back
        self._seconds["writing"] = time.perf_counter() - started

    def measure(self):
        """Read the bake back through Blender and compare; yields progress from 0 to 1."""
        yield from self.read_back()
        self.compare()

    def read_back(self):
        """Read the bake back through Blender; yields progress from 0 to 1."""
        samples = len(self.recording)
        before = self.reading
        step = float(before.frames[1] - before.frames[0])
        self._after = yield from reference.reading(
            self.scene,
            self.armature,
            frames=(float(before.frames[0]), float(before.frames[samples - 1]), step),
            # By itself: its strip may have been moved to other frames.
            action=strips.shown(self.armature),
            rig_map=before.rig_map,
            rate=self.options.fps,
            metres_per_unit=before.metres_per_unit,
        )

    def compare(self):
        """Compare what `read_back` has read with the source. Touches nothing of Blender's data."""
        recording, after = self.recording, self._after.motion
        left_out = np.linspace(0, 1, len(after))[:, None] * [*self.baked.way, 0.0]
        after = replace(after, positions=after.positions + left_out[:, None])
        source, stands = recording.motion, recording.reference_stance[:, None] & [LEFT, RIGHT]
        measures = controller.measures_of_bake(
            self.character,
            _start_of(source, len(recording)),
            after,
            (stands > 0, recording.contacts),
            self._terrain(source),
        )
        self._of_keys = self._judged(after)
        self.measures, self._after = measures, None

    def _chains(self):
        """Where the bones of spine and neck begin in the animation, as `performed_motion` has
        them; none for a body of other proportions, in which they are elsewhere."""
        if self.reshaping is not None:
            return {}
        reading = self.reading
        heads = reading.bone_matrices[..., :3, 3]
        return {
            segment: reading.metres_per_unit
            * heads[:, [reading.bone_names.index(bone) for bone in reading.rig_map.bones[segment]]]
            for segment in ("trunk", "head")
        }

    def performed(self):
        """What a bake of what was simulated so far writes -> Motion."""
        controls = bool(self.reading.rig_map.controls)
        return performed_motion(self.recording, self._chains(), self.stretched, controls)

    @property
    def verdict(self):
        """Would an animator keep it -> controller.verdict.Verdict: of the keys, if they are baked,
        measured and still there, else of what was simulated; None where it fell at once."""
        # An undo takes the bake away, but not what is remembered of it.
        if self._of_keys is not None and bake_target.is_there(self.baked):
            return self._of_keys
        return self.judge()

    @property
    def flaws(self):
        """What to look at in a result that is no keeper -> list of Flaw: what the verdict found;
        first that it fell, and from where on it could not but fall, if it did."""
        verdict, fell = self.verdict, self.fell_frame
        found = [Flaw(one.frame, one.sentence) for one in verdict.findings] if verdict else []
        if fell is None:
            return found
        toppled = self.recording.toppled
        told, until = [Flaw(fell, self.why)], fell
        if toppled is not None:
            until = self.reading.motion.frame(toppled)
            told.append(Flaw(until, f"it loses its balance at frame {until:g}"))
        return told + [one for one in found if one.frame < until]

    def judge(self):
        """The Verdict on what was simulated so far; None below two samples. A panel asks for it at
        each drawing, so it is remembered."""
        recording = self.recording
        if len(recording) < 2:
            return None
        of, count, verdict = self._of_simulation
        if of is not recording or count != len(recording):
            verdict = self._judged(self.performed())
            self._of_simulation = recording, len(recording), verdict
        return verdict

    def _judged(self, after):
        """The Verdict on a Motion that has come of the source, as it was cleaned: a fall is none of
        its flaws."""
        recording = self.recording
        stood = _start_of(after, recording.standing)
        led = self.compared == "commanded"
        source, walks_on = self.cleaned or recording.motion, isinstance(self.motion, Endless)
        around = None if walks_on else recording.scenario
        hangs = recording.hanging_feet
        return judge_motions(source, stood, recording.success, led, around, hangs)

    def inspection(self):
        """What would be simulated, as a dict for JSON: map, body, stance, ground, frames."""
        reading, motion, character = self.reading, self.motion, self.character
        return {
            "armature": reading.armature,
            "source_action": reading.action,
            "range": _frames(reading),
            "fps": _plain(reading.rate),
            "samples": len(motion),
            "rig": rig_as_dict(reading.rig_map),
            "body": self._body(),
            "segment_masses": _plain(character.segment_masses),
            "foot": _foot(character, reading.rig_map),
            "loose_bones": loose_bones.find(self.armature, reading),
            "leg_controls": ik_legs.controls(self.armature, reading.rig_map),
            "stance": _plain(character.stance_summary(motion)),
            "check": _plain(self.check().as_dict()),
            "versions": versions(),
            "units": units("range", "fps", "mass", "height", "ground", "metres_per_unit")
            | {"segment_masses": "kg", "stance": "share", "foot": "m"},
        }

    def report(self):
        """What was done and how good it is, as a dict for JSON, in the terms of measures.md."""
        reading, recording, options = self.reading, self.recording, self.options
        verdict = self.verdict
        report = {
            "armature": reading.armature,
            "source_action": reading.action,
            "baked_action": self.baked.action if self.baked else None,
            "baked_slot": self.baked.slot if self.baked else None,
            "baked_objects": self.baked_objects,
            "tracks_over": list(self.baked.over) if self.baked else [],
            "frames": _plain(self.baked.frames) if self.baked else None,
            "range": _frames(reading),
            "back_frame": _plain(self._back_at),
            "fps": _plain(reading.rate),
            **{name: getattr(options, name) for name in options_of(options)},
            "when_it_falls": self.simulation.settings.when_it_falls,
            **_plain(recording.summary()),  # which counts recovery steps
            "fell_frame": self.fell_frame,
            **{
                name: [
                    _plain(reading.motion.frame(count - 1)) for count in getattr(recording, name)
                ]
                for name in ("fell_again", "stood_again")
            },
            "why": self.why,
            "verdict": {"compared_with": self.compared, **_plain(verdict.as_dict())}
            if verdict
            else None,
            "loose_bones": loose_bones.find(self.armature, reading),
            "method": asdict(self.choice) if self.choice else None,
            "rectification": _plain(self.rectified.as_dict()) if self.rectified else None,
            "pushes": [self._push(push) for push in recording.scenario.pushes],
            "met": recording.partners,
            "hits": [self._hit(hit) for hit in recording.hits()],
            "waypoints": self._arrivals(),
            "commands": self._followed(),
            "states": self._states(),
            "holds": self._grasps(),
            "strength": {
                name: _plain(np.min(values)) for name, values in recording.scenario.strength.items()
            },
            "mixed": {
                name: _plain(np.max(values)) for name, values in recording.scenario.mixed.items()
            },
        }
        for name, (before, after) in self.measures.items():
            report[name] = {"before": _plain(before), "after": _plain(after)}
        if self.baked:
            report["bake_error"] = _plain(self.baked.error_mm)
            report["leg_controls"] = list(self.baked.leg_controls)
            report["released_legs"] = list(self.baked.released_legs)
            report["bake_time"] = self._bake_time()
        report |= {
            "gains": _plain(self.gains.as_dict()),
            "gains_completed": self.gains.completed,
            "rig": rig_as_dict(reading.rig_map),
            "body": self._body(),
            "rate": _plain(self.simulation.rate),
            "physics_rate": _plain(self.simulation.rate),
            "balance": self.gains.balance,
            "cleaning": list(options.cleaning),
            "contacts": self.plan.as_dict() if self.plan else None,
            "keys": asdict(self.keys),
            "versions": versions(),
            "units": UNITS,
        }
        return report

    def _followed(self):
        """The commands of a walk for the report, each with what came of it."""
        motion, recording = self.reading.motion, self.recording
        if not isinstance(motion, Endless):
            return []
        allowed = {act.name: act.outside_help for act in motion.walk.acts}
        return [
            {
                "at": _plain(one.at),
                "frame": _frame_at(motion, one.at),
                "speed": _plain(one.speed),
                "heading": _plain(round(np.degrees(one.heading), 6)),
                "sideways": _plain(one.aside),
                "reached_speed": _plain(one.reached_speed),
                "reached_heading": _plain(np.degrees(one.reached_heading)),
                "steps": one.steps,
                "act": one.act,
                "began": _plain(one.began),
                "ended": _plain(one.ended),
                "allowed_help": allowed.get(one.act),
            }
            for one in recording.followed
        ]

    def _states(self):
        """What a body that walks on was in, for the report, each with when it began."""
        motion, recording = self.reading.motion, self.recording
        return [
            {"at": _plain(sample / motion.rate), "frame": _plain(motion.frame(sample))}
            | state.as_dict()
            for sample, state in recording.states
        ]

    def _arrivals(self):
        """The waypoints for the report, each with how far it was missed."""
        motion, missed = self.reading.motion, self.recording.missed()
        return [
            {
                "name": one.name,
                "frame": _frame_at(motion, one.time),
                "place": _plain(one.place),
                "missed": _plain(np.linalg.norm(left)),
            }
            for one, left in zip(self.recording.reference.waypoints, missed, strict=True)
        ]

    @property
    def arrivals(self):
        """A sentence, without an end, on each waypoint, and whether the body got there."""
        return [
            (arrival_words(**one), one["missed"] is not None and one["missed"] <= THERE)
            for one in self._arrivals()
        ]

    def _grasps(self):
        """The holds for the report, each with what became of it."""
        motion, recording = self.reading.motion, self.recording

        def frame(sample):
            return _frame_at(motion, sample / motion.rate)

        return [
            {
                "name": one.name,
                "limb": one.limb,
                "to": hold.to,
                "frames": None if one.began is None else [frame(one.began), frame(one.ended)],
                "breaking": _plain(hold.breaking),
                "force": _plain(one.force),
                "gap": _plain(1e3 * one.gap),
                "broke": frame(one.ended) if one.broke else None,
            }
            for one, hold in zip(recording.grasps(), recording.scenario.holds, strict=True)
        ]

    @property
    def grasps(self):
        """A sentence, without an end, on each hold, and whether it held."""
        return [
            (grasp_words(**one), one["frames"] is not None and one["broke"] is None)
            for one in self._grasps()
        ]

    @property
    def hit(self):
        """A sentence, without an end, on the hardest hit by another body; empty without one."""
        hardest = self.recording.hardest_hit
        return hit_words(**self._hit(hardest)) if hardest else ""

    @property
    def compared(self):
        """What the verdict compares with, a key of COMPARED."""
        if self.cleaned is None:
            return "source"
        if isinstance(self.motion, Endless):
            return "commanded"
        return "moved" if self.recording.reference.waypoints else "cleaned"

    def _push(self, push):
        """A push for the report; its impulse per mass is what compares bodies."""
        motion = self.reading.motion
        return {
            "start": _plain(push.start),
            "frame": _frame_at(motion, push.start),
            "duration": _plain(push.duration),
            "force": _plain(push.force),
            "segment": push.segment,
            "point": _plain(push.point),
            "impulse_per_mass": _plain(np.linalg.norm(push.impulse) / self.character.mass),
        }

    def _hit(self, hit):
        """A Hit for the report."""
        told = hit._asdict()
        frame = _frame_at(self.reading.motion, told.pop("sample") / self.reading.motion.rate)
        return {"frame": frame, **_plain(told)}

    @property
    def fell_frame(self):
        """Frame at which it fell; None if it did not."""
        recording, motion = self.recording, self.reading.motion
        if recording is None or recording.fell_at is None:
            return None
        return _frame_at(motion, recording.fell_at)

    def _body(self):
        character = self.character
        return {
            "mass": _plain(character.mass),
            "height": _plain(character.height),
            "ground": _plain(character.ground),
            "morphology": self.options.morphology.as_dict(),
            "metres_per_unit": _plain(self.reading.metres_per_unit),
            "unit_guessed": self.reading.unit_guessed,
        }

    def _bake_time(self):
        """Reading and writing [s] per 1000 bone-frames."""
        bones = len(self.reading.bone_names)
        counts = {
            "reading": bones * len(self.reading.frames),
            "writing": bones * len(self.recording),
        }
        return {name: 1000 * self._seconds[name] / count for name, count in counts.items()}


def _foot(character, rig_map):
    """The foot that is simulated, and by which bones: from the ankle back to the heel, ahead to the
    ball and the tip of the toes, down to the sole."""
    foot = character.feet[0]
    toes = [rig_map.bones[slot][0] for slot in ("toe_l", "toe_r") if slot in rig_map.bones]
    ends = {name: _plain(getattr(foot, name)) for name in ("heel", "ball", "toe", "depth")}
    return ends | {"ball_bones": toes}


def _check_curves(reading):
    """Refuse muted curves of simulated bones: the bake could only keep them silent or not."""
    action = compat.find_action(reading.action, reading.library) if reading.action else None
    bones = {bone for chain in reading.rig_map.bones.values() for bone in chain}
    for curve in compat.curves(action, compat.find_slot(action, reading.slot)):
        bone = reference.bone_of(curve.data_path)
        if (curve.mute or (curve.group and curve.group.mute)) and bone in (None, *bones):
            channel = curve.data_path.rsplit(".", 1)[-1]
            owner = f"bone '{bone}'" if bone else "object"
            raise MotionError(
                f"The curve {channel} of the {owner} in "
                f"'{reading.action}' is muted: unmute it, or delete it if it shall not count."
            )


def check_extent(motion):
    """Refuse what Blender's single precision cannot place: it would shake in the bake."""
    extent = np.nanmax(np.abs(motion.positions), axis=(1, 2))
    if extent.max() > MAX_EXTENT:
        raise MotionError(
            f"'{motion.name}' is {extent.max() / 1e3:.3g} km away from the origin at frame "
            f"{motion.frame(np.argmax(extent)):g}: mend or delete the keys there, or move the "
            "shot to the origin."
        )


def _start_of(motion, samples):
    """The first samples of a motion."""
    return replace(
        motion, rotations=motion.rotations[:samples], positions=motion.positions[:samples]
    )


def _frame_at(motion, seconds):
    """The frame at a time [s], without what is lost on the way there and back."""
    return _plain(round(motion.frame(seconds * motion.rate), 6))


def _frames(reading):
    return [_plain(reading.frames[0]), _plain(reading.frames[-1])]


def rig_as_dict(rig_map):
    """A rig map for a report."""
    return {
        "name": rig_map.name,
        "detected": rig_map.detected,
        "missing": list(rig_map.missing),
        "bones": {slot: list(bones) for slot, bones in rig_map.bones.items()},
    }


def units(*names):
    """The units of some figures of a report."""
    return {name: UNITS[name] for name in names}


def versions():
    """What made the result: {"poise", "blender", "pybullet", "numpy", "python"}."""
    with MANIFEST.open("rb") as file:
        poise = tomllib.load(file)["version"]
    return {
        "poise": poise,
        "blender": bpy.app.version_string,
        "pybullet": world.version(),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def _plain(value):
    """A value of NumPy's, or a container of such, as JSON knows it; not-a-number becomes None."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not np.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 2**31 else value
    return value
