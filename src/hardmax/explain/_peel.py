"""One text through the layers with its choices kept, and its words in the order in which
they are best taken away: their contributions, found again after each lot of them is gone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hardmax._types import Array, Bools, Floats, Ints
from hardmax.learn._layers import open_head
from hardmax.select.ragged import TIED

__all__ = ["open_text", "peel", "share_out", "units_of"]


@njit(nogil=True, cache=True)
def _block(E: Array, ids: Array, some: Ints, m: int, h: int, size: int) -> Array:
    """The vectors of some tokens in one head, (size, m)."""
    z = np.empty((size, m))
    for i in range(m):
        for c in range(size):
            z[c, i] = E[ids[some[i]], h * size + c]
    return z


@njit(nogil=True, cache=True)
def open_text(
    E: Array, gamma: Floats, A: Array, ids: Array, counts: Array, offsets: Ints, depth: int,
    tol: float,
) -> Any:  # fmt: skip
    """All heads of one text.

    Returns
    -------
    u : (n, heads) array
        The weight of each first vector in the mean of the last ones.
    pooled : (1, dim) array
        That mean.
    at : (heads, depth, n) array
        The token that each token chooses in each layer, or TIED.
    """
    heads, n = len(gamma), len(ids)
    size = E.shape[1] // heads
    u, pooled = np.zeros((n, heads)), np.zeros((1, E.shape[1]))
    at, w = np.empty((heads, depth, n), np.int64), counts.astype(np.float64)
    total, turned = w.sum(), np.zeros((0, 0, 0))
    for s in range(len(offsets) - 1):
        lo, hi = offsets[s], offsets[s + 1]
        m, some = hi - lo, np.arange(lo, hi)
        share, hidden = w[lo:hi] / total, np.zeros(m, np.bool_)
        here = np.empty((depth, m), np.int64)
        for h in range(heads if m > 0 else 0):
            z = _block(E, ids, some, m, h, size)
            v, _ = open_head(
                z, hidden, w[lo:hi], share, gamma[h], A[h], depth, tol, 0.0, turned, here
            )
            for c in range(size):
                for i in range(m):
                    pooled[0, h * size + c] += v[i] * z[c, i]
            for i in range(m):
                u[lo + i, h] = v[i]
            for k in range(depth):
                for i in range(m):
                    at[h, k, lo + i] = TIED if here[k, i] == TIED else lo + here[k, i]
    return u, pooled, at


@njit(nogil=True, cache=True)
def units_of(
    ids: Array, size: int, grams: Array, pairs: Array, width: int, words: Array, unit: Ints
) -> Ints:
    """The units of the words of each token, (n, width), filled up with -1.

    `words` and `unit` are the number and the unit of each word of the text.
    """
    out, first_pair = np.full((len(ids), width), -1, np.int64), size + len(grams)
    order = np.argsort(words)
    codes = words[order]
    for r in range(len(ids)):
        token, m = np.int64(ids[r]), 0
        if token >= first_pair:
            out[r, 0], out[r, 1] = pairs[token - first_pair, 0], pairs[token - first_pair, 1]
            m = 2
        else:
            while token >= size:
                out[r, m] = grams[token - size, 1]
                m += 1
                token = np.int64(grams[token - size, 0])
            out[r, m] = token
            m += 1
        for j in range(m):
            out[r, j] = unit[order[np.searchsorted(codes, out[r, j])]]
    return out


@njit(nogil=True, cache=True)
def share_out(worth: Array, parts: Ints, units: int) -> Array:
    """What the tokens add, in equal parts, by the units of their words."""
    score = np.zeros(units)
    for r in range(len(worth)):
        m = 0
        for j in range(parts.shape[1]):
            m += parts[r, j] >= 0
        for j in range(m):
            score[parts[r, j]] += worth[r] / m
    return score


@njit(nogil=True, cache=True)
def _touched(at: Ints, some: Ints, gone: Bools) -> bool:
    """Whether one of some tokens chose a token that is gone, or several."""
    for k in range(len(at)):
        for i in some:
            if at[k, i] == TIED or gone[at[k, i]]:
                return True
    return False


@njit(nogil=True, cache=True)
def _plain(at: Ints, some: Ints, place: Ints, share: Array, gamma: float) -> Array:
    """The weights of some tokens that choose one token each."""
    u = share
    for k in range(len(at) - 1, -1, -1):
        before = (1 - gamma) * u
        for i in range(len(some)):
            before[place[at[k, some[i]]]] += gamma * u[i]
        u = before
    return u


@njit(nogil=True, cache=True)
def _worth(
    E: Array, gamma: Floats, A: Array, values: Array, ids: Array, w: Array, offsets: Ints,
    gone: Bools, at: Ints, depth: int, tol: float,
) -> Array:  # fmt: skip
    """What each token that is left adds; `at` is brought up to date where choices changed."""
    worth, total = np.zeros(len(ids)), 0.0
    heads = len(gamma)
    size, place = E.shape[1] // heads, np.empty(len(ids), np.int64)
    turned = np.zeros((0, 0, 0))
    for i in range(len(ids)):
        total += 0.0 if gone[i] else w[i]
    for s in range(len(offsets) - 1):
        some = offsets[s] + np.flatnonzero(~gone[offsets[s] : offsets[s + 1]])
        m = len(some)
        place[some] = np.arange(m)
        share, hidden = w[some] / total, np.zeros(m, np.bool_)
        here = np.empty((depth, m), np.int64)
        for h in range(heads if m > 0 else 0):
            if _touched(at[h], some, gone):
                z = _block(E, ids, some, m, h, size)
                u, _ = open_head(
                    z, hidden, w[some], share, gamma[h], A[h], depth, tol, 0.0, turned, here
                )
                for k in range(depth):
                    for i in range(m):
                        at[h, k, some[i]] = TIED if here[k, i] == TIED else some[here[k, i]]
            else:
                u = _plain(at[h], some, place, share, gamma[h])
            for i in range(m):
                worth[some[i]] += u[i] * values[some[i], h]
    return worth


@njit(nogil=True, cache=True)
def peel(
    E: Array, gamma: Floats, A: Array, values: Array, ids: Array, counts: Array, offsets: Ints,
    at: Ints, parts: Ints, score: Array, depth: int, tol: float, grow: float, most: float,
) -> Ints:  # fmt: skip
    """The units of a text, those first that hold the answer up while those before are gone.

    A token goes with the first of its words; those left choose again where they chose it.

    Parameters
    ----------
    values : (n, heads) array
        What the decoder makes of each token, signed so that what is held up is positive.
    at : (heads, depth, n) array
        The choices while all are there, as `open_text` gives them.
    parts : (n, width) array
        As `units_of` gives them.
    score : (units,) array
        What each unit adds while all are there.
    grow : float
        Of `taken` units that are gone, about (grow - 1) `taken` go next.
    most : float
        From this share of the units on, the rest keeps its last order.
    """
    units, taken, lot = len(score), 0, 1
    left, order = np.ones(units, np.bool_), np.empty(units, np.int64)
    gone, at, w = np.zeros(len(ids), np.bool_), at.copy(), counts.astype(np.float64)
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
        for i in range(len(ids)):
            for j in range(parts.shape[1]):
                gone[i] |= parts[i, j] >= 0 and not left[parts[i, j]]
        worth = _worth(E, gamma, A, values, ids, w, offsets, gone, at, depth, tol)
        score = share_out(worth, parts, units)
