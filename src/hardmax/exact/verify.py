"""Proofs about a network and its data, from the weights alone.

`no_rounding`: after the entry layer every quantity is an integer multiple of
one unit and no partial sum exceeds 2^53 units, so any order of summation gives
the exact result.  `error_radius`: values with the distance that any evaluation
can have from the real result.  Neither knows how the network was built.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hardmax._types import Array, Floats
from hardmax.exact._bounds import flat_and_size, mean_radius, steepness
from hardmax.exact.data import Corpus
from hardmax.exact.forward import State, plans, states
from hardmax.exact.layers import Attention, FeedForward, Layer
from hardmax.exact.piecewise import Piecewise, low_unit, piecewise, single_reads

__all__ = ["Bits", "error_radius", "no_rounding", "radii"]


@dataclass(frozen=True)
class Bits:
    """Result of `no_rounding`: bits used of those the float type has, or why not."""

    used: float
    available: int
    reason: str = ""

    @property
    def proved(self) -> bool:
        """True when no operation after the entry layer rounds."""
        return not self.reason and self.used <= self.available


def _mantissa(dtype: object) -> int:
    return int(np.finfo(dtype).nmant) + 1  # type: ignore


class _Refused(Exception):
    """A step of a proof that does not go through."""


def no_rounding(layers: Sequence[Layer], entry: int, corpus: Corpus, column: int) -> Bits:
    """Prove that no layer from `entry` on rounds, whatever the layers before round.

    The coordinate written before `entry` may differ by one grid step between
    evaluations; every later layer must be flat there.
    """
    dtype = corpus.table.dtype
    bits = _mantissa(dtype)
    used = 0.0
    try:
        units: dict[int, float] = {}
        step = 0.0
        before = None
        for i, state in enumerate(states(layers, corpus, (column,))):
            if i == entry:
                units, step = _enter(layers[:entry], corpus, state)
            if i > entry and before is not None:
                layer = layers[i - 1]
                if isinstance(layer, FeedForward):
                    used = max(used, _exact_feed(layer, before, units, step))
                    for c in set(layer.writes) & set(state.columns) - {0}:
                        # exact and flat, so the values seen are those of any evaluation
                        units[c] = max(units[c], low_unit(state.column(c)))
                else:
                    used = max(used, _exact_attention(layer, before, corpus, units, step))
            before = state
        if before is None or step == 0.0:
            raise _Refused("no layer lays the data on a grid")
    except _Refused as refusal:
        return Bits(math.inf, bits, str(refusal))
    return Bits(used, bits)


def _enter(first: Sequence[Layer], corpus: Corpus, state: State) -> tuple[dict[int, float], float]:
    """Units of the coordinates on entry, and the grid step of coordinate 0."""
    stored = state.column(0).astype(np.float64)
    step = float(np.spacing(state.column(0).max()))
    if low_unit(stored) < step:
        raise _Refused("coordinate 0 is not on a grid")
    spacing = np.spacing(state.column(0).min())
    if spacing < step:
        raise _Refused("the grid step changes within the data")
    radius = error_radius(first[:-1], corpus, 0)[1]
    if not float(radius.max()) < step / 2:
        raise _Refused(f"projection error {radius.max():.2g} is not below half a step {step:.2g}")
    if any(state.column(c).any() for c in state.columns if c != 0):
        raise _Refused("a coordinate other than 0 is not zero on entry")
    return {c: (step if c == 0 else math.inf) for c in state.columns}, step


def _unit_of(values: Array) -> Floats:
    """Largest power of two dividing each value (inf for zero)."""
    flat = np.asarray(values, np.float64).ravel()
    mantissa, power = np.frexp(flat)
    m = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    tail = np.log2(np.maximum(m & -m, 1).astype(np.float64))
    return np.where(flat == 0, math.inf, 2.0 ** (power - 53 + tail)).reshape(np.shape(values))


def _exact_feed(layer: FeedForward, state: State, units: dict[int, float], step: float) -> float:
    """Bits that one feed-forward layer needs; updates the units of the coordinates."""
    if layer.eta != 1.0:
        raise _Refused("a residual factor other than 1")
    used = 0.0
    total = dict.fromkeys(layer.writes, 0.0)
    unit = {c: units.get(c, math.inf) for c in layer.writes}
    which = single_reads(layer)
    constant = ~(layer.W1 != 0).any(axis=1)
    if ((which < 0) & ~constant).any():
        raise _Refused("a neuron after the entry reads several coordinates")
    biases = layer.W2[:, constant] * np.maximum(layer.b1[constant], 0)
    if layer.b2 is not None:
        biases = np.concatenate([biases, layer.b2[:, None]], axis=1)
    for r in range(len(layer.reads)):
        chosen = np.flatnonzero(which == r)
        if not len(chosen):
            continue
        c = layer.reads[r]
        x = state.column(c)
        w, b = layer.W1[chosen, r].astype(np.float64), layer.b1[chosen].astype(np.float64)
        own = np.minimum(np.abs(w) * units[c], _unit_of(b))
        ends = np.array([x.min(), x.max()], np.float64)
        parts = np.abs(np.concatenate([np.outer(ends, w), np.outer(ends, w) + b, b[None]]))
        live = np.isfinite(own)
        used = max(used, float(np.max(parts.max(axis=0)[live] / own[live], initial=0)))
        for i, t in enumerate(layer.writes):
            out = layer.W2[i : i + 1, chosen].astype(np.float64)
            if not out.any():
                continue
            one = FeedForward(
                (c,),
                (t,),
                layer.W1[chosen, r : r + 1],
                layer.b1[chosen],
                layer.W2[i : i + 1, chosen],
            )
            f, g = (piecewise(one, np.arange(len(chosen)), 0, size=s) for s in (False, True))
            flat, size = flat_and_size(
                x, step if c == 0 else 0.0, f.kinks, f.slopes, g.values, g.slopes, float(t == c)
            )
            if c == 0 and not flat:
                raise _Refused("a layer is not flat within one grid step of a token")
            total[t] += float(size)
            unit[t] = min(unit[t], float(np.min(_unit_of(out[0]) * own)))
    for i, t in enumerate(layer.writes):
        bias = float(np.abs(biases[i]).sum())
        unit[t] = min(unit[t], float(_unit_of(biases[i]).min(initial=math.inf)))
        largest = float(np.abs(state.column(t)).max()) if t in state.columns else 0.0
        if _removes(layer, i, state):  # sums of parts of {z, -z} stay within [-z, z]
            largest = 0.0
        if math.isfinite(unit[t]):
            used = max(used, (total[t] + bias + largest) / unit[t])
        units[t] = unit[t]
    return math.log2(used) if used > 1 else 0.0


def _removes(layer: FeedForward, i: int, state: State) -> bool:
    """Whether one neuron is -relu(z_t) for a coordinate that is nowhere negative."""
    t = layer.writes[i]
    if t not in layer.reads or t not in state.columns or (state.column(t) < 0).any():
        return False
    own = layer.W1[:, layer.reads.index(t)]
    alone = (layer.W1 != 0).sum(axis=1) == 1
    return bool((alone & (own == 1) & (layer.b1 == 0) & (layer.W2[i] == -1)).any())


def _exact_attention(
    layer: Attention, state: State, corpus: Corpus, units: dict[int, float], step: float
) -> float:
    """Bits of an attention layer whose chosen tokens all carry the same value."""
    if layer.idle:
        return 0.0
    if math.isfinite(layer.beta) or layer.rho != 1.0:
        raise _Refused("attention is not hardmax with residual 1")
    k, v, q, u = (np.flatnonzero(x) for x in (layer.k, layer.v, layer.q, layer.u))
    if len(k) != 1 or len(v) != 1 or k[0] != v[0] or len(q) != 1 or len(u) != 1 or k[0] == 0:
        raise _Refused("the value of attention is not its key")
    asks = state.column(int(q[0])).astype(np.float64)
    if not (layer.q[q[0]] * (asks - step) > 0).all():
        raise _Refused("a token does not ask with a positive sign")
    c, t = int(v[0]), int(u[0])
    x = state.column(c)
    largest = float(np.abs(x).max())
    weight = float(abs(layer.u[t] * layer.v[c]))
    unit = units[c] * float(_unit_of(np.array(layer.u[t] * layer.v[c])))
    longest = int(corpus.lengths.max())
    here = float(np.abs(state.column(t)).max())
    units[t] = min(units[t], unit)
    if largest / units[c] > 2.0 ** (_mantissa(x.dtype) - 3):
        raise _Refused("keys are so large that scores could tie by rounding")
    sizes = [longest * largest / units[c], (here + weight * largest) / units[t]]
    return max(math.log2(s) if s > 1 else 0.0 for s in sizes)


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


def radii(
    layers: Sequence[Layer], corpus: Corpus, keep: Sequence[int], exact_until: int = 0
) -> tuple[State, Floats]:
    """Final coordinates `keep` per row, and how far any evaluation can be from the reals.

    Valid for sums in any order, with or without fused operations.  The state
    before layer `exact_until` is taken as exact (proved by `no_rounding`).
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
    if not layer.neurons:
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
            f.kinks.astype(np.float64), f.slopes.astype(np.float64), g.values.astype(np.float64),
            g.slopes.astype(np.float64), active, own, moved, size, count,
        )  # fmt: skip
    out = np.abs(layer.eta) * radius[:, [place[c] for c in columns]]
    for i, t in enumerate(writes):
        if t not in columns:
            continue
        if _erases(layer, i, state.column(t), radius[:, place[t]]):
            out[:, columns.index(t)] = 0.0
            continue
        x = np.abs(state.z[:, place[t]].astype(np.float64)) + radius[:, place[t]]
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
        own = np.minimum(_unit_of(layer.W1[mine, r]) * x, _unit_of(layer.b1[mine]))
        units.append(float((_unit_of(layer.W2[i, mine]) * own).min()))
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
    return signs == [-1.0, 1.0] or (signs == [1.0] and bool((x - radius >= 0).all()))


def _shift_radius(
    layer: FeedForward, state: State, radius: Floats, columns: tuple[int, ...]
) -> Floats:
    """One sum per coordinate: it rounds once, relative to its result."""
    u = float(np.finfo(state.z.dtype).eps) / 2
    place = [state.columns.index(c) for c in columns]
    out = abs(layer.eta) * radius[:, place]
    bias = np.zeros(0) if layer.b2 is None else layer.b2
    for t, b in zip(layer.writes, bias, strict=True):
        if t in columns:
            i = columns.index(t)
            after = np.abs(layer.eta * state.z[:, place[i]].astype(np.float64) + float(b))
            out[:, i] += 1.01 * u * (after + out[:, i])
    return np.asarray(out)


def _add_dense_radius(
    layer: FeedForward, r: int, state: State, radius: Floats, place: dict[int, int], u: float,
    size: Floats, moved: Floats,
) -> None:  # fmt: skip
    used = np.flatnonzero(layer.W1[r])
    cols = [place[layer.reads[i]] for i in used]
    w = np.abs(layer.W1[r, used].astype(np.float64))
    z = np.abs(state.z[:, cols].astype(np.float64))
    terms = z @ w + abs(float(layer.b1[r]))
    off = radius[:, cols] @ w
    pre = off + (len(used) + 4) * u * (terms + off)
    real = state.z[:, cols].astype(np.float64) @ layer.W1[r, used].astype(np.float64)
    top = np.maximum(real + float(layer.b1[r]), 0) + pre
    for i in range(len(layer.writes)):
        weight = abs(float(layer.W2[i, r]))
        moved[:, i] += weight * pre
        size[:, i] += weight * top


def _attention_radius(
    layer: Layer, state: State, radius: Floats, corpus: Corpus, columns: tuple[int, ...]
) -> Floats:
    assert isinstance(layer, Attention)
    at = [state.columns.index(c) for c in columns]
    if layer.idle:
        return radius[:, at]
    if not layer.uniform:
        return np.full((len(state.z), len(columns)), math.inf)
    u = float(np.finfo(state.z.dtype).eps) / 2
    used = [i for i, c in enumerate(state.columns) if layer.v[c] != 0]
    w = layer.v[[state.columns[i] for i in used]].astype(np.float64)
    z = state.z[:, used].astype(np.float64)
    value = np.abs(z) @ np.abs(w)
    off = radius[:, used] @ np.abs(w) + (len(used) + 2) * u * value
    mean = np.empty(len(z))
    mean_radius(value, off, corpus.counts, corpus.starts, u, mean)
    top = np.maximum.reduceat(value, corpus.starts[:-1])
    top = np.repeat(top, np.diff(corpus.starts))
    out = abs(layer.rho) * radius[:, at]
    for i, c in enumerate(columns):
        weight = abs(float(layer.u[c]))
        if weight or layer.rho != 1.0:
            x = np.abs(state.z[:, at[i]].astype(np.float64)) * abs(layer.rho)
            out[:, i] = 1.01 * (out[:, i] + weight * mean + 4 * u * (x + weight * (top + mean)))
    return np.asarray(out)
