"""The classifier of arXiv 2407.01602, trained as there: softmax at temperature 0.001.

A text is its first 128 words, filled up with a padding word that is trained,
attends, and enters the mean like any other; alpha is free.  The model is
evaluated with the same weights at temperature 0, which is hardmax.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from hardmax._errors import InputError
from hardmax._types import Array, Floats, Ints
from hardmax.dynamics.attend import attend
from hardmax.dynamics.layer import TIE_TOL, step
from hardmax.tokens.batch import pad
from hardmax.tokens.text import STOP_WORDS

__all__ = ["PaperModel", "PaperSettings", "fit_paper", "paper_table", "paper_words"]

_LINK = re.compile(r"https?://\S+|www\.\S+")
_TAG = re.compile(r"<.*?>")
_REST = re.compile(r"[^A-Za-z\s]")
_RUN = re.compile(r"(.)\1+")
_CLIP = 5.0


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


def paper_words(text: str) -> list[str]:
    """The words of a text in the manner of the recipe: case kept, stop words left out.

    Tags are removed without leaving a blank, digits and punctuation become
    blanks or nothing, and runs of a character are cut to two.  The recipe also
    reduces words to lemmas, which needs a dictionary and is left out here.
    """
    plain = _TAG.sub("", _LINK.sub("", text)).encode("ascii", "ignore").decode()
    plain = _RUN.sub(r"\1\1", re.sub(r"\d+", "", plain))
    return [word for word in _REST.sub(" ", plain).split() if word not in STOP_WORDS]


def paper_table(texts: Sequence[Sequence[str]], words: int = 128) -> tuple[dict[str, int], Array]:
    """Numbers of the words by decreasing count, from 1, and the texts as rows of numbers."""
    counts = Counter(word for text in texts for word in text)
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    number = {word: k for k, word in enumerate(ordered, start=1)}
    return number, pad([[number[w] for w in text[:words]] for text in texts], words)[0]


class PaperModel(nn.Module):
    """Embedding, layers with one shared alpha that is free, mean over all places, linear.

    Parameters
    ----------
    size : int
        Number of words, the padding word 0 included.
    settings : PaperSettings
    seed : int
    """

    def __init__(self, size: int, settings: PaperSettings, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.settings = settings
        self.E = nn.Parameter(torch.randn(size, settings.dim, generator=generator))
        self.alpha = nn.Parameter(torch.rand((), generator=generator))
        bound = settings.dim**-0.5
        self.v = nn.Parameter((2 * torch.rand(settings.dim, generator=generator) - 1) * bound)
        self.b = nn.Parameter((2 * torch.rand((), generator=generator) - 1) * bound)

    def forward(self, ids: torch.Tensor, temperature: float | None = None) -> torch.Tensor:
        """Logits (b,) of texts (b, words) at the recipe's temperature, or another; 0 is hardmax."""
        heat = self.settings.temperature if temperature is None else temperature
        z = nn.functional.embedding(ids, self.E)
        every = np.ones(tuple(ids.shape), dtype=bool)
        gamma = self.alpha / (1 + self.alpha)
        for _ in range(self.settings.depth):
            z = step(z, attend(z, every, [None], heat, TIE_TOL[z.dtype]), gamma, "rescale")
        return z.mean(dim=1) @ self.v + self.b

    def logits(self, ids: Array, temperature: float | None = None) -> Floats:
        """Logits without gradients, in lots."""
        with torch.no_grad():
            parts = [
                self(torch.from_numpy(ids[low : low + 256].astype(np.int64)), temperature)
                for low in range(0, len(ids), 256)
            ]
        return np.asarray(torch.cat(parts).double().numpy())


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
    if labels.shape != (len(ids),) or not np.isin(labels, (0, 1)).all():
        raise InputError(f"`labels` must hold 0 or 1 for each of the {len(ids)} texts.")
    model, s = PaperModel(size, settings, seed), settings
    adam = torch.optim.Adam(model.parameters(), lr=s.learning_rate)
    x, y = torch.from_numpy(ids.astype(np.int64)), torch.from_numpy(labels).float()
    for epoch in range(s.epochs):
        order = torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(len(x)))
        total = 0.0
        for low in range(0, len(x), s.batch_size):
            rows = order[low : low + s.batch_size]
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
            adam.zero_grad()
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(model.parameters(), _CLIP)
            adam.step()
            total += float(loss.detach()) * len(rows)
        for callback in callbacks:
            callback(epoch, total / len(x), model)
    return model
