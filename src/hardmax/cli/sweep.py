"""`hardmax sweep`: many random systems of many kinds, measured with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from hardmax._errors import InputError, OutputError
from hardmax.cli import options as opt
from hardmax.cli import text

__all__ = ["register"]

_EXAMPLES = """Examples:

hardmax sweep matrix=spd,indefinite,skew d=2,4 --draws 20\n
hardmax sweep matrices --draws 10 --out probe\n
hardmax sweep temperature=.01..1:log n=10..30 --sample 5 --draws 4 --out warm\n
hardmax sweep depth n=32 --draws 5 --json
"""
_SHOWN = ("clusters", "converged", "settled_at", "distance", "same")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sweep", epilog=_EXAMPLES)(sweep)


def sweep(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[QUESTION] [NAME=VALUES]...",
            help="A question: matrices, depth, heads, temperature, normalization, feed-forward, "
            "causal, classifier; and settings that replace its own or make a grid: tokens, n, d, "
            "alpha, depth, matrix, heads, values, temperature, normalization, feed_forward, "
            "causal. VALUES are 1,2,3, or LOW..HIGH[:log] with --sample.",
            show_default=False,
        ),
    ],
    draws: Annotated[
        int | None,
        typer.Option(
            min=1, help="Random systems, or models, of each kind.", show_default="100, models 3"
        ),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Random combinations instead of all.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Keep each finished system here; go on if there are some."
        ),
    ] = None,
    scheduler: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="here, local (processes), threads, tcp://HOST:8786 (Dask), a backend of joblib.",
        ),
    ] = "auto",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes or threads.", show_default="all cores")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all draws.")] = 0,
    level: Annotated[
        float, typer.Option(min=0.5, max=0.9999, help="Of the confidence intervals.")
    ] = 0.95,
    measures: Annotated[
        str | None, typer.Option("--show", metavar="NAME,NAME", help="Measures to show and draw.")
    ] = None,
    x: Annotated[
        str | None, typer.Option("--x", metavar="NAME", help="The setting drawn to the right.")
    ] = None,
    json: opt.Json = False,
) -> None:
    """Measure random systems of every kind in a grid: clusters, leaders, times, distances.

    With --out the folder holds a journal of finished systems, cells and summary as CSV and
    Parquet, and sweep.png. After an interruption the same command goes on.
    """
    from hardmax.lab.sweep import sweep as run_sweep

    grid, shown, extra = _plan(words, measures)
    usual = 3 if extra else 100
    if out is not None and not out.parent.is_dir():
        raise OutputError(f"{out}: the folder {out.parent} does not exist. Create it first.")
    with progress_bar() as show:
        found = run_sweep(
            grid,
            draws=draws or usual,
            sample=sample,
            out=out,
            seed=seed,
            scheduler=scheduler,
            workers=workers,
            level=level,
            progress=show,
            **extra,
        )
    shown = _measured(found, shown)
    if json:
        from hardmax.io import dumps

        typer.echo(dumps(found.to_dict()))
    else:
        _show(found, shown)
    if out is not None:
        _write(found, shown, x, out, quiet=json)


def _plan(
    words: Sequence[str], measures: str | None
) -> tuple[dict[str, Any], tuple[str, ...], dict[str, Any]]:
    """The grid, the measures to show, and what a question adds."""
    grid, shown, extra = _asked(words)
    shown = _measures(measures) or shown
    if not extra:
        _check_measures(_known(), shown)
    return grid, shown, extra


def _asked(words: Sequence[str]) -> tuple[dict[str, Any], tuple[str, ...], dict[str, Any]]:
    """The grid and the measures of a question, and what it adds."""
    from hardmax.lab.grid import read_words
    from hardmax.lab.presets import question

    if "=" in words[0]:
        return read_words(words), (), {}
    if words[0] == "classifier":
        from hardmax.lab.robustness import GRID, SHOWN, measure_classifier

        return {**GRID, **read_words(words[1:])}, SHOWN, {"measure": measure_classifier}
    found = question(words[0])
    return {**found.grid, **read_words(words[1:])}, found.measures, {}


def _measures(given: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in given.split(",")) if given else ()


def _known() -> set[str]:
    from hardmax.lab.measure import MEASURES

    return set(MEASURES)


def _check_measures(known: set[str], shown: Sequence[str]) -> None:
    for name in shown:
        if name not in known:
            raise InputError(
                f"--show: {name!r} is not measured. Known: {text.listed(sorted(known), 30)}."
            )


def _measured(found: Any, shown: Sequence[str]) -> tuple[str, ...]:
    """Those that some system has: a time may be there for none."""
    for name in shown:
        if not any(f"{name}_low" in row for row in found.summary):
            text.say(f"no system has {name}", error=True)
    return tuple(m for m in shown if any(f"{m}_low" in row for row in found.summary))


@contextmanager
def progress_bar() -> Iterator[Callable[[int, int], None] | None]:
    """A bar with finished cells and time left; none in a pipe."""
    out = text.console(error=True)
    if not out.is_terminal:
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("systems"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("systems", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _show(found: Any, shown: Sequence[str]) -> None:
    kinds = text.counted(len(found.summary), "kind")
    facts = [("systems", f"{len(found.cells):,} of {kinds}, seed {found.seed}")]
    if found.resumed:
        facts.append(("from an earlier run", f"{found.resumed:,}"))
    facts.append(("intervals", f"{100 * found.level:g} %: Wilson for shares, bootstrap for means"))
    text.print_facts("sweep", facts)
    names = list(shown) or [m for m in _SHOWN if any(m in row for row in found.summary)]
    heads = [*found.varied, *names]
    rows = [
        [*(_setting(row[name]) for name in found.varied), *(_cell(row, name) for name in names)]
        for row in found.summary
    ]
    text.print_table(heads, rows, "kinds")


def _setting(value: Any) -> str:
    return text.number(value) if isinstance(value, float) else str(value)


def _cell(row: dict[str, Any], name: str) -> str:
    """Mean and interval; how many systems have it where not all do."""
    if name not in row:
        return "-"
    low, high = text.number(row[f"{name}_low"], 3), text.number(row[f"{name}_high"], 3)
    some = f" of {row[f'{name}_of']}" if row[f"{name}_of"] < row["draws"] else ""
    return f"{text.number(row[name], 3)} [{low}, {high}]{some}"


def _write(found: Any, shown: Sequence[str], x: str | None, out: Path, *, quiet: bool) -> None:
    from hardmax.io import write_json, write_with
    from hardmax.plot.figures import save_figure

    figure: Any = None
    note = ""
    try:
        figure = found.draw(shown, x)
    except InputError as error:
        note = f"no picture: {error}"
    if figure is not None:
        write_with(out / "sweep.png", lambda file: save_figure(figure, file, "png"), force=True)
    write_json(out / "summary.json", found.to_dict(), force=True)
    found.save(out)
    drawn = "sweep.png, " if figure is not None else ""
    text.say(f"wrote {drawn}summary and cells to {out}", error=quiet)
    if note:
        text.say(note, error=True)
