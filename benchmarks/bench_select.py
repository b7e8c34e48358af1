"""One selection of one cloud on the CPU against what else can find largest products.

    OMP_NUM_THREADS=1 python benchmarks/bench_select.py [--quick] [--record] [--authors FILE]
    OMP_NUM_THREADS=1 python benchmarks/bench_select.py --pictures FOLDER [--quick]

One thread, CPU seconds, medians of interleaved repeats in one run.  faiss
(`pip install faiss-cpu`) and KeOps (`pip install pykeops`, which compiles at run time, some
20 s for each d) have their columns where they are installed.  --authors FILE takes the
paper's own loops from its `models.py`; without it they are as written here.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import interleaved, peak_memory, report, table
from loops import paper_loops
from peak import peak, work

from hardmax.select import select
from hardmax.select.search import search_cloud

Runs = dict[str, Callable[[], object]]
TIE = {np.float32: 1e-5, np.float64: 1e-12}


def blocked(t: torch.Tensor, size: int = 256) -> torch.Tensor:
    """The index of the largest product, a block of rows at a time."""
    return torch.cat([(part @ t.T).max(dim=1).indices for part in t.split(size)])


def rows_of_numpy(z: np.ndarray) -> None:
    """One row of scores after the other."""
    for row in z:
        (z @ row).argmax()


def others(z: np.ndarray) -> Runs:
    """What a user would reach for otherwise."""
    t = torch.from_numpy(z)
    attention = torch.nn.functional.scaled_dot_product_attention
    runs: Runs = {
        "torch full": lambda: (t @ t.T).max(dim=1),
        "torch blocked": lambda: blocked(t),
        "softmax attention": lambda: attention(t[None], t[None], t[None]),
        "numpy rows": lambda: rows_of_numpy(z),
    }
    try:
        import faiss

        faiss.omp_set_num_threads(1)
        if z.dtype == np.float32:
            index = faiss.IndexFlatIP(z.shape[1])
            index.add(z)
            runs["faiss flat"] = lambda: index.search(z, 1)
    except ImportError:
        pass
    return runs | _keops(t)


def _keops(t: torch.Tensor) -> Runs:
    try:
        from pykeops.torch import LazyTensor

        scores = (LazyTensor(t[:, None, :]) | LazyTensor(t[None, :, :])) * -1
        scores.argmin(dim=1)
        return {"KeOps": lambda: scores.argmin(dim=1)}
    except ImportError:
        return {}
    except Exception as error:  # KeOps compiles at run time and may fail in many ways
        print(f"KeOps left out: {type(error).__name__}")
        return {}


def cloud(n: int, d: int, dtype: Any, seed: int = 0, kind: str = "gauss") -> np.ndarray:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, d))
    if kind != "gauss":
        z *= (rng.random((n, 1)) ** (1 / d)) / np.linalg.norm(z, axis=1)[:, None]
    return z.astype(dtype)


def shares(n: int) -> str:
    """Brute force on its own, as a share of the peak, beside the best gemm."""
    out = []
    for d in (2, 3, 4, 8, 16, 64, 128):
        row: list[object] = [d]
        for dtype in (np.float32, np.float64):
            z = cloud(n, d, dtype)
            q = np.ascontiguousarray(z[: max(2000, min(n, 10**9 // (n * d)))])
            tol = np.zeros(len(q), dtype=dtype)
            t, part = torch.from_numpy(z), torch.from_numpy(q)
            top, operations = work(dtype)
            found = interleaved(
                {
                    "brute": lambda q=q, z=z, tol=tol: search_cloud(q, z, tol, "brute"),
                    "peak": top,
                    "gemm": lambda t=t, part=part: part @ t.T,
                },
                repeats=7,
            )
            whole = 2.0 * d * n * len(q) * found["peak"] / operations
            cycle = found["brute"] / (n * len(q)) * 1e9
            row += [f"{whole / found['brute']:.2f}", f"{whole / found['gemm']:.2f}", f"{cycle:.3f}"]
        out.append(row)
    head = ["share of peak", "torch gemm alone", "ns a pair"]
    return table(["d", *(f"{t}, {x}" for t in ("float32", "float64") for x in head)], out)


def against(n: int, dims: tuple[int, ...], loops: Callable[..., Any]) -> tuple[str, str]:
    """Times slower than ours, with the path that was chosen; and memory in MiB."""
    out, names, memory = [], [], []
    for d in dims:
        z = cloud(n, d, np.float32)
        runs: Runs = {
            "ours": lambda z=z: select(z, tie_tol=1e-5),
            "brute": lambda z=z: select(z, tie_tol=1e-5, backend="brute"),
            **others(z),
        }
        top, operations = work(np.float32)
        found = interleaved({**runs, "peak": top}, repeats=5)
        names = [k for k in runs if k != "ours"]
        path = select(z, tie_tol=1e-5).path
        share = 2.0 * d * n * n / found["brute"] * found["peak"] / operations
        ratios = [f"{found[k] / found['ours']:.1f}" for k in names]
        slow = one_layer_of(loops, z) / found["ours"]
        out.append([d, path, f"{1e3 * found['ours']:.1f}", f"{share:.2f}", *ratios, f"{slow:,.0f}"])
        spent = {name: peak_memory(run) for name, run in runs.items()}
        memory.append([d, *("" if v is None else f"{v:.0f}" for v in spent.values())])
    head = ["d", "path", "ours, ms", "brute, share of peak", *names, "paper's loops"]
    return table(head, out), table(["d", "ours", *names], memory)


def one_layer_of(loops: Callable[..., Any], z: np.ndarray) -> float:
    """CPU seconds of one layer of the paper's loops, from fewer tokens: they cost n^2."""
    few = z[: min(len(z), 4000)]
    start = time.process_time()
    loops(1.0, 1, few[None])
    return (time.process_time() - start) * (len(z) / len(few)) ** 2


def paths(n: int) -> str:
    """Every path on clouds of several kinds, times brute force in the same precision."""
    out = []
    for dtype in (np.float32, np.float64):
        for d in (2, 3, 4, 8, 16, 32, 64):
            for kind in ("gauss", "ball"):
                z = cloud(n, d, dtype, kind=kind)
                names = [p for p in ("hull", "sorted", "twostage") if _applies(p, d, dtype)]
                runs: Runs = {
                    p: lambda z=z, p=p: select(z, tie_tol=TIE[z.dtype.type], backend=p)
                    for p in ("brute", *names, "auto")
                }
                found = interleaved(runs, repeats=3)
                cells = [
                    f"{found['brute'] / found[p]:.2f}" if p in found else ""
                    for p in ("hull", "sorted", "twostage", "auto")
                ]
                chosen = select(z, tie_tol=TIE[dtype]).path
                out.append([dtype.__name__, d, kind, *cells, chosen])
    return table(["type", "d", "cloud", "hull", "sorted", "twostage", "auto", "chosen"], out)


def _applies(path: str, d: int, dtype: Any) -> bool:
    if path == "hull":
        return d <= 3
    return dtype == np.float64 if path == "twostage" else d <= 32


NAMES = ("ours", "brute", "torch full", "torch blocked", "softmax attention", "faiss flat")


def pictures(folder: Path, quick: bool) -> None:
    """Seconds and memory over n and over d, on log axes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(2, 3, figsize=(12, 7), sharex="col", sharey="row")
    sizes = [10**3, 3 * 10**3, 10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6][: 4 if quick else 7]
    dims = [2, 4, 8, 16, 32, 64, 128]
    columns = [(f"d = {d}", [(n, d) for n in sizes], "tokens n", 0) for d in (2, 8)]
    columns.append(("n = 10,000", [(10**4, d) for d in dims], "coordinates d", 1))
    for (title, places, label, which), column in zip(columns, axes.T, strict=True):
        for name, mark in zip(NAMES, "os^vD*", strict=True):
            found = [(at[which], *cost) for at in places if (cost := _cost(name, *at, quick))]
            for axis, row in zip(column, (1, 2), strict=True):
                points = [(f[0], f[row]) for f in found if f[row] is not None]
                if points:
                    style = {"marker": mark, "markersize": 4, "linewidth": 1.2, "label": name}
                    axis.loglog(*zip(*points, strict=True), **style)
                axis.grid(which="major", alpha=0.3)
        column[0].set_title(title)
        column[1].set_xlabel(label)
    axes[0, 0].set_ylabel("CPU seconds of one selection, one thread")
    axes[1, 0].set_ylabel("most memory above the tokens, MiB")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(folder / "speed.png", dpi=90)


def _cost(name: str, n: int, d: int, quick: bool) -> tuple[float, float | None] | None:
    """Seconds and MiB of one selection; None where it would take too long."""
    work_of = {"ours": 0.0, "brute": float(n) * n / 6, "torch full": 20.0 * n * n}
    if work_of.get(name, float(n) * n) > (1e8 if quick else 2e9):
        return None
    z = cloud(n, d, np.float32)
    runs: Runs = {
        "ours": lambda: select(z, tie_tol=1e-5),
        "brute": lambda: select(z, tie_tol=1e-5, backend="brute"),
    }
    runs = runs if name in runs else others(z)
    if name not in runs:
        return None
    start = time.process_time()
    runs[name]()
    spent = time.process_time() - start
    if spent < 1:
        spent = interleaved({name: runs[name]}, repeats=3)[name]
    memory = peak_memory(runs[name])
    return spent, max(memory, 0.1) if memory is not None else None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="keep the result in RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--authors", type=Path, help="the paper's models.py")
    parser.add_argument("--pictures", type=Path, help="draw speed.png there, no tables")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.pictures:
        pictures(options.pictures, options.quick)
        return
    tops = {t: peak(t) for t in (np.float32, np.float64)}
    n = 4_000 if options.quick else 40_000
    text = (
        f"Peak of fused multiply-adds in registers: {tops[np.float32] / 1e9:.0f} (float32) and "
        f"{tops[np.float64] / 1e9:.0f} (float64) Gflop/s, one thread.\n\nBrute force, n = {n:,}, "
        f"share of that peak (2 d operations per pair):\n\n{shares(n)}\n\n"
    )
    n = 2_000 if options.quick else 10_000
    dims = (2, 8, 64) if options.quick else (2, 3, 8, 16, 64)
    times, memory = against(n, dims, paper_loops(options.authors))
    text += f"Times slower than `select`, float32, n = {n:,}"
    text += f" (the paper's loops from fewer tokens):\n\n{times}\n\n"
    text += f"Most memory above the tokens, MiB:\n\n{memory}\n\n"
    n = 5_000 if options.quick else 20_000
    text += f"Times faster than brute force in the same precision, n = {n:,}:\n\n{paths(n)}"
    report("Selection on the CPU", text, options.record)


if __name__ == "__main__":
    main()
