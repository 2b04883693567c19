# SPDX-License-Identifier: GPL-3.0-or-later
"""What Poise imports besides NumPy, and clear words when it is not there.

The extension's zips bring it for the Pythons of Blender's official builds. Other Pythons, a
checkout, or another version in front of ours are met here, before anything is registered.
"""

import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

#: The oldest version of each module that will do, and the packages that it may come from.
NEEDED = {
    "pybullet": ("3.2.7", ("pybullet-arm64", "pybullet")),
    "cma": ("4", ("cma",)),
}


class RequirementError(ImportError):
    """Something that Poise imports is missing or too old."""


def check() -> None:
    """Raise RequirementError, in one sentence, unless all that is needed is there.

    It imports nothing: PyBullet and cma are for those who simulate and search.
    """
    for module, (oldest, packages) in NEEDED.items():
        place = _place(module)
        if place is None:
            raise RequirementError(
                f"Poise cannot find {packages[0]} for Python {_python()}: install the zip of Poise "
                "that is made for this system, in an official build of Blender 4.2 or later, or "
                f"install {packages[0]} {oldest} or newer into this Python."
            )
        version = _version(place, packages)
        if version is not None and _numbers(version) < _numbers(oldest):
            raise RequirementError(
                f"Poise needs {packages[0]} {oldest} or newer, but finds {version} first, in "
                f"{place}: remove or update it there, then start Blender again."
            )


def _place(module: str) -> Path | None:
    """The folder that a module would be imported from; None if there is none."""
    specification = find_spec(module)
    if specification is None or specification.origin is None:  # a mere folder of that name
        return None
    origin = Path(specification.origin).parent
    return origin.parent if specification.submodule_search_locations else origin


def _version(place: Path, packages: Sequence[str]) -> str | None:
    """The version of the first of these packages that is installed in a folder, if it is known."""
    # By the names of folders: `importlib.metadata` takes a tenth of the time to register.
    for package in packages:
        name = package.replace("-", "_")
        for folder in place.glob(f"{name}-*.*-info"):  # dist-info, or egg-info
            return folder.stem.removeprefix(f"{name}-")
    return None


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"
