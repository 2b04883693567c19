# SPDX-License-Identifier: GPL-3.0-or-later
"""What the bars at the lower edge of the animation editors share: where they are drawn, and how
their rectangles come to the graphics card."""

import bpy
import gpu
import numpy as np
from gpu_extras.batch import batch_for_shader

_EDITORS = (bpy.types.SpaceDopeSheetEditor, bpy.types.SpaceGraphEditor)


def add(function):
    """Call a function whenever an animation editor is drawn; gives what `remove` takes."""
    return [
        (editor, editor.draw_handler_add(function, (), "WINDOW", "POST_PIXEL"))
        for editor in _EDITORS
    ]


def remove(handles):
    """Undo `add`: the list is empty afterwards."""
    while handles:
        editor, handle = handles.pop()
        editor.draw_handler_remove(handle, "WINDOW")


def batch(corners, paints):
    """Rectangles on the graphics card. corners: (R, 4) as left, right [frames], bottom, top
    [pixels of a standard screen]; paints: (R, 3)."""
    positions = corners[:, [[0, 2], [1, 2], [1, 3], [0, 3]]].reshape(-1, 2)
    quads = np.array([[0, 1, 2], [0, 2, 3]]) + 4 * np.arange(len(corners))[:, None, None]
    opaque = np.column_stack([np.repeat(paints, 4, axis=0), np.ones(len(positions))])
    return batch_for_shader(
        gpu.shader.from_builtin("FLAT_COLOR"),
        "TRIS",
        {"pos": positions.astype(np.float32), "color": opaque.astype(np.float32)},
        indices=quads.reshape(-1, 3).astype(np.int32),
    )


def draw(rectangles, ends, frames, scale):
    """Draw what `batch` gave. ends: where 0 and the last of so many frames are [pixels]; scale: of
    the screen."""
    left, right = ends
    with gpu.matrix.push_pop():
        gpu.matrix.translate((left, 0.0))
        gpu.matrix.scale(((right - left) / frames, scale))
        rectangles.draw(gpu.shader.from_builtin("FLAT_COLOR"))
