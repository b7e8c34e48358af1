"""One system (n, d), exactly: its tokens, scores and step as rational numbers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from hardmax._check import (
    as_array,
    check_finite,
    check_gamma,
    check_matrix,
    check_token_shape,
    is_torch,
)
from hardmax._errors import InputError, ShapeError
from hardmax._types import Array, Floats, Ints
from hardmax.rational import (
    as_fraction,
    common,
    fractions_of,
    is_positive_definite,
    nearest_floats,
    scale_exponent,
)
from hardmax.select.equal import equal_rows

__all__ = ["Assumptions", "System", "read_system"]


@dataclass(frozen=True)
class Assumptions:
    """Which assumptions of the convergence theorem hold, and what holds without them."""

    symmetric: bool
    positive_definite: bool
    nonzero: bool
    distinct: bool
    message: str

    @property
    def hold(self) -> bool:
        """Whether all of them hold."""
        return self.symmetric and self.positive_definite and self.nonzero and self.distinct


@dataclass(frozen=True)
class System:
    """Tokens, scores and step.  Floats stay floats (each is a rational), the rest Fractions.

    `z` and `A` are float64 when every entry is a double, else Fractions (dtype object).
    """

    z: Array
    A: Array | None
    gamma: Fraction
    exact_input: bool

    @cached_property
    def exponent(self) -> int:
        """Tokens are divided by 2**exponent in all float work."""
        return scale_exponent(self.z)

    @cached_property
    def _unique(self) -> tuple[Ints, Ints]:
        """The first token of each class of equal tokens, and the class of each token."""
        if self.z.dtype == object:
            seen: dict[tuple[Any, ...], int] = {}
            inverse = np.array([seen.setdefault(tuple(row), len(seen)) for row in self.z])
            return np.unique(inverse, return_index=True)[1], inverse
        return equal_rows(self.z)

    @property
    def first(self) -> Ints:
        """(m,) the smallest token of each class, ascending."""
        return self._unique[0]

    @property
    def class_of(self) -> Ints:
        """(n,) the class of each token."""
        return self._unique[1]

    @cached_property
    def weight(self) -> Ints:
        """(m,) how many tokens each class holds."""
        return np.bincount(self.class_of)

    @cached_property
    def floats(self) -> Floats:
        """(m, d) class positions times 2**-exponent, correctly rounded."""
        return nearest_floats(self.z[self.first], self.exponent)

    @cached_property
    def matrix(self) -> tuple[Floats | None, float]:
        """A times a power of two near 1 as floats, and the relative rounding of its entries."""
        if self.A is None:
            return None, 0.0
        rounded = 0.0 if self.A.dtype != object else 2.0**-53
        return nearest_floats(self.A, scale_exponent(self.A)), rounded

    @cached_property
    def integer_matrix(self) -> Array | None:
        """A times a positive number, as integers."""
        return None if self.A is None else common(self.A)[0]

    @cached_property
    def matrix_unit(self) -> Fraction:
        """`matrix` divided by `integer_matrix`, rounding aside."""
        if self.A is None:
            return Fraction(1)
        return Fraction(1, common(self.A)[1]) * Fraction(2) ** -scale_exponent(self.A)

    @cached_property
    def _denominator(self) -> int:
        if self.z.dtype == object:
            return common(self.z[self.first])[1]
        entries = self.z[self.z != 0]
        if not len(entries):
            return 1
        mantissa, power = np.frexp(entries)
        bits = np.ldexp(mantissa, 53).astype(np.int64)
        low = np.log2((bits & -bits).astype(np.float64)).astype(int)
        return int(2 ** max(0, int((53 - power - low).max())))

    def integers(self, classes: Ints) -> Array:
        """Positions of some classes times `denominator`, as integers (dtype object)."""
        den = self.denominator
        out = np.empty((len(classes), self.z.shape[1]), dtype=object)
        values = [as_fraction(v) for v in self.z[self.first[classes]].ravel()]
        out.ravel()[:] = [v.numerator * (den // v.denominator) for v in values]
        return out

    @property
    def denominator(self) -> int:
        """The common denominator of all tokens."""
        return self._denominator

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the numbers that define the system."""
        h = hashlib.sha256(b"hardmax system 1")
        for x in (self.z, self.A):
            if x is None:
                h.update(b"identity")
            elif x.dtype == object:
                h.update(repr([str(v) for v in x.ravel()]).encode())
            else:
                h.update(np.ascontiguousarray(x, dtype="<f8").tobytes())
            h.update(repr(None if x is None else x.shape).encode())
        h.update(str(self.gamma).encode())
        return h.hexdigest()

    @cached_property
    def keeps_apart(self) -> bool:
        """Whether <A x, x> > 0 for all x != 0, so that norms grow and tokens do not just meet."""
        if self.A is None:
            return True
        a = common(self.A)[0]
        return is_positive_definite(a + a.T)

    @cached_property
    def assumptions(self) -> Assumptions:
        """Symmetric positive definite A; nonzero and pairwise distinct tokens."""
        symmetric, definite = True, True
        if self.A is not None:
            a = common(self.A)[0]
            symmetric = bool(np.all(a == a.T))
            definite = symmetric and is_positive_definite(a)
        zero = np.flatnonzero(np.all(self.z == 0, axis=1))
        doubled = np.flatnonzero(self.weight > 1)
        parts = []
        if not symmetric:
            parts.append("A is not symmetric")
        elif not definite:
            parts.append("A is not positive definite")
        if len(zero):
            parts.append(f"token {zero[0]} is zero")
        if len(doubled):
            same = np.flatnonzero(self.class_of == doubled[0])[:2]
            parts.append(f"tokens {same[0]} and {same[1]} are equal")
        return Assumptions(
            symmetric, definite, not len(zero), not len(doubled), _what_holds(parts, definite)
        )


def _what_holds(parts: list[str], definite: bool) -> str:
    if not parts:
        return "All assumptions of the convergence theorem hold."
    still = (
        "the hull of the tokens never grows, leaders stay where they are, "
        "and a settled layer stays settled, for any A"
    )
    if definite:
        still += "; equal tokens count as one with a weight, and A-norms never shrink"
    return "; ".join(parts) + f". What still holds: {still}."


def _canonical(x: Array) -> Array:
    """Float64 when every entry is a double, else Fractions; -0 becomes 0."""
    if x.dtype != object:
        return x.astype(np.float64) + 0.0
    exact = fractions_of(x)
    try:
        floats = exact.astype(np.float64)
    except OverflowError:
        return exact
    same = all(Fraction(f) == v for f, v in zip(floats.ravel(), exact.ravel(), strict=True))
    return floats + 0.0 if same else exact


def read_system(z: Any, A: Any, alpha: Any, gamma: Any) -> System:
    """Check the arguments of `equilibrium` and keep them exactly."""
    tokens = as_array(z, "z")
    check_token_shape(tokens.shape)
    if tokens.ndim != 2:
        raise ShapeError(
            f"`z` must be one system (n, d); got shape {tokens.shape}. "
            "Call it once per sequence of the batch, without padding."
        )
    check_finite(tokens, "z", batched=True)
    d = tokens.shape[1]
    step = check_gamma(alpha, gamma, None, d)
    if not isinstance(step, Fraction):
        raise InputError("`gamma` must be one number here; a matrix step has no closed-form limit.")
    exact = tokens.dtype == object
    return System(_canonical(tokens), _read_matrix(A, d), step, exact)


def _read_matrix(A: Any, d: int) -> Array | None:
    """A as one exact matrix; a pair (U, V) is multiplied out in rationals."""
    given = check_matrix(A, d, exact=True)[0]
    if given is None:
        return None
    if isinstance(given, tuple):
        u, v = (fractions_of(as_array(x, "A")) for x in given)
        return _canonical(np.asarray(u.T.dot(v), dtype=object))
    return _canonical(as_array(given, "A") if is_torch(given) else given)
