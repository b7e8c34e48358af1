"""Clouds on which coarse scores go wrong, and the sets that exact scores give."""

from __future__ import annotations

import numpy as np
import torch

from hardmax._types import Array
from hardmax.select.chosen import Chosen
from hardmax.select.gpu import select_gpu

KINDS = ("gaussian", "lognormal", "clusters", "duplicates", "near ties", "line", "zeros", "wide")


def cloud(kind: str, n: int, d: int, seed: int) -> Array:
    """n tokens in R^d in float64."""
    r = np.random.default_rng(seed)
    z = r.standard_normal((n, d))
    if kind == "lognormal":
        return z * np.exp(r.standard_normal((n, 1)))
    if kind == "clusters":  # near equilibrium: followers at 2^-k from their leaders
        leaders = z[: max(2, n // 20)]
        k = r.integers(0, 60, size=(n, 1))
        return leaders[r.integers(len(leaders), size=n)] + np.ldexp(z, -k)
    if kind == "duplicates":
        return z[r.integers(max(2, n // 8), size=n)]
    if kind == "near ties":  # keys that differ in the 12th to the 30th bit
        few = z[: max(2, n // 10)]
        return few[r.integers(len(few), size=n)] * (1 + np.ldexp(r.standard_normal((n, 1)), -25))
    if kind == "line":
        return z[:, :1] * np.ones((n, d))
    if kind == "zeros":
        return z * (r.random((n, 1)) < 0.5)
    if kind == "wide":  # norms over 60 powers of two, more than half precision holds
        return np.ldexp(z, r.integers(-60, 1, size=(n, 1)))
    return z


def exact(
    z: torch.Tensor, A: Array | None = None, tie_tol: float = 0.0, offsets: Array | None = None
) -> Chosen:
    """The sets by float64 chains without any kernel."""
    cuts = np.array([0, len(z)]) if offsets is None else offsets
    return select_gpu(z.double(), A, cuts, tie_tol, kernels=False)


def same(a: Chosen, b: Chosen) -> bool:
    """Whether two selections have the same rows."""
    return np.array_equal(a.indptr, b.indptr) and np.array_equal(a.indices, b.indices)
