"""Wishes about one layer: which token shall choose which, as exact linear inequalities in A."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Array, Floats, Ints
from hardmax.analysis.system import System, read_system
from hardmax.rational import nearest_floats, scale_exponent

__all__ = ["Wish", "Wishes", "exact_tokens", "pack", "read_wishes", "unit_rows"]

_TINY = 1e-200


@dataclass(frozen=True, order=True)
class Wish:
    """`token` shall choose the class of `target` alone; it leads when they are the same."""

    token: int
    target: int

    def __str__(self) -> str:
        if self.token == self.target:
            return f"{self.token} leads"
        return f"{self.token} follows {self.target}"


@dataclass(frozen=True)
class Wishes:
    """Wishes about the tokens of a system, each an inequality <A a, b> > 0 per other class.

    For the wish of row k, a is the asking token and b = target - other; `wish[k]`
    and `other[k]` name them.
    """

    system: System
    asked: tuple[Wish, ...]

    @cached_property
    def _rows(self) -> tuple[Ints, Ints]:
        classes = np.arange(len(self.system.first))
        wish, other = [], []
        for w, (_, target) in enumerate(self.classes):
            rest = classes[classes != target]
            wish.append(np.full(len(rest), w))
            other.append(rest)
        empty = np.zeros(0, dtype=np.int64)
        return np.concatenate([empty, *wish]), np.concatenate([empty, *other])

    @property
    def wish(self) -> Ints:
        """(m,) the wish of each inequality."""
        return self._rows[0]

    @property
    def other(self) -> Ints:
        """(m,) the class that shall not be chosen."""
        return self._rows[1]

    @cached_property
    def classes(self) -> list[tuple[int, int]]:
        """The classes of token and target of each wish."""
        of = self.system.class_of
        return [(int(of[w.token]), int(of[w.target])) for w in self.asked]

    @cached_property
    def points(self) -> list[list[int]]:
        """The distinct tokens times a positive number, as integers."""
        whole = self.system.integers(np.arange(len(self.system.first)))
        return [[int(v) for v in row] for row in whole]

    @property
    def dim(self) -> int:
        return int(self.system.z.shape[1])

    def a(self, k: int) -> list[int]:
        """The asking token of an inequality, as integers."""
        return self.points[self.classes[int(self.wish[k])][0]]

    def b(self, k: int) -> list[int]:
        """Target less other token of an inequality, as integers."""
        target = self.points[self.classes[int(self.wish[k])][1]]
        return [p - q for p, q in zip(target, self.points[int(self.other[k])], strict=True)]

    @cached_property
    def actors(self) -> Ints:
        """(m,) the class that asks in each inequality."""
        return np.array([self.classes[int(w)][0] for w in self.wish], dtype=np.int64)

    @cached_property
    def unit_a(self) -> Floats:
        """(m, d) the asking tokens as unit vectors; zero stays zero."""
        x = self.system.floats.copy()
        for c in np.flatnonzero(np.abs(x).max(axis=1) < _TINY).tolist():
            x[c] = _row_floats(self.points[c])
        return _unit(x)[self.actors]

    @cached_property
    def unit_b(self) -> Floats:
        """(m, d) the differences as unit vectors."""
        target = np.array([self.classes[int(w)][1] for w in self.wish], dtype=np.int64)
        if self.system.z.dtype != object:
            x = self.system.floats
            rows = x[target] - x[self.other]
            if np.all(np.abs(rows).max(axis=1, initial=0) > _TINY):
                return _unit(rows)
        return unit_rows([self.b(k) for k in range(len(self.wish))], self.dim)

    @cached_property
    def packed(self) -> Floats:
        """(m, d(d+1)/2) the matrices sym(a b^T) of unit vectors, packed with their products."""
        return pack(self.unit_a, self.unit_b)

    def only(self, kept: Sequence[int]) -> Wishes:
        """The same system with some of the wishes."""
        return Wishes(self.system, tuple(self.asked[w] for w in kept))


def pack(a: Floats, b: Floats) -> Floats:
    """sym(a b^T) row by row: columns of the upper triangle, off-diagonal times sqrt 2."""
    d = a.shape[1]
    column, row = np.tril_indices(d)
    both = (a[:, row] * b[:, column] + a[:, column] * b[:, row]) / 2
    return np.asarray(both * np.where(row == column, 1.0, np.sqrt(2.0)))


def _row_floats(row: Sequence[int]) -> Floats:
    whole = np.array(row, dtype=object)
    return nearest_floats(whole, scale_exponent(whole))


def unit_rows(rows: Sequence[Sequence[int]], width: int) -> Floats:
    """Integer rows (m, width) as unit vectors; zero stays zero."""
    return _unit(np.array([_row_floats(row) for row in rows]).reshape(-1, width))


def _unit(rows: Floats) -> Floats:
    top = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    safe = rows / np.where(top > 0, top, 1.0)
    length = np.linalg.norm(safe, axis=1, keepdims=True)
    return np.asarray(safe / np.where(length > 0, length, 1.0))


def read_wishes(z: Any, lead: Any, follow: Any, alpha: Any, gamma: Any) -> Wishes:
    """Check tokens and wishes; equal wishes count once."""
    system = read_system(z, None, alpha, gamma)
    n = len(system.z)
    leads = [_token(v, n, "lead") for v in _listed(lead, "lead")]
    if not leads:
        raise InputError("`lead` must name at least one token; got none.")
    of = system.class_of
    led = {int(of[i]) for i in leads}
    asked = [Wish(i, i) for i in leads]
    for pair in _listed(follow, "follow"):
        if np.ndim(pair) != 1 or len(pair) != 2:
            raise InputError(f"`follow` must hold pairs (follower, leader); got {pair!r}.")
        follower, leader = (_token(v, n, "follow") for v in pair)
        if int(of[leader]) not in led:
            raise InputError(
                f"`follow` asks token {follower} to follow token {leader}, which is not among "
                f"`lead`. Add {leader} to `lead`."
            )
        asked.append(Wish(follower, leader))
    seen: dict[tuple[int, int], Wish] = {}
    for w in asked:
        seen.setdefault((int(of[w.token]), int(of[w.target])), w)
    return Wishes(system, tuple(seen.values()))


def _listed(values: Any, name: str) -> list[Any]:
    if hasattr(values, "tolist"):  # arrays and tensors
        values = values.tolist()
    if isinstance(values, int | np.integer) and not isinstance(values, bool):
        return [values]
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(f"`{name}` must be a list of token numbers; got {values!r}.")
    return list(values)


def _token(value: Any, n: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"`{name}` must hold token numbers from 0 to {n - 1}; got {value!r}.")
    if not 0 <= value < n:
        raise InputError(f"`{name}` must hold token numbers from 0 to {n - 1}; got {value}.")
    return int(value)


def exact_tokens(wishes: Wishes) -> tuple[tuple[str, ...], ...]:
    """The tokens as texts of rational numbers."""
    z: Array = wishes.system.z
    return tuple(
        tuple(str(v if isinstance(v, Fraction) else Fraction(v)) for v in row) for row in z.tolist()
    )
