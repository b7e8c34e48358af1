"""What the pages of the open questions say is proved, on cases and on random systems."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from hardmax import equilibrium, layer
from hardmax.lab.measure import measure_systems
from hardmax.lab.variants import draw_systems, read_variant


@pytest.mark.parametrize("matrix", ["general", "symmetric", "spd+3skew", "indefinite", "low-rank"])
def test_two_leaders_differ_in_a_direction_in_which_the_form_is_positive(matrix: str) -> None:
    systems = draw_systems(read_variant({"matrix": matrix, "d": 3, "n": 20}), 3, range(40))
    pairs = 0
    for z, (A,) in zip(systems.z, systems.A, strict=True):
        eq = equilibrium(z, A=A, alpha=0.5)
        for i, j in combinations(eq.leaders, 2):
            way = eq.limit[i] - eq.limit[j]
            assert way @ A @ way > 0
            pairs += 1
    assert pairs > 30


@pytest.mark.parametrize("matrix", ["skew", "negative"])
def test_at_most_one_leader_where_the_form_is_nowhere_positive(matrix: str) -> None:
    systems = draw_systems(read_variant({"matrix": matrix, "d": 4, "n": 15}), 4, range(40))
    counts = [
        len(equilibrium(z, A=A[0], alpha=0.5).leaders)
        for z, A in zip(systems.z, systems.A, strict=True)
    ]
    assert set(counts) == {1}


def test_three_leaders_with_one_positive_eigenvalue() -> None:
    eq = equilibrium([[-5, 2], [0, 1], [5, 2]], A=[[1, 0], [0, -1]], alpha=0.5)
    assert (eq.leaders, eq.settled_at, eq.status) == ((0, 1, 2), 0, "proved")


def test_rank_one_settles_at_once_on_the_two_extremes() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        z, v = rng.normal(size=(20, 3)), rng.normal(size=3)
        eq = equilibrium(z, A=np.outer(v, v), alpha=0.5)
        assert set(eq.leaders) == {int(np.argmax(z @ v)), int(np.argmin(z @ v))}
        assert eq.settled_at == 0


def test_without_rescaling_hardmax_makes_the_same_choices() -> None:
    one = measure_systems({"matrix": "general", "normalization": "none"}, 2, range(30))
    other = measure_systems({"matrix": "general"}, 2, range(30))
    for a, b in zip(one, other, strict=True):
        assert {k: a[k] for k in ("clusters", "leaders", "layers", "settled_at")} == {
            k: b[k] for k in ("clusters", "leaders", "layers", "settled_at")
        }


@pytest.mark.parametrize("normalization", ["sphere", "layernorm"])
def test_tokens_of_one_length_all_lead_with_the_identity(normalization: str) -> None:
    z = np.random.default_rng(1).normal(size=(25, 4))
    once = layer(z, alpha=0.5, normalization=normalization)
    twice = layer(once, alpha=0.5, normalization=normalization)
    assert np.allclose(once, twice, atol=1e-14)


def test_a_token_alone_in_its_set_in_every_head_stays_for_ever() -> None:
    found = 0
    for seed in range(20):
        settings = read_variant({"matrix": "spd", "heads": 2, "d": 3, "n": 15, "depth": 40})
        systems = draw_systems(settings, seed, [0])
        z, heads = systems.z[0].copy(), systems.A[0]
        best = [(z @ A.T @ z.T).argmax(axis=1) for A in heads]
        alone = np.flatnonzero((best[0] == np.arange(15)) & (best[1] == np.arange(15)))
        found += len(alone)
        for _ in range(40):
            means = [z[(z @ A.T @ z.T).argmax(axis=1)] for A in heads]
            z = z + (sum(means) / 2 - z) / 3
        assert np.array_equal(z[alone], systems.z[0][alone])
    assert found > 20
