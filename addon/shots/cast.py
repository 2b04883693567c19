# SPDX-License-Identifier: GPL-3.0-or-later
"""Several armatures of a scene that are simulated together: a shot for each, in one world.

cast = Cast(scene, ShotOptions(armature="Anna"), ("Ben",))
for shot in cast.shots:
    for progress in cast.reading(shot): …
    shot.prepare()
for sample in cast.simulate(): …
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ...controller.exceptions import MotionError, SettingsError, demand
from ...controller.simulation.together import Together
from ..rigs import bake_target, strips
from ..rigs.sampling import animated_range
from ..scene.pushes import PushOptions
from .shot import Shot, ShotOptions, find_armature

if TYPE_CHECKING:
    import bpy

#: Two units of the same length differ by less [share]; floors of one height by less [m].
_SAME, _LEVEL = 1e-6, 0.05
#: Options that are of the first one alone.
_OWN = (
    *("action", "rig", "mass", "morphology", "weights", "strength", "mixed"),
    *("waypoints", "holds", "contacts", "walk"),
)


class Cast:
    """The shots of characters that are simulated together. shots: the first one is that of the
    options."""

    def __init__(
        self, scene: "bpy.types.Scene", options: ShotOptions, others: tuple[str, ...]
    ) -> None:
        """options: of the first one, and what all have in common: frames, rates, unit, gains, and
        how is simulated. others: names of the other armatures. Raises RigError, SettingsError."""
        first = find_armature(scene, options.armature, (*options.others, *others)).name
        for number, name in enumerate(others):
            demand(
                name != first and name not in others[:number],
                f"'{name}' is named twice among those who are simulated together: name each once.",
            )
        for name in {*others} & {*options.others}:
            raise SettingsError(
                f"'{name}' is simulated together with '{first}', and can be no collider of it: "
                "name it once."
            )
        names = [first, *(find_armature(scene, name).name for name in others)]
        for name in names:
            _check_free(scene.objects[name], names)
        frames = options.frames
        if not frames and options.walk is None:
            frames = _all_frames([scene.objects[name] for name in names])
        common, own = replace(options, frames=frames), ShotOptions()
        given = options.pushes or PushOptions()
        alike = {name: getattr(own, name) for name in _OWN} | {
            "pushes": replace(PushOptions(), ignore=given.ignore),
            "led": False,
        }
        self.shots: list[Shot] = []
        for name in names:
            partners = tuple(one for one in names if one != name)
            chosen = common if name == first else replace(common, **alike)
            self.shots.append(Shot(scene, replace(chosen, armature=name, together=partners)))
        self._together: Together | None = None

    def reading(self, shot: Shot) -> Iterator[float]:
        """Read one, those before it first; yields progress from 0 to 1. Who is with a walk has as
        many frames as that. Raises PoiseError."""
        first = self.shots[0]
        if shot is not first and first.options.walk is not None:
            motion = first.reading.motion
            shot.choose(motion.frame(0), motion.frame(len(motion) - 1), motion.frame_step)
        yield from shot.read()

    @property
    def notes(self) -> list[str]:
        """Sentences on who stands on another floor than the first one, once all are prepared."""
        first, *rest = self.shots
        found = []
        for shot in rest:
            higher = shot.character.ground - first.character.ground
            if abs(higher) > _LEVEL and not shot.objects.get("colliders"):
                found.append(
                    f"'{shot.armature.name}' stands on a floor of its own, {higher:+.2f} m from "
                    f"that of '{first.armature.name}'."
                )
        return found

    @property
    def together(self) -> Together:
        """The simulations in one world, once all shots are prepared. Raises SettingsError."""
        if self._together is None:
            first, *rest = self.shots
            unit = first.reading.metres_per_unit
            for shot in rest:
                other = shot.reading.metres_per_unit
                demand(
                    abs(other / unit - 1) < _SAME,
                    f"One unit of the scene is {unit:g} m for '{first.armature.name}' and "
                    f"{other:g} m for '{shot.armature.name}': give it in Unit, or by --unit.",
                )
            self._together = Together({shot.armature.name: shot.simulation for shot in self.shots})
        return self._together

    def simulate(self) -> Iterator[int]:
        """Simulate; yields the number of each sample reached. Raises BakeError before any work if
        an armature could not take the result."""
        for sample in self.simulating():
            if sample is not None:
                yield sample

    def simulating(self) -> Iterator[int | None]:
        """The same in pieces short enough for a window: yields None between samples."""
        for shot in self.shots:
            bake_target.check_editable(shot.armature)
        yield from self.together.pieces()


def _check_free(armature: "bpy.types.Object", names: list[str]) -> None:
    """Raise SettingsError for who is carried by one of the others."""
    parent = armature.parent
    while parent is not None:
        demand(
            parent.name not in names,
            f"'{armature.name}' is parented to '{parent.name}', and so carried by its animation: "
            "clear that (Object > Parent > Clear and Keep Transformation), or leave it out.",
        )
        parent = parent.parent


def _all_frames(armatures: "list[bpy.types.Object]") -> tuple[float, float] | None:
    """From where the first one is animated to where the last one is; None if nobody is by keys or
    strips."""
    ranges = []
    for armature in armatures:
        with contextlib.suppress(MotionError):
            ranges.append(animated_range(armature, *_source(armature)))
    if not ranges:
        return None
    starts, ends = zip(*ranges, strict=True)
    return min(starts), max(ends)


def _source(armature: "bpy.types.Object") -> strips.Animation:
    """What is read of an armature, also while its bake is shown."""
    return bake_target.without_bake(*strips.read_of(armature))
