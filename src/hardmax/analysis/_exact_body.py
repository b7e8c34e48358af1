"""The convex hull of distinct rational points: every answer is proved in integers.

Floats only propose: a direction, or the vertices of a convex combination.  The
proposal is checked in integers, and the exact simplex method answers where no
proposal passes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.optimize import nnls

from hardmax._types import Floats
from hardmax.analysis._exact_linear import IntRow, dot, extreme_rays, in_cone, rref, solve

MOST_STEPS = 30_000_000
"""Comparisons of rays the exact enumeration of facets may compare."""


@dataclass(frozen=True, eq=False)
class ExactBody:
    """Vertices as integers in independent coordinates of the affine hull.

    A point x becomes scale * x - base; `columns` are the independent coordinates
    and `relation` gives the others as combinations of them.  `rows` are the
    positions of the vertices in the given points.
    """

    scale: int
    base: list[int]
    columns: list[int]
    others: list[int]
    relation: list[list[Fraction]]
    rows: list[int]
    vertices: list[tuple[int, ...]]

    @classmethod
    def of(cls, points: Sequence[Sequence[Fraction]], known: Sequence[int] = ()) -> ExactBody:
        scale = math.lcm(*(value.denominator for row in points for value in row))
        whole = [[int(value * scale) for value in row] for row in points]
        base = whole[0]
        steps = [[a - b for a, b in zip(row, base, strict=True)] for row in whole]
        columns, reduced = rref([row for row in steps if any(row)])
        others = [j for j in range(len(base)) if j not in columns]
        relation = [[row[j] for j in others] for row in reduced]
        local = [tuple(row[j] for j in columns) for row in steps]
        rows = _vertex_rows(local, known)
        vertices = [local[i] for i in rows]
        return cls(scale, base, columns, others, relation, rows, vertices)

    @property
    def dim(self) -> int:
        return len(self.columns)

    @cached_property
    def facets(self) -> list[tuple[int, ...]]:
        """Vertex sets of the facets; from dimension 2 on."""
        count = len(self.vertices)
        if self.dim == 2:
            return sorted((min(k, (k + 1) % count), max(k, (k + 1) % count)) for k in range(count))
        rays = extreme_rays([[*v, 1] for v in self.vertices], MOST_STEPS)
        return sorted(tuple(i for i in range(count) if mask >> i & 1) for _, mask in rays)

    def _local(self, x: Sequence[Fraction]) -> tuple[list[tuple[int, ...]], tuple[int, ...]] | None:
        """Vertices and x as integers in one scale; None off the affine hull or the box."""
        step = [value * self.scale - origin for value, origin in zip(x, self.base, strict=True)]
        inside = [step[j] for j in self.columns]
        for k, j in enumerate(self.others):
            if step[j] != sum(a * row[k] for a, row in zip(inside, self.relation, strict=True)):
                return None
        for k, value in enumerate(inside):
            along = [v[k] for v in self.vertices]
            if not min(along) <= value <= max(along):
                return None
        scale = math.lcm(*(value.denominator for value in inside))
        point = tuple(int(value * scale) for value in inside)
        return [tuple(a * scale for a in v) for v in self.vertices], point

    def contains(self, x: Sequence[Fraction]) -> bool:
        """Whether x is a convex combination of the vertices."""
        found = self._local(x)
        if found is None or self.dim <= 1:
            return found is not None
        if self.dim == 2:
            return min(_turns(*found)) >= 0
        return separating_exact(*found) is None

    def on_boundary(self, x: Sequence[Fraction]) -> bool:
        """Whether x lies in a proper face (a point is its own boundary).

        x is in the relative interior when the step from the middle to x can be
        continued: when it is in the cone of the directions from x to the vertices.
        """
        found = self._local(x)
        if found is None or self.dim == 0:
            return found is not None
        vertices, point = found
        if self.dim == 1:
            return point in vertices
        if self.dim == 2:
            return min(_turns(vertices, point)) == 0
        if separating_exact(vertices, point) is not None:
            return False
        steps = [_minus(v, point) for v in vertices]
        away = [-sum(step[k] for step in steps) for k in range(self.dim)]
        return in_cone(steps, away).weights is None


def _minus(a: IntRow, b: IntRow) -> tuple[int, ...]:
    return tuple(x - y for x, y in zip(a, b, strict=True))


def _turn(a: IntRow, b: IntRow, c: IntRow) -> int:
    """Twice the signed area of a planar triangle."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _turns(ring: Sequence[IntRow], x: IntRow) -> list[int]:
    """Per edge of a counter-clockwise polygon: positive when x is strictly inside it."""
    return [_turn(ring[k - 1], ring[k], x) for k in range(len(ring))]


def separating_exact(hull: Sequence[IntRow], x: IntRow) -> list[int] | None:
    """Integer normal y with <y, x> > <y, v> for all v; None when x is in the hull."""
    near = _as_floats([_minus(v, x) for v in hull])
    lifted = np.vstack([near.T, np.ones(len(hull))])
    try:
        weights, _ = nnls(lifted, np.append(np.zeros(len(x)), 1.0))
    except RuntimeError:
        weights = np.zeros(len(hull))
    normal = [round(value) for value in _grid(-(weights @ near))]
    height = dot(normal, x)
    if all(dot(normal, v) < height for v in hull):
        return normal
    support = [v for v, weight in zip(hull, weights, strict=True) if weight > 1e-12]
    if support and _is_combination(support, x):
        return None
    answer = in_cone([(*v, 1) for v in hull], (*x, 1))
    return None if answer.normal is None else answer.normal[:-1]


def _is_combination(support: Sequence[IntRow], x: IntRow) -> bool:
    """Whether exact weights on these points alone give x."""
    weights = solve([(*v, 1) for v in support], (*x, 1))
    return weights is not None and min(weights) >= 0


def _as_floats(rows: Sequence[IntRow]) -> Floats:
    """Integers of any size as floats with the largest at 1 (correctly rounded)."""
    top = max((abs(value) for row in rows for value in row), default=0) or 1
    return np.asarray([[value / top for value in row] for row in rows], dtype=np.float64)


def _grid(normal: Floats) -> list[float]:
    """The direction scaled so that 30 bits of its largest entry are whole."""
    top = float(np.abs(normal).max())
    return [float(value) for value in normal / top * 2**30] if top > 0 else [0.0] * len(normal)


def _vertex_rows(x: Sequence[tuple[int, ...]], known: Sequence[int]) -> list[int]:
    """Positions of the vertices of distinct points that span their coordinates."""
    width = len(x[0])
    if width == 0:
        return [0]
    if width == 1:
        return sorted([x.index(min(x)), x.index(max(x))])
    if width == 2:
        return _chain(x)
    chosen = sorted(_sure_rows(x, known))
    floats = _as_floats(x)
    norms = np.linalg.norm(floats - floats.mean(axis=0), axis=1)
    rest = sorted(set(range(len(x))) - set(chosen), key=lambda i: (-norms[i], i))
    while rest:
        normal = separating_exact([x[i] for i in chosen], x[rest[0]])
        if normal is None:
            del rest[0]
            continue
        # The kept points are lower, so the highest of the rest are a face of the hull.
        chosen.append(max(rest, key=lambda i: (dot(normal, x[i]), x[i])))
        rest.remove(chosen[-1])
    return sorted(chosen)


def _sure_rows(x: Sequence[tuple[int, ...]], known: Sequence[int]) -> set[int]:
    """Vertices seen at once: ends of the lexicographic orders, or farthest along themselves."""
    width = len(x[0])
    sure = set(known)
    for k in range(width):
        turned = [(*row[k:], *row[:k]) for row in x]
        sure |= {turned.index(min(turned)), turned.index(max(turned))}
    floats = _as_floats(x)
    off = floats - floats.mean(axis=0)
    for i in sorted(set(range(len(x))) - sure):
        heights = off @ off[i]
        if int(heights.argmax()) != i:
            continue
        normal = [round(value) for value in _grid(off[i])]
        height = dot(normal, x[i])
        if all(dot(normal, row) < height for j, row in enumerate(x) if j != i):
            sure.add(i)
    return sure


def _chain(x: Sequence[tuple[int, ...]]) -> list[int]:
    """Counter-clockwise planar hull (monotone chain), from the smallest position on."""
    order = sorted(range(len(x)), key=lambda i: x[i])
    ring: list[int] = []
    for run in (order, order[::-1]):
        part: list[int] = []
        for i in run:
            while len(part) > 1 and _turn(x[part[-2]], x[part[-1]], x[i]) <= 0:
                part.pop()
            part.append(i)
        ring += part[:-1]
    start = ring.index(min(ring))
    return ring[start:] + ring[:start]
