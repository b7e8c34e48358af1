"""Logits of texts that differ little from one text: whole heads are computed only where
a choice can change, and elsewhere by adding and subtracting what the words contribute.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hardmax._types import Array, Bools, Floats, Ints
from hardmax.select.ragged import TIED, asks_of, choose_between, leave_inner, score_of

__all__ = ["near_logits"]

_BIND = 2
"""A token whose every occurrence counts: it is tied with others for some token."""


@njit(nogil=True, cache=True)
def _members(z: Array, q: Array, i: int, low: float, out: Ints) -> int:
    """The keys that token i ties for; how many."""
    m = 0
    for j in range(z.shape[1]):
        if score_of(q, z, i, j) >= low:
            out[m] = j
            m += 1
    return m


@njit(nogil=True, cache=True)
def _advance(
    z: Array, counts: Array, gamma: float, A: Array, tol: float,
    at: Ints, top: Array, slack: Array, key: Array,
) -> Array:  # fmt: skip
    """One layer of one head; notes in `key` who is chosen by others (1) or tied (2)."""
    d, n = z.shape
    hidden = np.zeros(n, np.bool_)
    q = z if len(A) == 0 else asks_of(z, A)
    choose_between(z, q, hidden, n, tol, at, top, slack)
    out = np.empty((d, n))
    some = np.empty(n, np.int64)
    for i in range(n):
        if at[i] != TIED:
            if at[i] != i:
                key[at[i]] = max(key[at[i]], 1)
            for c in range(d):
                out[c, i] = z[c, i] + gamma * (z[c, at[i]] - z[c, i])
            continue
        m = _members(z, q, i, top[i] - slack[i], some)
        total = 0.0
        for r in range(m):
            key[some[r]] = _BIND
            total += counts[some[r]]
        for c in range(d):
            base, shift = z[c, some[0]], 0.0
            for r in range(m):
                shift += (z[c, some[r]] - base) * (counts[some[r]] / total)
            out[c, i] = z[c, i] + gamma * (base + shift - z[c, i])
    return out


@njit(nogil=True, cache=True)
def _pooled(z: Array, counts: Array, gamma: float, A: Array, depth: int, tol: float) -> Array:
    """The sum of the last positions of one head, each as often as it occurs."""
    n = z.shape[1]
    at, top, slack, key = np.empty(n, np.int64), np.empty(n), np.empty(n), np.zeros(n, np.int64)
    for _ in range(depth):
        z = _advance(z, counts, gamma, A, tol, at, top, slack, key)
    out = np.zeros(z.shape[0])
    for c in range(z.shape[0]):
        for i in range(n):
            out[c] += counts[i] * z[c, i]
    return out


@njit(nogil=True, cache=True)
def _split(ids: Array, d_ids: Array, d_by: Array, less: Array, fresh: Array, many: Array) -> int:
    """Occurrences lost per base token (negative: gained), and the tokens added; how many."""
    less[:] = 0
    a = 0
    for j in range(len(d_ids)):
        r = np.searchsorted(ids, d_ids[j])
        if r < len(ids) and ids[r] == d_ids[j]:
            less[r] = -d_by[j]
        else:
            fresh[a] = d_ids[j]
            many[a] = d_by[j]
            a += 1
    return a


@njit(nogil=True, cache=True)
def _whole(ids: Array, counts: Array, less: Array, fresh: Array, many: Array) -> Any:
    """The tokens of a variant with their counts, ascending."""
    new, by = np.empty(len(ids) + len(fresh), np.int64), np.empty(len(ids) + len(fresh), np.int64)
    m, r = 0, 0
    for i in range(len(ids) + 1):
        while r < len(fresh) and (i == len(ids) or fresh[r] < ids[i]):
            new[m] = fresh[r]
            by[m] = many[r]
            m += 1
            r += 1
        if i < len(ids) and counts[i] > less[i]:
            new[m] = ids[i]
            by[m] = counts[i] - less[i]
            m += 1
    return new[:m], by[:m]


@njit(nogil=True, cache=True)
def _dot(y: Array, r: int, z: Array, j: int) -> float:
    """<y_r, z_j>."""
    s = y[0, r] * z[0, j]
    for c in range(1, z.shape[0]):
        s += y[c, r] * z[c, j]
    return float(s)


@njit(nogil=True, cache=True)
def _norms(z: Array) -> Array:
    out = np.empty(z.shape[1])
    for i in range(z.shape[1]):
        out[i] = np.sqrt(_dot(z, i, z, i))
    return out


@njit(nogil=True, cache=True)
def _hull(z: Array, tol: float, longest: float) -> Ints:
    """The keys that any token could choose, and a few more."""
    keys = np.arange(z.shape[1])
    if z.shape[0] != 2:
        return keys
    return keys[: leave_inner(z, keys, len(keys), max(1e-9, 4 * tol) * longest)]


@njit(nogil=True, cache=True)
def _draws(
    y: Array, z: Array, theirs: Array, low: Array, hull: Ints, gone: Bools, tol: float,
    longest: float,
) -> bool:  # fmt: skip
    """Whether a token that stays would choose, or tie for, one of the new tokens y."""
    a, m = y.shape[1], len(hull)
    outer = np.arange(m, m + a)
    if z.shape[0] == 2:
        both = np.empty((2, m + a))
        for c in range(2):
            for r in range(m + a):
                both[c, r] = z[c, hull[r]] if r < m else y[c, r - m]
        outer = _hull(both, tol, longest)
    for r in outer:
        if r < m:
            continue
        for i in range(len(gone)):
            if not gone[i] and _dot(theirs, i, y, r - m) >= low[i]:
                return True
    return False


@njit(nogil=True, cache=True)
def _goal(y: Array, asks: Array, r: int, z: Array, hull: Ints, gone: Bools, slack: float) -> int:
    """Whom the new token r chooses, with numbers of new tokens after the others; -1 for a tie."""
    n, whole = z.shape[1], False
    for j in hull:
        whole |= gone[j]
    best, second, at = -np.inf, -np.inf, -1
    m = n if whole else len(hull)
    for p in range(m + y.shape[1]):
        j = n + p - m if p >= m else p if whole else hull[p]
        if j < n and gone[j]:
            continue
        s = _dot(asks, r, z, j) if j < n else _dot(asks, r, y, j - n)
        if s > best:
            best, second, at = s, best, j
        elif s > second:
            second = s
    return -1 if second >= best - slack else at


@njit(nogil=True, cache=True)
def _join(
    y: Array, zs: Array, lows: Array, longest: Array, hulls: Any, gone: Bools,
    gamma: float, A: Array, depth: int, tol: float,
) -> bool:  # fmt: skip
    """Move new tokens y among the others; False where they change a choice, or tie."""
    a, n = y.shape[1], zs.shape[2]
    goal = np.empty((y.shape[0], a))
    plain = len(A) == 0
    for k in range(depth):
        z = zs[k]
        asks, theirs = (y, z) if plain else (asks_of(y, A), asks_of(z, A))
        size = _norms(asks)
        far = size if plain else _norms(y)
        for r in range(a):
            if far[r] >= longest[k]:
                return False
        if _draws(y, z, theirs, lows[k], hulls[k], gone, tol, longest[k]):
            return False
        for r in range(a):
            at = _goal(y, asks, r, z, hulls[k], gone, tol * size[r] * longest[k])
            if at < 0:
                return False
            for c in range(y.shape[0]):
                goal[c, r] = z[c, at] if at < n else y[c, at - n]
        for r in range(a):
            for c in range(y.shape[0]):
                y[c, r] += gamma * (goal[c, r] - y[c, r])
    return True


@njit(nogil=True, cache=True)
def _block(E: Array, ids: Array, h: int, size: int) -> Array:
    z = np.empty((size, len(ids)))
    for i in range(len(ids)):
        for c in range(size):
            z[c, i] = E[ids[i], h * size + c]
    return z


@njit(nogil=True, cache=True)
def _head(
    E: Array, gamma: float, A: Array, h: int, size: int, ids: Array, counts: Array, cuts: Ints,
    d_ids: Array, d_by: Array, depth: int, tol: float, out: Array,
) -> int:  # fmt: skip
    """One head of all variants: sums of last positions into out[t]; how many in full."""
    n = len(ids)
    zs = np.empty((depth + 1, size, n))
    at, key = np.empty((depth, n), np.int64), np.zeros(n, np.int64)
    tops, slacks = np.empty((depth, n)), np.empty((depth, n))
    longest = np.zeros(depth)
    hulls = [np.arange(0) for _ in range(depth)]
    zs[0] = _block(E, ids, h, size)
    for k in range(depth):
        longest[k] = _norms(zs[k]).max() if n else 0.0
        hulls[k] = _hull(zs[k], tol, longest[k])
        zs[k + 1] = _advance(zs[k], counts, gamma, A, tol, at[k], tops[k], slacks[k], key)
    lows, tied = tops - slacks, np.any(at == TIED)
    base = np.zeros(size)
    for c in range(size):
        for i in range(n):
            base[c] += counts[i] * zs[depth, c, i]
    less, gone = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    most = 0
    for t in range(len(cuts) - 1):
        most = max(most, cuts[t + 1] - cuts[t])
    fresh, many = np.empty(most, np.int64), np.empty(most, np.int64)
    full = 0
    for t in range(len(cuts) - 1):
        a = _split(
            ids, d_ids[cuts[t] : cuts[t + 1]], d_by[cuts[t] : cuts[t + 1]], less, fresh, many
        )
        calm = True
        for i in range(n):
            gone[i] = less[i] == counts[i]
            if less[i] != 0 and (key[i] == _BIND or (gone[i] and (tied or key[i] > 0))):
                calm = False
        if calm and a > 0:
            y = _block(E, fresh[:a], h, size)
            calm = _join(y, zs, lows, longest, hulls, gone, gamma, A, depth, tol)
            if calm:
                for r in range(a):
                    for c in range(size):
                        out[t, c] += many[r] * y[c, r]
        if calm:
            for c in range(size):
                out[t, c] += base[c]
            for i in range(n):
                if less[i] != 0:
                    for c in range(size):
                        out[t, c] -= less[i] * zs[depth, c, i]
        else:
            full += 1
            new, by = _whole(ids, counts, less, fresh[:a], many[:a])
            if len(new) > 0:
                out[t] = _pooled(_block(E, new, h, size), by, gamma, A, depth, tol)
    return full


@njit(nogil=True, cache=True)
def near_logits(
    E: Array, gamma: Floats, A: Array, v: Floats, b: Floats, ids: Array, counts: Array, cuts: Ints,
    d_ids: Array, d_by: Array, depth: int, tol: float,
) -> Any:  # fmt: skip
    """Logits of variants of one sequence: `ids` with the changes of `find_deltas`.

    A variant that removes no chosen token, and adds none that others would choose,
    leaves every choice as it is: the sum of last positions then changes by the
    positions removed and added.  Otherwise the head is computed from its words.

    Returns
    -------
    logits : (variants, outputs) array
    full : int
        How many heads were computed from their words.
    """
    heads, size = len(gamma), E.shape[1] // len(gamma)
    out = np.empty((len(cuts) - 1, len(b)))
    sums = np.zeros((len(cuts) - 1, size))
    out[:] = b
    full = 0
    total = np.full(len(cuts) - 1, counts.sum())
    for t in range(len(cuts) - 1):
        total[t] += d_by[cuts[t] : cuts[t + 1]].sum()
    for h in range(heads):
        sums[:] = 0.0
        full += _head(E, gamma[h], A[h], h, size, ids, counts, cuts, d_ids, d_by, depth, tol, sums)
        for t in range(len(cuts) - 1):
            for o in range(len(b)):
                for c in range(size):
                    if total[t] > 0:
                        out[t, o] += v[o, h * size + c] * sums[t, c] / total[t]
    return out, full
