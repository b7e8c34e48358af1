"""Where drawn things lie: outlines, rings, views, frames, names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from hardmax._errors import InputError
from hardmax.plot.shapes import (
    View,
    clean,
    drawable,
    faces_of,
    frame,
    outline,
    ring,
    square,
    view_of,
)
from tests.unit.plot.scenes import by_hand, cloud


@pytest.mark.parametrize("seed", range(5))
def test_the_outline_of_a_cloud_is_its_hull_in_order(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(40, 2))
    hull = points[ConvexHull(points).vertices]
    ours = outline(points)
    start = int(np.flatnonzero((hull == ours[0]).all(axis=1))[0])
    assert np.array_equal(ours, np.roll(hull, -start, axis=0))


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), max_size=9))
def test_an_outline_turns_left_at_every_corner(points: list[tuple[int, int]]) -> None:
    corners = outline(np.array(points, dtype=float).reshape(-1, 2))
    if len(corners) > 2:
        ahead, back = np.roll(corners, -1, axis=0) - corners, corners - np.roll(corners, 1, axis=0)
        assert (back[:, 0] * ahead[:, 1] - back[:, 1] * ahead[:, 0] > 0).all()


def test_points_on_a_line_have_two_ends() -> None:
    ends = outline(np.array([[0.0, 0.0], [2.0, 2.0], [1.0, 1.0], [np.nan, 0.0]]))
    assert ends.tolist() == [[0.0, 0.0], [2.0, 2.0]]


@pytest.mark.parametrize("seed", range(4))
def test_a_ring_goes_around_a_face_in_space(seed: int) -> None:
    rng = np.random.default_rng(seed)
    angles = np.arange(7) * 2 * np.pi / 7
    plane = np.linalg.qr(rng.normal(size=(3, 2)))[0]
    corners = np.stack([np.cos(angles), np.sin(angles)], axis=1) @ plane.T + rng.normal(size=3)
    mixed = corners[rng.permutation(7)]
    around = mixed[ring(mixed)]
    sides = np.linalg.norm(around - np.roll(around, 1, axis=0), axis=1)
    assert sides == pytest.approx(np.full(7, 2 * np.sin(np.pi / 7)))


def test_every_edge_of_a_solid_belongs_to_two_faces() -> None:
    scene = cloud(30, 3)
    edges = [
        tuple(sorted((face[i], face[i - 1]))) for face in faces_of(scene) for i in range(len(face))
    ]
    assert len(edges) > 5
    assert all(edges.count(edge) == 2 for edge in edges)


def test_a_flat_polytope_in_space_is_one_face() -> None:
    flat = np.array([[0.0, 0, 1], [1, 1, 1], [1, 0, 1], [0, 1, 1]])
    scene = by_hand(flat[None], vertices=flat, faces=((0, 1), (1, 2)))
    (face,) = faces_of(scene)
    sides = np.linalg.norm(flat[face] - np.roll(flat[face], 1, axis=0), axis=1)
    assert sides.tolist() == [1.0] * 4


def test_a_view_of_more_than_two_coordinates_must_be_chosen() -> None:
    scene = cloud(5, 4, 1)
    with pytest.raises(InputError, match=r"d = 4\. Choose two, as in `axes=\(0, 1\)`"):
        view_of(scene, None)
    with pytest.raises(InputError, match="or draw all three with `draw_trajectories_3d`"):
        view_of(cloud(5, 3, 1), None, solid="draw_trajectories_3d")
    assert view_of(scene, (3, 1)) == View((3, 1))


@pytest.mark.parametrize("axes", [(0, 0), (0, 4), (-1, 2), (0, 1, 2)])
def test_axes_that_are_not_two_coordinates_are_refused(axes: Any) -> None:
    with pytest.raises(InputError, match="two different coordinates from 0 to 3"):
        view_of(cloud(5, 4, 1), axes)


def test_a_view_places_the_chosen_coordinates() -> None:
    points = np.arange(8.0).reshape(2, 4)
    assert View((3, 0)).place(points, 5).tolist() == [[3.0, 0.0], [7.0, 4.0]]
    assert View((1,)).place(points, 5).tolist() == [[5.0, 1.0], [5.0, 5.0]]


@given(st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 2), max_size=5))
def test_a_frame_is_never_empty_and_holds_its_points(points: list[tuple[float, float]]) -> None:
    cloud = np.array(points, dtype=float).reshape(-1, 2)
    low, high = frame(cloud)
    assert (low < high).all()
    assert ((cloud >= low) & (cloud <= high)).all()


def test_a_frame_leaves_out_what_is_not_finite() -> None:
    low, high = frame(np.array([[np.nan, 0.0], [1.0, 2.0], [np.inf, 5.0]]))
    assert low[0] < 1 < high[0] < 2
    assert frame(np.full((3, 2), np.nan))[0].tolist() == [-0.5, -0.5]


def test_a_square_is_as_wide_as_the_longer_side() -> None:
    middle, half = square(np.array([[0.0, 0.0], [4.0, 1.0]]), margin=0.0)
    assert middle.tolist() == [2.0, 0.5]
    assert half == 2.0


def test_what_is_too_far_to_draw_is_left_out() -> None:
    kept = drawable(np.array([1.0, -1e101, np.inf, np.nan, 1e99]))
    assert np.isfinite(kept).tolist() == [True, False, False, False, True]


def test_clean_text_is_short_and_without_control_characters() -> None:
    assert clean("plain") == "plain"
    assert clean("a\x00b\nc\u202ed\ud800") == "a\ufffdb\ufffdc\ufffdd\ufffd"
    assert clean("x" * 100, 10) == "x" * 9 + "…"
