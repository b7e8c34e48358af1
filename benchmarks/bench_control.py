"""Choosing A: how many random wishes are feasible, infeasible, undecided; times; the limit.

OMP_NUM_THREADS=1 python benchmarks/bench_control.py [--quick] [--record]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections import Counter

import numpy as np
from common import arguments, report, table

from hardmax.analysis.control import Control, choose_matrix
from hardmax.analysis.equilibrium import equilibrium

SEED = 2026


def wishes(rng: np.random.Generator, kind: str) -> tuple[np.ndarray, list[int], list]:
    """Tokens, leads and follows: d 1-6, n 3-60, 1-4 leads, half of the time with follows."""
    d, n = int(rng.integers(1, 7)), int(rng.integers(3, 61))
    count = min(int(rng.integers(1, 5)), n)
    z = {
        "gaussian": lambda: rng.normal(size=(n, d)),
        "off-centre": lambda: rng.uniform(-1, 1, size=(n, d)) + rng.normal(size=d) / 3,
        "integers": lambda: rng.integers(-3, 4, size=(n, d)).astype(float),
    }[kind]()
    order = rng.permutation(n)
    lead = [int(i) for i in order[:count]]
    more = int(rng.integers(0, 4)) if rng.random() < 0.5 else 0
    follow = [(int(i), int(rng.choice(lead))) for i in order[count : count + more]]
    return z, lead, follow


def is_right(found: Control, z: np.ndarray, lead: list[int]) -> bool:
    """The certificate verifies; feasible leaders are confirmed by `equilibrium`."""
    if found.status == "undecided":
        return True
    if not found.certificate.verify():
        return False
    if found.status == "infeasible":
        return True
    eq = equilibrium(z, A=found.A)
    led = {tuple(z[i]) for i in eq.leaders}
    return eq.certificate.proved and all(tuple(z[i]) in led for i in lead)


def draws(count: int) -> list[list[object]]:
    rows = []
    for kind in ("gaussian", "off-centre", "integers"):
        rng = np.random.default_rng(SEED)
        seen, wrong, times = Counter(), 0, []
        for _ in range(count):
            z, lead, follow = wishes(rng, kind)
            start = time.process_time()
            found = choose_matrix(z, lead, follow=follow)
            times.append(time.process_time() - start)
            seen[found.status] += 1
            wrong += not is_right(found, z, lead)
        rows.append(
            [kind, count]
            + [seen[s] for s in ("feasible", "infeasible", "undecided")]
            + [wrong, f"{np.median(times):.3f}", f"{max(times):.2f}"]
        )
    return rows


def one_lead(count: int) -> str:
    """The share of infeasible draws with d = 2, ten tokens and one lead."""
    rng = np.random.default_rng(SEED)
    found = [choose_matrix(rng.normal(size=(10, 2)), [0]).status for _ in range(count)]
    return (
        f"{found.count('infeasible')} of {count} infeasible, {found.count('undecided')} undecided"
    )


def large() -> list[list[object]]:
    rows = []
    for d, n, leads, follows in (
        (10, 200, 1, 0),
        (10, 200, 4, 0),
        (10, 200, 4, 4),
        (10, 200, 12, 6),
    ):
        z = np.random.default_rng(SEED).normal(size=(n, d))
        order = np.random.default_rng(1).permutation(n).tolist()
        lead = order[:leads]
        follow = [(i, lead[k % leads]) for k, i in enumerate(order[leads : leads + follows])]
        start = time.process_time()
        found = choose_matrix(z, lead, follow=follow)
        spent = time.process_time() - start
        rows.append([n, d, leads, follows, found.status, f"{spent:.2f}"])
    return rows


def limits(count: int) -> list[list[object]]:
    """Wishes that are infeasible at the input: how many the search grants in the limit."""
    rng = np.random.default_rng(SEED)
    rows = []
    for d in (2, 3):
        granted = asked = 0
        while asked < count:
            z = rng.normal(size=(15, d))
            if choose_matrix(z, [0, 1]).status != "infeasible":
                continue
            asked += 1
            granted += choose_matrix(z, [0, 1], where="limit", tries=100).feasible
        rows.append([15, d, asked, granted])
    return rows


def main() -> None:
    options = arguments(__doc__ or "")
    header = ["tokens", "draws", "feasible", "infeasible", "undecided", "wrong"]
    header += ["median s", "longest s"]
    count = 100 if options.quick else 1000
    text = (
        "d 1-6, n 3-60, 1-4 leads, half with up to 3 follows; every certificate verified, every\n"
    )
    text += f"feasible A confirmed by `equilibrium`; seed {SEED}:\n\n" + table(header, draws(count))
    text += f"\n\nd = 2, n = 10, one lead: {one_lead(count)}.\n\n"
    text += table(["n", "d", "leads", "follows", "status", "CPU s"], large())
    header = ["n", "d", "infeasible at the input", "granted in the limit"]
    text += "\n\nTwo leads, 100 tries:\n\n" + table(header, limits(10 if options.quick else 40))
    report("Choosing A", text, options.record)


if __name__ == "__main__":
    main()
