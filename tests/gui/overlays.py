# SPDX-License-Identifier: GPL-3.0-or-later
"""The overlays in the window: on the recording, while scrubbing, and how long drawing takes."""

import math
import time

import bpy
import gpu

SIMULATE = "bpy.ops.poise.simulate()"
SWITCHES = ("pushes", "things", "forces", "cop", "com", "support", "stance")
#: The overlays of the whole result.
PATHS = ("trail", "arcs", "footprints")
#: The disturbances: a clip that stands on one leg stands few. Pushes with strength [N], direction
#: [rad], duration [s] and start [frames]; mass of spheres [kg] and seed of their directions.
STRENGTH, AZIMUTH, DURATION, STARTS = 155.0, -2.356, 0.05, (61, 121, 181, 241)
MASS, SEED = 0.25, 2
#: The timeline is made higher by so much [pixels].
HIGHER = 90
#: So many redraws are timed at once, so many times in turn.
REDRAWS, OWN_REDRAWS, ROUNDS = 6, 30, 3


def scenario(driver):
    """Simulate under disturbances, look at the overlays, and time them."""
    driver.rearrange(closed=("character", "measures", "bake"), opened=("overlays",))
    yield from driver.open("knee_raises")
    _disturb()
    yield from _arrange(driver)
    yield from _raise_timeline(driver)
    yield from driver.shot("overlays_1_empty")
    yield from _simulate(driver)
    yield from _look(driver)
    yield from _paths(driver)
    yield from driver.open("arm")
    _disturb()
    yield from _arrange(driver)
    yield from _simulate(driver)
    yield from _time(driver)


def _disturb():
    """Pushes and spheres, for balance alone: what comes out need not be kept."""
    settings = bpy.context.scene.poise
    settings.method = "BALANCE"
    for frame in STARTS:
        push = settings.pushes.items.add()
        push.frame, push.duration = frame, DURATION
        push.strength, push.azimuth = STRENGTH, AZIMUTH
    settings.objects.throw = True
    settings.objects.throw_mass, settings.objects.throw_seed = MASS, SEED


def _arrange(driver):
    """The layout that Blender starts with, and a graph editor."""
    with bpy.context.temp_override(window=driver.window, area=driver.area):
        bpy.ops.screen.screen_full_area(use_hide_panels=False)
    yield 0.5
    screen = driver.window.screen
    driver.area = next(a for a in screen.areas if a.type == "VIEW_3D")
    timeline = _timeline(driver)
    next(a for a in screen.areas if a.type == "OUTLINER").ui_type = "FCURVES"
    yield 0.5
    driver.area.spaces.active.show_region_ui = True
    driver.area.spaces.active.show_gizmo = False  # those of the pushes are another scenario's
    yield 0.5
    driver.sidebar.active_panel_category = "Poise"
    driver.look_at((0.1, 0.0, 0.85), 3.0)
    with bpy.context.temp_override(
        window=driver.window, area=timeline, region=_main_region(timeline)
    ):
        bpy.ops.action.view_all()
    for name in SWITCHES:
        setattr(bpy.context.scene.poise.overlays, name, True)
    yield 0.5


def _raise_timeline(driver):
    timeline = _timeline(driver)
    x, y = timeline.x + 300, timeline.y + timeline.height
    driver.point_at(x, y)  # only over an edge Blender moves it
    yield 0.5
    with bpy.context.temp_override(window=driver.window, screen=driver.window.screen):
        bpy.ops.screen.area_move(x=x, y=y, delta=HIGHER)
    yield 0.5


def _timeline(driver):
    return next(a for a in driver.window.screen.areas if a.type == "DOPESHEET_EDITOR")


def _main_region(area):
    return next(r for r in area.regions if r.type == "WINDOW")


def _simulate(driver):
    yield from driver.click(SIMULATE)
    yield lambda: driver.session.job() is None
    driver.check("there is a result", driver.result.recording is not None, driver.result.error)


def _look(driver):
    scene = bpy.context.scene
    names = ("overlays.overlay_marks", "overlays.overlay_bar")
    marks, bar = (driver.module(name)._batch for name in names)
    for number, frame in enumerate(STARTS):
        scene.frame_set(frame + 2)
        yield 1.5
        yield from driver.shot(f"overlays_2_push_{number}")
    drawn, hits = marks.cache_info(), bar.cache_info().hits
    driver.check("the marks are drawn", drawn.currsize > 1, drawn)
    driver.check("the bar is drawn", bar.cache_info().misses > 0, bar.cache_info())
    driver.area.tag_redraw()
    _timeline(driver).tag_redraw()
    yield 0.5
    again = marks.cache_info()
    driver.check("the same marks are not made again", again.misses == drawn.misses, again)
    driver.check("nor is the bar", bar.cache_info().hits > hits, bar.cache_info())
    scene.poise.ghost = "BESIDE"
    yield 1.5
    yield from driver.shot("overlays_3_beside")
    scene.poise.ghost = "OVER"


def _paths(driver):
    """A run: what it leaves behind is made once, whatever frame is shown."""
    yield from driver.open("run")
    yield from _arrange(driver)
    yield from _raise_timeline(driver)
    scene, made = bpy.context.scene, driver.module("overlays.overlay_paths")._batch
    scene.poise.method, scene.poise.overlays.newtons_per_metre = "BALANCE", 1500
    for name in PATHS:
        setattr(scene.poise.overlays, name, True)
    before = made.cache_info()
    yield from _simulate(driver)
    com = driver.result.recording.com
    ahead = (com[-1] - com[0])[:2]
    centre = (*(com[:, :2].mean(0) + 0.15 * ahead), 0.6)
    side = (1.3, 0.0, math.atan2(ahead[1], ahead[0]) + 0.25)
    driver.look_at(centre, 4.2, side)
    yield from driver.scroll(25)
    for frame in (20, 48, 60):
        scene.frame_set(frame)
        yield 1.0
        yield from driver.shot(f"overlays_4_paths_{frame}")
    cache = made.cache_info()
    once = cache.misses == before.misses + 1 and cache.hits > before.hits + 1
    driver.check("the paths are made once", once, (before, cache))
    driver.look_at(centre, 30.0, side)
    yield 1.0
    yield from driver.shot("overlays_4_paths_far")


def _time(driver):
    """What drawing takes, while frames go by and while they do not."""
    scene = bpy.context.scene
    stages = {
        "empty": ("HIDDEN", ()),
        "with the ghost and all overlays": ("OVER", SWITCHES + PATHS),
    }
    figures = {}
    for _ in range(ROUNDS):
        for stage, (ghost, marks) in stages.items():
            scene.poise.ghost = ghost
            for name in SWITCHES + PATHS:
                setattr(scene.poise.overlays, name, name in marks)
            yield 0.3
            for moving in (False, True):
                figure = _redraws(driver, scene if moving else None)
                key = f"3D view, {stage}, {'moving' if moving else 'still'}"
                figures.setdefault(key, []).append(figure)
        for what, figure in _own(driver):
            figures.setdefault(what, []).append(figure)
    for key, values in figures.items():
        driver.say(f"{key}: {sorted(values)[ROUNDS // 2]:.1f} ms, at best {min(values):.1f} ms")


def _redraws(driver, scene):
    """Mean time [ms] of drawing the 3D view. scene: goes from frame to frame meanwhile, outside of
    that time."""
    spent = 0.0
    for frame in range(REDRAWS):
        if scene:
            scene.frame_set(100 + frame)
        began = time.perf_counter()
        _draw_view(driver)
        spent += time.perf_counter() - began
    return 1000 * spent / REDRAWS


def _draw_view(driver):
    with bpy.context.temp_override(window=driver.window, area=driver.area, region=driver.view):
        bpy.ops.wm.redraw_timer(type="DRAW", iterations=1)


def _own(driver):
    """What of it is Poise's own: a list of (what, mean time [ms]), pixels included."""
    names = ("overlays.overlay", "overlays.overlay_marks", "overlays.overlay_paths")
    ghost, marks, paths = (driver.module(name) for name in names)
    parts = {
        "nothing": (),
        "ghost": (ghost._draw,),
        "ghost and marks": (ghost._draw, marks._draw),
        "ghost, marks and paths": (ghost._draw, marks._draw, paths._draw),
    }
    sample_at, found = ghost.sample_at, []

    def measure():
        buffer = gpu.state.active_framebuffer_get()
        for moving in (False, True):
            for name, draws in parts.items():
                began = time.perf_counter(), time.process_time()
                for sample in range(OWN_REDRAWS):
                    ghost.sample_at = lambda *_, k=100 + sample * moving: k
                    for draw in draws:
                        draw()
                    buffer.read_color(0, 0, 1, 1, 4, 0, "FLOAT")  # when all is drawn
                ended = time.perf_counter(), time.process_time()
                for clock, start, end in zip(("wall", "CPU"), began, ended, strict=True):
                    key = f"own, {name}, {'moving' if moving else 'still'}, {clock}"
                    found.append((key, 1000 * (end - start) / OWN_REDRAWS))

    handle = bpy.types.SpaceView3D.draw_handler_add(measure, (), "WINDOW", "POST_VIEW")
    try:
        _draw_view(driver)
    finally:
        bpy.types.SpaceView3D.draw_handler_remove(handle, "WINDOW")
        ghost.sample_at = sample_at
    return found
