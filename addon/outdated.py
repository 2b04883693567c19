# SPDX-License-Identifier: GPL-3.0-or-later
"""What was set otherwise when a simulation was made than it is now."""

from . import compat, objects
from .weights import PROPERTY

#: Fields of ShotOptions, by the names that the window has for them.
_OPTIONS = {
    "Frames": ("frames",),
    "Rig Map": ("rig",),
    "Unit (m)": ("unit",),
    "Gains": ("gains", "balance"),
    "Style": ("style",),
    "Rate (Hz)": ("rate",),
    "Own Mass": ("mass",),
    "Proportions": ("morphology",),
    "Motor Noise (N m)": ("noise", "seed"),
    "Recovery Steps": ("recovery_steps",),
    "Clip Check": ("cleaning",),
    "Locomotion": ("walk",),
}


def settings_of(scene, armature, options):
    """{name: value} of all that a simulation of an armature depends on, but its animation and
    contacts. options: its ShotOptions."""
    found = {
        name: tuple(getattr(options, field) for field in fields)
        for name, fields in _OPTIONS.items()
    }
    if not options.noise:
        found["Motor Noise (N m)"] = 0.0  # of which no seed counts
    weights = getattr(armature.data, PROPERTY)
    keyed = [c for c in compat.curves(*compat.assigned(armature.data)) if _is_weight(c)]
    return found | {
        "Frame Rate": scene.render.fps / scene.render.fps_base,
        "Pushes": [_values(push) for push in scene.poise.pushes.items],
        "Objects": [
            _values(scene.poise.objects),
            [_marked(thing) for thing in objects.marked(scene)],
        ],
        "Physics Weights": [
            _values(weights, {curve.data_path.rpartition(".")[2] for curve in keyed}),
            [(c.data_path, [tuple(point.co) for point in c.keyframe_points]) for c in keyed],
        ],
    }


def changed(before, now):
    """The names of what differs between two of these; none without the first."""
    return [name for name in now if before is not None and before[name] != now[name]]


def _is_weight(curve):
    return curve.data_path.startswith(f"{PROPERTY}.")


def _marked(thing):
    """What counts of a thing or a collider; what its animation moves is not looked at."""
    place = None if thing.animation_data else [tuple(row) for row in thing.matrix_basis]
    return thing.name, len(thing.data.vertices), place, _values(thing.poise)


def _values(group, skipped=("index", "name")):
    """{identifier: value} of a property group."""
    values = {}
    for prop in group.bl_rna.properties:
        if prop.identifier in skipped or prop.is_readonly:
            continue
        value = getattr(group, prop.identifier)
        if prop.type == "POINTER":
            value = value and value.name
        values[prop.identifier] = tuple(value) if getattr(prop, "is_array", False) else value
    return values
