"""Choosing A: how many random wishes are feasible, infeasible, undecided; times; the limit.

OMP_NUM_THREADS=1 python benchmarks/bench_control.py [--quick] [--record]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import dataclasses
import time
from collections import Counter
from fractions import Fraction

import numpy as np
from common import arguments, report, table
from control_cases import IMPOSSIBLE, planted

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


def exact(z: object) -> list[list[Fraction]]:
    rows = z if isinstance(z, list) else z.tolist()
    return [[Fraction(v) for v in row] for row in rows]


def semidefinite(matrix: list[list[Fraction]]) -> bool:
    """Elimination in fractions, written apart from the library's."""
    live, m = list(range(len(matrix))), [list(row) for row in matrix]
    while live:
        if any(m[i][i] < 0 for i in live):
            return False
        k = next((i for i in live if m[i][i] > 0), None)
        if k is None:
            return not any(m[i][j] for i in live for j in live)
        live.remove(k)
        for i in live:
            factor = m[i][k] / m[k][k]
            for j in live:
                m[i][j] -= factor * m[k][j]
    return True


def grants(A: np.ndarray, z: object, lead: list[int], follow: list) -> bool:
    """All inequalities in fractions, A semidefinite, and `equilibrium` confirms every wish."""
    points, scores = exact(z), exact(A)
    for i, target in [(i, i) for i in lead] + list(follow):
        query = [sum(a * b for a, b in zip(row, points[i], strict=True)) for row in scores]
        found = [sum(a * b for a, b in zip(query, row, strict=True)) for row in points]
        others = [v for v, row in zip(found, points, strict=True) if row != points[target]]
        if any(v >= found[target] for v in others):
            return False
    eq = equilibrium(z, A=A)
    led = {tuple(points[i]) for i in eq.leaders}
    chosen = all(points[eq.leaders[eq.labels[i]]] == points[v] for i, v in follow)
    confirmed = eq.certificate.proved and chosen and all(tuple(points[i]) in led for i in lead)
    return confirmed and semidefinite(scores)


def refuted(found: Control, z: object, lead: list[int], follow: list) -> bool:
    """The combination in fractions is negative semidefinite, and altered weights fail."""
    points, proof = exact(z), found.certificate
    d = len(points[0])
    total = [[Fraction(0)] * d for _ in range(d)]
    asked = [(i, i) for i in lead] + list(follow)
    known = {(tuple(points[i]), tuple(points[v])) for i, v in asked}
    for m in proof.multipliers:
        a, weight = points[m.token], Fraction(m.weight)
        b = [p - q for p, q in zip(points[m.target], points[m.other], strict=True)]
        if weight <= 0 or not any(b) or (tuple(a), tuple(points[m.target])) not in known:
            return False
        for i in range(d):
            for j in range(d):
                total[i][j] -= weight * (a[i] * b[j] + a[j] * b[i])
    first = proof.multipliers[0]
    for weight in ("-1", str(Fraction(first.weight) * 1000 + 1)):
        changed = (dataclasses.replace(first, weight=weight), *proof.multipliers[1:])
        if dataclasses.replace(proof, multipliers=changed).verify():
            return False
    return bool(proof.multipliers) and semidefinite(total)


def is_right(found: Control, z: object, lead: list[int], follow: list) -> bool:
    """The certificate verifies, and holds when written out apart from the library."""
    if found.status == "undecided":
        return True
    if not found.certificate.verify():
        return False
    if found.status == "infeasible":
        return refuted(found, z, lead, follow)
    return grants(found.A, z, lead, follow)


def known(count: int) -> list[list[object]]:
    """Instances whose answer is known: wrong is also the other answer."""
    rows = []
    for name, draw, truth in (
        ("planted A", planted, "feasible"),
        ("impossible", _impossible, "infeasible"),
    ):
        seen, wrong, times, seed = Counter(), 0, [], 0
        while sum(seen.values()) < count:
            case, seed = draw(seed), seed + 1
            if case is None:
                continue
            z, lead, follow = case
            start = time.process_time()
            found = choose_matrix(z, lead, follow=follow)
            times.append(time.process_time() - start)
            seen[found.status] += 1
            wrong += found.status not in (truth, "undecided")
            wrong += not is_right(found, z, lead, follow)
        rows.append(
            [name, count]
            + [seen[s] for s in ("feasible", "infeasible", "undecided")]
            + [wrong, f"{np.median(times):.3f}", f"{max(times):.2f}"]
        )
    return rows


def _impossible(seed: int) -> object:
    rng = np.random.default_rng([2, seed])
    return IMPOSSIBLE[seed % len(IMPOSSIBLE)](rng)


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
            wrong += not is_right(found, z, lead, follow)
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
    z = np.random.default_rng(SEED).normal(size=(200, 10))
    order = np.random.default_rng(1).permutation(200).tolist()
    target = (z @ z.T).argmax(axis=1)
    own = [i for i in range(200) if target[i] == i]
    rest = [(i, int(target[i])) for i in range(200) if target[i] != i and target[i] in own]
    some = [(i, order[k % 4]) for k, i in enumerate(order[4:8])]
    others = [(i, own[k % 20]) for k, (i, _) in enumerate(rest)]
    for lead, follow in (
        (order[:1], []),
        (order[:4], []),
        (order[:4], some),
        (order[:50], []),
        (own, rest),
        (own[:20], others),
    ):
        start = time.process_time()
        found = choose_matrix(z, lead, follow=follow)
        spent = time.process_time() - start
        rows.append([200, 10, len(lead), len(follow), found.status, f"{spent:.2f}"])
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
    text = "Every certificate verified and written out in fractions apart from the library; every\n"
    text += "feasible A confirmed by `equilibrium`; altered certificates fail.\n\n"
    text += (
        "Answers known (`control_cases.py`): n 3-200, d 1-10, any number of leads and follows;\n"
    )
    text += f"{len(IMPOSSIBLE)} kinds of impossible wishes:\n\n"
    text += table(header, known(50 if options.quick else 500))
    text += "\n\nRandom wishes, d 1-6, n 3-60, 1-4 leads, half with up to 3 follows; "
    text += f"seed {SEED}:\n\n" + table(header, draws(count))
    text += f"\n\nd = 2, n = 10, one lead: {one_lead(count)}.\n\n"
    text += table(["n", "d", "leads", "follows", "status", "CPU s"], large())
    header = ["n", "d", "infeasible at the input", "granted in the limit"]
    text += "\n\nTwo leads, 100 tries:\n\n" + table(header, limits(10 if options.quick else 40))
    report("Choosing A", text, options.record)


if __name__ == "__main__":
    main()
