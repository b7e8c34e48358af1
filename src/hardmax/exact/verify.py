"""The proof that nothing rounds, from the weights and the data alone.

After the entry layer every quantity is an integer multiple of one unit and no
partial sum exceeds 2^53 units, so any order of summation gives the exact
result.  How the network was built is not used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardmax._types import Floats
from hardmax.exact._bounds import flat_and_size
from hardmax.exact.data import Corpus
from hardmax.exact.forward import State, states
from hardmax.exact.grid import mantissa
from hardmax.exact.layers import Attention, FeedForward, Layer
from hardmax.exact.piecewise import low_unit, piecewise, single_reads, unit_of
from hardmax.exact.radius import radii

__all__ = ["Bits", "no_rounding"]


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


class _Refused(Exception):
    """A step of a proof that does not go through."""


@np.errstate(over="ignore", invalid="ignore")  # altered weights are refused, not warned about
def no_rounding(layers: Sequence[Layer], entry: int, corpus: Corpus, column: int) -> Bits:
    """Prove that no layer from `entry` on rounds, whatever the layers before round.

    The coordinate written before `entry` may differ by one grid step between
    evaluations; every later layer must be flat there.
    """
    dtype = corpus.table.dtype
    bits = mantissa(dtype)
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
    if not _adds_a_constant(first[-1] if first else None):
        raise _Refused("the layer before the entry does more than add a constant")
    radius = radii(first[:-1], corpus, state.columns)[1]
    off, others = float(radius[:, state.columns.index(0)].max()), set(state.columns) - {0}
    if not off < step / 2:
        raise _Refused(f"projection error {off:.2g} is not below half a step {step:.2g}")
    for c in others:
        if state.column(c).any() or radius[:, state.columns.index(c)].any():
            raise _Refused("a coordinate other than 0 is not exactly zero on entry")
    return {c: (step if c == 0 else math.inf) for c in state.columns}, step


def _adds_a_constant(layer: Layer | None) -> bool:
    """Whether the last layer before the entry only adds the offset."""
    return isinstance(layer, FeedForward) and not layer.W1.any() and layer.eta == 1.0


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
        own = np.minimum(np.abs(w) * units[c], unit_of(b))
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
            unit[t] = min(unit[t], float(np.min(unit_of(out[0]) * own)))
    for i, t in enumerate(layer.writes):
        bias = float(np.abs(biases[i]).sum())
        unit[t] = min(unit[t], float(unit_of(biases[i]).min(initial=math.inf)))
        largest = float(np.abs(state.column(t)).max()) if t in state.columns else 0.0
        if _removes(layer, i, state):  # sums of parts of {z, -z} stay within [-z, z]
            largest = 0.0
        if unit[t] == 0:
            raise _Refused("weights so small that no unit divides them")
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
    if layer.idle and not (layer.q.any() or layer.k.any()):
        return 0.0
    if layer.rho != 1.0:
        raise _Refused("the residual factor of attention is not 1")
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
    unit = units[c] * float(unit_of(np.array(layer.u[t] * layer.v[c])))
    longest = int(corpus.lengths.max())
    here = float(np.abs(state.column(t)).max())
    units[t] = min(units[t], unit)
    if units[t] == 0:
        raise _Refused("weights so small that no unit divides them")
    if largest / units[c] > 2.0 ** (mantissa(x.dtype) - 3):
        raise _Refused("keys are so large that scores could tie by rounding")
    _check_scores(layer, asks, float(abs(layer.k[c])), (units[c], largest), x.dtype)
    if math.isfinite(layer.beta):
        sharp = float(np.abs(layer.q[q[0]] * (asks - step)).min() * abs(layer.k[c])) * units[c]
        off = weight * _soft_error(layer.beta * sharp, largest, units[c], longest, x.dtype)
        if t != 0 or not off < 0.49 * step:
            raise _Refused(
                f"softmax may miss the maximum by {off:.2g}, half a grid step is {step / 2:.2g}"
            )
    sizes = [longest * largest / units[c], (here + weight * largest) / units[t]]
    return max(math.log2(s) if s > 1 else 0.0 for s in sizes)


def _check_scores(
    layer: Attention, asks: Floats, key: float, sizes: tuple[float, float], dtype: Any
) -> None:
    """Refuse scores <q, z_i><k, z_l> that overflow, or fall below the normal floats, and tie."""
    if sizes[1] == 0:
        return
    q = float(np.abs(layer.q).max())
    least, most = (
        q * float(x) * key * s for x, s in zip((asks.min(), asks.max()), sizes, strict=True)
    )
    info = np.finfo(dtype)
    if not (4 * info.tiny < min(least, key * sizes[0]) and 4 * most < info.max):
        raise _Refused("scores leave the range of the float type")


def _soft_error(sharp: float, largest: float, unit: float, n: int, dtype: Any) -> float:
    """How far a softmax mean of multiples of `unit` can be from their maximum.

    `sharp` is the least score by which keys that differ by one unit differ, times
    the inverse temperature.  Below it x e^{-sharp x} is largest at x = 1; scores
    and sums round, in any order.
    """
    if largest == 0:
        return 0.0
    u = float(np.finfo(dtype).eps) / 2
    clear = sharp * (1 - 8 * u * largest / unit)
    if clear < 1:
        return math.inf
    tail = 1.01 * (n - 1) * unit * math.exp(-clear)
    return tail + (n + 12) * u * (largest + tail)
