"""What every benchmark shares: interleaved medians, a table, and the record in RESULTS.md."""

from __future__ import annotations

import argparse
import ctypes
import datetime
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")


def interleaved(
    runs: dict[str, Callable[[], object]],
    repeats: int = 5,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Median CPU seconds of each run; one round of all of them after the other."""
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = clock()
            run()
            times[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def peak_memory(run: Callable[[], object]) -> float | None:
    """MiB of main memory that a run took at most above what was in use; None if unknown."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    try:
        ctypes.CDLL(None).malloc_trim(0)  # give back what earlier runs have freed
        reset.write_text("5")  # Linux: the peak starts again at what is in use
    except (OSError, AttributeError):
        return None

    def read(name: str) -> int:
        line = next(x for x in status.read_text().splitlines() if x.startswith(name))
        return int(line.split()[1])

    before = read("VmRSS")
    run()
    return max(0, read("VmHWM") - before) / 1024


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(v) for v in row) + " |" for row in rows]
    return "\n".join(lines)


def machine() -> str:
    """The processor, the number of cores and the versions, in words."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        name = models[0].split(":")[1].strip() if models else name
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}"


def commit() -> str:
    """The short hash of the checkout, with a plus sign when code is changed.

    Code is the library and the benchmarks; results and pages say nothing about a timing.
    """
    git = ["git", "-C", str(RESULTS.parent.parent)]
    code = ["--", "src", "benchmarks/*.py"]
    name = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    dirty = subprocess.run([*git, "status", "--porcelain", *code], capture_output=True, text=True)
    return (name.stdout.strip() or "unknown") + ("+" if dirty.stdout.strip() else "")


def report(title: str, text: str, record: bool) -> None:
    """Print a result; with `record`, replace its section in RESULTS.md."""
    stamp = f"{machine()}; commit {commit()}; {datetime.date.today().isoformat()}"
    section = f"## {title}\n\n{stamp}\n\n{text}\n"
    print(section)
    if not record:
        return
    old = RESULTS.read_text() if RESULTS.exists() else "# Results of the benchmarks\n"
    parts = old.split("\n## ")
    kept = [p for p in parts[1:] if not p.startswith(title + "\n")]
    body = parts[0].rstrip() + "\n" + "".join("\n## " + p.rstrip() + "\n" for p in kept)
    RESULTS.write_text(body + "\n" + section)


def arguments(description: str) -> argparse.Namespace:
    """The options that all benchmarks take."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--record", action="store_true", help="keep the result in RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    return parser.parse_args()
