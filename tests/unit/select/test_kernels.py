"""The compiled kernels do what their Python source says, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from hardmax.select import cpu


def cloud(seed: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.integers(-3, 4, size=(n, d)).astype(float)  # many exact ties
    cuts = np.array([0, n // 3, n])
    lengths = np.diff(cuts)
    return z, np.repeat(cuts[:-1], lengths), np.repeat(cuts[1:], lengths), rng.normal(size=(d, d))


@pytest.mark.parametrize(("seed", "n", "d"), [(0, 9, 1), (1, 40, 2), (2, 75, 3)])
def test_the_search_equals_its_source(seed: int, n: int, d: int) -> None:
    z, first, stop, a = cloud(seed, n, d)
    q = cpu.asks(z, a)
    plain = np.empty_like(q)
    cpu._asks.py_func(z, a, plain)
    assert np.array_equal(q, plain)
    results = []
    for kernel in (cpu._top_two, cpu._top_two.py_func):
        best, second, arg = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
        kernel(q, z, first, stop, best, second, arg)
        results.append((best, second, arg))
    for compiled, source in zip(*results, strict=True):
        assert np.array_equal(compiled, source)
    scores = q @ z.T
    assert all(
        results[0][0][i] == pytest.approx(scores[i, first[i] : stop[i]].max()) for i in range(n)
    )


@pytest.mark.parametrize("seed", range(3))
def test_counting_and_filling_ties_equal_their_source(seed: int) -> None:
    z, first, stop, _ = cloud(seed, 30, 2)
    rows, tol = np.arange(30), np.full(30, 0.5)
    found, best, second = cpu.scan(z, z, first, stop, tol)
    counts, outside = np.zeros(30, dtype=np.int64), np.empty(30)
    cpu._count_ties.py_func(z, z, first, stop, best, tol, rows, counts, outside)
    assert np.array_equal(counts, found.counts)
    assert np.array_equal(outside[counts > 1], second[counts > 1])
    indices = np.empty_like(found.indices)
    cpu._fill_ties.py_func(z, z, first, stop, best, tol, rows, found.indptr, indices)
    assert np.array_equal(indices, found.indices)
    assert cpu._score.py_func(z, z, 3, 4) == z[3] @ z[4]


def test_norms_equal_their_source_and_numpy() -> None:
    x = np.random.default_rng(0).normal(size=(20, 5))
    plain = np.empty(20)
    cpu._norms.py_func(x, plain)
    assert np.array_equal(cpu.norms(x), plain)
    np.testing.assert_allclose(plain, np.linalg.norm(x, axis=1), rtol=1e-14)


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    z = np.random.default_rng(1).normal(size=(700, 3))
    first, stop = np.zeros(700, dtype=np.int64), np.full(700, 700)
    one = cpu.scan(z, z, first, stop, np.zeros(700))[0]
    monkeypatch.setattr(cpu, "_WORK_PER_THREAD", 1)
    many = cpu.scan(z, z, first, stop, np.zeros(700))[0]
    assert np.array_equal(one.indices, many.indices)
    assert np.array_equal(one.margin, many.margin)
