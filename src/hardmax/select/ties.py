"""Rows for which several keys tie: how many, which, and the best score outside."""

from __future__ import annotations

import numpy as np
from numba import njit

from hardmax._types import Array, Ints
from hardmax.select._vector import block_find, fma, scores_of
from hardmax.select.brute import BLOCK, lanes_of
from hardmax.select.chosen import Chosen

__all__ = ["Crowded", "assemble", "few_rows", "tied_rows", "ties_in_batch", "ties_in_cloud"]


@njit(nogil=True, cache=True)
def tied_rows(best: Array, second: Array, tol: Array) -> Ints:
    """Rows whose runner-up is within `tol` of the best."""
    out = np.empty(len(best), np.int64)
    m = 0
    for i in range(len(best)):
        out[m] = i
        m += second[i] >= best[i] - tol[i]
    return out[:m].copy()


@njit(nogil=True, cache=True)
def _count(
    q: Array,
    k: Array,
    stops: Ints,
    best: Array,
    tol: Array,
    rows: Ints,
    counts: Ints,
    second: Array,
) -> None:
    d = q.shape[1]
    flat = q.reshape(-1)
    rest = np.empty(2, q.dtype)
    for r in range(len(rows)):
        i = rows[r]
        low = best[i] - tol[i]
        counts[r], second[i] = 0, -np.inf
        for b in range(0, stops[r], BLOCK):
            block_find(flat, i * d, 1, k, b * d, min(BLOCK, stops[r] - b), d, low, rest)
            counts[r] += np.int64(rest[1])
            second[i] = max(second[i], rest[0])


@njit(nogil=True, cache=True)
def _fill(
    q: Array, k: Array, stops: Ints, best: Array, tol: Array, rows: Ints, at: Ints, out: Ints
) -> None:
    d = q.shape[1]
    flat = q.reshape(-1)
    scores, rest = np.empty(BLOCK, q.dtype), np.empty(2, q.dtype)
    for r in range(len(rows)):
        i = rows[r]
        low, put = best[i] - tol[i], at[r]
        for b in range(0, stops[r], BLOCK):
            n = min(BLOCK, stops[r] - b)
            if block_find(flat, i * d, 1, k, b * d, n, d, low, rest) < 0:
                continue
            w = lanes_of(q)
            scores_of(flat, i * d, 1, k, b * d, (n + w - 1) // w, d, scores)
            for j in range(n):
                if scores[j] >= low:
                    out[put] = b + j
                    put += 1


class Crowded(Exception):
    """Tied rows choose more keys than the caller wants to list."""


def ties_in_cloud(
    q: Array, k: Array, stops: Ints, best: Array, second: Array, tol: Array, rows: Ints,
    most: int | None = None,
) -> Chosen:  # fmt: skip
    """What the tied `rows` choose of the first stops[r] packed keys; mends `second`."""
    counts = np.empty(len(rows), dtype=np.int64)
    _count(q, k, stops, best, tol, rows, counts, second)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    if most is not None and indptr[-1] > most:
        raise Crowded
    indices = np.empty(indptr[-1], dtype=np.int64)
    _fill(q, k, stops, best, tol, rows, indptr, indices)
    return Chosen(indptr, indices, np.empty(0))


@njit(nogil=True, cache=True)
def _batch(
    q: Array, k: Array, first: Ints, stop: Ints, best: Array, tol: Array, rows: Ints,
    counts: Ints, second: Array, at: Ints, out: Ints, fill: bool,
) -> None:  # fmt: skip
    d = q.shape[1]
    for r in range(len(rows)):
        i = rows[r]
        low, found, below = best[i] - tol[i], 0, -np.inf
        for j in range(first[r], stop[r]):
            s = fma(q[i, 0], k[j, 0], q.dtype.type(0))
            for c in range(1, d):
                s = fma(q[i, c], k[j, c], s)
            if s >= low:
                if fill:
                    out[at[r] + found] = j
                found += 1
            elif s > below:
                below = s
        counts[r], second[i] = found, below


def ties_in_batch(
    q: Array, k: Array, first: Ints, stop: Ints, best: Array, second: Array, tol: Array, rows: Ints
) -> Chosen:
    """What the tied `rows` choose of keys first[r]..stop[r] as they stand; mends `second`."""
    counts, none = np.empty(len(rows), dtype=np.int64), np.empty(0, dtype=np.int64)
    _batch(q, k, first, stop, best, tol, rows, counts, second, none, none, False)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.empty(indptr[-1], dtype=np.int64)
    _batch(q, k, first, stop, best, tol, rows, counts, second, indptr, indices, True)
    return Chosen(indptr, indices, np.empty(0))


@njit(nogil=True, cache=True)
def few_rows(q: Array, k: Array) -> tuple[Array, Array, Ints]:
    """Best and second-best score and the first best key of a few queries, keys as they stand."""
    best, second = np.empty(len(q), q.dtype), np.empty(len(q), q.dtype)
    at = np.zeros(len(q), np.int64)
    for i in range(len(q)):
        best[i], second[i] = -np.inf, -np.inf
        for j in range(len(k)):
            s = fma(q[i, 0], k[j, 0], q.dtype.type(0))
            for c in range(1, q.shape[1]):
                s = fma(q[i, c], k[j, c], s)
            if s > best[i]:
                second[i], best[i], at[i] = best[i], s, j
            elif s > second[i]:
                second[i] = s
    return best, second, at


def assemble(at: Ints, rows: Ints, some: Chosen) -> tuple[Ints, Ints]:
    """indptr and indices of all rows: `at` for most of them, `some` for the given rows."""
    if not len(rows):
        return np.arange(len(at) + 1), at
    counts = np.ones(len(at), dtype=np.int64)
    counts[rows] = some.counts
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.empty(indptr[-1], dtype=np.int64)
    indices[indptr[:-1]] = at
    start = np.repeat(indptr[rows] - some.indptr[:-1], some.counts)
    indices[start + np.arange(some.indptr[-1])] = some.indices
    return indptr, indices
