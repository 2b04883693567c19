# SPDX-License-Identifier: GPL-3.0-or-later
"""The physics engine: the only module that talks to PyBullet.

Bullet's x-y-z-w quaternions, link numbers and argument order end here. A link is a degree of
freedom: joints of several axes are stacks of hinges with light links between them, since
Bullet's ball joints have no limits and take torques in the parent's frame.
"""

from itertools import chain

import numpy as np
import pybullet

from .exceptions import SimulationError
from .momentum import GRAVITY
from .rotations import columns_from_bullet, quaternion_from_matrix
from .skeleton import SEGMENTS

FRICTION = 1.0

#: Mass [share of the body's] and radius of gyration [m] of the links inside a joint.
_INNER_MASS = 0.0003
_INNER_GYRATION = 0.1
_RESIDUAL = 1e-4  # the contact solver stops here: a quarter faster, same result to 0.1 mm
_FLOOR_SIZE = 1000.0  # [m]

_AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
_W_FIRST = [3, 0, 1, 2]
_ANGULAR_FIRST = [3, 4, 5, 0, 1, 2]
_UPRIGHT = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]


class State:
    """What the controller needs to know of the body at one moment. World frame.

    root: (3,) pelvis centre of mass [m]. frame: (3, 3) pelvis frame. angles: (dofs,) [rad].
    speeds: (6 + dofs,) pelvis angular [rad/s] and linear [m/s] velocity in its own frame, joint
    speeds [rad/s]. positions: (6, 3) joints of `leg_segments` [m]. frames: (7, 3, 3) of the pelvis
    and of those, columns as rows; of the pelvis alone if the legs were not asked for.
    """

    __slots__ = ("angles", "frame", "frames", "positions", "root", "speeds")

    def __init__(self, transforms, angles, speeds):
        self.frames = columns_from_bullet(transforms[:, 3:])
        self.frame = frame = self.frames[0].T
        self.root, self.positions = transforms[0, :3], transforms[1:, :3]
        self.angles = angles
        speeds[:6] = (speeds[:6].reshape(2, 3) @ frame).ravel()
        self.speeds = speeds


def _bullet(quaternion):
    """w-x-y-z to x-y-z-w."""
    return [*quaternion[1:], quaternion[0]]


def _segment_link(joint):
    """Number of the link that carries a joint's segment."""
    return joint.first + len(joint.axes) - 1


class World:
    """A floor and one character. Built anew for every simulation, which makes runs repeatable."""

    def __init__(self, character, rate, leg_segments):
        self.character = character
        self.rate = rate
        self._client = pybullet.connect(pybullet.DIRECT)
        if self._client < 0:
            raise SimulationError("PyBullet could not open another world: close some simulations.")
        self._keywords = {"physicsClientId": self._client}
        pybullet.setGravity(0, 0, -GRAVITY, **self._keywords)
        pybullet.setPhysicsEngineParameter(
            fixedTimeStep=1 / rate,
            deterministicOverlappingPairs=1,
            solverResidualThreshold=_RESIDUAL,
            **self._keywords,
        )
        self._floor = self._make_floor()
        self._body = self._make_body()
        self.links = {0: -1, **{j.segment: _segment_link(j) for j in character.joints}}
        self._leg_links = [self.links[segment] for segment in leg_segments]
        self.foot_links = [self.links[SEGMENTS.index(f"foot_{s}")] for s in "lr"]
        self._dofs = list(range(character.dofs))
        self._segment_links = [self.links[i] for i in range(1, len(SEGMENTS))]
        self._rest = [0.0] * (6 + character.dofs)
        self._torque_mode = pybullet.TORQUE_CONTROL

    def close(self):
        """Free the engine's memory. Safe to call twice."""
        if self._client >= 0:
            pybullet.disconnect(**self._keywords)
            self._client = -1

    def __del__(self):
        if getattr(self, "_client", -1) >= 0 and pybullet.isConnected(self._client):
            self.close()

    def _change(self, body, link, **values):
        """Set dynamic properties one call each: PyBullet 3.2.8 ignores some that come together."""
        for name, value in values.items():
            pybullet.changeDynamics(body, link, **{name: value}, **self._keywords)

    def _make_floor(self):
        # A slab, not a plane: Bullet finds all corners of a box on a box at once, but of a box on
        # a plane one a step, and a foot would tip over its first corner.
        slab = pybullet.createCollisionShape(
            pybullet.GEOM_BOX, halfExtents=[_FLOOR_SIZE, _FLOOR_SIZE, 1], **self._keywords
        )
        floor = pybullet.createMultiBody(
            0, slab, basePosition=[0, 0, self.character.ground - 1], **self._keywords
        )
        self._change(floor, -1, lateralFriction=FRICTION)
        return floor

    def _make_body(self):
        character = self.character
        inner = _INNER_MASS * character.mass
        links = {
            "linkMasses": [],
            "linkCollisionShapeIndices": [],
            "linkPositions": [],
            "linkOrientations": [],
            "linkInertialFramePositions": [],
            "linkParentIndices": [],
            "linkJointAxis": [],
        }
        inertias = []
        shapes = {shape.segment: shape for shape in character.shapes}
        numbers = {0: 0}  # Bullet counts a link's parent from 1, the base is 0
        for joint in character.joints:
            segment = SEGMENTS[joint.segment]
            offset = joint.offset - (character.centres[0] if joint.parent == 0 else 0)
            parent = numbers[joint.parent]
            turn = _bullet(quaternion_from_matrix(joint.basis))
            for i, axis in enumerate(joint.axes):
                last = i == len(joint.axes) - 1
                own = character.masses[joint.segment] - inner * (len(joint.axes) - 1)
                moments = character.inertias[joint.segment]
                collision = -1
                if last and segment.startswith("foot"):
                    collision = self._make_sole(shapes[segment], joint.segment)
                links["linkMasses"].append(own if last else inner)
                links["linkCollisionShapeIndices"].append(collision)
                links["linkPositions"].append(offset if i == 0 else [0, 0, 0])
                links["linkOrientations"].append(turn if i == 0 else [0, 0, 0, 1])
                links["linkInertialFramePositions"].append(
                    character.centres[joint.segment] if last else [0, 0, 0]
                )
                links["linkParentIndices"].append(parent)
                links["linkJointAxis"].append(_AXES[axis])
                inertias.append(moments if last else [inner * _INNER_GYRATION**2] * 3)
                parent = joint.first + i + 1
            numbers[joint.segment] = parent
        count = len(inertias)
        body = pybullet.createMultiBody(
            baseMass=character.masses[0],
            basePosition=[0, 0, 1],
            linkVisualShapeIndices=[-1] * count,
            linkInertialFrameOrientations=[[0, 0, 0, 1]] * count,
            linkJointTypes=[pybullet.JOINT_REVOLUTE] * count,
            **links,
            **self._keywords,
        )
        change = self._change
        change(body, -1, linearDamping=0.0, angularDamping=0.0, maxJointVelocity=1e4)
        change(body, -1, localInertiaDiagonal=character.inertias[0].tolist())
        for link, (moments, limits) in enumerate(zip(inertias, character.limits, strict=True)):
            change(body, link, localInertiaDiagonal=list(map(float, moments)))
            if np.isfinite(limits).all():
                pybullet.changeDynamics(
                    body,
                    link,
                    jointLowerLimit=limits[0],
                    jointUpperLimit=limits[1],
                    **self._keywords,
                )
        for foot in ("foot_l", "foot_r"):
            change(body, numbers[SEGMENTS.index(foot)] - 1, lateralFriction=FRICTION)
        # Bullet's joints brake on their own unless told not to.
        pybullet.setJointMotorControlArray(
            body,
            list(range(count)),
            pybullet.VELOCITY_CONTROL,
            forces=[0.0] * count,
            **self._keywords,
        )
        return body

    def _make_sole(self, shape, segment):
        return pybullet.createCollisionShape(
            pybullet.GEOM_BOX,
            halfExtents=shape.size,
            collisionFramePosition=np.add(shape.position, self.character.centres[segment]),
            **self._keywords,
        )

    def reset(self, root, frame, linear, angular, angles, speeds):
        """Put the body in a pose: pelvis joint position (3,), frame (3, 3), velocities of the
        pelvis joint point, joint angles and speeds."""
        arm = frame @ self.character.centres[0]
        quaternion = _bullet(quaternion_from_matrix(frame))
        pybullet.resetBasePositionAndOrientation(
            self._body, root + arm, quaternion, **self._keywords
        )
        pybullet.resetBaseVelocity(
            self._body, linear + np.cross(angular, arm), angular, **self._keywords
        )
        for link in self._dofs:
            pybullet.resetJointState(self._body, link, angles[link], speeds[link], **self._keywords)

    def state(self, legs=True):
        """The body's State now, with or without what only the balance needs of the legs."""
        client = self._client
        position, turn = pybullet.getBasePositionAndOrientation(self._body, client)
        linear, angular = pybullet.getBaseVelocity(self._body, client)
        joints = pybullet.getJointStates(self._body, self._dofs, client)
        transforms = [position + turn]
        if legs:
            links = pybullet.getLinkStates(self._body, self._leg_links, 0, 0, client)
            transforms += [link[4] + link[5] for link in links]
        angles, rates, _, _ = zip(*joints, strict=True)
        return State(np.array(transforms), np.array(angles), np.array(angular + linear + rates))

    def mass_matrix(self, angles):
        """Joint-space inertia (6 + dofs, 6 + dofs) at the last `state`: the root first, angular
        before linear, both in the pelvis frame at its centre of mass."""
        rows = pybullet.calculateMassMatrix(
            self._body, angles.tolist(), physicsClientId=self._client
        )
        size = len(rows)
        flat = np.fromiter(chain.from_iterable(rows), float, size * size)
        return flat.reshape(size, size)

    def bias(self, state, inertia):
        """Gravity and velocity-dependent forces (6 + dofs,), in the order of `mass_matrix`.

        Bullet turns gravity wrongly for a tilted root: it is asked at the identity orientation,
        and the difference, an apparent acceleration of the root, is added through the inertia.
        Its answer has the root's linear part first, unlike the mass matrix.
        """
        forces = np.array(
            pybullet.calculateInverseDynamics(
                self._body,
                _UPRIGHT + state.angles.tolist(),
                state.speeds.tolist(),
                self._rest,
                physicsClientId=self._client,
            )
        )
        forces[:6] = forces[_ANGULAR_FIRST]
        up = state.frame[2] * GRAVITY
        up[2] -= GRAVITY
        return forces + inertia[:, 3:6] @ up

    def apply(self, torques):
        """Set the joint torques (dofs,) [N m] of the next step."""
        pybullet.setJointMotorControlArray(
            self._body,
            self._dofs,
            self._torque_mode,
            forces=torques.tolist(),
            physicsClientId=self._client,
        )

    def step(self):
        """Advance by 1 / rate."""
        pybullet.stepSimulation(self._client)

    def contacts(self):
        """Which feet touch the floor, [bool, bool], and the force on each, [[x, y, z], ...] [N]."""
        forces = [[0.0] * 3, [0.0] * 3]
        touch = [False, False]
        points = pybullet.getContactPoints(self._body, self._floor, physicsClientId=self._client)
        for point in points:
            if point[3] not in self.foot_links:
                continue
            foot = self.foot_links.index(point[3])
            touch[foot] = True
            for size, axis in ((9, 7), (10, 11), (12, 13)):
                for i in range(3):
                    forces[foot][i] += point[size] * point[axis][i]
        return touch, forces

    def body_transforms(self):
        """Centres of mass (S, 3) [m] and orientations (S, 4), w first, of all segments."""
        position, orientation = pybullet.getBasePositionAndOrientation(self._body, self._client)
        links = pybullet.getLinkStates(self._body, self._segment_links, 0, 0, self._client)
        positions = np.array([position, *(link[0] for link in links)])
        turns = np.array([orientation, *(link[5] for link in links)])
        return positions, turns[:, _W_FIRST]

    def save(self):
        """A handle to the engine's whole state, for `restore`."""
        return pybullet.saveState(**self._keywords)

    def restore(self, handle):
        """Return to a saved state."""
        pybullet.restoreState(handle, **self._keywords)


def version():
    """PyBullet's API number, for reports."""
    return str(pybullet.getAPIVersion())
