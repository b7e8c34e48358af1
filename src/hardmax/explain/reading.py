"""A text as the model reads it: words with places, tokens, and what each token adds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hardmax._types import Floats, Ints
from hardmax.explain._deltas import longer
from hardmax.explain.bundle import Bundle
from hardmax.tokens.text import Word
from hardmax.tokens.vocabulary import Stream

__all__ = ["Reading", "Sums"]


class Reading:
    """A text as words, as tokens, and where each token stands among the words.

    Attributes
    ----------
    bundle : Bundle
    text : str
    every : (tuple of str, Stream)
        All words of the text, in their counted form; `stream` ends where the model stops
        reading.
    """

    def __init__(self, bundle: Bundle, text: str) -> None:
        self.bundle, self.text = bundle, text
        self.every = bundle.read(text)
        self.stream = self.every[1]
        if bundle.vocabulary.max_words is not None:
            self.stream = self.stream.cut(bundle.vocabulary.max_words)
        self.tokens = bundle.vocabulary.tokens_of(self.stream, sentences=bundle.sentences)

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words that the model reads, with their places."""
        words, most = self.bundle.places(self.text), self.bundle.vocabulary.max_words
        if most is None:
            return words
        keep = self.every[1].first(most)
        return tuple(word for word, kept in zip(words, keep, strict=True) if kept)

    @cached_property
    def spans(self) -> dict[int, list[tuple[int, int]]]:
        """Where each token stands: its first and last word, in order."""
        return spans_of(self.bundle, self.stream)


@dataclass(frozen=True)
class Sums:
    """What each distinct token of a text adds: parts = sum over heads of weights x values.

    `choices` are those of `open_text`, by the place of a token in its sequence.
    """

    reading: Reading
    tokens: Ints
    weights: Floats
    values: Floats
    parts: Floats
    choices: Ints


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
