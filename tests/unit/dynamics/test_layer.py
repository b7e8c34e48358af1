"""One layer: what it computes, what it accepts, what it gives back."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from hardmax import HardmaxError, layer
from hardmax._errors import InputError, ShapeError
from tests import oracle

TRIANGLE = [[1.0, 0.0], [0.0, 1.0], [0.4, 0.2]]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# ------------------------------------------------------------------ the formula


@pytest.mark.parametrize("n", [1, 2, 7, 65, 130])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_layer_equals_the_loop_over_fractions(n: int, d: int) -> None:
    z = rng(n * 10 + d).normal(size=(n, d))
    expected = oracle.trajectory(z, 1, None, 0.7)[1]
    assert np.allclose(layer(z, alpha=0.7), np.array(expected, dtype=float), rtol=0, atol=1e-14)


def test_ties_are_averaged_and_duplicates_count() -> None:
    z = [[2, 0], [1, 0], [2, 0], [0, 0], [2, 1]]
    expected = np.array(oracle.trajectory(z, 1, gamma=0.5)[1], dtype=float)
    assert np.array_equal(expected[1], [1.5, 1 / 6])
    assert np.allclose(layer(z, gamma=0.5), expected, rtol=0, atol=1e-15)


def test_gamma_is_alpha_over_one_plus_alpha() -> None:
    z = rng().normal(size=(20, 3))
    assert np.array_equal(layer(z, alpha=3.0), layer(z, gamma=0.75))
    assert np.array_equal(layer(z, alpha=Fraction(1, 3)), layer(z, gamma=0.25))


def test_gamma_one_puts_every_token_on_the_mean_of_its_choices() -> None:
    z = rng(1).normal(size=(30, 2))
    sets = oracle.chosen(oracle.fractions(z), oracle.matrix(None, 2))
    means = np.array([z[list(js)].mean(axis=0) for js in sets])
    assert np.allclose(layer(z, gamma=1), means, rtol=0, atol=1e-15)


def test_gamma_as_a_multiple_of_the_identity_is_the_number() -> None:
    z = rng(2).normal(size=(25, 4))
    assert np.allclose(layer(z, gamma=0.3 * np.eye(4)), layer(z, gamma=0.3), rtol=0, atol=1e-15)


def test_a_matrix_step_acts_on_the_difference() -> None:
    z, P = rng(3).normal(size=(10, 2)), np.array([[0.6, 0.2], [0.0, 0.7]])
    mean = layer(z, gamma=1)
    assert np.allclose(layer(z, gamma=P), z + (mean - z) @ P.T, rtol=0, atol=1e-14)


def test_the_row_of_the_scores_asks() -> None:
    A = np.array([[0.0, 1.0], [0.0, 0.0]])
    assert np.array_equal(layer(np.eye(2), A=A, gamma=0.5), [[0.75, 0.25], [0.5, 0.5]])


def test_low_rank_factors_mean_their_product() -> None:
    r = rng(4)
    for rank in (1, 2, 5):
        U, V = r.normal(size=(rank, 5)), r.normal(size=(rank, 5))
        z = r.normal(size=(40, 5))
        assert np.allclose(layer(z, A=(U, V)), layer(z, A=U.T @ V), rtol=0, atol=1e-13)


def test_heads_with_a_shared_matrix_split_the_coordinates() -> None:
    r = rng(5)
    z, A = r.normal(size=(30, 6)), r.normal(size=(2, 2))
    parts = [layer(z[:, c : c + 2], A=A) for c in (0, 2, 4)]
    assert np.array_equal(layer(z, A=A, heads=3), np.concatenate(parts, axis=1))


def test_heads_with_their_own_matrices_are_separate_layers() -> None:
    r = rng(6)
    z, As = r.normal(size=(30, 6)), r.normal(size=(3, 2, 2))
    parts = [layer(z[:, 2 * h : 2 * h + 2], A=As[h]) for h in range(3)]
    assert np.array_equal(layer(z, A=list(As), heads=3), np.concatenate(parts, axis=1))
    assert np.array_equal(layer(z, A=As, heads=3), np.concatenate(parts, axis=1))


def test_heads_accept_low_rank_pairs() -> None:
    r = rng(7)
    z = r.normal(size=(20, 4))
    pairs = [(r.normal(size=(1, 2)), r.normal(size=(1, 2))) for _ in range(2)]
    whole = [U.T @ V for U, V in pairs]
    assert np.allclose(layer(z, A=pairs, heads=2), layer(z, A=whole, heads=2), rtol=0, atol=1e-13)


def test_without_normalisation_the_mean_is_added() -> None:
    z = rng(8).normal(size=(15, 3))
    plain = layer(z, alpha=0.6, normalization="none")
    assert np.allclose(plain, 1.6 * layer(z, alpha=0.6), rtol=0, atol=1e-14)


def test_layernorm_leaves_coordinates_of_mean_zero_and_variance_one() -> None:
    z = rng(3).normal(size=(20, 5))
    out = layer(z, alpha=0.6, normalization="layernorm")
    plain = layer(z, alpha=0.6, normalization="none")
    assert np.allclose(out.mean(axis=1), 0, atol=1e-15)
    assert np.allclose(out.std(axis=1), 1, rtol=1e-14)
    expected = (plain - plain.mean(axis=1, keepdims=True)) / plain.std(axis=1, keepdims=True)
    assert np.allclose(out, expected, rtol=1e-13)
    equal = layer([[0.1, 0.1, 0.1], [-2.0, -2.0, -2.0]], normalization="layernorm")
    assert np.array_equal(equal, np.zeros((2, 3)))


def test_sphere_normalisation_leaves_tokens_of_length_one() -> None:
    z = rng(9).normal(size=(15, 3))
    round_ = layer(z, alpha=0.6, normalization="sphere")
    plain = layer(z, alpha=0.6, normalization="none")
    assert np.allclose(np.linalg.norm(round_, axis=1), 1, rtol=0, atol=1e-14)
    assert np.allclose(round_ * np.linalg.norm(plain, axis=1, keepdims=True), plain)


def test_the_tolerance_widens_the_chosen_set() -> None:
    z = np.array([[1.0, 1.0], [1.0, 1.0 - 1e-6], [0.5, 0.0]])
    sharp, wide = layer(z, gamma=1), layer(z, gamma=1, tie_tol=1e-3)
    assert np.array_equal(sharp[2], z[:2].mean(axis=0))  # equal first coordinates: a true tie
    assert np.array_equal(sharp[1], z[0])
    assert np.allclose(wide[1], z[:2].mean(axis=0), rtol=0, atol=1e-12)


# ------------------------------------------------------------------ what goes in and out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numpy_in_gives_numpy_of_the_same_type(dtype: Any) -> None:
    out = layer(np.array(TRIANGLE, dtype=dtype))
    assert isinstance(out, np.ndarray)
    assert out.dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_in_gives_torch_of_the_same_type_and_device(dtype: torch.dtype) -> None:
    z = torch.tensor(TRIANGLE, dtype=dtype)
    out = layer(z)
    assert isinstance(out, torch.Tensor)
    assert out.dtype == dtype
    assert out.device == z.device
    assert np.array_equal(out.numpy(), layer(z.numpy()))


def test_lists_and_integers_become_float64() -> None:
    assert layer(TRIANGLE).dtype == np.float64
    assert layer([[1, 0], [0, 2]]).dtype == np.float64
    assert np.array_equal(layer(TRIANGLE), layer(np.array(TRIANGLE)))


def test_fractions_are_accepted() -> None:
    z = [[Fraction(1, 3), Fraction(1)], [Fraction(-1), Fraction(2, 7)]]
    assert np.array_equal(layer(z), layer(np.array(z, dtype=float)))


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_arguments_are_never_changed(library: str) -> None:
    make = torch.tensor if library == "torch" else np.array
    z, A = make(rng(1).normal(size=(2, 6, 2))), make([[2.0, 0.5], [0.5, 1.0]])
    mask = make([[True] * 6, [True] * 4 + [False] * 2])
    before = [x.tolist() for x in (z, A, mask)]
    for kind in ("rescale", "none", "sphere", "layernorm"):
        for temperature in (0.0, 0.5):
            layer(z, A=A, mask=mask, normalization=kind, temperature=temperature)
    assert [x.tolist() for x in (z, A, mask)] == before


def test_the_result_does_not_share_memory_with_the_input() -> None:
    z = np.array([[1.0, 2.0]])
    out = layer(z)
    out[:] = 7
    assert z.tolist() == [[1.0, 2.0]]


def test_a_batch_equals_its_systems_one_by_one() -> None:
    zs = rng(2).normal(size=(5, 9, 3))
    assert np.array_equal(layer(zs), np.stack([layer(z) for z in zs]))


def test_padding_changes_nothing_and_is_given_back_as_it_was() -> None:
    r = rng(3)
    z = r.normal(size=(2, 8, 3))
    mask = np.array([[True] * 5 + [False] * 3, [False, True] * 4])
    z[~mask] = 1e6
    out = layer(z, mask=mask)
    for row, keep, got in zip(z, mask, out, strict=True):
        assert np.array_equal(got[keep], layer(row[keep]))
        assert np.array_equal(got[~keep], row[~keep])


def test_padding_may_hold_anything_even_nan() -> None:
    z = np.array([[1.0, 0.0], [0.0, 2.0], [np.nan, np.inf]])
    for temperature in (0.0, 0.3):
        out = layer(z, mask=[True, True, False], temperature=temperature)
        assert np.array_equal(out[:2], layer(z[:2], temperature=temperature))


# ------------------------------------------------------------------ gradients


def test_the_gradient_equals_finite_differences_away_from_ties() -> None:
    r = rng(5)
    z, A = r.normal(size=(9, 3)), r.normal(size=(3, 3))
    weight = r.normal(size=(9, 3))

    def value(x: np.ndarray[Any, Any]) -> float:
        return float((layer(x, A=A, alpha=0.8) * weight).sum())

    x = torch.tensor(z, requires_grad=True)
    (layer(x, A=A, alpha=0.8) * torch.tensor(weight)).sum().backward()
    step = 1e-6
    for at in np.ndindex(*z.shape):
        move = np.zeros_like(z)
        move[at] = step
        slope = (value(z + move) - value(z - move)) / (2 * step)
        assert x.grad is not None
        assert float(x.grad[at]) == pytest.approx(slope, abs=1e-7)


def test_the_gradient_at_a_tie_is_that_of_the_mean() -> None:
    x = torch.tensor([[1.0, 1.0], [1.0, -1.0], [0.5, 0.0]], requires_grad=True)
    layer(x, gamma=0.5)[2, 1].backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[0, 0.25], [0, 0.25], [0, 0.5]]


@pytest.mark.parametrize("normalization", ["rescale", "none", "sphere", "layernorm"])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_gradients_pass_the_check_of_torch(normalization: str, temperature: float) -> None:
    x = torch.tensor(rng(6).normal(size=(2, 5, 2)), requires_grad=True)
    mask = torch.tensor([[True] * 5, [True, True, False, True, True]])

    def run(z: torch.Tensor) -> Any:
        return layer(z, mask=mask, normalization=normalization, temperature=temperature)

    assert torch.autograd.gradcheck(run, (x,))


# ------------------------------------------------------------------ temperature


def test_a_tempered_layer_is_the_softmax_mean() -> None:
    r = rng(8)
    z, A, heat = r.normal(size=(12, 3)), r.normal(size=(3, 3)), 0.4
    scores = (z @ A.T) @ z.T / heat
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    expected = z + 0.5 * (weights @ z - z)
    assert np.allclose(layer(z, A=A, temperature=heat), expected, rtol=0, atol=1e-13)


def test_tempered_layers_tend_to_the_hard_layer() -> None:
    z = rng(9).normal(size=(20, 3))
    hard = layer(z)
    gaps = [np.abs(layer(z, temperature=t) - hard).max() for t in (1.0, 1e-1, 1e-2, 1e-4, 1e-6)]
    assert all(a > b for a, b in pairwise(gaps[:-1]))
    assert gaps[-1] < 1e-12


def test_tempered_ties_tend_to_the_mean_of_the_tie() -> None:
    z = np.array([[1.0, 1.0], [1.0, -1.0], [0.5, 0.0]])
    assert np.allclose(layer(z, temperature=1e-6), layer(z), rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_tempered_layers_of_any_size_are_finite(scale: float) -> None:
    z = rng(10).normal(size=(6, 2)) * scale
    assert np.isfinite(layer(z, temperature=1.0)).all()


def test_tempered_layers_of_huge_tokens_are_the_hard_layer() -> None:
    z = rng(11).normal(size=(6, 2)) * 1e150
    assert np.allclose(layer(z, temperature=1.0), layer(z), rtol=1e-12, atol=0)


# ------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"z": [1.0, 2.0]}, ShapeError, r"\(n, d\)"),
        ({"z": np.zeros((0, 2))}, ShapeError, "at least one token"),
        ({"z": [[1.0, float("nan")]]}, InputError, "finite"),
        ({"z": [[1.0, 2.0], [3.0]]}, HardmaxError, "different lengths"),
        ({"z": TRIANGLE, "alpha": 0}, InputError, "alpha"),
        ({"z": TRIANGLE, "alpha": -1.0}, InputError, "alpha"),
        ({"z": TRIANGLE, "alpha": float("nan")}, InputError, "alpha"),
        ({"z": TRIANGLE, "gamma": 0}, InputError, r"\(0, 1\]"),
        ({"z": TRIANGLE, "gamma": 1.5}, InputError, r"\(0, 1\]"),
        ({"z": TRIANGLE, "gamma": np.eye(3)}, ShapeError, "gamma"),
        ({"z": TRIANGLE, "A": np.eye(3)}, ShapeError, r"\(2, 2\)"),
        ({"z": TRIANGLE, "A": np.full((2, 2), np.inf)}, InputError, "finite"),
        ({"z": TRIANGLE, "A": (np.ones((1, 2)), np.ones((2, 2)))}, ShapeError, "factors"),
        ({"z": TRIANGLE, "heads": 3}, ShapeError, "divide"),
        ({"z": TRIANGLE, "heads": 0}, InputError, "heads"),
        ({"z": TRIANGLE, "mask": [True, True]}, ShapeError, "mask"),
        ({"z": TRIANGLE, "mask": [1, 1, 0]}, InputError, "boolean"),
        ({"z": TRIANGLE, "mask": [False] * 3}, InputError, "at least one"),
        ({"z": TRIANGLE, "normalization": "batchnorm"}, InputError, "rescale"),
        ({"z": TRIANGLE, "temperature": -1.0}, InputError, "temperature"),
        ({"z": TRIANGLE, "tie_tol": -1.0}, InputError, "tie_tol"),
        ({"z": TRIANGLE, "gamma": 1, "normalization": "none"}, InputError, "gamma"),
        ({"z": np.array([["a"]])}, InputError, "numbers|float32"),
        ({"z": torch.ones(2, 2, dtype=torch.float16)}, InputError, "float32 or float64"),
    ],
)
def test_a_mistake_is_reported_with_what_was_expected(
    arguments: dict[str, Any], kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says) as caught:
        layer(**arguments)
    assert isinstance(caught.value, HardmaxError)
    assert isinstance(caught.value, ValueError)
    assert not re.search(r"Traceback|site-packages", str(caught.value))
