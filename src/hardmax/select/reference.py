"""Selection written to be read: blocks of scores in torch, on any device.

Scores are sums in float64 in the order of the coordinates, so that equal tokens score
equally; a matrix product would not promise that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from hardmax._check import is_torch
from hardmax._types import Ints
from hardmax.select.asking import mended, weak_rows
from hardmax.select.chosen import Chosen
from hardmax.select.scale import dense, unit

__all__ = ["reference"]

_BLOCK = 1024


def products(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """<x_i, y_j>, coordinate after coordinate."""
    scores = x[:, :1] * y[:, 0]
    for c in range(1, x.shape[1]):
        scores += x[:, c : c + 1] * y[:, c]
    return scores


def _asked(given: torch.Tensor, x: torch.Tensor, A: Any) -> torch.Tensor:
    """A z_i as rows; where floats would not do, exactly."""
    a = dense(A)
    a = a[0].T @ a[1] if isinstance(a, tuple) else a
    q = x if a is None else products(x, torch.from_numpy(a).to(x.device))
    host = q.cpu().numpy()
    exact = mended(host, given.cpu().numpy(), weak_rows(x.cpu().numpy(), host, A), A)
    return q if exact is host else torch.from_numpy(exact).to(q.device)


def reference(z: Any, A: Any, offsets: Ints, tie_tol: float) -> Chosen:
    """Argmax sets of <A z_i, z_j> over each sequence z[offsets[s]:offsets[s + 1]]."""
    given = z.detach() if is_torch(z) else torch.from_numpy(np.asarray(z))
    tokens = torch.from_numpy(unit(given.double().cpu().numpy(), offsets)).to(given.device)
    asking = _asked(given, tokens, A)
    counts, indices, margins = [], [], []
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        if start == stop:
            continue
        keys, asks = tokens[start:stop], asking[start:stop]
        scale = asks.norm(dim=1) * keys.norm(dim=1).max()
        for part in torch.arange(len(keys), device=keys.device).split(_BLOCK):
            scores = products(asks[part], keys)
            best = scores.amax(dim=1)
            inside = scores >= (best - tie_tol * scale[part])[:, None]
            outside = scores.masked_fill(inside, -torch.inf).amax(dim=1)
            whole = torch.where(scale[part] > 0, scale[part], torch.ones_like(best))
            counts.append(inside.sum(dim=1))
            indices.append(inside.nonzero()[:, 1] + start)
            margins.append((best - outside) / whole)
    zero = torch.zeros(1, dtype=torch.int64, device=given.device)
    indptr = torch.cat([zero, torch.cat(counts).cumsum(0)])
    return Chosen(
        indptr.cpu().numpy(), torch.cat(indices).cpu().numpy(), torch.cat(margins).cpu().numpy()
    )
