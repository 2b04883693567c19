# SPDX-License-Identifier: GPL-3.0-or-later
"""`poise batch`: which shots it takes, what it passes on, what it tells, and how it ends. Where the
shots do not matter, a function stands in for their processes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import bpy
import pytest
from helpers.commands import poise

from poise.addon.blender.locks import claimed
from poise.addon.command import batch_shot, command_batch, command_line
from poise.controller.body.adult import adult
from poise.controller.gains.gains import Gains
from poise.controller.processes.workers import processors

MAP = Path(__file__).parents[2] / "presets" / "rigs" / "biped.json"


def fake_perform(task, stop=None):
    """A record of what the shot's text says: stood, fell, failed or hung."""
    done = batch_shot.finished(task)
    if done:
        return done
    state, _, filled = (Path(task.source).read_text() or "stood").partition(" ")
    task.result.parent.mkdir(parents=True, exist_ok=True)
    if state in batch_shot.DONE_WITH:
        task.result.write_bytes(os.fsencode(task.name))
    task.log.write_text("log")
    record = batch_shot._record(
        task,
        state,
        "" if state in ("stood", "cleaned") else f"It {state} <here>.",
        seconds=2.0,
        fingerprint=batch_shot.fingerprint(task),
        strip="<svg xmlns='http://www.w3.org/2000/svg'/>" if state in ("stood", "fell") else "",
        report={
            "reward": 1.5,
            "filled": state == "stood" or bool(filled),
            "foot_slide": {"before": 0.25, "after": None},
            "units": UNITS,
            "optimization": {"used": "best"},
        }
        | VERDICTS.get(task.name, {}),
    )
    record |= {"owned": state in batch_shot.DONE_WITH}  # as of earlier versions
    task.record.write_text(json.dumps(record))
    return record


UNITS = {"reward": "1", "foot_slide": "m/s", "fps": "Hz"}
#: Of some shots; others were baked by a version that had none.
VERDICTS = {
    "kept.blend": {"verdict": {"keeper": True, "not_kept_for": [], "findings": []}},
    "helped.blend": {
        "verdict": {"keeper": True, "not_kept_for": [], "findings": []},
        "residual": 50.0,
        "residual_most": 300.0,
        "body": {"mass": 70.0},
    },
    "turned.blend": {
        "verdict": {
            "keeper": False,
            "not_kept_for": ["foot_turn"],
            "findings": [{"sentence": "the left foot twists by 23° at frame 41"}],
        }
    },
}


@pytest.fixture
def performed(monkeypatch):
    """The ShotTasks that were performed, by a stand-in."""
    tasks = []

    def perform(task, stop=None):
        tasks.append(task)
        return fake_perform(task, stop)

    monkeypatch.setattr(command_batch, "perform", perform)
    return tasks


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(*names, text=""):
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)


# --- Which shots --------------------------------------------------------------------------------


def test_shots_of_a_folder_in_order(folder, performed):
    make("in/b.blend", "in/a.BVH", "in/c.fbx", "in/d.glb", "in/e.gltf")
    make("in/b.blend1", "in/notes.txt", "in/.hidden.blend", "in/deep/er/a.blend", "in/out/x.blend")
    assert poise("batch", "in", "--output", "in/out") == 0
    assert [task.name for task in performed] == ["a.BVH", "b.blend", "c.fbx", "d.glb", "e.gltf"]
    performed.clear()
    assert poise("batch", "in", "--output", "in/out", "--recursive") == 0
    assert [task.name for task in performed] == ["deep/er/a.blend"], "the rest is done"
    assert Path("in/out/deep/er/a.blend").read_text() == "deep/er/a.blend"


def test_same_names_become_different_results(folder, performed):
    make("in/a.blend", "in/a.bvh", "other/a.bvh")
    assert poise("batch", "in", "other/a.bvh", "in/a.bvh", "--output", "out") == 0
    names = ["in/a.blend", "in/a.bvh", "other/a.bvh"]
    assert [task.name for task in performed] == names
    assert sorted(path.as_posix() for path in Path("out").rglob("*.blend")) == [
        *("out/in/a.blend", "out/in/a.bvh.blend", "out/other/a.bvh.blend")
    ]


def test_no_way_leads_out_of_the_output_folder(folder, performed, monkeypatch):
    make("x/a.bvh", "here/in/b.bvh")
    monkeypatch.chdir("here")
    assert poise("batch", "../x/a.bvh", "in/b.bvh", "../here/in/b.bvh", "--output", "../out") == 0
    assert [task.name for task in performed] == ["here/in/b.bvh", "x/a.bvh"]
    assert (folder / "out" / "x" / "a.bvh.blend").is_file()


def test_root_names_shots_the_same_in_every_task_of_a_farm(folder, performed):
    make("in/deep/a.bvh", "in/b.bvh")
    for shot in ("in/deep/a.bvh", "in/b.bvh"):
        assert poise("batch", shot, "--root", "in", "--output", "out", "--farm") == 0
    assert [task.name for task in performed] == ["deep/a.bvh", "b.bvh"]


# --- What is passed on --------------------------------------------------------------------------


def test_options_of_bake_are_passed_on_as_they_were_written(folder, performed):
    make("a.blend")
    given = ["--frames=-5:20", "--clean=ground,despike", "--interpolation=Bezier", "--source-keys"]
    given += ["--push=40,0.2,100,0,0", "--push=50,0.2,0,100,0,head", "--blend-in=3"]
    given += ["--armature=a b", "--walk=2min"]
    assert poise("batch", "a.blend", *given, "--output", "out") == 0
    passed = performed[0].arguments
    assert set(passed) == {*given} - {"--interpolation=Bezier"} | {"--interpolation=bezier"}
    assert performed[0].workers == ()
    command_line._parser("poise").parse_args(["bake", "a.blend", *passed])


def test_files_in_options_are_absolute_and_part_of_the_fingerprint(folder, performed):
    make("a.blend")
    Gains.default(adult()).save("my gains.json")
    assert poise("batch", "a.blend", "--gains", "my gains.json", "--output", "out") == 0
    path = str(folder / "my gains.json")
    assert performed[0].files == (path,)
    assert performed[0].arguments == (f"--gains={path}",)


def test_searches_share_the_processors(folder, performed, monkeypatch):
    monkeypatch.setattr(command_batch, "processors", lambda: 8)
    make("a.blend")
    for more, workers in (
        (("--optimize=60s", "--jobs=3"), ("--workers=2",)),
        (("--rectify=draft", "--jobs=20"), ("--workers=1",)),
        (("--method=auto",), ("--workers=8",)),
        (("--optimize=60s", "--workers=5"), ("--workers=5",)),
        ((), ()),
    ):
        assert poise("batch", "a.blend", *more, "--output", f"out{len(performed)}") == 0
        assert performed[-1].workers == workers
    assert processors() >= 1
    assert performed[0].timeout == 2 * 3600 + 60
    assert performed[-1].timeout == 2 * 3600


def test_which_program_bakes(folder, performed, monkeypatch):
    make("a.blend")
    poise("batch", "a.blend", "--output", "out")
    assert performed[0].program is None, "the bpy module: python -m poise"
    monkeypatch.setattr(command_batch, "_blender", lambda: "/usr/bin/blender")
    poise("batch", "a.blend", "--output", "out2")
    assert performed[1].program == ("/usr/bin/blender", "--background", "--command", "poise")


# --- How it ends, and what it tells -------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "status", "told"),
    [
        (("stood", "stood"), 0, "2 stood."),
        (("stood", "fell"), 3, "1 stood, 1 fell.\n  b.blend fell: It fell <here>."),
        (("stood", "fell on"), 0, "1 stood, 1 fell.\n  b.blend fell: It fell <here>."),
        (("fell on", "fell"), 3, "2 fell."),
        (("fell", "failed"), 1, "1 fell, 1 failed.\n  b.blend failed: It failed <here>."),
        (("stood", "hung"), 1, "1 stood, 1 hung.\n  b.blend hung: It hung <here>."),
    ],
)
def test_exit_status_and_last_words(folder, performed, capsys, texts, status, told):
    for name, text in zip(("in/a.blend", "in/b.blend"), texts, strict=True):
        make(name, text=text)
    assert poise("batch", "in", "--output", "out") == status
    assert told in capsys.readouterr().err
    assert poise("batch", "in", "--output", "out", "--farm") == 0, "it is on record"


def test_a_batch_may_clean_alone(folder, performed, capsys):
    make("in/a.blend", text="cleaned")
    arguments = ("batch", "in", "--output", "out", "--clean-only")
    assert poise(*arguments, "--com", "strong", "--frames=1:9", "--json", "night.json") == 0
    assert capsys.readouterr().err.splitlines()[-1] == "1 cleaned."
    (task,) = performed
    assert (task.verb, task.workers) == ("clean", ())
    assert set(task.arguments) == {"--com=strong", "--frames=1:9"}
    assert json.loads(Path("night.json").read_text())["totals"]["cleaned"] == 1
    performed.clear()
    assert poise(*arguments, "--com=strong", "--frames=1:9") == 0 and not performed, "it is done"
    assert poise(*arguments[:-1], "--frames=1:9") == 0 and performed[0].verb == "bake"
    for wrong, told in (
        (("--clean-only", "--noise=5"), "--clean-only simulates nothing: leave out --noise=5"),
        (("--com=off",), "--com=off is for --clean-only: leave it out, or say that too"),
    ):
        assert poise("batch", "in", "--output", "out", *wrong) == 2
        assert told in capsys.readouterr().err


def test_lines_in_a_log(folder, performed, capsys):
    make("in/a.blend", "in/b.bvh")
    poise("batch", "in/a.blend", "--root", "in", "--output", "out")
    capsys.readouterr()
    poise("batch", "in", "--output", "out")
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["1 of 2 shots are done already.", "[2/2] b.bvh stood, 2 s", "2 stood."]


def test_summary_as_json(folder, performed):
    make("in/a.blend", "in/b.bvh", "in/c.fbx")
    make("in/b.bvh", text="failed")
    assert poise("batch", "in", "--output", "out", "--json", "night.json") == 1
    told = json.loads(Path("night.json").read_text())
    assert told["totals"] == {
        "cleaned": 0,
        "stood": 2,
        "fell": 0,
        "hung": 0,
        "failed": 1,
        "left": 0,
    }
    assert [shot["shot"] for shot in told["shots"]] == ["b.bvh", "a.blend", "c.fbx"]
    assert told["shots"][0]["result"] is None and told["shots"][0]["log"] == "b.bvh.log"
    assert told["shots"][2]["result"] == "c.fbx.blend"
    assert told["units"] == {"reward": "1", "foot_slide": "m/s", "seconds": "s"}
    Path("in/b.bvh").write_text("stood")
    assert poise("batch", "in", "--output", "out", "--json", "night.json") == 0, "replaces its own"


def test_summary_tells_what_is_kept(folder, performed, capsys):
    make("in/a.blend", "in/kept.blend", "in/turned.blend")
    arguments = "in", "--output", "out", "--json", "night.json", "--report", "night.html"
    assert poise("batch", *arguments) == 0
    assert "3 stood, 1 to keep." in capsys.readouterr().err
    told = json.loads(Path("night.json").read_text())
    assert told["keepers"] == 1
    shots = {shot["shot"]: shot for shot in told["shots"]}
    assert [shots[f"{name}.blend"]["keeper"] for name in ("a", "kept", "turned")] == [
        None,
        True,
        False,
    ]
    assert shots["turned.blend"]["not_kept_for"] == ["foot_turn"]
    words = " ".join(Page(Path("night.html").read_text(encoding="utf-8")).words)
    assert "It stood, but the left foot twists by 23° at frame 41." in words
    assert "verdict not kept for foot_turn" in words and "verdict keeper" in words
    assert "1 to keep" in words


def test_who_was_helped_is_no_keeper_like_the_others(folder, performed, capsys):
    make("in/helped.blend", "in/kept.blend")
    arguments = "in", "--output", "out", "--json", "night.json", "--report", "night.html"
    assert poise("batch", *arguments) == 0
    assert "2 to keep, 1 of them with help from outside." in capsys.readouterr().err
    told = json.loads(Path("night.json").read_text())
    assert (told["keepers"], told["keepers_helped"]) == (2, 1)
    helped = "Help from outside: 50 N in the mean, 300 N at most (7% and 44% of its weight)"
    assert [shot["help"] for shot in told["shots"]] == [helped, ""]
    words = " ".join(Page(Path("night.html").read_text(encoding="utf-8")).words)
    assert "2 to keep, 1 of them with help from outside" in words and helped in words


class Page(HTMLParser):
    """What a page links to, loads and shows."""

    def __init__(self, text):
        super().__init__()
        self.links, self.tags, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("href", "src")]

    def handle_data(self, data):
        self.words.append(data)


def test_summary_as_a_page_that_needs_nothing_else(folder, performed):
    odd = "in/é 'q\" 日本 #1 <b>&.bvh"
    make("in/a.blend", odd)
    make("in/z.blend", text="failed")
    assert poise("batch", "in", "--output", "out", "--report", "pages.html") == 1
    text = Path("pages.html").read_text(encoding="utf-8")
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "b"} & {*page.tags} - {"b"}
    assert "prefers-color-scheme: dark" in text and "http://" not in text.replace(
        "http://www.w3.org/2000/svg", ""
    )
    assert len(page.links) == 3 + 3 + 2
    for link in page.links:
        assert Path(unquote(link)).is_file(), link
    words = "".join(page.words)
    assert "é 'q\" 日本 #1 <b>&.bvh" in words
    assert words.index("z.blend") < words.index("a.blend"), "those that failed come first"
    assert "It failed <here>." in words
    assert "0.25 → none m/s" in words and "gainsbest" in words


def test_collecting_the_records_of_variants(folder, performed, capsys):
    make("in/a.blend", "in/b.blend")
    for variant, shot in (("soft", "a"), ("soft", "b"), ("firm", "a")):
        shot = f"in/{shot}.blend"
        poise("batch", shot, "--root=in", "--farm", "--output", f"out/{variant}")
    make("out/other.poise.json", text='{"state": "stood"}')
    assert poise("batch", "--collect", "out", "--json", "j.json", "--report", "r.html") == 0
    told = json.loads(Path("j.json").read_text())
    assert [s["shot"] for s in told["shots"]] == ["firm/a.blend", "soft/a.blend", "soft/b.blend"]
    assert all(Path("out", shot["result"]).is_file() for shot in told["shots"])
    make("mine.html", text="precious")
    assert poise("batch", "--collect", "out", "--report", "mine.html") == 1
    assert Path("mine.html").read_text() == "precious"
    assert poise("batch", "--collect", "in") == 1
    assert "There are no records in 'in'" in capsys.readouterr().err


@pytest.fixture
def ctrl_c():
    """ctrl_c() does what the key does; what runs in the background may have inherited none."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_it_and_the_same_command_goes_on(
    folder, performed, monkeypatch, capsys, ctrl_c
):
    make("in/a.blend", "in/b.blend", "in/c.blend")

    def interrupted(task, stop):
        if task.name != "b.blend":
            return fake_perform(task)
        ctrl_c()
        assert stop.wait(60)
        return None

    with monkeypatch.context() as patch:
        patch.setattr(command_batch, "perform", interrupted)
        assert poise("batch", "in", "--output", "out", "--json", "night.json") == 1
    assert "Stopped: the same command goes on with those that are left." in capsys.readouterr().err
    assert json.loads(Path("night.json").read_text())["totals"]["left"] == 2
    assert poise("batch", "in", "--output", "out", "--json", "night.json") == 0
    assert [task.name for task in performed] == ["b.blend", "c.blend"]


# --- Bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ((), 2, "name shots, or folders of them"),
        (("in",), 2, "name an --output folder"),
        (("in", "--output=out", "--rectify=best"), 2, "invalid choice: 'best'"),
        (("in", "--output=out", "--budget=1min"), 2, "--budget needs --rectify"),
        (("in", "--output=out", "--jobs=0"), 2, "'0' is not a whole number from 1"),
        (("in", "--output=out", "--checkpoint=c"), 2, "--checkpoint is for a single shot"),
        (("in", "--output=out", "--noise=much"), 2, "'much' is not a number from 0"),
        (("in", "--output=out", "--collect=out"), 2, "--collect takes no shots"),
        (("empty", "--output=out"), 1, "There is no shot in '{}/empty': name a folder with .blend"),
        (("gone", "--output=out"), 1, "There is no file '{}/gone': check its name."),
        (("in/notes.txt", "--output=out"), 1, "'{}/in/notes.txt' is no shot: name .blend"),
        (("in", "--output=in"), 1, "'{}/in/a.blend' is a shot itself: name an --output folder"),
        (("in", "--recursive", "--output=in/old", "--overwrite"), 1, "'{}/in/old/a.blend' is in a"),
        (
            ("more/b.blend", "--root=more", "--output=more/old", "--overwrite"),
            1,
            "is in a fold",
        ),
        (
            ("in/a.blend", "--output=out", "--json=more/b.blend", "--overwrite"),
            1,
            "b.blend' is a shot",
        ),
        (("in", "--output=alias"), 1, "'{}/alias/a.blend' is a shot itself: name an --output"),
        (("in", "--output=out", "--report=in/a.blend", "--overwrite"), 1, "'{}/in/a.blend' is a s"),
        (("in", "--output=out", "--report=out/a.blend"), 1, "'{}/out/a.blend' is another file"),
        (("in", "--output=out", "--json=r", "--report=r"), 1, "'{}/r' is another file"),
        (("in", "--output=out", "--rig=map.json", "--json=map.json"), 1, "'{}/map.json' is an"),
        (("in", "--output=in/notes.txt"), 1, "The folder '{}/in/notes.txt' cannot be made ("),
        (("in", "--root=empty", "--output=out"), 1, "'{}/in/a.blend' is not below '{}/empty'"),
        (("twins", "--output=out"), 1, "'a.bvh' and 'a.bvh.blend' would both become '{}/out/a.bv"),
        (("in", "--output=out", "--report=in/notes.txt"), 1, "'{}/in/notes.txt' exists: name"),
        (("in", "--output=out", "--report=gone/r.html"), 1, "There is no folder '{}/gone'"),
        (("in", "--output=out", "--contacts=in/notes.txt"), 1, "in/notes.txt' is not JSON"),
        (("in", "--output=out", "--contacts=gone.json"), 1, "gone.json' cannot be read"),
        (("in", "--output=out", "--gains=in/notes.txt"), 1, "in/notes.txt' is not JSON"),
        (("in", "--output=out", "--gains=Bob"), 1, "There is no preset 'Bob' of gains: choose"),
        (("in", "--output=out", "--rig=gone.json"), 1, "gone.json' cannot be read"),
        (("in", "--output=out", "--rig=Bob"), 1, "There is no rig map named 'Bob'"),
        (("in", "--output=out", "--morphology=Bob"), 1, "There is no"),
    ],
)
def test_input_that_is_refused_before_any_work(
    folder, performed, capsys, arguments, status, message
):
    make(
        "in/a.blend",
        "more/b.blend",
        "more/old/b.blend",
        "in/old/a.blend",
        "in/notes.txt",
        "twins/a.bvh",
        "twins/a.bvh.blend",
    )
    Path("empty").mkdir()
    Path("alias").symlink_to("in", target_is_directory=True)
    Path("map.json").write_bytes(MAP.read_bytes())
    assert poise("batch", *arguments) == status
    told = re.sub(r"\s+", " ", capsys.readouterr().err)
    assert message.replace("{}", str(folder)) in told
    assert not performed
    assert Path("in/a.blend").read_text() == Path("in/notes.txt").read_text() == ""


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize(
    "source, name, options",
    [
        ("in/a.blend", "out/a.blend", ("--overwrite",)),
        ("in/a.blend", "out/a.blend.poise.json", ("--overwrite",)),
        ("in/a.blend", "out/a.blend.log", ()),
        ("in/a.blend", "night.json", ("--json", "night.json", "--overwrite")),
        ("map.json", "out/a.blend.poise.json", ()),
        ("map.json", "out/a.blend.log", ()),
        ("map.json", "night.html", ("--report", "night.html", "--overwrite")),
    ],
)
def test_no_link_leads_to_what_is_read(folder, performed, capsys, link, name, options, source):
    make("in/a.blend", text="precious")
    Path("map.json").write_bytes(MAP.read_bytes())
    Path("out").mkdir()
    before = Path(source).read_bytes()
    link(Path(source).absolute(), name)
    command = "batch", "in", "--output", "out", "--rig", "map.json", *options
    assert poise(*command) == 1
    assert re.search("is a shot itself|link to another file|another file", capsys.readouterr().err)
    assert Path(source).read_bytes() == before and not performed


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_no_result_replaces_what_a_shot_uses(folder, performed, capsys):
    """A library that lies where the result of another shot is to be."""
    for name in ("in", "out"):
        Path(name).mkdir()
    library = folder / "out" / "set.blend"
    thing = bpy.data.objects.new("set", None)
    bpy.data.libraries.write(str(library), {thing})
    shutil.copy(library, "in/set.blend")
    with bpy.data.libraries.load(str(library), link=True) as (_, into):
        into.objects = ["set"]
    bpy.context.scene.collection.objects.link(into.objects[0])
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "in" / "shot.blend"))
    before = library.read_bytes()
    assert poise("batch", "in", "--output", "out", "--overwrite") == 1
    told = re.sub(r"\s+", " ", capsys.readouterr().err)
    assert f"'{library}' is used by the shot 'shot.blend', and would be replaced" in told
    assert library.read_bytes() == before and not performed


def test_names_in_other_encodings_stop_no_batch(folder, performed, capsys):
    odd, long = os.fsdecode(b"w\xe4lk.bvh"), "n" * 200 + ".bvh"
    make(f"in/{odd}", "in/b.bvh", f"in/{long}")
    summaries = "--report", "night.html", "--json", "night.json"
    for _ in range(2):  # the second time all is done already
        assert poise("batch", "in", "--output", "out", *summaries) == 0
    names = [shot["shot"] for shot in json.loads(Path("night.json").read_text())["shots"]]
    assert sorted(names) == sorted([odd, "b.bvh", long])
    page = Path("night.html").read_text()
    assert "3 stood" in capsys.readouterr().err and "b.bvh" in page and long in page
    assert poise("batch", "--collect", "out", "--json", "night.json") == 0


@pytest.mark.skipif(sys.platform != "linux", reason="names may be longer, or shorter, elsewhere")
def test_names_too_long_for_the_disk_cost_their_shots_alone(folder, monkeypatch, capsys):
    """Of results, records or only what is not whole yet; in letters of one and of two bytes."""
    make(
        "in/a.blend", *(f"in/{'b' * count}.bvh" for count in (209, 241, 251)), f"in/{'é' * 121}.bvh"
    )

    def perform(task, stop):
        return fake_perform(task) if task.name == "a.blend" else batch_shot.perform(task, stop)

    monkeypatch.setattr(command_batch, "perform", perform)
    for _ in range(2):  # the second time one is done already
        assert poise("batch", "in", "--output", "out", "--json", "night.json") == 1
    shots = json.loads(Path("night.json").read_text())["shots"]
    over = {shot["shot"]: re.findall("shorten it by (.*) plain", shot["why"]) for shot in shots}
    assert over == {
        "a.blend": [],
        **{f"{'b' * (208 + count)}.bvh": [f"{count}"] for count in (1, 33, 43)},
        f"{'é' * 121}.bvh": ["34"],
    }
    assert "1 stood, 4 failed" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_no_summary_and_no_record(folder, performed, capsys):
    make("in/a.blend", "out/b.blend")
    os.mkfifo("pipe")
    os.mkfifo("out/b.blend.poise.json")
    for option in ("--report", "--json"):
        assert poise("batch", "in", "--output", "out", option, "pipe") == 1
        assert f"'{folder}/pipe' is a device or a pipe: name a file." in capsys.readouterr().err
    assert not performed
    assert poise("batch", "--collect", "out") == 1
    assert "There are no records in 'out'" in capsys.readouterr().err


def test_second_batch_on_one_output_folder(folder, performed, capsys):
    make("in/a.blend")
    Path("out").mkdir()
    with claimed(folder / "out" / ".poise-batch", "taken"):
        assert poise("batch", "in", "--output", "out") == 1
        message = f"Another batch writes to '{folder}/out': wait for it, or name another --output."
        assert message in capsys.readouterr().err
        assert poise("batch", "in", "--output", "out", "--farm") == 0, "farms share it"


def test_summary_that_cannot_be_written_is_told(folder, performed, monkeypatch, capsys):
    make("in/a.blend")

    def full(path, _text):
        raise command_batch.FileError(f"'{path}' cannot be written (No space left on device).")

    monkeypatch.setattr(command_batch, "write_text", full)
    assert poise("batch", "in", "--output", "out", "--report", "night.html") == 1
    out, told = capsys.readouterr()
    assert json.loads(out)["totals"]["stood"] == 1
    assert "(No space left on device). The summary is on standard output instead." in told
    assert poise("batch", "in", "--output", "out", "--report", "night.html", "--farm") == 1


def test_farm_task_ends_badly_if_nothing_is_on_record(folder, monkeypatch):
    make("in/a.blend")
    lost = partial(batch_shot.lost, why="The disk is full.")
    monkeypatch.setattr(command_batch, "perform", lambda task, stop: lost(task))
    assert poise("batch", "in", "--output", "out", "--farm") == 1


# --- With real shots ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.once
def test_shots_are_baked_by_processes_of_their_own(folder, import_clip, clips):
    """A clip, one that is no .blend at all, and one in which a body cannot stand."""
    import_clip("side_kick")
    os.mkdir("in")
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "in" / "fall.blend"))
    Path("in/broken.blend").write_bytes(b"BLENDER" + bytes(99))
    Path("in/é 'q\" 日本.bvh").write_bytes(clips["stand"].path.read_bytes())
    sources = {path: path.read_bytes() for path in Path("in").iterdir()}
    command = [sys.executable, "-m", "poise", "batch", "in", "--output=out", "--jobs=2"]
    command += ["--report=night.html", "--json=night.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stderr
    broken, fell, stood = json.loads(Path("night.json").read_text())["shots"]
    assert broken["why"].startswith(f"Blender {bpy.app.version_string} cannot open '{folder}/in/b")
    assert fell["state"] == "fell" and "Stopped at " in fell["why"] and fell["fell_at"] > 0
    assert stood["state"] == "stood" and stood["reward"] > 1.5
    assert stood["foot_slide"]["after"] < stood["foot_slide"]["before"]
    assert {path: path.read_bytes() for path in Path("in").iterdir()} == sources
    page = Path("night.html").read_text(encoding="utf-8")
    drawn = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.S)]
    assert len(drawn) == 2
    again = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert "2 of 3 shots are done already." in again.stderr
    assert json.loads(Path("night.json").read_text())["totals"]["stood"] == 1


@pytest.mark.slow
def test_workers_are_those_of_a_command_that_can_be_run(folder, clips):
    """The real parser takes what `batch` passes on, with a search: one that has no time."""
    os.mkdir("in")
    Path("in/stand.bvh").write_bytes(clips["stand"].path.read_bytes())
    command = [sys.executable, "-m", "poise", "batch", "in", "--output=out", "--optimize=8s"]
    done = subprocess.run(
        [*command, "--workers=2", "--frames=1:40"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode in (0, 3), done.stderr
    record = json.loads(Path("out/stand.bvh.poise.json").read_text())
    assert record["report"]["optimization"]["used"] in ("confirmed", "best", "start")
