"""The network as an ordinary torch module with n x n attention and dense weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from hardmax._types import Array
from hardmax.exact.layers import FeedForward, Layer

__all__ = ["ConstructedTransformer"]


class _Feed(nn.Module):
    """``z <- eta z + (W2 relu(W1 z + b1) + b2)`` with all zeros written out."""

    def __init__(self, layer: FeedForward, d: int, dtype: torch.dtype) -> None:
        super().__init__()
        w1, b1, w2, b2 = (torch.tensor(x, dtype=dtype) for x in layer.dense(d))
        self.W1, self.b1 = nn.Parameter(w1), nn.Parameter(b1)
        self.W2, self.b2 = nn.Parameter(w2), nn.Parameter(b2)
        self.eta = layer.eta

    def forward(self, z: Tensor, mask: Tensor | None) -> Tensor:
        hidden = torch.relu(z @ self.W1.T + self.b1)
        return self.eta * z + (hidden @ self.W2.T + self.b2)


class _Attend(nn.Module):
    """``z_i <- rho z_i + V mean over C_i of z_l`` with scores <Q z_i, K z_l>."""

    def __init__(
        self, Q: Tensor, K: Tensor, V: Tensor, rho: float, beta: float, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.Q, self.K, self.V = (nn.Parameter(x.to(dtype)) for x in (Q, K, V))
        self.rho, self.beta = rho, beta

    def forward(self, z: Tensor, mask: Tensor | None) -> Tensor:
        scores = (z @ self.Q.T) @ (z @ self.K.T).transpose(-1, -2)
        if mask is not None:
            scores = scores.masked_fill(~mask[..., None, :], -math.inf)
        values = z @ self.V.T
        if mask is not None:
            values = values.masked_fill(~mask[..., None], 0.0)
        if math.isinf(self.beta):
            chosen = (scores == scores.amax(dim=-1, keepdim=True)).to(z.dtype)
            mean = (chosen @ values) / chosen.sum(dim=-1, keepdim=True)
        else:
            mean = torch.softmax(self.beta * scores, dim=-1) @ values
        return self.rho * z + mean


class ConstructedTransformer(nn.Module):
    """Tokens (n, d) or (b, n, d) with a mask -> final tokens of the same shape.

    `label_coordinate` is the coordinate that holds the code of the label on
    every token.  `step`, where the network has positions, is added i times to
    the i-th token first.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        d: int,
        label_coordinate: int,
        dtype: torch.dtype,
        step: Array | None = None,
    ) -> None:
        super().__init__()
        self.step = None if step is None else nn.Parameter(torch.tensor(step, dtype=dtype))
        modules: list[nn.Module] = []
        for layer in layers:
            if isinstance(layer, FeedForward):
                modules.append(_Feed(layer, d, dtype))
            else:
                q, k, v = (torch.tensor(x, dtype=torch.float64) for x in layer.dense(d))
                modules.append(_Attend(q, k, v, layer.rho, layer.beta, dtype))
        self.layers = nn.ModuleList(modules)
        self.label_coordinate = label_coordinate

    def forward(self, z: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.step is not None:
            place = torch.arange(z.shape[-2], dtype=z.dtype, device=z.device)
            z = z + place[:, None] * self.step
        for layer in self.layers:
            z = cast(Tensor, layer(z, mask))
        return z

    def codes(self, z: Tensor, mask: Tensor | None = None) -> Tensor:
        """The code of the label of each sequence, read from its first token."""
        final = self(z, mask)
        return torch.round(final[..., 0, self.label_coordinate]).long()
