# SPDX-License-Identifier: GPL-3.0-or-later
"""Translations: all there, none too many, and found again in what is said at run time."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("bpy")

import poise
from poise.addon.blender import translations
from poise.addon.blender.translations import FOLDER, PLACE, Catalog, read
from poise.addon.translations.__main__ import content
from poise.addon.translations.collect import collect

UPDATE = "run `python -m poise.addon.translations`, then translate what is empty in {}"
FILES = sorted(FOLDER.glob("*.po"))
#: What shows a text as it is, and which argument that is.
SHOW = {
    "report": 1,
    "poll_message_set": 0,
    "status_text_set": 0,
    "header_text_set": 0,
    "progress": "text",
}


@pytest.fixture(scope="module")
def texts():
    """{text: where it is said} of all that is to be translated."""
    poise.register()
    yield collect()
    poise.unregister()


@pytest.fixture(scope="module")
def german():
    """The German Catalog."""
    return Catalog(read(FOLDER / "de.po"))


def test_german_is_complete_and_has_nothing_too_much(texts):
    known = read(FOLDER / "de.po")
    missing = [text for text in texts if not known.get(text)]
    needless = [text for text in known if text not in texts]
    assert not missing + needless, UPDATE.format("de.po")


def test_what_blender_and_the_source_say_is_collected(texts):
    of_all_kinds = {
        "Simulate Physics": "addon/operators/simulate.py",  # the label of an operator
        "Stop, and use the best gains that were found so far": "addon/operators/optimize.py",
        "Which frames to simulate": "addon/settings/properties.py",  # the tooltip of a property
        "Foot Forces": "addon/settings/properties.py",  # an item of an enumeration
        "Clip Check": "addon/sidebar/clip_check_panel.py",  # the label of a panel
        "Physics (Poise)": "addon/window/menus.py",
        "Save as Preset…": "addon/sidebar/tuning_panel.py",  # text= of a button
        "Keeper: {0:.2f} s, to frame {1:g}": "addon/kit/parts.py",  # a sentence
        "'{0}' has no animation: give it an action": "addon/jobs/modal.py",  # why it is grey
        "measuring the body": "addon/jobs/job.py",  # what a job is doing
        "A {0} of {1} is out of range: give {2}.": "controller/ranges.py",
        "both feet": "addon/overlays/overlay_bar.py",  # drawn over an editor
        "Left Shin": "addon/scene/pushes.py",
    }
    assert {text: place for text, place in of_all_kinds.items() if place in texts[text]} == (
        of_all_kinds
    )


@pytest.mark.parametrize(
    "term",
    [
        r"\bZMP\b",
        r"push_limit|object_limit|stance_error",
        r"[Rr]eward.*at most",
        r"it travels",
        r"gains as they are",
        r"kinematic correction",
    ],
)
def test_terms_of_papers_are_in_tooltips_alone(texts, term):
    """What an animator sees and does is said instead."""
    assert [text for text in texts if re.search(term, text)] == []


def test_what_is_for_machines_is_not_collected(texts):
    for word in ("INFO", "CHECKMARK", "void main", "import poise", "poise.simulate", "--gains"):
        assert not [text for text in texts if word in text]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_translations_put_in_nothing_that_the_text_has_not(path):
    for text, said in read(path).items():
        places, used = ({m[1] for m in PLACE.finditer(t)} for t in (text, said))
        assert used <= places, text
        assert said.count("{") == text.count("{") or places, text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_text_is_found_again_with_figures_in_its_places(path):
    entries = {text: said for text, said in read(path).items() if said}
    catalog, figures = Catalog(entries), [str(11 + i) for i in range(10)]
    for text, said in entries.items():
        plain = [PLACE.sub(r"{\1}", t).format(*figures) for t in (text, said)]
        assert catalog.say(plain[0]) == plain[1]


def test_files_are_written_as_they_are_read(tmp_path):
    found = {'say "no"\\yes\n': ["a.py", "b.py"], "new {0:.1f}": ["c.py"], "plain": ["c.py"]}
    known = {'say "no"\\yes\n': 'sag "nein"\\ja\n', "plain": "schlicht", "gone": "weg"}
    path = tmp_path / "xx_XX.po"
    path.write_text(content("xx_XX", found, known), "utf-8")
    assert read(path) == {text: known.get(text, "") for text in found}
    assert "#: a.py\n#: b.py\n" in path.read_text("utf-8")


def test_files_of_other_editors_are_read(tmp_path):
    path = tmp_path / "xx_XX.po"
    path.write_text(
        '# A note\nmsgid ""\nmsgstr ""\n"Language: xx\\n"\n\n#, python-brace-format\n'
        'msgid ""\n"one "\n"two"\nmsgstr ""\n"eins "\n"zwei"\n',
        "utf-8",
    )
    assert read(path) == {"one two": "eins zwei"}


@pytest.mark.parametrize(
    ("english", "expected"),
    [
        ("Reading: 45%", "Lesen: 45%"),
        ("Simulating: 1.20 of 3.00 s", "Simulieren: 1.20 von 3.00 s"),
        (
            "Fell at 1.20 s (frame 30): the feet slide at 0.524 m/s (at most 0.3).",
            "Gefallen bei 1.20 s (Bild 30): die Füße rutschen mit 0.524 m/s (höchstens 0.3).",
        ),
        (
            "Mend first: frames 3-4: the left knee flips (12 rad/s), and 2 more.",
            "Zuerst in Ordnung bringen: Bilder 3-4: linkes Knie springt um (12 rad/s), und 2 "
            "weitere.",
        ),
        (
            "Balance alone may not do: it leaves its place by 2.0 m. But physics "
            "weights below 1 cannot be rectified: balance alone.",
            "Balance allein genügt vielleicht nicht: es entfernt sich 2.0 m von seinem Platz. Aber "
            "Physikgewichte unter 1 lassen sich nicht berichtigen: nur Balance.",
        ),
        (
            "Poise is measuring the body: wait, or press Esc to stop it",
            "Poise arbeitet (Messen des Körpers): warten oder mit Esc abbrechen",
        ),
        (
            "The left foot twists by 23° at frame 41",
            "Linker Fuß verdreht sich um 23° bei Bild 41",
        ),
        ("Stood, but (4.20 s, to frame 126):", "Steht, aber (4.20 s, bis Bild 126):"),
        ("71.2 kg (from height)", "71.2 kg (aus der Größe)"),
        ("Checked with Despike, Ground cleaned: check again.", None),
        ("4:12 left", "noch 4:12"),
        (
            "The gains file 'x.json' has no 'stiffness'.",
            "Die Datei 'x.json' mit Verstärkungen hat kein 'stiffness'.",
        ),
    ],
)
def test_sentences_are_recognised(german, english, expected):
    expected = expected or "Geprüft mit Bereinigung: Glätten, Boden. Noch einmal prüfen."
    assert german.say(english) == expected


def test_names_stay(german):
    said = german.say("'Head' has no animation: give it an action")
    assert said == "'Head' hat keine Animation: ihm eine Aktion geben"
    assert german.say("Head") == "Kopf"
    assert german.say("Tuned on my clip.bvh") == "Für my clip.bvh"


def test_what_nobody_translated_stays_english(german):
    for text in ("", "–", "0.52 m/s", "Squat.001", "An error: of another of the kinds (3 of them)"):
        assert german.say(text) == text


def test_numbers_are_told_from_texts():
    catalog = Catalog({"{0:g} to {1:g}": "{0} bis {1}", "from {0} to {1}": "von {0} nach {1}"})
    assert catalog.say("1 to 2.5") == "1 bis 2.5"
    assert catalog.say("A to B") == "A to B"
    assert catalog.say("from 1 to 2") == "von 1 nach 2"


def test_the_window_speaks_its_language_if_that_is_wanted(monkeypatch):
    view = SimpleNamespace(use_translate_interface=True)
    window = SimpleNamespace(
        app=SimpleNamespace(translations=SimpleNamespace(locale="de_DE")),
        context=SimpleNamespace(preferences=SimpleNamespace(view=view)),
    )
    monkeypatch.setattr(translations, "bpy", window)
    known = {"de": Catalog({"air": "Luft"}), "pt_BR": Catalog({"air": "ar"})}
    monkeypatch.setattr(translations, "_catalogs", known)
    for locale, said in {"de_DE": "Luft", "de_AT": "Luft", "pt_BR": "ar", "pt_PT": "air"}.items():
        window.app.translations.locale = locale
        assert translations.tr("air") == said
    window.app.translations.locale = "de_DE"
    view.use_translate_interface = False
    assert translations.tr("air") == "air"


def test_languages_are_there_while_poise_is_registered(texts):
    assert texts and set(translations._catalogs) == {path.stem for path in FILES}
    poise.unregister()
    assert not translations._catalogs
    poise.register()


def test_properties_have_words_of_their_own(texts):
    from poise.addon.settings.properties import POISE_PG_settings

    style = POISE_PG_settings.bl_rna.properties["style"]
    assert (style.enum_items["CLOSE"].name, style.translation_context) == ("Close", "Poise")


def test_all_that_is_shown_as_it_is_was_translated():
    english = []
    for path in sorted(Path(poise.__file__).parent.glob("addon/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            where = SHOW.get(getattr(getattr(node, "func", None), "attr", None))
            if where is None:
                continue
            given = dict(enumerate(node.args)) | {word.arg: word.value for word in node.keywords}
            text = given.get(where)
            translated = getattr(getattr(text, "func", None), "id", "") == "tr"
            if text is not None and not translated and ast.unparse(text) != "None":
                english.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    assert not english, "put tr(...) around what is shown"
