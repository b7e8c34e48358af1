"""Wide layers of one coordinate as sorted lookup: O(log K) per token.

Neurons that read one coordinate x with weight +-2^m sum to a piecewise linear
function of x.  Its kinks are floats; its values at the kinks and its slopes are
computed here in integers and rounded once, so the lookup is at least as
accurate as the sum of the neurons, and equal to it where that is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hardmax._types import Array, Floats
from hardmax.exact.layers import FeedForward

__all__ = ["Piecewise", "evaluate_exact", "low_unit", "piecewise", "single_reads", "unit_of"]


@dataclass(frozen=True, eq=False)
class Piecewise:
    """Sum of ``W2[:, r] relu(w_r x + b_r)`` over neurons r of one coordinate.

    Left of ``kinks[0]`` the slope is ``slopes[0]``; from ``kinks[m]`` on it is
    ``slopes[m + 1]`` and the value at the kink is ``values[m]``.  Both are
    (m, outputs) numerators over ``2 ** -exponent`` in `exact_values`, `exact_slopes`.
    """

    kinks: Array
    values: Array
    slopes: Array
    exact_kinks: list[int]
    exact_values: list[list[int]]
    exact_slopes: list[list[int]]
    exponents: tuple[int, int]


@np.errstate(over="ignore", invalid="ignore")
def single_reads(layer: FeedForward) -> Array:
    """For every neuron the index in `reads` of its only weight +-2^m, else -1."""
    w = layer.W1
    if w.shape[0] == 0 or w.shape[1] == 0:
        return np.full(w.shape[0], -1)
    column = np.abs(w).argmax(axis=1)
    value = w[np.arange(len(w)), column]
    mantissa = np.abs(np.frexp(value)[0])
    kink = -layer.b1 / np.where(value == 0, 1, value)
    good = ((w != 0).sum(axis=1) == 1) & (mantissa == 0.5) & (kink * value == -layer.b1)
    good &= np.isfinite(kink) & np.isfinite(layer.W2 * value).all(axis=0)
    return np.where(good, column, -1)


def _integers(values: Array) -> tuple[list[int], int]:
    """Integers m_i and e with values = m_i 2^-e."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    mantissa, power = np.frexp(flat)
    m = (mantissa * 2.0**53).astype(np.int64)
    p = power.astype(np.int64) - 53
    used = m != 0
    tail = np.zeros(len(m), np.int64)
    tail[used] = np.log2((m[used] & -m[used]).astype(np.float64)).astype(np.int64)
    m, p = m >> tail, p + tail
    e = int(max(0, -(p[used].min() if used.any() else 0)))
    return [int(x) << (int(q) + e) if x else 0 for x, q in zip(m, p, strict=True)], e


def _rounded(numbers: list[list[int]], exponent: int, dtype: Any) -> Array:
    one = 1 << exponent
    try:
        return np.array([[x / one for x in row] for row in numbers], dtype=dtype)
    except OverflowError:  # altered weights
        return np.full((len(numbers), len(numbers[0])), math.inf, dtype=dtype)


def piecewise(layer: FeedForward, chosen: Array, column: int, *, size: bool = False) -> Piecewise:
    """The function of ``reads[column]`` that the neurons `chosen` add.

    With `size` the absolute values of the output weights are summed: a bound
    for partial sums in any order.
    """
    w = layer.W1[chosen, column].astype(np.float64)
    kink = -layer.b1[chosen].astype(np.float64) / w
    out = layer.W2[:, chosen].astype(np.float64)
    out = np.abs(out) if size else out
    kinks, where = np.unique(kink, return_inverse=True)
    ks, ek = _integers(kinks)
    steps, es = _integers((out * w).T)
    outputs = out.shape[0]
    jump = [[0] * outputs for _ in kinks]
    slope = [0] * outputs
    value = [0] * outputs
    for r in range(len(w)):
        m = int(where[r])
        for c in range(outputs):
            g = steps[r * outputs + c]
            if w[r] > 0:
                jump[m][c] += g
            else:  # active left of its kink
                jump[m][c] -= g
                slope[c] += g
                value[c] -= g * (ks[m] - ks[0])
    slopes, values = [list(slope)], [list(value)]
    for m in range(len(ks)):
        if m:
            gap = ks[m] - ks[m - 1]
            value = [v + s * gap for v, s in zip(value, slope, strict=True)]
            values.append(value)
        slope = [s + j for s, j in zip(slope, jump[m], strict=True)]
        slopes.append(slope)
    dtype = layer.W1.dtype
    return Piecewise(
        kinks.astype(dtype),
        _rounded(values, ek + es, dtype),
        _rounded(slopes, es, dtype),
        ks,
        values,
        slopes,
        (ek, es),
    )


def evaluate_exact(f: Piecewise, x: Fraction) -> list[Fraction]:
    """The outputs at `x` in rational arithmetic."""
    ek, es = f.exponents
    scaled = x * (1 << ek)
    low, high = 0, len(f.exact_kinks)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if f.exact_kinks[middle] <= scaled else (low, middle)
    at = max(low - 1, 0)
    distance = scaled - f.exact_kinks[at]
    one = 1 << (ek + es)
    pairs = zip(f.exact_values[at], f.exact_slopes[low], strict=True)
    return [(v + s * distance) / one for v, s in pairs]


def unit_of(values: Array) -> Floats:
    """Largest power of two dividing each value (inf for zero)."""
    flat = np.asarray(values, np.float64).ravel()
    mantissa, power = np.frexp(flat)
    m = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    tail = np.log2(np.maximum(m & -m, 1).astype(np.float64))
    return np.where(flat == 0, math.inf, 2.0 ** (power - 53 + tail)).reshape(np.shape(values))


def low_unit(values: Floats) -> float:
    """Largest power of two of which every value is a multiple (inf for zeros)."""
    used = np.asarray(values, dtype=np.float64).ravel()
    used = used[used != 0]
    if not len(used):
        return math.inf
    mantissa, power = np.frexp(used)
    m = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    tail = np.log2((m & -m).astype(np.float64))
    return float(2.0 ** float((power - 53 + tail).min()))
