"""Softmax weights of one token at a low temperature: most of them are below rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hardmax._types import Array

__all__ = ["JIT", "LANES", "add", "dot", "dot_at", "scratch", "weights"]

JIT: dict[str, Any] = {"nogil": True, "cache": True, "fastmath": True}
LANES = 16
_FEW = 4
_FAR = np.float32(-36)
_F = (1 + np.cos(np.pi * (np.arange(200) + 0.5) / 200)) / 2
_C0, _C1, _C2, _C3, _C4, _C5, _C6 = (
    np.polynomial.Polynomial.fit(_F, 2.0**_F, 6, w=2.0**-_F).convert().coef.astype(np.float32)
)
"""Coefficients of 2 ** f on [0, 1), relative error below 2 ** -24."""


@njit(**JIT)
def dot(p: Array, row: Array) -> Any:
    y = np.float32(0)
    for j in range(len(p)):
        y += p[j] * row[j]
    return y


@njit(**JIT)
def dot_at(p: Array, row: Array, at: Array, m: int) -> Any:
    y = np.float32(0)
    for r in range(m):
        y += p[r] * row[at[r]]
    return y


@njit(**JIT)
def add(to: Array, a: Any, x: Array, b: Any, y: Array) -> None:
    for j in range(len(to)):
        to[j] += a * x[j] + b * y[j]


@njit(**JIT)
def scores(z: Array, i: int, s: Array, high: Array) -> Any:
    """Scores of token i on all tokens, into `s`; the largest, also of each block, into `high`.

    What `s` holds beyond the tokens is -inf.
    """
    d, n = z.shape
    for j in range(n):
        s[j] = z[0, i] * z[0, j]
    for c in range(1, d):
        q, row = z[c, i], z[c]
        for j in range(n):
            s[j] += q * row[j]
    top = s[0]
    for b in range(len(high)):
        most = s[b * LANES]
        for j in range(LANES):
            most = max(most, s[b * LANES + j])
        high[b] = most
        top = max(top, most)
    return top


@njit(**JIT)
def close_to(s: Array, high: Array, low: Any, at: Array, near: Array) -> int:
    """Places of scores above `low`, and the scores; how many."""
    m = 0
    for b in range(len(high)):
        if high[b] >= low:
            for j in range(b * LANES, (b + 1) * LANES):
                at[m], near[m] = j, s[j]
                m += s[j] >= low
    return m


@njit(**JIT)
def powers(s: Array, top: Any, scale: Any, power: Array, p: Array, bits: Array) -> None:
    """2 ** ((s - top) scale) into `p`, whose memory `bits` shares."""
    for j in range(len(s)):  # a power of two times 2 ** f, f in [0, 1)
        x = max((s[j] - top) * scale, _FAR)
        whole = np.floor(x)
        f = x - whole
        p[j] = _C0 + f * (_C1 + f * (_C2 + f * (_C3 + f * (_C4 + f * (_C5 + f * _C6)))))
        power[j] = np.int32(whole)
    for j in range(len(s)):
        bits[j] += power[j] << np.int32(23)


@njit(**JIT)
def weights(
    z: Array, i: int, counts: Array, scale: Any, s: Array, high: Array, near: Array, at: Array,
    power: Array, p: Array, bits: Array,
) -> Any:  # fmt: skip
    """Softmax weights of token i into `p`: of the places `at`, or of all when that is -1.

    Weights below 2 ** _FAR of the largest are less than the rounding of their sum.
    """
    n = z.shape[1]
    top = scores(z, i, s, high)
    m = close_to(s, high, top + _FAR / scale, at, near)
    total = np.float32(0)
    if m * _FEW < n:
        powers(near[:m], top, scale, power, p, bits)
        for r in range(m):
            p[r] *= counts[at[r]]
            total += p[r]
        for r in range(m):
            p[r] /= total
        return m
    powers(s[:n], top, scale, power, p, bits)
    for j in range(n):
        p[j] *= counts[j]
        total += p[j]
    for j in range(n):
        p[j] /= total
    return -1


@njit(**JIT)
def scratch(n: int) -> Any:
    """Scores, the best of each block, those near the best and their places, powers of two, and
    weights as floats and bits."""
    blocks = (n + LANES - 1) // LANES
    s, high = np.full(blocks * LANES, -np.inf, np.float32), np.empty(blocks, np.float32)
    near, at = np.empty(len(s) + 1, np.float32), np.empty(len(s) + 1, np.int32)
    p = np.empty(n, np.float32)
    return s, high, near, at, np.empty(n, np.int32), p, p.view(np.int32)
