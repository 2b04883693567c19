# SPDX-License-Identifier: GPL-3.0-or-later
"""Which bones of an armature carry which part of the biped.

Known rigs are data in presets/rigs, found by the names of their bones. Any other biped is
detected from its hierarchy and its animated geometry, see rig_detection.
"""

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ...controller import documents
from ...controller.exceptions import RigError
from ...controller.geometry.skeleton import ENTRIES, PARTS, SIDES
from ..blender import folders
from . import rig_detection

if TYPE_CHECKING:
    import bpy
    import numpy as np

FOLDER = folders.ROOT / "presets" / "rigs"

_LEG = ("thigh", "shin", "foot", "toe")
#: Segments that are there once, and those of both sides, with what is no segment of its own: a
#: clavicle is part of the trunk, a hand of the forearm.
_ONCE = tuple(name for name in PARTS if name in ENTRIES)
_PAIRED = tuple(
    slot
    for name in PARTS
    if name not in ENTRIES
    for slot in {"upper_arm": ("clavicle", name), "forearm": (name, "hand")}.get(name, (name,))
)
#: The parts of the biped that a rig map can name bones for.
SLOTS = (*_ONCE, *(f"{part}_{side}" for side in SIDES for part in _PAIRED))
#: The parts that must have a bone.
REQUIRED_SLOTS = tuple(slot for slot in SLOTS if slot in ENTRIES and not ENTRIES[slot].minor)
_SPINE = ("pelvis", "trunk", "head")
#: What hangs from what within a limb: (child, parent) slots, without the side.
_HANGS_FROM = (
    *((name, part.parent) for name, part in PARTS.items() if part.parent in _PAIRED),
    ("hand", "forearm"),
)
_NUMBER = re.compile(r"\d+")
#: What toes are called, and no mark of where they end.
_TOE = re.compile(r"toe(?!.*(end|nub|tip))")
#: An armature with this share of a preset's required slots belongs to that family of rigs.
_FAMILY_SHARE = 0.7


@dataclass(frozen=True)
class RigMap:
    """The bones of one armature that carry the parts of the biped.

    bones: slot -> bone names, proximal first. The last pelvis bone carries legs and spine, the
        last trunk bone neck and arms. Limb slots start with the bone whose head is the joint. Toes
        may lie side by side: the first is the hinge, and the others turn with it.
    controls: slot -> bones to key instead of those, on rigs whose bones are driven by others.
    properties: bone -> custom property -> value that must hold while controls are keyed.
    ik_controls, ik_properties: the same of legs that inverse kinematics can move instead: the
        thigh's turns the knee, the foot's is put in place, a shin has none.
    detected: found by geometry instead of by name.
    missing: the optional slots that no bone was found for.
    """

    name: str
    bones: dict
    controls: dict = field(default_factory=dict)
    properties: dict = field(default_factory=dict)
    ik_controls: dict = field(default_factory=dict)
    ik_properties: dict = field(default_factory=dict)
    detected: bool = False
    missing: tuple = ()

    def on_ik(self) -> "RigMap":
        """This map with the controls of inverse kinematics for legs, where it has any."""
        legs = {
            f"{part}_{side}"
            for side in SIDES
            for part in _LEG
            if f"thigh_{side}" in self.ik_controls and f"foot_{side}" in self.ik_controls
        }
        controls = {slot: chain for slot, chain in self.controls.items() if slot not in legs}
        controls |= {slot: chain for slot, chain in self.ik_controls.items() if slot in legs}
        properties = {
            bone: self.properties.get(bone, {}) | self.ik_properties.get(bone, {})
            for bone in (*self.properties, *self.ik_properties)
        }
        return replace(self, controls=controls, properties=properties)

    def is_bent(self, slot: str) -> bool:
        """Whether a slot is a shin that inverse kinematics bends, by the control of its thigh."""
        part, _, side = slot.rpartition("_")
        knee = self.ik_controls.get(f"thigh_{side}")
        return part == "shin" and knee is not None and self.controls.get(f"thigh_{side}") == knee

    def can_be_keyed(self, slot: str) -> bool:
        """Whether a bake can move a slot: where others drive the bones, by its control. Toes need
        none."""
        return (
            not self.controls or slot in self.controls or ENTRIES[slot].minor or self.is_bent(slot)
        )


def beside(armature: "bpy.types.Object", rig_map: RigMap, slot: str) -> tuple[str, ...]:
    """The bones of a slot that do not hang on its first one, as toes side by side; of rigs with
    controls, whose bones may hang anywhere, none."""
    chain = rig_map.bones.get(slot, ())
    if len(chain) < 2 or rig_map.controls:
        return ()
    below = {bone.name for bone in armature.data.bones[chain[0]].children_recursive}
    return tuple(bone for bone in chain[1:] if bone not in below)


@dataclass(frozen=True)
class Template:
    """A rig map of a family of rigs, as a preset file has it.

    sides: pairs of what {side} stands for, left and right; the first pair that fits is taken.
    bones, controls: slot -> links of the chain, proximal first; each link is a tuple of names to
        choose from. Links that an armature does not have are skipped.
    properties, ik_controls, ik_properties: as in RigMap, with {side}.
    strict: every bone must exist under its very name (maps that were saved from one armature).
    """

    name: str
    about: str = ""
    sides: tuple = ()
    bones: dict = field(default_factory=dict)
    controls: dict = field(default_factory=dict)
    properties: dict = field(default_factory=dict)
    ik_controls: dict = field(default_factory=dict)
    ik_properties: dict = field(default_factory=dict)
    strict: bool = False


def label(slot: str) -> str:
    """A slot in words: "shin_l" is "left shin"."""
    part, _, side = slot.rpartition("_")
    words = {"l": "left ", "r": "right "}.get(side)
    return (words + part if words else slot).replace("_", " ")


def find(
    armature: "bpy.types.Object", frames: "np.ndarray | None" = None, name: str | None = None
) -> RigMap:
    """The rig map of an armature.

    name: of a preset, or the path of a .json map, to use that and no other.
    frames: (F, B, 4, 4) evaluated world matrices of all bones at some frames of the animation,
        for the detection; None to sample the assigned animation if need be.

    Without a name the preset that fits best is taken, and if none fits, the map is detected.
    Raises RigError with the slots that have no bone, or with the reason why this is no biped.
    """
    if not armature.data.bones:
        raise RigError(f"'{armature.name}' has no bones: select the armature of a biped.")
    if name is not None:
        return match(armature, named(name))
    names = _Names(armature)
    fits = [fit for template in load_maps() for fit in _fits(names, template)]
    fits.sort(key=lambda fit: fit.rank, reverse=True)
    for fit in fits:
        if not fit.missing_required and not _misplaced(names, fit):
            found = _rig_map(names, fit)
            if not rig_detection.stands(armature, found.bones, frames):
                raise RigError(
                    f"'{armature.name}' has the bones of the rig map '{found.name}', but never "
                    "stands upright on two legs, like a quadruped: choose that map by its name if "
                    "it is a biped."
                )
            return found
    return _detect_with_hints(armature, frames, names, fits[0] if fits else None)


def _detect_with_hints(
    armature: "bpy.types.Object", frames: "np.ndarray | None", names: "_Names", fit: "_Fit | None"
) -> RigMap:
    """Detection, whose limbs must agree with the names of a family of which a limb is missing:
    bones are called alike in many, and a spine ends elsewhere in each."""
    if fit is None or len(fit.required) < _FAMILY_SHARE * len(REQUIRED_SLOTS):
        return detect(armature, frames)
    try:
        found = detect(armature, frames)
    except RigError:
        return _rig_map(names, fit)
    if set(fit.missing_required) <= set(_SPINE):
        return found
    limbs = [slot for slot in fit.required if slot not in _SPINE]
    if any(found.bones[slot][0] not in fit.bones[slot] for slot in limbs):
        return _rig_map(names, fit)
    return found


def match(armature: "bpy.types.Object", template: "Template") -> RigMap:
    """The rig map of an armature by the names of a template.

    Raises RigError if a required slot has no bone, or a bone hangs from the wrong one.
    """
    names = _Names(armature)
    if template.strict:
        _check_strict(armature, names, template)
    fits = sorted(_fits(names, template), key=lambda fit: fit.rank, reverse=True)
    if not fits:
        raise RigError(
            f"'{armature.name}' has none of the bones of the rig map '{template.name}': "
            "pick another map."
        )
    return _rig_map(names, fits[0])


def detect(armature: "bpy.types.Object", frames: "np.ndarray | None" = None) -> RigMap:
    """The rig map of an unknown biped, from its hierarchy and its animated geometry.

    frames: as in `find`. Raises RigError with the reason if this does not look like a biped.
    """
    bones = rig_detection.detect(armature, frames)
    return RigMap(
        name="detected",
        bones={slot: bones[slot] for slot in SLOTS if slot in bones},
        detected=True,
        missing=tuple(slot for slot in SLOTS if slot not in bones),
    )


def load_maps() -> list[Template]:
    """The templates of presets/rigs, sorted by name."""
    return sorted((load(path) for path in FOLDER.glob("*.json")), key=lambda one: one.name.lower())


def load(path: str | Path) -> Template:
    """The template in a .json file. Raises RigError if it is not one."""
    document = documents.read(path, f"The rig map '{path}'", _fail)
    try:
        return _parse(document, Path(path).stem)
    except _MalformedError as error:
        raise RigError(f"The rig map '{path}' {error}.") from None


def _fail(source: object, problem: str) -> NoReturn:
    raise RigError(f"{source} {problem}.")


def save(rig_map: RigMap, path: str | Path) -> None:
    """Write a rig map to a .json file that `find(armature, name=path)` reads."""
    document = {
        "name": Path(path).stem if rig_map.detected else rig_map.name,
        "about": "Saved from one armature: all bones must have these names.",
        "strict": True,
        "bones": {slot: list(chain) for slot, chain in rig_map.bones.items()},
    }
    if rig_map.controls:
        document["controls"] = {slot: list(chain) for slot, chain in rig_map.controls.items()}
    if rig_map.properties:
        document["properties"] = rig_map.properties
    if rig_map.ik_controls:
        controls = {slot: list(chain) for slot, chain in rig_map.ik_controls.items()}
        document["ik"] = {"controls": controls, "properties": rig_map.ik_properties}
    try:
        Path(path).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise RigError(f"The rig map cannot be saved to '{path}': {error.strerror}.") from None


# Reading a map ----------------------------------------------------------------------------------


class _MalformedError(Exception):
    """What is wrong with a document, to follow the name of its file."""


def _parse(document: dict[str, Any], stem: str) -> Template:
    """A template from a JSON document."""
    if not isinstance(document, dict) or not isinstance(document.get("bones"), dict):
        raise _MalformedError('has no object "bones" with a list of bones for each slot')
    sides = document.get("sides", [["", ""]])
    if not (_is_list(sides, _is_pair) and sides):
        raise _MalformedError('has "sides" that are not pairs of texts, left and right')
    ik = document.get("ik", {})
    if not isinstance(ik, dict):
        raise _MalformedError('has an "ik" that is not an object with controls and properties')
    return Template(
        name=str(document.get("name", stem)),
        about=str(document.get("about", "")),
        sides=tuple(map(tuple, sides)),
        bones=_slots(document["bones"]),
        controls=_slots(document.get("controls", {})),
        properties=_values(document),
        ik_controls=_slots(ik.get("controls", {})),
        ik_properties=_values(ik),
        strict=bool(document.get("strict", False)),
    )


def _values(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Bone -> property -> value of a document's properties."""
    properties = document.get("properties", {})
    if not (isinstance(properties, dict) and all(map(_is_values, properties.values()))):
        raise _MalformedError('has "properties" that are not numbers by bone and property')
    return properties


def _slots(chains: Any) -> dict[str, Any]:
    """Slot -> links, each a tuple of names, with slot_{side} written out for both sides."""
    if not isinstance(chains, dict):
        raise _MalformedError("has slots that are not an object")
    slots = {}
    for key, chain in chains.items():
        if not (_is_list(chain, _is_link) and chain):
            raise _MalformedError(f"has no list of bones for '{key}'")
        if any(link in chain[:i] for i, link in enumerate(chain)):
            raise _MalformedError(f"names a bone of '{key}' twice")
        keys = [key.replace("{side}", side) for side in SIDES] if "{side}" in key else [key]
        for slot in keys:
            if slot not in SLOTS:
                raise _MalformedError(f"has an unknown slot '{key}': slots are {', '.join(SLOTS)}")
            slots[slot] = tuple((link,) if isinstance(link, str) else tuple(link) for link in chain)
    return slots


def _is_list(value: Any, check: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(check, value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_pair(value: Any) -> bool:
    return _is_list(value, _is_text) and len(value) == 2


def _is_link(value: Any) -> bool:
    return (isinstance(value, str) and value != "") or (_is_list(value, _is_text) and value != [])


def _is_values(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _is_number(value: Any) -> bool:
    """Whether a property can have it, so that it is no NaN either."""
    return isinstance(value, (int, float)) and abs(value) < 2**31


def named(name: str) -> Template:
    """The template that a preset's name, or the path of a file, means."""
    path = Path(name)
    if path.suffix.lower() == ".json":
        return load(path)
    for candidate in FOLDER.glob("*.json"):
        template = load(candidate)
        if str(name).lower() in (template.name.lower(), candidate.stem.lower()):
            return template
    known = ", ".join(f"'{template.name}'" for template in load_maps())
    raise RigError(
        f"There is no rig map named '{name}': choose one of {known}, or give the path of a "
        ".json file."
    )


# Matching names ---------------------------------------------------------------------------------


@functools.lru_cache(4096)
def _plain(name: str) -> str:
    """A bone's name without namespace, case and separators: "char:L_Leg.001" is "lleg001"."""
    return re.sub(r"[\s_.\-]+", "", re.split(r"[:|]", name)[-1]).casefold()


class _Names:
    """The bones of an armature by exact and by plain name, their parents, and {bone: the one that
    IK pulls its end to}."""

    def __init__(self, armature: "bpy.types.Object") -> None:
        self.armature = armature.name
        bones = armature.data.bones
        self.parents = {bone.name: bone.parent.name if bone.parent else None for bone in bones}
        self.pulled = _pulled(armature)
        self.plain: dict[str, str] = {}
        for bone in self.parents:
            self.plain.setdefault(_plain(bone), bone)

    def get(self, name: str, prefix: str) -> str | None:
        """The bone that is called so, or so after the prefix; None if there is none."""
        if name in self.parents:
            return name
        return self.plain.get(prefix + _plain(name))

    def ancestors(self, bone: str) -> list[str]:
        """A bone, its parent, and so on up to its root."""
        chain, above = [bone], self.parents[bone]
        while above is not None:
            chain.append(above)
            above = self.parents[above]
        return chain

    def common_ancestor(self, bones: Sequence[str]) -> str | None:
        """The closest bone from which all the bones hang (or that is one of them), or None."""
        others = [set(self.ancestors(bone)) for bone in bones[1:]]
        return next((b for b in self.ancestors(bones[0]) if all(b in o for o in others)), None)


def _pulled(armature: "bpy.types.Object") -> dict[str, str]:
    """{bone: the bone of the same armature that an IK constraint pulls its end to}."""
    return {
        bone.name: one.subtarget
        for bone in armature.pose.bones
        for one in bone.constraints
        if one.type == "IK" and one.target == armature
    }


@dataclass(frozen=True)
class _Fit:
    """What one reading of a template (prefix and pair of sides) finds in an armature."""

    template: "Template"
    bones: dict
    controls: dict
    properties: dict
    ik_controls: dict
    ik_properties: dict
    prefix: str

    @property
    def required(self) -> list[str]:
        return [slot for slot in REQUIRED_SLOTS if slot in self.bones]

    @property
    def missing_required(self) -> list[str]:
        return [slot for slot in REQUIRED_SLOTS if slot not in self.bones]

    @property
    def rank(self) -> tuple[int, int, int, int, bool]:
        """More is better: slots, then bones, then the fewer letters before the names."""
        links = sum(map(len, self.bones.values()))
        return len(self.required), len(self.bones), links, -len(self.prefix), bool(self.controls)


def _fits(names: "_Names", template: "Template") -> Iterator[_Fit]:
    """The readings of a template that find anything."""
    for prefix in _prefixes(names, template):
        for pair in template.sides:
            bones = _chains(names, template.bones, pair, prefix)
            if bones:
                controls = _chains(names, template.controls, pair, prefix)
                properties = _properties(names, template.properties, pair, prefix)
                ik = _chains(names, template.ik_controls, pair, prefix)
                if len(ik) < len(template.ik_controls):
                    ik = {}  # an older or another version of the rig
                switched = template.ik_properties if ik else {}
                switched = _properties(names, switched, pair, prefix)
                yield _Fit(template, bones, controls, properties, ik, switched, prefix)


def _prefixes(names: "_Names", template: "Template") -> list[str]:
    """What may stand before all names, as "bip01" in "Bip01 L Thigh": concluded from the pelvis."""
    found = {""}
    for link in template.bones.get("pelvis", ()):
        for name in map(_plain, link):
            found |= {plain[: -len(name)] for plain in names.plain if plain.endswith(name)}
    return sorted(found)


def _chains(
    names: "_Names",
    slots: Mapping[str, Sequence[Sequence[str]]],
    pair: tuple[str, str],
    prefix: str,
) -> dict[str, tuple[str, ...]]:
    """Slot -> the bones that exist of its links."""
    chains = {}
    for slot, links in slots.items():
        side = pair[1 if slot.endswith("_r") else 0]
        chain = []
        for link in links:
            options = (names.get(name.replace("{side}", side), prefix) for name in link)
            bone = next((bone for bone in options if bone is not None), None)
            if bone is not None and bone not in chain:
                chain.append(bone)
        if chain:
            chains[slot] = tuple(chain)
    return chains


def _properties(
    names: "_Names",
    properties: Mapping[str, Mapping[str, Any]],
    pair: tuple[str, str],
    prefix: str,
) -> dict[str, dict[str, Any]]:
    """Bone -> property -> value, of the bones that exist."""
    values = {}
    for key, settings in properties.items():
        for name in {key.replace("{side}", side) for side in pair}:
            bone = names.get(name, prefix)
            if bone is not None:
                values[bone] = dict(settings)
    return dict(sorted(values.items()))


def _check_strict(armature: "bpy.types.Object", names: "_Names", template: "Template") -> None:
    """Raise RigError if a bone of a saved map does not exist."""
    chains = template.bones, template.controls, template.ik_controls
    for slot, links in (pair for chain in chains for pair in chain.items()):
        for bone, *_ in links:
            if names.get(bone, "") is None:
                raise RigError(
                    f"'{armature.name}' has no bone '{bone}', which the rig map "
                    f"'{template.name}' names for the {label(slot)}: correct the map or pick "
                    "another one."
                )


def _rig_map(names: "_Names", fit: "_Fit") -> RigMap:
    """The rig map of a fit. Raises RigError if it lacks a required slot or hangs together wrong."""
    missing = fit.missing_required
    if missing:
        slots = [label(slot) for slot in missing]
        listed = " and ".join(filter(None, (", ".join(slots[:-1]), slots[-1])))
        raise RigError(
            f"'{names.armature}' has no bone for the {listed} by the rig map "
            f"'{fit.template.name}': choose the bone in the map, or pick another map."
        )
    wrong = _misplaced(names, fit)
    if wrong:
        raise RigError(f"In '{names.armature}' {wrong}: correct the map or pick another one.")
    bones = dict(fit.bones)
    if not fit.controls:
        _settle_spine(names, bones)
    if not fit.controls and not fit.template.strict:
        _add_toes(names, fit.template, bones)
    owners: dict[str, str] = {}
    for slot in bones:
        for bone in bones[slot]:
            if owners.setdefault(bone, slot) != slot:
                raise RigError(
                    f"The rig map '{fit.template.name}' uses the bone '{bone}' of "
                    f"'{names.armature}' twice, for the {label(owners[bone])} and the "
                    f"{label(slot)}: correct the map or pick another one."
                )
    return RigMap(
        name=fit.template.name,
        bones={slot: bones[slot] for slot in SLOTS if slot in bones},
        controls={slot: fit.controls[slot] for slot in SLOTS if slot in fit.controls},
        properties=fit.properties,
        ik_controls=fit.ik_controls,
        ik_properties=fit.ik_properties,
        missing=tuple(slot for slot in SLOTS if slot not in bones),
    )


def _misplaced(names: "_Names", fit: "_Fit") -> str | None:
    """What hangs from the wrong bone, in words; None if all is well.

    Control rigs may drive loose deform bones, so nothing is asked of them.
    """
    if fit.controls:
        return None
    for slot, chain in fit.bones.items():
        for first, second in itertools.pairwise(chain):
            if second in names.ancestors(first):
                return f"the bones of the {label(slot)} go up: '{first}' hangs from '{second}'"
    trunk, head = fit.bones["trunk"][-1], fit.bones["head"][0]
    if head in names.ancestors(trunk)[1:]:
        return f"the {label('trunk')} '{trunk}' hangs from the {label('head')} '{head}'"
    for side in SIDES:
        for child, parent in _HANGS_FROM:
            child, parent = f"{child}_{side}", f"{parent}_{side}"
            if child not in fit.bones:
                continue
            low, high = fit.bones[child][0], fit.bones[parent][0]
            line = names.ancestors(low)
            # A foot may be what IK pulls its shin to, or hang on that.
            if high not in line[1:] and names.pulled.get(high) not in line:
                return f"the {label(child)} '{low}' does not hang from the {label(parent)} '{high}'"
    return None


def _add_toes(names: "_Names", template: "Template", bones: dict[str, tuple[str, ...]]) -> None:
    """Of a foot with toes side by side take them all: those that are called like the one that the
    map names, but for their numbers; or whatever is called a toe, if there is none by that name."""
    for side in SIDES:
        slot, foot = f"toe_{side}", bones[f"foot_{side}"][0]
        if slot not in template.bones:
            continue
        chain = bones.get(slot, ())
        hang = [b for b, above in names.parents.items() if above == foot and b not in chain]
        if chain:
            like = _NUMBER.sub("", _plain(chain[0]))
            toes = [bone for bone in hang if _NUMBER.sub("", _plain(bone)) == like]
        else:
            toes = [bone for bone in hang if _TOE.search(_plain(bone))]
        if chain or toes:
            bones[slot] = (*chain, *toes)


def _settle_spine(names: "_Names", bones: dict[str, tuple[str, ...]]) -> None:
    """End the pelvis where the legs leave and the trunk where the arms leave.

    Families differ: in some rigs the legs hang from the first spine bone, in others the
    clavicles from the neck.
    """
    spine = [*bones["pelvis"], *bones["trunk"], *bones["head"]]
    hub = names.common_ancestor([bones["thigh_l"][0], bones["thigh_r"][0], spine[-1]])
    if hub in spine[:-2]:
        cut = spine.index(hub) + 1
        pelvis = tuple(bone for bone in spine[:cut])
        trunk = tuple(bone for bone in bones["trunk"] if bone not in pelvis)
        if trunk:
            bones["pelvis"], bones["trunk"] = pelvis, trunk
    arms = [bones.get(f"clavicle_{s}", bones[f"upper_arm_{s}"])[0] for s in SIDES]
    hub = names.common_ancestor([*arms, spine[-1]])
    rest = [bone for bone in spine if bone not in bones["pelvis"]]
    if hub in rest[:-1]:
        cut = rest.index(hub) + 1
        head = tuple(bone for bone in bones["head"] if bone in rest[cut:])
        bones["trunk"], bones["head"] = tuple(rest[:cut]), head
