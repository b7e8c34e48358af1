"""Training by the recipe, in the order of draws of the authors' notebook; CPU or CUDA.

On a GPU one step is captured once as a graph and replayed, and several models
can be stepped in turn, each on a stream of its own (`train_together`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from hardmax._types import Array
from hardmax.learn.paper import Measure, PaperModel, PaperSettings, measure

__all__ = ["HeldOut", "PaperTrainer", "notebook_draws", "train_together"]

EVERY = 10
"""Epochs between evaluations at temperature 0."""


def notebook_draws(dim: int, size: int, epochs: int = 101, seed: int = 0) -> torch.Generator:
    """The generator as it stands when the authors' notebook comes to `dim` in 2, 4, 8, 16.

    Their loop trains one size after the other from one seed: before `dim`
    come the weights of each smaller size and four draws per epoch.
    """
    g = torch.Generator().manual_seed(seed)
    for smaller in (2, 4, 8, 16):
        if smaller >= dim:
            break
        PaperModel(size, PaperSettings(dim=smaller), g)
        for _ in range(4 * epochs):
            _draw(g)
    return g


def _draw(g: torch.Generator) -> int:
    return int(torch.empty((), dtype=torch.int64).random_(generator=g))


@contextmanager
def _no_denormals() -> Iterator[None]:
    """Adam's moments of words not seen for long are 0 below 2 ** -126: denormals are slow."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


@dataclass(frozen=True)
class HeldOut:
    """Texts that are evaluated and never trained on."""

    ids: Array
    labels: Array


class PaperTrainer:
    """One model in training: `begin` an epoch, `step` through it, `end` it.

    Parameters
    ----------
    ids, labels : arrays
        Texts as rows of word numbers, and 0 or 1 for each.
    size : int
        Number of words, padding included.
    settings : PaperSettings
    seed : int or torch.Generator
        One stream of draws for the weights and the order of the texts.
    test : HeldOut, optional
        Evaluated after every epoch.
    device : str
        "cpu" or "cuda".
    graph : bool
        Whether a GPU captures the step and replays it.
    check_rows : int, optional
        Temperature 0 is evaluated on this many training texts only, and not on the test.
    compiled : bool
        Whether a CPU takes the compiled layers; the plain ones are the authors' code.

    Notes
    -----
    Loss and accuracy of an epoch are means over its texts while the weights
    change, as in the authors' code; theirs are means over batches, of which
    the last is smaller.
    """

    def __init__(
        self, ids: Array, labels: Array, size: int, settings: PaperSettings, *,
        seed: int | torch.Generator = 0, test: HeldOut | None = None, device: str = "cpu",
        graph: bool = True, check_rows: int | None = None, compiled: bool = False,
    ) -> None:  # fmt: skip
        self.settings, self.device = settings, torch.device(device)
        self.check_rows = check_rows
        self.g = torch.Generator().manual_seed(seed) if isinstance(seed, int) else seed
        self.model = PaperModel(size, settings, self.g).to(self.device)
        self.model.compiled = compiled
        self.ids, self.labels = self._put(ids, np.int64), self._put(labels, np.float32)
        self.test = (
            None
            if test is None
            else (self._put(test.ids, np.int64), self._put(test.labels, np.float32))
        )
        gpu = self.device.type == "cuda"
        self.adam = torch.optim.Adam(
            self.model.parameters(), settings.learning_rate, capturable=gpu,
            fused=gpu or compiled or None,
        )  # fmt: skip
        self.epoch, self.history, self.checks = 0, list[dict[str, Any]](), list[dict[str, Any]]()
        self.steps = -(-len(self.ids) // settings.batch_size)
        self._sums = [torch.zeros((), device=self.device, dtype=torch.float64) for _ in range(2)]
        self._graph = _Graph(self) if gpu and graph else None

    def _put(self, values: Array, kind: Any) -> torch.Tensor:
        return torch.from_numpy(np.asarray(values).astype(kind)).to(self.device)

    def begin(self) -> None:
        """Draw the order of the texts, as torch's DataLoader does from the same stream."""
        _draw(self.g)
        order = torch.randperm(
            len(self.ids), generator=torch.Generator().manual_seed(_draw(self.g))
        )
        _draw(self.g), _draw(self.g)  # what the loader of the test part takes
        self._order = order.to(self.device)
        self._start = time.perf_counter()
        for total in self._sums:
            total.zero_()

    def step(self, k: int) -> None:
        """Batch `k` of the epoch."""
        low = k * self.settings.batch_size
        rows = self._order[low : low + self.settings.batch_size]
        if self._graph is not None and len(rows) == self.settings.batch_size:
            self._graph.replay(self.ids[rows], self.labels[rows])
            return
        with _no_denormals() if self.model.compiled else nullcontext():
            self.learn(self.ids[rows], self.labels[rows])

    def learn(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """One step of Adam on one batch; sums of loss and right answers are kept."""
        p = torch.sigmoid(self.model(x))
        loss = nn.functional.binary_cross_entropy(p, y)
        self.adam.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.adam.step()
        self._sums[0] += loss.detach().double() * len(x)
        self._sums[1] += ((p.detach() > 0.5) == (y > 0.5)).sum()

    def end(self) -> Measure:
        """Close the epoch: the record, the test part, and every tenth time temperature 0."""
        done = Measure(*(float(total) / len(self.ids) for total in self._sums))
        record: dict[str, Any] = {"epoch": self.epoch, "train_loss": done.loss}
        record["train_accuracy"] = done.accuracy
        lot = 250 if self.device.type == "cpu" else 1500
        tested = None
        if self.test is not None:
            tested = measure(self.model, *self.test, lot=lot)
            record |= {"test_loss": tested.loss, "test_accuracy": tested.accuracy}
        record["alpha"] = float(self.model.alpha.detach())
        if self.epoch % EVERY == 0:
            self.checks.append({"epoch": self.epoch, **self._check(lot, tested)})
        record["seconds"] = round(time.perf_counter() - self._start, 3)
        self.history.append(record)
        self.epoch += 1
        return done

    def _check(self, lot: int, tested: Measure | None) -> dict[str, Any]:
        """Both parts at the recipe's temperature and at 0, with the weights as they are."""
        n = self.check_rows
        train = self.ids[:n], self.labels[:n]
        found = {
            "train": {
                "softmax": measure(self.model, *train, lot=lot),
                "hardmax": measure(self.model, *train, temperature=0.0, lot=lot),
            }
        }
        if self.test is not None and tested is not None and n is None:
            hard = measure(self.model, *self.test, temperature=0.0, lot=lot)
            found["test"] = {"softmax": tested, "hardmax": hard}
        return {part: {how: vars(m) for how, m in two.items()} for part, two in found.items()}

    def state(self) -> dict[str, Any]:
        """All that is needed to go on later."""
        moments = [self.adam.state[p] for p in self.model.parameters() if p in self.adam.state]
        return {
            "weights": self.model.arrays(),
            "adam": [{k: v.cpu().numpy() for k, v in m.items()} for m in moments],
            "draws": self.g.get_state().numpy(),
            "epoch": self.epoch,
            "history": self.history,
            "checks": self.checks,
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a `state`; tensors are filled in place, as a captured step needs."""
        self.model.take(state["weights"])
        for p, kept in zip(self.model.parameters(), state["adam"], strict=False):
            slot = self.adam.state[p]
            for name, value in kept.items():
                new = torch.from_numpy(np.array(value))
                if name in slot:
                    slot[name].copy_(new)
                else:
                    slot[name] = new if name == "step" else new.to(p.device)
        self.g.set_state(torch.from_numpy(np.array(state["draws"])))
        self.epoch, self.history = state["epoch"], list(state["history"])
        self.checks = list(state["checks"])


class _Graph:
    """One step on a batch of full size, captured and replayed."""

    def __init__(self, trainer: PaperTrainer) -> None:
        s = trainer.settings
        device = trainer.device
        self.x = torch.zeros((s.batch_size, trainer.ids.shape[1]), dtype=torch.int64, device=device)
        self.y = torch.zeros(s.batch_size, device=device)
        before = trainer.model.arrays()
        self.stream = torch.cuda.Stream()
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for _ in range(3):
                trainer.learn(self.x, self.y)
        torch.cuda.current_stream().wait_stream(self.stream)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        trainer.adam.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph, stream=self.stream):
            p = torch.sigmoid(trainer.model(self.x))
            loss = nn.functional.binary_cross_entropy(p, self.y)
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(trainer.model.parameters(), s.clip)
            trainer.adam.step()
            trainer._sums[0] += loss.detach().double() * s.batch_size
            trainer._sums[1] += ((p.detach() > 0.5) == (self.y > 0.5)).sum()
        trainer.model.take(before)
        for slot in trainer.adam.state.values():
            for value in slot.values():
                value.zero_()
        torch.cuda.synchronize()

    def replay(self, x: torch.Tensor, y: torch.Tensor) -> None:
        self.x.copy_(x)
        self.y.copy_(y)
        self.graph.replay()


def train_together(
    trainers: Sequence[PaperTrainer],
    after: Callable[[PaperTrainer], bool] = lambda trainer: True,
    before: Callable[[int], None] = lambda step: None,
) -> None:
    """Train models side by side until their settings' last epoch.

    On a GPU their steps are queued in turn, each on its own stream, so that
    small kernels of one fill what another leaves idle.  `after` is called with
    each model after each of its epochs; when it returns False all stop there.
    `before` is called with the number of each step.
    """
    going = True
    while going and (left := [t for t in trainers if t.epoch < t.settings.epochs]):
        for t in left:
            with _stream(t):
                t.begin()
        for k in range(max(t.steps for t in left)):
            before(k)
            for t in left:
                if k < t.steps:
                    with _stream(t):
                        t.step(k)
        for t in left:
            with _stream(t):
                t.end()
            going = after(t) and going


def _stream(trainer: PaperTrainer) -> Any:
    graph = trainer._graph
    return nullcontext() if graph is None else torch.cuda.stream(graph.stream)
