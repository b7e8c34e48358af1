"""From a text to its explanation: influences, valences and their exact sum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Floats, Ints
from hardmax.explain._births import find_births
from hardmax.explain._peel import open_text
from hardmax.explain.bundle import Bundle, bundle_of, check_text, shares_of, winners
from hardmax.explain.explanation import Contribution, Explanation, Leader, WordPlace
from hardmax.explain.reading import Reading, Sums
from hardmax.tokens.batch import Tokens

__all__ = ["contributions_of", "explain", "leaders_of", "places_of", "valences"]

_BOUND = 1e-9


def explain(source: Any, text: str, label: Any = None) -> Explanation:
    """Why a classifier gives a text its logit.

    Parameters
    ----------
    source : fitted classifier or Bundle
    text : str
    label : class, optional
        With more than two classes, whose logit is explained; by default the
        predicted one.  With two, the logit is that of the second class.

    Returns
    -------
    Explanation

    Raises
    ------
    InputError
        If `text` is not one string, or `label` is none of the classes.

    Examples
    --------
    >>> from hardmax.estimators.classifier import HardmaxClassifier
    >>> texts = ["a good film", "good and warm", "a bad film", "bad and cold"] * 10
    >>> clf = HardmaxClassifier(dim=4, heads=2, epochs=100).fit(texts, [1, 1, 0, 0] * 10)
    >>> found = explain(clf, "a good evening")
    >>> found.prediction, [c.word for c in found.contributions]
    (1, ['good', 'a good', 'a'])
    """
    reading = Reading(bundle_of(source), check_text(text))
    bundle = reading.bundle
    u, pooled, at = open_text(
        bundle.vectors, bundle.gamma, bundle.scores(), reading.tokens.ids, reading.tokens.counts,
        reading.tokens.offsets, bundle.model.depth, bundle.model.tie_tol,
    )  # fmt: skip
    logits = _logits(bundle, pooled)
    output = _output(bundle, label, logits)
    shares = shares_of(logits)[0]
    sums = _sums(reading, u, at, output)
    bias = float(bundle.model.b.detach()[output])
    c = output if len(bundle.classes) > 2 else 1
    return Explanation(
        text,
        bundle.classes[c],
        bundle.classes,
        bundle.classes[int(winners(logits)[0])],
        _settled(float(logits[0, output]), bias, sums.parts),
        bias,
        float(shares[c]),
        tuple(shares.tolist()),
        sums,
    )


def _logits(bundle: Bundle, pooled: Floats) -> Floats:
    """The decoder as `HardmaxModel.logits` applies it, bit for bit."""
    v, b = bundle.model.v.detach().numpy(), bundle.model.b.detach().numpy()
    return np.stack([(pooled * row).sum(axis=1) + x for row, x in zip(v, b, strict=True)], axis=1)


def _output(bundle: Bundle, label: Any, logits: Floats) -> int:
    """Which logit is explained."""
    if label is not None and label not in bundle.classes:
        names = ", ".join(map(repr, bundle.classes[:8]))
        raise InputError(f"`label` must be one of the classes {names}; got {label!r}.")
    if len(bundle.classes) == 2:
        return 0
    return int(winners(logits)[0]) if label is None else bundle.classes.index(label)


def valences(bundle: Bundle, ids: Ints, output: int) -> Floats:
    """What the decoder makes of the vectors of some tokens, (tokens, heads)."""
    v = bundle.model.v.detach().numpy()[output]
    E = bundle.vectors[ids].astype(np.float64)
    heads = bundle.model.heads
    return np.asarray((E * v).reshape(len(ids), heads, len(v) // heads).sum(axis=2))


def _sums(reading: Reading, u: Floats, at: Ints, output: int) -> Sums:
    """The contribution of every distinct token of the text."""
    order, weights = _influences(reading.tokens, u)
    values = valences(reading.bundle, order, output)
    return Sums(reading, order, weights, values, (weights * values).sum(axis=1), at)


def _influences(tokens: Tokens, u: Floats) -> tuple[Ints, Floats]:
    """The distinct tokens of the text, and their weights over all its sequences."""
    if len(tokens.offsets) == 2:  # one sequence: each token once, in order
        return tokens.ids.astype(np.int64), u
    order, back = np.unique(tokens.ids, return_inverse=True)
    weights = np.zeros((len(order), u.shape[1]))
    np.add.at(weights, back, u)
    return order.astype(np.int64), weights


def contributions_of(sums: Sums) -> tuple[Contribution, ...]:
    """One record per distinct token, the largest contribution first."""
    reading, vocabulary = sums.reading, sums.reading.bundle.vocabulary
    tokens, parts, words = sums.tokens.tolist(), sums.parts.tolist(), sums.reading.words
    names = vocabulary.names_of(sums.tokens)
    spans = [reading.spans[token] for token in tokens]
    each = [2 if token >= vocabulary.first_pair else 1 for token in tokens]
    rank = sorted(range(len(tokens)), key=lambda r: (-abs(parts[r]), spans[r][0]))
    alone = sums.weights.shape[1] == 1
    shares = sums.weights[:, 0].tolist() if alone else sums.weights.tolist()
    worth = sums.values[:, 0].tolist() if alone else sums.values.tolist()
    return tuple(
        Contribution(
            names[r],
            len(spans[r]) // each[r],
            shares[r],
            worth[r],
            parts[r],
            tuple([(words[p].start, words[q].stop) for p, q in spans[r]]),
        )
        for r in rank
    )


def _settled(logit: float, bias: float, parts: Floats) -> float:
    """The model's logit; where its own rounding is larger than the bound, the exact sum.

    Vectors of many millions that cancel would otherwise leave the rounding of the
    model's sum, which takes coordinates before words, in the difference.
    """
    total = math.fsum([bias, *parts.tolist()])
    scale = max(1.0, abs(bias) + math.fsum(np.abs(parts).tolist()))
    return logit if abs(logit - total) <= _BOUND / 2 * scale else total


def places_of(sums: Sums) -> tuple[WordPlace, ...]:
    """Every word with its part of the contributions."""
    reading = sums.reading
    part = [0.0] * len(reading.words)
    for token, worth in zip(sums.tokens.tolist(), sums.parts.tolist(), strict=True):
        spans = reading.spans[token]
        for first, last in spans:
            share = worth / len(spans) / (last + 1 - first)
            for place in range(first, last + 1):
                part[place] += share
    known = (reading.stream.words >= 0).tolist()
    return tuple(
        WordPlace(word.text, word.start, word.stop, k, x)
        for word, k, x in zip(reading.words, known, part, strict=True)
    )


def leaders_of(bundle: Bundle, tokens: Tokens, output: int) -> tuple[Leader, ...]:
    """The leaders of all heads and sentences, in the order of heads and influence."""
    model = bundle.model
    order, weights = _influences(tokens, model.run(tokens).u)
    born, first, last = find_births(
        model.E.detach().numpy(), model.gamma.detach().numpy(), bundle.scores(), tokens.ids,
        tokens.counts.astype(np.float64), tokens.offsets, model.depth, model.tie_tol,
    )  # fmt: skip
    names, rows = bundle.vocabulary.names_of(tokens.ids), np.searchsorted(order, tokens.ids)
    sentence = np.searchsorted(np.unique(tokens.offsets), np.arange(len(names)), "right") - 1
    values = valences(bundle, order, output)
    out = []
    for i, h in zip(*np.nonzero(first == np.arange(len(first))[:, None]), strict=True):
        members = np.flatnonzero(first[:, h] == i)
        follow = np.isin(last[:, h], members) & (last[:, h] != np.arange(len(names)))
        out.append(
            Leader(
                names[i],
                int(born[i, h]),
                int(h),
                int(sentence[i]),
                tuple(names[j] for j in members.tolist()),
                int(tokens.counts[follow].sum()),
                float(weights[rows[i], h]),
                float(values[rows[i], h]),
            )
        )
    return tuple(sorted(out, key=lambda x: (x.head, -x.influence, x.sentence)))
