# SPDX-License-Identifier: GPL-3.0-or-later
"""The stance bar: which feet stand, as stripes at the lower edge of the animation editors.

The upper stripe is the simulation, the lower one its reference. Over them the same for each foot:
a full stripe where it stands on its whole sole, the lower half of one on its heel, the upper half
on ball and toes. A thin one over all shows when a push acts. Its geometry is made by pure
functions: frames across, pixels of a standard screen up.
"""

from functools import lru_cache
from itertools import pairwise

import blf
import bpy
import numpy as np

from ...controller.geometry.stance import AIR, BALL, HEEL, NAMES
from ..blender.chosen import chosen_armature
from ..blender.translations import tr
from ..settings.overlay_settings import STANCES
from . import bars, overlay
from .overlay_marks import push_span

#: Lower and upper edge of each stripe [pixels of a standard screen]; of the feet: reference and
#: simulation.
REFERENCE, SIMULATION, PUSHES = (11, 16), (17, 22), (45, 48)
FEET = {"right": ((24, 28), (29, 33)), "left": ((35, 39), (40, 44))}
#: Size of the legend's letters and the distance between its words; where they stand beside the bar,
#: and over it in editors of some height [pixels of a standard screen].
TEXT, GAP, BESIDE, OVER, TALL = 11, 8, 13, 52, 120
#: The words of the legend, and the colour of the first.
TITLE, TITLE_COLOUR = "Simulation over animation:", (0.7, 0.7, 0.7)
WORDS = {
    "dual": "both feet",
    "left": "left foot",
    "right": "right foot",
    "flight": "air",
    "pushes": "push",
}

_handles = []


def register():
    """Draw the bar in all animation editors from now on."""
    _handles.extend(bars.add(_draw))


def unregister():
    """Undo `register`."""
    bars.remove(_handles)
    _batch.cache_clear()


# --- What is where -------------------------------------------------------------------------------


def runs(states):
    """(first, stop, state) of each stretch of equal values in (n,) states."""
    states = np.asarray(states)
    edges = [0, *(np.flatnonzero(np.diff(states)) + 1).tolist(), len(states)]
    return [(a, b, int(states[a])) for a, b in pairwise(edges) if a < b]


def stripes(recording, colours):
    """Rectangles of the bar: corners (R, 4) as left, right [samples], bottom, top [pixels], and
    colours (R, 3). A sample reaches half an interval to both sides.

    colours: {"dual", "left", "right", "flight", perhaps "pushes": (red, green, blue)}.
    """
    found = []
    for (low, high), states in (
        (REFERENCE, recording.reference_stance),
        (SIMULATION, recording.stance),
    ):
        for first, stop, state in runs(states):
            found.append(((first - 0.5, stop - 0.5, low, high), colours[NAMES[state]]))
    phases = recording.reference_phases, recording.phases
    for column, side in enumerate(("left", "right")):
        for (low, high), feet in zip(FEET[side], phases, strict=True):
            middle = (low + high) / 2
            for first, stop, phase in runs(feet[:, column]):
                if phase != AIR:
                    bottom, top = {HEEL: (low, middle), BALL: (middle, high)}.get(
                        phase, (low, high)
                    )
                    found.append(((first - 0.5, stop - 0.5, bottom, top), colours[side]))
    if "pushes" in colours:
        last = len(recording) - 0.5
        for push in recording.scenario.pushes:
            begin, end = push_span(recording, push)
            if begin < last:
                found.append(((begin, min(end, last), *PUSHES), colours["pushes"]))
    corners, paints = zip(*found, strict=True)
    return np.array(corners, float), np.array(paints, float)


def colours_of(settings):
    """The colours of `stripes` that a scene's settings of overlays give."""
    names = (*STANCES, "pushes") if settings.pushes else STANCES
    return {name: tuple(getattr(settings, f"{name}_colour")) for name in names}


def shown(context):
    """The shot whose stance is shown: that of the chosen armature; None if it has no result."""
    armature, _ = chosen_armature(context)
    if armature is None:
        return None
    shots = (shot for shot, _ in overlay.recorded(context.scene))
    return next((shot for shot in shots if shot.reading.armature == armature.name), None)


# --- Drawing -------------------------------------------------------------------------------------


def _draw():
    """Draw the bar in the editor that is being drawn."""
    context = bpy.context
    settings = context.scene.poise.overlays
    if not settings.stance or getattr(context.space_data, "mode", "") == "DRIVERS":
        return
    shot = shown(context)
    if shot is None:
        return
    colours, recording = colours_of(settings), shot.recording
    motion, view, scale = (
        recording.motion,
        context.region.view2d,
        context.preferences.system.ui_scale,
    )
    left = view.view_to_region(motion.frame(0), 0, clip=False)[0]
    right = view.view_to_region(motion.frame(len(motion) - 1), 0, clip=False)[0]
    batch = _batch(recording, len(recording), tuple(colours.items()))
    bars.draw(batch, (left, right), len(motion) - 1, scale)
    _draw_legend(context.region, colours, (left, right), scale)


@lru_cache(maxsize=4)
def _batch(recording, _count, colours):
    """The rectangles on the graphics card, for as long as the recording does not grow."""
    return bars.batch(*stripes(recording, dict(colours)))


def _draw_legend(region, colours, ends, scale):
    """Words in the colours: to the right of the bar, else over it; nowhere if there is no room."""
    words = [(TITLE, TITLE_COLOUR), *((WORDS[name], paint) for name, paint in colours.items())]
    words = [(tr(word), paint) for word, paint in words]
    blf.size(0, TEXT * scale)
    steps = [blf.dimensions(0, word)[0] + GAP * scale for word, _ in words]
    x, y = ends[1] + 2 * GAP * scale, BESIDE * scale
    if x + sum(steps) > region.width:
        if region.height < TALL * scale:
            return
        x, y = max(ends[0], GAP * scale), OVER * scale
    blf.enable(0, blf.SHADOW)
    blf.shadow(0, 3, 0.0, 0.0, 0.0, 0.8)
    for (word, paint), step in zip(words, steps, strict=True):
        blf.position(0, x, y, 0)
        blf.color(0, *paint, 1.0)
        blf.draw(0, word)
        x += step
    blf.disable(0, blf.SHADOW)
