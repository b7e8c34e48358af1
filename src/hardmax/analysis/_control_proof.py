"""Proofs that a score matrix does what is wished, or that none can, in rational numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from hardmax._errors import HardmaxError, InputError
from hardmax._types import Array
from hardmax.analysis._control_wishes import Wish, Wishes, exact_tokens
from hardmax.analysis._exact_linear import dot, primitive, rank
from hardmax.analysis.certificate import Certificate
from hardmax.analysis.system import read_system
from hardmax.io import plain
from hardmax.rational import common, fractions_of

__all__ = [
    "ControlCertificate",
    "Multiplier",
    "certify_matrix",
    "certify_multipliers",
    "combination",
    "is_semidefinite",
    "least_product",
]


@dataclass(frozen=True)
class Multiplier:
    """`weight` > 0 of the inequality that `token` scores `target` above `other`."""

    token: int
    target: int
    other: int
    weight: str


@dataclass(frozen=True)
class ControlCertificate:
    """Why the wishes can or cannot be had; it holds all data that the proof needs.

    Attributes
    ----------
    kind : "feasible" or "infeasible"
    shape : "full" or "diagonal"
    where : "input" or "limit"
    tokens : tuple of tuples of str
        The tokens as rational numbers.
    wishes : tuple of (token, target)
        What is proved possible or impossible; a token leads when it is its own target.
    matrix : tuple of tuples of str, or None
        A feasible A.  The proof: it is semidefinite, and each inequality holds.
    rank : int or None
        The rank that A does not exceed.
    multipliers : tuple of Multiplier, or None
        Weights >= 0, not all zero, whose sum of weight sym(a (target - other)^T) is
        negative semidefinite (for diagonal A: has no positive diagonal entry).  For A
        semidefinite the inequalities <A a, target - other> > 0 would add up to a
        contradiction.
    limit : Certificate or None
        For `where` = "limit": the proof of the limit with this A.
    digest : str
        SHA-256 of all of the above.
    """

    kind: str
    shape: str
    where: str
    tokens: tuple[tuple[str, ...], ...]
    wishes: tuple[tuple[int, int], ...]
    matrix: tuple[tuple[str, ...], ...] | None = None
    rank: int | None = None
    multipliers: tuple[Multiplier, ...] | None = None
    limit: Certificate | None = None
    digest: str = ""

    def sealed(self) -> ControlCertificate:
        """The same with the digest of its data."""
        return replace(self, digest=self._digest())

    def _digest(self) -> str:
        data = {**self.to_dict(), "digest": None}
        return sha256(json.dumps(plain(data), sort_keys=True).encode()).hexdigest()

    def verify(self) -> bool:
        """Whether the proof holds, decided in rational numbers from its own data.

        False also when anything was altered, be it into another proof.
        """
        try:
            if self._digest() != self.digest:
                return False
            if self.kind == "feasible":
                return self._verify_matrix()
            return self.kind == "infeasible" and self._verify_multipliers()
        except (HardmaxError, ValueError, TypeError, ArithmeticError, LookupError, AttributeError):
            return False

    @cached_property
    def _wishes(self) -> Wishes:
        z = [[Fraction(v) for v in row] for row in self.tokens]
        asked = tuple(Wish(int(token), int(target)) for token, target in self.wishes)
        if not all(0 <= i < len(z) for w in asked for i in (w.token, w.target)):
            raise InputError("`wishes` must name tokens.")
        return Wishes(read_system(z, None, 1, None), asked)

    def _verify_matrix(self) -> bool:
        if not self.matrix or not self.wishes:
            return False
        A = np.array([[Fraction(v) for v in row] for row in self.matrix], dtype=object)
        d = len(self.tokens[0])
        if A.shape != (d, d) or np.any(A != A.T):
            return False
        if self.shape != "full" and np.any(A[~np.eye(d, dtype=bool)] != 0):
            return False
        whole = [[int(v) for v in row] for row in common(A)[0]]
        if not is_semidefinite(whole) or (self.rank is not None and rank(whole) > self.rank):
            return False
        if self.where == "limit":
            return self._limit_holds(A)
        return self.where == "input" and least_product(self._wishes, whole) > 0

    def _limit_holds(self, A: Array) -> bool:
        proof = self.limit
        z = [[Fraction(v) for v in row] for row in self.tokens]
        if proof is None or proof.A is None or not proof.verify(z):
            return False
        stated = np.array([[Fraction(v) for v in row] for row in proof.A], dtype=object)
        return bool(np.all(stated == A)) and granted(self._wishes, proof.leaders, proof.labels)

    def _verify_multipliers(self) -> bool:
        if not self.multipliers or self.where != "input":
            return False
        wishes = self._wishes
        known = {(w.token, w.target): row for row, w in enumerate(wishes.asked)}
        weights: dict[int, Fraction] = {}
        place = {
            (int(w), int(j)): k
            for k, (w, j) in enumerate(zip(wishes.wish, wishes.other, strict=True))
        }
        for m in self.multipliers:
            other = int(wishes.system.class_of[m.other])
            k = place[known[m.token, m.target], other]
            weights[k] = weights.get(k, Fraction(0)) + Fraction(m.weight)
            if Fraction(m.weight) <= 0:
                return False
        return refutes(wishes, weights, diagonal=self.shape == "diagonal")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; rational numbers as texts."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        many = self.multipliers
        data["multipliers"] = None if many is None else [asdict(m) for m in many]
        data["limit"] = None if self.limit is None else self.limit.to_dict()
        for name in ("tokens", "wishes", "matrix"):
            if data[name] is not None:
                data[name] = [list(row) for row in data[name]]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ControlCertificate:
        """The certificate that `to_dict` wrote."""
        try:
            rest = dict(data)
            for name in ("tokens", "wishes", "matrix"):
                if rest[name] is not None:
                    rest[name] = tuple(tuple(row) for row in rest[name])
            if rest["multipliers"] is not None:
                rest["multipliers"] = tuple(Multiplier(**m) for m in rest["multipliers"])
            if rest["limit"] is not None:
                rest["limit"] = Certificate.from_dict(rest["limit"])
            return cls(**rest)
        except (TypeError, KeyError) as error:
            raise InputError(
                f"this is no certificate ({error}). Pass what `to_dict` returned."
            ) from None


def granted(wishes: Wishes, leaders: Sequence[int], labels: Sequence[int]) -> bool:
    """Whether every wish comes true in a limit with these leaders and labels."""
    of = wishes.system.class_of
    led = {int(of[i]): place for place, i in enumerate(leaders)}
    for (_, target), wish in zip(wishes.classes, wishes.asked, strict=True):
        if target not in led or int(labels[wish.token]) != led[target]:
            return False
    return True


def is_semidefinite(matrix: Sequence[Sequence[int]]) -> bool:
    """Whether a symmetric integer matrix is positive semidefinite, decided exactly.

    Fraction-free elimination: a zero on the diagonal must have a zero row, a
    negative one refutes.
    """
    m = [primitive_rows(row) for row in matrix]
    last, live = 1, list(range(len(m)))
    while live:
        k = live.pop(0)
        if m[k][k] < 0:
            return False
        if m[k][k] == 0:
            if any(m[k][j] for j in live):
                return False
            continue
        for i in live:
            for j in live:
                m[i][j] = (m[i][j] * m[k][k] - m[i][k] * m[k][j]) // last
        last = m[k][k]
    return True


def primitive_rows(row: Sequence[int]) -> list[int]:
    """A copy as Python integers."""
    return [int(v) for v in row]


def least_product(wishes: Wishes, matrix: Sequence[Sequence[int]]) -> int:
    """The smallest <A a, b> over all inequalities, in integers; 1 when there are none."""
    best = []
    for asker, target in wishes.classes:
        query = [dot(row, wishes.points[asker]) for row in matrix]
        scores = [dot(query, point) for point in wishes.points]
        best += [scores[target] - s for j, s in enumerate(scores) if j != target]
    return min(best, default=1)


def combination(wishes: Wishes, weights: Mapping[int, Fraction]) -> list[list[int]]:
    """A positive multiple of sum_k weight_k (a b^T + b a^T), as integers."""
    d = wishes.dim
    ways: dict[int, list[Fraction]] = {}
    for k, weight in weights.items():
        if weight:
            row = ways.setdefault(int(wishes.actors[k]), [Fraction(0)] * d)
            for i, value in enumerate(wishes.b(k)):
                row[i] += weight * value
    total = [[Fraction(0)] * d for _ in range(d)]
    for actor, row in ways.items():
        a = wishes.points[actor]
        for i in range(d):
            for j in range(d):
                total[i][j] += a[i] * row[j] + a[j] * row[i]
    flat = primitive([v for row in total for v in row])
    return [flat[i * d : (i + 1) * d] for i in range(d)]


def refutes(wishes: Wishes, weights: Mapping[int, Fraction], *, diagonal: bool = False) -> bool:
    """Whether these weights prove that no A grants the wishes."""
    if any(v < 0 for v in weights.values()) or not any(weights.values()):
        return False
    total = combination(wishes, weights)
    if diagonal:
        return all(total[i][i] <= 0 for i in range(wishes.dim))
    return is_semidefinite([[-v for v in row] for row in total])


def certify_multipliers(
    wishes: Wishes, weights: Mapping[int, Fraction], *, diagonal: bool = False
) -> ControlCertificate | None:
    """The proof that these weights give, or None when they prove nothing."""
    if not refutes(wishes, weights, diagonal=diagonal):
        return None
    named = []
    for k, weight in sorted(weights.items()):
        if weight:
            wish = wishes.asked[int(wishes.wish[k])]
            other = int(wishes.system.first[wishes.other[k]])
            named.append(Multiplier(wish.token, wish.target, other, str(weight)))
    used = {(m.token, m.target) for m in named}
    return ControlCertificate(
        kind="infeasible",
        shape="diagonal" if diagonal else "full",
        where="input",
        tokens=exact_tokens(wishes),
        wishes=tuple((w.token, w.target) for w in wishes.asked if (w.token, w.target) in used),
        multipliers=tuple(named),
    ).sealed()


def certify_matrix(
    wishes: Wishes, A: Array, *, diagonal: bool = False, rank: int | None = None
) -> ControlCertificate | None:
    """The proof that A grants the wishes at the input, or None when it does not."""
    whole = [[int(v) for v in row] for row in common(A)[0]]
    if least_product(wishes, whole) <= 0 or not is_semidefinite(whole):
        return None
    return stated(wishes, A, "input", diagonal=diagonal, rank=rank)


def stated(
    wishes: Wishes,
    A: Array,
    where: str,
    *,
    diagonal: bool = False,
    rank: int | None = None,
    limit: Certificate | None = None,
) -> ControlCertificate:
    """A certificate that states A, unchecked."""
    return ControlCertificate(
        kind="feasible",
        shape="diagonal" if diagonal else "full",
        where=where,
        tokens=exact_tokens(wishes),
        wishes=tuple((w.token, w.target) for w in wishes.asked),
        matrix=tuple(tuple(str(v) for v in row) for row in fractions_of(A).tolist()),
        rank=rank,
        limit=limit,
    ).sealed()
