"""Rankings of the words of a text: by contribution, and by what their removal does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hardmax._types import Floats
from hardmax.explain.contributions import valences

__all__ = [
    "RANKINGS",
    "averaged_scores",
    "contribution_scores",
    "joint_scores",
    "margin_of",
    "removal_effects",
]

SAMPLES = 16


def margin_of(explanation: Any, logits: Floats) -> Floats:
    """How far each row of logits is on the side of the explanation's class.

    With two classes the logit itself, else the logit of `label`.
    """
    if logits.shape[1] == 1:
        return np.asarray(logits[:, 0])
    return np.asarray(logits[:, explanation.classes.index(explanation.label)])


def removal_effects(explanation: Any) -> Floats:
    """For each distinct word: the logit less the logit without it, all recomputed."""
    removal = explanation.removal
    without = removal.logits([(u,) for u in range(len(removal))])
    return np.asarray(explanation.logit - margin_of(explanation, without))


def contribution_scores(explanation: Any) -> Floats:
    """For each distinct word: the sum of its parts of the contributions."""
    removal = explanation.removal
    part = np.array([w.contribution for w in explanation.words])
    return np.array([part[list(places)].sum() for places in removal.units])


def averaged_scores(explanation: Any, samples: int = SAMPLES, seed: int = 0) -> Floats:
    """For each distinct word: its mean contribution in texts of half of the words.

    Half of the words are drawn `samples` times, by a fixed seed; each time the
    contributions are exact and the followers have chosen among the words left.
    """
    removal, bundle = explanation.removal, explanation.bundle
    if not len(removal):
        return np.zeros(0)
    there = np.random.default_rng(seed).random((samples, len(removal))) < 0.5
    keep = np.zeros((samples, len(removal.words)), dtype=bool)
    for unit, places in enumerate(removal.units):
        keep[:, list(places)] = there[:, [unit]]
    run = bundle.model.run(removal.tokens(keep))
    parts = bundle.vocabulary.parts_of(run.ids)
    worth = (run.u * valences(bundle, run.ids, explanation.output)).sum(axis=1)
    share = worth / (parts >= 0).sum(axis=1)
    held = parts >= 0
    total = np.bincount(
        parts[held],
        np.broadcast_to(share[:, None], parts.shape)[held],
        len(bundle.vocabulary.words),
    )
    codes = np.array(
        [bundle.vocabulary.numbers.get(removal.name(u), -1) for u in range(len(removal))]
    )
    found = np.where(codes >= 0, total[codes], 0.0)
    return np.asarray(found / np.maximum(there.sum(axis=0), 1))


def joint_scores(explanation: Any) -> Floats:
    """For each distinct word: what its removal does, plus its mean contribution in halves.

    The first knows that followers choose again when one word goes, the second that
    they do when many go; both are in logits.
    """
    return removal_effects(explanation) + averaged_scores(explanation)


RANKINGS: dict[str, Callable[[Any], Floats]] = {
    "joint": joint_scores,
    "removal": removal_effects,
    "contribution": contribution_scores,
}
"""Scores of the words of an explanation, by name; larger speaks more for the class."""
