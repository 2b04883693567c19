# SPDX-License-Identifier: GPL-3.0-or-later
"""Which object a bake is of, whatever that is called by now.

What is baked keeps a text by which its bakes know it: the name that it had at its first bake, and
a number that nothing else has. Pointers would keep alive what is deleted, and take the armature
along wherever its bake is appended.
"""

import re
import uuid

import bpy

PROPERTY = "poise_identity"
_TEXT = re.compile(r"(.*) #[0-9a-f]{12}", re.DOTALL)


def of(thing):
    """The text by which bakes know an object, which is given one if it has none of its own."""
    text = thing.get(PROPERTY)
    if text is None or owner(text) != thing:
        thing[PROPERTY] = text = f"{thing.name} #{uuid.uuid4().hex[:12]}"
    return text


def owner(text):
    """The object of this file that bakes know by a text; None if there is none.

    Duplicates have the text too: it is of the one that still has its name, or else of the one that
    was there first. Earlier versions knew names alone, and library overrides keep nothing else.
    """
    text = str(text)
    named = _TEXT.fullmatch(text)
    name = named[1] if named else text
    have = [o for o in bpy.data.objects if o.get(PROPERTY) == text and o.library is None]
    if have:
        return min(have, key=lambda thing: (thing.name != name, thing.session_uid))
    return bpy.data.objects.get((name, None))
