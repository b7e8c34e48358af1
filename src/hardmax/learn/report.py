"""What an evaluation states: accuracy, calibration, leaders, and how far words move."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from hardmax._errors import InputError
from hardmax._types import Array, Floats, Ints
from hardmax.learn.model import HardmaxModel
from hardmax.select import Chosen, select
from hardmax.tokens.batch import Tokens

__all__ = ["Bin", "Evaluation", "LeaderTable", "evaluate", "leader_table", "wilson"]

_Z95 = 1.959963984540054
_BINS = 10


@dataclass(frozen=True)
class Bin:
    """Texts whose largest probability lies in [low, high): how sure, and how often right."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Evaluation:
    """Predictions against labels.

    Attributes
    ----------
    texts, correct : int
    accuracy : float
    interval : (float, float)
        95 % interval of Wilson.
    log_loss : float
        Mean of -log of the probability of the true class, in nats.
    calibration_error : float
        Mean distance of confidence and accuracy over the bins, weighted by texts.
    confusion : tuple of tuples of int
        Rows are true classes, columns predicted ones, in the order of `classes`.
    bins : tuple of Bin
    """

    classes: tuple[Any, ...]
    texts: int
    correct: int
    accuracy: float
    interval: tuple[float, float]
    log_loss: float
    calibration_error: float
    confusion: tuple[tuple[int, ...], ...]
    bins: tuple[Bin, ...]


@dataclass(frozen=True)
class LeaderTable:
    """Leaders per text and head, as in the paper's table, and the movement of the words.

    `at_start` is the share of leaders that lead at layer 0.  `moved` is the share
    of word occurrences, averaged over heads, of whose last vector more than half
    is the first vector of one other word.
    """

    texts: int
    mean: float
    deviation: float
    smallest: int
    largest: int
    at_start: float
    moved: float


def wilson(correct: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    p, z = correct / n, _Z95
    middle, wide = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if correct == 0 else (middle - wide) / scale
    high = 1.0 if correct == n else (middle + wide) / scale
    return low, high


def evaluate(classes: Array, labels: Ints, shares: Floats) -> Evaluation:
    """Compare probabilities (n, classes) with class numbers (n,)."""
    n = len(labels)
    if n == 0:
        raise InputError("expected at least one labelled text to evaluate on, got none.")
    guess = shares.argmax(axis=1)
    right = guess == labels
    confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(confusion, (labels, guess), 1)
    bins = _bins(shares.max(axis=1), right)
    true = np.maximum(shares[np.arange(n), labels], np.finfo(float).tiny)
    return Evaluation(
        tuple(classes.tolist()),
        n,
        int(right.sum()),
        float(right.mean()),
        wilson(int(right.sum()), n),
        float(-np.log(true).mean()),
        sum(b.count * abs(b.confidence - b.accuracy) for b in bins) / n,
        tuple(tuple(row) for row in confusion.tolist()),
        bins,
    )


def _bins(sure: Floats, right: Array) -> tuple[Bin, ...]:
    """The texts by confidence, in tenths; empty bins left out."""
    place = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    out = []
    for k in np.unique(place).tolist():
        rows = place == k
        out.append(
            Bin(
                k / _BINS,
                (k + 1) / _BINS,
                int(rows.sum()),
                float(sure[rows].mean()),
                float(right[rows].mean()),
            )
        )
    return tuple(out)


def leader_table(model: HardmaxModel, tokens: Tokens) -> LeaderTable:
    """Leaders and movement on some texts, by the library's own layers."""
    owner = np.repeat(np.arange(len(tokens)), np.diff(tokens.starts))
    born, moved = [], []
    for h in range(model.heads):
        birth, share = _trace(model, tokens, h)
        born.append(birth)
        moved.append(float((tokens.counts * share).sum() / max(tokens.counts.sum(), 1)))
    leads = np.stack(born) >= 0
    per_text = np.stack([np.bincount(owner[row], minlength=len(tokens)) for row in leads])
    per_text = per_text[:, np.diff(tokens.starts) > 0]
    if per_text.size == 0:
        raise InputError("expected a text with a known word, got none.")
    total = int(leads.sum())
    return LeaderTable(
        per_text.shape[1],
        float(per_text.mean()),
        float(per_text.std()),
        int(per_text.min()),
        int(per_text.max()),
        float((np.stack(born) == 0).sum() / max(total, 1)),
        float(np.mean(moved)),
    )


def _trace(model: HardmaxModel, tokens: Tokens, h: int) -> tuple[Ints, Array]:
    """For one head: the layer at which each token first leads (-1 never); who moved."""
    zs, size = model.layers(tokens), model.E.shape[1] // model.heads
    gamma, cuts = float(model.gamma[h].detach()), np.unique(tokens.offsets)
    born = np.full(len(tokens.ids), -1, dtype=np.int64)
    A = None if model.A is None else model.A[h].detach().numpy()
    path = sp.identity(len(tokens.ids), format="csr")
    for k, z in enumerate(zs):
        block = np.ascontiguousarray(z.detach().numpy()[:, h * size : (h + 1) * size])
        chosen = select(block, A, cuts, tie_tol=model.tie_tol)
        alone = (chosen.counts == 1) & (chosen.indices[chosen.indptr[:-1]] == np.arange(len(block)))
        born[alone & (born < 0)] = k
        if k < model.depth:
            path = (1 - gamma) * path + gamma * (_matrix(chosen, tokens) @ path)
    path = path.tocoo()
    other = path.row != path.col
    moved = np.zeros(len(born), dtype=bool)
    moved[path.row[other][path.data[other] > 0.5]] = True
    return born, moved


def _matrix(chosen: Chosen, tokens: Tokens) -> Any:
    """The rows of chosen tokens with their shares, by multiplicity."""
    weights = tokens.counts[chosen.indices].astype(np.float64)
    weights /= np.add.reduceat(weights, chosen.indptr[:-1])[chosen.rows]
    n = len(tokens.ids)
    return sp.csr_matrix((weights, chosen.indices, chosen.indptr), shape=(n, n))
