"""The same wishes in another basis, in which floats can tell the tokens apart.

Features of very different sizes, or tokens that nearly lie in a subspace, leave floats
with no digits for what decides.  With tokens z W for an invertible rational W, a
matrix A' grants a wish there exactly when W A' W^T grants it here, and the weights of a
refutation are the same.  So W may be chosen freely, and every answer is checked here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from hardmax._types import Floats
from hardmax.analysis import _control_program as program
from hardmax.analysis._control_dual import refute
from hardmax.analysis._control_proof import ControlCertificate
from hardmax.analysis._control_search import Found, settled_matrix
from hardmax.analysis._control_wishes import Wishes, unit_rows
from hardmax.analysis._exact_linear import primitive
from hardmax.rational import common, fractions_of

__all__ = ["Turned", "decide_turned", "turned"]

_LARGEST = 30
"""The most coordinates: the exact elimination takes long beyond."""
_SHIFTS = (0.0, 1e-9, 1e-6)

Columns = list[list[Fraction]]


@dataclass(frozen=True)
class Turned(Wishes):
    """Wishes about the tokens z W; `basis` holds the columns of W."""

    basis: tuple[tuple[Fraction, ...], ...] = ()

    @cached_property
    def points(self) -> list[list[int]]:
        """The distinct tokens in the new basis times a positive number, as integers."""
        plain = Wishes(self.system, self.asked).points
        flat = [
            sum((w * v for w, v in zip(column, row, strict=True)), Fraction(0))
            for row in plain
            for column in self.basis
        ]
        whole = primitive(flat)
        return [whole[k : k + self.dim] for k in range(0, len(whole), self.dim)]

    @cached_property
    def unit_a(self) -> Floats:
        """(m, d) the asking tokens as unit vectors; zero stays zero."""
        return unit_rows(self.points, self.dim)[self.actors]

    @cached_property
    def unit_b(self) -> Floats:
        """(m, d) the differences as unit vectors."""
        return unit_rows([self.b(k) for k in range(len(self.wish))], self.dim)

    def back(self, A: Floats) -> Floats:
        """W A W^T with trace d, rounded once."""
        W = np.array(self.basis, dtype=object).T
        whole, _ = common(W.dot(fractions_of(A)).dot(W.T))
        trace = sum(int(whole[k, k]) for k in range(len(whole)))
        unit = Fraction(self.dim, max(trace, 1))
        return np.array([[float(int(v) * unit) for v in row] for row in whole])


def turned(wishes: Wishes) -> Turned | None:
    """A basis from elimination with the largest pivots; None for too many coordinates."""
    d = wishes.dim
    if d > _LARGEST:
        return None
    rows = wishes.points
    columns = [[Fraction(row[j]) for row in rows] for j in range(d)]
    basis = [[Fraction(int(i == j)) for i in range(d)] for j in range(d)]
    for k in range(d):
        if not _pivot(columns, basis, k):
            break
    for column, turn in zip(columns, basis, strict=True):
        top = max(map(abs, column))
        if top:
            unit = Fraction(2) ** (top.denominator.bit_length() - top.numerator.bit_length())
            turn[:] = [v * unit for v in turn]
    return Turned(wishes.system, wishes.asked, tuple(map(tuple, basis)))


def _pivot(columns: Columns, basis: Columns, k: int) -> bool:
    """Clear the row of the largest entry in all columns behind k; False when all are 0."""
    tops = [max(map(abs, column)) for column in columns[k:]]
    best = max(range(len(tops)), key=tops.__getitem__)
    if not tops[best]:
        return False
    for matrix in (columns, basis):
        matrix[k], matrix[k + best] = matrix[k + best], matrix[k]
    pivots = columns[k]
    row = max(range(len(pivots)), key=lambda i: abs(pivots[i]))
    for j in range(k + 1, len(columns)):
        factor = columns[j][row] / pivots[row]
        if factor:
            for matrix in (columns, basis):
                matrix[j] = [v - factor * w for v, w in zip(matrix[j], matrix[k], strict=True)]
    return True


def decide_turned(wishes: Wishes) -> tuple[Found | None, ControlCertificate | None]:
    """A matrix or a refutation found in the other basis; neither where that fails too."""
    other = turned(wishes)
    if other is None:
        return None, None
    best = program.best_margin(other.packed, other.dim)
    A: Floats | None = best.A
    if not best.t > 1e-13:
        proof, A = refute(other, np.maximum(best.weights, 0.0))
        if proof is not None:
            return None, proof
    if A is not None:
        size = float(np.trace(A)) / len(A)
        for shift in _SHIFTS:
            found = settled_matrix(wishes, other.back(A + shift * size * np.eye(len(A))))
            if found is not None:
                return found, None
    return None, None
