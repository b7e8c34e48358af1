"""What can be told apart: equal measures and sets, directions of projection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Array, Floats
from hardmax.exact._kernels import measure_keys
from hardmax.exact.data import Corpus

__all__ = [
    "ConflictError",
    "Frame",
    "PrecisionError",
    "check_conflicts",
    "conflicts",
    "directions",
    "frame",
    "name_pairs",
]

_NAMED = 10


class ConflictError(InputError):
    """Sequences that no such network can tell apart have different labels."""

    def __init__(self, message: str, pairs: tuple[tuple[int, int], ...]) -> None:
        super().__init__(message)
        self.pairs = pairs


class PrecisionError(InputError):
    """The float type, or the method, is too small for these data."""


def conflicts(corpus: Corpus, codes: Array, what: str = "measures") -> list[tuple[int, int]]:
    """Pairs (i, j), i < j, of different label and equal empirical measure (or set).

    One pair per sequence j that disagrees with an earlier sequence i.
    """
    sets = what == "sets"
    keys = measure_keys(corpus.rows, corpus.counts, corpus.starts, sets)
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    same = (keys[order[1:]] == keys[order[:-1]]).all(axis=1)
    pairs: list[tuple[int, int]] = []
    group = [int(order[0])]
    for place, j in enumerate(order[1:]):
        if not same[place]:
            group = [int(j)]
            continue
        group.append(int(j))
        pairs += [
            (min(i, int(j)), max(i, int(j)))
            for i in group[:1]
            if codes[i] != codes[j] and _equal(corpus, i, int(j), sets)
        ]
    return sorted(set(pairs), key=lambda p: (p[1], p[0]))


def _equal(corpus: Corpus, i: int, j: int, sets: bool) -> bool:
    a, b = _measure(corpus, i, sets), _measure(corpus, j, sets)
    return a[0].shape == b[0].shape and bool((a[0] == b[0]).all() and (a[1] == b[1]).all())


def _measure(corpus: Corpus, j: int, sets: bool) -> tuple[Array, Array]:
    piece = slice(corpus.starts[j], corpus.starts[j + 1])
    order = np.argsort(corpus.rows[piece])
    counts = np.ones_like(corpus.counts[piece]) if sets else corpus.counts[piece]
    return corpus.rows[piece][order], counts[order] // np.gcd.reduce(counts)


def name_pairs(pairs: Sequence[tuple[int, int]]) -> str:
    """The first pairs, and how many more there are."""
    named = ", ".join(f"({i}, {j})" for i, j in pairs[:_NAMED])
    return named + (f" and {len(pairs) - _NAMED} more" if len(pairs) > _NAMED else "")


def check_conflicts(corpus: Corpus, codes: Array, what: str, *, positions: bool = False) -> None:
    """Raise `ConflictError` naming the pairs that cannot be told apart."""
    pairs = conflicts(corpus, codes, what)
    if not pairs:
        return
    named = name_pairs(pairs)
    if what == "sets":
        advice = (
            "Methods tree and chain see the set of tokens only: use method='mean' or 'bumps', "
            "which see frequencies" + (", or positions=True." if not positions else ".")
        )
        raise ConflictError(
            "sequences of different label must have different sets of tokens; "
            f"equal sets: {named}. {advice}",
            tuple(pairs),
        )
    if positions:
        raise ConflictError(
            "sequences of different label must differ in some token; equal: "
            f"{named}. Correct the labels.",
            tuple(pairs),
        )
    raise ConflictError(
        "sequences of different label must have different token frequencies; equal: "
        f"{named}. No transformer without positions tells them apart: correct the labels, "
        "or use positions=True where the order differs.",
        tuple(pairs),
    )


@dataclass(frozen=True, eq=False)
class Frame:
    """Centre and size of the data per coordinate.

    `centre` is subtracted first (None where not needed); `size` is a power of
    two not below 1 and not below any first coordinate; `weights` are
    reciprocal ranges, zero for constant coordinates.
    """

    centre: Array | None
    weights: Floats
    size: float


def frame(corpus: Corpus) -> Frame:
    """Measure the table of distinct tokens.

    Without the shift a sum <a, z> of large coordinates loses the digits that
    differ; with the state scaled by `size`, removing z_1 costs no digits.
    """
    table = corpus.table
    low, high = table.min(axis=0), table.max(axis=0)
    span = high.astype(np.float64) - low.astype(np.float64)
    # reciprocals of smaller ranges overflow; tokens that differ there alone are refused later
    moving = span > float(np.finfo(table.dtype).tiny) * 2.0**20
    middle = table[len(table) // 2]
    far = moving & (np.maximum(np.abs(low), np.abs(high)) > 8 * span)
    centre = np.where(far, middle, 0).astype(table.dtype) if far.any() else None
    first = table[:, 0] - centre[0] if centre is not None else table[:, 0]
    largest = max(1.0, float(np.abs(first).max()))
    weights = np.where(moving, 1.0 / np.where(moving, span, 1.0), 0.0)
    return Frame(centre, weights, 2.0 ** math.ceil(math.log2(largest)))


def directions(size: int, dim: int, rng: np.random.Generator) -> Floats:
    """`size` random unit vectors; in one dimension the only one."""
    if dim == 1:
        return np.ones((1, 1))
    a = rng.normal(size=(size, dim))
    return np.asarray(a / np.linalg.norm(a, axis=1, keepdims=True))
