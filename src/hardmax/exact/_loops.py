"""Compiled loops of the forward pass."""

from __future__ import annotations

import numpy as np

from hardmax._types import Array
from hardmax.exact._jit import jit

__all__ = ["add_dense", "add_lookup", "attend_hard", "attend_soft", "spread"]


@jit
def add_dense(z: Array, reads: Array, W1: Array, b1: Array, W2: Array, out: Array) -> None:
    """out += W2 relu(W1 z[reads] + b1) for every row, one fixed order of sums."""
    for i in range(z.shape[0]):
        for r in range(len(b1)):
            pre = W1[r, 0] * z[i, reads[0]]
            for c in range(1, len(reads)):
                pre += W1[r, c] * z[i, reads[c]]
            pre += b1[r]
            if pre > 0:
                for c in range(W2.shape[0]):
                    out[i, c] += W2[c, r] * pre


@jit
def add_lookup(x: Array, kinks: Array, values: Array, slopes: Array, out: Array) -> None:
    """out += the piecewise linear function of x given at its sorted kinks."""
    for i in range(len(x)):
        low = 0
        high = len(kinks)
        while low < high:
            middle = (low + high) >> 1
            if kinks[middle] <= x[i]:
                low = middle + 1
            else:
                high = middle
        at = low - 1 if low > 0 else 0
        distance = x[i] - kinks[at]
        for c in range(values.shape[1]):
            out[i, c] += values[at, c] + slopes[low, c] * distance


@jit
def attend_hard(
    qz: Array, kz: Array, vz: Array, counts: Array, starts: Array, out: Array, uniform: bool
) -> None:
    """Mean of vz over the argmax of qz_i kz_l, for every token i of every sequence."""
    zero = vz[0] - vz[0]
    for j in range(len(starts) - 1):
        top = kz[starts[j]]
        bottom = kz[starts[j]]
        sums = np.zeros(3, vz.dtype)
        sizes = np.zeros(3, np.int64)
        for pos in range(starts[j], starts[j + 1]):
            weighted = vz[pos] * (zero + counts[pos])
            sums[1] += weighted
            sizes[1] += counts[pos]
            if uniform:
                continue
            if kz[pos] > top:
                top = kz[pos]
                sums[2] = zero
                sizes[2] = 0
            if kz[pos] < bottom:
                bottom = kz[pos]
                sums[0] = zero
                sizes[0] = 0
            if kz[pos] == top:
                sums[2] += weighted
                sizes[2] += counts[pos]
            if kz[pos] == bottom:
                sums[0] += weighted
                sizes[0] += counts[pos]
        for pos in range(starts[j], starts[j + 1]):
            side = 1
            if not uniform:
                if qz[pos] > 0:
                    side = 2
                elif qz[pos] < 0:
                    side = 0
            out[pos] = sums[side] / (zero + sizes[side])


@jit
def attend_soft(
    qz: Array, kz: Array, vz: Array, counts: Array, starts: Array, out: Array, beta: float
) -> None:
    """Softmax mean of vz with scores beta qz_i kz_l; equal keys are summed first."""
    for j in range(len(starts) - 1):
        a = starts[j]
        n = starts[j + 1] - a
        order = np.argsort(kz[a : a + n])
        keys = np.empty(n, kz.dtype)
        sums = np.zeros(n, vz.dtype)
        sizes = np.zeros(n, vz.dtype)
        m = 0
        for o in order:
            pos = a + o
            if m == 0 or kz[pos] != keys[m - 1]:
                keys[m] = kz[pos]
                m += 1
            sums[m - 1] += vz[pos] * counts[pos]
            sizes[m - 1] += counts[pos]
        for i in range(a, a + n):
            g = beta * qz[i]
            best = keys[m - 1] if g >= 0 else keys[0]
            total = vz[a] - vz[a]
            weight = vz[a] - vz[a]
            for r in range(m):
                e = np.exp(g * (keys[r] - best))
                total += e * sums[r]
                weight += e * sizes[r]
            out[i] = total / weight


@jit
def spread(x: Array, starts: Array) -> tuple[Array, Array]:
    """Smallest and largest entry of x in every sequence."""
    low = np.empty(len(starts) - 1, x.dtype)
    high = np.empty(len(starts) - 1, x.dtype)
    for j in range(len(starts) - 1):
        a = x[starts[j]]
        b = a
        for pos in range(starts[j], starts[j + 1]):
            a = min(a, x[pos])
            b = max(b, x[pos])
        low[j] = a
        high[j] = b
    return low, high
