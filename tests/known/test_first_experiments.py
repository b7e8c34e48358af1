"""The three first experiments proposed for the paper.

Tokens converge to a finite set for A = I and small alpha; leaders stay where
they were found and are the vertices of the limiting polytope; without the
normalisation the values grow without bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hardmax as hm
from tests import oracle, strategies

SEEDS = range(8)


def gaussian(seed: int, n: int = 40, d: int = 2) -> Any:
    return np.random.default_rng(seed).normal(size=(n, d))


# ------------------------------------------------------------------ convergence


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("alpha", [0.05, 0.1])
def test_distinct_tokens_converge_to_a_finite_set_for_small_alpha(seed: int, alpha: float) -> None:
    z = gaussian(seed)
    eq = hm.equilibrium(z, alpha=alpha)
    assert eq.status == "proved"
    assert eq.assumptions.hold
    assert len(eq.points) < len(z) / 2
    last = hm.simulate(z, 800, alpha=alpha, save="last").z
    assert np.abs(last - eq.limit).max() < 1e-5  # merged followers stand on their leader
    points = np.asarray(eq.points)
    nearest = np.abs(last[:, None] - points[None]).max(axis=2).min(axis=1)
    assert nearest.max() < 1e-5


@pytest.mark.parametrize("seed", SEEDS)
def test_the_distance_to_the_limit_shrinks_by_one_minus_gamma_per_layer(seed: int) -> None:
    z, alpha = gaussian(seed), 0.1
    eq = hm.equilibrium(z, alpha=alpha)
    zs = hm.simulate(z, eq.settled_at + 40, alpha=alpha, merge_tol=0).zs
    gaps = np.linalg.norm(zs[eq.settled_at :] - eq.limit, axis=2).max(axis=1)
    assert np.allclose(gaps[1:] / gaps[:-1], 1 / (1 + alpha), rtol=1e-9)


# ------------------------------------------------------------------ leaders


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("alpha", [0.1, 0.5, 2.0])
def test_leaders_never_move_once_they_are_found(seed: int, alpha: float) -> None:
    run = hm.simulate(gaussian(seed), 80, alpha=alpha)
    assert run.leaders
    for leader in run.leaders:
        for token in leader.members:
            after = run.zs[leader.born :, token]
            assert np.array_equal(after, np.broadcast_to(after[0], after.shape))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_leaders_are_the_vertices_of_the_limiting_polytope(seed: int, d: int) -> None:
    eq = hm.equilibrium(gaussian(seed, 30, d), alpha=0.3)
    assert eq.status == "proved"
    vertices = {tuple(v) for v in np.asarray(eq.polytope.vertices).tolist()}
    assert vertices == {tuple(eq.limit[i].tolist()) for i in eq.leaders}
    assert len(eq.leaders) == len(vertices)


@pytest.mark.parametrize("seed", SEEDS)
def test_leaders_are_vertices_in_the_geometry_of_any_positive_definite_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z, A = rng.normal(size=(25, 3)), strategies.spd("full", 3, rng)
    eq = hm.equilibrium(z, A=A, alpha=0.3)
    assert eq.status == "proved"
    vertices = {tuple(v) for v in np.asarray(eq.polytope.vertices).tolist()}
    assert vertices == {tuple(eq.limit[i].tolist()) for i in eq.leaders}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_limit_is_in_the_polytope_and_on_its_boundary(seed: int) -> None:
    eq = hm.equilibrium(gaussian(seed), alpha=0.5)
    assert all(eq.polytope.contains(x) for x in eq.limit)
    outside = [(1 + 1e-6) * x - 1e-6 * eq.limit.mean(axis=0) for x in eq.points]
    assert not any(eq.polytope.contains(x) for x in outside)


def test_vertices_that_own_their_cells_leave_no_room_for_new_leaders() -> None:
    for seed in SEEDS:
        z = gaussian(seed, 12)
        found = oracle.answer(z, alpha=0.5)
        eq = hm.equilibrium(z, alpha=0.5)
        at_once = [i for i, k in zip(eq.leaders, eq.born, strict=True) if k == 0]
        hull = hm.Polytope.of(z).vertices
        if len(hull) == len(at_once):
            assert found.born == (0,) * len(at_once) == eq.born


# ------------------------------------------------------------------ no normalisation


@pytest.mark.parametrize("seed", SEEDS)
def test_without_normalisation_the_values_grow_without_bound(seed: int) -> None:
    z, alpha, depth = gaussian(seed, 20), 0.4, 60
    free = hm.simulate(z, depth, alpha=alpha, normalization="none")
    tops = np.abs(free.zs).max(axis=(1, 2))
    assert np.all(np.diff(tops) > 0)
    assert tops[-1] == pytest.approx((1 + alpha) ** depth * tops[0], rel=1e-12)
    held = hm.simulate(z, depth, alpha=alpha)
    assert np.abs(held.zs).max() <= tops[0]


def test_without_normalisation_a_run_reports_that_it_overflowed() -> None:
    run = hm.simulate(gaussian(0, 20), 3000, alpha=1.0, normalization="none", save="last")
    assert run.status == "not_finite"


@pytest.mark.parametrize("seed", SEEDS)
def test_without_normalisation_the_choices_are_the_same(seed: int) -> None:
    z, alpha = gaussian(seed, 20), 0.4
    free = hm.simulate(z, 25, alpha=alpha, normalization="none", merge_tol=0)
    held = hm.simulate(z, 25, alpha=alpha, merge_tol=0)
    assert np.array_equal(free.follows, held.follows)
    growth = (1 + alpha) ** np.arange(26)[:, None, None]
    assert np.allclose(free.zs, growth * held.zs, rtol=1e-12, atol=0)
