"""What the tokens of padded texts move toward, on any device: hardmax, and its alternatives.

The definition is that of `select` and `mean_of`: choices are made without gradient, ties are
averaged by multiplicity, and gradients flow through the values.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hardmax.learn.padded import Lot
from hardmax.select.gpu import runs_kernels

__all__ = ["KINDS", "SOFT", "Attention", "follow", "in_one_launch"]

KINDS = ("hardmax", "softmax", "uniform", "random")
_MOST = 1 << 26
SOFT = 0.1
"""Width of the soft choice that A learns from, in |A z_i| max_j |z_j|."""
_NARROW = 4


@dataclass(frozen=True)
class Attention:
    """How tokens choose.

    Attributes
    ----------
    kind : str
        "hardmax"; "softmax" of the scores over `temperature`; "uniform", the mean
        over all; "random", one token drawn by multiplicity from `source`.
    learn : bool
        Whether A receives a gradient from the best and the second-best key, as if
        the choice between them were soft.
    """

    kind: str = "hardmax"
    tie_tol: float = 1e-12
    temperature: float = 0.0
    learn: bool = False
    source: torch.Generator | None = None


def follow(
    z: torch.Tensor,
    lot: Lot,
    gamma: torch.Tensor,
    depth: int,
    A: torch.Tensor | None,
    by: Attention,
) -> torch.Tensor:
    """Tokens (b, n, h, s) after `depth` layers of heads with steps gamma (h,)."""
    plain = by.kind == "hardmax" and A is None and lot.same is None
    if plain and z.is_cuda and runs_kernels(z.device) and _fits(z):
        return in_one_launch(z, lot, gamma, depth, by.tie_tol)
    z = z.transpose(1, 2)
    size = gamma.to(z)[None, :, None, None]
    for _ in range(depth):
        z = z + size * (_target(z, lot, A, by) - z)
    return z.transpose(1, 2)


def _fits(z: torch.Tensor) -> bool:
    from hardmax.select.gpu_batch import fits

    return fits(z.shape[1], z.shape[2] * z.shape[3], z.shape[2])


def in_one_launch(
    z: torch.Tensor, lot: Lot, gamma: torch.Tensor, depth: int, tie_tol: float
) -> torch.Tensor:
    """`follow` for plain hardmax layers through the kernels for batches."""
    from hardmax.select.gpu_batch import deep

    b, n, heads, s = z.shape
    steps = gamma.to(z)[None].expand(depth, heads)
    out = deep(
        z.reshape(b, n, heads * s).contiguous(), steps, lot.weights > 0, lot.weights,
        heads=heads, tie_tol=tie_tol, keys=lot.seen,
    )  # fmt: skip
    return out.reshape(z.shape)


def _target(z: torch.Tensor, lot: Lot, A: torch.Tensor | None, by: Attention) -> torch.Tensor:
    """What each token moves toward: (b, h, n, s) -> the same."""
    if by.kind == "random":
        return _take(z, _drawn(z, lot, by.source))
    if by.kind == "uniform":
        return _shares(lot, z.dtype)[:, None] @ z
    asks = z if A is None else torch.einsum("hrc,bhnc->bhnr", A.to(z), z)
    if by.kind == "softmax":
        return _soft(z, asks, lot, by.temperature)
    return _hard(z, asks, lot, A, by)


def _take(z: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """The tokens z[b, h, at[b, h, i]]."""
    return torch.take_along_dim(z, at[..., None], dim=2)


def _open(lot: Lot) -> torch.Tensor:
    """Who may choose whom, (b, 1 or n, n)."""
    return lot.seen[:, None] if lot.same is None else lot.seen[:, None] & lot.same


def _shares(lot: Lot, dtype: torch.dtype) -> torch.Tensor:
    weights = torch.where(_open(lot), lot.weights[:, None], 0.0).to(dtype)
    return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-30)


def _drawn(z: torch.Tensor, lot: Lot, source: torch.Generator | None) -> torch.Tensor:
    """One token for each, drawn by multiplicity."""
    b, h, n, _ = z.shape
    sums = _shares(lot, torch.float64).cumsum(dim=-1)
    u = torch.rand(b, n, h, generator=source, device=z.device, dtype=torch.float64)
    u = u.reshape(b, 1, n * h) if lot.same is None else u
    u = u * sums[..., -1:]
    at = torch.searchsorted(sums.contiguous(), u.contiguous(), right=True).clamp(max=n - 1)
    return at.reshape(b, n, h).transpose(1, 2)


def _soft(z: torch.Tensor, asks: torch.Tensor, lot: Lot, temperature: float) -> torch.Tensor:
    """Softmax means; a token of multiplicity w counts as w tokens."""
    bias = torch.where(_open(lot), lot.weights[:, None], 0.0).log()[:, None].to(z)
    bias = bias.clamp(min=torch.finfo(z.dtype).min / 4)  # padding asks too: no row without keys
    scores = asks @ z.transpose(2, 3) / temperature
    return torch.softmax(scores + bias, dim=-1) @ z


@dataclass(frozen=True)
class _Choice:
    """Best key of each token; who ties; the second-best key, the best one where there is none."""

    at: torch.Tensor
    tied: torch.Tensor
    second: torch.Tensor


def _lengths(x: torch.Tensor) -> torch.Tensor:
    return x.square().sum(dim=-1).sqrt()


def _reach(z: torch.Tensor, asks: torch.Tensor, lot: Lot) -> torch.Tensor:
    """|A z_i| max_j |z_j| over the keys that token i may choose, (b, h, n)."""
    size = torch.where(lot.seen[:, None], _lengths(z), 0.0)
    if lot.same is None:
        longest = size.amax(dim=-1, keepdim=True)
    else:
        longest = torch.where(lot.same[:, None], size[:, :, None, :], 0.0).amax(dim=-1)
    return _lengths(asks) * longest


def _scores(asks: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """All products of some tokens with the keys, coordinate after coordinate as elsewhere."""
    if z.shape[-1] > _NARROW:
        return asks @ z.transpose(-1, -2)
    out = asks[..., :, None, 0] * z[..., None, :, 0]
    for c in range(1, z.shape[-1]):
        out += asks[..., :, None, c] * z[..., None, :, c]
    return out


@torch.no_grad()
def _choose(
    z: torch.Tensor, asks: torch.Tensor, lot: Lot, slack: torch.Tensor, two: bool
) -> _Choice:
    """The choices of all tokens, some rows at a time."""
    b, h, n, _ = z.shape
    closed, step = ~_open(lot)[:, None], max(1, _MOST // (b * h * n))
    found = []
    for low in range(0, n, step):
        rows = slice(low, low + step)
        shut = closed if lot.same is None else closed[:, :, rows]
        scores = _scores(asks[:, :, rows], z).masked_fill_(shut, -torch.inf)
        best, at = scores.topk(2, dim=-1) if two and n > 1 else scores.max(dim=-1, keepdim=True)
        near = scores >= (best[..., 0] - slack[:, :, rows])[..., None]
        second = torch.where(torch.isfinite(best[..., -1]), at[..., -1], at[..., 0])
        found.append((at[..., 0], near.sum(dim=-1) > 1, second))
    at, tied, second = (torch.cat(parts, dim=2) for parts in zip(*found, strict=True))
    return _Choice(at, tied, second)


def _hard(
    z: torch.Tensor, asks: torch.Tensor, lot: Lot, A: torch.Tensor | None, by: Attention
) -> torch.Tensor:
    """The mean over the chosen keys."""
    z0, asks0 = z.detach(), asks.detach()
    reach = _reach(z0, asks0, lot)
    choice = _choose(z0, asks0, lot, by.tie_tol * reach, by.learn)
    out = _take(z, choice.at)
    if A is not None and by.learn:
        out = out + _straight(z0, A, choice, SOFT * reach)
    where = (choice.tied & (lot.weights[:, None] > 0)).nonzero()
    return _with_ties(out, z, asks0, lot, by.tie_tol * reach, where) if len(where) else out


def _straight(
    z: torch.Tensor, A: torch.Tensor, choice: _Choice, scale: torch.Tensor
) -> torch.Tensor:
    """Zero, with the gradient in A of a soft choice between the best key and the next."""
    way = _take(z, choice.at) - _take(z, choice.second)
    gap = (torch.einsum("hrc,bhnc->bhnr", A.to(z), z) * way).sum(dim=-1)
    share = torch.sigmoid(gap / torch.where(scale > 0, scale, 1.0))
    share = torch.where(choice.tied, 0.0, share - share.detach())
    return share[..., None] * way


def _with_ties(
    out: torch.Tensor, z: torch.Tensor, asks: torch.Tensor, lot: Lot, slack: torch.Tensor,
    where: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    """The means of the rows that tie, put in their places."""
    step = max(1, _MOST // (8 * z.shape[2] * z.shape[3]))
    means = []
    for low in range(0, len(where), step):
        b, h, i = where[low : low + step].T
        keys = z[b, h]
        scores = _scores(asks[b, h, i][:, None], keys.detach())[:, 0]
        opened = lot.seen[b] if lot.same is None else lot.seen[b] & lot.same[b, i]
        scores = torch.where(opened, scores, -torch.inf)
        chosen = scores >= scores.amax(dim=-1, keepdim=True) - slack[b, h, i][:, None]
        share = lot.weights[b] * chosen
        share = share / share.sum(dim=-1, keepdim=True)
        means.append((share[:, None] @ keys)[:, 0])
    return out.index_put((where[:, 0], where[:, 1], where[:, 2]), torch.cat(means))
