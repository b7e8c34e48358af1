"""Coordinates in which a finite set of floats is centred, of size 1 and not flat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardmax._types import Floats, Ints

ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""Differences below this part of the largest coordinate count as rounding."""

FLAT, MEMBER, COPLANAR = 1.0, 2.0, 0.25
"""Parts of the tolerance: thickness of a flat set, membership, vertices of one facet."""

CORNER = 0.125
"""Part of the tolerance by which a vertex must stick out of the hull of the others.

A thickness above FLAT leaves room for facets told apart by COPLANAR; what is
dropped as no vertex or as thickness stays within MEMBER.
"""


@dataclass(frozen=True)
class Frame:
    """Powers of two and a centre: y = (x / 2^first - centre) / 2^second.

    `extent` is the largest extent of the set along a coordinate and `floor` the
    rounding of the input, both in the new unit.  A single point has extent 0 and
    keeps its own magnitude as the unit.
    """

    first: int
    centre: Floats
    second: int
    extent: float
    floor: float

    @classmethod
    def of(cls, points: Floats) -> Frame:
        first = _exponent(float(np.abs(points).max()))
        x = np.ldexp(points, -first)
        low, high = x.min(axis=0), x.max(axis=0)
        centre = (low + high) / 2
        floor = ROUNDING * float(np.abs(x).max())
        extent = float((high - low).max())
        if extent <= 2 * floor:
            return cls(first, centre, 0, 0.0, floor)
        second = _exponent(extent)
        return cls(
            first,
            centre,
            second,
            float(np.ldexp(extent, -second)),
            float(np.ldexp(floor, -second)),
        )

    def local(self, x: Floats) -> Floats:
        """The same points in the unit of the set; far points may become infinite."""
        with np.errstate(over="ignore"):
            near = np.ldexp(x, -self.first) - self.centre
            return np.asarray(np.ldexp(near, -self.second), dtype=np.float64)

    def tolerance(self, tol: float) -> float:
        """`tol` times the size of the set, and never near the rounding of the input."""
        size = self.extent or float(np.abs(self.centre).max())
        return max(tol * size, self.floor / CORNER)


@dataclass(frozen=True)
class Flat:
    """The affine hull of a set: an origin and orthonormal directions as rows."""

    origin: Floats
    axes: Floats

    @classmethod
    def of(cls, y: Floats, thin: float) -> Flat:
        """The flat of least dimension along principal axes with all points within `thin`."""
        origin = y.mean(axis=0)
        _, _, axes = np.linalg.svd(y - origin, full_matrices=False)
        along = (y - origin) @ axes.T
        tail = np.cumsum((along**2)[:, ::-1], axis=1)[:, ::-1]
        thickness = np.append(np.sqrt(tail.max(axis=0)), 0.0)
        dim = int(np.argmax(thickness <= thin))
        if dim == y.shape[1]:
            return cls(np.zeros(dim), np.eye(dim))
        return cls(origin, axes[:dim])

    def along(self, y: Floats) -> Floats:
        """Coordinates inside the flat."""
        return np.asarray((y - self.origin) @ self.axes.T, dtype=np.float64)

    def distance(self, y: Floats) -> Floats:
        """Distances from the flat."""
        off = y - self.origin
        return np.asarray(np.linalg.norm(off - off @ self.axes.T @ self.axes, axis=1))


def _exponent(value: float) -> int:
    return int(np.frexp(value)[1])


def distinct_rows(x: Floats) -> tuple[Ints, Ints]:
    """First positions of the distinct rows, in order, and the row each row equals."""
    order = np.lexsort(x.T[::-1])
    ordered = x[order]
    new = np.append(True, np.any(ordered[1:] != ordered[:-1], axis=1))
    first_of_group = order[new]
    rank = np.empty(len(first_of_group), dtype=np.int64)
    position = np.argsort(first_of_group, kind="stable")
    rank[position] = np.arange(len(position))
    which = np.empty(len(x), dtype=np.int64)
    which[order] = rank[np.cumsum(new) - 1]
    return first_of_group[position], which
