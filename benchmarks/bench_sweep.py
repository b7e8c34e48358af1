"""A sweep of 10,000 systems on two Dask workers: one dies, the driver dies, it goes on.

OMP_NUM_THREADS=1 python benchmarks/bench_sweep.py [--quick] [--record]

Starts a scheduler and two workers as processes of their own, runs `hardmax sweep` against
them as a third, kills one worker at a third and the driver (with SIGKILL) at two thirds,
runs the command again with the worker that is left, and compares every cell with a run in one
process without trouble.  Then the time per system of each way to run a sweep.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from common import arguments, report, table

from hardmax.lab.sweep import sweep

GRID = {"matrix": ["spd", "general"], "d": [2, 4], "n": [20, 40]}
WORDS = ["matrix=spd,general", "d=2,4", "n=20,40"]


def start(*args: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", *args]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def until(ready: Callable[[], bool]) -> None:
    while not ready():
        time.sleep(0.02)


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler, and its two workers."""
    place = folder / "scheduler.json"
    scheduler = start(
        "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
        "--no-dashboard", "--scheduler-file", str(place),
    )  # fmt: skip
    until(lambda: place.exists() and place.stat().st_size > 0)
    address = json.loads(place.read_text())["address"]
    worker = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny")
    workers = [start(*worker, "--no-dashboard") for _ in range(2)]
    try:
        yield address, workers
    finally:
        for process in [*workers, scheduler]:
            process.kill()
            process.wait()


def lines(path: Path) -> int:
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def killed(draws: int, folder: Path) -> list[list[object]]:
    """The story with two deaths, as a table."""
    total, out = 8 * draws, folder / "found"
    journal = out / "journal.txt"
    with cluster(folder) as (address, workers):
        words = [*WORDS, "--draws", str(draws), "--scheduler", address, "--out", str(out)]
        driver = start("hardmax", "sweep", *words)
        until(lambda: lines(journal) > total // 3)
        workers[0].kill()
        at_worker = lines(journal) - 1
        until(lambda: lines(journal) > 2 * total // 3)
        driver.kill()
        driver.wait()
        kept = lines(journal) - 1
        done = subprocess.run(
            [sys.executable, "-m", "hardmax", "sweep", *words, "--json"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    again = json.loads(done.stdout)
    entries = [json.loads(line[9:]) for line in journal.read_text().splitlines()[1:]]
    cells = Counter((entry["key"], entry["draw"]) for entry in entries)
    found = sweep(GRID, draws=draws, out=out)
    whole = sweep(GRID, draws=draws, scheduler="here")
    return [
        ["systems", total],
        ["finished when a worker was killed", at_worker],
        ["finished and kept when the driver was killed", kept],
        ["taken over by the second driver", again["resumed"]],
        ["cells at the end", len(cells)],
        ["cells run twice in the journal", sum(n > 1 for n in cells.values())],
        ["cells that differ from an undisturbed run", _differences(found.cells, whole.cells)],
    ]


def _differences(one: list[dict[str, object]], other: list[dict[str, object]]) -> int:
    return abs(len(one) - len(other)) + sum(a != b for a, b in zip(one, other, strict=False))


def rates(draws: int, folder: Path) -> list[list[object]]:
    """Wall seconds of a second run in each way, workers being warm where they last."""
    rows = []
    with cluster(folder) as (address, _):
        for name, scheduler, out in (
            ("one process, no folder", "here", None),
            ("one process, journal", "here", folder / "a"),
            ("two processes (joblib), journal", "local", folder / "b"),
            ("two Dask workers, journal", address, folder / "c"),
        ):
            sweep(GRID, draws=16, scheduler=scheduler, workers=2)
            begin = time.perf_counter()
            sweep(GRID, draws=draws, scheduler=scheduler, workers=2, out=out)
            spent = time.perf_counter() - begin
            rows.append([name, 8 * draws, f"{spent:.1f}", f"{1e3 * spent / (8 * draws):.2f}"])
    return rows


def main() -> None:
    options = arguments(__doc__ or "")
    draws = 125 if options.quick else 1250
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        story = table(["what", "number"], killed(draws, Path(one)))
        header = ["where", "systems", "wall s", "ms per system"]
        speed = table(header, rates(draws // 2, Path(other)))
    text = "Two Dask workers, one killed; the driver killed with SIGKILL and started again:\n\n"
    report("Sweeps", f"{text}{story}\n\nTime, intervals included:\n\n{speed}", options.record)


if __name__ == "__main__":
    main()
