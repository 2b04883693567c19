# SPDX-License-Identifier: GPL-3.0-or-later
"""Every preset that comes with Poise holds the clip that it names, and tells its figures."""

import math
from pathlib import Path

import pytest
from helpers.standins import captured

import poise
from poise.controller import Character, Gains, Settings, Simulation
from poise.controller.search.clip_features import clip_features, suggest
from poise.controller.search.provenance import tuning_words
from poise.controller.simulation.measures import T_MAX
from poise.controller.simulation.scenario import PUSH_DURATION
from poise.experiments import table4

FOLDER = Path(poise.__file__).parent / "presets" / "gains"
FILES = sorted(FOLDER.glob("*.json"))
SECONDS = 3.0


@pytest.fixture
def read_motion(import_clip):
    """The function read_motion(name) -> Motion of a captured clip."""
    bpy = pytest.importorskip("bpy")
    from poise.addon.rigs import reference

    def read(name):
        return reference.read(bpy.context.scene, import_clip(name)).motion

    return read


def test_there_is_one_for_each_kind_of_motion():
    assert {path.stem for path in FILES} >= {"standing", "single_leg", "wide_stance"}
    assert len(FILES) <= 8


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_its_figures_are_told(path):
    gains = Gains.load(path)
    assert gains.name and gains.description
    tuned, figures = gains.tuned, gains.tuned["figures"]
    assert isinstance(tuned["clip"], str) and tuned["clip"]
    assert tuned["engine"]["pybullet"]
    assert tuned["balance"] == gains.balance
    assert figures["unseen_count"] >= 8
    numbers = [figures["unseen_mean"], figures["unseen_min"], tuned["rate"], tuned["duration"]]
    numbers += [*tuned["body"].values(), *tuned["features"].values()]
    assert all(math.isfinite(number) for number in numbers)
    assert figures["unseen_min"] <= figures["unseen_mean"] <= 2


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_tells_which_pushes_and_which_other_clips_it_holds(path):
    tuned = Gains.load(path).tuned
    limit, reuse = tuned["push_limit"], tuned["reuse"]
    impulse = limit["force"] * PUSH_DURATION / tuned["body"]["mass"]
    assert limit["speed"] == pytest.approx(impulse, abs=1e-3)
    assert limit["sequences"] == 10 and limit["passed"] >= 8
    assert tuned["disturbance"].get("pushes", 0) <= limit["force"] + 20
    tried = {*reuse["carried"], *reuse["fell"]}
    assert len(tried) == len(reuse["carried"]) + len(reuse["fell"])
    assert tried | {tuned["clip"]} == set(table4.CLIPS)
    words = tuning_words(Gains.load(path))
    assert "There it withstands " in words and "It also carries " in words


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_holds_its_clip(path, read_motion):
    motion = read_motion(Gains.load(path).tuned["clip"])
    character = Character.from_motion(motion)
    gains = Gains.load(path, character)
    settings = Settings(balance=gains.balance, noise=5.0, duration=SECONDS)
    recording = Simulation(character, motion, gains, settings).run()
    assert recording.success, recording.why()
    assert recording.summary()["reward"] >= 1.7
    assert clip_features(character, motion) == pytest.approx(gains.tuned["features"], abs=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_holds_its_clip_as_long_as_it_says(path, read_motion):
    """In a trial of the search's length, on noise that it has not seen."""
    motion = read_motion(Gains.load(path).tuned["clip"])
    character = Character.from_motion(motion)
    gains = Gains.load(path, character)
    settings = Settings(balance=gains.balance, noise=5.0, duration=T_MAX, seed=12345)
    recording = Simulation(character, motion, gains, settings).run()
    assert recording.success, recording.why()
    assert recording.summary()["reward"] >= gains.tuned["figures"]["unseen_min"] - 0.05


#: Of these the stand-ins are like enough, too.
STANDINS = ("stand", "arm", "wave", "hips_twist", "single", "squat")
FITTING = {
    "Standing": ("stand", "arm", "wave", "hips_twist"),
    "Single Leg": ("single", "knee_raises"),
    "Wide Stance": ("bow", "squat"),
}


@pytest.mark.parametrize(
    "clip",
    [
        "stand",
        "arm",
        "wave",
        "hips_twist",
        "single",
        "squat",
        *captured(*sum(FITTING.values(), ())),
    ],
)
def test_the_fitting_one_is_suggested(clip, read_motion):
    (name,) = (name for name, fitting in FITTING.items() if clip in fitting)
    motion = read_motion(clip)
    character = Character.from_motion(motion)
    found, why = suggest(clip_features(character, motion), [Gains.load(path) for path in FILES])
    assert found.name == name
    assert why.startswith("This clip ") and f"'{found.tuned['clip']}'" in why
