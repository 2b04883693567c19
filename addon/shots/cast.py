# SPDX-License-Identifier: GPL-3.0-or-later
"""Several armatures of a scene that are simulated together: a shot for each, in one world.

cast = Cast(scene, ShotOptions(armature="Anna"), ("Ben",))
for shot in cast.shots:
    for progress in shot.read(): …
    shot.prepare()
for sample in cast.simulate(): …
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ...controller.exceptions import MotionError, demand
from ...controller.simulation.together import Together
from ..rigs import bake_target, strips
from ..rigs.sampling import animated_range
from .shot import Shot, ShotOptions, find_armature

if TYPE_CHECKING:
    import bpy

#: Two units of the same length differ by less [share].
_SAME = 1e-6


class Cast:
    """The shots of characters that are simulated together. shots: the first one is that of the
    options."""

    def __init__(
        self, scene: "bpy.types.Scene", options: ShotOptions, others: tuple[str, ...]
    ) -> None:
        """options: of the first one, and what all have in common: frames, rates, unit, gains, and
        how is simulated. others: names of the other armatures. Raises RigError, SettingsError."""
        first = find_armature(scene, options.armature, (*options.others, *others)).name
        names = [first, *(find_armature(scene, name).name for name in others)]
        for name in names:
            demand(
                names.count(name) == 1,
                f"'{name}' is to be simulated together with itself: name each armature once.",
            )
        frames = options.frames or _all_frames([scene.objects[name] for name in names])
        common = replace(options, frames=frames)
        own = ShotOptions()
        alike = {
            name: getattr(own, name)
            for name in ("action", "rig", "mass", "morphology", "weights", "strength", "pushes")
        } | {name: getattr(own, name) for name in ("waypoints", "holds", "contacts", "walk")}
        self.shots: list[Shot] = []
        for name in names:
            partners = tuple(one for one in names if one != name)
            chosen = common if name == first else replace(common, **alike, led=False)
            self.shots.append(Shot(scene, replace(chosen, armature=name, together=partners)))
        self._together: Together | None = None

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


def _all_frames(armatures: "list[bpy.types.Object]") -> tuple[float, float] | None:
    """From where the first one is animated to where the last one is; None if one is moved by
    others, which go on for as long as the scene."""
    ranges = []
    for armature in armatures:
        try:
            ranges.append(animated_range(armature, *_source(armature)))
        except MotionError:
            return None
    starts, ends = zip(*ranges, strict=True)
    return min(starts), max(ends)


def _source(armature: "bpy.types.Object") -> strips.Animation:
    """What is read of an armature, also while its bake is shown."""
    return bake_target.without_bake(*strips.read_of(armature))
