# SPDX-License-Identifier: GPL-3.0-or-later
"""Picture strips: moments from left to right, the original above, the simulation below."""

import tempfile
from pathlib import Path

import bpy
import numpy as np
from staging import aim, text

#: Moments in a strip, paths per pixel, and the gap between tiles [pixels].
MOMENTS, SAMPLES, GAP = 7, 12, 4
_NEAR = 0.5  # [m] from the camera to its caption


def moments(first, last, count=MOMENTS):
    """Frames spread over a range, both ends included."""
    return [int(frame) for frame in np.linspace(first, last, count).round()]


def prepare(scene):
    """Cycles on the CPU: the only engine that needs neither a display nor a graphics card."""
    scene.render.engine = "CYCLES"
    cycles = scene.cycles
    cycles.device, cycles.samples, cycles.max_bounces = "CPU", SAMPLES, 2
    cycles.use_denoising, cycles.use_adaptive_sampling = False, False
    scene.render.use_persistent_data = True
    scene.render.resolution_percentage = 100
    scene.render.image_settings.file_format = "PNG"
    scene.view_settings.view_transform = "Standard"


def strip(scene, rows, frames, size, view, path):
    """Render a strip to a PNG. size: (width, height) of a tile; view: takes a frame, gives (target,
    place, lens) of the camera for the first row [m, mm]."""
    scene.render.resolution_x, scene.render.resolution_y = size
    camera = scene.camera
    camera.data.sensor_fit = "VERTICAL"
    label = _caption(camera, size, view(frames[0])[2])
    lines = []
    for row in rows:
        for other in rows:
            for thing in other.things:
                thing.hide_render = other is not row
        tiles = []
        for frame in frames:
            scene.frame_set(frame)
            target, place, lens = view(frame)
            aim(camera, np.asarray(target) + row.offset, np.asarray(place) + row.offset, lens)
            label.data.body = f"{row.title}, {frame}"
            tiles.append(_tile(scene))
        lines.append(_joined(tiles, 1))
    for row in rows:
        for thing in row.things:
            thing.hide_render = False
    bpy.data.objects.remove(label)
    _save(_joined(lines[::-1], 0), path)


def _caption(camera, size, lens):
    """A text in the lower left corner of what the camera sees."""
    label = text("Caption", "", 0.05, (0.0, 0.0, 0.0))
    label.data.align_x = "LEFT"
    label.parent = camera
    # Half the picture's height and width; the sensor is 24 mm high. Nearer than the floor.
    high = 12 / lens * _NEAR
    label.data.size = high * 36 / size[1]
    wide = high * size[0] / size[1]
    label.location = (-0.95 * wide, -0.96 * high, -_NEAR)
    label.visible_shadow = False
    return label


def _tile(scene):
    """(height, width, 4) pixels of the scene as it is, the lowest row first."""
    with tempfile.TemporaryDirectory() as folder:
        scene.render.filepath = str(Path(folder) / "tile.png")
        bpy.ops.render.render(write_still=True)
        image = bpy.data.images.load(scene.render.filepath)
        wide, high = image.size
        pixels = np.empty(wide * high * 4, np.float32)
        image.pixels.foreach_get(pixels)
        bpy.data.images.remove(image)
    return pixels.reshape(high, wide, 4)


def _joined(parts, axis):
    """Pictures side by side (axis 1) or above each other (axis 0), with white gaps."""
    shape = list(parts[0].shape)
    shape[axis] = GAP
    gap = np.ones(shape, np.float32)
    spaced = [part for pair in zip(parts, [gap] * len(parts), strict=True) for part in pair]
    return np.concatenate(spaced[:-1], axis)


def _save(pixels, path):
    high, wide, _ = pixels.shape
    image = bpy.data.images.new(Path(path).stem, wide, high)
    image.pixels.foreach_set(np.ascontiguousarray(pixels).ravel())
    image.filepath_raw, image.file_format = str(path), "PNG"
    image.save()
    bpy.data.images.remove(image)
