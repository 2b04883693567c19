# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of the add-on share: a small hand-keyed biped, random differences, a clip that is in
the air, and a stand-in for the window."""

import functools
import math
import time
from types import SimpleNamespace

import numpy as np
import pytest

#: Bones of the biped: name, parent, head, tail [m].
BONES = (
    ("hips", None, (0, 0, 0.95), (0, 0, 1.05)),
    ("spine", "hips", (0, 0, 1.05), (0, 0, 1.2)),
    ("chest", "spine", (0, 0, 1.2), (0, 0, 1.45)),
    ("neck", "chest", (0, 0, 1.45), (0, 0, 1.55)),
    ("head", "neck", (0, 0, 1.55), (0, 0, 1.75)),
    *(
        (f"{name}.{side}", parent if parent in ("hips", "chest") else f"{parent}.{side}", *ends)
        for side, x in (("L", 1), ("R", -1))
        for name, parent, *ends in (
            ("clavicle", "chest", (x * 0.02, 0, 1.42), (x * 0.15, 0, 1.42)),
            ("upper_arm", "clavicle", (x * 0.17, 0, 1.42), (x * 0.45, 0.02, 1.42)),
            ("forearm", "upper_arm", (x * 0.45, 0.02, 1.42), (x * 0.7, 0, 1.42)),
            ("hand", "forearm", (x * 0.7, 0, 1.42), (x * 0.85, 0, 1.42)),
            ("thigh", "hips", (x * 0.1, 0, 0.93), (x * 0.1, -0.02, 0.5)),
            ("shin", "thigh", (x * 0.1, -0.02, 0.5), (x * 0.1, 0, 0.1)),
            ("foot", "shin", (x * 0.1, 0, 0.1), (x * 0.1, -0.15, 0.02)),
            ("toe", "foot", (x * 0.1, -0.15, 0.02), (x * 0.1, -0.22, 0.02)),
        )
    ),
)
FRAMES = 30


@pytest.fixture
def biped(blender):
    """An armature object "biped" with an action "walk" of FRAMES keys a bone, at 25 fps."""
    armature = _build(blender)
    scene = blender.context.scene
    scene.render.fps, scene.render.fps_base = 25, 1.0
    random = np.random.default_rng(3)
    for i, bone in enumerate(armature.pose.bones):
        bone.rotation_mode = ("XYZ", "QUATERNION", "ZYX", "AXIS_ANGLE")[i % 4]
        phase, size = random.uniform(0, 6, 3), random.uniform(0.1, 0.3, 3)
        for frame in range(1, FRAMES + 1):
            angles = size * np.sin(phase + frame / 5)
            _turn(bone, angles)
            bone.keyframe_insert(_channel(bone), frame=frame)
    hips = armature.pose.bones["hips"]
    for frame in range(1, FRAMES + 1):
        hips.location = (0.02 * frame, 0.02 * math.sin(frame / 3), 0.01 * frame)
        hips.keyframe_insert("location", frame=frame)
    armature.animation_data.action.name = "walk"
    scene.frame_set(1)
    return armature


def _build(blender):
    data = blender.data.armatures.new("biped")
    armature = blender.data.objects.new("biped", data)
    blender.context.collection.objects.link(armature)
    blender.context.view_layer.objects.active = armature
    blender.ops.object.mode_set(mode="EDIT")
    for i, (name, parent, head, tail) in enumerate(BONES):
        bone = data.edit_bones.new(name)
        bone.head, bone.tail, bone.roll = head, tail, 0.3 * i
        bone.parent = data.edit_bones[parent] if parent else None
    blender.ops.object.mode_set(mode="OBJECT")
    return armature


def _channel(bone):
    modes = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
    return modes.get(bone.rotation_mode, "rotation_euler")


def _turn(bone, angles):
    from mathutils import Euler

    turn = Euler(angles)
    if bone.rotation_mode == "QUATERNION":
        bone.rotation_quaternion = turn.to_quaternion()
    elif bone.rotation_mode == "AXIS_ANGLE":
        axis, angle = turn.to_quaternion().to_axis_angle()
        bone.rotation_axis_angle = (angle, *axis)
    else:
        bone.rotation_euler = turn.to_matrix().to_euler(bone.rotation_mode)


@pytest.fixture
def biped_map():
    """The rig map of the biped."""
    from poise.addon.rigs.rig import RigMap

    limbs = ("clavicle", "upper_arm", "forearm", "hand", "thigh", "shin", "foot", "toe")
    return RigMap(
        name="test",
        bones={
            "pelvis": ("hips",),
            "trunk": ("spine", "chest"),
            "head": ("neck", "head"),
            **{f"{n}_{s}": (f"{n}.{s.upper()}",) for s in ("l", "r") for n in limbs},
        },
    )


@pytest.fixture
def differences():
    """differences(samples, angle, distance) -> smooth random rotation deltas and displacement."""

    def make(samples, angle=0.3, distance=0.05):
        random = np.random.default_rng(7)
        knots = np.linspace(0, samples, max(3, samples // 15))

        def smooth(*shape):
            values = random.normal(size=(len(knots), *shape)).reshape(len(knots), -1)
            columns = [np.interp(np.arange(samples), knots, column) for column in values.T]
            return np.stack(columns, 1).reshape(samples, *shape)

        from poise.controller.geometry.skeleton import SEGMENTS

        vectors = angle * smooth(len(SEGMENTS), 3)
        size = np.linalg.norm(vectors, axis=-1, keepdims=True)
        axes = vectors / np.maximum(size, 1e-12)
        rotations = np.concatenate([np.cos(size / 2), np.sin(size / 2) * axes], -1)
        return rotations, distance * smooth(3)

    return make


@pytest.fixture
def no_differences():
    """no_differences(samples) -> the deltas of a simulation that is its reference."""
    from poise.controller.geometry.skeleton import SEGMENTS

    def make(samples):
        rotations = np.zeros((samples, len(SEGMENTS), 4))
        rotations[..., 0] = 1
        return rotations, np.zeros((samples, 3))

    return make


@pytest.fixture
def airborne(import_clip):
    """(frame in which the feet of the imported jump are highest, last frame)."""
    import bpy

    armature, scene = import_clip("jump"), bpy.context.scene
    heights = {}
    for frame in range(scene.frame_start, scene.frame_end + 1):
        scene.frame_set(frame)
        foot = armature.pose.bones["CC_Base_L_Foot"]
        heights[frame] = (armature.matrix_world @ foot.head).z
    return max(heights, key=heights.get), scene.frame_end


#: At most, for what takes a moment on a quiet machine [s].
_PATIENCE = 120.0


class Window:
    """What a modal operator uses of a context; counts its timers."""

    def __init__(self, context):
        self.timers = []
        self.status = None
        self.scene, self.active_object = context.scene, context.active_object
        self.selected_objects = list(context.selected_objects)
        region = SimpleNamespace(type="UI", x=1000, y=0, width=200, height=800)
        area = SimpleNamespace(type="VIEW_3D", regions=[region])
        self.area = SimpleNamespace(type="PROPERTIES")
        self.screen = SimpleNamespace(is_animation_playing=False, areas=[area])
        self.window = SimpleNamespace(screen=self.screen)
        self.window_manager = self.workspace = self

    def event_timer_add(self, _period, window):
        self.timers.append(SimpleNamespace(time_duration=0.0))
        return self.timers[-1]

    def event_timer_remove(self, timer):
        self.timers.remove(timer)

    def modal_handler_add(self, _operator):
        return True

    def status_text_set(self, text):
        self.status = text

    def begin(self, kind):
        """Start an operator of Poise's, without Blender's own part of it; `reports` are its."""
        (base,) = (one for one in kind.__bases__ if one.__module__.startswith("poise."))
        own = {
            name: value
            for name, value in vars(kind).items()
            # What calls super() would find Blender's part missing.
            if not name.startswith("bl_") and "__class__" not in _outer_names(value)
        }
        stand_in = type(kind.__name__, (_Reporting, base), own)()
        assert stand_in.invoke(self, _event("LEFTMOUSE")) == {"RUNNING_MODAL"}
        return stand_in

    def send(self, operator, kind="TIMER", own=True, **event):
        """Let the operator have an event; what it returns. own: of a timer, whether it is its."""
        for timer in self.timers:
            timer.time_duration += 0.005 * own
        return operator.modal(self, _event(kind, **event))

    def turn_until(self, operator, condition):
        """Let the timer go on until a condition holds."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            if condition():
                return
            assert self.send(operator) == {"PASS_THROUGH"}
        raise AssertionError("it never came to that")


def _outer_names(value):
    return getattr(getattr(value, "__code__", None), "co_freevars", ())


class _Reporting:
    def __init__(self):
        self.reports = []

    def report(self, kind, message):
        self.reports.append((*kind, message))


def _event(kind, value="PRESS", x=10, y=10):
    keys = dict.fromkeys(("ctrl", "shift", "alt", "oskey", "is_repeat"), False)
    return SimpleNamespace(type=kind, value=value, mouse_x=x, mouse_y=y, **keys)


@pytest.fixture(scope="session", autouse=True)
def _catalogs():
    """Catalogs are read once: that is most of what it takes to register Poise."""
    from poise.addon.blender import translations

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translations, "read", functools.cache(translations.read))
        yield


@pytest.fixture
def registered(blender):
    """Poise as Blender has it when it is enabled."""
    import poise

    poise.register()
    yield
    poise.unregister()


@pytest.fixture
def window(armature):
    """A Window that shows the armature of the test."""
    import bpy

    return Window(bpy.context)


#: So many letters of a name fit beside its field, in a sidebar as wide as it is at first.
LETTERS_BESIDE = 14
#: And so many of choices that stand beside each other there, with three for the room around each.
LETTERS_OF_CHOICES = 28


class _Layout:
    """A stand-in for UILayout: takes down what is shown, and demands that it is known, and that
    names which stand beside their fields have room there."""

    def __init__(self, texts, split=True):
        self.texts, self.use_property_split = texts, split

    def prop(self, data, name, **options):
        known = data.bl_rna.properties[name]
        if self.use_property_split and known.type != "BOOLEAN":
            label = options.get("text", known.name)
            assert len(label) <= LETTERS_BESIDE, f"'{label}' is cut beside its field"
            if known.type == "ENUM" and options.get("expand"):
                taken = sum(len(item.name) + 3 for item in known.enum_items)
                assert taken <= LETTERS_OF_CHOICES, f"the choices of '{name}' are cut"
        self.texts.append(options.get("text", name))

    def operator(self, name, text="", **_options):
        import bpy

        group, verb = name.split(".")
        getattr(getattr(bpy.ops, group), verb).get_rna_type()
        self.texts.append(text or name)
        return SimpleNamespace()

    def label(self, text="", **_options):
        self.texts.append(text)

    def template_list(self, kind, _id, data, name, *_place, **_options):
        import bpy

        assert hasattr(bpy.types, kind) and name in data.bl_rna.properties

    def template_icon(self, _icon, scale):
        self.texts.append(f"picture of {scale} lines")

    def separator(self, factor):
        assert factor == 0, "nothing is seen of it"

    def progress(self, factor, text):
        assert 0 <= factor <= 1
        self.texts.append(text)

    def _part(self, **_options):
        return _Layout(self.texts, self.use_property_split)

    row = column = split = box = grid_flow = _part


@pytest.fixture
def draw_panels(blender):
    """draw_panels(classes, armature) -> all that these panels show now, as one text."""

    def draw(classes, armature):
        user = blender.context.preferences
        preferences = SimpleNamespace(system=SimpleNamespace(ui_scale=1.0), themes=user.themes)
        region = SimpleNamespace(width=260)
        context = SimpleNamespace(
            scene=blender.context.scene,
            preferences=preferences,
            region=region,
            screen=SimpleNamespace(is_animation_playing=False),
            active_object=blender.context.active_object,
            selected_objects=list(blender.context.selected_objects),
        )
        texts = []
        for cls in classes:
            cls.content(None, _Layout(texts), context, armature, "")
        return "\n".join(texts)

    return draw
