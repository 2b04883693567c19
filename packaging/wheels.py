# SPDX-License-Identifier: GPL-3.0-or-later
"""Published wheels, and of them what Poise needs.

A stock wheel of PyBullet is 103 MB: robots, environments and examples, a renderer, and a library
with its debug symbols. Poise imports the library alone, so that is what a trimmed wheel holds, with
the licences. The same wheel, Python and binutils give the same bytes.
"""

import base64
import csv
import hashlib
import io
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

LOCK = Path(__file__).with_name("wheels.lock")

#: What wheels are tagged with, by platform as Blender calls it.
PLATFORMS = {
    "linux-x64": r"(many)?linux\w*_x86_64(\.manylinux\w*_x86_64)*",
    "windows-x64": r"win_amd64",
    "macos-arm64": r"macosx_\w+_(arm64|universal2)",
    "macos-x64": r"macosx_\w+_(x86_64|universal2)",
}
#: A universal library of macOS holds one for each kind of Mac. Which it is, and the tag of a wheel
#: that holds no other.
_SLICES = {
    "macos-arm64": (0x0100000C, "macosx_11_0_arm64"),
    "macos-x64": (0x01000007, "macosx_10_9_x86_64"),
}
_UNIVERSAL = 0xCAFEBABE
#: What is kept of a package, beside its licences and description. Others are kept as they are.
_KEPT = {"pybullet_arm64": r"pybullet\.[^/]*\.(so|pyd)"}
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip can hold
_NOTE = """\
This wheel was altered for Poise, a Blender extension. All was left out but the library, its debug
symbols (Linux) and its halves for other machines (macOS), and the licences.
It was made from {name}
with the SHA-256 {digest}
"""


class WheelError(Exception):
    """A wheel is not what it should be, or cannot be trimmed; says in one sentence what to do."""


class Name(NamedTuple):
    """The parts of a wheel's file name."""

    package: str
    version: str
    python: str
    abi: str
    platform: str

    @classmethod
    def of(cls, path):
        """The parts of the name of a file."""
        return cls(*Path(path).name.removesuffix(".whl").split("-"))

    def __str__(self):
        return "-".join(self) + ".whl"

    def serves(self, platform):
        """Whether such a wheel can be installed on a platform of PLATFORMS."""
        return self.platform == "any" or bool(re.fullmatch(PLATFORMS[platform], self.platform))


def locked():
    """SHA-256 of each published wheel by its file name, as the lock file has it."""
    lines = LOCK.read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (ln.split() for ln in lines if not ln.startswith("#"))}


def download(name, folder):
    """A wheel of the lock file in a folder: from there, or else from the package index.

    Raises WheelError if it is not the one of the lock file, subprocess.CalledProcessError if it
    cannot be downloaded.
    """
    path = Path(folder) / name
    if not path.is_file():
        print(f"downloading {name}", flush=True)
        parts = Name.of(name)
        tags = [f"--platform={tag}" for tag in parts.platform.split(".")]
        if parts.abi != "none":
            version = f"{parts.python[2]}.{parts.python[3:]}"
            tags += [f"--python-version={version}", f"--abi={parts.abi}"]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        package = f"{parts.package}=={parts.version}"
        subprocess.run([*pip, "--only-binary=:all:", *tags, package], check=True)
        if not path.is_file():
            raise WheelError(f"pip has downloaded another wheel of {package} than {name}.")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != locked()[name]:
        raise WheelError(
            f"{path} is not the wheel that packaging/wheels.lock names: its SHA-256 is {digest}: "
            "delete it and build again; if it comes back so, it was changed after it was chosen."
        )
    return path


def trim(wheel, platform, folder):
    """Write what Poise needs of a wheel on a platform as a wheel into a folder; returns its path.

    Its RECORD is right, its licences are kept, and beside them a note says what was done. Raises
    WheelError if it cannot be done.
    """
    wheel, name = Path(wheel), Name.of(wheel)
    if name.package not in _KEPT:
        return Path(shutil.copyfile(wheel, Path(folder) / wheel.name))
    description = f"{name.package}-{name.version}.dist-info/"
    contents = {}
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.namelist():
            if re.fullmatch(_KEPT[name.package], entry):
                contents[entry] = _library(archive.read(entry), platform)
            elif entry.startswith(description) and not entry.endswith(("/", "/RECORD")):
                contents[entry] = archive.read(entry)
    if all(entry.startswith(description) for entry in contents):
        raise WheelError(f"{wheel.name} holds no library that matches {_KEPT[name.package]!r}.")
    if name.platform.endswith("universal2"):
        old, name = name.platform, name._replace(platform=_SLICES[platform][1])
        tags = contents[description + "WHEEL"]
        contents[description + "WHEEL"] = tags.replace(old.encode(), name.platform.encode())
    tops = sorted({entry.split(".")[0] for entry in contents if "/" not in entry})
    contents[description + "top_level.txt"] = "".join(f"{top}\n" for top in tops).encode()
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    note = _NOTE.format(name=wheel.name, digest=digest)
    contents[description + "licenses/TRIMMED.txt"] = note.encode()
    contents[description + "RECORD"] = _record(contents, description + "RECORD")
    path = Path(folder) / str(name)
    write_zip(path, contents)
    return path


def _record(contents, itself):
    """The table of all files with their hashes and sizes."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    for entry, data in sorted(contents.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        table.writerow([entry, f"sha256={digest}", len(data)])
    table.writerow([itself, "", ""])
    return text.getvalue().encode()


def write_zip(path, contents, stored=()):
    """Write a zip that depends on nothing but what is in it: {entry: bytes}; stored: the entries
    that are not compressed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        # The description at the end, as the format of wheels asks for.
        for entry in sorted(contents, key=lambda entry: (".dist-info/" in entry, entry)):
            info = zipfile.ZipInfo(entry, _DATE)
            info.create_system = 3  # Unix, wherever it is made
            info.external_attr = 0o644 << 16
            compression = zipfile.ZIP_STORED if entry in stored else zipfile.ZIP_DEFLATED
            archive.writestr(info, contents[entry], compression)


def _library(data, platform):
    """A library without what only debuggers and other machines use."""
    if data.startswith(b"\x7fELF"):
        return _strip(data)
    if struct.unpack_from(">I", data) == (_UNIVERSAL,):
        return _slice(data, _SLICES[platform][0])
    return data  # Windows and macOS keep symbols elsewhere, and a changed one would be unsigned


def _slice(data, machine):
    """One of the libraries in a universal one, byte for byte, so that its signature holds."""
    (number,) = struct.unpack_from(">I", data, 4)
    for index in range(number):
        kind, _, start, size, _ = struct.unpack_from(">5I", data, 8 + 20 * index)
        if kind == machine:
            return data[start : start + size]
    raise WheelError(f"The universal library holds nothing for machine {machine:#x}.")


def _strip(data):
    """A library of Linux without its symbols for debuggers and linkers."""
    if not shutil.which("strip"):
        raise WheelError("There is no `strip`: install GNU binutils (apt-get install binutils).")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "library.so"
        path.write_bytes(data)
        done = subprocess.run(
            ["strip", "--strip-unneeded", path], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise WheelError(
                "`strip` cannot read libraries of Linux; GNU binutils are needed, not those of "
                f"macOS: {done.stderr.strip()}"
            )
        return path.read_bytes()
