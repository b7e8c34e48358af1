"""Constructed networks: families, sizes and times; texts where a folder of them is given.

python benchmarks/bench_exact.py                      all families at N = 200, random data
python benchmarks/bench_exact.py --large              random data to N = 10,000
python benchmarks/bench_exact.py --texts aclImdb/train  reviews in folders pos and neg
add --record to write the tables into RESULTS.md
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "src")]

from common import report, table  # noqa: E402
from tests.unit.exact.families import MEASURES, ONE_DIMENSION, SETS  # noqa: E402

from hardmax.exact import construct, interpolate  # noqa: E402

HEADER = [
    "data", "method", "N", "attention", "neurons", "parameters", "proof", "deviation",
    "build + verify, CPU s", "predict, CPU s", "labels",
]  # fmt: skip


def row(name: str, sequences: list[Any], labels: Any, method: str) -> list[object]:
    """One network: built, proved, run again on the same data."""
    start = time.process_time()
    try:
        net = construct(sequences, labels, method=method)
    except ValueError as error:
        short = str(error).split(";")[0][:60]
        return [name, method, len(sequences), *["-"] * 4, short, "-", "-", "refused"]
    built = time.process_time() - start
    start = time.process_time()
    right = bool((net.predict(sequences) == np.asarray(labels)).all())
    ran = time.process_time() - start
    proof = net.certificate
    kind = "exact" if proof.kind == "exact" else f"radius {proof.radius:.1e}"
    counts = net.counts
    return [
        name, f"{method} ({net.method})" if method == "auto" else method, counts.sequences,
        counts.attention_layers, counts.neurons, counts.parameters, kind,
        f"{proof.deviation:.0e}", f"{built:.1f}", f"{ran:.1f}", "right" if right else "WRONG",
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


def reviews(folder: Path, sizes: list[int]) -> Iterator[list[object]]:
    """Texts of two folders, half from each."""
    files = {side: sorted((folder / side).glob("*.txt")) for side in ("pos", "neg")}
    for n in sizes:
        chosen = [(f, side) for side, found in files.items() for f in found[: n // 2]]
        texts = [f.read_text(encoding="utf-8") for f, _ in chosen]
        labels = [side for _, side in chosen]
        for method in ("tree", "mean"):
            yield row("reviews, d = 64", texts, labels, method)


def interpolations(sizes: list[tuple[int, int]]) -> Iterator[list[object]]:
    """Random targets of 1 to 5 points, d = 3."""
    for n, d in sizes:
        rng = np.random.default_rng(0)
        sequences = [rng.normal(size=(rng.integers(5, 12), d)) for _ in range(n)]
        targets = [rng.normal(size=(rng.integers(1, 6), d)) for _ in range(n)]
        start = time.process_time()
        net = interpolate(sequences, targets)
        used = time.process_time() - start
        points = sum(map(len, targets))
        yield [
            n,
            d,
            points,
            net.counts.neurons,
            f"{net.error:.1e}",
            f"{net.radius:.1e}",
            f"{used:.1f}",
        ]


def main() -> None:
    """Parse, run, print, and record when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    construct([[0.0, 1.0], [2.0]], [0, 1])  # compile
    parts: dict[str, Callable[[], Iterator[list[object]]]] = {
        f"Exact classification, families at N = {given.n}": lambda: families(given.n)
    }
    if given.large:
        sizes = [
            (1000, 1000, 2, 2),
            (10_000, 200, 2, 2),
            (10_000, 1000, 2, 2),
            (10_000, 100, 64, 100),
        ]
        parts = {"Exact classification, random data": lambda: random_data(sizes)}
    if given.texts:
        parts = {
            "Exact classification, reviews": lambda: reviews(given.texts, [1000, 10_000, 25_000])
        }
    for title, rows in parts.items():
        report(title, table(HEADER, list(rows())), given.record)
    header = ["N", "d", "points", "neurons", "error", "proved radius", "CPU s"]
    rows_of = list(interpolations([(100, 3), (1000, 3)]))
    report("Exact interpolation", table(header, rows_of), given.record)


if __name__ == "__main__":
    main()
