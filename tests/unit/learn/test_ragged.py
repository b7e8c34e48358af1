"""Selection for many short sequences equals the one selection of the library."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardmax.select import select
from hardmax.select.ragged import select_ragged


def cloud(rng, n, d, kind):
    z = rng.standard_normal((n, d))
    if kind == "lattice":
        z = np.round(2 * z)
    if kind == "circle":
        z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-9)
    if kind == "line":
        z[:, 1:] = 0
    if kind == "copies":
        z = z[rng.integers(0, max(n // 4, 1), n)]
    return z


@pytest.mark.parametrize("kind", ["gauss", "lattice", "circle", "line", "copies"])
@given(seed=st.integers(0, 2**32), d=st.integers(1, 5), tol=st.sampled_from([0.0, 1e-12, 1e-3]))
def test_the_sets_are_those_of_select(kind, seed, d, tol):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 90, 4)
    z = np.concatenate([cloud(rng, n, d, kind) for n in sizes])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    ours, theirs = select_ragged(z, offsets, tie_tol=tol), select(z, None, offsets, tie_tol=tol)
    assert np.array_equal(ours.indptr, theirs.indptr)
    assert np.array_equal(ours.indices, theirs.indices)


@given(seed=st.integers(0, 2**32), d=st.integers(1, 3))
def test_hidden_keys_are_never_chosen_and_the_rest_compete_alone(seed, d):
    rng = np.random.default_rng(seed)
    z, hidden = rng.standard_normal((70, d)), rng.random(70) < 0.5
    hidden[0] = False
    chosen = select_ragged(z, np.array([0, 70]), hidden=hidden)
    scores = np.where(hidden[None], -np.inf, z @ z.T)
    assert np.array_equal(chosen.indices, scores.argmax(axis=1))
