"""The training loop: hardmax choices without gradient, values with; no printing."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hardmax._types import Ints
from hardmax.learn.checkpoint import Checkpoint
from hardmax.learn.device import DeviceTrainer
from hardmax.learn.evidence import evidence
from hardmax.learn.labelled import Labelled, mixed
from hardmax.learn.model import HardmaxModel, join_heads
from hardmax.learn.presets import Settings
from hardmax.learn.spread import Group
from hardmax.learn.trainer import Trainer
from hardmax.learn.weights import Weights

__all__ = ["Labelled", "Progress", "Trainer", "fit", "fit_members", "split_rows"]


@dataclass(frozen=True)
class Progress:
    """Where the training is: what callbacks receive.

    With `members` groups of heads the epochs of all of them count on.

    `loss` is the mean over the texts of this epoch so far; `accuracy` is that of
    the averaged weights on the validation texts, known at the end of an epoch
    and None before or without them.
    """

    epoch: int
    epochs: int
    done: int
    total: int
    loss: float
    accuracy: float | None
    seconds: float
    end: bool

    @property
    def seconds_left(self) -> float:
        """Time left if the rest goes on like this."""
        share = (self.epoch + self.done / max(self.total, 1)) / self.epochs
        return self.seconds * (1 - share) / share if share else math.inf


Callback = Callable[[Progress], Any]


def split_rows(labels: Ints, share: float, seed: int) -> tuple[Ints, Ints]:
    """Rows for training and for validation: the share of every class, drawn by the seed."""
    rng = np.random.default_rng([seed, 1])
    held = []
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        held.append(rows[: math.ceil(share * len(rows))] if len(rows) > 1 else rows[:0])
    valid = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(labels)), valid), valid


def accuracy(model: HardmaxModel, data: Labelled) -> float:
    """The share of texts whose largest logit is that of their class."""
    logits = model.logits(data.tokens)
    guess = logits[:, 0] > 0 if logits.shape[1] == 1 else logits.argmax(axis=1)
    return float(np.mean(guess == data.labels))


def fit(
    data: Labelled,
    size: int,
    settings: Settings,
    *,
    outputs: int = 1,
    seed: int = 0,
    valid: Labelled | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: Path | None = None,
    device: torch.device | None = None,
) -> tuple[HardmaxModel, list[Progress]]:
    """Train a model; the same arguments give the same bytes on the CPU.

    Parameters
    ----------
    data : Labelled
        What is learned from.
    size : int
        Number of tokens of the vocabulary.
    settings : Settings
    outputs : int
        1 for two classes, else their number.
    seed : int
    valid : Labelled, optional
        What `accuracy` is measured on.  With `settings.early_stopping` the best
        epoch there is kept, and training ends `patience` epochs after it.
    callbacks : sequence of callables
        Called with a `Progress` after every step.
    checkpoint : Path, optional
        A file that is written whole after every epoch; when it exists, training
        goes on from it and ends with the same model.
    device : torch.device, optional
        Where torch computes the steps; None takes the compiled path on the CPU,
        or torch on the CPU for a `settings.temperature` above 0.

    Returns
    -------
    model : HardmaxModel
        With the averaged weights.
    history : list of Progress
        One per epoch.

    Raises
    ------
    InputError
        If the checkpoint belongs to another run.
    """
    model = HardmaxModel(
        size,
        settings.dim,
        heads=settings.heads,
        depth=settings.depth,
        outputs=outputs,
        alpha=settings.alpha,
        spread=settings.spread,
        tie_tol=settings.tie_tol,
        seed=[seed, 0],
        A=settings.scores(),
    )
    scale = evidence(data, size, settings.evidence)
    with torch.no_grad():
        model.E.mul_(torch.from_numpy(scale.astype(np.float32))[:, None])
    group = Group.current()
    trainer = _trainer(model, settings, data, seed, group, device)
    place = Checkpoint.of(checkpoint, settings, data, size, seed, first=group.rank == 0)
    return _Loop(trainer, valid, callbacks, place).run()


def _trainer(
    model: HardmaxModel, settings: Settings, data: Labelled, seed: int, group: Group,
    device: torch.device | None,
) -> Trainer | DeviceTrainer:  # fmt: skip
    """The compiled steps where they can be taken, else those in torch."""
    if device is None and settings.temperature == 0 and not settings.dense and not settings.clip:
        return Trainer(model, settings, data, seed, group)

    def finish(weights: Weights, s: Settings) -> HardmaxModel:
        return HardmaxModel.of(weights, s.depth, s.tie_tol)

    place = torch.device("cpu") if device is None else device
    return DeviceTrainer(model.weights, settings, data, seed, group, place, finisher=finish)


@dataclass
class _Loop:
    """Epochs of a trainer, with validation, early stopping and checkpoints."""

    trainer: Trainer | DeviceTrainer
    valid: Labelled | None
    callbacks: Sequence[Callback]
    checkpoint: Checkpoint
    history: list[Progress] = field(default_factory=list)
    best: HardmaxModel | None = None

    def run(self) -> tuple[HardmaxModel, list[Progress]]:
        trainer, s = self.trainer, self.trainer.settings
        start = time.perf_counter()
        self._resume()
        start -= self.history[-1].seconds if self.history else 0.0
        while len(self.history) < s.epochs and not self._over():
            epoch, total, done = len(self.history), 0.0, 0
            order = trainer.order(epoch)
            for k in range(trainer.per_epoch):
                rows = order[k * s.batch_size : (k + 1) * s.batch_size]
                share = (epoch * trainer.per_epoch + k) / (s.epochs * trainer.per_epoch)
                total += trainer.step(rows, epoch, s.rate(share))
                done += len(rows)
                self._tell(epoch, done, total / done, None, start, False)
            self._close(epoch, total / max(done, 1), start)
        return (self.best or trainer.finish()), self.history

    def _tell(
        self, epoch: int, done: int, loss: float, score: float | None, start: float, end: bool
    ) -> Progress:
        s = self.trainer.settings
        seconds = time.perf_counter() - start
        total = len(self.trainer.data.tokens)
        progress = Progress(epoch, s.epochs, done, total, loss, score, seconds, end)
        for callback in self.callbacks:
            callback(progress)
        return progress

    def _close(self, epoch: int, loss: float, start: float) -> None:
        score = None
        if self.valid is not None:
            model = self.trainer.finish()
            score = accuracy(model, self.valid)
            if self.trainer.settings.early_stopping and self._is_best(score):
                self.best = model
        total = len(self.trainer.data.tokens)
        self.history.append(self._tell(epoch, total, loss, score, start, True))
        if self.trainer.group.rank == 0:
            self.checkpoint.write(self.trainer.state(), self.history, self.best)

    def _scores(self) -> list[float]:
        return [p.accuracy for p in self.history if p.accuracy is not None]

    def _is_best(self, score: float) -> bool:
        return score > max(self._scores(), default=-1.0)

    def _over(self) -> bool:
        scores, s = self._scores(), self.trainer.settings
        if not (s.early_stopping and scores):
            return False
        return len(scores) - 1 - scores.index(max(scores)) >= s.patience

    def _resume(self) -> None:
        found = self.checkpoint.read()
        if found is None:
            return
        state, best, history = found
        self.trainer.restore(state)
        self.history = [Progress(**entry) for entry in history]
        if best:
            self.best = self.trainer.finish()
            self.best.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in best.items()})


def fit_members(
    data: Labelled,
    size: int,
    settings: Settings,
    *,
    outputs: int = 1,
    seed: int = 0,
    valid: Labelled | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: Path | None = None,
    device: torch.device | None = None,
) -> tuple[HardmaxModel, list[Progress]]:
    """`fit` for each of `settings.members` models, joined into one with all their heads.

    They differ in their seeds.  Each has a checkpoint of its own, the name
    followed by its number.
    """
    count = settings.members
    part = replace(settings, members=1)
    models: list[HardmaxModel] = []
    history: list[Progress] = []
    for member in range(count):
        base, before = len(history), history[-1].seconds if history else 0.0

        def shift(p: Progress, base: int = base, before: float = before) -> Progress:
            return replace(
                p, epoch=p.epoch + base, epochs=count * p.epochs, seconds=p.seconds + before
            )

        model, log = fit(
            data,
            size,
            part,
            outputs=outputs,
            seed=seed if count == 1 else mixed(seed, member),
            valid=valid,
            callbacks=[_after(shift, callback) for callback in callbacks],
            checkpoint=None if checkpoint is None else _numbered(checkpoint, member, count),
            device=device,
        )
        models.append(model)
        history.extend(map(shift, log))
    return join_heads(models), history


def _after(first: Callable[[Progress], Progress], then: Callback) -> Callback:
    return lambda progress: then(first(progress))


def _numbered(path: Path, member: int, count: int) -> Path:
    return path if count == 1 else path.with_name(f"{path.name}.{member}")
