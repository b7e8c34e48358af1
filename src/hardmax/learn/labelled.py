"""What a training needs besides the model: labelled tokens, rates, and numbers of its seed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hardmax._types import Floats, Ints
from hardmax.tokens.batch import Tokens

__all__ = ["Labelled", "epoch_order", "mixed", "rate_at"]

_WARM = 0.3
_FIRST, _LAST = 0.04, 1e-4


@dataclass(frozen=True)
class Labelled:
    """Texts as tokens, and their classes 0, 1, ..., with the weight of each text."""

    tokens: Tokens
    labels: Ints
    weights: Floats | None = None

    def take(self, rows: Ints) -> Labelled:
        """The same for some texts."""
        weights = None if self.weights is None else self.weights[rows]
        return Labelled(self.tokens.take(rows), self.labels[rows], weights)


def rate_at(share: float) -> float:
    """One cycle of the learning rate: up along a cosine, then down along another."""
    if share < _WARM:
        return _FIRST + (1 - _FIRST) * 0.5 * (1 - math.cos(math.pi * share / _WARM))
    fall = (share - _WARM) / (1 - _WARM)
    return 0.5 * (1 + math.cos(math.pi * fall)) + _LAST


def epoch_order(seed: int, epoch: int, texts: int) -> Ints:
    """The texts in the order of an epoch; it depends on the seed and the epoch alone."""
    return np.random.default_rng([seed, 2, epoch]).permutation(texts)


def mixed(seed: int, epoch: int) -> int:
    """One number of the seed and the epoch."""
    return int(np.random.SeedSequence([seed, 3, epoch]).generate_state(1, np.uint64)[0] >> 2)
