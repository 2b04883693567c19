# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes `poise` one with a jaw, for tests/addon/test_another_segment.py: the two entries that it
takes are put into skeleton.py as it is imported. To be imported before anything of Poise's."""

import sys
from importlib.machinery import SourceFileLoader

_SEGMENT = b"""    (
        _ONCE,
        (
            Segment(
                "jaw",
                parent="head",
                joint="jaw",
                landmark="jaw",
                words="jaw",
                ranges={"pitch": (-0.1, 0.6)},
                stiffness=20.0,
                walking_stiffness=20.0,
                region="neck",
                group="head",
                mass=0.006,
                centre=0.5,
                gyration=(0.3, 0.3, 0.3),
                length=0.05,
                thickness=0.02,
                place=(0.02, 0.0, 0.02),
                minor=True,
            ),
        ),
    ),
"""
_LANDMARK = b'    (_ONCE, (Landmark("jaw", "neck", "head", "both", optional=True),)),\n'
_read = SourceFileLoader.get_data


def _read_with_jaw(self, path):
    if "skeleton.cpython" in path:
        raise OSError("compiled without a jaw")
    text = _read(self, path)
    if path.endswith("skeleton.py"):
        for table, entry in ((b"\n_LIMBS:", _SEGMENT), (b"\n_LANDMARKS:", _LANDMARK)):
            end = text.index(b"\n)\n", text.index(table)) + 1
            text = text[:end] + entry + text[end:]
    return text


SourceFileLoader.get_data = _read_with_jaw
sys.dont_write_bytecode = True
