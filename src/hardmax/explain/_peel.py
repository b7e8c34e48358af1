"""Words in the order in which they are best taken away: their contributions, found again
after each lot of them is gone.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hardmax._types import Array, Bools, Ints
from hardmax.learn._layers import pool_texts
from hardmax.tokens._grams import encode

__all__ = ["peel", "share_out"]


@njit(nogil=True, cache=True)
def _left_over(
    words: Array, ends: Bools, unit: Ints, left: Bools, w: Array, e: Bools, most: int
) -> int:
    """The words that stay, with the ends of their sentences; how many."""
    m, start, known = 0, 0, 0
    for p in range(len(words)):
        if unit[p] < 0 or left[unit[p]]:
            known += words[p] >= 0
            if 0 <= most < known:
                break
            w[m] = words[p]
            e[m] = False
            m += 1
        if ends[p]:
            if m > start:
                e[m - 1] = True
            start = m
    return m


@njit(nogil=True, cache=True)
def _parts(token: int, size: int, grams: Array, first_pair: int, pairs: Array, out: Ints) -> int:
    """The words of a token; how many."""
    if token >= first_pair:
        out[0], out[1] = pairs[token - first_pair, 0], pairs[token - first_pair, 1]
        return 2
    m = 0
    while token >= size:
        out[m] = grams[token - size, 1]
        m += 1
        token = grams[token - size, 0]
    out[m] = token
    return m + 1


@njit(nogil=True, cache=True)
def _worth(ids: Array, u: Array, E: Array, v: Array) -> Array:
    """The contribution of every token."""
    step, out = E.shape[1] // u.shape[1], np.zeros(len(ids))
    for r in range(len(ids)):
        for h in range(u.shape[1]):
            value = 0.0
            for c in range(h * step, (h + 1) * step):
                value += E[ids[r], c] * v[c]
            out[r] += u[r, h] * value
    return out


@njit(nogil=True, cache=True)
def share_out(
    ids: Array, worth: Array, size: int, grams: Array, pairs: Array, width: int, codes: Ints,
    owner: Ints, units: int,
) -> Array:  # fmt: skip
    """What the tokens add, in equal parts, by the units of their words."""
    some, score = np.empty(width, np.int64), np.zeros(units)
    for r in range(len(ids)):
        m = _parts(ids[r], size, grams, size + len(grams), pairs, some)
        for j in range(m):
            score[owner[np.searchsorted(codes, some[j])]] += worth[r] / m
    return score


@njit(nogil=True, cache=True)
def peel(
    words: Array, ends: Bools, unit: Ints, score: Array, codes: Ints, owner: Ints, most_words: int,
    n: int, table: Ints, value: Array, across: bool, split: bool, far: int, far_table: Ints,
    far_value: Array, size: int, grams: Array, pairs: Array, once: bool,
    E: Array, gamma: Array, A: Array, v: Array, depth: int, tol: float, grow: float, most: float,
) -> Ints:  # fmt: skip
    """The units of a text, those first that hold <v, .> up while those before are gone.

    Parameters
    ----------
    words, ends : (m,) arrays
        The text, as in a `Stream`.
    unit : (m,) int array
        The unit of each word, -1 for none.
    score : (units,) array
        What each unit adds while all are there.
    codes, owner : int arrays
        Word numbers, ascending, and the unit of each.
    v : (dim,) array
        The decoder, signed so that what is held up is positive.
    grow : float
        Of `taken` units that are gone, about (grow - 1) `taken` go next.
    most : float
        From this share of the units on, the rest keeps its last order.
    """
    units, taken, lot = len(score), 0, 1
    left, order = np.ones(units, np.bool_), np.empty(units, np.int64)
    w, e = np.empty(len(words), words.dtype), np.empty(len(words), np.bool_)
    shape = (1, len(gamma), 0, 0, 0)
    while True:
        rest = np.flatnonzero(left)
        rest = rest[np.argsort(-score[rest], kind="mergesort")]
        above = int((score[rest] > 0).sum())
        last = above <= lot or taken >= most * units
        for r in range(len(rest) if last else lot):
            order[taken] = rest[r]
            left[rest[r]] = False
            taken += 1
        if last:
            return order
        lot = max(1, int(taken * (grow - 1) + 0.5))
        m = _left_over(words, ends, unit, left, w, e, most_words)
        ids, counts, cuts, texts = encode(
            w[:m], e[:m], np.array([0, m]), n, max(size, 1), table, value, across, split, far,
            far_table, far_value,
        )  # fmt: skip
        if once:
            counts[:] = 1
        u, out_ids = np.empty((len(ids), len(gamma))), np.empty(len(ids), np.int32)
        pool_texts(
            E, gamma, A, ids, counts, cuts, texts, np.zeros(1, np.int64), np.array([0, len(ids)]),
            0, 1, depth, tol, 0.0, 0.0, 0.0, 0, out_ids, u, np.zeros(1, np.int64),
            np.zeros((1, E.shape[1])), np.zeros((1, E.shape[1])), np.zeros(shape),
        )  # fmt: skip
        worth = _worth(ids, u, E, v)
        score = share_out(ids, worth, size, grams, pairs, max(n, 2), codes, owner, units)
