"""The layers that every construction is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Array, Floats
from hardmax.exact.layers import Attention, FeedForward, Layer, basis

__all__ = [
    "EDGE",
    "HIGH",
    "LOW",
    "Stair",
    "cleared",
    "coordinate",
    "embed",
    "in_blocks",
    "join",
    "limited",
    "neurons",
    "remove",
    "stair",
    "traps",
]

LOW, HIGH = 5.0 / 64, 59.0 / 64
"""The projections of all tokens lie in [LOW, HIGH]."""
EDGE = 1.0 / 16
"""The readout of code c is flat on [c + EDGE, c + 1 - EDGE]."""


def neurons(
    d: int, read: int, write: int, w: Array, b: Array, out: Array, dtype: Any
) -> FeedForward:
    """Neurons ``out_r relu(w_r z_read + b_r)`` added to one coordinate."""
    col = np.asarray(w, dtype)[:, None]
    return FeedForward(
        (read,), (write,), col, np.asarray(b, dtype), np.asarray(out, dtype)[None, :]
    )


def remove(d: int, column: int, dtype: Any, *, signed: bool = True) -> FeedForward:
    """``z_c <- z_c - relu(z_c) (+ relu(-z_c))``: zero, for z_c >= 0 without the second."""
    if signed:
        return neurons(d, column, column, np.array([1, -1]), np.zeros(2), np.array([-1, 1]), dtype)
    return neurons(d, column, column, np.ones(1), np.zeros(1), -np.ones(1), dtype)


def join(parts: Sequence[FeedForward], constant: dict[int, float] | None = None) -> FeedForward:
    """One layer with the neurons of all `parts`, and an output bias."""
    reads = tuple(sorted({c for p in parts for c in p.reads}))
    constant = {c: v for c, v in (constant or {}).items() if v != 0}
    writes = tuple(sorted({c for p in parts for c in p.writes} | set(constant)))
    h = sum(p.neurons for p in parts)
    dtype = parts[0].W1.dtype
    w1, w2 = np.zeros((h, len(reads)), dtype), np.zeros((len(writes), h), dtype)
    at = 0
    for p in parts:
        piece = slice(at, at + p.neurons)
        w1[piece, [reads.index(c) for c in p.reads]] = p.W1
        w2[[writes.index(c) for c in p.writes], piece] = p.W2
        at += p.neurons
    b1 = np.concatenate([p.b1 for p in parts])
    b2 = np.array([constant.get(c, 0.0) for c in writes], dtype) if constant else None
    return FeedForward(reads, writes, w1, b1, w2, b2)


def cleared(
    old: FeedForward, new: FeedForward, constant: dict[int, float], scale: float
) -> list[Layer]:
    """Remove the old content of a coordinate and write the new one.

    One layer, or two where the old numbers are so large that the new ones would
    be lost in the sum.
    """
    if scale <= 16:
        return [join([old, new], constant)]
    return [old, join([new], constant)]


def embed(a: Floats, mu: float, dtype: Any, *, clear: bool = True) -> FeedForward:
    """``z_0 <- <a, z> + mu`` and, with `clear`, ``z_1 <- 0``: valid on all of R^d."""
    d = len(a)
    w = a.astype(dtype)
    w[0] -= 1
    reads = tuple(int(c) for c in np.flatnonzero(w)) or (0,)
    row = w[list(reads)]
    first = FeedForward(
        reads, (0,), np.stack([row, -row]), np.zeros(2, dtype), np.array([[1, -1]], dtype)
    )
    parts = [first] + ([remove(d, 1, dtype)] if clear and d > 1 else [])
    return join(parts, {0: mu})


def traps(
    d: int, centres: Array, delta: Array, heights: Array, left: Array, dtype: Any
) -> FeedForward:
    """Bumps of z_0 added to z_1: h on [c - delta, c + delta], 0 outside twice that.

    Where `left` the four neurons are active to the left of their kinks.
    """
    side = np.where(left, -1.0, 1.0)[:, None]
    kinks = centres[:, None] + delta[:, None] * np.array([-2.0, -1.0, 1.0, 2.0])
    signs = np.array([1.0, -1.0, -1.0, 1.0])
    out = (heights / delta)[:, None] * signs
    w = np.broadcast_to(side, kinks.shape)
    return neurons(d, 0, 1, w.ravel(), (-side * kinks).ravel(), out.ravel(), dtype)


@dataclass(frozen=True, eq=False)
class Stair:
    """A function that is constant but for ramps: ``steps[r]`` between starts and ends."""

    starts: Floats
    ends: Floats
    steps: Floats
    first: float


def stair(d: int, read: int, write: int, f: Stair, dtype: Any) -> tuple[FeedForward, float]:
    """Two neurons per ramp, active away from the middle ramp, and the constant to add."""
    middle = len(f.starts) // 2
    left = np.arange(len(f.starts)) < middle
    side = np.where(left, -1.0, 1.0)
    slope = f.steps / (f.ends - f.starts)
    near = np.where(left, f.ends, f.starts)
    far = np.where(left, f.starts, f.ends)
    w = np.repeat(side, 2)
    b = np.stack([-side * near, -side * far], axis=1).ravel()
    out = np.stack([side * slope, -side * slope], axis=1).ravel()
    constant = f.first + float(f.steps[:middle].sum())
    return neurons(d, read, write, w, b, out, dtype), constant


def limited(layers: Sequence[Layer], width: int | None) -> list[Layer]:
    """Feed-forward layers wider than `width` as several; pairs stay together.

    Valid because no neuron reads what an earlier neuron of its layer writes,
    but for pairs relu(x), relu(-x) that remove a coordinate.
    """
    if width is None:
        return list(layers)
    out: list[Layer] = []
    for layer in layers:
        if isinstance(layer, Attention) or layer.neurons <= width:
            out.append(layer)
            continue
        cuts = _cuts(layer, width)
        for a, b in pairwise(cuts):
            out.append(_piece(layer, slice(a, b), first=a == 0))
    return out


def _cuts(layer: FeedForward, width: int) -> list[int]:
    """Where a layer is cut: ramps relu(x) - relu(y) and removals stay whole."""
    w1, w2 = layer.W1, layer.W2
    cuts, at = [0], 0
    while at < layer.neurons:
        size = 1
        if at + 1 < layer.neurons:
            parallel = (w1[at] == w1[at + 1]).all() or (w1[at] == -w1[at + 1]).all()
            size += int(parallel and (w2[:, at] == -w2[:, at + 1]).all())
        if at + size - cuts[-1] > width:
            cuts.append(at)
        at += size
    return [*cuts, layer.neurons]


def _piece(layer: FeedForward, piece: slice, *, first: bool) -> FeedForward:
    w1, w2 = layer.W1[piece], layer.W2[:, piece]
    reads = np.flatnonzero((w1 != 0).any(axis=0))
    reads = reads if len(reads) else np.zeros(1, np.int64)
    used = (w2 != 0).any(axis=1)
    if first and layer.b2 is not None:
        used |= layer.b2 != 0
    writes = np.flatnonzero(used)
    return replace(
        layer,
        reads=tuple(layer.reads[i] for i in reads),
        writes=tuple(layer.writes[i] for i in writes),
        W1=np.ascontiguousarray(w1[:, reads]),
        b1=layer.b1[piece],
        W2=np.ascontiguousarray(w2[writes]),
        b2=layer.b2[writes] if first and layer.b2 is not None else None,
        eta=layer.eta if first else 1.0,
    )


def in_blocks(layers: Sequence[Layer], d: int, width: int | None) -> list[Layer]:
    """The authors' block: attention, then feed-forward without output bias.

    Missing attention layers are idle (rho = 1, V = 0); an output bias becomes a
    neuron that is always 1.
    """
    if width is not None and width < 2:
        raise InputError(f"`width` must be at least 2; got {width}. Give a larger width.")
    plain = limited([_without_bias(x) for x in layers], width)
    dtype = next(x.W1.dtype for x in plain if isinstance(x, FeedForward))
    zero = np.zeros(d, dtype)
    out: list[Layer] = []
    for layer in plain:
        if isinstance(layer, FeedForward) and (not out or isinstance(out[-1], FeedForward)):
            out.append(Attention(zero, zero, zero, zero))
        if isinstance(layer, Attention) and out and isinstance(out[-1], Attention):
            out.append(FeedForward((0,), (0,), *_nothing(dtype)))
        out.append(layer)
    return out


def _nothing(dtype: Any) -> tuple[Array, Array, Array]:
    return np.zeros((0, 1), dtype), np.zeros(0, dtype), np.zeros((1, 0), dtype)


def _without_bias(layer: Layer) -> Layer:
    if isinstance(layer, Attention) or layer.b2 is None:
        return layer
    reads = layer.reads or (0,)
    w1 = layer.W1 if layer.reads else np.zeros((0, 1), layer.b2.dtype)
    return FeedForward(
        reads,
        layer.writes,
        np.concatenate([w1, np.zeros((1, w1.shape[1]), w1.dtype)]),
        np.concatenate([layer.b1, np.ones(1, w1.dtype)]),
        np.concatenate([layer.W2, layer.b2[:, None]], axis=1),
        None,
        layer.eta,
    )


def coordinate(d: int, index: int, value: float, dtype: Any) -> Array:
    """A coordinate vector of the float type of the network."""
    return basis(d, index, value, dtype)
