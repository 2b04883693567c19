# SPDX-License-Identifier: GPL-3.0-or-later
"""The rooms of the source, as CONTRIBUTING.md draws them: what is where, and who imports whom."""

import ast
import configparser
import re
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOPS = ("addon", "controller")
#: The tool that collects texts looks into every room, and nothing imports it.
TOOL = "addon/translations"
#: Files in no room: every room stands on the physics' own, and requirements stand alone.
GROUND = (
    "controller/exceptions.py",
    "controller/documents.py",
    "controller/options.py",
    "controller/ranges.py",
    "addon/requirements.py",
)
MOST_FILES = 16


@cache
def wings():
    """((title, {room: its words}), …) from the roof down; rooms as addon/overlays."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (drawing,) = re.findall(r"^```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    found = []
    for block in drawing.strip().split("\n\n"):
        title, *lines = block.splitlines()
        top, words = title.split("/", 1)
        rooms = (re.fullmatch(r"  (\w+)/ +(\S.*)", line).groups() for line in lines)
        found.append((words.strip(), {f"{top}/{room}": said for room, said in rooms}))
    return tuple(found)


def may_import(room):
    """The rooms below a room; those of the other wing are none."""
    order = [(title, name) for title, rooms in wings() for name in rooms]
    titles = dict((name, title) for title, name in order)
    below = [name for _, name in order]
    below = below[below.index(room) + 1 :]
    if titles[room] == "the window":
        below = [name for name in below if titles[name] != "the command line"]
    return set(below)


def room_of(path):
    """The room of a file, as the drawing has it; None for what is in no room."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:2]) if len(parts) > 2 and parts[0] in TOPS else None


def files(folder):
    """All files of the package in a folder."""
    return sorted(p for p in (ROOT / folder).rglob("*.py") if "__pycache__" not in p.parts)


@cache
def imports(path):
    """((file that is imported, whether inside a function), …) of the package's own files."""
    found = []

    def visit(node, inside):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ImportFrom) and child.level:
                folder = path.parents[child.level - 1].joinpath(*(child.module or "").split("."))
                found.extend((target(folder, alias.name), inside) for alias in child.names)
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            visit(child, inside or function)

    visit(ast.parse(path.read_text(encoding="utf-8")), False)
    return tuple(found)


def target(folder, name):
    """The file that `from folder import name` imports."""
    for path in (folder / f"{name}.py", folder / name / "__init__.py", folder.with_suffix(".py")):
        if path.is_file():
            return path
    return folder / "__init__.py"


def short(path):
    """A path as people name it."""
    return path.relative_to(ROOT).as_posix()


ROOMS = [room for _, rooms in wings() for room in rooms]


def test_every_file_is_in_a_room_of_the_drawing():
    drawn = {*ROOMS, TOOL}
    for top in TOPS:
        for path in files(top):
            loose = short(path) in (*GROUND, f"{top}/__init__.py")
            assert loose or room_of(path) in drawn, (
                f"{short(path)} is in no room of CONTRIBUTING.md"
            )
    assert all((ROOT / room / "__init__.py").is_file() for room in drawn)


@pytest.mark.parametrize("room", ROOMS)
def test_room_is_what_the_drawing_says(room):
    tree = ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8"))
    words = {room: said for _, rooms in wings() for room, said in rooms.items()}
    assert ast.get_docstring(tree).splitlines()[0] == words[room]
    assert len(files(room)) <= MOST_FILES


@pytest.mark.parametrize("room", ROOMS)
def test_room_imports_from_rooms_below_alone(room):
    allowed = {room, None, *may_import(room)}
    for path in files(room):
        for other, _ in imports(path):
            assert room_of(other) in allowed, f"{short(path)} imports {short(other)}"
            if room_of(other) is None:
                assert short(other) in (*GROUND, "controller/__init__.py"), short(path)


def test_physics_do_not_know_what_they_export():
    """Whatever imports the public interface is above all of it."""
    for path in files("controller"):
        if path != ROOT / "controller" / "__init__.py":
            assert ROOT / "controller" / "__init__.py" not in dict(imports(path)), short(path)


def test_nothing_goes_round_in_circles():
    done, way = set(), []

    def visit(path):
        assert path not in way, " -> ".join(map(short, [*way[way.index(path) :], path]))
        if path not in done:
            way.append(path)
            for other, _ in imports(path):
                visit(other)
            done.add(way.pop())

    for path in (path for top in TOPS for path in files(top)):
        visit(path)


def test_no_import_hides_in_a_function():
    registration = ROOT / "addon" / "__init__.py"  # importing the add-on imports nothing of Blender
    hidden = [
        f"{short(path)}: {short(other)}"
        for top in TOPS
        for path in files(top)
        for other, inside in imports(path)
        if inside and path != registration
    ]
    assert not hidden


def test_pip_ships_every_room():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folders = {short(path.parent) for top in TOPS for path in files(top) if path.stem == "__init__"}
    expected = {"poise"} | {f"poise.{folder.replace('/', '.')}" for folder in folders}
    assert set(project["tool"]["setuptools"]["packages"]) == expected


def test_the_drawing_is_in_order():
    """From the roof down: window, command line, what both stand on, physics."""
    tops = [room.partition("/")[0] for room in ROOMS]
    assert all(one <= other for one, other in pairwise(tops))
    assert len(wings()) == 4 and len(ROOMS) >= 20


#: Modules that only Blender brings.
BLENDERS = ("bpy", "bpy_extras", "mathutils", "gpu", "gpu_extras", "blf", "addon_utils")


def needs_blender(path):
    """Whether a file imports what only Blender brings when it runs, not for its types alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and node not in skipped:
            names += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node not in skipped and not node.level:
            names.append(node.module)
    return any(name.split(".")[0] in BLENDERS for name in names)


def test_the_types_of_all_that_does_not_need_blender_are_checked():
    config = configparser.ConfigParser()
    config.read(ROOT / "mypy.ini", encoding="utf-8")
    checked = [ROOT / one.strip() for one in config["mypy"]["files"].split(",")]
    assert all(one.exists() for one in checked)
    unchecked = [
        short(path)
        for top in TOPS
        for path in files(top)
        if not needs_blender(path) and "def " in path.read_text(encoding="utf-8")
        if not any(path == one or one in path.parents for one in checked)
    ]
    assert not unchecked, f"add them to mypy.ini: {unchecked}"
