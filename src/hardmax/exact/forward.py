"""Running a network on sequences: code that knows nothing of how it was built.

Feed-forward layers act on tokens alone, so before the first attention they run
once per distinct token of all sequences.  Attention of rank one costs O(n) per
sequence, wide layers of one coordinate O(log K) per token.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hardmax._types import Array
from hardmax.exact._loops import add_dense, add_lookup, attend_hard, attend_soft, spread
from hardmax.exact.data import Corpus
from hardmax.exact.layers import Attention, FeedForward, Layer
from hardmax.exact.piecewise import Piecewise, piecewise, single_reads

__all__ = ["Plan", "State", "outputs", "plan", "run", "states"]

_LOOKUP_FROM = 12


@dataclass(frozen=True, eq=False)
class State:
    """Coordinates `columns` of every row: of distinct tokens, or of (sequence, token) pairs."""

    z: Array
    columns: tuple[int, ...]
    paired: bool

    def column(self, index: int) -> Array:
        """The coordinate `index` of every row."""
        return np.ascontiguousarray(self.z[:, self.columns.index(index)])


@dataclass(frozen=True, eq=False)
class Plan:
    """A feed-forward layer with its wide one-coordinate parts as sorted lookups."""

    layer: FeedForward
    dense: Array
    lookups: tuple[tuple[int, Piecewise], ...]


def plan(layer: FeedForward) -> Plan:
    """Sort the neurons of a layer that read one coordinate, where there are many."""
    column = single_reads(layer)
    dense = column < 0
    lookups = []
    for c in range(len(layer.reads)):
        chosen = np.flatnonzero(column == c)
        if len(chosen) < _LOOKUP_FROM:
            dense[chosen] = True
        else:
            lookups.append((layer.reads[c], piecewise(layer, chosen, c)))
    return Plan(layer, np.flatnonzero(dense), tuple(lookups))


def plans(layers: Sequence[Layer]) -> list[Plan | Attention]:
    """Every feed-forward layer planned, every attention layer as it is."""
    return [plan(x) if isinstance(x, FeedForward) else x for x in layers]


def _reads(layer: Layer) -> set[int]:
    if isinstance(layer, FeedForward):
        return set(layer.reads)
    used = (layer.v != 0) if layer.uniform else (layer.q != 0) | (layer.k != 0) | (layer.v != 0)
    return {int(c) for c in np.flatnonzero(used)}


def needed(layers: Sequence[Layer], keep: Sequence[int]) -> list[tuple[int, ...]]:
    """Coordinates that matter after layer 0, 1, ...: read later, or wanted at the end."""
    wanted = set(keep)
    after: list[tuple[int, ...]] = []
    for layer in reversed(layers):
        after.append(tuple(sorted(wanted)))
        wanted |= _reads(layer)
    return after[::-1]


def feed(step: Plan, state: State, columns: tuple[int, ...]) -> State:
    """One feed-forward layer; only `columns` are kept."""
    layer = step.layer
    place = {c: i for i, c in enumerate(state.columns)}
    add = np.zeros((len(state.z), len(layer.writes)), state.z.dtype)
    if len(step.dense):
        reads = np.array([place[c] for c in layer.reads], np.int64)
        w1, w2 = layer.W1[step.dense], np.ascontiguousarray(layer.W2[:, step.dense])
        add_dense(state.z, reads, w1, layer.b1[step.dense], w2, add)
    for c, f in step.lookups:
        add_lookup(state.column(c), f.kinks, f.values, f.slopes, add)
    if layer.b2 is not None:
        add += layer.b2
    if columns == state.columns:
        z = state.z.copy()
    else:
        z = np.ascontiguousarray(state.z[:, [place[c] for c in columns]])
    if layer.eta != 1.0:
        z *= z.dtype.type(layer.eta)
    for i, c in enumerate(layer.writes):
        if c in columns:
            z[:, columns.index(c)] += add[:, i]
    return State(z, columns, state.paired)


def attend(layer: Attention, corpus: Corpus, state: State, columns: tuple[int, ...]) -> State:
    """One attention layer on (sequence, token) pairs; only `columns` are kept."""
    if layer.idle:
        return _narrow(state, columns)
    if not state.paired:
        state = State(state.z[corpus.rows], state.columns, True)
    qz, kz, vz = (_product(state, x) for x in (layer.q, layer.k, layer.v))
    mean = np.empty_like(vz)
    if math.isinf(layer.beta) or layer.uniform:
        attend_hard(qz, kz, vz, corpus.counts, corpus.starts, mean, layer.uniform)
    else:
        beta = vz.dtype.type(layer.beta)
        attend_soft(qz, kz, vz, corpus.counts, corpus.starts, mean, beta)
    new = _narrow(state, columns)
    z = new.z.copy()
    if layer.rho != 1.0:
        z *= z.dtype.type(layer.rho)
    for i, c in enumerate(columns):
        if layer.u[c] != 0:
            z[:, i] += layer.u[c] * mean
    return replace(new, z=z)


def _narrow(state: State, columns: tuple[int, ...]) -> State:
    if columns == state.columns:
        return state
    z = state.z[:, [state.columns.index(c) for c in columns]]
    return State(np.ascontiguousarray(z), columns, state.paired)


def _product(state: State, vector: Array) -> Array:
    used = [(i, vector[c]) for i, c in enumerate(state.columns) if vector[c] != 0]
    if not used:
        return np.zeros(len(state.z), state.z.dtype)
    out = used[0][1] * state.z[:, used[0][0]]
    for i, weight in used[1:]:
        out += weight * state.z[:, i]
    return np.asarray(out)


def states(
    layers: Sequence[Layer],
    corpus: Corpus,
    keep: Sequence[int],
    prepared: Sequence[Plan | Attention] | None = None,
) -> Iterator[State]:
    """The state before the first layer and after every layer."""
    prepared = plans(layers) if prepared is None else prepared
    state = State(corpus.table, tuple(range(corpus.dim)), False)
    yield state
    for step, columns in zip(prepared, needed(layers, keep), strict=True):
        if isinstance(step, Plan):
            state = feed(step, state, columns)
        else:
            state = attend(step, corpus, state, columns)
        yield state


def run(
    layers: Sequence[Layer],
    corpus: Corpus,
    keep: Sequence[int],
    prepared: Sequence[Plan | Attention] | None = None,
) -> State:
    """The coordinates `keep` after the last layer, for (sequence, token) pairs."""
    state = State(corpus.table, tuple(range(corpus.dim)), False)
    for after in states(layers, corpus, keep, prepared):
        state = after
    if not state.paired:
        state = State(state.z[corpus.rows], state.columns, True)
    return state


def outputs(
    layers: Sequence[Layer],
    corpus: Corpus,
    column: int,
    prepared: Sequence[Plan | Attention] | None = None,
) -> tuple[Array, Array]:
    """Smallest and largest final value of one coordinate over the tokens of each sequence."""
    state = run(layers, corpus, (column,), prepared)
    return spread(state.column(column), corpus.starts)
