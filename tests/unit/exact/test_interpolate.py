"""Interpolation: the final tokens are the target sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hardmax._errors import InputError, ShapeError
from hardmax.exact import ConflictError, Interpolation, PrecisionError, interpolate
from hardmax.exact.interpolate import hausdorff


def _data(n: int, d: int, longest: int = 5) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(n)
    sequences = [rng.normal(size=(int(rng.integers(longest, 12)), d)) for _ in range(n)]
    return sequences, [rng.normal(size=(int(rng.integers(1, longest + 1)), d)) for _ in sequences]


@pytest.mark.parametrize(
    ("n", "d", "size"), [(1, 2, 1), (2, 2, 1), (20, 2, 1), (100, 3, 1), (100, 3, 500), (60, 8, 1)]
)
def test_hausdorff_distance_is_below_1e_9(n: int, d: int, size: float) -> None:
    sequences, targets = _data(n, d)
    targets = [size * y for y in targets]
    net = interpolate(sequences, targets)
    assert net.error <= net.radius < 1e-9
    module = net.to_torch()
    with torch.no_grad():
        for z, y in zip(sequences, targets, strict=True):
            assert hausdorff(net.forward(z), y) < 1e-9
            assert hausdorff(module(torch.tensor(z)).numpy(), y) < 1e-9


def test_tokens_go_to_targets_in_order() -> None:
    sequences, targets = _data(10, 2)
    net = interpolate(sequences, targets)
    for z, y in zip(sequences, targets, strict=True):
        wanted = y[np.minimum(np.arange(len(z)), len(y) - 1)]
        assert np.abs(net.forward(z) - wanted).max() < 1e-9
    assert [len(p) for p in net.predict(sequences)] == [len(y) for y in targets]


def test_rational_forward_agrees() -> None:
    sequences, targets = _data(6, 2, 3)
    net = interpolate(sequences, targets)
    for z, y in zip(sequences, targets, strict=True):
        exact = np.array([[float(v) for v in row] for row in net.forward_exact(z)])
        assert hausdorff(exact, y) <= net.radius + 1e-15


def test_targets_of_very_different_size_keep_absolute_precision() -> None:
    sequences, targets = _data(30, 3)
    targets = [y * 10.0 ** (j % 5) for j, y in enumerate(targets)]
    assert interpolate(sequences, targets).radius < 2e-9


def test_equal_targets_and_equal_sequences_are_allowed() -> None:
    z = np.array([[0.0, 1], [2, 3], [4, 5]])
    y = np.array([[1.0, 1], [2, 2]])
    net = interpolate([z, z[::-1], z + 1], [y, y, y])
    for x in (z, z[::-1], z + 1):
        assert hausdorff(net.forward(x), y) < 1e-12


def test_altered_weights_data_or_targets_are_noticed() -> None:
    sequences, targets = _data(5, 2)
    net = interpolate(sequences, targets)
    assert net.verify(sequences, targets)
    assert not net.verify(sequences, [targets[0] + 1e-12, *targets[1:]])
    assert not net.verify([sequences[0] + 1e-12, *sequences[1:]], targets)
    assert not replace(net, radius=0.0).verify(sequences, targets)
    last = net.layers[-1]
    wrong = replace(last, b1=np.nextafter(last.b1, 9))
    assert not replace(net, layers=(*net.layers[:-1], wrong)).verify(sequences, targets)


def test_saved_interpolation_is_the_same(tmp_path: Path) -> None:
    sequences, targets = _data(8, 2)
    net = interpolate(sequences, targets)
    net.save(tmp_path / "net")
    assert Interpolation.load(tmp_path / "net").verify(sequences, targets)


def test_positions_tell_orders_apart_and_equal_tokens_too() -> None:
    a = np.random.default_rng(1).normal(size=(4, 3))
    sequences = [a, a[::-1], np.repeat(a[:1], 5, axis=0)]
    targets = [np.random.default_rng(j).normal(size=(4, 3)) for j in range(3)]
    with pytest.raises(ConflictError, match=r"equal sets: \(0, 1\). Use positions=True"):
        interpolate([a, a[::-1]], targets[:2])
    net = interpolate(sequences, targets, positions=True)
    for z, y in zip(sequences, targets, strict=True):
        assert hausdorff(net.forward(z), y) < 1e-12
    with pytest.raises(ConflictError, match=r"equal sets: \(0, 1\). Correct the targets"):
        interpolate([a, a], targets[:2], positions=True)


def test_targets_of_any_size_and_equal_targets_are_met() -> None:
    sequences, targets = _data(10, 2, 3)
    for size in (0.0, 1e-300, 1e-12, 1.0, 1e100, 1e149):
        goals = [size * y for y in targets]
        net = interpolate(sequences, goals)
        assert net.error <= net.radius <= 1e-10 * max(size, 1)
    one = [np.ones((1, 2))] * len(sequences)
    assert interpolate(sequences, one).error == 0
    with pytest.raises(InputError, match=r"at most 1e\+150"):
        interpolate(sequences, [1e160 * y for y in targets])
    with pytest.raises(ShapeError, match=r"target 0 must be an .* got other content"):
        interpolate(sequences, ["a"] * len(sequences))


def test_tensors_are_read_and_progress_is_told() -> None:
    sequences, targets = _data(5, 2, 3)
    said: list[tuple[str, int, int]] = []
    one = interpolate(sequences, targets, progress=lambda *x: said.append(x))
    goals = [torch.tensor(y, requires_grad=True) for y in targets]
    assert interpolate([torch.tensor(z) for z in sequences], goals).sha256 == one.sha256
    assert said[0][0] == "build"


def test_tokens_closer_than_every_grid_are_refused() -> None:
    z = np.array([[1.0, 0.0], [np.nextafter(1, 2), 0.0], [900.0, -900.0]])
    with pytest.raises(PrecisionError, match="float64 is too small for these data"):
        interpolate([z], [np.eye(3, 2)])


def test_mistakes_are_one_line() -> None:
    z = [np.array([[0.0, 1], [0, 1]]), np.array([[1.0, 1]])]
    with pytest.raises(InputError, match="target 0 has 2 points, more than the 1 distinct"):
        interpolate(z, [np.eye(2), np.ones((1, 2))])
    with pytest.raises(ShapeError, match=r"one array per sequence \(2\)"):
        interpolate(z, [np.ones((1, 2))])
    with pytest.raises(ShapeError, match=r"target 1 must be \(m, 2\)"):
        interpolate(z, [np.ones((1, 2)), np.ones((1, 3))])
    with pytest.raises(InputError, match="needs d >= 2"):
        interpolate([[1.0], [2.0]], [[1.0], [2.0]])
    with pytest.raises(ConflictError, match=r"equal sets: \(0, 1\)"):
        interpolate([z[1], z[1]], [np.ones((1, 2)), np.zeros((1, 2))])
