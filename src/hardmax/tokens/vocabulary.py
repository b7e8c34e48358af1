"""The vocabulary: words and n-grams with numbers, and texts as `Tokens`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hardmax._errors import InputError
from hardmax._types import Array, Bools, Ints
from hardmax.io.spool import blank
from hardmax.tokens import _grams
from hardmax.tokens.batch import Tokens, join_tokens
from hardmax.tokens.stream import Index, Stream, blocks, read_stream, settle_texts
from hardmax.tokens.text import split_words

__all__ = ["Span", "Stream", "Vocabulary", "learn_vocabulary", "read_stream"]

_PLACES = 1 << 25
"""Places of a text whose n-grams are counted at a time."""
_LIMIT = 2**31 - 1
_GAPPED = 3
"""Texts in which a gapped pair must occur at least: most pairs of neighbours are chance."""


def _no_pairs() -> npt.NDArray[np.int32]:
    return np.zeros((0, 3), dtype=np.int32)


@dataclass(frozen=True)
class Span:
    """One occurrence of a token: its number and its place in the text."""

    token: int
    start: int
    stop: int


@dataclass(frozen=True)
class Vocabulary:
    """Words and n-grams with numbers: first the words, then pairs, triples, gapped pairs.

    Attributes
    ----------
    words : tuple of str
    grams : (m, 2) int32 array
        Token len(words) + r is the token grams[r, 0] followed by the word grams[r, 1].
    ngrams : int
        Longest number of words in a token.
    punctuation : bool
        Whether marks of punctuation are words.
    across : bool
        Whether n-grams reach over the end of a sentence.
    stop_words : frozenset of str
        Words that are dropped before n-grams are formed.
    max_words : int, optional
        A text is its first so many words; all when None.
    once : bool
        Whether a token counts once in a sequence, however often it occurs.
    far : int
        Largest distance of the two words of a gapped pair; 1 for none.
    pairs : (m, 3) int32 array
        Gapped pairs, numbered after the n-grams: first word, last word, distance.
        "not _ good" is `not` and `good` with one word between.
    """

    words: tuple[str, ...]
    grams: npt.NDArray[np.int32]
    ngrams: int = 1
    punctuation: bool = False
    across: bool = True
    stop_words: frozenset[str] = frozenset()
    max_words: int | None = None
    once: bool = False
    far: int = 1
    pairs: npt.NDArray[np.int32] = field(default_factory=_no_pairs)

    def __len__(self) -> int:
        return self.first_pair + len(self.pairs)

    @property
    def first_pair(self) -> int:
        """The number of the first gapped pair."""
        return len(self.words) + len(self.grams)

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone; what was derived from them is made again."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @cached_property
    def gram_table(self) -> tuple[Ints, Array]:
        """The n-grams as a hash table of `_grams`: head * len(words) + word, and the token."""
        keys = self.grams[:, 0].astype(np.int64) * max(len(self.words), 1) + self.grams[:, 1]
        table: tuple[Ints, Array] = _grams.build_table(keys, len(self.words))
        return table

    @cached_property
    def pair_table(self) -> tuple[Ints, Array]:
        """The gapped pairs as a hash table of `_grams`."""
        a, b, distance = self.pairs.astype(np.int64).T
        keys = (a * max(len(self.words), 1) + b) * (self.far + 1) + distance
        table: tuple[Ints, Array] = _grams.build_table(keys, self.first_pair)
        return table

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each word."""
        return {word: k for k, word in enumerate(self.words)}

    def parts_of(self, ids: Array) -> Ints:
        """The words of some tokens, one row each, filled up with -1."""
        width = max(self.ngrams, 2 if self.far > 1 else 1)
        out = np.full((len(ids), width), -1, dtype=np.int64)
        left = np.array(ids, dtype=np.int64)
        far = left >= self.first_pair
        pair = self.pairs[left[far] - self.first_pair]
        left[far], out[far, 1:2] = pair[:, 0], pair[:, 1:2]
        for n in range(self.ngrams - 1, 0, -1):
            long = left >= len(self.words)
            pairs = self.grams[left[long] - len(self.words)]
            out[long, n], left[long] = pairs[:, 1], pairs[:, 0]
        out[:, 0] = left
        order = np.argsort(out < 0, axis=1, kind="stable")  # the first words come first
        return np.asarray(np.take_along_axis(out, order, axis=1))

    def names_of(self, ids: Array) -> list[str]:
        """The names of some tokens, without making those of all."""
        words, first = self.words, self.first_pair
        return [
            " ".join([words[k] for k in row if k >= 0]) if i < first else self._pair_name(i - first)
            for i, row in zip(np.asarray(ids).tolist(), self.parts_of(ids).tolist(), strict=True)
        ]

    def _pair_name(self, row: int) -> str:
        first, last, distance = self.pairs[row].tolist()
        return " ".join([self.words[first], *["_"] * (distance - 1), self.words[last]])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The words of every token, joined by blanks; `_` for a word left open."""
        names = list(self.words)
        for head, last in self.grams.tolist():
            names.append(f"{names[head]} {names[last]}")
        return (*names, *map(self._pair_name, range(len(self.pairs))))

    def stream(self, texts: Iterable[str]) -> Stream:
        """Texts as the word numbers of this vocabulary."""
        index, new = self._index
        stream = settle_texts(texts, index, self.words)
        return stream.renumbered(new, self.words) if self.stop_words else stream

    @cached_property
    def _index(self) -> tuple[Index, Array]:
        """Words, then stop words: their numbers, and which are kept."""
        known = (*self.words, *sorted(self.stop_words - set(self.words)))
        new = np.arange(len(known))
        new[[word in self.stop_words for word in known]] = _grams.MARK
        return Index(known, self.punctuation, True), new

    def encode(self, texts: Iterable[str], *, sentences: bool = False) -> Tokens:
        """Texts as distinct tokens; a sequence is a text, or a sentence.

        Words outside the vocabulary are left out; a text without known words
        has no tokens.
        """
        return self.tokens_of(self.stream(texts), sentences=sentences)

    def tokens_of(self, stream: Stream, *, sentences: bool = False) -> Tokens:
        """A stream of this vocabulary's word numbers as distinct tokens."""
        if self.max_words is not None:
            stream = stream.cut(self.max_words)
        lots = self._lots(stream, sentences)
        return next(lots) if len(stream.offsets) == 2 else join_tokens(lots)

    def _lots(self, stream: Stream, sentences: bool) -> Iterator[Tokens]:
        """The tokens of some texts after the other, in the types of `Tokens`."""
        cuts, (table, value) = stream.offsets, self.gram_table
        for texts in blocks(cuts):
            part = cuts[texts.start : texts.stop + 1]
            rows = slice(part[0], part[-1])
            arrays = _grams.encode(
                stream.words[rows],
                stream.ends[rows],
                part - part[0],
                self.ngrams,
                max(len(self.words), 1),
                table,
                value,
                self.across and not sentences,
                sentences,
                self.far,
                *self.pair_table,
            )
            if self.once:
                arrays[1][:] = 1
            yield Tokens(*arrays)

    def spans(self, text: str) -> tuple[Span, ...]:
        """Every occurrence of a token in a text, with its place, for highlighting."""
        words = [
            word
            for word in split_words(text, punctuation=self.punctuation)
            if word.text not in self.stop_words
        ]
        stream = self.stream([text])
        if self.max_words is not None:
            stream = stream.cut(self.max_words)
        numbers, spans = stream.words.tolist(), []
        size, found = max(len(self.words), 1), self._number
        for p, token in enumerate(numbers):
            for q in range(p, min(p + self.ngrams, len(numbers))):
                if numbers[q] < 0 or (q > p and not self.across and stream.ends[q - 1]):
                    break
                token = token if q == p else found.get(token * size + numbers[q], -1)
                if token < 0:
                    break
                spans.append(Span(token, words[p].start, words[q].stop))
            for q in range(p + 2, min(p + self.far + 1, len(numbers)) if numbers[p] >= 0 else 0):
                if not self.across and stream.ends[p:q].any():
                    break
                token = self.pair_number.get((numbers[p], numbers[q], q - p), -1)
                if token >= 0:
                    spans.append(Span(token, words[p].start, words[q].stop))
        return tuple(spans)

    @cached_property
    def pair_number(self) -> dict[tuple[int, ...], int]:
        """The number of each gapped pair (first word, last word, distance)."""
        return {tuple(row): self.first_pair + r for r, row in enumerate(self.pairs.tolist())}

    @cached_property
    def _number(self) -> dict[int, int]:
        keys = self.grams[:, 0].astype(np.int64) * max(len(self.words), 1) + self.grams[:, 1]
        return {key: len(self.words) + r for r, key in enumerate(keys.tolist())}


def learn_vocabulary(
    stream: Stream,
    *,
    ngrams: int = 1,
    min_count: int = 1,
    max_size: int | None = None,
    stop_words: Iterable[str] = (),
    punctuation: bool = False,
    across: bool = True,
    max_words: int | None = None,
    once: bool = False,
    far: int = 1,
) -> tuple[Vocabulary, Stream]:
    """The tokens that occur in at least `min_count` texts, commonest first.

    An n-gram is kept only with all its parts, which occur at least as often.
    Gapped pairs, two words at a distance from 2 to `far`, must occur in three texts.

    Returns
    -------
    vocabulary : Vocabulary
    stream : Stream
        The texts in the numbers of the vocabulary: `vocabulary.tokens_of(stream)`.

    Raises
    ------
    InputError
        If no word is left.
    """
    dropped = frozenset(stop_words)
    if dropped:
        new = np.arange(len(stream.table))
        new[[word in dropped for word in stream.table]] = _grams.MARK
        stream = stream.renumbered(new, stream.table)
    count = _grams.count_words(stream.words, stream.offsets, max(len(stream.table), 1))
    if max_size is not None and len(stream.table) > max_size:
        min_count = max(min_count, int(np.sort(count)[-max_size - 1]) + 1)
    words, stream = _keep_words(stream, count, min_count)
    none = np.zeros((0, 2), dtype=np.int32)
    kind = (ngrams, punctuation, across, dropped, max_words, once, far)
    vocabulary = Vocabulary(words, none, *kind)
    grams, counts = _keep_grams(vocabulary, stream, min_count)
    pairs, often = _keep_pairs(vocabulary, stream, max(min_count, _GAPPED))
    if max_size is not None and len(words) + len(grams) + len(pairs) > max_size:
        room, counts = max_size - len(words), np.concatenate([counts, often])
        low = int(np.sort(counts)[len(counts) - room - 1]) + 1 if room > 0 else _LIMIT
        grams, _ = _keep_grams(vocabulary, stream, low)
        pairs, _ = _keep_pairs(vocabulary, stream, max(low, _GAPPED))
    return replace(vocabulary, grams=grams, pairs=pairs), stream


def _keep_words(stream: Stream, count: Ints, min_count: int) -> tuple[tuple[str, ...], Stream]:
    kept = [k for k in range(len(stream.table)) if count[k] >= max(min_count, 1)]
    if not kept:
        raise InputError(
            f"no word occurs in min_count = {min_count} texts or more. "
            "Lower `min_count`, or give more texts."
        )
    kept.sort(key=lambda k: (-count[k], stream.table[k]))
    new = np.full(len(stream.table), _grams.UNKNOWN)
    new[kept] = np.arange(len(kept))
    table = tuple(stream.table[k] for k in kept)
    return table, stream.renumbered(new, table)


def _keep_grams(
    vocabulary: Vocabulary, stream: Stream, min_count: int
) -> tuple[npt.NDArray[np.int32], Ints]:
    """The n-grams of 2, 3, ... words, and in how many texts each occurs."""
    size = len(vocabulary.words)
    where = (stream.words, stream.ends, stream.offsets)
    heads, first = stream.words, size
    kept, numbers = [np.zeros((0, 2), dtype=np.int32)], [np.zeros(0, dtype=np.int64)]
    for n in range(2, vocabulary.ngrams + 1):
        keys, count = _counted(where, heads, n, size, vocabulary.across, max(min_count, 1))
        order = np.lexsort((keys, -count))
        keys, count = keys[order], count[order]
        kept.append(np.stack([keys // size, keys % size], axis=1).astype(np.int32))
        numbers.append(count.astype(np.int64))
        table, value = _grams.build_table(keys, first)
        if n < vocabulary.ngrams:
            out = blank(len(heads), np.int32)
            args = (n, size, vocabulary.across, table, value, out)
            _grams.number_grams(*where, heads, *args)
            heads = out
        first += len(keys)
    return np.concatenate(kept), np.concatenate(numbers)


def _keep_pairs(
    vocabulary: Vocabulary, stream: Stream, min_count: int
) -> tuple[npt.NDArray[np.int32], Ints]:
    """The gapped pairs at distance 2, 3, ... , and in how many texts each occurs."""
    size, where = len(vocabulary.words), (stream.words, stream.ends, stream.offsets)
    kept, numbers = [_no_pairs()], [np.zeros(0, dtype=np.int64)]
    for distance in range(2, vocabulary.far + 1):
        args = (distance + 1, size, vocabulary.across, min_count, True)
        keys, count = _counted(where, stream.words, *args)
        order = np.lexsort((keys, -count))
        keys, count = keys[order], count[order]
        columns = [keys // size, keys % size, np.full(len(keys), distance)]
        kept.append(np.stack(columns, axis=1).astype(np.int32))
        numbers.append(count)
    return np.concatenate(kept), np.concatenate(numbers)


def _counted(
    where: tuple[Array, Bools, Ints], heads: Array, n: int, size: int, across: bool, least: int,
    gapped: bool = False,
) -> tuple[Ints, Ints]:  # fmt: skip
    """The n-grams that occur in `least` texts or more, counted in parts that fit in memory."""
    parts = 1 + len(heads) // _PLACES
    kept = []
    for part in range(parts):
        keys, count = _grams.count_grams(*where, heads, n, size, across, part, parts, gapped)
        often = count >= least
        kept.append((keys[often], count[often].astype(np.int64)))
    keys, count = (np.concatenate(lists) for lists in zip(*kept, strict=True))
    return keys, count
