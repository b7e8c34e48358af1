"""Selection on a GPU: Triton kernels for large clouds, blocked torch for the rest.

Whatever path is taken, the sets are those of float64 scores, each one fixed chain of
operations.  float32 tokens are taken as exact numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from hardmax._types import Ints
from hardmax.select.chosen import Chosen
from hardmax.select.scale import dense, factors, unit

__all__ = ["blocked", "power_of_two", "runs_kernels", "select_gpu"]

_LARGE = 4096  # tokens from which on a sequence is a cloud of its own
_SCORES = 1 << 25  # of one block
_COMPILED = find_spec("numba") is not None  # a GPU machine may lack it


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def runs_kernels(device: torch.device) -> bool:
    """Whether the kernels can run: a CUDA device, or Triton's interpreter anywhere."""
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    return (device.type == "cuda" or interpreted) and _has_triton()


def power_of_two(e: torch.Tensor) -> torch.Tensor:
    """2^e in float64, exactly, for integers -1022 <= e <= 1023."""
    return ((e.long() + 1023) << 52).view(torch.float64)


def _unit(z: torch.Tensor, owner: torch.Tensor, sequences: int) -> torch.Tensor:
    """float64 tokens times a power of two per sequence, so that its largest entry is near 1."""
    tops = torch.zeros(sequences, dtype=torch.float64, device=z.device)
    tops.scatter_reduce_(0, owner, z.abs().amax(dim=1), "amax")
    e = -torch.frexp(tops)[1].long()[owner]
    half = e // 2
    return z * power_of_two(half)[:, None] * power_of_two(e - half)[:, None]


def select_gpu(
    z: torch.Tensor,
    A: Any,
    offsets: Ints,
    tie_tol: float = 0.0,
    *,
    margins: bool = True,
    kernels: bool | None = None,
) -> Chosen:
    """The sets of `select`, computed on the device of z.

    Parameters
    ----------
    z : (N, d) tensor
    A : (d, d) array, pair (U, V), or None
    offsets : (s + 1,) int array
    tie_tol : float
    margins : bool
        False leaves the margins NaN, which lets far more pairs be left out.
    kernels : bool, optional
        False keeps to plain torch; by default as `runs_kernels` says.

    Returns
    -------
    Chosen
    """
    given = z = z.detach()
    lengths = torch.from_numpy(np.diff(offsets)).to(z.device)
    owner = torch.repeat_interleave(torch.arange(len(lengths), device=z.device), lengths)
    z = z.double() if z.dtype != torch.float32 else z
    if z.dtype == torch.float64:
        z = _unit(z, owner, len(lengths))
    mats = _matrices(A, z.device)
    patch = _patch(given, z, owner, A)
    go = runs_kernels(z.device) if kernels is None else kernels
    parts = []
    for part in _groups(offsets, go):
        parts.append(_one(z, mats, offsets, part, tie_tol, margins, go, patch))
    return _join(parts, len(z))


def _matrices(A: Any, device: torch.device) -> list[torch.Tensor]:
    """What a token is multiplied by, one after the other; entries near 1."""
    a = dense(A)
    parts = () if a is None else (a[1], a[0].T) if isinstance(a, tuple) else (a,)
    return [torch.as_tensor(np.ascontiguousarray(x)).to(device) for x in parts]


_Patch = tuple[torch.Tensor, torch.Tensor]


def _patch(given: torch.Tensor, z: torch.Tensor, owner: torch.Tensor, A: Any) -> _Patch | None:
    """Rows that floats may get wrong (see `asking`), and what they ask in exact arithmetic."""
    if not _COMPILED or not len(z):
        return None
    from hardmax.select.asking import CANCELS, SHORT
    from hardmax.select.digits import exact_asks

    size = z.abs().amax(dim=1).double()
    tops = torch.zeros(int(owner[-1]) + 1, dtype=torch.float64, device=z.device)
    tops = tops.scatter_reduce(0, owner, size, "amax")[owner]
    weak = size < SHORT * tops
    if A is not None:
        q = z.double()
        reach = q.abs()
        for a in factors(A):
            b = torch.as_tensor(unit(a)).to(z.device)
            q, reach = q @ b.T, reach @ b.abs().T
        weak |= q.norm(dim=1) < SHORT * tops
        weak |= reach.norm(dim=1) > CANCELS * q.norm(dim=1)
    rows = (weak & (given != 0).any(dim=1)).nonzero()[:, 0]
    if not len(rows):
        return None
    values = exact_asks(given[rows].cpu().numpy(), factors(A))
    return rows, torch.from_numpy(values).to(z.device)


def _groups(offsets: Ints, kernels: bool) -> Iterator[Ints]:
    """Sequences to be searched together: large clouds alone, short ones of like length."""
    lengths = np.diff(offsets)
    order = np.argsort(lengths, kind="stable")
    at = 0
    while at < len(order):
        n = lengths[order[at]]
        stop = at + 1
        if not (kernels and n >= _LARGE):
            limit = max(1, _SCORES // max(1, int(4 * n * n)))
            near = np.searchsorted(lengths[order], max(2 * n, 16), side="right")
            stop = max(at + 1, min(int(near), at + limit))
        yield order[at:stop]
        at = stop


_Part = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def _one(
    z: torch.Tensor,
    mats: list[torch.Tensor],
    offsets: Ints,
    which: Ints,
    tie_tol: float,
    margins: bool,
    kernels: bool,
    patch: _Patch | None,
) -> _Part:
    """Rows, counts, chosen keys and margins of one group of sequences."""
    starts = torch.from_numpy(offsets[which]).to(z.device)
    lengths = torch.from_numpy(np.diff(offsets)[which]).to(z.device)
    if kernels and len(which) == 1 and int(lengths[0]) >= _LARGE:
        from hardmax.select._cloud import search

        a, b = int(offsets[which[0]]), int(offsets[which[0] + 1])
        inside = None
        if patch is not None:
            these = (patch[0] >= a) & (patch[0] < b)
            inside = patch[0][these] - a, patch[1][these]
        found = search(z[a:b], mats, tie_tol, margins=margins, patch=inside)
        margin = torch.full_like(found.score, torch.nan)
        if margins:
            margin = (found.score - found.second) / found.scale
        rows = torch.arange(a, b, device=z.device)
        return rows, found.indptr.diff(), found.indices + a, margin
    return blocked(z, mats, starts, lengths, tie_tol, patch)


def _join(parts: list[_Part], n: int) -> Chosen:
    """Groups in the order of the tokens."""
    rows, counts, indices, margin = (
        torch.cat([p[k] for p in parts]).cpu().numpy() for k in range(4)
    )
    order = np.argsort(rows, kind="stable")
    if len(parts) > 1:
        pairs = np.argsort(np.repeat(rows, counts), kind="stable")
        counts, margin, indices = counts[order], margin[order], indices[pairs]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return Chosen(indptr, np.asarray(indices, dtype=np.int64), margin)


def _chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Products of the rows of x with those of y, coordinate after coordinate."""
    s = x[..., 0] * y[..., 0]
    for c in range(1, x.shape[-1]):
        s = s + x[..., c] * y[..., c]
    return s


def _asks(z: torch.Tensor, mats: list[torch.Tensor]) -> torch.Tensor:
    for a in mats:
        z = torch.stack([_chain(row.expand_as(z), z) for row in a], dim=1)
    return z


def blocked(
    z: torch.Tensor,
    mats: list[torch.Tensor],
    starts: torch.Tensor,
    lengths: torch.Tensor,
    tie_tol: float,
    patch: _Patch | None = None,
) -> _Part:
    """Sequences of like length, padded, in blocks of a float64 score matrix.

    The matrix product only proposes: keys within its rounding of the tolerance are
    decided by chains.

    Returns
    -------
    rows, counts, indices, margin : tensors
        The rows of the sequences, ascending within each, with their chosen keys.
    """
    wide = int(lengths.max())
    place = torch.arange(wide, device=z.device)
    real = place < lengths[:, None]
    token = torch.where(real, starts[:, None] + place, starts[:, None])
    keys = z[token.flatten()].double()
    asks = _asks(keys, mats)
    if patch is not None:
        place_of = torch.full((len(z),), -1, device=z.device)
        place_of[patch[0]] = torch.arange(len(patch[0]), device=z.device)
        at = place_of[token.flatten()]
        asks = torch.where((at >= 0)[:, None], patch[1][at], asks)
    size = _chain(keys, keys).sqrt().view(token.shape)
    scale = _chain(asks, asks).sqrt().view(token.shape) * (size * real).amax(1, keepdim=True)
    keys, asks = keys.view(*token.shape, -1), asks.view(*token.shape, -1)
    tol, hits, margins = tie_tol * scale, [], []
    for part in place.split(max(1, _SCORES // (wide * len(token)))):
        hit, margin = _block(asks[:, part], keys, real, tol[:, part], scale[:, part])
        hit[:, 1] += part[0]
        hits.append(hit[real[hit[:, 0], hit[:, 1]]])
        margins.append(margin)
    s, i, j = torch.cat(hits).T
    order = torch.argsort((s * wide + i) * wide + j)
    s, i, j = s[order], i[order], j[order]
    counts = torch.bincount(s * wide + i, minlength=real.numel()).view(real.shape)[real]
    return token[real], counts, token[s, j], torch.cat(margins, dim=1)[real]


def _block(
    asks: torch.Tensor,
    keys: torch.Tensor,
    real: torch.Tensor,
    tol: torch.Tensor,
    scale: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(sequence, row, key) of every chosen key, and the margin of every row."""
    scores = torch.bmm(asks, keys.mT).masked_fill(~real[:, None, :], -torch.inf)
    room = tol + (keys.shape[-1] + 8) * 2.0**-51 * scale
    may = (scores >= (scores.amax(2) - room)[..., None]).nonzero()
    s, i, j = may.T
    exact = _chain(asks[s, i], keys[s, j])
    row = s * asks.shape[1] + i
    best = torch.full((tol.numel(),), -torch.inf, dtype=exact.dtype, device=exact.device)
    best.scatter_reduce_(0, row, exact, "amax")
    chosen = exact >= (best - tol.flatten())[row]
    scores[s, i, j] = torch.where(chosen, -torch.inf, exact)
    unit = torch.where(scale > 0, scale, torch.ones_like(scale))
    return may[chosen], (best.view(tol.shape) - scores.amax(2)) / unit
