"""From a text to its explanation: influences, valences and their exact sum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Floats, Ints
from hardmax.explain._births import find_births
from hardmax.explain._deltas import longer
from hardmax.explain.bundle import Bundle, bundle_of, check_text, shares_of, winners
from hardmax.explain.explanation import (
    Contribution,
    Explanation,
    Leader,
    WordPlace,
)
from hardmax.tokens.batch import Tokens
from hardmax.tokens.vocabulary import Stream

__all__ = ["explain", "leaders_of", "spans_of", "valences"]

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
    >>> clf = HardmaxClassifier(dim=4, heads=2, random_state=0).fit(texts, [1, 1, 0, 0] * 10)
    >>> found = explain(clf, "a good evening")
    >>> found.prediction, [c.word for c in found.contributions]
    (1, ['good', 'a good', 'a'])
    """
    read = _Read(bundle_of(source), check_text(text))
    bundle = read.bundle
    run = bundle.model.run(read.tokens)
    logits = _logits(bundle, run.pooled)
    output = _output(bundle, label, logits)
    shares = shares_of(logits)[0]
    found = _contributions(read, *_influences(read.tokens, run.u), output)
    bias = float(bundle.model.b.detach()[output])
    c = output if len(bundle.classes) > 2 else 1
    return Explanation(
        text,
        bundle.classes[c],
        bundle.classes,
        bundle.classes[int(winners(logits)[0])],
        _settled(float(logits[0, output]), bias, found),
        bias,
        float(shares[c]),
        tuple(shares.tolist()),
        found,
        _places(read, found),
        bundle,
    )


class _Read:
    """A text as words, as tokens, and where each token stands among the words."""

    def __init__(self, bundle: Bundle, text: str) -> None:
        self.bundle = bundle
        self.words, self.stream = bundle.read(text)
        if bundle.vocabulary.max_words is not None:
            keep = self.stream.first(bundle.vocabulary.max_words)
            self.words = tuple(word for word, kept in zip(self.words, keep, strict=True) if kept)
            self.stream = self.stream.cut(bundle.vocabulary.max_words)
        self.tokens = bundle.vocabulary.tokens_of(self.stream, sentences=bundle.sentences)
        self.spans = spans_of(bundle, self.stream)


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
    E = bundle.model.E.detach().numpy()[ids].astype(np.float64)
    heads = bundle.model.heads
    return np.asarray((E * v).reshape(len(ids), heads, len(v) // heads).sum(axis=2))


def _influences(tokens: Tokens, u: Floats) -> tuple[Ints, Floats]:
    """The distinct tokens of the text, and their weights over all its sequences."""
    order, back = np.unique(tokens.ids, return_inverse=True)
    weights = np.zeros((len(order), u.shape[1]))
    np.add.at(weights, back, u)
    return order.astype(np.int64), weights


def spans_of(bundle: Bundle, stream: Stream) -> dict[int, list[tuple[int, int]]]:
    """Where each token of a text stands: its first and last word, in order."""
    vocabulary = bundle.vocabulary
    size, row = len(vocabulary.words), stream.words.astype(np.int64)
    across = vocabulary.across and not bundle.sentences
    places: dict[int, list[tuple[int, int]]] = {}
    for n in range(1, vocabulary.ngrams + 1):
        if n > 1:
            row = longer(row, stream.words, stream.ends, n, size, across, *vocabulary.gram_table)
        for p in np.flatnonzero(row >= 0).tolist():
            places.setdefault(int(row[p]), []).append((p, p + n - 1))
    _add_pairs(bundle, stream, across, places)
    return places


def _add_pairs(
    bundle: Bundle, stream: Stream, across: bool, places: dict[int, list[tuple[int, int]]]
) -> None:
    """Gapped pairs: the place of the first word, then that of the last, of each occurrence."""
    vocabulary, row = bundle.vocabulary, stream.words.astype(np.int64)
    ended = np.concatenate([[0], np.cumsum(stream.ends)])
    for distance in range(2, vocabulary.far + 1):
        a, b = row[:-distance], row[distance:]
        there = (a >= 0) & (b >= 0)
        if not across:
            there &= ended[distance:-1] == ended[: -distance - 1]
        for p in np.flatnonzero(there).tolist():
            token = vocabulary.pair_number.get((int(a[p]), int(b[p]), distance))
            if token is not None:
                places.setdefault(token, []).extend([(p, p), (p + distance, p + distance)])


def _contributions(
    read: _Read, order: Ints, weights: Floats, output: int
) -> tuple[Contribution, ...]:
    """One record per distinct token, the largest contribution first."""
    values = valences(read.bundle, order, output)
    parts = (weights * values).sum(axis=1).tolist()
    names, words = read.bundle.vocabulary.names_of(order), read.words
    tokens = order.tolist()
    spans = [read.spans[token] for token in tokens]
    each = [2 if token >= read.bundle.vocabulary.first_pair else 1 for token in tokens]
    rank = sorted(range(len(tokens)), key=lambda r: (-abs(parts[r]), spans[r][0]))
    alone = weights.shape[1] == 1
    shares = weights[:, 0].tolist() if alone else weights.tolist()
    worth = values[:, 0].tolist() if alone else values.tolist()
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


def _settled(logit: float, bias: float, found: tuple[Contribution, ...]) -> float:
    """The model's logit; where its own rounding is larger than the bound, the exact sum.

    Vectors of many millions that cancel would otherwise leave the rounding of the
    model's sum, which takes coordinates before words, in the difference.
    """
    parts = [c.contribution for c in found]
    total = math.fsum([bias, *parts])
    scale = max(1.0, abs(bias) + math.fsum(map(abs, parts)))
    return logit if abs(logit - total) <= _BOUND / 2 * scale else total


def _places(read: _Read, found: tuple[Contribution, ...]) -> tuple[WordPlace, ...]:
    """Every word with its part of the contributions."""
    begin = {word.start: place for place, word in enumerate(read.words)}
    end = {word.stop: place + 1 for place, word in enumerate(read.words)}
    part = [0.0] * len(read.words)
    for c in found:
        share = c.contribution / len(c.spans)
        for start, stop in c.spans:
            low, high = begin[start], end[stop]
            for place in range(low, high):
                part[place] += share / (high - low)
    known = (read.stream.words >= 0).tolist()
    return tuple(
        WordPlace(word.text, word.start, word.stop, k, x)
        for word, k, x in zip(read.words, known, part, strict=True)
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
