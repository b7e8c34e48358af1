"""Laws of the layer as functions that return a gap: 0 when the law holds exactly.

Each gap is relative to the size of the tokens, so that rounding alone gives
about 1e-15 in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linprog

from hardmax._check import as_array
from hardmax._errors import ShapeError
from hardmax._types import Array, ArrayLike, Floats
from hardmax.dynamics.layer import layer
from hardmax.dynamics.run import Run

__all__ = [
    "frozen_gap",
    "growth_gap",
    "hard_limit_gap",
    "hull_gap",
    "linear_gap",
    "permutation_gap",
]


def hull_gap(before: ArrayLike, after: ArrayLike) -> float:
    """How far a token of `after` lies outside the hull of `before` (any A).

    Every layer moves tokens to convex combinations, so the hull never grows when
    the step is a number (a matrix step may leave it).

    Parameters
    ----------
    before, after : (n, d) arrays

    Returns
    -------
    float
        The largest distance, in the maximum norm, over the largest coordinate.

    Examples
    --------
    >>> hull_gap([[0.0], [2.0]], [[1.0], [3.0]])
    0.5
    """
    x, y = _pair(before, after, "before", "after")
    scale = _size(x)
    return max(_distance_to_hull(x / scale, point / scale) for point in y)


def _distance_to_hull(x: Floats, point: Floats) -> float:
    """min t with |sum_j w_j x_j - point| <= t, w in the simplex: a linear program."""
    n, d = x.shape
    if n == 1:
        return float(np.abs(x[0] - point).max())
    slack = -np.ones((d, 1))
    upper = np.block([[x.T, slack], [-x.T, slack]])
    found = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=upper,
        b_ub=np.concatenate([point, -point]),
        A_eq=np.append(np.ones(n), 0.0)[None],
        b_eq=[1.0],
        method="highs",
    )
    return max(float(found.fun), 0.0)


def growth_gap(before: ArrayLike, after: ArrayLike, *, A: ArrayLike | None = None) -> float:
    """How much an A-norm <A z, z> shrank in a layer; 0 for symmetric positive definite A.

    Examples
    --------
    >>> growth_gap([[1.0], [2.0]], [[1.5], [2.0]])
    0.0
    """
    x, y = _pair(before, after, "before", "after")
    a = np.eye(x.shape[1]) if A is None else as_array(A, "A")
    old = np.einsum("nd,de,ne->n", x, a, x)
    new = np.einsum("nd,de,ne->n", y, a, y)
    scale = float(np.abs(old).max()) or 1.0
    return float(max((old - new).max(), 0.0)) / scale


def frozen_gap(run: Run) -> float:
    """How far leaders of a run have moved since their birth (any A).

    Needs all layers saved, a single system and the "rescale" normalisation.

    Examples
    --------
    >>> from hardmax.dynamics.run import simulate
    >>> frozen_gap(simulate([[1.0, 0.0], [0.0, 1.0], [0.4, 0.2]], 5))
    0.0
    """
    zs = as_array(run.zs, "zs")
    if zs.ndim != 3 or len(run.layers) != run.depth + 1:
        raise ShapeError("`run` must hold one system with all layers saved (save='all').")
    width = zs.shape[-1] // run.heads
    scale = _size(zs[0])
    worst = 0.0
    for leader in run.leaders:
        path = zs[leader.born :, leader.index, leader.head * width : (leader.head + 1) * width]
        worst = max(worst, float(np.abs(path - path[0]).max()) / scale)
    return worst


def permutation_gap(z: ArrayLike, order: Sequence[int], **options: Any) -> float:
    """How much layer(z[order]) differs from layer(z)[order].

    Examples
    --------
    >>> permutation_gap([[1.0], [2.0], [-1.0]], [2, 0, 1], alpha=0.5)
    0.0
    """
    x = as_array(z, "z")
    index = np.asarray(order)
    gap = layer(x[index], **options) - layer(x, **options)[index]
    return float(np.abs(gap).max()) / _size(x)


def linear_gap(z: ArrayLike, L: ArrayLike, **options: Any) -> float:
    """How much L layer(z, A=LᵀL) differs from layer(L z), with A = I there.

    Examples
    --------
    >>> linear_gap([[1.0, 2.0], [-1.0, 0.5]], [[2.0, 0.0], [0.0, 1.0]])
    0.0
    """
    x, matrix = as_array(z, "z"), as_array(L, "L")
    mapped = x @ matrix.T
    gap = layer(x, A=matrix.T @ matrix, **options) @ matrix.T - layer(mapped, **options)
    return float(np.abs(gap).max()) / _size(mapped)


def hard_limit_gap(z: ArrayLike, temperature: float, **options: Any) -> float:
    """How much the layer at a temperature differs from the hardmax layer.

    Tends to 0 with the temperature, ties included: equal scores share the weight.

    Examples
    --------
    >>> hard_limit_gap([[1.0, 0.0], [0.0, 1.0]], 0.01) < 1e-12
    True
    """
    x = as_array(z, "z")
    gap = layer(x, temperature=temperature, **options) - layer(x, **options)
    return float(np.abs(gap).max()) / _size(x)


def _pair(x: ArrayLike, y: ArrayLike, first: str, second: str) -> tuple[Array, Array]:
    a, b = as_array(x, first).astype(np.float64), as_array(y, second).astype(np.float64)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ShapeError(
            f"`{first}` and `{second}` must be (n, d) with one d; got {a.shape} and {b.shape}."
        )
    return a, b


def _size(x: Array) -> float:
    return float(np.abs(x).max()) or 1.0
