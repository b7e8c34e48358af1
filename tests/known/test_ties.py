"""Systems built so that scores tie exactly."""

from __future__ import annotations

import itertools
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from tests import oracle, strategies
from tests.known.check_systems import limit_faults

HALF = F(1, 2)


def compare(z: Any, A: Any = None, *, want: str | None = "proved", **step: Any) -> Any:
    """The equilibrium, compared with the oracle in all that it states."""
    eq = hm.equilibrium(z, A=A, **step)
    found = oracle.answer(z, A, **step)
    assert list(limit_faults(eq, found)) == []
    if want is not None:
        assert eq.status == want
    if eq.certificate.proved:
        assert eq.certificate.verify(z)
        assert eq.certificate.verify(z, arithmetic="rational")
    return eq


def cube(d: int) -> list[list[int]]:
    return [list(x) for x in itertools.product((-1, 1), repeat=d)]


def lattice(d: int, reach: int = 1) -> list[list[int]]:
    return [list(x) for x in itertools.product(range(-reach, reach + 1), repeat=d)]


# ------------------------------------------------------------------ both examples of the theory


def test_a_tie_of_unequal_leaders_lasts_one_layer() -> None:
    eq = compare([(1, 3), (1, -1), (0.5, 0)], gamma=0.5)
    assert list(eq.labels) == [0, 1, 0]
    assert eq.settled_at == 1
    assert eq.limit.tolist() == [[1, 3], [1, -1], [1, 3]]


def test_a_tie_of_equal_products_is_ended_by_a_third_token() -> None:
    z = [(1, 2, 0), (1, -2, 0), (F(3, 2), 0, -1), (F(1, 10), 0, F(1, 10))]
    eq = compare(z, alpha=HALF)
    assert list(eq.labels) == [0, 1, 2, 2]
    assert eq.limit_exact[3] == [F(3, 2), 0, -1]
    assert eq.settled_at == 1
    floats = compare(np.array(z, dtype=float), alpha=0.5)
    assert list(floats.labels) == [0, 1, 2, 2]


def test_a_tie_that_a_limit_ends_is_not_called_settled_too_early() -> None:
    # Token 4 leads only from layer 1 on; until then tokens 2 and 3 look tied for ever.
    for alpha in (0.1, 0.5, 2.0):
        compare([(1, 3), (1, -1), (0.5, 0), (0.25, 0), (-1, 0.5)], alpha=alpha)


def test_a_tie_that_a_moving_token_ends_is_not_called_settled() -> None:
    # Token 4 ties between leaders 0 and 1.  Tokens 2 and 3 follow these leaders, score less
    # at the start and as much in the limit, and more in between.
    z = np.array([(1, 2, 0), (1, -2, 0), (1.25, 0.5, -0.5), (1.25, -0.5, -0.5), (0.375, 0, 0.375)])
    assert oracle.State.of(z, gamma=0.5).sets == [(0,), (1,), (0,), (1,), (0, 1)]
    for gamma in (F(1, 2), F(1, 10), 0.3):
        eq = compare(z, gamma=gamma)
        assert eq.settled_at > 0
        assert eq.labels[4] not in (0, 1)


SHEARS = ([[1, 0], [0, 1]], [[2, 1], [1, 1]], [[5, 3], [3, 2]], [[7, -4], [-5, 3]])


@pytest.mark.parametrize("shear", SHEARS, ids=str)
@pytest.mark.parametrize("alpha", [0.3, 0.05, 0.02])
def test_ties_between_moving_tokens_are_decided_exactly(shear: Any, alpha: float) -> None:
    # Token 4 ties between tokens 2 and 3 while they move, for dozens of layers.  A shear
    # keeps the ties exact and makes the rounding of the two tokens differ.
    L = np.array(shear, dtype=float)
    back = np.round(np.linalg.inv(L))
    for ahead in (0.125, 0.0625):
        plain = [(1, 1), (1, -1), (1 + ahead, 0.5), (1 + ahead, -0.5), (0.5, 0)]
        z = np.array(plain, dtype=float) @ L.T
        A = back.T @ back
        eq, found = hm.equilibrium(z, A=A, alpha=alpha), oracle.answer(z, A, alpha, max_depth=600)
        assert eq.status == "proved"
        assert list(limit_faults(eq, found)) == []
        assert eq.leaders == (0, 1, 4)
        assert eq.born[2] == eq.settled_at > 3


@pytest.mark.parametrize("height", [1.0, 2.0**-40, 2.0**-60, 2.0**-500])
def test_a_tie_whose_mean_moves_is_not_called_settled(height: float) -> None:
    # Scores ignore the third coordinate: token 4 ties between tokens 0 to 3 for ever, but
    # tokens 2 and 3 sink, so that the mean of the first layer is not the limit.
    z = np.array([(1, 1, 0), (1, -1, 0), (1, 0.5, height), (1, -0.5, height), (0.5, 0, 0)])
    eq = compare(z, np.diag([1.0, 1.0, 0.0]), want=None, gamma=0.5, max_depth=40)
    assert not eq.certificate.proved


# ------------------------------------------------------------------ families


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_the_centres_of_the_faces_of_a_cube_are_points_of_s(d: int) -> None:
    corners = cube(d)
    inner = [
        [s * 0.5 if c == axis else 0.0 for c in range(d)] for axis in range(d) for s in (-1, 1)
    ]
    z = np.array(corners + inner, dtype=float)
    for alpha in (0.3, 0.5, 3.0):
        eq = compare(z, alpha=alpha)
        assert np.array_equal(eq.limit[len(corners) :], 2 * np.array(inner))
        is_corner = [d == 1] * len(inner)
        assert [c >= 0 for c in eq.labels[len(corners) :]] == is_corner


@pytest.mark.parametrize("d", [2, 3])
def test_the_middles_of_the_edges_of_a_cube_are_points_of_s(d: int) -> None:
    corners = np.array(cube(d), dtype=float)
    edges = [(a + b) / 2 for a, b in itertools.combinations(corners, 2) if np.abs(a - b).sum() == 2]
    z = np.concatenate([corners, 0.25 * np.array(edges)])
    eq = compare(z, alpha=0.7)
    assert np.array_equal(eq.limit[len(corners) :], np.array(edges))


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("alpha", [0.25, 1.0, 2.7])
def test_lattices_end_on_corners_edges_and_faces(d: int, alpha: float) -> None:
    z = [x for x in lattice(d) if any(x)]
    eq = compare(z, alpha=alpha)
    corners = [i for i, x in enumerate(z) if 0 not in x]
    assert list(eq.leaders) == corners
    assert eq.limit.tolist() == [[float(v) for v in x] for x in z]


def test_the_origin_of_a_lattice_is_never_called_anything_false() -> None:
    for d in (1, 2, 3):
        compare(lattice(d), want=None, alpha=0.5)


def test_a_token_on_the_bisector_of_two_equal_leaders_ends_in_their_middle() -> None:
    z = np.array([(3, 4), (3, -4), (1, 0), (2, 0)], dtype=float)
    eq = compare(z, alpha=0.5)
    assert eq.limit[2:].tolist() == [[3, 0], [3, 0]]


def test_a_full_step_counts_the_tokens_that_have_landed_on_a_leader() -> None:
    # gamma = 1: the follower of (1, 1) lands on it, so that the tied token,
    # now in the middle, sees (1, 1) twice and moves off.
    z = np.array([(1, 1), (1, -1), (0.5, 0), (0.5, 0.1)], dtype=float)
    eq = compare(z, want=None, gamma=1)
    assert eq.limit[2].tolist() != [1, 0]
    compare(z[:3], want=None, gamma=1)


@settings(max_examples=100)
@given(strategies.grids(max_n=9, max_d=2))
def test_whatever_is_proved_of_full_steps_is_true(z: Any) -> None:
    compare(z, want=None, gamma=1)


def test_duplicated_leaders_weigh_the_middle_and_break_the_tie() -> None:
    z = np.array([(3, 4), (3, -4), (3, 4), (1, 0)], dtype=float)
    eq = compare(z, alpha=0.5)
    assert list(eq.leaders) == [0, 1]
    assert list(eq.labels) == [0, 1, 0, 0]
    even = compare(np.concatenate([z, [[3, -4]]]), alpha=0.5)
    assert even.limit[3].tolist() == [3, 0]


def test_duplicates_of_leaders_are_one_class() -> None:
    z = np.array([(1, 0), (0, 1), (1, 0), (0.4, 0.1), (0, 1), (1, 0)])
    eq = compare(z)
    assert list(eq.leaders) == [0, 1]
    assert list(eq.labels) == [0, 1, 0, 0, 1, 0]
    run = hm.simulate(z, 5)
    assert [x.members for x in run.leaders] == [(0, 2, 5), (1, 4)]


def test_a_tie_of_three_leaders_has_its_mean_as_limit() -> None:
    z = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [F(1, 5), F(1, 5), F(1, 5)]]
    eq = compare(z, alpha=HALF)
    assert eq.limit_exact[3] == [F(1, 3)] * 3
    assert list(eq.labels) == [0, 1, 2, -1]


def test_a_tie_of_three_leaders_with_multiplicities() -> None:
    z = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [F(1, 5), F(1, 5), F(1, 5)], [1, 0, 0]]
    eq = compare(z, alpha=HALF)
    assert list(eq.labels) == [0, 1, 2, 0, 0]


@pytest.mark.parametrize("seed", range(8))
def test_mirrored_clouds_keep_their_mirror(seed: int) -> None:
    half = np.random.default_rng(seed).normal(size=(6, 3))
    z = np.concatenate([half, -half])
    eq = compare(z, alpha=0.5)
    assert np.array_equal(eq.limit[:6], -eq.limit[6:])
    reflected = half * [1, 1, -1]
    both = np.concatenate([half, reflected, half[:3] * [1, 1, 0]])
    eq = compare(both, want=None, alpha=0.5)
    if eq.status == "proved":
        assert np.array_equal(eq.limit[:6] * [1, 1, -1], eq.limit[6:12])
        assert np.all(eq.limit[12:, 2] == 0)


@pytest.mark.parametrize("seed", range(5))
def test_a_zero_token_in_a_mirrored_cloud_is_never_called_anything_false(seed: int) -> None:
    half = np.random.default_rng(seed).integers(-4, 5, size=(4, 2)).astype(float)
    z = np.concatenate([half, -half, [[0.0, 0.0]]])
    eq = compare(z, want=None, alpha=0.5)
    if eq.status == "proved":
        assert eq.limit[-1].tolist() == [0, 0]


def test_a_zero_token_moves_to_the_mean_and_then_follows() -> None:
    eq = compare([(0, 0), (4, 1), (-1, 0)], gamma=0.5)
    assert list(eq.labels) == [0, 0, 1]
    assert eq.limit[0].tolist() == [4, 1]
    assert not eq.assumptions.nonzero
    assert not eq.assumptions.hold


@pytest.mark.parametrize("alpha", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("seed", range(5))
def test_random_lattices_with_random_matrices(seed: int, alpha: float) -> None:
    rng = np.random.default_rng([seed, 7])
    for _ in range(6):
        d = int(rng.integers(1, 4))
        z = rng.integers(-3, 4, size=(int(rng.integers(2, 25)), d)).astype(float)
        M = rng.integers(-2, 3, size=(d, d)).astype(float)
        compare(z, M @ M.T + np.eye(d), want=None, alpha=alpha)


@settings(max_examples=100)
@given(strategies.grids(max_n=9, max_d=3), st.sampled_from([0.25, 0.5, 1.0, 3.0, 0.7]))
def test_whatever_is_proved_of_tied_tokens_is_true(z: Any, alpha: float) -> None:
    compare(z, want=None, alpha=alpha)


@settings(max_examples=60)
@given(strategies.grids(max_n=8, max_d=3), st.sampled_from([F(1), F(1, 2), F(2, 3)]))
def test_whatever_is_proved_of_tied_fractions_is_true(z: Any, gamma: F) -> None:
    rows = [[F(int(x), 3) for x in row] for row in z]
    eq = compare(rows, want=None, gamma=gamma)
    if eq.status == "proved":
        assert eq.limit_exact == oracle.answer(rows, gamma=gamma).limit


@pytest.mark.parametrize("seed", range(20))
def test_points_of_one_circle_all_lead(seed: int) -> None:
    triples = [(3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29)]
    circle = [
        (s * F(a, c), t * F(b, c))
        for p, q, c in triples
        for a, b in ((p, q), (q, p))
        for s in (-1, 1)
        for t in (-1, 1)
    ]
    rng = np.random.default_rng(seed)
    some = [list(circle[i]) for i in rng.choice(len(circle), size=7, replace=False)]
    middle = [
        [(a + b) / 4 for a, b in zip(x, y, strict=True)] for x, y in itertools.combinations(some, 2)
    ]
    eq = compare(some + middle, want=None, gamma=HALF)
    assert set(range(7)) <= set(eq.leaders)


def test_a_token_that_follows_two_moving_tokens_overtakes_them_in_the_end() -> None:
    """The gap to the middle of the edge is far below a double's, and still decided."""
    z = [(1, 1), (1, -1), (1.001, 0.5), (1.001, -0.5), (0.5, 0)]
    eq = hm.equilibrium(z, alpha=2)
    assert (eq.status, eq.leaders, eq.born) == ("proved", (0, 1, 4), (0, 0, 251))
    gap = eq.limit_exact[4][0] - 1
    assert 0 < gap < F(1, 10**100)
    assert eq.certificate.verify(z, arithmetic="rational")
