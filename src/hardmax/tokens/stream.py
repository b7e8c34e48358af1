"""Texts as rows of word numbers, read once and one by one: they need not fit in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hardmax._errors import InputError
from hardmax._types import Array, Bools, Ints
from hardmax.io.spool import Spool
from hardmax.tokens import _grams
from hardmax.tokens.text import ends_sentence, is_mark, is_word, word_strings

__all__ = ["Index", "Stream", "blocks", "read_stream", "settle_texts"]

_WORDS = 1 << 20


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
        settled, closes = _Settled(), np.zeros(max(len(table), 1), dtype=bool)
        for texts in blocks(self.offsets):
            low, high = self.offsets[texts.start], self.offsets[texts.stop]
            words, marks = self.words[low:high], self.ends[low:high]
            codes = np.where(words < 0, _grams.UNKNOWN, new[words]).astype(np.int32)
            stays = codes >= _grams.UNKNOWN
            codes[~stays & marks] = _grams.STOP  # the word before ends the sentence instead
            cuts = self.offsets[texts.start : texts.stop + 1] - low
            settled.add(codes, cuts, closes, marks[stays])
        return settled.stream(table)

    def first(self, words: int) -> Bools:
        """Which places lie within the first `words` words with a number of their text."""
        known = np.cumsum(self.words >= 0)
        before = np.concatenate([[0], known])[self.offsets]
        keep = known - np.repeat(before[:-1], np.diff(self.offsets)) <= words
        return np.asarray(keep, dtype=np.bool_)

    def cut(self, words: int) -> Stream:
        """The first `words` words with a number of each text, and what stands between them."""
        keep = self.first(words)
        sums = np.concatenate([[0], np.cumsum(keep)])
        return Stream(self.table, self.words[keep], self.ends[keep], sums[self.offsets])


def blocks(offsets: Ints) -> Iterator[slice]:
    """The texts in runs of about a million words."""
    low, last = 0, len(offsets) - 1
    while low < last:
        high = int(np.searchsorted(offsets, offsets[low] + _WORDS, side="right")) - 1
        high = min(max(high, low + 1), last)
        yield slice(low, high)
        low = high


class _Settled:
    """Streams of some texts after the other, without marks."""

    def __init__(self) -> None:
        self._words, self._ends = Spool(np.int32), Spool(np.bool_)
        self._cuts, self._size = [np.zeros(1, dtype=np.int64)], 0

    def add(self, codes: Array, cuts: Ints, closes: Bools, marks: Bools | None = None) -> None:
        """Some texts; `marks` are ends of sentences known before."""
        words, ends, offsets = _grams.settle(codes, cuts, closes)
        self._words.add(words)
        self._ends.add(ends if marks is None else ends | marks)
        self._cuts.append(offsets[1:] + self._size)
        self._size += len(words)

    def stream(self, table: tuple[str, ...]) -> Stream:
        """All of them."""
        return Stream(table, self._words.done(), self._ends.done(), np.concatenate(self._cuts))


class Index(dict[str, int]):
    """Numbers of pieces of text; new words get the next number, or -1 when `fixed`."""

    def __init__(self, words: Iterable[str], punctuation: bool, fixed: bool) -> None:
        super().__init__((word, k) for k, word in enumerate(words))
        self.words = list(self)
        self.punctuation = punctuation
        self.fixed = fixed
        self._closes: Bools = np.zeros(0, dtype=bool)

    def closes(self) -> Bools:
        """Which numbers are words that close a sentence, as marks do."""
        known = len(self._closes)
        if known < len(self.words):
            new = np.array([ends_sentence(word) for word in self.words[known:]])
            self._closes = np.concatenate([self._closes, new])
        return self._closes if len(self._closes) else np.zeros(1, dtype=bool)

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
    return settle_texts(texts, Index(words or (), punctuation, words is not None))


def settle_texts(
    texts: Iterable[str], index: Index, table: tuple[str, ...] | None = None
) -> Stream:
    """Texts as the numbers of an index, which learns new words unless it is fixed.

    `table` is the table of the stream, where it is not that of the index.
    """
    settled, number = _Settled(), index.__getitem__
    codes, cuts = array("i"), array("q", [0])
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"each text must be a string; text {row} is {type(text).__name__}. "
                "Convert it, or leave the row out."
            )
        codes.extend(map(number, word_strings(text)))
        cuts.append(len(codes))
        if len(codes) >= _WORDS:
            settled.add(np.array(codes, dtype=np.int32), np.array(cuts), index.closes())
            codes, cuts = array("i"), array("q", [0])
    settled.add(np.array(codes, dtype=np.int32), np.array(cuts), index.closes())
    return settled.stream(tuple(index.words) if table is None else table)
