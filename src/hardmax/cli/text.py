"""Words and numbers on the terminal: plain tables, no colour in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from textwrap import fill
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "ROWS",
    "console",
    "counted",
    "listed",
    "number",
    "one_line",
    "paragraph",
    "point",
    "print_facts",
    "print_table",
    "say",
]

ROWS = 20
"""How many rows of a table are shown."""
_READABLE = 80
"""The longest line of prose."""
_ENDLESS = 100_000
"""A width that nothing is wrapped at: whoever reads a pipe looks for whole lines."""


def one_line(text: object) -> str:
    """The text on one line, without characters that move the cursor."""
    return "".join(c if c.isprintable() else " " if c in "\n\t" else "?" for c in str(text))


def console(*, error: bool = False) -> Console:
    """A console that takes text literally; as wide as a terminal, and endless in a pipe."""
    from rich.console import Console

    stream = sys.stderr if error else sys.stdout
    width = None if stream.isatty() else _ENDLESS
    return Console(
        stderr=error, width=width, markup=False, emoji=False, highlight=False, soft_wrap=False
    )


def say(text: str, *, error: bool = False) -> None:
    """One line, never wrapped."""
    typer.echo(one_line(text), err=error)


def paragraph(text: str) -> None:
    """Prose, wrapped between words."""
    width = min(_READABLE, console().width)
    typer.echo(fill(one_line(text), width, break_long_words=False, break_on_hyphens=False))


def print_facts(title: str, facts: Iterable[tuple[str, str]]) -> None:
    """A heading, and a column of names beside a column of values."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, one_line(value))
    say(title)
    _show(table)


def print_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], what: str, total: int | None = None
) -> None:
    """The first rows under their headings, and how many more there are."""
    from rich.box import ASCII2, SIMPLE_HEAD
    from rich.table import Table

    out = console()
    table = Table(box=ASCII2 if out.options.ascii_only else SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold", no_wrap=head in heads[:-1])
    for row in rows[:ROWS]:
        table.add_row(*map(one_line, row))
    say("")
    _show(table)
    more = (len(rows) if total is None else total) - ROWS
    if more > 0:
        say(f"... and {more} more {what}; --json shows all")


def _show(table: Table) -> None:
    """The table without the blanks that rich puts around it."""
    out = console()
    with out.capture() as captured:
        out.print(table)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    typer.echo("\n".join(line for line in lines if line))


def number(value: float | Fraction | None, digits: int = 6) -> str:
    """A short decimal, or the fraction where that is short."""
    if value is None:
        return "none"
    if isinstance(value, Fraction) and len(str(value)) <= 13:
        return str(value)
    return f"{float(value):.{digits}g}"


def point(values: Iterable[Any]) -> str:
    """Coordinates in brackets; long ones cut after eight."""
    shown = [number(value) for value in values]
    return f"({', '.join(shown[:8])}{', ...' if len(shown) > 8 else ''})"


def counted(n: int, noun: str, plural: str = "") -> str:
    """`1 token`, `2 tokens`."""
    return f"{n} {noun if n == 1 else plural or noun + 's'}"


def listed(names: Sequence[str], limit: int = 8) -> str:
    """Names with commas; of many only the first."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return (", ".join(names[:limit]) or "none") + more
