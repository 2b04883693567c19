# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes: simulations that are kept beside the result, to compare them and to bake each.

They are of the session, as results are, and no undo reaches them: the list is the window manager's,
which undo leaves alone, and what a row stands for is remembered in `session`. A row that a file
brings along from another session stands for nothing and is not shown.
"""

from itertools import count
from uuid import uuid4

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from ..blender import session
from ..blender.chosen import chosen_armature
from ..blender.redrawing import redraw, redraw_views
from ..blender.translations import tr
from ..rigs import bake_target
from ..shots import outdated

#: Colours (red, green, blue) of the ghosts of takes, as on the screen, in the order of their use.
COLOURS = (
    (0.16, 0.66, 0.33),
    (0.60, 0.33, 0.85),
    (0.90, 0.80, 0.15),
    (0.10, 0.72, 0.76),
    (0.92, 0.42, 0.68),
    (0.55, 0.55, 0.55),
)


def _named(row, _context):
    """Give a row a name that no other take of its armature has, nor a bake of one that is gone:
    bakes of takes are told by it."""
    take = session.take(row.name)
    if take is None:  # it is being made
        return
    named = row.label.strip() or tr("Take")
    mates = (other for other, one in _rows() if one.armature == take.armature)
    others = {other.label for other in mates if other.name != row.name}
    armature = bpy.data.objects.get(take.armature)
    if armature is not None:
        others |= bake_target.takes_of(armature, but=take.shot.baked)
    free = (f"{named} {number}" if number > 1 else named for number in count(1))
    name = next(name for name in free if name not in others)
    if name != row.label:
        row.label = name


def _recoloured(_row, _context):
    redraw_views()


class POISE_PG_take(bpy.types.PropertyGroup):
    """A row of the list; its own name is the key of its session.Take."""

    label: StringProperty(
        name="Name",
        description="Name of the take; its bake is called after it",
        update=_named,
    )
    colour: FloatVectorProperty(
        name="Colour of Take",
        description="Colour of the ghost of this take",
        subtype="COLOR_GAMMA",
        min=0.0,
        max=1.0,
        update=_recoloured,
    )
    show: BoolProperty(
        name="Compare",
        description="Show the ghost of this take also while another one is chosen, or none",
        default=True,
        update=_recoloured,
    )


def _chosen(self):
    """Which row is the result of the chosen armature; -1 if none is."""
    armature, _ = chosen_armature(bpy.context)
    shot = armature and session.result_of(bpy.context.scene, armature).shot
    found = ((i, session.take(row.name)) for i, row in enumerate(self.items))
    return next((i for i, take in found if take is not None and take.shot is shot), -1)


def _choose(self, index):
    """Make a row the result. One that is not kept yet is kept first, so that nothing is lost."""
    scene, (armature, _) = bpy.context.scene, chosen_armature(bpy.context)
    take = session.take(self.items[index].name)
    if take is None or (take.scene, take.armature) != (scene.name, armature.name):
        return
    result = session.result_of(scene, armature)
    if result.recording is not None and row_of(result.shot) is None:
        keep(scene, armature)
    _show(take)


def _show(take):
    """Make a take the result."""
    session.keep(take.scene, take.armature, take.shot, take.settings)
    redraw()


class POISE_PG_takes(bpy.types.PropertyGroup):
    """All takes of the session."""

    items: CollectionProperty(
        name="Takes", description="Simulations that are kept", type=POISE_PG_take
    )
    index: IntProperty(
        name="Chosen Take",
        description="The take whose verdict and ghost are shown, and that Bake bakes. A simulation "
        "that is not kept becomes a take when another one is chosen. Takes live until "
        "another file is opened or Blender is closed, and undo leaves them alone",
        get=_chosen,
        set=_choose,
    )


CLASSES = (POISE_PG_take, POISE_PG_takes)


def register():
    """Give the window manager its list."""
    bpy.types.WindowManager.poise_takes = PointerProperty(
        name="Takes", description="Simulations that are kept", type=POISE_PG_takes
    )


def unregister():
    """Undo `register`."""
    del bpy.types.WindowManager.poise_takes


# --- The list ------------------------------------------------------------------------------------


def _items():
    return bpy.context.window_manager.poise_takes.items


def _rows():
    """(row, session.Take) of all takes, the oldest first."""
    pairs = ((row, session.take(row.name)) for row in _items())
    return [(row, take) for row, take in pairs if take is not None]


def rows(scene, armature=None):
    """(row, session.Take) of the takes of an armature in a scene, or of all armatures in it."""
    return [
        (row, take)
        for row, take in _rows()
        if take.scene == scene.name and (armature is None or take.armature == armature.name)
    ]


def row_of(shot):
    """The row of a shot; None if it is not kept as a take."""
    return next((row for row, take in _rows() if take.shot is shot), None)


def name_of(shot):
    """The name of a shot as a take; empty if it is none."""
    row = row_of(shot)
    return "" if row is None else row.label


def keep(scene, armature):
    """Put the result of an armature into the list -> its row."""
    items = _items()
    for i in reversed(range(len(items))):
        if session.take(items[i].name) is None:
            items.remove(i)
    before, result = rows(scene, armature), session.result_of(scene, armature)
    name = _default_name(armature, before, result.settings)
    used = {tuple(round(part, 2) for part in row.colour) for row, _ in before}
    free = [colour for colour in COLOURS if colour not in used]
    for _, take in before:
        result.shot.share(take.shot)
    row, key = items.add(), uuid4().hex
    row.name, row.colour = key, free[0] if free else COLOURS[len(before) % len(COLOURS)]
    session.keep_take(key, session.Take(scene.name, armature.name, result.shot, result.settings))
    row.label = name
    return row


def remove(scene, armature):
    """Take the take that is chosen out of the list. The one before it is chosen then, or the one
    after it; the last one stays the result."""
    kept, shot = rows(scene, armature), session.result_of(scene, armature).shot
    place = next(i for i, (_, take) in enumerate(kept) if take.shot is shot)
    key = kept[place][0].name
    _items().remove(_items().find(key))
    session.keep_take(key, None)
    left = [take for i, (_, take) in enumerate(kept) if i != place]
    if left:
        _show(left[max(0, place - 1)])


def _default_name(armature, before, settings):
    """A number that no take has or had, and what was set otherwise than in the take before."""
    names = [*(row.label for row, _ in before), *bake_target.takes_of(armature)]
    free = (tr(f"Take {number}") for number in count(1))
    name = next(n for n in free if not any(one == n or one.startswith(f"{n}:") for one in names))
    last = before[-1][1].settings if before else None
    differs = outdated.changed(last, settings) if settings else []
    told = ", ".join(tr(one).partition(" (")[0] for one in differs)
    return f"{name}: {told}" if told else name
