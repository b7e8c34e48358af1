"""The convex hull of distinct floats: what `Polytope` asks in the float case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Bools, Floats, Ints
from hardmax.analysis._exact_linear import extreme_rays
from hardmax.analysis._hull_float import (
    merged_facets,
    most_facets,
    segment_distances,
    separating,
    vertex_set,
    whitened_hull,
)
from hardmax.analysis._hull_frame import COPLANAR, CORNER, FLAT, MEMBER, Flat, Frame

MOST_FACETS = 5_000_000
MOST_PAIRS = 5_000_000_000
EXACT_STEPS = 30_000_000


def refuse_many_facets(dim: int, count: int) -> None:
    """Raise where the facets could be too many to enumerate."""
    bound = most_facets(dim, count)
    if bound > MOST_FACETS or bound * count > MOST_PAIRS:
        raise InputError(
            f"`faces` needs few vertices or a low dimension; {count} vertices in dimension "
            f"{dim} may have {float(bound):.1e} faces. "
            "Ask `vertices`, `contains(x)` or `on_boundary(x)` instead."
        )


@dataclass(frozen=True, eq=False)
class FloatBody:
    """Vertices in the coordinates of the affine hull, with one tolerance.

    `rows` are the positions of the vertices in the given points.
    """

    frame: Frame
    flat: Flat
    low: Floats
    high: Floats
    tau: float
    rows: list[int]
    vertices: Floats

    @classmethod
    def of(cls, points: Floats, tol: float, known: Sequence[int] = ()) -> FloatBody:
        frame = Frame.of(points)
        y = frame.local(points)
        tau = frame.tolerance(tol)
        flat = Flat.of(y, FLAT * tau)
        rows = vertex_set(flat.along(y), CORNER * tau, known)
        # The vertices of a set just thick enough may span a flatter one.
        while len((inner := Flat.of(y[rows], FLAT * tau)).axes) < len(flat.axes):
            flat = inner
            rows = vertex_set(flat.along(y), CORNER * tau, known)
        if len(flat.axes) == 2 and _clockwise(y[rows]):
            rows = [rows[0], *rows[:0:-1]]
        return cls(frame, flat, y.min(axis=0), y.max(axis=0), tau, rows, flat.along(y[rows]))

    @property
    def dim(self) -> int:
        return len(self.flat.axes)

    def slack(self, tol: float | None) -> float:
        return MEMBER * self.tau if tol is None else self.frame.tolerance(tol)

    @cached_property
    def facets(self) -> tuple[list[Ints], Floats, Floats]:
        """Vertex sets, unit normals and heights; from dimension 2 on."""
        if self.dim == 2:
            sets, normals = _edges(self.vertices)
        else:
            refuse_many_facets(self.dim, len(self.vertices))
            hull, normals = whitened_hull(self.vertices)
            if hull is None:
                normals = _normals_by_rays(self.vertices)
            sets, normals = merged_facets(self.vertices, normals, COPLANAR * self.tau)
        return sets, normals, _heights(normals, self.vertices)

    def _known_planes(self) -> tuple[Floats, Floats] | None:
        """Normals and heights where they are cheap or already there."""
        cheap = self.dim == 2 or (self.dim == 3 and len(self.vertices) <= 2000)
        return self.facets[1:] if cheap or "facets" in self.__dict__ else None

    def _inside_flat(self, x: Floats, slack: float) -> tuple[Ints, Floats]:
        """Rows of x near the affine hull and the bounding box, and their coordinates."""
        y = self.frame.local(x)
        rows = np.flatnonzero(((y >= self.low - slack) & (y <= self.high + slack)).all(axis=1))
        rows = rows[self.flat.distance(y[rows]) <= slack]
        return rows, self.flat.along(y[rows])

    def contains(self, x: Floats, tol: float | None) -> Bools:
        """Which rows of x are within the tolerance of the set."""
        slack = self.slack(tol)
        answer = np.zeros(len(x), dtype=np.bool_)
        rows, local = self._inside_flat(x, slack)
        answer[rows] = [self._reaches(point, slack) for point in self._undecided(local, slack)]
        return answer

    def _undecided(self, local: Floats, slack: float) -> list[Floats | bool]:
        """Per point the answer of the planes, or the point where they leave it open."""
        if self.dim == 0:
            return [True] * len(local)
        if self.dim == 1:
            low, high = self.vertices.min() - slack, self.vertices.max() + slack
            return [bool(low <= value <= high) for value in local[:, 0]]
        planes = self._known_planes()
        if planes is None:
            return list(local)
        beyond = _beyond(local, *planes)
        return [
            bool(gap <= 0) if gap <= 0 or gap > slack else point
            for gap, point in zip(beyond, local, strict=True)
        ]

    def _reaches(self, point: Floats | bool, slack: float) -> bool:
        if isinstance(point, bool):
            return point
        if self.dim == 2:
            ring = self.vertices
            return bool(segment_distances(point, ring, np.roll(ring, -1, axis=0)).min() <= slack)
        return separating(self.vertices, point, slack) is None

    def on_boundary(self, x: Floats, tol: float | None) -> Bools:
        """Which rows of x belong to the set and are within the tolerance of a facet."""
        slack = self.slack(tol)
        answer = self.contains(x, tol)
        rows = np.flatnonzero(answer)
        local = self.flat.along(self.frame.local(x[rows]))
        if self.dim == 0:
            return answer
        if self.dim == 1:
            ends = np.abs(local - self.vertices.T).min(axis=1)
            answer[rows] = ends <= slack
            return answer
        planes = self._known_planes()
        if planes is not None:
            answer[rows] = -_beyond(local, *planes) <= slack
        else:
            answer[rows] = [self._leaves_at(point, slack) for point in local]
        return answer

    def _leaves_at(self, point: Floats, slack: float) -> bool:
        """Whether the ray from the middle through the point leaves the set there.

        Each step cuts the ray at a supporting plane that excludes its end.
        """
        centre = self.vertices.mean(axis=0)
        away = point - centre
        length = float(np.linalg.norm(away))
        if length <= slack:
            return False
        end = point + away / length * (2 * _radius(self.vertices))
        for _ in range(200):
            normal = separating(self.vertices, end, CORNER * self.tau)
            if normal is None:
                return False
            height = float((self.vertices @ normal).max())
            if height - float(point @ normal) <= slack:
                return True
            end = centre + away * (height - centre @ normal) / (away @ normal)
        return False


def _radius(x: Floats) -> float:
    """Largest distance from the mean."""
    return float(np.linalg.norm(x - x.mean(axis=0), axis=1).max())


def _clockwise(y: Floats) -> bool:
    """Orientation of a polygon in the first pair of coordinates where it has area."""
    y = y - y.mean(axis=0)
    cross = y.T @ np.roll(y, -1, axis=0)
    area = cross - cross.T
    large = np.abs(area) > 1e-9 * np.abs(area).max()
    i, j = np.argwhere(np.triu(large, 1))[0]
    return bool(area[i, j] < 0)


def _edges(ring: Floats) -> tuple[list[Ints], Floats]:
    """Edges of a counter- or clockwise polygon and their outward normals."""
    step = np.roll(ring, -1, axis=0) - ring
    normals = np.stack([step[:, 1], -step[:, 0]], axis=1)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    if ((ring.mean(axis=0) - ring) * normals).sum() > 0:
        normals = -normals
    count = len(ring)
    pairs = [np.sort([k, (k + 1) % count]) for k in range(count)]
    order = sorted(range(count), key=lambda k: tuple(pairs[k]))
    return [pairs[k] for k in order], normals[order]


def _heights(normals: Floats, vertices: Floats) -> Floats:
    block = max(1, 10_000_000 // len(vertices))
    parts = [
        (normals[start : start + block] @ vertices.T).max(axis=1)
        for start in range(0, len(normals), block)
    ]
    return np.concatenate(parts)


def _beyond(local: Floats, normals: Floats, heights: Floats) -> Floats:
    """Per point the largest excess over a plane (negative inside)."""
    block = max(1, 10_000_000 // len(normals))
    parts = [
        (local[start : start + block] @ normals.T - heights).max(axis=1)
        for start in range(0, len(local), block)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def _normals_by_rays(vertices: Floats) -> Floats:
    """Unit outward normals by double description on the rounded vertices."""
    whole = np.rint(np.ldexp(vertices, 52)).astype(np.int64)
    rows = [[*map(int, row), 1 << 52] for row in whole]
    rays = [[-value for value in ray[:-1]] for ray, _ in extreme_rays(rows, EXACT_STEPS)]
    normals = np.asarray([[value / max(map(abs, ray)) for value in ray] for ray in rays])
    return np.asarray(normals / np.linalg.norm(normals, axis=1, keepdims=True))
