"""One selection of one cloud on the CPU against what else can find largest products.

    OMP_NUM_THREADS=1 python benchmarks/bench_select.py [--quick] [--record] [--pictures FOLDER]

One thread, CPU seconds, medians of interleaved repeats in one run.  Needs faiss
(`pip install faiss-cpu`) for its column; KeOps is measured when it can be imported.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import interleaved, report, table
from peak import peak

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


def others(z: np.ndarray, keops: bool = False) -> Runs:
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
    if keops:
        runs |= _keops(t)
    return runs


def _keops(t: torch.Tensor) -> Runs:
    try:
        from pykeops.torch import LazyTensor

        scores = (LazyTensor(t[:, None, :]) | LazyTensor(t[None, :, :])) * -1
        scores.argmin(dim=1)
        return {"KeOps": lambda: scores.argmin(dim=1)}
    except Exception as error:  # KeOps compiles at run time and may fail in many ways
        print(f"KeOps left out: {type(error).__name__}")
        return {}


def cloud(n: int, d: int, dtype: Any, seed: int = 0, kind: str = "gauss") -> np.ndarray:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, d))
    if kind != "gauss":
        z *= (rng.random((n, 1)) ** (1 / d)) / np.linalg.norm(z, axis=1)[:, None]
    return z.astype(dtype)


def shares(n: int, tops: dict[Any, float]) -> str:
    """Brute force on its own, as a share of the peak, beside the best gemm."""
    out = []
    for d in (2, 3, 4, 8, 16, 64, 128):
        row: list[object] = [d]
        for dtype in (np.float32, np.float64):
            z = cloud(n, d, dtype)
            q = np.ascontiguousarray(z[: max(2000, min(n, 10**9 // (n * d)))])
            tol = np.zeros(len(q), dtype=dtype)
            t, part = torch.from_numpy(z), torch.from_numpy(q)
            found = interleaved(
                {
                    "brute": lambda q=q, z=z, tol=tol: search_cloud(q, z, tol, "brute"),
                    "gemm": lambda t=t, part=part: part @ t.T,
                },
                repeats=5,
            )
            work = 2.0 * d * n * len(q) / tops[dtype]
            row += [f"{work / found['brute']:.2f}", f"{work / found['gemm']:.2f}"]
        out.append(row)
    return table(["d", "float32", "torch gemm alone", "float64", "torch gemm alone"], out)


def against(n: int, keops: bool, dims: tuple[int, ...]) -> str:
    """Times slower than ours; the path that was chosen, and brute force."""
    out, names = [], []
    for d in dims:
        z = cloud(n, d, np.float32)
        runs: Runs = {
            "ours": lambda z=z: select(z, tie_tol=1e-5),
            "brute": lambda z=z: select(z, tie_tol=1e-5, backend="brute"),
            **others(z, keops),
        }
        found = interleaved(runs, repeats=5)
        names = [k for k in found if k != "ours"]
        path = select(z, tie_tol=1e-5).path
        out.append([d, path, *(f"{found[k] / found['ours']:.1f}" for k in names)])
    return table(["d", "path", *names], out)


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


def pictures(folder: Path, quick: bool) -> None:
    """Seconds over n and over d, on log axes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), sharey=True, layout="constrained")
    sizes = [10**3, 3 * 10**3, 10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6][: 4 if quick else 7]
    most = 1e9 if quick else 2e10
    for axis, d in zip(axes[:2], (2, 8), strict=True):
        curves = {
            name: [(n, s) for n in sizes if (s := _seconds(name, n, d, most)) is not None]
            for name in ("ours", "brute", "torch blocked", "softmax attention", "faiss flat")
        }
        _draw(axis, curves, f"d = {d}", "tokens n")
    dims = [2, 4, 8, 16, 32, 64, 128]
    curves = {
        name: [(d, s) for d in dims if (s := _seconds(name, 10**4, d, 1e12)) is not None]
        for name in ("ours", "brute", "torch blocked", "softmax attention", "faiss flat")
    }
    _draw(axes[2], curves, "n = 10,000", "coordinates d")
    axes[0].set_ylabel("CPU seconds of one selection, one thread")
    axes[0].legend(frameon=False)
    figure.savefig(folder / "speed.png", dpi=150)


def _seconds(name: str, n: int, d: int, most: float) -> float | None:
    z = cloud(n, d, np.float32)
    if name not in ("ours",) and float(n) * n > most * (8 if name == "brute" else 1):
        return None
    runs: Runs = {
        "ours": lambda: select(z, tie_tol=1e-5),
        "brute": lambda: select(z, tie_tol=1e-5, backend="brute"),
    }
    runs = runs if name in runs else others(z)
    return interleaved({name: runs[name]}, repeats=3)[name] if name in runs else None


def _draw(axis: Any, curves: dict[str, list[tuple[int, float]]], title: str, label: str) -> None:
    marks = iter("os^Dv")
    for name, points in curves.items():
        if points:
            x, y = zip(*points, strict=True)
            axis.loglog(x, y, marker=next(marks), markersize=4, label=name)
    axis.set(title=title, xlabel=label)
    axis.grid(which="major", alpha=0.3)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="keep the result in RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--keops", action="store_true", help="compile and measure KeOps too")
    parser.add_argument("--pictures", type=Path, help="folder for speed.png")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tops = {t: peak(t) for t in (np.float32, np.float64)}
    n = 4_000 if options.quick else 40_000
    text = (
        f"Peak of fused multiply-adds in registers: {tops[np.float32] / 1e9:.0f} (float32) and "
        f"{tops[np.float64] / 1e9:.0f} (float64) Gflop/s, one thread.\n\nBrute force, n = {n:,}, "
        f"share of that peak (2 d operations per pair):\n\n{shares(n, tops)}\n\n"
    )
    n = 2_000 if options.quick else 10_000
    dims = (2, 8, 64) if options.quick else (2, 3, 8, 16, 64)
    text += f"Times slower than `select`, float32, n = {n:,}:\n\n"
    text += f"{against(n, options.keops, dims)}\n\n"
    n = 5_000 if options.quick else 20_000
    text += f"Times faster than brute force in the same precision, n = {n:,}:\n\n{paths(n)}"
    report("Selection on the CPU", text, options.record)
    if options.pictures:
        pictures(options.pictures, options.quick)


if __name__ == "__main__":
    main()
