# SPDX-License-Identifier: GPL-3.0-or-later
"""What all tests share: one thread, an empty Blender, and captured clips.

Proofs, which are marked `slow`, take the captured clips: they lie in `../shared/motions` beside the
checkout, or in the folder that the environment variable POISE_MOTIONS names; without them these
proofs are skipped. All other tests take stand-ins of the same names, made by code; so do those that
only take long, over 1.5 s, and are marked `slow(captured=False)`.
"""

import gc
import importlib.util
import os
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

# Before NumPy loads: threads of the BLAS make small problems many times slower.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import numpy as np  # noqa: E402

# Thousands of tests are remembered: to look through them seldom makes all a twentieth faster.
gc.set_threshold(50_000, 20, 50)

ROOT = Path(__file__).resolve().parent.parent
HAS_BPY = importlib.util.find_spec("bpy") is not None

#: Without the bpy module the physics library is tested alone.
collect_ignore = [] if HAS_BPY else ["addon"]


_OURS = tuple(f"{ROOT / room}{os.sep}" for room in ("addon", "controller"))

#: Of these NumPy has two kernels.
_TWO_KERNELS = "exp log sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh power".split()


class _Watched:
    """A function of NumPy that refuses arrays with gaps of our own code: which kernel takes them
    depends on where they lie in memory, and with it the last bit (rotations.packed)."""

    def __init__(self, function):
        self._function = function

    def __call__(self, *args, **kwargs):
        caller = sys._getframe(1).f_code.co_filename
        if caller.startswith(_OURS):
            for array in args[: self._function.nin]:
                assert np.ndim(array) == 0 or _is_packed(np.asarray(array)), (
                    f"np.{self._function.__name__} of an array with gaps: take rotations.packed."
                )
        return self._function(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self._function, name)


def _is_packed(array):
    """Of one number in a row NumPy looks at the step to the next one that is not there."""
    flags = array.flags
    contiguous = flags.c_contiguous or flags.f_contiguous
    return contiguous and (array.shape != (1,) or array.strides == (array.itemsize,))


@pytest.fixture(scope="session", autouse=True)
def watched():
    with pytest.MonkeyPatch.context() as patch:
        for name in _TWO_KERNELS:
            patch.setattr(np, name, _Watched(getattr(np, name)))
        yield


_status = 0


def pytest_sessionfinish(exitstatus):
    global _status
    _status = int(exitstatus)


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure():
    """Leave without Python's own clean-up where the bpy module would crash in it: those of
    4.2 to 4.5 do so once any property with a callback was registered, even if it is unregistered
    again. And before pytest's: without its fault handler a crash says nothing of where."""
    bpy = sys.modules.get("bpy")
    if bpy is not None and bpy.app.version < (5, 0):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_status)


@dataclass(frozen=True)
class Clip:
    """One row of the table in the clips' README.

    rig: letter of the skeleton; up: the file's own up axis, "Y" or "Z"; scale: metres per unit.
    """

    name: str
    path: Path
    fps: int
    frames: int
    rig: str
    up: str
    scale: float


@pytest.fixture(scope="session")
def _factory_addons():
    """Add-ons that are enabled in Blender's own settings, which it has from here on."""
    bpy = pytest.importorskip("bpy")
    import addon_utils

    bpy.ops.wm.read_factory_settings(use_empty=True)
    addon_utils.disable("cycles")  # it looks for 5 ms at each file that is opened
    return set(bpy.context.preferences.addons.keys())


@pytest.fixture
def blender(_factory_addons):
    """The bpy module with an empty file."""
    import bpy

    if set(bpy.context.preferences.addons.keys()) == _factory_addons:
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    else:  # takes six times as long
        bpy.ops.wm.read_factory_settings(use_empty=True)
    return bpy


@pytest.fixture(autouse=True)
def _blender_for_addon(request):
    """Every test in tests/addon starts from an empty file, whether it asks for it or not."""
    if "addon" in request.path.relative_to(ROOT).parts:
        request.getfixturevalue("blender")


@pytest.fixture(scope="session")
def motions():
    """Folder of the captured BVH clips."""
    folder = Path(os.environ.get("POISE_MOTIONS", ROOT.parent / "shared" / "motions"))
    if not (folder / "README.md").is_file():
        pytest.skip(f"no captured clips in {folder}; set POISE_MOTIONS to their folder")
    return folder


class _Standins(dict):
    """Name -> Clip of the stand-ins in a folder; each is made when it is first asked for."""

    def __init__(self, folder):
        self._folder = folder

    def __missing__(self, name):
        from helpers.standins import write

        self[name] = Clip(name, *write(name, self._folder))
        return self[name]


@pytest.fixture(scope="session")
def standins(tmp_path_factory):
    """Name -> Clip of the stand-ins."""
    return _Standins(tmp_path_factory.mktemp("motions"))


@pytest.fixture
def is_proof(request):
    """Whether a test is a proof: marked `slow`, and not `slow(captured=False)`."""
    slow = request.node.get_closest_marker("slow")
    return bool(slow and slow.kwargs.get("captured", True))


@pytest.fixture
def clips(request, is_proof):
    """Name -> Clip: in a proof, of all captured clips, in the order of their README; else of the
    stand-ins."""
    if is_proof:
        return {clip.name: clip for clip in _table(request.getfixturevalue("motions"))}
    return request.getfixturevalue("standins")


def _table(folder):
    """The clips that the table in the folder's README lists."""
    columns = None
    for line in (folder / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == "File":
            columns = cells
        elif columns and cells[0].endswith(".bvh"):
            row = dict(zip(columns, cells, strict=True))
            yield Clip(
                name=row["File"].removesuffix(".bvh"),
                path=folder / row["File"],
                fps=int(row["fps"]),
                frames=int(row["Frames"]),
                rig=row["Rig"],
                up=row["Up"],
                scale=float(row["Scale to m"]),
            )


@pytest.fixture(scope="session")
def _imported(tmp_path_factory):
    """{clip and options of its import: library of what came of it}: appended in a tenth of the time
    that Blender's importer takes."""
    folder = tmp_path_factory.mktemp("imported")
    return defaultdict(lambda: folder / f"{len(list(folder.iterdir()))}.blend")


@pytest.fixture
def import_clip(blender, clips, _imported):
    """import_clip(name, rename=False, **options) -> the armature object of a captured clip.

    rename: call the bones b0, b1, … so that nothing can be known from their names. The options go
    to Blender's BVH importer, over those that the clip needs (scale in metres, axes). The scene
    gets the clip's frame rate and range; the first frame is 1.
    """

    def load(name, rename=False, **options):
        clip = clips[name]
        axes = {"axis_up": "Z", "axis_forward": "Y"} if clip.up == "Z" else {}
        options = {"global_scale": clip.scale, **axes, **options}
        library = _imported[clip.path, *sorted(options.items())]
        if library.exists():
            with blender.data.libraries.load(str(library)) as (there, wanted):
                wanted.objects = there.objects
            (armature,) = wanted.objects
            blender.context.collection.objects.link(armature)
            blender.context.view_layer.objects.active = armature
            armature.select_set(True)
        else:
            blender.ops.import_anim.bvh(filepath=str(clip.path), **options)
            armature = blender.context.object
            blender.data.libraries.write(str(library), {armature})
        scene = blender.context.scene
        scene.render.fps, scene.render.fps_base = clip.fps, 1.0
        scene.frame_start = options.get("frame_start", 1)
        scene.frame_end = scene.frame_start + clip.frames - 1
        if rename:
            for number, bone in enumerate(armature.data.bones):
                bone.name = f"b{number}"
        scene.frame_set(scene.frame_start)
        return armature

    return load
