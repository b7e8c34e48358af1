"""Texts as sequences of word vectors: given ones, or generic ones made from the word."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from hardmax._errors import InputError, ShapeError
from hardmax._types import Array, Floats
from hardmax.tokens.text import is_word, word_strings

__all__ = [
    "DEFAULT_DIM",
    "TrainedVectors",
    "generic_vectors",
    "is_text",
    "text_rows",
    "trained_vectors",
    "words_of",
]

DEFAULT_DIM = 64


class TrainedVectors(dict[str, Any]):
    """Vectors of a trained classifier; other words get generic ones within [-size, size]."""

    def __init__(self, vectors: Mapping[str, Any], size: float) -> None:
        super().__init__(vectors)
        self.size = size


def trained_vectors(source: Any) -> Any:
    """The word vectors of a trained classifier; anything else as it is."""
    words = getattr(getattr(source, "vocabulary_", None), "words", None)
    table = getattr(getattr(source, "model_", None), "E", None)
    if words is None or table is None:
        return source
    rows = table.detach().cpu().numpy()[: len(words)].astype(np.float64)
    return TrainedVectors(dict(zip(words, rows, strict=True)), float(np.abs(rows).max(initial=0)))


def is_text(items: list[Any]) -> bool:
    """True when the items are texts, or lists of words."""
    x = items[0]
    return isinstance(x, str) or (
        isinstance(x, list | tuple) and len(x) > 0 and isinstance(x[0], str)
    )


def words_of(text: str) -> list[str]:
    """The words of a text as the classifier counts them: in lower case, without marks and tags."""
    return [piece for piece in word_strings(text) if is_word(piece)]


def generic_vectors(words: list[str], dim: int, seed: int = 0) -> Floats:
    """One vector in [-1, 1]^dim per word, a function of the word and the seed alone."""
    salt = int(seed).to_bytes(8, "little", signed=True)
    digests = (hashlib.blake2b(w.encode(), digest_size=8, key=salt).digest() for w in words)
    keys = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
    steps = np.arange(1, dim + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = keys[:, None] + steps[None, :]
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return np.asarray((x >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0)


def text_rows(
    items: list[Any], *, vectors: Any, dim: int | None, seed: int
) -> tuple[Floats, Array, Array, tuple[str, ...]]:
    """Table of word vectors, word numbers of all texts, lengths, words."""
    known: dict[str, int] = {}
    ids: list[int] = []
    lengths: list[int] = []
    for j, item in enumerate(items):
        words = words_of(item) if isinstance(item, str) else _listed_words(item, j)
        if not words:
            raise ShapeError(f"sequence {j} must have at least one word; got none. Remove it.")
        ids.extend([known.setdefault(w, len(known)) for w in words])
        lengths.append(len(words))
    names = list(known)
    table = _table(names, vectors, dim, seed)
    return table, np.array(ids, np.int32), np.array(lengths, np.int64), tuple(names)


def _listed_words(item: Any, j: int) -> list[str]:
    words = list(item) if isinstance(item, list | tuple) else [item]
    if not all(isinstance(w, str) for w in words):
        raise InputError(f"sequence {j} must hold words only. Do not mix texts and arrays.")
    return words


def _table(names: list[str], vectors: Any, dim: int | None, seed: int) -> Floats:
    if vectors is None:
        return generic_vectors(names, DEFAULT_DIM if dim is None else dim, seed)
    if not isinstance(vectors, Mapping):
        raise InputError(
            "`vectors` must map words to vectors, or be a trained classifier; got "
            f"{type(vectors).__name__}. Pass one of them."
        )
    missing = [w for w in names if w not in vectors]
    if missing and isinstance(vectors, TrainedVectors):
        d = len(next(iter(vectors.values())))
        other = generic_vectors(missing, d, seed) * vectors.size
        vectors = {
            **{w: vectors[w] for w in names if w in vectors},
            **dict(zip(missing, other, strict=True)),
        }
    elif missing:
        raise InputError(
            f"`vectors` must hold every word of the texts; {len(missing)} are missing, "
            f"first {missing[0]!r}. Add them or leave `vectors` out."
        )
    try:
        table = np.array([np.asarray(vectors[w], dtype=np.float64) for w in names])
    except (TypeError, ValueError):
        table = np.zeros(0)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ShapeError("`vectors` must be finite vectors of one length. Correct the table.")
    return np.asarray(table + 0.0)
