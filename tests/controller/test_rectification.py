# SPDX-License-Identifier: GPL-3.0-or-later
"""Rectification: what is found is performed exactly so anywhere, and nothing of it gets lost."""

import json
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from poise.controller import Gains, Motion, Push, Scenario, Settings, Solid
from poise.controller.exceptions import CheckpointError, MotionError, PoiseError, SettingsError
from poise.controller.processes.workers import Remote, SerialExecutor, WorkerPool
from poise.controller.search import polling
from poise.controller.search import rectification as module
from poise.controller.search.correction import SIZE, UNITS
from poise.controller.search.rectification import PRESETS, Preset, Rectification, RectifySettings
from poise.controller.search.rollout import FALL, perform
from poise.controller.search.trial import Problem
from poise.controller.simulation.scenario import Collider, Thing


@pytest.fixture(autouse=True)
def quick(is_proof, monkeypatch):
    """A preset that finds little, in little time, and windows that are all searched; not for
    proofs."""
    if is_proof:
        return
    monkeypatch.setattr(module, "_GOOD", 0.0)
    monkeypatch.setitem(PRESETS, "draft", Preset(4, 1))
    for name in ("_SPREAD", "_WIDE"):
        monkeypatch.setattr(module, name, 0.02)


def lifts_a_leg(time):
    """Without shifting the weight first: there is something to rectify."""
    turn = np.zeros((len(time), 3))
    turn[:, 1] = 0.6 * np.sin(np.pi * time / 0.5) ** 2
    return {"thigh_l": -turn, "shin_l": 1.6 * turn, "trunk": 0.3 * turn}


@pytest.fixture
def problem(make_motion):
    """Half a second: five nodes after the first."""
    return Problem(make_motion(0.5, sway=lifts_a_leg), settings=Settings(rate=120.0))


@pytest.fixture(scope="module")
def beginning():
    """beginning(name, seconds) -> Problem of a captured clip's beginning, read through Blender."""
    pytest.importorskip("bpy")
    from poise.experiments import clips

    def cut(name, seconds):
        try:
            whole = clips.read(name)
        except SystemExit as error:
            pytest.skip(str(error))
        count = round(seconds * whole.rate) + 1
        parts = whole.rotations[:count], whole.positions[:count]
        return Problem(Motion(name, whole.rate, *parts), settings=Settings())

    return cut


def search(problem, executor=None, checkpoint=None, start=None, **settings):
    gains = Gains.default(problem.character)
    settings = RectifySettings(**{"preset": "draft"} | settings)
    return Rectification(problem, gains, settings, executor or SerialExecutor(), checkpoint, start)


def ended(going):
    """The same search, at its end."""
    for _ in going.run():
        pass
    return going


def replayed(problem, correction):
    """The Recording of a corrected reference in a world of its own."""
    gains = Gains.default(problem.character)
    return problem.simulation(gains, problem.settings.seed, correction=correction).run()


def same(one, other, count=None):
    """Whether two recordings are the same to the last bit, or their first samples."""
    names = ("body_positions", "body_rotations", "torques", "contacts", "contact_forces", "cops")
    count = count or max(len(one), len(other))
    return (
        all(
            np.array_equal(getattr(one, n)[:count], getattr(other, n)[:count], equal_nan=True)
            for n in (*names, "thing_positions", "thing_rotations")
        )
        and one.measures.values[:count] == other.measures.values[:count]
    )


def told(outcome):
    """Everything but how long it took."""
    report = outcome.as_dict()
    del report["wall"], report["cpu"]
    return report


class Judged(SerialExecutor):
    """Says itself what costs a fall: judge(number of the node that is searched) -> bool."""

    def __init__(self, judge):
        super().__init__()
        self.judge, self.asked = judge, []

    def submit(self, function, /, *args, **kwargs):
        if function.__name__ != "costs":
            return super().submit(function, *args, **kwargs)
        _, _, _, committed, candidates, horizon = args
        self.asked.append((len(committed), len(candidates), horizon))
        worst = FALL + 1 if self.judge(len(committed)) else 1.0
        found = [worst + float(np.square(window).sum()) for window in candidates]
        future = Future()
        future.set_result({"costs": found, "cpu": 0.0})
        return future


# --- Going on ------------------------------------------------------------------------------------


@pytest.mark.slow(captured=False)
def test_it_goes_from_node_to_node_to_the_end(problem):
    going = search(problem)
    assert going.progress == (0, 31) and going.time_left() is None
    nodes, lengths = [], []
    for node in going.run():
        nodes.append(node)
        lengths.append(len(going.recording))
    assert [node.sample for node in nodes] == [6, 12, 18, 24, 30]
    assert lengths == [7, 13, 19, 25, 31]
    assert nodes == going.nodes and all(node.evaluations == 4 + 5 for node in nodes)
    outcome = going.outcome()
    assert (outcome.ended, outcome.success, outcome.why) == ("done", True, "")
    assert outcome.reached == problem.motion.duration and outcome.evaluations == 45
    assert going.progress == (31, 31) and going.time_left() == 0
    assert outcome.correction.offsets.shape == (6, SIZE)
    assert not outcome.correction.offsets[0].any()
    assert np.abs(outcome.correction.offsets / list(UNITS.values())).max() <= 4
    json.dumps(outcome.as_dict(), allow_nan=False)
    assert going.poll()  # nothing happens any more


def test_poll_never_waits(problem):
    """With an executor that does nothing yet, it hands out what there is and comes back."""

    class Idle:
        futures = []

        def submit(self, *_):
            self.futures.append(Future())
            return self.futures[-1]

    going = search(problem, Idle())
    for _ in range(3):
        assert not going.poll()
    assert len(Idle.futures) == 1 and len(going.recording) == 0
    going.stop()
    assert going.poll() and Idle.futures[0].cancelled()


@pytest.mark.slow(captured=False)
def test_target_is_the_reference_with_what_was_found(problem):
    going = ended(search(problem))
    target = going.target_trajectory()
    assert len(target) == 31
    knee = problem.character.dof_names.index("knee_l_pitch")
    offset = going.correction.offsets[3, list(UNITS).index("knee_l_pitch")]
    turned = target.angles[18, knee] - problem.reference.trajectory.angles[18, knee]
    assert turned == pytest.approx(offset) and offset != 0


def test_what_is_good_as_it_is_is_not_searched(problem, monkeypatch):
    """A window that costs little for twice the horizon is taken without offsets; one that does
    later is searched until it does."""
    horizon = PRESETS["draft"].horizon
    monkeypatch.setattr(module, "_GOOD", 1e9)
    whole = ended(search(problem))
    assert not whole.correction.offsets.any()
    assert {node.evaluations for node in whole.nodes} == {4}
    asked = []
    monkeypatch.setattr(module, "_GOOD", 1.5)

    class Costly(SerialExecutor):
        def submit(self, function, /, *args, **kwargs):
            if function.__name__ != "costs":
                return super().submit(function, *args, **kwargs)
            *_, committed, candidates, ahead = args
            asked.append((len(committed), ahead))
            far = len(committed) == 3 and ahead > horizon
            future = Future()
            future.set_result({"costs": [2.0 if far else 1.0] * len(candidates), "cpu": 0.0})
            return future

    part = ended(search(problem, Costly()))
    assert [node.evaluations for node in part.nodes] == [4, 4, 4 + 5, 4, 4]
    assert part.correction.offsets[3].any() and not part.correction.offsets[1:3].any()


@pytest.mark.slow(captured=False)
def test_another_seed_finds_something_else(problem):
    found = []
    for seed in (0, 1, 0):
        found.append(ended(search(problem, seed=seed)).correction.offsets)
    assert np.array_equal(found[0], found[2]) and not np.array_equal(found[0], found[1])


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize("method", ["simplex", "sampling"])
def test_the_other_methods_find_their_way(problem, method):
    if method == "simplex":
        pytest.importorskip("scipy.optimize")
    going = ended(search(problem, method=method))
    assert going.ended == "done"
    assert same(going.recording, replayed(problem, going.correction))


@pytest.mark.slow(captured=False)
def test_more_generations_find_something_better(monkeypatch, problem):
    found = []
    for preset in (Preset(8, 1), Preset(8, 6)):
        monkeypatch.setitem(PRESETS, "draft", preset)
        found.append(next(search(problem).run()).cost)
    assert found[1] < found[0]


# --- Exactness -----------------------------------------------------------------------------------


@pytest.mark.slow(captured=False)
def test_replay_is_the_search_to_the_last_bit_here_and_elsewhere(problem):
    going = ended(search(problem))
    assert going.ended == "done"
    assert same(replayed(problem, going.correction), going.recording)
    with WorkerPool(1) as pool:
        last = pool.submit(
            Remote(perform),
            problem.to_bytes(),
            going.gains.as_dict(),
            going.correction.spacing,
            going.correction.offsets,
        ).result()["samples"][-1]
    assert np.array_equal(last[0], going.recording.body_positions[-1])
    assert np.array_equal(last[1], going.recording.body_rotations[-1])


@pytest.mark.slow
def test_any_number_of_workers_finds_the_same(make_motion):
    problem = Problem(make_motion(0.3, sway=lifts_a_leg), settings=Settings(rate=120.0))
    alone = ended(search(problem))
    for workers in (1, 3):
        with WorkerPool(workers) as pool:
            together = ended(search(problem, pool))
        assert told(together.outcome()) == told(alone.outcome())
        assert same(together.recording, alone.recording)


@pytest.mark.slow(captured=False)
def test_with_spheres_and_on_a_podium_it_is_the_same_too(make_motion):
    box = Collider("Podium", Solid("box", (0.6, 0.6, 0.05)), (0, 0, 0.05))
    sphere = Solid("sphere", (0.1,))
    things = tuple(
        Thing(f"{start}", sphere, 1.0, start=start, position=(0.6, 0, 1.4), velocity=(-4, 0, 1))
        for start in (0.0, 0.15)
    )
    motion = make_motion(0.4)
    motion = replace(motion, positions=motion.positions + [0, 0, 0.1])
    scenario = Scenario(things=things, colliders=(box,), floor=0.0)
    problem = Problem(motion, settings=Settings(), scenario=scenario)
    going = ended(search(problem))
    assert going.ended == "done"
    path = going.recording.thing_positions
    assert np.isnan(path[9, 1]).all() and np.isfinite(path[11, 1]).all()
    assert np.nanmax(np.diff(path[:, 0, 0])) * motion.rate > -2  # it was hit
    assert problem.character.ground == pytest.approx(0.1)
    assert same(replayed(problem, going.correction), going.recording)


# --- Going back ----------------------------------------------------------------------------------


def test_it_goes_back_where_all_fall_and_is_exact_afterwards(problem):
    tried = []

    def judge(node):
        tried.append(node)
        return node == 5 and tried.count(5) <= 4  # of its four tasks

    executor = Judged(judge)
    going, lengths = search(problem, executor), []
    while not going.poll():
        lengths.append(len(going.recording))
    assert going.ended == "done" and going.backtracks == 1
    assert 7 + 3 * 6 in lengths and lengths.index(13) < len(lengths) - 1
    back = lengths.index(25)
    assert 7 in lengths[back:]  # three nodes were taken back
    assert len(going.recording) == 31 and len(going.nodes) == 5
    assert [node.tries for node in going.nodes] == [0, 1, 1, 1, 1]
    # It searches harder where it has fallen: more candidates, farther ahead.
    assert {horizon for node, _, horizon in executor.asked} == {3, 6, 4, 8}
    assert same(replayed(problem, going.correction), going.recording)


def test_without_a_way_on_it_keeps_what_led_farthest(problem):
    going = search(problem, Judged(lambda node: node == 4))
    ended(going)
    outcome = going.outcome()
    assert (outcome.ended, outcome.success) == ("stuck", False)
    assert len(going.recording) == 3 * 6 + 1 and len(outcome.correction.offsets) == 4
    assert outcome.backtracks == 6
    assert outcome.why == (
        "No way on was found at 0.30 of 0.50 s (frame 19); see what the clip check says of these "
        "frames, or take a finer preset."
    )
    count = len(going.recording)
    assert same(replayed(problem, outcome.correction), going.recording, count)


def test_where_nothing_stands_at_all_there_is_the_first_frame(problem):
    going = ended(search(problem, Judged(lambda node: True)))
    outcome = going.outcome()
    assert (outcome.ended, outcome.reached, len(going.recording)) == ("stuck", 0.0, 1)
    json.dumps(outcome.as_dict(), allow_nan=False)


# --- Ending early --------------------------------------------------------------------------------


def test_a_budget_ends_it_with_what_there_is(problem, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(polling, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    going = search(problem, budget=25.0)
    for _ in going.run():
        clock[0] += 10.0
        assert going.time_left() <= 25
    outcome = going.outcome()
    assert (outcome.ended, outcome.wall) == ("budget", 30.0)
    assert outcome.why == (
        "The budget ran out at 0.30 of 0.50 s (frame 19); resume it, or give it more time."
    )
    count = len(going.recording)
    assert count == 19 and same(replayed(problem, outcome.correction), going.recording, count)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_a_budget_is_above_nothing(seconds):
    with pytest.raises(SettingsError, match=r"budget of .* is out of range: give"):
        RectifySettings(budget=seconds)


def test_what_is_not_known_is_refused():
    with pytest.raises(SettingsError, match="preset 'best': use draft, normal, fine"):
        RectifySettings("best")
    with pytest.raises(SettingsError, match="method 'luck': use cma, simplex, sampling"):
        RectifySettings(method="luck")


def test_it_can_be_stopped_before_anything_was_found(problem):
    going = search(problem)
    going.stop()
    outcome = going.outcome()
    assert (outcome.ended, outcome.reached) == ("stopped", 0.0)
    assert outcome.why.startswith("Stopped at 0.00 of 0.50 s (frame 1)")


# --- Checkpoints ---------------------------------------------------------------------------------


@pytest.mark.slow(captured=False)
def test_a_resumed_search_is_one_that_never_stopped(problem, tmp_path):
    whole = ended(search(problem))
    path = tmp_path / "search.json"
    for nodes in (1, 2, 4):
        going = search(problem, checkpoint=path)
        for _ in going.run():
            if len(going.nodes) == nodes:
                going.poll()  # on the way to the next one
                going.stop()
    going = ended(search(problem, checkpoint=path))
    assert going.ended == "done"
    assert told(going.outcome()) == told(whole.outcome())
    assert same(going.recording, whole.recording)
    assert [node.sample for node in going.nodes] == [node.sample for node in whole.nodes]
    going.forget()
    assert not list(tmp_path.iterdir())
    going.forget()


def test_a_search_is_resumed_behind_a_fall(problem, tmp_path):
    """What it has learned by going back is in the checkpoint."""

    def judge(node):
        return node == 5 and not tried.append(node) and len(tried) <= 4

    tried, path = [], tmp_path / "search.json"
    whole = ended(search(problem, Judged(judge)))
    tried.clear()
    going = search(problem, Judged(judge), path)
    for _ in going.run():
        if going.backtracks and len(going.nodes) == 3:
            going.stop()
    assert going.ended == "stopped"
    going = ended(search(problem, Judged(judge), path))
    assert told(going.outcome()) == told(whole.outcome())


def test_a_checkpoint_of_another_search_is_refused(problem, make_motion, tmp_path):
    path = tmp_path / "search.json"
    ended(search(problem, Judged(lambda node: False), path))
    longer = Problem(make_motion(0.6), settings=Settings())
    for other, settings in (
        (longer, {}),
        (problem, {"seed": 1}),
        (problem, {"method": "sampling"}),
    ):
        with pytest.raises(CheckpointError) as caught:
            search(other, checkpoint=path, **settings)
        assert str(caught.value) == (
            f"The checkpoint '{path}' belongs to another rectification: the clip, the gains, the "
            "settings or the version differ; delete it to start anew."
        )
    assert search(problem, checkpoint=path, budget=99.0).nodes  # more time is no other search


@pytest.mark.parametrize("content", ["", "{", "[]", "{}"])
def test_a_checkpoint_that_is_none_is_refused(problem, tmp_path, content):
    path = tmp_path / "search.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"is no.*: delete it to start anew"):
        search(problem, checkpoint=path)


def test_a_full_disk_ends_nothing(problem, tmp_path):
    path = tmp_path / "missing" / "search.json"
    going = ended(search(problem, Judged(lambda node: False), path))
    assert going.ended == "done"
    assert "cannot be written" in going.warning and str(path) in going.warning


# --- From the middle on --------------------------------------------------------------------------


@pytest.mark.slow(captured=False)
def test_from_a_moment_on_it_keeps_what_was_before(problem):
    earlier = ended(search(problem))
    push = Push(0.3, 0.1, (60.0, 0.0, 0.0))
    pushed = replace(problem, scenario=Scenario(pushes=(push,)))
    going = ended(search(pushed, start=(earlier.correction, 18), seed=3))
    assert going.ended == "done"
    offsets, before = going.correction.offsets, earlier.correction.offsets
    assert np.array_equal(offsets[:4], before[:4])
    assert not np.array_equal(offsets[4], before[4])
    assert same(going.recording, earlier.recording, 18 + 1)
    assert not same(going.recording, earlier.recording)
    assert same(replayed(pushed, going.correction), going.recording)
    assert [node.sample for node in going.nodes] == [24, 30]


@pytest.mark.slow(captured=False)
def test_from_a_moment_on_it_does_not_go_back_farther(problem):
    earlier = ended(search(problem))
    judge = Judged(lambda node: node == 5)
    going = ended(search(problem, judge, start=(earlier.correction, 12)))
    assert going.ended == "stuck"
    assert np.array_equal(going.correction.offsets[:3], earlier.correction.offsets[:3])
    assert min(node for node, *_ in judge.asked) == 3


def test_the_moment_is_in_the_clip(problem):
    earlier = ended(search(problem, Judged(lambda node: False)))
    for sample in (-1, 31):
        with pytest.raises(SettingsError, match="frame to rectify from is not in the clip"):
            search(problem, start=(earlier.correction, sample))


# --- What cannot be rectified --------------------------------------------------------------------


def test_a_body_that_is_held_cannot_be_rectified(problem):
    samples = np.full(len(problem.motion), 0.5)
    held = replace(problem, scenario=Scenario(weights={"arms": samples}))
    with pytest.raises(SettingsError, match="set all physics weights to 1, or simulate with"):
        search(held)


def test_virtual_forces_cannot_be_rectified(problem):
    other = replace(problem, settings=Settings(balance="virtual_forces"))
    gains = Gains.default(other.character, "virtual_forces")
    with pytest.raises(SettingsError, match="needs the balance mode 'foot_forces'"):
        Rectification(other, gains, RectifySettings("draft"), SerialExecutor())


def test_a_clip_that_starts_in_the_air_is_refused(problem):
    body = problem.motion.positions + np.where(np.arange(31) < 3, 0.5, 0)[:, None, None] * [0, 0, 1]
    with pytest.raises(MotionError, match="starts in the air"):
        search(replace(problem, motion=replace(problem.motion, positions=body)))


def test_workers_that_are_gone_are_told(problem):
    pool = WorkerPool(1)
    going = search(problem, pool)
    going.poll()
    pool.terminate()
    with pytest.raises(PoiseError):
        ended(going)


# --- Captured clips ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_rectified_leap_goes_farther_as_close_to_the_capture_as_balance_alone(beginning):
    problem = beginning("run_leap", 1.9)
    alone = problem.simulation(Gains.default(problem.character), 0).run()
    going = ended(search(problem))
    assert going.ended == "done"  # its landing may be too hard for a draft
    assert len(going.recording) > len(alone)
    local = "tracking_error_local"
    assert going.recording.summary()[local] < 1.1 * alone.summary()[local]


@pytest.mark.slow
def test_a_rectified_kick_stands_where_balance_alone_falls(beginning):
    problem = beginning("side_kick", 1.8)
    assert problem.simulation(Gains.default(problem.character), 0).run().fell_at < 1.7
    going = ended(search(problem))
    assert going.ended == "done" and going.recording.fell_at is None


@pytest.mark.slow
def test_the_whole_walk_stands_as_a_draft(beginning):
    problem = beginning("walk", 99.0)
    going = ended(search(problem))
    recording = going.recording
    assert going.ended == "done" and recording.fell_at is None
    assert recording.summary()["tracking_error_local"] <= 40
    masses = problem.character.masses
    wanted = masses @ problem.reference.smooth.centres[-1] / masses.sum()
    assert np.linalg.norm((recording.com[-1] - wanted)[:2]) <= 0.15
    assert same(replayed(problem, going.correction), recording)
