"""Colours: one per followed token, the same everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from hardmax.plot.colours import NOBODY, PALETTE, colours, rgb, token_colours
from hardmax.plot.scene import Scene, SceneLeader
from tests.unit.plot.scenes import by_hand, cloud, emerging, square


def test_a_token_has_the_colour_of_the_token_it_follows() -> None:
    scene = emerging()
    tint = colours(scene)
    for row in range(len(scene.layers)):
        for token, shade in enumerate(token_colours(scene, row)):
            followed = int(scene.follows[row, token])
            assert tuple(shade) == rgb(tint[followed])


def test_a_token_between_two_leaders_has_no_leaders_colour() -> None:
    scene = square()
    assert scene.follows[-1, 4] == -1
    assert tuple(token_colours(scene, -1)[4]) == rgb(NOBODY)
    assert NOBODY not in colours(scene).values()


def test_equal_tokens_share_the_colour_of_their_leader() -> None:
    leader = SceneLeader(0, 0, "0", members=(0, 2))
    scene = Scene(np.zeros((1, 3, 2)), (0,), np.array([[2, 1, 2]]), (leader,))
    tint = colours(scene)
    assert tint[2] == tint[0] != tint[1]


def test_a_followed_token_that_never_leads_has_its_own_colour() -> None:
    scene = by_hand(np.zeros((2, 3, 2)), follows=[[1, 2, 2], [2, 2, 2]], leaders=(2,))
    assert colours(scene) == {2: PALETTE[0], 1: PALETTE[1]}


def test_more_leaders_than_colours_begin_again() -> None:
    n = len(PALETTE) + 1
    scene = by_hand(np.zeros((1, n, 2)), follows=[range(n)], leaders=tuple(range(n)))
    tint = colours(scene)
    assert len(set(tint.values())) == len(PALETTE)
    assert tint[0] == tint[n - 1]


def test_the_colours_of_the_palette_differ() -> None:
    parts = np.array([rgb(colour) for colour in (*PALETTE, NOBODY)])
    apart = np.abs(parts[:, None] - parts[None]).max(axis=2) + np.eye(len(parts))
    assert apart.min() > 0.05


@pytest.mark.parametrize("d", [1, 2, 3])
def test_every_leader_has_a_colour(d: int) -> None:
    scene = cloud(40, d)
    assert set(scene.leader_indices.tolist()) <= set(colours(scene))
