"""`hardmax reproduce`: the papers' figures and tables, with what they must show."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hardmax.cli import options as opt
from hardmax.cli import text

__all__ = ["register"]

_EXAMPLES = """Examples:

hardmax reproduce figure2\n
hardmax reproduce figure2 --out figure2.pdf --seed 3
"""


class Item(StrEnum):
    """What can be reproduced."""

    figure2 = "figure2"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reproduce", epilog=_EXAMPLES)(reproduce)


def reproduce(
    item: Annotated[Item, typer.Argument(help="The figure or table.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The picture, .png .pdf or .svg; numbers go beside it."),
    ] = None,
    json: opt.Json = False,
    force: opt.Force = False,
    seed: opt.Seed = None,
) -> None:
    """Draw a figure again, save its numbers beside it, and check what it shows.

    figure2: tokens of four arrangements at layers 0, 1, 2, 5, 30 for alpha = 1/2, with
    the limits decided in rational arithmetic.
    """
    from hardmax.cli.targets import check_targets

    numbers = [out.with_suffix(".json")] if out else []
    targets = check_targets([out] if out else [], force=force, endings=(".png", ".pdf", ".svg"))
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
