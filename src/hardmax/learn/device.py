"""Training on a device that torch drives: the steps of `Trainer`, in torch alone.

The coins, the order of the texts, the choices and the optimiser are those of the
compiled path; only the order of sums differs.  Nothing here needs compiled code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from hardmax._types import Array, Floats, Ints
from hardmax.learn.attention import Attention
from hardmax.learn.evidence import evidence, lengths
from hardmax.learn.labelled import Labelled, epoch_order, mixed
from hardmax.learn.padded import DeviceTexts
from hardmax.learn.presets import Settings
from hardmax.learn.spread import Group
from hardmax.learn.weights import Weights, pooled

__all__ = ["DeviceAdam", "DeviceTrainer"]

_BETAS, _EPS, _LEAST = (0.9, 0.999), 1e-8, 1e-300
_ROWS = ("m", "v", "average", "mark")


class DeviceAdam:
    """`LazyAdam` in torch: Adam on the rows that a step touches, with averaged weights."""

    def __init__(self, E: torch.Tensor, decay: float, scale: torch.Tensor | None = None) -> None:
        self.E, self.decay = E, decay
        ones = torch.ones(len(E), dtype=torch.float64, device=E.device)
        self.scale = ones if scale is None else scale.to(E.device)
        self.m, self.v, self.average = torch.zeros_like(E), torch.zeros_like(E), E.clone()
        self.mark = torch.zeros(len(E), dtype=torch.float64, device=E.device)
        self.now, self.steps = 0.0, 0

    def step(self, rows: torch.Tensor, grad: torch.Tensor, rate: float) -> float:
        """Move `rows` along their gradients; the decay of the average at this step."""
        self.steps += 1
        decay = max(min(self.decay, self.steps / (self.steps + 10)), _LEAST)
        before, self.now = self.now, self.now + math.log(decay)
        fix1, fix2 = (1 - beta**self.steps for beta in _BETAS)
        stay = torch.exp(before - self.mark[rows])[:, None]
        self.mark[rows] = self.now
        E, m, v = self.E[rows].double(), self.m[rows].double(), self.v[rows].double()
        mean = (E + stay * (self.average[rows].double() - E)).to(self.E)
        m = (_BETAS[0] * m + (1 - _BETAS[0]) * grad).to(self.E)
        v = (_BETAS[1] * v + (1 - _BETAS[1]) * grad * grad).to(self.E)
        E = (
            E
            - self.scale[rows, None]
            * rate
            * (m.double() / fix1)
            / ((v.double() / fix2).sqrt() + _EPS)
        ).to(self.E)
        self.m[rows], self.v[rows], self.E[rows] = m, v, E
        E = E.double()
        self.average[rows] = (E + decay * (mean.double() - E)).to(self.E)
        return decay

    def settle(self) -> torch.Tensor:
        """The average of every row over all steps so far."""
        stay = torch.exp(self.now - self.mark)[:, None]
        E = self.E.double()
        self.average.copy_(E + stay * (self.average.double() - E))
        self.mark.fill_(self.now)
        return self.average

    def state(self) -> dict[str, Any]:
        """All that a later `restore` needs, as arrays."""
        state: dict[str, Any] = {name: getattr(self, name).cpu().numpy() for name in _ROWS}
        return {**state, "now": np.array(self.now), "steps": np.array(self.steps)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        for name in _ROWS:
            getattr(self, name).copy_(torch.from_numpy(np.array(state[name])))
        self.now, self.steps = float(state["now"]), int(state["steps"])


@dataclass
class DeviceTrainer:
    """A model in training on a device: one `step` per batch, `averaged` for the result.

    `kind` and `dtype` are for comparisons: what stands in place of hardmax, and
    the numbers that the layers are computed in.
    """

    weights: Weights
    settings: Settings
    data: Labelled
    seed: int = 0
    group: Group = field(default_factory=Group.alone)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    kind: str | None = None
    dtype: torch.dtype = torch.float64
    finisher: Callable[[Weights, Settings], Any] | None = None

    def __post_init__(self) -> None:
        s, w = self.settings, self.weights.to(self.device)
        self.weights = w
        scale = torch.from_numpy(evidence(self.data, len(w.E), s.evidence))
        self.rows = DeviceAdam(w.E, s.averaging, scale)
        factors = lengths(self.data, s.length_power)
        self.lengths = None if factors is None else torch.from_numpy(factors).to(self.device)
        learned = [w.rho] if s.learn_alpha and s.depth else []
        learned += [w.A] if w.A is not None and s.A == "learned" else []
        self.small = [p.requires_grad_() for p in (*learned, w.v, w.b)]
        self.adam = torch.optim.Adam(self.small, lr=s.learning_rate, betas=_BETAS, eps=_EPS)
        self.average = [p.detach().clone() for p in self.small]
        self.texts = DeviceTexts(self.data.tokens, self.device)
        self.per_epoch = math.ceil(len(self.data.tokens) / s.batch_size)
        self.labels = torch.from_numpy(self.data.labels).to(self.device)
        shares = self.data.weights
        self.shares = None if shares is None else torch.from_numpy(shares).to(self.device)
        self.by = self.attention(self.seed)

    def attention(self, seed: int, *, final: bool = False) -> Attention:
        """How tokens choose, in training or (`final`) in the model that results."""
        s = self.settings
        source = torch.Generator(device=self.device).manual_seed(mixed(seed, 1 << 20))
        soft = "softmax" if s.temperature > 0 and not final else "hardmax"
        return Attention(
            self.kind or soft,
            max(s.tie_tol, 1e-6 if self.dtype == torch.float32 else 0.0),
            s.temperature,
            s.A == "learned" and not final,
            source,
        )

    def order(self, epoch: int) -> Ints:
        """The texts in the order of an epoch."""
        return epoch_order(self.seed, epoch, len(self.data.tokens))

    def step(self, rows: Ints, epoch: int, rate: float) -> float:
        """One step on a batch; the sum of its losses."""
        return float(self.step_loss(rows, epoch, rate))

    def step_loss(self, rows: Ints, epoch: int, rate: float) -> torch.Tensor:
        """`step` without waiting for the device."""
        s, w, mine = self.settings, self.weights, self.group.share(rows)
        flat = self.texts.draw(
            mine, drop=s.word_dropout, hide=s.key_dropout, seed=mixed(self.seed, epoch)
        )
        z = w.E[flat.ids].to(self.dtype).requires_grad_()
        means = pooled(w, z, flat, s.depth, self.by).double()
        at = torch.from_numpy(mine).to(self.device)
        if self.lengths is not None:
            means = means * self.lengths[at][:, None]
        losses = self._losses(means @ w.v.T + w.b, at)
        self.adam.zero_grad()
        torch.autograd.backward(losses.sum() / len(rows))
        found, values = self._gathered(flat.ids, z.grad)
        loss = losses.detach().sum()
        if self.group.size > 1:
            loss = torch.tensor(self.group.totals(self.small, float(loss)))
        self._clip(values)
        for part in self.adam.param_groups:
            part["lr"] = rate
        self.adam.step()
        decay = self.rows.step(found, values, rate)
        with torch.no_grad():
            for mean, p in zip(self.average, self.small, strict=True):
                mean.lerp_(p, 1 - decay)
        return loss

    def _gathered(
        self, ids: torch.Tensor, grad: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows to move and their gradients: those touched, or all with `dense`."""
        width = self.weights.E.shape[1]
        found, where = torch.unique(ids, return_inverse=True)
        values = torch.zeros(len(found), width, dtype=torch.float64, device=ids.device)
        if grad is not None:
            values.index_add_(0, where, grad.double())
        if self.group.size > 1:
            place = np.zeros(0, dtype=np.int64)
            rows, sums = self.group.rows(found.cpu().numpy(), values.cpu().numpy(), place)
            found, values = (torch.from_numpy(x).to(self.device) for x in (rows, sums))
        if not self.settings.dense:
            return found, values
        every = torch.zeros(len(self.weights.E), width, dtype=torch.float64, device=ids.device)
        return torch.arange(len(every), device=ids.device), every.index_copy_(0, found, values)

    def _clip(self, values: torch.Tensor) -> None:
        """Scale all gradients so that their common length is at most `clip`."""
        if self.settings.clip is None:
            return
        grads = [values, *(p.grad for p in self.small if p.grad is not None)]
        size = torch.stack([g.square().sum() for g in grads]).sum().sqrt()
        scale = (self.settings.clip / (size + 1e-6)).clamp(max=1.0)
        for g in grads:
            g.mul_(scale)

    def _losses(self, logits: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        labels = self.labels[rows]
        if logits.shape[1] == 1:
            out = nn.functional.binary_cross_entropy_with_logits(
                logits[:, 0], labels.double(), reduction="none"
            )
        else:
            out = nn.functional.cross_entropy(logits, labels, reduction="none")
        return out if self.shares is None else out * self.shares[rows]

    def averaged(self) -> Weights:
        """The averaged weights, on the CPU; the training may go on after it."""
        w = self.weights.to(torch.device("cpu"))
        w.E = self.rows.settle().cpu().clone()
        means = {id(p): mean for p, mean in zip(self.small, self.average, strict=True)}
        for name in ("rho", "v", "b", "A"):
            mean = means.get(id(getattr(self.weights, name)))
            if mean is not None:
                setattr(w, name, mean.cpu().clone())
        return w

    def finish(self) -> Any:
        """A model with the averaged weights."""
        if self.finisher is None:
            return self.averaged()
        return self.finisher(self.averaged(), self.settings)

    @torch.no_grad()
    def logits(self, data: Labelled, weights: Weights, *, lot: int = 256) -> Floats:
        """Logits (b, outputs) of texts with some weights, by this trainer's attention."""
        w, texts = weights.to(self.device), DeviceTexts(data.tokens, self.device)
        by, parts = self.attention(self.seed + 1, final=True), []
        order = np.argsort(np.diff(data.tokens.starts), kind="stable")
        for low in range(0, len(order), lot):
            flat = texts.draw(order[low : low + lot])
            z = w.E[flat.ids].to(self.dtype)
            means = pooled(w, z, flat, self.settings.depth, by).double()
            parts.append(means @ w.v.T + w.b)
        out = np.empty((len(order), len(w.b)))
        out[order] = torch.cat(parts).cpu().numpy()
        return out

    def state(self) -> dict[str, Array]:
        """Everything that changes from step to step, as arrays."""
        state = {f"rows.{key}": value for key, value in self.rows.state().items()}
        state["E"] = self.weights.E.cpu().numpy()
        for k, p in enumerate(self.small):
            state |= {f"small.{k}": p.detach().cpu().numpy()}
            state |= {f"average.{k}": self.average[k].cpu().numpy()}
            for key, value in self.adam.state.get(p, {}).items():
                state[f"adam.{k}.{key}"] = value.cpu().numpy()
        return state

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from what `state` gave."""
        self.rows.restore({key: state[f"rows.{key}"] for key in (*_ROWS, "now", "steps")})
        self.weights.E.copy_(torch.from_numpy(np.array(state["E"])))
        for k, p in enumerate(self.small):
            with torch.no_grad():
                p.copy_(torch.from_numpy(np.array(state[f"small.{k}"])))
                self.average[k].copy_(torch.from_numpy(np.array(state[f"average.{k}"])))
            mark = f"adam.{k}."
            self.adam.state[p] = {
                key.removeprefix(mark): torch.from_numpy(np.array(value)).to(
                    "cpu" if key.endswith("step") else self.device
                )
                for key, value in state.items()
                if key.startswith(mark)
            }
