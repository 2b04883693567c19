# SPDX-License-Identifier: GPL-3.0-or-later
"""Options, each described once: what was set before stays, and all is made of the description."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import reduce
from pathlib import Path

import bpy
import pytest

from poise.addon.example import scene as example
from poise.addon.rigs import sampling
from poise.addon.settings.properties import shot_options
from poise.addon.shots.shot import Shot
from poise.controller.search.trial import NOISE
from poise.controller.simulation.measures import T_MAX

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "settings"


def test_a_saved_scene_has_the_same_settings(registered, tmp_path):
    if bpy.app.version < (5, 0):
        pytest.skip("an older Blender cannot read the file, which 5.0 wrote")
    copy = shutil.copy(DATA / "scene.blend", tmp_path / "shot.blend")
    bpy.ops.wm.open_mainfile(filepath=str(copy))
    (scene,) = bpy.data.scenes
    found = json.loads((DATA / "settings.json").read_text("utf-8"))
    assert len(found) > 120
    for place, value in found.items():
        kept = reduce(getattr, place.split("."), scene.poise)
        same = pytest.approx(value, rel=1e-6) if isinstance(value, float) else value
        assert kept == same, place


def test_trials_have_what_is_chosen_of_a_simulation(registered):
    scene = example.build(bpy.context)
    settings = scene.poise
    settings.recovery_steps, settings.style, settings.rate, settings.noise = (
        False,
        "HEAVY",
        240,
        0.1,
    )
    shot = Shot(scene, shot_options(bpy.context, scene.objects["Character"]))
    sampling.run(shot.read())
    shot.prepare()
    chosen = shot.simulation.settings
    assert (chosen.recovery_steps, chosen.style, chosen.rate) == (False, "heavy", 240.0)
    assert chosen.noise == 0.1, "as it is shown, and as the command line has it"
    assert shot.performance().settings == chosen
    assert shot.performance().scenario.pushes and not shot.problem().scenario.pushes
    assert shot.problem().settings == replace(chosen, noise=NOISE, duration=T_MAX)
    shot.options = replace(shot.options, when_it_falls="limp")
    shot.prepare()
    assert shot.simulation.settings.when_it_falls == "limp"
    assert shot.problem().settings.when_it_falls == "stop", "a trial ends where it falls"


def test_scripts_find_all_properties_in_the_table(registered):
    """With what is chosen and set of objects and armatures."""
    page = (ROOT / "docs" / "td.md").read_text("utf-8")
    table = page.split("| property | holds |")[1].split("\n\n")[0]
    spans = set(re.findall(r"`([^`]+)`", table)) | set(re.findall(r"[A-Z_]{3,}", table))
    owners = {"Scene": "scene", "Object": "object", "Armature": "armature.data", "Action": "action"}
    for name, owner in owners.items():
        found = getattr(bpy.types, name).bl_rna.properties
        own = [prop for prop in found if prop.identifier.startswith("poise")]
        assert {f"{owner}.{prop.identifier}" for prop in own} <= spans
        told = [prop for prop in own if name != "Scene" and prop.identifier != "poise_weights"]
        groups = [prop.fixed_type for prop in told if prop.type == "POINTER"]
        for prop in (one for group in groups for one in group.properties):
            if prop.is_readonly or prop.identifier == "name":
                continue
            assert prop.identifier in spans, prop
            if prop.type == "ENUM" and prop.identifier != "limb":
                assert {item.identifier for item in prop.enum_items} <= spans, prop


#: What a new option is: this field, and where it acts.
FIELD = """    wobble: float = option(
        0.5, "Wobble (m)", "How far it wobbles [m]", Range("wobble", 0, 2, "m"), digits=2
    )
"""
OFFERED = '''
import bpy
import poise
from poise.addon.command import command_line
from poise.addon.example import scene as example
from poise.addon.kit import rows
from poise.addon.settings.properties import shot_options
from poise.addon.shots import outdated
from poise.addon.shots.shot import Shot
from poise.addon.sidebar import panels
import test_docs

poise.register()
scene = example.build(bpy.context)
scene.poise.frames, scene.poise.first_frame, scene.poise.last_frame = "CUSTOM", 1, 5
scene.poise.pushes.items.clear()
armature = scene.objects["Character"]
wobble = scene.poise.bl_rna.properties["wobble"]
assert (wobble.name, wobble.description) == ("Wobble (m)", "How far it wobbles [m]")
assert (wobble.default, wobble.hard_max) == (0.5, 2.0)


class Layout:
    """Notes what is drawn."""

    drawn = []

    def column(self, align):
        return self

    def label(self, **_options):
        pass

    def row(self):
        return self

    def prop(self, settings, name, expand):
        self.drawn.append(name)


rows.draw_options(Layout(), scene.poise, panels._CHOSEN_HERE)
assert "wobble" in Layout.drawn

before = outdated.settings_of(scene, armature, shot_options(bpy.context, armature))
scene.poise.wobble = 1.2
options = shot_options(bpy.context, armature)
now = outdated.settings_of(scene, armature, options)
assert outdated.changed(before, now) == ["Wobble (m)"]

shot = Shot(scene, options)
for _ in shot.read():
    pass
for _ in shot.simulate():
    pass
assert shot.simulation.settings.wobble == shot.problem().settings.wobble == 1.2
report = shot.report()
assert (report["wobble"], report["units"]["wobble"]) == (1.2, "m")

parser = command_line._parser("poise")
for verb in ("simulate", "optimize"):
    assert parser.parse_args([verb, "--wobble=1.5"]).wobble == 1.5
asked = parser.parse_args(["simulate", "--wobble=1.5"])
assert command_line._shot_options(asked, None).wobble == 1.5
assert command_line.main(["simulate", "--wobble=3"]) == 2
assert "| `--wobble M` | how far it wobbles [m] (0.5) |\\n" in list(test_docs.rows())
print("offered")
'''


def test_a_new_option_is_described_in_one_place(tmp_path):
    package = tmp_path / "poise"
    skip = shutil.ignore_patterns("__pycache__", ".*", "build", "tests", "docs", "demo")
    shutil.copytree(ROOT, package, ignore=skip)
    described = package / "controller" / "simulation" / "simulation_options.py"
    described.write_text(described.read_text("utf-8") + FIELD, "utf-8")
    folders = os.pathsep.join((str(tmp_path), str(ROOT / "tests")))
    done = subprocess.run(
        [sys.executable, "-c", OFFERED],
        env=os.environ | {"PYTHONPATH": folders},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.endswith("offered\n"), done.stderr[-2000:]
    assert "'3' is not a number from 0 to 2 m" in done.stderr
