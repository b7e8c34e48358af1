"""Compiled loops of the certificates."""

from __future__ import annotations

from hardmax._types import Array
from hardmax.exact._jit import jit

__all__ = ["dense_radius", "flat_and_size", "mean_radius", "steepness"]


@jit
def _after(kinks: Array, x: float) -> int:
    """Number of kinks that are at most x."""
    low = 0
    high = len(kinks)
    while low < high:
        middle = (low + high) >> 1
        if kinks[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def flat_and_size(
    x: Array, reach: float, kinks: Array, slopes: Array, values: Array, sizes: Array, own: float
) -> tuple[bool, float]:
    """Whether own x + f(x) is constant within `reach` of every x; largest size there.

    `values` and `sizes` are value and slope of the sum of absolute terms.
    """
    flat = True
    largest = 0.0
    for i in range(len(x)):
        at = _after(kinks, x[i])
        low = at
        while low > 0 and kinks[low - 1] > x[i] - reach:
            low -= 1
        high = at
        while high < len(kinks) and kinks[high] < x[i] + reach:
            high += 1
        k = at - 1 if at > 0 else 0
        for c in range(values.shape[1]):
            size = values[k, c] + sizes[at, c] * (x[i] - kinks[k])
            steep = 0.0
            for m in range(low, high + 1):
                steep = max(steep, abs(sizes[m, c]))
                if slopes[m, c] + own != 0:
                    flat = False
            largest = max(largest, size + steep * reach)
    return flat, largest


@jit
def steepness(
    x: Array,
    radius: Array,
    kinks: Array,
    heights: Array,
    slopes: Array,
    values: Array,
    sizes: Array,
    active: Array,
    own: Array,
    moved: Array,
    size: Array,
    count: Array,
) -> None:
    """For every x and output: how far the function moves within the radius, and the
    sum of absolute terms with their number.  `own` is the residual slope.

    Other evaluations have an input within twice the radius of x.  A sorted lookup
    sums the height at a kink and a slope times a distance; these terms count too.
    """
    for i in range(len(x)):
        at = _after(kinks, x[i])
        low = _after(kinks, x[i] - 2 * radius[i])
        high = _after(kinks, x[i] + 2 * radius[i])
        k = at - 1 if at > 0 else 0
        most = active[at]
        for c in range(slopes.shape[1]):
            steep = 0.0
            for m in range(low, high + 1):
                steep = max(steep, abs(slopes[m, c] + own[c]))
                most = max(most, active[m])
            moved[i, c] += steep * radius[i]
            wide = max(abs(sizes[0, c]), abs(sizes[len(kinks), c]))
            away = x[i] - kinks[k]
            terms = values[k, c] + sizes[at, c] * away
            looked = abs(heights[k, c]) + abs(slopes[at, c] * away)
            size[i, c] += max(terms, looked) + 2 * wide * radius[i]
        count[i] += most


@jit
def mean_radius(
    value: Array, radius: Array, counts: Array, starts: Array, u: float, out: Array
) -> None:
    """Error of the mean of `value` over each sequence, sums in any order."""
    for j in range(len(starts) - 1):
        a = 0.0
        r = 0.0
        n = 0
        for pos in range(starts[j], starts[j + 1]):
            a += counts[pos] * abs(value[pos])
            r += counts[pos] * radius[pos]
            n += counts[pos]
        bound = r / n + (n + 6) * u * (a + r) / n
        for pos in range(starts[j], starts[j + 1]):
            out[pos] = bound


@jit
def dense_radius(
    z: Array, radius: Array, cols: Array, w: Array, b: float, u: float, pre: Array, top: Array
) -> None:
    """Of ``x = <w, z[cols]> + b``: how far any evaluation can be off, and its largest relu."""
    for i in range(z.shape[0]):
        seen = b
        terms = abs(b)
        off = 0.0
        for c in range(len(cols)):
            x = w[c] * z[i, cols[c]]
            seen += x
            terms += abs(x)
            off += abs(w[c]) * radius[i, cols[c]]
        pre[i] = off + (len(cols) + 4) * u * (terms + 2 * off)
        top[i] = max(seen, 0.0) + 2 * pre[i]
