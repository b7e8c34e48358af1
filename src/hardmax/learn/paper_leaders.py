"""Leaders of texts under trained weights: by the rule of the authors' code, and by ours.

The authors count, after one layer more than the model has, the places that are
the first to attain the largest score of their own row, floats compared by
equality.  Ours counts classes of equal words that were strictly alone in their
own chosen set at some layer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from hardmax._types import Array, Bools, Ints
from hardmax.learn.paper import PaperModel

__all__ = ["TextLeaders", "histogram", "leaders_by_birth", "leaders_by_code", "summary"]

_TIE = 1e-12
_LOT = 250


@dataclass(frozen=True)
class TextLeaders:
    """Which places of each text lead at the end, and how many led at layer 0.

    `places` is (texts, words) and marks one place per leader; `initial` counts
    per text; `value` is |<v, z> + b| of every place at the end.
    """

    places: Bools
    initial: Ints
    value: Array

    @property
    def counts(self) -> Ints:
        """Leaders per text."""
        return np.asarray(self.places.sum(axis=1), np.int64)


def leaders_by_code(model: PaperModel, ids: Array) -> TextLeaders:
    """Leaders as the authors' notebook counts them: `depth` + 1 updates, first index, `==`.

    The first scores are float32 and everything later float64, as there.
    """
    return _over(model, ids, _by_code)


def leaders_by_birth(model: PaperModel, ids: Array) -> TextLeaders:
    """Leaders as this library counts them: classes strictly alone at a layer 0 .. depth."""
    return _over(model, ids, _by_birth)


def _over(model: PaperModel, ids: Array, rule: Any) -> TextLeaders:
    E, v = model.E.detach(), model.v.detach().double()
    alpha = model.alpha.detach()
    parts: list[list[Array]] = []
    for low in range(0, len(ids), _LOT):
        rows = torch.from_numpy(ids[low : low + _LOT].astype(np.int64)).to(E.device)
        places, initial, z = rule(E[rows], rows, alpha, model.settings.depth)
        value = (z @ v + model.b.detach().double()).abs()
        parts.append([x.cpu().numpy() for x in (places, initial, value)])
    return TextLeaders(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _first(best: torch.Tensor) -> torch.Tensor:
    """Where the first place of a row's best is the row's own."""
    own = torch.arange(best.shape[-1], device=best.device)
    return best.to(torch.int8).argmax(dim=-1) == own


def _by_code(
    z: torch.Tensor, rows: torch.Tensor, alpha: torch.Tensor, depth: int
) -> tuple[torch.Tensor, ...]:
    shrink = 1 / (1 + alpha)
    grow = (alpha * shrink).double()
    initial = _first(_best(z, 0.0)).sum(dim=1)
    for _ in range(depth + 1):
        best = _best(z, 0.0)
        weights = best.double() / best.sum(dim=-1, keepdim=True)
        z = shrink.double() * z.double() + grow * (weights @ z.double())
    return _first(_best(z, 0.0)), initial, z


def _best(z: torch.Tensor, tol: float) -> torch.Tensor:
    """The chosen sets; with `tol` relative to |z_i| max |z_j|."""
    scores = z @ z.transpose(-2, -1)
    top = scores.amax(dim=-1, keepdim=True)
    if tol == 0:
        return torch.eq(scores, top)
    length = z.norm(dim=-1)
    slack = tol * length[..., None] * length.amax(dim=-1)[:, None, None]
    return torch.ge(scores, top - slack)


def _by_birth(
    z: torch.Tensor, rows: torch.Tensor, alpha: torch.Tensor, depth: int
) -> tuple[torch.Tensor, ...]:
    z = z.double()
    same = rows[:, :, None] == rows[:, None, :]
    one = _first(same)
    gamma = (alpha / (1 + alpha)).double()
    best = _best(z, _TIE)
    born = _alone(best, same) & one
    initial = born.sum(dim=1)
    for _ in range(depth):
        weights = best.double() / best.sum(dim=-1, keepdim=True)
        z = z + gamma * (weights @ z - z)
        best = _best(z, _TIE)
        born |= _alone(best, same) & one
    return born, initial, z


def _alone(best: torch.Tensor, same: torch.Tensor) -> torch.Tensor:
    """Whether a place chooses itself and its equals, and nobody else."""
    return (best <= same).all(dim=-1)


def summary(leaders: TextLeaders) -> dict[str, float]:
    """The rows of the paper's table: mean, deviation, extremes, fraction initial."""
    n = leaders.counts
    return {
        "average": float(n.mean()),
        "deviation": float(n.std()),
        "min": int(n.min()),
        "max": int(n.max()),
        "fraction_initial": float((leaders.initial / np.maximum(n, 1)).mean()),
    }


def histogram(
    leaders: TextLeaders, ids: Array, chosen: Bools, *, least: float = 2.0, top: int = 15
) -> list[tuple[int, int]]:
    """The most frequent leader words as (word number, count), texts `chosen`, |value| > least."""
    places = leaders.places & chosen[:, None] & (leaders.value > least)
    return Counter(ids[places].tolist()).most_common(top)
