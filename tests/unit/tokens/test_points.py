"""Arrangements: the tokens of the paper, and clouds that a seed decides."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

from hardmax._errors import InputError
from hardmax.tokens.points import SEED, arrangement, is_name, names


def test_emerging_is_the_deterministic_row_of_figure_2_in_rationals() -> None:
    rows = arrangement("emerging", exact=True)
    assert rows[0] == [Fraction(1), Fraction(1, 3)]
    assert rows[1] == [Fraction(-1, 12), Fraction(1, 12)]
    assert rows[7] == [Fraction(3, 5), Fraction(3, 20)]
    assert len(rows) == 8


def test_fixed_tokens_of_floats_and_fractions_agree_to_the_last_bit() -> None:
    for name in ("triangle", "emerging", "square", "edges", "tie-breaks", "tie-leaves"):
        floats = arrangement(name, seed=4)
        exact = arrangement(name, seed=4, exact=True)
        assert [[float(x) for x in row] for row in exact] == floats.tolist()


@pytest.mark.parametrize(
    ("name", "count", "low", "high"),
    [("triangle", 9, -1, 1), ("square", 10, -0.5, 0.5), ("edges", 10, -0.5, 0.5)],
)
def test_random_extra_tokens_lie_in_their_squares(
    name: str, count: int, low: float, high: float
) -> None:
    z = arrangement(name, seed=2)
    fixed = {"triangle": 5, "square": 4, "edges": 6}[name]
    assert z.shape == (count, 2)
    assert (z[fixed:] >= low).all()
    assert (z[fixed:] <= high).all()
    if name == "triangle":
        assert (z[5:7] >= 0).all()
        assert (z[7:] <= 0).all()


def test_no_seed_means_the_documented_seed() -> None:
    assert np.array_equal(arrangement("edges"), arrangement("edges", seed=SEED))
    assert not np.array_equal(arrangement("edges"), arrangement("edges", seed=SEED + 1))


def test_seed_in_the_name_is_the_seed_argument() -> None:
    assert np.array_equal(arrangement("ball:n=7,seed=3"), arrangement("ball:n=7", seed=3))
    assert np.array_equal(arrangement("ball:n=7,seed=3"), arrangement("ball:n=7,seed=3", seed=3))


def test_ball_is_filled_and_sphere_is_a_sphere() -> None:
    sphere = arrangement("sphere:n=400,d=3,radius=2")
    ball = arrangement("ball:n=4000,d=3")
    np.testing.assert_allclose(np.linalg.norm(sphere, axis=1), 2, rtol=1e-14)
    radii = np.linalg.norm(ball, axis=1)
    assert radii.max() <= 1
    assert abs((radii < 0.5).mean() - 1 / 8) < 0.03


def test_clusters_have_k_centres_and_the_stated_spread() -> None:
    z = arrangement("clusters:n=3000,d=2,k=3,spread=0.01,seed=5")
    for k in range(3):
        np.testing.assert_allclose(z[k::3].std(axis=0), 0.01, rtol=0.1)


def test_lattice_is_the_grid_in_exact_thirds() -> None:
    rows = arrangement("lattice:m=4,d=2", exact=True)
    assert len(rows) == 16
    assert {x for row in rows for x in row} == {Fraction(k, 3) for k in (-3, -1, 1, 3)}
    assert arrangement("lattice:m=1,d=3").tolist() == [[0.0, 0.0, 0.0]]


def test_every_listed_name_can_be_drawn() -> None:
    for name in names():
        assert is_name(name)
        assert arrangement(name).shape[1] in (2, 3)


def test_one_token_with_one_coordinate_is_allowed() -> None:
    assert arrangement("gaussian:n=1,d=1").shape == (1, 1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("trianlge", "'trianlge' names no arrangement. Did you mean triangle?"),
        ("xyzzy", "Known are triangle, emerging"),
        ("gaussian:n=0", "`n` must be a whole number >= 1; got '0'"),
        ("gaussian:d=0", "`d` must be a whole number >= 1; got '0'"),
        ("gaussian:n=2.5", "`n` must be a whole number >= 1; got '2.5'"),
        ("gaussian:n=1e3", "`n` must be a whole number >= 1; got '1e3'"),
        ("gaussian:seed=-1", "`seed` must be a whole number >= 0; got '-1'"),
        ("gaussian:n", "expected settings as gaussian:key=value, got 'n'"),
        ("gaussian:m=3", "gaussian has no setting 'm'. It has n, d, seed"),
        ("triangle:n=3", "triangle has no setting 'n'. It has seed"),
        ("gaussian:n=3,n=4", "'n' is given twice"),
        ("ball:radius=-1", "`radius` must be a positive number; got '-1'"),
        ("ball:radius=nan", "`radius` must be a positive number; got 'nan'"),
        ("uniform:low=inf", "`low` must be a finite number; got 'inf'"),
        ("uniform:low=2,high=1", "`low` must be below `high`"),
        ("gaussian:n=1000000000,d=9", "more than 134217728 coordinates"),
        ("lattice:m=10,d=60", "more than 134217728 coordinates"),
    ],
)
def test_wrong_names_and_settings_say_what_is_known(name: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        arrangement(name)


def test_two_different_seeds_are_refused() -> None:
    with pytest.raises(InputError, match="seed=1 in 'ball:seed=1' and seed 2 differ"):
        arrangement("ball:seed=1", seed=2)


def test_seed_argument_must_be_a_whole_number() -> None:
    with pytest.raises(InputError, match="`seed` must be a whole number >= 0; got -3"):
        arrangement("ball", seed=-3)
