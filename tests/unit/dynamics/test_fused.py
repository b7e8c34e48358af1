"""Texts through all layers in one call: the same as layer after layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hardmax as hm
from hardmax.dynamics.fused import pool_ids


def by_layers(E: Any, ids: Any, depth: int, gamma: Any, mask: Any, heads: int) -> np.ndarray:
    """The mean of each text with `hm.layer`, one layer after the other."""
    z = E[ids]
    steps = np.broadcast_to(gamma, depth)
    for k in range(depth):
        z = hm.layer(z, gamma=float(steps[k]), mask=mask, heads=heads)
    w = np.ones(ids.shape) if mask is None else mask.astype(float)
    return np.einsum("bn,bnd->bd", w, z) / w.sum(axis=1)[:, None]


@pytest.mark.parametrize(("d", "heads"), [(1, 1), (2, 1), (3, 1), (8, 4), (16, 1)])
@pytest.mark.parametrize("n", [1, 5, 30, 130])
def test_the_pooled_token_is_that_of_single_layers(d: int, heads: int, n: int) -> None:
    r = np.random.default_rng(n * d)
    E, ids = r.normal(size=(60, d)), r.integers(0, 60, size=(9, n))
    mask = r.random((9, n)) < 0.8
    mask[:, 0] = True
    for gamma, keep in ((0.6, None), (np.array([0.9, 0.1, 0.5]), mask), (1.0, mask)):
        pooled, layers = pool_ids(E, ids, 3, gamma=gamma, mask=keep, heads=heads)
        np.testing.assert_allclose(pooled, by_layers(E, ids, 3, gamma, keep, heads), atol=1e-12)
        assert layers.min() >= 0
        assert layers.max() <= 3


def test_equal_words_weigh_in_the_mean_of_a_tie_and_of_the_text() -> None:
    # the last word ties between the first (three times) and the second (once)
    E = np.array([[1.0, 1.0], [1.0, -1.0], [0.5, 0.0]])
    pooled, layers = pool_ids(E, np.array([[0, 0, 0, 1, 2]]), 1, gamma=1.0)
    assert np.allclose(pooled, [[1.0, (3 - 1 + 0.5) / 5]])
    assert layers.tolist() == [1]


def test_a_settled_text_is_searched_no_more_and_ends_in_closed_form() -> None:
    E = np.array([[1.0, 0.0], [0.0, 1.0], [0.4, 0.2]])
    pooled, layers = pool_ids(E, np.array([[0, 1, 2]]), 50, gamma=0.5)
    assert layers.tolist() == [0]
    assert np.allclose(pooled, [[2 / 3, 1 / 3]], atol=1e-15)


def test_texts_do_not_see_each_other_and_empty_ones_stay_zero() -> None:
    r = np.random.default_rng(1)
    E, ids = r.normal(size=(300, 2)), r.integers(0, 300, size=(200, 40))
    mask = r.random((200, 40)) < 0.5
    mask[7] = False
    together, _ = pool_ids(E, ids, 6, gamma=0.4, mask=mask)
    assert (together[7] == 0).all()
    for t in (0, 6, 8, 199):
        assert np.array_equal(
            together[t], pool_ids(E, ids[t : t + 1], 6, gamma=0.4, mask=mask[t : t + 1])[0][0]
        )


def test_small_integers_with_many_ties_follow_simulate() -> None:
    r = np.random.default_rng(2)
    E = r.integers(-2, 3, size=(20, 2)).astype(float)
    ids = r.integers(0, 20, size=(40, 25))
    pooled, _ = pool_ids(E, ids, 2, gamma=0.5)
    run = hm.simulate(E[ids], 2, gamma=0.5, merge_tol=0.0)
    np.testing.assert_allclose(pooled, run.z.mean(axis=1), atol=1e-13)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": [[0, 9]]}, "from 0 to 2; got 0 to 9"),
        ({"ids": [[-1, 0]]}, "from 0 to 2; got -1 to 0"),
        ({"ids": [[0.0, 1.0]]}, "must be integers; got float64"),
        ({"ids": [0, 1]}, r"got \(3, 2\) and \(2,\)"),
        ({"mask": [[True]]}, r"must match `ids` \(1, 2\); got \(1, 1\)"),
        ({"heads": 3}, "must divide the 2 coordinates; got 3"),
    ],
)
def test_wrong_arguments_are_named(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"ids": [[0, 1]], "gamma": 0.5, **change}
    ids = arguments.pop("ids")
    with pytest.raises(ValueError, match=message):
        pool_ids(np.eye(3)[:, :2], np.array(ids), 1, **arguments)
