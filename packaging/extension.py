# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the extension: two zips for each platform, with all that Poise imports on it.

    python packaging/extension.py [--platform linux-x64 …] [--wheel FILE …] [--blender COMMAND]
                                  [--output FOLDER]

Downloads the wheels of wheels.lock once, into build/wheels, and lets Blender's own builder make and
validate the zips: that of a Blender, or else that of this Python's bpy module. In one zip the
wheels are trimmed; in the other, whose name ends with -site, they are as they were published, as
Blender's site for extensions asks. Further wheels, such as one of PyBullet that was built for
another Python, are trimmed and packed likewise. Prints a table of sizes. Exit status: 0 if all is
well and no trimmed zip is larger than 12 MB, else 1.
"""

import argparse
import importlib.util
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from wheels import PLATFORMS, Name, WheelError, download, locked, trim, write_zip

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ("__init__.py", "LICENSE", "addon", "controller", "presets")
LARGEST = 12e6  # [bytes]
SITE = "-site"
MANIFEST = "blender_manifest.toml"


def main(arguments=None):
    """Build as told on the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Build the extension's zips.")
    parser.add_argument("--platform", nargs="+", choices=PLATFORMS, default=list(PLATFORMS))
    parser.add_argument("--wheel", nargs="+", type=Path, default=[], help="further wheels")
    parser.add_argument("--blender", type=shlex.split, help="command that runs Blender")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "extension")
    options = parser.parse_args(arguments)
    try:
        builder = _builder(options.blender)
        zips = build(options.platform, options.output, builder, options.wheel)
    except (WheelError, subprocess.CalledProcessError) as error:
        print(f"packaging: {error}", file=sys.stderr)
        return 1
    print(_table(zips))
    trimmed = [path for path in zips if not path.stem.endswith(SITE)]
    large = [path.name for path in trimmed if path.stat().st_size > LARGEST]
    if large:
        print(f"packaging: over {LARGEST / 1e6:.0f} MB: {', '.join(large)}", file=sys.stderr)
    return 1 if large else 0


def build(platforms, output, builder, more=()):
    """Make the zips in a folder, which is emptied first; returns their paths.

    builder: the command of Blender's tool for extensions. more: further wheels, which come from no
    index and so not into the zips for the site.
    """
    shutil.rmtree(output, ignore_errors=True)
    downloads = ROOT / "build" / "wheels"
    downloads.mkdir(parents=True, exist_ok=True)
    published = [download(name, downloads) for name in _needed(platforms)]
    site = _build(platforms, output, builder, published, _as_published)
    site = [path.rename(path.with_stem(path.stem + SITE)) for path in site]
    return [*_build(platforms, output, builder, [*published, *more], trim), *site]


def _needed(platforms):
    """The names in the lock file that serve any of the platforms."""
    return [name for name in locked() if any(Name.of(name).serves(one) for one in platforms)]


def _build(platforms, output, builder, wheels, put):
    """Make a zip for each platform; returns their paths. put(wheel, platform, folder): puts what
    is packed of a wheel into a folder."""
    source = output / "source"
    shutil.rmtree(source, ignore_errors=True)
    (source / "wheels").mkdir(parents=True)
    for platform in platforms:
        for wheel in wheels:
            if Name.of(wheel).serves(platform):
                put(wheel, platform, source / "wheels")
    _stage(source, platforms)
    command = ["build", "--split-platforms", "--source-dir", source, "--output-dir", output]
    _run([*builder, *command])
    zips = []
    for platform in platforms:
        (path,) = output.glob(f"*-{platform.replace('-', '_')}.zip")
        _normalize(path)
        _run([*builder, "validate", path])
        zips.append(path)
    return zips


def _as_published(wheel, _platform, folder):
    """Copy a whole wheel into a folder."""
    shutil.copyfile(wheel, folder / wheel.name)


def _builder(blender):
    """The command of Blender's tool for extensions."""
    if blender:
        return [*blender, "--command", "extension"]
    specification = importlib.util.find_spec("bpy")
    if specification is None:
        raise WheelError("Blender's extension builder is needed: give --blender, or install bpy.")
    module = Path(specification.origin).parent
    (tool,) = module.glob("*/scripts/addons_core/bl_pkg/cli/blender_ext.py")
    return [sys.executable, tool]


def _run(command):
    """Run a command; what it says appears only if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        done.check_returncode()


def _stage(source, platforms):
    """Copy what is shipped, and write a manifest that names platforms and wheels."""
    for name in SHIPPED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, source)
    wheels = sorted(f"./wheels/{path.name}" for path in (source / "wheels").iterdir())
    lines = (
        f"{key} = [\n{_rows(rows)}]\n"
        for key, rows in (("platforms", platforms), ("wheels", wheels))
    )
    manifest = (ROOT / MANIFEST).read_text(encoding="utf-8")
    before, section, after = manifest.partition("[permissions]\n")
    (source / MANIFEST).write_text(
        before + "\n".join(lines) + "\n" + section + after, encoding="utf-8"
    )


def _rows(texts):
    return "".join(f'  "{text}",\n' for text in texts)


def _normalize(path):
    """Write a zip again so that the same contents give the same bytes."""
    with zipfile.ZipFile(path) as archive:
        contents = {entry: archive.read(entry) for entry in archive.namelist()}
    write_zip(path, contents, stored=[entry for entry in contents if entry.endswith(".whl")])


def _table(zips):
    """Sizes [MB] of the zips and of what is in them."""
    width = max(len(path.name) for path in zips)
    lines = [f"{'':{width}}{'zip':>8}  of it", f"{'':{width}}{'MB':>8}"]
    for path in zips:
        with zipfile.ZipFile(path) as archive:
            sizes = {entry.filename: entry.compress_size for entry in archive.infolist()}
        wheels = {Name.of(name): size for name, size in sizes.items() if name.endswith(".whl")}
        parts = [f"{n.package} {n.python} {s / 1e6:.2f}" for n, s in sorted(wheels.items())]
        parts.append(f"Poise {(sum(sizes.values()) - sum(wheels.values())) / 1e6:.2f}")
        size = path.stat().st_size / 1e6
        lines.append(f"{path.name:{width}}{size:8.2f}  {', '.join(parts)}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
