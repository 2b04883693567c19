# SPDX-License-Identifier: GPL-3.0-or-later
"""All texts that a translation needs: what Blender knows of Poise, and what the source says."""

import ast
import re
from functools import partial
from inspect import get_annotations
from itertools import chain
from pathlib import Path
from string import Formatter

import bpy

from ...controller.checks import clip_check
from ...controller.contacts.contact_plan import POINTS
from ...controller.falls.strength import CALLED
from ...controller.gains import regions
from ...controller.geometry import skeleton
from ...controller.reference.cleaning import CLEANING
from ...controller.search import robustness
from ...controller.search.trial import DISTURBANCES
from ...controller.simulation.measures import MEASURES
from .. import _classes
from ..blender.translations import PLACE
from ..overlays import overlay_bar
from ..rigs import rig
from ..scene import morphology
from ..settings.properties import CHOSEN
from ..shots.clean_up import CLEAN
from ..shots.robustness import LIMIT
from ..shots.tuning import SEARCH
from ..sidebar import panels

_ROOT = Path(__file__).parents[2]
_PACKAGE = __package__.removesuffix(".addon.translations")
#: Modules that nothing in the window says a word of: by a part of their paths.
_SILENT = (
    "_plot",
    "batch",
    "blender/options",
    "cluster",
    "command_",
    "example/",
    "files.",
    "requirements",
    "translat",
)
#: Functions all of whose texts are shown, and arguments that are.
_SHOWS = ("fact", "sentence", "table_row", "demand", "label", "poll_message_set", "report", "tr")
_ARGUMENTS = ("heading", "placeholder", "text")
#: Functions and arguments whose texts Blender knows, or are for the command line.
_KNOWN = ("add_argument", "info", "ArgumentTypeError")
_KNOWN_ARGUMENTS = ("description", "name", "told")
#: Texts for machines: identifiers, shaders, types, names of data, units of reports.
_MACHINES = re.compile(
    r"[A-Z_0-9]+|.*(void main|vec4|import poise|Poise check|Poise limit| \| None).*"
    r"|Poise (Target|Source)"
    r"|Object Transforms|rad, from.*|s, simulated|s per 1000.*|simulated s per s|m per scene unit"
    r"|--.*|\{0:\S+ (mm|m/s³)",
    re.DOTALL,
)
_ERRORS_OF_CODE = ("AttributeError", "ImportError", "KeyError", "TypeError", "ValueError")
_SENTENCE_BEFORE = re.compile(r"\{0\} [A-Z][a-z]")
_LETTERS = re.compile(r"[^\W\d_]{2}")


def collect():
    """{text: places in the source} in a settled order, with {0} or {0:.2f} for what is put in."""
    found = {}
    known = dict(_known_to_blender())
    # What a tooltip begins with is in the source once more.
    said = ((text, place) for text, place in _in_source() if not _begins(text, known))
    for text, place in chain(known.items(), said, _tables()):
        text = text.lstrip(" ,:;").rstrip()
        if _LETTERS.search(PLACE.sub("", text)) and not _MACHINES.fullmatch(text):
            found.setdefault(text, set()).add(place)
    return {text: sorted(found[text]) for text in sorted(found, key=lambda t: (min(found[t]), t))}


def _begins(text, tooltips):
    """Whether tooltips are made by adding to this."""
    return len(text) > 30 and any(t.startswith(text) and len(t) > len(text) for t in tooltips)


# --- What Blender knows --------------------------------------------------------------------------


def _known_to_blender():
    for cls in _classes():
        place = f"addon/{cls.__module__.partition('.addon.')[2].replace('.', '/')}.py"
        for text in chain(_own_texts(cls), *map(_property_texts, _properties(cls))):
            yield text, place
    for owner in (bpy.types.Scene, bpy.types.Object, bpy.types.Armature):
        for known in owner.bl_rna.properties:
            if known.identifier.startswith("poise"):
                for text in _property_texts(known):
                    yield text, "addon/settings/properties.py"


def _own_texts(cls):
    """Label and tooltip of an operator, a panel or a menu."""
    yield getattr(cls, "bl_label", "")
    if issubclass(cls, bpy.types.Operator):
        yield _operator(cls).description
    else:
        yield getattr(cls, "bl_description", "")


def _operator(cls):
    module, _, name = cls.bl_idname.partition(".")
    return getattr(getattr(bpy.ops, module), name).get_rna_type()


def _properties(cls):
    """The properties that a class of Poise defines itself."""
    own = (base for base in cls.__mro__ if base.__module__.startswith(_PACKAGE))
    names = {name for base in own for name in get_annotations(base)}
    rna = _operator(cls) if issubclass(cls, bpy.types.Operator) else cls.bl_rna
    return [known for known in rna.properties if known.identifier in names]


def _property_texts(known):
    if known.name != known.identifier:  # else it has none
        yield known.name
    yield known.description
    for item in known.enum_items_static if known.type == "ENUM" else ():
        yield from (item.name, item.description)


# --- What the source says ------------------------------------------------------------------------


def _in_source():
    for folder in ("addon", "controller"):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            place = path.relative_to(_ROOT).as_posix()
            if not any(word in place for word in _SILENT):
                tree = ast.parse(path.read_text("utf-8"))
                for text in _texts(tree, shown=False):
                    yield text, place


def _texts(node, shown):
    """Texts below a node. shown: also those of a single word."""
    if _is_text(node):
        inside = []
        text = _text(node, inside)
        if shown or " " in text.strip():
            yield _alone(text)
        for child in inside:
            yield from _texts(child, shown=True)
        return
    if isinstance(node, ast.Call):
        yield from _texts_of_call(node)
        return
    if isinstance(node, ast.Raise) and _name(getattr(node.exc, "func", None)) in _ERRORS_OF_CODE:
        return
    if isinstance(node, ast.Dict | ast.Subscript | ast.Compare | ast.Yield):
        shown = False
    shown = shown or _is_stage(node)
    for child in _children(node):
        yield from _texts(child, shown)


def _alone(text):
    """What stands behind another sentence is a sentence of its own."""
    if not _SENTENCE_BEFORE.match(text):
        return text
    renumbered = PLACE.sub(lambda place: f"{{{int(place[1]) - 1}{place[2] or ''}}}", text)
    return renumbered.partition(" ")[2]


def _texts_of_call(node):
    name = _name(node.func)
    if name.endswith("Property") or name in _KNOWN:
        return
    shown = name in _SHOWS or name.endswith("Error")
    yield from _texts(node.func, shown=False)
    for child in node.args:
        yield from _texts(child, shown)
    for keyword in node.keywords:
        if keyword.arg not in _KNOWN_ARGUMENTS:
            yield from _texts(keyword.value, keyword.arg in _ARGUMENTS)


def _is_stage(node):
    """Whether this says what a job is doing."""
    if isinstance(node, ast.Tuple):  # and how
        return len(node.elts) == 2 and _name(getattr(node.elts[1], "func", None)) != ""
    return isinstance(node, ast.Assign) and _name(node.targets[0]) == "doing"


def _children(node):
    """What of a node may be said: no docstrings, annotations, keys, or what Blender knows."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        first = node.body[0] if node.body else None
        documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        return node.body[1:] if documented else node.body
    if isinstance(node, ast.Assign) and _name(node.targets[0]).startswith("bl_"):
        return ()
    if isinstance(node, ast.Assign) and getattr(node.targets[0], "attr", "") == "name":
        return ()  # of Blender's data
    if isinstance(node, ast.AnnAssign):
        return filter(None, (node.value,))
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple):
        return node.value.elts  # no stage
    return ast.iter_child_nodes(node)


def _name(node):
    return getattr(node, "attr", getattr(node, "id", ""))


def _is_text(node):
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add) and (_is_text(node.left) or _is_text(node.right))
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)


def _text(node, inside):
    """The text of an expression; what is put in is appended to `inside`."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(partial(_part, inside), node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left, inside) + _text(node.right, inside)
    if not isinstance(getattr(node, "value", None), str):
        return _place(inside, node, "")
    try:
        fields = list(Formatter().parse(node.value))
    except ValueError:  # braces of something else
        return node.value
    text = ""
    for literal, field, form, _ in fields:
        text += literal
        if field is not None:
            text += _place(inside, ast.Constant(None), form)
    return text


def _part(inside, node):
    """A part of an f-string."""
    if isinstance(node, ast.FormattedValue):
        form = node.format_spec.values[0].value if node.format_spec else ""
        return _place(inside, node.value, form)
    return node.value.replace("{", "{{").replace("}", "}}")


def _place(inside, node, form):
    """The mark of something that is put in; form: how, if it is a number."""
    inside.append(node)
    return f"{{{len(inside) - 1}{':' if form else ''}{form}}}"


# --- Tables that are shown word by word ----------------------------------------------------------


def _tables():
    """Words that the source says by way of variables."""
    named = {
        "addon/sidebar/panels.py": [
            *(row[1] for row in (*panels.OTHER_ROWS, *panels.BAKE_ROWS)),
            *("given", "reshaped"),
        ],
        "addon/overlays/overlay_bar.py": overlay_bar.WORDS.values(),
        "addon/settings/gains.py": [
            name.replace("_", " ").capitalize() for name in skeleton.UNMIRRORED_DOFS
        ],
        "addon/scene/morphology.py": [
            *(kind.capitalize() for kind in morphology.KINDS),
            *chain(*((body.name, body.description) for body in morphology.known().values())),
        ],
        "addon/rigs/rig.py": [
            text for slot in rig.SLOTS for text in (rig.label(slot), rig.label(slot).capitalize())
        ],
        "controller/falls/strength.py": CALLED.values(),
        "addon/kit/rows.py": {one.zero for one in _described()},
        "controller/search/robustness.py": robustness.STEPS,
        "controller/simulation/measures.py": [
            text for one in MEASURES.values() for text in (one.label, one.ended)
        ],
        "controller/gains/regions.py": [name.title() for name in regions.REGIONS],
        "controller/contacts/contact_plan.py": POINTS,
        "controller/geometry/skeleton.py": [
            *skeleton.SIDE_WORDS.values(),
            *map(skeleton.joint_name, skeleton.SEGMENTS[1:]),
        ],
        "controller/reference/cleaning.py": [name.capitalize() for name in CLEANING],
        "controller/checks/clip_check.py": [label for label, _ in clip_check.MEASURES.values()],
    }
    for place, texts in named.items():
        for text in texts:
            yield text, place


def _described():
    """The options of which there are properties."""
    tables = CHOSEN, SEARCH, LIMIT, DISTURBANCES, CLEAN
    return [one for options in tables for one in options.values()]
