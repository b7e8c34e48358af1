"""One model in training: a step per batch, choices without gradient, values with."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from hardmax._types import Floats, Ints
from hardmax.learn.evidence import evidence, lengths
from hardmax.learn.labelled import Labelled, epoch_order, mixed
from hardmax.learn.model import HardmaxModel
from hardmax.learn.optim import LazyAdam
from hardmax.learn.presets import Settings
from hardmax.learn.run import gather, pool
from hardmax.learn.spread import Group

__all__ = ["Trainer"]

_BETAS, _EPS = (0.9, 0.999), 1e-8


@dataclass
class Trainer:
    """A model in training: one `step` per batch, `finish` for the averaged weights."""

    model: HardmaxModel
    settings: Settings
    data: Labelled
    seed: int = 0
    group: Group = field(default_factory=Group.alone)

    def __post_init__(self) -> None:
        s, tokens = self.settings, self.data.tokens
        self.E = self.model.E.detach().numpy()
        scale = evidence(self.data, len(self.E), s.evidence)
        self.rows = LazyAdam(self.E, betas=_BETAS, eps=_EPS, decay=s.averaging, scale=scale)
        self.small = self._learned(self.model)
        self.adam = torch.optim.Adam(self.small, lr=s.learning_rate, betas=_BETAS, eps=_EPS)
        self.average = [p.detach().clone() for p in self.small]
        self.place = np.full(len(self.E), -1, dtype=np.int64)
        self.per_epoch = math.ceil(len(tokens) / s.batch_size)
        self.labels = torch.from_numpy(self.data.labels)
        self.shares = None if self.data.weights is None else torch.from_numpy(self.data.weights)
        self.lengths = lengths(self.data, s.length_power)

    def _learned(self, model: HardmaxModel) -> list[nn.Parameter]:
        return model.small(self.settings.learn_alpha, self.settings.A == "learned")

    def order(self, epoch: int) -> Ints:
        """The texts in the order of an epoch; it depends on the seed and the epoch alone."""
        return epoch_order(self.seed, epoch, len(self.data.tokens))

    def step(self, rows: Ints, epoch: int, rate: float) -> float:
        """One step on a batch; the sum of its losses."""
        s, mine = self.settings, self.group.share(rows)
        gamma = self.model.gamma
        run = pool(
            self.E,
            gamma.detach().numpy(),
            self.data.tokens,
            mine,
            depth=s.depth,
            tie_tol=s.tie_tol,
            A=self.model.scores(),
            learn=s.A == "learned",
            drop=s.word_dropout,
            hide=s.key_dropout,
            seed=mixed(self.seed, epoch),
        )
        pooled = torch.from_numpy(run.pooled).requires_grad_()
        losses = self._losses(self._decode(pooled, mine), mine)
        self.adam.zero_grad()
        torch.autograd.backward(losses.sum() / len(rows))
        grad = _numbers(pooled.grad, run.pooled)
        slope, turn = run.derivatives(grad)
        if s.learn_alpha:
            torch.autograd.backward(gamma, torch.from_numpy(slope))
        if turn.size and self.model.A is not None:
            self.model.A.grad = torch.from_numpy(turn)
        found, values = self.group.rows(*gather(run, grad, self.place), self.place)
        loss = self.group.totals(self.small, float(losses.sum().detach()))
        for part in self.adam.param_groups:
            part["lr"] = rate
        self.adam.step()
        decay = self.rows.step(found, values, rate)
        with torch.no_grad():
            for mean, p in zip(self.average, self.small, strict=True):
                mean.lerp_(p, 1 - decay)
        return loss

    def _decode(self, pooled: torch.Tensor, rows: Ints) -> torch.Tensor:
        """The logits that are learned from: those of long texts weigh more."""
        if self.lengths is not None:
            pooled = pooled * torch.from_numpy(self.lengths[rows])[:, None]
        return self.model.decode(pooled)

    def _losses(self, logits: torch.Tensor, rows: Ints) -> torch.Tensor:
        labels = self.labels[rows]
        if logits.shape[1] == 1:
            out = nn.functional.binary_cross_entropy_with_logits(
                logits[:, 0], labels.double(), reduction="none"
            )
        else:
            out = nn.functional.cross_entropy(logits, labels, reduction="none")
        return out if self.shares is None else out * self.shares[rows]

    def finish(self) -> HardmaxModel:
        """A model with the averaged weights; the training may go on after it."""
        weights = self.model.weights.to(torch.device("cpu"))
        weights.E = torch.from_numpy(self.rows.settle().copy())
        out = HardmaxModel.of(weights, self.model.depth, self.model.tie_tol)
        with torch.no_grad():
            for p, mean in zip(self._learned(out), self.average, strict=True):
                p.copy_(mean)
        return out

    def state(self) -> dict[str, Any]:
        """Everything that changes from step to step, as arrays."""
        state = {f"rows.{key}": value for key, value in self.rows.state().items()}
        state["E"] = self.E
        for k, p in enumerate(self.small):
            state |= {f"small.{k}": p.detach().numpy(), f"average.{k}": self.average[k].numpy()}
            for key, value in self.adam.state.get(p, {}).items():
                state[f"adam.{k}.{key}"] = value.numpy()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.rows.restore({key: state[f"rows.{key}"] for key in self.rows.state()})
        self.E[...] = state["E"]
        for k, p in enumerate(self.small):
            with torch.no_grad():
                p.copy_(torch.from_numpy(state[f"small.{k}"]))
                self.average[k].copy_(torch.from_numpy(state[f"average.{k}"]))
            mark = f"adam.{k}."
            self.adam.state[p] = {
                key.removeprefix(mark): torch.from_numpy(value.copy())
                for key, value in state.items()
                if key.startswith(mark)
            }


def _numbers(grad: torch.Tensor | None, like: Floats) -> Floats:
    return np.zeros_like(like) if grad is None else np.ascontiguousarray(grad.numpy())
