"""Small systems for which published or plausible statements fail."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest

import hardmax as hm
from tests import oracle
from tests.known.check_systems import limit_faults


def test_two_numbers_stop_away_from_the_origin_for_vanishing_steps() -> None:
    # A = -1 and gamma_t = 2/(t + 2): the hull leaves the origin at t = 2.
    steps = [F(2, t + 2) for t in range(400)]
    run = hm.simulate([[3.0], [-1.0]], 400, A=[[-1.0]], gamma=steps)
    assert np.allclose(run.zs[2], [[5 / 3], [1 / 3]], rtol=0, atol=1e-15)
    assert np.allclose(run.zs[2:, 1], 1 / 3, rtol=0, atol=1e-15)
    assert np.allclose(0.5 * run.zs[2:, 1] ** 2, 1 / 18, rtol=0, atol=1e-15)
    assert run.zs[-1, 0, 0] - 1 / 3 < 1e-4


def test_the_same_by_the_oracle_without_rounding() -> None:
    z = oracle.fractions([[3], [-1]])
    for t in range(12):
        z = oracle.layer(z, [[F(-1)]], F(2, t + 2))
        if t >= 1:
            assert z[1] == [F(1, 3)]
    assert z[0][0] > F(1, 3)


def test_a_diagonal_step_leaves_the_hull() -> None:
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])  # e1 asks for e2
    moved = hm.layer(triangle, A=swap, gamma=np.diag([0.6, 0.7]))
    assert np.allclose(moved[1], [0.4, 0.7], rtol=0, atol=1e-15)
    hull = hm.Polytope.of(triangle)
    assert hull.contains(triangle[1])
    assert not hull.contains(moved[1])
    scalar = hm.layer(triangle, A=swap, gamma=0.6)
    assert all(hull.contains(x) for x in scalar)


def test_a_pair_of_opposite_numbers_merges_at_the_middle() -> None:
    eq = hm.equilibrium([[3.0], [-1.0]], A=[[-1.0]], gamma=0.5)
    assert eq.status in ("proved", "collapsed")
    if eq.status == "proved":
        assert eq.limit.tolist() == [[1], [1]]
    run = hm.simulate([[3.0], [-1.0]], 3, A=[[-1.0]], gamma=0.5)
    assert run.zs[1:].tolist() == [[[1], [1]]] * 3


def test_minus_the_identity_collapses_a_cloud_to_one_point() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 5))
        z = rng.normal(size=(int(rng.integers(3, 40)), d))
        eq = hm.equilibrium(z, A=-np.eye(d), alpha=0.5)
        assert eq.status == "collapsed", (seed, eq.status)
        assert not eq.assumptions.positive_definite
        assert len(np.unique(eq.limit, axis=0)) == 1
        assert list(limit_faults(eq, oracle.answer(z, -np.eye(d), 0.5))) == []
        last = hm.simulate(z, 400, A=-np.eye(d), alpha=0.5, save="last").z
        assert np.abs(last - eq.limit).max() < 1e-5


@pytest.mark.parametrize(("seed", "alpha"), [(17, 3.0), (71, 3.0), (99, 0.1), (200, 3.0)])
def test_leaders_born_of_rounding_do_not_hide_a_collapse(seed: int, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 40)), int(rng.integers(1, 6))
    z = rng.normal(size=(n, d)).astype(np.float32)
    run = hm.simulate(z, 200, A=-np.eye(d), alpha=alpha, save="last")
    assert run.leaders
    assert len(set(run.labels)) > 1
    assert np.ptp(run.z, axis=0).max() < 1e-6
    assert run.status == "collapsed"


def test_mirrored_pairs_shrink_to_the_origin_and_never_settle() -> None:
    # For A = -1 the pair +-x chooses each other: x -> (1 - 2 gamma) x for ever.
    eq = hm.equilibrium([[1.0], [-1.0]], A=[[-1.0]], gamma=0.25)
    assert eq.status == "collapsed"
    assert not eq.certificate.proved
    assert eq.settled_at is None
    run = hm.simulate([[1.0], [-1.0]], 100, A=[[-1.0]], gamma=0.25)
    assert run.status == "collapsed"
    assert run.leaders == ()
    assert np.allclose(run.zs[:, 0, 0], 0.5 ** np.arange(101), rtol=1e-12, atol=0)
