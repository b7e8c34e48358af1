"""Compiled loops of the mean construction."""

from __future__ import annotations

import numpy as np

from hardmax._types import Array, Floats
from hardmax.exact._jit import jit
from hardmax.exact.data import Corpus

__all__ = ["best_kink", "kink_means", "mean_vectors"]


@jit
def _sum_vectors(table: Array, rows: Array, counts: Array, starts: Array, out: Array) -> None:
    d = table.shape[1]
    for j in range(len(starts) - 1):
        n = 0
        for pos in range(starts[j], starts[j + 1]):
            n += counts[pos]
            for c in range(d):
                out[j, c] += counts[pos] * table[rows[pos], c]
        for c in range(d):
            out[j, c] /= n


def mean_vectors(corpus: Corpus, centre: Array | None) -> Floats:
    """The mean token of every sequence."""
    table = corpus.table if centre is None else corpus.table - centre
    out = np.zeros((corpus.size, corpus.dim))
    _sum_vectors(
        table.astype(np.float64, copy=False), corpus.rows, corpus.counts, corpus.starts, out
    )
    return out


@jit
def kink_means(t: Array, rows: Array, counts: Array, starts: Array, beta: float) -> Array:
    """Mean of relu(t - beta) over every sequence; of t for beta = -inf."""
    out = np.empty(len(starts) - 1)
    for j in range(len(starts) - 1):
        total = 0.0
        n = 0
        for pos in range(starts[j], starts[j + 1]):
            n += counts[pos]
            x = t[rows[pos]]
            if beta == -np.inf:
                total += counts[pos] * x
            elif x > beta:
                total += counts[pos] * (x - beta)
        out[j] = total / n
    return out


@jit
def _one(t: Array, rows: Array, counts: Array, a: int, b: int, beta: float) -> float:
    total = 0.0
    n = 0
    for pos in range(a, b):
        n += counts[pos]
        if t[rows[pos]] > beta:
            total += counts[pos] * (t[rows[pos]] - beta)
    return total / n


@jit
def best_kink(
    t: Array, rows: Array, counts: Array, starts: Array, i: int, j: int
) -> tuple[float, float]:
    """The token of i or j at which the means of relu(t - beta) differ most."""
    best = 0.0
    at = 0.0
    for s in (i, j):
        step = max(1, (starts[s + 1] - starts[s]) // 400)
        for pos in range(starts[s], starts[s + 1], step):
            beta = t[rows[pos]]
            x = _one(t, rows, counts, starts[i], starts[i + 1], beta)
            y = _one(t, rows, counts, starts[j], starts[j + 1], beta)
            if abs(x - y) > best:
                best = abs(x - y)
                at = beta
    return at, best
