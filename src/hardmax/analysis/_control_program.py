"""The convex programs behind `choose_matrix`, solved in floats by Clarabel or HiGHS."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from hardmax._errors import MissingExtraError
from hardmax._types import Floats, Ints
from hardmax.analysis._control_wishes import pack

__all__ = ["Margin", "best_margin", "closest", "frame", "one_actor", "reduced", "unpack"]


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


def _solve(P: Any, q: Floats, blocks: list[tuple[Any, Floats, str, int]]) -> tuple[Floats, Floats]:
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
    found = clarabel.DefaultSolver(sparse.csc_matrix(P), q, A, b, cones, settings).solve()
    return np.array(found.x), np.array(found.z)


def _cone(size: int, width: int, diagonal: bool) -> tuple[Any, Floats, str, int]:
    """The block that keeps the first `size` variables a semidefinite (or diagonal) matrix."""
    rows = sparse.eye(size, width, format="csc") * -1.0
    order = size if diagonal else round((np.sqrt(8 * size + 1) - 1) / 2)
    return rows, np.zeros(size), "nonneg" if diagonal else "psd", order


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
    blocks = [
        (sparse.csc_matrix(np.append(trace, 0.0)[None, :]), np.array([float(d)]), "zero", 1),
        (sparse.csc_matrix(np.hstack([-g, np.ones((m, 1))])), np.zeros(m), "nonneg", m),
        _cone(size, size + 1, diagonal),
    ]
    x, z = _solve(sparse.csc_matrix((size + 1, size + 1)), q, blocks)
    A = np.diag(x[:-1]) if diagonal else unpack(x[:-1], d)
    return Margin(float(x[-1]), A, z[1 : 1 + m])


def closest(packed: Floats, wanted: Floats, share: float, *, diagonal: bool = False) -> Floats:
    """The semidefinite A nearest to `wanted` with <A, G_k> >= share * trace A / d."""
    d = len(wanted)
    places = _diagonal(d)
    g = packed[:, places] if diagonal else packed
    target = np.diag(wanted) if diagonal else _packed_matrix(wanted)
    m, size = g.shape
    trace = np.ones(d) if diagonal else _packed_matrix(np.eye(d))
    rows = sparse.csc_matrix(-(g - share / d * trace))
    blocks = [(rows, np.zeros(m), "nonneg", m), _cone(size, size, diagonal)]
    x, _ = _solve(sparse.eye(size, format="csc"), -target, blocks)
    return np.diag(x) if diagonal else unpack(x, d)


def reduced(a: Floats, b: Floats, actors: Floats) -> Margin:
    """`best_margin` on the face that matters.

    With the frame's first r directions spanning the asking tokens, only the block S
    (r, r) of A must be semidefinite; the block P below it is free, since the last
    block may be as large as it needs.  The margin is maximised with trace S = r.
    """
    basis, r = frame(actors)
    d = len(basis)
    c, b1, b2 = a @ basis[:, :r], b @ basis[:, :r], b @ basis[:, r:]
    g = pack(c, b1)
    h = np.einsum("mi,mj->mij", b2, c).reshape(len(a), -1)
    m, size, free = len(a), g.shape[1], h.shape[1]
    width = size + free + 1
    trace = np.zeros(width)
    trace[_diagonal(r)] = 1.0
    q = np.zeros(width)
    q[-1] = -1.0
    slack = np.hstack([-g, -h, np.ones((m, 1))])
    rows = sparse.csc_matrix(np.vstack([slack, q[None, :] * -1.0]))
    blocks = [
        (sparse.csc_matrix(trace[None, :]), np.array([float(r)]), "zero", 1),
        (rows, np.append(np.zeros(m), 1.0), "nonneg", m + 1),
        _cone(size, width, False),
    ]
    x, z = _solve(sparse.csc_matrix((width, width)), q, blocks)
    top, below = unpack(x[:size], r), x[size:-1].reshape(d - r, r)
    return Margin(float(x[-1]), _completed(top, below, basis), z[1 : 1 + m])


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
