"""Constructed networks: families, sizes and times; reviews, softmax, interpolation.

python benchmarks/bench_exact.py                families at N = 200, interpolation, softmax
python benchmarks/bench_exact.py --large        random data to N = 10,000
python benchmarks/bench_exact.py --imdb         reviews to N = 25,000, as `hardmax data` keeps them
add --record to write the tables into RESULTS.md
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "src")]

from common import report, table  # noqa: E402
from tests.unit.exact.families import MEASURES, ONE_DIMENSION, SETS  # noqa: E402

from hardmax.exact import construct, interpolate  # noqa: E402
from hardmax.exact.interpolate import hausdorff  # noqa: E402
from hardmax.learn.data import imdb  # noqa: E402

HEADER = [
    "data", "method", "N", "attention", "neurons", "parameters", "bound", "proof", "deviation",
    "build + proof, s (CPU)", "predict, s (CPU)", "labels",
]  # fmt: skip


def timed(work: Callable[[], Any]) -> tuple[Any, str]:
    """The result, and the seconds it took: by the clock, and of the processor."""
    start, used = time.perf_counter(), time.process_time()
    result = work()
    return result, f"{time.perf_counter() - start:.1f} ({time.process_time() - used:.1f})"


def row(name: str, sequences: list[Any], labels: Any, method: str) -> list[object]:
    """One network: built, proved, run again on the same data."""
    try:
        net, built = timed(lambda: construct(sequences, labels, method=method))
    except ValueError as error:
        short = str(error).split(";")[0][:60]
        return [name, method, len(sequences), *["-"] * 4, short, "-", "-", "-", "refused"]
    predicted, ran = timed(lambda: net.predict(sequences))
    right = predicted.tolist() == list(labels)
    proof, counts = net.certificate, net.counts
    kind = f"{proof.bits_used:.1f} bits" if proof.kind == "exact" else f"{proof.radius:.1e}"
    return [
        name, f"{method} ({net.method})" if method == "auto" else method, f"{counts.sequences:,}",
        counts.attention_layers, f"{counts.neurons:,}", f"{counts.parameters:,}",
        f"{counts.bounds['parameters']:,}", kind, f"{proof.deviation:.0e}", built, ran,
        "right" if right else "WRONG",
    ]  # fmt: skip


def families(n: int) -> Iterator[list[object]]:
    """Every family of the tests, by every method that it allows."""
    for name, make in {**SETS, **MEASURES, **ONE_DIMENSION}.items():
        sequences, labels = make(np.random.default_rng(0), n)
        methods = ("mean", "bumps", "tree", "chain") if name in SETS else ("mean", "bumps")
        for method in methods:
            yield row(name, sequences, labels, method)


def random_data(sizes: list[tuple[int, int, int, int]]) -> Iterator[list[object]]:
    """Random tokens: (N, longest, d, classes)."""
    for n, longest, d, classes in sizes:
        rng = np.random.default_rng(0)
        sequences = [rng.normal(size=(rng.integers(1, longest + 1), d)) for _ in range(n)]
        labels = rng.integers(0, classes, n).tolist()
        for method in ("mean", "tree"):
            yield row(
                f"random, n <= {longest}, d = {d}, {classes} labels", sequences, labels, method
            )


def reviews(sizes: list[int]) -> Iterator[list[object]]:
    """Reviews of the training part, none twice, half of each label."""
    texts, labels = imdb("official", "train")
    found = dict(zip(texts, labels, strict=True))
    sides = [[t for t, y in found.items() if y == side] for side in sorted(set(labels))]
    for n in sizes:
        chosen = [t for side in sides for t in side[: n // 2]]
        for method in ("tree", "mean"):
            yield row("reviews, d = 64", chosen, [found[t] for t in chosen], method)


def temperatures(n: int) -> Iterator[list[object]]:
    """The proved inverse temperature of trees, and the smallest that works."""
    for name in ("plane", "shared_but_one", "lattice", "hundred_labels", "all_but_one"):
        sequences, labels = SETS[name](np.random.default_rng(0), n)
        net = construct(sequences, labels, method="tree")
        star = net.beta_star(sequences)
        soft = net.softmax(star, sequences, labels)
        right = soft.predict(sequences).tolist() == labels
        least = net.smallest_beta(sequences, labels)
        yield [
            name, len(sequences), net.counts.attention_layers, f"{star:.1f}", f"{least:.1f}",
            "proved" if soft.certificate.proved else soft.certificate.reason,
            "right" if right else "WRONG",
        ]  # fmt: skip


def interpolations() -> Iterator[list[object]]:
    """Targets of 1 to 5 points (in turn), or as many as the input has distinct tokens."""
    for n, d, most in ((100, 3, 5), (1000, 3, 5), (100, 3, 0), (300, 8, 5)):
        rng = np.random.default_rng(0)
        sequences = [rng.normal(size=(rng.integers(5, 12), d)) for _ in range(n)]
        lengths = [1 + j % most if most else len(z) for j, z in enumerate(sequences)]
        targets = [rng.normal(size=(m, d)) for m in lengths]
        net, used = timed(partial(interpolate, sequences, targets))
        seen = [hausdorff(z, y) for z, y in zip(net.predict(sequences), targets, strict=True)]
        yield [
            f"{n:,}", d, f"{sum(lengths):,}", net.counts.attention_layers,
            f"{net.counts.neurons:,}", f"{max(seen):.1e}", f"{net.radius:.1e}", used,
        ]  # fmt: skip


def main() -> None:
    """Parse, run, print, and record when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--imdb", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--quick", action="store_true", help="50 sequences of each family")
    given = parser.parse_args()
    given.n = min(given.n, 50) if given.quick else given.n
    for method in ("mean", "bumps", "tree"):  # compile
        construct([[[0.0, 1.0]], [[2.0, 0.0]]], [0, 1], method=method).predict([[[0.0, 1.0]]])
    if given.large:
        sizes = [
            (1000, 1000, 2, 2),
            (10_000, 200, 2, 2),
            (10_000, 1000, 2, 2),
            (10_000, 100, 64, 100),
        ]
        title = "Exact classification, random data"
        report(title, table(HEADER, list(random_data(sizes))), given.record)
    if given.imdb:
        rows = list(reviews([1000, 10_000, 25_000]))
        report("Exact classification, reviews", table(HEADER, rows), given.record)
    if given.large or given.imdb:
        return
    title = f"Exact classification, families at N = {given.n}"
    report(title, table(HEADER, list(families(given.n))), given.record)
    header = [
        "N", "d", "points", "attention", "neurons", "Hausdorff distance", "proved radius",
        "build + proof, s (CPU)",
    ]  # fmt: skip
    report("Exact interpolation", table(header, list(interpolations())), given.record)
    header = ["data", "N", "attention", "beta star", "smallest", "softmax at beta star", "labels"]
    report("Softmax instead of hardmax", table(header, list(temperatures(100))), given.record)


if __name__ == "__main__":
    main()
