"""Changes of the data under which the dynamics must change in step, or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from tests import oracle, strategies

DEPTH = 12


def births(leaders: Any) -> list[tuple[int, int, tuple[int, ...]]]:
    return [(x.index, x.born, x.members) for x in leaders]


def rotation(d: int, seed: int) -> Any:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


@given(st.data())
def test_renumbering_the_tokens_renumbers_everything(data: st.DataObject) -> None:
    z = data.draw(strategies.clouds())
    A = data.draw(strategies.matrices(z.shape[1]))
    order = np.array(data.draw(st.permutations(range(len(z)))))
    place = np.argsort(order)
    run, other = (hm.simulate(x, DEPTH, A=A, alpha=0.7) for x in (z, z[order]))
    assert np.allclose(other.zs, run.zs[:, order], rtol=0, atol=1e-12)
    moved = {(x.born, tuple(sorted(int(place[i]) for i in x.members))) for x in run.leaders}
    assert {(x.born, x.members) for x in other.leaders} == moved


@given(st.data())
def test_renumbering_the_tokens_renumbers_the_limit(data: st.DataObject) -> None:
    z = data.draw(strategies.clouds())
    order = np.array(data.draw(st.permutations(range(len(z)))))
    eq, other = hm.equilibrium(z, alpha=0.7), hm.equilibrium(z[order], alpha=0.7)
    assert other.status == eq.status
    assert np.allclose(other.limit, eq.limit[order], rtol=0, atol=1e-13 * (1 + np.abs(z).max()))
    assert other.settled_at == eq.settled_at


@given(st.data())
def test_a_definite_matrix_is_a_change_of_coordinates(data: st.DataObject) -> None:
    z = data.draw(strategies.gaussians(max_n=12, max_d=4))
    L = np.random.default_rng(data.draw(strategies.seeds)).normal(size=(z.shape[1],) * 2)
    L = L + 2 * np.eye(z.shape[1])
    found = oracle.answer(z, L.T @ L, alpha=0.7)
    if found.margin < 1e-9:
        return
    eq, plain = hm.equilibrium(z, A=L.T @ L, alpha=0.7), hm.equilibrium(z @ L.T, alpha=0.7)
    assert (eq.leaders, eq.born, eq.settled_at) == (plain.leaders, plain.born, plain.settled_at)
    assert np.array_equal(eq.labels, plain.labels)
    assert np.allclose(eq.limit @ L.T, plain.limit, rtol=0, atol=1e-11)


@given(strategies.gaussians(max_n=12, max_d=4), strategies.seeds)
def test_rotated_tokens_have_rotated_layers(z: Any, seed: int) -> None:
    Q = rotation(z.shape[1], seed)
    for temperature in (0.0, 0.5):
        a = hm.layer(z @ Q.T, temperature=temperature)
        b = hm.layer(z, temperature=temperature) @ Q.T
        assert np.allclose(a, b, rtol=0, atol=1e-12)


@given(st.data())
def test_rotating_tokens_and_matrix_together_changes_nothing(data: st.DataObject) -> None:
    z = data.draw(strategies.gaussians(max_n=10, max_d=4))
    A = np.random.default_rng(data.draw(strategies.seeds)).normal(size=(z.shape[1],) * 2)
    Q = rotation(z.shape[1], 1)
    a, b = hm.layer(z @ Q.T, A=Q @ A @ Q.T), hm.layer(z, A=A) @ Q.T
    assert np.allclose(a, b, rtol=0, atol=1e-11)


@given(st.data())
def test_signed_permutations_of_the_coordinates_are_exact(data: st.DataObject) -> None:
    z = data.draw(strategies.grids())
    d = z.shape[1]
    order = np.array(data.draw(st.permutations(range(d))))
    signs = np.array(data.draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=d, max_size=d)))
    eq, other = hm.equilibrium(z, gamma=0.5), hm.equilibrium(z[:, order] * signs, gamma=0.5)
    assert other.status == eq.status
    assert np.array_equal(other.limit, eq.limit[:, order] * signs, equal_nan=True)
    assert other.leaders == eq.leaders


@given(st.data())
def test_a_second_copy_of_every_token_changes_nothing(data: st.DataObject) -> None:
    z = data.draw(strategies.clouds(max_n=8))
    A = data.draw(strategies.matrices(z.shape[1]))
    n = len(z)
    run = hm.simulate(z, DEPTH, A=A, alpha=0.7)
    twice = hm.simulate(np.concatenate([z, z]), DEPTH, A=A, alpha=0.7)
    assert np.array_equal(twice.zs[:, :n], twice.zs[:, n:])
    assert np.allclose(twice.zs[:, :n], run.zs, rtol=0, atol=1e-13)
    assert [(x.index, x.born) for x in twice.leaders] == [(x.index, x.born) for x in run.leaders]
    for leader, both in zip(run.leaders, twice.leaders, strict=True):
        assert both.members == (*leader.members, *(i + n for i in leader.members))


@given(strategies.gaussians(max_n=10), st.data())
def test_doubling_some_tokens_without_ties_changes_nothing(z: Any, data: st.DataObject) -> None:
    extra = data.draw(st.lists(st.integers(0, len(z) - 1), max_size=8))
    eq = hm.equilibrium(z, alpha=0.7)
    more = hm.equilibrium(np.concatenate([z, z[extra]]), alpha=0.7)
    assert (more.status, more.leaders, more.born) == (eq.status, eq.leaders, eq.born)
    assert np.array_equal(more.limit[: len(z)], eq.limit)
    assert np.array_equal(more.limit[len(z) :], eq.limit[extra])


@given(st.data())
def test_padding_is_invisible(data: st.DataObject) -> None:
    z = data.draw(strategies.clouds(max_n=8))
    A = data.draw(strategies.matrices(z.shape[1]))
    holes = sorted(data.draw(st.lists(st.integers(0, len(z)), max_size=4)), reverse=True)
    filled, mask = list(z), [True] * len(z)
    for at in holes:
        filled.insert(at, np.full(z.shape[1], 99.0))
        mask.insert(at, False)
    keep = np.array(mask)
    run = hm.simulate(z, DEPTH, A=A, alpha=0.7)
    padded = hm.simulate(np.array(filled), DEPTH, A=A, alpha=0.7, mask=keep)
    real = np.flatnonzero(keep)
    assert np.array_equal(padded.zs[:, keep], run.zs)
    assert np.all(padded.zs[:, ~keep] == 99.0)
    assert np.all(padded.follows[:, ~keep] == -1)
    assert np.all(padded.labels[~keep] == -1)
    assert padded.status == run.status
    moved = [(int(real[i]), k, tuple(int(real[j]) for j in js)) for i, k, js in births(run.leaders)]
    assert births(padded.leaders) == moved


@settings(max_examples=25)
@given(st.data())
def test_a_batch_equals_its_systems_one_by_one(data: st.DataObject) -> None:
    n, d = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3))
    rng = np.random.default_rng(data.draw(strategies.seeds))
    zs = rng.integers(-3, 4, size=(4, n, d)) + rng.choice([0, 1], size=(4, 1, 1)) * rng.normal(
        size=(4, n, d)
    )
    A, mask = rng.normal(size=(d, d)), rng.uniform(size=(4, n)) < 0.8
    mask[:, 0] = True
    batch = hm.simulate(zs, DEPTH, A=A, alpha=0.7, mask=mask)
    for s in range(4):
        one = hm.simulate(zs[s], DEPTH, A=A, alpha=0.7, mask=mask[s])
        assert np.array_equal(batch.zs[:, s], one.zs)
        assert batch.status[s] == one.status
        assert batch.leaders[s] == one.leaders
        assert np.array_equal(batch.follows[:, s], one.follows)
        assert np.array_equal(batch.labels[s], one.labels)
        assert np.array_equal(batch.margins[:, s], one.margins, equal_nan=True)


@pytest.mark.parametrize("power", [-1000, -500, -60, 60, 500, 1000])
@settings(max_examples=15)
@given(z=strategies.clouds())
def test_powers_of_two_scale_through(power: int, z: Any) -> None:
    for gamma in (0.5, 0.3):
        run, scaled = (hm.simulate(x, DEPTH, gamma=gamma) for x in (z, np.ldexp(z, power)))
        assert births(scaled.leaders) == births(run.leaders)
        assert np.array_equal(scaled.follows, run.follows)
        if power < 0:  # small differences may be lost below the smallest double
            assert np.allclose(np.ldexp(scaled.zs, -power), run.zs, rtol=1e-12, atol=1e-12)
        else:
            assert np.array_equal(np.ldexp(scaled.zs, -power), run.zs)
        eq, other = hm.equilibrium(z, gamma=gamma), hm.equilibrium(np.ldexp(z, power), gamma=gamma)
        assert (other.status, other.leaders, other.born, other.settled_at) == (
            eq.status,
            eq.leaders,
            eq.born,
            eq.settled_at,
        )


@given(st.data())
def test_the_size_of_the_matrix_changes_nothing(data: st.DataObject) -> None:
    z = data.draw(strategies.clouds())
    A = data.draw(strategies.matrices(z.shape[1]))
    run = hm.simulate(z, DEPTH, A=A, gamma=0.4)
    for power in (-900, 3, 900):
        scaled = hm.simulate(z, DEPTH, A=np.ldexp(A, power), gamma=0.4)
        assert np.array_equal(scaled.zs, run.zs)
        assert scaled.leaders == run.leaders


@given(st.data())
def test_a_pair_of_factors_is_their_product(data: st.DataObject) -> None:
    z = data.draw(strategies.gaussians(max_d=4))
    d = z.shape[1]
    rng = np.random.default_rng(data.draw(strategies.seeds))
    rank = int(rng.integers(1, d + 2))
    U, V = rng.normal(size=(rank, d)), rng.normal(size=(rank, d))
    a, b = hm.simulate(z, DEPTH, A=(U, V)), hm.simulate(z, DEPTH, A=U.T @ V)
    assert np.allclose(a.zs, b.zs, rtol=0, atol=1e-11)
    assert births(a.leaders) == births(b.leaders)


@given(st.data())
def test_heads_are_separate_runs_on_blocks_of_coordinates(data: st.DataObject) -> None:
    n, heads, width = (data.draw(st.integers(1, k)) for k in (8, 3, 3))
    rng = np.random.default_rng(data.draw(strategies.seeds))
    z = rng.integers(-3, 4, size=(n, heads * width)).astype(float)
    As = [rng.normal(size=(width, width)) for _ in range(heads)]
    run = hm.simulate(z, DEPTH, A=As if heads > 1 else As[0], heads=heads, alpha=0.7)
    for h in range(heads):
        block = slice(h * width, (h + 1) * width)
        one = hm.simulate(z[:, block], DEPTH, A=As[h], alpha=0.7)
        assert np.allclose(run.zs[:, :, block], one.zs, rtol=0, atol=1e-12)
        mine = [(x.index, x.born, x.members) for x in run.leaders if x.head == h]
        assert mine == births(one.leaders)
        follows = run.follows[:, h] if heads > 1 else run.follows
        assert np.array_equal(follows, one.follows)


@given(strategies.clouds(), strategies.alphas)
def test_gamma_and_alpha_say_the_same(z: Any, alpha: float) -> None:
    from fractions import Fraction

    gamma = Fraction(alpha) / (1 + Fraction(alpha))
    a, b = hm.simulate(z, DEPTH, alpha=alpha), hm.simulate(z, DEPTH, gamma=gamma)
    assert np.array_equal(a.zs, b.zs)
    assert a.leaders == b.leaders


@given(strategies.clouds(), strategies.gammas)
def test_one_step_per_layer_and_one_for_all_say_the_same(z: Any, gamma: float) -> None:
    a, b = hm.simulate(z, 5, gamma=gamma), hm.simulate(z, 5, gamma=[gamma] * 5)
    c = hm.simulate(z, 5, gamma=gamma * np.eye(z.shape[1]), merge_tol=0)
    assert np.array_equal(a.zs, b.zs)
    assert np.allclose(a.zs, c.zs, rtol=0, atol=1e-6 * (1 + np.abs(z).max()))
    assert [(x.index, x.born) for x in a.leaders] == [(x.index, x.born) for x in b.leaders]


@settings(max_examples=25)
@given(strategies.seeds)
def test_batch_mask_heads_and_steps_together_equal_their_parts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    b, n, heads, width, depth = 3, 7, 2, 2, 6
    zs = rng.integers(-3, 4, size=(b, n, heads * width)).astype(float)
    zs += rng.choice([0.0, 1.0]) * rng.normal(size=zs.shape)
    As, steps = list(rng.normal(size=(heads, width, width))), list(rng.uniform(0.1, 1, size=depth))
    mask = rng.uniform(size=(b, n)) < 0.7
    mask[:, 2] = True
    for kind in ("rescale", "none"):
        step = {"gamma": steps} if kind == "rescale" else {"alpha": steps}
        whole = hm.simulate(zs, depth, A=As, heads=heads, mask=mask, normalization=kind, **step)
        assert np.array_equal(
            whole.zs[:, ~mask], np.broadcast_to(zs[~mask], (depth + 1, *zs[~mask].shape))
        )
        for s, h in np.ndindex(b, heads):
            block, real = slice(h * width, (h + 1) * width), np.flatnonzero(mask[s])
            one = hm.simulate(zs[s, real][:, block], depth, A=As[h], normalization=kind, **step)
            assert np.allclose(whole.zs[:, s, real, block], one.zs, rtol=1e-9, atol=1e-9)
            back = np.where(one.follows >= 0, real[one.follows], -1)
            assert np.array_equal(whole.follows[:, s, h][:, real], back)


@given(st.data())
def test_tempered_runs_count_every_token_and_no_padding(data: st.DataObject) -> None:
    z = data.draw(strategies.clouds(max_n=6))
    z = np.concatenate([z, z[: len(z) // 2], np.full((2, z.shape[1]), 50.0)])
    mask = np.arange(len(z)) < len(z) - 2
    run = hm.simulate(z, 4, temperature=0.5, mask=mask)
    for before, after in zip(run.zs[:-1], run.zs[1:], strict=True):
        assert np.allclose(hm.layer(before[mask], temperature=0.5), after[mask], rtol=0, atol=1e-12)
        assert np.array_equal(after[~mask], z[~mask])


@settings(max_examples=40)
@given(st.data())
def test_runs_of_tied_tokens_end_at_the_exact_limit(data: st.DataObject) -> None:
    # A zero token is left out: the float mean of a mirrored cloud is not exactly zero.
    z = data.draw(strategies.grids(max_n=10))
    if data.draw(st.booleans()):
        z = np.concatenate([z, z * ([-1] + [1] * (z.shape[1] - 1))])
    gamma = data.draw(st.sampled_from([0.25, 1 / 3, 0.5, 0.7, 0.75]))
    found = oracle.answer(z, gamma=gamma)
    if not found.settled or found.margin < 1e-3 or not all(map(any, [*z, *(found.limit or [])])):
        return
    top, limit = max(1.0, float(np.abs(z).max())), np.array(found.limit, dtype=float)
    for dtype, tol in ((np.float64, 1e-5), (np.float32, 5e-3)):
        run = hm.simulate(z.astype(dtype), found.settled_at + 80, gamma=gamma)
        assert np.abs(run.z - limit).max() <= tol * top
        assert tuple(births(run.leaders)) == found.found_by(run.depth)
