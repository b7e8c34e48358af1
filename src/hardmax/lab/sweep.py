"""Sweeps: many systems of many kinds, on one machine or many, each finished one kept at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from hardmax import __version__
from hardmax._check import check_depth
from hardmax._errors import InputError, OutputError
from hardmax.io.columns import columns_of, write_columns
from hardmax.io.journal import Journal
from hardmax.lab.grid import digest_of, read_grid
from hardmax.lab.intervals import summarise
from hardmax.lab.measure import cost, measure_systems
from hardmax.lab.schedule import run_tasks
from hardmax.lab.variants import read_variant

__all__ = ["Sweep", "sweep"]

Measure: TypeAlias = Callable[[Mapping[str, Any], int, Sequence[int]], list[Any]]
Job: TypeAlias = tuple[dict[str, Any], list[int]]

_FORMAT = 1
_BUDGET = 2.5e8
"""Elementary operations of a task; about half a second."""
_CELLS = 256
_MANY = 60


@dataclass(frozen=True)
class Sweep:
    """The results of a sweep.

    Attributes
    ----------
    cells : list of dict
        One row per system: its settings, `draw`, and what was measured.
    settings : list of dict
        The combinations of all settings, in the order of the grid.
    summary : list of dict
        One row per combination: `draws`, and per measure its mean, `_low` and `_high` (the
        confidence interval), and `_of` (how many systems have it).
    varied : tuple of str
        The settings that differ between combinations.
    seed : int
    level : float
        Of the intervals.
    resumed : int
        Cells that were there from an earlier run.
    """

    cells: list[dict[str, Any]]
    settings: list[dict[str, Any]]
    summary: list[dict[str, Any]]
    varied: tuple[str, ...]
    seed: int
    level: float
    resumed: int = 0

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The cells as columns, as `pandas.DataFrame` takes them."""
        return columns_of(self.cells)

    def save(self, folder: str | Path) -> list[Path]:
        """Write cells and summary as CSV and Parquet into a folder; earlier ones are replaced.

        Raises
        ------
        MissingExtraError
            Without pyarrow, after the CSV files are written.
        """
        places = []
        for ending in (".csv", ".parquet"):
            for name, rows in (("cells", self.cells), ("summary", self.summary)):
                path = Path(folder) / f"{name}{ending}"
                places.append(write_columns(path, columns_of(rows), force=True))
        return places

    def draw(self, y: Sequence[str] = (), x: str | None = None) -> Any:
        """A figure: one panel per measure, one line per setting beyond the first."""
        from hardmax.plot.sweep import draw_sweep

        return draw_sweep(self.summary, self.varied, y, x)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the summary and how it was made."""
        return {
            "seed": self.seed,
            "level": self.level,
            "cells": len(self.cells),
            "resumed": self.resumed,
            "varied": list(self.varied),
            "summary": self.summary,
        }


def sweep(
    grid: Mapping[str, Any],
    *,
    draws: int = 100,
    sample: int | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    scheduler: str = "auto",
    workers: int | None = None,
    measure: Measure | None = None,
    level: float = 0.95,
    progress: Callable[[int, int], None] | None = None,
) -> Sweep:
    """Measure random systems of every kind in a grid, with confidence intervals.

    Parameters
    ----------
    grid : mapping
        Settings of `Variant`, each a value or a list of values (or a `Range`, with `sample`).
    draws : int
        Systems per combination of settings.
    sample : int, optional
        Take this many random combinations instead of all.
    out : path, optional
        A folder.  Each finished system is kept in its journal at once, and systems that
        are there are not run again: after an interruption call it again, also with
        more draws or more values.
    seed : int
        A system is decided by the seed, its settings and its draw; nothing else matters.
    scheduler : str
        "here" (this process), "local" (processes), "threads", a Dask address such as
        tcp://10.0.0.1:8786, or any backend of joblib.  "auto" is "local" for more than
        about half a minute of work, else "here".
    workers : int, optional
        Processes or threads; all cores when None.
    measure : callable, optional
        (settings, seed, draws) -> one dict of numbers per draw, instead of `measure_systems`.
    level : float
        Of the confidence intervals.
    progress : callable, optional
        Called with the number of finished cells and of all cells.

    Returns
    -------
    Sweep

    Raises
    ------
    InputError
        For settings that make no system, or an unknown scheduler.
    DataError, OutputError
        If the folder holds another sweep, or another process is writing there.

    Notes
    -----
    Draws share their tokens and matrices between combinations where these agree, so
    differences between combinations are less noisy than their intervals say.

    Examples
    --------
    >>> found = sweep({"matrix": ["identity", "indefinite"], "n": 20}, draws=30)
    >>> [(row["matrix"], round(row["clusters"], 1)) for row in found.summary][1]
    ('indefinite', 2.0)
    >>> found.summary[0]["converged"], round(found.summary[0]["converged_low"], 2)
    (1.0, 0.89)
    """
    count = check_depth(draws, "draws")
    if count < 1:
        raise InputError("`draws` must be an integer >= 1; got 0.")
    if not 0 < level < 1:
        raise InputError(f"`level` must be between 0 and 1; got {level!r}.")
    if sample is not None and check_depth(sample, "sample") < 1:
        raise InputError("`sample` must be an integer >= 1; got 0.")
    seed = check_depth(seed, "seed")
    call: Measure = measure_systems if measure is None else measure
    plans = read_grid(grid, sample, seed)
    if measure is None:
        plans = [read_variant(plan).to_dict() for plan in plans]
    store = _Store(plans, count, seed, _name_of(call), out)
    try:
        jobs = store.missing()
        tasks = _tasks(jobs, measure is None)
        store.report(progress)
        place = _place(scheduler, len(tasks), measure is None)
        for k, results in run_tasks(partial(run_task, call, seed), tasks, place, workers):
            store.add(tasks[k], results)
            store.report(progress)
    finally:
        store.close()
    return _result(store, _varied(plans, grid), level)


def _varied(plans: list[dict[str, Any]], grid: Mapping[str, Any]) -> tuple[str, ...]:
    """The settings with more than one value, in the order in which they were given."""
    return tuple(str(n) for n in grid if len({str(p.get(str(n))) for p in plans}) > 1)


def _place(scheduler: str, tasks: int, known: bool) -> str:
    """What "auto" means: processes only where starting them is worth it."""
    if scheduler != "auto":
        return scheduler
    return "local" if known and tasks > _MANY else "here"


def _name_of(call: Any) -> str:
    return f"{getattr(call, '__module__', '')}.{getattr(call, '__qualname__', repr(call))}"


def run_task(call: Measure, seed: int, jobs: Sequence[Job]) -> list[list[Any]]:
    """What a worker does: measure some draws of some settings, on one thread."""
    from hardmax.select.threads import one_thread

    with one_thread():
        return [list(call(params, seed, draws)) for params, draws in jobs]


def _tasks(jobs: Iterable[Job], known: bool) -> list[list[Job]]:
    """Cells bundled so that each task takes about as long; one cell each for other measures."""
    tasks: list[list[Job]] = []
    room, cells = 0.0, 0
    for params, draws in jobs:
        each = cost(params) if known else _BUDGET
        start = 0
        while start < len(draws):
            if room < each or cells >= _CELLS or not tasks:
                tasks.append([])
                room, cells = _BUDGET, 0
            size = max(1, min(int(room / each), _CELLS - cells, len(draws) - start))
            tasks[-1].append((params, draws[start : start + size]))
            start, room, cells = start + size, room - size * each, cells + size
    return tasks


class _Store:
    """The cells of a sweep, those finished and those missing, with their journal."""

    def __init__(
        self,
        plans: list[dict[str, Any]],
        draws: int,
        seed: int,
        measure: str,
        out: str | Path | None,
    ) -> None:
        self.plans = {digest_of(plan): plan for plan in plans}
        self.draws, self.seed = draws, seed
        self.rows: dict[tuple[str, int], dict[str, Any]] = {}
        self.journal: Journal | None = None
        if out is not None:
            folder = _folder(Path(out))
            head = {"format": _FORMAT, "hardmax": __version__, "seed": seed, "measure": measure}
            self.journal = Journal(folder / "journal.txt", head)
            for entry in self.journal.entries:
                key = (entry["key"], entry["draw"])
                if key[0] in self.plans and key[1] < draws:
                    self.rows[key] = entry["row"]
            self.journal.entries = []
        self.resumed = len(self.rows)

    @property
    def total(self) -> int:
        return len(self.plans) * self.draws

    def missing(self) -> list[Job]:
        """Settings with the draws that are still to be run."""
        found = []
        for key, plan in self.plans.items():
            left = [k for k in range(self.draws) if (key, k) not in self.rows]
            if left:
                found.append((plan, left))
        return found

    def add(self, task: Sequence[Job], results: Sequence[Sequence[dict[str, Any]]]) -> None:
        """Keep the results of a task; they are on the disk when this returns."""
        entries = []
        for (plan, draws), rows in zip(task, results, strict=True):
            key = digest_of(plan)
            for draw, row in zip(draws, rows, strict=True):
                entries.append({"key": key, "settings": plan, "draw": draw, "row": row})
                self.rows[key, draw] = row
        if self.journal is not None:
            self.journal.append(entries)

    def report(self, progress: Callable[[int, int], None] | None) -> None:
        if progress is not None:
            progress(len(self.rows), self.total)

    def close(self) -> None:
        if self.journal is not None:
            self.journal.close()


def _folder(path: Path) -> Path:
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(
            f"{path}: cannot be a folder of results: {reason}. Give another."
        ) from None
    return path


def _result(store: _Store, varied: tuple[str, ...], level: float) -> Sweep:
    cells, groups = [], {}
    for key, plan in store.plans.items():
        rows = [store.rows[key, draw] for draw in range(store.draws)]
        groups[key] = rows
        cells += [{**plan, "draw": draw, **row} for draw, row in enumerate(rows)]
    found = summarise(groups, level)
    summary = [{**plan, **found[key]} for key, plan in store.plans.items()]
    plans = list(store.plans.values())
    return Sweep(cells, plans, summary, varied, store.seed, level, store.resumed)
