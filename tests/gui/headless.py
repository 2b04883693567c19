# SPDX-License-Identifier: GPL-3.0-or-later
"""The installed extension without a window: `blender --background … --command poise …`."""

import json
import shutil
import subprocess

EXAMPLE = """
import bpy
bpy.ops.poise.example_scene()
bpy.ops.wm.save_as_mainfile(filepath={path!r})
"""


def checks(blender, profile, output, environment, log):
    """Run each verb on a short shot; returns [(check, problem or "")].

    blender: a Blender of tests/gui/run; environment: with the profile in it; log: an open file.
    """
    folder = output / "headless shot"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shot, baked, gains, report = (
        folder / name for name in ("shot.blend", "baked.blend", "gains.json", "report.json")
    )
    installed = profile / "extensions" / "user_default" / "poise"
    read_only = blender.read_only(installed)
    found = []

    def check(what, holds, detail):
        found.append((what, "" if holds else f"is not so: {detail}"))

    def run(what, arguments, expected=0, command=read_only or blender.command):
        done = subprocess.run(
            [*command, "--background", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        print(f"== {what}: {arguments}\n{done.stdout}", file=log, flush=True)
        status = done.returncode
        check(what, status == expected, f"exit status {status}; see {log.name}")
        return done.stdout

    def poise(what, *arguments, **options):
        return run(what, ["--command", "poise", *map(str, arguments)], **options)

    script = EXAMPLE.format(path=str(shot))
    script = ["--python-exit-code", "1", "--python-expr", script]
    run("the example is made", script, command=blender.command)
    for cache in list(installed.rglob("__pycache__")):
        shutil.rmtree(cache)
    before, source = _listing(installed), shot.read_bytes()
    text = poise("version", "--version")
    check("it tells its version", "poise 0." in text, text)
    text = poise("inspect", "inspect", shot)
    check("inspect finds the character", "armature  Character" in text, text)
    poise("bake", "bake", shot, "--output", baked, "--report", report)
    check("the bake is there", baked.is_file(), baked)
    check("it stands", report.is_file() and _stands(report), report)
    search = ["optimize", shot, "--generations", "2", "--population", "4", "--workers", "1"]
    poise("optimize", *search, "--output", gains)
    check("the gains are there", gains.is_file(), gains)
    poise("batch", "batch", shot, "--output", folder / "batch")
    check("the batch is there", list((folder / "batch").glob("*.blend")), folder)
    text = poise("a missing file", "bake", folder / "none", "--output", baked, expected=1)
    check("it is told in a sentence", "none" in text and "Traceback" not in text, text)
    check("the source is as it was", shot.read_bytes() == source, shot)
    after = _listing(installed)
    check("nothing is written beside the code", after == before, after ^ before)
    if read_only:
        caches = list(installed.rglob("__pycache__"))
        check("the folder was read-only", not caches, caches)
    return found


def _stands(report):
    return json.loads(report.read_text(encoding="utf-8"))["success"]


def _listing(folder):
    """What is in a folder, with dates and sizes; not what Python itself keeps there."""
    return {
        (str(path), path.stat().st_mtime_ns, path.stat().st_size)
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
