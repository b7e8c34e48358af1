"""Selection written to be read: blocks of scores in torch, on any device.

Scores are sums in float64 in the order of the coordinates, so that equal tokens score
equally; a matrix product would not promise that.
"""

from __future__ import annotations

import torch

from hardmax._types import Ints
from hardmax.select.chosen import Chosen

__all__ = ["reference"]

_BLOCK = 1024


def products(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """<x_i, y_j>, coordinate after coordinate."""
    scores = x[:, :1] * y[:, 0]
    for c in range(1, x.shape[1]):
        scores += x[:, c : c + 1] * y[:, c]
    return scores


def reference(z: torch.Tensor, a: torch.Tensor | None, offsets: Ints, tie_tol: float) -> Chosen:
    """Argmax sets of <A z_i, z_j> over each sequence z[offsets[s]:offsets[s + 1]]."""
    counts, indices, margins = [], [], []
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        keys = z[start:stop].double()
        asks = keys if a is None else products(keys, a)
        scale = asks.norm(dim=1) * keys.norm(dim=1).max()
        for part in torch.arange(len(keys), device=z.device).split(_BLOCK):
            scores = products(asks[part], keys)
            best = scores.amax(dim=1)
            inside = scores >= (best - tie_tol * scale[part])[:, None]
            outside = scores.masked_fill(inside, -torch.inf).amax(dim=1)
            unit = torch.where(scale[part] > 0, scale[part], torch.ones_like(best))
            counts.append(inside.sum(dim=1))
            indices.append(inside.nonzero()[:, 1] + start)
            margins.append((best - outside) / unit)
    zero = torch.zeros(1, dtype=torch.int64, device=z.device)
    indptr = torch.cat([zero, torch.cat(counts).cumsum(0)])
    return Chosen(
        indptr.cpu().numpy(), torch.cat(indices).cpu().numpy(), torch.cat(margins).cpu().numpy()
    )
