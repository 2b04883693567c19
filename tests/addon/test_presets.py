# SPDX-License-Identifier: GPL-3.0-or-later
"""Presets of gains: the list, the files, the menu's operators and the sliders."""

import errno
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import bpy
import numpy as np
import pytest

from poise.addon.blender import folders, session
from poise.addon.blender.chosen import chosen_armature
from poise.addon.jobs.job import InspectJob, SimulateJob
from poise.addon.settings import gains as scene_gains
from poise.addon.settings import presets, properties
from poise.addon.sidebar import gains_panel
from poise.controller import Gains, GainsError
from poise.controller.body.adult import adult
from poise.controller.gains.gains import WEIGHTS
from poise.controller.gains.regions import REGIONS
from poise.controller.search.clip_features import clip_features
from poise.controller.search.provenance import tuning_words

SHIPPED = ["Single Leg", "Standing", "Wide Stance"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder for the user's presets."""
    folder = tmp_path / "user" / "gains"

    def user_resource(kind, path="", create=False):
        assert (kind, path) == ("CONFIG", "poise/gains")
        if create:
            folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    monkeypatch.setattr(bpy.utils, "user_resource", user_resource)
    presets.refresh()
    yield folder
    presets.refresh()


@pytest.fixture
def gains():
    return Gains.default(adult())


def names():
    return [preset.name for preset in presets.load_presets()]


def put(folder, name, content):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content, encoding="utf-8")
    presets.refresh()


# --- Files --------------------------------------------------------------------------------------


def test_the_shipped_ones_are_listed_first(gains):
    assert names() == SHIPPED
    presets.add("Arms", gains)
    assert names() == [*SHIPPED, "Arms"]
    assert [preset.shipped for preset in presets.load_presets()] == [True, True, True, False]


@pytest.mark.parametrize(
    "name, file",
    [
        ("Läufer 二", "Läufer 二.json"),
        ("a/b\\c:d*e?.f", "a_b_c_d_e_.f.json"),
        ("../../etc/x", "_.._etc_x.json"),
        ("con", "con_.json"),
        ("  two\n lines ", "two lines.json"),
        ("...", "_.json"),
        ("x" * 500, "x" * 60 + ".json"),
    ],
)
def test_names_of_any_letters(folder, gains, name, file):
    preset = presets.add(name, gains)
    assert [path.name for path in folder.iterdir()] == [file]
    assert preset.path == folder / file
    assert presets.find(preset.name).gains.as_dict() == gains.as_dict() | {
        "name": preset.name,
    }


@pytest.mark.parametrize("name", ["", "  ", "\n\t"])
def test_a_preset_needs_a_name(gains, name):
    with pytest.raises(GainsError, match="needs a name: type one"):
        presets.add(name, gains)


@pytest.mark.parametrize("name", ["Standing", "STANDING", " standing ", "Arms", "aRMS"])
def test_nothing_is_overwritten(folder, gains, name):
    presets.add("Arms", gains)
    before = (folder / "Arms.json").read_text()
    with pytest.raises(GainsError, match=r"There is a preset '.*' already: choose another"):
        presets.add(name, replace(gains, stiffness=0 * gains.stiffness))
    assert (folder / "Arms.json").read_text() == before
    assert len(list(folder.iterdir())) == 1


def test_names_that_become_the_same_file(folder, gains):
    presets.add("a:b", gains)
    with pytest.raises(GainsError, match="already"):
        presets.add("a?b", gains)


def test_removing(folder, gains):
    presets.add("Arms", gains)
    presets.remove("Arms")
    assert names() == SHIPPED
    assert not list(folder.iterdir())
    with pytest.raises(GainsError, match="There is no preset 'Arms' of gains: choose one of"):
        presets.remove("Arms")
    with pytest.raises(GainsError, match="'Standing' comes with Poise and cannot be removed"):
        presets.remove("Standing")
    assert "Standing" in names()


def test_a_broken_file_is_listed_with_its_error(folder):
    put(folder, "broken.json", "{")
    (preset,) = (p for p in presets.load_presets() if not p.shipped)
    assert (preset.name, preset.gains) == ("broken", None)
    assert "is not JSON" in preset.error
    with pytest.raises(GainsError, match="is not JSON"):
        presets.find("broken")
    presets.remove("broken")
    assert not list(folder.iterdir())


def test_two_files_of_the_same_name(folder, gains):
    for file in ("a.json", "b.json"):
        put(folder, file, json.dumps(gains.as_dict() | {"name": "Standing"}))
    assert names()[-2:] == ["Standing (2)", "Standing (3)"]
    assert presets.find("Standing").shipped
    presets.remove("Standing (3)")
    assert [path.name for path in folder.iterdir()] == ["a.json"]


def test_a_file_that_changes_is_read_again(folder, gains):
    presets.add("Arms", gains)
    put(folder, "Arms.json", json.dumps(gains.as_dict() | {"name": "Legs", "description": "new"}))
    assert presets.find("Legs").gains.description == "new"


def test_import_and_export(tmp_path, folder, gains):
    path = tmp_path / "from a friend.json"
    gains.save(path)
    assert presets.import_file(path).name == "from a friend"
    replace(gains, name="Bähm").save(path)
    assert presets.import_file(path).name == "Bähm"
    with pytest.raises(GainsError, match="There is a preset 'Bähm' already"):
        presets.import_file(path)
    path.write_text("hello")
    with pytest.raises(GainsError, match="is not JSON"):
        presets.import_file(path)
    assert len(list(folder.iterdir())) == 2


def test_a_folder_that_cannot_be_made(monkeypatch, gains):
    def refuse(*_args, create=False, **_more):
        if create:
            raise OSError(errno.EACCES, "Permission denied", "presets")
        return "none"

    monkeypatch.setattr(bpy.utils, "user_resource", refuse)
    presets.refresh()
    with pytest.raises(GainsError, match=r"'presets' for presets cannot be made \(Permission den"):
        presets.add("Arms", gains)
    assert names() == SHIPPED


def test_an_extension_has_a_folder_of_its_own(monkeypatch, tmp_path):
    asked = {}

    def extension_path_user(package, *, path="", create=False):
        asked.update(package=package, path=path, create=create)
        return str(tmp_path)

    monkeypatch.setattr(folders, "PACKAGE", "bl_ext.user_default.poise")
    monkeypatch.setattr(bpy.utils, "extension_path_user", extension_path_user)
    assert presets.user_folder(create=True) == Path(tmp_path)
    assert asked == {"package": "bl_ext.user_default.poise", "path": "gains", "create": True}


# --- The scene's gains --------------------------------------------------------------------------


@pytest.fixture
def settings(registered):
    """The gains of the scene."""
    return bpy.context.scene.poise.gains


@pytest.fixture
def measured(registered, import_clip):
    """A child of 1.05 m, measured."""
    armature = import_clip("wave")
    InspectJob(bpy.context.scene, properties.shot_options(bpy.context, armature)).run()
    return session.result_of(bpy.context.scene, armature).shot


def used():
    return scene_gains.view(bpy.context.scene).gains


def data():
    return scene_gains.data_of(bpy.context.scene.poise)


def test_defaults_follow_the_balance_mode(settings):
    assert data() is None
    assert used().as_dict() == Gains.default(adult()).as_dict()
    bpy.context.scene.poise.balance = "VIRTUAL_FORCES"
    assert used().as_dict() == Gains.default(adult(), "virtual_forces").as_dict()


def test_a_slider_makes_the_gains_the_scenes_own(settings):
    bpy.ops.poise.gains_choose(name="Standing")
    before = used()
    settings.frequency_arms = 3.0
    assert (settings.source, settings.preset) == ("CUSTOM", "Standing")
    assert scene_gains.label(bpy.context.scene.poise) == "Standing (changed)"
    assert settings.frequency_arms == pytest.approx(3.0)
    assert used().tuned is None, "the figures are not those of the changed gains"
    assert used().dual.tolist() == before.dual.tolist()
    arms = [name.split("_")[0] in REGIONS["arms"] for name in before.names]
    assert ((used().stiffness != before.stiffness) == arms).all()
    assert bpy.ops.poise.gains_reset() == {"FINISHED"}
    assert (settings.source, settings.preset) == ("PRESET", "Standing")
    assert used() is not before
    assert used().as_dict() == before.as_dict()


@pytest.mark.parametrize("region", REGIONS)
def test_sliders_of_a_region_are_independent(settings, region):
    frequency, damping = f"frequency_{region}", f"damping_{region}"
    old = getattr(settings, damping)
    setattr(settings, frequency, 1.7)
    assert getattr(settings, frequency) == pytest.approx(1.7)
    assert getattr(settings, damping) == pytest.approx(old)
    setattr(settings, damping, 0.8)
    assert getattr(settings, frequency) == pytest.approx(1.7)
    assert getattr(settings, damping) == pytest.approx(0.8)


@pytest.mark.parametrize("stance", scene_gains.STANCES)
@pytest.mark.parametrize("weight", WEIGHTS)
def test_a_weight_changes_alone(settings, stance, weight):
    before = used()
    setattr(settings, f"{stance}_{weight}", 77.0)
    expected = {name: getattr(before, name).copy() for name in scene_gains.STANCES}
    expected[stance][WEIGHTS.index(weight)] = 77.0
    for name, values in expected.items():
        assert getattr(used(), name).tolist() == values.tolist()


def test_a_raw_number_changes_alone(settings):
    before = used()
    settings.stiffness[3] = 12.5
    settings.damping[16] = 0.25
    stiffness, damping = before.stiffness.copy(), before.damping.copy()
    stiffness[3], damping[16] = 12.5, 0.25
    assert used().stiffness.tolist() == stiffness.tolist()
    assert used().damping.tolist() == damping.tolist()


def test_sliders_fit_the_body_at_hand(settings, measured):
    view = scene_gains.view(bpy.context.scene)
    assert view.measured and view.character is measured.character
    assert used().body == (measured.character.mass, measured.character.height)
    assert settings.stiffness[0] == pytest.approx(
        Gains.default(measured.character).stiffness[0], rel=1e-6
    )
    settings.frequency_trunk = 2.0
    options = properties.shot_options(bpy.context, chosen_armature(bpy.context)[0])
    assert options.gains == json.loads(settings.custom)
    assert options.balance is None


def test_own_gains_are_simulated(registered, import_clip):
    armature = import_clip("stand")
    bpy.context.scene.poise.frames = "CUSTOM"
    bpy.context.scene.poise.first_frame, bpy.context.scene.poise.last_frame = 1, 10
    bpy.context.scene.poise.gains.dual_trunk = 250.0
    SimulateJob(bpy.context.scene, properties.shot_options(bpy.context, armature)).run()
    shot = session.result_of(bpy.context.scene, armature).shot
    torque = shot.character.mass * shot.character.height / (adult().mass * adult().height)
    assert shot.simulation.gains.dual[2] == pytest.approx(250.0 * torque)


def test_own_gains_are_saved_with_the_file_and_undone(settings, tmp_path):
    bpy.ops.ed.undo_push(message="Before")
    settings.frequency_legs = 2.5
    bpy.ops.ed.undo_push(message="Slider")
    path = str(tmp_path / "shot.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path, copy=True)
    bpy.ops.ed.undo()
    assert bpy.context.scene.poise.gains.source == "DEFAULT"
    bpy.ops.wm.open_mainfile(filepath=path)
    assert bpy.context.scene.poise.gains.source == "CUSTOM"
    assert bpy.context.scene.poise.gains.frequency_legs == pytest.approx(2.5)


def test_tuned_gains_are_kept(settings, gains):
    tuned = {
        "clip": "arm",
        "body": {"mass": 71.0, "height": 1.75},
        "optimiser": {"seed": 0, "generations": 3},
        "figures": {"unseen_count": 8, "unseen_mean": 1.951, "unseen_min": 1.94},
    }
    scene_gains.keep(bpy.context.scene, replace(gains, tuned=tuned))
    assert scene_gains.label(bpy.context.scene.poise) == "Tuned on arm"
    assert tuning_words(used()) == (
        "Tuned on 'arm' for 1.75 m, 71 kg: score 1.95 in 8 new tries, 1.94 at least."
    )
    bpy.ops.poise.gains_add(name="Arms")
    assert presets.find("Arms").gains.tuned == tuned
    assert (settings.source, settings.preset) == ("PRESET", "Arms")


@pytest.mark.parametrize(
    "tuned, words",
    [
        (None, ""),
        ({"clip": 5}, ""),
        ({"clip": "arm"}, "Not tuned, tried on 'arm'."),
        (
            {"clip": "arm", "body": 3, "figures": {"unseen_count": "x"}},
            "Not tuned, tried on 'arm'.",
        ),
    ],
)
def test_whatever_a_file_tells_can_be_shown(gains, tuned, words):
    assert tuning_words(replace(gains, tuned=tuned)) == words


# --- Operators ----------------------------------------------------------------------------------


def refused(operator, message, **options):
    with pytest.raises(RuntimeError, match=message):
        operator(**options)


def test_the_menus_operators(settings, folder, tmp_path):
    operators = bpy.ops.poise
    settings.frequency_arms = 3.0
    assert not operators.gains_remove.poll()
    operators.gains_add(name="Weich")
    assert (settings.source, settings.preset) == ("PRESET", "Weich")
    assert settings.frequency_arms == pytest.approx(3.0)
    refused(operators.gains_add, "There is a preset 'Standing' already", name="Standing")
    operators.gains_export(filepath=str(tmp_path / "weich.json"))
    operators.gains_remove()
    assert not list(folder.iterdir())
    assert settings.source == "CUSTOM", "the scene keeps what it used"
    assert settings.frequency_arms == pytest.approx(3.0)
    operators.gains_choose(name="")
    assert settings.source == "DEFAULT"
    operators.gains_import(filepath=str(tmp_path / "weich.json"))
    assert (settings.source, settings.preset) == ("PRESET", "Weich")
    operators.gains_choose(name="Standing")
    assert not operators.gains_remove.poll(), "it comes with Poise"
    refused(operators.gains_choose, "There is no preset 'none'", name="none")
    assert settings.preset == "Standing"


def test_a_broken_preset_breaks_nothing(settings, folder, measured):
    put(folder, "broken.json", "{")
    refused(bpy.ops.poise.gains_choose, "is not JSON", name="broken")
    settings.source, settings.preset = "PRESET", "broken"
    with pytest.raises(GainsError, match="is not JSON"):
        data()
    assert settings.frequency_arms > 0, "a slider cannot complain"
    text = drawn()
    assert "is not JSON" in text.replace("\n", " ")
    assert "frequency_arms" not in text
    assert bpy.ops.poise.gains_remove() == {"FINISHED"}
    assert settings.source == "DEFAULT"


def test_a_preset_that_vanished(settings, gains, folder):
    presets.add("Arms", gains)
    bpy.ops.poise.gains_choose(name="Arms")
    (folder / "Arms.json").unlink()
    presets.refresh()
    assert "There is no preset 'Arms'" in drawn().replace("\n", " ")
    assert not bpy.ops.poise.gains_remove.poll()


@pytest.mark.parametrize(
    "text, message",
    [("{", "are damaged"), ("", "are damaged"), ("[]", "set of gains is not a gains file")],
)
def test_damaged_gains_of_a_scene(settings, text, message):
    settings.custom, settings.source = text, "CUSTOM"
    assert message in drawn().replace("\n", " ")
    settings.frequency_arms = 2.0
    assert settings.frequency_arms == pytest.approx(2.0)


def test_suggesting_a_preset(settings, import_clip):
    armature = import_clip("single")
    assert not bpy.ops.poise.gains_suggest.poll()
    InspectJob(bpy.context.scene, properties.shot_options(bpy.context, armature)).run()
    assert bpy.ops.poise.gains_suggest() == {"FINISHED"}
    assert (settings.source, settings.preset) == ("PRESET", "Single Leg")
    assert settings.reason.startswith("This clip ")
    text = drawn().replace("\n", " ")
    assert "This clip" in text and text.count("Tuned on 'knee_raises'") == 1
    settings.frequency_arms = 3.0
    assert settings.reason == ""
    bpy.context.scene.poise.balance = "VIRTUAL_FORCES"
    refused(bpy.ops.poise.gains_suggest, "No preset says on what kind of motion")


def test_presets_of_the_user_are_suggested_too(settings, gains, measured):
    """A clip of the user's own that was tuned before is the nearest to itself."""
    shot = session.result_of(bpy.context.scene, bpy.context.object).shot
    features = clip_features(shot.character, shot.reading.motion)
    presets.add("My Wave", replace(gains, tuned={"clip": "my wave", "features": features}))
    assert bpy.ops.poise.gains_suggest() == {"FINISHED"}
    assert settings.preset == "My Wave"
    assert "and 'my wave', which 'My Wave' is for," in settings.reason
    assert "presets it is the nearest, 0.0 apart, before 'Standing'" in settings.reason


# --- Panels -------------------------------------------------------------------------------------


class Layout:
    """Takes down what a panel draws; refuses properties and operators that do not exist."""

    def __init__(self, texts):
        self.__dict__.update(texts=texts)

    def prop(self, data, name, **_options):
        assert hasattr(data, name), name
        self.texts.append(name)

    def operator(self, name, icon="NONE", text="", **_options):
        getattr(bpy.ops.poise, name.split(".")[1]).get_rna_type()
        self.texts.append(f"{name} {text} {icon}")
        return SimpleNamespace()

    def label(self, text="", **_options):
        self.texts.append(text)

    def menu(self, name, text, **_options):
        assert hasattr(bpy.types, name)
        self.texts.append(text)

    def separator(self):
        self.texts.append("---")

    def _part(self, **_options):
        return Layout(self.texts)

    row = column = split = _part


def drawn():
    """All that the panels show now, as one text."""
    bpy.context.scene.poise.mode = "FULL"
    context = SimpleNamespace(
        region=SimpleNamespace(width=260),
        preferences=SimpleNamespace(system=SimpleNamespace(ui_scale=1.0)),
        scene=bpy.context.scene,
    )
    texts = []
    for cls in (c for c in gains_panel.CLASSES if issubclass(c, bpy.types.Panel)):
        poll = getattr(cls, "poll", None)
        if poll is None or poll.__func__(cls, context):
            texts.append(cls.bl_label)
            cls.content(None, Layout(texts), context, None, "")
    return "\n".join(texts)


def test_the_panels_show_all_sliders(settings):
    shown = drawn().splitlines()
    for name in (prop.identifier for prop in settings.bl_rna.properties):
        if name.startswith(("frequency", "damping", "single", "dual", "stiffness")):
            assert name in shown, name
    assert shown.count("stiffness") == shown.count("damping") == 18
    assert "For a body of 1.73 m until this one is measured." in drawn().replace("\n", " ")
    assert "Default" in shown


def test_the_panels_of_a_measured_body(settings, measured):
    bpy.ops.poise.gains_choose(name="Standing")
    text = drawn().replace("\n", " ")
    assert "tried on 'arm' for 1.73 m, 64 kg: score" in text
    assert "until this one is measured" not in text


def test_the_menu_lists_all_presets(settings, folder, gains):
    presets.add("Arms", gains)
    put(folder, "broken.json", "{")
    bpy.ops.poise.gains_choose(name="Arms")
    texts = []
    menu = SimpleNamespace(layout=Layout(texts))
    gains_panel.POISE_MT_gains.draw(menu, bpy.context)
    choose = gains_panel.POISE_OT_gains_choose
    assert texts[:9] == [
        f"{choose.bl_idname} Default NONE",
        "---",
        *(f"{choose.bl_idname} {name} NONE" for name in SHIPPED),
        "---",
        f"{choose.bl_idname} Arms CHECKMARK",
        f"{choose.bl_idname} broken ERROR",
        "---",
    ]

    def tooltip(name):
        return choose.description(bpy.context, SimpleNamespace(name=name))

    assert "is not JSON" in tooltip("broken")
    assert "'arm' for 1.73 m" in tooltip("Standing")
    assert "that nobody tuned" in tooltip("")
    assert tooltip("Arms") == "A preset of your own"


def test_tooltips_and_units(settings):
    for prop in settings.bl_rna.properties:
        if prop.identifier in ("rna_type", "name"):
            continue
        assert len(prop.description) > 10 and not prop.description.endswith("."), prop.identifier
        unit = re.search(r"\((.+)\)$", prop.name)
        if unit:
            assert prop.description.endswith(f"[{unit.group(1)}]"), prop.identifier
    for cls in gains_panel.CLASSES:
        if issubclass(cls, bpy.types.Operator):
            rna = getattr(bpy.ops.poise, cls.bl_idname.split(".")[1]).get_rna_type()
            assert len(rna.description) > 20, cls.bl_idname


def test_a_job_keeps_its_gains(settings, import_clip):
    armature = import_clip("stand")
    job = SimulateJob(bpy.context.scene, properties.shot_options(bpy.context, armature))
    job.start()
    for operator in (bpy.ops.poise.gains_choose, bpy.ops.poise.gains_add):
        assert not operator.poll()
    job.cancel()
    assert bpy.ops.poise.gains_choose.poll()


def test_sliders_ask_once(settings, monkeypatch):
    """All sliders of a drawing share one reading of the gains."""
    scene_gains.view(bpy.context.scene)
    reads = []
    original = Gains.default.__func__
    monkeypatch.setattr(Gains, "default", classmethod(lambda *a: reads.append(a) or original(*a)))
    values = [getattr(settings, f"frequency_{region}") for region in REGIONS]
    assert np.isfinite(values).all()
    assert not reads
