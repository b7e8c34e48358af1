"""Adam for a table of word vectors of which each step touches few rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from hardmax._types import Array, Floats, Ints
from hardmax.select.threads import in_threads

__all__ = ["LazyAdam", "decay_at"]

_LEAST = 1e-300
_PER_THREAD = 4096
_ROWS = ("m", "v", "average", "mark")


@njit(nogil=True, cache=True, error_model="numpy")
def _update(
    E: Array, m: Array, v: Array, ema: Array, mark: Floats, scale: Floats, rows: Ints, grad: Array,
    step: int, rate: float, beta1: float, beta2: float, eps: float, before: float, after: float,
) -> None:  # fmt: skip
    """One Adam step on `rows`; their averages first catch up with the steps left out."""
    fix1, fix2 = 1 - beta1**step, 1 - beta2**step
    decay = np.exp(after - before)
    for r in range(len(rows)):
        i = rows[r]
        stay = np.exp(before - mark[i])
        mark[i] = after
        for c in range(E.shape[1]):
            g = grad[r, c]
            ema[i, c] = E[i, c] + stay * (ema[i, c] - E[i, c])
            m[i, c] = beta1 * m[i, c] + (1 - beta1) * g
            v[i, c] = beta2 * v[i, c] + (1 - beta2) * g * g
            E[i, c] -= scale[i] * rate * (m[i, c] / fix1) / (np.sqrt(v[i, c] / fix2) + eps)
            ema[i, c] = E[i, c] + decay * (ema[i, c] - E[i, c])


@njit(nogil=True, cache=True)
def _catch_up(E: Array, ema: Array, mark: Floats, now: float) -> None:
    for i in range(E.shape[0]):
        stay = np.exp(now - mark[i])
        for c in range(E.shape[1]):
            ema[i, c] = E[i, c] + stay * (ema[i, c] - E[i, c])
        mark[i] = now


def decay_at(step: int, decay: float) -> float:
    """The decay of the average at a step: small at first, so that the beginning is forgotten."""
    return min(decay, step / (step + 10))


class LazyAdam:
    """Adam on the rows that a step touches, with an average of the weights over steps.

    A row that is not touched keeps its vector and its moments, and its average
    moves toward the vector as if every step had been taken.  `scale` multiplies
    the rate of each row.
    """

    def __init__(
        self,
        E: Array,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        decay: float = 0.0,
        scale: Floats | None = None,
    ) -> None:
        self.E = E
        self.scale = np.ones(len(E)) if scale is None else scale
        self.betas, self.eps, self.decay = betas, eps, decay
        self.m, self.v, self.average = np.zeros_like(E), np.zeros_like(E), E.copy()
        self.mark = np.zeros(len(E))  # logarithm of all decays up to the row's last step
        self.now, self.steps = 0.0, 0

    def step(self, rows: Ints, grad: Array, rate: float) -> float:
        """Move `rows` along their gradients; the decay of the average at this step."""
        self.steps += 1
        decay = max(decay_at(self.steps, self.decay), _LEAST)
        before, self.now = self.now, self.now + math.log(decay)
        now = self.now

        def part(first: int, stop: int) -> None:
            _update(
                self.E, self.m, self.v, self.average, self.mark, self.scale, rows[first:stop],
                grad[first:stop], self.steps, rate, *self.betas, self.eps, before, now,
            )  # fmt: skip

        in_threads(part, len(rows), _PER_THREAD)
        return decay

    def settle(self) -> Array:
        """The average of every row over all steps so far."""
        _catch_up(self.E, self.average, self.mark, self.now)
        return self.average

    def state(self) -> dict[str, Any]:
        """All that a later `restore` needs."""
        state: dict[str, Any] = {name: getattr(self, name) for name in _ROWS}
        return {**state, "now": np.array(self.now), "steps": np.array(self.steps)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        for name in _ROWS:
            getattr(self, name)[...] = state[name]
        self.now, self.steps = float(state["now"]), int(state["steps"])
