# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m poise …`: the command line, where there is the bpy module instead of Blender."""

import os
import signal
import sys

# Until there is something to stop, Ctrl-C ends the process without a word, whatever is imported.
if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
# Before NumPy loads: threads of the BLAS make small problems many times slower.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
# What is opened next would take the place of a stream that is closed, and be printed to.
for _stream in range(3):
    try:
        os.fstat(_stream)
    except OSError:
        os.open(os.devnull, os.O_RDWR)
for _name in ("stdout", "stderr"):
    if getattr(sys, _name) is None:
        setattr(sys, _name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _run():
    try:
        import bpy  # noqa: F401
    except ImportError as error:
        print(
            f"poise: Blender's Python module cannot be loaded ({error}): install `bpy` for Python "
            "3.11 or 3.13, or run `blender --background shot.blend --command poise …`.",
            file=sys.stderr,
        )
        return 1
    from . import register
    from .addon.requirements import RequirementError

    try:
        register()  # the settings that are in the file are those of the extension
    except RequirementError as error:
        print(f"poise: {error}", file=sys.stderr)
        return 1
    from .addon.command.command_line import main, stop_as_by_ctrl_c

    stop_as_by_ctrl_c()
    return main(sys.argv[1:], program="python -m poise")


def _leave(status):
    """End with an exit status, without Python's own clean-up where the bpy module would crash in
    it: those of 4.2 to 4.5 do so once any property with a callback was registered."""
    bpy = sys.modules.get("bpy")
    if bpy is not None and bpy.app.version < (5, 0):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    _leave(_run())
