# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a scene: `scene.poise`.

Lengths and masses are in metres and kilograms whatever the scene's unit scale says, and their
names say so: Blender would multiply a property of unit MASS by the cube of that scale, and show a
body of 70 kg in a scene in centimetres as 70 mg.
"""

import bpy
from bpy.props import (
    BoolProperty,
    EnumProperty,
    FloatProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from ...controller.options import options_of
from ...controller.ranges import RANGES
from ..baking import bake
from ..blender import compat
from ..blender.chosen import chosen_frames
from ..blender.options import offers, property_of, values_of
from ..blender.redrawing import on_change
from ..rigs import rig
from ..scene import morphology, objects, pushes, walks, waypoints
from ..shots import clean_up, clip_check, rectify, robustness, shot, tuning
from . import gains, overlay_settings

#: What is to be chosen of a simulation.
CHOSEN = options_of(shot.ShotOptions)


def _is_armature(_settings, thing):
    return thing.type == "ARMATURE"


def _rig_names(_settings, _context, _text):
    return [rig_map.name for rig_map in rig.load_maps()]


@offers(CHOSEN)
class POISE_PG_settings(bpy.types.PropertyGroup):
    """How Poise simulates and bakes in this scene."""

    mode: EnumProperty(
        name="Mode",
        description="How much of Poise the sidebar shows. The settings stay the same",
        items=(
            ("QUICK", "Quick", "Character, range and style; all else is folded away"),
            ("FULL", "Full", "All panels"),
        ),
        update=on_change,
    )

    # --- Character
    armature: PointerProperty(
        name="Armature",
        description="Armature to simulate; empty: the active one, or the only one of the scene",
        type=bpy.types.Object,
        poll=_is_armature,
    )
    rig: StringProperty(
        name="Rig Map",
        description="Which bones carry which part of the body: the name of a rig map or a .json "
        "file; empty: found by the names of the bones, else detected from their motion",
        search=_rig_names,
        search_options={"SUGGESTION"},
    )
    unit: FloatProperty(
        name="Unit (m)",
        description="Length of one unit of the scene [m]; 0: that of the scene's settings, if it "
        "gives the body legs of 14 cm to 2.2 m, else as the length of the legs suggests",
        **RANGES["unit"].limits_from_zero,
        precision=4,
    )
    use_mass: BoolProperty(
        name="Own Mass",
        description="Give the mass of the body; otherwise it follows from the height",
    )
    mass: FloatProperty(
        name="Mass (kg)",
        description="Mass of the whole body, before its proportions are changed [kg]",
        default=70.0,
        **RANGES["mass"].limits,
        soft_min=5.0,
        soft_max=150.0,
        step=100,
        precision=1,
    )

    # --- Simulate
    method: EnumProperty(
        name="Method",
        description="How Simulate lets the body perform the animation",
        items=(
            (
                "AUTO",
                "Automatic",
                "Balance first, with gains for such motion; then with help from outside; rectify "
                "where the result would not be kept, and take the better",
            ),
            ("BALANCE", "Balance", "Balance alone, with the gains in use: seconds"),
            (
                "RECTIFY",
                "Rectify",
                "Search small changes of the animation with which the body performs it to the end: "
                "minutes",
            ),
        ),
    )
    help_if_needed: BoolProperty(
        name="Help If Needed",
        description="With Automatic: where the result of balance alone would not be kept, try help "
        "from outside before a search: a force and a torque on the pelvis, of half of the weight "
        "at most, which Result tells. It takes seconds, a search minutes. A body that something "
        "pushes, meets or holds is not helped",
        default=True,
    )
    frames: EnumProperty(
        name="Frames",
        description="Which frames to simulate",
        items=(
            ("ACTION", "Action", "All frames that the action has keys for"),
            ("SCENE", "Scene", "The scene's frame range, or its preview range if that is on"),
            ("CUSTOM", "Custom", "Frames of your choice"),
        ),
    )
    first_frame: IntProperty(
        name="First Frame",
        description="First frame to simulate; the body starts in this pose",
        **RANGES["frame"].limits,
    )
    last_frame: IntProperty(
        name="Last Frame",
        description="Last frame to simulate",
        default=250,
        **RANGES["frame"].limits,
    )
    gains: PointerProperty(
        name="Gains",
        description="Which gains: how firmly the joints follow the animation, and how hard the "
        "body keeps its balance",
        type=gains.POISE_PG_gains,
    )
    balance: EnumProperty(
        name="Balance",
        description="How the body keeps its balance; gains that were tuned have their own mode",
        items=(
            (
                "FOOT_FORCES",
                "Foot Forces",
                "Press with the feet as balance needs it, no more than they can without tipping",
            ),
            (
                "VIRTUAL_FORCES",
                "Virtual Forces",
                "Pull the weight over the feet and hold the trunk upright, as by strings, through "
                "the legs that stand",
            ),
        ),
    )
    rate: property_of(CHOSEN["rate"], IntProperty, soft_min=120, step=60)

    morphology: PointerProperty(
        name="Proportions",
        description="Proportions of the body",
        type=morphology.POISE_PG_morphology,
    )
    rectification: PointerProperty(
        name="Rectification",
        description="How clips are rectified",
        type=rectify.POISE_PG_rectification,
    )
    tuning: PointerProperty(
        name="Tuning", description="How gains are searched", type=tuning.POISE_PG_tuning
    )
    walk: PointerProperty(
        name="Locomotion", description="How a character walks on", type=walks.POISE_PG_walk
    )
    robustness: PointerProperty(
        name="Robustness",
        description="How robustness is measured",
        type=robustness.POISE_PG_robustness,
    )
    pushes: PointerProperty(
        name="Pushes", description="What pushes the character", type=pushes.POISE_PG_pushes
    )
    waypoints: PointerProperty(
        name="Waypoints",
        description="Where the character is to be, and when",
        type=waypoints.POISE_PG_waypoints,
    )
    clip_check: PointerProperty(
        name="Clip Check",
        description="What is mended of the animation before it is simulated",
        type=clip_check.POISE_PG_clip_check,
    )
    clean_up: PointerProperty(
        name="Feet and Weight",
        description="How feet and weight are cleaned",
        type=clean_up.POISE_PG_clean_up,
    )
    objects: PointerProperty(
        name="Objects",
        description="How objects and the body meet",
        type=objects.POISE_PG_objects,
    )
    overlays: PointerProperty(
        name="Overlays",
        description="What is drawn over a simulation",
        type=overlay_settings.POISE_PG_overlays,
    )

    # --- Ghost
    ghost: EnumProperty(
        name="Ghost",
        description="Where to show the simulated body in the 3D view. A foot that touches is "
        "orange; where the body fell, all of it is red",
        items=(
            ("OVER", "Over", "On the original"),
            ("BESIDE", "Beside", "Beside the original"),
            ("HIDDEN", "Hidden", "Nowhere"),
        ),
        update=on_change,
    )
    ghost_distance: FloatProperty(
        name="Distance (m)",
        description="How far to its own left the ghost stands beside the original [m]",
        default=1.0,
        soft_min=-5.0,
        soft_max=5.0,
        step=10,
        update=on_change,
        **RANGES["place"].limits,
    )

    # --- Bake
    keys: EnumProperty(
        name="Keys",
        description="Where to set keys",
        items=(
            ("EVERY", "Every Frame", "A key at every simulated frame"),
            ("NTH", "Every n-th Frame", "A key at every n-th simulated frame"),
            ("SOURCE", "As in Source", "Keys where the original action has them"),
            ("TOLERANCE", "Simplified", "As few keys as keep the motion within a tolerance"),
        ),
    )
    key_every: IntProperty(
        name="Every (frames)",
        description="Distance between keys [frames]",
        default=2,
        **RANGES["key_every"].limits,
        soft_max=30,
    )
    tolerance: FloatProperty(
        name="Tolerance (mm)",
        description="Largest distance of any joint from the simulated one [mm]",
        default=1.0,
        **RANGES["tolerance"].limits,
        soft_max=50.0,
        step=10,
        precision=2,
    )
    interpolation: EnumProperty(
        name="Interpolation",
        description="Interpolation between the keys",
        items=(
            ("LINEAR", "Linear", "Straight lines between keys"),
            ("BEZIER", "Bézier", "Smooth curves through the keys"),
            ("CONSTANT", "Constant", "Hold each key until the next"),
        ),
    )
    root_motion: EnumProperty(
        name="Root Motion",
        description="What takes the displacement of the body",
        items=(
            ("BONE", "Bone", "The root bone"),
            ("OBJECT", "Object", "The armature object"),
            (
                "NONE",
                "None",
                "Nothing: the body stays in place, as for a game that moves it along itself. The "
                "way is left out evenly, at a speed that is told, so that feet stand there",
            ),
        ),
    )
    legs: EnumProperty(
        name="Legs",
        description="What is keyed of legs, on rigs that have both: feet and knees, so that feet "
        "stay where they stand when you polish the rest, or each joint",
        items=(
            ("IK", "IK", "Feet and knees, by inverse kinematics"),
            ("FK", "FK", "Thighs, shins and feet, by forward kinematics"),
        ),
    )
    bake_to: EnumProperty(
        name="Bake To",
        description="What the bake animates the armature by",
        items=(
            ("ACTION", "Action", "An action of its own, in place of the source's"),
            (
                "NLA",
                "NLA Strip",
                "A strip on a track of its own, named after the take, with the source on a muted "
                "track below. Tracks of your own stay as they are",
            ),
        ),
    )
    action: PointerProperty(
        name="Into",
        description="Existing action to add the bake to, as a slot of its own; empty: a new action",
        type=bpy.types.Action,
    )
    blend_in: IntProperty(
        name="Blend In (frames)",
        description="Go from the original pose to the simulated one over so many frames [frames]",
        **RANGES["blend"].limits,
        soft_max=100,
    )
    blend_out: IntProperty(
        name="Blend Out (frames)",
        description="Go from the simulated pose back to the original one over so many frames "
        "[frames]",
        **RANGES["blend"].limits,
        soft_max=100,
    )


CLASSES = (POISE_PG_settings,)


def register():
    """Give every scene its settings."""
    bpy.types.Scene.poise = PointerProperty(type=POISE_PG_settings)


def unregister():
    """Undo `register`."""
    del bpy.types.Scene.poise


def shot_options(context, armature):
    """The settings of the scene as ShotOptions. Raises GainsError if its gains are of no use."""
    settings = context.scene.poise
    chosen = gains.data_of(settings)
    return shot.ShotOptions(
        armature=armature.name,
        frames=chosen_frames(context.scene),
        rig=settings.rig or None,
        unit=settings.unit or None,
        gains=chosen,
        balance=settings.balance.lower() if chosen is None else None,
        mass=settings.mass if settings.use_mass else None,
        morphology=morphology.of(settings.morphology),
        cleaning=clip_check.cleaning_of(settings.clip_check),
        walk=walks.walk_options(settings.walk),
        **values_of(CHOSEN, settings),
    )


def bake_options(settings, take=""):
    """The settings of the scene as BakeOptions. take: name of the take to bake, empty for none."""
    keys = settings.keys
    return bake.BakeOptions(
        key_every=settings.key_every if keys == "NTH" else 1,
        tolerance=settings.tolerance if keys == "TOLERANCE" else 0.0,
        source_keys=keys == "SOURCE",
        interpolation=settings.interpolation,
        root_motion=settings.root_motion,
        legs=settings.legs,
        blend_in=settings.blend_in,
        blend_out=settings.blend_out,
        action=settings.action.name if settings.action and compat.HAS_SLOTS else None,
        take=take,
        nla=settings.bake_to == "NLA",
    )
