"""Compiled layers on texts: pooled tokens, and how much each word weighs in them.

With the choices fixed a layer is linear, z' = (1 - gamma) z + gamma M z, so the
pooled token is sum_i u_i z_i with u found from the last layer backwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hardmax._types import Array, Bools, Ints
from hardmax.select.ragged import TIED, asks_of, choose_between, score_of

__all__ = ["gather_rows", "open_head", "pool_texts"]

_DROP, _HIDE = 1, 2


@njit(nogil=True, cache=True, inline="always")
def _coin(seed: int, text: int, place: int, salt: int) -> float:
    """A number in [0, 1) that depends on its arguments alone."""
    h = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(text)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(4 * place + salt)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    h = (h ^ (h >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.float64(h >> np.uint64(11)) / 9007199254740992.0


@njit(nogil=True, cache=True)
def _keep_words(
    ids: Array, weights: Array, a: int, b: int, drop: float, seed: int, text: int,
    out: Array, w: Array, m: int,
) -> int:  # fmt: skip
    """Copy a sequence's tokens without those dropped; where the copy ends."""
    for i in range(a, b):
        if drop == 0.0 or _coin(seed, text, i - a, _DROP) >= drop:
            out[m] = ids[i]
            w[m] = weights[i]
            m += 1
    return m


@njit(nogil=True, cache=True)
def _hide_keys(hidden: Bools, hide: float, seed: int, text: int) -> None:
    """Hide keys at random, never all of a sequence."""
    some = False
    for i in range(len(hidden)):
        hidden[i] = hide > 0.0 and _coin(seed, text, i, _HIDE) < hide
        some |= not hidden[i]
    if not some:
        hidden[:] = False


@njit(nogil=True, cache=True)
def _ties(z: Array, q: Array, i: int, hidden: Bools, w: Array, low: float, out: Ints) -> Any:
    """The keys that token i ties for, how many, and their weight."""
    m, total = 0, 0.0
    for j in range(z.shape[1]):
        if not hidden[j] and score_of(q, z, i, j) >= low:
            out[m] = j
            m += 1
            total += w[j]
    return m, total


@njit(nogil=True, cache=True)
def _means(
    z: Array, q: Array, at: Ints, low: Array, hidden: Bools, w: Array, ties: bool,
    out: Array, some: Ints,
) -> None:  # fmt: skip
    """What each token moves toward, into `out`."""
    d, n = z.shape
    for c in range(d):
        for i in range(n):
            out[c, i] = z[c, max(at[i], 0)]
    if not ties:
        return
    for i in range(n):
        if at[i] == TIED:
            m, total = _ties(z, q, i, hidden, w, low[i], some)
            for c in range(d):
                base, shift = z[c, some[0]], 0.0
                for r in range(m):
                    shift += (z[c, some[r]] - base) * (w[some[r]] / total)
                out[c, i] = base + shift


@njit(nogil=True, cache=True)
def _pull_back(
    z: Array, q: Array, at: Ints, low: Array, hidden: Bools, w: Array, gamma: float, u: Array,
    some: Ints,
) -> Array:  # fmt: skip
    """The weights of the tokens before a layer, from those after it."""
    n = len(u)
    out = (1 - gamma) * u
    for i in range(n):
        if at[i] != TIED:
            out[at[i]] += gamma * u[i]
        else:
            m, total = _ties(z, q, i, hidden, w, low[i], some)
            for r in range(m):
                out[some[r]] += gamma * u[i] * (w[some[r]] / total)
    return out


@njit(nogil=True, cache=True)
def _settled(at: Ints) -> bool:
    """Whether every chosen token chooses itself: then no later choice differs."""
    settled = True
    for i in range(len(at)):
        settled &= at[i] != TIED and at[at[i]] == at[i]
    return settled


@njit(nogil=True, cache=True)
def _second(z: Array, q: Array, hidden: Bools, i: int, best: int) -> int:
    """The key with the second-best score of token i; the best one where there is no other."""
    at, top = best, -np.inf
    for j in range(z.shape[1]):
        if j != best and not hidden[j] and score_of(q, z, i, j) > top:
            at, top = j, score_of(q, z, i, j)
    return at


@njit(nogil=True, cache=True)
def _turn(
    z: Array, q: Array, at: Ints, slack: Array, hidden: Bools, gamma: float, u: Array, width: float,
    out: Array,
) -> None:  # fmt: skip
    """Add d pooled / d A of one layer, as if the choice of best or second were soft.

    `slack` is |A z_i| max_j |z_j|, and `width` times it the width of the choice.
    """
    d, n = z.shape
    for i in range(n):
        if at[i] == TIED or slack[i] == 0.0:
            continue
        other = _second(z, q, hidden, i, at[i])
        gap = score_of(q, z, i, at[i]) - score_of(q, z, i, other)
        share = 1 / (1 + np.exp(-gap / (width * slack[i])))
        weight = gamma * u[i] * share * (1 - share) / (width * slack[i])
        for c in range(d):
            for r in range(d):
                way = (z[c, at[i]] - z[c, other]) * (z[r, at[i]] - z[r, other])
                for k in range(d):
                    out[c, r, k] += weight * way * z[k, i]


@njit(nogil=True, cache=True)
def _reaches(z: Array, q: Array, hidden: Bools) -> Array:
    """|A z_i| max_j |z_j| of every token."""
    most, out = 0.0, np.empty(z.shape[1])
    for j in range(z.shape[1]):
        if not hidden[j]:
            most = max(most, score_of(z, z, j, j))
    for i in range(z.shape[1]):
        out[i] = np.sqrt(score_of(q, q, i, i)) * np.sqrt(most)
    return out


@njit(nogil=True, cache=True)
def open_head(
    z: Array, hidden: Bools, w: Array, share: Array, gamma: float, A: Array, depth: int,
    tie_tol: float, width: float, turned: Array, at: Ints,
) -> Any:  # fmt: skip
    """One head on one sequence: the weights u of its tokens, and d pooled / d gamma.

    A is (d, d), or (0, 0) for the identity; d pooled / d A is added to `turned`.
    at[k] receives whom each token chooses in layer k, or TIED.
    """
    d, n = z.shape
    zs, to = np.empty((depth, d, n)), np.empty((depth, d, n))
    low = np.empty((depth, n))
    top, slack, some = np.empty(n), np.empty(n), np.empty(n, np.int64)
    settled, ties, plain = False, False, len(A) == 0
    for k in range(depth):
        zs[k] = z
        q = z if plain else asks_of(z, A)
        if settled:
            at[k] = at[k - 1]
        else:
            ties = choose_between(z, q, hidden, n, tie_tol, at[k], top, slack)
            low[k] = top - slack
            settled = not ties and _settled(at[k])
        _means(z, q, at[k], low[k], hidden, w, ties, to[k], some)
        z = z + gamma * (to[k] - z)
    u, slope = share, np.zeros(d)
    for k in range(depth - 1, -1, -1):
        for c in range(d):
            for i in range(n):
                slope[c] += u[i] * (to[k, c, i] - zs[k, c, i])
        q = zs[k] if plain else asks_of(zs[k], A)
        if len(turned):
            _turn(zs[k], q, at[k], _reaches(zs[k], q, hidden), hidden, gamma, u, width, turned)
        u = _pull_back(zs[k], q, at[k], low[k], hidden, w, gamma, u, some)
    return u, slope


@njit(nogil=True, cache=True)
def pool_texts(
    E: Array, gamma: Array, A: Array, ids: Array, weights: Array, offsets: Ints, texts: Ints,
    rows: Ints, starts: Ints, first: int, stop: int, depth: int, tie_tol: float, width: float,
    drop: float, hide: float, seed: int,
    out_ids: Array, out_u: Array, kept: Ints, pooled: Array, slope: Array, turned: Array,
) -> None:  # fmt: skip
    """Texts rows[first:stop]: pooled tokens, their slopes in gamma and A, and the weights u.

    Occurrence r of text t is out_ids[starts[t] + r] with the weights
    out_u[starts[t] + r, head]; there are kept[t] of them.
    """
    heads, dim = len(gamma), E.shape[1]
    size = dim // heads
    for t in range(first, stop):
        a, m = starts[t], starts[t]
        w = np.empty(starts[t + 1] - a)
        cuts = np.zeros(texts[rows[t] + 1] - texts[rows[t]] + 1, np.int64)
        for attempt in range(2):
            m = 0
            for s in range(len(cuts) - 1):
                at = offsets[texts[rows[t]] + s]
                end = offsets[texts[rows[t]] + s + 1]
                rate = drop if attempt == 0 else 0.0
                m = _keep_words(ids, weights, at, end, rate, seed, at, out_ids[a:], w, m)
                cuts[s + 1] = m
            if m > 0:
                break
        kept[t] = m
        total = w[:m].sum()
        for s in range(len(cuts) - 1):
            lo, hi = cuts[s], cuts[s + 1]
            if hi == lo:
                continue
            hidden = np.empty(hi - lo, np.bool_)
            _hide_keys(hidden, hide, seed, offsets[texts[rows[t]] + s])
            share = w[lo:hi] / total
            z, chosen = np.empty((size, hi - lo)), np.empty((depth, hi - lo), np.int64)
            for h in range(heads):
                for i in range(hi - lo):
                    for c in range(size):
                        z[c, i] = E[out_ids[a + lo + i], h * size + c]
                u, way = open_head(
                    z, hidden, w[lo:hi], share, gamma[h], A[h], depth, tie_tol, width, turned[t, h],
                    chosen,
                )  # fmt: skip
                for c in range(size):
                    slope[t, h * size + c] += way[c]
                    for i in range(hi - lo):
                        pooled[t, h * size + c] += u[i] * z[c, i]
                for i in range(hi - lo):
                    out_u[a + lo + i, h] = u[i]


@njit(nogil=True, cache=True)
def gather_rows(
    ids: Array, u: Array, starts: Ints, kept: Ints, grad: Array, place: Ints, rows: Ints, out: Array
) -> int:
    """Sum the gradients of all occurrences by token; how many tokens there are.

    `place` is -1 everywhere, before and after; `rows` and `out` receive the
    tokens and their gradients.
    """
    m = 0
    size = grad.shape[1] // u.shape[1]
    for t in range(len(kept)):
        for o in range(starts[t], starts[t] + kept[t]):
            r = place[ids[o]]
            if r < 0:
                r = m
                place[ids[o]] = m
                rows[m] = ids[o]
                out[m] = 0.0
                m += 1
            for h in range(u.shape[1]):
                for c in range(h * size, (h + 1) * size):
                    out[r, c] += u[o, h] * grad[t, c]
    for r in range(m):
        place[rows[r]] = -1
    return m
