# SPDX-License-Identifier: GPL-3.0-or-later
"""What Poise remembers while Blender runs: the job at work, and the result of each armature.

None of it is in the .blend file. Everything is kept under names: references to data-blocks become
invalid with every undo. Where one is renamed, what is kept of it moves along.
"""

import gc
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import bpy

from ...controller.exceptions import PoiseError


@dataclass
class Result:
    """What is known of one armature in one scene.

    shot: the last one that was read, and perhaps simulated and baked, to the end; None before.
    error: why the last attempt failed, in a sentence; empty if it did not.
    outcome: optimization.Outcome of the last search for gains, None if there was none.
    limit: robustness.Outcome of the last measurement of its limit, None if there was none.
    check: clip_check.ClipCheck of the last look at its clip, None if there was none.
    clean: addon.clean_up.CleanShot of its last clean-up, None if there was none.
    settings: outdated.settings_of the shot, None if it has none.
    lately: outdated.Lately of these, None before the first look.
    """

    shot: Any = None
    error: str = ""
    outcome: Any = None
    limit: Any = None
    check: Any = None
    clean: Any = None
    settings: dict[str, Any] | None = None
    lately: Any = None

    @property
    def recording(self):
        """The simulation, if there is one that moved; else None."""
        recording = self.shot.recording if self.shot else None
        return recording if recording is not None and len(recording) else None

    @cached_property
    def summary(self):
        """The figures of the simulation by name; it is shown at every drawing."""
        return self.recording.summary()

    @cached_property
    def outside(self):
        """How much help from outside it had, in words; it is shown at every drawing, too."""
        return self.recording.outside


@dataclass(frozen=True)
class Take:
    """A simulation that is kept beside the result. scene, armature: names. shot, settings: as
    Result has them."""

    scene: str
    armature: str
    shot: Any
    settings: dict[str, Any] | None


_results = {}
_takes = {}
#: Of all names that something is kept under: what tells scene and armature from others so called.
_uids = {}
_job = None


def result_of(scene, armature):
    """The Result of an armature in a scene; an empty one if there is none."""
    _follow()
    return _results.get((scene.name, armature.name)) or Result()


def _own(scene_name, armature_name):
    """The Result of an armature to be changed."""
    _follow()
    key = scene_name, armature_name
    scene, armature = bpy.data.scenes.get(scene_name), bpy.data.objects.get(armature_name)
    if scene is not None and armature is not None:
        _uids[key] = uids(scene, armature)
    return _results.setdefault(key, Result())


def uids(scene, armature):
    """What tells a scene and an armature for good, whatever they are called by now."""
    return scene.session_uid, armature.session_uid


def _follow():
    """Move what is kept under names that its scenes, armatures and actions no longer have."""
    _follow_names()
    shots = [shot for result in _results.values() for shot in (result.shot, result.clean)]
    for shot in filter(None, (*shots, *(take.shot for take in _takes.values()))):
        shot.find_source()


def _follow_names():
    """The same of scenes and armatures."""
    now = {names: _names_now(names, uids) for names, uids in _uids.items()}
    moved = {names: new for names, new in now.items() if new != names}
    if not moved:
        return
    for kept in (_results, _uids):
        pairs = [(moved.get(names, names), value) for names, value in kept.items()]
        kept.clear()
        kept.update((names, value) for names, value in pairs if names is not None)
    for key, take in [*_takes.items()]:
        names = moved.get((take.scene, take.armature), ())
        if names is None:
            del _takes[key]
        elif names:
            _takes[key] = replace(take, scene=names[0], armature=names[1])
            take.shot.renamed(*names)
    for names in filter(None, moved.values()):
        result = _results.get(names) or Result()
        for shot in filter(None, (result.shot, result.clean)):
            shot.renamed(*names)


def _names_now(names, uids):
    """Names of the scene and the armature of these names and numbers; None if others have them."""
    collections = bpy.data.scenes, bpy.data.objects
    now = tuple(map(_name_now, collections, names, uids))
    return None if None in now else now


def _name_now(things, name, uid):
    there = things.get(name)
    if there is not None and there.session_uid == uid:
        return name
    found = _name_of(things, uid)
    return name if found is None and there is None else found  # undo may bring it back


def _name_of(things, uid):
    return next((thing.name for thing in things if thing.session_uid == uid), None)


def results_in(scene):
    """The results of all armatures that are (still) in a scene."""
    _follow()
    return [
        result
        for (scene_name, armature_name), result in _results.items()
        if scene_name == scene.name and armature_name in scene.objects
    ]


def keep(scene_name, armature_name, shot, settings=None):
    """Remember a shot as the result of its armature. settings: outdated.settings_of it; None for
    one that is known."""
    known = _own(scene_name, armature_name)
    check = shot.checked or known.check
    settings = settings or known.settings
    _results[scene_name, armature_name] = replace(
        known, shot=shot, error="", check=check, settings=settings
    )


def keep_outcome(scene_name, armature_name, outcome):
    """Remember what a search for gains came to; the simulation from before stays."""
    result = _own(scene_name, armature_name)
    result.outcome, result.error = outcome, ""


def keep_limit(scene_name, armature_name, limit):
    """Remember what was measured of robustness; all else stays."""
    result = _own(scene_name, armature_name)
    result.limit, result.error = limit, ""


def keep_check(scene_name, armature_name, check):
    """Remember what a look at the clip came to; all else stays."""
    result = _own(scene_name, armature_name)
    result.check, result.error = check, ""


def keep_clean(scene_name, armature_name, clean):
    """Remember a clean-up; all else stays."""
    result = _own(scene_name, armature_name)
    result.clean, result.error = clean, ""


def complain(whose, message):
    """Remember why something failed, of what is still there; the result from before stays. whose:
    `uids` of the scene and the armature."""
    collections = bpy.data.scenes, bpy.data.objects
    names = tuple(map(_name_of, collections, whose))
    if None not in names:
        _own(*names).error = message


def keep_take(key, take):
    """Remember a Take, or forget it: None. key: what names it."""
    if take is None:
        _takes.pop(key, None)
    else:
        _takes[key] = take


def take(key):
    """The Take of a key; None if there is none."""
    _follow()
    return _takes.get(key)


def discard(scene, armature):
    """Forget the result of an armature."""
    _results.pop((scene.name, armature.name), None)


def job():
    """The job at work, or None."""
    return _job


def busy():
    """Why nothing else can be begun now; empty while nothing runs."""
    if _job is None:
        return ""
    if is_elsewhere(_job, bpy.context.scene):
        return (
            f"Poise is {_job.doing} in the scene '{_job.scene_name}': wait, or press Esc to stop it"
        )
    return f"Poise is {_job.doing}: wait, or press Esc to stop it"


def is_elsewhere(job, scene):
    """Whether a job is at work in another scene than this one."""
    return job is not None and job.scene_name != scene.name


def start(new_job):
    """Make a job the one at work. Raises PoiseError if another one is."""
    global _job
    if _job is not None:
        raise PoiseError(f"Poise is still {_job.doing}: wait for it, or press Esc to stop it.")
    _job = new_job
    # To look through all that Blender's own Python holds for garbage takes nearly a tenth of a
    # second, for which the window would stand still: while a job is at work it is left out.
    gc.freeze()


def end(ended_job):
    """A job is over; does nothing if it is not the one at work."""
    global _job
    if _job is ended_job:
        _job = None
        gc.unfreeze()


def stop():
    """Cancel the job at work, if any."""
    if _job is not None:
        _job.cancel()


def clear():
    """Stop what runs and forget everything."""
    stop()
    _results.clear()
    _takes.clear()
    _uids.clear()


@bpy.app.handlers.persistent
def _before_load(*_):
    clear()


def register():
    """Forget everything when another file is loaded, from now on."""
    bpy.app.handlers.load_pre.append(_before_load)


def unregister():
    """Undo `register`, and forget everything now."""
    clear()
    bpy.app.handlers.load_pre.remove(_before_load)
