# SPDX-License-Identifier: GPL-3.0-or-later
"""Blender's start with a window and no script: what of Poise is there, and what it costs."""

import contextlib
import json
import shutil
import subprocess
from pathlib import Path

ROUNDS = 3


def checks(blender, profile, output, environment, log):
    """Start Blender with Poise, without, and with Poise at once as scripts have it, in turns; says
    how long that took, and returns [(check, problem or "")]. As headless.checks."""
    scripts, nothing = profile / "scripts" / "startup", output / "no extensions"
    for folder in (scripts, nothing):
        folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).with_name("looks_on.py"), scripts)
    notes = output / "notes.json"
    ways = {
        "with Poise": ([], {}),
        "without": ([], {"BLENDER_USER_EXTENSIONS": str(nothing)}),
        "with Poise at once": (["--python-expr", "pass"], {}),
    }
    seen = {what: [] for what in ways}
    for _ in range(ROUNDS):
        for what, (arguments, more) in ways.items():
            notes.unlink(missing_ok=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    [*blender.window(), "--no-window-focus", *arguments],
                    env={**environment, **more, "POISE_TEST_NOTES": str(notes)},
                    stdout=log,
                    stderr=log,
                    timeout=60,
                )
            if not notes.is_file():
                return [(f"Blender starts {what}", f"is not so; see {log.name}")]
            seen[what].append(json.loads(notes.read_text()))
    with_poise = seen["with Poise"][0]
    found = []

    def check(what, holds, detail):
        found.append((what, "" if holds else f"is not so: {detail}"))

    first = [name for name in with_poise["first"] if ".controller" in name]
    check("the window comes before Poise", with_poise["waits at first"] and not first, first)
    check("then Poise is there", with_poise["mode"] == "QUICK", with_poise["mode"])
    check("nothing waits any more", not with_poise["waits"], with_poise)
    stays = with_poise["waits when chosen"] and with_poise["tab"] == "Poise"
    check("the tab in front stays there", stays, with_poise["tab"])
    hidden = with_poise["tab of none"]
    check("a workspace without add-ons hides it", hidden != "Poise", hidden)
    at_once = seen["with Poise at once"][0]
    check("a script has it at once", at_once["there"] == 0 and at_once["mode"], at_once["there"])
    check("without it there is none", not seen["without"][0]["mode"], seen["without"][0]["mode"])
    for what, each in seen.items():
        print(
            f"        starting: {what}: the main loop begins after "
            f"{_list(one['start'] for one in each)} s, its longest turn takes "
            f"{_list(max(one['gaps']) for one in each)} s"
        )
    there = _list(one["there"] for one in seen["with Poise"])
    print(f"        starting: Poise is there {there} s after the main loop began")
    return found


def _list(numbers):
    return ", ".join(f"{number:.2f}" for number in sorted(numbers))
