# SPDX-License-Identifier: GPL-3.0-or-later
"""The scene around a shot: the original on the left, the bake on the right, and what to look at."""

from dataclasses import dataclass

import bpy
import numpy as np
from footprints import footprint, posed, sole
from mathutils import Vector

from poise.addon.baking import bake
from poise.addon.blender import compat
from poise.addon.example.figure import material
from poise.controller.geometry.skeleton import LANDMARKS, SIDES
from poise.controller.geometry.stance import runs

ORIGINAL, BAKED = (0.75, 0.16, 0.03), (0.02, 0.33, 0.50)
#: Size of the floor's squares [m].
SQUARE = 0.1
NAMES = {"l": "Left", "r": "Right"}


@dataclass
class Stance:
    """A stance of one foot: its side, first and last frame, the frame in its middle, the place
    of the ankle there on the floor [m], and the side from which one sees it: 1 or -1 along x."""

    side: str
    frames: tuple
    flat: int
    place: np.ndarray
    outwards: int


@dataclass
class Row:
    """One of the two figures: its armature, all that belongs to it, and where it was moved [m]."""

    title: str
    armature: object
    things: list
    offset: np.ndarray


def arrange(shot, height):
    """Put original and bake side by side with paths, footprints and centres of mass -> two Rows."""
    scene, armature = shot.scene, shot.armature
    frames = np.arange(int(shot.baked.frames[0]), int(shot.baked.frames[1]) + 1)
    scene.frame_start, scene.frame_end = int(frames[0]), int(frames[-1])
    bake.show(scene, armature, "baked")
    baked = _copy(armature)
    bake.show(scene, armature, "source")
    reach = np.ptp(shot.reading.motion.positions[: len(frames), 0, 0])
    offset = np.array([1.3 + reach, 0, 0])
    baked.location.x += offset[0]
    armature.name, baked.name = f"{armature.name} original", f"{armature.name} with Poise"
    rows = [
        Row("original", armature, [armature, *armature.children], np.zeros(3)),
        Row("with Poise", baked, [baked, *baked.children], offset),
    ]
    for row, colour in zip(rows, (ORIGINAL, BAKED), strict=True):
        name = f"shirt, {row.title}"
        for child in row.armature.children:
            slot = child.material_slots[0]
            slot.link = "OBJECT"
            slot.material = material(name, colour)
    tracks = _sole_tracks(scene, rows, frames)
    floor, stands = shot.character.ground, stance(shot)
    prints = {side: int(frames[0]) for side in NAMES.values()}
    if stands:
        prints = {stands.side: stands.flat}
    for row, colour in zip(rows, (ORIGINAL, BAKED), strict=True):
        if not stands:
            row.things += _paths(row, tracks[row.title], colour, floor)
        row.things += _footprints(scene, row, prints, height / 1.8, floor)
        row.things.append(_label(row, colour, floor))
    for row, com in zip(rows, _centres_of_mass(shot, len(frames)), strict=True):
        row.things.append(_disc(row, com, frames, floor))
    _surroundings(scene, rows, floor)
    scene.frame_set(int(frames[0]))
    return rows


def _copy(armature):
    """A second object with the same armature and the same action, and copies of its meshes."""
    copy = armature.copy()
    bpy.context.collection.objects.link(copy)
    compat.assign(copy, *compat.assigned(armature))
    for child in armature.children:
        twin = child.copy()
        bpy.context.collection.objects.link(twin)
        twin.parent = copy
        for modifier in twin.modifiers:
            if modifier.type == "ARMATURE":
                modifier.object = copy
    return copy


def _sole_tracks(scene, rows, frames):
    """{title: (F, 4, 3) world positions of the heels and toes} [m]."""
    tracks = {row.title: np.zeros((len(frames), 4, 3)) for row in rows}
    for i, frame in enumerate(frames):
        scene.frame_set(int(frame))
        for row in rows:
            for j, side in enumerate(NAMES.values()):
                bones = row.armature.data.bones
                low, heel, ball, _ = sole(bones, side)
                x = bones[f"{side}Foot"].head_local.x
                points = [(x, heel - 0.02, low), (x, ball, low)]
                tracks[row.title][i, 2 * j : 2 * j + 2] = posed(row.armature, f"{side}Foot", points)
    return tracks


def _paths(row, track, colour, floor):
    """Tubes on the floor along the ways of heels and balls of the feet."""
    made = []
    for number, name in enumerate(f"{s} {p}" for s in NAMES.values() for p in ("heel", "ball")):
        data = bpy.data.curves.new(f"Path of {name}, {row.title}", "CURVE")
        data.dimensions, data.bevel_depth, data.bevel_resolution = "3D", 0.005, 2
        data.use_fill_caps = True
        spline = data.splines.new("POLY")
        points = track[:, number].copy()
        points[:, 2] = floor + 0.006
        spline.points.add(len(points) - 1)
        spline.points.foreach_set("co", np.c_[points, np.ones(len(points))].ravel())
        data.materials.append(material(f"path, {row.title}", colour, emission=True))
        made.append(_link(data.name, data))
    return made


def _footprints(scene, row, frames, size, floor):
    """Outlines on the floor of where feet stand; frames: {side: frame}."""
    made = []
    for side, frame in frames.items():
        scene.frame_set(frame)
        outline = posed(row.armature, f"{side}Foot", footprint(row.armature.data.bones, side, size))
        middle = outline.mean(0)
        outer = middle + (outline - middle) * (1.14, 1.09, 1)
        points = np.concatenate([outline, outer])
        points[:, 2] = floor + 0.003
        count = len(outline)
        faces = [(i, (i + 1) % count, count + (i + 1) % count, count + i) for i in range(count)]
        data = bpy.data.meshes.new(f"{side} footprint, {row.title}")
        data.from_pydata(points.tolist(), [], faces)
        data.materials.append(material("footprint", (0.0, 0.0, 0.0)))
        made.append(_link(data.name, data))
    return made


def _centres_of_mass(shot, count):
    """(count, 3) of the original and of the simulation [m]."""
    character, motion = shot.character, shot.reading.motion
    masses = np.array(list(character.segment_masses.values()))
    centres = character.body_centres(*character.pose(character.trajectory(motion)))
    original = np.einsum("s,fsi->fi", masses / masses.sum(), centres)
    return original[:count], shot.recording.com[:count]


def _disc(row, com, frames, floor):
    """A disc on the floor under the centre of mass, keyed."""
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    data = bpy.data.meshes.new(f"Centre of mass, {row.title}")
    circle = np.stack([0.028 * np.cos(angles), 0.028 * np.sin(angles), 0 * angles], 1)
    data.from_pydata(circle.tolist(), [], [list(range(24))])
    data.materials.append(material("centre of mass", (0.95, 0.75, 0.02), emission=True))
    disc = _link(data.name, data)
    for frame, point in zip(frames, com, strict=True):
        disc.location = (point[0] + row.offset[0], point[1], floor + 0.004)
        disc.keyframe_insert("location", frame=int(frame))
    return disc


def _label(row, colour, floor):
    """The row's title, standing on the floor behind the figure."""
    label = text(f"Label, {row.title}", row.title, 0.16, colour)
    label.location = (row.offset[0] - 0.75, 0.75, floor + 0.02)
    label.rotation_euler.x = np.pi / 2
    return label


def text(name, body, size, colour):
    """A text object that shines on its own."""
    data = bpy.data.curves.new(name, "FONT")
    data.body, data.size, data.align_x = body, size, "CENTER"
    data.materials.append(material(f"text {colour}", colour, emission=True))
    return _link(name, data)


def _surroundings(scene, rows, floor):
    """A chequered floor, a sun, grey light all around and a camera on both figures."""
    data = bpy.data.meshes.new("Floor")
    corners = [(-6, -6, floor), (8, -6, floor), (8, 6, floor), (-6, 6, floor)]
    data.from_pydata(corners, [], [(0, 1, 2, 3)])
    ground = material("floor", (0.5, 0.5, 0.5))
    nodes, links = ground.node_tree.nodes, ground.node_tree.links
    checks, place = nodes.new("ShaderNodeTexChecker"), nodes.new("ShaderNodeTexCoord")
    checks.inputs["Color1"].default_value = (0.42, 0.42, 0.42, 1)
    checks.inputs["Color2"].default_value = (0.58, 0.58, 0.58, 1)
    checks.inputs["Scale"].default_value = 1 / SQUARE
    links.new(place.outputs["Object"], checks.inputs["Vector"])
    links.new(checks.outputs["Color"], nodes["Principled BSDF"].inputs["Base Color"])
    data.materials.append(ground)
    _link("Floor", data)
    sun = bpy.data.lights.new("Sun", "SUN")
    sun.energy, sun.angle = 3.0, 0.05
    _link("Sun", sun).rotation_euler = (0.75, 0.25, 0.5)
    world = scene.world = bpy.data.worlds.new("World")
    world.use_nodes = True
    shade = world.node_tree.nodes["Background"]
    shade.inputs["Color"].default_value = (0.75, 0.82, 0.9, 1)
    shade.inputs["Strength"].default_value = 0.7
    camera = _link("Camera", bpy.data.cameras.new("Camera"))
    scene.camera = camera
    middle = (rows[1].offset + (0, 0, 2 * floor + 1.7)) / 2
    aim(camera, middle, middle + (0, -5.5, 0.8), lens=45)


def aim(camera, target, place, lens):
    """Put a camera somewhere and let it look at a target [m]; focal length [mm]."""
    camera.location = place
    way = Vector(np.asarray(target, float) - np.asarray(place, float))
    camera.rotation_euler = way.to_track_quat("-Z", "Y").to_euler()
    camera.data.lens = lens


def _link(name, data):
    thing = bpy.data.objects.new(name, data)
    bpy.context.collection.objects.link(thing)
    return thing


def stance(shot):
    """The middle Stance of a clip that travels, from strike to toe-off in the source; None if it
    stays in place."""
    reference = shot.recording.reference
    if not reference.travels:
        return None
    found = []
    for foot, side in enumerate(SIDES):
        for start, stop in runs((reference.stance[: len(shot.recording)] >> foot & 1) > 0):
            if start and stop < len(shot.recording):
                found.append((start, stop, side))
    start, stop, side = sorted(found)[len(found) // 2]
    middle = (start + stop) // 2
    ankle = shot.reading.motion.positions[middle, LANDMARKS.index(f"ankle_{side}")]
    first = int(shot.baked.frames[0])
    return Stance(
        NAMES[side],
        (first + start, first + stop - 1),
        first + middle,
        np.array([*ankle[:2], shot.character.ground]),
        1 if side == "l" else -1,
    )


def pelvis(shot):
    """(n, 3) its place in the source [m]."""
    return shot.reading.motion.positions[:, LANDMARKS.index("pelvis")]


def feet_middle(shot, count):
    """Mean of both ankles over the first `count` samples, on the floor [m]."""
    ankles = [LANDMARKS.index(f"ankle_{side}") for side in SIDES]
    middle = shot.reading.motion.positions[:count, ankles].mean((0, 1))
    return np.array([*middle[:2], shot.character.ground])
