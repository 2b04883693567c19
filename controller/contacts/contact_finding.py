# SPDX-License-Identifier: GPL-3.0-or-later
"""Propose a contact plan: when the points of a sole seem to stand, from where they go.

A stance is judged by the floor where and when the foot stands, since captured floors are seldom
level, and ends when the foot goes, not at one height for the whole clip. In a stance the points
near the lowest hold; one of them always does.
"""

import numpy as np

from ..body.momentum import GRAVITY
from ..exceptions import MotionError
from ..geometry.stance import MAJORITY, Above, around, majority, runs
from .contact_plan import ContactPlan, flights

# By trial on 21 captured clips, until the clean-up of all was one to keep: see `researcher.md`,
# Clean-up without a simulation. Fifteen of PyBullet's, which chose nothing, are kept too.
_FILTER = 0.06  # [s] that positions are smoothed over
_WEIGHT_FILTER = 0.12  # [s] likewise the centre of mass
_NEIGHBOURHOOD = 0.8  # [s] in which the lowest that a foot is tells its floor
_LOWEST = 5  # percentile of a foot's heights that tells its floor: single samples are lower
_UNEVEN = 0.08  # [m, adult] that a floor may rise above the lowest of the clip
_LOW, _SLOW = 0.03, 0.6  # [m, adult], [m/s] of the lowest point of a foot that stands
_NEAR = 0.016  # [m, adult] above the lowest point that others stand too
_CARRIED = 0.5  # of gravity that somebody must give where no foot seems to stand ...
_HIGH, _LEVEL = 0.12, 0.02  # [m, adult] ... which is the lowest one up to here, or both if level
_LET_GO = 0.08  # [s] that a foot is off the floor at least
_GAP, _SHORTEST = 0.12, 0.05  # [s] a point's gaps that are closed, spans that are dropped
_PIVOT, _PIVOT_TIME = 0.05, 0.3  # [m, adult] that a standing point may go in [s]
_TURNS = 1.5  # times as far as another point
_TWIST = 0.2  # [rad] in the same time, of a foot that turns on one point
_FALLING = 0.35  # of gravity: below, the floor gives next to nothing
_UNCARRIED = 0.075  # [s] that nothing carries a body which does not fall: contacts have short gaps


def find_plan(
    points: np.ndarray,
    com: np.ndarray,
    rate: float,
    size: float = 1.0,
    name: str = "the clip",
    over: Above | None = None,
) -> ContactPlan:
    """The ContactPlan that an animation seems to follow.

    points: (F, 2, 3, 3) heel, ball and tip of the left and right sole [m]. com: (F, 3) centre of
    mass [m]. rate [Hz]. size: of the body against an adult. over: Above of the points, where what
    is under them is known; None to judge by how low they are. Raises MotionError if no foot ever
    stands.
    """
    if over is not None:  # as seen from what is under them
        plan = points[..., :2] - np.cumsum(over.drifts[..., :2], axis=0) / rate
        points = np.concatenate([plan, over.heights[..., None]], -1)
    smooth = smoothed(points, _FILTER, rate)
    height = smooth[..., 2]
    speed = np.linalg.norm(np.gradient(smooth[..., :2], axis=0), axis=-1) * rate
    weight = smoothed(com, _WEIGHT_FILTER, rate)
    stands = _stances(height, speed, weight, rate, size, over is not None)
    for first, stop in flights(airborne(com, rate), rate):
        stands[first:stop] = False
    if not stands.any():
        raise MotionError(
            f"No foot of '{name}' ever stands: choose frames in which the body is on the floor, "
            "or give a contact plan."
        )
    marks = np.zeros(height.shape, bool)
    for foot in range(2):
        marks[:, foot] = _points_that_hold(height[:, foot], stands[:, foot], rate, size)
        for first, stop in runs(stands[:, foot]):
            _let_pivots_go(marks[first:stop, foot], smooth[first:stop, foot, :, :2], rate, size)
    return ContactPlan.from_marks(marks, rate)


def airborne(com: np.ndarray, rate: float) -> np.ndarray:
    """(F,) where a body whose centre of mass goes (F, 3) [m] presses on no floor."""
    return borne_share(smoothed(com, _WEIGHT_FILTER, rate), rate) < _FALLING


def uncarried(stands: np.ndarray, com: np.ndarray, rate: float) -> list[tuple[int, int]]:
    """(first, last) sample of each stretch in which no foot stands, and yet the body does not fall,
    the longest first: where a clip skates or hovers, or hands carry it. stands: (F,) whether a foot
    does; com: (F, 3) centre of mass [m]."""
    lost = runs(~stands & ~airborne(com, rate)).tolist()
    found = [(first, stop - 1) for first, stop in lost if stop - first > _UNCARRIED * rate]
    return sorted(found, key=lambda span: span[0] - span[1])


def smoothed(values: np.ndarray, seconds: float, rate: float) -> np.ndarray:
    """(F, ...) values, averaged over a bell of so many seconds; the ends as if they went on."""
    width = max(3, round(seconds * rate)) | 1
    bell = np.hanning(width + 2)[1:-1]
    bell /= bell.sum()
    half = width // 2
    padded = np.concatenate(
        [np.repeat(values[:1], half, axis=0), values, np.repeat(values[-1:], half, axis=0)]
    )
    return sum(share * padded[i : i + len(values)] for i, share in enumerate(bell))


def borne_share(com: np.ndarray, rate: float) -> np.ndarray:
    """(F,) what the floor must give against gravity, as a share of the body's weight."""
    upward = np.gradient(np.gradient(com[:, 2])) * rate * rate
    return 1 + upward / GRAVITY


def _stances(
    height: np.ndarray, speed: np.ndarray, com: np.ndarray, rate: float, size: float, known: bool
) -> np.ndarray:
    """(F, 2) where each foot stands, by heights and speeds (F, 2, 3) of the points of its sole.
    known: whether the heights are those over what is under it."""
    lowest = height.min(2)
    half = max(1, round(_NEIGHBOURHOOD * rate / 2))
    base = np.percentile(lowest, _LOWEST, axis=0)
    base = np.full(2, base.min()) if np.ptp(base) > _UNEVEN * size else base
    base = np.minimum(base, 0.0) if known else base
    ground = np.minimum(around(lowest, half, np.min), base + _UNEVEN * size)
    low = (height - ground[..., None] < _LOW * size) & (speed < _SLOW)
    window = max(1, round(MAJORITY * rate))
    stands = majority(low.any(2), window)
    # A body that does not fall is carried, by the lowest foot, whatever its height.
    carried = majority((borne_share(com, rate) > _CARRIED)[:, None], window)[:, 0] & ~stands.any(1)
    level = lowest < lowest.min(1, keepdims=True) + _LEVEL * size
    fit = level & (lowest - ground < _HIGH * size) & (speed.min(2) < _SLOW)
    stands |= carried[:, None] & fit
    for foot in range(2):
        least = max(2, round(_LET_GO * rate))
        stands[:, foot] = ~_without_short(~stands[:, foot], least)
        stands[:, foot] = _without_short(stands[:, foot], max(2, round(_SHORTEST * rate)))
    return stands


def _points_that_hold(
    height: np.ndarray, stands: np.ndarray, rate: float, size: float
) -> np.ndarray:
    """(F, 3) which points hold, of a foot with heights (F, 3) that stands where (F,) says."""
    near = height < height.min(1, keepdims=True) + _NEAR * size
    marks = near & stands[:, None]
    shortest, gap = max(2, round(_SHORTEST * rate)), round(_GAP * rate)
    for point in range(3):
        mark = marks[:, point]
        for first, stop in runs(~mark):
            inside = first > 0 and stop < len(mark) and stands[first:stop].all()
            if inside and stop - first <= gap:
                mark[first:stop] = True
        marks[:, point] = _without_short(mark, shortest)
    alone = np.flatnonzero(stands & ~marks.any(1))
    marks[alone, height[alone].argmin(1)] = True
    return marks


def _let_pivots_go(marks: np.ndarray, plan: np.ndarray, rate: float, size: float) -> None:
    """Free the points of a standing foot that travel, as where it turns on its ball.

    marks: (n, 3), changed in place. plan: (n, 3, 2) [m]. A foot that slides as a whole is none: a
    point is let go that goes much farther than the one that goes least, which is kept; and where
    the foot is twisted, all but that one.
    """
    count = len(marks)
    half = max(2, round(_PIVOT_TIME / 2 * rate))
    at = np.arange(count)
    before = marks.copy()
    for point in range(3):
        for first, stop in runs(before[:, point]):
            inside = at[first:stop]
            start = np.clip(inside - half, first, stop - 1)
            end = np.clip(inside + half, first, stop - 1)
            way = np.linalg.norm(plan[end] - plan[start], axis=-1)
            others = before[first:stop].copy()
            others[:, point] = False
            least = np.where(others, way, np.inf).min(1)
            marks[first:stop, point] &= way[:, point] < np.maximum(_PIVOT * size, _TURNS * least)
    lost = before.any(1) & ~marks.any(1)
    marks[lost] = before[lost]
    start, end = np.maximum(at - half, 0), np.minimum(at + half, count - 1)
    ahead = plan[:, 1] - plan[:, 0]
    across = ahead[start, 0] * ahead[end, 1] - ahead[start, 1] * ahead[end, 0]
    turned = np.abs(np.arctan2(across, (ahead[start] * ahead[end]).sum(1)))
    way = np.linalg.norm(plan[end] - plan[start], axis=-1)
    for first, stop in runs(turned > _TWIST):
        own = marks[first:stop]
        often = own.sum(0) > 0.5 * own.sum(0).max()
        best = int(np.where(often, way[first:stop].mean(0), np.inf).argmin())
        own[own[:, best]] = np.arange(3) == best


def _without_short(mask: np.ndarray, least: int) -> np.ndarray:
    """(F,) without the runs of True that are shorter, but for those at the ends of the clip."""
    mask = mask.copy()
    for first, stop in runs(mask):
        if stop - first < least and first > 0 and stop < len(mask):
            mask[first:stop] = False
    return mask
