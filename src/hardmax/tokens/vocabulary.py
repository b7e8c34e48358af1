"""The vocabulary: words and n-grams with numbers, and texts as `Tokens`."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hardmax._errors import InputError
from hardmax._types import Array, Bools, Ints
from hardmax.tokens import _grams
from hardmax.tokens.batch import Tokens, join_tokens
from hardmax.tokens.text import ends_sentence, is_mark, is_word, split_words, word_strings

__all__ = ["Span", "Stream", "Vocabulary", "learn_vocabulary", "read_stream"]

_CHUNK = 4096
_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class Span:
    """One occurrence of a token: its number and its place in the text."""

    token: int
    start: int
    stop: int


@dataclass(frozen=True)
class Stream:
    """Texts as one long row of word numbers; -1 for a word without a number.

    Attributes
    ----------
    table : list of str
        The word of each number.
    words : (m,) int32 array
    ends : (m,) bool array
        Whether a sentence ends after the word.
    offsets : (b + 1,) int64 array
    """

    table: tuple[str, ...]
    words: npt.NDArray[np.int32]
    ends: Bools
    offsets: Ints

    def renumbered(self, new: Array, table: tuple[str, ...]) -> Stream:
        """The same with other numbers; those below -1 drop the word."""
        codes = np.where(self.words < 0, _grams.UNKNOWN, new[self.words]).astype(np.int32)
        stays = codes >= _grams.UNKNOWN
        codes[~stays & self.ends] = _grams.STOP  # the word before ends the sentence instead
        closes = np.zeros(max(len(table), 1), dtype=bool)
        words, ends, offsets = _grams.settle(codes, self.offsets, closes)
        ends |= self.ends[stays]
        return Stream(table, words, ends, offsets)


class _Index(dict[str, int]):
    """Numbers of pieces of text; new words get the next number, or -1 when `fixed`."""

    def __init__(self, words: Iterable[str], punctuation: bool, fixed: bool) -> None:
        super().__init__((word, k) for k, word in enumerate(words))
        self.words = list(self)
        self.punctuation = punctuation
        self.fixed = fixed

    def __missing__(self, piece: str) -> int:
        if not (is_word(piece) or (self.punctuation and is_mark(piece))):
            return _grams.STOP if ends_sentence(piece) else _grams.MARK
        if self.fixed:
            return _grams.UNKNOWN
        self[piece] = number = len(self.words)
        self.words.append(piece)
        return number


def read_stream(
    texts: Iterable[str], *, words: Iterable[str] | None = None, punctuation: bool = False
) -> Stream:
    """Texts as word numbers, read one by one: they need not fit in memory.

    Parameters
    ----------
    texts : iterable of str
    words : iterable of str, optional
        The words that have numbers; every word gets one when None.
    punctuation : bool
        Whether marks of punctuation count as words.

    Raises
    ------
    InputError
        If a text is not a string.
    """
    index = _Index(words or (), punctuation, words is not None)
    number = index.__getitem__
    codes, cuts = array("i"), array("q", [0])
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"each text must be a string; text {row} is {type(text).__name__}. "
                "Convert it, or leave the row out."
            )
        codes.extend(map(number, word_strings(text)))
        cuts.append(len(codes))
    closes = np.array([ends_sentence(word) for word in index.words] or [False])
    settled = _grams.settle(np.array(codes, dtype=np.int32), np.array(cuts), closes)
    return Stream(tuple(index.words), *settled)


@dataclass(frozen=True)
class Vocabulary:
    """Words and n-grams with numbers: first the words, then pairs, then triples.

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
    """

    words: tuple[str, ...]
    grams: npt.NDArray[np.int32]
    ngrams: int = 1
    punctuation: bool = False
    across: bool = True
    stop_words: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.words) + len(self.grams)

    @cached_property
    def _table(self) -> tuple[Ints, Array]:
        keys = self.grams[:, 0].astype(np.int64) * max(len(self.words), 1) + self.grams[:, 1]
        table: tuple[Ints, Array] = _grams.build_table(keys, len(self.words))
        return table

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The words of every token, joined by blanks."""
        names = list(self.words)
        for head, last in self.grams.tolist():
            names.append(f"{names[head]} {names[last]}")
        return tuple(names)

    def stream(self, texts: Iterable[str]) -> Stream:
        """Texts as the word numbers of this vocabulary."""
        known = (*self.words, *sorted(self.stop_words - set(self.words)))
        stream = read_stream(texts, words=known, punctuation=self.punctuation)
        if not self.stop_words:
            return stream
        new = np.arange(len(known))
        new[[word in self.stop_words for word in known]] = _grams.MARK
        return stream.renumbered(new, self.words)

    def encode(self, texts: Iterable[str], *, sentences: bool = False) -> Tokens:
        """Texts as distinct tokens; a sequence is a text, or a sentence.

        Words outside the vocabulary are left out; a text without known words
        has no tokens.
        """
        return self.tokens_of(self.stream(texts), sentences=sentences)

    def tokens_of(self, stream: Stream, *, sentences: bool = False) -> Tokens:
        """A stream of this vocabulary's word numbers as distinct tokens."""
        parts, cuts = [], stream.offsets
        table, value = self._table
        for low in range(0, max(len(cuts) - 1, 1), _CHUNK):
            part = cuts[low : low + _CHUNK + 1]
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
            )
            parts.append(Tokens(*arrays))
        return join_tokens(parts)

    def spans(self, text: str) -> tuple[Span, ...]:
        """Every occurrence of a token in a text, with its place, for highlighting."""
        words = [
            word
            for word in split_words(text, punctuation=self.punctuation)
            if word.text not in self.stop_words
        ]
        stream = self.stream([text])
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
        return tuple(spans)

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
) -> tuple[Vocabulary, Stream]:
    """The tokens that occur in at least `min_count` texts, commonest first.

    An n-gram is kept only with all its parts, which occur at least as often.

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
    vocabulary = Vocabulary(words, np.zeros((0, 2), np.int32), ngrams, punctuation, across, dropped)
    grams, counts = _keep_grams(vocabulary, stream, min_count)
    if max_size is not None and len(words) + len(grams) > max_size:
        room = max_size - len(words)
        low = int(np.sort(counts)[len(counts) - room - 1]) + 1 if room > 0 else _LIMIT
        grams, _ = _keep_grams(vocabulary, stream, low)
    return replace(vocabulary, grams=grams), stream


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
        keys, count = _grams.count_grams(*where, heads, n, size, vocabulary.across)
        keep = count >= max(min_count, 1)
        keys, count = keys[keep], count[keep]
        order = np.lexsort((keys, -count))
        keys, count = keys[order], count[order]
        kept.append(np.stack([keys // size, keys % size], axis=1).astype(np.int32))
        numbers.append(count.astype(np.int64))
        table, value = _grams.build_table(keys, first)
        heads = _grams.number_grams(*where, heads, n, size, vocabulary.across, table, value)
        first += len(keys)
    return np.concatenate(kept), np.concatenate(numbers)
