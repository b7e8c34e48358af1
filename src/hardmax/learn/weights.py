"""The parameters of a classifier as tensors, how they begin, and texts through them in torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from hardmax._types import Array
from hardmax.learn.attention import Attention, follow
from hardmax.learn.padded import Flat, lots

_AREA = 1 << 27

__all__ = ["Weights", "first_weights", "pooled"]


@dataclass
class Weights:
    """Word vectors, strength, decoder and scores; the parameters of `HardmaxModel`.

    `E` is (size, dim) float32; `rho` (heads,), `v` (outputs, dim), `b` (outputs,)
    and `A` (heads, s, s) or None are float64.
    """

    E: torch.Tensor
    rho: torch.Tensor
    v: torch.Tensor
    b: torch.Tensor
    A: torch.Tensor | None = None

    def to(self, device: torch.device) -> Weights:
        """A copy on a device."""
        E, rho, v, b = (p.detach().to(device).clone() for p in (self.E, self.rho, self.v, self.b))
        return Weights(E, rho, v, b, None if self.A is None else self.A.detach().to(device).clone())

    @property
    def gamma(self) -> torch.Tensor:
        """The step of each head, alpha / (1 + alpha) with alpha = log(1 + exp(rho))."""
        alpha = nn.functional.softplus(self.rho)
        return alpha / (1 + alpha)


def first_weights(
    size: int,
    dim: int,
    *,
    heads: int = 1,
    outputs: int = 1,
    alpha: float = 1.0,
    spread: float = 0.1,
    seed: int | Sequence[int] = 0,
    A: Array | None = None,
) -> Weights:
    """The weights at the beginning; they depend on the arguments alone."""
    rng = np.random.default_rng(seed)
    E = (spread * rng.standard_normal((size, dim))).astype(np.float32)
    v = rng.standard_normal((outputs, dim)) / np.sqrt(dim)
    rho = np.full(heads, alpha + np.log(-np.expm1(-alpha)))
    return Weights(
        torch.from_numpy(E),
        torch.from_numpy(rho),
        torch.from_numpy(v),
        torch.zeros(outputs, dtype=torch.float64),
        None if A is None else torch.from_numpy(np.array(A, dtype=np.float64)),
    )


def pooled(
    weights: Weights, z: torch.Tensor, flat: Flat, depth: int, by: Attention
) -> torch.Tensor:
    """Means of the texts after the layers, from the first vectors (m, dim); (b, dim)."""
    parts, rows = [], []
    area = None if by.kind in ("hardmax", "random") and not flat.split else _AREA
    for lot in lots(flat, z.dtype, None if area is None else area // len(weights.rho)):
        first = z[lot.at].unflatten(-1, (len(weights.rho), -1))
        last = follow(first, lot, weights.gamma, depth, weights.A, by).flatten(2)
        share = lot.weights / lot.weights.sum(dim=1, keepdim=True)
        parts.append((share[:, None] @ last)[:, 0])
        rows.append(lot.rows)
    out = torch.zeros(len(flat.kept), z.shape[1], dtype=z.dtype, device=z.device)
    return out.index_copy(0, torch.cat(rows), torch.cat(parts)) if parts else out
