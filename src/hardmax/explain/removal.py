"""A text without some of its words: the words, what the model sees, and its logits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from hardmax._check import check_choice
from hardmax._errors import InputError
from hardmax._types import Array, Bools, Floats, Ints
from hardmax.explain._deltas import find_deltas
from hardmax.explain._near import near_logits
from hardmax.explain.bundle import Bundle
from hardmax.tokens.batch import Tokens
from hardmax.tokens.text import Word
from hardmax.tokens.vocabulary import Stream

__all__ = ["UNITS", "Removal"]

UNITS = ("words", "occurrences")
_FILLERS = (" ", "-")
_CLOSE = 1e-9
_LOT = 512


class Removal:
    """The removable units of a text, and the model on what is left without some of them.

    Parameters
    ----------
    bundle : Bundle
    text : str
    by : "words" or "occurrences"
        Whether a unit is a distinct word with all its occurrences, or one occurrence.
    read : pair, optional
        What `bundle.read(text)` gives, if that is known.

    Attributes
    ----------
    names : tuple of str
        The words of the text in order, in their counted form, without stop words.
    unit : (words,) int array
        The unit of each word, -1 for none.  A word that no token of the vocabulary
        holds is a unit only where it keeps others apart (n-grams).
    """

    def __init__(
        self,
        bundle: Bundle,
        text: str,
        by: str = "words",
        *,
        read: tuple[tuple[str, ...], Stream] | None = None,
    ) -> None:
        check_choice(by, "by", UNITS)
        vocabulary = bundle.vocabulary
        self.bundle, self.text = bundle, text
        self.names, self.stream = bundle.read(text) if read is None else read
        known = (self.stream.words >= 0).tolist()
        if vocabulary.ngrams > 1 or vocabulary.far > 1:
            known = [True] * len(known)
        keys = self.names if by == "words" else range(len(known))
        number: dict[object, int] = {}
        self.unit: Ints = np.array(
            [
                number.setdefault(key, len(number)) if held else -1
                for key, held in zip(keys, known, strict=True)
            ],
            dtype=np.int64,
        )
        self._size = len(number)

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words of the text with their places."""
        return self.bundle.places(self.text)

    @cached_property
    def units(self) -> tuple[tuple[int, ...], ...]:
        """The places of each unit among the words."""
        out: list[list[int]] = [[] for _ in range(self._size)]
        for place, unit in enumerate(self.unit.tolist()):
            if unit >= 0:
                out[unit].append(place)
        return tuple(map(tuple, out))

    def __len__(self) -> int:
        """The number of units."""
        return self._size

    def name(self, unit: int) -> str:
        """The word of a unit, in its counted form."""
        return self.names[self.units[unit][0]]

    def kept(self, removed: Sequence[Sequence[int]]) -> Bools:
        """Which words stay, (sets, words), when each set of units is removed."""
        gone = np.zeros((len(removed), len(self) + 1), dtype=bool)  # the last for no unit
        for row, units in enumerate(removed):
            gone[row, list(units)] = True
        return np.asarray(~gone[:, self.unit])

    def tokens(self, keep: Bools) -> Tokens:
        """What the model sees of each selection of words, (sets, words)."""
        source, m = self.stream, len(self.names)
        ends = np.zeros_like(keep)
        if m:
            sentence = np.concatenate([[0], np.cumsum(source.ends[:-1])])
            last = np.full((len(keep), int(sentence[-1]) + 1), -1)
            for place in range(m):  # places rise, so the last one kept remains
                last[keep[:, place], sentence[place]] = place
            closed = np.bincount(sentence, weights=source.ends) > 0
            rows, marks = np.nonzero((last >= 0) & closed)
            ends[rows, last[rows, marks]] = True
        offsets = np.concatenate([[0], np.cumsum(keep.sum(axis=1))])
        codes = np.broadcast_to(source.words, keep.shape)[keep]
        stream = Stream(source.table, codes.astype(np.int32), ends[keep], offsets)
        return self.bundle.vocabulary.tokens_of(stream, sentences=self.bundle.sentences)

    @cached_property
    def base(self) -> Tokens:
        """The tokens of the whole text."""
        return self.tokens(np.ones((1, len(self.names)), dtype=bool))

    @cached_property
    def near(self) -> bool:
        """Whether heads in which no choice can change are computed by addition."""
        vocabulary = self.bundle.vocabulary
        apart = self.bundle.sentences or not vocabulary.across or vocabulary.far > 1
        return not apart and self.bundle.model.A is None and vocabulary.max_words is None

    def logits(self, removed: Sequence[Sequence[int]], without: Sequence[int] = ()) -> Floats:
        """Logits (sets, outputs) without each set of units, everything recomputed.

        Heads in which no choice can change are computed by addition; a logit that
        comes close to a decision is computed again from its words.

        Parameters
        ----------
        removed : sequence of sets of units
        without : sequence of int
            Units that all of the sets hold: what changes is counted from there on,
            which is faster and gives the same logits.
        """
        return self.logits_of(self.kept(removed), self.kept([without])[0] if without else None)

    def logits_of(self, keep: Bools, base: Bools | None = None) -> Floats:
        """Logits (sets, outputs) of selections of words, (sets, words), all within `base`."""
        model = self.bundle.model
        parts = [np.empty((0, len(model.b)))]
        start = None
        for low in range(0, len(keep), _LOT):
            part = keep[low : low + _LOT]
            if self.near:
                start = self._start(base) if start is None else start
                parts.append(self._near(part, *start))
            else:
                parts.append(model.logits(self.tokens(part)))
        return np.concatenate(parts)

    def _start(self, base: Bools | None) -> tuple[Bools, Tokens, Ints]:
        """The words that changes are counted from, their tokens and occurrences."""
        if base is None:
            return np.ones(len(self.names), dtype=bool), self.base, self._occurrences
        source, count = self.stream, int(base.sum())
        rest = Stream(source.table, source.words[base], source.ends[base], np.array([0, count]))
        vocabulary = self.bundle.vocabulary
        every = self.bundle.every.tokens_of(rest) if vocabulary.once else None
        tokens = vocabulary.tokens_of(rest)
        return base, tokens, (tokens if every is None else every).counts.astype(np.int64)

    def _near(self, keep: Bools, base: Bools, tokens: Tokens, often: Ints) -> Floats:
        model, vocabulary = self.bundle.model, self.bundle.vocabulary
        deltas = find_deltas(
            self.stream.words[base],
            np.ascontiguousarray(keep[:, base]),
            vocabulary.ngrams,
            len(vocabulary.words),
            *vocabulary.gram_table,
        )
        if vocabulary.once:
            deltas = _presence(deltas, tokens.ids, often)
        v, b = model.v.detach().numpy(), model.b.detach().numpy()
        logits: Floats
        logits, _ = near_logits(
            self.bundle.vectors, self.bundle.gamma, self.bundle.scores(), v, b, tokens.ids,
            tokens.counts, *deltas, model.depth, model.tie_tol,
        )  # fmt: skip
        close = np.flatnonzero(_margins(logits) < _CLOSE * (1 + np.abs(logits).max(axis=1)))
        if len(close):
            logits[close] = model.logits(self.tokens(keep[close]))
        return logits

    @cached_property
    def _occurrences(self) -> Ints:
        """How often each token of the whole text occurs, also where it counts once."""
        return self.bundle.every.tokens_of(self.stream).counts.astype(np.int64)

    def spans(self, removed: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """The places in the text of some units, in order."""
        places = sorted(place for unit in removed for place in self.units[unit])
        return tuple((self.words[p].start, self.words[p].stop) for p in places)

    def without(self, removed: Sequence[int]) -> str:
        """The text without some units: it reads as exactly the other words."""
        keep = self.kept([removed])
        want = self.tokens(keep)
        for filler in _FILLERS:
            text, at = [], 0
            for start, stop in self.spans(removed):
                text += [self.text[at:start], filler]
                at = stop
            left = "".join([*text, self.text[at:]])
            got = self.bundle.encode([left])
            if _same(want, got):
                return left
        raise InputError(  # a text in which words make marks by their absence
            f"the text without {', '.join(map(self.name, removed))} cannot be written down. "
            "Leave out the marks around these words."
        )


def _presence(
    deltas: tuple[Ints, Ints, Ints], ids: Array, occurrences: Ints
) -> tuple[Ints, Ints, Ints]:
    """Changes of numbers of occurrences as tokens that come (1) and go (-1)."""
    cuts, tokens, change = deltas
    place = np.minimum(np.searchsorted(ids, tokens), max(len(ids) - 1, 0))
    had = np.zeros(len(tokens), dtype=np.int64)
    if len(ids):
        had = np.where(ids[place] == tokens, occurrences[place], 0)
    change = (had + change > 0).astype(np.int64) - (had > 0)
    keep = change != 0
    return np.concatenate([[0], np.cumsum(keep)])[cuts], tokens[keep], change[keep]


def _same(one: Tokens, two: Tokens) -> bool:
    return (
        np.array_equal(one.ids, two.ids)
        and np.array_equal(one.counts, two.counts)
        and np.array_equal(one.offsets, two.offsets)
    )


def _margins(logits: Floats) -> Floats:
    """How far each row is from another decision, in logits."""
    if logits.shape[1] == 1:
        return np.asarray(np.abs(logits[:, 0]))
    top = np.sort(logits, axis=1)
    return np.asarray(top[:, -1] - top[:, -2])
