"""How much the presence of each token says of the class, from counts of texts alone."""

from __future__ import annotations

import numpy as np

from hardmax._types import Floats
from hardmax.learn.labelled import Labelled

__all__ = ["evidence", "lengths"]

_TEXTS = 4096


def evidence(data: Labelled, size: int, power: float) -> Floats:
    """The scale of each token's vector at the beginning, and of its learning rate.

        s_i = |log p_i - log q_i|^power, divided by its mean over all occurrences

    with p_i and q_i the shares of token i among the tokens of the texts of a class
    and of the others, each count increased by one; with more than two classes the
    largest over the classes.

    Parameters
    ----------
    data : Labelled
    size : int
        Number of tokens of the vocabulary.
    power : float
        0 gives ones.

    Returns
    -------
    (size,) array
        Positive, as far as any count differs; all ones where none does.
    """
    if power == 0:
        return np.ones(size)
    counts = _texts_with(data, size) + 1.0
    total = counts.sum(axis=1)
    found = np.zeros(size)
    for k in range(counts.shape[1] if counts.shape[1] > 2 else 1):
        p, q = counts[:, k], total - counts[:, k]
        found = np.maximum(found, np.abs(np.log(p / p.sum()) - np.log(q / q.sum())))
    scale = found**power
    often = total - counts.shape[1]
    mean = float((scale * often).sum() / max(often.sum(), 1.0))
    return scale / mean if mean > 0 else np.ones(size)


def _texts_with(data: Labelled, size: int) -> Floats:
    """In how many sequences of each class a token occurs, (size, classes)."""
    tokens, starts = data.tokens, data.tokens.starts
    out = np.zeros((int(data.labels.max()) + 1, size))
    for low in range(0, len(tokens), _TEXTS):
        high = min(low + _TEXTS, len(tokens))
        ids = np.asarray(tokens.ids[starts[low] : starts[high]], dtype=np.int64)
        label = np.repeat(data.labels[low:high], np.diff(starts[low : high + 1]))
        for k in np.unique(label):
            out[k] += np.bincount(ids[label == k], minlength=size)
    return out.T


def lengths(data: Labelled, power: float) -> Floats | None:
    """Factors of the logits in training, (n / mean n)^power with n tokens; None for power 0."""
    if power == 0:
        return None
    sizes = np.diff(data.tokens.starts).astype(np.float64)
    return np.asarray((sizes / max(sizes.mean(), 1.0)) ** power)
