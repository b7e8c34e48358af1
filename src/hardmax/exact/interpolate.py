"""`interpolate`: every sequence to its own set of points.

The tree gives every set of tokens its own code c, so a token carries
s = c + t on a grid.  From there all arithmetic is in integers:

    index     s -> e, a number per output point (stairs and bumps)
    points    e -> y, but for coordinate 1, in two parts of short numbers
    order     e -> its rank in coordinate 1 (a permutation)
    last      rank -> y_1, increasing, so that its terms stay small
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardmax._errors import InputError, ShapeError
from hardmax._types import Array, Floats
from hardmax.exact._kernels import measure_keys
from hardmax.exact.assemble import tree_layers
from hardmax.exact.counts import Counts, count
from hardmax.exact.data import Corpus, read_corpus
from hardmax.exact.forward import Plan, plans, run
from hardmax.exact.grid import Grid, mantissa
from hardmax.exact.layers import Attention, FeedForward, Layer, digest_layers, pack, unpack
from hardmax.exact.parts import EDGE, Stair, join, neurons, remove, stair, traps
from hardmax.exact.plant import Plant, plants
from hardmax.exact.radius import radii
from hardmax.exact.rationals import forward_exact
from hardmax.exact.separate import PrecisionError, check_conflicts
from hardmax.exact.verify import no_rounding
from hardmax.io import load_model, save_model

if TYPE_CHECKING:
    from hardmax.exact.torch_module import ConstructedTransformer

__all__ = ["Interpolation", "hausdorff", "interpolate"]

KIND = "interpolation"


@dataclass(frozen=True, eq=False)
class Interpolation:
    """A transformer whose final tokens are, as a set, the target of every sequence.

    `radius` bounds the distance between a final token and its target in any
    evaluation, whatever the order of sums; `error` is the largest seen.
    """

    layers: tuple[Layer, ...]
    dim: int
    sequences: int
    radius: float
    error: float
    bits_used: float
    sha256: str
    entry: int = 0
    settled: int = 0
    seed: int = field(default=0)

    @cached_property
    def _plans(self) -> list[Plan | Attention]:
        return plans(self.layers)

    @property
    def counts(self) -> Counts:
        """Layers, neurons and weights."""
        return count(self.layers, self.sequences, self.dim)

    def forward(self, sequence: Any) -> Array:
        """The final tokens (n, d) of one sequence."""
        corpus = read_corpus([sequence], dim=self.dim)
        state = run(self.layers, corpus, range(self.dim), self._plans)
        place = np.empty(len(corpus.table), np.int64)
        place[corpus.rows] = np.arange(len(corpus.rows))
        return np.asarray(state.z[place[corpus.ids]])

    def forward_exact(self, sequence: Any) -> list[list[Fraction]]:
        """The final tokens of one sequence in rational arithmetic."""
        corpus = read_corpus([sequence], dim=self.dim)
        rows = forward_exact(self.layers, corpus.table[corpus.rows], corpus.counts)
        place = {int(w): i for i, w in enumerate(corpus.rows)}
        return [rows[place[int(w)]] for w in corpus.ids]

    def predict(self, sequences: Any) -> list[Array]:
        """The distinct final tokens of every sequence, in the order of its tokens."""
        corpus = read_corpus(sequences, dim=self.dim)
        z = run(self.layers, corpus, range(self.dim), self._plans).z
        parts = [z[corpus.starts[j] : corpus.starts[j + 1]] for j in range(corpus.size)]
        return [x[np.sort(np.unique(x, axis=0, return_index=True)[1])] for x in parts]

    def verify(self, sequences: Any, targets: Any) -> bool:
        """Recompute error and radius from these data; False where anything differs."""
        corpus = read_corpus(sequences, dim=self.dim)
        goals = _targets(targets, corpus)
        if _digest(self.layers, corpus, goals) != self.sha256:
            return False
        proof = _prove(self.layers, corpus, goals, self.entry, self.settled)
        said = (self.radius, self.error, self.bits_used)
        return all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(proof, said, strict=True))

    def to_torch(self, dtype: Any = None) -> ConstructedTransformer:
        """An ordinary torch module with dense weights and n x n attention."""
        import torch

        from hardmax.exact.torch_module import ConstructedTransformer

        return ConstructedTransformer(self.layers, self.dim, 1, dtype or torch.float64)

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write weights and settings: safetensors and JSON."""
        tensors, records = pack(self.layers)
        names = ("dim", "sequences", "radius", "error", "bits_used", "sha256", "entry", "settled")
        meta = {"layers": records, **{n: getattr(self, n) for n in names}}
        save_model(folder, tensors, meta, KIND, force=force)

    @classmethod
    def load(cls, folder: str | Path) -> Interpolation:
        """The interpolation that `save` wrote."""
        tensors, meta = load_model(folder, KIND)
        layers = unpack(tensors, meta.pop("layers"))
        return cls(layers=layers, **meta)


def hausdorff(a: Array, b: Array) -> float:
    """Hausdorff distance of two finite sets of points."""
    gaps = np.sqrt(((np.asarray(a)[:, None] - np.asarray(b)[None]) ** 2).sum(axis=-1))
    return float(max(gaps.min(axis=1).max(), gaps.min(axis=0).max()))


def interpolate(sequences: Any, targets: Any, *, random_state: int = 0) -> Interpolation:
    """A transformer that maps every sequence onto its target set of points.

    Parameters
    ----------
    sequences
        Arrays (n_j, d), d >= 2.
    targets
        Arrays (m_j, d); m_j is at most the number of distinct tokens of
        sequence j.  The first m_j - 1 distinct tokens go to the first targets,
        all others to the last.
    random_state
        Seed of all random choices.

    Returns
    -------
    Interpolation
        With a proved `radius` for the distance to the targets.

    Raises
    ------
    ConflictError
        If equal sets of tokens have different targets.
    PrecisionError
        If tokens of one sequence lie too close for float64.

    Examples
    --------
    >>> import numpy as np
    >>> x = [np.array([[0.0, 0], [1, 0]]), np.array([[1.0, 0]])]
    >>> y = [np.array([[5.0, 5], [6, 6]]), np.array([[7.0, 7]])]
    >>> net = interpolate(x, y)
    >>> net.predict(x)[0].round(9).tolist()
    [[5.0, 5.0], [6.0, 6.0]]
    """
    corpus = read_corpus(sequences)
    if corpus.dim < 2:
        raise InputError("interpolation needs d >= 2; got d = 1. Add a coordinate to every token.")
    goals = _targets(targets, corpus)
    names = np.unique([g.tobytes() for g in goals], return_inverse=True)[1]
    check_conflicts(corpus, names, "sets")
    keys = measure_keys(corpus.rows, corpus.counts, corpus.starts, True)
    labels = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
    reason = "no grid is fine enough"
    for finer in (0, 6, 12, 18, 24):
        try:
            plant = plants(corpus, labels, np.random.default_rng(random_state), finer=finer)[0]
            layers, entry, settled = _assemble(corpus, labels, goals, plant)
        except PrecisionError as error:
            reason = str(error)
            continue
        radius, error_seen, bits = _prove(layers, corpus, goals, entry, settled)
        if math.isfinite(radius):
            sha = _digest(layers, corpus, goals)
            return Interpolation(
                layers, corpus.dim, corpus.size, radius, error_seen, bits, sha, entry, settled
            )
        reason = f"{bits:.1f} bits needed"
    raise PrecisionError(f"float64 is too small for these data ({reason}). Spread the tokens.")


def _targets(targets: Any, corpus: Corpus) -> list[Floats]:
    if not hasattr(targets, "__len__") or len(targets) != corpus.size:
        raise ShapeError(
            f"`targets` must hold one array per sequence ({corpus.size}). Pass as many."
        )
    out = []
    for j, y in enumerate(targets):
        goal = np.asarray(y, dtype=np.float64)
        goal = goal[None, :] if goal.ndim == 1 else goal
        if goal.ndim != 2 or goal.shape[1] != corpus.dim or not len(goal):
            raise ShapeError(
                f"target {j} must be (m, {corpus.dim}) with m >= 1; got {goal.shape}. Reshape it."
            )
        if not np.isfinite(goal).all():
            raise InputError(f"target {j} must be finite. Remove NaN and infinity.")
        distinct = int(corpus.starts[j + 1] - corpus.starts[j])
        if len(goal) > distinct:
            raise InputError(
                f"target {j} has {len(goal)} points, more than the {distinct} distinct tokens of "
                "its sequence. Equal tokens stay equal: give fewer points, or add positions."
            )
        out.append(goal)
    return out


def _prove(
    layers: tuple[Layer, ...], corpus: Corpus, goals: list[Floats], entry: int, settled: int
) -> tuple[float, float, float]:
    """Proved radius, largest distance seen, bits used."""
    bits = no_rounding(layers[:settled], entry, corpus, 1)
    state, radius = radii(layers, corpus, range(corpus.dim), settled)
    z, r = state.z, radius
    if not state.paired:
        z, r = z[corpus.rows], r[corpus.rows]
    wanted = _wanted(corpus, goals)
    away = np.abs(z - wanted)
    error = float(np.sqrt((away**2).sum(axis=1)).max())
    bound = float(np.sqrt(((away + 2 * r) ** 2).sum(axis=1)).max())
    return (bound if bits.proved else math.inf), error, bits.used


def _wanted(corpus: Corpus, goals: list[Floats]) -> Floats:
    """The target of every (sequence, distinct token) pair; equal sets share the first order."""
    keys = measure_keys(corpus.rows, corpus.counts, corpus.starts, True)
    first: dict[tuple[int, int], dict[int, int]] = {}
    out = np.empty((len(corpus.rows), corpus.dim))
    for j, goal in enumerate(goals):
        a, b = int(corpus.starts[j]), int(corpus.starts[j + 1])
        key = (int(keys[j, 0]), int(keys[j, 1]))
        order = {int(w): min(i, len(goal) - 1) for i, w in enumerate(corpus.rows[a:b])}
        order = first.setdefault(key, order)
        for pos in range(a, b):
            out[pos] = goal[order[int(corpus.rows[pos])]]
    return out


def _digest(layers: tuple[Layer, ...], corpus: Corpus, goals: list[Floats]) -> str:
    shapes = [g.shape for g in goals]
    text = corpus.digest() + repr(shapes) + np.concatenate(goals).tobytes().hex()
    return digest_layers(layers, text)


def _assemble(
    corpus: Corpus, labels: Array, goals: list[Floats], plant: Plant
) -> tuple[tuple[Layer, ...], int, int]:
    """All layers, the entry layer, and the number of layers after which e is exact."""
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
    largest = max(float(np.abs(points).max()), 1e-300)
    for part in (0, 1):
        quantum = 2.0 ** (math.ceil(math.log2(largest)) - 50 + 2 * math.ceil(math.log2(many + 1)))
        short = np.rint(rest / quantum) * quantum if part == 0 else rest
        if part:
            finest = 2.0 ** (math.ceil(math.log2(float(np.abs(rest).max() or 1))) - 52)
            short = np.rint(rest / finest) * finest
        if short.any():
            layers.append(_joined(short, others, d, dtype))
        rest = rest - short
    order = np.argsort(points[:, 1], kind="stable")
    rank = np.empty(many)
    rank[order] = np.arange(many)
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
    """``z_1 <- values[z_1]`` for increasing values, rounded so that no sum rounds."""
    many = len(values)
    span = float(values[-1] - values[0])
    top = max(span * many + float(np.abs(values).max()), 1e-300)
    quantum = 2.0 ** (math.ceil(math.log2(8 * top)) - 52)
    short = np.rint(values / quantum) * quantum
    steps = np.diff(short)
    at = np.flatnonzero(steps).astype(np.float64)
    f = Stair(at + 0.25, at + 0.75, steps[steps != 0], float(short[0]))
    ramps, constant = stair(d, 1, 1, f, dtype)
    old = neurons(d, 1, 1, np.ones(1), np.zeros(1), -np.ones(1), dtype)
    return join([old, ramps], {1: constant})
