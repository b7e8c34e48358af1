"""Selection, runs and proofs: ratios within one run, one thread.

OMP_NUM_THREADS=1 python benchmarks/bench_dynamics.py [--quick] [--record]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from common import arguments, interleaved, report, table

import hardmax as hm
from hardmax.select import select


def loops(z: np.ndarray, depth: int, gamma: float) -> np.ndarray:
    """The layer as the paper's notebook writes it: loops over tokens, float equality."""
    for _ in range(depth):
        new = z.copy()
        for i in range(len(z)):
            scores = z @ z[i]
            chosen = np.flatnonzero(scores == scores.max())
            new[i] = z[i] + gamma * (z[chosen].mean(axis=0) - z[i])
        z = new
    return z


def selection(n: int) -> list[list[object]]:
    rng = np.random.default_rng(0)
    rows = []
    for d in (2, 8, 16, 64):
        z = rng.normal(size=(n, d)).astype(np.float32)
        t = torch.from_numpy(z)
        found = interleaved(
            {
                "cpu": lambda z=z: select(z, tie_tol=1e-5),
                "reference": lambda t=t: select(t, tie_tol=1e-5, backend="reference"),
                "torch": lambda t=t: (t @ t.T).max(dim=1),
            }
        )
        ratio = {k: v / found["cpu"] for k, v in found.items()}
        rows.append([n, d, f"{ratio['torch']:.1f}", f"{ratio['reference']:.1f}"])
    return rows


def proofs(n: int) -> list[list[object]]:
    rng = np.random.default_rng(1)
    rows = []
    for d, alpha in ((2, 0.1), (2, 1.0), (16, 1.0)):
        z = rng.normal(size=(n, d))
        eq = hm.equilibrium(z, alpha=alpha)
        found = interleaved(
            {
                "equilibrium": lambda z=z, a=alpha: hm.equilibrium(z, alpha=a),
                "simulate": lambda z=z, a=alpha: hm.simulate(z, 30, alpha=a, save="last"),
                "verify": lambda eq=eq, z=z: eq.certificate.verify(z),
                "rational": lambda eq=eq, z=z: eq.certificate.verify(z, "rational"),
                "loops": lambda z=z, a=alpha: loops(z, 30, a / (1 + a)),
            },
            repeats=3,
        )
        one = found["equilibrium"]
        names = ("simulate", "verify", "rational", "loops")
        rows.append([n, d, alpha, eq.settled_at, *(f"{found[k] / one:.1f}" for k in names)])
    return rows


def main() -> None:
    options = arguments(__doc__ or "")
    torch.set_num_threads(1)
    n = 2000 if options.quick else 10_000
    header = ["n", "d", "torch full matmul + max", "reference (blocked)"]
    text = "One selection, float32, times of the compiled path:\n\n" + table(header, selection(n))
    header = ["n", "d", "alpha", "settled at", "simulate, 30 layers", "verify"]
    header += ["verify, integers alone", "loops over tokens, 30 layers"]
    text += "\n\nTimes of `equilibrium`:\n\n" + table(header, proofs(200 if options.quick else 500))
    report("Dynamics", text, options.record)


if __name__ == "__main__":
    main()
