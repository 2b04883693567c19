# SPDX-License-Identifier: GPL-3.0-or-later
"""Published body proportions: how heavy a person is, and how that mass is spread.

Segment masses, centres of mass and radii of gyration are the male means of P. de Leva,
"Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters", Journal of Biomechanics 29(9),
1996, table 4. Proportions of stature are those of Drillis and Contini as given by D. A. Winter,
"Biomechanics and Motor Control of Human Movement". Mass from stature is the median body mass
index for that stature in the WHO growth reference, and 22 kg/m^2 for adults.
"""

from dataclasses import dataclass

import numpy as np

from ..geometry.skeleton import PARTS

#: Thigh plus shin as a share of stature (Winter): 0.530 hip height - 0.039 ankle height.
LEG_SHARE = 0.491
#: Ankle height, foot length, foot width and heel behind the ankle as shares of stature.
ANKLE_HEIGHT_SHARE = 0.039
FOOT_LENGTH_SHARE = 0.152
FOOT_WIDTH_SHARE = 0.055
HEEL_SHARE = 0.042
#: Wrist to fingertip as a share of stature (Winter).
HAND_SHARE = 0.108
#: The lower trunk's centre of mass above the hip joints as a share of stature (de Leva).
PELVIS_CENTRE_SHARE = 0.033

#: Body mass index [kg/m^2] against stature [m].
_BMI_STATURE = (0.75, 0.90, 1.10, 1.30, 1.50, 1.65, 1.75)
_BMI = (17.0, 16.0, 15.3, 15.8, 17.5, 20.0, 22.0)


@dataclass(frozen=True)
class SegmentTable:
    """Mass as a share of the body's, centre of mass as a share of the length from the proximal
    joint, radii of gyration as shares of the length (about x, y, z: sagittal, transverse,
    longitudinal)."""

    mass: float
    centre: float
    gyration: tuple[float, float, float]


#: What the entries of the segments give, and the hand, which is part of the simulated forearm. The
#: pelvis is de Leva's lower trunk, `trunk` his upper and middle trunk as one (his whole trunk's
#: radii, the longitudinal one rescaled to the shorter length); their lengths and the head's
#: (cervicale to vertex) are his as well. With pairs counted twice the masses sum to 1.
TABLE = {
    **{
        name: SegmentTable(entry.mass, entry.centre, entry.gyration)
        for name, entry in PARTS.items()
        if entry.mass
    },
    "hand": SegmentTable(0.0061, 0.3624, (0.288, 0.235, 0.184)),
}


def stature_from_legs(leg_length: float) -> float:
    """Stature [m] of a person whose thigh and shin are `leg_length` [m] together."""
    return leg_length / LEG_SHARE


def mass_from_stature(stature: float) -> float:
    """Body mass [kg] of a person of ordinary build with that stature [m]."""
    return float(np.interp(stature, _BMI_STATURE, _BMI)) * stature**2
