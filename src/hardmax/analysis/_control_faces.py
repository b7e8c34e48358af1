"""Proofs for data in special position, where the largest margin is 0 beyond the first face.

Weights w >= 0 are wanted whose combination M(w) of sym(a_k b_k^T) is negative
semidefinite.  Any semidefinite A with <A a_k, b_k> >= 0 for all k gives <A, M(w)> = 0:
M(w) vanishes on the range of A, and rows with a positive product have no weight.
Such A are found in floats; the vectors that the data name and A maps to 0 tell the
range exactly.  A wrong guess proves nothing and does no harm: the proof is checked.
"""

from __future__ import annotations

import numpy as np

from hardmax._types import Floats, Ints
from hardmax.analysis import _control_program as program
from hardmax.analysis._control_proof import ControlCertificate
from hardmax.analysis._control_round import round_weights
from hardmax.analysis._control_wishes import Wishes
from hardmax.analysis._exact_linear import rref

__all__ = ["CLEAR", "refute_on_faces"]

CLEAR = 1e-7
"""A margin above this is no boundary case."""
_ZERO = 1e-6


def refute_on_faces(wishes: Wishes) -> ControlCertificate | None:
    """A proof from smaller and smaller faces, or None."""
    rows = np.arange(len(wishes.wish))
    unit, face = _vectors(wishes, rows, actors=True)
    for _ in range(wishes.dim + 1):
        a, b = wishes.unit_a[rows], wishes.unit_b[rows]
        found = program.on_face(a, b, unit)
        if found.t > CLEAR:
            return None
        proof = round_weights(wishes, rows, found.weights, face)
        if proof is not None:
            return proof
        size = len(rref(face)[0])
        kept = found.products <= _ZERO * max(1.0, float(np.abs(found.products).max()))
        fewer = rows[kept]
        if not len(fewer):
            return None
        unit, face = _killed(found, *_vectors(wishes, fewer, actors=False))
        if len(rref(face)[0]) == size and len(fewer) == len(rows):
            return None
        rows = fewer
    return None


def _vectors(wishes: Wishes, rows: Ints, *, actors: bool) -> tuple[Floats, list[list[int]]]:
    """Asking tokens, and with them all differences: as unit vectors and as integers."""
    first = np.unique(wishes.actors[rows], return_index=True)[1]
    unit, whole = wishes.unit_a[rows[first]], [wishes.a(k) for k in rows[first].tolist()]
    if not actors:
        unit = np.vstack([unit, wishes.unit_b[rows]])
        whole += [wishes.b(k) for k in rows.tolist()]
    return unit, whole


def _killed(
    found: program.Face, unit: Floats, whole: list[list[int]]
) -> tuple[Floats, list[list[int]]]:
    """Those of the vectors that lie in the face and that its matrix maps to 0."""
    inside = unit @ found.basis
    r = len(found.top)
    image = inside[:, :r] @ found.top
    gone = (np.abs(inside[:, r:]).max(axis=1, initial=0.0) < _ZERO) & (
        np.abs(image).max(axis=1, initial=0.0) < _ZERO
    )
    return unit[gone], [v for v, out in zip(whole, gone.tolist(), strict=True) if out]
