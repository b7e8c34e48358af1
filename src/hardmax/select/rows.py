"""Selection where every sequence has scores of its own, or looks only backward.

For experiments with many short systems; the answer for one matrix and no causal
mask is that of `select`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hardmax._types import Array, Ints
from hardmax.select.chosen import Chosen

__all__ = ["select_rows"]


@njit(nogil=True, cache=True)
def _ask(z: Array, A: Array, i: int, q: Array) -> None:
    """q = A z_i by one fixed chain."""
    for r in range(A.shape[0]):
        s = A[r, 0] * z[i, 0]
        for c in range(1, A.shape[1]):
            s += A[r, c] * z[i, c]
        q[r] = s


@njit(nogil=True, cache=True)
def _score(q: Array, z: Array, j: int) -> float:
    s = q[0] * z[j, 0]
    for c in range(1, z.shape[1]):
        s += q[c] * z[j, c]
    return float(s)


@njit(nogil=True, cache=True)
def _size(x: Array) -> float:
    s = 0.0
    for c in range(len(x)):
        s += x[c] * x[c]
    return float(np.sqrt(s))


@njit(nogil=True, cache=True)
def _pass(
    z: Array, A: Array, offsets: Ints, causal: bool, tie_tol: float, counts: Ints,
    low: Array, margin: Array, indices: Ints, fill: bool,
) -> None:  # fmt: skip
    """Count the chosen keys of every row, or list them after the counts are known."""
    q, put = np.empty(A.shape[1]), 0
    for s in range(len(offsets) - 1):
        a, b = offsets[s], offsets[s + 1]
        matrix = A[s] if len(A) > 1 else A[0]
        longest = 0.0
        for j in range(a, b):
            longest = max(longest, _size(z[j]))
        for i in range(a, b):
            _ask(z, matrix, i, q)
            stop = i + 1 if causal else b
            if fill:
                for j in range(a, stop):
                    if _score(q, z, j) >= low[i]:
                        indices[put] = j
                        put += 1
                continue
            best = -np.inf
            for j in range(a, stop):
                best = max(best, _score(q, z, j))
            unit = _size(q) * longest
            low[i] = best - tie_tol * unit
            outside = -np.inf
            counts[i] = 0
            for j in range(a, stop):
                v = _score(q, z, j)
                if v >= low[i]:
                    counts[i] += 1
                elif v > outside:
                    outside = v
            margin[i] = (best - outside) / unit if unit > 0 else best - outside


def select_rows(
    z: Array, A: Array, offsets: Ints, *, causal: bool = False, tie_tol: float = 0.0
) -> Chosen:
    """For each token, the tokens of its sequence with the largest score <A_s z_i, z_j>.

    Parameters
    ----------
    z : (N, d) float64 array
        Tokens of all sequences, one after the other; of moderate size, since nothing
        is scaled here.
    A : (s, d, d) or (1, d, d) array
        One matrix per sequence, or one for all.
    offsets : (s + 1,) int array
        Sequence s is z[offsets[s]:offsets[s + 1]].
    causal : bool
        Whether a token looks only at itself and at those before it.
    tie_tol : float
        Scores within tie_tol |A z_i| max_l |z_l| of the best count as equal.

    Returns
    -------
    Chosen

    Examples
    --------
    >>> z = np.array([[1.0], [2.0], [-1.0]])
    >>> one = np.ones((1, 1, 1))
    >>> select_rows(z, one, np.array([0, 3])).indices
    array([1, 1, 2])
    >>> select_rows(z, one, np.array([0, 3]), causal=True).indices
    array([0, 1, 2])
    """
    z = np.ascontiguousarray(z, dtype=np.float64)
    A = np.ascontiguousarray(A, dtype=np.float64)
    m = len(z)
    counts, low, margin = np.zeros(m, dtype=np.int64), np.empty(m), np.empty(m)
    none = np.zeros(0, dtype=np.int64)
    _pass(z, A, offsets, causal, tie_tol, counts, low, margin, none, False)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.empty(indptr[-1], dtype=np.int64)
    _pass(z, A, offsets, causal, tie_tol, counts, low, margin, indices, True)
    return Chosen(indptr, indices, margin)
