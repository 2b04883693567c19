# SPDX-License-Identifier: GPL-3.0-or-later
"""What the extension's zips are made of, and what it says where they do not fit. No network: the
wheels are made here."""

import base64
import csv
import hashlib
import importlib
import importlib.util
import io
import os
import re
import struct
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from poise.addon import requirements
from poise.controller.exceptions import SimulationError
from poise.controller.simulation import world

ROOT = Path(__file__).resolve().parent.parent
LINUX = "pybullet_arm64-3.2.8-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl"
UNIVERSAL = "pybullet_arm64-3.2.8-cp311-cp311-macosx_10_9_universal2.whl"
INFO = "pybullet_arm64-3.2.8.dist-info/"
LIBRARY = "pybullet.cpython-311-of-some-system.so"


@pytest.fixture
def wheels(monkeypatch):
    """The module packaging/wheels.py."""
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    import wheels

    return wheels


@pytest.fixture
def extension(wheels):
    """The module packaging/extension.py."""
    import extension

    return extension


def make_wheel(path, library, data):
    """A wheel such as those of PyBullet, with everything in it that Poise does not need."""
    contents = {
        library: data,
        "eglRenderer.so": b"renderer",
        "pybullet_data/plane.urdf": b"<robot/>",
        "pybullet_envs/__init__.py": b"",
        INFO + "METADATA": b"Name: pybullet-arm64\nVersion: 3.2.8\n",
        INFO + "WHEEL": f"Wheel-Version: 1.0\nTag: {'-'.join(path.stem.split('-')[2:])}\n".encode(),
        INFO + "top_level.txt": b"pybullet\npybullet_data\neglRenderer\n",
        INFO + "licenses/LICENSE.txt": b"zlib",
        INFO + "licenses/AUTHORS.txt": b"authors",
        INFO + "RECORD": b"of what it held before\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def universal(**slices):
    """A library of macOS with a slice for each machine."""
    machines = {"intel": 0x01000007, "arm": 0x0100000C}
    header, body = struct.pack(">II", 0xCAFEBABE, len(slices)), b""
    for name, data in slices.items():
        header += struct.pack(">5I", machines[name], 0, 4096 + len(body), len(data), 12)
        body += data
    return header.ljust(4096, b"\0") + body


def contents_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# --- Trimming ------------------------------------------------------------------------------------


def test_a_trimmed_wheel_holds_library_and_licences_alone(wheels, tmp_path):
    source = make_wheel(tmp_path / UNIVERSAL, LIBRARY, universal(arm=b"a"))
    (tmp_path / "out").mkdir()
    trimmed = contents_of(wheels.trim(source, "macos-arm64", tmp_path / "out"))
    assert set(trimmed) == {
        LIBRARY,
        *(INFO + name for name in ("METADATA", "WHEEL", "RECORD", "top_level.txt")),
        *(INFO + f"licenses/{name}.txt" for name in ("LICENSE", "AUTHORS", "TRIMMED")),
    }
    assert trimmed[INFO + "top_level.txt"] == b"pybullet\n"
    note = trimmed[INFO + "licenses/TRIMMED.txt"].decode()
    assert UNIVERSAL in note
    assert hashlib.sha256(source.read_bytes()).hexdigest() in note


def test_record_names_each_file_with_its_hash_and_size(wheels, tmp_path):
    source = make_wheel(tmp_path / UNIVERSAL, LIBRARY, universal(arm=b"a"))
    (tmp_path / "out").mkdir()
    trimmed = contents_of(wheels.trim(source, "macos-arm64", tmp_path / "out"))
    rows = list(csv.reader(io.StringIO(trimmed[INFO + "RECORD"].decode())))
    assert sorted(row[0] for row in rows) == sorted(trimmed)
    for name, digest, size in rows:
        if name == INFO + "RECORD":
            assert (digest, size) == ("", "")
        else:
            expected = base64.urlsafe_b64encode(hashlib.sha256(trimmed[name]).digest())
            assert digest == "sha256=" + expected.rstrip(b"=").decode()
            assert int(size) == len(trimmed[name])


@pytest.mark.parametrize(
    ("platform", "tag", "data"),
    [
        ("macos-arm64", "macosx_11_0_arm64", b"for arm"),
        ("macos-x64", "macosx_10_9_x86_64", b"for intel"),
    ],
)
def test_a_universal_library_is_cut_to_one_machine(wheels, tmp_path, platform, tag, data):
    library = universal(intel=b"for intel", arm=b"for arm")
    source = make_wheel(tmp_path / UNIVERSAL, LIBRARY, library)
    (tmp_path / "out").mkdir()
    path = wheels.trim(source, platform, tmp_path / "out")
    assert path.name == f"pybullet_arm64-3.2.8-cp311-cp311-{tag}.whl"
    trimmed = contents_of(path)
    assert trimmed[LIBRARY] == data
    assert f"Tag: cp311-cp311-{tag}\n" in trimmed[INFO + "WHEEL"].decode()


def test_same_wheel_gives_the_same_bytes(wheels, tmp_path):
    results = []
    for number, date in enumerate(((2020, 1, 1, 0, 0, 0), (2024, 5, 6, 7, 8, 9))):
        folder = tmp_path / str(number)
        folder.mkdir()
        contents = {"pybullet/__init__.py": b"b", "a": b"a"}
        for name in contents if number else reversed(contents):
            with zipfile.ZipFile(folder / "before.zip", "a") as archive:
                archive.writestr(zipfile.ZipInfo(name, date), contents[name])
        wheels.write_zip(folder / "after.zip", contents_of(folder / "before.zip"))
        results.append((folder / "after.zip").read_bytes())
    assert results[0] == results[1]


def test_a_library_of_linux_loses_its_symbols_and_still_loads(wheels, tmp_path):
    module = Path(sysconfig.get_config_var("DESTSHARED") or "")
    libraries = sorted(module.glob("_json.*.so"))
    if not libraries:
        pytest.skip("this Python has no library to try it on")
    data = libraries[0].read_bytes() + b"\0" * 5000  # as if it had had more
    (tmp_path / "out").mkdir()
    source = make_wheel(tmp_path / LINUX, LIBRARY, data)
    trimmed = contents_of(wheels.trim(source, "linux-x64", tmp_path / "out"))
    stripped = trimmed[LIBRARY]
    assert len(stripped) < len(data)
    (tmp_path / libraries[0].name).write_bytes(stripped)
    code = f"import _json; assert _json.__file__.startswith({str(tmp_path)!r}), _json.__file__"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_what_cannot_be_trimmed_is_said(wheels, tmp_path, monkeypatch):
    source = make_wheel(tmp_path / LINUX, "bullet.so", b"")
    with pytest.raises(wheels.WheelError, match="holds no library"):
        wheels.trim(source, "linux-x64", tmp_path)
    source = make_wheel(tmp_path / LINUX, LIBRARY, b"\x7fELF and no more")
    (tmp_path / "out").mkdir()
    with pytest.raises(wheels.WheelError, match="binutils"):
        wheels.trim(source, "linux-x64", tmp_path / "out")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(wheels.WheelError, match="apt-get install binutils"):
        wheels.trim(source, "linux-x64", tmp_path / "out")


def test_a_wheel_that_is_not_the_locked_one_is_refused(wheels, tmp_path):
    (tmp_path / LINUX).write_bytes(b"something else")
    with pytest.raises(wheels.WheelError, match=r"SHA-256.*delete it"):
        wheels.download(LINUX, tmp_path)


def test_another_wheel_than_the_locked_one_is_told(wheels, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_options: asked.append(command))
    with pytest.raises(wheels.WheelError, match="another wheel"):
        wheels.download(LINUX, tmp_path)
    assert {"--python-version=3.11", "--abi=cp311", "pybullet_arm64==3.2.8"} <= set(asked[0])
    assert "--platform=manylinux_2_28_x86_64" in asked[0]


# --- The lock file and the zips ------------------------------------------------------------------


def test_each_platform_has_its_wheels(wheels):
    names = [wheels.Name.of(name) for name in wheels.locked()]
    for platform in wheels.PLATFORMS:
        served = {(name.package, name.python) for name in names if name.serves(platform)}
        expected = {("cma", "py3"), ("pybullet_arm64", "cp311")}
        if platform != "macos-x64":  # Blender 4.5 was the last for it
            expected.add(("pybullet_arm64", "cp313"))
        assert served == expected


def test_locked_versions_are_those_that_poise_needs(wheels):
    locked = {
        name.package.replace("_", "-"): name.version
        for name in map(wheels.Name.of, wheels.locked())
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    dependencies = dict(
        re.match(r"([\w-]+)>=([\d.]+)", text).groups() for text in project["dependencies"]
    )
    for oldest, packages in requirements.NEEDED.values():
        assert requirements._numbers(locked[packages[0]]) >= requirements._numbers(oldest)
        assert dependencies[packages[-1]] == oldest


def test_zips_are_made_by_blenders_builder(extension, wheels, tmp_path, monkeypatch):
    pytest.importorskip("bpy")
    made = {
        LINUX.replace("cp311", python): make_wheel(
            tmp_path / LINUX.replace("cp311", python), LIBRARY, b"for Linux"
        )
        for python in ("cp311", "cp313")
    }
    made[UNIVERSAL] = make_wheel(tmp_path / UNIVERSAL, LIBRARY, universal(arm=b"for arm"))
    monkeypatch.setattr(extension, "locked", lambda: dict.fromkeys(made))
    monkeypatch.setattr(extension, "download", lambda name, folder: made[name])
    platforms = ("linux-x64", "macos-arm64")
    builds = [
        extension.build(platforms, tmp_path / name, extension._builder(None))
        for name in ("one", "two")
    ]
    for one, two in zip(*builds, strict=True):
        assert one.name == two.name and one.read_bytes() == two.read_bytes()
    trimmed, site = (path for path in builds[0] if "linux" in path.name)
    assert site.name == trimmed.name.replace(".zip", "-site.zip")
    contents = contents_of(trimmed)
    manifest = tomllib.loads(contents["blender_manifest.toml"].decode())
    generated = manifest["build"]["generated"]
    assert generated["platforms"] == ["linux-x64"]
    assert generated["wheels"] == [f"./wheels/{name}" for name in sorted(made) if "linux" in name]
    assert manifest["platforms"] == list(platforms)
    tops = {name.split("/")[0] for name in contents}
    assert tops == {*extension.SHIPPED, "blender_manifest.toml", "wheels"}
    shipped = {str(path.relative_to(ROOT)) for path in (ROOT / "presets").rglob("*.json")}
    assert shipped <= set(contents)
    assert not [name for name in contents if "__pycache__" in name]
    same = contents_of(site)
    assert list(same) == list(contents), "and so the same code"
    for name, content in same.items():
        if name.endswith(".whl"):
            published = made[Path(name).name].read_bytes()
            assert content == published != contents[name]
        elif name != "blender_manifest.toml":  # which names the wheels of all platforms
            assert content == contents[name]
    (mac,) = [path for path in builds[0] if path.name.endswith("-macos_arm64-site.zip")]
    mac = contents_of(mac)
    assert mac[f"wheels/{UNIVERSAL}"] == made[UNIVERSAL].read_bytes()
    manifest = tomllib.loads(mac["blender_manifest.toml"].decode())
    assert manifest["build"]["generated"]["wheels"] == [f"./wheels/{UNIVERSAL}"]


def test_what_is_not_as_published_is_found(extension, wheels, tmp_path, monkeypatch):
    import prove

    monkeypatch.setattr(prove, "locked", lambda: {LINUX: hashlib.sha256(b"published").hexdigest()})
    for name, content, found in (
        (LINUX, b"published", ""),
        (LINUX, b"trimmed", LINUX),
        (UNIVERSAL, b"published", UNIVERSAL),
    ):
        wheels.write_zip(tmp_path / "site.zip", {f"wheels/{name}": content})
        assert prove._altered(tmp_path / "site.zip") == found
    wheels.write_zip(tmp_path / "site.zip", {"__init__.py": b""})
    assert prove._altered(tmp_path / "site.zip") == "there are none"


# --- Where they do not fit -----------------------------------------------------------------------


def install(folder, package, version, module, kind="dist-info"):
    """A stand-in for an installed package."""
    (folder / f"{package}-{version}.{kind}").mkdir(parents=True)
    metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    (folder / f"{package}-{version}.{kind}" / "METADATA").write_text(metadata)
    (folder / module).parent.mkdir(exist_ok=True)
    (folder / module).write_text("")


@pytest.fixture
def modules(monkeypatch, tmp_path):
    """A path in front of all others; what it holds is not imported yet."""
    world.load_engine()  # so that what is imported is put back in the end
    for name in requirements.NEEDED:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_what_is_needed_is_here():
    requirements.check()
    assert {module for module in requirements.NEEDED if importlib.util.find_spec(module)} == set(
        requirements.NEEDED
    )


def test_enabling_imports_no_engine_and_says_nothing():
    script = (
        "import bpy, os, sys, poise\n"
        "print('enabling', flush=True)\n"
        "poise.register()\n"
        "late = 'pybullet', 'asyncio', 'poise.addon.command.command_line'\n"
        "print('enabled', [name for name in late if name in sys.modules], flush=True)\n"
        "os._exit(0)  # how Blender itself ends is its own\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0
    assert "enabling\nenabled []\n" in done.stdout


@pytest.mark.parametrize("module", ["pybullet", "cma"])
def test_a_missing_module_is_named_with_the_python_and_what_to_do(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(requirements.RequirementError) as caught:
        requirements.check()
    message = str(caught.value)
    assert module in message
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in message
    assert "install the zip of Poise" in message
    assert "\n" not in message


@pytest.mark.parametrize("kind", ["dist-info", "egg-info"])
@pytest.mark.parametrize(
    ("package", "version", "module"),
    [
        ("pybullet", "3.1.9", "pybullet.py"),
        ("pybullet_arm64", "3.2.6", "pybullet.py"),
        ("cma", "3.4.0", "cma/__init__.py"),
    ],
)
def test_an_old_version_in_front_is_named_with_its_place(modules, package, version, module, kind):
    install(modules, package, version, module, kind)
    with pytest.raises(requirements.RequirementError) as caught:
        requirements.check()
    message = str(caught.value)
    assert f"finds {version} first, in {modules}" in message
    assert "or newer" in message
    assert "remove or update it" in message


def test_a_new_version_in_front_will_do(modules):
    install(modules, "pybullet", "3.2.10", "pybullet.py")
    requirements.check()
    assert importlib.import_module("pybullet").__file__ == str(modules / "pybullet.py")


def test_a_folder_of_that_name_is_not_taken_for_the_module(modules, monkeypatch):
    (modules / "pybullet").mkdir()
    monkeypatch.setattr(sys, "path", [str(modules)])
    with pytest.raises(requirements.RequirementError, match="cannot find pybullet-arm64"):
        requirements.check()


def test_a_library_that_does_not_load_is_named(modules, monkeypatch):
    monkeypatch.setattr(world, "pybullet", None)
    (modules / "pybullet.py").write_text("raise ImportError('wrong ELF class')")
    with pytest.raises(SimulationError, match=r"does not load into Python .*wrong ELF class"):
        world.load_engine()


def test_nothing_is_registered_where_something_is_missing(tmp_path):
    # Python's own message would be a traceback from the depths of the package.
    install(tmp_path, "pybullet", "3.1.9", "pybullet.py")
    done = subprocess.run(
        [sys.executable, "-m", "poise", "--help"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 1
    assert "finds 3.1.9 first" in done.stderr
    assert "Traceback" not in done.stderr
