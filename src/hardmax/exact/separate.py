"""What can be told apart: equal measures and sets, directions of projection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

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
_LISTED = 10_000


class ConflictError(InputError):
    """Sequences that no such network can tell apart have different labels."""

    def __init__(self, message: str, pairs: tuple[tuple[int, int], ...]) -> None:
        super().__init__(message)
        self.pairs = pairs


class PrecisionError(InputError):
    """The float type, or the method, is too small for these data."""


def conflicts(corpus: Corpus, codes: Array, what: str = "measures") -> list[tuple[int, int]]:
    """Pairs (i, j), i < j, of different label and equal empirical measure (or set).

    All pairs; beyond ten thousand, one for every sequence j that disagrees with an
    earlier one.
    """
    sets = what == "sets"
    keys = measure_keys(corpus.rows, corpus.counts, corpus.starts, sets)
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    new = np.append(True, (keys[order[1:]] != keys[order[:-1]]).any(axis=1))
    bounds = np.append(np.flatnonzero(new), len(order))
    pairs: list[tuple[int, int]] = []
    for k in np.flatnonzero(np.diff(bounds) > 1):
        alike = np.sort(order[bounds[k] : bounds[k + 1]]).tolist()
        if len(set(codes[alike].tolist())) > 1:
            members = [j for j in alike if _equal(corpus, alike[0], j, sets)]
            pairs += _disagreeing(members, codes, _LISTED - len(pairs))
    return sorted(pairs, key=lambda p: (p[1], p[0]))


def _disagreeing(members: list[int], codes: Array, most: int) -> list[tuple[int, int]]:
    """Pairs of members with different labels."""
    sizes = np.bincount(codes[members]).tolist()
    if (len(members) ** 2 - sum(m * m for m in sizes)) // 2 <= most:
        return [(i, j) for i, j in combinations(members, 2) if codes[i] != codes[j]]
    first = members[0]
    other = next((j for j in members if codes[j] != codes[first]), first)
    rest = [j for j in members if j > other and codes[j] == codes[first]]
    return [(first, j) for j in members if codes[j] != codes[first]] + [(other, j) for j in rest]


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
        "or use positions=True where order or length differ.",
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
