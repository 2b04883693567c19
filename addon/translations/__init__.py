# SPDX-License-Identifier: GPL-3.0-or-later
"""What Poise says, in the language of Blender's window.

Each .po file beside this module is a language, named as Blender names it: de_DE.po. Blender looks
up labels and tooltips by itself once they are registered. A sentence with a name or a number in it
exists only when it is said, so it is recognised by the sentence that it was made from: the file has
that with {0} for a text that was put in, and such as {0:.2f} for a number. So English is spoken
everywhere but at the window's edge, where `tr` stands, and neither the physics nor the command line
knows of languages.

`python -m poise.addon.translations` brings the files up to date with the source.
"""

import ast
import re
from functools import lru_cache
from pathlib import Path

import bpy

FOLDER = Path(__file__).parent

#: Where Blender looks for a text: labels of operators have a place of their own.
_CONTEXTS = ("*", "Operator")
PLACE = re.compile(r"\{(\d+)(:[^}]*)?\}")
_NUMBER = r"([-+]?[\d.]+(?:e[-+]?\d+)?%?|nan|inf)"
#: What was put in between quotation marks is a name, which stays.
_QUOTED = re.compile(r"'\{(\d+)\}'")
#: Between the sentences of a text, and between the clauses of a sentence.
_BETWEEN = (re.compile(r"(?<=\.) (?=[A-Z])"), re.compile(r"(?<=[:;]) "))
#: What may stand before and behind a part; and a figure in brackets behind one.
_AROUND = re.compile(r"([ ,:;]*)(.*?)([ ,:;.…]*)", re.DOTALL)
_FIGURE = re.compile(r"(.+) \(([^()]*)\)", re.DOTALL)

_catalogs = {}


def register():
    """Tell Blender all translations."""
    texts = {}
    for path in FOLDER.glob("*.po"):
        entries = {text: said for text, said in read(path).items() if said}
        _catalogs[path.stem] = Catalog(entries)
        texts[path.stem] = {(c, text): said for text, said in entries.items() for c in _CONTEXTS}
    bpy.app.translations.register(__package__, texts)


def unregister():
    """Undo `register`."""
    bpy.app.translations.unregister(__package__)
    _catalogs.clear()


def tr(text):
    """A text as the window says it: in its language where that is known, else in English."""
    catalog = _catalogs.get(bpy.app.translations.locale)
    if catalog is None or not bpy.context.preferences.view.use_translate_interface:
        return text
    return catalog.say(text)


class Catalog:
    """One language."""

    def __init__(self, entries):
        """entries: {text: translation}; both with {0}, {1:.2f}, … for what is put in."""
        self._entries = entries
        made = [text for text in entries if PLACE.search(text)]
        made.sort(key=lambda text: -len(PLACE.sub("", text)))  # the most telling ones first
        self._patterns = [(_pattern(text), *_places(text, entries[text])) for text in made]
        # Panels say the same again and again.
        self.say = lru_cache(maxsize=1024)(self._say)

    def _say(self, text):
        """A text translated, and what was put into it; itself if it is not known."""
        if text in self._entries:
            return self._entries[text]
        for between in _BETWEEN:
            parts = between.split(text)
            if len(parts) > 1 and all(map(self._knows, parts)):
                return " ".join(map(self.say, parts))
        for pattern, kept, said in self._patterns:
            match = pattern.fullmatch(text)
            if match:
                found = enumerate(match.groups())
                return said.format(*(part if i in kept else self.say(part) for i, part in found))
        before, inner, after = _AROUND.fullmatch(text).groups()
        if inner != text:
            return before + self.say(inner) + after
        match = _FIGURE.fullmatch(text)
        if match and self._knows(match[1]):
            return f"{self.say(match[1])} ({self.say(match[2])})"
        return self._other_case(text)

    def _other_case(self, text):
        """A text that is known with another first letter: "reading" begins a line as "Reading"."""
        said = self._entries.get(text[:1].swapcase() + text[1:], text)
        return said[0].upper() + said[1:] if text[:1].isupper() else said

    def _knows(self, text):
        """Whether a text is known, or is nothing but figures."""
        return self.say(text) != text or not re.search(r"[^\W\d_]{2}", text)


def _pattern(text):
    """What a text with places can have become."""
    pattern, end = "", 0
    for match in PLACE.finditer(text):
        pattern += re.escape(_plain(text[end : match.start()]))
        pattern += _NUMBER if match[2] else "(.*?)"
        end = match.end()
    return re.compile(pattern + re.escape(_plain(text[end:])), re.DOTALL)


def _places(text, said):
    """The places of a text that hold names; and its translation, to be filled with texts."""
    return {int(i) for i in _QUOTED.findall(text)}, PLACE.sub(r"{\1}", said)


def _plain(text):
    return text.replace("{{", "{").replace("}}", "}")


def read(path):
    """{text: translation} of a .po file; empty translations are to be made yet."""
    entries, key = {}, None
    fields = {"msgid": "", "msgstr": ""}
    for line in [*path.read_text("utf-8").splitlines(), ""]:
        if not line.startswith(("msg", '"')):
            if fields["msgid"]:
                entries[fields["msgid"]] = fields["msgstr"]
            fields, key = {"msgid": "", "msgstr": ""}, None
            continue
        word, quote, rest = line.partition('"')
        key = word.strip() or key
        # Only strings of one line stand here, which Python writes as .po files do.
        fields[key] += ast.literal_eval(quote + rest)
    return entries
