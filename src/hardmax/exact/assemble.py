"""From a split tree to layers: bumps, attention, readout, within the bits of the float."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hardmax._types import Array, Floats
from hardmax.exact.grid import Grid, mantissa
from hardmax.exact.layers import Attention, Layer
from hardmax.exact.parts import EDGE, Stair, cleared, coordinate, join, remove, stair, traps
from hardmax.exact.separate import PrecisionError
from hardmax.exact.tree import Tree

__all__ = ["Bumps", "blocks_of", "tree_bumps", "tree_layers"]


@dataclass(frozen=True, eq=False)
class Bumps:
    """All (class, token) pairs in the order of the tests, as arrays of equal length."""

    token: Array
    base: Array
    height: Array
    level: Array
    room: Array

    def __len__(self) -> int:
        return len(self.token)

    def pick(self, where: Array) -> Bumps:
        """The bumps at `where`."""
        return Bumps(
            *(x[where] for x in (self.token, self.base, self.height, self.level, self.room))
        )


def tree_bumps(tree: Tree) -> Bumps:
    """Every token that the tree asks about, with the code of its class."""
    rows = [
        (w, node.base, test.height, node.level, room)
        for node in tree.nodes
        for test in node.tests
        for w, room in zip(test.tokens, test.rooms, strict=True)
    ]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    return Bumps(*(np.ascontiguousarray(c) for c in columns))


def _load(bumps: Bumps, codes: int) -> Floats:
    """Partial sums that one bump can contribute, in grid units times 2^-p."""
    reach = np.minimum(codes - bumps.base, bumps.base + 1)
    return np.asarray(4.0 * bumps.height * (reach + 1))


def blocks_of(bumps: Bumps, codes: int, grid: Grid, most: int | None) -> list[Bumps]:
    """Cut every level into blocks whose sums stay exact, of at most `most` bumps."""
    room = 2.0 ** (mantissa(grid.dtype) - grid.p)
    load = _load(bumps, codes)
    if len(load) and load.max() > room:
        raise PrecisionError(f"a bump needs more bits than {np.dtype(grid.dtype)} has")
    out: list[list[int]] = []
    used = 0.0
    for i in range(len(bumps)):
        new = not out or bumps.level[i] != bumps.level[out[-1][0]]
        if new or used + load[i] > room or (most is not None and len(out[-1]) >= most):
            out.append([])
            used = 0.0
        out[-1].append(i)
        used += load[i]
    return [bumps.pick(np.array(x)) for x in out]


def _delta(bumps: Bumps, grid: Grid) -> float:
    """The widest power of two with 3 delta within the room of every bump of a block."""
    return float(2.0 ** np.floor(np.log2((bumps.room.min() - 1) / 2)) * grid.unit)


def bump_layer(bumps: Bumps, grid: Grid, codes: int, d: int) -> Any:
    """The feed-forward layer of one block: remove the old bumps, write the new ones."""
    places = grid.places[bumps.token].astype(np.float64) * 2.0**-grid.p
    centres = grid.scale * (grid.offset + bumps.base + places)
    delta = np.full(len(bumps), min(_delta(bumps, grid), grid.scale / 64))
    left = bumps.base + 1 < codes - bumps.base
    heights = grid.scale * bumps.height
    return join(
        [
            remove(d, 1, grid.dtype, signed=False),
            traps(d, centres, delta, heights.astype(np.float64), left, grid.dtype),
        ]
    )


def tree_layers(blocks: list[Bumps], leaf_labels: Array, grid: Grid, d: int) -> list[Layer]:
    """Encoder (s = code + projection), then the readout of the labels."""
    dtype, codes = grid.dtype, len(leaf_labels)
    layers: list[Layer] = [*grid.layers]
    ask = coordinate(d, 0, 1.0 / (grid.scale * grid.offset), dtype)
    key = coordinate(d, 1, 1.0 / grid.scale, dtype)
    value, to = coordinate(d, 1, 1.0, dtype), coordinate(d, 0, 1.0, dtype)
    for block in blocks:
        layers.append(bump_layer(block, grid, codes, d))
        layers.append(Attention(ask, key, value, to))
    return [*layers, *code_readout(leaf_labels, grid, d)]


def code_readout(values: Array, grid: Grid, d: int) -> list[Layer]:
    """``z_1 <- values[code]``, flat on the projections of every code."""
    change = np.flatnonzero(np.diff(values))
    base = grid.offset + change.astype(np.float64)
    f = Stair(
        grid.scale * (base + 1 - EDGE),
        grid.scale * (base + 1 + EDGE),
        np.diff(values)[change].astype(np.float64),
        float(values[0]),
    )
    ramps, constant = stair(d, 0, 1, f, grid.dtype)
    return cleared(remove(d, 1, grid.dtype, signed=False), ramps, {1: constant}, grid.scale)
