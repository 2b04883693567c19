# SPDX-License-Identifier: GPL-3.0-or-later
"""What Poise says, in the language of Blender's window.

Each addon/translations/*.po is a language, named by its code: de.po, or pt_BR.po for one that
differs by country. Blender looks up labels and tooltips by itself once they are registered. A
sentence with a name or a number in it exists only when it is said, so it is recognised by the
sentence that it was made from: the file has that with {0} for a text that was put in, and such as
{0:.2f} for a number. So English is spoken everywhere but at the window's edge, where `tr` stands,
and neither the physics nor the command line knows of languages.

`python -m poise.addon.translations` brings the files up to date with the source.
"""

import json
import re
from functools import cached_property, lru_cache
from inspect import get_annotations

import bpy

from .folders import PACKAGE, ROOT

FOLDER = ROOT / "addon" / "translations"

#: The names of properties are looked up here, where Blender has no other word for them: its Close
#: is of a window.
_CONTEXT = "Poise"
#: Where Blender looks for a text: labels of operators have a place of their own.
_CONTEXTS = ("*", "Operator", _CONTEXT)
PLACE = re.compile(r"\{(\d+)(:[^}]*)?\}")
_NUMBER = r"([-+]?[\d.]+(?:e[-+]?\d+)?%?|nan|inf)"
#: What was put in between quotation marks is a name, which stays.
_QUOTED = re.compile(r"'\{(\d+)\}'")
#: What parts a text, the larger parts first: sentences, clauses, a list, a name and what is said of
#: it.
_BETWEEN = [
    re.compile(gap)
    for gap in (r"(?<=\.) (?=[A-Z])", r"(?<=[:;]) ", r"(?<=,) ", r"(?<=') (?=[a-z])")
]
#: What may stand before and behind a part; and a figure in brackets behind one.
_AROUND = re.compile(r"([ ,:;]*)(.*?)([ ,:;.…]*)", re.DOTALL)
_FIGURE = re.compile(r"(.+) \(([^()]*)\)", re.DOTALL)
#: So many letters tell a sentence also where what was put in is not known.
_TELLING = 8
#: What is no mere figure with its unit.
_WORD = re.compile(r"(?!rad\b)[^\W\d_]{3}")

#: Both strings of an entry of a .po file, each on one line or more; and where two lines meet.
_STRINGS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
_ENTRY = re.compile(rf"^msgid {_STRINGS}msgstr {_STRINGS}", re.MULTILINE)
_JOINT = re.compile(r'"\s*\n"')

_catalogs = {}


def separate(cls):
    """Let a class that is not registered yet have Poise's own words for its properties."""
    for prop in get_annotations(cls).values():
        prop.keywords.setdefault("translation_context", _CONTEXT)


def register():
    """Tell Blender all translations."""
    texts = {}
    for path in FOLDER.glob("*.po"):
        entries = {text: said for text, said in read(path).items() if said}
        _catalogs[path.stem] = Catalog(entries)
        texts[path.stem] = {(c, text): said for text, said in entries.items() for c in _CONTEXTS}
    bpy.app.translations.register(PACKAGE, texts)


def unregister():
    """Undo `register`."""
    bpy.app.translations.unregister(PACKAGE)
    _catalogs.clear()


def tr(text):
    """A text as the window says it: in its language where that is known, else in English."""
    locale = bpy.app.translations.locale
    catalog = _catalogs.get(locale) or _catalogs.get(locale.partition("_")[0])
    if catalog is None or not bpy.context.preferences.view.use_translate_interface:
        return text
    return catalog.say(text)


class Catalog:
    """One language."""

    def __init__(self, entries):
        """entries: {text: translation}; both with {0}, {1:.2f}, … for what is put in."""
        self._entries = entries
        # Panels say the same again and again.
        self.say, self._known = lru_cache(1024)(self._say), lru_cache(4096)(self._find)

    @cached_property
    def _patterns(self):
        """Those of texts with places, the most telling ones first; nobody waits for those of a
        language that the window does not speak."""
        made = [_pattern(text, said) for text, said in self._entries.items() if PLACE.search(text)]
        return sorted(made, key=lambda entry: -entry[1])

    def _say(self, text):
        """A text translated; what is not known in it stays English, be it all of it."""
        said = self._known(text)
        if said is None:
            said = next((self._fill(*match) for match in self._matches(text, _TELLING)), text)
        return said

    def _find(self, text):
        """A text all of which is known, translated; else None."""
        if text in self._entries:
            return self._entries[text]
        for said, parts, names in self._matches(text):
            if self._knows(part for i, part in enumerate(parts) if i not in names):
                return self._fill(said, parts, names)
        if not _WORD.search(text):
            return text
        for between in _BETWEEN:
            parts = between.split(text)
            if len(parts) > 1 and self._knows(parts):
                return " ".join(map(self.say, parts))
        before, inner, after = _AROUND.fullmatch(text).groups()
        if inner != text:
            return before + self.say(inner) + after if self._knows([inner]) else None
        match = _FIGURE.fullmatch(text)
        if match and self._knows(match.groups()):
            return "{} ({})".format(*map(self.say, match.groups()))
        return self._find_small(text)

    def _find_small(self, text):
        """A text that is known with a small letter: "reading" begins a line as "Reading"."""
        said = self._known(text[0].lower() + text[1:]) if text[0].isupper() else None
        return said and said[0].upper() + said[1:]

    def _matches(self, text, letters=0):
        """What a text may have been made from, of at least so many letters: the translation, what
        was put in, and the indices of names in that."""
        for pattern, size, names, said in self._patterns:
            match = pattern.fullmatch(text) if size >= letters else None
            if match:
                yield said, match.groups(), names

    def _fill(self, said, parts, names):
        return said.format(*(p if i in names else self.say(p) for i, p in enumerate(parts)))

    def _knows(self, parts):
        return all(self._known(part) is not None for part in parts)


def _pattern(text, said):
    """A text with places as (pattern of what it can have become, letters of its own, indices of the
    names in it, translation to be filled with texts)."""
    pattern, end = "", 0
    for match in PLACE.finditer(text):
        pattern += re.escape(_plain(text[end : match.start()]))
        pattern += _NUMBER if match[2] else "(.*?)"
        end = match.end()
    pattern += re.escape(_plain(text[end:]))
    names = {int(index) for index in _QUOTED.findall(text)}
    size = len(PLACE.sub("", text))
    return re.compile(pattern, re.DOTALL), size, names, PLACE.sub(r"{\1}", said)


def _plain(text):
    return text.replace("{{", "{").replace("}}", "}")


def read(path):
    """{text: translation} of a .po file; empty translations are to be made yet."""
    found = _ENTRY.findall(path.read_text("utf-8"))
    # JSON writes strings as .po files do. All at once, since Blender is starting meanwhile.
    strings = (_JOINT.sub("", string.strip()) for entry in found for string in entry)
    texts = json.loads(f"[{','.join(strings)}]")
    return {text: said for text, said in zip(texts[::2], texts[1::2], strict=True) if text}
