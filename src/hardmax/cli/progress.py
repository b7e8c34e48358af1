"""The bar of a training on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hardmax.cli import text

__all__ = ["Bar", "progress_bar"]


class Bar:
    """A bar on the terminal: texts read, then loss, validation accuracy and time left."""

    def __init__(self, bar: Any) -> None:
        self._bar, self._score = bar, ""
        self._task = bar.add_task("reading", total=None)

    def read(self, count: int) -> None:
        """So many texts have been read."""
        self._bar.update(self._task, description=f"read {count:,} texts")

    def __call__(self, p: Any) -> None:
        """A `Progress` of the training."""
        if p.accuracy is not None:
            self._score = f", validation {p.accuracy:.3f}"
        share = (p.epoch + p.done / max(p.total, 1)) / p.epochs
        words = f"epoch {p.epoch + 1} of {p.epochs}, loss {p.loss:.3f}{self._score}"
        left = f"{_clock(p.seconds_left)} left"
        self._bar.update(
            self._task, total=1.0, completed=min(share, 1.0), description=f"{words}, {left}"
        )


def _clock(seconds: float) -> str:
    """A time as 5:07 or 2:05:07."""
    if seconds == float("inf"):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def progress_bar(first: bool = True) -> Iterator[Bar | None]:
    """A bar on a terminal, none in a pipe."""
    out = text.console(error=True)
    if not (first and out.is_terminal):
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24))
    with Progress(*columns, console=out, transient=True) as bar:
        yield Bar(bar)
