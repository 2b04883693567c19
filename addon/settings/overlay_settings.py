# SPDX-License-Identifier: GPL-3.0-or-later
"""What is drawn over a simulation: `scene.poise.overlays`."""

import bpy
from bpy.props import BoolProperty, FloatProperty, FloatVectorProperty

from ..blender.redrawing import on_change

#: Overlays in the 3D views, in the order of the panel.
MARKS = ("pushes", "waypoints", "things", "forces", "cop", "com", "support")
#: Those of the whole result, likewise.
PATHS = ("trail", "arcs", "footprints")
#: Stance states in the order of the bar's legend.
STANCES = ("dual", "left", "right", "flight")


def _switch(name, description, default):
    return BoolProperty(name=name, description=description, default=default, update=on_change)


def _colour(name, default):
    return FloatVectorProperty(
        name=name,
        description=f"Colour of {name.lower()}",
        subtype="COLOR_GAMMA",
        min=0.0,
        max=1.0,
        default=default,
        update=on_change,
    )


class POISE_PG_overlays(bpy.types.PropertyGroup):
    """What is drawn, and in which colours. What acts on the body is on from the start."""

    pushes: _switch(
        "Pushes",
        "Arrows at the frames at which a push or another body acts, ending at the point that it "
        "pushes. Their length is the force [N]",
        True,
    )
    waypoints: _switch(
        "Waypoints",
        "A ring of 3 cm and a pole where each waypoint is, and a dot below where the hips were at "
        "its frame: inside of the ring where the body got there",
        True,
    )
    things: _switch("Things", "What was thrown or falls, where the simulation has it", True)
    forces: _switch(
        "Contact Forces",
        "Arrows of what floor and colliders press against each foot, and each part of a body that "
        "falls or leans on them, from the centre of pressure, and of what holds hands and feet. "
        "Their length is the force [N]",
        True,
    )
    cop: _switch(
        "Centre of Pressure",
        "Where the floor presses: a dot under each foot, a ring for both together",
        False,
    )
    com: _switch(
        "Centre of Mass",
        "A ball at the centre of mass, with a plumb line to the floor. While the body is at rest "
        "its foot stays inside the support polygon",
        False,
    )
    support: _switch(
        "Support Polygon",
        "The area between those parts of the soles that stand in the simulation",
        False,
    )
    trail: _switch(
        "Trail",
        "The path of the centre of mass through the whole result, brighter up to the current frame "
        "than after it, with a dot at each frame (from far away at each fifth). Fainter, that of "
        "the animation",
        False,
    )
    arcs: _switch(
        "Flight Arcs",
        "For each time in the air, the arc on which gravity takes the centre of mass from take-off "
        "to landing, with thin lines to where it really is. Fainter, those of the animation: the "
        "farther it is from its arc, the more its jump floats or is rushed",
        True,
    )
    footprints: _switch(
        "Footprints",
        "Where each foot is set down, in the colours of the feet below: filled for the result, "
        "outlines for the animation. Where only the toes or the heel ever stand, that part alone",
        False,
    )
    stance: _switch(
        "Stance Bar",
        "Which feet stand, below the keys of Timeline, Dope Sheet and Graph Editor: in the "
        "simulation above, in the animation below, and over both when a push acts",
        True,
    )
    contacts: _switch(
        "Contact Bar",
        "When heel, ball and tip of each foot stand, above the stance bar of Timeline, Dope Sheet "
        "and Graph Editor, once contacts were found",
        True,
    )
    newtons_per_metre: FloatProperty(
        name="Arrows (N per m)",
        description="Force for which an arrow is one metre long [N per m]; less makes longer "
        "arrows. A body of 70 kg presses with 690 N",
        default=500.0,
        min=1.0,
        max=1e6,
        soft_min=100.0,
        soft_max=2000.0,
        step=5000,
        precision=0,
        update=on_change,
    )
    pushes_colour: _colour("Pushes", (0.95, 0.20, 0.15))
    waypoints_colour: _colour("Waypoints", (0.20, 0.85, 0.75))
    things_colour: _colour("Things", (0.62, 0.45, 0.85))
    forces_colour: _colour("Contact Forces", (0.98, 0.80, 0.15))
    cop_colour: _colour("Centre of Pressure", (0.95, 0.25, 0.75))
    com_colour: _colour("Centre of Mass", (0.95, 0.95, 0.95))
    support_colour: _colour("Support Polygon", (0.15, 0.80, 0.55))
    trail_colour: _colour("Trail", (0.95, 0.95, 0.95))
    arcs_colour: _colour("Flight Arcs", (0.45, 0.85, 0.05))
    dual_colour: _colour("Both Feet", (0.10, 0.58, 0.42))
    left_colour: _colour("Left Foot", (0.92, 0.58, 0.05))
    right_colour: _colour("Right Foot", (0.35, 0.66, 0.92))
    flight_colour: _colour("Flight", (0.92, 0.92, 0.92))


CLASSES = (POISE_PG_overlays,)
