# SPDX-License-Identifier: GPL-3.0-or-later
"""Panels and operators of what surrounds and directs a character."""

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
from .holds import POISE_OT_add_hold, POISE_OT_go_to_hold, POISE_OT_remove_hold
from .marked import (
    POISE_OT_add_act,
    POISE_OT_add_get_up,
    POISE_OT_remove_act,
    POISE_OT_remove_get_up,
)
from .objects import POISE_OT_make_collider, POISE_OT_make_thing, POISE_OT_unmark
from .play import POISE_OT_play, POISE_OT_save_script
from .pushes import (
    POISE_OT_add_push,
    POISE_OT_clear_pushes,
    POISE_OT_duplicate_push,
    POISE_OT_generate_pushes,
    POISE_OT_move_push,
    POISE_OT_remove_push,
)
from .walks import POISE_OT_find_cycle
from .waypoints import (
    POISE_OT_add_waypoint,
    POISE_OT_go_to_waypoint,
    POISE_OT_remove_waypoint,
)

OPERATORS = (
    POISE_OT_find_contacts,
    POISE_OT_automatic_contacts,
    POISE_OT_begin_contact,
    POISE_OT_end_contact,
    POISE_OT_add_contact,
    POISE_OT_delete_contact,
    POISE_OT_drag_contacts,
    POISE_OT_follow_contacts,
    POISE_OT_find_cycle,
    POISE_OT_play,
    POISE_OT_save_script,
    POISE_OT_make_thing,
    POISE_OT_make_collider,
    POISE_OT_unmark,
    POISE_OT_add_push,
    POISE_OT_duplicate_push,
    POISE_OT_remove_push,
    POISE_OT_move_push,
    POISE_OT_clear_pushes,
    POISE_OT_generate_pushes,
    POISE_OT_add_waypoint,
    POISE_OT_go_to_waypoint,
    POISE_OT_remove_waypoint,
    POISE_OT_add_hold,
    POISE_OT_go_to_hold,
    POISE_OT_remove_hold,
    POISE_OT_add_get_up,
    POISE_OT_remove_get_up,
    POISE_OT_add_act,
    POISE_OT_remove_act,
)
