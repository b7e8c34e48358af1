"""Classes of equal rows against the sorting of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hardmax.select import equal
from hardmax.select.equal import equal_rows


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_classes_are_those_of_numpy_numbered_by_first_appearance(kind: Any) -> None:
    for seed in range(20):
        r = np.random.default_rng(seed)
        x = r.integers(-1, 2, size=(int(r.integers(1, 60)), 3)).astype(kind) * kind(0.1)
        first, class_of = equal_rows(x)
        _, index, inverse = np.unique(x + 0, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(index)
        assert np.array_equal(first, index[order])
        assert np.array_equal(class_of, np.argsort(order)[inverse.reshape(-1)])


def test_minus_zero_is_zero() -> None:
    assert equal_rows(np.array([[0.0, 1.0], [-0.0, 1.0]]))[1].tolist() == [0, 0]


def test_rows_are_equal_within_their_stretch_only() -> None:
    x = np.array([[1.0], [1.0], [2.0], [1.0], [2.0], [2.0]])
    first, class_of = equal_rows(x, np.array([0, 3, 3, 6]))
    assert first.tolist() == [0, 2, 3, 4]
    assert class_of.tolist() == [0, 0, 1, 2, 3, 3]


def test_the_hashing_equals_its_source() -> None:
    bits = np.random.default_rng(0).integers(0, 3, size=(9, 1)).astype(np.uint32)
    out = []
    for run in (equal._classes, equal._classes.py_func):
        first, class_of = np.empty(9, dtype=np.int64), np.empty(9, dtype=np.int64)
        with np.errstate(over="ignore"):
            m = run(bits, np.array([0, 9]), np.empty(32, dtype=np.int64), first, class_of)
        out.append((m, first[:m].tolist(), class_of.tolist()))
    assert out[0] == out[1]
