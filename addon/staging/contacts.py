# SPDX-License-Identifier: GPL-3.0-or-later
"""Find contacts, and change them at the current frame."""

import contextlib
import math
from copy import copy
from functools import partial

import bpy

from ...controller.exceptions import PlanError, PoiseError
from ..blender import session
from ..blender.chosen import chosen_armature, chosen_frames
from ..blender.redrawing import redraw
from ..blender.translations import tr
from ..jobs.job import Job, in_background, reading_source
from ..jobs.modal import JobOperator, StatusBar, poll_animated, poll_idle
from ..overlays import contact_bar
from ..rigs import sampling
from ..scene import contacts, live_contacts
from ..shots.clean_up import CleanShot, CleanShotOptions

#: So near to the end of a span it is taken by the mouse [pixels of a standard screen].
REACH = 8

_EDITORS = ("DOPESHEET_EDITOR", "GRAPH_EDITOR")


class FindContactsJob(Job):
    """Read an armature's animation, find when its feet stand and keep that with the action. The
    result of an earlier simulation stays."""

    def __init__(self, scene, options):
        shot = CleanShot(scene, options)
        contacts.check(contacts.source_of(shot.armature)[0])
        stages = (
            ("reading", reading_source(shot)),
            ("finding contacts", in_background(shot.find)),
            ("cleaning", self._following()),
        )
        super().__init__(shot, stages)

    def _following(self):
        shot = self.shot
        kept, shown = contacts.Kept.of(shot.reading, shot.found), _shown(shot.scene, shot.armature)
        if shown is None:
            _keep(shot.armature, kept)
        else:
            yield from _follow(shown, kept, _kept(shot.armature))

    def _finish(self):
        session.end(self)


class FollowJob(Job):
    """Keep other contacts with an armature's action, and let the clean-up that is shown follow."""

    def __init__(self, shown, kept, was):
        """shown: CleanShot. kept: contacts.Kept, None for automatic ones. was: those to put back
        if it is stopped."""
        super().__init__(shown, (("cleaning", _follow(shown, kept, was)),))

    def _finish(self):
        session.end(self)


def _follow(shown, kept, was):
    """The stage of a job that lets a CleanShot follow contacts. What is shown and remembered stays
    until it is done."""
    shot = copy(shown)
    try:
        yield from in_background(partial(shot.update, kept and kept.for_reading(shot.reading)))
        _keep(shot.armature, kept)
        yield from shot.baking()
    except BaseException:
        with contextlib.suppress(KeyError):  # the armature is gone
            _keep(shot.armature, was)
        raise
    session.keep_clean(shot.scene.name, shot.armature.name, shot)


def _shown(scene, armature):
    """The CleanShot that follows the contacts of an armature, None without."""
    with contextlib.suppress(PlanError):
        return live_contacts.shown(scene, armature)


def _keep(armature, kept):
    contacts.keep(*contacts.source_of(armature), kept)


def _kept(armature):
    """What an armature's action has of contacts; None without, and for what cannot be read."""
    with contextlib.suppress(PlanError):
        return contacts.kept(*contacts.source_of(armature))


class POISE_OT_find_contacts(JobOperator, bpy.types.Operator):
    """Find when the feet stand."""

    bl_idname = "poise.find_contacts"
    bl_label = "Find Contacts"
    bl_description = (
        "Find when heel, ball and tip of each foot stand, keep that with the action and show it in "
        "the animation editors, where it can be changed. Earlier changes are replaced. Esc stops"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        """Needs an animated armature."""
        return poll_animated(cls, context)

    def make_job(self, context, armature):
        """The job of this operator."""
        options = CleanShotOptions(
            armature=armature.name,
            frames=_all_frames(context.scene, armature),
            rig=context.scene.poise.rig or None,
            unit=context.scene.poise.unit or None,
            automatic=True,
        )
        return FindContactsJob(context.scene, options)

    def finished(self):
        """Report the outcome."""
        count = len(list(self._job.shot.found.spans()))
        self.report({"INFO"}, tr(f"Found {count} contacts"))


def _all_frames(scene, armature):
    """(first, last) frame that is animated or chosen: contacts are for whatever may be read."""
    chosen = chosen_frames(scene)
    if chosen is None:
        return None
    first, last = sampling.animated_range(armature, *contacts.source_of(armature))
    return min(first, chosen[0]), max(last, chosen[1])


def _poll_known(cls, context):
    """Whether contacts of the chosen armature are known, and can be changed."""
    if not poll_idle(cls, context):
        return False
    armature, _ = chosen_armature(context)
    try:
        kept = live_contacts.known(context.scene, armature)
    except PlanError:
        cls.poll_message_set(tr("The contacts cannot be read: the panel says why"))
        return False
    if kept is None:
        cls.poll_message_set(tr("No contacts are known yet: find them first"))
        return False
    if contacts.source_of(armature)[0].library is not None:
        cls.poll_message_set(tr("The action is linked: make it local to change its contacts"))
        return False
    return True


class _FollowedOperator(JobOperator):
    """An operator that changes the contacts of the chosen armature: in slices where a clean-up
    follows, else at once.

    Children define `changed(context, armature)`, which gives other ones, None for automatic ones.
    """

    bl_options = {"REGISTER", "UNDO"}

    def invoke(self, context, event):
        """Change them, and let what is shown follow in `modal`."""
        armature, _ = chosen_armature(context)
        if _shown(context.scene, armature) is None:
            return self.execute(context)
        return super().invoke(context, event)

    def execute(self, context):
        """Change them, and let what is shown follow."""
        armature, _ = chosen_armature(context)
        if _shown(context.scene, armature) is not None:
            return super().execute(context)
        try:
            _keep(armature, self.changed(context, armature))
        except PoiseError as error:
            self.report({"ERROR"}, tr(str(error)))
            return {"CANCELLED"}
        redraw()
        return {"FINISHED"}

    def make_job(self, context, armature):
        """The job of this operator."""
        was = _kept(armature)
        shown = _shown(context.scene, armature)
        return FollowJob(shown, self.changed(context, armature), was)

    def finished(self):
        """There is nothing to say."""


class _ContactOperator(_FollowedOperator):
    """An operator that changes the contacts at the current frame.

    Children define `change(kept, foot, point, frame)`, which gives other ones.
    """

    @classmethod
    def poll(cls, context):
        """Needs contacts."""
        return _poll_known(cls, context)

    def changed(self, context, armature):
        """Other contacts at the current frame."""
        scene, settings = context.scene, context.scene.poise.clean_up
        kept = live_contacts.known(scene, armature)
        foot, point = settings.foot.lower(), settings.point.lower()
        return self.change(kept, foot, point, float(scene.frame_current))


class POISE_OT_begin_contact(_ContactOperator, bpy.types.Operator):
    """Let a contact begin here."""

    bl_idname = "poise.begin_contact"
    bl_label = "Begin Contact Here"
    bl_description = (
        "Let the chosen part of the foot stand from the current frame on: the contact at that "
        "frame, or else the next one, grows or shrinks"
    )

    def change(self, kept, foot, point, frame):
        """Another start."""
        return kept.begun(foot, point, frame)


class POISE_OT_end_contact(_ContactOperator, bpy.types.Operator):
    """Let a contact end here."""

    bl_idname = "poise.end_contact"
    bl_label = "End Contact Here"
    bl_description = (
        "Let the chosen part of the foot stand up to the current frame: the contact at that frame, "
        "or else the one before, grows or shrinks"
    )

    def change(self, kept, foot, point, frame):
        """Another end."""
        return kept.ended(foot, point, frame)


class POISE_OT_add_contact(_ContactOperator, bpy.types.Operator):
    """Add a contact."""

    bl_idname = "poise.add_contact"
    bl_label = "Add Contact Here"
    bl_description = (
        "Let the chosen part of the foot stand from the current frame on for 0.2 s. A contact that "
        "this reaches grows instead"
    )

    def change(self, kept, foot, point, frame):
        """One more."""
        return kept.added(foot, point, frame)


class POISE_OT_delete_contact(_ContactOperator, bpy.types.Operator):
    """Delete a contact."""

    bl_idname = "poise.delete_contact"
    bl_label = "Delete Contact"
    bl_description = (
        "Let the chosen part of the foot be free: the contact at the current frame goes"
    )

    def change(self, kept, foot, point, frame):
        """One less."""
        return kept.deleted(foot, point, frame)


class _Dragging:
    """Drag ends of contacts in the animation editors, until Esc; everything else goes on as ever.

    The one at work is `_Dragging.active`; to begin another one ends it.
    """

    active = None

    def invoke(self, context, _event):
        """Begin, or end the one at work."""
        if _Dragging.active is not None:
            _Dragging.active = None
            redraw()
            return {"CANCELLED"}
        _Dragging.active = self
        self._held = None
        context.window_manager.modal_handler_add(self)
        text = "Poise: drag the ends of contacts in the contact bar, Esc to stop"
        self._status = StatusBar(context, text)
        redraw()
        return {"RUNNING_MODAL"}

    def modal(self, context, event):
        """One event of the window."""
        if isinstance(session.job(), FollowJob):  # of the end that was let go
            return {"PASS_THROUGH"}
        if _Dragging.active is not self or session.busy():
            return self._leave()
        self._status.follow(context)
        if event.type in ("ESC", "RIGHTMOUSE") and event.value == "PRESS":
            if self._held is None:
                return self._leave()
            self._put_back(context)
            return {"RUNNING_MODAL"}
        if event.type == "LEFTMOUSE" and event.value == "PRESS":
            return {"RUNNING_MODAL" if self._take(context, event) else "PASS_THROUGH"}
        if self._held is None:
            return {"PASS_THROUGH"}
        if event.type == "MOUSEMOVE":
            self._move(context, event)
        elif event.type == "LEFTMOUSE" and event.value == "RELEASE":
            self._let_go(context)
        return {"RUNNING_MODAL"}

    def cancel(self, context):
        """Blender ends it, with its window or its file."""
        self._leave()

    def _leave(self):
        if _Dragging.active is self:
            _Dragging.active = None
        self._status.clear()
        redraw()
        return {"FINISHED"}

    def _take(self, context, event):
        """Hold the end that the mouse is at; whether there is one. Its row is chosen."""
        region = _editor_at(context, event.mouse_x, event.mouse_y)
        kept = contact_bar.shown(context) if region else None
        if kept is None:
            return False
        scale = context.preferences.system.ui_scale
        down = contact_bar.sunk(region.height / scale)
        names = contact_bar.row_at((event.mouse_y - region.y) / scale + down)
        if names is None:
            return False
        settings = context.scene.poise.clean_up
        settings.foot, settings.point = (name.upper() for name in names)
        frame = _frame_at(region, event)
        reach = abs(_frame_at(region, event, REACH * scale) - frame)
        end = kept.held(*names, frame, reach)
        if end is not None:
            self._held, self._before, self._changed = (*names, *end), kept, None
            self._region, self._was = region, self._of_action(context)
        return end is not None

    def _of_action(self, context):
        armature, _ = chosen_armature(context)
        return contacts.kept(*contacts.source_of(armature))

    def _move(self, context, event):
        """Bring the end to the nearest frame, where that makes sense."""
        frame = math.floor(_frame_at(self._region, event) + 1)  # its left edge
        with contextlib.suppress(PlanError):
            changed = self._before.moved(*self._held, frame)
            armature, _ = chosen_armature(context)
            contacts.keep(*contacts.source_of(armature), changed)
            self._changed = changed
            redraw()

    def _let_go(self, context):
        """Let what is shown follow; one step of undo."""
        self._held = None
        if self._changed is None:
            return
        armature, _ = chosen_armature(context)
        if _shown(context.scene, armature) is None:
            bpy.ops.ed.undo_push(message=tr("Drag Contacts"))
        else:
            bpy.ops.poise.follow_contacts("INVOKE_DEFAULT")
        redraw()

    def _put_back(self, context):
        self._held = None
        armature, _ = chosen_armature(context)
        contacts.keep(*contacts.source_of(armature), self._was)
        redraw()


class POISE_OT_drag_contacts(_Dragging, bpy.types.Operator):
    """Drag contacts with the mouse."""

    bl_idname = "poise.drag_contacts"
    bl_label = "Drag Contacts"
    bl_description = (
        "Drag the ends of contacts in the contact bar of Timeline, Dope Sheet or Graph Editor from "
        "frame to frame. Esc stops"
    )
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, context):
        """Needs contacts that can be kept."""
        return _poll_known(cls, context)


def _editor_at(context, x, y):
    """The region with the keys of the animation editor at a place in the window; None without."""
    for area in context.window.screen.areas:
        for region in area.regions if area.type in _EDITORS else ():
            inside = 0 <= x - region.x < region.width and 0 <= y - region.y < region.height
            if region.type == "WINDOW" and inside:
                return region
    return None


def _frame_at(region, event, beside=0.0):
    """The frame under the mouse, or so many pixels beside it."""
    return region.view2d.region_to_view(event.mouse_x - region.x + beside, 0)[0]


class POISE_OT_follow_contacts(_FollowedOperator, bpy.types.Operator):
    """Let a clean-up follow contacts that were dragged."""

    bl_idname = "poise.follow_contacts"
    bl_label = "Follow Contacts"
    bl_description = "Let the clean-up that is shown follow the contacts that were dragged"
    bl_options = {"INTERNAL", "UNDO"}

    @classmethod
    def poll(cls, context):
        """For the end that was let go."""
        if not _poll_known(cls, context):
            return False
        if _Dragging.active is None:
            cls.poll_message_set(tr("No contacts are dragged: press Drag Contacts first"))
        return _Dragging.active is not None

    def make_job(self, context, armature):
        """The job of this operator."""
        dragging = _Dragging.active
        return FollowJob(_shown(context.scene, armature), dragging._changed, dragging._was)


class POISE_OT_automatic_contacts(_FollowedOperator, bpy.types.Operator):
    """Keep no contacts."""

    bl_idname = "poise.automatic_contacts"
    bl_label = "Automatic Contacts"
    bl_description = (
        "Keep no contacts with the action: each simulation and clean-up finds them anew. Changes "
        "are dropped"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        """Needs contacts that are kept, be it that they cannot be read."""
        if not poll_idle(cls, context):
            return False
        armature, _ = chosen_armature(context)
        with contextlib.suppress(PlanError):
            if contacts.PROPERTY in contacts.source_of(armature)[0]:
                return True
        cls.poll_message_set(tr("No contacts are kept with an action: they are automatic"))
        return False

    def changed(self, _context, armature):
        """None: what cannot be read goes, too."""
        action, slot = contacts.source_of(armature)
        contacts.check(action)
        try:
            contacts.kept(action, slot)
        except PlanError:
            contacts.discard(action)
