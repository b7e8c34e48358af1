"""The search for rational weights that prove the wishes impossible.

Weights w >= 0, not all zero, with M(w) = sum w_k sym(a_k b_k^T) negative semidefinite
are wanted.  For u orthogonal to all asking tokens u'M(w)u = 0, so M(w)u must vanish:
linear equations with rational coefficients.  On what remains the optimum is
as a rule strictly definite, and floats can be rounded: some weights are
corrected so that the equations hold exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
from scipy.linalg import qr

from hardmax._types import Floats, Ints
from hardmax.analysis import _control_program as program
from hardmax.analysis._control_proof import ControlCertificate, certify_multipliers
from hardmax.analysis._control_wishes import Wishes
from hardmax.analysis._exact_linear import dot, in_cone, nullspace, primitive, rref, solve

__all__ = ["refute", "refute_diagonal", "refute_plainly"]

_BITS = 44
_SMALL_GROUPS = 4


def refute_plainly(wishes: Wishes) -> ControlCertificate | None:
    """A proof from one zero token, or from one token with two different targets."""
    for k in range(len(wishes.wish)):
        if not any(wishes.a(k)):
            return certify_multipliers(wishes, {k: Fraction(1)})
    place = {(int(w), int(j)): k for k, (w, j) in enumerate(_pairs(wishes))}
    for (v, (a, l)), (w, (b, m)) in combinations(enumerate(wishes.classes), 2):
        if a == b and l != m:
            pair = {place[v, m]: Fraction(1), place[w, l]: Fraction(1)}
            return certify_multipliers(wishes, pair)
    return None


def _pairs(wishes: Wishes) -> list[tuple[int, int]]:
    return list(zip(wishes.wish.tolist(), wishes.other.tolist(), strict=True))


def refute(wishes: Wishes, weights: Floats) -> tuple[ControlCertificate | None, Floats | None]:
    """A proof that no A exists, or a matrix in floats that may grant the wishes.

    `weights` are those of the largest margin; they tell which tokens take part.
    """
    for actor in np.unique(wishes.actors).tolist():
        proof = _refute_one(wishes, np.flatnonzero(wishes.actors == actor))
        if proof is not None:
            return proof, None
    everyone = np.unique(wishes.actors)
    if len(everyone) == 1:
        return None, None
    groups = [everyone, _taking_part(wishes, np.arange(len(weights)), weights)]
    first: Floats | None = None
    seen: set[tuple[int, ...]] = set()
    queue = [tuple(g.tolist()) for g in groups]
    small = min(len(everyone) - 1, _SMALL_GROUPS)
    queue += [g for size in range(2, small) for g in combinations(everyone.tolist(), size)]
    queue = queue[:64]
    while queue:
        group = queue.pop(0)
        if len(group) < 2 or group in seen:
            continue
        seen.add(group)
        rows = np.flatnonzero(np.isin(wishes.actors, group))
        found, weights = _face(wishes, rows)
        if len(group) == len(everyone):
            first = found.A
            if found.t > 1e-7:
                return None, first
        if found.t > 1e-7:
            continue
        proof = _round(wishes, rows, weights, found.t)
        if proof is not None:
            return proof, None
        queue.insert(0, tuple(_taking_part(wishes, rows, weights).tolist()))
    return None, first


def _face(wishes: Wishes, rows: Ints) -> tuple[program.Margin, Floats]:
    a, b = wishes.unit_a[rows], wishes.unit_b[rows]
    actors = np.unique(a, axis=0)
    found, _ = program.reduced(a, b, actors)
    return found, found.weights


def _taking_part(wishes: Wishes, rows: Ints, weights: Floats) -> Ints:
    """The asking tokens that carry a share of the weights."""
    top = weights.sum()
    actors = wishes.actors[rows]
    return np.array(
        [v for v in np.unique(actors) if weights[actors == v].sum() > 1e-5 * top], dtype=np.int64
    )


def _refute_one(wishes: Wishes, rows: Ints) -> ControlCertificate | None:
    """One asking token alone: a linear program, decided exactly."""
    least, weights = program.one_actor(wishes.unit_a[rows[0]], wishes.unit_b[rows])
    if least > 1e-6:
        return None
    used = rows[weights > 1e-9]
    found = _one_exactly(wishes, used)
    if found is None and least < 1e-9:
        found = _one_exactly(wishes, rows)
    return None if found is None else certify_multipliers(wishes, found)


def _one_exactly(wishes: Wishes, rows: Ints) -> dict[int, Fraction] | None:
    """Weights with sum w b = -s a for some s >= 0, by the simplex method in integers."""
    if not len(rows):
        return None
    a = wishes.a(int(rows[0]))
    across = nullspace([a], wishes.dim)
    columns = []
    for k in rows.tolist():
        b = wishes.b(k)
        columns.append([*(dot(b, w) for w in across), dot(b, a), 1])
    slack = [0] * len(across) + [1, 0]
    answer = in_cone([*columns, slack], [0] * (len(across) + 1) + [1])
    if answer.weights is None:
        return None
    return dict(zip(rows.tolist(), answer.weights[:-1], strict=True))


def refute_diagonal(wishes: Wishes) -> ControlCertificate | None:
    """Diagonal A is a linear program: a proof, or None when some A exists."""
    d, columns = wishes.dim, []
    for k in range(len(wishes.wish)):
        products = [p * q for p, q in zip(wishes.a(k), wishes.b(k), strict=True)]
        if all(v <= 0 for v in products):
            return certify_multipliers(wishes, {k: Fraction(1)}, diagonal=True)
        columns.append([*products, 1])
    slacks = [[int(i == j) for j in range(d)] + [0] for i in range(d)]
    answer = in_cone([*columns, *slacks], [0] * d + [1])
    if answer.weights is None:
        return None
    weights = dict(enumerate(answer.weights[: len(columns)]))
    return certify_multipliers(wishes, weights, diagonal=True)


def _round(wishes: Wishes, rows: Ints, weights: Floats, t: float) -> ControlCertificate | None:
    """Exact weights near the given ones: rounded, then corrected on a few rows."""
    scale = _lengths(wishes, rows)
    for threshold in (1e-6, 1e-9):
        kept = weights > threshold * weights.max()
        found = _corrected(wishes, rows[kept], weights[kept], scale[kept])
        if found is not None:
            proof = certify_multipliers(wishes, found)
            if proof is not None:
                return proof
    return None


def _lengths(wishes: Wishes, rows: Ints) -> list[Fraction] | Floats:
    """1 / (|a| |b|) of the integer rows, so that float weights belong to unit rows."""
    out = []
    for k in rows.tolist():
        a, b = wishes.a(k), wishes.b(k)
        bits = (dot(a, a) * dot(b, b)).bit_length()
        size = Fraction(dot(a, a) * dot(b, b), 1 << bits)
        root = Fraction(float(size) ** 0.5).limit_denominator(1 << _BITS)
        half = Fraction(2) ** (bits // 2)
        root = root * half if bits % 2 == 0 else root * half * Fraction(2**0.5)
        out.append(1 / root)
    exact = np.empty(len(out), dtype=object)
    exact[:] = out
    return exact


def _corrected(
    wishes: Wishes, rows: Ints, weights: Floats, scale: Floats | list[Fraction]
) -> dict[int, Fraction] | None:
    """Weights that satisfy M(w) u = 0 exactly for u orthogonal to the asking tokens."""
    if not len(rows):
        return None
    start = [
        _dyadic(Fraction(float(w)) * s)
        for w, s in zip(weights / weights.max(), scale, strict=True)
    ]
    actors = sorted(set(wishes.actors[rows].tolist()))
    equations = _equations(wishes, rows, actors)
    if not equations:
        return dict(zip(rows.tolist(), start, strict=True))
    columns = [[row[k] for row in equations] for k in range(len(rows))]
    wrong = [-sum((x * w for x, w in zip(row, start, strict=True)), Fraction(0)) for row in equations]
    order = _order(wishes, rows, weights)
    step = solve([columns[k] for k in order], wrong)
    if step is None:
        return None
    for k, change in zip(order, step, strict=True):
        start[k] += change
    if min(start) < 0:
        return None
    return dict(zip(rows.tolist(), start, strict=True))


def _dyadic(x: Fraction) -> Fraction:
    """x to about 44 bits."""
    if x == 0:
        return x
    e = x.numerator.bit_length() - x.denominator.bit_length() - _BITS
    unit = Fraction(2) ** e
    return round(x / unit) * unit


def _equations(wishes: Wishes, rows: Ints, actors: Sequence[int]) -> list[list[int]]:
    """Integer rows e with sum_k e_k w_k = 0 iff M(w) u = 0 for all u orthogonal to the actors."""
    points = [wishes.points[v] for v in actors]
    pivots, coordinates = rref([[p[i] for p in points] for i in range(wishes.dim)])
    across = nullspace(points, wishes.dim)
    place = {v: i for i, v in enumerate(actors)}
    which = [place[v] for v in wishes.actors[rows].tolist()]
    b = [wishes.b(k) for k in rows.tolist()]
    out = []
    for u in across:
        products = [dot(v, u) for v in b]
        for p in range(len(pivots)):
            row = [coordinates[p][i] * x for i, x in zip(which, products, strict=True)]
            if any(row):
                out.append(primitive(row))
    return out


def _order(wishes: Wishes, rows: Ints, weights: Floats) -> list[int]:
    """Rows in the order in which they shall take the correction: large and independent."""
    a, b = wishes.unit_a[rows], wishes.unit_b[rows]
    basis, r = program.frame(np.unique(a, axis=0))
    c, across = a @ basis[:, :r], b @ basis[:, r:]
    matrix = np.einsum("mi,mj->ijm", c, across).reshape(-1, len(rows)) * weights
    return [int(k) for k in qr(matrix, mode="r", pivoting=True)[1]]
