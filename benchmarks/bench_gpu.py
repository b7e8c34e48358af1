"""Hardmax selection on a GPU against flash attention, blocked torch and per-layer torch.

Run from the root of the repository on a machine with a GPU:

    PYTHONPATH=src python3 benchmarks/bench_gpu.py [--quick] [--tune] [--save FOLDER]

and where the repository lives `python benchmarks/bench_gpu.py --record FOLDER`, which puts
the saved tables into RESULTS.md.  Prints one table per question; times are medians of
interleaved repeats between CUDA events, data drawn anew for every cloud, and every
selection is compared with float64.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from common import report, table
from torch.nn.attention import SDPBackend, sdpa_kernel

from hardmax.select import _cloud, select
from hardmax.select._cloud import Plan, search
from hardmax.select.gpu import blocked
from hardmax.select.gpu_batch import deep, walk

CUDA = torch.device("cuda")
CASES = {16: (0.15, 1.0), 64: (0.35, 0.5, 1.0), 128: (0.45, 1.0)}


def timed(runs: dict[str, Callable[[], object]], repeats: int = 7) -> dict[str, float]:
    """Median milliseconds of each run; one round of all of them after the other."""
    for run in runs.values():
        run()
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            start.record()
            run()
            stop.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(stop))
    return {name: statistics.median(values) for name, values in times.items()}


def lognormal(n: int, d: int, sigma: float, seed: int) -> torch.Tensor:
    """Directions uniform on the sphere, norms exp(sigma N(0, 1))."""
    g = torch.Generator(device=CUDA).manual_seed(seed)
    z = torch.randn(n, d, device=CUDA, generator=g)
    z = z / z.norm(dim=1, keepdim=True)
    return z * torch.exp(sigma * torch.randn(n, 1, device=CUDA, generator=g))


def near_ties(n: int, d: int, share: float, rivals: int, seed: int) -> torch.Tensor:
    """A cloud in which a share of the rows has `rivals` keys within 1e-6 of the best.

    Directions u_c; rivals at 8 u_c + w with w orthogonal to u_c of different lengths,
    so that they lie in different tiles; rows near t u_c score them almost equally.
    """
    g = torch.Generator(device=CUDA).manual_seed(seed)
    z = lognormal(n, d, 0.3, seed) * 0.5
    groups = 64
    u = torch.randn(groups, d, device=CUDA, generator=g)
    u = u / u.norm(dim=1, keepdim=True)
    w = torch.randn(rivals, groups, d, device=CUDA, generator=g)
    w = w - (w * u).sum(-1, keepdim=True) * u
    w = w / w.norm(dim=2, keepdim=True)
    length = torch.linspace(0.5, 6, rivals, device=CUDA)[:, None, None]
    keys = (8 * u + length * w).flatten(0, 1)
    z[: len(keys)] = keys
    rows = torch.arange(len(keys), len(keys) + int(share * (n - len(keys))), device=CUDA)
    noise = torch.randn(len(rows), d, device=CUDA, generator=g)
    z[rows] = 0.3 * u[rows % groups] + 1e-7 * noise
    return z


def by_float64(z: torch.Tensor, tie_tol: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Counts and chosen keys by float64 blocks without kernels."""
    n = torch.tensor([len(z)], device=CUDA)
    _, counts, indices, _ = blocked(z, [], torch.zeros_like(n), n, tie_tol)
    return counts, indices


def agrees(z: torch.Tensor, tie_tol: float = 0.0) -> bool:
    """Whether the kernels give exactly the float64 sets."""
    found = search(z, [], tie_tol)
    counts, indices = by_float64(z, tie_tol)
    return torch.equal(found.indptr.diff(), counts) and torch.equal(found.indices, indices)


def flash(n: int, d: int) -> Callable[[], object]:
    """Softmax attention of one head over n tokens in bf16, flash backend."""
    q, k, v = (torch.randn(1, 1, n, d, device=CUDA, dtype=torch.bfloat16) for _ in range(3))

    def run() -> object:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    return run


def blocked_float32(z: torch.Tensor) -> Callable[[], object]:
    """argmax of float32 scores, 4096 rows at a time."""
    return lambda: [(z[i : i + 4096] @ z.T).argmax(1) for i in range(0, len(z), 4096)]


def candidate_pass(z: torch.Tensor, plan: Plan) -> Callable[[], object]:
    """The pass in half precision alone, keys and rows packed beforehand."""
    norm, own = _cloud._measure(z, z)
    keys = _cloud._pack_keys(z, norm, plan)
    rows = _cloud._pack_rows(z, keys, (norm, own, norm), 0.0, plan, True)
    state = _cloud._State(z, z, keys, rows, False, plan)
    return lambda: state.candidates(0, len(rows.half))


def plans() -> dict[str, Plan]:
    """Cuts of the candidate pass that are worth comparing."""
    cuts = [
        (128, 128, 4, 3, 8), (128, 128, 8, 3, 8), (64, 128, 4, 3, 8), (128, 256, 8, 3, 4),
        (128, 128, 4, 4, 8), (128, 128, 4, 3, 4), (128, 128, 4, 3, 32), (64, 256, 4, 3, 4),
    ]  # fmt: skip
    return {
        f"{r} x {k}, {w} warps, {s} stages, stop every {t}": Plan(r, k, w, s, t)
        for r, k, w, s, t in cuts
    }


def tune(n: int, d: int) -> str:
    """The candidate pass in several cuts, with and without leaving tiles out."""
    z = lognormal(n, d, 0.35, 1)
    runs: dict[str, Callable[[], object]] = {"flash": flash(n, d)}
    for name, p in plans().items():
        runs[f"{name}, all tiles"] = candidate_pass(z, replace(p, prune=False))
        runs[name] = candidate_pass(z, p)
    for unroll in (4, 8, 16):
        cut = Plan(unroll=unroll)
        runs[f"selection, unroll {unroll}"] = lambda p=cut: search(z, [], 0.0, plan=p)
    times = timed(runs, 5)
    return table(
        ["candidate pass", "ms", "of flash"],
        [[k, f"{v:.2f}", f"{v / times['flash']:.2f}"] for k, v in times.items()],
    )


def clouds(n: int, cases: dict[int, tuple[float, ...]]) -> str:
    """The whole selection against flash attention and blocked float32."""
    rows = []
    for d, sigmas in cases.items():
        for sigma in sigmas:
            z = lognormal(n, d, sigma, 2)
            found = search(z, [], 0.0)
            leads = float(
                (found.indices[found.indptr[:-1]] == torch.arange(n, device=CUDA)).float().mean()
            )
            times = timed(
                {
                    "candidates": candidate_pass(z, Plan()),
                    "every tile": candidate_pass(z, Plan(prune=False)),
                    "all": lambda z=z: search(z, [], 0.0),
                    "with margins": lambda z=z: search(z, [], 0.0, margins=True),
                    "door": lambda z=z: select(z),
                    "flash": flash(n, d),
                    "f32": blocked_float32(z),
                },
                5,
            )
            flat = times["flash"]
            rows.append(
                [
                    d, sigma, f"{leads:.2f}", f"{float(found.shares['looked']):.3f}",
                    f"{float(found.shares['several']):.3f}",
                    *(f"{v:.2f}" for v in times.values()),
                    f"{times['candidates'] / flat:.2f}", f"{times['every tile'] / flat:.2f}",
                    f"{times['all'] / flat:.2f}", f"{times['f32'] / times['all']:.1f}", agrees(z),
                ]
            )  # fmt: skip
    head = (
        "d|sigma|leaders|tiles seen|rows with several tiles|candidates ms|no tile left out ms|"
        "selection ms|with margins ms|select(z), rows in main memory ms|flash bf16 ms|"
        "blocked f32 ms|candidates / flash|no tile left out / flash|selection / flash|"
        "f32 / selection|equal to float64"
    )
    return table(head.split("|"), rows)


def growth(n: int, d: int) -> str:
    """Time against the share of rows whose candidates lie in several tiles."""
    rows = []
    for rivals in (2, 16):
        for share in (0.0, 0.05, 0.25, 0.5, 1.0):
            z = near_ties(n, d, share, rivals, 3)
            found = search(z, [], 0.0)
            ms = timed({"all": lambda z=z: search(z, [], 0.0)}, 5)["all"]
            rows.append(
                [rivals, share, f"{float(found.shares['several']):.3f}", f"{ms:.2f}", agrees(z)]
            )
    return table(
        ["rivals", "share asked", "rows with several tiles", "ms", "equal to float64"], rows
    )


def parts(n: int, d: int, sigma: float) -> str:
    """Where the time of one selection goes, by kernel."""
    z = lognormal(n, d, sigma, 4)
    search(z, [], 0.0)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        for _ in range(3):
            search(z, [], 0.0)
        torch.cuda.synchronize()
    rows = sorted(seen.key_averages(), key=lambda e: -e.device_time_total)[:16]
    return table(
        ["kernel", "launches", "ms of one selection"],
        [[e.key[:60], e.count / 3, f"{e.device_time_total / 3000:.3f}"] for e in rows],
    )


def per_layer(z: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    """bmm + argmax + gather per layer."""
    for g in gamma:
        at = torch.bmm(z, z.mT).argmax(2)
        z = z + g * (z.gather(1, at[..., None].expand_as(z)) - z)
    return z


def batches(b: int, n: int, depth: int, tunes: list[dict[str, int]]) -> str:
    """The whole depth in one launch against one layer after the other."""
    rows = []
    for d in (2, 4, 8, 16, 32, 64):
        z = torch.randn(b, n, d, device=CUDA)
        gamma = torch.full((depth, 1), 0.5, device=CUDA)
        graph = torch.cuda.CUDAGraph()
        per_layer(z, gamma[:, 0])
        with torch.cuda.graph(graph):
            per_layer(z, gamma[:, 0])
        runs: dict[str, Callable[[], object]] = {
            "torch": lambda z=z, g=gamma: per_layer(z, g[:, 0]),
            "graph": graph.replay,
        }
        for t in tunes:
            runs[str(t)] = lambda z=z, g=gamma, t=t: walk(z, g, plan=t)
        leaf, learned = z.clone().requires_grad_(), gamma.clone().requires_grad_()
        runs["torch back"] = lambda z=leaf, g=learned: per_layer(z, g[:, 0]).sum().backward()
        runs["back"] = lambda z=leaf, g=learned: deep(z, g).sum().backward()
        try:
            times = timed(runs)
        except Exception as error:
            rows.append([d, repr(error)[:200]])
            continue
        gap = (walk(z, gamma).zs[-1] - per_layer(z, gamma[:, 0])).abs().amax((1, 2))
        best = min(times[str(t)] for t in tunes)
        rows.append(
            [
                d, f"{times['torch']:.3f}", f"{times['graph']:.3f}",
                " ".join(f"{times[str(t)]:.3f}" for t in tunes), f"{times['torch'] / best:.1f}",
                f"{times['torch back']:.3f}", f"{times['back']:.3f}",
                f"{times['torch back'] / times['back']:.1f}",
                f"{float((gap < 1e-4).float().mean()):.3f}",
            ]
        )  # fmt: skip
    head = (
        "d|per layer ms|in a CUDA graph ms|one launch ms|per layer / one launch|"
        "forward and backward, per layer ms|one launch ms|ratio|sequences within 1e-4"
    )
    return table(head.split("|"), rows)


def memory(n: int, d: int) -> str:
    """Most memory of the device above the tokens, in MiB."""
    z, rows = lognormal(n, d, 0.35, 5), []
    runs: dict[str, Callable[[], object]] = {
        "selection": lambda: search(z, [], 0.0),
        "selection with margins": lambda: search(z, [], 0.0, margins=True),
        "flash attention, bf16": flash(n, d),
        "blocked float32": blocked_float32(z),
    }
    for name, run in runs.items():
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        torch.cuda.synchronize()
        rows.append([name, f"{(torch.cuda.max_memory_allocated() - before) / 2**20:.0f}"])
    return table(["run", "MiB"], rows)


def digest() -> str:
    """A name for the sources of the selection as they stand."""
    folder = Path(__file__).parents[1] / "src" / "hardmax" / "select"
    files = sorted(folder.glob("*triton*.py")) + [folder / x for x in ("_cloud.py", "gpu.py")]
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:12]


def measure(options: argparse.Namespace) -> None:
    """All tables, each written as soon as it is there."""
    import triton

    n = 32_768 if options.quick else 131_072
    where = (
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}; "
        f"n = {n:,}; sources {digest()}; {datetime.date.today().isoformat()}"
    )
    parts_of = {
        "One cloud, lognormal norms, A = I, float32 tokens:": lambda: clouds(n, CASES),
        "256 sequences of 256 tokens, 8 layers, Gaussian, float32:": lambda: batches(
            256, 256, 8, [{}]
        ),
        "d = 64, share of rows that float64 decides between several tiles:": lambda: growth(n, 64),
        "d = 64, sigma = 0.35, by kernel:": lambda: parts(n, 64, 0.35),
        "d = 64, memory of the device above the tokens:": lambda: memory(n, 64),
    }
    if options.tune:
        parts_of["Cuts of the candidate pass, d = 64, sigma = 0.35:"] = lambda: tune(n, 64)
    text = where
    for title, part in parts_of.items():
        text += f"\n\n{title}\n\n{part()}"
        print(title, flush=True)
        if options.save:
            (options.save / "gpu.md").write_text(text + "\n")
    print(text)


def keep(folder: Path) -> None:
    """What a run on another machine left, put into RESULTS.md."""
    text = (folder / "gpu.md").read_text().rstrip()
    if f"sources {digest()}" not in text:
        print(f"the kernels have changed since that run; now they are {digest()}")
    found = folder / "gpu_tests.json"
    if found.exists():
        tests = json.loads(found.read_text())
        text += (
            f"\n\nTests of tests/gpu on {tests['where']}: {tests['run']} run, "
            f"{len(tests['failed'])} failed, {tests['seconds']} s."
        )
    report("Selection on a GPU", text, record=True)


def main() -> None:
    """Measure, or keep what was measured elsewhere."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller cloud")
    parser.add_argument("--tune", action="store_true", help="compare cuts of the kernel too")
    parser.add_argument("--save", type=Path, help="folder for gpu.md")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="put FOLDER into RESULTS.md")
    options = parser.parse_args()
    if options.record:
        keep(options.record)
    elif torch.cuda.is_available():
        measure(options)
    else:
        print("no GPU here: nothing to measure")


if __name__ == "__main__":
    main()
