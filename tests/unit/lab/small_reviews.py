"""A small stand-in for the reviews, and the pictures of the paper as weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from hardmax._types import Array
from hardmax.lab.papers.reviews import PaperReviews

POSITIVE = {
    "amazing": (-2.34, 2.30), "get": (1.60, 1.75), "torture": (2.75, -0.39), "time": (-1.67, -2.02),
}  # fmt: skip
NEGATIVE = {
    "dark": (-1.99, -2.33), "perfect": (-1.38, 2.73), "issue": (1.56, 2.47), "Avoid": (4.77, -3.88),
}  # fmt: skip
"""Places of the leaders in the paper's two pictures."""
V, B, ALPHA = (-7.28687, 5.71015), -0.28432, 2.352787
FILLERS = 110
WORDS = ("<PAD>", *POSITIVE, *NEGATIVE, *(f"w{k}" for k in range(FILLERS)))


def small_reviews(train: int = 64, test: int = 20, length: int = 72) -> PaperReviews:
    """Reviews of fillers; words below the middle speak for, those above against.

    The first two of the test part are the reviews of the paper's pictures: their
    leaders, and 89 and 103 other words.
    """
    rng = np.random.default_rng(0)
    n = train + test
    labels = (np.arange(n) % 2).astype(np.int64)
    half = FILLERS // 2
    ids = 9 + rng.integers(0, half, (n, length)) + half * labels[:, None]
    ids[:, -3:] = 0
    wide = np.zeros((n, 128), dtype=np.int32)
    wide[:, :length] = ids
    for row, first, others in ((train, 1, 89), (train + 1, 5, 103)):
        words = [*range(first, first + 4), *range(9, 9 + others - 1), 0]
        wide[row] = [*words, *[0] * (128 - len(words))]
    labels[train], labels[train + 1] = 1, 0
    return PaperReviews(WORDS, wide, labels, tuple("" for _ in range(n)), train, "WordNet 3.0")


def paper_arrays() -> dict[str, Array]:
    """Weights in which the leaders stand where the paper's pictures show them."""
    rng = np.random.default_rng(1)
    inner = rng.uniform(-0.9, 0.9, (FILLERS, 2))
    E = np.array([(-1.075, -1.1517), *POSITIVE.values(), *NEGATIVE.values(), *inner])
    return {
        "E": E.astype(np.float32), "alpha": np.array([ALPHA], np.float32),
        "v": np.array(V, np.float32), "b": np.array([B], np.float32),
    }  # fmt: skip


def write_pth(path: Path, arrays: dict[str, Array]) -> Path:
    """The state dictionary of the authors' module, as torch saves it."""
    names = {
        "E": "encoder.weight", "alpha": "attention.alpha",
        "v": "decoder.weight", "b": "decoder.bias",
    }  # fmt: skip
    state = {key: torch.from_numpy(arrays[name].astype("<f4")) for name, key in names.items()}
    torch.save({**state, "decoder.weight": state["decoder.weight"].reshape(1, -1)}, path)
    return path
