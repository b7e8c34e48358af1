"""Storing a projection on a grid, so that later sums do not round.

s = L (o + c + t) with o = 2^(m - 1 - p): every float in [o, 2 o) is a multiple
of 2^-p, where m is 53 for float64.  Adding o rounds the projection to the grid;
from there on every quantity of a tree is an integer multiple of one unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hardmax._types import Array, Floats
from hardmax.exact.data import Corpus, by_rows
from hardmax.exact.forward import State, feed, plan
from hardmax.exact.layers import FeedForward, shift
from hardmax.exact.parts import HIGH, LOW, embed
from hardmax.exact.separate import Frame

__all__ = ["Grid", "grid_limit", "lay_grid", "mantissa", "projection"]


def mantissa(dtype: Any) -> int:
    """Bits of the significand: 53 or 24."""
    return int(np.finfo(dtype).nmant) + 1


@dataclass(frozen=True, eq=False)
class Grid:
    """The layers that lay s on the grid, and where every distinct token lies.

    `places` are integer units of 2^-p; `scale` is L.
    """

    layers: tuple[FeedForward, ...]
    places: Array
    p: int
    scale: float
    dtype: Any

    @property
    def unit(self) -> float:
        """The grid step of the stored number."""
        return self.scale * 2.0**-self.p

    @property
    def offset(self) -> float:
        """The number o, without the scale."""
        return 2.0 ** (mantissa(self.dtype) - 1 - self.p)


def projection(
    corpus: Corpus, a: Floats, size: Frame, *, scale: float | None = None
) -> tuple[tuple[FeedForward, ...], Array, float]:
    """Layers for ``z_0 <- scale (LOW + (HIGH - LOW) t)``, z_1 <- 0, values and error bound.

    The bound holds for sums in any order, with or without fused products.
    """
    dtype = corpus.table.dtype
    scale = size.size if scale is None else scale
    z = corpus.table if size.centre is None else corpus.table - size.centre
    x = by_rows(z, lambda part: part @ a)
    span = float(x.max() - x.min()) or 1.0
    gain = scale * (HIGH - LOW) / span
    mu = scale * LOW - gain * float(x.min())
    first = embed(gain * a, mu, dtype)
    before = () if size.centre is None else (shift(-size.centre, range(corpus.dim)),)
    state = State(z, tuple(range(corpus.dim)), False)
    values = feed(plan(first), state, (0, 1) if corpus.dim > 1 else (0,)).column(0)
    u = float(np.finfo(dtype).eps) / 2
    weight = np.zeros(corpus.dim)
    weight[list(first.reads)] = np.abs(first.W1[0])
    terms = by_rows(z, lambda part: np.abs(part) @ weight + 2 * np.abs(part[:, 0]))
    terms += abs(mu) + scale
    error = (len(first.reads) + 6) * u * float(terms.max())
    return (*before, first), values, error


def grid_limit(error: float, scale: float, dtype: Any, codes: int) -> int:
    """Largest p for which the projection error stays below half a grid step."""
    bits = mantissa(dtype) - 1 - int(np.ceil(np.log2(codes + 2)))
    return min(bits, int(np.floor(-np.log2(max(2.001 * error / scale, 1e-300)))))


def lay_grid(
    layers: tuple[FeedForward, ...], values: Array, p: int, scale: float, dtype: Any
) -> Grid:
    """Add the offset; the rounding of that one sum puts every token on the grid."""
    offset = 2.0 ** (mantissa(dtype) - 1 - p)
    lift = np.array([scale * offset], dtype)
    stored = values + lift[0]
    places = np.rint((stored.astype(np.float64) / scale - offset) * 2.0**p).astype(np.int64)
    return Grid((*layers, shift(lift, [0])), places, p, scale, dtype)
