"""Selection for many short sequences: one compiled call, few keys looked at.

In the plane every choice lies on the boundary of the convex hull, so keys that
are clearly inside it are left out first.  The answer is that of `select`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hardmax._types import Array, Bools, Ints
from hardmax.select.chosen import Chosen

__all__ = [
    "TIED",
    "asks_of",
    "choose_between",
    "choose_into",
    "leave_inner",
    "score_of",
    "select_ragged",
]

TIED = -1
"""Stands for a row that several keys tie for."""

_DIRECTIONS = 16
_FEW = 24
_ANGLES = np.arange(_DIRECTIONS) * (2 * np.pi / _DIRECTIONS)
_COS, _SIN = np.cos(_ANGLES), np.sin(_ANGLES)


@njit(nogil=True, cache=True)
def _corners(z: Array, keys: Ints, m: int, at: Ints) -> int:
    """The keys that lead in 16 directions, once each, counter-clockwise."""
    top = np.full(_DIRECTIONS, -np.inf)
    row = np.zeros(_DIRECTIONS)  # as floats, so that one mask serves both
    for r in range(m):
        x, y, number = z[0, keys[r]], z[1, keys[r]], float(r)
        for a in range(_DIRECTIONS):
            s = _COS[a] * x + _SIN[a] * y
            row[a] = number if s > top[a] else row[a]
            top[a] = s if s > top[a] else top[a]
    size = 0
    for a in range(_DIRECTIONS):
        key = keys[int(row[a])]
        if size == 0 or key != at[size - 1]:
            at[size] = key
            size += 1
    if size > 1 and at[0] == at[size - 1]:
        size -= 1
    return size


@njit(nogil=True, cache=True)
def leave_inner(z: Array, keys: Ints, m: int, depth: float) -> int:
    """Keep the keys that are not deeper than `depth` inside the hull; how many."""
    if m < 3:
        return m
    at = np.zeros(_DIRECTIONS, dtype=np.int64)
    size = _corners(z, keys, m, at)
    if size < 3:
        return m
    x, y, least = np.empty(m), np.empty(m), np.full(m, np.inf)
    for r in range(m):
        x[r] = z[0, keys[r]]
        y[r] = z[1, keys[r]]
    for e in range(size):
        p, q = at[e], at[(e + 1) % size]
        dx, dy = z[0, q] - z[0, p], z[1, q] - z[1, p]
        low = depth * np.sqrt(dx * dx + dy * dy)
        px, py = z[0, p], z[1, p]
        for r in range(m):
            over = dx * (y[r] - py) - dy * (x[r] - px) - low
            least[r] = over if over < least[r] else least[r]
    left = 0
    for r in range(m):
        if not least[r] > 0.0:
            keys[left] = keys[r]
            left += 1
    return left


@njit(nogil=True, cache=True)
def _scan(
    z: Array, q: Array, keys: Ints, m: int, n: int, top: Array, second: Array, at: Ints
) -> None:
    """Best and second-best score of each token over the keys; lanes are tokens."""
    d = z.shape[0]
    s = np.empty(n)
    for i in range(n):
        top[i] = -np.inf
        second[i] = -np.inf
        at[i] = keys[0]
    for r in range(m):
        j = keys[r]
        y = z[0, j]
        for i in range(n):
            s[i] = q[0, i] * y
        for c in range(1, d):
            y = z[c, j]
            for i in range(n):
                s[i] += q[c, i] * y
        for i in range(n):
            v = s[i]
            t = top[i]
            low = v if v < t else t
            second[i] = low if low > second[i] else second[i]
            at[i] = j if v > t else at[i]
            top[i] = v if v > t else t


@njit(nogil=True, cache=True)
def choose_into(
    z: Array, hidden: Bools, n: int, tie_tol: float, at: Ints, top: Array, slack: Array
) -> bool:
    """`choose_between` with A the identity: the tokens ask as they are."""
    return bool(choose_between(z, z, hidden, n, tie_tol, at, top, slack))


@njit(nogil=True, cache=True, inline="always")
def _length(z: Array, i: int) -> float:
    s = z[0, i] * z[0, i]
    for c in range(1, z.shape[0]):
        s += z[c, i] * z[c, i]
    return float(np.sqrt(s))


@njit(nogil=True, cache=True)
def choose_between(
    z: Array, q: Array, hidden: Bools, n: int, tie_tol: float, at: Ints, top: Array, slack: Array
) -> bool:
    """The key that each token of one sequence chooses, or TIED; whether any tie.

    z is (d, n), and q = A z is what asks.  Writes `at`, the best scores `top`, and
    `slack`, within which a score counts as best.
    """
    d = z.shape[0]
    keys = np.empty(n, dtype=np.int64)
    size = np.empty(n)
    m, longest = 0, 0.0
    for i in range(n):
        size[i] = _length(q, i)
        if not hidden[i]:
            keys[m] = i
            m += 1
            longest = max(longest, _length(z, i))
    if d == 2 and m > _FEW:
        m = leave_inner(z, keys, m, max(1e-9, 4 * tie_tol) * longest)
    second = np.empty(n)
    _scan(z, q, keys, m, n, top, second, at)
    ties = False
    for i in range(n):
        slack[i] = tie_tol * (size[i] * longest)
        if second[i] >= top[i] - slack[i]:
            at[i] = TIED
            ties = True
    return ties


@njit(nogil=True, cache=True)
def _rows(
    z: Array, q: Array, hidden: Bools, offsets: Ints, tie_tol: float, counts: Ints, indices: Ints,
    fill: bool,
) -> None:  # fmt: skip
    """Count, or list, the chosen keys of every token of every sequence."""
    put = 0
    for s in range(len(offsets) - 1):
        a, b = offsets[s], offsets[s + 1]
        n = b - a
        if n == 0:
            continue
        block, asks = np.ascontiguousarray(z[a:b].T), np.ascontiguousarray(q[a:b].T)
        at, top, slack = np.empty(n, np.int64), np.empty(n), np.empty(n)
        choose_between(block, asks, hidden[a:b], n, tie_tol, at, top, slack)
        for i in range(n):
            found = 0
            for j in range(n):
                if at[i] != TIED and at[i] != j:
                    continue
                if at[i] == TIED and (
                    hidden[a + j] or score_of(asks, block, i, j) < top[i] - slack[i]
                ):
                    continue
                if fill:
                    indices[put] = a + j
                    put += 1
                found += 1
            counts[a + i] = found


@njit(nogil=True, cache=True)
def score(z: Array, i: int, j: int) -> float:
    """<z_i, z_j> by the one fixed chain; z is (d, n)."""
    return float(score_of(z, z, i, j))


@njit(nogil=True, cache=True)
def score_of(q: Array, z: Array, i: int, j: int) -> float:
    """<q_i, z_j> by the one fixed chain; both are (d, n)."""
    s = q[0, i] * z[0, j]
    for c in range(1, z.shape[0]):
        s += q[c, i] * z[c, j]
    return float(s)


@njit(nogil=True, cache=True)
def asks_of(z: Array, A: Array) -> Array:
    """A z for tokens (d, n), coordinate after coordinate."""
    d, n = z.shape
    q = np.empty((d, n))
    for r in range(d):
        for i in range(n):
            q[r, i] = A[r, 0] * z[0, i]
        for c in range(1, d):
            for i in range(n):
                q[r, i] += A[r, c] * z[c, i]
    return q


def select_ragged(
    z: Array,
    offsets: Ints,
    *,
    A: Array | None = None,
    hidden: Bools | None = None,
    tie_tol: float = 0.0,
) -> Chosen:
    """The sets of `select` for sequences of float64 tokens.

    Parameters
    ----------
    z : (N, d) float64 array
    offsets : (s + 1,) int array
        Sequence s is z[offsets[s]:offsets[s + 1]].
    A : (d, d) array, optional
        The scores <A z_i, z_j>; the identity when None.
    hidden : (N,) bool array, optional
        Tokens that nobody may choose; each sequence keeps one that is visible.
    tie_tol : float
        As in `select`.

    Returns
    -------
    Chosen
        Margins are not computed here: they are NaN.
    """
    veiled = np.zeros(len(z), dtype=bool) if hidden is None else hidden
    z, counts = np.ascontiguousarray(z, dtype=np.float64), np.zeros(len(z), dtype=np.int64)
    none, q = np.zeros(0, dtype=np.int64), z if A is None else asks_of(z.T, A).T.copy()
    _rows(z, q, veiled, offsets, tie_tol, counts, none, False)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.empty(indptr[-1], dtype=np.int64)
    _rows(z, q, veiled, offsets, tie_tol, counts, indices, True)
    return Chosen(indptr, indices, np.full(len(z), np.nan))
