"""The one attention: the mean over the tokens with the largest score."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from hardmax._check import is_torch
from hardmax._types import Bools, Ints
from hardmax.select import Chosen, select

__all__ = ["attend", "mean_of", "soft_mean"]


def mean_of(
    values: torch.Tensor, chosen: Chosen, weights: torch.Tensor | None = None
) -> torch.Tensor:
    """The mean of `values` over each row of `chosen`; gradients flow to the values.

    `weights` are the multiplicities of the values; all one when None.
    """
    indices = torch.from_numpy(chosen.indices).to(values.device)
    picked = values[indices]
    if chosen.single:
        return picked
    rows = torch.from_numpy(chosen.rows).to(values.device)
    w = values.new_ones(len(indices)) if weights is None else weights[indices]
    size = values.new_zeros(len(chosen.indptr) - 1).index_add(0, rows, w)
    start = picked[torch.from_numpy(chosen.indptr[:-1]).to(values.device)]
    shift = (picked - start[rows]) * (w / size[rows])[:, None]
    return start + torch.zeros_like(start).index_add(0, rows, shift)


def soft_mean(
    z: torch.Tensor, mask: Bools, A: Any, temperature: float, *, causal: bool = False
) -> torch.Tensor:
    """The softmax mean at `temperature`, for tokens (b, n, d) of one head.

    A may be one matrix per sequence, (b, d, d); with `causal` a token looks only at
    itself and at those before it.

    Tokens and A are scaled by powers of two first, so that large tokens give
    the hard limit and not an overflow.
    """
    limit = torch.finfo(z.dtype).max ** 0.9
    top = z.detach().abs().amax(dim=(1, 2), keepdim=True)
    unit = z / torch.exp2(torch.frexp(top)[1].to(z.dtype) / 2) ** 2
    a, shift = _scaled(A, z)
    sharp = torch.exp2(2 * torch.frexp(top)[1].double() + shift) / temperature
    asks = (unit if a is None else unit @ a.mT) * sharp.clamp(max=limit).to(z.dtype)
    keys = torch.from_numpy(mask).to(z.device)[:, None, :]
    if causal:
        keys = keys & torch.ones(z.shape[1], z.shape[1], dtype=torch.bool, device=z.device).tril()
    return torch.nn.functional.scaled_dot_product_attention(
        asks, unit, z, attn_mask=None if mask.all() and not causal else keys, scale=1.0
    )


def _scaled(A: Any, like: torch.Tensor) -> tuple[torch.Tensor | None, float]:
    """A as a dense tensor with its largest entry near 1, and the power of two left out."""
    if A is None:
        return None, 0.0
    a = _tensor(A[0], like).T @ _tensor(A[1], like) if isinstance(A, tuple) else _tensor(A, like)
    shift = float(torch.frexp(a.detach().abs().max())[1])
    return a * 2.0**-shift, shift


def _tensor(x: Any, like: torch.Tensor) -> torch.Tensor:
    return (x if is_torch(x) else torch.from_numpy(np.asarray(x, dtype=np.float64))).to(like)


def attend(
    z: torch.Tensor, mask: Bools, mats: list[Any], temperature: float, tie_tol: float
) -> torch.Tensor:
    """What each token moves toward: (b, n, d) -> (b, n, d), head by head.

    Heads split the coordinates into equal blocks.  Padding neither attends nor
    is attended to; its rows come back unchanged.
    """
    keep = torch.from_numpy(mask).to(z.device)
    if temperature > 0:
        blocks = z.chunk(len(mats), dim=-1)
        soft = [soft_mean(x, mask, a, temperature) for x, a in zip(blocks, mats, strict=True)]
        return torch.where(keep[..., None], torch.cat(soft, dim=-1), z)
    whole = bool(mask.all())
    flat = z.reshape(-1, z.shape[-1]) if whole else z[keep]
    offsets: Ints = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
    means = [
        mean_of(x, select(x.detach(), a, offsets, tie_tol=tie_tol))
        for x, a in zip(flat.chunk(len(mats), dim=-1), mats, strict=True)
    ]
    mean = torch.cat(means, dim=-1) if len(means) > 1 else means[0]
    if whole:
        return mean.reshape(z.shape)
    return z.index_put((keep.nonzero()[:, 0], keep.nonzero()[:, 1]), mean)
