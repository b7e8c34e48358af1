"""Float64 choices for float32 tokens on the CPU: a wide tolerance first, then a few pairs.

Let s be a score in float64 and s' the same in float32, with |s - s'| <= B as in `twostage`.
A key chosen in float64 has s >= max s - tol, hence s' >= max s' - tol - 2 B: the sets found
in float32 with the tolerance tol + 2 B hold every chosen key.  Rows with one key are
decided; the pairs of the others are scored again in float64.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import njit

from hardmax._types import Array, Floats, Ints
from hardmax.select._vector import fma
from hardmax.select.chosen import Chosen
from hardmax.select.twostage import coarse_error

__all__ = ["sharpened", "wide_tolerance"]


def wide_tolerance(tol: Floats, q: Floats, k: Array, scale: Floats) -> Array:
    """tol + 2 B in float32, rounded up, and with room for the rounding of best - tol.

    `scale` is |q_i| max_j |k_j|.
    """
    ones = np.abs(q).sum(axis=1)
    error = 2 * coarse_error(scale, ones, k) + 2.0**-22 * scale
    with np.errstate(under="ignore"):
        wide = ((tol + error) * (1 + 2.0**-20)).astype(np.float32)
    return np.asarray(np.nextafter(wide, np.float32(np.inf)))


@njit(nogil=True, cache=True)
def _again(
    q: Array, k: Array, tol: Floats, indptr: Ints, indices: Ints, outside: Floats,
    counts: Ints, out: Ints, margin: Floats,
) -> int:  # fmt: skip
    """Keep the keys within tol of the best in float64; the number kept of all rows."""
    put = 0
    scores = np.empty(1)
    for i in range(len(tol)):
        first, m = indptr[i], indptr[i + 1] - indptr[i]
        if m == 1:
            out[put], counts[i] = indices[first], 1
            put += 1
            continue
        if m > len(scores):
            scores = np.empty(2 * m)
        best = -np.inf
        for r in range(m):
            j = indices[first + r]
            s = 0.0
            for c in range(q.shape[1]):
                s = fma(np.float64(q[i, c]), np.float64(k[j, c]), s)
            scores[r] = s
            best = max(best, s)
        low, rest = best - tol[i], outside[i]
        counts[i] = 0
        for r in range(m):
            if scores[r] >= low:
                out[put] = indices[first + r]
                put += 1
                counts[i] += 1
            else:
                rest = max(rest, scores[r])
        margin[i] = best - rest
    return put


def sharpened(found: tuple[Chosen, Array, Array], q: Array, k: Array, tol: Floats) -> Chosen:
    """The float64 sets from those of the wide tolerance.

    Parameters
    ----------
    found : chosen, best, outside
        As `search_cloud` gives them.
    q, k : arrays
        Queries in float64, keys as they stand.
    tol : (m,) float64 array
    """
    chosen, _, outside = found
    if chosen.single:
        return chosen
    counts = np.empty(len(tol), dtype=np.int64)
    out, margin = np.empty_like(chosen.indices), chosen.margin.copy()
    indptr, indices = chosen.indptr, chosen.indices
    kept = _again(q, k, tol, indptr, indices, outside.astype(np.float64), counts, out, margin)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return replace(chosen, indptr=indptr, indices=out[:kept].copy(), margin=margin)
