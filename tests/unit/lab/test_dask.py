"""A real Dask cluster of two workers: one dies, the driver dies, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hardmax._errors import HardmaxError, InputError
from hardmax.lab import schedule
from hardmax.lab.schedule import run_tasks
from hardmax.lab.sweep import sweep
from tests.unit.lab.deadly import dies_always

ROOT = Path(__file__).parents[3]
Process = subprocess.Popen[bytes]


def _start(*args: str) -> Process:
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-m", *args]
    settings = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=quiet, stderr=quiet, cwd=ROOT, env=settings)


def _until(ready: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[Process]]]:
    """The address of a scheduler in a process of its own, and its workers."""
    place = folder / "scheduler.json"
    processes = [
        _start(
            "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
            "--no-dashboard", "--scheduler-file", str(place),
        )
    ]  # fmt: skip
    try:
        _until(lambda: place.exists() and place.stat().st_size > 0)
        address = json.loads(place.read_text())["address"]
        worker = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny")
        processes += [_start(*worker, "--no-dashboard") for _ in range(workers)]
        yield address, processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def lines(journal: Path) -> int:
    return len(journal.read_bytes().splitlines()) if journal.exists() else 0


def test_a_worker_and_the_driver_are_killed_and_no_system_is_lost(tmp_path: Path) -> None:
    out = tmp_path / "found"
    words = ["matrix=spd,general", "d=2,4", "n=40"]
    with cluster(tmp_path, 2) as (address, workers):
        options = ["--draws", "200", "--scheduler", address, "--out", str(out)]
        driver = _start("hardmax", "sweep", *words, *options)
        journal = out / "journal.txt"
        _until(lambda: lines(journal) > 1)
        workers[0].kill()
        _until(lambda: lines(journal) > 200)
        driver.kill()
        driver.wait()
        kept = lines(journal) - 1
        assert 200 <= kept < 800
        grid = {"matrix": ["spd", "general"], "d": [2, 4], "n": 40}
        found = sweep(grid, draws=200, scheduler=address, out=out)
    assert found.resumed in (kept, kept - 1)  # a line may have been cut by the kill
    assert lines(journal) == 801
    assert len(found.cells) == 800
    assert found.cells == sweep(grid, draws=200, scheduler="here").cells


def test_a_task_that_kills_its_workers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "_ALONE", 0.5)
    with (
        cluster(tmp_path, 1) as (address, _),
        pytest.raises(HardmaxError, match=r"has had no worker for a minute|worker of Dask died"),
    ):
        list(run_tasks(dies_always, [0], address))


def test_an_address_without_a_scheduler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "_CONNECT", 0.5)
    with pytest.raises(InputError, match=r"the Dask scheduler tcp://127.0.0.1:1 does not answer"):
        list(run_tasks(str, [1], "tcp://127.0.0.1:1"))
