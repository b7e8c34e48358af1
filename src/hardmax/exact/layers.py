"""A network as data: feed-forward layers and rank-one attention layers.

Tokens z_1, ..., z_n of one sequence pass through the layers one after another.

    feed-forward   z <- eta z + W2 relu(W1 z + b1) + b2
    attention      z_i <- rho z_i + u mean over C_i of <v, z_l>,
                   C_i = argmax over l of <q, z_i> <k, z_l>   (all ties)

With a finite `beta` the mean over C_i becomes the softmax mean at that inverse
temperature.  Coordinates are counted from 0 in the code.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from hardmax._types import Array

__all__ = ["Attention", "FeedForward", "Layer", "digest_layers", "pack", "shift", "unpack"]


@dataclass(frozen=True, eq=False)
class FeedForward:
    """``z <- eta z + W2 relu(W1 z + b1) + b2``, zero outside `reads` and `writes`.

    W1 is (h, len(reads)), b1 (h,), W2 (len(writes), h), b2 (len(writes),) or None.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    W1: Array
    b1: Array
    W2: Array
    b2: Array | None = None
    eta: float = 1.0

    @property
    def neurons(self) -> int:
        """Number of hidden neurons."""
        return len(self.b1)

    def nonzeros(self) -> int:
        """Number of weights that are not zero."""
        parts = [self.W1, self.b1, self.W2] + ([] if self.b2 is None else [self.b2])
        return sum(int(np.count_nonzero(p)) for p in parts) + (self.eta not in (0.0, 1.0))

    def parameters(self, d: int) -> int:
        """Number of weights when every entry of W1, b1, W2 and b2 is counted."""
        return self.neurons * (2 * d + 1) + (0 if self.b2 is None else d)

    def dense(self, d: int) -> tuple[Array, Array, Array, Array]:
        """W1 (h, d), b1 (h,), W2 (d, h), b2 (d,) with all zeros written out."""
        dtype = self.W1.dtype
        w1 = np.zeros((self.neurons, d), dtype)
        w1[:, list(self.reads)] = self.W1
        w2 = np.zeros((d, self.neurons), dtype)
        w2[list(self.writes)] = self.W2
        b2 = np.zeros(d, dtype)
        if self.b2 is not None:
            b2[list(self.writes)] = self.b2
        return w1, self.b1, w2, b2


@dataclass(frozen=True, eq=False)
class Attention:
    """``z_i <- rho z_i + u mean_{C_i} <v, z_l>`` with scores ``<q, z_i><k, z_l>``."""

    q: Array
    k: Array
    v: Array
    u: Array
    rho: float = 1.0
    beta: float = math.inf

    @property
    def uniform(self) -> bool:
        """True when all scores are zero, so that every mean is over all tokens."""
        return not (self.q.any() and self.k.any())

    @property
    def idle(self) -> bool:
        """True when the layer leaves every token where it is."""
        return not (self.u.any() and self.v.any()) and self.rho == 1.0

    def nonzeros(self) -> int:
        """Number of weights that are not zero."""
        parts = (self.q, self.k, self.v, self.u)
        return sum(int(np.count_nonzero(p)) for p in parts) + (self.rho not in (0.0, 1.0))

    def parameters(self, d: int) -> int:
        """Number of weights when every entry of q, k, u and v is counted."""
        return 4 * d

    def dense(self, d: int) -> tuple[Array, Array, Array]:
        """Q (1, d), K (1, d) and V (d, d)."""
        return self.q[None, :], self.k[None, :], np.outer(self.u, self.v)


Layer: TypeAlias = FeedForward | Attention


def shift(values: Array, columns: Sequence[int]) -> FeedForward:
    """The layer without neurons that adds `values` to `columns`."""
    cols = tuple(int(c) for c in columns)
    w1, b1, w2 = (np.zeros(s, values.dtype) for s in ((0, 0), (0,), (len(cols), 0)))
    return FeedForward((), cols, w1, b1, w2, values)


def basis(d: int, index: int, value: float = 1.0, dtype: Any = np.float64) -> Array:
    """The vector with `value` at `index` and zeros elsewhere."""
    e = np.zeros(d, dtype)
    e[index] = value
    return e


def at_temperature(layers: Sequence[Layer], beta: float) -> tuple[Layer, ...]:
    """The same layers with softmax attention at inverse temperature `beta`."""
    return tuple(replace(x, beta=beta) if isinstance(x, Attention) else x for x in layers)


_FF = ("W1", "b1", "W2", "b2")
_AT = ("q", "k", "v", "u")


def pack(layers: Sequence[Layer]) -> tuple[dict[str, Array], list[dict[str, Any]]]:
    """Arrays by name and one plain record per layer: what is saved and digested."""
    tensors: dict[str, Array] = {}
    records: list[dict[str, Any]] = []
    for i, layer in enumerate(layers):
        names = _FF if isinstance(layer, FeedForward) else _AT
        for name in names:
            value = getattr(layer, name)
            if value is not None:
                tensors[f"{i}.{name}"] = np.ascontiguousarray(value)
        if isinstance(layer, FeedForward):
            records.append(
                {
                    "kind": "feed_forward",
                    "reads": list(layer.reads),
                    "writes": list(layer.writes),
                    "eta": layer.eta,
                }
            )
        else:
            beta = None if math.isinf(layer.beta) else layer.beta
            records.append({"kind": "attention", "rho": layer.rho, "beta": beta})
    return tensors, records


def unpack(tensors: dict[str, Array], records: list[dict[str, Any]]) -> tuple[Layer, ...]:
    """The layers that `pack` wrote."""
    layers: list[Layer] = []
    for i, r in enumerate(records):
        if r["kind"] not in ("feed_forward", "attention"):
            raise ValueError(f"layer {i} of the kind {r['kind']!r}")
        if r["kind"] == "feed_forward":
            w1, b1, w2 = (tensors[f"{i}.{n}"] for n in _FF[:3])
            reads, writes = tuple(r["reads"]), tuple(r["writes"])
            b2 = tensors.get(f"{i}.b2")
            layers.append(FeedForward(reads, writes, w1, b1, w2, b2, float(r["eta"])))
        else:
            beta = math.inf if r["beta"] is None else float(r["beta"])
            vectors = {n: tensors[f"{i}.{n}"] for n in _AT}
            layers.append(Attention(**vectors, rho=float(r["rho"]), beta=beta))
    return tuple(layers)


def digest_layers(layers: Sequence[Layer], extra: str = "") -> str:
    """SHA-256 of every weight of every layer."""
    tensors, records = pack(layers)
    h = hashlib.sha256((repr(records) + extra).encode())
    for name, value in tensors.items():
        h.update(f"{name}{value.shape}{value.dtype}".encode())
        h.update(value.tobytes())
    return h.hexdigest()
