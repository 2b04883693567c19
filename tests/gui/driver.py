# SPDX-License-Identifier: GPL-3.0-or-later
"""Drive Blender's window from inside, as a user would: with the mouse, the keys and the eyes.

Runs inside Blender: `blender --python driver.py -- SCENARIO OUTPUT`. A scenario is a Python file
beside this one with a generator function `scenario(driver)`. It yields whenever Blender is to go on
working: seconds to wait, two turns of the main loop at least, or a function to wait for.

    def scenario(driver):
        yield from driver.open("hips_twist")
        yield from driver.click("bpy.ops.poise.simulate()")
        yield lambda: driver.session.job() is None
        yield from driver.shot("finished")
        driver.check("it stands", driver.result.recording.success)

Results are written to OUTPUT/SCENARIO.json as {"checks": [[check, problem or ""], …], "said":
[text, …]}, screenshots to
OUTPUT/NAME.png. Blender's own operators work too, but only xdotool proves what a user can do.
"""

import hashlib
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path

import bpy
import mathutils
import numpy as np

EXTENSION = "bl_ext.user_default.poise"
TICK = 0.002  # [s]
PATIENCE = 120  # [s] to wait for a condition
#: What the mouse or a key does is sent after one turn of the main loop and has come after another.
TURNS = 2
#: A job works so long in each turn [s]: without a graphics card drawing takes as long. Where a
#: scenario measures time, or whether the window is alive, it works as for a user.
WORK = 0.1
#: Buttons are sought row by row of so many pixels: the lowest are 16 high. [s] on each, TURNS too.
ROW, HOVER = 14, 0.01
#: So far [pixels] a notch of the mouse wheel moves a sidebar, and two pages of it overlap.
NOTCH, _OVERLAP = 40, 100
#: The mouse wheel's two ways, as xdotool has them.
_UP, _DOWN = 4, 5
#: Blender's colour of what is chosen, and of how far a bar is.
_BLUE = 0.278, 0.447, 0.702
#: Modules with panels that a scenario can open or close.
_PANELS = [f"sidebar.{name}" for name in "panels tuning_panel rectify_panel overlay_panel".split()]


class Driver:
    """Blender's window with Poise in it."""

    def __init__(self, name, output):
        self.name, self.output = name, Path(output)
        self.checks, self.said = [], []
        #: Longest time between two turns of the main loop since it was last set to 0 [s].
        self.longest_gap = 0.0
        #: The longest time in each stage of a job, [s] by what it was doing.
        self.gaps = {}
        self._last_turn = None
        self._waits_for = None
        self._until, self._turns = 0.0, 0
        self._found = 0
        self._budget = self.module("jobs.modal").BUDGET

    # --- Running ---------------------------------------------------------------------------------

    def run(self, scenario):
        """Run a generator turn by turn, then write the results and quit."""
        bpy.app.timers.register(lambda: self._turn(scenario), persistent=True)

    def _turn(self, scenario):
        now = time.perf_counter()
        if self._last_turn is not None:
            self.longest_gap = max(self.longest_gap, now - self._last_turn)
            self._note_gap(now - self._last_turn)
        self._last_turn = now
        try:
            if not self._waited(now):
                return TICK
            self._waits_for, self._turns = next(scenario), 0
            self._until = now + (
                PATIENCE if callable(self._waits_for) else (self._waits_for or 0.0)
            )
            return TICK
        except StopIteration:
            pass
        except Exception:
            self.checks.append(["the scenario itself", traceback.format_exc()])
        self._write()
        bpy.ops.wm.quit_blender()
        return None

    def _note_gap(self, gap):
        job = self.session.job() if EXTENSION in sys.modules else None
        if job is not None:
            stage = "searching" if getattr(job, "search", None) else job.doing
            self.gaps[stage] = max(self.gaps.get(stage, 0.0), gap)

    def _waited(self, now):
        """Whether what the scenario waits for has come."""
        self._turns += 1
        if callable(self._waits_for):
            if self._waits_for():
                return True
            if now > self._until:
                raise TimeoutError(f"waited {PATIENCE} s in vain")
            return False
        return now >= self._until and (self._turns >= TURNS or not self._waits_for)

    def _write(self):
        text = json.dumps({"checks": self.checks, "said": self.said}, indent=1)
        (self.output / f"{self.name}.json").write_text(text, encoding="utf-8")

    def check(self, what, holds, detail=""):
        """Note whether something is as it should be."""
        self.checks.append([what, "" if holds else f"is not so: {detail}".rstrip(": ")])
        self._write()

    def say(self, text):
        """Print a figure that is not checked."""
        self.said.append(text)

    # --- Poise -----------------------------------------------------------------------------------

    @property
    def session(self):
        """Poise's own memory."""
        return importlib.import_module(f"{EXTENSION}.addon.blender.session")

    @property
    def armature(self):
        """The armature in the scene."""
        return next(o for o in bpy.context.scene.objects if o.type == "ARMATURE")

    @property
    def result(self):
        """The Result of the armature."""
        return self.session.result_of(bpy.context.scene, self.armature)

    def simulated_samples(self):
        """How many samples the job at work has simulated."""
        job = self.session.job()
        recording = job.shot.recording if job is not None else None
        return 0 if recording is None else len(recording)

    def nodes(self):
        """How many nodes of the rectification at work are committed."""
        search = getattr(self.session.job(), "search", None)
        return 0 if search is None else len(search.nodes)

    def generations(self):
        """How many generations the search at work has ended."""
        search = getattr(self.session.job(), "search", None)
        return 0 if search is None else len(search.generations)

    def workers(self):
        """Command lines of the processes that Blender has started and that have not ended."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                command = (folder / "cmdline").read_text()
            except (OSError, ValueError):  # it has just ended
                continue
            if parent == os.getpid() and "worker" in command:
                found.append(command.replace("\0", " "))
        return found

    def module(self, name):
        """A module of Poise's part in Blender, by its room and name."""
        return importlib.import_module(f"{EXTENSION}.addon.{name}")

    def rearrange(self, closed=(), opened=()):
        """Enable Poise anew, with some panels closed or open from the start."""
        extension = importlib.import_module(EXTENSION)
        extension.unregister()
        modules = map(self.module, _PANELS)
        for cls in (cls for module in modules for cls in module.CLASSES):
            name = cls.__name__.removeprefix("POISE_PT_")
            if name in closed:
                cls.bl_options = {"DEFAULT_CLOSED"}
            elif name in opened:
                cls.bl_options = set()
        extension.register()

    def hurry(self, hurry=True):
        """Whether jobs work for longer in each turn of the main loop than they do for a user."""
        self.module("jobs.modal").BUDGET = WORK if hurry else self._budget

    def time_steps(self):
        """From now on, note the longest step of a job in each of its stages: {stage: seconds},
        and under "stage (CPU)" what this thread itself worked meanwhile, which does not depend on
        what else the machine does."""
        job_class = importlib.import_module(f"{EXTENSION}.addon.jobs.job").Job
        step, longest = job_class.step, {}

        def timed(job, budget):
            started, own, doing = time.perf_counter(), time.thread_time(), job.doing
            try:
                return step(job, budget)
            except Exception:
                traceback.print_exc()  # where a sentence for the user came from
                raise
            finally:
                took = {doing: time.perf_counter() - started}
                took[f"{doing} (CPU)"] = time.thread_time() - own
                longest.update({key: max(longest.get(key, 0), took[key]) for key in took})

        job_class.step = timed
        return longest

    @staticmethod
    def yardstick():
        """What a fixed piece of work takes the processor [s], about 10 ms: measured by it, turns
        are as long on a slow machine, or beside others at work."""
        times = []
        for _ in range(9):
            started = time.thread_time()
            matrix = mathutils.Matrix()
            for i in range(20000):
                matrix = matrix @ mathutils.Matrix.Rotation(i, 4, "X")
            times.append(time.thread_time() - started)
        return sorted(times)[len(times) // 2]

    def curves(self, action):
        """All curves of an action."""
        compat = self.module("blender.compat")
        slots = action.slots if compat.HAS_SLOTS else [None]
        return [curve for slot in slots for curve in compat.curves(action, slot)]

    def state(self):
        """What a user would miss if it changed: frame, actions, keys and the pose, as text."""
        scene, armature = bpy.context.scene, self.armature
        keys = hashlib.sha1()
        for action in bpy.data.actions:
            for curve in self.curves(action):
                for point in curve.keyframe_points:
                    keys.update(repr(tuple(point.co)).encode())
        pose = hashlib.sha1()
        for bone in armature.pose.bones:
            pose.update(repr([tuple(row) for row in armature.matrix_world @ bone.matrix]).encode())
        animation = armature.animation_data
        return {
            "frame": scene.frame_current_final,
            "actions": sorted(action.name for action in bpy.data.actions),
            "assigned": animation.action.name if animation and animation.action else None,
            "keys": keys.hexdigest(),
            "pose": pose.hexdigest(),
            "objects": sorted(thing.name for thing in bpy.data.objects),
        }

    # --- Stations --------------------------------------------------------------------------------

    def open(self, clip, mode="FULL"):
        """A new file with a captured clip and Poise's tab in front. mode: QUICK or FULL."""
        bpy.ops.wm.read_homefile(use_empty=False)
        yield 0.2
        for name in ("Cube", "Light", "Camera"):
            bpy.data.objects.remove(bpy.data.objects[name])
        self._import(clip)
        bpy.context.scene.poise.mode = mode
        yield from self.show_sidebar()
        self.look_at((0.0, 0.0, 0.9), 4.2)
        bpy.ops.ed.undo_push(message="Opened")
        yield 0.5

    def show_sidebar(self):
        """Fill the window with the 3D view, and open Poise's tab in it."""
        self.window = bpy.context.window_manager.windows[0]
        self.area = next(a for a in self.window.screen.areas if a.type == "VIEW_3D")
        with bpy.context.temp_override(window=self.window, area=self.area):
            bpy.ops.screen.screen_full_area(use_hide_panels=False)
        yield 0.2
        self.area = next(a for a in self.window.screen.areas if a.type == "VIEW_3D")
        space = self.area.spaces.active
        space.show_region_ui = True
        space.overlay.show_floor = True
        yield 0.3
        self.sidebar.active_panel_category = "Poise"
        yield 0.2

    def _import(self, clip):
        folder = Path(os.environ["POISE_MOTIONS"])
        row = next(
            [cell.strip() for cell in line.strip("| \n").split("|")]
            for line in (folder / "README.md").read_text(encoding="utf-8").splitlines()
            if line.startswith(f"| {clip}.bvh")
        )
        fps, frames, up, scale = int(row[4]), int(row[5]), row[8], float(row[9])
        axes = {"axis_up": "Z", "axis_forward": "Y"} if up == "Z" else {}
        scene = bpy.context.scene
        scene.render.fps = fps
        path = str(folder / f"{clip}.bvh")
        bpy.ops.import_anim.bvh(filepath=path, global_scale=scale, **axes)
        scene.frame_start, scene.frame_end = 1, frames
        scene.frame_set(1)

    def bring(self, clip):
        """The action of another captured clip of the same rig, which its armature leaves behind."""
        scene, kept = bpy.context.scene, self.armature
        last = scene.frame_end
        self._import(clip)
        other = bpy.context.view_layer.objects.active
        action = other.animation_data.action
        bpy.data.objects.remove(other)
        scene.frame_end = last
        bpy.context.view_layer.objects.active = kept
        kept.select_set(True)
        return action

    def open_play(self):
        """A new file with the walk, and the panel in which it is played."""
        self.module("staging.walks_panel").POISE_PT_play.bl_options = set()
        self.rearrange(closed=("character", "gains", "measures"))
        yield from self.open("walk")

    def begin_play(self):
        """Play it, with the view at the character: `session.job()` then is what plays."""
        yield from self.click("bpy.ops.poise.play()")
        yield lambda: self.session.job() and self.session.job().is_played
        x, y, _ = self.session.job().play.centres[-1][0]
        self.look_at((x, y, 0.9), 6.0)

    def simulate_anew(self, message):
        """Simulate again after a change that a script has made."""
        bpy.ops.ed.undo_push(message=message)
        self.sidebar.tag_redraw()
        yield 0.5
        yield from self.click("bpy.ops.poise.simulate()")
        yield lambda: self.session.job() is None

    def bake(self, pause=1.0, things=()):
        """Press *Bake* and wait for the comparison; `unbaked` and `baked` are the states. things:
        names of what is baked besides."""
        before = self.state()
        yield from self.click("bpy.ops.poise.bake()")
        yield lambda: self.result.shot.measures and self.session.job() is None
        after = self.state()
        new = set(after["actions"]) - set(before["actions"])
        of_things = {action for action in new if action.startswith(tuple(things))}
        self.check("there is one for each thing", len(of_things) == len(things), new)
        new -= of_things
        self.check("there is one new action", len(new) == 1, new)
        self.check("it is assigned", after["assigned"] in new, after["assigned"])
        self.check("the frame is the same", after["frame"] == before["frame"])
        self.check("the pose is another", after["pose"] != before["pose"])
        yield pause
        self.unbaked, self.baked = before, after

    def undo_bake(self):
        """Undo it by one step."""
        yield from self.press("ctrl+z")
        self.check("one undo removes the bake", self.state() == self.unbaked, self.state())

    def redo_bake(self):
        """Bring it back."""
        yield from self.press("ctrl+shift+z")
        self.check("redo brings it back", self.state() == self.baked, self.state())

    def look_at(self, point, distance, direction=(1.15, 0.0, 0.7)):
        """Turn the 3D view: from `direction` (Euler angles [rad])."""
        import mathutils

        view = self.area.spaces.active.region_3d
        view.view_perspective = "PERSP"
        view.view_location = point
        view.view_distance = distance
        view.view_rotation = mathutils.Euler(direction).to_quaternion()

    def shot(self, name):
        """Take a picture of the whole screen: OUTPUT/NAME.png."""
        path = self.output / f"{name}.png"
        picture = subprocess.Popen(["import", "-window", "root", str(path)])
        yield lambda: picture.poll() is not None
        self.check(f"picture {name}", path.is_file() and path.stat().st_size > 20000)

    def blue(self, name):
        """How many pixels of the sidebar in a picture have the blue of what is chosen or full."""
        image, region = bpy.data.images.load(str(self.output / f"{name}.png")), self.sidebar
        width, height = image.size
        pixels = np.array(image.pixels[:]).reshape(height, width, 4)[::-1]
        bpy.data.images.remove(image)
        top = self.window.height - region.y - region.height
        pixels = pixels[top : top + region.height, region.x : region.x + region.width]
        return int((np.abs(pixels[..., :3] - _BLUE) < 0.03).all(-1).sum())

    # --- Mouse and keys --------------------------------------------------------------------------

    @property
    def sidebar(self):
        """The sidebar's region in the 3D view."""
        return next(r for r in self.area.regions if r.type == "UI")

    @property
    def view(self):
        """The 3D view's main region."""
        return next(r for r in self.area.regions if r.type == "WINDOW")

    def point_at(self, x, y):
        """Move the mouse to window coordinates, y upwards as Blender has it."""
        _xdotool("mousemove", int(x), self.window.height - 1 - int(y))

    def mouse(self, verb):
        """Press or let go the left button, "mousedown" or "mouseup", where the mouse is."""
        _xdotool(verb, 1)

    def click_right(self):
        """Click with the right button where the mouse is."""
        _xdotool("click", 3)

    def press(self, *keys):
        """Press keys, such as "Escape" or "ctrl+z", with the mouse over the 3D view."""
        view = self.view
        self.point_at(view.x + view.width / 4, view.y + view.height / 4)
        yield 0.1
        for key in keys:
            _xdotool("key", key)
            yield 0.1

    def click(self, command, across=0.4):
        """Click the button in the sidebar that runs a Python command, such as
        `bpy.ops.poise.bake()`. across: where in the width of the sidebar to look for it."""
        yield from self.find(command, across)
        _xdotool("click", 1)
        yield 0.05

    def key(self, field, value, across=0.7):
        """Type a value into the field of a property in the sidebar, and key it, with I over it."""
        yield from self.find(field, across)
        for keys in ("Return", "ctrl+a", *value, "Return", "i"):
            _xdotool("key", keys)
            yield 0.2

    def find(self, command, across=0.4):
        """Point at the button in the sidebar that runs a Python command, or at the field of a
        property, such as `bpy.context.scene.poise.noise`; scrolls if need be."""
        if (yield from self._find_in_sight(command, across)):
            return
        yield from self._scroll(60, _UP)  # to the top
        for _ in range(4):
            if (yield from self._find_in_sight(command, across)):
                return
            page = self.sidebar.height - _OVERLAP
            yield from self._scroll(page // NOTCH, _DOWN)
        raise LookupError(f"there is no button for {command} in the sidebar")

    def scroll(self, notches):
        """Turn the mouse wheel so far over the sidebar, downward."""
        region = self.sidebar
        self.point_at(region.x + region.width // 2, region.y + region.height // 2)
        yield from self._scroll(notches, _DOWN)

    def _scroll(self, notches, way):
        """Turn the mouse wheel so far where the mouse is."""
        _xdotool("click", "--repeat", notches, "--delay", 10, way)
        yield 0.5

    def _find_in_sight(self, command, across):
        """Sweep the mouse over what is visible of the sidebar; returns whether it is there."""
        region = self.sidebar
        manager = bpy.context.window_manager
        rows = range(30, region.height - 10, ROW)
        # From the last find on: what is pressed next is often near.
        for below in sorted(rows, key=lambda row: abs(row - self._found)):
            self.point_at(region.x + across * region.width, region.y + region.height - below)
            yield HOVER
            manager.clipboard = ""
            with bpy.context.temp_override(window=self.window, area=self.area, region=region):
                if bpy.ops.ui.copy_python_command_button.poll():
                    bpy.ops.ui.copy_python_command_button()
                elif bpy.ops.ui.copy_data_path_button.poll():
                    bpy.ops.ui.copy_data_path_button(full_path=True)
            if manager.clipboard.startswith(command):
                self._found = below
                return True
        return False

    def hover(self):
        """Wait for the tooltip of what the mouse points at."""
        _xdotool("mousemove_relative", 3, 1)
        yield 2.5

    def redraw_gap(self, region=None):
        """Longest gap [s] while nothing happens but the 3D view, or one region of it, being drawn
        all the time."""
        yield 0.5
        self.longest_gap = 0.0
        for _ in range(20):
            (region or self.area).tag_redraw()
            yield 0.05
        return self.longest_gap


def _xdotool(*arguments):
    subprocess.run(["xdotool", *map(str, arguments)], check=True)


def _prepare():
    """Quiet preferences. Raises RuntimeError unless the installer has enabled Poise."""
    preferences = bpy.context.preferences
    preferences.view.show_splash = False
    preferences.view.show_tooltips = False
    preferences.use_preferences_save = False
    preferences.filepaths.use_auto_save_temporary_files = False
    preferences.system.viewport_aa = "OFF"  # without a graphics card it takes a quarter of the time
    if EXTENSION not in preferences.addons:
        raise RuntimeError(f"{EXTENSION} is not enabled in this profile")


def main():
    """Load the scenario and start it."""
    name, output = sys.argv[sys.argv.index("--") + 1 :]
    path = Path(__file__).with_name(f"{re.sub('[^a-z_]', '', name)}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _prepare()
    driver = Driver(name, output)
    driver.hurry()
    driver.run(module.scenario(driver))


if __name__ == "__main__":
    main()
