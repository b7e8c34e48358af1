"""`interpolate`: every sequence to its own set of points.

A tree that gives every set of tokens its own code, then the layers of
`deliver`, from codes to points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardmax._errors import DataError, InputError, ShapeError
from hardmax._types import Array, Floats
from hardmax.exact._kernels import measure_keys
from hardmax.exact.counts import Counts, count
from hardmax.exact.data import LARGEST, Corpus, read_corpus
from hardmax.exact.deliver import assemble
from hardmax.exact.forward import Plan, plans, run
from hardmax.exact.layers import Attention, Layer, digest_layers, pack, unpack
from hardmax.exact.plant import plants
from hardmax.exact.radius import radii
from hardmax.exact.rationals import forward_exact
from hardmax.exact.separate import ConflictError, PrecisionError, conflicts, name_pairs
from hardmax.exact.task import Progress, check_seed, position_step
from hardmax.exact.verify import no_rounding
from hardmax.io import load_model, plain, save_model

if TYPE_CHECKING:
    from hardmax.exact.torch_module import ConstructedTransformer

__all__ = ["Interpolation", "hausdorff", "interpolate"]

KIND = "interpolation"
_SAVED = {
    "dim": int, "sequences": int, "radius": float, "error": float, "bits_used": float,
    "sha256": str, "weights_sha256": str, "entry": int, "settled": int,
}  # fmt: skip


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
    weights_sha256: str
    entry: int = 0
    settled: int = 0
    step: Array | None = field(default=None)

    def __repr__(self) -> str:
        """What it is, not its weights."""
        return (
            f"Interpolation(sequences={self.sequences}, dim={self.dim}, "
            f"layers={len(self.layers)}, radius={self.radius:.2g})"
        )

    @cached_property
    def _plans(self) -> list[Plan | Attention]:
        return plans(self.layers)

    def read(self, sequences: Any) -> Corpus:
        """The sequences as this network sees them."""
        return read_corpus(sequences, dim=self.dim, step=self.step)

    @property
    def counts(self) -> Counts:
        """Layers, neurons and weights."""
        return count(self.layers, self.sequences, self.dim, self.entry)

    def forward(self, sequence: Any) -> Array:
        """The final tokens (n, d) of one sequence."""
        corpus = self.read([sequence])
        state = run(self.layers, corpus, range(self.dim), self._plans)
        place = np.empty(len(corpus.table), np.int64)
        place[corpus.rows] = np.arange(len(corpus.rows))
        return np.asarray(state.z[place[corpus.ids]])

    def forward_exact(self, sequence: Any) -> list[list[Fraction]]:
        """The final tokens of one sequence in rational arithmetic."""
        corpus = self.read([sequence])
        rows = forward_exact(self.layers, corpus.table[corpus.rows], corpus.counts)
        place = {int(w): i for i, w in enumerate(corpus.rows)}
        return [rows[place[int(w)]] for w in corpus.ids]

    def predict(self, sequences: Any) -> list[Array]:
        """The distinct final tokens of every sequence, in the order of its tokens."""
        corpus = self.read(sequences)
        z = run(self.layers, corpus, range(self.dim), self._plans).z
        parts = [z[corpus.starts[j] : corpus.starts[j + 1]] for j in range(corpus.size)]
        return [x[np.sort(np.unique(x, axis=0, return_index=True)[1])] for x in parts]

    def verify(self, sequences: Any, targets: Any) -> bool:
        """Recompute error and radius from these data; False where anything differs."""
        if self._digest() != self.weights_sha256:
            return False
        corpus = self.read(sequences)
        goals = _targets(targets, corpus)
        if _digest(self.layers, corpus, goals) != self.sha256:
            return False
        proof = _prove(self.layers, corpus, goals, self.entry, self.settled)
        said = (self.radius, self.error, self.bits_used)
        return all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(proof, said, strict=True))

    def _digest(self) -> str:
        """SHA-256 of the weights and of every number that is stated."""
        facts = [getattr(self, name) for name in _SAVED if name != "weights_sha256"]
        step = "" if self.step is None else self.step.tobytes().hex()
        return digest_layers(self.layers, repr((facts, step)))

    def to_torch(self, dtype: Any = None) -> ConstructedTransformer:
        """An ordinary torch module with dense weights and n x n attention."""
        import torch

        from hardmax.exact.torch_module import ConstructedTransformer

        return ConstructedTransformer(self.layers, self.dim, 1, dtype or torch.float64, self.step)

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write weights and settings: safetensors and JSON."""
        save_model(folder, *self._packed(), KIND, force=force)

    def _packed(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Tensors and settings: all that is saved."""
        tensors, records = pack(self.layers)
        if self.step is not None:
            tensors["step"] = self.step
        return tensors, {"layers": records, **{n: getattr(self, n) for n in _SAVED}}

    @classmethod
    def load(cls, folder: str | Path) -> Interpolation:
        """The interpolation that `save` wrote; `DataError` where its weights were altered."""
        tensors, meta = load_model(folder, KIND)
        try:
            layers = unpack(tensors, meta["layers"])
            facts: dict[str, Any] = {name: kind(meta[name]) for name, kind in _SAVED.items()}
            net = cls(layers=layers, step=tensors.get("step"), **facts)
            again, stated = net._packed()
            same = net._digest() == net.weights_sha256
            same &= plain(stated) == meta and again.keys() == tensors.keys()
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise DataError(
                f"{folder}: expected an interpolation, got {type(error).__name__}: {error}. "
                "Copy the folder again."
            ) from None
        if not same:
            raise DataError(f"{folder}: differs from what was proved. Copy the folder again.")
        return net


def hausdorff(a: Array, b: Array) -> float:
    """Hausdorff distance of two finite sets of points."""
    gaps = np.sqrt(((np.asarray(a)[:, None] - np.asarray(b)[None]) ** 2).sum(axis=-1))
    return float(max(gaps.min(axis=1).max(), gaps.min(axis=0).max()))


def interpolate(
    sequences: Any,
    targets: Any,
    *,
    positions: bool = False,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Interpolation:
    """A transformer that maps every sequence onto its target set of points.

    Parameters
    ----------
    sequences
        Arrays (n_j, d), d >= 2.
    targets
        Arrays (m_j, d); m_j is at most the number of distinct tokens of
        sequence j.  The first m_j - 1 distinct tokens go to the first targets,
        all others to the last.
    positions
        Add i times a generic vector to the i-th token: then all tokens of a
        sequence are distinct, and order counts.
    random_state
        Seed of all random choices.
    progress
        Called with (stage, done, total).

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
    seed = check_seed(random_state)
    corpus = read_corpus(sequences)
    if corpus.dim < 2:
        raise InputError("interpolation needs d >= 2; got d = 1. Add a coordinate to every token.")
    step = position_step(corpus, seed) if positions else None
    corpus = corpus if step is None else read_corpus(sequences, step=step)
    goals = _targets(targets, corpus)
    names = np.unique([g.tobytes() for g in goals], return_inverse=True)[1]
    _check_sets(corpus, names, positions)
    keys = measure_keys(corpus.rows, corpus.counts, corpus.starts, True)
    labels = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
    reason = "no grid is fine enough"
    for finer in (0, 6, 12, 18, 24):
        try:
            rng = np.random.default_rng(seed)
            plant = plants(corpus, labels, rng, finer=finer, progress=progress)[0]
            layers, entry, settled = assemble(corpus, labels, goals, plant)
        except PrecisionError as error:
            reason = str(error)
            continue
        radius, error_seen, bits = _prove(layers, corpus, goals, entry, settled)
        if math.isfinite(radius):
            net = Interpolation(
                layers, corpus.dim, corpus.size, radius, error_seen, bits,
                _digest(layers, corpus, goals), "", entry, settled, step,
            )  # fmt: skip
            return replace(net, weights_sha256=net._digest())
        reason = f"{bits:.1f} bits needed"
    raise PrecisionError(f"float64 is too small for these data ({reason}). Spread the tokens.")


def _check_sets(corpus: Corpus, names: Array, positions: bool) -> None:
    pairs = conflicts(corpus, names, "sets")
    if pairs:
        count = "Use positions=True: then order and repetitions count."
        hint = "Correct the targets." if positions else count
        raise ConflictError(
            "sequences with different targets must have different sets of tokens; "
            f"equal sets: {name_pairs(pairs)}. {hint}",
            tuple(pairs),
        )


def _targets(targets: Any, corpus: Corpus) -> list[Floats]:
    if not hasattr(targets, "__len__") or len(targets) != corpus.size:
        raise ShapeError(
            f"`targets` must hold one array per sequence ({corpus.size}). Pass as many."
        )
    out = []
    for j, y in enumerate(targets):
        goal = _numbers(y, j)
        goal = goal[None, :] if goal.ndim == 1 else goal
        if goal.ndim != 2 or goal.shape[1] != corpus.dim or not len(goal):
            raise ShapeError(
                f"target {j} must be (m, {corpus.dim}) with m >= 1; got {goal.shape}. Reshape it."
            )
        if not (np.abs(goal) <= LARGEST["float64"]).all():
            raise InputError(
                f"target {j} must be finite and at most {LARGEST['float64']:g} in absolute value. "
                "Remove NaN and infinity, or rescale it."
            )
        distinct = int(corpus.starts[j + 1] - corpus.starts[j])
        if len(goal) > distinct:
            raise InputError(
                f"target {j} has {len(goal)} points, more than the {distinct} distinct tokens of "
                "its sequence. Equal tokens stay equal: give fewer points, or positions=True."
            )
        out.append(goal)
    return out


def _numbers(y: Any, j: int) -> Floats:
    try:
        y = y.detach().cpu().numpy() if hasattr(y, "detach") else y
        return np.array(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(
            f"target {j} must be an (m, d) array of numbers; got other content. Correct it."
        ) from None


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
