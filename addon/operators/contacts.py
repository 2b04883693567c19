# SPDX-License-Identifier: GPL-3.0-or-later
"""Find contacts, and change them at the current frame."""

import contextlib

import bpy

from ...controller.exceptions import PlanError, PoiseError
from .. import contacts, live_contacts, reference, session
from ..clean_up import CleanShot, CleanShotOptions
from ..properties import chosen_armature, chosen_frames, redraw
from ..translations import tr
from .job import Job, in_background, reading_source
from .modal import JobOperator, poll_animated, poll_idle


class FindContactsJob(Job):
    """Read an armature's animation, find when its feet stand and keep that with the action. The
    result of an earlier simulation stays."""

    def __init__(self, scene, options):
        shot = CleanShot(scene, options)
        contacts.check(contacts.source_of(shot.armature)[0])
        stages = ("reading", reading_source(shot)), ("finding contacts", in_background(shot.find))
        super().__init__(shot, stages)

    def _finish(self):
        session.end(self)
        shot = self.shot
        live_contacts.change(shot.scene, shot.armature, contacts.Kept.of(shot.reading, shot.found))


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
    first, last = reference.animated_range(armature, *contacts.source_of(armature))
    return min(first, chosen[0]), max(last, chosen[1])


class _ContactOperator:
    """An operator that changes the contacts of the chosen armature at the current frame.

    Children define `change(kept, foot, point, frame)`, which gives other ones.
    """

    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        """Needs contacts."""
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
        return kept is not None

    def execute(self, context):
        """Change them, and let what is shown follow."""
        scene, settings = context.scene, context.scene.poise.clean_up
        armature, _ = chosen_armature(context)
        try:
            kept = live_contacts.known(scene, armature)
            foot, point = settings.foot.lower(), settings.point.lower()
            changed = self.change(kept, foot, point, float(scene.frame_current))
            live_contacts.change(scene, armature, changed)
        except PoiseError as error:
            self.report({"ERROR"}, tr(str(error)))
            return {"CANCELLED"}
        redraw()
        return {"FINISHED"}


class POISE_OT_begin_contact(_ContactOperator, bpy.types.Operator):
    """Let a contact begin here."""

    bl_idname = "poise.begin_contact"
    bl_label = "Begin Contact Here"
    bl_description = (
        "Let the chosen part of the foot stand from the current frame on: the contact at that "
        "frame, or the nearest one, grows or shrinks"
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
        "or the nearest one, grows or shrinks"
    )

    def change(self, kept, foot, point, frame):
        """Another end."""
        return kept.ended(foot, point, frame)


class POISE_OT_add_contact(_ContactOperator, bpy.types.Operator):
    """Add a contact."""

    bl_idname = "poise.add_contact"
    bl_label = "Add Contact Here"
    bl_description = "Let the chosen part of the foot stand from the current frame on for 0.2 s"

    def change(self, kept, foot, point, frame):
        """One more."""
        return kept.added(foot, point, frame)


class POISE_OT_delete_contact(_ContactOperator, bpy.types.Operator):
    """Delete a contact."""

    bl_idname = "poise.delete_contact"
    bl_label = "Delete Contact"
    bl_description = (
        "Let the chosen part of the foot be free: the contact at the current frame, or the nearest "
        "one, goes"
    )

    def change(self, kept, foot, point, frame):
        """One less."""
        return kept.deleted(foot, point, frame)


class POISE_OT_automatic_contacts(bpy.types.Operator):
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

    def execute(self, context):
        """Take them away."""
        armature, _ = chosen_armature(context)
        action, slot = contacts.source_of(armature)
        try:
            contacts.check(action)
            try:
                contacts.kept(action, slot)
            except PlanError:
                contacts.discard(action)
            live_contacts.change(context.scene, armature, None)
        except PoiseError as error:
            self.report({"ERROR"}, tr(str(error)))
            return {"CANCELLED"}
        redraw()
        return {"FINISHED"}
