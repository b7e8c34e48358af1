"""How far every word vector may move before any choice changes: a certified lower bound."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from hardmax._types import Array, Ints
from hardmax.explain.trace import Trace

__all__ = ["stability_radius"]

_EPS = float(np.finfo(np.float64).eps)


@njit(nogil=True, cache=True)
def _least(
    z: Array, q: Array, norm: float, goal: Ints, cuts: Ints, tol: float, error: float
) -> float:
    """The smallest radius over all pairs of a token and a key that it does not choose."""
    best, d = np.inf, z.shape[1]
    far, size = np.sqrt((z * z).sum(axis=1)), np.sqrt((q * q).sum(axis=1))
    for s in range(len(cuts) - 1):
        top = 0.0
        for i in range(cuts[s], cuts[s + 1]):
            top = max(top, far[i])
        for i in range(cuts[s], cuts[s + 1]):
            a = goal[i]
            for j in range(cuts[s], cuts[s + 1]):
                if j == a:
                    continue
                score, apart = 0.0, 0.0
                for c in range(d):
                    way = z[a, c] - z[j, c]
                    score += q[i, c] * way
                    apart += way * way
                room = score - error - tol * size[i] * top
                if room <= 0.0:
                    return 0.0
                # room > slope r + curve r^2 for every r below the root
                slope = norm * math.sqrt(apart) + 2 * size[i] + tol * (size[i] + norm * top)
                curve = norm * (2.0 + tol)
                root = 2 * room / (slope + math.sqrt(slope * slope + 4 * curve * room))
                best = min(best, root)
    return best


def stability_radius(trace: Trace) -> float:
    """A length r: no choice changes while every word vector moves by less than r.

    With the choices of the layers before fixed, every token stays a convex
    combination of first vectors and so moves by less than r too.  For a token i
    that chooses a and not j the difference of the scores, <A z_i, z_a - z_j>, then
    loses at most r (|A| |z_a - z_j| + 2 |A z_i|) + 2 |A| r^2, |A| the spectral norm;
    r keeps it above the tolerance for ties, for every i and j, layer and head.

    Parameters
    ----------
    trace : Trace

    Returns
    -------
    float
        0 where a token chooses several; inf where there is nothing else to choose.

    Notes
    -----
    A lower bound, not the largest such length.  Rounding of positions and scores
    is allowed for.  Lengths are Euclidean, over all coordinates of a word.
    """
    best = math.inf
    for h in range(trace.heads):
        for k in range(trace.depth):
            if not trace.chosen[k][h].single:
                return 0.0
            z = trace.block(k, h)
            if not len(z):
                continue
            A, first = None if trace.A is None else trace.A[h], trace.block(0, h)
            q, norm = (z, 1.0) if A is None else (z @ A.T, float(np.linalg.norm(A, 2)))
            largest = norm * float((first * first).sum(axis=1).max())
            error = 64 * (trace.depth + 1) * (z.shape[1] + 2) * _EPS * largest
            goal, cuts, tol = trace.follows(k, h), trace.cuts, trace.tie_tol
            best = min(best, float(_least(z, q, norm, goal, cuts, tol, error)))
    return best * (1 - 1e-9)
