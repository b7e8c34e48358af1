"""Rankings of the words of a text: by contribution, and by what their removal does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hardmax._types import Floats, Ints
from hardmax.explain._peel import peel, share_out
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
    removal, sums = explanation.removal, explanation.sums
    vocabulary = explanation.bundle.vocabulary
    shares: Floats = share_out(
        sums.tokens, sums.parts, len(vocabulary.words), vocabulary.grams, vocabulary.pairs,
        max(vocabulary.ngrams, 2), *_owners(removal), len(removal),
    )  # fmt: skip
    return shares


def _owners(removal: Any) -> tuple[Ints, Ints]:
    """The word numbers of a text, ascending, and the unit of each."""
    codes, first = np.unique(removal.stream.words, return_index=True)
    known = codes >= 0
    return codes[known].astype(np.int64), removal.unit[first[known]]


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


def peeled_scores(explanation: Any) -> Floats:
    """For each distinct word: its place when words are taken away, the strongest first.

    The words that hold the prediction up most by contribution go first; then those
    that do so among the words left, whose followers have chosen again; and so on in
    growing lots, until nothing holds it up or most words are gone.  The first word
    gets as many points as there are words, the last one; signed so that larger
    speaks more for `label`.
    """
    removal, bundle = explanation.removal, explanation.bundle
    if not len(removal):
        return np.zeros(0)
    order = _peeled(explanation, removal, bundle)
    sign = 1.0 if explanation.prediction == explanation.label else -1.0
    points = np.empty(len(order))
    points[order] = sign * np.arange(len(order), 0, -1)
    return points


def _peeled(explanation: Any, removal: Any, bundle: Any) -> Any:
    vocabulary, model, stream = bundle.vocabulary, bundle.model, removal.stream
    sign = 1.0 if explanation.prediction == explanation.label else -1.0
    v = sign * model.v.detach().numpy()[explanation.output]
    most = -1 if vocabulary.max_words is None else vocabulary.max_words
    return peel(
        stream.words, stream.ends, removal.unit, sign * contribution_scores(explanation),
        *_owners(removal), most, vocabulary.ngrams, *vocabulary.gram_table,
        vocabulary.across and not bundle.sentences, bundle.sentences, vocabulary.far,
        *vocabulary.pair_table, len(vocabulary.words), vocabulary.grams, vocabulary.pairs,
        vocabulary.once, model.E.detach().numpy(), model.gamma.detach().numpy(), bundle.scores(),
        v, model.depth, model.tie_tol, GROW, MOST,
    )  # fmt: skip


RANKINGS: dict[str, Callable[[Any], Floats]] = {
    "peeled": peeled_scores,
    "joint": joint_scores,
    "removal": removal_effects,
    "contribution": contribution_scores,
}
"""Scores of the words of an explanation, by name; larger speaks more for the class."""
