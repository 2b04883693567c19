# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures made in code: an armature from a table of bones, a low-poly body on it, and its keys."""

from itertools import pairwise

import bmesh
import bpy
import numpy as np
from mathutils import Matrix

#: Vertices around a limb, and rings of its rounded ends.
AROUND, CAP = 14, 4
#: Colours (linear RGB) of a body's materials; the shirt's is chosen by the scene.
COLOURS = {
    "shirt": (0.55, 0.55, 0.55),
    "trousers": (0.035, 0.05, 0.11),
    "skin": (0.66, 0.36, 0.22),
    "shoes": (0.05, 0.035, 0.03),
}


def build_armature(name, bones):
    """An armature object of bones (name, parent, head, tail) [m], linked and active."""
    data = bpy.data.armatures.new(name)
    armature = bpy.data.objects.new(name, data)
    bpy.context.collection.objects.link(armature)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    for bone_name, parent, head, tail in bones:
        bone = data.edit_bones.new(bone_name)
        bone.head, bone.tail = head, tail
        bone.parent = data.edit_bones[parent] if parent else None
    bpy.ops.object.mode_set(mode="OBJECT")
    for bone in armature.pose.bones:
        bone.rotation_mode = "QUATERNION"
    return armature


def key_pose(armature, frame, turns, hips):
    """Key a pose: turns {bone: (3, 3) turn from rest in the armature's space}, hips' head [m]."""
    for bone in armature.pose.bones:
        rest = np.array(bone.bone.matrix_local.to_3x3())
        parent = turns[bone.parent.name] if bone.parent else np.eye(3)
        basis = rest.T @ parent.T @ turns[bone.name] @ rest
        turn = Matrix(basis.tolist()).to_quaternion()
        # Neighbouring keys in one hemisphere, or the curves between them would go round.
        if turn.dot(bone.rotation_quaternion) < 0:
            turn.negate()
        bone.rotation_quaternion = turn
        bone.keyframe_insert("rotation_quaternion", frame=frame)
        if bone.parent is None:
            bone.location = rest.T @ (np.asarray(hips) - np.array(bone.bone.head_local))
            bone.keyframe_insert("location", frame=frame)


def material(name, colour, emission=False):
    """A plain material of that colour; made once per name."""
    known = bpy.data.materials.get(name)
    if known:
        return known
    made = bpy.data.materials.new(name)
    made.use_nodes = True
    made.diffuse_color = (*colour, 1)
    shader = made.node_tree.nodes["Principled BSDF"]
    shader.inputs["Base Color"].default_value = (*colour, 1)
    shader.inputs["Roughness"].default_value = 0.7
    if emission:
        shader.inputs["Emission Color"].default_value = (*colour, 1)
        shader.inputs["Emission Strength"].default_value = 1
    return made


class _Body:
    """Lofts of rings, each ring moved by one bone."""

    def __init__(self):
        self.mesh = bmesh.new()
        self.groups = {}
        self.layer = self.mesh.verts.layers.deform.verify()

    def loft(self, rings, colour):
        """rings: list of (bone, (AROUND, 3) points). Closed at both ends."""
        rows = []
        for bone, points in rings:
            group = self.groups.setdefault(bone, len(self.groups))
            row = [self.mesh.verts.new(point) for point in points]
            for vertex in row:
                vertex[self.layer][group] = 1.0
            rows.append(row)
        faces = [self.mesh.faces.new(rows[0][::-1]), self.mesh.faces.new(rows[-1])]
        for low, high in pairwise(rows):
            for i in range(len(low)):
                j = (i + 1) % len(low)
                faces.append(self.mesh.faces.new((low[i], low[j], high[j], high[i])))
        for face in faces:
            face.smooth = True
            face.material_index = list(COLOURS).index(colour)

    def limb(self, bone, start, end, radii, colour, flat=1.0):
        """A rounded limb whose radii [m] are spread evenly from start to end."""
        start, end = np.asarray(start, float), np.asarray(end, float)
        axis = (end - start) / np.linalg.norm(end - start)
        side = np.cross(axis, (0, 1, 0) if abs(axis[1]) < 0.9 else (1, 0, 0))
        side /= np.linalg.norm(side)
        across = np.cross(axis, side)
        angles = np.linspace(0, 2 * np.pi, AROUND, endpoint=False)
        circle = np.cos(angles)[:, None] * side + flat * np.sin(angles)[:, None] * across
        rings = []
        cap = np.linspace(0.12, np.pi / 2, CAP, endpoint=False)
        for angle in cap:
            centre = start - axis * radii[0] * np.cos(angle)
            rings.append((bone, centre + radii[0] * np.sin(angle) * circle))
        for share, radius in zip(np.linspace(0, 1, len(radii)), radii, strict=True):
            rings.append((bone, start + share * (end - start) + radius * circle))
        for angle in cap[::-1]:
            centre = end + axis * radii[-1] * np.cos(angle)
            rings.append((bone, centre + radii[-1] * np.sin(angle) * circle))
        self.loft(rings, colour)

    def finish(self, name):
        bmesh.ops.recalc_face_normals(self.mesh, faces=self.mesh.faces)
        data = bpy.data.meshes.new(name)
        self.mesh.to_mesh(data)
        self.mesh.free()
        return data


def oval(centre, width, depth, axes=((1, 0, 0), (0, 1, 0)), power=2.4):
    """(AROUND, 3) points of a rounded rectangle of half width and half depth [m]."""
    angles = np.linspace(0, 2 * np.pi, AROUND, endpoint=False)
    bent = [np.sign(f(angles)) * np.abs(f(angles)) ** (2 / power) for f in (np.cos, np.sin)]
    axes = np.asarray(axes, float)
    across, along = width * bent[0][:, None], depth * bent[1][:, None]
    return np.asarray(centre) + across * axes[0] + along * axes[1]


def build_body(armature, height):
    """A mesh object of rounded solids that follow the bones rigidly; Mixamo bone names.

    The figure stands in its rest pose, arms hanging, facing -Y; height [m] gives the girths.
    """
    bones = {bone.name: bone for bone in armature.data.bones}
    size = height / 1.8
    body = _Body()
    _torso(body, bones, size)
    _head(body, bones, size)
    for side, sign in (("Left", 1), ("Right", -1)):
        _arm(body, bones, side, size)
        _leg(body, bones, side, sign, size)
    data = body.finish(f"{armature.name} body")
    for name, colour in COLOURS.items():
        data.materials.append(material(name, colour))
    mesh = bpy.data.objects.new(f"{armature.name} body", data)
    bpy.context.collection.objects.link(mesh)
    for name in body.groups:
        mesh.vertex_groups.new(name=name)
    mesh.parent = armature
    mesh.modifiers.new("Armature", "ARMATURE").object = armature
    return mesh


def _torso(body, bones, size):
    hip = np.array(bones["LeftUpLeg"].head_local)
    neck = np.array(bones["Head" if "Neck" not in bones else "Neck"].head_local)
    spine = [bones[name] for name in ("Hips", "Spine", "Spine1") if name in bones]
    shoulder = abs(bones["LeftArm"].head_local.x)
    low, high = hip[2] - 0.07 * size, neck[2] + 0.02 * size
    # Share of the height, half width and half depth [m] at 1.8 m, and what is worn there.
    sections = (
        (0.00, 0.075, 0.055),
        (0.05, 0.140, 0.095),
        (0.15, 0.165, 0.112),
        (0.26, 0.155, 0.108),
        (0.40, 0.138, 0.097),
        (0.55, 0.145, 0.102),
        (0.70, 0.163, 0.112),
        (0.82, shoulder / size * 0.93, 0.105),
        (0.91, shoulder / size * 0.86, 0.085),
        (0.96, 0.085, 0.066),
        (1.00, 0.050, 0.050),
    )
    rings = []
    for share, width, depth in sections:
        z = low + share * (high - low)
        holder = [bone for bone in spine if bone.head_local.z <= z + 0.02] or spine[:1]
        centre = (0, hip[1] + share * (neck[1] - hip[1]), z)
        rings.append((holder[-1].name, oval(centre, width * size, depth * size)))
    cut = 4
    body.loft(rings[: cut + 1], "trousers")
    body.loft(rings[cut:], "shirt")


def _head(body, bones, size):
    neck = bones["Neck"] if "Neck" in bones else bones["Head"]
    base, top = np.array(neck.head_local), np.array(bones["Head"].tail_local)
    radius = 0.098 * size
    crown = top - (0, 0, radius)
    chin = crown - (0, 0, 0.055 * size)
    body.limb(neck.name, base - (0, 0, 0.03), chin, [0.052 * size, 0.05 * size], "skin")
    body.limb("Head", chin, crown, [0.8 * radius, 0.95 * radius, radius], "skin", flat=0.85)
    nose = (crown + chin) / 2 + (0, -radius * 0.93, -0.01)
    body.limb("Head", nose, nose + (0, 0, 0.025), [0.016 * size, 0.010 * size], "skin")
    hair = crown + (0, 0.022 * size, 0.02 * size)
    body.limb("Head", hair, hair + (0, 0, 0.004), [0.97 * radius] * 2, "shoes")


def _arm(body, bones, side, size):
    shoulder, elbow, wrist, tip = (
        np.array(point)
        for point in (
            bones[f"{side}Arm"].head_local,
            bones[f"{side}ForeArm"].head_local,
            bones[f"{side}Hand"].head_local,
            bones[f"{side}Hand"].tail_local,
        )
    )
    r = size * np.array([0.058, 0.052, 0.048, 0.042])
    body.limb(f"{side}Arm", shoulder, elbow, r, "shirt")
    body.limb(f"{side}ForeArm", elbow, wrist, size * np.array([0.042, 0.043, 0.034, 0.028]), "skin")
    palm = wrist + 0.72 * (tip - wrist)
    body.limb(f"{side}Hand", wrist, palm, size * np.array([0.028, 0.042, 0.036]), "skin", flat=0.6)


def _leg(body, bones, side, sign, size):
    hip, knee, ankle, toe = (
        np.array(point)
        for point in (
            bones[f"{side}UpLeg"].head_local,
            bones[f"{side}Leg"].head_local,
            bones[f"{side}Foot"].head_local,
            bones[f"{side}ToeBase"].tail_local,
        )
    )
    ball = np.array(bones[f"{side}ToeBase"].head_local)
    r = size * np.array([0.088, 0.088, 0.074, 0.060])
    body.limb(f"{side}UpLeg", hip, knee, r, "trousers")
    r = size * np.array([0.057, 0.062, 0.053, 0.043, 0.040])
    body.limb(f"{side}Leg", knee, ankle + (0, 0, 0.01), r, "trousers")
    body.loft(_shoe(ankle, ball, toe, side, size), "shoes")


def _shoe(ankle, ball, toe, side, size):
    floor = toe[2]
    heel = ankle[1] + 0.3 * (ankle[1] - ball[1]) + 0.03
    tall = ankle[2] - floor
    # Y, half width, height of the upper [m].
    sections = (
        (heel, 0.020, 0.45 * tall),
        (heel - 0.012, 0.034, 0.8 * tall),
        (ankle[1], 0.038, 1.15 * tall),
        (ankle[1] + 0.5 * (ball[1] - ankle[1]), 0.042, 0.85 * tall),
        (ball[1], 0.049, 0.6 * tall),
        (ball[1] + 0.6 * (toe[1] - ball[1]), 0.044, 0.5 * tall),
        (toe[1], 0.022, 0.3 * tall),
    )
    rings = []
    for y, width, high in sections:
        centre = (ankle[0], y, floor + high / 2)
        bone = f"{side}Foot" if y > ball[1] - 1e-6 else f"{side}ToeBase"
        ring = oval(centre, width * size, high / 2, ((1, 0, 0), (0, 0, 1)), power=3.5)
        rings.append((bone, ring))
    return rings
