"""Compare the library with the oracle on many random systems.

    python -m tests.known.check_systems --count 2000 --seed 0

prints a table and exits with 1 when anything is wrong.  A line of a failing
system names its seed and index: `tests.strategies.system(seed, index)`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

import hardmax as hm
from tests import oracle, strategies
from tests.strategies import System

SHALLOW, DEEP = 20, 200
ROOM = 4.0
"""A margin counts as clear when it exceeds this many tolerances."""
TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}


@dataclass
class Report:
    """What became of one system."""

    system: System
    status: str
    rule: str | None
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0
    compared: int = 0

    @property
    def proved(self) -> bool:
        """Whether the library gave a proof."""
        return self.status == "proved"


# ------------------------------------------------------------------ the limit


def worst_gap(limit: Any, exact: oracle.Points) -> float:
    """Largest error of a float limit, relative to the largest coordinate."""
    top = max((abs(x) for row in exact for x in row), default=Fraction(0)) or Fraction(1)
    return max(
        float(abs(Fraction(float(a)) - x) / top) if np.isfinite(a) else float("inf")
        for got, row in zip(limit, exact, strict=True)
        for a, x in zip(got, row, strict=True)
    )


def limit_faults(eq: Any, found: oracle.Answer) -> Iterator[str]:
    """Where an equilibrium differs from the exact answer; nothing when it does not."""
    if not eq.certificate.proved:
        return
    if found.limit is None:
        yield f"proved, but the oracle found no limit within {found.layers} layers"
        return
    gap = worst_gap(eq.limit, found.limit)
    if gap > 1e-13:
        yield f"limit is off by {gap:.2g} of the largest coordinate"
    if eq.limit_exact is not None and eq.limit_exact != found.limit:
        yield "limit_exact is not the exact limit"
    for name in ("leaders", "born", "labels"):
        got, want = tuple(int(v) for v in getattr(eq, name)), getattr(found, name)
        if got != want:
            yield f"{name} {_short(got)} instead of {_short(want)}"
    if found.rule != "lines" and eq.settled_at != found.settled_at:
        yield f"settled_at {eq.settled_at} instead of {found.settled_at}"
    yield from _position_faults(eq, found)


def _position_faults(eq: Any, found: oracle.Answer) -> Iterator[str]:
    assert found.limit is not None
    for c, (leader, born) in enumerate(zip(found.leaders, found.born, strict=True)):
        if born == 0 and any(
            float(a) != float(x) for a, x in zip(eq.limit[leader], found.limit[leader], strict=True)
        ):
            yield f"leader {leader} was never to move, but its limit is not its token"
        for i in np.flatnonzero(np.asarray(eq.labels) == c):
            if not np.array_equal(eq.limit[i], eq.limit[leader]):
                yield f"token {i} follows {leader} to another point"


def _short(values: tuple[int, ...]) -> str:
    text = str(values)
    return text if len(text) < 60 else text[:57] + "..."


def certificate_faults(eq: Any, system: System) -> Iterator[str]:
    """A proof verifies, with either arithmetic allowed, and not on altered data."""
    if eq.certificate.proved != (eq.status == "proved"):
        yield f"the status is {eq.status}, proved: {eq.certificate.proved}"
    if not eq.certificate.proved:
        return
    if not eq.certificate.verify(system.z):
        yield "a certificate of the library does not verify"
    if not eq.certificate.verify(system.z.astype(np.float64)):
        yield "the same numbers in float64 do not verify"
    if system.z.size <= 600 and not eq.certificate.verify(system.z, arithmetic="rational"):
        yield "a certificate of the library does not verify in rationals"
    rng = np.random.default_rng([system.seed, system.index, 1])
    at = tuple(rng.integers(system.z.shape))
    z = system.z.copy()
    z[at] = np.nextafter(z[at], np.inf, dtype=z.dtype)
    if eq.certificate.verify(z):
        yield f"z{tuple(map(int, at))} moved by one ulp, and the certificate still verifies"


# ------------------------------------------------------------------ simulation


def leaders_of(run: Any, before: int) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
    """(index, birth, members) of the leaders born before a layer."""
    rows = ((int(x.index), int(x.born), tuple(map(int, x.members))) for x in run.leaders)
    return tuple(row for row in rows if row[1] < before)


def run_faults(system: System, found: oracle.Answer) -> Iterator[str]:
    """Depth 20 and 200 agree always; precisions and the oracle where margins are clear."""
    z, A, alpha = system.z, system.A, system.alpha
    shallow = leaders_of(hm.simulate(z, SHALLOW, A=A, alpha=alpha, save="last"), SHALLOW)
    deep = leaders_of(hm.simulate(z, DEEP, A=A, alpha=alpha, save="last"), SHALLOW)
    if shallow != deep:
        yield f"leaders at depth 20 and 200 differ: {_differ(shallow, deep)}"
    margin = min(found.margins[:SHALLOW])
    truth = found.found_by(SHALLOW)
    if found.settled and margin > ROOM * TOLERANCE[z.dtype] and shallow != truth:
        yield f"leaders of the run and the oracle differ: {_differ(shallow, truth)}"
    if found.settled and margin > ROOM * TOLERANCE[np.dtype(np.float32)]:
        other = _other_precision(system)
        if other is not None:
            run = hm.simulate(other[0], SHALLOW, A=other[1], alpha=alpha, save="last")
            if leaders_of(run, SHALLOW) != truth:
                yield f"other precision differs: {_differ(leaders_of(run, SHALLOW), truth)}"


def _other_precision(system: System) -> Any:
    """(z, A) in the other precision, unless that loses the tokens."""
    kind = np.float32 if system.z.dtype == np.float64 else np.float64
    with np.errstate(over="ignore", under="ignore"):
        z = system.z.astype(kind)
        A = None if system.A is None else system.A.astype(kind)
    if not np.isfinite(z).all() or not np.allclose(z, system.z, rtol=1e-6, atol=0):
        return None
    return z, A


def _differ(a: Any, b: Any) -> str:
    only_a, only_b = sorted(set(a) - set(b)), sorted(set(b) - set(a))
    return f"only first {only_a[:3]}, only second {only_b[:3]}"


# ------------------------------------------------------------------ one system, all systems


def check(system: System, runs: bool = True, exact: bool = False) -> Report:
    """Everything that is claimed of one system."""
    start = time.perf_counter()
    found = oracle.answer(system.z, system.A, system.alpha)
    eq = hm.equilibrium(system.z, A=system.A, alpha=system.alpha, exact=exact)
    report = Report(system, eq.status, found.rule)
    report.faults += limit_faults(eq, found)
    report.faults += certificate_faults(eq, system)
    if runs:
        report.faults += run_faults(system, found)
    report.seconds = time.perf_counter() - start
    return report


def _check_number(job: tuple[int, int, int]) -> Report:
    seed, index, n_max = job
    system = strategies.system(seed, index, n_max=n_max)
    try:
        return check(system, exact=index % 10 == 0)
    except Exception as error:  # a crash is a finding, and the other systems still count
        return Report(system, "crashed", None, [f"{type(error).__name__}: {error}"])


def check_many(count: int, seed: int = 0, n_max: int = 300, jobs: int = 1) -> Iterator[Report]:
    """Reports in the order of the systems."""
    work = [(seed, index, n_max) for index in range(count)]
    if jobs == 1:
        yield from map(_check_number, work)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_check_number, work, chunksize=4)


def table(reports: list[Report]) -> str:
    """One line per cloud and precision."""
    words = ("systems", "proved", "oracle", " wrong", "       s")
    head = f"{'cloud':<12} {'dtype':<8} " + " ".join(f"{word:>7}" for word in words)
    lines = [head, "-" * len(head)]
    groups: dict[tuple[str, str], list[Report]] = {}
    for r in reports:
        groups.setdefault((r.system.cloud, str(r.system.z.dtype)), []).append(r)
    total = ("all", ""), reports
    for (cloud, kind), rs in [*sorted(groups.items()), total]:
        lines.append(
            f"{cloud:<12} {kind:<8} {len(rs):>7} {sum(r.proved for r in rs):>7} "
            f"{sum(r.rule is not None for r in rs):>7} {sum(bool(r.faults) for r in rs):>7} "
            f"{sum(r.seconds for r in rs):>8.1f}"
        )
    return "\n".join(lines)


def proved_share(reports: list[Report]) -> float:
    """Share of the float64 systems that end proved."""
    doubles = [r for r in reports if r.system.z.dtype == np.float64]
    return sum(r.proved for r in doubles) / max(1, len(doubles))


def main(argv: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n-max", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args(argv)
    reports = []
    for report in check_many(args.count, args.seed, args.n_max, args.jobs):
        reports.append(report)
        for fault in report.faults:
            print(f"WRONG {report.system.name}: {fault}", flush=True)
        if not report.faults and not report.proved:
            print(f"open  {report.system.name}: {report.status}, oracle {report.rule}", flush=True)
    share = proved_share(reports)
    print(table(reports))
    print(f"float64 systems that end proved: {100 * share:.2f} % (at least 99.5 % wanted)")
    return int(any(r.faults for r in reports) or share < 0.995)


if __name__ == "__main__":
    sys.exit(main())
