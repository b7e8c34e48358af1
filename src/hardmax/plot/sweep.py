"""Summaries of sweeps: a measure against a setting, with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from hardmax._errors import InputError
from hardmax.plot import ink
from hardmax.plot.colours import PALETTE

__all__ = ["draw_sweep"]

_FIRST = ("clusters", "settled_at", "distance", "same")
_LINES = 12
_MARKS = "osD^vP*Xhd<>"
_WORDS = {
    "clusters": "clusters",
    "leaders": "leaders",
    "settled_at": "layers until the last choice",
    "arrived_at": "layers until within 5 % of the end",
    "distance": "distance from the hardmax limit",
    "same": "agreement with the limit's clusters",
    "converged": "share that comes to rest",
    "largest": "share in the largest cluster",
    "final_6": "share of final choices after 6 layers",
    "final_12": "share of final choices after 12 layers",
    "life": "layers beside the hardmax limit",
    "plateau": "layers on the longest plateau",
    "accuracy": "accuracy on texts never seen",
}


def draw_sweep(
    summary: Sequence[Mapping[str, Any]],
    varied: Sequence[str],
    y: Sequence[str] = (),
    x: str | None = None,
) -> Figure:
    """Measures of a sweep, one panel each, with error bars for their intervals.

    Parameters
    ----------
    summary : sequence of rows
        As in `Sweep.summary`.
    varied : sequence of str
        The settings that differ; the first (or `x`) is drawn to the right, each
        combination of the others is a line.
    y : sequence of str
        The measures; by default up to four that the summary has.
    x : str, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        For a measure or a setting that the summary does not have, or too many lines.
    """
    measures = [y] if isinstance(y, str) else list(y)
    measures = measures or [m for m in _FIRST if any(m in row for row in summary)]
    for name in measures:
        if not any(f"{name}_low" in row for row in summary):
            raise InputError(f"`y` must name measures of the sweep; got {name!r}.")
    if not measures:
        raise InputError("`y` must name at least one measure of the sweep; got none.")
    right = x or _to_the_right(summary, varied)
    if right is not None and right not in summary[0]:
        raise InputError(f"`x` must name a setting of the sweep; got {right!r}.")
    lines = _lines(summary, [name for name in varied if name != right])
    columns = 2 if len(measures) > 1 else 1
    rows = -(-len(measures) // columns)
    figure = ink.blank(5.2 * columns, 3.5 * rows + 0.3 * (1 + len(lines) // 3))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, name in zip(panels, measures, strict=False):
        _panel(ax, lines, right, name)
    for ax in panels[len(measures) :]:
        ax.set_visible(False)
    if len(lines) > 1:
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=min(4, len(lines)), fontsize=8,
            frameon=False,
        )  # fmt: skip
    return figure


def _to_the_right(summary: Sequence[Mapping[str, Any]], varied: Sequence[str]) -> str | None:
    """The setting with the most values, so that there are few lines."""
    if not varied:
        return None
    return max(varied, key=lambda name: len({str(row[name]) for row in summary}))


def _lines(
    summary: Sequence[Mapping[str, Any]], others: Sequence[str]
) -> dict[str, list[Mapping[str, Any]]]:
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for row in summary:
        label = ", ".join(f"{name} = {_shown(row[name])}" for name in others)
        lines.setdefault(label, []).append(row)
    if len(lines) > _LINES:
        raise InputError(
            f"{len(lines)} lines are too many for a picture; up to {_LINES} can be told apart. "
            "Vary fewer settings."
        )
    return lines


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _panel(
    ax: Axes, lines: Mapping[str, Sequence[Mapping[str, Any]]], right: str | None, name: str
) -> None:
    every = [row for rows in lines.values() for row in rows]
    values = list(dict.fromkeys(row[right] if right else "" for row in every))
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    numeric = numeric and len(values) > 2
    if numeric:
        values.sort()
    places: dict[Any, float] = {v: float(v) if numeric else float(k) for k, v in enumerate(values)}
    spread = 0.0 if numeric else 0.5 / max(len(lines), 1)
    for k, (label, rows) in enumerate(lines.items()):
        known = [row for row in rows if name in row]
        if not known:
            continue
        shift = spread * (k - (len(lines) - 1) / 2)
        at = np.array([places[row[right] if right else ""] + shift for row in known])
        middle = np.array([row[name] for row in known])
        low = np.array([row[f"{name}_low"] for row in known])
        high = np.array([row[f"{name}_high"] for row in known])
        order = np.argsort(at)
        ax.errorbar(
            at[order],
            middle[order],
            yerr=np.maximum([(middle - low)[order], (high - middle)[order]], 0),
            fmt=f"{_MARKS[k % len(_MARKS)]}{'-' if numeric else ''}",
            color=PALETTE[k % len(PALETTE)],
            ms=4.5,
            lw=1.2,
            capsize=2.5,
            label=label,
        )
    _axes(ax, values, numeric, right, name)


def _axes(ax: Axes, values: Sequence[Any], numeric: bool, right: str | None, name: str) -> None:
    if numeric:
        positive = [v for v in values if v > 0]
        if positive and max(positive) / min(positive) > 20:
            if len(positive) == len(values):
                ax.set_xscale("log")
            else:
                ax.set_xscale("symlog", linthresh=min(positive), linscale=0.5)
        ax.set_xticks(values, [_shown(v) for v in values] if len(values) <= 8 else None)
        ax.xaxis.set_minor_formatter(NullFormatter())
    else:
        ax.set_xticks(range(len(values)), [_shown(v) for v in values])
        if sum(len(_shown(v)) for v in values) > 34:
            ax.tick_params(axis="x", rotation=40)
            for tick in ax.get_xticklabels():
                tick.set_horizontalalignment("right")
        ax.set_xlim(-0.6, len(values) - 0.4)
    ax.yaxis.set_major_locator(MaxNLocator(6))
    low, high = ax.get_ylim()
    ax.set_ylim(min(0.0, low), high + 0.04 * (high - min(0.0, low)))
    ax.grid(axis="y", lw=0.4, alpha=0.5)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(_WORDS.get(name, name), fontsize=10)
    if right:
        ax.set_xlabel(right, fontsize=9)
