# SPDX-License-Identifier: GPL-3.0-or-later
"""The package as a whole: one version, the right border between its halves, what is shipped."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    path
    for folder in ("addon", "controller", "tests", "demo", "experiments", "packaging")
    for path in (ROOT / folder).rglob("*.py")
    if "__pycache__" not in path.parts
) + sorted(ROOT.glob("*.py"))
MANIFEST = tomllib.loads((ROOT / "blender_manifest.toml").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def run(code, **environment):
    """Run Python code in a fresh process; returns what it printed, fails if it fails."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def imports_of(path):
    """Top-level names of all absolute imports in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]


def copy_of_source(target):
    """The checkout without what is built in it: building leaves no traces here, and files that
    come and go while somebody works do no harm."""
    ignored = shutil.ignore_patterns(".git", ".venv*", "build", "__pycache__", "*.egg-info")
    return shutil.copytree(ROOT, target, ignore=ignored)


def test_version_is_the_same_everywhere():
    assert PROJECT["project"]["version"] == MANIFEST["version"]
    assert f"## {MANIFEST['version']}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    zips = re.findall(r"poise-([\d.]+)-", (ROOT / "docs" / "td.md").read_text(encoding="utf-8"))
    assert set(zips) == {MANIFEST["version"]}


def test_manifest_keeps_the_rules_of_the_site():
    assert MANIFEST["id"] == "poise"
    assert MANIFEST["blender_version_min"] == "4.2.0"
    assert MANIFEST["license"] == ["SPDX:GPL-3.0-or-later"]
    needed = {"schema_version", "id", "version", "name", "tagline", "maintainer", "type", "license"}
    meant = {"blender_version_min", "copyright", "tags", "permissions", "build"}
    assert set(MANIFEST) == needed | meant, "no leftovers of a template"
    assert set(MANIFEST["permissions"]) == {"files"}
    assert set(MANIFEST["build"]) == {"paths_exclude_pattern"}
    assert all(re.fullmatch(r"\d{4} \S.*", text) for text in MANIFEST["copyright"])
    assert "blender" not in (MANIFEST["name"] + MANIFEST["tagline"]).lower()
    for text in (MANIFEST["tagline"], *MANIFEST["permissions"].values()):
        assert len(text) <= 64
        assert text[-1].isalnum()


def test_picture_of_the_listing_has_its_size():
    """16:9, and at least 1920 x 1080."""
    header = (ROOT / "docs" / "listing.png").read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(header[at : at + 4]) for at in (16, 20))
    assert width * 9 == height * 16 and width >= 1920


def test_licence_text_is_there():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "GNU GENERAL PUBLIC LICENSE" in text
    assert "Version 3" in text


@pytest.mark.once
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_source_names_its_licence(path):
    lines = path.read_text(encoding="utf-8").splitlines()[:2]
    assert "# SPDX-License-Identifier: GPL-3.0-or-later" in lines


def test_controller_imports_nothing_of_blender():
    for path in (ROOT / "controller").rglob("*.py"):
        assert not {"bpy", "mathutils", "bmesh"} & set(imports_of(path)), path.name


@pytest.mark.once
def test_only_the_world_imports_pybullet():
    modules = {"pybullet", "pybullet_data", "pybullet_utils", "pybullet_envs"}
    importers = [path.name for path in SOURCES if modules & set(imports_of(path))]
    shipped = [name for name in importers if not name.startswith(("test_", "bench"))]
    assert set(shipped) <= {"world.py"}


def test_package_imports_itself_relatively_only():
    for folder in ("addon", "controller"):
        for path in (ROOT / folder).rglob("*.py"):
            assert "poise" not in set(imports_of(path)), path


def test_runtime_needs_no_more_than_blender_ships():
    allowed = {"bpy", "_bpy", "mathutils", "numpy", "pybullet", "cma", "gpu", "gpu_extras", "bl_ui"}
    allowed |= {"bpy_extras", "bmesh", "blf", "addon_utils"}
    allowed.add("distributed")  # for clusters alone, if it is there
    allowed.add("zstandard")  # for compressed files, if it is there
    for folder in ("addon", "controller"):
        for path in (ROOT / folder).rglob("*.py"):
            foreign = set(imports_of(path)) - allowed - set(sys.stdlib_module_names)
            assert not foreign, f"{path}: {foreign}"


def test_controller_works_without_bpy():
    code = "import sys; sys.modules['bpy'] = None; import poise.controller; print('fine')"
    assert run(code).strip() == "fine"


def test_importing_the_package_imports_no_blender():
    assert run("import sys, poise; print('bpy' in sys.modules)").strip() == "False"


@pytest.fixture(scope="module")
def extension(tmp_path_factory):
    """The extension's zip, made by the builder that Blender ships."""
    specification = importlib.util.find_spec("bpy")
    if specification is None:
        pytest.skip("no bpy module here")
    scripts = Path(specification.origin).parent
    tools = list(scripts.glob("*/scripts/addons_core/bl_pkg/cli/blender_ext.py"))
    assert tools, "this bpy brings no extension builder"
    folder = tmp_path_factory.mktemp("extension")
    source = copy_of_source(folder / "source")
    for command in (
        ["validate", str(source)],
        ["build", "--source-dir", str(source), "--output-filepath", str(folder / "poise.zip")],
        ["validate", str(folder / "poise.zip")],
    ):
        done = subprocess.run(
            [sys.executable, str(tools[0]), *command], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "poise.zip"


def test_extension_holds_the_addon_and_nothing_else(extension):
    names = zipfile.ZipFile(extension).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {
        "__init__.py",
        "addon",
        "blender_manifest.toml",
        "controller",
        "LICENSE",
        "presets",
    }
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_extension_registers_under_the_name_that_blender_gives_it(extension, tmp_path):
    # As in Blender, where the package is bl_ext.<repository>.poise and no `poise` exists.
    package = tmp_path / "bl_ext_stand_in" / "user_default" / "poise"
    zipfile.ZipFile(extension).extractall(package)
    code = f"""
import os, sys
sys.path.insert(0, {str(tmp_path)!r})
import bpy
import bl_ext_stand_in.user_default.poise as extension
for _ in range(2):
    extension.register()
    extension.unregister()
assert "poise" not in sys.modules, "an absolute import"
print("fine", flush=True)
os._exit(0)  # see conftest.pytest_unconfigure
"""
    assert run(code).strip().endswith("fine")


def test_wheel_holds_code_and_presets(tmp_path):
    pytest.importorskip("setuptools", minversion="77")
    source = copy_of_source(tmp_path / "source")
    code = "import sys, setuptools.build_meta as b; print(b.build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=source,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    unpacked = tmp_path / "unpacked"
    zipfile.ZipFile(wheel).extractall(unpacked)
    shipped = {path.relative_to(unpacked / "poise") for path in unpacked.rglob("poise/**/*.*")}
    expected = {
        path.relative_to(ROOT)
        for folder in ("addon", "controller", "presets")
        for path in (ROOT / folder).rglob("*.*")
        if path.suffix in (".py", ".json")
    }
    assert expected <= shipped
    assert Path("blender_manifest.toml") in shipped
    code = "import poise.controller; print(poise.__file__)"
    assert str(unpacked) in run(code, PYTHONPATH=str(unpacked))
