"""How far any evaluation of a network can be from its real values, from the weights alone.

For every layer the radius of its input and the rounding of its sums, in any
order, give the radius of its output.  Bounds hold for every evaluation, not
only for the one whose values are seen: its inputs lie within twice the radius.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hardmax._types import Array, Floats
from hardmax.exact._bounds import dense_radius, mean_radius, steepness
from hardmax.exact.data import Corpus
from hardmax.exact.forward import State, plans, states
from hardmax.exact.layers import Attention, FeedForward, Layer
from hardmax.exact.piecewise import Piecewise, low_unit, piecewise, single_reads, unit_of

__all__ = ["error_radius", "radii"]


def _pieces(layer: FeedForward, chosen: Array, r: int) -> tuple[Piecewise, Piecewise, Array]:
    """The function, the sum of absolute terms, and the number of active neurons by segment."""
    f = piecewise(layer, chosen, r)
    g = piecewise(layer, chosen, r, size=True)
    w = layer.W1[chosen, r].astype(np.float64)
    kinks = -layer.b1[chosen].astype(np.float64) / w
    at = np.searchsorted(g.kinks.astype(np.float64), kinks)
    change = np.bincount(at, np.sign(w), minlength=len(g.kinks))
    active = np.concatenate([[0.0], np.cumsum(change)]) + float((w < 0).sum())
    return f, g, active


def error_radius(
    layers: Sequence[Layer], corpus: Corpus, column: int, exact_until: int = 0
) -> tuple[Array, Floats]:
    """Final value of one coordinate per row, and how far any evaluation can be from the reals."""
    state, radius = radii(layers, corpus, (column,), exact_until)
    return state.column(column), radius[:, state.columns.index(column)]


@np.errstate(over="ignore", invalid="ignore")
def radii(
    layers: Sequence[Layer], corpus: Corpus, keep: Sequence[int], exact_until: int = 0
) -> tuple[State, Floats]:
    """Final coordinates `keep` per row, and how far any evaluation can be from the reals.

    Valid for sums in any order, with or without fused operations; so another
    evaluation is within twice the radius of the values given.  The state before
    layer `exact_until` is taken as exact (proved by `no_rounding`).
    """
    prepared = plans(layers)
    radius = np.zeros(corpus.table.shape)
    before = State(corpus.table, tuple(range(corpus.dim)), False)
    for i, state in enumerate(states(layers, corpus, keep, prepared)):
        if i:
            layer = layers[i - 1]
            if state.paired and not before.paired:
                before = State(before.z[corpus.rows], before.columns, True)
                radius = radius[corpus.rows]
            grow = _feed_radius if isinstance(layer, FeedForward) else _attention_radius
            if i <= exact_until:
                radius = np.zeros(state.z.shape)
            else:
                radius = grow(layer, before, radius, corpus, state.columns)
        before = state
    return before, radius


def _feed_radius(
    layer: Layer, state: State, radius: Floats, corpus: Corpus, columns: tuple[int, ...]
) -> Floats:
    assert isinstance(layer, FeedForward)
    u = float(np.finfo(state.z.dtype).eps) / 2
    place = {c: i for i, c in enumerate(state.columns)}
    if not layer.neurons or _is_shift(layer):
        return _shift_radius(layer, state, radius, columns)
    rows, writes = len(state.z), layer.writes
    size, count = np.zeros((rows, len(writes))), np.zeros(rows)
    moved = np.zeros((rows, len(writes)))
    which = single_reads(layer)
    own_done = [False] * len(writes)
    for neuron in np.flatnonzero(which < 0):
        _add_dense_radius(layer, int(neuron), state, radius, place, u, size, moved)
    count += float((which < 0).sum())
    for r, c in enumerate(layer.reads):
        chosen = np.flatnonzero(which == r)
        if not len(chosen):
            continue
        f, g, active = _pieces(layer, chosen, r)
        own = np.array([layer.eta if t == c else 0.0 for t in writes])
        own_done = [done or t == c for done, t in zip(own_done, writes, strict=True)]
        steepness(
            state.column(c).astype(np.float64), np.ascontiguousarray(radius[:, place[c]]),
            f.kinks.astype(np.float64), f.values.astype(np.float64), f.slopes.astype(np.float64),
            g.values.astype(np.float64), g.slopes.astype(np.float64), active, own, moved, size,
            count,
        )  # fmt: skip
    out = np.abs(layer.eta) * radius[:, [place[c] for c in columns]]
    for i, t in enumerate(writes):
        if t not in columns:
            continue
        if _erases(layer, i, state.column(t), radius[:, place[t]]):
            out[:, columns.index(t)] = 0.0
            continue
        x = np.abs(state.z[:, place[t]].astype(np.float64)) + 2 * radius[:, place[t]]
        bias = 0.0 if layer.b2 is None else abs(float(layer.b2[i]))
        carried = 0.0 if own_done[i] else abs(layer.eta) * radius[:, place[t]]
        rounding = (count + 8) * u * (size[:, i] + abs(layer.eta) * x + bias)
        if _sums_exactly(layer, i, state, radius, float(size[:, i].max()), u):
            rounding = np.zeros(rows)
        out[:, columns.index(t)] = 1.01 * (carried + moved[:, i] + rounding)
    return np.asarray(out)


def _sums_exactly(
    layer: FeedForward, i: int, state: State, radius: Floats, size: float, u: float
) -> bool:
    """Whether all terms of one output are multiples of a unit, below 1 / u of them."""
    used = [state.columns.index(c) for c in {*layer.reads, layer.writes[i]}]
    if layer.eta != 1.0 or radius[:, used].any() or (layer.W1 != 0).sum(axis=1).max(initial=0) > 1:
        return False
    chosen = np.flatnonzero(layer.W2[i])
    units = [math.inf if layer.b2 is None else low_unit(layer.b2[i : i + 1])]
    for r, c in enumerate(layer.reads):
        mine = chosen[layer.W1[chosen, r] != 0]
        if not len(mine):
            continue
        x = low_unit(state.column(c))
        own = np.minimum(unit_of(layer.W1[mine, r]) * x, unit_of(layer.b1[mine]))
        units.append(float((unit_of(layer.W2[i, mine]) * own).min()))
    z = state.column(layer.writes[i])
    units.append(low_unit(z))
    bias = 0.0 if layer.b2 is None else abs(float(layer.b2[i]))
    return size + bias + float(np.abs(z).max()) <= min(units) / (2 * u) * (1 - 1e-9)


def _erases(layer: FeedForward, i: int, x: Array, radius: Floats) -> bool:
    """Whether a layer does nothing to a coordinate but z - relu(z) + relu(-z) = 0, exactly."""
    t = layer.writes[i]
    writers = np.flatnonzero(layer.W2[i])
    if layer.eta != 1.0 or t not in layer.reads or (layer.b2 is not None and layer.b2[i] != 0):
        return False
    w = layer.W1[writers]
    own = w[:, layer.reads.index(t)]
    alone = bool(((w != 0).sum(axis=1) == 1).all() and (np.abs(own) == 1).all())
    if not alone or layer.b1[writers].any() or (layer.W2[i, writers] != -own).any():
        return False
    signs = sorted(own.tolist())
    return signs == [-1.0, 1.0] or (signs == [1.0] and bool((x - 2 * radius >= 0).all()))


def _is_shift(layer: FeedForward) -> bool:
    """Whether the only neuron is always 1: an output bias, written as a neuron."""
    return layer.neurons == 1 and layer.b2 is None and not layer.W1.any() and layer.b1[0] == 1


def _shift_radius(
    layer: FeedForward, state: State, radius: Floats, columns: tuple[int, ...]
) -> Floats:
    """One sum per coordinate: it rounds once, relative to its result."""
    u = float(np.finfo(state.z.dtype).eps) / 2
    place = [state.columns.index(c) for c in columns]
    out = abs(layer.eta) * radius[:, place]
    bias = layer.W2.sum(axis=1) if layer.b2 is None else layer.b2
    for t, b in zip(layer.writes, bias, strict=True):
        if t in columns:
            i = columns.index(t)
            after = np.abs(layer.eta * state.z[:, place[i]].astype(np.float64) + float(b))
            out[:, i] += 1.01 * u * (after + 2 * out[:, i])
    return np.asarray(out)


def _add_dense_radius(
    layer: FeedForward, r: int, state: State, radius: Floats, place: dict[int, int], u: float,
    size: Floats, moved: Floats,
) -> None:  # fmt: skip
    used = np.flatnonzero(layer.W1[r])
    cols = np.array([place[layer.reads[i]] for i in used], np.int64)
    w = layer.W1[r, used].astype(np.float64)
    pre, top = np.empty(len(state.z)), np.empty(len(state.z))
    dense_radius(state.z, radius, cols, w, float(layer.b1[r]), u, pre, top)
    for i in range(len(layer.writes)):
        weight = abs(float(layer.W2[i, r]))
        moved[:, i] += weight * pre
        size[:, i] += weight * top


def _attention_radius(
    layer: Layer, state: State, radius: Floats, corpus: Corpus, columns: tuple[int, ...]
) -> Floats:
    assert isinstance(layer, Attention)
    at = [state.columns.index(c) for c in columns]
    if layer.q.any() or layer.k.any():  # of these only zeros are sure not to overflow
        return np.full((len(state.z), len(columns)), math.inf)
    if layer.idle:
        return radius[:, at]
    u = float(np.finfo(state.z.dtype).eps) / 2
    used = [i for i, c in enumerate(state.columns) if layer.v[c] != 0]
    w = layer.v[[state.columns[i] for i in used]].astype(np.float64)
    z = state.z[:, used].astype(np.float64)
    value = (np.abs(z) + 2 * radius[:, used]) @ np.abs(w)
    off = radius[:, used] @ np.abs(w) + (len(used) + 2) * u * value
    mean = np.empty(len(z))
    mean_radius(value, off, corpus.counts, corpus.starts, u, mean)
    top = np.maximum.reduceat(value, corpus.starts[:-1])
    top = np.repeat(top, np.diff(corpus.starts))
    out = abs(layer.rho) * radius[:, at]
    for i, c in enumerate(columns):
        weight = abs(float(layer.u[c]))
        if weight or layer.rho != 1.0:
            x = (np.abs(state.z[:, at[i]].astype(np.float64)) + 2 * out[:, i]) * abs(layer.rho)
            out[:, i] = 1.01 * (out[:, i] + weight * mean + 4 * u * (x + weight * (top + mean)))
    return np.asarray(out)
