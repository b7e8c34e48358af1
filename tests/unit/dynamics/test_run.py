"""`simulate`: the record of a run, its endings, its arguments."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

import hardmax as hm
from hardmax import HardmaxError
from tests import oracle

SQUARE = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]


def gaussian(n: int = 15, d: int = 2, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(n, d))


# ------------------------------------------------------------------ the layers


@pytest.mark.parametrize("seed", range(6))
def test_a_run_equals_the_fractions_layer_by_layer(seed: int) -> None:
    z = gaussian(12, 3, seed)
    exact = oracle.trajectory(z, 6, alpha=0.4)
    zs = hm.simulate(z, 6, alpha=0.4, merge_tol=0).zs
    assert np.allclose(zs, np.array(exact, dtype=float), rtol=0, atol=1e-14)


def test_a_run_is_layers_one_after_the_other() -> None:
    z, A = gaussian(), np.array([[2.0, 0.3], [0.3, 1.0]])
    for kind in ("rescale", "none", "sphere"):
        for temperature in (0.0, 0.5):
            same = {"A": A, "alpha": 0.4, "normalization": kind, "temperature": temperature}
            zs = hm.simulate(z, 5, merge_tol=0, **same).zs
            for before, after in pairwise(zs):
                assert np.allclose(hm.layer(before, **same), after, rtol=0, atol=1e-12)


def test_each_layer_may_have_its_own_step() -> None:
    z, steps = gaussian(), [0.1, 0.9, 1.0, 0.5]
    zs = hm.simulate(z, 4, gamma=steps, merge_tol=0).zs
    for gamma, before, after in zip(steps, zs[:-1], zs[1:], strict=True):
        assert np.allclose(hm.layer(before, gamma=gamma), after, rtol=0, atol=1e-13)
    strengths = [0.2, 3.0, F(1, 3)]
    gammas = [F(a) / (1 + F(a)) for a in strengths]
    a, b = hm.simulate(z, 3, alpha=strengths), hm.simulate(z, 3, gamma=gammas)
    assert np.array_equal(a.zs, b.zs)


def test_a_matrix_step_is_applied_in_every_layer() -> None:
    z, P = gaussian(), np.diag([0.6, 0.2])
    zs = hm.simulate(z, 3, gamma=P).zs
    for before, after in pairwise(zs):
        assert np.allclose(hm.layer(before, gamma=P), after, rtol=0, atol=1e-13)


def test_followers_close_to_their_leader_take_its_place() -> None:
    # Token 4 ties for ever, so that the run never settles; token 5 follows corner 0.
    z = np.array([*SQUARE, [0.5, 0.0], [0.5, 0.1]])
    run = hm.simulate(z, 40, gamma=0.5)
    gap = np.abs(run.zs[:, 5] - z[0]).max(axis=1)
    assert np.allclose(gap[:19], 0.9 * 0.5 ** np.arange(19), rtol=1e-12)
    assert np.all(gap[21:] == 0)
    kept = hm.simulate(z, 40, gamma=0.5, merge_tol=0)
    assert np.all(np.abs(kept.zs[:, 5] - z[0]).max(axis=1) > 0)
    assert (kept.merge_tol, run.merge_tol) == (0, 1e-6)


def test_a_tie_is_not_broken_by_followers_that_arrive() -> None:
    # Tokens 5 and 6 follow corners; token 4 stays between two corners for ever.
    z = np.array([*SQUARE, [0.5, 0.0], [0.3, -0.4], [-0.3, 0.4]])
    for dtype, tol in ((np.float64, 1e-9), (np.float32, 1e-4)):
        for depth in (20, 60, 200):
            run = hm.simulate(z.astype(dtype), depth, alpha=0.5)
            assert np.abs(run.z[4, 1]) <= tol
            assert run.follows[:, 4].tolist() == [-1] * depth
            assert [x.index for x in run.leaders] == [0, 1, 2, 3]


def test_ties_seen_by_tolerance_do_not_drag_the_leaders() -> None:
    # float32 and a large step: followers arrive at rounding level after few layers.
    for seed in range(10):
        z = gaussian(60, 2, seed).astype(np.float32)
        run = hm.simulate(z, 100, gamma=0.7)
        for leader in run.leaders:
            assert np.array_equal(run.z[leader.index], run.zs[leader.born][leader.index])


# ------------------------------------------------------------------ the record


def test_shapes_of_one_system() -> None:
    run = hm.simulate(gaussian(7, 3), 4)
    assert run.zs.shape == (5, 7, 3)
    assert run.z.shape == (7, 3)
    assert np.array_equal(run.z, run.zs[-1])
    assert run.layers == (0, 1, 2, 3, 4)
    assert run.follows.shape == (4, 7)
    assert run.labels.shape == (7,)
    assert run.margins.shape == (4,)
    assert len(run.followers) == 4
    assert run.depth == 4
    assert isinstance(run.status, str)


def test_shapes_of_a_batch() -> None:
    zs = np.stack([gaussian(7, 3, s) for s in range(2)])
    run = hm.simulate(zs, 4)
    assert run.zs.shape == (5, 2, 7, 3)
    assert run.z.shape == (2, 7, 3)
    assert run.follows.shape == (4, 2, 7)
    assert run.labels.shape == (2, 7)
    assert run.margins.shape == (4, 2)
    assert len(run.status) == len(run.leaders) == 2
    assert run.mask.shape == (2, 7)


def test_shapes_with_heads() -> None:
    one = hm.simulate(gaussian(7, 4), 3, heads=2)
    assert one.follows.shape == (3, 2, 7)
    many = hm.simulate(np.stack([gaussian(7, 4)] * 3), 3, heads=2)
    assert many.follows.shape == (3, 3, 2, 7)
    assert {x.head for x in one.leaders} == {0, 1}
    assert one.heads == 2


def test_no_layer_gives_back_the_tokens() -> None:
    z = gaussian()
    run = hm.simulate(z, 0)
    assert np.array_equal(run.z, z)
    assert run.zs.shape == (1, 15, 2)
    assert (run.leaders, run.followers) == ((), [])
    assert set(run.labels.tolist()) == {-1}


def test_followers_list_who_chose_whom() -> None:
    run = hm.simulate([*SQUARE, [0.5, 0.1], [0.5, 0.0]], 2)
    assert run.followers[0] == {0: (0, 4), 1: (1,), 2: (2,), 3: (3,)}
    assert run.follows[0].tolist() == [0, 1, 2, 3, 0, -1]


@pytest.mark.parametrize("save", ["last", [0], [2, 5], (5, 0, 2), range(0, 6, 2)])
def test_only_the_layers_asked_for_are_kept(save: Any) -> None:
    z = gaussian()
    whole, run = hm.simulate(z, 5), hm.simulate(z, 5, save=save)
    kept = [5] if save == "last" else sorted(save)
    assert run.layers == tuple(kept)
    assert np.array_equal(run.zs, whole.zs[kept])
    assert np.array_equal(run.z, whole.z)
    assert run.leaders == whole.leaders
    assert np.array_equal(run.follows, whole.follows)


def test_margins_are_the_smallest_of_the_exact_ones() -> None:
    z = gaussian(20, 3)
    run = hm.simulate(z, 4, alpha=0.1, merge_tol=0)
    states = oracle.layers_of(z, None, 0.1)
    for got, state in zip(run.margins, states, strict=False):
        if not np.isnan(got):
            assert got == pytest.approx(min(state.margins), rel=1e-6)
    assert not np.isnan(run.margins[0])


def test_the_settings_are_part_of_the_record() -> None:
    A = np.array([[2.0, 0.0], [0.0, 1.0]])
    run = hm.simulate(gaussian(), 3, A=A, gamma=[0.1, 0.2, 0.3], tie_tol=1e-9, merge_tol=1e-4)
    assert run.gamma == (0.1, 0.2, 0.3)
    assert np.array_equal(run.A, A)
    assert (run.tie_tol, run.merge_tol) == (1e-9, 1e-4)
    assert (run.temperature, run.heads, run.normalization) == (0.0, 1, "rescale")
    assert run.mask.all()
    plain = hm.simulate(gaussian().astype(np.float32), 2)
    assert (plain.tie_tol, plain.merge_tol) == (1e-5, 1e-3)
    assert plain.gamma == (0.5, 0.5)


def test_a_record_cannot_be_changed() -> None:
    run = hm.simulate(gaussian(), 1)
    with pytest.raises(AttributeError, match=r"depth|frozen|assign"):
        run.depth = 2


# ------------------------------------------------------------------ how it ends


def test_a_run_that_cannot_change_any_more_is_settled() -> None:
    assert hm.simulate(gaussian(), 30).status == "settled"


def test_a_run_that_is_too_short_says_so() -> None:
    z = gaussian(40, 2, 3)
    settled = hm.equilibrium(z, alpha=0.05).settled_at
    assert settled >= 2
    assert hm.simulate(z, settled, alpha=0.05).status == "depth_reached"
    assert hm.simulate(z, settled + 1, alpha=0.05).status == "settled"


def test_tokens_that_shrink_to_one_point_are_called_collapsed() -> None:
    z = np.concatenate([gaussian(4), -gaussian(4)])
    run = hm.simulate(z, 300, A=-np.eye(2), gamma=0.4)
    assert run.status == "collapsed"
    assert run.leaders == ()


def test_values_that_overflow_are_called_not_finite() -> None:
    zs = np.stack([gaussian(5) * 1e300, gaussian(5)])
    run = hm.simulate(zs, 40, alpha=1.0, normalization="none")
    assert run.status == ("not_finite", "settled")
    assert np.isfinite(run.z[1]).all()


@pytest.mark.parametrize("seed", range(5))
def test_what_a_settled_run_says_is_its_limit(seed: int) -> None:
    z = gaussian(20, 3, seed)
    run = hm.simulate(z, 60, gamma=0.5)
    eq = hm.equilibrium(z, gamma=0.5)
    assert run.status == "settled"
    assert np.array_equal(run.labels, eq.labels)
    assert np.abs(run.z - eq.limit).max() < 1e-5


# ------------------------------------------------------------------ what goes in and out


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numpy_gives_numpy_and_torch_gives_torch(dtype: str) -> None:
    z = gaussian().astype(dtype)
    a, b = hm.simulate(z, 6), hm.simulate(torch.tensor(z), 6)
    for name in ("zs", "z"):
        assert isinstance(getattr(a, name), np.ndarray)
        assert isinstance(getattr(b, name), torch.Tensor)
        assert str(getattr(a, name).dtype) == dtype
        assert str(getattr(b, name).dtype) == f"torch.{dtype}"
        assert getattr(b, name).device.type == "cpu"
        assert np.array_equal(getattr(a, name), getattr(b, name).numpy())
    assert a.leaders == b.leaders
    assert isinstance(b.follows, np.ndarray)
    assert np.array_equal(hm.simulate(z.astype(float).tolist(), 3).zs.dtype, np.float64)


def test_arguments_are_never_changed() -> None:
    z, A = np.stack([gaussian(), gaussian(seed=1)]), np.array([[2.0, 0.5], [0.5, 1.0]])
    mask = np.ones((2, 15), dtype=bool)
    mask[0, 3:] = False
    before = z.copy(), A.copy(), mask.copy()
    for kind in ("rescale", "none", "sphere"):
        run = hm.simulate(z, 30, A=A, mask=mask, normalization=kind)
        run.zs[:] = 7
        run.z[:] = 7
    tensor = torch.tensor(z)
    hm.simulate(tensor, 30).zs[:] = 7
    assert np.array_equal(tensor.numpy(), before[0])
    assert all(np.array_equal(x, y) for x, y in zip((z, A, mask), before, strict=True))


def test_saved_layers_do_not_share_memory() -> None:
    run = hm.simulate(gaussian(), 3)
    kept = run.zs[2].copy()
    run.zs[3] += 1
    assert np.array_equal(run.zs[2], kept)


def test_tensors_that_need_gradients_are_accepted() -> None:
    z = torch.tensor(gaussian(), requires_grad=True)
    run = hm.simulate(z, 3)
    assert not run.zs.requires_grad
    assert np.array_equal(run.zs.numpy(), hm.simulate(gaussian(), 3).zs)


def test_the_same_call_gives_the_same_bits() -> None:
    z = gaussian(100, 3)
    a, b = hm.simulate(z, 20), hm.simulate(z, 20)
    assert np.array_equal(a.zs, b.zs)
    assert a.leaders == b.leaders


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"depth": -1}, "depth"),
        ({"depth": 2.0}, "depth"),
        ({"depth": True}, "depth"),
        ({"gamma": [0.5]}, "per layer"),
        ({"gamma": [0.5, 1.5, 0.5]}, r"\(0, 1\]"),
        ({"alpha": [1.0, 2.0]}, "per layer"),
        ({"alpha": [1.0, -2.0, 1.0]}, "alpha"),
        ({"gamma": np.eye(3)}, "gamma"),
        ({"save": "first"}, "save"),
        ({"save": [7]}, "save"),
        ({"save": []}, "save"),
        ({"merge_tol": -1.0}, "merge_tol"),
        ({"tie_tol": float("nan")}, "tie_tol"),
        ({"temperature": float("inf")}, "temperature"),
        ({"A": np.eye(4)}, r"\(2, 2\)"),
        ({"heads": 3}, "divide"),
        ({"normalization": "layer"}, "rescale"),
        ({"mask": np.ones((1, 15), dtype=bool)}, "mask"),
    ],
)
def test_a_mistake_is_reported_with_what_was_expected(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(HardmaxError, match=says):
        hm.simulate(gaussian(), **{"depth": 3, **arguments})
