# SPDX-License-Identifier: GPL-3.0-or-later
"""Bake the simulation or the corrected animation, compare it with its source, discard it."""

import bpy

from ...controller.exceptions import BakeError, PoiseError
from ..baking import bake, bake_objects, ik_legs
from ..blender import session
from ..blender.chosen import chosen_armature
from ..blender.redrawing import redraw
from ..blender.translations import tr
from ..jobs.job import BakeJob
from ..jobs.modal import JobOperator, poll_idle
from ..rigs import bake_target, strips
from ..settings import takes
from ..settings.properties import bake_options
from ..shots import outdated

_BAKE = bpy.props.IntProperty(
    name="Bake",
    description="Which of the armature's bakes, from 1, the oldest; 0: the one that is shown, or "
    "else the newest",
    min=0,
)


def poll_simulated(cls, context):
    """Whether the chosen armature has a simulation and nothing runs."""
    if not poll_idle(cls, context):
        return False
    armature, _ = chosen_armature(context)
    if session.result_of(context.scene, armature).recording is None:
        cls.poll_message_set(
            tr(f"There is no simulation of '{armature.name}': press Simulate first")
        )
        return False
    return True


def poll_rectified(cls, context):
    """Whether the chosen armature has a rectified result and nothing runs."""
    if not poll_idle(cls, context):
        return False
    armature, _ = chosen_armature(context)
    shot = session.result_of(context.scene, armature).shot
    if shot is None or shot.rectified is None:
        cls.poll_message_set(tr(f"'{armature.name}' has no rectified result: press Rectify first"))
        return False
    return True


def _partners(scene, shot):
    """The shots that were simulated together with one, and are still the results of theirs."""
    found = []
    for name in shot.options.together:
        armature = scene.objects.get(name)
        other = armature and session.result_of(scene, armature).shot
        met = other is not None and other.simulation is not None and other.simulation.membership
        if met and met.engine is shot.simulation.membership.engine:
            found.append(other)
    return found


class _BakeOperator(JobOperator):
    """Write keys, and compare them with the source. Children define `writing(shot, keys)`."""

    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        """Needs something to bake, and an armature whose action can be changed."""
        if not cls.poll_result(cls, context):
            return False
        armature, _ = chosen_armature(context)
        if armature.mode == "EDIT":
            cls.poll_message_set(tr(f"'{armature.name}' is in Edit Mode: leave it first"))
            return False
        return True

    def make_job(self, context, armature):
        """The job of this operator."""
        scene = context.scene
        shot = session.result_of(scene, armature).shot

        def writing(one):
            return self.writing(one, bake_options(scene.poise, takes.name_of(one)))

        return BakeJob(shot, writing, _partners(scene, shot))

    @property
    def stopped(self):
        """What Esc reports: of the comparison, if the bake is there."""
        if self._job.baked:
            return "Baked; the comparison with the source was stopped"
        return super().stopped

    def _stop(self, context):
        stopped = super()._stop(context)
        # What is baked stays, as one undo step; only the comparison with the source is missing.
        return {"FINISHED"} if self._job.baked else stopped

    def finished(self):
        """Report the outcome."""
        for shot in self._job.shots:
            self._tell(shot)

    def _tell(self, shot):
        """Report what became of one."""
        baked = shot.baked
        count = len(shot.baked_objects)
        also = f", and {count} object{'s' * (count != 1)}" if count else ""
        left = f"; '{baked.left}', your own since, stays" if baked.left else ""
        names = "', '".join(baked.leg_controls)
        legs = f"; legs on IK by '{names}'" if names else ""
        for sentence in (*ik_legs.sentences((), baked.released_legs), *baked.warnings):
            self.report({"WARNING"}, tr(sentence))
        self.report({"INFO"}, tr(f"Baked {baked.keys} keys to '{baked.action}'{also}{legs}{left}"))
        settings = session.result_of(shot.scene, shot.armature).settings
        if names := outdated.source_changed(settings, shot.armature):
            listed = ", ".join(map(tr, names))
            self.report({"WARNING"}, tr(f"Baked as it was simulated; changed since then: {listed}"))
        for track in baked.over:
            self.report({"WARNING"}, tr(f"The NLA track '{track}' over the bake changes it"))
        for sentence in shot.ends:
            self.report({"INFO"}, tr(sentence))


class POISE_OT_bake(_BakeOperator, bpy.types.Operator):
    """Write the simulation to keys, and compare them with the source."""

    bl_idname = "poise.bake"
    bl_label = "Bake Physics to Action"
    bl_description = (
        "Write the simulated motion to a new action of the armature, in place of an earlier bake "
        "unless you have renamed it or changed its keys. Each take has a bake of its own. The "
        "source action is kept"
    )

    poll_result = staticmethod(poll_simulated)

    def writing(self, shot, keys):
        """The simulation."""
        return shot.baking(keys)


class POISE_OT_bake_target(_BakeOperator, bpy.types.Operator):
    """Write the corrected animation to keys, without physics."""

    bl_idname = "poise.bake_target"
    bl_label = "Bake Rectified Motion without Physics"
    bl_description = (
        "Write the animation with the changes that were found, but without any physics, to an "
        "action of its own. The source and a bake of the simulation are kept"
    )

    poll_result = staticmethod(poll_rectified)

    def writing(self, shot, keys):
        """The corrected animation."""
        return shot.baking_target(keys)


class POISE_OT_show(bpy.types.Operator):
    """Switch between source and bake."""

    bl_idname = "poise.show"
    bl_label = "Show Source or Bake"
    bl_description = "Animate the armature with the source action or with the baked one"
    bl_options = {"UNDO"}  # no panel to redo it: there are two buttons

    which: bpy.props.EnumProperty(
        name="Action",
        description="Which action animates the armature",
        items=(
            ("source", "Source", "The original action"),
            ("baked", "Baked", "The action that Poise baked"),
        ),
    )
    bake: _BAKE

    @classmethod
    def description(cls, _context, properties):
        """A tooltip for each of the buttons."""
        return tr(
            {
                "source": "Animate the armature with the original action",
                "baked": "Animate the armature with the action that Poise baked",
            }[properties.which]
        )

    @classmethod
    def poll(cls, context):
        """Needs a bake."""
        if not poll_idle(cls, context):
            return False
        armature, _ = chosen_armature(context)
        if bake_target.current(armature) is None:
            cls.poll_message_set(tr(f"'{armature.name}' has no bake: press Bake first"))
            return False
        return True

    def execute(self, context):
        """Assign the action."""
        armature, _ = chosen_armature(context)
        try:
            chosen = _bake_of(armature, self.bake)
            bake.show(context.scene, armature, self.which, chosen)
            mark = bake_target.mark_of(*strips.shown(armature))
            take = bake_target.take_of(mark) if mark else ""
            bake_objects.show(context.scene, armature, self.which, take)
        except PoiseError as error:
            session.complain(session.uids(context.scene, armature), str(error))
            self.report({"ERROR"}, tr(str(error)))
            return {"CANCELLED"}
        return {"FINISHED"}


class POISE_OT_delete_bake(bpy.types.Operator):
    """Delete a bake."""

    bl_idname = "poise.delete_bake"
    bl_label = "Delete Baked Action"
    bl_description = (
        "Delete this bake: its action, or its slot in yours. The source is shown if the bake was. "
        "An undo brings it back"
    )
    bl_options = {"UNDO"}

    bake: _BAKE

    @classmethod
    def poll(cls, context):
        """Needs a bake."""
        return POISE_OT_show.poll.__func__(cls, context)

    def execute(self, context):
        """Delete it."""
        armature, _ = chosen_armature(context)
        try:
            chosen = _bake_of(armature, self.bake) or bake_target.current(armature)
            name = chosen[0].name
            bake.remove(context.scene, armature, chosen)
        except PoiseError as error:
            self.report({"ERROR"}, tr(str(error)))
            return {"CANCELLED"}
        self.report({"INFO"}, tr(f"Deleted the bake '{name}'"))
        redraw()
        return {"FINISHED"}


def _bake_of(armature, number):
    """(action, slot) of one of an armature's bakes by its number from 1, the oldest; None for 0.
    Raises BakeError if it has none of that number."""
    bakes = bake_target.bakes_of(armature)
    if number > len(bakes):
        raise BakeError(f"'{armature.name}' has {len(bakes)} bakes only: choose another one.")
    return bakes[number - 1] if number else None


class POISE_OT_discard(bpy.types.Operator):
    """Forget the result of the armature."""

    bl_idname = "poise.discard"
    bl_label = "Discard Simulation"
    bl_description = "Forget the simulation and its ghost. Takes and what is baked stay"
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, context):
        """Needs a simulation."""
        return poll_simulated(cls, context)

    def execute(self, context):
        """Forget it."""
        armature, _ = chosen_armature(context)
        session.discard(context.scene, armature)
        redraw()
        return {"FINISHED"}
