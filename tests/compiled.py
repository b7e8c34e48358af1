"""Small calls that reach the compiled loops; their numbers, for `test_compiled`.

`python -m tests.compiled FILE` writes the numbers, as arrays by name.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import hardmax as hm
from hardmax.dynamics.fused import pool_ids
from hardmax.explain.contributions import explain
from hardmax.explain.removal import Removal
from hardmax.lab._groups import count_near, groups_of
from hardmax.learn.optim import LazyAdam
from hardmax.select import select
from hardmax.select.equal import equal_rows
from hardmax.select.ragged import select_ragged
from hardmax.select.rows import select_rows
from hardmax.select.search import search_cloud
from hardmax.select.shards import _scores
from tests.unit.explain.models import random_bundle, some_text

Case = Callable[[np.random.Generator], Any]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def _lattice(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.integers(-3, 4, (n, d)) / 2.0


@case
def searches(rng: np.random.Generator) -> Any:
    """Every path on a cloud that is half a lattice, with ties; few keys, and many blocks."""
    found: list[Any] = []
    for path, m, n, d in (
        ("brute", 30, 30, 3), ("brute", 26, 140, 2), ("hull", 150, 150, 2), ("hull", 100, 100, 3),
        ("sorted", 26, 300, 2), ("twostage", 26, 270, 2),
    ):  # fmt: skip
        k = np.concatenate([_lattice(rng, n // 2, d), rng.normal(size=(n - n // 2, d))])
        found.append(search_cloud(k[:: n // m][:m] + 0.0, k, np.full(m, 1e-9), path))
    for dtype in (np.float64, np.float32):
        z = _lattice(rng, 30, 2).astype(dtype)
        found += [select(z, A, tie_tol=1e-9) for A in (None, rng.normal(size=(2, 2)))]
    return found


@case
def batches(rng: np.random.Generator) -> Any:
    """Several sequences in one call."""
    z, offsets = _lattice(rng, 60, 2), np.array([0, 25, 25, 60])
    A, hidden = rng.normal(size=(2, 2)), rng.random(60) < 0.4
    wide = select_ragged(rng.normal(size=(90, 2)), np.array([0, 90]), tie_tol=1e-12)
    return [
        select(z, None, np.array([0, 5, 60])),
        select(z.astype(np.float32), A, np.array([0, 30, 60])),
        select_ragged(z, offsets, A=A, hidden=hidden), wide,
        select_rows(z, A[None], offsets, causal=True), select_rows(z, A[None], offsets),
        _pairs(z), equal_rows(z), *_exact(rng, A),
    ]  # fmt: skip


def _exact(rng: np.random.Generator, A: np.ndarray) -> list[Any]:
    """No tolerance: keys that float64 cannot tell apart, and what two matrices make of tokens."""
    z = np.nextafter(_lattice(rng, 12, 2) / 3, rng.choice([-9.0, 9.0], size=(12, 2)))
    pair = A[:1], rng.normal(size=(1, 2))
    return [select(z), select(z, np.outer(A[0], A[1])), select(z * 1e-200, pair)]


def _pairs(z: np.ndarray) -> np.ndarray:
    out, rows = np.empty(9), np.arange(9)
    _scores(z, z, rows, rows[::-1].copy(), out)
    return out


@case
def runs(rng: np.random.Generator) -> Any:
    z = rng.normal(size=(20, 2))
    run, eq = hm.simulate(z, 6, alpha=0.5), hm.equilibrium(z, alpha=0.3)
    E, ids = _lattice(rng, 12, 4), rng.integers(0, 12, (5, 40))
    many = pool_ids(rng.normal(size=(30, 2)), np.arange(30)[None], 4, gamma=0.4)
    far = groups_of(z, 0.5), count_near(z, 0.5)
    return [run.zs, eq.limit, eq.settled_at, pool_ids(E, ids, 3, gamma=0.5, heads=2), many, far]


@case
def trainings(rng: np.random.Generator) -> Any:
    texts = ["good and warm", "cold and bad", "fine food in the end", "no use at all"] * 2
    kinds = {"ngrams": 2, "min_count": 1, "epochs": 2, "batch_size": 4, "members": 1}
    found: list[Any] = []
    for more in ({}, {"scope": "sentence", "depth": 1}):
        clf = hm.HardmaxClassifier(4, 2, random_state=1, **kinds, **more).fit(texts, [1, 0] * 4)
        found.append(clf.decision_function(texts))
    adam = LazyAdam(rng.normal(size=(4, 2)), decay=0.9)
    for rows in ([0, 1], [1, 3], [2]):
        adam.step(np.array(rows), rng.normal(size=(len(rows), 2)), 0.1)
    return [*found, adam.settle(), adam.E]


@case
def explanations(rng: np.random.Generator) -> Any:
    found: list[Any] = []
    for seed, sentences, integers, scores in (
        (0, False, False, False), (1, True, True, False), (2, False, True, True),
        (3, False, False, True),
    ):  # fmt: skip
        bundle = random_bundle(
            seed, ngrams=3, sentences=sentences, integers=integers, scores=scores
        )
        text = some_text(rng, 14)
        shown = explain(bundle, text)
        removal = Removal(bundle, text, "words")
        sets = [tuple(u for u in range(len(removal)) if rng.random() < 0.3) for _ in range(8)]
        found += [removal.logits([*sets, ()]), shown.stability_radius, shown.logit]
        found += [[share for _, share in shown.ranking()], json.dumps(shown.to_dict(), default=str)]
    return found


@case
def constructions(rng: np.random.Generator) -> Any:
    found: list[Any] = []
    sequences = [_lattice(rng, int(rng.integers(1, 6)), 2) for _ in range(10)]
    labels = [len({tuple(row) for row in z.tolist()}) % 2 for z in sequences]
    for method in ("mean", "bumps", "tree", "chain"):
        for dtype in ("float64", "float32"):
            net = hm.construct(sequences, labels, method=method, dtype=dtype, random_state=0)
            found += [*net.outputs(sequences), net.certificate]
    soft = net.softmax(net.beta_star(sequences), sequences, labels)
    found += [*soft.outputs(sequences), soft.certificate]
    seq = hm.interpolate([z[:3] for z in sequences[:3]], [z[:1] for z in sequences[3:6]])
    return [*found, repr(seq)]


def numbers(value: Any) -> list[np.ndarray]:
    """All arrays and plain values in nested results, one after the other."""
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    if dataclasses.is_dataclass(value):
        return numbers([getattr(value, field.name) for field in dataclasses.fields(value)])
    if isinstance(value, list | tuple):
        return [array for part in value for array in numbers(part)]
    return [np.asarray(str(value) if value is None else value)]


def compute() -> dict[str, np.ndarray]:
    """The numbers of all cases by name."""
    torch.set_num_threads(1)
    return {
        f"{name} {k}": array
        for name, function in CASES.items()
        for k, array in enumerate(numbers(function(np.random.default_rng(len(name)))))
    }


if __name__ == "__main__":
    with np.errstate(over="ignore"):  # hashes wrap around
        np.savez(Path(sys.argv[1]), **compute())
