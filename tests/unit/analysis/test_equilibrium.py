"""`equilibrium`: what its record holds, for every kind of ending and of input."""

from __future__ import annotations

import json
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
import torch

import hardmax as hm
from hardmax import HardmaxError
from tests import oracle
from tests.known.check_systems import limit_faults


def gaussian(n: int = 12, d: int = 2, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(n, d))


# ------------------------------------------------------------------ the record


def test_the_record_of_a_small_system_by_hand() -> None:
    eq = hm.equilibrium([[1.0, 0.0], [0.0, 1.0], [0.4, 0.2]], alpha=1.0)
    assert eq.status == "proved"
    assert eq.limit.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert eq.leaders == (0, 1)
    assert eq.born == (0, 0)
    assert np.asarray(eq.labels).tolist() == [0, 1, 0]
    assert eq.settled_at == 0
    assert (eq.gamma, eq.alpha, eq.rate) == (0.5, 1.0, 0.5)
    assert sorted(np.asarray(eq.points).tolist()) == [[0, 1], [1, 0]]
    assert eq.polytope.dim == 1


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0, 5.0, F(2, 7)])
def test_gamma_alpha_and_rate_belong_together(alpha: Any) -> None:
    eq = hm.equilibrium(gaussian(), alpha=alpha)
    gamma = F(alpha) / (1 + F(alpha))
    assert eq.gamma == pytest.approx(float(gamma), rel=1e-15)
    assert eq.alpha == pytest.approx(float(alpha), rel=1e-15)
    assert eq.rate == pytest.approx(float(1 - gamma), rel=1e-15)
    other = hm.equilibrium(gaussian(), gamma=gamma)
    assert other.leaders == eq.leaders
    assert other.alpha == pytest.approx(float(alpha), rel=1e-12)


def test_shapes_and_types() -> None:
    eq = hm.equilibrium(gaussian(12, 3))
    assert eq.limit.shape == (12, 3)
    assert eq.limit.dtype == np.float64
    assert np.asarray(eq.labels).shape == (12,)
    assert eq.points.shape == (len(eq.points), 3)
    assert eq.points.dtype == np.float64
    assert isinstance(eq.leaders, tuple)
    assert eq.leaders == tuple(sorted(eq.leaders))
    assert len(eq.born) == len(eq.leaders)


def test_the_points_are_the_distinct_limits() -> None:
    for seed in range(5):
        eq = hm.equilibrium(gaussian(20, 2, seed), alpha=0.3)
        points = [tuple(x) for x in eq.points.tolist()]
        assert len(points) == len(set(points))
        assert set(points) == {tuple(x) for x in eq.limit.tolist()}


def test_the_record_cannot_be_changed() -> None:
    eq = hm.equilibrium(gaussian())
    with pytest.raises(AttributeError, match=r"status|frozen|assign"):
        eq.status = "proved"


def test_to_dict_is_plain_json() -> None:
    for arguments in ({}, {"exact": True}, {"A": -np.eye(2)}, {"max_depth": 0, "alpha": 0.05}):
        eq = hm.equilibrium(gaussian(), **arguments)
        data = json.loads(json.dumps(eq.to_dict(), allow_nan=False))
        assert data["status"] == eq.status
        assert data["leaders"] == list(eq.leaders)
        assert data["labels"] == np.asarray(eq.labels).tolist()
        for name in ("limit", "born", "settled_at", "gamma", "alpha", "assumptions", "certificate"):
            assert name in data
    certificate = hm.Certificate.from_dict(hm.equilibrium(gaussian()).to_dict()["certificate"])
    assert certificate.verify(gaussian())


# ------------------------------------------------------------------ exact


@pytest.mark.parametrize("seed", range(6))
def test_exact_limits_of_doubles_equal_the_oracle(seed: int) -> None:
    z = gaussian(14, 2, seed)
    eq = hm.equilibrium(z, alpha=0.3, exact=True)
    found = oracle.answer(z, alpha=0.3)
    assert eq.limit_exact == found.limit
    assert list(limit_faults(eq, found)) == []
    assert eq.limit.tolist() == [[float(x) for x in row] for row in found.limit or []]


def test_fractions_are_decided_exactly_without_being_asked() -> None:
    z = [[F(1), F(1, 3)], [F(-1, 3), F(1, 7)], [F(-1), F(-1)], [F(0), F(1, 5)]]
    eq = hm.equilibrium(z, alpha=F(1, 3))
    assert eq.limit_exact == oracle.answer(z, alpha=F(1, 3)).limit


def test_fractions_that_no_double_can_tell_apart() -> None:
    tiny = F(1, 10**40)
    z = [[F(1), tiny], [F(1), -tiny], [F(1, 2), tiny / 3], [F(1, 2), -tiny / 5]]
    eq = hm.equilibrium(z, alpha=F(1, 2))
    found = oracle.answer(z, alpha=F(1, 2))
    assert eq.status == "proved"
    assert eq.limit_exact == found.limit
    assert np.asarray(eq.labels).tolist() == list(found.labels or ())
    assert eq.certificate.verify(z)


def test_a_step_given_as_a_fraction_is_not_rounded() -> None:
    z = [[F(1), F(1, 3)], [F(-1, 12), F(1, 12)], [F(-1), F(-1)], [F(0), F(1, 4)]]
    third = hm.equilibrium(z, gamma=F(1, 3))
    rounded = hm.equilibrium(z, gamma=1 / 3)
    assert third.limit_exact == oracle.answer(z, gamma=F(1, 3)).limit
    assert rounded.limit_exact == oracle.answer(z, gamma=F(1 / 3)).limit


@pytest.mark.parametrize("wrong", ["yes", 1, None, 0.0])
def test_exact_is_true_or_false(wrong: object) -> None:
    with pytest.raises(HardmaxError, match="`exact` must be True or False"):
        hm.equilibrium([[1.0], [2.0]], exact=wrong)
    assert hm.equilibrium([[1.0], [2.0]], exact=np.bool_(True)).certificate.verify([[1.0], [2.0]])


def test_exact_and_float_decisions_agree() -> None:
    for seed in range(8):
        z = gaussian(25, 3, seed)
        a, b = hm.equilibrium(z, alpha=0.2), hm.equilibrium(z, alpha=0.2, exact=True)
        assert (a.leaders, a.born, a.settled_at) == (b.leaders, b.born, b.settled_at)
        assert np.array_equal(a.labels, b.labels)
        assert np.allclose(a.limit, b.limit, rtol=0, atol=1e-14)


# ------------------------------------------------------------------ closed form


@pytest.mark.parametrize("seed", range(5))
def test_the_closed_form_equals_the_simulation(seed: int) -> None:
    z = gaussian(20, 2, seed)
    eq = hm.equilibrium(z, alpha=0.3)
    zs = hm.simulate(z, eq.settled_at + 30, alpha=0.3, merge_tol=0).zs
    for k in range(eq.settled_at, eq.settled_at + 31, 6):
        assert np.allclose(eq.at(k), zs[k], rtol=0, atol=1e-13)


def test_the_closed_form_equals_the_exact_layers_of_a_tie() -> None:
    z = [[1, 1], [1, -1], [-1, 1], [-1, -1], [-0.5, 0], [0.5, 0]]
    eq = hm.equilibrium(z, alpha=0.5)
    exact = oracle.trajectory(z, eq.settled_at + 8, alpha=0.5)
    for k in range(eq.settled_at, eq.settled_at + 9):
        assert np.allclose(eq.at(k), np.array(exact[k], dtype=float), rtol=0, atol=1e-15)


def test_the_closed_form_starts_at_the_settled_layer() -> None:
    eq = hm.equilibrium(gaussian(40, 2, 5), alpha=0.1)
    assert eq.settled_at >= 1
    with pytest.raises(HardmaxError, match="settled"):
        eq.at(eq.settled_at - 1)


@pytest.mark.parametrize("eps", [1.0, 1e-2, 1e-6, 1e-12])
def test_layers_within_is_the_first_layer_that_close(eps: float) -> None:
    for seed in range(4):
        eq = hm.equilibrium(gaussian(20, 2, seed), alpha=0.3)
        k = eq.layers_within(eps)
        assert k >= eq.settled_at
        slack = 1 + 1e-9
        assert np.linalg.norm(eq.at(k) - eq.limit, axis=1).max() <= eps * slack + 1e-15
        if k > eq.settled_at:
            before = np.linalg.norm(eq.at(k - 1) - eq.limit, axis=1).max()
            assert before > eps / slack - 1e-15


# ------------------------------------------------------------------ other endings


def test_too_few_layers_end_as_depth_reached() -> None:
    z = gaussian(40, 2, 5)
    settled = hm.equilibrium(z, alpha=0.1).settled_at
    assert settled >= 1
    eq = hm.equilibrium(z, alpha=0.1, max_depth=settled - 1)
    assert eq.status == "depth_reached"
    assert eq.settled_at is None
    assert not eq.certificate.proved
    assert np.isnan(eq.limit).any()
    assert hm.equilibrium(z, alpha=0.1, max_depth=settled).status == "proved"


def test_collapse_is_named() -> None:
    eq = hm.equilibrium(gaussian(), A=-np.eye(2))
    assert eq.status == "collapsed"
    assert len(np.unique(eq.limit, axis=0)) == 1
    assert eq.polytope.dim == 0


def test_one_leader_of_a_definite_matrix_is_no_collapse() -> None:
    eq = hm.equilibrium(gaussian() + 100.0)
    assert eq.status == "proved"
    assert len(eq.leaders) == 1


def test_a_swap_that_never_ends_is_not_called_anything_else() -> None:
    eq = hm.equilibrium([[3.0], [-1.0]], A=[[-1.0]], gamma=1, max_depth=50)
    assert eq.status == "depth_reached"
    assert np.isnan(eq.limit).all()
    assert eq.labels.tolist() == [-1, -1]
    assert (eq.leaders, eq.limit_exact, eq.settled_at, eq.polytope) == ((), None, None, None)


def test_the_assumptions_name_what_fails() -> None:
    z = gaussian(5)
    assert hm.equilibrium(z).assumptions.hold
    doubled = hm.equilibrium(np.concatenate([z, z[:1]])).assumptions
    assert (doubled.distinct, doubled.nonzero, doubled.hold) == (False, True, False)
    assert "equal" in doubled.message
    zero = hm.equilibrium(np.concatenate([z, [[0, 0]]])).assumptions
    assert (zero.distinct, zero.nonzero, zero.hold) == (True, False, False)
    assert "zero" in zero.message
    skew = hm.equilibrium(z, A=[[1.0, 2.0], [0.0, 1.0]]).assumptions
    assert (skew.symmetric, skew.hold) == (False, False)
    assert "symmetric" in skew.message


# ------------------------------------------------------------------ what goes in


@pytest.mark.parametrize("make", [list, np.array, torch.DoubleTensor])
def test_lists_arrays_and_tensors_give_the_same(make: Any) -> None:
    rows = gaussian().tolist()
    eq, plain = hm.equilibrium(make(rows)), hm.equilibrium(np.array(rows))
    assert np.array_equal(eq.limit, plain.limit)
    assert eq.certificate.digest == plain.certificate.digest


def test_float32_tokens_are_taken_at_their_exact_value() -> None:
    z = gaussian().astype(np.float32)
    eq = hm.equilibrium(z, alpha=0.3)
    assert list(limit_faults(eq, oracle.answer(z, alpha=0.3))) == []
    assert np.array_equal(eq.limit, hm.equilibrium(z.astype(np.float64), alpha=0.3).limit)


def test_arguments_are_never_changed() -> None:
    z, A = gaussian(), np.array([[2.0, 0.5], [0.5, 1.0]])
    before = z.tolist(), A.tolist()
    hm.equilibrium(z, A=A, exact=True)
    assert (z.tolist(), A.tolist()) == before


def test_low_rank_factors_mean_their_exact_product() -> None:
    rng = np.random.default_rng(3)
    U, V = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    z = rng.normal(size=(10, 3))
    eq = hm.equilibrium(z, A=(U, V), alpha=0.5, max_depth=100)
    assert list(limit_faults(eq, oracle.answer(z, (U, V), 0.5, max_depth=100))) == []
    exact = np.array(oracle.matrix((U, V), 3), dtype=object)
    other = hm.equilibrium(z, A=exact, alpha=0.5, max_depth=100)
    assert (other.status, other.leaders, other.settled_at) == (eq.status, eq.leaders, eq.settled_at)


@pytest.mark.parametrize("gamma", [1, 1.0, F(1)])
def test_a_full_step_lands_on_the_limit(gamma: Any) -> None:
    for seed in range(6):
        z = gaussian(15, 2, seed)
        eq = hm.equilibrium(z, gamma=gamma)
        assert list(limit_faults(eq, oracle.answer(z, gamma=1))) == []
        assert eq.rate == 0
        assert np.array_equal(eq.at(eq.settled_at + 1), eq.limit)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"z": np.zeros((2, 3, 2))}, "one system"),
        ({"z": [1.0, 2.0]}, r"\(n, d\)"),
        ({"z": [[np.nan, 1.0]]}, "finite"),
        ({"z": np.zeros((0, 2))}, "at least one"),
        ({"z": np.eye(2), "alpha": [1.0, 2.0]}, "one number"),
        ({"z": np.eye(2), "gamma": 0.5 * np.eye(2)}, "gamma"),
        ({"z": np.eye(2), "gamma": 0.0}, r"\(0, 1\]"),
        ({"z": np.eye(2), "gamma": 1.0000001}, r"\(0, 1\]"),
        ({"z": np.eye(2), "alpha": -1}, "alpha"),
        ({"z": np.eye(2), "A": np.eye(3)}, r"\(2, 2\)"),
        ({"z": np.eye(2), "max_depth": -1}, "max_depth"),
        ({"z": np.eye(2), "max_depth": 2.5}, "max_depth"),
        ({"z": [["a", "b"]]}, "numbers|float"),
    ],
)
def test_a_mistake_is_reported_with_what_was_expected(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(HardmaxError, match=says):
        hm.equilibrium(**arguments)


def test_tensors_come_back_as_tensors() -> None:
    z = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.4, 0.2]])
    eq = hm.equilibrium(z)
    assert torch.equal(eq.limit, torch.tensor([[1.0, 0], [0, 1], [1, 0]], dtype=torch.float64))
    assert torch.equal(eq.labels, torch.tensor([0, 1, 0]))
    assert torch.equal(eq.points, eq.limit[:2])
    assert torch.equal(eq.at(1), torch.from_numpy(hm.equilibrium(z.numpy()).at(1)))
    assert eq.to_dict() == hm.equilibrium(z.numpy()).to_dict()
