"""`Tokens`: the distinct words of many texts with their multiplicities, without padding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hardmax._errors import InputError, ShapeError
from hardmax._types import Bools, Ints
from hardmax.io.spool import Spool

__all__ = ["Tokens", "join_tokens", "pad", "ranges"]

_TEXTS = 4096

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Tokens:
    """Texts as distinct tokens with multiplicities, one after the other.

    Equal words of one sequence behave equally in every layer, so each is kept
    once with its number of occurrences; a sequence is a text or a sentence.

    Attributes
    ----------
    ids : (N,) int32 array
        Token numbers, ascending within each sequence.
    counts : (N,) int32 array
        Occurrences of each, at least one.
    offsets : (s + 1,) int64 array
        Sequence j is `ids[offsets[j]:offsets[j + 1]]`; words attend within it.
    texts : (b + 1,) int64 array
        Text t is the sequences texts[t] to texts[t + 1] - 1.

    Examples
    --------
    >>> import numpy as np
    >>> t = Tokens.of([[3, 1, 3], []])
    >>> t.ids, t.counts, t.starts
    (array([1, 3], dtype=int32), array([1, 2], dtype=int32), array([0, 2, 2]))
    """

    ids: Ids
    counts: Ids
    offsets: Ints
    texts: Ints

    def __post_init__(self) -> None:
        if self.ids.shape != self.counts.shape or self.ids.ndim != 1:
            raise ShapeError(
                f"`counts` must match `ids` {self.ids.shape}; got {self.counts.shape}. "
                "Give one multiplicity per token."
            )
        for name, cuts, end in (
            ("offsets", self.offsets, len(self.ids)),
            ("texts", self.texts, len(self.offsets) - 1),
        ):
            if len(cuts) == 0 or cuts[0] != 0 or cuts[-1] != end or np.any(np.diff(cuts) < 0):
                raise InputError(f"`{name}` must rise from 0 to {end}; got {cuts[:8]}.")

    @classmethod
    def of(cls, sequences: list[list[int]]) -> Tokens:
        """Texts given as lists of token numbers, one sequence each."""
        pairs = [np.unique(np.array(s, dtype=np.int32), return_counts=True) for s in sequences]
        sizes = [len(p[0]) for p in pairs]
        none = np.zeros(0, dtype=np.int32)
        return cls(
            np.concatenate([none, *(p[0] for p in pairs)]),
            np.concatenate([none, *(p[1].astype(np.int32) for p in pairs)]),
            np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]),
            np.arange(len(sequences) + 1),
        )

    def __len__(self) -> int:
        """The number of texts."""
        return len(self.texts) - 1

    @property
    def starts(self) -> Ints:
        """Where the tokens of each text begin; (b + 1,)."""
        return np.asarray(self.offsets[self.texts])

    def take(self, rows: Ints) -> Tokens:
        """The same for some texts, in the order given."""
        rows = np.asarray(rows, dtype=np.int64)
        if len(rows) <= _TEXTS:
            return self._some(rows)
        return join_tokens(self._some(rows[k : k + _TEXTS]) for k in range(0, len(rows), _TEXTS))

    def _some(self, rows: Ints) -> Tokens:
        seqs, texts = ranges(self.texts, rows)
        picks, offsets = ranges(self.offsets, seqs)
        return Tokens(self.ids[picks], self.counts[picks], offsets, texts)


def ranges(cuts: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The members of some of the ranges between `cuts`, and the new cuts."""
    sizes = cuts[rows + 1] - cuts[rows]
    new = np.concatenate([[0], np.cumsum(sizes)])
    return np.repeat(cuts[rows] - new[:-1], sizes) + np.arange(new[-1]), new


def join_tokens(parts: Iterable[Tokens]) -> Tokens:
    """Several lots of texts as one; large ones lie in a temporary file."""
    ids, counts = Spool(np.int32), Spool(np.int32)
    offsets, texts = Spool(np.int64), Spool(np.int64)
    zero = np.zeros(1, dtype=np.int64)
    offsets.add(zero)
    texts.add(zero)
    tokens = sequences = 0
    for part in parts:
        ids.add(part.ids)
        counts.add(part.counts)
        offsets.add(part.offsets[1:] + tokens)
        texts.add(part.texts[1:] + sequences)
        tokens, sequences = tokens + len(part.ids), sequences + len(part.offsets) - 1
    return Tokens(ids.done(), counts.done(), offsets.done(), texts.done())


def pad(sequences: list[list[int]], length: int, filler: int = 0) -> tuple[Ids, Bools]:
    """Sequences cut or filled to one length, (b, length), and which entries are real.

    Only the model of the paper pads: there a text is its first 128 words.
    """
    out = np.full((len(sequences), length), filler, dtype=np.int32)
    mask = np.zeros((len(sequences), length), dtype=bool)
    for row, sequence in enumerate(sequences):
        n = min(len(sequence), length)
        out[row, :n] = sequence[:n]
        mask[row, :n] = True
    return out, mask
