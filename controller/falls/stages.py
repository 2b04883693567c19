# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways in which a body gets up, stage by stage.

From its back over one side onto its knees, from its front at once; then on all fours, with one foot
between the hands, up on that, and the other foot beside it. People rise so, among other ways
(VanSant, "Rising from a Supine Position to Erect Stance", Physical Therapy 68, 1988). All numbers
below are by trial on fifty bodies that lay.

Names end in L for the side that leads, which steps in first, and in T for the other.
"""

from dataclasses import dataclass, field

#: What carries the body: see `Stage.bears`.
FOREARM, SHIN, FOOT = "forearm", "shin", "foot"


@dataclass(frozen=True)
class Stage:
    """What a body comes to in a stage, from wherever it is.

    seconds: how long it takes. pitch [degrees] of the pelvis from upright, forward. height: of the
    pelvis above the floor, as a share of what it has when it stands. pose: pitch [degrees] of
    joints. keeps: points that stay where they are. places: {point: (from where, ahead, aside)} of
    those that come to the floor, in statures from the PELVIS, another point, where it will be
    STANDING, or FLAT ahead of its heel. lifts: {point: height [statures]} of what goes through the
    air meanwhile. via: {joint: [degrees]} by which it is bent more half way. over: {point: weight},
    above the mean of which the centre of mass comes; without it that goes where it likes. bears:
    what may press. arms: where in the trunk's frame the left upper arm points, and to where its
    elbow bends. rises: whether what bears takes all of the weight; else only what the rest of the
    body does not, which lies. side: on which it lies, not on its front.
    """

    seconds: float
    pitch: float
    height: float
    pose: dict[str, float]
    keeps: tuple[str, ...] = ()
    places: dict[str, tuple[str, float, float]] = field(default_factory=dict)
    lifts: dict[str, float] = field(default_factory=dict)
    via: dict[str, float] = field(default_factory=dict)
    over: dict[str, float] = field(default_factory=dict)
    bears: tuple[str, ...] = (FOREARM, SHIN, FOOT)
    arms: tuple[tuple[float, float, float], tuple[float, float, float]] = (
        (0.35, 0.15, -1.0),
        (1.0, 0.0, 0.0),
    )
    rises: bool = True
    side: bool = False


#: From where the places of points are, see `Stage.places`.
PELVIS, STANDING, FLAT = "pelvis", "standing", "flat"

_ON_KNEES: dict[str, float] = {
    **{"hip": -80, "knee": 95, "ankle": -15, "toe": -40},
    **{"spine": 10, "neck": -20, "elbow": -15},
}
_DOWN = (1.0, 0.15, 0.15), (0.2, 0.3, 1.0)

ONTO_SIDE = Stage(
    0.5,
    0,
    0.15,
    {"hip": -60, "knee": 80, "ankle": 10, "spine": 25, "neck": 20, "elbow": -80},
    arms=((0.8, 0.1, -0.3), (0.2, -0.3, 1.0)),
    rises=False,
    side=True,
)
ONTO_KNEES = Stage(
    0.5,
    95,
    0.36,
    {**_ON_KNEES, "hip": -105, "knee": 125, "spine": 20, "elbow": -90},
    places={
        "knee_L": (PELVIS, -0.02, 0.07),
        "knee_T": (PELVIS, -0.02, -0.07),
        "hand_L": (PELVIS, 0.34, 0.13),
        "hand_T": (PELVIS, 0.34, -0.13),
    },
    arms=((1.0, 0.2, 0.3), (0.2, 0.5, 1.0)),
    rises=False,
)
ONTO_HANDS = Stage(
    0.45,
    88,
    0.17,
    {"hip": -10, "knee": 15, "ankle": 20, "neck": -15, "elbow": -100},
    places={"hand_L": (PELVIS, 0.26, 0.16), "hand_T": (PELVIS, 0.26, -0.16)},
    arms=((0.3, 0.9, -0.1), (1.0, 0.0, 0.4)),
    rises=False,
)
ON_ALL_FOURS = Stage(
    0.55,
    78,
    0.56,
    _ON_KNEES,
    places={
        "hand_L": (PELVIS, 0.32, 0.12),
        "hand_T": (PELVIS, 0.32, -0.12),
        "knee_L": (PELVIS, -0.04, 0.07),
        "knee_T": (PELVIS, -0.04, -0.07),
        "tip_L": ("knee_L", -0.21, 0.0),
        "tip_T": ("knee_T", -0.21, 0.0),
    },
    over={"hand_L": 0.2, "hand_T": 0.2, "knee_L": 0.3, "knee_T": 0.3},
    arms=_DOWN,
)
_STEPPED_IN = {**_ON_KNEES, "toe_L": 0, "neck": -30}
STEP_IN = Stage(
    0.6,
    52,
    0.60,
    {
        **_STEPPED_IN,
        **{"hip_L": -115, "knee_L": 90, "ankle_L": -10},
        **{"hip_T": -45, "knee_T": 90, "ankle_T": -20, "spine": 42},
    },
    keeps=("hand_L", "hand_T", "knee_T", "tip_T"),
    places={
        "heel_L": ("knee_T", 0.13, 0.14),
        "ball_L": (FLAT, 0.0, 0.0),
        "tip_L": (FLAT, 0.0, 0.0),
    },
    lifts={"heel_L": 0.06, "ball_L": 0.05, "tip_L": 0.05},
    via={"knee_L": 25, "ankle_L": -15},
    over={"hand_L": 0.2, "hand_T": 0.2, "knee_T": 0.35, "heel_L": 0.25},
    arms=((1.0, 0.15, 0.4), (0.2, 0.3, 1.0)),
)
PUSH_OFF = Stage(
    0.4,
    40,
    0.68,
    {
        **_STEPPED_IN,
        **{"hip_L": -105, "knee_L": 95, "ankle_L": -20},
        **{"hip_T": -40, "knee_T": 75, "ankle_T": -25, "spine": 45, "neck": -20},
    },
    keeps=("hand_L", "hand_T", "heel_L", "ball_L", "tip_L", "tip_T"),
    over={"heel_L": 0.3, "ball_L": 0.4, "tip_T": 0.3},
    arms=((1.0, 0.15, 0.3), (0.2, 0.3, 1.0)),
)
RISE = Stage(
    0.55,
    20,
    0.84,
    {
        **{"hip_L": -65, "knee_L": 65, "ankle_L": -15},
        **{"hip_T": -10, "knee_T": 50, "ankle_T": -5, "toe_T": -40},
        **{"spine": 12, "neck": -5, "elbow": -30},
    },
    keeps=("heel_L", "ball_L", "tip_L", "tip_T"),
    over={"heel_L": 0.35, "ball_L": 0.4, "tip_T": 0.25},
    bears=(FOREARM, FOOT),
)
STEP_UP = Stage(
    0.5,
    12,
    0.94,
    {
        **{"hip_L": -25, "knee_L": 30, "hip_T": -25, "knee_T": 35},
        **{"spine": 6, "elbow": -15},
    },
    keeps=("heel_L", "ball_L", "tip_L"),
    places={name: (STANDING, 0.0, 0.0) for name in ("heel_T", "ball_T", "tip_T")},
    lifts={"heel_T": 0.035, "ball_T": 0.03, "tip_T": 0.025},
    via={"knee_T": 30, "hip_T": -15},
    over={"heel_L": 0.4, "ball_L": 0.4, "heel_T": 0.1, "ball_T": 0.1},
    bears=(FOOT,),
)
#: The last one: pose and place are those in which it will stand.
STAND = Stage(
    0.38,
    0,
    1.0,
    {},
    keeps=("heel_L", "ball_L", "tip_L", "heel_T", "ball_T", "tip_T"),
    bears=(FOOT,),
)

FROM_BACK = (ONTO_SIDE, ONTO_KNEES, ON_ALL_FOURS, STEP_IN, PUSH_OFF, RISE, STEP_UP, STAND)
FROM_FRONT = (ONTO_HANDS, ON_ALL_FOURS, STEP_IN, PUSH_OFF, RISE, STEP_UP, STAND)
