"""The laws that the library offers as functions: nothing on true layers, else something."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.analysis import laws
from tests import strategies

ROUNDING = 1e-12


@settings(max_examples=25)
@given(st.data())
def test_every_gap_vanishes_on_true_layers(data: st.DataObject) -> None:
    z = data.draw(strategies.clouds(min_n=2, max_n=8))
    d = z.shape[1]
    A, spd = data.draw(strategies.matrices(d)), data.draw(strategies.spd_matrices(d))
    order = data.draw(st.permutations(range(len(z))))
    assert laws.hull_gap(z, hm.layer(z, A=A)) < ROUNDING
    assert laws.growth_gap(z, hm.layer(z, A=spd), A=spd) < ROUNDING
    assert laws.frozen_gap(hm.simulate(z, 10, A=A)) == 0
    assert laws.permutation_gap(z, order, A=A) < ROUNDING


@given(strategies.gaussians(max_n=8), strategies.seeds)
def test_a_change_of_coordinates_leaves_no_gap(z: Any, seed: int) -> None:
    d = z.shape[1]
    L = np.random.default_rng(seed).normal(size=(d, d)) + 2 * np.eye(d)
    assert laws.linear_gap(z, L) < 1e-9
    assert laws.hard_limit_gap(z, 1e-12) < ROUNDING


def test_every_gap_measures_a_violation() -> None:
    z = np.random.default_rng(0).normal(size=(8, 2))
    top = np.abs(z).max()
    after = hm.layer(z)
    assert laws.hull_gap(z, after + 10 * top) == pytest.approx(10, rel=0.5)
    assert laws.growth_gap(z, 0.5 * z) == pytest.approx(0.75)
    run = hm.simulate(z, 5)
    run.zs[4, run.leaders[0].index, 0] += top
    assert laws.frozen_gap(run) == pytest.approx(1)
    assert laws.hard_limit_gap(z, 10.0) > 0.1
    outside = hm.layer([[0, 0], [1, 0], [0, 1]], A=[[0, 1], [1, 0]], gamma=np.diag([0.6, 0.7]))
    assert laws.hull_gap([[0, 0], [1, 0], [0, 1]], outside) == pytest.approx(0.05)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_gaps_are_relative_to_the_size_of_the_tokens(scale: float) -> None:
    z = np.random.default_rng(1).normal(size=(6, 3))
    moved = hm.layer(z) * 1.5
    assert laws.hull_gap(z * scale, moved * scale) == pytest.approx(laws.hull_gap(z, moved))
    assert laws.growth_gap(z * scale, 0.9 * z * scale) == pytest.approx(laws.growth_gap(z, 0.9 * z))


def test_runs_without_all_layers_are_refused() -> None:
    run = hm.simulate([[1.0], [2.0]], 5, save="last")
    with pytest.raises(hm.HardmaxError, match="all layers"):
        laws.frozen_gap(run)
