"""Figure 2 of the paper: the deterministic row exactly, the row of two extra clusters."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

import hardmax as hm
from tests import oracle

HALF = F(1, 2)
ROW_2 = [
    [F(1), F(4, 12)],
    [F(-1, 12), F(1, 12)],
    [F(-1), F(-1)],
    [F(0), F(3, 12)],
    [F(-3, 10), F(-7, 10)],
    [F(-6, 10), F(-9, 10)],
    [F(8, 10), F(1, 10)],
    [F(6, 10), F(15, 100)],
]
LIMITS = [[F(1), F(1, 3)], [F(-1, 18), F(5, 36)], [F(-1), F(-1)]]
CORNERS = [[1, 1], [1, -1], [-1, 1], [-1, -1]]


def row_4(seed: int) -> Any:
    extra = np.random.default_rng(seed).uniform(-0.5, 0.5, size=(4, 2))
    return np.concatenate([np.array([*CORNERS, [-0.5, 0.0], [0.5, 0.0]], dtype=float), extra])


def test_the_limits_are_exact_when_the_tokens_are_fractions() -> None:
    eq = hm.equilibrium(ROW_2, alpha=HALF)
    assert eq.status == "proved"
    assert eq.leaders == (0, 1, 2)
    assert eq.born == (0, 1, 0)
    assert list(eq.labels) == [0, 1, 2, 0, 2, 2, 0, 0]
    assert eq.settled_at == 1
    assert eq.limit_exact == [LIMITS[c] for c in (0, 1, 2, 0, 2, 2, 0, 0)]
    assert all(isinstance(x, F) for row in eq.limit_exact for x in row)
    assert eq.certificate.verify(ROW_2)


def test_the_limits_as_floats_are_the_nearest_ones() -> None:
    eq = hm.equilibrium(ROW_2, alpha=HALF)
    assert eq.limit.tolist() == [[float(x) for x in row] for row in eq.limit_exact]


@pytest.mark.parametrize("exact", [False, True])
def test_double_tokens_give_the_same_leaders_and_nearby_limits(exact: bool) -> None:
    z = np.array(ROW_2, dtype=float)
    eq = hm.equilibrium(z, alpha=0.5, exact=exact)
    assert eq.status == "proved"
    assert eq.leaders == (0, 1, 2)
    assert eq.born == (0, 1, 0)
    assert np.allclose(eq.limit[[0, 1, 2]], np.array(LIMITS, dtype=float), rtol=0, atol=1e-15)
    if exact:
        assert eq.limit_exact == oracle.answer(z, alpha=0.5).limit


def test_a_third_leader_is_born_after_one_layer() -> None:
    for z in (ROW_2, np.array(ROW_2, dtype=float), np.array(ROW_2, dtype=np.float32)):
        run = hm.simulate(z, 30, alpha=0.5)
        assert [(x.index, x.born, x.members) for x in run.leaders] == [
            (0, 0, (0,)),
            (1, 1, (1,)),
            (2, 0, (2,)),
        ]
        assert run.status == "settled"


def test_the_polytope_is_the_triangle_of_the_leaders() -> None:
    eq = hm.equilibrium(ROW_2, alpha=HALF)
    got = sorted(map(tuple, np.asarray(eq.polytope.vertices).tolist()))
    assert np.allclose(got, sorted((float(a), float(b)) for a, b in LIMITS), rtol=0, atol=1e-15)
    assert eq.polytope.dim == 2


@pytest.mark.parametrize("seed", range(6))
def test_two_clusters_end_on_edges_as_points_of_s_that_are_no_leaders(seed: int) -> None:
    z = row_4(seed)
    eq = hm.equilibrium(z, alpha=0.5)
    found = oracle.answer(z, alpha=0.5)
    assert eq.status == "proved"
    assert eq.leaders == (0, 1, 2, 3)
    assert list(eq.labels[4:6]) == [-1, -1]
    assert eq.limit[4:6].tolist() == [[-1, 0], [1, 0]]
    assert list(eq.labels) == list(found.labels or ())
    assert np.array_equal(eq.limit, np.array(found.limit, dtype=float))
    points = {tuple(row) for row in np.asarray(eq.points).tolist()}
    assert {(-1.0, 0.0), (1.0, 0.0)} <= points
    assert points == {tuple(row) for row in eq.limit.tolist()}
    assert len(eq.polytope.vertices) == 4
    assert eq.certificate.verify(z)


def test_the_two_clusters_are_exact_in_fractions() -> None:
    z = [[F(a), F(b)] for a, b in CORNERS] + [[-HALF, F(0)], [HALF, F(0)]]
    eq = hm.equilibrium(z, alpha=HALF)
    assert eq.status == "proved"
    assert eq.limit_exact[4:] == [[F(-1), F(0)], [F(1), F(0)]]
    assert list(eq.labels) == [0, 1, 2, 3, -1, -1]


def test_the_simulation_of_row_4_ends_on_the_edges_too() -> None:
    run = hm.simulate(row_4(0), 60, alpha=0.5)
    assert np.allclose(run.z[4:6], [[-1, 0], [1, 0]], rtol=0, atol=1e-9)
    assert [x.index for x in run.leaders] == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("row", [1, 3])
def test_the_other_rows_end_on_their_polygon(row: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    if row == 1:
        fixed = [[1, 1], [0.5, -0.5], [-1, -1], [0.3, -0.2], [0.1, -0.2]]
        z = np.concatenate([fixed, rng.uniform(0, 1, (2, 2)), rng.uniform(-1, 0, (2, 2))])
        hull = {0, 1, 2}
    else:
        z = np.concatenate([CORNERS, rng.uniform(-0.5, 0.5, (6, 2))])
        hull = {0, 1, 2, 3}
    eq = hm.equilibrium(z, alpha=0.5)
    assert eq.status == "proved"
    assert hull <= set(eq.leaders)
    assert np.array_equal(eq.limit, z[list(eq.leaders)][eq.labels]) or eq.settled_at > 0
    assert eq.leaders == oracle.answer(z, alpha=0.5).leaders
