"""The convex programs behind `choose_matrix`, solved in floats by Clarabel or HiGHS."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from hardmax._errors import MissingExtraError
from hardmax._types import Floats, Ints
from hardmax.analysis._control_wishes import pack

__all__ = [
    "Face",
    "Margin",
    "best_margin",
    "closest",
    "frame",
    "on_face",
    "one_actor",
    "reduced",
    "unpack",
]


Block: TypeAlias = tuple[Any, Floats, str, int]
"""Rows A, right sides b, the cone of b - A x, and its size."""

_MANY, _STEP = 1000, 300
"""From how many inequalities on the solver starts with a few, and how many are added."""

_FIRMER = 1e-7
"""Regularisation of the second attempt, where the factorisation of the first breaks down."""


@dataclass(frozen=True)
class Margin:
    """The largest margin found, a matrix that has it, and the weights that bound it."""

    t: float
    A: Floats
    weights: Floats


def _clarabel() -> Any:
    try:
        return import_module("clarabel")
    except ImportError:
        raise MissingExtraError("clarabel", "control") from None


def _solve(P: Any, q: Floats, blocks: list[Block]) -> tuple[Floats, Floats]:
    """Minimise x'Px/2 + q'x with b - Ax in a product of cones; x and multipliers."""
    clarabel = _clarabel()
    kinds = {
        "zero": clarabel.ZeroConeT,
        "nonneg": clarabel.NonnegativeConeT,
        "psd": clarabel.PSDTriangleConeT,
    }
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    A = sparse.csc_matrix(sparse.vstack([block[0] for block in blocks]))
    b = np.concatenate([block[1] for block in blocks])
    cones = [kinds[kind](size) for _, _, kind, size in blocks]
    for extra in (0.0, _FIRMER):
        settings.static_regularization_constant += extra
        found = clarabel.DefaultSolver(sparse.csc_matrix(P), q, A, b, cones, settings).solve()
        if found.status != clarabel.SolverStatus.NumericalError:
            break
    return np.array(found.x), np.array(found.z)


def _cone(size: int, width: int, diagonal: bool) -> Block:
    """The block that keeps the first `size` variables a semidefinite (or diagonal) matrix."""
    rows = sparse.eye(size, width, format="csc") * -1.0
    order = size if diagonal else round((np.sqrt(8 * size + 1) - 1) / 2)
    return rows, np.zeros(size), "nonneg" if diagonal else "psd", order


def _with_rows(P: Any, q: Floats, rows: Floats, fixed: list[Block]) -> tuple[Floats, Floats]:
    """Minimise x'Px/2 + q'x with rows x <= 0 and the fixed blocks; x and the rows' multipliers.

    Of many rows few matter: the solver starts with some, and those that fail are added.
    """
    m, size = rows.shape
    quadratic = sparse.csc_matrix((size, size)) if P is None else P
    kept = np.arange(m) if m <= _MANY else np.unique(np.linspace(0, m - 1, _STEP).astype(int))
    while True:
        few = rows[kept]
        block = (sparse.csc_matrix(few), np.zeros(len(few)), "nonneg", len(few))
        x, z = _solve(quadratic, q, [block, *fixed])
        excess = rows @ x
        excess[kept] = 0.0
        wrong = np.flatnonzero(~(excess <= 1e-9 * max(1.0, float(np.abs(x).max()))))
        if not len(wrong):
            break
        kept = np.append(kept, wrong[np.argsort(-excess[wrong])[:_STEP]])
    weights = np.zeros(m)
    weights[kept] = z[: len(kept)]
    return x, weights


def best_margin(
    packed: Floats, d: int, *, diagonal: bool = False, weight: Floats | None = None
) -> Margin:
    """Maximise t with <A, G_k> >= t for all k, <weight, A> = d, A semidefinite.

    The weight is the identity when None: then trace A = d.
    """
    g = packed[:, _diagonal(d)] if diagonal else packed
    m, size = g.shape
    trace = np.ones(d) if diagonal else _packed_matrix(np.eye(d) if weight is None else weight)
    q = np.zeros(size + 1)
    q[-1] = -1.0
    fixed = [
        (sparse.csc_matrix(np.append(trace, 0.0)[None, :]), np.array([float(d)]), "zero", 1),
        _cone(size, size + 1, diagonal),
    ]
    x, weights = _with_rows(None, q, np.hstack([-g, np.ones((m, 1))]), fixed)
    A = np.diag(x[:-1]) if diagonal else unpack(x[:-1], d)
    return Margin(float(x[-1]), A, weights)


def closest(packed: Floats, wanted: Floats, share: float, *, diagonal: bool = False) -> Floats:
    """The semidefinite A nearest to `wanted` with <A, G_k> >= share * trace A / d."""
    d = len(wanted)
    places = _diagonal(d)
    g = packed[:, places] if diagonal else packed
    target = np.diag(wanted) if diagonal else _packed_matrix(wanted)
    size = g.shape[1]
    trace = np.ones(d) if diagonal else _packed_matrix(np.eye(d))
    rows = share / d * trace - g
    x, _ = _with_rows(sparse.eye(size), -target, rows, [_cone(size, size, diagonal)])
    return np.diag(x) if diagonal else unpack(x, d)


@dataclass(frozen=True)
class Face:
    """The largest margin when only the block `top` of A must be semidefinite.

    The first rows of `basis.T` span the face; `products` are <A a, b> per inequality.
    """

    t: float
    top: Floats
    below: Floats
    basis: Floats
    products: Floats
    weights: Floats


def on_face(a: Floats, b: Floats, vectors: Floats) -> Face:
    """Maximise t <= 1 with <A a, b> >= t, A semidefinite on the span of the vectors only.

    With the frame's first r directions spanning them, the block S (r, r) of A is
    semidefinite with trace r; the blocks P below it and, when some a is not in the span,
    Q behind it are free.
    """
    basis, r = frame(vectors) if len(vectors) else (np.eye(a.shape[1]), 0)
    (a1, a2), (b1, b2) = ((v @ basis[:, :r], v @ basis[:, r:]) for v in (a, b))
    g, rest = pack(a1, b1), pack(a2, b2)
    h = np.einsum("mi,mj->mij", b2, a1) + np.einsum("mi,mj->mij", a2, b1)
    free = [h.reshape(len(a), -1)] + ([rest] if np.abs(a2).max(initial=0) > 1e-12 else [])
    products = np.hstack([g, *free])
    size, width = g.shape[1], products.shape[1] + 1
    trace, q = np.zeros(width), np.zeros(width)
    trace[_diagonal(r)], q[-1] = 1.0, -1.0
    fixed: list[Block] = [(sparse.csc_matrix(-q[None, :]), np.ones(1), "nonneg", 1)]
    if r:
        whole = (sparse.csc_matrix(trace[None, :]), np.array([float(r)]), "zero", 1)
        fixed += [whole, _cone(size, width, False)]
    x, weights = _with_rows(None, q, np.hstack([-products, np.ones((len(a), 1))]), fixed)
    below = x[size : size + (len(basis) - r) * r].reshape(len(basis) - r, r)
    return Face(float(x[-1]), unpack(x[:size], r), below, basis, products @ x[:-1], weights)


def reduced(a: Floats, b: Floats, actors: Floats) -> Margin:
    """`best_margin` on the face of the asking tokens, which all lie in it.

    The block behind may be as large as it needs.
    """
    face = on_face(a, b, actors)
    return Margin(face.t, _completed(face.top, face.below, face.basis), face.weights)


def _completed(top: Floats, below: Floats, basis: Floats) -> Floats:
    """A definite matrix with the given blocks in the frame."""
    r = len(top)
    top = top + 1e-9 * np.eye(r)
    last = below @ np.linalg.solve(top, below.T)
    last = last + (1e-6 + 1e-3 * np.trace(top) / r) * np.eye(len(below))
    A = basis @ np.block([[top, below.T], [below, last]]) @ basis.T
    return np.asarray((A + A.T) / 2)


def frame(actors: Floats) -> tuple[Floats, int]:
    """An orthonormal basis of R^d whose first r vectors span the rows; r."""
    _, s, vt = np.linalg.svd(actors)
    return np.asarray(vt.T), int((s > 1e-12 * max(s[0], 1e-300)).sum())


def one_actor(a: Floats, b: Floats) -> tuple[float, Floats]:
    """The least <a, sum w b> over weights w >= 0, sum 1, whose sum w b is parallel to a.

    inf when no such weights exist.  Not positive: the token cannot choose as it shall.
    """
    basis, _ = frame(a[None, :])
    along, across = b @ a, b @ basis[:, 1:]
    rows = np.vstack([across.T, np.ones(len(b))])
    right = np.append(np.zeros(len(rows) - 1), 1.0)
    found = linprog(along, A_eq=rows, b_eq=right, bounds=(0, None), method="highs-ds")
    if found.status != 0:
        return np.inf, np.zeros(len(b))
    return float(found.fun), np.asarray(found.x)


def _diagonal(d: int) -> Ints:
    return np.cumsum(np.arange(1, d + 1)) - 1


def _packed_matrix(A: Floats) -> Floats:
    column, row = np.tril_indices(len(A))
    return np.asarray(A[row, column] * np.where(row == column, 1.0, np.sqrt(2.0)))


def unpack(x: Floats, d: int) -> Floats:
    """The symmetric matrix of a packed vector."""
    column, row = np.tril_indices(d)
    A = np.zeros((d, d))
    A[row, column] = x / np.where(row == column, 1.0, np.sqrt(2.0))
    return np.asarray(A + np.triu(A, 1).T)
