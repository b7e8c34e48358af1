"""From the code of a sequence to its points: the layers behind the tree.

The tree gives every set of tokens its own code c, so a token carries
s = c + t on a grid.  From there all arithmetic is in integers:

    index     s -> e, a number per output point (stairs and bumps)
    points    e -> y, but for coordinate 1, in two parts of short numbers
    order     e -> its rank in coordinate 1 (a permutation)
    last      rank -> y_1, increasing, so that its terms stay small
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hardmax._types import Array, Floats
from hardmax.exact.assemble import tree_layers
from hardmax.exact.data import Corpus
from hardmax.exact.grid import Grid, mantissa
from hardmax.exact.layers import FeedForward, Layer
from hardmax.exact.parts import EDGE, Stair, join, remove, stair, traps
from hardmax.exact.plant import Plant
from hardmax.exact.separate import PrecisionError

__all__ = ["assemble"]


def assemble(
    corpus: Corpus, labels: Array, goals: list[Floats], plant: Plant
) -> tuple[tuple[Layer, ...], int, int]:
    """All layers, the number of the entry layer, and that after which e is exact."""
    grid, d = plant.grid, corpus.dim
    codes = len(plant.tree.leaf_labels)
    points: list[Floats] = []
    base = np.zeros(codes, np.int64)
    bumps: list[tuple[int, int, int, int]] = []
    member = {int(v): j for j, v in reversed(list(enumerate(labels)))}
    for c in range(codes):
        j = member[int(plant.tree.leaf_labels[c])]
        base[c] = len(points)
        points += [goals[j][-1], *goals[j][:-1]]
        bumps += _carriers(corpus, j, c, len(goals[j]), grid)
    layers = list(tree_layers(plant.blocks, plant.tree.leaf_labels, grid, d))
    while isinstance(layers[-1], FeedForward) and len(layers) > len(grid.layers):
        layers.pop()
    layers += _index(base, bumps, grid, codes, d)
    settled = len(layers)
    erase = [remove(d, 0, grid.dtype, signed=False)]
    erase += [remove(d, c, grid.dtype) for c in range(2, d)]
    layers.append(join(erase))
    layers += _points(np.array(points), d, grid.dtype)
    return tuple(layers), len(grid.layers), settled


def _carriers(
    corpus: Corpus, j: int, code: int, many: int, grid: Grid
) -> list[tuple[int, int, int, int]]:
    """(code, grid place, height, room) of the tokens that go to targets before the last."""
    rows = corpus.rows[corpus.starts[j] : corpus.starts[j + 1]]
    places = grid.places[rows]
    ordered = np.sort(places)
    out = []
    for i in range(many - 1):
        at = int(np.searchsorted(ordered, places[i]))
        gaps = [int(ordered[k] - ordered[k - 1]) for k in (at, at + 1) if 0 < k < len(ordered)]
        room = min(gaps, default=1 << 40)
        if room < 3:
            raise PrecisionError(f"tokens of sequence {j} lie closer than the grid")
        out.append((code, int(places[i]), i + 1, room))
    return out


def _index(
    base: Array, bumps: list[tuple[int, int, int, int]], grid: Grid, codes: int, d: int
) -> list[Layer]:
    """``z_1 <- e``, in as many layers as the bits need."""
    dtype = grid.dtype
    start = grid.offset + np.arange(codes - 1, dtype=np.float64)
    f = Stair(
        grid.scale * (start + 1 - EDGE),
        grid.scale * (start + 1 + EDGE),
        np.diff(base).astype(np.float64),
        float(base[0]),
    )
    ramps, constant = stair(d, 0, 1, f, dtype)
    layers: list[Layer] = [
        remove(d, 1, dtype, signed=False),
        join([ramps], {1: constant}),
    ]
    room = 2.0 ** (mantissa(dtype) - grid.p - 1)
    at = 0
    while at < len(bumps):
        load, end = 0.0, at
        while end < len(bumps):
            code, _, height, _ = bumps[end]
            load += 4.0 * height * (min(codes - code, code + 1) + 1)
            if load > room and end > at:
                break
            end += 1
        layers.append(_bump_part(bumps[at:end], grid, codes, d))
        at = end
    return layers


def _bump_part(
    bumps: list[tuple[int, int, int, int]], grid: Grid, codes: int, d: int
) -> FeedForward:
    code, place, height, room = np.array(bumps, dtype=np.int64).T
    centres = grid.scale * (grid.offset + code + place * 2.0**-grid.p)
    delta = 2.0 ** np.floor(np.log2((float(room.min()) - 1) / 2)) * grid.unit
    wide = np.full(len(code), min(float(delta), grid.scale / 64))
    return traps(d, centres, wide, height.astype(np.float64), code + 1 < codes - code, grid.dtype)


def _points(points: Floats, d: int, dtype: Any) -> list[Layer]:
    """``z <- points[z_1]`` for integers z_1, other coordinates being 0."""
    many = len(points)
    others = [c for c in range(d) if c != 1]
    layers: list[Layer] = []
    rest = points[:, others]
    largest = float(np.abs(points).max())
    for part in (0, 1):
        quantum = _power(largest, 2 * math.ceil(math.log2(many + 1)) - 50)
        short = np.rint(rest / quantum) * quantum if part == 0 else rest
        if part:
            finest = _power(float(np.abs(rest).max()), -52)
            short = np.rint(rest / finest) * finest
        if short.any():
            layers.append(_joined(short, others, d, dtype))
        rest = rest - short
    order = np.argsort(points[:, 1], kind="stable")
    rank = np.empty(many)
    rank[order] = np.arange(many)
    if (rank != np.arange(many)).any():
        layers.append(_joined((rank - np.arange(many))[:, None], [1], d, dtype))
    layers.append(_last(points[order, 1], d, dtype))
    return layers


def _joined(values: Floats, columns: list[int], d: int, dtype: Any) -> FeedForward:
    """``z[columns] += values[z_1]``: linear between integers, active away from the middle."""
    many = len(values)
    m = many // 2
    slope = np.diff(values, axis=0)
    none = np.zeros((1, len(columns)))
    right = np.diff(np.concatenate([none, slope[m:]]), axis=0)
    left = np.diff(np.concatenate([none, -slope[:m][::-1]]), axis=0)
    w = np.concatenate([np.ones(len(right)), -np.ones(len(left))])
    kinks = np.concatenate([m + np.arange(len(right)), m - np.arange(len(left))])
    out = np.concatenate([right, left])
    used = out.any(axis=1)
    layer = FeedForward(
        (1,), tuple(columns), w[used, None].astype(dtype), (-w * kinks)[used].astype(dtype),
        np.ascontiguousarray(out[used].T).astype(dtype),
    )  # fmt: skip
    return join([layer], {c: float(values[m, i]) for i, c in enumerate(columns)})


def _last(values: Floats, d: int, dtype: Any) -> FeedForward:
    """``z_1 <- values[z_1]`` for increasing values, rounded so that no sum rounds.

    The finest power of two is taken of which all partial sums are multiples that
    the float type holds.
    """
    index = np.arange(len(values), dtype=np.float64)
    quantum = _power(float(np.abs(values).max()) + len(values), 1 - mantissa(dtype))
    while True:
        short = np.rint(values / quantum) * quantum
        layer = _joined((short - index)[:, None], [1], d, dtype)
        if _largest_sum(layer, index[-1]) <= quantum * 2.0 ** (mantissa(dtype) - 1.01):
            return layer
        quantum *= 2


def _largest_sum(layer: FeedForward, last: float) -> float:
    """The largest sum of absolute terms of a layer that reads and writes one coordinate."""
    bias = 0.0 if layer.b2 is None else abs(float(layer.b2[0]))
    ends = np.array([0.0, last])[:, None]
    terms = np.maximum(ends * layer.W1[:, 0] + layer.b1, 0) @ np.abs(layer.W2[0])
    return float(terms.max()) + bias + last


def _power(size: float, shift: int) -> float:
    """The power of two at `size`, moved by `shift`; never so small that quotients overflow."""
    return float(2.0 ** max(math.ceil(math.log2(size)) + shift if size else 0, -900))
