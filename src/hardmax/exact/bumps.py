"""Mean of bumps: one attention layer with wide margins, for tokens that lie close.

    z_0 <- s on the grid;   z_1 <- sum of bumps with integer heights, z_0 <- 0;
    z_0 <- mean of z_1;     z_1 <- label(z_0)

A bump turns a token that lies 1e-9 from its neighbour into an integer, without
rounding; means of integers differ by at least 1 / (n_i n_j).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from hardmax._types import Array, Floats
from hardmax.exact._loops import spread
from hardmax.exact.data import Corpus
from hardmax.exact.forward import run
from hardmax.exact.grid import Grid, grid_limit, lay_grid, mantissa
from hardmax.exact.layers import Attention, FeedForward, Layer
from hardmax.exact.mean import Draft, close_pairs, one_dimension, stair_between
from hardmax.exact.parts import coordinate, in_blocks, join, limited, remove, stair, traps
from hardmax.exact.plant import grounds
from hardmax.exact.separate import PrecisionError

__all__ = ["bump_drafts"]

_TALLEST = (63, 1023, 16383, 15)
_ROUNDS = 400


def bump_drafts(
    corpus: Corpus,
    codes: Array,
    rng: np.random.Generator,
    *,
    width: int | None = None,
    blocks: bool = False,
) -> Iterator[Draft]:
    """Candidates on grids of growing fineness; each is to be verified."""
    dtype = corpus.table.dtype
    failed: PrecisionError | None = None
    found = False
    for g in grounds(corpus, rng, 4)[:4]:
        limit = grid_limit(g.error, g.scale, dtype, 2)
        spare = mantissa(dtype) - np.array([23, 18, 29, 14, 10, 33, 37, 41])
        for p in dict.fromkeys(min(limit, int(x)) for x in spare):
            grid = lay_grid(g.layers, g.values, p, g.scale, dtype)
            for tallest in sorted(_TALLEST, key=lambda t: (2 * t < corpus.size, t)):
                try:
                    chosen = _choose(corpus, codes, grid, rng, tallest)
                    yield _draft(corpus, codes, grid, chosen, width, blocks)
                    found = True
                    break
                except PrecisionError as error:
                    failed = failed or error
    if failed is not None and not found:
        raise failed


def _draft(
    corpus: Corpus, codes: Array, grid: Grid, chosen: tuple[Array, Floats, Array],
    width: int | None, blocks: bool,
) -> Draft:  # fmt: skip
    d, dtype = corpus.dim, grid.dtype
    tokens, heights, rooms = chosen
    first = _bumps(tokens, heights, rooms, grid, d)
    zero = np.zeros(d, dtype)
    layers: list[Layer] = [*grid.layers, first]
    if d == 1:
        draft = one_dimension(corpus, codes, layers, grid.scale)
        return Draft(draft.layers, 0, len(grid.layers), draft.margin, f"{len(tokens)} bumps")
    layers.append(Attention(zero, zero, coordinate(d, 1, 1.0, dtype), coordinate(d, 0, 1.0, dtype)))
    v = spread(run(layers, corpus, (0,)).column(0), corpus.starts)[0].astype(np.float64)
    f, margin = stair_between(v, v, codes, 1.0)
    ramps, constant = stair(d, 0, 1, f, dtype)
    layers.append(join([remove(d, 1, dtype, signed=False), ramps], {1: constant}))
    head = in_blocks(grid.layers, d, width) if blocks else limited(grid.layers, width)
    done = in_blocks(layers, d, width) if blocks else limited(layers, width)
    return Draft(tuple(done), 1, len(head), margin, f"{len(tokens)} bumps")


def _bumps(tokens: Array, heights: Floats, rooms: Array, grid: Grid, d: int) -> FeedForward:
    """Write the bumps, in coordinate 1 or in place of s; s goes last, for narrow layers."""
    places = grid.places[tokens].astype(np.float64) * 2.0**-grid.p
    centres = grid.scale * (grid.offset + places)
    delta = 2.0 ** np.floor(np.log2((rooms.min() - 1) / 2)) * grid.unit
    wide = np.full(len(tokens), min(float(delta), grid.scale / 64))
    left = places < 0.5
    tall = heights * (grid.scale if d == 1 else 1.0)
    bumps = traps(d, centres, wide, tall, left, grid.dtype)
    if d == 1:
        bumps = FeedForward((0,), (0,), bumps.W1, bumps.b1, bumps.W2)
    return join([bumps, remove(d, 0, grid.dtype, signed=False)])


class _Shares:
    """What part of every sequence each token is, by token."""

    def __init__(self, corpus: Corpus) -> None:
        owners = np.repeat(np.arange(corpus.size), np.diff(corpus.starts))
        order = np.argsort(corpus.rows, kind="stable")
        self.owners = owners[order]
        self.share = (corpus.counts / corpus.lengths[owners])[order]
        self.heads = np.searchsorted(corpus.rows[order], np.arange(len(corpus.table) + 1))

    def of(self, w: int) -> tuple[Array, Floats]:
        """The sequences that hold token `w`, and what part of them it is."""
        piece = slice(self.heads[w], self.heads[w + 1])
        return self.owners[piece], self.share[piece]


def _choose(
    corpus: Corpus, codes: Array, grid: Grid, rng: np.random.Generator, tallest: int
) -> tuple[Array, Floats, Array]:
    """Isolated tokens with heights, until all means of different label differ.

    First tokens that only sequences of one label hold, which give two labels
    apart at height 1; then pair by pair.
    """
    rooms = _rooms(grid.places)
    shares = _Shares(corpus)
    taken: dict[int, float] = {}
    v = np.zeros(corpus.size)

    def put(w: int, height: float) -> None:
        held, share = shares.of(w)
        v[held] += (height - taken.get(w, 0.0)) * share
        taken[w] = height

    many = int(codes.max())
    for w in _telling(codes, rooms, shares):
        put(w, 1.0 if many == 1 else float(rng.integers(1, tallest + 1)))
    near = 2.0 ** -(mantissa(corpus.table.dtype) - 14)
    for _ in range(_ROUNDS):
        top = max(1.0, float(v.max()))
        pairs = close_pairs(v, codes, near * top)
        if not pairs:
            break
        for i, j in pairs:
            if abs(v[i] - v[j]) <= near * top:
                w = _difference(corpus, i, j, rooms, taken, rng)
                put(w, float(rng.integers(1, tallest + 1)))
        if len(taken) > corpus.size or 2 * sum(taken.values()) * 2.0**grid.p > 2.0 ** (
            mantissa(grid.dtype) - 1
        ):
            raise PrecisionError("the bumps need more bits")
    else:
        raise PrecisionError("means of bumps of different label agree")
    if not taken:
        raise PrecisionError("no bump is needed")
    tokens = np.array(sorted(taken), np.int64)
    return tokens, np.array([taken[int(w)] for w in tokens]), rooms[tokens]


def _telling(codes: Array, rooms: Array, shares: _Shares) -> list[int]:
    """Isolated tokens of one label each, such that few cover many sequences.

    The most frequent label is left without; sequences that hold no such token
    stay uncovered.
    """
    sizes = np.diff(shares.heads)
    low = np.full(len(sizes), np.iinfo(np.int64).max)
    high = np.full(len(sizes), -1)
    token = np.repeat(np.arange(len(sizes)), sizes)
    np.minimum.at(low, token, codes[shares.owners])
    np.maximum.at(high, token, codes[shares.owners])
    usual = int(np.bincount(codes).argmax())
    useful = np.flatnonzero((low == high) & (rooms >= 3) & (low != usual) & (sizes > 0))
    order = useful[np.lexsort((-rooms[useful], -sizes[useful]))]
    covered = np.zeros(len(codes), bool)
    chosen = []
    for w in order:
        held, _ = shares.of(int(w))
        if not covered[held].all():
            covered[held] = True
            chosen.append(int(w))
    return chosen


def _rooms(places: Array) -> Array:
    """Distance of every token to the nearest other one, in grid units."""
    order = np.argsort(places, kind="stable")
    gaps = np.diff(places[order])
    rooms = np.full(len(places), 1 << 50, np.int64)
    rooms[order[1:]] = gaps
    rooms[order[:-1]] = np.minimum(rooms[order[:-1]], gaps)
    return rooms


def _difference(
    corpus: Corpus, i: int, j: int, rooms: Array, taken: dict[int, Any], rng: np.random.Generator
) -> int:
    """A well isolated token whose frequency differs between two sequences."""
    share: dict[int, float] = {}
    for s, sign in ((i, 1.0), (j, -1.0)):
        n = float(corpus.lengths[s])
        for pos in range(int(corpus.starts[s]), int(corpus.starts[s + 1])):
            w = int(corpus.rows[pos])
            share[w] = share.get(w, 0.0) + sign * float(corpus.counts[pos]) / n
    apart = [w for w, x in share.items() if abs(x) > 1e-12 and rooms[w] >= 3]
    if not apart:
        raise PrecisionError(
            f"the tokens in which sequences {i} and {j} differ lie closer to others than the grid"
        )
    usable = [w for w in apart if w not in taken]
    if not usable:  # another height for a token that is asked about already
        return apart[int(rng.integers(len(apart)))]
    weight = np.array([abs(share[w]) * math.log2(float(rooms[w])) for w in usable])
    return usable[int(weight.argmax())]
