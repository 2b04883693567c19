# SPDX-License-Identifier: GPL-3.0-or-later
"""A shot changes by its own methods alone: nobody sets, extends or deletes what it holds."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "addon").rglob("*.py"))]
#: Where shots are made; its classes change themselves, and copies of themselves.
HOME = "addon/shots/shot.py"


def held():
    """Names of the attributes of shots, as their classes set them."""
    tree = ast.parse((ROOT / HOME).read_text(encoding="utf-8"))
    classes = [node for node in tree.body if getattr(node, "name", "").endswith("Shot")]
    parts = [part for one in classes for part in ast.walk(one) if isinstance(part, ast.Attribute)]
    return {part.attr for part in parts if isinstance(part.ctx, ast.Store)}


HELD = held()
_SETTERS = ("setattr", "setattr__", "delattr", "delattr__")


def changes(source):
    """What source code changes in shots that are not `self`: its expressions."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute | ast.Subscript):
            if isinstance(node.ctx, ast.Store | ast.Del) and _in_shot(node):
                found.append(ast.unparse(node))
        elif isinstance(node, ast.Call) and node.args and _is_shot(node.args[0]):
            found += [ast.unparse(node)] * ast.unparse(node.func).endswith(_SETTERS)
    return found


def _in_shot(node):
    """Whether a target is inside of a shot, under whatever name, or is what only a shot holds."""
    if isinstance(node, ast.Attribute) and node.attr in HELD and ast.unparse(node.value) != "self":
        return True
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
        if _is_shot(node):
            return True
    return False


def _is_shot(node):
    name = getattr(node, "attr", getattr(node, "id", ""))
    return name.endswith("shot")


@pytest.mark.parametrize("file", [file for file in FILES if file != HOME])
def test_a_shot_is_not_changed_from_outside(file):
    assert not changes((ROOT / file).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "source",
    [
        "shot.options = 1",
        "self.shot.note = 1",
        "job._shot.x += 1",
        "shot.a, other = 1, 2",
        "self.search = shot.rectified = search",
        "shot.measures['jitter'] = 1",
        "shot.reading.motion.rate = 1",
        "shot.objects |= {}",
        "del shot.baked",
        "setattr(self.shot, name, 1)",
        "balanced.choice = 1",
        "self._next.simulation = 1",
        "for shot.plan in plans: pass",
    ],
)
def test_a_change_is_seen(source):
    assert len(changes(source)) == 1


@pytest.mark.parametrize(
    "source", ["self.shot = shot", "shot = 1", "shots[0] = 1", "self.plan = 1", "shot.settle(a)"]
)
def test_what_changes_no_shot_is_left_alone(source):
    assert not changes(source)


def test_attributes_of_shots_are_known():
    assert {"options", "reading", "gains", "simulation", "choice", "rectified", "keys"} <= HELD
    assert HOME in FILES and len(FILES) > 100
