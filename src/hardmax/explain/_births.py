"""Who leads, since which layer, and whom each token follows last: all heads in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hardmax._types import Array, Bools, Floats, Ints
from hardmax.select.ragged import TIED, asks_of, choose_between, score_of

__all__ = ["find_births"]


@njit(nogil=True, cache=True)
def _same(z: Array, i: int, j: int) -> bool:
    """Whether two tokens stand in one place."""
    same = True
    for c in range(z.shape[0]):
        same &= z[c, i] == z[c, j]
    return same


@njit(nogil=True, cache=True)
def _alone(
    z: Array, q: Array, k: int, at: Ints, low: Array, known: Bools, born: Array, first: Array
) -> None:
    """Log the classes of equal tokens that newly choose themselves alone.

    A class with a member that has led before is the same leader.
    """
    n = z.shape[1]
    some = np.empty(n, np.int64)
    for i in range(n):
        m, pure, old = 0, at[i] == TIED, False
        if at[i] == i:
            some[0], m, pure, old = i, 1, True, known[i]
        for j in range(n if at[i] == TIED else 0):
            if score_of(q, z, i, j) < low[i]:
                continue
            pure &= _same(z, i, j) and (m > 0 or j == i)  # the first member speaks for all
            old |= known[j]
            some[m] = j
            m += 1
        for r in range(m if pure else 0):
            known[some[r]] = True
            if not old:
                born[some[r]] = k
                first[some[r]] = i


@njit(nogil=True, cache=True)
def _moved(z: Array, q: Array, at: Ints, low: Array, counts: Array, gamma: float) -> Array:
    """The tokens of one head after one layer."""
    d, n = z.shape
    out = np.empty((d, n))
    some = np.empty(n, np.int64)
    for i in range(n):
        m, total = 0, 0.0
        for j in range(n if at[i] == TIED else 0):
            if score_of(q, z, i, j) >= low[i]:
                some[m] = j
                m += 1
                total += counts[j]
        for c in range(d):
            goal, shift = z[c, at[i] if m == 0 else some[0]], 0.0
            for r in range(m):
                shift += (z[c, some[r]] - goal) * (counts[some[r]] / total)
            out[c, i] = z[c, i] + gamma * (goal + shift - z[c, i])
    return out


@njit(nogil=True, cache=True)
def find_births(
    E: Array, gamma: Floats, A: Array, ids: Array, counts: Array, offsets: Ints, depth: int,
    tol: float,
) -> Any:  # fmt: skip
    """Leaders of sequences `ids[offsets[s]:offsets[s + 1]]`, in every head.

    Returns
    -------
    born : (n, heads) array
        The first layer, 0 to depth, at which the token's class chose itself alone; -1 never.
    first : (n, heads) array
        The first token of that class, -1 for none.
    last : (n, heads) array
        Whom the token chose alone in the last layer; -1 for several.
    """
    heads, size = len(gamma), E.shape[1] // len(gamma)
    born = np.full((len(ids), heads), -1, np.int64)
    first = np.full((len(ids), heads), -1, np.int64)
    last = np.full((len(ids), heads), -1, np.int64)
    for s in range(len(offsets) - 1):
        a, n = offsets[s], offsets[s + 1] - offsets[s]
        at, top, slack = np.empty(n, np.int64), np.empty(n), np.empty(n)
        when, who = np.empty(n, np.int64), np.empty(n, np.int64)
        hidden = np.zeros(n, np.bool_)
        for h in range(heads if n else 0):
            z = np.empty((size, n))
            for i in range(n):
                for c in range(size):
                    z[c, i] = E[ids[a + i], h * size + c]
            known = np.zeros(n, np.bool_)
            when[:] = -1
            who[:] = -1
            for k in range(depth + 1):
                q = z if len(A[h]) == 0 else asks_of(z, A[h])
                choose_between(z, q, hidden, n, tol, at, top, slack)
                low = top - slack
                _alone(z, q, k, at, low, known, when, who)
                if k == depth - 1:
                    for i in range(n):
                        last[a + i, h] = -1 if at[i] == TIED else a + at[i]
                if k < depth:
                    z = _moved(z, q, at, low, counts[a : a + n], gamma[h])
            for i in range(n):
                born[a + i, h] = when[i]
                first[a + i, h] = -1 if who[i] < 0 else a + who[i]
    return born, first, last
