# SPDX-License-Identifier: GPL-3.0-or-later
"""Clean feet and weight of an armature's animation: read it, solve, write an action of its own.

Nothing is simulated, and nothing in the scene changes before the keys are written. The settings
in a scene are `scene.poise.clean_up`.
"""

import time
from dataclasses import dataclass, field

import bpy
from bpy.props import EnumProperty

from ...controller import Character
from ...controller.checks.verdict import judge_motions
from ...controller.clean_up.clean_up import CleanUpOptions, clean_up, propose, update
from ...controller.clean_up.leg_chain import Body
from ...controller.geometry.skeleton import SIDES
from ...controller.options import options_of
from ...controller.simulation.scenario import Scenario
from ..baking import bake
from ..blender.options import offers, values_of
from ..blender.pose import nearest_rotation
from ..blender.redrawing import on_change
from ..scene import contacts, objects, walks
from .shot import ArmatureShot, check_extent, rig_as_dict, uncarried_words, versions

#: Unit of each figure in a report.
UNITS = {
    "contact_slip": "m/s",
    "uncarried": "frame",
    "place": "m",
    "bake_error": "mm",
    "frames": "frame",
    "range": "frame",
    "fps": "Hz",
    "seconds": "s",
    "metres_per_unit": "m per scene unit",
}


#: What is to be chosen of a clean-up.
CLEAN = options_of(CleanUpOptions)


@offers(CLEAN)
class POISE_PG_clean_up(bpy.types.PropertyGroup):
    """How feet and weight are cleaned in this scene."""

    foot: EnumProperty(
        name="Foot",
        description="Whose contacts are changed",
        items=(("LEFT", "Left", "The left foot"), ("RIGHT", "Right", "The right foot")),
        update=on_change,
    )
    point: EnumProperty(
        name="Part",
        description="Which part of the foot's contacts are changed",
        items=(
            ("HEEL", "Heel", "The heel"),
            ("BALL", "Ball", "The ball, under the joint of the toes"),
            ("TIP", "Tip", "The tip of the toes"),
        ),
        update=on_change,
    )


CLASSES = (POISE_PG_clean_up,)


def clean_options(settings):
    """The settings of a scene as CleanUpOptions."""
    return CleanUpOptions(**values_of(CLEAN, settings))


@dataclass(frozen=True)
class CleanShotOptions:
    """What to clean up, and how.

    armature, action, frames, fps, rig, unit, contacts: as shot.ShotOptions has them. clean:
    CleanUpOptions. automatic: find contacts, whatever is kept with the action. keys: BakeOptions.
    """

    armature: str | None = None
    action: str | None = None
    frames: tuple | None = None
    fps: float | None = None
    rig: str | None = None
    unit: float | None = None
    clean: CleanUpOptions = field(default_factory=CleanUpOptions)
    contacts: object = None
    automatic: bool = False
    keys: bake.BakeOptions = field(default_factory=bake.BakeOptions)


class CleanShot(ArmatureShot):
    """The steps of one clean-up: `read`, `solve`, `baking`, then `report`.

    reading: addon.reference.Reading, objects: as `shot.Shot` has them, after `read`; kept:
    ContactPlan that its action has, None without. found: ContactPlan, after `find`. plan:
    ContactPlan in use, cleaned: controller.clean_up.CleanUp, after `solve`, with verdict:
    controller.verdict.Verdict on it, slip: (before, after) and uncarried: [(first, last)] as
    CleanUp has them.
    baked: addon.bake.BakeResult, after `baking`.
    """

    def __init__(self, scene, options=None):
        """Raises RigError if the armature cannot be told, SettingsError for an odd option."""
        options = options or CleanShotOptions()
        super().__init__(scene, options)
        self.reading = self.kept = self.found = self.plan = None
        self.objects = {}
        self.cleaned = self.verdict = self.baked = None
        self.slip, self.uncarried = (), []
        self._seconds = {}

    def read(self):
        """Read the animation; yields progress from 0 to 1. Raises PoiseError."""
        options, started = self.options, time.perf_counter()
        self.reading = yield from self._reading()
        check_extent(self.reading.motion)
        yield 1.0
        self.objects = yield from objects.collecting(self.scene, self.reading)
        if options.contacts is not None:
            contacts.check_rate(options.contacts, self.reading)
        elif not options.automatic:
            self.kept = contacts.plan_for(self.reading)
        self.plan = options.contacts or self.kept
        self._seconds["reading"] = time.perf_counter() - started

    def find(self):
        """Find the ContactPlan that the animation seems to follow. Raises MotionError if no foot
        ever stands."""
        self.found = propose(self._body())
        return self.found

    def solve(self):
        """Find the plan, if none is given, and the corrections -> CleanUp. Raises PoiseError."""
        started = time.perf_counter()
        body = self._body()
        if self.plan is None:
            self.plan = self.found = propose(body)
        self._take(clean_up(body, self.plan, self.options.clean))
        self._seconds["solving"] = time.perf_counter() - started
        return self.cleaned

    def _body(self):
        """The leg_chain.Body that is cleaned, which goes where its feet take it; from here on so
        does what was read."""
        motion = self.reading.motion
        self.reading = walks.going(self.reading, Character.from_motion(motion))
        return body_of(self.reading, self.objects)

    def update(self, kept):
        """Solve again around what another ContactPlan of the action changes, None to find it.
        Raises PlanError, and all is as before."""
        plan = kept or self.found or propose(self.cleaned.body)
        self._take(update(self.cleaned, plan))
        self.plan, self.kept = plan, kept

    def _take(self, cleaned):
        motion = self.reading.motion
        self.cleaned, around = cleaned, Scenario(**self.objects)
        self.verdict = judge_motions(motion, cleaned.motion(motion), surroundings=around)
        self.slip, self.uncarried = cleaned.slip(), cleaned.uncarried()

    def baking(self):
        """Write the cleaned animation to an action of its own; yields progress from 0 to 1,
        returns a BakeResult. Raises BakeError."""
        started = time.perf_counter()
        self.baked = yield from bake.baking(
            self.scene,
            self.reading,
            self.cleaned.rotation_deltas(),
            self.cleaned.displacement(),
            self.options.keys,
            kind="clean",
        )
        contacts.hand_on(self.armature)
        self._seconds["writing"] = time.perf_counter() - started
        return self.baked

    @property
    def notes(self):
        """Sentences on what was read, and on where the result is."""
        stays = self.baked.stays(self.reading) if self.baked else ""
        return [sentence for sentence in (self.reading.still, stays) if sentence]

    @property
    def doubt(self):
        """A sentence on where no contact carries the body; empty if one always does."""
        return uncarried_words(self.uncarried)

    def report(self):
        """What was done and how good it is, as a dict for JSON."""
        reading, baked, options = self.reading, self.baked, self.options.clean
        return {
            "armature": reading.armature,
            "source_action": reading.action,
            "baked_action": baked.action,
            "baked_slot": baked.slot,
            "frames": list(baked.frames),
            "range": [float(reading.frames[0]), float(reading.frames[-1])],
            "fps": float(reading.rate),
            "contact_slip": dict(zip(("before", "after"), self.slip, strict=True)),
            "uncarried": [list(span) for span in self.uncarried],
            "place": self.cleaned.com_shift(),
            "verdict": {"compared_with": "source", **self.verdict.as_dict()},
            "smoothness": options.smoothness,
            "com": options.balance,
            "iterations": self.cleaned.iterations,
            "contacts": self.plan.as_dict(),
            "bake_error": float(baked.error_mm),
            "leg_controls": list(baked.leg_controls),
            "released_legs": list(baked.released_legs),
            "seconds": {name: round(value, 3) for name, value in self._seconds.items()},
            "rig": rig_as_dict(reading.rig_map),
            "metres_per_unit": float(reading.metres_per_unit),
            "unit_guessed": reading.unit_guessed,
            "versions": versions(),
            "units": UNITS,
        }


def body_of(reading, around):
    """The leg_chain.Body of a Reading. around: the objects that take part, as `objects.collecting`
    has them."""
    return Body.from_motion(reading.motion, toes_of(reading), Scenario(**around))


def toes_of(reading):
    """{side: (F, 3, 3) axes of its toes' bone in the world, None without one}."""
    toes = {}
    for side in SIDES:
        part, rig_map = f"toe_{side}", reading.rig_map
        # Toes behind controls turn only if there is one for them.
        if part not in rig_map.bones or (rig_map.controls and part not in rig_map.controls):
            toes[side] = None
            continue
        chain = rig_map.bones[part]
        matrices = reading.bone_matrices[:, reading.bone_index(chain[0]), :3, :3]
        toes[side] = nearest_rotation(matrices)
    return toes
