# SPDX-License-Identifier: GPL-3.0-or-later
"""Prove what is claimed of the extension's zips: `python packaging/prove.py PYTHON…`.

That building again gives the same bytes, that the zips for Blender's site hold wheels as they were
published, and that those in the trimmed zip for this platform install with pip into each Python
named and work there, with nothing else but NumPy: a ball falls as it should, and a search finds a
minimum. Exit status 0, or 1 and what is not so.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import extension
from wheels import Name, locked

PLATFORM = "linux-x64"

#: Half a second of falling from ten metres, and a bowl in four dimensions.
WORKS = """
import sys
sys.path.insert(0, sys.argv[1])
import cma, pybullet
assert pybullet.__file__.startswith(sys.argv[1]) and cma.__file__.startswith(sys.argv[1])
pybullet.connect(pybullet.DIRECT)
pybullet.setGravity(0, 0, -9.81)
sphere = pybullet.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.1)
ball = pybullet.createMultiBody(1.0, sphere)
pybullet.resetBasePositionAndOrientation(ball, (0, 0, 10), (0, 0, 0, 1))
pybullet.changeDynamics(ball, -1, linearDamping=0)
for _ in range(120):
    pybullet.stepSimulation()
height = pybullet.getBasePositionAndOrientation(ball)[0][2]
assert abs(height - (10 - 9.81 / 2 * 0.25)) < 0.02, height
found = cma.fmin2(lambda x: sum((x - 1) ** 2), 4 * [0.0], 0.5, {"verbose": -9, "seed": 1})[0]
assert max(abs(found - 1)) < 1e-3, found
"""


def main(pythons):
    """Prove it for some Pythons; returns the exit status."""
    output = extension.ROOT / "build" / "extension"
    problems = []
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        if extension.main(["--output", folder]) != 0:
            return 1
        for path in sorted(Path(folder).glob("*.zip")):
            differences = _differences(path, output / path.name)
            print(f"{path.name}: {differences or 'the same bytes again'}")
            problems += [path.name] if differences else []
    for path in sorted(output.glob(f"*{extension.SITE}.zip")):
        altered = _altered(path)
        print(f"{path.name}: wheels {'ALTERED: ' + altered if altered else 'as published'}")
        problems += [path.name] if altered else []
    (path,) = output.glob(f"*-{PLATFORM.replace('-', '_')}.zip")
    for python in pythons:
        status = _install(python, path)
        print(f"{path.name}: {'does NOT work' if status else 'works'} in {python}")
        problems += [python] if status else []
    return 1 if problems else 0


def _differences(one, other):
    """In what two zips differ: "" if in no byte."""
    if one.read_bytes() == other.read_bytes():
        return ""
    listings = []
    for path in (one, other):
        with zipfile.ZipFile(path) as archive:
            listings.append({(entry.filename, entry.CRC) for entry in archive.infolist()})
    entries = sorted({name for name, _ in listings[0] ^ listings[1]})
    return f"DIFFERS in {', '.join(entries) or 'how it is packed'}"


def _altered(path):
    """The wheels in a zip that are not those of the lock file, or "there are none"."""
    with zipfile.ZipFile(path) as archive:
        entries = [name for name in archive.namelist() if name.endswith(".whl")]
        digests = {Path(name).name: hashlib.sha256(archive.read(name)) for name in entries}
    if not digests:
        return "there are none"
    known = locked()
    return ", ".join(name for name in digests if digests[name].hexdigest() != known.get(name))


def _install(python, path):
    """Install the wheels of a zip with pip and use them; returns an exit status."""
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(path).extractall(folder)
        target = Path(folder) / "target"
        pip = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
        where = ["--find-links", Path(folder) / "wheels", "--target", target]
        packages = {Name.of(wheel).package for wheel in (Path(folder) / "wheels").iterdir()}
        subprocess.run([*pip, *where, *sorted(packages)], check=True)
        return subprocess.run([python, "-c", WORKS, str(target)]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
