# SPDX-License-Identifier: GPL-3.0-or-later
"""The clips of SCA12, table 3, that no capture at hand shows, as long as the paper's."""

import numpy as np

from .person import RATE, STATURE, Score

_OVER = 0.085  # [m] from the middle: the centre of mass above a foot, a little inside its middle


def _score(name, seconds, **options):
    return Score(name, np.arange(round(seconds * RATE) + 1) / RATE, **options)


def stand_shift():
    """Stands and shifts the weight from foot to foot."""
    score = _score("stand_shift", 10.5)
    turns = [(0.5, 0), (2.0, 1), (3.0, 1), (5.0, -1), (6.0, -1), (8.0, 1), (8.5, 1), (10.0, 0)]
    side = score.keyed(*turns)
    score.com[:, 1] = 0.06 * side
    score.trunk[:, 0] = -0.04 * side
    return score.motion()


def squat_made():
    """Bends the knees to 60 degrees, twice, the arms ahead."""
    score = _score("squat_made", 9.2)
    down = score.keyed(
        (0.5, 0), (2.2, 1), (2.6, 1), (4.3, 0), (4.9, 0), (6.6, 1), (7.0, 1), (8.7, 0)
    )
    score.lower = 0.097 * down
    score.trunk[:, 1] = 0.45 * down
    score.pelvis[:, 1] = 0.35 * down
    score.arms[:, :, 0] += 1.2 * down[:, None]
    return score.motion()


def hula():
    """Swings the hips on a circle, as with a hoop."""
    score = _score("hula", 20.2, width=0.085 * STATURE)
    size = score.keyed((0.5, 0), (3.0, 1), (17.2, 1), (19.7, 0))
    angle = 2 * np.pi * 0.6 * score.time
    circle = size[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    score.com = 0.03 * circle
    score.lower = 0.02 * size
    # The shoulders stay where they are: the trunk leans against the hips.
    score.trunk[:, :2] = 0.16 * np.stack([circle[:, 1], -circle[:, 0]], 1)
    score.pelvis[:, :2] = -0.06 * np.stack([circle[:, 1], -circle[:, 0]], 1)
    score.arms[:, :, 1] += 0.5 * size[:, None]
    score.arms[:, :, 2] += 0.9 * size[:, None]
    return score.motion()


def single_made():
    """Stands on the left foot and raises the right one, three times."""
    score = _score("single_made", 9.8)
    score.com[:, 1] = _OVER * score.keyed((0.2, 0), (1.5, 1), (8.4, 1), (9.6, 0))
    up = [(1.4, 0), (2.4, 1), (2.9, 1), (3.9, 0)]
    keys = [(time + 2.4 * i, value) for i in range(3) for time, value in up]
    raised = score.keyed(*keys)
    score.lift[:, 1] = raised
    score.swing[:, 1] += np.array([0.25, 0.0, 0.22]) * raised[:, None]
    score.arms[:, :, 1] += 0.5 * score.keyed((0.2, 0), (1.5, 1), (8.4, 1), (9.6, 0))[:, None]
    return score.motion()


def front_swing():
    """Stands on one foot and swings the other leg forward and back, then the other way round."""
    return _swings("front_swing", [(0.75, 0.0, 0.04), (-0.25, 0.0, 0.18)])


def side_swing():
    """Stands on one foot and swings the other leg outward, then the other way round."""
    return _swings("side_swing", [(0.0, 0.6, 0.04), (0.0, 0.05, 0.15)])


def _swings(name, ends):
    """Swings of the right and then of the left leg to both ends: forward, outward [rad], and
    how much of the leg's length its knee takes up."""
    score = _score(name, 19.7)
    score.com[:, 1] = _OVER * score.keyed(
        (0.3, 0), (1.7, 1), (8.6, 1), (11.1, -1), (18.0, -1), (19.4, 0)
    )
    score.arms[:, :, 1] += score.keyed((0.3, 0), (1.7, 1), (18.0, 1), (19.4, 0))[:, None]
    lifted = [(0.0, 0), (1.1, 1), (5.8, 1), (6.9, 0)]
    under = (0.0, 0.0, 0.15)
    path = [(0.7, under), (2.0, ends[0]), (3.4, ends[1]), (4.8, ends[0]), (6.0, under)]
    for leg, start in ((1, 1.7), (0, 11.1)):
        score.lift[:, leg] = score.keyed(*((start + time, share) for time, share in lifted))
        score.swing[:, leg] = score.keyed(*((start + time, end) for time, end in path))
    return score.motion()


#: Functions that make a Motion, by its name.
MADE = {
    function.__name__: function
    for function in (stand_shift, squat_made, hula, single_made, front_swing, side_swing)
}
