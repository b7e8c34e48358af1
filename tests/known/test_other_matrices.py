"""Matrices outside the theorem: whatever is proved there equals the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from tests import oracle, strategies
from tests.known.check_systems import limit_faults

DEPTH = 120


def agree(z: Any, A: Any, alpha: Any) -> Any:
    """The equilibrium; what it proves is compared with the oracle."""
    eq = hm.equilibrium(z, A=A, alpha=alpha, max_depth=DEPTH)
    assert eq.certificate.proved or eq.status != "proved"
    if eq.certificate.proved:
        assert eq.status in ("proved", "collapsed")
        assert (eq.status == "collapsed") <= (len(np.unique(eq.limit, axis=0)) == 1)
        found = oracle.answer(z, A, alpha, max_depth=DEPTH)
        assert list(limit_faults(eq, found)) == []
        assert eq.certificate.verify(z)
    return eq


@pytest.mark.parametrize("kind", strategies.OTHERS)
@pytest.mark.parametrize("shape", [(5, 1), (8, 2), (12, 3), (20, 4)])
def test_what_is_proved_of_gaussian_tokens_is_true(kind: str, shape: tuple[int, int]) -> None:
    for seed in range(3):
        rng = np.random.default_rng([seed, *shape])
        z, A = rng.normal(size=shape), strategies.other_matrix(kind, shape[1], rng)
        agree(z, A, float(rng.uniform(0.1, 3)))


@settings(max_examples=100)
@given(st.data())
def test_what_is_proved_of_integers_is_true(data: st.DataObject) -> None:
    z = data.draw(strategies.grids(max_n=7, max_d=3))
    d = z.shape[1]
    entries = st.lists(st.lists(st.integers(-2, 2), min_size=d, max_size=d), min_size=d, max_size=d)
    A = np.array(data.draw(entries), dtype=float)
    agree(z, A, data.draw(st.sampled_from([0.25, 1.0, 3.0])))


@pytest.mark.parametrize("kind", ["symmetric", "rank one", "general"])
def test_many_systems_outside_the_theorem_are_still_proved(kind: str) -> None:
    proved = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, 11])
        z, A = rng.normal(size=(15, 3)), strategies.other_matrix(kind, 3, rng)
        proved += agree(z, A, 0.5).certificate.proved
    assert proved >= 5


def test_rank_one_sends_each_side_to_its_extreme_token() -> None:
    rng = np.random.default_rng(0)
    z, v = rng.normal(size=(30, 3)), rng.normal(size=3)
    eq = agree(z, np.outer(v, v), 0.5)
    side = z @ v
    assert eq.status == "proved"
    assert set(eq.leaders) == {int(side.argmax()), int(side.argmin())}
    ends = np.where(side > 0, side.argmax(), side.argmin())
    assert np.array_equal(eq.limit, z[ends])
    pair = agree(z, (v[None], v[None]), 0.5)
    assert np.array_equal(pair.limit, eq.limit)


def test_the_zero_matrix_draws_every_token_to_the_mean() -> None:
    z = np.array([[1.0, 0.0], [2.0, 0.0], [6.0, 3.0]])
    eq = agree(z, np.zeros((2, 2)), 0.5)
    assert eq.status in ("proved", "collapsed")
    assert eq.limit.tolist() == [[3, 1]] * 3
    run = hm.simulate(z, 100, A=np.zeros((2, 2)), alpha=0.5)
    assert np.allclose(run.z, [[3, 1]] * 3, rtol=0, atol=1e-12)
    assert run.leaders == ()


def test_a_skew_matrix_gives_no_token_a_score_with_itself() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(12, 2))
        eq = agree(z, np.array([[0.0, 1.0], [-1.0, 0.0]]), 0.5)
        assert eq.status != "settled"
        assert not eq.assumptions.symmetric
        assert not eq.assumptions.hold


@pytest.mark.parametrize(
    ("A", "symmetric", "definite"),
    [
        ([[2.0, 1.0], [1.0, 1.0]], True, True),
        ([[1.0, 1.0], [1.0, 1.0]], True, False),
        ([[1.0, 2.0], [2.0, 1.0]], True, False),
        ([[1.0, 0.5], [0.0, 1.0]], False, None),
        ([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]], True, True),
        ([[1.0, 1.0], [1.0, 1.0 - 2.0**-53]], True, False),
        (None, True, True),
    ],
)
def test_the_assumptions_on_the_matrix_are_decided_exactly(
    A: Any, symmetric: bool, definite: bool | None
) -> None:
    assumptions = hm.equilibrium([[1.0, 0.0], [0.0, 1.0]], A=A).assumptions
    assert assumptions.symmetric == symmetric
    if definite is not None:
        assert assumptions.positive_definite == definite
        assert assumptions.hold == (symmetric and definite)
    assert assumptions.hold or assumptions.message
