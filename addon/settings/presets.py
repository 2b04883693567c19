# SPDX-License-Identifier: GPL-3.0-or-later
"""Presets of gains: those that come with Poise, and the user's own.

Each is a gains file. Blender's own presets are Python files that it executes; gains are exchanged
between people, so they are data, read and checked by `controller.Gains`.
"""

import re
import time
import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from ...controller import Character, Gains, GainsError, Motion
from ...controller.search import clip_features
from ..blender import folders

SHIPPED = folders.ROOT / "presets" / "gains"

#: The folder is looked at again after this long [s]: a panel asks for its presets all the time.
_LOOK_AGAIN = 1.0
_MAX_LETTERS = 60
#: File names that Windows keeps for itself.
_RESERVED = {"con", "prn", "aux", "nul", *(f"{n}{i}" for n in ("com", "lpt") for i in range(10))}


@dataclass(frozen=True)
class Preset:
    """One gains file of the list.

    name: as it is shown, of no other preset. shipped: comes with Poise, cannot be removed. gains:
    for the body they were made on; None if the file is broken. error: why, in a sentence.
    """

    name: str
    path: Path
    shipped: bool
    gains: Gains | None
    error: str = ""


_list: list[Preset] = []
_listed_at: float | None = None


def load_presets() -> list[Preset]:
    """All presets: the shipped ones, then the user's, each sorted by name."""
    global _list, _listed_at
    now = time.monotonic()
    if _listed_at is None or now - _listed_at > _LOOK_AGAIN:
        _list, _listed_at = _look(), now
    return _list


def refresh() -> None:
    """Look at the folders again at the next occasion."""
    global _listed_at
    _listed_at = None


def find(name: str) -> Preset:
    """The preset of that name. Raises GainsError if there is none, or if it is broken."""
    preset = named(name)
    if preset.error:
        raise GainsError(preset.error)
    return preset


def suggest(character: Character, motion: Motion, balance: str) -> tuple[Preset, str]:
    """The preset for a balance mode that was tuned on motion most like this: (Preset, why, in a
    sentence). Raises GainsError if there is none to compare with."""
    known = [(preset.gains, preset.name) for preset in load_presets()]
    named_gains = [replace(g, name=name) for g, name in known if g and g.balance == balance]
    found, why = clip_features.suggest(clip_features.clip_features(character, motion), named_gains)
    if found is None:
        raise GainsError(why)
    return find(found.name), why


def add(name: str, gains: Gains) -> Preset:
    """Save gains as a preset of the user's. Raises GainsError for a name that is taken or empty,
    and if it cannot be written."""
    name = clean_name(name)
    path = user_folder(create=True) / f"{_file_name(name)}.json"
    taken = {_folded(preset.name) for preset in load_presets()}
    if _folded(name) in taken or path.exists():
        raise GainsError(f"There is a preset '{name}' already: choose another name.")
    replace(gains, name=name).save(path)
    refresh()
    return find(name)


def remove(name: str) -> None:
    """Delete a preset of the user's. Raises GainsError if it is a shipped one, or unknown."""
    preset = named(name)
    if preset.shipped:
        raise GainsError(f"The preset '{name}' comes with Poise and cannot be removed.")
    try:
        preset.path.unlink(missing_ok=True)
    except OSError as error:
        raise GainsError(
            f"The preset file '{preset.path}' cannot be removed ({error.strerror})."
        ) from error
    refresh()


def import_file(path: str | Path) -> Preset:
    """Take a gains file from anywhere into the user's presets, under its own name or the file's.
    Raises GainsError if it is none, or if the name is taken."""
    gains = Gains.load(path)
    return add(gains.name or Path(path).stem, gains)


def user_folder(create: bool = False) -> Path:
    """Where the user's presets are, kept over updates of Poise. Raises GainsError if it cannot be
    made."""
    return folders.user_folder("gains", "CONFIG", "presets", GainsError, create)


def clean_name(name: str) -> str:
    """A name for a preset: one line, not too long. Raises GainsError if nothing is left."""
    letters = [c if c.isprintable() else " " for c in unicodedata.normalize("NFC", name)]
    name = " ".join("".join(letters).split())[:_MAX_LETTERS].strip()
    if not name:
        raise GainsError("A preset needs a name: type one.")
    return name


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _file_name(name: str) -> str:
    """A file name that every system takes, for a name of any letters."""
    stem = re.sub(r'[<>:"/\\|?*]', "_", name).strip(". ")
    return f"{stem}_" if not stem or stem.split(".")[0].casefold() in _RESERVED else stem


def named(name: str) -> Preset:
    """The preset of that name, also a broken one. Raises GainsError if there is none."""
    presets = {preset.name: preset for preset in load_presets()}
    if name not in presets:
        raise GainsError(
            f"There is no preset '{name}' of gains: choose one of {', '.join(presets)}."
        )
    return presets[name]


def _look() -> list[Preset]:
    """What is in both folders, no name twice."""
    found = {}
    for folder, shipped in ((SHIPPED, True), (user_folder(), False)):
        presets = [_read(path, shipped, _stamp(path)) for path in folder.glob("*.json")]
        for preset in sorted(presets, key=lambda one: (_folded(one.name), one.path)):
            name, number = preset.name, 2
            while _folded(name) in found:
                name, number = f"{preset.name} ({number})", number + 1
            found[_folded(name)] = replace(preset, name=name)
    return list(found.values())


def _stamp(path: Path) -> tuple[int, int] | None:
    """Changes when a file does; None if it vanished."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size


@lru_cache(maxsize=256)
def _read(path: Path, shipped: bool, _stamp: tuple[int, int] | None) -> Preset:
    """The preset in a file, read again only when it has changed."""
    try:
        gains = Gains.load(path)
        return Preset(clean_name(gains.name or path.stem), path, shipped, gains)
    except GainsError as error:
        return Preset(path.stem, path, shipped, None, str(error))
