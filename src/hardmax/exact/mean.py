"""The mean construction: one attention layer tells all sequences apart.

    z_0 <- f(<a, z> + mu), z_1 <- 0;   z_1 <- mean of z_0;   z_0 <- label(z_1)

f(t) = t + sum of alpha_r relu(t - beta_r); the kinks beta_r are needed only
where projected means agree.  In one dimension the mean is added, magnified, to
the token itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardmax._types import Array, Floats
from hardmax.exact._loops import spread
from hardmax.exact._means import best_kink, kink_means, mean_vectors
from hardmax.exact.data import Corpus, by_rows
from hardmax.exact.forward import plans, run
from hardmax.exact.grid import mantissa, projection
from hardmax.exact.layers import Attention, FeedForward, Layer
from hardmax.exact.parts import (
    Stair,
    cleared,
    coordinate,
    in_blocks,
    join,
    limited,
    neurons,
    remove,
    stair,
)
from hardmax.exact.separate import Frame, PrecisionError, directions, frame

__all__ = ["Draft", "close_pairs", "mean_drafts", "one_dimension", "points", "stair_between"]

_ROUNDS = 24
_MOST_KINKS = 512


@dataclass(frozen=True, eq=False)
class Draft:
    """Layers that are to be verified, and the coordinate that carries the label."""

    layers: tuple[Layer, ...]
    column: int
    entry: int = 0
    margin: float = math.nan
    note: str = ""
    tree: object = None
    grid: object = None


def stair_between(low: Floats, high: Floats, codes: Array, scale: float) -> tuple[Stair, float]:
    """Ramps in the gaps between cells [low_j, high_j] of different label; smallest gap.

    Ramp widths are powers of two and their ends short numbers, so that in real
    arithmetic every cell gets its label exactly.
    """
    order = np.lexsort((high, low))
    top = np.maximum.accumulate(high[order])[:-1]
    differ = np.flatnonzero(codes[order][1:] != codes[order][:-1])
    a, b = top[differ], low[order][1:][differ]
    gap = b - a
    quantum = 2.0**-50 * 2.0 ** math.ceil(
        math.log2(max(np.abs(high).max(), np.abs(low).max(), scale))
    )
    if len(gap) and not gap.min() > 16 * quantum:
        at = differ[gap.argmin()]
        raise PrecisionError(
            f"sequences {order[at]} and {order[at + 1]} of different label are "
            f"{max(gap.min(), 0):.2g} apart"
        )
    width = 2.0 ** np.floor(np.log2(np.where(gap > 0, gap, 1) / 2))
    starts = np.rint(((a + b) / 2 - width / 2) / quantum) * quantum
    steps = np.diff(codes[order])[differ].astype(np.float64)
    return Stair(starts, starts + width, steps, float(codes[order][0])), float(
        gap.min(initial=math.inf)
    )


def points(v: Floats, codes: Array, scale: float) -> tuple[Array, Array, Array, float]:
    """One neuron per cell instead of two per ramp: linear between neighbouring cells."""
    order = np.argsort(v, kind="stable")
    x, y = v[order], codes[order].astype(np.float64)
    keep = np.ones(len(x), bool)
    keep[1:-1] = (y[1:-1] != y[:-2]) | (y[1:-1] != y[2:])
    x, y = x[keep], y[keep]
    x, first = np.unique(x, return_index=True)
    y = y[first]
    slope = np.diff(y) / np.diff(x)
    m = len(x) // 2
    right = np.diff(np.concatenate([[0.0], slope[m:]]))
    left = np.diff(np.concatenate([[0.0], -slope[:m][::-1]]))
    w = np.concatenate([np.ones(len(right)), -np.ones(len(left))])
    kinks = np.concatenate([x[m : m + len(right)], x[1 : m + 1][::-1][: len(left)]])
    return w, -w * kinks, np.concatenate([right, left]), float(y[m])


def mean_drafts(
    corpus: Corpus,
    codes: Array,
    rng: np.random.Generator,
    *,
    tries: int = 8,
    width: int | None = None,
    blocks: bool = False,
) -> Iterator[Draft]:
    """Candidates, most promising first; each is to be verified."""
    size = frame(corpus)
    means = mean_vectors(corpus, size.centre)
    failed: PrecisionError | None = None
    raw = blocks and size.centre is None and corpus.dim > 1
    for a in _candidates(corpus, means, codes, size, rng)[:tries]:
        failed = None
        for straight in (True, False) if raw else (False,):
            try:
                if straight:
                    yield _raw_blocks(corpus, codes, a, size, width)
                else:
                    yield _draft(corpus, codes, a, size, rng, width, blocks)
            except PrecisionError as error:
                failed = error
    if failed is not None:
        raise failed


def _candidates(
    corpus: Corpus, means: Floats, codes: Array, size: Frame, rng: np.random.Generator
) -> list[Floats]:
    """Directions: random, and by ridge regression of the labels on the mean vectors."""
    many = 32 if corpus.size <= 20000 else 12
    found = list(directions(many, corpus.dim, rng) * size.weights)
    if corpus.dim > 1:
        x = (means - means.mean(axis=0)) * size.weights
        y = codes - codes.mean()
        trace = float((x * x).sum()) / corpus.dim + 1e-300
        for ridge in (1e-6, 1e-4, 1e-2, 1.0):
            b = np.linalg.solve(x.T @ x + ridge * trace * np.eye(corpus.dim), x.T @ y)
            norm = float(np.linalg.norm(b))
            if norm > 0 and np.isfinite(norm):
                noise = directions(3, corpus.dim, rng)
                found += [w * size.weights for w in (b / norm, *(b / norm + 0.1 * noise))]
    z = corpus.table if size.centre is None else corpus.table - size.centre
    sample = z[:: max(1, len(z) // 4000)].astype(np.float64)
    scored = []
    need = 64 * (corpus.dim + int(corpus.lengths.max()) + 16) * np.finfo(corpus.table.dtype).eps
    for a in found:
        v = means @ a
        order = np.argsort(v)
        gaps = np.diff(v[order])[np.diff(codes[order]) != 0] / (np.ptp(sample @ a) or 1.0)
        smallest = float(gaps.min(initial=1.0))
        enough = smallest > need
        scored.append((not enough, len(gaps) if enough else -smallest, a))
    scored.sort(key=lambda s: (s[0], s[1]))
    return [a for _, _, a in scored]


def _draft(
    corpus: Corpus, codes: Array, a: Floats, size: Frame, rng: np.random.Generator,
    width: int | None, blocks: bool,
) -> Draft:  # fmt: skip
    first, t, _ = projection(corpus, a, size)
    d, dtype = corpus.dim, corpus.table.dtype
    kinks = _kinks(corpus, codes, t, size.size, rng)
    layers: list[Layer] = [*first, *_bend(d, kinks, dtype, narrow=width is not None and d > 1)]
    zero = np.zeros(d, dtype)
    if d == 1:
        return one_dimension(corpus, codes, layers, size.size)
    layers.append(Attention(zero, zero, coordinate(d, 0, 1.0, dtype), coordinate(d, 1, 1.0, dtype)))
    read, margin = _readout(corpus, codes, layers, size.size, signed=len(kinks[0]) > 0)
    layers += read
    done = in_blocks(layers, d, width) if blocks else limited(layers, width)
    return Draft(tuple(done), 0, margin=margin, note=f"{len(kinks[0])} kinks")


def _raw_blocks(corpus: Corpus, codes: Array, a: Floats, size: Frame, width: int | None) -> Draft:
    """With rho = 0 the first attention forgets the token: no embedding is needed."""
    d, dtype = corpus.dim, corpus.table.dtype
    x = by_rows(corpus.table, lambda part: part @ a)
    zero = np.zeros(d, dtype)
    value = (a * (size.size / (float(np.ptp(x)) or 1.0))).astype(dtype)
    first = Attention(zero, zero, value, coordinate(d, 1, 1.0, dtype), rho=0.0)
    read, margin = _readout(corpus, codes, [first], size.size, clear=False)
    return Draft(tuple(in_blocks([first, *read], d, width)), 0, margin=margin, note="0 kinks")


def _readout(
    corpus: Corpus, codes: Array, layers: Sequence[Layer], scale: float, *,
    signed: bool = False, clear: bool = True,
) -> tuple[list[Layer], float]:  # fmt: skip
    """``z_0 <- label(z_1)``."""
    d, dtype = corpus.dim, corpus.table.dtype
    v = spread(run(layers, corpus, (1,)).column(1), corpus.starts)[0].astype(np.float64)
    f, margin = stair_between(v, v, codes, scale)
    if 2 * len(f.starts) * (2 * d + 1) <= 4 * corpus.size * d:
        ramps, constant = stair(d, 1, 0, f, dtype)
    else:
        w, b, out, constant = points(v, codes, scale)
        ramps = neurons(d, 1, 0, w, b, out, dtype)
    if not clear:
        return [join([ramps], {0: constant})], margin
    return cleared(remove(d, 0, dtype, signed=signed), ramps, {0: constant}, scale), margin


def _bend(d: int, kinks: tuple[Floats, Floats], dtype: Any, *, narrow: bool) -> list[FeedForward]:
    """``z_0 <- z_0 + sum alpha relu(z_0 - beta)``, through z_1 when width is limited."""
    beta, alpha = kinks
    if not len(beta):
        return []
    one = np.ones(len(beta))
    if not narrow:
        return [neurons(d, 0, 0, one, -beta, alpha, dtype)]
    signs, none = np.array([1.0, -1.0]), np.zeros(2)
    return [
        neurons(d, 0, 1, one, -beta, alpha, dtype),
        join([neurons(d, 1, 0, signs, none, signs, dtype), remove(d, 1, dtype)]),
    ]


def _kinks(
    corpus: Corpus, codes: Array, t: Array, scale: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Kinks that separate all means of different label, found pair by pair."""
    t = t.astype(np.float64)
    u = 2.0 ** -mantissa(corpus.table.dtype)
    near = 64 * (corpus.dim + int(corpus.lengths.max()) + 16) * u * scale
    beta: list[float] = []
    alpha: list[float] = []
    v = kink_means(t, corpus.rows, corpus.counts, corpus.starts, -math.inf)
    for _ in range(_ROUNDS):
        pairs = close_pairs(v, codes, near)
        if not pairs:
            break
        for i, j in pairs:
            if abs(v[i] - v[j]) > near:
                continue
            b, gain = best_kink(t, corpus.rows, corpus.counts, corpus.starts, i, j)
            if gain <= near or len(beta) >= _MOST_KINKS:
                raise PrecisionError(
                    f"the means of sequences {i} and {j} differ by less than the rounding"
                )
            beta.append(float(b))
            alpha.append(float(rng.uniform(0.5, 1.0)))
            v = v + alpha[-1] * kink_means(t, corpus.rows, corpus.counts, corpus.starts, b)
    return np.array(beta), np.array(alpha)


def close_pairs(v: Floats, codes: Array, near: float) -> list[tuple[int, int]]:
    """Neighbours of different label that are at most `near` apart, a few per round."""
    order = np.argsort(v, kind="stable")
    close = np.diff(v[order]) <= near
    differ = np.diff(codes[order]) != 0
    found = np.flatnonzero(close & differ)
    chosen = found[:: max(1, len(found) // 16)]
    return [(int(order[i]), int(order[i + 1])) for i in chosen]


def one_dimension(corpus: Corpus, codes: Array, layers: list[Layer], scale: float) -> Draft:
    """``z <- z + M mean``, then the label read from disjoint cells of the same coordinate."""
    dtype = corpus.table.dtype
    state = run(layers, corpus, (0,), plans(layers))
    x = state.column(0).astype(np.float64)
    v = kink_means(x, np.arange(len(x)), corpus.counts, corpus.starts, -math.inf)
    order = np.argsort(v)
    gaps = np.where(np.diff(codes[order]) != 0, np.diff(v[order]), math.inf)
    gap = float(gaps.min())
    if gap <= 0:
        i, j = order[gaps.argmin()], order[gaps.argmin() + 1]
        raise PrecisionError(f"the means of sequences {i} and {j} agree")
    factor = 2.0 ** math.ceil(math.log2(max(1.0, 2 * float(np.ptp(x)) / gap)))
    zero = np.zeros(1, dtype)
    layers = [*layers, Attention(zero, zero, np.array([factor], dtype), np.ones(1, dtype))]
    low, high = spread(run(layers, corpus, (0,)).column(0), corpus.starts)
    f, margin = stair_between(low.astype(np.float64), high.astype(np.float64), codes, scale)
    large = 2.0 ** max(0, math.ceil(math.log2(float(np.abs(high).max()))) - 16)
    f = Stair(f.starts, f.ends, f.steps * large, f.first * large)
    ramps, constant = stair(1, 0, 0, f, dtype)
    layers.append(join([remove(1, 0, dtype), ramps], {0: constant}))
    return Draft((*layers, *_shrink(large, dtype)), 0, margin=margin, note="one dimension")


def _shrink(factor: float, dtype: Any) -> Iterator[FeedForward]:
    """``z <- z / factor`` in steps that are exact for short numbers."""
    while factor > 1:
        step = min(factor, 2.0**16)
        out = np.array([1 / step - 1, 1 - 1 / step])
        yield neurons(1, 0, 0, np.array([1.0, -1.0]), np.zeros(2), out, dtype)
        factor /= step
