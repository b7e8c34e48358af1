"""Families of labelled sequences, easy and adversarial, as functions of a generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Data = tuple[list[np.ndarray], list[Any]]
Family = Callable[[np.random.Generator, int], Data]

SETS: dict[str, Family] = {}
"""Families whose sequences of different label have different sets of tokens."""
MEASURES: dict[str, Family] = {}
"""Families that frequencies alone tell apart."""


def sets(make: Family) -> Family:
    SETS[make.__name__] = make
    return make


def measures(make: Family) -> Family:
    MEASURES[make.__name__] = make
    return make


def _labels(rng: np.random.Generator, n: int, classes: int = 2) -> list[int]:
    y = rng.integers(0, classes, n)
    y[:2] = (0, 1)
    return [int(v) for v in y]


def _random(rng: np.random.Generator, n: int, d: int, longest: int) -> list[np.ndarray]:
    return [rng.normal(size=(int(rng.integers(1, longest + 1)), d)) for _ in range(n)]


@sets
def plane(rng: np.random.Generator, n: int) -> Data:
    return _random(rng, n, 2, 12), _labels(rng, n)


@sets
def many_dimensions(rng: np.random.Generator, n: int) -> Data:
    return _random(rng, n, 64, 6), _labels(rng, n)


@sets
def single_tokens(rng: np.random.Generator, n: int) -> Data:
    return _random(rng, n, 3, 1), _labels(rng, n)


@sets
def lengths_1_and_1000(rng: np.random.Generator, n: int) -> Data:
    sizes = [1 if i % 4 else 1000 for i in range(min(n, 24))]
    return [rng.normal(size=(m, 2)) for m in sizes], _labels(rng, len(sizes))


@sets
def interior_token(rng: np.random.Generator, n: int) -> Data:
    hull = 10 * rng.normal(size=(9, 2))
    inside = rng.normal(size=(n, 2)) * 0.01
    return [np.concatenate([hull, inside[i : i + 1]]) for i in range(n)], _labels(rng, n)


@sets
def nested(rng: np.random.Generator, n: int) -> Data:
    tokens = rng.normal(size=(n, 3))
    return [tokens[: i + 1] for i in range(n)], [i % 2 for i in range(n)]


@sets
def all_but_one(rng: np.random.Generator, n: int) -> Data:
    tokens = rng.normal(size=(n, 2))
    return [np.delete(tokens, i, axis=0) for i in range(n)], [i % 2 for i in range(n)]


@sets
def shared_but_one(rng: np.random.Generator, n: int) -> Data:
    common = rng.normal(size=(20, 4))
    own = rng.normal(size=(n, 4))
    return [np.concatenate([common, own[i : i + 1]]) for i in range(n)], _labels(rng, n)


@sets
def close_tokens(rng: np.random.Generator, n: int) -> Data:
    base = rng.normal(size=(12, 3))
    out = []
    for i in range(n):
        z = base.copy()
        z[i % 12] += 1e-6 * rng.normal(size=3)
        out.append(z)
    return out, _labels(rng, n)


@sets
def very_close_tokens(rng: np.random.Generator, n: int) -> Data:
    base = rng.normal(size=(6, 2))
    out = [base + np.eye(6, 1, -(i % 6)) * (1 + i) * 1e-9 for i in range(n)]
    return out, _labels(rng, n)


@sets
def lattice(rng: np.random.Generator, n: int) -> Data:
    out, seen = [], set()
    while len(out) < n:
        z = rng.integers(0, 12, size=(int(rng.integers(2, 9)), 2))
        key = frozenset(map(tuple, z.tolist()))
        if key not in seen:
            seen.add(key)
            out.append(z)
    return out, _labels(rng, n)


@sets
def hundred_labels(rng: np.random.Generator, n: int) -> Data:
    return _random(rng, n, 2, 8), _labels(rng, n, 100)


@sets
def own_labels(rng: np.random.Generator, n: int) -> Data:
    words = rng.normal(size=(30, 3))
    out, seen = [], set()
    while len(out) < n:
        pick = rng.choice(30, size=7, replace=False)
        if frozenset(pick.tolist()) not in seen:
            seen.add(frozenset(pick.tolist()))
            out.append(words[pick])
    return out, [f"label {i}" for i in range(n)]


@sets
def far_offset(rng: np.random.Generator, n: int) -> Data:
    return [z + 1e6 for z in _random(rng, n, 2, 8)], _labels(rng, n)


@sets
def far_offset_of_one_coordinate(rng: np.random.Generator, n: int) -> Data:
    return [z + np.array([0, 1e9, 0]) for z in _random(rng, n, 3, 8)], _labels(rng, n)


@sets
def constant_coordinates(rng: np.random.Generator, n: int) -> Data:
    z = [
        np.column_stack([np.full(len(x), 7e5), x, np.zeros(len(x))]) for x in _random(rng, n, 1, 8)
    ]
    return z, _labels(rng, n)


@sets
def unequal_scales(rng: np.random.Generator, n: int) -> Data:
    return [z * np.array([1e6, 1, 1e-6]) for z in _random(rng, n, 3, 8)], _labels(rng, n)


@sets
def large_numbers(rng: np.random.Generator, n: int) -> Data:
    return [z * 1e100 for z in _random(rng, n, 2, 8)], _labels(rng, n)


@sets
def small_numbers(rng: np.random.Generator, n: int) -> Data:
    return [z * 1e-100 for z in _random(rng, n, 2, 8)], _labels(rng, n)


@sets
def heavy_tails(rng: np.random.Generator, n: int) -> Data:
    return [rng.standard_cauchy(size=(5, 2)) for _ in range(n)], _labels(rng, n)


@sets
def one_outlier(rng: np.random.Generator, n: int) -> Data:
    z = _random(rng, n, 2, 8)
    z[0] = np.concatenate([z[0], [[1e7, -1e7]]])
    return z, _labels(rng, n)


@sets
def powers_of_two(rng: np.random.Generator, n: int) -> Data:
    x = 2.0 ** -np.arange(24)
    tokens = np.column_stack([x, x**2])
    out = [tokens[np.sort(rng.choice(24, 6, replace=False))] for _ in range(n)]
    return _unique_sets(out, rng)


@sets
def hypercube(rng: np.random.Generator, n: int) -> Data:
    return _unique_sets([rng.integers(0, 2, size=(5, 8)).astype(float) for _ in range(n)], rng)


@sets
def line_in_space(rng: np.random.Generator, n: int) -> Data:
    direction = rng.normal(size=5)
    return [np.outer(rng.normal(size=6), direction) for _ in range(n)], _labels(rng, n)


@sets
def circle(rng: np.random.Generator, n: int) -> Data:
    angles = [rng.uniform(0, 2 * np.pi, 7) for _ in range(n)]
    return [np.column_stack([np.cos(t), np.sin(t)]) for t in angles], _labels(rng, n)


@sets
def parity(rng: np.random.Generator, n: int) -> Data:
    bits = max(2, int(np.log2(n)))
    tokens = rng.normal(size=(bits + 1, 2))
    out, y = [], []
    for i in range(2**bits):
        held = [b for b in range(bits) if i >> b & 1]
        out.append(tokens[[bits, *held]])
        y.append(len(held) % 2)
    return out, y


@sets
def tight_clusters(rng: np.random.Generator, n: int) -> Data:
    centres = 5 * rng.normal(size=(4, 3))
    return [
        centres[rng.integers(0, 4, 6)] + 1e-4 * rng.normal(size=(6, 3)) for _ in range(n)
    ], _labels(rng, n)


@sets
def random_walks(rng: np.random.Generator, n: int) -> Data:
    return [np.cumsum(rng.normal(size=(30, 2)), axis=0) for _ in range(n)], _labels(rng, n)


@sets
def one_against_all(rng: np.random.Generator, n: int) -> Data:
    return _random(rng, n, 3, 10), [int(i == n // 2) for i in range(n)]


@sets
def equal_means(rng: np.random.Generator, n: int) -> Data:
    out = []
    for _ in range(n):
        z = np.round(rng.normal(size=(5, 2)) * 2**20) / 2**20
        out.append(np.concatenate([z, -z]))
    return out, _labels(rng, n)


@sets
def moved_in_opposite_ways(rng: np.random.Generator, n: int) -> Data:
    base = np.round(rng.normal(size=(8, 2)) * 2**10) / 2**10
    out = []
    for i in range(n):
        z = base.copy()
        step = (i + 1) * 2.0**-14
        z[i % 4] += step
        z[4 + i % 4] -= step
        out.append(z)
    return out, _labels(rng, n)


@sets
def integers_with_repeats(rng: np.random.Generator, n: int) -> Data:
    out = [rng.integers(-40, 40, size=(int(rng.integers(1, 30)), 3)) for _ in range(n)]
    return _unique_sets(out, rng)


@measures
def frequencies(rng: np.random.Generator, n: int) -> Data:
    a, b = rng.normal(size=(2, 3))
    return [np.stack([a] * (i + 1) + [b]) for i in range(n)], _labels(rng, n)


@measures
def frequencies_of_many(rng: np.random.Generator, n: int) -> Data:
    words = rng.normal(size=(6, 2))
    out, seen = [], set()
    while len(out) < n:
        counts = rng.integers(1, 6, 6)
        key = tuple(counts // np.gcd.reduce(counts))
        if key not in seen:
            seen.add(key)
            out.append(np.repeat(words, counts, axis=0))
    return out, _labels(rng, n)


@measures
def close_frequencies(rng: np.random.Generator, n: int) -> Data:
    a = rng.normal(size=2)
    b = a + 1e-6
    far = rng.normal(size=(3, 2)) * 3
    return [
        np.concatenate([far, np.repeat([a], i + 1, axis=0), np.repeat([b], n - i, axis=0)])
        for i in range(n)
    ], _labels(rng, n)


def _unique_sets(out: list[np.ndarray], rng: np.random.Generator) -> Data:
    seen: dict[frozenset[Any], np.ndarray] = {}
    for z in out:
        seen.setdefault(frozenset(map(tuple, np.asarray(z).tolist())), z)
    kept = list(seen.values())
    return kept, _labels(rng, len(kept))


ONE_DIMENSION: dict[str, Family] = {}


def one_dimension(make: Family) -> Family:
    ONE_DIMENSION[make.__name__] = make
    return make


@one_dimension
def line(rng: np.random.Generator, n: int) -> Data:
    return _random(rng, n, 1, 8), _labels(rng, n)


@one_dimension
def line_of_large_numbers(rng: np.random.Generator, n: int) -> Data:
    return [1e40 * z for z in _random(rng, n, 1, 8)], _labels(rng, n)


@one_dimension
def line_far_away(rng: np.random.Generator, n: int) -> Data:
    return [z + 1e5 for z in _random(rng, n, 1, 8)], _labels(rng, n)


@one_dimension
def line_with_equal_means(rng: np.random.Generator, n: int) -> Data:
    out = [np.concatenate([z, -z]) for z in _random(rng, n, 1, 5)]
    return out, _labels(rng, n, 3)
