# SPDX-License-Identifier: GPL-3.0-or-later
"""What the documents name exists, and what exists is documented."""

import argparse
import re
import shlex
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted((*ROOT.glob("*.md"), *DOCS.glob("*.md")))
IDS = [str(page.relative_to(ROOT)) for page in PAGES]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_INDENTED = re.compile(r"^    (?! )(.+)$", re.MULTILINE)


@cache
def text_of(page):
    """The Markdown of a page."""
    return page.read_text(encoding="utf-8")


@cache
def prose_of(page):
    """The Markdown of a page without its code."""
    return re.sub(r"`[^`\n]+`", "code", _INDENTED.sub("", _FENCE.sub("", text_of(page))))


@cache
def headings(page):
    """(level, words) of all headings of a page."""
    found = re.findall(r"^(#+) (.+)$", _FENCE.sub("", text_of(page)), re.MULTILINE)
    return [(len(marks), words.strip()) for marks, words in found]


@cache
def anchors(page):
    """Where GitHub lets a link into a page point to."""
    seen, result = Counter(), set()
    for _, words in headings(page):
        kept = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        result.add(f"{kept}-{seen[kept]}" if seen[kept] else kept)
        seen[kept] += 1
    return result


def links(page):
    """(is an image, words, target) of each link."""
    return [(bool(mark), words, target) for mark, words, target in _LINK.findall(prose_of(page))]


def code_lines():
    """(page, line) of all shell code."""
    for page in PAGES:
        blocks = [code for kind, code in _FENCE.findall(text_of(page)) if kind != "python"]
        lines = _INDENTED.findall(_FENCE.sub("", text_of(page)))
        for line in (*lines, *"\n".join(blocks).splitlines()):
            yield page, line.strip()


def problems_of(page):
    """A sentence for each link of a page that leads nowhere."""
    for image, words, target in links(page):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        file = page.parent / path if path else page
        if not file.exists():
            yield f"'{target}' does not exist"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"'{target}': there is no such heading"
        if image and len(words) < 20:
            yield f"the image '{target}' is not described"


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_lead_somewhere(page):
    assert list(problems_of(page)) == []


def test_a_broken_link_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A b, c\n\n[x](#a-b-c) [y](#a-b) [z](no.md) ![pic](page.md)\n")
    assert list(problems_of(page)) == [
        "'#a-b': there is no such heading",
        "'no.md' does not exist",
        "the image 'page.md' is not described",
    ]


def test_every_picture_is_shown():
    shown = {(p.parent / t).resolve() for p in PAGES for image, _, t in links(p) if image}
    assert {path.name for path in DOCS.glob("*.*") if path.suffix != ".md"} == {
        path.name for path in shown
    }


def test_every_page_is_linked_from_the_readme():
    linked = {target.partition("#")[0] for _, _, target in links(ROOT / "README.md")}
    assert {f"docs/{page.name}" for page in DOCS.glob("*.md")} <= linked


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_sources_exist(page):
    named = re.findall(r"`((?:addon|controller|experiments|tests)/[\w/]+\.py)`", text_of(page))
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_make_targets_exist():
    rules = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    spans = [s for page in PAGES for s in re.findall(r"`(make [^`]+)`", text_of(page))]
    named = [line for _, line in code_lines() if line.startswith("make ")] + spans
    assert len(named) > 10
    targets = {re.match(r"make (?:--?\w+ )*([\w-]+)", line)[1] for line in named}
    assert targets <= set(rules)


def test_python_examples_are_python():
    blocks = [(p, code) for p in PAGES for kind, code in _FENCE.findall(text_of(p)) if kind]
    assert len(blocks) > 5
    for page, code in blocks:
        compile(code, str(page), "exec")


def test_the_example_of_the_library_runs(capsys):
    code = next(code for _, code in _FENCE.findall(text_of(DOCS / "researcher.md")))
    exec(compile(code, "researcher.md", "exec"), {})
    assert "kg, stood: True" in capsys.readouterr().out


def test_controls_are_called_what_they_are():
    blenders = {"edit", "preferences", "add-ons", "animation", "show overlays", "deutsch"}
    files = [path for name in ("addon", "controller") for path in (ROOT / name).rglob("*.py")]
    files += (ROOT / "presets").rglob("*.json")
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    said = {text.lower() for text in re.findall(r'"([^"\n]+)"', code)}
    for words in re.findall(r"\*([A-Z][^*\n]{1,40})\*", text_of(DOCS / "animator.md")):
        for name in re.split(r" ▸ | \| ", words.lower()):
            known = name in blenders or any(text.startswith(name) for text in said)
            assert known, f"'{words}' is not what Poise says"


# --- What needs Blender --------------------------------------------------------------------------


@cache
def parser():
    """The parser of the command line."""
    pytest.importorskip("bpy")
    from poise.addon.command.command_line import _parser

    return _parser("poise")


def verbs():
    """{name: parser} of the commands."""
    return next(a for a in parser()._actions if a.dest == "verb").choices


def options():
    """All options of all commands that are for people, but --help."""
    actions = [action for verb in verbs().values() for action in verb._actions]
    shown = [action for action in actions if action.help != argparse.SUPPRESS]
    return {name for action in shown for name in action.option_strings} - {"-h", "--help"}


def test_commands_in_examples_are_understood(capsys):
    commands = []
    for page, line in code_lines():
        found = re.match(r"(?:python -m |blender .*--command )?poise (.*)", line)
        if found:
            commands.append((page.name, found[1]))
    assert len(commands) > 15
    for page, command in commands:
        try:
            parser().parse_args(shlex.split(command, comments=True))
        except SystemExit:
            pytest.fail(f"{page}: poise {command}: {capsys.readouterr().err}")


def test_every_command_has_a_heading():
    named = {words for _, words in headings(DOCS / "td.md")}
    assert {f"poise {verb}" for verb in verbs()} <= named


def test_options_are_documented_and_exist():
    spans = re.findall(r"`(--[^`]+)`", text_of(DOCS / "td.md"))
    named = {re.match(r"--[\w-]*", span)[0] for span in spans} - {"--help"}
    assert sorted(named - options()) == []
    assert sorted(options() - named) == []


def test_described_options_are_in_tables_as_they_are_described():
    assert [row for row in rows() if row not in text_of(DOCS / "td.md")] == []


def rows():
    """A row of a table for each described option."""
    pytest.importorskip("bpy")
    from poise.addon.terminal.command_arguments import add_options

    for options in described():
        parser = argparse.ArgumentParser(add_help=False)
        add_options(parser, options)
        for action in parser._actions:
            values = "`, `".join(action.choices or ()) or action.metavar or ""
            shown = f"{action.option_strings[0]} {values}".strip()
            yield f"| `{shown}` | {action.help} |\n"


def described():
    """{name: Option} of each command that has such."""
    from poise.addon.command.command_optimize import LIMIT_OPTIONS
    from poise.addon.shots.shot import ShotOptions
    from poise.controller.clean_up.clean_up import CleanUpOptions
    from poise.controller.options import options_of
    from poise.controller.search.optimization import SearchSettings
    from poise.controller.search.robustness import LimitSettings
    from poise.controller.search.trial import DISTURBANCES

    owners = ShotOptions, SearchSettings, LimitSettings, CleanUpOptions
    return *map(options_of, owners), DISTURBANCES, LIMIT_OPTIONS


def test_measures_are_in_tables():
    from poise.controller.checks import verdict
    from poise.controller.simulation import measures

    judged = text_of(DOCS / "td.md").split("\n### Of the verdict")[1].split("\n### ")[0]
    trials = text_of(DOCS / "measures.md")
    rows = [(judged, name, one.unit) for name, one in verdict.MEASURES.items()]
    rows += [(trials, name, unit) for name, unit in measures.UNITS.items()]
    assert [name for page, name, unit in rows if f"| `{name}` | {unit} |" not in page] == []


def test_panels_are_documented_and_exist():
    pytest.importorskip("bpy")
    from poise.addon import _classes

    labels = {
        cls.bl_label
        for cls in _classes()
        if cls.__name__.startswith("POISE_PT_") and getattr(cls, "bl_label", "")
    }
    page = DOCS / "animator.md"
    section = text_of(page).split("## The tab, panel by panel")[1].split("\n## ")[0]
    named = set(re.findall(r"^###+ (.+)$", section, re.MULTILINE))
    assert named <= labels
    words = named | set(re.findall(r"\*([^*\n]+)\*", text_of(page)))
    assert sorted(labels - words) == []


def test_keys_of_reports_are_documented_with_their_unit():
    pytest.importorskip("bpy")
    from poise.addon.shots.shot import UNITS

    reports = text_of(DOCS / "td.md").split("\n## Reports")[1].split("\n## ")[0]
    plain = reports.replace("`", "")
    missing = [key for key in UNITS if f"`{key}`" not in reports]
    assert missing == []
    assert [f"{key} [{unit}]" for key, unit in UNITS.items() if unit not in plain] == []
