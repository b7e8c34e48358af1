"""Convex hulls: cases worked by hand, laws, and independent ways to the same answer."""

from __future__ import annotations

import doctest
import itertools
import json
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial import QhullError

from hardmax._errors import InputError, ShapeError
from hardmax.analysis import _exact_body, _exact_linear, _hull_float, polytope
from hardmax.analysis.polytope import Polytope

CUBE = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
CUBE_FACES = (
    (0, 1, 2, 3),
    (0, 1, 4, 5),
    (0, 2, 4, 6),
    (1, 3, 5, 7),
    (2, 3, 6, 7),
    (4, 5, 6, 7),
)
TINY = Fraction(1, 10**40)


def fractions(points: Any, denominator: int = 1) -> list[list[Fraction]]:
    """Integer rows over one denominator."""
    return [[Fraction(int(value), denominator) for value in row] for row in points]


def rotation(d: int, seed: int = 0) -> Any:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def cross(d: int) -> Any:
    """The 2d points +e_1, ..., +e_d, -e_1, ..., -e_d."""
    return np.vstack([np.eye(d), -np.eye(d)])


def in_hull_by_lp(hull: Any, x: Any) -> bool:
    """Membership by linear programming, for data where rounding decides nothing."""
    rows = np.vstack([hull.T, np.ones(len(hull))])
    found = linprog(np.zeros(len(hull)), A_eq=rows, b_eq=np.append(x, 1.0), bounds=(0, None))
    return bool(found.status == 0)


def facets_by_force(points: list[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Facets of points that span R^d: every plane through d of them, in integers."""
    d = len(points[0])
    found = set()
    for chosen in itertools.combinations(points, d):
        normals = _exact_linear.nullspace([[*p, 1] for p in chosen], d + 1)
        if len(normals) != 1:
            continue
        heights = [_exact_linear.dot(normals[0], [*p, 1]) for p in points]
        if min(heights) == 0 or max(heights) == 0:
            found.add(tuple(i for i, height in enumerate(heights) if height == 0))
    return found


@st.composite
def lattice(draw: st.DrawFn, most: int = 12) -> Any:
    """Small integer points of R^d, often flat, collinear or repeated."""
    d = draw(st.integers(1, 4))
    r = draw(st.integers(0, d))
    m = draw(st.integers(1, most))
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    z = rng.integers(-2, 3, size=(m, d))
    if r < d:
        z = rng.integers(-2, 3, size=(m, r)) @ rng.integers(-2, 3, size=(r, d))
    return z + rng.integers(-3, 4, size=d)


# ------------------------------------------------------------------ worked by hand


@pytest.mark.parametrize("points", [CUBE, fractions(CUBE)], ids=["float", "exact"])
def test_cube_has_six_square_faces(points: Any) -> None:
    cube = Polytope.of(points)
    assert cube.dim == 3
    assert cube.vertex_indices.tolist() == list(range(8))
    assert cube.faces == CUBE_FACES


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("d", [2, 3, 4, 5, 6])
def test_faces_of_a_simplex_leave_out_one_vertex_each(d: int, exact: bool) -> None:
    points = np.vstack([np.zeros(d), np.eye(d), np.full(d, 0.125)])
    body = Polytope.of([list(map(Fraction, row)) for row in points] if exact else points)
    assert sorted(body.vertex_indices) == list(range(d + 1))
    expected = {frozenset(range(d + 1)) - {k} for k in range(d + 1)}
    assert set(map(frozenset, body.faces)) == expected
    assert len(body.faces) == d + 1


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("d", [3, 4, 6])
def test_faces_of_a_cross_polytope_take_one_end_of_each_axis(d: int, exact: bool) -> None:
    body = Polytope.of(fractions(cross(d)) if exact else cross(d))
    expected = {
        frozenset(i + d * s for i, s in enumerate(signs))
        for signs in itertools.product([0, 1], repeat=d)
    }
    assert set(map(frozenset, body.faces)) == expected
    assert len(body.faces) == 2**d


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_square_in_five_dimensions_has_four_edges_around(offset: float) -> None:
    flat = np.array([[0, 0], [0.5, 0.5], [1, 1], [1, 0], [0.5, 0], [0, 1.0]])
    z = flat @ rotation(5)[:2] + offset
    square = Polytope.of(z)
    assert square.dim == 2
    assert square.vertex_indices.tolist() in ([0, 3, 2, 5], [0, 5, 2, 3])
    assert square.faces == ((0, 1), (0, 3), (1, 2), (2, 3))
    assert np.all(square.contains(z))
    assert square.on_boundary(z).tolist() == [True, False, True, True, True, True]
    beyond = offset + np.array([[0.5, 1.001], [-0.001, 0.5]]) @ rotation(5)[:2]
    beside = offset + (flat[1:2] @ rotation(5)[:2]) + 1e-3 * rotation(5)[2]
    assert not np.any(square.contains(np.vstack([beyond, beside])))


@pytest.mark.parametrize("exact", [False, True])
def test_a_point_repeated_is_a_point(exact: bool) -> None:
    given_points = [[3, -1]] * 4
    body = Polytope.of(fractions(given_points) if exact else np.array(given_points, float))
    assert (body.dim, body.faces, body.points.tolist()) == (0, (), [[3.0, -1.0]])
    assert body.vertex_indices.tolist() == [0]
    assert body.contains([3, -1])
    assert body.on_boundary([3, -1])
    assert not body.contains([3, -1.001])
    assert not body.on_boundary([3.001, -1])


@pytest.mark.parametrize("exact", [False, True])
def test_a_segment_has_two_ends_and_an_inside(exact: bool) -> None:
    z = [[1, 2, 3], [3, 2, 1], [2, 2, 2], [3, 2, 1], [0, 2, 4]]
    body = Polytope.of(fractions(z) if exact else np.array(z, float))
    assert (body.dim, body.faces) == (1, ((0,), (1,)))
    assert body.vertex_indices.tolist() == [1, 4]
    assert body.contains(z).tolist() == [True] * 5
    assert body.on_boundary(z).tolist() == [False, True, False, True, True]
    assert body.contains([[4, 2, 0], [2, 2, 2.01]]).tolist() == [False, False]


def test_numbers_on_a_line_have_their_extremes_as_vertices() -> None:
    body = Polytope.of([[0.5], [-2.0], [7.0], [7.0], [1.0]])
    assert body.vertices.tolist() == [[-2.0], [7.0]]
    assert body.contains([[-2.1], [-2.0], [0.0], [7.0], [7.1]]).tolist() == [
        False,
        True,
        True,
        True,
        False,
    ]


def test_lattice_of_27_points_has_8_vertices_6_faces_and_one_inner_point() -> None:
    z = fractions(itertools.product([-1, 0, 1], repeat=3))
    body = Polytope.of(z)
    assert body.exact
    assert body.vertex_indices.tolist() == [0, 2, 6, 8, 18, 20, 24, 26]
    assert body.vertices_exact == [z[i] for i in body.vertex_indices]
    assert body.faces == CUBE_FACES
    assert np.all(body.contains(z))
    assert np.flatnonzero(~body.on_boundary(z)).tolist() == [13]


def test_thirds_on_a_line_are_collinear_in_rationals() -> None:
    z = [[Fraction(k, 3), Fraction(2 * k, 7), Fraction(-k, 11)] for k in (2, 5, 3, -1)]
    body = Polytope.of(z)
    assert body.dim == 1
    assert body.vertices_exact == [z[1], z[3]]
    assert body.contains(z).tolist() == [True] * 4
    assert not body.contains([Fraction(2, 3) + TINY, Fraction(4, 7), Fraction(-2, 11)])


def test_exact_membership_tells_points_apart_that_floats_cannot() -> None:
    square = Polytope.of(fractions([[0, 0], [1, 0], [1, 1], [0, 1]], 3))
    third = Fraction(1, 3)
    x = [[third, third / 2], [third + TINY, third / 2], [third - TINY, third / 2]]
    assert square.contains(x).tolist() == [True, False, True]
    assert square.on_boundary(x).tolist() == [True, False, False]
    assert square.contains(x, tol=1e-9).tolist() == [True, True, True]
    assert square.on_boundary(x, tol=1e-9).tolist() == [True, True, True]


def test_an_exact_polytope_accepts_floats_that_miss_it_by_their_rounding_alone() -> None:
    corners = fractions([[0, 0], [1, 0], [1, 1], [0, 1]], 3)
    square = Polytope.of(corners)
    up = np.nextafter(1 / 3, 1)  # 1/3 in a double is below a third
    assert square.contains(np.array(corners, dtype=float)).all()
    assert square.contains([[up, 0.2], [0.2, -1e-17]]).all()
    assert square.on_boundary([[1 / 3, 0.2], [up, 1 / 3]]).all()
    assert not square.contains([up, 0.2], tol=0)
    assert not square.contains([Fraction(up), Fraction(1, 5)])
    assert not square.contains([1 / 3 + 1e-12, 0.2])
    mixed = [[Fraction(up), 0], [up, 0]]
    assert square.contains(mixed).tolist() == [False, True]
    assert square.contains(np.array(mixed, dtype=object)).tolist() == [False, True]


def test_integers_that_no_double_holds_are_decided_exactly() -> None:
    big = 2**53
    body = Polytope.of([[Fraction(0)], [Fraction(big)]])
    assert body.contains([big])
    assert not body.contains([big + 1])
    assert not body.contains(np.array([big + 1]))
    assert body.contains(torch.tensor([float(big)]))


@pytest.mark.parametrize("d", [3, 5])
def test_exact_membership_on_a_face_of_a_cross_polytope(d: int) -> None:
    body = Polytope.of(fractions(cross(d)))
    middle = [Fraction(1, d)] * d
    outside, inside = list(middle), list(middle)
    outside[0] += TINY
    inside[0] -= TINY
    rows = [middle, outside, inside]
    assert body.contains(rows).tolist() == [True, False, True]
    assert body.on_boundary(rows).tolist() == [True, False, False]


def test_middles_of_edges_belong_to_the_boundary_though_no_vertices() -> None:
    z = fractions([[1, 1], [1, -1], [-1, 1], [-1, -1], [1, 0], [-1, 0]])
    square = Polytope.of(z, known_vertices=[0, 1, 2, 3])
    assert sorted(square.vertex_indices.tolist()) == [0, 1, 2, 3]
    assert square.on_boundary(z).tolist() == [True] * 6
    assert len(square.points) == 6


# ------------------------------------------------------------------ order, orientation


def test_polygon_runs_counter_clockwise_from_its_smallest_index() -> None:
    z = np.array([[2, 0], [0, 1], [0, -1], [-2, 0], [0, 0.0]])
    for points in (z, fractions(z)):
        assert Polytope.of(points).vertex_indices.tolist() == [0, 1, 3, 2]


def test_polygon_in_space_is_counter_clockwise_in_its_first_coordinates_with_area() -> None:
    # x = 0, so the second and third coordinate decide.
    ring = [[0, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]]
    for order in itertools.permutations(range(4)):
        z = [ring[i] for i in order]
        for points in (np.array(z, float), fractions(z)):
            found = [z[i] for i in Polytope.of(points).vertex_indices]
            start = ring.index(found[0])
            assert found == ring[start:] + ring[:start]


def test_distinct_points_keep_their_order_and_vertices_the_smallest_index() -> None:
    z = np.array([[0.0, 0], [1, 0], [-0.0, 0], [1, 0], [0, 1], [0, 1]])
    body = Polytope.of(z)
    assert body.points.tolist() == [[0, 0], [1, 0], [0, 1]]
    assert body.vertex_indices.tolist() == [0, 1, 4]


# ------------------------------------------------------------------ tolerance and size


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1.0, 1e200, 1e308])
def test_size_does_not_matter(scale: float) -> None:
    z = (np.vstack([CUBE, [[0.5, 0.5, 0.5], [0.5, 0.5, 1.0]]]) - 0.5) * scale
    body = Polytope.of(z)
    assert body.dim == 3
    assert body.faces == CUBE_FACES
    assert np.all(body.contains(z))
    assert body.on_boundary(z).tolist() == [True] * 8 + [False, True]
    assert not body.contains([0.0, 0.0, 0.501 * scale])


def test_small_cloud_far_from_the_origin_keeps_its_shape() -> None:
    steps = [0.0, 0.05, 0.1]
    z = 1e6 + np.array(list(itertools.product(steps, repeat=3))) @ rotation(3)
    body = Polytope.of(z)
    assert body.vertex_indices.tolist() == [0, 2, 6, 8, 18, 20, 24, 26]
    assert body.faces == CUBE_FACES
    assert np.all(body.contains(z))
    assert np.flatnonzero(~body.on_boundary(z)).tolist() == [13]


def test_far_away_points_are_outside_without_warnings() -> None:
    body = Polytope.of(CUBE * 1e-200)
    assert body.contains([[1e300, 0, 0], [0, -1e308, 0]]).tolist() == [False, False]


def test_near_duplicates_count_once_under_their_smallest_index() -> None:
    rng = np.random.default_rng(3)
    corners = np.array([[0, 0], [4, 0], [4, 3], [0, 3.0]])
    z = np.vstack([corners + 1e-13 * rng.normal(size=(4, 2)) for _ in range(5)])
    body = Polytope.of(z)
    assert sorted(body.vertex_indices.tolist()) == [0, 1, 2, 3]
    assert np.all(body.contains(z))
    known = Polytope.of(z, known_vertices=[17])
    assert sorted(known.vertex_indices.tolist()) == [0, 2, 3, 17]


def test_a_set_thinner_than_the_tolerance_is_flat_and_a_thicker_one_is_not() -> None:
    base = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.5, 0.5, 0]])
    for height, dim in ((1e-12, 2), (1e-6, 3)):
        z = base + np.array([0, 0, 0, 0, height])[:, None] * [0, 0, 1]
        assert Polytope.of(z).dim == dim
        assert Polytope.of(z, tol=1e-3).dim == 2
        assert Polytope.of([[Fraction(v) for v in row] for row in z]).dim == 3


def test_vertices_of_a_flat_polytope_span_no_more_than_its_dimension() -> None:
    # Seen from the mean of all points the top is farther than 1e-3, from the vertices' not.
    low = np.stack([np.linspace(0.1, 0.9, 200), np.full(200, -0.00045)], axis=1)
    z = np.vstack([[[0, 0], [1, 0], [0.5, 0.0006]], low])
    body = Polytope.of(z, tol=1e-3)
    assert (body.dim, body.vertex_indices.tolist()) == (1, [0, 1])
    assert np.all(body.contains(z))


def test_circle_of_many_points_is_contained_in_the_hull_of_its_vertices() -> None:
    angle = np.linspace(0, 2 * np.pi, 50_000, endpoint=False)
    z = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    body = Polytope.of(z, tol=1e-6)
    assert 4000 < len(body.vertices) < 10_000
    assert np.all(body.contains(z[::50]))
    assert not np.any(body.contains(z[::50] * (1 + 1e-5)))


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_noise_near_the_tolerance_leaves_a_consistent_body(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, m = int(rng.integers(1, 6)), int(rng.integers(1, 20))
    r = int(rng.integers(0, d + 1))
    z = (rng.integers(-2, 3, size=(m, r)) @ rng.integers(-2, 3, size=(r, d))).astype(float)
    z += rng.normal(size=(m, d)) * 10.0 ** rng.uniform(-11, -7) * rng.integers(0, 2, size=(m, 1))
    body = Polytope.of(z + rng.normal(size=d))
    assert np.all(body.contains(body.points))
    assert np.all(body.on_boundary(body.vertices))
    assert len(body.vertices) >= body.dim + 1
    assert body.dim == 0 or len(body.faces) >= body.dim + (body.dim > 1)


# ------------------------------------------------------------------ laws


@given(lattice())
def test_floats_agree_with_rationals_on_dyadic_points(z: Any) -> None:
    exact, rounded = Polytope.of(fractions(z, 8)), Polytope.of(z / 8.0)
    assert exact.dim == rounded.dim == _exact_linear.rank((z - z[0]).tolist())
    assert exact.vertex_indices.tolist() == rounded.vertex_indices.tolist()
    assert exact.vertices.tolist() == rounded.vertices.tolist()
    assert exact.faces == rounded.faces
    middles = [(a + b) / 16 for a, b in itertools.combinations_with_replacement(z, 2)]
    rows = np.array([*middles, *(z / 8 + 0.25), *(z / 8 * 1.5)])
    assert exact.contains(rows).tolist() == rounded.contains(rows).tolist()
    assert exact.on_boundary(rows).tolist() == rounded.on_boundary(rows).tolist()


@given(lattice())
def test_vertices_and_membership_agree_with_linear_programming(z: Any) -> None:
    body = Polytope.of(z.astype(float))
    distinct = np.unique(z, axis=0).astype(float)
    vertices = {
        tuple(x)
        for i, x in enumerate(distinct)
        if len(distinct) == 1 or not in_hull_by_lp(np.delete(distinct, i, axis=0), x)
    }
    assert set(map(tuple, body.vertices)) == vertices
    for x in (z[0] + z[-1]) / 2, z[0] * 1.5, z.mean(axis=0), z[0] + 0.25:
        assert body.contains(x) == in_hull_by_lp(distinct, x)


@settings(max_examples=20)
@given(st.integers(3, 4), st.integers(0, 2**32))
def test_faces_agree_with_all_planes_through_the_vertices(d: int, seed: int) -> None:
    z = np.random.default_rng(seed).integers(-2, 3, size=(9, d))
    exact = Polytope.of(fractions(z))
    if exact.dim == d:
        corners = [tuple(map(int, row)) for row in exact.vertices]
        assert set(exact.faces) == facets_by_force(corners)


@given(lattice(), st.randoms(use_true_random=False))
def test_order_of_the_points_does_not_matter(z: Any, random: Any) -> None:
    order = list(range(len(z)))
    random.shuffle(order)
    for make in (fractions, np.asarray):
        one, other = Polytope.of(make(z)), Polytope.of(make(z[order]))
        assert one.dim == other.dim
        assert set(map(tuple, one.vertices)) == set(map(tuple, other.vertices))
        faces = [
            {frozenset(tuple(body.vertices[i]) for i in face) for face in body.faces}
            for body in (one, other)
        ]
        assert faces[0] == faces[1]


@given(lattice(), st.integers(-1000, 1000), st.sampled_from([3, Fraction(1, 7), 10**300]))
def test_translation_and_scaling_keep_the_exact_structure(z: Any, step: int, scale: Any) -> None:
    before = Polytope.of(fractions(z))
    moved = [[value * scale + step for value in row] for row in fractions(z)]
    after = Polytope.of(moved)
    assert (before.dim, before.faces) == (after.dim, after.faces)
    assert before.vertex_indices.tolist() == after.vertex_indices.tolist()
    assert np.all(after.contains(moved))


@pytest.mark.parametrize("d", [2, 3, 6, 16])
def test_convex_combinations_are_inside_and_points_pushed_out_are_not(d: int) -> None:
    rng = np.random.default_rng(d)
    z = rng.normal(size=(60, d)) * rng.uniform(0.1, 10, size=d) + rng.normal(size=d)
    body = Polytope.of(z)
    inside = rng.dirichlet(np.full(60, 0.2), size=30) @ z
    assert np.all(body.contains(inside))
    direction = rng.normal(size=(30, d))
    highest = z[(z @ direction.T).argmax(axis=0)]
    pushed = highest + 1e-6 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    assert not np.any(body.contains(pushed))
    assert np.all(body.contains(pushed, tol=1e-5))
    assert np.all(body.on_boundary(highest))
    assert not body.on_boundary(z.mean(axis=0))


def test_euler_holds_for_a_random_body_in_space() -> None:
    rng = np.random.default_rng(8)
    body = Polytope.of(rng.integers(-6, 7, size=(60, 3)).astype(float))
    faces = list(map(set, body.faces))
    edges = sum(len(a & b) == 2 for a, b in itertools.combinations(faces, 2))
    assert len(body.vertices) - edges + len(faces) == 2


# ------------------------------------------------------------------ high dimension


def test_three_hundred_points_in_sixteen_dimensions() -> None:
    rng = np.random.default_rng(16)
    z = rng.normal(size=(300, 16))
    z[250:] = rng.dirichlet(np.ones(250), size=50) @ z[:250]
    body = Polytope.of(z)
    assert body.dim == 16
    assert body.vertex_indices.max() < 250
    for i in rng.choice(250, size=12, replace=False):
        is_vertex = not in_hull_by_lp(np.delete(z, i, axis=0), z[i])
        assert (i in body.vertex_indices) == is_vertex
    assert np.all(body.contains(z))
    with pytest.raises(InputError, match="Ask `vertices`, `contains"):
        body.faces
    assert body.to_dict()["faces"] is None


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (1e-200, 0.0), (1e200, 0.0), (1, 1e6)])
def test_boundary_of_a_turned_cross_polytope_in_twelve_dimensions(
    scale: float, offset: float
) -> None:
    rng = np.random.default_rng(12)
    turn = rotation(12) * scale
    body = Polytope.of(cross(12) @ turn + offset)
    face = rng.dirichlet(np.ones(12), size=5) * rng.choice([-1, 1], size=12)
    x = np.vstack([face, 0.9999 * face, 1.0001 * face]) @ turn + offset
    assert body.contains(x).tolist() == [True] * 10 + [False] * 5
    assert body.on_boundary(x).tolist() == [True] * 5 + [False] * 10


def test_boundary_above_dimension_three_agrees_with_the_facets() -> None:
    rng = np.random.default_rng(4)
    z = rng.integers(-3, 4, size=(30, 5)).astype(float)
    rows = np.vstack([(z[:10] + z[10:20]) / 2, z, z * 0.5])
    by_rays, by_facets = Polytope.of(z), Polytope.of(z)
    assert len(by_facets.faces) > 10
    assert by_rays.on_boundary(rows).tolist() == by_facets.on_boundary(rows).tolist()
    assert by_rays.contains(rows).tolist() == by_facets.contains(rows).tolist()
    exact = Polytope.of(fractions(z))
    assert exact.on_boundary(rows).tolist() == by_rays.on_boundary(rows).tolist()


def test_flat_cloud_in_high_dimension_has_the_vertices_of_its_plan() -> None:
    rng = np.random.default_rng(6)
    plan = rng.integers(-4, 5, size=(200, 3)).astype(float)
    z = plan @ rotation(64)[:3] + rng.normal(size=64)
    flat, full = Polytope.of(z), Polytope.of(plan)
    assert flat.dim == 3
    assert flat.vertex_indices.tolist() == full.vertex_indices.tolist()
    assert flat.faces == full.faces


def test_known_vertices_change_no_answer() -> None:
    z = np.random.default_rng(9).integers(-4, 5, size=(60, 5))
    for points in (z.astype(float), fractions(z)):
        plain = Polytope.of(points)
        told = Polytope.of(points, known_vertices=plain.vertex_indices[::2].tolist())
        assert told.vertex_indices.tolist() == plain.vertex_indices.tolist()


# ------------------------------------------------------------------ where solvers give up


def refuse(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("no convergence")


def test_linear_programming_answers_where_least_squares_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    z = rng.integers(-3, 4, size=(40, 5)).astype(float)
    rows = np.vstack([(z[:20] + z[20:]) / 2, z + 0.5])
    plain = Polytope.of(z)
    expected = plain.contains(rows).tolist()
    monkeypatch.setattr(_hull_float, "nnls", refuse)
    again = Polytope.of(z)
    assert again.vertex_indices.tolist() == plain.vertex_indices.tolist()
    assert again.contains(rows).tolist() == expected


def test_simplex_method_answers_where_floats_propose_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    z = np.random.default_rng(7).integers(-3, 4, size=(20, 3))
    rows = (z[:10] + z[10:]) / 2
    plain = Polytope.of(fractions(z))
    expected = plain.contains(rows).tolist()
    monkeypatch.setattr(_exact_body, "nnls", refuse)
    again = Polytope.of(fractions(z))
    assert again.vertex_indices.tolist() == plain.vertex_indices.tolist()
    assert again.contains(rows).tolist() == expected


@pytest.mark.parametrize("d", [2, 3, 4])
def test_hulls_do_not_depend_on_qhull(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    z = np.random.default_rng(d).integers(-2, 3, size=(20, d)).astype(float)
    plain = Polytope.of(z)
    expected = plain.faces

    def fail(*args: Any) -> Any:
        raise QhullError("flat simplex")

    monkeypatch.setattr(_hull_float, "ConvexHull", fail)
    again = Polytope.of(z)
    assert again.vertex_indices.tolist() == plain.vertex_indices.tolist()
    assert again.faces == expected


def test_exact_faces_stop_at_a_limit_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_exact_body, "MOST_STEPS", 10)
    body = Polytope.of(fractions(itertools.product([0, 1], repeat=5)))
    with pytest.raises(InputError, match="too many to enumerate"):
        body.faces


# ------------------------------------------------------------------ exact linear algebra


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**32))
def test_elimination_is_the_same_with_and_without_flint(m: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [
        [Fraction(int(a), int(b)) for a, b in zip(*pair, strict=True)]
        for pair in zip(
            rng.integers(-2, 3, size=(m, n)), rng.integers(1, 4, size=(m, n)), strict=True
        )
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_exact_linear, "flint_or_none", lambda: None)
        plain = _exact_linear.rref(rows)
    assert plain == _exact_linear.rref(rows)
    pivots, reduced = plain
    assert all(row[j] == (i == k) for i, row in enumerate(reduced) for k, j in enumerate(pivots))
    kernel = _exact_linear.nullspace(rows, n)
    assert len(kernel) == n - len(pivots)
    assert all(sum(a * b for a, b in zip(row, v, strict=True)) == 0 for row in rows for v in kernel)


def test_flint_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flint", None)
    assert _exact_linear.flint_or_none() is None
    assert Polytope.of(fractions(CUBE)).faces == CUBE_FACES


def test_solve_finds_a_solution_or_says_there_is_none() -> None:
    columns = [[1, 0, 1], [0, 1, 1]]
    assert _exact_linear.solve(columns, [Fraction(1, 3), 2, Fraction(7, 3)]) == [
        Fraction(1, 3),
        Fraction(2),
    ]
    assert _exact_linear.solve(columns, [1, 1, 3]) is None


@given(st.integers(1, 4), st.integers(1, 8), st.integers(0, 2**32))
def test_cone_answer_comes_with_its_proof(d: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.integers(-3, 4, size=(count, d)).tolist()
    target = rng.integers(-3, 4, size=d).tolist()
    answer = _exact_linear.in_cone(columns, target)
    if answer.weights is not None:
        assert min(answer.weights) >= 0
        total = [
            sum(w * c[i] for w, c in zip(answer.weights, columns, strict=True)) for i in range(d)
        ]
        assert total == target
    else:
        assert answer.normal is not None
        assert _exact_linear.dot(answer.normal, target) > 0
        assert max(_exact_linear.dot(answer.normal, c) for c in columns) <= 0


# ------------------------------------------------------------------ input and output


def test_example_of_the_docstring_holds() -> None:
    assert doctest.testmod(polytope).failed == 0


def test_tensors_and_lists_are_read_like_arrays() -> None:
    expected = Polytope.of(CUBE).vertices.tolist()
    tensor = torch.tensor(CUBE, dtype=torch.float32, requires_grad=True)
    assert Polytope.of(tensor).vertices.tolist() == expected
    assert Polytope.of(CUBE.astype(int).tolist()).vertices.tolist() == expected
    assert Polytope.of(CUBE).contains(torch.full((3,), 0.5))


def test_arrays_cannot_be_written_and_the_input_is_left_alone() -> None:
    z = CUBE.copy()
    body = Polytope.of(z)
    with pytest.raises(ValueError, match="read-only"):
        body.vertices[0] = 7
    z[0] = 9
    assert body.vertices[0].tolist() == [0, 0, 0]


def test_dictionary_is_plain_json() -> None:
    exact = Polytope.of(fractions([[0, 0], [1, 0], [0, 1]], 3))
    data = json.loads(json.dumps(exact.to_dict()))
    assert data["vertices_exact"] == [["0", "0"], ["1/3", "0"], ["0", "1/3"]]
    assert data["faces"] == [[0, 1], [0, 2], [1, 2]]
    assert (data["dim"], data["exact"], data["vertex_indices"]) == (2, True, [0, 1, 2])
    rounded = json.loads(json.dumps(Polytope.of(CUBE).to_dict()))
    assert rounded["vertices_exact"] is None
    assert rounded["vertices"] == rounded["points"] == CUBE.tolist()
    assert rounded["tol"] == 1e-9


def test_representation_is_short() -> None:
    assert repr(Polytope.of(CUBE)) == "Polytope(dim=3, vertices=8, ambient=3, float)"


def test_one_fraction_makes_the_set_exact() -> None:
    assert Polytope.of([[Fraction(1, 2), 0], [0, 0.25]]).vertices_exact == [
        [Fraction(1, 2), Fraction(0)],
        [Fraction(0), Fraction(1, 4)],
    ]
    assert not Polytope.of([[1, 0], [0, 1]]).exact


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([], "at least one point"),
        (np.zeros((0, 3)), "at least one point"),
        (np.zeros((3, 0)), "one row per point"),
        ([1.0, 2.0], r"must be \(m, d\)"),
        ([[1.0, 2.0], [3.0]], "rows of numbers of one length"),
        ([[Fraction(1), 2], [3]], "rows of numbers of one length"),
        ([["a", "b"]], "rows of numbers"),
        ([[Fraction(10) ** 400]], "range of a double"),
    ],
)
def test_points_that_are_no_rows_are_refused(points: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        Polytope.of(points)


def test_exact_coordinates_must_be_numbers_of_python_or_numpy() -> None:
    with pytest.raises(InputError, match="Exact coordinates must be Fraction, int or finite"):
        Polytope.of([[Fraction(1), torch.tensor(1.0)]])
    assert Polytope.of([[Fraction(1), np.float32(0.5)]]).vertices_exact == [
        [Fraction(1), Fraction(1, 2)]
    ]


def test_values_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="`points` must be finite"):
        Polytope.of([[0.0, np.nan]])
    with pytest.raises(InputError, match="`points` must be finite"):
        Polytope.of([[Fraction(1), float("inf")]])
    with pytest.raises(InputError, match="`tol` must be in"):
        Polytope.of(CUBE, tol=-1.0)
    with pytest.raises(InputError, match="from 0 to 7"):
        Polytope.of(CUBE, known_vertices=[8])
    body = Polytope.of(CUBE)
    with pytest.raises(ShapeError, match=r"must be \(3,\) or \(k, 3\)"):
        body.contains([1.0, 2.0])
    with pytest.raises(InputError, match="`x` must be finite"):
        body.on_boundary([1.0, 2.0, np.inf])
    with pytest.raises(InputError, match="at least 0"):
        body.contains([1.0, 2.0, 3.0], tol=-1e-9)
