"""Softmax instead of hardmax: a proved inverse temperature, and the smallest that works.

Let q_min be the smallest <q, z_i>, n the longest sequence, and let bumps
tolerate delta / 2.  With maximum h on r of n tokens the softmax mean misses h
by at most (n - r) / r max_{x >= 1} x e^{-beta q x} <= (n - 1) e^{-beta q_min},
and by nothing where all keys are 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from hardmax.exact.data import Corpus
from hardmax.exact.forward import states
from hardmax.exact.layers import Attention, FeedForward, Layer

__all__ = ["beta_star", "smallest_beta"]


def beta_star(
    layers: Sequence[Layer], entry: int, corpus: Corpus, column: int, scale: float = 1.0
) -> float:
    """An inverse temperature from which on all labels are right; 0 where any is.

    In real arithmetic H (n - 1) e^{-beta q_min} <= delta / 2 suffices; with
    (n - 1) e^{-beta q_min} <= a quarter of the grid step each stored sum also
    rounds back onto the grid, so floats give the hardmax values themselves.
    """
    attention = [x for x in layers if isinstance(x, Attention) and not x.idle]
    if all(x.uniform for x in attention):
        return 0.0
    ask, step = math.inf, 0.0
    for i, state in enumerate(states(layers[: entry + 2], corpus, (column, 0))):
        if i == entry:
            step = float(np.spacing(state.column(0).max())) / scale
            q = attention[0].q
            ask = float((q[0] * state.column(0)).min())
    widths = [_narrowest(x) for x in layers if isinstance(x, FeedForward)]
    delta = min(widths) / scale
    others = max(int(corpus.lengths.max()) - 1, 1)
    sharp = max(2 * len(attention) * others / delta, 4 * others / step)
    return max(math.log(sharp), 1.0) / ask


def _narrowest(layer: FeedForward) -> float:
    """Smallest distance between two kinks of coordinate 0."""
    if 0 not in layer.reads or not layer.neurons or len(layer.reads) > 2:
        return math.inf
    w = layer.W1[:, layer.reads.index(0)]
    used = w != 0
    kinks = np.unique(-layer.b1[used] / w[used])
    return float(np.diff(kinks).min(initial=math.inf))


def smallest_beta(works: Callable[[float], bool], high: float, *, ratio: float = 1.02) -> float:
    """The smallest inverse temperature, within a factor `ratio`, from which `works` holds.

    Tried by bisection below `high`; 0 where every tried temperature works.
    """
    low = high
    while works(low):
        low /= 2
        if low < 1e-3:
            return 0.0
    top = 2 * low
    while top > ratio * low:
        middle = math.sqrt(low * top)
        low, top = (low, middle) if works(middle) else (middle, top)
    return top
