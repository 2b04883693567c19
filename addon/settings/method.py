# SPDX-License-Identifier: GPL-3.0-or-later
"""How a clip is to be performed: by balance alone, with gains for motion like it, or rectified.

A rectified performance takes minutes, so it is chosen only where nothing quicker will do: balance
alone performs first wherever it may, then with help from outside, and the search follows where
neither would be kept.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from ...controller.exceptions import GainsError
from ...controller.falls.behaviours import STOP
from ...controller.reference.gait import Endless
from ...controller.simulation.scenario import Scenario
from ...controller.simulation.simulation import Simulation
from ..shots.shot import Shot
from . import presets

#: What the scene and the command line offer.
METHODS = ("auto", "balance", "rectify")
#: What is said where a clip asks to be rectified, before and after balance alone will do.
_FIRST, _ENOUGH = " Balance alone is tried first.", " Balance alone was enough."
#: What is said where the clip's frames seem not to be those of its motion.
_DOUBTED = (
    " A search takes long, and would be for a motion that may be timed otherwise: mend that, or "
    "choose Rectify."
)
#: How a verdict begins before balance alone is tried, and once it would not be kept.
_WILL, _WAS = "Balance alone will do: ", "Balance alone was tried: by itself "


@dataclass(frozen=True)
class Choice:
    """What Automatic chose.

    method: "balance" or "rectify". why: in a sentence. gains: name of the preset that was taken
    for it, None for the gains in use. retry: rectify if what comes out is no keeper.
    """

    method: str
    why: str
    gains: str | None = None
    retry: bool = False

    def searching(self, why: str) -> "Choice":
        """The Choice once that will not do. why: in a sentence."""
        before = self.why.replace(_WILL, _WAS)
        return replace(self, method="rectify", why=f"{before} {why}", retry=False)


class Help(NamedTuple):
    """Help from outside that is tried.

    share: of the weight that it is at most. rate: of the control, at least [Hz]. told: what is said
    then, by whether it is kept.
    """

    share: float
    rate: float
    told: dict[bool, str]


#: One after the other, until one is kept. By a study, of captured clips that fall without help and
#: of PyBullet's: half of the weight keeps two and two, where a quarter keeps none of the captured;
#: all of it, at twice the usual rate, one and five more.
HELPS = (
    Help(
        0.5,
        0.0,
        {
            True: "With help from outside it is kept.",
            False: "With help from outside it is not kept either.",
        },
    ),
    Help(
        1.0,
        600.0,
        {
            True: "With help of up to all of its weight it is kept.",
            False: "With help of up to all of its weight it is not kept either.",
        },
    ),
)


def choose(shot: Shot) -> Choice:
    """Choose for a shot that was prepared, and mended -> Choice; it is prepared anew where other
    gains are better.

    Nothing of Blender's data is touched. Raises PoiseError.
    """
    simulation = shot.simulation
    if isinstance(simulation.motion, Endless):
        return Choice("balance", "An endless walk is kept up by balance, step by step.")
    found = shot.check()
    verdict = f"{shot.mended} {found.verdict}.".lstrip()
    doubted = _DOUBTED if found.doubts else ""
    but = refused(simulation) or doubted
    retry, told = not but, verdict + doubted
    if found.recommend == "balance":  # whoever is pushed out of that is to react, not to be mended
        return Choice("balance", verdict, retry=retry and not _disturbed(simulation.scenario))
    if found.recommend == "rectify":
        return Choice("balance", verdict + (but or _FIRST), retry=retry)
    if shot.options.gains is not None:
        return Choice("balance", f"{told} The gains in use are kept.", retry=retry)
    try:
        preset, _ = presets.suggest(shot.character, shot.reading.motion, shot.gains.balance)
    except GainsError:
        return Choice("balance", f"{told} No preset was tuned on such motion.", retry=retry)
    shot.prepare_with(preset.gains)
    return Choice("balance", f"{told} Its gains: '{preset.name}'.", preset.name, retry)


def look_back(shot: Shot) -> str:
    """Let the choice tell what balance alone has come to -> why a search has to follow, in a
    sentence; empty if it need not."""
    why = not_kept(shot)
    if why:
        shot.decide(shot.choice.searching(why))
    elif shot.choice is not None:
        verdict = shot.judge()
        kept = shot.recording.success and verdict is not None and verdict.keeper
        told = shot.choice.why.replace(_FIRST, _ENOUGH)
        shot.decide(replace(shot.choice, why=told if kept else told.replace(_WILL, _WAS)))
    return why


def stopped(choice: Choice) -> Choice:
    """The Choice of a shot that balance alone performs, since the search that followed was stopped.
    choice: that of before the search."""
    why = f"{choice.why.replace(_FIRST, '')} Rectifying was stopped."
    return replace(choice, method="balance", why=why, retry=False)


def not_kept(shot: Shot) -> str:
    """Why what balance alone did would not be kept, in a sentence; empty if it need not be."""
    if shot.choice is None or not shot.choice.retry:
        return ""
    if len(shot.recording) < 2:
        return ""  # nor do help or a search carry who falls at once
    if not shot.recording.success:
        return shot.recording.why()
    found = shot.judge().findings
    return f"By balance alone {found[0].sentence}." if found else ""


def helps(shot: Shot) -> tuple[Help, ...]:
    """What help from outside is to be tried, once `look_back` said why a shot would not be kept. A
    body that something pushes, meets or holds would feel it less."""
    if _disturbed(shot.simulation.scenario) or shot.simulation.settings.waypoints:
        return ()
    return HELPS


def _disturbed(scenario: Scenario) -> bool:
    """Whether something is to push, meet or hold the body."""
    return bool(scenario.pushes or scenario.things or scenario.limbs or scenario.holds)


def keeps_help(shot: Shot, first: Shot, tried: Help) -> bool:
    """Once help was simulated: whether that is to be kept. Else the shot has what balance alone
    did, first, and more help, or the search, has to follow."""
    verdict, choice = shot.judge(), shot.choice
    kept = bool(shot.recording.success and verdict is not None and verdict.keeper)
    why = f"{choice.why.replace(_FIRST, '')} {tried.told[kept]}"
    if not kept:
        before = shot.helped
        if shot.recording.success and (before is None or _rank(shot) > _rank(before)):
            shot.set_aside()
        shot.take(first)
    shot.decide(replace(choice, method="balance" if kept else choice.method, why=why))
    return kept


def take_better(shot: Shot) -> None:
    """Once a search has followed: go back to what balance did, alone or with help from outside, if
    that came out better, by how far it went, then by how many waypoints it came to, and then by the
    verdict's score."""
    first, found, told = shot.balanced(), _rank(shot), ""
    if shot.helped is not None and _rank(shot.helped) > _rank(first):
        farther = len(first.recording) < len(shot.helped.recording)
        told = "But with it it goes on to its end. " if farther else "But it is better with it. "
        first = shot.helped
    best = _rank(first)
    if best < found:
        return
    why = "Rectified it came out no better, so that is what is kept."
    if found[0] < best[0]:  # it was kept early, or found no way on
        why = "What was rectified does not go as far, so that is what is kept."
    if first is shot.helped:
        shot.take(first)
    shot.decide(replace(shot.choice, method="balance", why=f"{shot.choice.why} {told}{why}"))


def _rank(shot: Shot) -> tuple[int, int, float]:
    verdict = shot.judge()
    reached = sum(there for _, there in shot.arrivals)
    return len(shot.recording), reached, verdict.score if verdict else 0.0


def refused(simulation: Simulation) -> str:
    """Why a simulation cannot be rectified, as a further sentence; empty if it can be."""
    if simulation.weights:
        return " But physics weights below 1 cannot be rectified: balance alone."
    if simulation.settings.outside_help:
        return " A body that is helped from outside is not rectified: balance alone."
    if simulation.strength:
        return " But only a body with all of its strength can be rectified: balance alone."
    if simulation.settings.noise:
        return " But motion with motor noise cannot be rectified: balance alone."
    if simulation.settings.when_it_falls != STOP:
        return " A body that is to fall is not rectified: balance alone."
    if simulation.settings.balance != "foot_forces":
        return " But only the balance mode Foot Forces can be rectified: balance alone."
    return ""
