# SPDX-License-Identifier: GPL-3.0-or-later
"""The contact bar: when heel, ball and tip of each foot stand, as spans above the stance bar.

Six rows in Dope Sheet, Timeline and Graph Editor, the left foot above the right one, in the colours
of the feet; the row that is chosen to be changed is bright. Its geometry is made by pure functions:
frames across, pixels of a standard screen up.
"""

import blf
import bpy
import numpy as np

from ...controller.contacts.contact_plan import FEET, POINTS
from ...controller.exceptions import PlanError
from ..blender.chosen import chosen_armature
from ..blender.translations import tr
from ..scene import live_contacts
from . import bars

#: Lower edge of the lowest row, height of each and distance to the next, and between the feet
#: [pixels of a standard screen].
BOTTOM, HEIGHT, STEP, BETWEEN = 66, 9, 10, 4
#: How close it may come to the lower edge of the editor, and what the editor has above it
#: [pixels]: in a low Timeline it goes down, over the stance bar.
LEAST, NUMBERS = 2, 24
#: How bright a row is that is not chosen, and how high its letters are.
DIM, TEXT = 0.55, 9
#: What stands before each row.
WORDS = {
    ("left", "heel"): "left heel",
    ("left", "ball"): "left ball",
    ("left", "tip"): "left tip",
    ("right", "heel"): "right heel",
    ("right", "ball"): "right ball",
    ("right", "tip"): "right tip",
}

_handles = []


def register():
    """Draw the bar in all animation editors from now on."""
    _handles.extend(bars.add(_draw))


def unregister():
    """Undo `register`."""
    bars.remove(_handles)


def row(foot, point):
    """Lower and upper edge of a row [pixels of a standard screen]."""
    below = POINTS[::-1].index(point) + (len(POINTS) if foot == FEET[0] else 0)
    low = BOTTOM + STEP * below + (BETWEEN if foot == FEET[0] else 0)
    return low, low + HEIGHT


def sunk(height):
    """How much lower the rows are in an editor of that height [pixels of a standard screen]."""
    top = row(FEET[0], POINTS[0])[1]
    return min(max(top + NUMBERS - height, 0), BOTTOM - LEAST)


def row_at(height):
    """(foot, point) of the row at a height [pixels of a standard screen]; None beside them."""
    for foot, point in WORDS:
        low, high = row(foot, point)
        if low <= height < high:
            return foot, point
    return None


def rectangles(kept, chosen, colours):
    """Corners (R, 4) of all spans as left, right [frames], bottom, top [pixels], and their colours
    (R, 3). A frame reaches half of one to both sides.

    kept: contacts.Kept. chosen: (foot, point) that is bright. colours: {foot: (red, green, blue)}.
    """
    corners, paints = [], []
    for foot, point, first, end in kept.spans():
        corners.append((first - 0.5, end - 0.5, *row(foot, point)))
        paints.append(np.multiply(colours[foot], 1.0 if (foot, point) == chosen else DIM))
    return np.reshape(corners, (-1, 4)).astype(float), np.reshape(paints, (-1, 3)).astype(float)


def shown(context):
    """The contacts.Kept of the chosen armature; None if there is none, or it cannot be read."""
    if not context.scene.poise.overlays.contacts:
        return None
    armature, _ = chosen_armature(context)
    if armature is None:
        return None
    try:
        return live_contacts.known(context.scene, armature)
    except PlanError:  # the panel says why
        return None


# --- Drawing -------------------------------------------------------------------------------------


def _draw():
    """Draw the bar in the editor that is being drawn."""
    context = bpy.context
    if getattr(context.space_data, "mode", "") == "DRIVERS":
        return
    kept = shown(context)
    if kept is None:
        return
    settings, view = context.scene.poise, context.region.view2d
    scale = context.preferences.system.ui_scale
    chosen = settings.clean_up.foot.lower(), settings.clean_up.point.lower()
    colours = {foot: tuple(getattr(settings.overlays, f"{foot}_colour")) for foot in FEET}
    corners, paints = rectangles(kept, chosen, colours)
    left, right = (view.view_to_region(x, 0, clip=False)[0] for x in (kept.first, kept.last))
    down = sunk(context.region.height / scale)
    if len(corners):
        batch = bars.batch(corners - [kept.first, kept.first, down, down], paints)
        bars.draw(batch, (left, right), kept.last - kept.first, scale)
    _draw_words((max(left, 0.0), down), chosen, colours, scale)


def _draw_words(place, chosen, colours, scale):
    """The name of each row at its beginning. place: that [pixels], and how much lower they are."""
    left, down = place
    blf.size(0, TEXT * scale)
    blf.enable(0, blf.SHADOW)
    blf.shadow(0, 3, 0.0, 0.0, 0.0, 0.8)
    for (foot, point), word in WORDS.items():
        paint = (1.0, 1.0, 1.0) if (foot, point) == chosen else colours[foot]
        blf.position(0, left + 4 * scale, (row(foot, point)[0] + 1 - down) * scale, 0)
        blf.color(0, *paint, 1.0)
        blf.draw(0, tr(word))
    blf.disable(0, blf.SHADOW)
