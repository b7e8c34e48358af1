"""The vector code does what its plain source says, to the last bit."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numba import njit

from hardmax.select import _vector, brute, measure
from hardmax.select._vector import TILE, lanes

TYPES = (np.float32, np.float64)


@njit
def run_fma(a: Any, b: Any, c: Any) -> Any:
    return _vector.fma(a, b, c)


@njit
def run_max(q: Any, k: Any, groups: int, d: int, out: Any) -> None:
    _vector.block_max(q, 0, k, 0, groups, d, out, 0)


@njit
def run_find(q: Any, o: int, s: int, k: Any, n: int, d: int, low: Any, rest: Any) -> Any:
    return _vector.block_find(q, o, s, k, 0, n, d, low, rest)


@njit
def run_two(q: Any, k: Any, n: int, d: int, best: Any, second: Any, at: Any) -> None:
    _vector.top_two(q, 0, k, 0, n, d, best, second, at, 0)


@njit
def run_scores(q: Any, o: int, s: int, k: Any, groups: int, d: int, out: Any) -> None:
    _vector.scores_of(q, o, s, k, 0, groups, d, out)


def packed(seed: int, kind: Any, d: int, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """A tile of queries and groups of keys: thirds of small integers, so that many scores tie."""
    r = np.random.default_rng(seed)
    size = TILE * lanes(kind)
    return (
        r.integers(-3, 4, size * d).astype(kind) / kind(3),
        r.integers(-3, 4, groups * lanes(kind) * d).astype(kind) / kind(3),
    )


def test_fma_rounds_once() -> None:
    r = np.random.default_rng(0)
    for a, b, c in r.normal(size=(200, 3)):
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        assert run_fma(a, b, c) == _vector.fma(a, b, c) == float(exact)
    a = 1 + 2.0**-30
    assert run_fma(a, a, -1 - 2.0**-29) == 2.0**-60  # lost when the product is rounded first


def test_fma_rounds_once_in_single_precision_too() -> None:
    r = np.random.default_rng(0)
    for a, b, c in r.normal(size=(200, 3)).astype(np.float32):
        assert run_fma(a, b, c) == _vector.fma(a, b, c)
    one, tiny = np.float32(1), np.float32(2.0**-60)
    half = one + np.float32(2.0**-12)  # half * half = 1 + 2^-11 + 2^-24, a tie in single precision
    for c, wanted in ((tiny, one + 2.0**-11 + 2.0**-23), (-tiny, one + 2.0**-11)):
        assert run_fma(half, half, c) == _vector.fma(half, half, c) == wanted


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_search_of_a_block_equals_its_source(kind: Any, d: int) -> None:
    q, k = packed(d, kind, d, 3)
    size = TILE * lanes(kind)
    best, plain = np.empty(size, kind), np.empty(size, kind)
    run_max(q, k, 3, d, best)
    _vector.block_max(q, 0, k, 0, 3, d, plain, 0)
    assert np.array_equal(best, plain)
    for n in (1, lanes(kind), 2 * lanes(kind) + 3):
        for lane in range(0, size, 5):
            for low in (best[lane], best[lane] - kind(2)):
                a, b = np.empty(2, kind), np.empty(2, kind)
                found = run_find(q, lane, size, k, n, d, low, a)
                assert found == _vector.block_find(q, lane, size, k, 0, n, d, low, b)
                assert np.array_equal(a, b)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("n", [1, 3, 7, 17])
def test_the_search_among_few_keys_equals_its_source(kind: Any, n: int) -> None:
    q, k = packed(n, kind, 2, 3)
    size = TILE * lanes(kind)
    index = np.int32 if kind == np.float32 else np.int64
    results = []
    for run in (run_two, lambda q, k, *rest: _vector.top_two(q, 0, k, 0, *rest, 0)):
        out = np.empty(size, kind), np.empty(size, kind), np.empty(size, index)
        run(q, k, n, 2, *out)
        results.append(out)
    for compiled, source in zip(*results, strict=True):
        assert np.array_equal(compiled, source)


@pytest.mark.parametrize("kind", TYPES)
def test_the_scores_of_groups_equal_their_source(kind: Any) -> None:
    q, k = packed(9, kind, 3, 4)
    a, b = np.empty(4 * lanes(kind), kind), np.empty(4 * lanes(kind), kind)
    run_scores(q, 7, TILE * lanes(kind), k, 4, 3, a)
    _vector.scores_of(q, 7, TILE * lanes(kind), k, 0, 4, 3, b)
    assert np.array_equal(a, b)


@pytest.mark.parametrize("n", [1, 5, 96, 97, 128, 129, 300])
@pytest.mark.parametrize("kind", TYPES)
def test_brute_force_finds_the_first_best_key_and_the_runner_up(n: int, kind: Any) -> None:
    r = np.random.default_rng(n)
    k, q = (r.integers(-4, 5, size=(m, 3)).astype(kind) for m in (n, 70))
    best, second, at = brute.search(q, brute.pack(k), n)
    scores = q @ k.T
    assert np.array_equal(best, scores.max(axis=1))
    assert np.array_equal(at, scores.argmax(axis=1))
    runner = np.sort(scores, axis=1)[:, -2] if n > 1 else np.full(70, -np.inf)
    assert np.array_equal(second, runner)


def test_packing_equals_its_source() -> None:
    k = np.random.default_rng(1).normal(size=(19, 3))
    plain = np.empty_like(brute.pack(k))
    brute.pack_into.py_func(k, 0, 19, plain)
    assert np.array_equal(brute.pack(k), plain)
    w = lanes(np.float64)
    assert all(plain[(j // w * 3 + c) * w + j % w] == k[j, c] for j in range(19) for c in range(3))


def test_lengths_and_asks_equal_numpy() -> None:
    r = np.random.default_rng(0)
    x, a = r.normal(size=(20, 5)), r.normal(size=(5, 5))
    np.testing.assert_allclose(measure.norms(x), np.linalg.norm(x, axis=1), rtol=1e-14)
    np.testing.assert_allclose(measure.asks(x, a), x @ a.T, rtol=1e-13, atol=1e-13)
    assert measure.asks(x, None) is x
