# SPDX-License-Identifier: GPL-3.0-or-later
"""The operators. What they do is elsewhere: here it is started, shown, stopped and reported."""

from .bake import (
    POISE_OT_bake,
    POISE_OT_bake_target,
    POISE_OT_delete_bake,
    POISE_OT_discard,
    POISE_OT_show,
)
from .clean_up import POISE_OT_clean_up
from .clip_check import POISE_OT_check_clip, POISE_OT_show_check, POISE_OT_show_finding
from .example import POISE_OT_example_scene
from .optimize import POISE_OT_keep_best, POISE_OT_optimize, POISE_OT_preview_best
from .rectify import (
    POISE_OT_discard_rectified,
    POISE_OT_forget_rectification,
    POISE_OT_keep_rectified,
    POISE_OT_push_here,
    POISE_OT_rectify,
)
from .rig import POISE_OT_save_map
from .robustness import POISE_OT_find_limit, POISE_OT_show_limit
from .simulate import (
    POISE_OT_cancel,
    POISE_OT_inspect,
    POISE_OT_simulate,
    POISE_OT_simulate_together,
)
from .takes import POISE_OT_keep_take, POISE_OT_remove_take
from .verdict import POISE_OT_show_clean_flaw, POISE_OT_show_flaw

CLASSES = (
    POISE_OT_example_scene,
    POISE_OT_inspect,
    POISE_OT_save_map,
    POISE_OT_simulate,
    POISE_OT_simulate_together,
    POISE_OT_cancel,
    POISE_OT_show_flaw,
    POISE_OT_show_clean_flaw,
    POISE_OT_rectify,
    POISE_OT_push_here,
    POISE_OT_keep_rectified,
    POISE_OT_discard_rectified,
    POISE_OT_forget_rectification,
    POISE_OT_bake_target,
    POISE_OT_optimize,
    POISE_OT_keep_best,
    POISE_OT_preview_best,
    POISE_OT_check_clip,
    POISE_OT_show_finding,
    POISE_OT_show_check,
    POISE_OT_clean_up,
    POISE_OT_find_limit,
    POISE_OT_show_limit,
    POISE_OT_bake,
    POISE_OT_show,
    POISE_OT_delete_bake,
    POISE_OT_discard,
    POISE_OT_keep_take,
    POISE_OT_remove_take,
)
