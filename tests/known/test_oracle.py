"""The oracle itself: cases worked by hand, and its two versions against each other."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle, strategies

HALF = F(1, 2)


def test_chosen_holds_every_maximiser_and_counts_duplicates() -> None:
    z = oracle.fractions([[2, 0], [1, 0], [2, 0], [0, 0], [2, 1]])
    eye = oracle.matrix(None, 2)
    assert oracle.chosen(z, eye) == [
        (0, 2, 4),
        (0, 2, 4),
        (0, 2, 4),
        (0, 1, 2, 3, 4),
        (4,),
    ]
    assert oracle.layer(z, eye, HALF)[1] == [F(3, 2), F(1, 6)]


def test_row_asks_and_column_answers() -> None:
    shift = oracle.fractions([[0, 1], [0, 0]])  # A e2 = e1, A e1 = 0
    assert oracle.chosen(oracle.fractions([[1, 0], [0, 1]]), shift) == [(0, 1), (0,)]


def test_a_pair_means_the_product_of_its_transposed_first_and_second() -> None:
    U, V = np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]])
    assert oracle.matrix((U, V), 2) == oracle.fractions(U.T @ V)


def test_gamma_is_alpha_over_one_plus_alpha_without_rounding() -> None:
    assert oracle.step_size(0.1) == F(0.1) / (1 + F(0.1))
    assert oracle.step_size(HALF) == F(1, 3)
    assert oracle.step_size(gamma=0.7) == F(0.7)


def test_a_chain_of_births_by_hand() -> None:
    found = oracle.answer([[1], [3], [-1]], gamma=HALF)
    assert found.leaders == (1, 2)
    assert found.born == (0, 0)
    assert found.settled_at == 0
    assert found.limit == [[3], [3], [-1]]


def test_members_of_a_leader_are_the_equal_tokens() -> None:
    found = oracle.answer([[1], [3], [-1], [3]], gamma=HALF)
    assert found.leaders == (1, 2)
    assert found.members == ((1, 3), (2,))
    assert found.labels == (0, 0, 1, 0)


def test_tied_followers_of_unequal_leaders_fall_apart() -> None:
    found = oracle.answer([(1, 3), (1, -1), (HALF, 0)], gamma=HALF)
    assert found.sets[0][2] == (0, 1)
    assert found.sets[1][2] == (0,)
    assert found.limit[2] == [1, 3]


def test_a_tie_with_equal_products_can_still_leave() -> None:
    found = oracle.answer(
        [(1, 2, 0), (1, -2, 0), (F(3, 2), 0, -1), (F(1, 10), 0, F(1, 10))], alpha=HALF
    )
    assert found.sets[0][3] == (0, 1)
    assert found.sets[1][3] == (2,)
    assert found.labels == (0, 1, 2, 2)


def test_the_middle_of_an_edge_is_a_limit_and_no_leader() -> None:
    square = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    found = oracle.answer([*square, (-HALF, 0), (HALF, 0)], alpha=HALF)
    assert found.rule == "ties"
    assert found.limit[4:] == [[-1, 0], [1, 0]]
    assert found.labels == (0, 1, 2, 3, -1, -1)


def test_a_zero_token_in_a_mirrored_cloud_rests() -> None:
    found = oracle.answer([(1, 2), (-1, -2), (0, 0), (F(1, 3), 1), (-F(1, 3), -1)], alpha=HALF)
    assert found.rule == "lines"
    assert found.limit[2] == [0, 0]
    assert found.labels == (0, 1, -1, 0, 1)


def test_the_zero_matrix_draws_everything_to_the_mean() -> None:
    found = oracle.answer([(1, 0), (2, 0), (6, 3)], A=np.zeros((2, 2)), alpha=HALF)
    assert found.limit == [[3, 1]] * 3
    assert found.leaders == ()


def test_opposite_tokens_swap_for_ever_and_are_left_undecided() -> None:
    found = oracle.answer([[1], [-1]], A=[[-1]], gamma=1, max_depth=9)
    assert not found.settled
    assert found.layers == 9


def test_a_wrong_limit_is_caught_by_watching_further_layers() -> None:
    state = oracle.State.of([[1], [3], [-1]], gamma=HALF)
    with pytest.raises(AssertionError, match="does not shrink"):
        oracle.confirm(state, oracle.fractions([[2], [3], [-1]]), 2)


def test_a_layer_that_is_not_settled_is_caught_by_watching_further_layers() -> None:
    z = [(1, 3), (1, -1), (HALF, 0)]
    state = oracle.State.of(z, gamma=HALF)
    with pytest.raises(AssertionError, match=r"does not shrink|changed its choices"):
        oracle.confirm(state, oracle.fractions([(1, 3), (1, -1), (1, 1)]), 2)


@given(st.data())
def test_integers_and_fractions_give_the_same_layers(data: st.DataObject) -> None:
    z = data.draw(strategies.clouds())
    A = data.draw(strategies.matrices(z.shape[1]))
    alpha = data.draw(st.sampled_from([0.25, 1.0, 0.7, 3.0]))
    plain = oracle.trajectory(z, 3, A, alpha)
    B = oracle.matrix(A, z.shape[1])
    for layer, state in zip(plain, oracle.layers_of(z, A, alpha), strict=False):
        assert state.z == layer
        assert state.sets == oracle.chosen(layer, B)


@settings(max_examples=15)
@given(strategies.seeds, st.integers(1, 9))
def test_integers_and_fractions_agree_on_tight_clusters(seed: int, digits: int) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(3, 2))[rng.integers(3, size=12)] + 10.0**-digits * rng.normal(size=(12, 2))
    for scale in (1.0, 1e-300, 1e300):
        state = oracle.State.of(z * scale)
        assert state.sets == oracle.chosen(state.z, oracle.matrix(None, 2))


def test_margins_are_differences_of_scores_relative_to_their_size() -> None:
    state = oracle.State.of([[4, 0], [2, 1], [0, 0]])
    assert state.margins[0] == pytest.approx((16 - 8) / (4 * 4))
    assert state.margins[1] == pytest.approx((8 - 5) / (5**0.5 * 4))
    assert state.margins[2] == float("inf")
