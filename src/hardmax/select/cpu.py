"""Selection on the CPU: one pass over the keys, no score matrix.

Every score is one fixed chain of operations (no fused multiply-add, no
reordering), so that equal tokens score equally to the last bit and every
machine with IEEE arithmetic gives the same answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit

from hardmax._types import Array, Ints
from hardmax.select.chosen import Chosen

__all__ = ["asks", "norms", "scan"]

_LANES = 64
_WORK_PER_THREAD = 4_000_000


@njit(nogil=True, cache=True)
def _asks(z: Array, a: Array, out: Array) -> None:
    for i in range(z.shape[0]):
        for r in range(a.shape[0]):
            s = a[r, 0] * z[i, 0]
            for c in range(1, a.shape[1]):
                s += a[r, c] * z[i, c]
            out[i, r] = s


def asks(z: Array, a: Array | None) -> Array:
    """What each token asks for, A z_i as rows, each by one fixed chain."""
    if a is None:
        return z
    out = np.empty((z.shape[0], a.shape[0]), dtype=z.dtype)
    _asks(np.ascontiguousarray(z), np.ascontiguousarray(a, dtype=z.dtype), out)
    return out


@njit(nogil=True, cache=True)
def _norms(x: Array, out: Array) -> None:
    for i in range(x.shape[0]):
        s = x[i, 0] * x[i, 0]
        for c in range(1, x.shape[1]):
            s += x[i, c] * x[i, c]
        out[i] = np.sqrt(s)


def norms(x: Array) -> Array:
    """Euclidean lengths of the rows, each by one fixed chain."""
    out = np.empty(x.shape[0], dtype=x.dtype)
    _norms(np.ascontiguousarray(x), out)
    return out


@njit(nogil=True, cache=True)
def _top_two(
    q: Array, k: Array, first: Ints, stop: Ints, best: Array, second: Array, arg: Ints
) -> None:
    """Best and second-best score of each row and where the best stands; lanes are rows."""
    d = q.shape[1]
    qt = np.empty((d, _LANES), dtype=q.dtype)
    s = np.empty(_LANES, dtype=q.dtype)
    top = np.empty(_LANES, dtype=q.dtype)
    nxt = np.empty(_LANES, dtype=q.dtype)
    at = np.empty(_LANES, dtype=np.int64)
    i = 0
    while i < q.shape[0]:
        m = 0  # a block of rows that search the same keys
        while m < _LANES and i + m < q.shape[0] and first[i + m] == first[i]:
            for c in range(d):
                qt[c, m] = q[i + m, c]
            m += 1
        for lane in range(m, _LANES):
            for c in range(d):
                qt[c, lane] = q[i, c]
        for lane in range(_LANES):
            top[lane] = -np.inf
            nxt[lane] = -np.inf
            at[lane] = first[i]
        for j in range(first[i], stop[i]):
            y = k[j, 0]
            for lane in range(_LANES):
                s[lane] = qt[0, lane] * y
            for c in range(1, d):
                y = k[j, c]
                for lane in range(_LANES):
                    s[lane] += qt[c, lane] * y
            for lane in range(_LANES):
                v = s[lane]
                t = top[lane]
                low = v if v < t else t
                nxt[lane] = low if low > nxt[lane] else nxt[lane]
                at[lane] = j if v > t else at[lane]
                top[lane] = v if v > t else t
        for lane in range(m):
            best[i + lane] = top[lane]
            second[i + lane] = nxt[lane]
            arg[i + lane] = at[lane]
        i += m


@njit(nogil=True, cache=True)
def _score(q: Array, k: Array, i: int, j: int) -> Any:
    s = q[i, 0] * k[j, 0]
    for c in range(1, q.shape[1]):
        s += q[i, c] * k[j, c]
    return s


@njit(nogil=True, cache=True)
def _count_ties(
    q: Array,
    k: Array,
    first: Ints,
    stop: Ints,
    best: Array,
    tol: Array,
    rows: Ints,
    counts: Ints,
    second: Array,
) -> None:
    for i in rows:
        counts[i] = 0
        second[i] = -np.inf
        low = best[i] - tol[i]
        for j in range(first[i], stop[i]):
            s = _score(q, k, i, j)
            if s >= low:
                counts[i] += 1
            elif s > second[i]:
                second[i] = s


@njit(nogil=True, cache=True)
def _fill_ties(
    q: Array,
    k: Array,
    first: Ints,
    stop: Ints,
    best: Array,
    tol: Array,
    rows: Ints,
    indptr: Ints,
    indices: Ints,
) -> None:
    for i in rows:
        at = indptr[i]
        low = best[i] - tol[i]
        for j in range(first[i], stop[i]):
            if _score(q, k, i, j) >= low:
                indices[at] = j
                at += 1


def _threaded(work: int, rows: int, run: Callable[[int, int], Any]) -> None:
    """Run over blocks of rows in threads; the kernels release the interpreter lock."""
    threads = min(os.cpu_count() or 1, work // _WORK_PER_THREAD + 1, max(rows // _LANES, 1))
    if threads <= 1:
        run(0, rows)
        return
    cuts = np.linspace(0, rows // _LANES, 4 * threads + 1).astype(int) * _LANES
    cuts[-1] = rows
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, cuts[:-1], cuts[1:]))


def scan(q: Array, k: Array, first: Ints, stop: Ints, tol: Array) -> tuple[Chosen, Array, Array]:
    """Keys first[i]..stop[i] whose score with q_i is within tol[i] of the best.

    Returns
    -------
    chosen : Chosen
        With `margin` as the plain difference of scores.
    best, outside : (m,) arrays
        The best score, and the best one outside the set (-inf when none).
    """
    m = len(q)
    q, k = np.ascontiguousarray(q), np.ascontiguousarray(k)
    best, second = np.empty(m, dtype=q.dtype), np.empty(m, dtype=q.dtype)
    arg = np.empty(m, dtype=np.int64)
    work = int(np.sum(stop - first)) * q.shape[1]

    def search(a: int, b: int) -> None:
        part = slice(a, b)
        _top_two(q[part], k, first[part], stop[part], best[part], second[part], arg[part])

    _threaded(work, m, search)
    counts = np.ones(m, dtype=np.int64)
    tied = np.flatnonzero(second >= best - tol)
    if len(tied):
        _count_ties(q, k, first, stop, best, tol, tied, counts, second)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.empty(indptr[-1], dtype=np.int64)
    indices[indptr[:-1]] = arg
    if len(tied):
        _fill_ties(q, k, first, stop, best, tol, tied, indptr, indices)
    margin = best.astype(np.float64) - second
    return Chosen(indptr, indices, margin), best, second
