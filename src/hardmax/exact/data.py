"""Sequences as data: distinct tokens once, every sequence as rows with multiplicities."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hardmax._errors import InputError, ShapeError
from hardmax._types import Array, Floats
from hardmax.exact._kernels import distinct_pairs, intern_rows
from hardmax.exact.text import is_text, text_rows

__all__ = [
    "LARGEST",
    "Corpus",
    "Labels",
    "by_rows",
    "listed",
    "read_corpus",
    "read_labels",
]

LARGEST = {"float64": 1e150, "float32": 1e18}
"""Largest absolute coordinate that is accepted: products of two must stay finite."""
_WHOLE = 2**53
_ROWS = 1 << 14


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sequences that share one table of distinct tokens.

    Token l of sequence j is ``table[ids[offsets[j] + l]]``.  The distinct
    tokens of sequence j are ``rows[starts[j]:starts[j + 1]]`` in the order of
    their first appearance, with multiplicities `counts`.  `given` marks the
    values before they were rounded or moved; empty where they were not.
    """

    table: Array
    ids: Array
    offsets: Array
    rows: Array
    counts: Array
    starts: Array
    words: tuple[str, ...] | None = field(default=None)
    given: str = ""

    @property
    def size(self) -> int:
        """Number of sequences."""
        return len(self.offsets) - 1

    @property
    def dim(self) -> int:
        """Number of coordinates of a token."""
        return int(self.table.shape[1])

    @property
    def lengths(self) -> Array:
        """Number of tokens of every sequence."""
        return np.diff(self.offsets)

    def sequence(self, j: int) -> Array:
        """The tokens of sequence `j` as an (n, d) array."""
        return np.asarray(self.table[self.ids[self.offsets[j] : self.offsets[j + 1]]])

    def digest(self) -> str:
        """SHA-256 of every token of every sequence, in order."""
        facts = (self.table.shape, str(self.table.dtype), self.size, self.given)
        h = hashlib.sha256(str(facts).encode())
        for part in (self.table, self.ids.astype(np.int32), self.offsets.astype(np.int64)):
            h.update(np.ascontiguousarray(part).data)
        return h.hexdigest()

    def take(self, chosen: Array) -> Corpus:
        """The sequences with the indices `chosen`, over the same table."""
        ids = [self.ids[self.offsets[j] : self.offsets[j + 1]] for j in chosen]
        lengths = np.array([len(x) for x in ids], dtype=np.int64)
        flat = np.concatenate(ids) if ids else np.zeros(0, np.int32)
        return _corpus(self.table, flat, lengths, self.words)


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels as codes 0, 1, ... and the classes that they stand for."""

    codes: Array
    classes: tuple[Any, ...]

    def decode(self, codes: Array) -> Array:
        """The labels of `codes`."""
        return decode(self.classes, codes)

    def digest(self) -> str:
        """SHA-256 of the label of every sequence."""
        h = hashlib.sha256(repr(self.classes).encode())
        h.update(np.ascontiguousarray(self.codes, dtype=np.int64).data)
        return h.hexdigest()


def by_rows(z: Array, work: Callable[[Floats], Floats]) -> Floats:
    """`work` on a few thousand rows at a time, so that copies of `z` stay small."""
    parts = range(0, len(z), _ROWS)
    return np.concatenate([work(z[i : i + _ROWS].astype(np.float64, copy=False)) for i in parts])


def decode(classes: tuple[Any, ...], codes: Array) -> Array:
    """The entries of `classes` at `codes`, as integers or strings where all are."""
    if len({type(c) for c in classes}) == 1:
        plain = np.asarray(classes)
        if plain.tolist() == list(classes):  # not so for integers beyond 64 bits
            return plain[codes]
    out = np.empty(len(codes), dtype=object)
    out[:] = [classes[c] for c in codes]
    return out


def read_corpus(
    sequences: Any,
    *,
    dtype: Any = np.float64,
    step: Array | None = None,
    vectors: Any = None,
    dim: int | None = None,
    seed: int = 0,
) -> Corpus:
    """Read sequences given as arrays, nested lists, texts or lists of words.

    `step` is added i times to the i-th token of a sequence (positions).
    """
    items = listed(sequences)
    words: tuple[str, ...] | None = None
    if is_text(items):
        table, ids, lengths, words = text_rows(items, vectors=vectors, dim=dim, seed=seed)
        _check_finite(table, np.ones(len(table), np.int64), dtype, "word")
        given = _mark(table, step, dtype, ids)
        table = table.astype(dtype) + np.zeros((), dtype)
        values = table if step is None else table[ids]
    else:
        values, lengths = _stack(items, dtype)
        given = _mark(values, step, dtype)
        values = np.ascontiguousarray(values.astype(dtype, copy=False))
    if dim is not None and values.shape[1] != dim:
        raise ShapeError(
            f"every token must have d = {dim} coordinates; got {values.shape[1]}. "
            "Pass sequences of the same kind as those of the construction."
        )
    if words is not None and step is None:
        return _merged(_corpus(table, ids, lengths, words, given))
    if step is not None:
        values = values + (_positions(lengths)[:, None] * np.asarray(step)).astype(dtype)
    np.add(values, np.zeros((), dtype), out=values)  # minus zero becomes zero
    ids, first = intern_rows(values)
    return _corpus(np.ascontiguousarray(values[first]), ids, lengths, None, given)


def _merged(corpus: Corpus) -> Corpus:
    """Words with equal vectors are equal tokens."""
    ids, first = intern_rows(np.ascontiguousarray(corpus.table))
    if len(first) == len(corpus.table):
        return corpus
    words = None if corpus.words is None else tuple(corpus.words[i] for i in first)
    table = np.ascontiguousarray(corpus.table[first])
    return _corpus(table, ids[corpus.ids], corpus.lengths, words, corpus.given)


def _mark(values: Array, step: Array | None, dtype: Any, ids: Array | None = None) -> str:
    """Digest of values that rounding to `dtype` or a step may make equal to others."""
    if step is None and (
        np.can_cast(values.dtype, dtype) or (values == values.astype(dtype)).all()
    ):
        return ""
    h = hashlib.sha256((np.ascontiguousarray(values, dtype=np.float64) + 0.0).data)
    if ids is not None:
        h.update(ids.data)
    return h.hexdigest()


def _corpus(
    table: Array, ids: Array, lengths: Array, words: tuple[str, ...] | None, given: str = ""
) -> Corpus:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    ids = np.ascontiguousarray(ids, dtype=np.int32)
    rows, counts, starts = distinct_pairs(ids, offsets, len(table))
    return Corpus(table, ids, offsets, rows, counts, starts, words, given)


def listed(sequences: Any) -> list[Any]:
    """The sequences as a list, in a definite order."""
    unordered = isinstance(sequences, str | bytes | Mapping | Set)
    if unordered or not hasattr(sequences, "__len__"):
        raise InputError(
            f"`sequences` must be a list of arrays or of texts; got {type(sequences).__name__}. "
            "Put a single sequence into a list."
        )
    items = [x.tolist() if _is_words(x) else x for x in sequences]
    if not items:
        raise InputError("`sequences` must hold at least one sequence; got none. Pass data.")
    return items


def _is_words(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "U" and x.ndim == 1


def _stack(items: list[Any], dtype: Any) -> tuple[Array, Array]:
    arrays = [_tokens(x, j) for j, x in enumerate(items)]
    d = arrays[0].shape[1]
    for j, x in enumerate(arrays):
        if x.shape[1] != d:
            raise ShapeError(
                f"every token must have d = {d} coordinates as in sequence 0; "
                f"sequence {j} has {x.shape[1]}. Make them equal."
            )
    lengths = np.array([len(x) for x in arrays], dtype=np.int64)
    values = np.concatenate(arrays)
    _check_finite(values, lengths, dtype)
    return values, lengths


def _tokens(x: Any, j: int) -> Array:
    if hasattr(x, "detach"):
        x = x.detach().cpu().numpy()
    if np.ma.is_masked(x):
        raise InputError(f"sequence {j} has masked entries. Pass the tokens that are there alone.")
    try:
        a = np.asarray(x)
        if a.dtype.kind not in "biufO":
            raise TypeError(f"{a.dtype} content")
        _check_whole(a, j)
        a = a if a.dtype in (np.float64, np.float32) else a.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise ShapeError(
            f"sequence {j} must be an (n, d) array of numbers; got ragged or other content "
            f"({error}). Give every token the same number of coordinates."
        ) from None
    if a.size == 0:
        raise ShapeError(f"sequence {j} must have at least one token; got none. Remove it.")
    if a.ndim == 1:
        a = a[:, None]
    if a.ndim != 2:
        raise ShapeError(f"sequence {j} must be (n, d); got shape {a.shape}. Reshape it.")
    return a


def _check_whole(a: Array, j: int) -> None:
    """Integers must be doubles, or two different tokens would become one."""
    if a.dtype.kind in "iu":
        large = a[(a > _WHOLE) | (a < -_WHOLE)].tolist()
    elif a.dtype.kind == "O":
        if any(isinstance(v, str | bytes) for v in a.ravel()):
            raise TypeError("words among numbers")
        large = [v for v in a.ravel() if isinstance(v, int) and abs(v) > _WHOLE]
    else:
        return
    wrong = [v for v in large if int(float(v)) != v]
    if wrong:
        raise InputError(
            f"sequence {j} holds the integer {wrong[0]}, which float64 does not have. "
            "Subtract a common integer or scale the tokens."
        )


def _check_finite(values: Array, lengths: Array, dtype: Any, what: str = "sequence") -> None:
    limit = LARGEST[str(np.dtype(dtype))]
    largest = max(float(values.max()), -float(values.min()))
    if largest <= limit:
        return
    wrong = ~(np.abs(values) <= limit).all(axis=1)
    j = int(np.searchsorted(np.cumsum(lengths), np.flatnonzero(wrong)[0], side="right"))
    held = "NaN or infinity" if not np.isfinite(values[wrong]).all() else f"{largest:.3g}"
    raise InputError(
        f"every coordinate must be finite and at most {limit:g} in absolute value in "
        f"{np.dtype(dtype)}; {what} {j} holds {held}. Remove or rescale it."
    )


def _positions(lengths: Array) -> Floats:
    ends = np.cumsum(lengths)
    return np.asarray(np.arange(ends[-1]) - np.repeat(ends - lengths, lengths), np.float64)


def read_labels(labels: Any, size: int) -> Labels:
    """Read one label per sequence: numbers, strings or truth values."""
    if hasattr(labels, "detach"):
        labels = labels.detach().cpu().numpy()
    if isinstance(labels, np.ndarray):
        labels = labels.tolist()
    if isinstance(labels, str | bytes | Mapping | Set) or not hasattr(labels, "__len__"):
        raise InputError("`labels` must be a list with one label per sequence. Pass a list.")
    items = [x.item() if isinstance(x, np.generic) else x for x in labels]
    if len(items) != size:
        raise ShapeError(
            f"`labels` must hold one label per sequence ({size}); got {len(items)}. "
            "Pass as many labels as sequences."
        )
    for x in items:
        if not isinstance(x, str | int | float) or x in (math.inf, -math.inf) or x != x:
            raise InputError(f"a label must be a number or a string; got {x!r}. Convert it.")
    classes = _sorted(items)
    index = {c: i for i, c in enumerate(classes)}
    return Labels(np.array([index[x] for x in items], dtype=np.int64), classes)


def _sorted(items: Sequence[Any]) -> tuple[Any, ...]:
    distinct = list(dict.fromkeys(items))
    try:
        return tuple(sorted(distinct))
    except TypeError:
        return tuple(distinct)
