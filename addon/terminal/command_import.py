# SPDX-License-Identifier: GPL-3.0-or-later
"""Shots that are no .blend files: BVH, FBX and glTF, imported into an empty scene.

What was concluded about the file is told, and stays with the scene as its property `poise_import`,
from which the report has it.
"""

import contextlib
import io
import math

import addon_utils
import bpy
import numpy as np

from ...controller.geometry.skeleton import LANDMARK_INDEX
from ..blender import compat
from ..blender.files import FileError
from ..rigs import reference, sampling
from ..shots.shot import find_armature
from . import command_bvh, command_fbx
from .command_progress import say

#: Ending -> the add-on of Blender's that reads it, and how such a file begins (None: as text may).
FORMATS = {
    ".bvh": ("io_anim_bvh", None),
    ".fbx": ("io_scene_fbx", b"Kaydara FBX Binary"),
    ".glb": ("io_scene_gltf2", b"glTF"),
    ".gltf": ("io_scene_gltf2", None),
}

#: Axes for Blender's importer, by the axis that is up in a BVH file.
_AXES = {
    "Y": {"axis_up": "Y", "axis_forward": "-Z"},
    "Z": {"axis_up": "Z", "axis_forward": "Y"},
}

#: The scene's property that says what was imported, and how.
NOTE = "poise_import"

#: A rate this close to a whole number [Hz] is that number: files write 0.0166667 s for 1/60 s.
_ROUNDING = 0.01

#: The same, where the keys of a whole animation are evenly apart: seconds have single precision.
_EVEN_ROUNDING = 2e-4

#: So much slower than whole numbers are the rates of television: 23.976 and 29.97 Hz.
_NTSC = 1.001

#: Frame rates [Hz] of animations whose keys are farther apart than frames can be, which is at less
#: than the lowest.
_USUAL_RATES, _LOWEST_RATE = (24, 25, 30, 50, 60), 20

#: So many frames tell which axis is up.
_LOOKS = 8


def import_shot(path, up=None, unit=None):
    """Import a BVH, FBX or glTF file into a new, empty file: frame rate and range are the file's.

    up: "Y" or "Z", unit: length of the file's unit [m], both of a BVH file; None to guess them.
    Raises FileError if it is no such file, or has no animated armature.
    """
    ending = path.suffix.lower()
    note = _import_bvh(path, up, unit) if ending == ".bvh" else _import_other(path, ending)
    scene = bpy.context.scene
    ranges = np.array([action.frame_range for action in bpy.data.actions])
    if len(ranges):
        scene.frame_start, scene.frame_end = round(ranges[:, 0].min()), round(ranges[:, 1].max())
    scene.frame_set(scene.frame_start)
    note["fps"] = scene.render.fps / scene.render.fps_base
    scene[NOTE] = {"file": str(path), **note}
    say(_told(path, note))


def import_note(scene):
    """What `import_shot` concluded, as a dict for JSON; None for a scene that was not imported."""
    return scene[NOTE].to_dict() if NOTE in scene else None


def _told(path, note):
    how = {True: "guessed", False: "as told"}
    parts = [f"'{path.name}' is imported: {note['fps']:g} frames a second"]
    if "up" in note:
        parts.append(f"{note['up']} is up ({how[note['up_guessed']]})")
        parts.append(f"its unit is {note['unit']:g} m ({how[note['unit_guessed']]})")
    return ", ".join(parts) + "."


# --- BVH ----------------------------------------------------------------------------------------


def _import_bvh(path, up, unit):
    """Import it upright and in metres; what was concluded."""
    seen = {}
    with command_bvh.checked(path) as readable:
        for axis in (up,) if up else ("Y", "Z"):
            _load_bvh(path, readable, axis, 1.0)
            seen[axis] = _look()
            if seen[axis][0] > 0.5:  # upright enough
                break
        axis = max(seen, key=lambda axis: seen[axis][0])
        size = unit or seen[axis][1]
        _load_bvh(path, readable, axis, size)
    return {"up": axis, "up_guessed": not up, "unit": size, "unit_guessed": not unit}


def _load_bvh(path, readable, up, scale):
    """Import a file from where it is readable, into an empty one."""
    _empty()
    _call(
        path,
        "io_anim_bvh",
        lambda: bpy.ops.import_anim.bvh(
            filepath=str(readable), global_scale=scale, update_scene_fps=True, **_AXES[up]
        ),
    )
    _round_rate(bpy.context.scene)


def _look():
    """(how upright the body is, from -1 to 1; metres per scene unit) over a clip's frames."""
    scene = bpy.context.scene
    armature = find_armature(scene)
    first, last = sampling.animated_range(armature, *compat.assigned(armature))
    step = max(1.0, (last - first) / _LOOKS)
    read = reference.read(scene, armature, frames=(first, last, step))
    at = {name: read.motion.positions[:, i] for name, i in LANDMARK_INDEX.items()}
    spine = at["neck"] - (at["ankle_l"] + at["ankle_r"]) / 2
    upright = spine[:, 2] / np.linalg.norm(spine, axis=1)
    return float(np.median(upright)), read.metres_per_unit


# --- FBX and glTF -------------------------------------------------------------------------------


def _import_other(path, ending):
    addon, beginning = FORMATS[ending]
    with path.open("rb") as file:
        if beginning and file.read(len(beginning)) != beginning:
            kind = "a binary FBX" if ending == ".fbx" else "a glTF"
            raise FileError(f"'{path}' is not {kind} file: export it again.")
    if ending == ".fbx":
        command_fbx.check(path)
    _empty()
    if ending == ".fbx":
        _call(path, addon, lambda: bpy.ops.import_scene.fbx(filepath=str(path)))
        _round_rate(bpy.context.scene)
        return {}
    _call(path, addon, lambda: bpy.ops.import_scene.gltf(filepath=str(path)))
    rate = _rate_of_keys(bpy.context.scene)
    if rate != bpy.context.scene.render.fps:
        _import_gltf_at(path, addon, rate)
    return {}


def _import_gltf_at(path, addon, rate):
    """Import it once more, into a file of that frame rate [Hz], so that keys lie on frames."""
    whole = math.ceil(rate)
    # Its importer takes a rate's base for a factor, not, as Blender does, for a divisor.
    for base in (rate / whole, whole / rate):
        _empty(whole, base)
        _call(path, addon, lambda: bpy.ops.import_scene.gltf(filepath=str(path)))
        distance, _ = _distance_of_keys(bpy.context.scene)
        if rate == whole or abs(distance - round(distance)) < 1e-3:
            break
    bpy.context.scene.render.fps_base = whole / rate


def _rate_of_keys(scene):
    """Frame rate [Hz] at which keys lie on frames; the scene's if there is none. glTF knows seconds
    alone."""
    fps = scene.render.fps
    distance, even = _distance_of_keys(scene)
    if distance is None:
        return fps
    rate = fps / distance
    near = (round(rate), math.ceil(rate) / _NTSC)
    whole = min(near, key=lambda one: abs(one - rate))
    tolerance = _EVEN_ROUNDING if even else _ROUNDING
    if abs(rate - whole) <= tolerance * rate:
        rate = whole
    elif not even:
        return fps
    if rate < 1:
        return fps
    if rate >= _LOWEST_RATE:
        return rate
    usual = (usual for usual in _USUAL_RATES if usual % rate == 0)
    return next(usual, fps if rate == round(rate) else rate * math.ceil(_LOWEST_RATE / rate))


def _distance_of_keys(scene):
    """(distance from key to key [frames], whether it is the same everywhere) of the curve that has
    most; (None, False) where none has three."""
    curves = [curve for thing in scene.objects for curve in compat.curves(*compat.assigned(thing))]
    points = max((curve.keyframe_points for curve in curves), key=len, default=())
    if len(points) < 3:
        return None, False
    frames = np.empty(2 * len(points))
    points.foreach_get("co", frames)
    steps = np.diff(frames[::2])
    usual = np.median(steps)
    if np.abs(steps - usual).max() > _ROUNDING * usual:
        return usual, False
    return steps.mean(), True


# --- What all share -----------------------------------------------------------------------------


def _empty(fps=None, base=1.0):
    """A new file without anything in it, of that frame rate."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    if fps is not None:
        bpy.context.scene.render.fps, bpy.context.scene.render.fps_base = fps, base


def _call(path, addon, operator):
    """Let one of Blender's importers do its work. Raises FileError if it fails."""
    if not addon_utils.check(addon)[1]:
        addon_utils.enable(addon)
    told = io.StringIO()
    try:
        # They tell how far they are, and where in their code they stumbled.
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            operator()
    except (RuntimeError, OSError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        lines = [line for line in lines if not line.startswith("Location: ")]  # in Blender's code
        reason = lines[-1].removeprefix("Error: ").rstrip(".") if lines else ""
        if f"'{path}' (" in reason:  # Blender names the file again
            reason = reason.rpartition(f"'{path}' (")[2].removesuffix(")")
        if "UnicodeEncodeError" in reason and not str(path).isascii():
            raise FileError(
                f"'{path}' cannot be imported: Python cannot open such a name in this locale. Set "
                "PYTHONUTF8=1, or a locale such as C.UTF-8."
            ) from None
        reason = reason or "no reason given"
        raise FileError(
            f"'{path}' cannot be imported ({reason}): see whether it is whole, or export it again."
        ) from None
    if not any(thing.type == "ARMATURE" for thing in bpy.context.scene.objects):
        raise FileError(f"'{path}' holds no armature: export the character's skeleton.")


def _round_rate(scene):
    rate = scene.render.fps / scene.render.fps_base
    if abs(rate - round(rate)) < _ROUNDING:
        scene.render.fps, scene.render.fps_base = round(rate), 1.0
