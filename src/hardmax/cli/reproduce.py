"""`hardmax reproduce`: the papers' figures and tables, with what they must show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hardmax._errors import InputError
from hardmax.cli import options as opt
from hardmax.cli import text

__all__ = ["register"]

_EXAMPLES = """Examples:

hardmax reproduce --short\n
hardmax reproduce figure2 --out figure2.pdf --seed 3\n
hardmax reproduce fw-rates fw-cells --short --out papers\n
hardmax reproduce accuracies leaders --training results
"""
_PICTURES = (".png", ".pdf", ".svg")


class Item(StrEnum):
    """What can be reproduced."""

    figure2 = "figure2"
    losses = "losses"
    accuracies = "accuracies"
    leaders = "leaders"
    reviews = "reviews"
    histogram = "histogram"
    tikhonov = "tikhonov"
    fw_rates = "fw-rates"
    fw_cells = "fw-cells"
    fw_metastable = "fw-metastable"
    fw_counterexamples = "fw-counterexamples"


class Device(StrEnum):
    """Where the classifier is trained."""

    cpu = "cpu"
    cuda = "cuda"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reproduce", epilog=_EXAMPLES)(reproduce)


def reproduce(
    items: Annotated[
        list[Item] | None,
        typer.Argument(metavar="ITEM", help=f"All when none: {', '.join(Item)}."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A folder for pictures, numbers and the page; it goes on where it stopped. For "
            "figure2 alone also a file .png .pdf .svg, or nothing to print only.",
            show_default="reproduction",
        ),
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="Fewer epochs, reviews and draws: for a laptop.")
    ] = False,
    training: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Finished trainings, instead of training here."),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The authors' own weights, model_d=2_epoch=100.pth."),
    ] = None,
    device: Annotated[Device, typer.Option(help="Where the classifier is trained.")] = Device.cpu,
    json: opt.Json = False,
    force: opt.Force = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of everything random.", show_default="0")
    ] = None,
) -> None:
    """Compute the papers' figures, tables and numbers again, beside what the papers say.

    Each item writes pictures, numbers and a table of comparisons with a verdict; index.html
    collects them and says what is done otherwise than in the papers' code. Trained items need
    the reviews (hardmax data imdb --split paper). Exit status 1: a fact that needs no training
    fails.
    """
    names = [str(item) for item in items or ()]
    alone = names == ["figure2"] and (out is None or out.suffix.lower() != "")
    if alone and not (short or training or weights):
        _figure2(out, json=json, force=force, seed=seed)
        return
    if out is not None and out.suffix.lower() in _PICTURES:
        raise InputError(f"--out {out}: expected a folder; only figure2 alone writes one picture.")
    _check_device(device)
    for option, place in (("--training", training), ("--weights", weights)):
        if place is not None and not place.exists():
            raise InputError(f"{option} {place}: there is no such place.")
    folder = out if out is not None else Path("reproduction")
    settings = {"short": short, "seed": seed or 0, "training": training, "weights": weights}
    _run(names, folder, {**settings, "device": device.value}, json=json, force=force)


def _check_device(device: Device) -> None:
    if device is Device.cuda:
        import torch

        if not torch.cuda.is_available():
            raise InputError("--device cuda: torch finds no GPU here. Leave it out.")


def _run(
    names: Sequence[str], folder: Path, settings: Mapping[str, Any], *, json: bool, force: bool
) -> None:
    from hardmax.lab.papers.batch import PAGE, reproduce_items
    from hardmax.lab.papers.outcome import Context

    with _progress() as advance:
        context = Context(**settings, progress=advance)

        def done(name: str, result: Mapping[str, Any] | str) -> None:
            if not json and not isinstance(result, str):
                _say_item(result)

        batch = reproduce_items(names, context, folder=folder, force=force, done=done)
    if json:
        from hardmax.io import dumps

        typer.echo(dumps(batch.to_dict()))
    for reason in dict.fromkeys(batch.failed.values()):
        concerned = [name for name, why in batch.failed.items() if why == reason]
        typer.echo(f"error: {', '.join(concerned)}: {text.one_line(reason)}", err=True)
    if batch.records:
        kept = f" ({len(batch.kept)} from an earlier run)" if batch.kept else ""
        text.say(f"wrote {folder / PAGE}: {text.counted(len(batch.records), 'item')}{kept}",
                 error=json)  # fmt: skip
    _end(batch)


def _end(batch: Any) -> None:
    """The exit status; a fault of this program is raised when all others are done."""
    for error in batch.faults.values():
        raise error
    if not batch.sound:
        typer.echo("error: a fact that needs no training does not hold", err=True)
    if batch.failed:
        raise typer.Exit(2)
    if not batch.sound:
        raise typer.Exit(1)


def _say_item(record: Mapping[str, Any]) -> None:
    from hardmax.plot.reproduction import said, tally

    form = f"{record['form']} form, seed {record['seed']}, {record['seconds']} s"
    text.say(f"{record['item']}: {record['verdict']} ({tally(record)}; {form})")
    rows = [
        [c["verdict"], c["quantity"], said(c["paper"]), said(c["ours"])]
        for c in record["comparisons"]
    ]
    text.print_table(["verdict", "quantity", "the paper", "here"], rows, "rows")
    text.say("")


@contextmanager
def _progress() -> Iterator[Any]:
    """A bar on a terminal, nothing in a pipe."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    out = text.console(error=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def advance(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        yield advance


def _figure2(out: Path | None, *, json: bool, force: bool, seed: int | None) -> None:
    """Figure 2 alone: printed, and drawn into one file when one is named."""
    from hardmax.cli.targets import check_targets

    numbers = [out.with_suffix(".json")] if out else []
    targets = check_targets([out] if out else [], force=force, endings=_PICTURES)
    check_targets(numbers, force=force)

    from hardmax.lab.reproduce import figure2

    figure = figure2(seed=seed)
    if json:
        from hardmax.io import dumps

        typer.echo(dumps(figure.to_dict()))
    else:
        _show(figure)
    if targets:
        _write(figure, [*targets, *numbers], force, json)
    if not figure.holds:
        typer.echo("error: a fact of the figure does not hold", err=True)
        raise typer.Exit(1)


def _show(figure: Any) -> None:
    text.say(f"figure 2: alpha = 1/2, seed {figure.seed} for the random tokens")
    rows = [
        [
            row.name,
            str(len(row.equilibrium.limit)),
            row.equilibrium.status,
            str(row.equilibrium.settled_at),
            str(len(row.equilibrium.leaders)),
            text.listed([text.point(place) for place in row.rests]),
        ]
        for row in figure.rows
    ]
    heads = ["row", "tokens", "status", "settled at", "leaders", "points of S without a leader"]
    text.print_table(heads, rows, "rows")
    text.say("")
    for fact in figure.facts:
        text.say(f"{'holds' if fact.holds else 'FAILS'}  {fact.claim}")


def _write(figure: Any, targets: list[Path], force: bool, quiet: bool) -> None:
    from hardmax.cli.targets import json_writer, write_targets
    from hardmax.plot.figures import save_figure

    kind = targets[0].suffix.lower()
    writers = {
        kind: lambda file: save_figure(figure.draw(), file, kind),
        ".json": json_writer(figure.to_dict()),
    }
    write_targets(targets, writers, force=force, quiet=quiet)
