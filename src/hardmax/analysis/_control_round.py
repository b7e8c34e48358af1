"""Weights in floats turned into rational ones whose combination vanishes where it must."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy.linalg import qr

from hardmax._types import Floats, Ints
from hardmax.analysis._control_proof import ControlCertificate, certify_multipliers
from hardmax.analysis._control_wishes import Wishes
from hardmax.analysis._exact_linear import dot, nullspace, primitive, solve

__all__ = ["round_weights"]

_BITS = 44


def round_weights(
    wishes: Wishes, rows: Ints, weights: Floats, face: Sequence[Sequence[int]] | None = None
) -> ControlCertificate | None:
    """A proof with weights near the given ones: rounded, then corrected on a few rows.

    Their combination M shall vanish on all vectors orthogonal to `face`; by default
    the asking tokens that have a weight.
    """
    for threshold in (1e-6, 1e-9):
        heavy = weights > threshold * weights.max()
        kept = rows[heavy]
        if not len(kept):
            return None
        span = _actors(wishes, kept) if face is None else face
        found = _corrected(wishes, kept, weights[heavy], span)
        proof = None if found is None else certify_multipliers(wishes, found)
        if proof is not None:
            return proof
    return None


def _actors(wishes: Wishes, rows: Ints) -> list[list[int]]:
    return [wishes.points[v] for v in sorted(set(wishes.actors[rows].tolist()))]


def _corrected(
    wishes: Wishes, rows: Ints, weights: Floats, face: Sequence[Sequence[int]]
) -> dict[int, Fraction] | None:
    """Weights that satisfy M(w) u = 0 exactly for u orthogonal to the face."""
    lengths = _lengths(wishes, rows)
    pairs = zip((weights / weights.max()).tolist(), lengths, strict=True)
    start = [_dyadic(Fraction(w) / length) for w, length in pairs]
    across = nullspace(face, wishes.dim)
    equations = _equations(wishes, rows, across)
    if equations:
        wrong = [
            -sum((x * w for x, w in zip(row, start, strict=True)), Fraction(0)) for row in equations
        ]
        order = _order(wishes, rows, weights, across)
        step = solve([[row[k] for row in equations] for k in order], wrong)
        if step is None:
            return None
        for k, change in zip(order, step, strict=True):
            start[k] += change
    return None if min(start) < 0 else dict(zip(rows.tolist(), start, strict=True))


def _dyadic(x: Fraction) -> Fraction:
    """x to about 44 bits."""
    if x == 0:
        return x
    e = x.numerator.bit_length() - x.denominator.bit_length() - _BITS
    unit = Fraction(2) ** e
    return round(x / unit) * unit


def _lengths(wishes: Wishes, rows: Ints) -> list[Fraction]:
    """|a| |b| of the integer rows, nearly: float weights belong to unit rows."""
    out = []
    for k in rows.tolist():
        a, b = wishes.a(k), wishes.b(k)
        square = dot(a, a) * dot(b, b)
        half = max(square.bit_length() // 2 - 60, 0)
        out.append(Fraction(float(square >> (2 * half)) ** 0.5) * (1 << half))
    return out


def _equations(wishes: Wishes, rows: Ints, across: Sequence[Sequence[int]]) -> list[list[int]]:
    """Integer rows e with sum_k e_k w_k = 0 iff M(w) u = 0 for all u in `across`."""
    a, b = ([side(k) for k in rows.tolist()] for side in (wishes.a, wishes.b))
    out = []
    for u in across:
        ways = [dot(v, u) for v in b]
        turns = [dot(v, u) for v in a]
        for i in range(wishes.dim):
            row = [p[i] * x + q[i] * y for p, q, x, y in zip(a, b, ways, turns, strict=True)]
            if any(row):
                out.append(primitive(row))
    return out


def _order(
    wishes: Wishes, rows: Ints, weights: Floats, across: Sequence[Sequence[int]]
) -> list[int]:
    """Rows in the order in which they shall take the correction: large and independent."""
    a, b = wishes.unit_a[rows], wishes.unit_b[rows]
    top = [max(map(abs, u)) for u in across]
    u = np.array([[x / t for x in v] for v, t in zip(across, top, strict=True)])
    image = np.einsum("mi,mj,uj->ium", a, b, u) + np.einsum("mi,mj,uj->ium", b, a, u)
    return [int(k) for k in qr(image.reshape(-1, len(rows)) * weights, mode="r", pivoting=True)[1]]
