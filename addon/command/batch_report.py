# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of a batch: a summary as plain data, and as one page of HTML that needs nothing else.

Needs nothing of Blender's.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...controller.checks.verdict import COMPARED
from ...controller.search.arrival import arrival_words
from ...controller.simulation.holds import grasp_words
from ..terminal.command_progress import outside_told
from .batch_shot import CLEANED, DONE_WITH, FAILED, FELL, HUNG, LOG, RECORD, STOOD, result_name

#: First what somebody has to look at.
ORDER = (FAILED, HUNG, FELL, STOOD, CLEANED)

#: Figures of a shot that are shown, by their names in measures.md.
FIGURES = (
    *("reward", "fell_at", "foot_slide", "jitter", "tracking_error_local"),
    *("contact_slip", "place"),
)

#: Of whom something may be said though there is nothing wrong with it.
_BUT = {STOOD: "It stood", CLEANED: "It is cleaned"}


def summary(folder: Path, records: Sequence[dict[str, Any]], left: int = 0) -> dict[str, Any]:
    """What became of the shots of an output folder, as a dict for JSON.

    records: of `batch_shot.perform`. left: number of shots that were not tried.
    """
    shots = [_shot(folder, record) for record in records]
    shots.sort(key=lambda shot: (ORDER.index(shot["state"]), shot["shot"]))
    units: dict[str, str] = {}
    for record in records:
        units |= (record["report"] or {}).get("units", {})
    return {
        "made_by": "Poise batch",
        "versions": sorted({record["version"] for record in records}),
        "folder": str(folder),
        "totals": {state: sum(s["state"] == state for s in shots) for state in reversed(ORDER)}
        | {"left": left},
        "keepers": sum(shot["keeper"] is True for shot in shots),
        "keepers_helped": sum(shot["keeper"] is True and bool(shot["help"]) for shot in shots),
        "units": {name: units[name] for name in FIGURES if name in units} | {"seconds": "s"},
        "shots": shots,
    }


def _shot(folder: Path, record: dict[str, Any]) -> dict[str, Any]:
    report = record["report"] or {}
    verdict = report.get("verdict") or {}  # none of an earlier version
    name = record["shot"]
    paths = {"record": name + RECORD, "log": name + LOG}
    if record["state"] in DONE_WITH:
        paths["result"] = result_name(name)
    return {
        "shot": name,
        "source": record["source"],
        "state": record["state"],
        "why": record["why"],
        "filled": report.get("filled", record["state"] == STOOD),
        "keeper": verdict.get("keeper"),
        "compared_with": verdict.get("compared_with"),
        "help": outside_told(report),
        "waypoints": report.get("waypoints", []),
        "holds": report.get("holds", []),
        "not_kept_for": verdict.get("not_kept_for", []),
        "findings": [found["sentence"] for found in verdict.get("findings", [])],
        "seconds": record["seconds"],
        **{figure: report.get(figure) for figure in FIGURES},
        "optimized": (report.get("optimization") or {}).get("used"),
        "warnings": [*report.get("warnings", []), *filter(None, [report.get("gains_completed")])],
        "result": None,
        **{key: path if os.path.exists(folder / path) else None for key, path in paths.items()},
    }


# --- The page -----------------------------------------------------------------------------------

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d1f22; --soft: #666c74; --line: #dcdfe3;
  --card: #f6f7f8; --stood: #1a7f45; --fell: #c0392b; --failed: #8a4b00; }
@media (prefers-color-scheme: dark) { :root { --paper: #17181a; --ink: #e4e6e8; --soft: #9aa1a9;
  --line: #35383c; --card: #1f2123; --stood: #4cc27f; --fell: #ff7a6b; --failed: #e8a948; } }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.05rem; margin: 0; overflow-wrap: anywhere; }
.soft { color: var(--soft); } a { color: inherit; }
.totals { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: 1rem 0 1.5rem; padding: 0; }
.totals li { list-style: none; } .totals b { font-size: 1.5rem; margin-right: .3rem; }
article { border: 1px solid var(--line); border-left: 5px solid var(--tone); border-radius: 6px;
  background: var(--card); padding: .8rem 1rem; margin: 0 0 1rem; }
article p { margin: .4rem 0 0; } .state, .totals b { color: var(--tone); font-weight: 600; }
.stood, .cleaned { --tone: var(--stood); } .fell { --tone: var(--fell); }
.failed, .hung, .left { --tone: var(--failed); }
header { display: flex; justify-content: space-between; gap: 1rem; }
.strip { overflow-x: auto; margin-top: .6rem; } .strip svg { max-width: 100%; height: auto; }
dl { display: flex; flex-wrap: wrap; gap: .3rem 1.6rem; margin: .6rem 0 0; }
dl div { display: flex; gap: .4rem; } dt { color: var(--soft); }
dd { margin: 0; font-variant-numeric: tabular-nums; }
"""


def kept_words(total: dict[str, Any]) -> str:
    """What stands behind the number of those to keep, of `summary`."""
    helped = total["keepers_helped"]
    return "to keep" + (f", {helped} of them with help from outside" if helped else "")


def html(total: dict[str, Any], strips: Mapping[str, str], place: Path) -> str:
    """The page, as text.

    total: of `summary`. strips: {shot: text of an SVG}. place: folder that the page will be in,
    from which it links to results, records and logs.
    """
    articles = [_article(shot, total, strips, place) for shot in total["shots"]]
    totals = "".join(
        f'<li class="{state}"><b>{number}</b>{state}</li>'
        for state, number in total["totals"].items()
        if number
    )
    if total["keepers"]:
        totals += f'<li class="stood"><b>{total["keepers"]}</b>{kept_words(total)}</li>'
    name = escape(Path(total["folder"]).name)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="generator" content="Poise batch">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}: Poise batch</title><style>{_STYLE}</style></head>\n<body>"
        f'<h1>{name}</h1><p class="soft">Poise {escape(", ".join(total["versions"]))}, '
        f"{escape(total['folder'])}. Above in each picture the animation, below the result, "
        f'red from where it fell.</p><ul class="totals">{totals}</ul>\n'
        + "\n".join(articles)
        + "</body></html>\n"
    )


def _article(
    shot: dict[str, Any], total: dict[str, Any], strips: Mapping[str, str], place: Path
) -> str:
    links = [
        f'<a href="{escape(_link(Path(total["folder"], shot[key]), place))}">{label}</a>'
        for key, label in (("result", ".blend"), ("record", "report"), ("log", "log"))
        if shot[key]
    ]
    notes = [shot["why"], *shot["warnings"]]
    if shot["state"] in _BUT and shot["findings"]:
        notes.append(f"{_BUT[shot['state']]}, but {'; '.join(shot['findings'])}.")
    lines = "".join(f"<p>{escape(note)}</p>" for note in notes if note)
    strip = strips.get(shot["shot"])
    figures = "".join(
        f"<div><dt>{name}</dt><dd>{text}</dd></div>" for name, text in _figures(shot, total)
    )
    return (
        f'<article class="{shot["state"]}"><header><h2>{escape(shot["shot"])} '
        f'<span class="state">{shot["state"]}</span></h2><nav>{" · ".join(links)}</nav></header>'
        f"{lines}"
        + (f'<div class="strip">{strip}</div>' if strip else "")
        + f"<dl>{figures}</dl></article>"
    )


def _figures(shot: dict[str, Any], total: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, text with its unit) of each figure that the shot has."""
    if shot["keeper"] is not None:
        kept = "keeper" if shot["keeper"] else f"not kept for {', '.join(shot['not_kept_for'])}"
        compared = COMPARED.get(shot["compared_with"], "")  # none of an earlier version
        yield "verdict", kept + (compared and f", {compared}")
    if shot["help"]:
        yield "help", shot["help"]
    for one in shot["waypoints"]:
        yield "waypoint", arrival_words(**one)
    for one in shot["holds"]:
        yield "hold", grasp_words(**one)
    for name in (*FIGURES, "seconds"):
        value, unit = shot[name], total["units"].get(name, "")
        if value is None:
            continue
        unit = "" if unit == "1" else f" {unit.replace('^3', '³')}"
        if isinstance(value, dict):
            text = f"{_number(value['before'])} → {_number(value['after'])}"
        else:
            text = _number(value)
        yield {"seconds": "time"}.get(name, name), text + unit
    if shot["optimized"]:
        yield "gains", shot["optimized"]


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


def _link(path: Path, place: Path) -> str:
    """A relative link, or an absolute one to another drive."""
    try:
        return quote(Path(os.path.relpath(path, place)).as_posix())
    except ValueError:
        return path.as_uri()
