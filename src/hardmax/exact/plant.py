"""Choosing direction, grid and greed of a tree: several small builds, the best first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from hardmax._types import Array, Floats
from hardmax.exact.assemble import Bumps, blocks_of, tree_bumps, tree_layers
from hardmax.exact.data import Corpus
from hardmax.exact.grid import Grid, grid_limit, lay_grid, projection
from hardmax.exact.layers import FeedForward, Layer
from hardmax.exact.mean import Draft
from hardmax.exact.parts import in_blocks, limited
from hardmax.exact.separate import Frame, PrecisionError, directions, frame
from hardmax.exact.tree import Tree, build_tree

__all__ = ["Ground", "Plant", "grounds", "plants", "tree_drafts"]

Progress = Callable[[str, int, int], None]
_SHARES = (0.001, 0.0003, 0.004, 0.02)
_LARGE = 200_000
_WORK = 12_000_000


@dataclass(frozen=True, eq=False)
class Ground:
    """A direction with its layers, projected values and error bound."""

    layers: tuple[FeedForward, ...]
    values: Array
    error: float
    scale: float
    finest: float


@dataclass(frozen=True, eq=False)
class Plant:
    """A tree on a grid, cut into blocks."""

    tree: Tree
    grid: Grid
    blocks: list[Bumps]

    def cost(self) -> tuple[int, int]:
        """Attention layers, then neurons."""
        neurons = 4 * self.tree.bumps + len(self.blocks) + 2 * self.tree.changes
        return len(self.blocks), neurons


def grounds(corpus: Corpus, rng: np.random.Generator, many: int) -> list[Ground]:
    """Directions by how well they keep the tokens of frequent use apart."""
    size: Frame = frame(corpus)
    use = np.bincount(corpus.rows, minlength=len(corpus.table)).astype(np.float64)
    found: list[tuple[float, Ground]] = []
    for a in _axes(corpus, size, rng, many):
        layers, values, error = projection(corpus, a * size.weights, size)
        order = np.argsort(values, kind="stable")
        gaps = np.diff(values[order].astype(np.float64)) / size.size
        room = np.full(len(values), 1.0)
        room[order[1:]] = gaps
        room[order[:-1]] = np.minimum(room[order[:-1]], gaps)
        quality = float((np.sqrt(use) * np.log2(np.maximum(room, 2.0**-60))).sum())
        finest = float(gaps[gaps > 0].min(initial=1.0))
        found.append((quality, Ground(layers, values, error, size.size, finest)))
    found.sort(key=lambda f: -f[0])
    return [g for _, g in found]


def _axes(corpus: Corpus, size: Frame, rng: np.random.Generator, many: int) -> Floats:
    a = directions(many, corpus.dim, rng)
    moving = np.flatnonzero(size.weights)
    if corpus.dim > 1 and len(moving) <= 8:  # coordinates nearly alone, for lattices and outliers
        tilt = directions(len(moving), corpus.dim, rng) * 0.02
        a = np.concatenate([a, np.eye(corpus.dim)[moving] + tilt])
    return a


def plants(
    corpus: Corpus,
    codes: Array,
    rng: np.random.Generator,
    *,
    most: int | None = None,
    tries: int = 12,
    finer: int = 0,
    progress: Progress | None = None,
) -> list[Plant]:
    """Several trees, best first.

    The natural grid has a step far below the mean distance of the tokens;
    finer grids serve tokens that lie close, coarser ones leave more bits.
    """
    large = len(corpus.rows) > _LARGE
    tries = max(2, min(tries, _WORK // len(corpus.rows)))
    ground = grounds(corpus, rng, 4 if large else 8)
    natural = max(14, math.ceil(math.log2(len(corpus.table))) + 10)
    found: list[Plant] = []
    failed: PrecisionError | None = None
    done, enough = 0, False
    for extra in (0, 3, 6, 10, 14, 18, 22, 26, 30, 34, 38):
        for g in ground:
            p = natural + finer + extra
            limit = grid_limit(g.error, g.scale, corpus.table.dtype, 2)
            if p > limit:
                if extra and p - limit >= 4:
                    continue
                p = limit
            for share in _SHARES[: 2 if large else 4]:
                try:
                    found.append(_grow(corpus, codes, g, p, share, most))
                except PrecisionError as error:
                    failed = error
                    if "bits" not in str(error):
                        break
                done += 1
                if progress is not None:
                    progress("build", done, tries)
                enough = bool(found) and done >= tries
                if enough:
                    break
            if enough:
                break
        if found:
            break
    if not found:
        raise failed or PrecisionError("no grid is fine enough for the tokens")
    return sorted(_thinned(corpus, codes, ground, found, most), key=Plant.cost)


def _thinned(
    corpus: Corpus, codes: Array, ground: list[Ground], found: list[Plant], most: int | None
) -> list[Plant]:
    """Where bits cut a level into several blocks, try coarser grids as well."""
    best = min(found, key=Plant.cost)
    if most is not None or len(best.blocks) == best.tree.levels:
        return found
    for less in (2, 4, 6):
        for g in ground[:2]:
            for share in _SHARES[:2]:
                try:
                    found.append(_grow(corpus, codes, g, best.grid.p - less, share, most))
                except PrecisionError:
                    continue
    return found


def _grow(corpus: Corpus, codes: Array, g: Ground, p: int, share: float, most: int | None) -> Plant:
    dtype = corpus.table.dtype
    grid = lay_grid(g.layers, g.values, p, g.scale, dtype)
    tree = build_tree(corpus, codes, grid.places, share=share)
    leaves = len(tree.leaf_labels)
    limit = grid_limit(g.error, g.scale, dtype, leaves)
    if p > limit:
        grid = lay_grid(g.layers, g.values, limit, g.scale, dtype)
        tree = build_tree(corpus, codes, grid.places, share=share)
        leaves = len(tree.leaf_labels)
        if limit > grid_limit(g.error, g.scale, dtype, leaves):
            raise PrecisionError(f"{leaves} codes and the projections need more bits")
    return Plant(tree, grid, blocks_of(tree_bumps(tree), leaves, grid, most))


def tree_drafts(
    corpus: Corpus,
    codes: Array,
    rng: np.random.Generator,
    *,
    chain: bool = False,
    width: int | None = None,
    blocks: bool = False,
    progress: Progress | None = None,
) -> Iterator[Draft]:
    """Trees (or chains) as layers, the shallowest first."""
    most = 1 if chain else None
    for plant in plants(corpus, codes, rng, most=most, progress=progress)[:4]:
        layers = tree_layers(plant.blocks, plant.tree.leaf_labels, plant.grid, corpus.dim)
        if blocks:
            yield _in_blocks(layers, plant, corpus.dim, width)
            continue
        done = tuple(limited(layers, width))
        entry = len(limited(plant.grid.layers, width))
        yield Draft(done, 1, entry, tree=plant.tree, grid=plant.grid)


def _in_blocks(layers: list[Layer], plant: Plant, d: int, width: int | None) -> Draft:
    head = in_blocks(layers[: len(plant.grid.layers)], d, width)
    done = in_blocks(layers, d, width)
    return Draft(tuple(done), 1, len(head), tree=plant.tree, grid=plant.grid)
