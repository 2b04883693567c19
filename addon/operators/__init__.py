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
from .contacts import (
    POISE_OT_add_contact,
    POISE_OT_automatic_contacts,
    POISE_OT_begin_contact,
    POISE_OT_delete_contact,
    POISE_OT_drag_contacts,
    POISE_OT_end_contact,
    POISE_OT_find_contacts,
    POISE_OT_follow_contacts,
)
from .example import POISE_OT_example_scene
from .objects import POISE_OT_make_collider, POISE_OT_make_thing, POISE_OT_unmark
from .optimize import POISE_OT_keep_best, POISE_OT_optimize, POISE_OT_preview_best
from .pushes import (
    POISE_OT_add_push,
    POISE_OT_clear_pushes,
    POISE_OT_duplicate_push,
    POISE_OT_generate_pushes,
    POISE_OT_move_push,
    POISE_OT_remove_push,
)
from .rectify import (
    POISE_OT_discard_rectified,
    POISE_OT_forget_rectification,
    POISE_OT_keep_rectified,
    POISE_OT_push_here,
    POISE_OT_rectify,
)
from .rig import POISE_OT_save_map
from .robustness import POISE_OT_find_limit, POISE_OT_show_limit
from .simulate import POISE_OT_cancel, POISE_OT_inspect, POISE_OT_simulate
from .takes import POISE_OT_keep_take, POISE_OT_remove_take
from .verdict import POISE_OT_show_clean_flaw, POISE_OT_show_flaw
from .walks import POISE_OT_find_cycle

CLASSES = (
    POISE_OT_example_scene,
    POISE_OT_inspect,
    POISE_OT_save_map,
    POISE_OT_simulate,
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
    POISE_OT_find_contacts,
    POISE_OT_automatic_contacts,
    POISE_OT_begin_contact,
    POISE_OT_end_contact,
    POISE_OT_add_contact,
    POISE_OT_delete_contact,
    POISE_OT_drag_contacts,
    POISE_OT_follow_contacts,
    POISE_OT_find_limit,
    POISE_OT_show_limit,
    POISE_OT_bake,
    POISE_OT_show,
    POISE_OT_delete_bake,
    POISE_OT_discard,
    POISE_OT_keep_take,
    POISE_OT_remove_take,
    POISE_OT_find_cycle,
    POISE_OT_make_thing,
    POISE_OT_make_collider,
    POISE_OT_unmark,
    POISE_OT_add_push,
    POISE_OT_duplicate_push,
    POISE_OT_remove_push,
    POISE_OT_move_push,
    POISE_OT_clear_pushes,
    POISE_OT_generate_pushes,
)
