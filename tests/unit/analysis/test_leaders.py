"""Leaders: the definition, their births and members, in runs and in limits."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hardmax as hm
from hardmax import Leader
from tests import oracle, strategies


def rows(leaders: Any) -> list[tuple[int, int, tuple[int, ...]]]:
    return [(x.index, x.born, x.members) for x in leaders]


def emerging() -> Any:
    """Figure 2, row 2."""
    return np.array(
        [
            (1, 4 / 12),
            (-1 / 12, 1 / 12),
            (-1, -1),
            (0, 3 / 12),
            (-0.3, -0.7),
            (-0.6, -0.9),
            (0.8, 0.1),
            (0.6, 0.15),
        ]
    )


def test_a_leader_chooses_itself_alone() -> None:
    run = hm.simulate([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 1)
    assert run.leaders == (Leader(0, 0, (0,)), Leader(2, 0, (2,)))


def test_a_token_that_is_followed_need_not_lead() -> None:
    # At layer 0 token 1 is followed by token 2, while it itself follows token 0.
    z = np.array([[3.0, 0.0], [1.0, 1.0], [-0.1, 0.5]])
    run = hm.simulate(z, 1, alpha=0.5)
    assert run.follows[0].tolist() == [0, 0, 1]
    assert [x.index for x in run.leaders] == [0]
    assert run.followers[0] == {0: (0, 1), 1: (2,)}


def test_a_leader_need_not_be_followed_by_anyone_else() -> None:
    run = hm.simulate([[1.0, 0.0], [0.0, 1.0]], 3)
    assert [x.index for x in run.leaders] == [0, 1]
    assert run.followers[0] == {0: (0,), 1: (1,)}


def test_a_token_that_ties_with_itself_does_not_lead() -> None:
    run = hm.simulate([[1.0, 1.0], [1.0, 2.0], [1.0, 0.0]], 1)
    assert [x.index for x in run.leaders] == [1]
    assert run.follows[0].tolist() == [1, 1, -1]


def test_a_birth_is_logged_once_with_its_layer() -> None:
    run = hm.simulate(emerging(), 40, alpha=0.5)
    assert rows(run.leaders) == [(0, 0, (0,)), (1, 1, (1,)), (2, 0, (2,))]
    assert hm.simulate(emerging(), 1, alpha=0.5).leaders == tuple(
        x for x in run.leaders if x.born == 0
    )


def test_members_are_the_tokens_equal_to_it_at_birth() -> None:
    run = hm.simulate([[0.2, 0.1], [3, 4], [1, 0], [3, 4], [3, 4]], 30)
    assert rows(run.leaders) == [(1, 0, (1, 3, 4))]
    assert run.labels.tolist() == [0] * 5


def test_tokens_may_become_equal_and_then_lead_together() -> None:
    # A = -1, gamma = 1/2: both step into the middle and lead there as one.
    run = hm.simulate([[3.0], [-1.0]], 4, A=[[-1.0]], gamma=0.5)
    assert rows(run.leaders) == [(0, 1, (0, 1))]


@pytest.mark.parametrize("depth", [0, 1, 2, 5, 60])
def test_births_happen_before_the_last_layer(depth: int) -> None:
    run = hm.simulate(emerging(), depth, alpha=0.5)
    assert all(0 <= x.born < depth for x in run.leaders)
    assert len(run.leaders) == {0: 0, 1: 2}.get(depth, 3)


@given(strategies.grids(max_n=10), st.sampled_from([F(1, 2), F(1, 4), F(3, 4)]))
def test_leaders_of_runs_equal_the_oracle_on_dyadic_data(z: Any, gamma: F) -> None:
    # Dyadic tokens and steps without ties of three: floats make no error in a few layers.
    found = oracle.answer(z, gamma=gamma, max_depth=6)
    if any(len(js) & (len(js) - 1) for sets in found.sets for js in sets):
        return
    run = hm.simulate(z, 6, gamma=gamma, tie_tol=0, merge_tol=0)
    assert tuple(rows(run.leaders)) == found.found_by(6)


@given(strategies.gaussians(min_n=2, max_n=20), strategies.alphas)
def test_leaders_of_runs_and_limits_agree(z: Any, alpha: float) -> None:
    eq = hm.equilibrium(z, alpha=alpha)
    if eq.certificate.margin < 1e-9:
        return
    run = hm.simulate(z, eq.settled_at + 1, alpha=alpha)
    assert [(x.index, x.born) for x in run.leaders] == list(zip(eq.leaders, eq.born, strict=True))
    assert run.status == "settled"
    assert np.array_equal(run.labels, eq.labels)


@given(st.data())
def test_choices_of_runs_equal_the_oracle(data: st.DataObject) -> None:
    z = data.draw(strategies.gaussians(max_n=12))
    A = data.draw(strategies.matrices(z.shape[1]))
    states = oracle.layers_of(z, A, 0.7)
    run = hm.simulate(z, 6, A=A, alpha=0.7, merge_tol=0)
    for follows, state in zip(run.follows, states, strict=False):
        if min(state.margins) < 1e-9:
            return
        home = oracle.classes(state.top)
        alone = [js[0] if len({home[j] for j in js}) == 1 else -1 for js in state.sets]
        assert follows.tolist() == alone


def test_precisions_give_the_same_leaders_where_margins_are_clear() -> None:
    compared = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(40, int(rng.integers(1, 6)))).astype(np.float32)
        if min(oracle.answer(z, alpha=0.5).margins) < 5e-5:
            continue
        compared += 1
        deep = [hm.simulate(x, k, alpha=0.5) for x in (z, z.astype(float)) for k in (20, 200)]
        assert all(run.leaders == deep[0].leaders for run in deep)
    assert compared >= 4
