"""What no layer may break: hulls, norms, leaders; for any A where the theory says so."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import hardmax as hm
from tests import strategies


def in_hull(x: Any, points: Any, tol: float = 1e-9) -> bool:
    """Whether x is a convex combination of the points, up to tol (a linear program)."""
    n, d = points.shape
    size = max(1.0, float(np.abs(points).max()))
    # minimise t with |sum w_j p_j - x| <= t, w a probability vector
    cost = np.zeros(n + 1)
    cost[-1] = 1
    upper = np.block([[points.T, -np.ones((d, 1))], [-points.T, -np.ones((d, 1))]])
    result = linprog(
        cost,
        A_ub=upper / size,
        b_ub=np.concatenate([x, -x]) / size,
        A_eq=np.append(np.ones(n), 0)[None],
        b_eq=[1],
    )
    return bool(result.status == 0 and result.fun <= tol * size)


@settings(max_examples=25)
@given(st.data())
def test_the_hull_never_grows_for_any_matrix(data: st.DataObject) -> None:
    z = data.draw(strategies.clouds(max_n=8))
    A, gamma = data.draw(strategies.matrices(z.shape[1])), data.draw(strategies.gammas)
    zs = hm.simulate(z, 3, A=A, gamma=gamma).zs
    for before, after in pairwise(zs):
        assert all(in_hull(x, before) for x in after)


@given(st.data())
def test_no_linear_function_exceeds_its_first_maximum_for_any_matrix(data: st.DataObject) -> None:
    z = data.draw(strategies.clouds())
    A, gamma = data.draw(strategies.matrices(z.shape[1])), data.draw(strategies.gammas)
    ways = np.random.default_rng(data.draw(strategies.seeds)).normal(size=(20, z.shape[1]))
    tops = (hm.simulate(z, 12, A=A, gamma=gamma).zs @ ways.T).max(axis=1)
    slack = 1e-13 * (1 + np.abs(z).max()) * np.linalg.norm(ways, axis=1)
    assert np.all(np.diff(tops, axis=0) <= slack)


@given(st.data())
def test_lengths_in_the_norm_of_a_definite_matrix_never_shrink(data: st.DataObject) -> None:
    z = data.draw(strategies.clouds())
    A, gamma = data.draw(strategies.spd_matrices(z.shape[1])), data.draw(strategies.gammas)
    zs = hm.simulate(z, 10, A=A, gamma=gamma, merge_tol=0, tie_tol=1e-14).zs
    squares = np.einsum("kni,ij,knj->kn", zs, A, zs)
    grown = np.diff(squares, axis=0)
    assert np.all(grown >= -1e-11 * squares.max())


@given(st.data())
def test_lengths_grow_by_at_least_the_step(data: st.DataObject) -> None:
    # |z'|_A^2 >= |z|_A^2 + gamma^2 |w - z|_A^2 with z' = z + gamma (w - z)
    z = data.draw(strategies.clouds())
    A, gamma = data.draw(strategies.spd_matrices(z.shape[1])), data.draw(strategies.gammas)
    after = hm.layer(z, A=A, gamma=gamma)

    def square(x: Any) -> Any:
        return np.einsum("ni,ij,nj->n", x, A, x)

    assert np.all(square(after) >= square(z) + square(after - z) - 1e-11 * (1 + square(z).max()))


@given(st.data())
def test_a_leader_never_moves_for_any_matrix(data: st.DataObject) -> None:
    z = data.draw(strategies.clouds())
    A, gamma = data.draw(strategies.matrices(z.shape[1])), data.draw(strategies.gammas)
    run = hm.simulate(z, 25, A=A, gamma=gamma)
    for leader in run.leaders:
        held = run.zs[leader.born :, list(leader.members)]
        assert np.array_equal(held, np.broadcast_to(held[0], held.shape))
        assert np.all(run.follows[leader.born :, leader.index] == leader.index)


@given(st.data())
def test_who_follows_a_leader_alone_follows_it_for_ever(data: st.DataObject) -> None:
    z = data.draw(strategies.clouds())
    A, gamma = data.draw(strategies.matrices(z.shape[1])), data.draw(strategies.gammas)
    run = hm.simulate(z, 25, A=A, gamma=gamma)
    for leader in run.leaders:
        for token in range(len(z)):
            behind = run.follows[leader.born :, token] == leader.index
            first = int(behind.argmax()) if behind.any() else len(behind)
            assert behind[first:].all()


@settings(max_examples=25)
@given(st.data())
def test_leaders_do_not_depend_on_how_long_the_run_is(data: st.DataObject) -> None:
    z = data.draw(strategies.clouds())
    A, gamma = data.draw(strategies.spd_matrices(z.shape[1])), data.draw(strategies.gammas)
    short = hm.simulate(z, 20, A=A, gamma=gamma).leaders
    long = hm.simulate(z, 200, A=A, gamma=gamma, save="last").leaders
    assert short == tuple(x for x in long if x.born < 20)


@given(strategies.clouds(), strategies.gammas)
def test_each_token_is_labelled_by_at_most_one_leader(z: Any, gamma: float) -> None:
    run = hm.simulate(z, 15, gamma=gamma)
    seen = [i for leader in run.leaders for i in leader.members]
    assert len(seen) == len(set(seen))
    for leader in run.leaders:
        assert leader.index == min(leader.members)
    assert set(run.labels.tolist()) <= set(range(-1, len(run.leaders)))
