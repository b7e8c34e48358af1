"""Selection with scores of each sequence's own, and with a causal mask."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from hardmax.select import select
from hardmax.select.rows import select_rows


def cloud(seed: int, sizes: tuple[int, ...], d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(sum(sizes), d))
    z[1] = z[0]
    return z, np.concatenate([[0], np.cumsum(sizes)])


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("tie_tol", [0.0, 1e-12, 0.05])
def test_one_matrix_for_all_gives_the_answer_of_select(d: int, tie_tol: float) -> None:
    z, offsets = cloud(d, (7, 1, 12), d)
    A = np.random.default_rng(9).normal(size=(d, d))
    one = select_rows(z, A[None], offsets, tie_tol=tie_tol)
    other = select(z, A, offsets, tie_tol=tie_tol)
    assert np.array_equal(one.indptr, other.indptr)
    assert np.array_equal(one.indices, other.indices)
    assert np.allclose(one.margin, other.margin, rtol=1e-10)


def test_each_sequence_is_scored_with_its_own_matrix() -> None:
    z, offsets = cloud(1, (6, 9), 3)
    A = np.random.default_rng(2).normal(size=(2, 3, 3))
    both = select_rows(z, A, offsets)
    for s, (a, b) in enumerate(pairwise(offsets)):
        alone = select(z[a:b], A[s])
        rows = both.take(np.arange(a, b))
        assert np.array_equal(rows.indices, alone.indices + a)


def test_a_causal_token_chooses_among_those_before_it_and_itself() -> None:
    z, offsets = cloud(4, (8, 5), 2)
    A = np.random.default_rng(5).normal(size=(2, 2, 2))
    found = select_rows(z, A, offsets, causal=True)
    for s, (a, b) in enumerate(pairwise(offsets)):
        for i in range(a, b):
            scores = z[a : i + 1] @ (A[s] @ z[i])
            best = np.flatnonzero(scores == scores.max()) + a
            assert np.array_equal(found.row(i), best)
    assert found.row(0).tolist() == [0]
    assert found.margin[0] == np.inf
