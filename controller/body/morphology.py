# SPDX-License-Identifier: GPL-3.0-or-later
"""Other bodies (SCA12, section 4): any segment longer, thicker or heavier than in the clip.

The joints turn as they do in the clip, the segments between them have the new proportions, the
root goes as far as the new legs take it, and the soles are as high as they were. What comes out is
a Character and a Motion like any other: the motion is what the armature would show with the new
proportions, so that everything downstream compares with that.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .. import documents
from ..exceptions import SettingsError
from ..geometry.motion import Motion
from ..geometry.rotations import matrix_from_quaternion
from ..geometry.skeleton import (
    ENTRIES,
    FEET,
    JOINT_OF,
    LANDMARK_INDEX,
    PARTS,
    POINTS,
    SEGMENT_INDEX,
    SEGMENTS,
    TOES,
)
from .bake_measures import soles
from .character import Character, Joint, Shape
from .foot import Foot

#: What can be scaled, left and right the same, and the segments that it means.
GROUPS = {
    name: tuple(segment for segment, one in ENTRIES.items() if name in (one.group, one.name))
    for name in dict.fromkeys(("head", "trunk", "pelvis", *PARTS))  # as a panel has them
    if not PARTS[name].group
}
#: What is scaled of each, and by how much it may be [factor]: from a child to a giant, estimated.
KINDS = {"length": (0.3, 3.0), "girth": (0.3, 3.0), "mass": (0.1, 10.0)}
#: Folder of the morphologies that come with Poise.
FOLDER = Path(__file__).resolve().parents[2] / "presets" / "morphologies"

#: A sole this much higher [m] than the other one counts less for the height of the root: by trial.
_EQUALLY_LOW = 0.02
_SAME = (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Morphology:
    """How the segments of a body are scaled.

    factors: {group: (length, girth, mass)}, see GROUPS; what is left out stays as it is. name,
    description: for people. Raises SettingsError for a group that does not exist and for factors
    that no body can have.
    """

    factors: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    name: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.factors, dict):
            raise SettingsError("A morphology names segments and their factors: give an object.")
        for group, values in self.factors.items():
            _check(group, values)
        whole = {group: tuple(map(float, self.factors.get(group, _SAME))) for group in GROUPS}
        object.__setattr__(self, "factors", whole)

    def __bool__(self) -> bool:
        """Whether it changes anything."""
        return any(values != _SAME for values in self.factors.values())

    def scaled(self, changes: Mapping[str, tuple[float, float, float]]) -> "Morphology":
        """This morphology with {group: (length, girth, mass)} in place of its own factors."""
        return replace(self, factors=self.factors | dict(changes))

    def as_dict(self) -> dict[str, Any]:
        """The morphology as JSON-able data, the content of a file."""
        words = {"name": self.name, "description": self.description}
        segments = {
            group: dict(zip(KINDS, values, strict=True))
            for group, values in self.factors.items()
            if values != _SAME
        }
        return {**{key: text for key, text in words.items() if text}, "segments": segments}

    @classmethod
    def from_dict(cls, data: Any, source: str = "the morphology") -> "Morphology":
        """The morphology that `as_dict` wrote; a kind that is left out counts as 1.

        source: what errors call the data. Raises SettingsError.
        """
        segments = data.get("segments") if isinstance(data, dict) else None
        if not isinstance(segments, dict):
            raise SettingsError(
                f"{_capital(source)} names no 'segments': give an object such as "
                '{"segments": {"trunk": {"length": 0.8}}}.'
            )
        factors = {}
        for group, values in segments.items():
            odd = sorted(set(values) - set(KINDS)) if isinstance(values, dict) else [values]
            if odd:
                raise SettingsError(
                    f"{_capital(source)} gives {odd[0]!r} for the {group}: give {_listed(KINDS)}."
                )
            factors[group] = tuple(values.get(kind, 1.0) for kind in KINDS)
        try:
            return cls(factors, str(data.get("name", "")), str(data.get("description", "")))
        except SettingsError as error:
            raise SettingsError(f"{_capital(source)} is of no use: {error}") from error

    @classmethod
    def load(cls, path: str | Path) -> "Morphology":
        """Read a file. Raises SettingsError if it cannot be read or is no morphology."""
        source = f"the morphology '{path}'"
        return cls.from_dict(documents.read(path, source, _fail), source)

    @classmethod
    def named(cls, name: str) -> "Morphology":
        """One of those that come with Poise, by the name of its file or its own, or the file of
        that path. Raises SettingsError."""
        known = presets()
        for stem, morphology in known.items():
            if name.casefold() in (stem, morphology.name.casefold()):
                return morphology
        if Path(name).suffix or Path(name).is_file():
            return cls.load(name)
        raise SettingsError(
            f"There is no morphology '{name}': use {_listed(known)}, or the path of a .json file."
        )


def presets() -> dict[str, Morphology]:
    """The morphologies that come with Poise, by the names of their files."""
    return {path.stem: Morphology.load(path) for path in sorted(FOLDER.glob("*.json"))}


def _check(group: str, values: Any) -> None:
    """Raise SettingsError unless a group can be scaled by these."""
    if group not in GROUPS:
        raise SettingsError(f"There is no segment '{group}' to scale: use {_listed(GROUPS)}.")
    if not isinstance(values, tuple | list) or len(values) != len(KINDS):
        raise SettingsError(f"The {group} needs three factors: {_listed(KINDS)}.")
    for (kind, (low, high)), value in zip(KINDS.items(), values, strict=True):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not low <= value <= high:
            raise SettingsError(
                f"The {kind} of the {group} cannot be scaled by {value!r}: give a factor from "
                f"{low:g} to {high:g}."
            )


def _fail(source: object, problem: str) -> NoReturn:
    raise SettingsError(f"{_capital(str(source))} {problem}.")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


class Reshaping:
    """A body and its motion with other proportions.

    character, motion: of the new body. lengths (S,): factor of each segment's length. directions
    (S, 3): along which that is, in the axes that the motion gives the segment. factors (S, 3):
    along those axes. sizes (S,): of the segment as a whole, for what hangs on it.
    """

    def __init__(self, character: Character, motion: Motion, morphology: Morphology) -> None:
        """character: built from the motion. Raises SettingsError if the new body is out of all
        proportion."""
        self._original = character
        self._origin = motion.positions[0, LANDMARK_INDEX["pelvis"]]
        groups = {segment: group for group, names in GROUPS.items() for segment in names}
        length, girth, self._masses = np.array([morphology.factors[groups[s]] for s in SEGMENTS]).T
        axes = [0 if i in FEET + TOES else 2 for i in range(len(SEGMENTS))]
        self.directions = character.calibration[np.arange(len(SEGMENTS)), :, axes]
        self.lengths, self._girths = length, girth
        self.sizes = np.cbrt(length * girth**2)
        self.factors = self.factors_along(slice(None), self.directions)
        calibration = character.calibration
        #: (S, 3, 3) the same in the segments' own frames.
        self._stretch = np.swapaxes(calibration, 1, 2) @ (self.factors[..., None] * calibration)
        self.character = self._reshaped(character)
        self._leg = self.character.leg / character.leg
        self.motion = self.applied(motion)

    def factors_along(self, segment: int | slice | np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Factors (..., 3) of a segment (index) along axes in which it has a direction (..., 3).

        The axes are a bone's, which can be scaled along its own only: one that lies oblique in its
        segment gets something between length and girth.
        """
        share = np.square(direction)
        length, girth = self.lengths[segment, None], self._girths[segment, None]
        return length**share * girth ** (1 - share)

    def point(self, segment: str, point: np.ndarray) -> np.ndarray:
        """(3,) where the new body has a point (3,) of a segment (name), in the segment's frame
        [m]."""
        return self._stretch[SEGMENT_INDEX[segment]] @ point

    def applied(self, motion: Motion) -> Motion:
        """The Motion with the new proportions: of the clip, or of more or less of the same."""
        positions = np.full_like(motion.positions, np.nan)
        index = LANDMARK_INDEX["pelvis"]
        positions[:, index] = motion.positions[:, index]
        turns = matrix_from_quaternion(motion.rotations)
        for landmark, point in POINTS.items():
            if not point.before:
                continue
            end, start = LANDMARK_INDEX[landmark], LANDMARK_INDEX[point.before]
            row = SEGMENT_INDEX[point.segment]
            arm = motion.positions[:, end] - motion.positions[:, start]
            if point.part == "both":
                local = np.einsum("fji,fj->fi", turns[:, row], arm) * self.factors[row]
                arm = np.einsum("fij,fj->fi", turns[:, row], local)
            else:
                arm = arm * (self.lengths if point.part == "length" else self.sizes)[row]
            positions[:, end] = positions[:, start] + arm
        moved = replace(motion, positions=positions)
        return replace(moved, positions=positions + self._root_shift(motion, moved)[:, None])

    def _root_shift(self, motion: Motion, moved: Motion) -> np.ndarray:
        """(F, 3) how far the root must move [m] so that it travels as far as the new legs take it
        and the soles are as high above the floor as they were, by the size of the legs."""
        ground = self.character.ground
        heights = soles(self._original, motion)[..., 2].min(2) - ground
        new = soles(self.character, moved)[..., 2].min(2) - ground
        weight = np.exp((heights.min(1, keepdims=True) - heights) / _EQUALLY_LOW)
        rise = (weight * (self._leg * heights - new)).sum(1) / weight.sum(1)
        travel = motion.positions[:, LANDMARK_INDEX["pelvis"]] - self._origin
        shift = (self._leg - 1) * travel
        shift[:, 2] = rise
        return shift

    def _reshaped(self, character: Character) -> Character:
        scale = np.diagonal(self._stretch, axis1=1, axis2=2)
        masses = character.masses * self._masses
        height = character.height * self._taller()
        if not (1 <= masses.sum() <= 1000 and 0.3 < height < 6):
            raise SettingsError(
                f"The morphology makes a body of {height:.2f} m and {masses.sum():.1f} kg: scale "
                "its segments less."
            )
        left, right = (
            Foot(
                foot.heel * x,
                foot.toe * x,
                foot.half_width * y,
                foot.depth * z,
                foot.ball * x,
                foot.thickness * z,
            )
            for foot, (x, y, z) in zip(character.feet, scale[FEET], strict=True)
        )
        return replace(
            character,
            mass=float(masses.sum()),
            height=float(height),
            masses=masses,
            centres=character.centres * scale,
            inertias=_inertias(character.inertias, self._masses, scale),
            joints=self._joints(character.joints),
            feet=(left, right),
            shapes=tuple(_shape(s, scale[SEGMENT_INDEX[s.segment]]) for s in character.shapes),
            actor=character,
        )

    def _joints(self, joints: tuple[Joint, ...]) -> tuple[Joint, ...]:
        """The joints at their new places, in the parents' frames."""
        neck = next(joint.offset for joint in joints if joint.name == "neck")
        result = []
        for joint in joints:
            length, stretch = self.lengths[joint.parent], self._stretch[joint.parent]
            point = POINTS[JOINT_OF[SEGMENTS[joint.segment]]]
            if point.part == "length":
                offset = length * joint.offset
            elif point.before == "neck":
                offset = length * neck + stretch @ (joint.offset - neck)
            else:
                offset = stretch @ joint.offset
            result.append(replace(joint, offset=offset))
        return tuple(result)

    def _taller(self) -> float:
        """Factor of the stature: that of the upright body's height from sole to crown."""
        character = self._original
        offsets = {joint.name: joint.offset for joint in character.joints}
        parts = {
            "foot_l": character.feet[0].depth,
            "shin_l": -offsets["ankle_l"][2],
            "thigh_l": -offsets["knee_l"][2],
            "pelvis": offsets["spine"][2] - offsets["hip_l"][2],
            "trunk": offsets["neck"][2],
            "head": ENTRIES["head"].length * character.height,
        }
        own = np.array(list(parts.values()))
        factors = [self._stretch[SEGMENT_INDEX[segment]][2, 2] for segment in parts]
        return (own * factors).sum() / own.sum()


def _inertias(inertias: np.ndarray, masses: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """(S, 3) moments of inertia of bodies stretched by (S, 3) along their axes, (S,) times as
    heavy. The integrals of m x², m y² and m z² scale; the moments are their sums."""
    squares = inertias.sum(1, keepdims=True) / 2 - inertias
    squares = squares * masses[:, None] * scale**2
    return squares.sum(1, keepdims=True) - squares


def _shape(shape: Shape, scale: np.ndarray) -> Shape:
    """A shape stretched along its segment's axes, as far as its kind allows."""
    position = tuple(np.array(shape.position) * scale)
    girth, length = float(np.sqrt(scale[0] * scale[1])), float(scale[2])
    if shape.kind == "box":
        size = tuple((np.array(shape.size) * scale).tolist())
    elif shape.kind == "capsule":
        radius, cylinder = shape.size
        whole = (cylinder + 2 * radius) * length
        size = (radius * girth, max(whole - 2 * radius * girth, 0.01))
    else:
        size = (shape.size[0] * float(np.cbrt(np.prod(scale))),)
    return Shape(shape.segment, shape.kind, size, position, shape.rotation)
