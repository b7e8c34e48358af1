"""The paper's hardmax layers: loops over texts, layers and tokens, with float equality."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def by_loops(alpha: float, depth: int, texts: np.ndarray) -> np.ndarray:
    """Texts (b, n, d) after `depth` layers, one token after the other."""
    out = np.empty(texts.shape)
    for number, text in enumerate(texts):
        z = text.T.copy()
        for _ in range(depth):
            ways = np.zeros(z.shape)
            for i in range(z.shape[1]):
                scores = z[:, i] @ z
                best = scores == scores.max()
                share = np.where(best, 1.0 / best.sum(), 0.0)
                ways[:, i] = alpha / (1 + alpha) * (share * z).sum(axis=1)
            z = z / (1 + alpha) + ways
        out[number] = z.T
    return out


def paper_loops(file: Path | None) -> Callable[..., Any]:
    """`hardmaxDynamics(alpha, depth, Z0)` of the paper's models.py, or the same as above."""
    if file is None:
        return by_loops
    spec = importlib.util.spec_from_file_location("models", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[..., Any] = module.hardmaxDynamics
    return found
