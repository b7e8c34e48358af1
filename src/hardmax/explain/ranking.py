"""Rankings of the words of a text: by contribution, and by what their removal does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hardmax._types import Array, Floats, Ints
from hardmax.explain._peel import peel, share_out, units_of
from hardmax.explain.contributions import valences

__all__ = [
    "RANKINGS",
    "averaged_scores",
    "contribution_scores",
    "joint_scores",
    "margin_of",
    "peeled_scores",
    "removal_effects",
]

SAMPLES = 16
GROW = 3.0
"""Of k words taken away, about (GROW - 1) k are taken next."""
MOST = 0.6
"""Words beyond this share keep the order they then have."""


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
    sums = explanation.sums
    return _shared(explanation, sums.parts, _units(explanation, sums.tokens))


def _units(explanation: Any, ids: Array) -> Ints:
    """The units of the words of some tokens, (tokens, width), filled up with -1."""
    removal, vocabulary = explanation.removal, explanation.bundle.vocabulary
    found: Ints = units_of(
        ids, len(vocabulary.words), vocabulary.grams, vocabulary.pairs, max(vocabulary.ngrams, 2),
        removal.stream.words, removal.unit,
    )  # fmt: skip
    return found


def _shared(explanation: Any, worth: Floats, parts: Ints) -> Floats:
    score: Floats = share_out(worth, parts, len(explanation.removal))
    return score


def averaged_scores(explanation: Any, samples: int = SAMPLES, seed: int = 0) -> Floats:
    """For each distinct word: its mean contribution in texts of half of the words.

    Half of the words are drawn `samples` times, by a fixed seed; each time the
    contributions are exact and the followers have chosen among the words left.
    """
    removal, bundle = explanation.removal, explanation.bundle
    if not len(removal):
        return np.zeros(0)
    there = np.random.default_rng(seed).random((samples, len(removal))) < 0.5
    keep = np.zeros((samples, len(removal.names)), dtype=bool)
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


def peeled_scores(explanation: Any) -> Floats:
    """For each distinct word: its place when words are taken away, the strongest first.

    The words that hold the prediction up most by contribution go first; then those
    that do so among the words left, whose followers have chosen again; and so on in
    growing lots, until nothing holds it up or most words are gone.  n-grams go with
    their words, and those that a removal would make are left out.  The first word
    gets as many points as there are words, the last one; signed so that larger
    speaks more for `label`.
    """
    if not len(explanation.removal):
        return np.zeros(0)
    order = _peeled(explanation)
    sign = 1.0 if explanation.prediction == explanation.label else -1.0
    points = np.empty(len(order))
    points[order] = sign * np.arange(len(order), 0, -1)
    return points


def _peeled(explanation: Any) -> Any:
    bundle, sums, tokens = explanation.bundle, explanation.sums, explanation.tokens
    sign = 1.0 if explanation.prediction == explanation.label else -1.0
    alone = len(tokens.offsets) == 2  # one sequence: its tokens are those of the sums
    rows = slice(None) if alone else np.searchsorted(sums.tokens, tokens.ids)
    each = _units(explanation, sums.tokens)
    score = _shared(explanation, sign * sums.parts, each)
    return peel(
        bundle.vectors, bundle.gamma, bundle.scores(), sign * sums.values[rows], tokens.ids,
        tokens.counts, tokens.offsets, sums.choices, each[rows], score, bundle.model.depth,
        bundle.model.tie_tol, GROW, MOST,
    )  # fmt: skip


RANKINGS: dict[str, Callable[[Any], Floats]] = {
    "peeled": peeled_scores,
    "joint": joint_scores,
    "removal": removal_effects,
    "contribution": contribution_scores,
}
"""Scores of the words of an explanation, by name; larger speaks more for the class."""
