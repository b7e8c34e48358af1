"""Convex hulls of floats: separation, vertices and facets up to a tolerance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.optimize import linprog, nnls
from scipy.spatial import ConvexHull, QhullError, cKDTree

from hardmax._types import Floats, Ints

SAMPLE = 2000
"""At most this many directions are tried before each point is tested by itself."""


def separating(hull: Floats, x: Floats, tau: float) -> Floats | None:
    """Unit normal with x strictly beyond all rows of `hull`; None within `tau`.

    Solvers only propose.  None needs weights whose combination lies within `tau`
    of x, a normal needs x to be the highest point along it; where rounding leaves
    both open, None.
    """
    near = hull - x
    best, depth = None, 0.0
    for weights, direction in _proposals(near):
        if np.linalg.norm(weights @ near) <= tau:
            return None
        length = float(np.linalg.norm(direction))
        if not length > 0:
            continue
        normal = direction / length
        gap = -float((near @ normal).max())
        if gap > depth:
            best, depth = normal, gap
        if depth > tau / 2:
            break
    return best


def _proposals(near: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Weights of a combination near 0 and a normal, from ever more careful solvers."""
    yield _by_least_squares(near)
    # In a thin set the gradient of least squares drowns in rounding: equal axes help.
    both = np.vstack([near, np.zeros(near.shape[1])])
    _, _, axes = np.linalg.svd(both - both.mean(axis=0), full_matrices=False)
    extent = np.abs((both - both.mean(axis=0)) @ axes.T).max(axis=0)
    stretch = axes.T / np.maximum(extent, 1e-14 * extent.max())
    weights, normal = _by_least_squares(near @ stretch)
    yield weights, stretch @ normal
    weights, normal = _by_linear_program(near @ stretch)
    yield weights, stretch @ normal


def _by_least_squares(near: Floats) -> tuple[Floats, Floats]:
    """The nearest point to 0 in the hull of the rows.

    min |sum w_j v_j|^2 + (sum w_j - 1)^2 over w >= 0 is attained at a multiple of
    the weights of the nearest point.
    """
    lifted = np.vstack([near.T, np.ones(len(near))])
    try:
        weights, _ = nnls(lifted, np.append(np.zeros(near.shape[1]), 1.0))
    except RuntimeError:
        weights = np.ones(len(near))
    weights = weights / weights.sum()
    return weights, -(weights @ near)


def _by_linear_program(near: Floats) -> tuple[Floats, Floats]:
    """The least maximum norm in the hull of the rows, with the normal as its dual."""
    count, width = near.shape
    ones = np.ones((width, 1))
    found = linprog(
        np.append(np.zeros(count), 1.0),
        A_ub=np.block([[near.T, -ones], [-near.T, -ones]]),
        b_ub=np.zeros(2 * width),
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.x is None:
        return np.full(count, 1 / count), np.zeros(width)
    dual = found.ineqlin.marginals
    weights = np.maximum(found.x[:-1], 0.0)  # the solver allows slightly negative ones
    return weights / weights.sum(), np.asarray(dual[:width] - dual[width:], dtype=np.float64)


def whitened_hull(x: Floats) -> tuple[ConvexHull | None, Floats]:
    """Qhull in axes of equal length, with unit normals in the given coordinates.

    None (and no normals) where Qhull gives up.
    """
    centre = x.mean(axis=0)
    _, _, axes = np.linalg.svd(x - centre, full_matrices=False)
    along = (x - centre) @ axes.T
    extent = np.abs(along).max(axis=0)
    try:
        hull = ConvexHull(along / extent)
    except QhullError:
        return None, np.zeros((0, x.shape[1]))
    normals = (hull.equations[:, :-1] / extent) @ axes
    return hull, normals / np.linalg.norm(normals, axis=1, keepdims=True)


def vertex_set(x: Floats, tau: float, known: Sequence[int]) -> list[int]:
    """Rows of x that span its hull up to `tau`: counter-clockwise in the plane, else sorted.

    Every row is within 3 `tau` of the hull of the answer.
    """
    width = x.shape[1]
    if width == 0:
        return [min(known, default=0)]
    if width == 1:
        rough = [int(x[:, 0].argmin()), int(x[:, 0].argmax())]
    elif width == 2:
        rough = _polygon(x, tau, known)
    else:
        rough = _by_separation(x, tau, known)
    named = _smallest_names(x, rough, tau, known)
    if width != 2:
        return sorted(named)
    start = named.index(min(named))
    return named[start:] + named[:start]


def _smallest_names(x: Floats, rough: list[int], tau: float, known: Sequence[int]) -> list[int]:
    """Per vertex the known row, else the smallest row, within `tau` of it."""
    known_rows = set(known)
    distance, nearest = cKDTree(x[rough]).query(x, distance_upper_bound=tau)
    best = [(v not in known_rows, v) for v in rough]
    for row in np.flatnonzero(np.isfinite(distance)):
        k = int(nearest[row])
        best[k] = min(best[k], (int(row) not in known_rows, int(row)))
    return [row for _, row in best]


def _polygon(x: Floats, tau: float, known: Sequence[int]) -> list[int]:
    """Vertices of a planar hull in counter-clockwise order."""
    hull, _ = whitened_hull(x)
    if hull is None:
        candidates = np.asarray(_by_separation(x, tau, known))
    else:
        candidates = np.asarray(sorted({*map(int, hull.vertices), *known}))
    ring = candidates[np.argsort(_angles(x, candidates), kind="stable")]
    corner = segment_distances(x[ring], x[np.roll(ring, 1)], x[np.roll(ring, -1)]) > tau
    anchors = np.flatnonzero(corner | np.isin(ring, np.asarray(known, dtype=np.int64)))
    if len(anchors) < 2:
        far = np.linalg.norm(x[ring] - x[ring].mean(axis=0), axis=1)
        first = int(anchors[0]) if len(anchors) else int(far.argmax())
        second = int(np.linalg.norm(x[ring] - x[ring[first]], axis=1).argmax())
        anchors = np.asarray(sorted({first, second}))
    return _simplified(x, ring, anchors, tau)


def _angles(x: Floats, rows: Ints) -> Floats:
    """Angles around the centre after stretching the principal axes to one length."""
    y = x[rows] - x[rows].mean(axis=0)
    _, _, axes = np.linalg.svd(y, full_matrices=False)
    along = y @ axes.T
    along = along / np.abs(along).max(axis=0)
    return np.asarray(np.arctan2(along[:, 1] * np.linalg.det(axes), along[:, 0]))


def segment_distances(p: Floats, a: Floats, b: Floats) -> Floats:
    """Distances of points from segments, row by row."""
    edge = b - a
    square = (edge**2).sum(axis=1)
    part = ((p - a) * edge).sum(axis=1) / np.where(square > 0, square, 1.0)
    foot = a + np.clip(part, 0, 1)[:, None] * edge
    return np.asarray(np.linalg.norm(p - foot, axis=1))


def _simplified(x: Floats, ring: Ints, anchors: Ints, tau: float) -> list[int]:
    """The anchors, and between them what is farther than `tau` from the chord."""
    count = len(ring)
    keep = set(map(int, anchors))
    ends = [*map(int, anchors[1:]), int(anchors[0]) + count]
    spans = list(zip(map(int, anchors), ends, strict=True))
    while spans:
        low, high = spans.pop()
        if high - low < 2:
            continue
        inner = ring[np.arange(low + 1, high) % count]
        a, b = x[ring[low % count]][None], x[ring[high % count]][None]
        far = segment_distances(x[inner], a, b)
        if far.max() > tau:
            middle = low + 1 + int(far.argmax())
            keep.add(middle % count)
            spans += [(low, middle), (middle, high)]
    return [int(ring[k]) for k in sorted(keep)]


def _by_separation(x: Floats, tau: float, known: Sequence[int]) -> list[int]:
    """Vertices in any dimension: keep a point that the kept ones do not reach."""
    candidates, sure = _sure_vertices(x, tau)
    sure = sure | set(known)
    chosen = sorted(sure)
    norms = np.linalg.norm(x - x.mean(axis=0), axis=1)
    open_rows = sorted(set(candidates) - sure, key=lambda i: (-norms[i], i))
    if not chosen:
        chosen, open_rows = [open_rows[0]], open_rows[1:]
    while open_rows:
        normal = separating(x[chosen], x[open_rows[0]], tau)
        if normal is None:
            del open_rows[0]
            continue
        chosen.append(_outermost(x, open_rows, normal, tau))
        open_rows.remove(chosen[-1])
    return _without_redundant(x, chosen, sure, tau)


def _outermost(x: Floats, rows: list[int], normal: Floats, tau: float) -> int:
    """The highest row along the normal; among equals the one far from their middle."""
    heights = x[rows] @ normal
    tied = np.asarray(rows)[heights >= heights.max() - tau]
    off = np.linalg.norm(x[tied] - x[tied].mean(axis=0), axis=1)
    return int(tied[off.argmax()])


def _without_redundant(x: Floats, chosen: list[int], sure: set[int], tau: float) -> list[int]:
    """Drop what the others reach within `tau`, unless the dropped ones drift away."""
    kept = list(chosen)
    dropped: list[int] = []
    for row in (i for i in chosen if i not in sure):
        others = [i for i in kept if i != row]
        if len(others) > 1 and separating(x[others], x[row], tau) is None:
            kept, dropped = others, [*dropped, row]
    return kept + [row for row in dropped if separating(x[kept], x[row], 2 * tau) is not None]


def _sure_vertices(x: Floats, tau: float) -> tuple[list[int], set[int]]:
    """Rows that may be vertices, and those that a direction proves to be."""
    if x.shape[1] <= 4:
        hull, normals = whitened_hull(x)
        if hull is not None:
            return _locally_extreme(x, hull, normals, tau)
    every = list(range(len(x)))
    off = x - x.mean(axis=0)
    outer = np.argsort(-np.linalg.norm(off, axis=1), kind="stable")[:SAMPLE]
    sure: set[int] = set()
    for start in range(0, len(outer), 256):
        part = off[outer[start : start + 256]]
        heights = part @ x.T
        best = heights.argmax(axis=1)
        top = heights[np.arange(len(part)), best]
        heights[np.arange(len(part)), best] = -np.inf
        clear = top - heights.max(axis=1) > tau * np.linalg.norm(part, axis=1)
        sure.update(map(int, best[clear]))
    return every, sure


def _locally_extreme(
    x: Floats, hull: ConvexHull, normals: Floats, tau: float
) -> tuple[list[int], set[int]]:
    """Hull vertices, and those above all neighbours along the mean of their normals.

    A linear function that is largest at a vertex has its second best value at a
    neighbour, so the neighbours decide for all points.
    """
    simplices = hull.simplices
    width = simplices.shape[1]
    mean = np.zeros_like(x)
    for k in range(width):
        np.add.at(mean, simplices[:, k], normals)
    margin = np.full(len(x), np.inf)
    for a in range(width):
        for b in range(width):
            if a != b:
                v, w = simplices[:, a], simplices[:, b]
                np.minimum.at(margin, v, ((x[v] - x[w]) * mean[v]).sum(axis=1))
    candidates = [int(v) for v in hull.vertices]
    clear = margin > tau * np.linalg.norm(mean, axis=1)
    return candidates, {v for v in candidates if clear[v]}


def most_facets(dim: int, count: int) -> int:
    """Upper bound theorem: facets of a polytope with so many vertices."""
    low, high = (dim - 1) // 2, dim // 2
    return math.comb(count - (dim + 1) // 2, high) + math.comb(count - 1 - dim // 2, low)


def merged_facets(vertices: Floats, normals: Floats, slack: float) -> tuple[list[Ints], Floats]:
    """Vertex sets within `slack` of each supporting plane, the largest ones only."""
    found: dict[bytes, int] = {}
    sets: list[Ints] = []
    block = max(1, 10_000_000 // len(vertices))
    for start in range(0, len(normals), block):
        heights = normals[start : start + block] @ vertices.T
        for k, row in enumerate(heights >= heights.max(axis=1, keepdims=True) - slack):
            members = np.flatnonzero(row)
            if found.setdefault(members.tobytes(), start + k) == start + k:
                sets.append(members)
    planes = list(found.values())
    kept = sorted(_maximal(sets, vertices), key=lambda k: tuple(sets[k]))
    return [sets[k] for k in kept], normals[[planes[k] for k in kept]]


def _maximal(sets: list[Ints], vertices: Floats) -> list[int]:
    """Positions of the sets that no other set contains."""
    larger: list[list[frozenset[int]]] = [[] for _ in vertices]
    kept = []
    for k in sorted(range(len(sets)), key=lambda k: -len(sets[k])):
        members = frozenset(map(int, sets[k]))
        if any(members < rival for rival in larger[int(sets[k][0])]):
            continue
        kept.append(k)
        if len(members) > vertices.shape[1]:
            for i in members:
                larger[i].append(members)
    return kept
