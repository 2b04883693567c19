# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring all .po files up to date: `python -m poise.addon.translations`.

What is new in the source gets an empty translation, to be filled in; what it has no more goes.
"""

from collections.abc import Iterable, Mapping

from .. import register
from ..blender.translations import FOLDER, read
from .collect import collect


def main() -> None:
    """Write the files, and tell how many texts wait for a translation."""
    register()
    found = collect()
    for path in sorted(FOLDER.glob("*.po")):
        known = read(path)
        path.write_text(content(path.stem, found, known), "utf-8")
        empty = sum(not known.get(text) for text in found)
        print(f"{path.name}: {len(found)} texts, {empty} without a translation")


def content(language: str, found: Mapping[str, Iterable[str]], known: Mapping[str, str]) -> str:
    """The text of a .po file. found: {text: where it is said}; known: {text: translation}."""
    lines = [
        "# SPDX-License-Identifier: GPL-3.0-or-later",
        'msgid ""',
        'msgstr ""',
        f'"Language: {language}\\n"',
        '"MIME-Version: 1.0\\n"',
        '"Content-Type: text/plain; charset=UTF-8\\n"',
        '"Content-Transfer-Encoding: 8bit\\n"',
    ]
    for text, places in found.items():
        lines += ["", *(f"#: {place}" for place in places)]
        lines += [f"msgid {_quoted(text)}", f"msgstr {_quoted(known.get(text, ''))}"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


if __name__ == "__main__":
    main()
