"""Sweeps: what they find, that nothing is lost, and that nothing depends on where they run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hardmax as hm
from hardmax._errors import DataError, HardmaxError, InputError, OutputError
from hardmax.lab import schedule
from hardmax.lab import sweep as module
from hardmax.lab.grid import Range, read_grid, read_words
from hardmax.lab.intervals import bootstrap, wilson
from hardmax.lab.presets import QUESTIONS, question
from hardmax.lab.schedule import run_tasks
from hardmax.lab.sweep import Sweep, sweep
from tests.unit.lab.deadly import dies_always, dies_once

GRID = {"matrix": ["spd", "general"], "n": 12, "d": [2, 3]}


def counted(params: Mapping[str, Any], seed: int, draws: Sequence[int]) -> list[dict[str, Any]]:
    """A measure that notes each call in a file."""
    with Path(params["log"]).open("a") as file:
        file.write("".join(f"{params['x']} {draw}\n" for draw in draws))
    return [{"value": params["x"] * draw + seed, "even": draw % 2 == 0} for draw in draws]


def interrupted(params: Mapping[str, Any], seed: int, draws: Sequence[int]) -> list[Any]:
    """The same, until the cell (1, 3)."""
    if params["x"] == 1 and 3 in draws and not Path(params["log"] + ".again").exists():
        raise KeyboardInterrupt
    return counted(params, seed, draws)


# ------------------------------------------------------------------ what it finds


def test_the_sweep_is_a_public_name_and_gives_cells_and_intervals() -> None:
    found = hm.sweep(GRID, draws=20)
    assert isinstance(found, Sweep)
    assert len(found.cells) == 80
    assert found.varied == ("matrix", "d")
    for row in found.summary:
        mine = [c for c in found.cells if (c["matrix"], c["d"]) == (row["matrix"], row["d"])]
        values = np.array([c["clusters"] for c in mine], dtype=float)
        assert row["clusters"] == values.mean()
        assert row["clusters_low"] <= values.mean() <= row["clusters_high"]
        assert (row["draws"], row["clusters_of"], row["n"], row["alpha"]) == (20, 20, 12, 0.5)
        assert (row["converged_low"], row["converged_high"]) == wilson(20, 20)


def test_more_draws_keep_the_first_ones() -> None:
    few, many = sweep(GRID, draws=3), sweep(GRID, draws=5)
    first = [c for c in many.cells if c["draw"] < 3]
    assert first == few.cells
    assert sweep(GRID, draws=3, seed=1).cells != few.cells


@pytest.mark.parametrize("scheduler", ["threads", "local", "multiprocessing"])
def test_the_result_does_not_depend_on_the_scheduler(scheduler: str) -> None:
    here = sweep(GRID, draws=4, scheduler="here")
    assert sweep(GRID, draws=4, scheduler=scheduler, workers=2).cells == here.cells


def test_a_sample_draws_from_lists_and_ranges() -> None:
    grid = {"alpha": Range(0.1, 2), "n": Range(5, 9, whole=True), "matrix": ["spd", "skew"]}
    plans = read_grid(grid, 200, seed=1)
    assert all(0.1 <= p["alpha"] < 2 for p in plans)
    assert {p["n"] for p in plans} == {5, 6, 7, 8, 9}
    assert {p["matrix"] for p in plans} == {"spd", "skew"}
    logs = np.log10([p["t"] for p in read_grid({"t": Range(0.001, 10, log=True)}, 400)])
    assert np.histogram(logs, bins=4, range=(-3, 1))[0].min() > 60
    found = sweep(grid, draws=2, sample=6)
    assert len(found.summary) == 6
    assert found.varied == ("alpha", "n", "matrix")


# ----------------------------------------------------------------- nothing is lost


def test_an_interrupted_sweep_goes_on_and_runs_no_cell_twice(tmp_path: Path) -> None:
    log = tmp_path / "log"
    grid = {"x": [0, 1, 2], "log": str(log)}
    with pytest.raises(KeyboardInterrupt):
        sweep(grid, draws=5, out=tmp_path / "s", measure=interrupted)
    before = log.read_text().splitlines()
    assert len(before) == 8  # five of the first kind, three of the second
    (tmp_path / "log.again").write_text("")
    found = sweep(grid, draws=5, out=tmp_path / "s", measure=interrupted)
    lines = log.read_text().splitlines()
    assert len(lines) == len(set(lines)) == 15
    assert found.resumed == 8
    assert [c["value"] for c in found.cells] == [x * k for x in (0, 1, 2) for k in range(5)]
    again = sweep(grid, draws=5, out=tmp_path / "s", measure=interrupted)
    assert (again.resumed, again.cells) == (15, found.cells)
    assert len(log.read_text().splitlines()) == 15


def test_a_cell_that_was_being_written_is_run_again(tmp_path: Path) -> None:
    whole = sweep(GRID, draws=4, out=tmp_path / "s")
    journal = tmp_path / "s" / "journal.txt"
    data = journal.read_bytes()
    journal.write_bytes(data[: len(data) // 2])
    found = sweep(GRID, draws=4, out=tmp_path / "s")
    assert 0 < found.resumed < 16
    assert found.cells == whole.cells
    assert len(journal.read_bytes().splitlines()) == 17


def test_a_folder_may_grow_but_not_change_its_seed_or_its_measure(tmp_path: Path) -> None:
    out = tmp_path / "s"
    sweep(GRID, draws=2, out=out)
    more = sweep({**GRID, "d": [2, 3, 4]}, draws=3, out=out)
    assert (more.resumed, len(more.cells)) == (8, 18)
    fewer = sweep({**GRID, "d": 3}, draws=1, out=out)
    assert (fewer.resumed, len(fewer.cells)) == (2, 2)
    with pytest.raises(DataError, match="was begun with seed = 0, and now it is 5"):
        sweep(GRID, draws=2, out=out, seed=5)
    with pytest.raises(DataError, match="was begun with measure = "):
        sweep({"x": 1, "log": str(out / "l")}, draws=2, out=out, measure=counted)
    with pytest.raises(OutputError, match="cannot be a folder of results"):
        sweep(GRID, draws=2, out=tmp_path / "no" / "where")


def test_a_process_that_is_killed_loses_no_task(tmp_path: Path) -> None:
    tasks = [str(tmp_path / name) for name in "ab"] + [str(tmp_path)] * 4
    done = dict(run_tasks(dies_once, tasks, "local", 2))
    assert done == dict.fromkeys(range(6), 7)


def test_processes_that_always_die_are_given_up_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schedule, "_TRIES", 2)
    with pytest.raises(HardmaxError, match="a worker process died 2 times"):
        list(run_tasks(dies_always, [1, 2], "local", 2))


def test_tasks_hold_every_cell_once_and_are_of_like_size() -> None:
    jobs = [({"n": n, "d": 2}, list(range(300))) for n in (10, 40, 400)]
    tasks = module._tasks(jobs, known=True)
    cells = [(p["n"], k) for task in tasks for p, draws in task for k in draws]
    assert cells == [(p["n"], k) for p, draws in jobs for k in draws]
    sizes = [sum(len(draws) for _, draws in task) for task in tasks]
    assert max(sizes) <= 256
    assert len(tasks) < 150
    each = module._tasks([({"x": 1}, [0, 1, 2])], known=False)
    assert each == [[({"x": 1}, [0])], [({"x": 1}, [1])], [({"x": 1}, [2])]]


def test_progress_counts_up_to_all_cells(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    sweep(GRID, draws=4, out=tmp_path / "s", progress=lambda *now: seen.append(now))
    assert seen[0] == (0, 16)
    assert seen[-1] == (16, 16)
    assert sorted(seen) == seen
    seen.clear()
    sweep(GRID, draws=4, out=tmp_path / "s", progress=lambda *now: seen.append(now))
    assert seen == [(16, 16)]


def test_results_are_saved_as_csv_and_parquet(tmp_path: Path) -> None:
    import pandas as pd

    found = sweep({"matrix": ["spd", "general"], "temperature": [0.0, 0.2], "depth": 30}, draws=3)
    paths = found.save(tmp_path)
    assert sorted(p.name for p in paths) == [
        "cells.csv", "cells.parquet", "summary.csv", "summary.parquet",
    ]  # fmt: skip
    cells = pd.read_parquet(tmp_path / "cells.parquet")
    assert cells["clusters"].tolist() == found.columns["clusters"]
    assert pd.read_csv(tmp_path / "cells.csv")["draw"].tolist() == cells["draw"].tolist()
    summary = pd.read_parquet(tmp_path / "summary.parquet")
    assert summary["distance_high"].tolist() == [r["distance_high"] for r in found.summary]
    assert json.loads(json.dumps(found.to_dict()))["cells"] == 12


# --------------------------------------------------------------------- intervals


def test_wilson_covers_a_share_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    for share in (0.02, 0.3, 0.5):
        hits = rng.binomial(60, share, size=2000)
        good = [low <= share <= high for low, high in (wilson(int(k), 60) for k in hits)]
        assert 0.93 < np.mean(good) < 0.985
    assert wilson(0, 10)[0] == 0
    assert wilson(10, 10)[1] == 1
    assert wilson(5, 10, 0.99)[1] > wilson(5, 10)[1]


def test_the_bootstrap_covers_a_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    good = []
    for _ in range(300):
        low, high = bootstrap(rng.exponential(size=60))
        good.append(low <= 1 <= high)
    assert 0.89 < np.mean(good) < 0.98
    values = rng.normal(size=40)
    assert bootstrap(values) == bootstrap(values)
    assert bootstrap(np.full(5, 2.0)) == (2, 2)


# ------------------------------------------------------------------ words and names


def test_words_are_read_as_grids() -> None:
    grid = read_words(["n=40", "d=2,4", "matrix=spd,spd+0.5skew", "causal=true,no", "alpha=.1..2"])
    assert grid["n"] == [40]
    assert grid["matrix"] == ["spd", "spd+0.5skew"]
    assert grid["causal"] == [True, False]
    assert grid["alpha"] == Range(0.1, 2)
    assert read_words(["n=3..9", "t=.1..1:log"]) == {
        "n": Range(3, 9, whole=True),
        "t": Range(0.1, 1, log=True),
    }


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_runs_and_is_drawn(name: str) -> None:
    asked = question(name)
    grid = {**asked.grid, "n": 6, "depth": 25}
    found = sweep(grid, draws=2)
    names = {key for row in found.summary for key in row}
    assert {f"{m}_low" for m in asked.measures} - {"life_low"} <= names
    figure = found.draw([m for m in asked.measures if f"{m}_low" in names])
    assert len(figure.axes) >= 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sweep(GRID, draws=0), "`draws` must be an integer >= 1"),
        (lambda: sweep(GRID, sample=0), "`sample` must be an integer >= 1"),
        (lambda: sweep(GRID, level=1.0), "`level` must be between 0 and 1"),
        (lambda: sweep(GRID, seed=-1), "`seed` must be an integer >= 0"),
        (lambda: sweep({"n": []}), "`n` must have at least one value"),
        (lambda: sweep({"alpha": Range(0.1, 1)}), "`alpha` is a range, which needs a sample"),
        (lambda: sweep(GRID, scheduler="spark9"), "`scheduler` must be here, local, threads"),
        (lambda: Range(2, 1), "a range must go up"),
        (lambda: Range(0, 1, log=True), "from a number > 0 when logarithmic"),
        (lambda: read_words(["n"]), "expected NAME=VALUE,VALUE"),
        (lambda: read_words(["n=1", "n=2"]), "'n' is given twice"),
        (lambda: read_words(["n=a..2"]), r"expected n=LOW\.\.HIGH"),
        (lambda: read_words(["n=1..2:lin"]), r"LOW\.\.HIGH:log"),
        (lambda: question("why"), "'why' is no question. Known are matrices"),
        (lambda: sweep(GRID, draws=1).draw(["heat"]), "`y` must name measures of the sweep"),
        (lambda: sweep(GRID, draws=1).draw(x="heat"), "`x` must name a setting"),
    ],
)
def test_mistakes_are_named(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_too_many_lines_are_not_drawn() -> None:
    found = sweep({"n": [3, 4, 5, 6], "d": [1, 2, 3, 4], "alpha": [0.5, 1, 2, 3]}, draws=1)
    with pytest.raises(InputError, match="16 lines are too many for a picture"):
        found.draw()
