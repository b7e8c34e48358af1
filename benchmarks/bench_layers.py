"""Whole layers: clouds of a million tokens, and texts from padded ids to pooled tokens.

    python benchmarks/bench_layers.py [--quick] [--record] [--authors models.py]

Large clouds: one thread, CPU seconds.  Brute force is our own fused search in float64 over
all keys, timed on some of the queries and scaled, which is exact for a cost linear in them.
Texts: two threads, seconds of the clock, medians of interleaved repeats; the words are those
of the first IMDb reviews when they are in the cache, else drawn like them.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "2")

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import interleaved, report, table
from loops import paper_loops

import hardmax as hm
from hardmax._errors import HardmaxError
from hardmax.dynamics.fused import pool_ids
from hardmax.select import select
from hardmax.select.search import search_cloud

QUERIES = 2_000
HUGE = """
import resource, sys, time
import numpy as np, torch
import hardmax as hm
torch.set_num_threads(1)
z = np.random.default_rng(0).normal(size=(int(sys.argv[1]), 2))
start = time.process_time()
if sys.argv[2] == "layer":
    hm.layer(z)
else:
    print(hm.equilibrium(z, alpha=1.0).settled_at, end=" ")
spent = time.process_time() - start
print(spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def large(n: int) -> str:
    """One layer and the way to equilibrium against brute force."""
    torch.set_num_threads(1)
    rows = []
    for d in (2, 3):
        z = np.random.default_rng(d).normal(size=(n, d))
        some = np.ascontiguousarray(z[:QUERIES])
        found = interleaved(
            {
                "brute": lambda q=some, z=z: search_cloud(q, z, np.zeros(len(q)), "brute"),
                "select": lambda z=z: select(z, tie_tol=1e-12),
                "layer": lambda z=z: hm.layer(z),
                "one": lambda z=z: hm.equilibrium(z, alpha=1.0),
                "half": lambda z=z: hm.equilibrium(z, alpha=0.5),
            },
            repeats=3,
        )
        whole = found["brute"] * n / len(some)
        chosen = select(z, tie_tol=1e-12)
        exact = search_cloud(some, z, np.zeros(len(some)), "brute")[0]
        same = np.array_equal(chosen.take(np.arange(len(some))).indices, exact.indices)
        at = hm.equilibrium(z, alpha=1.0).settled_at
        rows.append(
            [
                d, chosen.path, f"{whole:.0f}", f"{found['select']:.2f}", f"{found['layer']:.2f}",
                f"{whole / found['select']:.0f}", f"{whole / found['layer']:.0f}",
                f"{found['one']:.2f}", at, f"{100 * found['one'] / whole:.2f} %",
                f"{100 * found['half'] / whole:.2f} %", same,
            ]
        )  # fmt: skip
    head = (
        "d|path|brute s|select s|layer s|brute / select|brute / layer|equilibrium, alpha 1, s|"
        "settled at|of brute|alpha 0.5, of brute|same choices on 2,000 rows"
    )
    return table(head.split("|"), rows)


def huge(n: int) -> str:
    """Time and peak memory of a process of its own, Python and libraries included."""
    rows = []
    for what in ("layer", "equilibrium"):
        command = [sys.executable, "-c", HUGE, str(n), what]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        *_, spent, memory = done.stdout.split()
        rows.append([what, f"{n:,}", f"{float(spent):.1f}", f"{float(memory):.2f}"])
    return table(["d = 2", "n", "CPU s", "peak GiB"], rows)


def ids_of(count: int) -> tuple[np.ndarray, int, str]:
    """Padded ids of reviews, the number of words, and where they come from."""
    try:
        from text_speed import SIZE, rows_of

        return rows_of(count)[0], SIZE, "IMDb reviews, 128 words each at most"
    except (HardmaxError, ImportError):
        rng = np.random.default_rng(0)
        ids = np.minimum(rng.zipf(1.3, size=(count, 128)), 100_000)
        ids[np.arange(128) >= rng.integers(40, 200, size=(count, 1))] = 0
        return ids, 121_296, "ids drawn by Zipf's law"


def torch_layers(E: torch.Tensor, ids: torch.Tensor, depth: int, gamma: float) -> torch.Tensor:
    """Embedding, then argmax and gather per layer, then the mean."""
    z = E[ids]
    for _ in range(depth):
        at = torch.bmm(z, z.mT).argmax(dim=2)
        z = z + gamma * (z.gather(1, at[..., None].expand_as(z)) - z)
    return z.mean(dim=1)


def texts(count: int, loops: Callable[..., Any], named: str) -> str:
    """Depth 8 from padded ids to pooled tokens; padding is a token, as in the paper."""
    torch.set_num_threads(2)
    ids, size, source = ids_of(count)
    few, rows = ids[:4], []
    for d in (2, 16):
        E = np.random.default_rng(d).normal(size=(size, d))
        wide = {t: torch.from_numpy(E).to(t) for t in (torch.float32, torch.float64)}
        t = torch.from_numpy(ids)
        runs: dict[str, Callable[[], object]] = {
            "ours": lambda E=E: pool_ids(E, ids, 8, gamma=0.5),
            "f32": lambda E=wide[torch.float32], t=t: torch_layers(E, t, 8, 0.5),
            "f64": lambda E=wide[torch.float64], t=t: torch_layers(E, t, 8, 0.5),
            "paper": lambda E=E: loops(1.0, 8, E[few]).mean(axis=1),
        }
        found = interleaved(runs, repeats=5, clock=time.perf_counter)
        paper = found["paper"] * count / len(few)
        gap = np.abs(pool_ids(E, few, 8, gamma=0.5)[0] - loops(1.0, 8, E[few]).mean(axis=1)).max()
        ours = found["ours"]
        rows.append(
            [d, f"{1e6 * ours / count:.1f}", f"{paper / ours:.0f}", f"{found['f32'] / ours:.1f}",
             f"{found['f64'] / ours:.1f}", f"{gap:.0e}"]
        )  # fmt: skip
    head = [
        "d", "ours, us a text", f"{named} / ours", "torch argmax + gather, float32 / ours",
        "float64 / ours", "largest difference from the loops",
    ]  # fmt: skip
    return f"{count:,} texts: {source}.\n\n" + table(head, rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="keep the result in RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--authors", type=Path, help="the paper's models.py")
    options = parser.parse_args()
    n, quick = (100_000 if options.quick else 1_000_000), options.quick
    cloud = f"Gaussian clouds of {n:,} tokens, float64, one thread:\n\n{large(n)}\n\n"
    cloud += huge(200_000 if quick else 10_000_000)
    report("Large clouds", cloud, options.record)
    named = "the paper's loops" if options.authors else "loops as the paper writes them"
    text = texts(500 if quick else 4_000, paper_loops(options.authors), named)
    report("Texts through eight layers", f"Two threads. {text}", options.record)


if __name__ == "__main__":
    main()
