"""Random score matrices by class, values of heads, and weights of feed-forward layers."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Floats
from hardmax.io import read_matrix
from hardmax.lab.trained import MODELS, saved_scores, trained_scores

__all__ = ["MATRICES", "VALUES", "check_class", "draw_feed_forward", "draw_matrix", "draw_values"]

Rng = np.random.Generator
_SKEWED = re.compile(r"spd\+(\d*\.?\d+)skew")


def _definite(rng: Rng, d: int) -> Floats:
    root = rng.standard_normal((d, d))
    return np.asarray(root.T @ root / d)


def _skew(rng: Rng, d: int) -> Floats:
    root = rng.standard_normal((d, d))
    return np.asarray((root - root.T) / 2)


def _one_positive(rng: Rng, d: int) -> Floats:
    turn, _ = np.linalg.qr(rng.standard_normal((d, d)))
    values = -np.abs(rng.standard_normal(d))
    values[0] = -values[0]
    return np.asarray((turn * values) @ turn.T)


def _symmetric(rng: Rng, d: int) -> Floats:
    root = rng.standard_normal((d, d))
    return np.asarray((root + root.T) / 2)


def _outer(rng: Rng, d: int) -> Floats:
    v = rng.standard_normal(d)
    return np.outer(v, v)


def _half_rank(rng: Rng, d: int) -> tuple[Floats, Floats]:
    r = max(1, d // 2)
    return rng.standard_normal((r, d)), rng.standard_normal((r, d))


def _low_rank(rng: Rng, d: int) -> Floats:
    u, v = _half_rank(rng, d)
    return np.asarray(u.T @ v)


def _low_rank_definite(rng: Rng, d: int) -> Floats:
    u, _ = _half_rank(rng, d)
    return np.asarray(u.T @ u)


_DRAWN: dict[str, tuple[str, Callable[[Rng, int], Floats]]] = {
    "identity": ("the identity", lambda rng, d: np.eye(d)),
    "spd": ("GᵀG / d: symmetric positive definite", _definite),
    "skew": ("(G - Gᵀ) / 2", _skew),
    "indefinite": ("symmetric, one positive eigenvalue, the others negative", _one_positive),
    "symmetric": ("(G + Gᵀ) / 2: symmetric, any signs", _symmetric),
    "negative": ("-GᵀG / d", lambda rng, d: -_definite(rng, d)),
    "general": ("G: independent normal entries", lambda rng, d: rng.standard_normal((d, d))),
    "vv": ("v vᵀ: rank one, symmetric", _outer),
    "uv": ("u vᵀ: rank one", lambda rng, d: np.outer(*rng.standard_normal((2, d)))),
    "low-rank": ("UᵀV of rank d / 2", _low_rank),
    "low-rank-psd": ("UᵀU of rank d / 2", _low_rank_definite),
    "trained": (
        f"learned by one of {MODELS} classifiers on the package's reviews",
        lambda rng, d: trained_scores(d, int(rng.integers(MODELS))),
    ),
}
MATRICES = {name: about for name, (about, _) in _DRAWN.items()} | {
    "spd+0.5skew": "GᵀG / d + 0.5 (H - Hᵀ) / 2; any number",
    "file:PATH": "the matrix in a .csv .npy .npz or .json file",
    "model:DIR": "learned by a saved classifier; each draw takes one of its heads",
}
"""The classes of score matrices, each with one line; G and H have normal entries."""

VALUES = {
    "identity": "every head hands over the mean of the tokens it chose; the heads are averaged",
    "blocks": "head h hands over its block of coordinates, as in `layer(heads=...)`",
    "rotation": "head h turns its mean by a random rotation; averaged",
    "gaussian": "head h maps its mean by a matrix of normal entries / sqrt(d); averaged",
}
"""What heads hand over, V_h."""


def check_class(name: object) -> str:
    """A known class of matrices."""
    text = str(name)
    if text in _DRAWN or _SKEWED.fullmatch(text):
        return text
    if text.startswith("file:"):
        _stored(text[5:])
        return text
    if text.startswith("model:"):
        saved_scores(text[6:])
        return text
    known = ", ".join(MATRICES)
    raise InputError(f"`matrix` must be one of {known}; got {text!r}.")


@lru_cache(maxsize=32)
def _stored(path: str) -> tuple[tuple[float, ...], ...]:
    found = read_matrix(Path(path))
    if isinstance(found, tuple):
        u, v = (np.asarray(part, dtype=np.float64) for part in found)
        found = u.T @ v
    matrix = np.asarray(found, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"{path}: expected a square matrix; got shape {matrix.shape}.")
    return tuple(tuple(row) for row in matrix.tolist())


def draw_matrix(name: str, d: int, rng: Rng) -> Floats:
    """A (d, d) score matrix of the class."""
    if name.startswith("file:"):
        matrix = np.array(_stored(name[5:]))
        if len(matrix) != d:
            raise InputError(f"{name}: the matrix is {matrix.shape}, and d = {d}. Set d.")
        return matrix
    if name.startswith("model:"):
        heads = saved_scores(name[6:])
        if heads.shape[1] != d:
            raise InputError(f"{name}: its heads have d = {heads.shape[1]}, and d = {d}. Set d.")
        return np.asarray(heads[int(rng.integers(len(heads)))])
    mixed = _SKEWED.fullmatch(name)
    if mixed:
        return _definite(rng, d) + float(mixed[1]) * _skew(rng, d)
    return _DRAWN[name][1](rng, d)


def draw_values(kind: str, heads: int, d: int, rng: Rng) -> Floats:
    """(heads, d, d) matrices V_h, so that a token moves toward sum_h V_h mean_h."""
    if kind == "identity":
        return np.tile(np.eye(d) / heads, (heads, 1, 1))
    if kind == "blocks":
        if d % heads:
            raise InputError(f"`heads` must divide d = {d} with values='blocks'; got {heads}.")
        place = np.arange(d) // (d // heads)
        return np.stack([np.diag((place == h).astype(np.float64)) for h in range(heads)])
    drawn = rng.standard_normal((heads, d, d))
    if kind == "gaussian":
        return np.asarray(drawn / np.sqrt(d) / heads)
    return np.stack([np.linalg.qr(one)[0] for one in drawn]) / heads


def draw_feed_forward(d: int, rng: Rng) -> tuple[Floats, Floats, Floats]:
    """Weights (d, 4d), bias (4d,), weights (4d, d) of one hidden layer of ReLUs.

    With normal entries scaled so that the output is about as long as the input.
    """
    width = 4 * d
    first = rng.standard_normal((d, width)) / np.sqrt(d)
    bias = rng.standard_normal(width)
    return first, bias, rng.standard_normal((width, d)) / np.sqrt(width)
