"""The search for rational weights that prove the wishes impossible.

Weights w >= 0, not all zero, with M(w) = sum w_k sym(a_k b_k^T) negative semidefinite
are wanted.  For u orthogonal to all asking tokens u'M(w)u = 0, so M(w)u must vanish:
linear equations with rational coefficients.  On what remains the optimum is
as a rule strictly definite, and floats can be rounded (`_control_round`); where it
is not, more equations are found (`_control_faces`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from hardmax._types import Floats, Ints
from hardmax.analysis import _control_program as program
from hardmax.analysis._control_faces import CLEAR, refute_on_faces
from hardmax.analysis._control_proof import ControlCertificate, certify_multipliers
from hardmax.analysis._control_round import round_weights
from hardmax.analysis._control_wishes import Wishes
from hardmax.analysis._exact_linear import dot, in_cone, nullspace

__all__ = ["refute", "refute_diagonal", "refute_plainly"]

_SMALL_GROUPS, _GROUPS = 3, 64


def refute_plainly(wishes: Wishes) -> ControlCertificate | None:
    """A proof from one zero token, or from one token with two different targets."""
    for k in range(len(wishes.wish)):
        if not any(wishes.a(k)):
            return certify_multipliers(wishes, {k: Fraction(1)})
    place = {(int(w), int(j)): k for k, (w, j) in enumerate(_pairs(wishes))}
    for (v, (a, one)), (w, (b, two)) in combinations(enumerate(wishes.classes), 2):
        if a == b and one != two:
            pair = {place[v, two]: Fraction(1), place[w, one]: Fraction(1)}
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
        return None, _face(wishes, np.arange(len(weights))).A
    proof = _refute_pairs(wishes, weights)
    if proof is not None:
        return proof, None
    proof, first = _refute_groups(wishes, weights)
    if proof is None and first is None:
        proof = refute_on_faces(wishes)
    return proof, first


def _refute_groups(
    wishes: Wishes, weights: Floats
) -> tuple[ControlCertificate | None, Floats | None]:
    """All asking tokens, those that take part, and small groups of them."""
    everyone = np.unique(wishes.actors).tolist()
    queue = [tuple(everyone), _taking_part(wishes, np.arange(len(weights)), weights)]
    largest = min(len(everyone) - 1, _SMALL_GROUPS)
    queue += [g for size in range(2, largest + 1) for g in combinations(everyone, size)]
    queue, seen = queue[:_GROUPS], set()
    while queue:
        group = queue.pop(0)
        if len(group) < 2 or group in seen:
            continue
        seen.add(group)
        rows = np.flatnonzero(np.isin(wishes.actors, group))
        found = _face(wishes, rows)
        if found.t > CLEAR:
            if len(group) == len(everyone):
                return None, found.A
            continue
        proof = round_weights(wishes, rows, found.weights)
        if proof is not None:
            return proof, None
        queue.insert(0, _taking_part(wishes, rows, found.weights))
    return None, None


def _face(wishes: Wishes, rows: Ints) -> program.Margin:
    a, b = wishes.unit_a[rows], wishes.unit_b[rows]
    return program.reduced(a, b, np.unique(a, axis=0))


def _taking_part(wishes: Wishes, rows: Ints, weights: Floats) -> tuple[int, ...]:
    """The asking tokens that carry a share of the weights."""
    actors, top = wishes.actors[rows], weights.sum()
    return tuple(v for v in np.unique(actors).tolist() if weights[actors == v].sum() > 1e-5 * top)


def _refute_one(wishes: Wishes, rows: Ints) -> ControlCertificate | None:
    """One asking token alone: its q = A a is any q with <q, a> > 0, a linear program."""
    line = _Line(wishes.a(int(rows[0])), [wishes.b(k) for k in rows.tolist()], rows)
    return _refute_line(wishes, line, wishes.unit_a[rows[0]], wishes.unit_b[rows])


def _refute_pairs(wishes: Wishes, weights: Floats) -> ControlCertificate | None:
    """One pair of tokens alone, about which several ask: q = A (target - other)."""
    heavy = weights > 1e-7 * weights.max()
    ends = np.array([target for _, target in wishes.classes])[wishes.wish]
    low, high = np.minimum(ends, wishes.other), np.maximum(ends, wishes.other)
    for p, q in sorted(set(zip(low[heavy].tolist(), high[heavy].tolist(), strict=True))):
        rows = np.flatnonzero((low == p) & (high == q))
        signs = np.where(ends[rows] == p, 1, -1)
        if len(rows) > 1:
            fixed = [x - y for x, y in zip(wishes.points[p], wishes.points[q], strict=True)]
            turned = zip(rows.tolist(), signs.tolist(), strict=True)
            line = _Line(fixed, [[s * v for v in wishes.a(k)] for k, s in turned], rows)
            unit = wishes.unit_b[rows[0]] * signs[0]
            proof = _refute_line(wishes, line, unit, wishes.unit_a[rows] * signs[:, None])
            if proof is not None:
                return proof
    return None


@dataclass(frozen=True)
class _Line:
    """Inequalities whose matrices sym(fixed v^T) share one vector."""

    fixed: list[int]
    vectors: list[list[int]]
    rows: Ints


def _refute_line(
    wishes: Wishes, line: _Line, fixed: Floats, vectors: Floats
) -> ControlCertificate | None:
    """Weights with sum w v = -s fixed, s >= 0, decided exactly; floats only find the few."""
    least, weights = program.one_actor(fixed, vectors)
    if least > 1e-6:
        return None
    found = _line_exactly(line, np.flatnonzero(weights > 1e-9))
    if found is None and least < 1e-9:
        found = _line_exactly(line, np.arange(len(line.rows)))
    return None if found is None else certify_multipliers(wishes, found)


def _line_exactly(line: _Line, kept: Ints) -> dict[int, Fraction] | None:
    """The weights by the simplex method in integers."""
    across = nullspace([line.fixed], len(line.fixed))
    columns = []
    for k in kept.tolist():
        v = line.vectors[k]
        columns.append([*(dot(v, w) for w in across), dot(v, line.fixed), 1])
    slack = [0] * len(across) + [1, 0]
    answer = in_cone([*columns, slack], [0] * (len(across) + 1) + [1])
    if answer.weights is None:
        return None
    pairs = zip(line.rows[kept].tolist(), answer.weights[:-1], strict=True)
    return {k: w for k, w in pairs if w}


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
