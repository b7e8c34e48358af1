"""The smallest, the largest and the most degenerate systems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hardmax as hm
from tests import oracle, strategies
from tests.known.check_systems import limit_faults


def agree(z: Any, A: Any = None, *, status: str | None = "proved", **step: Any) -> Any:
    """The equilibrium, compared with the oracle; a run of 30 layers stays finite."""
    eq = hm.equilibrium(z, A=A, **step)
    assert list(limit_faults(eq, oracle.answer(z, A, **step))) == []
    if status is not None:
        assert eq.status == status
    if eq.certificate.proved:
        assert eq.certificate.verify(z)
    assert np.isfinite(hm.simulate(z, 30, A=A, **step).zs).all()
    return eq


# ------------------------------------------------------------------ few tokens


@pytest.mark.parametrize("point", [[0.0], [1.0], [-3.0, 4.0], [0.0, 0.0, 0.0], [5e-324], [1e308]])
@pytest.mark.parametrize("gamma", [0.3, 1])
def test_one_token_leads_itself(point: list[float], gamma: Any) -> None:
    eq = agree([point], gamma=gamma)
    assert (eq.leaders, eq.born, eq.settled_at) == ((0,), (0,), 0)
    assert eq.limit.tolist() == [point]
    assert eq.polytope.dim == 0
    assert eq.layers_within(1e-300) == 0
    run = hm.simulate([point], 3, gamma=gamma)
    assert run.status == "settled"
    assert run.zs.tolist() == [[point]] * 4


@pytest.mark.parametrize("point", [[0.0, 0.0], [2.0, -1.0]])
@pytest.mark.parametrize("n", [2, 7])
def test_equal_tokens_are_one_leader(point: list[float], n: int) -> None:
    for A in (None, -np.eye(2), np.zeros((2, 2)), np.array([[0.0, 1.0], [-1.0, 0.0]])):
        eq = agree([point] * n, A, status=None)
        assert eq.certificate.proved
        assert (eq.leaders, eq.settled_at) == ((0,), 0)
        assert eq.limit.tolist() == [point] * n
        assert eq.labels.tolist() == [0] * n
    run = hm.simulate([point] * n, 5)
    assert run.leaders[0].members == tuple(range(n))
    assert run.zs.tolist() == [[point] * n] * 6


def test_two_tokens_one_of_them_zero() -> None:
    eq = agree([[0.0, 0.0], [1.0, 2.0]], alpha=0.5)
    assert eq.limit.tolist() == [[1, 2], [1, 2]]
    assert eq.settled_at == 1  # at layer 0 the zero token chooses both


def test_minus_zero_is_zero() -> None:
    a = agree([[0.0, 1.0], [-0.0, 1.0], [-0.0, 0.5]])
    assert a.leaders == (0,)
    assert a.labels.tolist() == [0, 0, 0]


def test_one_zero_token_in_a_cloud_ends_with_the_others() -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(15, 3))
        z[4] = 0
        eq = agree(z, alpha=0.5)
        assert eq.labels[4] >= 0
        assert not eq.assumptions.nonzero


# ------------------------------------------------------------------ one dimension


def test_numbers_go_to_the_ends() -> None:
    z = np.array([[0.5], [-0.1], [3.0], [-2.0], [1e-9], [-1e-300]])
    eq = agree(z, alpha=0.5)
    assert eq.leaders == (2, 3)
    assert eq.limit[:, 0].tolist() == [3, -2, 3, -2, 3, -2]
    assert eq.settled_at == 0


def test_positive_numbers_go_to_the_largest() -> None:
    eq = agree(np.array([[0.5], [2.0], [1.0]]), alpha=0.5)
    assert eq.leaders == (1,)
    assert eq.limit[:, 0].tolist() == [2, 2, 2]


@pytest.mark.parametrize("seed", range(10))
def test_random_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    agree(rng.normal(size=(int(rng.integers(1, 60)), 1)), alpha=float(rng.uniform(0.05, 5)))


# ------------------------------------------------------------------ scales


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-160, 1e-150, 1e150, 1e160, 1e300, 1e307])
@pytest.mark.parametrize("d", [1, 3])
def test_tokens_of_any_size_have_their_exact_limit(scale: float, d: int) -> None:
    for seed in range(4):
        z = np.random.default_rng(seed).uniform(-1, 1, size=(12, d)) * scale
        agree(z, alpha=0.7)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_matrices_of_any_size_have_their_exact_limit(scale: float) -> None:
    rng = np.random.default_rng(0)
    z, A = rng.normal(size=(12, 3)), strategies.spd("full", 3, rng)
    eq = agree(z, A * scale, alpha=0.7)
    assert eq.leaders == hm.equilibrium(z, A=A, alpha=0.7).leaders
    agree(z * scale, A * scale, alpha=0.7)


def test_sizes_from_the_smallest_to_the_largest_double_in_one_cloud() -> None:
    powers = [-1074, -1022, -700, -300, -3, 0, 40, 300, 700, 1020]
    rng = np.random.default_rng(1)
    z = np.array([np.ldexp(rng.choice([-1.0, 1.0], size=2), p) for p in powers])
    eq = agree(z, status=None, alpha=0.5)
    assert set(eq.leaders) <= {len(powers) - 1, *range(len(powers))}
    single = np.ldexp(rng.uniform(-1, 1, size=(10, 2)), np.array(powers)[:, None])
    agree(single, status=None, alpha=0.5)


def test_denormal_tokens() -> None:
    rng = np.random.default_rng(2)
    z = rng.integers(-50, 51, size=(15, 2)) * 5e-324
    agree(z, status=None, alpha=0.5)
    plain = hm.equilibrium(rng.integers(-50, 51, size=(15, 2)).astype(float), alpha=0.5)
    assert plain.status == "proved"


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_largest_numbers_of_each_precision(kind: Any) -> None:
    top = np.finfo(kind).max
    z = np.array([[top, -top], [-top, top], [top / 2, top / 3], [-top, -top]], dtype=kind)
    eq = agree(z, alpha=0.5)
    assert np.isfinite(eq.limit).all()


@pytest.mark.parametrize("power", [53, 62, 64, 100])
@pytest.mark.parametrize("make", [list, np.array])
def test_integers_that_no_double_holds_are_exact(power: int, make: Any) -> None:
    z = make([[2**power], [2**power + 1], [-1]])
    eq = agree(z, alpha=1)
    assert eq.leaders == (1, 2)
    assert eq.limit_exact is None or eq.limit_exact[0] == [2**power + 1]
    assert eq.certificate.verify([[2**power], [2**power], [-1]]) is False


def test_integers_in_the_matrix_are_exact() -> None:
    A = np.array([[2**53, 2**53 + 1], [2**53 + 1, 2**53 + 2]])  # determinant -1
    assumptions = hm.equilibrium(np.eye(2), A=A).assumptions
    assert (assumptions.symmetric, assumptions.positive_definite) == (True, False)


# ------------------------------------------------------------------ hard to tell apart


@pytest.mark.parametrize("ulps", [1, 2, 1000])
def test_neighbours_in_the_last_bits_are_told_apart(ulps: int) -> None:
    a = 1 + ulps * 2.0**-52
    z = np.array([[1.0, 1.0], [1.0, a], [0.3, 0.2], [a, 1.0]])
    eq = agree(z, alpha=0.5)
    assert eq.leaders == oracle.answer(z, alpha=0.5).leaders


@pytest.mark.parametrize("digits", range(1, 17, 3))
def test_clusters_of_any_width(digits: int) -> None:
    for seed in range(4):
        rng = np.random.default_rng([seed, digits])
        centres = rng.normal(size=(4, 2))
        z = centres[rng.integers(4, size=25)] + 10.0**-digits * rng.normal(size=(25, 2))
        agree(z, alpha=0.5)


def test_tokens_of_equal_length_to_the_last_bit() -> None:
    for seed in range(6):
        z = np.random.default_rng(seed).normal(size=(20, 2))
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        eq = agree(z, alpha=0.5)
        assert len(eq.leaders) >= 15


def test_a_far_offset_leaves_one_leader() -> None:
    for offset in (1e3, 1e6, 1e9):
        z = np.random.default_rng(0).normal(size=(30, 2)) + offset
        assert len(agree(z, alpha=0.5).leaders) == 1


@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1e3, 1e9, 1e300])
def test_steps_of_any_size(alpha: float) -> None:
    z = np.random.default_rng(5).normal(size=(10, 3))
    if alpha >= 1e-3:
        agree(z, alpha=alpha)
    else:
        eq = hm.equilibrium(z, alpha=alpha, max_depth=50)
        assert eq.status in ("proved", "depth_reached")


def test_everybody_leads_in_high_dimension() -> None:
    z = np.random.default_rng(6).normal(size=(60, 64))
    eq = agree(z, alpha=0.5)
    assert eq.leaders == tuple(range(60))
    assert np.array_equal(eq.limit, z)
