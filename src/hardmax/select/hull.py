"""Few keys for clouds in the plane and in space: those near the convex hull.

For every direction q the largest <q, z_j> is reached on the hull, and the best score
below it on the hull of the rest.  So the keys kept are the hull's and those of a second
hull, of the points left when the first are taken away.

A point is left out only when it is *proved* to lie deeper than `depth` inside: the
facets used form a closed surface through given tokens (every directed edge meets its
reverse once), and a point strictly inside all their planes is enclosed by it, so that
it lies in the hull of those tokens.  Nothing rests on the accuracy of the hull program.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hardmax._types import Array, Bools, Floats, Ints

__all__ = ["near_hull"]

_SAMPLE = 16_384
_ROUNDS = {2: (16, 64, 512), 3: (64, 384, 1536)}
_LARGEST = 100_000  # points given to the hull program
_U = 2.0**-53


def near_hull(z: Array, depth: float) -> Ints | None:
    """Tokens that score best or next best in some direction, up to 2 `depth` |q|; ascending.

    A token left out scores, for every q, more than depth |q| below some kept token, and
    below another one that is kept too.  None when too many would be left.
    """
    shell = _shell(z, np.ones(len(z), dtype=np.bool_), depth)
    if shell is None:
        return None
    rest = np.ones(len(z), dtype=np.bool_)
    rest[shell] = False
    second = _shell(z, rest, depth)
    return None if second is None else np.sort(np.concatenate([shell, second]))


def _shell(z: Array, among: Bools, depth: float) -> Ints | None:
    """The tokens of `among` not proved to lie deeper than `depth` in their hull."""
    limit = len(z) // 4
    if z.shape[1] == 1:
        high, low = z[among, 0].max(initial=-np.inf), z[among, 0].min(initial=np.inf)
        ends = (z[:, 0] >= high - 2 * depth) | (z[:, 0] <= low + 2 * depth)
        found = np.flatnonzero(among & ends)
        return found if 0 < len(found) <= limit else None
    step = max(1, len(z) // _SAMPLE)
    sample = np.arange(0, len(z), step)
    left, points = None, sample[among[sample]]
    for count in _ROUNDS[z.shape[1]]:
        if len(points) <= z.shape[1]:
            return None
        surface = _surface(_at(z, points)[_extremes(_at(z, points), count)], depth)
        if surface is None:
            return None
        left = _outside(z, among, left, *surface)
        points = left
        if len(left) <= 2_000:
            break
    assert left is not None
    if len(left) > z.shape[1] and len(left) <= _LARGEST:
        surface = _surface(_at(z, left), depth)
        if surface is not None:
            left = left[_outside_planes(_at(z, left), np.arange(len(left)), *surface[:2])]
    return left if len(left) <= limit else None


def _at(z: Array, rows: Ints) -> Floats:
    return np.ascontiguousarray(z[rows], dtype=np.float64)


def _directions(d: int, count: int) -> Floats:
    """Directions spread evenly over the circle or the sphere."""
    turn = np.arange(count) + 0.5
    if d == 2:
        angle = 2 * np.pi * turn / count
        return np.stack([np.cos(angle), np.sin(angle)])
    height, turned = 1 - 2 * turn / count, np.pi * (1 + 5**0.5) * turn
    width = np.sqrt(1 - height * height)
    return np.stack([width * np.cos(turned), width * np.sin(turned), height])


def _extremes(points: Floats, count: int) -> Ints:
    """The tokens that lead in one of `count` directions."""
    ways = np.ascontiguousarray(_directions(points.shape[1], count).T)
    best = np.full(count, -np.inf)
    at = np.zeros(count, dtype=np.int64)
    for start in range(0, len(points), 1024):
        scores = ways @ points[start : start + 1024].T
        place = scores.argmax(axis=1)
        top = scores[np.arange(count), place]
        at = np.where(top > best, start + place, at)
        best = np.maximum(top, best)
    return np.unique(at)


def _surface(points: Floats, depth: float) -> tuple[Floats, Floats, Floats, float] | None:
    """Planes <n, x> < h, each moved in by `depth` and by more than all rounding, and a ball.

    Every point inside all of them lies deeper than `depth` in the hull of `points`.
    None when no closed surface was found.
    """
    corners = _polygon(points) if points.shape[1] == 2 else _triangles(points)
    if corners is None:
        return None
    longest = np.abs(points).max() * 2
    if points.shape[1] == 2:
        edge = corners[:, 1] - corners[:, 0]
        normal, slack = np.stack([edge[:, 1], -edge[:, 0]], axis=1), np.ones(len(edge))
        size = np.linalg.norm(normal, axis=1)
    else:
        one, two = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
        normal = np.cross(one, two)
        size = np.linalg.norm(normal, axis=1)
        slack = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1) / np.maximum(size, 1e-300)
    if size.min() < 1e-140:
        return None
    normal /= size[:, None]
    height = (normal * corners[:, 0]).sum(axis=1) - depth - 128 * _U * longest * slack
    centre = points.mean(axis=0)
    return normal, height, centre, float((height - normal @ centre).min()) * (1 - 1e-9)


def _polygon(points: Floats) -> Floats | None:
    """Edges (h, 2, 2) of a closed polygon around the points, counter-clockwise."""
    points = points[np.lexsort(points.T[::-1])]
    keep = np.ones(len(points), dtype=bool)
    keep[1:] = (points[1:] != points[:-1]).any(axis=1)
    points = points[keep]
    lower, upper = _chain(points), _chain(points[::-1])
    ring = np.concatenate([lower[:-1], upper[:-1]])
    return np.stack([ring, np.roll(ring, -1, axis=0)], axis=1) if len(ring) > 2 else None


@njit(nogil=True, cache=True)
def _chain(points: Floats) -> Floats:
    """The part of the hull that turns left, from the first of sorted points to the last."""
    out = np.empty_like(points)
    m = 0
    for i in range(len(points)):
        while m > 1:
            dx, dy = out[m - 1, 0] - out[m - 2, 0], out[m - 1, 1] - out[m - 2, 1]
            if dx * (points[i, 1] - out[m - 2, 1]) - dy * (points[i, 0] - out[m - 2, 0]) > 0:
                break
            m -= 1
        out[m] = points[i]
        m += 1
    return out[:m]


def _triangles(points: Floats) -> Floats | None:
    """Triangles (f, 3, 3) of a closed surface around the points, seen from outside."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        return None
    faces = hull.simplices.copy()
    a, b, c = (points[faces[:, i]] for i in range(3))
    turned = (np.cross(b - a, c - a) * hull.equations[:, :3]).sum(axis=1) < 0
    faces[turned] = faces[turned][:, [0, 2, 1]]
    one, two = faces.ravel(), np.roll(faces, -1, axis=1).ravel()
    there, back = one * len(points) + two, two * len(points) + one
    closed = len(np.unique(there)) == len(there) and np.array_equal(np.sort(there), np.sort(back))
    return points[faces] if closed else None


def _outside(
    z: Array, among: Bools, rows: Ints | None, normal: Floats, height: Floats, centre: Floats,
    radius: float,
) -> Ints:  # fmt: skip
    """The tokens (of `among`, or `rows`) that are not inside all planes."""
    if rows is None:
        rows = np.asarray(_outside_ball(z, among, centre, max(radius, 0.0)))
    return np.asarray(rows[_outside_planes(z, rows, normal, height)])


@njit(nogil=True, cache=True)
def _outside_ball(z: Array, among: Bools, centre: Floats, radius: float) -> Ints:
    out = np.empty(len(z), np.int64)
    m = 0
    square = radius * radius
    for i in range(len(z)):
        s = 0.0
        for c in range(z.shape[1]):
            way = z[i, c] - centre[c]
            s += way * way
        out[m] = i
        m += among[i] and not s < square
    return out[:m].copy()


@njit(nogil=True, cache=True)
def _outside_planes(z: Array, rows: Ints, normal: Floats, height: Floats) -> Bools:
    """Whether each of the tokens `rows` is not strictly inside all planes."""
    size = 64
    block = np.empty((z.shape[1], size))
    s, worst = np.empty(size), np.empty(size)
    out = np.empty(len(rows), np.bool_)
    for i in range(0, len(rows), size):
        m = min(size, len(rows) - i)
        for r in range(size):
            for c in range(z.shape[1]):
                block[c, r] = z[rows[i + min(r, m - 1)], c]
        worst[:] = np.inf
        for f in range(len(height)):
            for r in range(size):
                s[r] = height[f] - normal[f, 0] * block[0, r]
            for c in range(1, z.shape[1]):
                for r in range(size):
                    s[r] -= normal[f, c] * block[c, r]
            for r in range(size):
                worst[r] = s[r] if s[r] < worst[r] else worst[r]
        for r in range(m):
            out[i + r] = not worst[r] > 0
    return out
