"""Random systems: seeded ones for the large comparison, hypothesis ones for the laws.

`system(seed, index)` depends on its two numbers alone, so that a failing system
can be rebuilt from its line in a report.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

Array = np.ndarray[Any, Any]

CLOUDS = (
    "gaussian",
    "uniform",
    "ball",
    "sphere",
    "clusters",
    "duplicates",
    "lattice",
    "offset",
    "tiny",
    "large",
)
MATRICES = ("identity", "diagonal", "full")


# ------------------------------------------------------------------ seeded systems


@dataclass(frozen=True)
class System:
    """One random system and how it was made."""

    z: Array
    A: Array | None
    alpha: float
    cloud: str
    matrix: str
    seed: int
    index: int

    @property
    def name(self) -> str:
        """Enough to find the system again."""
        n, d = self.z.shape
        return (
            f"system(seed={self.seed}, index={self.index}): {self.cloud}, {self.matrix} A, "
            f"n={n}, d={d}, alpha={self.alpha:.4g}, {self.z.dtype}"
        )


def cloud(kind: str, n: int, d: int, rng: np.random.Generator, dtype: Any = np.float64) -> Array:
    """n points of R^d of the named kind, in float64 (scales fit `dtype`)."""
    small, big = (1e-18, 1e15) if np.dtype(dtype) == np.float32 else (1e-150, 1e150)
    z = rng.normal(size=(n, d))
    length = np.linalg.norm(z, axis=1, keepdims=True)
    if kind == "uniform":
        return rng.uniform(-1, 1, size=(n, d))
    if kind == "ball":
        return z / length * rng.uniform(size=(n, 1)) ** (1 / d)
    if kind == "sphere":
        return z / length
    if kind == "clusters":
        k = int(rng.integers(1, max(2, n // 3) + 1))
        spread = 10.0 ** -rng.integers(1, 10)
        return rng.normal(size=(k, d))[rng.integers(k, size=n)] + spread * z
    if kind == "duplicates":
        return z[rng.integers(max(1, n // 2), size=n)]
    if kind == "lattice":
        reach = int(rng.integers(1, 6))
        return rng.integers(-reach, reach + 1, size=(n, d)).astype(np.float64)
    if kind == "offset":
        return z + 1e6
    return z * {"tiny": small, "large": big}.get(kind, 1.0)


def spd(kind: str, d: int, rng: np.random.Generator) -> Array | None:
    """A symmetric positive definite matrix with condition number up to 1e3."""
    if kind == "identity":
        return None
    spectrum = 10.0 ** rng.uniform(0, 3 * rng.uniform(), size=d)
    if kind == "diagonal":
        return np.diag(spectrum)
    Q, _ = np.linalg.qr(rng.normal(size=(d, d)))
    A = (Q * spectrum) @ Q.T
    return (A + A.T) / 2


def system(seed: int, index: int, n_max: int = 300, d_max: int = 16) -> System:
    """System number `index` of the family `seed`."""
    rng = np.random.default_rng([seed, index])
    n = round(math.exp(rng.uniform(math.log(1.5), math.log(n_max + 0.49))))
    d = int(rng.integers(1, d_max + 1))
    alpha = math.exp(rng.uniform(math.log(0.05), math.log(5)))
    dtype = np.float64 if rng.uniform() < 0.6 else np.float32
    kind, shape = str(rng.choice(CLOUDS)), str(rng.choice(MATRICES))
    z = cloud(kind, max(2, n), d, rng, dtype).astype(dtype)
    A = spd(shape, d, rng)
    return System(z, None if A is None else A.astype(dtype), alpha, kind, shape, seed, index)


def systems(count: int, seed: int = 0, **limits: int) -> Iterator[System]:
    """The first `count` systems of the family `seed`."""
    for index in range(count):
        yield system(seed, index, **limits)


def other_matrix(kind: str, d: int, rng: np.random.Generator) -> Array:
    """Matrices outside the theorem: the name says which."""
    G = rng.normal(size=(d, d))
    if kind == "symmetric":
        return (G + G.T) / 2
    if kind == "skew":
        return G - G.T
    if kind == "rank one":
        v = rng.normal(size=d)
        return np.outer(v, v)
    if kind == "rank one, two vectors":
        return np.outer(rng.normal(size=d), rng.normal(size=d))
    if kind == "negative":
        return -np.eye(d)
    if kind == "negative definite":
        return -(G @ G.T + 0.1 * np.eye(d))
    if kind == "zero":
        return np.zeros((d, d))
    return G


OTHERS = (
    "symmetric",
    "skew",
    "rank one",
    "rank one, two vectors",
    "negative",
    "negative definite",
    "zero",
    "general",
)


# ------------------------------------------------------------------ hypothesis

seeds = st.integers(0, 2**32 - 1)
alphas = st.floats(0.05, 5)
gammas = st.floats(0.05, 1)


@st.composite
def gaussians(draw: st.DrawFn, min_n: int = 1, max_n: int = 12, max_d: int = 4) -> Array:
    """Gaussian tokens: no ties, no duplicates."""
    n, d = draw(st.integers(min_n, max_n)), draw(st.integers(1, max_d))
    return np.random.default_rng(draw(seeds)).normal(size=(n, d))


@st.composite
def grids(draw: st.DrawFn, min_n: int = 1, max_n: int = 9, max_d: int = 3, reach: int = 3) -> Array:
    """Tokens with small integer coordinates: many exact ties, duplicates and zeros."""
    n, d = draw(st.integers(min_n, max_n)), draw(st.integers(1, max_d))
    entry = st.integers(-reach, reach)
    rows = draw(st.lists(st.lists(entry, min_size=d, max_size=d), min_size=n, max_size=n))
    return np.array(rows, dtype=np.float64)


@st.composite
def clouds(draw: st.DrawFn, min_n: int = 1, max_n: int = 10, max_d: int = 3) -> Array:
    """Tokens with and without ties."""
    kind = draw(st.sampled_from(["gaussian", "grid"]))
    make = gaussians if kind == "gaussian" else grids
    return draw(make(min_n=min_n, max_n=max_n, max_d=max_d))


@st.composite
def matrices(draw: st.DrawFn, d: int) -> Array:
    """Any matrix."""
    kind = draw(st.sampled_from(OTHERS))
    return other_matrix(kind, d, np.random.default_rng(draw(seeds)))


@st.composite
def spd_matrices(draw: st.DrawFn, d: int) -> Array:
    """Symmetric positive definite, the identity included."""
    A = spd(draw(st.sampled_from(MATRICES)), d, np.random.default_rng(draw(seeds)))
    return np.eye(d) if A is None else A
