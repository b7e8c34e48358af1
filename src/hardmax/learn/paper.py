"""The classifier of arXiv 2407.01602 as its authors define it, in plain torch.

A text is its first 128 words, filled up with a padding word that is trained,
attends, and enters the mean like any other; alpha is free.  Training takes
softmax at temperature 0.001 for hardmax; the same weights are also evaluated at
temperature 0, which is hardmax with exact equality of floats.  Nothing here
uses the layers of this library: the two are compared in tests.  On the CPU the
softmax layers can also be compiled (`learn.paper_cpu`), which is some times faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from hardmax._errors import InputError
from hardmax._types import Array, Floats, Ints

__all__ = ["Measure", "PaperModel", "PaperSettings", "fit_paper", "measure"]

_LOT = 250


@dataclass(frozen=True)
class PaperSettings:
    """The recipe's numbers."""

    dim: int = 2
    depth: int = 8
    words: int = 128
    temperature: float = 0.001
    epochs: int = 101
    batch_size: int = 64
    learning_rate: float = 0.001
    clip: float = 5.0


class PaperModel(nn.Module):
    """Embedding, layers with one shared alpha that is free, mean over all places, linear.

    Parameters
    ----------
    size : int
        Number of words, the padding word 0 included.
    settings : PaperSettings
    seed : int or torch.Generator
        Weights are drawn in the order of the authors' code, so that torch's
        seed 0 gives their first model.

    Attributes
    ----------
    compiled : bool
        Whether softmax layers on the CPU take the compiled path; False at first.
    """

    def __init__(self, size: int, settings: PaperSettings, seed: int | torch.Generator = 0) -> None:
        super().__init__()
        g = torch.Generator().manual_seed(seed) if isinstance(seed, int) else seed
        self.settings, self.compiled = settings, False
        bound = settings.dim**-0.5
        self.E = nn.Parameter(torch.empty(size, settings.dim).normal_(generator=g))
        self.alpha = nn.Parameter(torch.empty(1).uniform_(generator=g))
        v = torch.empty(1, settings.dim).uniform_(-bound, bound, generator=g)
        self.v = nn.Parameter(v[0])
        self.b = nn.Parameter(torch.empty(1).uniform_(-bound, bound, generator=g))

    def layers(
        self, ids: torch.Tensor, temperature: float | None = None, depth: int | None = None
    ) -> torch.Tensor:
        """Tokens (b, words, d) after the layers, at the recipe's temperature or another."""
        heat = self.settings.temperature if temperature is None else temperature
        if self.E.is_cuda:  # unlike embedding, captured by a graph
            z = self.E.index_select(0, ids.flatten()).view(*ids.shape, -1)
        else:
            z = nn.functional.embedding(ids, self.E)
        shrink = 1 / (1 + self.alpha)
        for _ in range(self.settings.depth if depth is None else depth):
            z = shrink * (z + _weights(z, heat) @ (self.alpha * z))
        return z

    def forward(self, ids: torch.Tensor, temperature: float | None = None) -> torch.Tensor:
        """Logits (b,) of texts (b, words); temperature 0 is hardmax."""
        return self._pooled(ids, temperature) @ self.v + self.b

    def _pooled(self, ids: torch.Tensor, temperature: float | None) -> torch.Tensor:
        """Means of the texts after all layers."""
        heat = self.settings.temperature if temperature is None else temperature
        if not self.compiled or self.E.is_cuda:
            return self.layers(ids, heat).mean(dim=1)
        if heat == 0:
            return self._hardmax(ids)
        from hardmax.learn.paper_cpu import pooled_texts  # numba, which a GPU machine may lack

        return pooled_texts(self.E, self.alpha, ids, self.settings.depth, heat)

    def _hardmax(self, ids: torch.Tensor) -> torch.Tensor:
        """Means at temperature 0; compiled where alpha > 0 and no gradient is asked for."""
        alpha = float(self.alpha.detach())
        if torch.is_grad_enabled() or not alpha > 0:
            return self.layers(ids, 0.0).mean(dim=1)
        from hardmax.dynamics.fused import pool_ids

        table, gamma = self.E.detach().numpy(), alpha / (1 + alpha)
        pooled, _ = pool_ids(table, ids.numpy(), self.settings.depth, gamma=gamma)
        return torch.from_numpy(pooled.astype(np.float32))

    def logits(self, ids: Array, temperature: float | None = None) -> Floats:
        """Logits without gradients, in lots."""
        rows = torch.from_numpy(ids.astype(np.int64))
        with torch.no_grad():
            parts = [
                self(rows[low : low + _LOT].to(self.E.device), temperature).cpu()
                for low in range(0, len(rows), _LOT)
            ]
        return np.asarray(torch.cat(parts).double().numpy())

    def arrays(self) -> dict[str, Array]:
        """The weights by name, as float32 arrays."""
        return {name: p.detach().cpu().numpy() for name, p in self.named_parameters()}

    def take(self, arrays: dict[str, Array]) -> None:
        """Weights from `arrays`."""
        with torch.no_grad():
            for name, p in self.named_parameters():
                p.copy_(torch.tensor(np.asarray(arrays[name], np.float32)).view_as(p))


def _weights(z: torch.Tensor, heat: float) -> torch.Tensor:
    """Softmax weights of the scores over `heat`; at 0, equal ones on the largest."""
    scores = z @ z.transpose(-2, -1)
    if heat > 0:
        return torch.softmax(scores / heat, dim=-1)
    best = (scores == scores.amax(dim=-1, keepdim=True)).to(z.dtype)
    return best / best.sum(dim=-1, keepdim=True)


@dataclass(frozen=True)
class Measure:
    """Mean loss and share of right answers."""

    loss: float
    accuracy: float


def measure(
    model: PaperModel, ids: torch.Tensor, labels: torch.Tensor, temperature: float | None = None,
    lot: int = _LOT,
) -> Measure:  # fmt: skip
    """Loss and accuracy over all texts; the loss is that of probabilities, as in the recipe."""
    total = torch.zeros((), dtype=torch.float64, device=model.E.device)
    right = torch.zeros((), dtype=torch.int64, device=model.E.device)
    with torch.no_grad():
        for low in range(0, len(ids), lot):
            y = labels[low : low + lot]
            p = torch.sigmoid(model(ids[low : low + lot], temperature))
            total += nn.functional.binary_cross_entropy(p, y, reduction="sum").double()
            right += ((p > 0.5) == (y > 0.5)).sum()
    return Measure(float(total) / len(ids), int(right) / len(ids))


def fit_paper(
    ids: Array,
    labels: Ints,
    size: int,
    settings: PaperSettings,
    *,
    seed: int = 0,
    callbacks: Sequence[Callable[[int, float, PaperModel], Any]] = (),
) -> PaperModel:
    """Train with Adam and clipped gradients; callbacks receive epoch, mean loss and model.

    Raises
    ------
    InputError
        If there is not one label, 0 or 1, per text.
    """
    from hardmax.learn.paper_train import PaperTrainer

    if labels.shape != (len(ids),) or not np.isin(labels, (0, 1)).all():
        raise InputError(f"`labels` must hold 0 or 1 for each of the {len(ids)} texts.")
    trainer = PaperTrainer(ids, labels, size, settings, seed=seed)
    for epoch in range(settings.epochs):
        trainer.begin()
        for k in range(trainer.steps):
            trainer.step(k)
        done = trainer.end()
        for callback in callbacks:
            callback(epoch, done.loss, trainer.model)
    return trainer.model
