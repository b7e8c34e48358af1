"""Figures of the papers, drawn from the numbers that `hardmax reproduce` saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.ticker import MaxNLocator

from hardmax.plot import ink
from hardmax.plot.colours import PALETTE
from hardmax.plot.figures import draw_layers
from hardmax.plot.record import Scene

__all__ = [
    "draw_accuracies",
    "draw_bars",
    "draw_cells",
    "draw_counts",
    "draw_decays",
    "draw_escape",
    "draw_escapes",
    "draw_losses",
    "draw_penalties",
    "draw_review",
]

_DASHES = ("solid", "dotted", "dashed", "dashdot", (0, (5, 1)), (0, (1, 1)))
_MARKS = "^osdvP"


def _axes(width: float = 5.4, height: float = 3.6, columns: int = 1) -> tuple[Figure, Any]:
    figure = ink.blank(width * columns, height)
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def _plain(ax: Axes, right: str, up: str, title: str = "") -> None:
    ax.set_xlabel(right)
    ax.set_ylabel(up)
    ax.set_title(title, fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)


def draw_decays(lines: Mapping[str, Sequence[float]]) -> Figure:
    """Relative distance to the leaders against the layer, one line per schedule."""
    figure, (ax,) = _axes()
    for k, (name, errors) in enumerate(lines.items()):
        ax.plot(errors, label=name, color=PALETTE[k], ls=_DASHES[k % 6], marker=_MARKS[k % 6],
                markevery=4, ms=4)  # fmt: skip
    ax.set_yscale("log")
    ax.set_ylim(1e-10, 2)
    _plain(ax, "layer t", "distance to the leader / at the start")
    ax.legend(fontsize=8, frameon=False)
    return figure


def draw_escape(paths: Sequence[Sequence[float]], layers: int = 40) -> Figure:
    """The pair {3, -1}: positions, and J beside the bound of the theorem."""
    figure, (left, right) = _axes(4.3, 3.4, 2)
    t = np.arange(layers + 1)
    for k, path in enumerate(paths):
        left.plot(t, path[: layers + 1], color=PALETTE[k], marker=_MARKS[k], ms=3,
                  label=f"starts at {path[0]:g}")  # fmt: skip
    left.axhline(0, color=ink.FILL, lw=0.8)
    _plain(left, "layer t", "x", "the hull leaves the origin at t = 2")
    left.legend(fontsize=8, frameon=False)
    whole = np.arange(1, len(paths[1]))
    right.loglog(
        whole, 0.5 * np.square(paths[1])[1:], color=PALETTE[1], label="J of the second token"
    )
    right.loglog(
        whole, 2 / whole * 16, color=PALETTE[0], ls="dashed", label=r"bound $2\lambda\,diam^2/t$"
    )
    right.loglog(
        whole, 1e-0 * np.full(len(whole), 1 / 18), color=ink.FILL, ls="dotted", label="1/18"
    )
    right.set_ylim(0.02, 60)
    _plain(right, "layer t", "J", "J stays at 1/18, the bound goes to 0")
    right.legend(fontsize=8, frameon=False)
    return figure


def draw_escapes(fits: Mapping[str, Any]) -> Figure:
    """Log median escape times against the inverse temperature, with fitted lines."""
    figure, (ax,) = _axes()
    for k, (corners, fit) in enumerate(fits.items()):
        betas, medians = np.array(fit["betas"]), np.array(fit["medians"])
        ax.plot(betas, medians, color=PALETTE[k], marker=_MARKS[k], ls="none")
        shift = np.mean(np.log(medians) - fit["slope"] * betas)
        ax.plot(betas, np.exp(fit["slope"] * betas + shift), color=PALETTE[k], ls=_DASHES[k],
                label=f"$\\kappa$ = {corners}: slope {fit['slope']:.3f}")  # fmt: skip
    ax.set_yscale("log")
    _plain(ax, r"inverse temperature $\beta$", "median escape time, layers")
    ax.legend(fontsize=8, frameon=False, loc="lower right")
    return figure


def draw_cells(pictures: Sequence[Mapping[str, Any]]) -> Figure:
    """Polygons divided into the cells of their vertices; stars own their cell."""
    rows = [[p for p in pictures if p["equal"]], [p for p in pictures if not p["equal"]]]
    figure = ink.blank(2.6 * len(rows[0]), 5.4)
    grid = figure.subplots(2, len(rows[0]), squeeze=False)
    for line, row, name in zip(grid, rows, ("equal norms", "norms .4 to 1"), strict=True):
        for ax, one in zip(line, row, strict=True):
            _draw_cells(ax, one)
        line[0].set_ylabel(name, fontsize=10)
    return figure


def _draw_cells(ax: Axes, one: Mapping[str, Any]) -> None:
    v = np.array(one["vertices"])
    for k, part in enumerate(one["cells"]):
        colour = PALETTE[k % len(PALETTE)]
        if len(part) > 2:
            ax.add_patch(Polygon(part, closed=True, facecolor=colour, alpha=0.45, lw=0))
        if one["owns"][k]:
            ax.scatter([v[k, 0]], [v[k, 1]], s=130, marker="*", color=colour, zorder=3, ec=ink.EDGE)
        else:
            ax.scatter([v[k, 0]], [v[k, 1]], s=45, marker="x", color=colour, zorder=3)
    ax.add_patch(Polygon(v, closed=True, fill=False, edgecolor=ink.EDGE, lw=0.8))
    ax.plot(0, 0, marker="+", color=ink.EDGE, ms=6)
    ax.set(xlim=(-1.12, 1.12), ylim=(-1.12, 1.12), xticks=[], yticks=[], aspect="equal")


def draw_penalties(runs: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Losses along the training, and the smallest loss against the penalty."""
    figure, (left, right) = _axes(4.6, 3.5, 2)
    for k, run in enumerate(runs.values()):
        epochs = np.maximum(run["epochs_seen"], 1)
        left.loglog(epochs, run["losses"], color=PALETTE[k], ls=_DASHES[k % 6],
                    label=f"$\\epsilon$ = {run['epsilon']:g}")  # fmt: skip
        left.axhline(run["threshold"], color=PALETTE[k], lw=0.7, ls="dashed")
    _plain(left, "epoch of the stage", "loss",
           r"dashed thin: thresholds $\epsilon\,\|\theta_*\|^2$")  # fmt: skip
    left.legend(fontsize=8, frameon=False)
    chain = [run for run in runs.values() if run["epsilon"] >= 1e-3]
    x, y = [r["epsilon"] for r in chain], [r["smallest"] for r in chain]
    right.loglog(x, y, marker="o", color=PALETTE[0], label="smallest loss")
    right.loglog(x, [y[0] * e / x[0] for e in x], ls="dashed", color=ink.FILL, label="slope one")
    _plain(right, r"$\epsilon$", "smallest loss")
    right.legend(fontsize=8, frameon=False)
    return figure


def draw_losses(runs: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Training loss with softmax, and with hardmax and the same weights as marks.

    Lines are means while the weights change; dots and marks are taken after the epoch.
    """
    figure, (ax,) = _axes()
    for k, (dim, run) in enumerate(runs.items()):
        epochs = [row["epoch"] for row in run["history"]]
        at = [check["epoch"] for check in run["checks"]]
        soft, hard = (
            [check["train"][how]["loss"] for check in run["checks"]]
            for how in ("softmax", "hardmax")
        )
        if len(epochs) > 2:
            ax.plot(epochs, [row["train_loss"] for row in run["history"]], color=PALETTE[k])
        ax.plot(at, soft, "o", ms=3, color=PALETTE[k], label=f"softmax, d = {dim}")
        ax.scatter(at, hard, s=60, marker=_MARKS[k], facecolor="none", edgecolor=PALETTE[k],
                   label=f"hardmax, d = {dim}")  # fmt: skip
    _epochs(ax)
    if ax.get_ylim()[1] > 2 * ax.get_ylim()[0]:
        ax.set_yscale("log")
    lines = "; lines: while training" if any(len(r["history"]) > 2 for r in runs.values()) else ""
    _plain(ax, "epoch", "training loss", f"after the epoch, the same weights{lines}")
    ax.legend(fontsize=8, frameon=False)
    return figure


def _epochs(ax: Axes) -> None:
    """Whole numbers to the right, and room around a single epoch."""
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    low, high = ax.get_xlim()
    if high - low < 1:
        ax.set_xlim((low + high) / 2 - 1, (low + high) / 2 + 1)


def draw_accuracies(
    runs: Mapping[str, Mapping[str, Any]], published: Mapping[str, float] | None = None
) -> Figure:
    """Training and test accuracy against the epoch, a line per size; the paper's best as ticks."""
    figure, (left, right) = _axes(4.4, 3.2, 2)
    for k, (dim, run) in enumerate(runs.items()):
        epochs = [row["epoch"] for row in run["history"]]
        mark = "o" if len(epochs) < 3 else ""
        for ax, part in ((left, "train"), (right, "test")):
            ax.plot(epochs, [row[f"{part}_accuracy"] for row in run["history"]], color=PALETTE[k],
                    ls=_DASHES[k], marker=mark, label=f"d = {dim}")  # fmt: skip
        if published:
            right.axhline(published[dim], xmin=0.96, color=PALETTE[k], lw=2.2)
    for ax, part in ((left, "training"), (right, "test")):
        ax.set_ylim(0.48, 1.02)
        _epochs(ax)
        _plain(ax, "epoch", f"{part} accuracy")
    left.legend(fontsize=8, frameon=False, loc="lower right")
    if published:
        right.set_title("ticks at the right: the paper's best", fontsize=9)
    return figure


def draw_bars(
    words: Sequence[tuple[str, int]], published: Mapping[str, int] | None = None
) -> Figure:
    """How often each word leads; beside it what the paper's figure shows for that word."""
    figure, (ax,) = _axes(6.4, 3.4)
    place = np.arange(len(words))
    counts = [count for _, count in words]
    wide = 0.42 if published else 0.6
    left = place - (wide / 2 if published else 0)
    ax.bar(left, counts, wide, color=PALETTE[0], edgecolor=ink.EDGE, lw=0.5, label="here")
    if published:
        theirs = [published.get(word, 0) for word, _ in words]
        ax.bar(place + wide / 2, theirs, wide, color=PALETTE[4], edgecolor=ink.EDGE, lw=0.5,
               label="the paper's figure")  # fmt: skip
        ax.legend(fontsize=8, frameon=False)
    ax.set_xticks(place, [word for word, _ in words], rotation=55, ha="right", fontsize=9)
    _plain(ax, "", "reviews in which the word leads")
    return figure


def draw_counts(tables: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Figure:
    """Leaders per text for each size: mean, deviation and extremes, by both rules."""
    figure, (ax,) = _axes(5.2, 3.4)
    dims = list(tables)
    for k, (rule, name) in enumerate((("code", "rule of the code"), ("birth", "classes, births"))):
        rows = [tables[dim][rule] for dim in dims]
        place = np.arange(len(dims)) + (k - 0.5) * 0.22
        mean = np.array([row["average"] for row in rows])
        low, high = (np.array([row[end] for row in rows]) for end in ("min", "max"))
        ax.vlines(place, low, high, color=PALETTE[k], lw=1)
        ax.errorbar(place, mean, yerr=[row["deviation"] for row in rows], fmt=_MARKS[k],
                    color=PALETTE[k], lw=4, ms=6, mec="white", label=name)  # fmt: skip
    ax.set_xticks(np.arange(len(dims)), [f"d = {dim}" for dim in dims])
    ax.set_yscale("log", base=2)
    ax.set_yticks([2, 4, 8, 16, 32, 64, 128], ["2", "4", "8", "16", "32", "64", "128"])
    _plain(ax, "", "leaders per review", "mean, deviation (thick), extremes (thin)")
    ax.legend(fontsize=8, frameon=False, loc="upper left")
    return figure


def draw_review(
    scene: Scene, layers: Sequence[int], v: Sequence[float], b: float,
    means: Sequence[Sequence[float]],
) -> Figure:  # fmt: skip
    """Layers of one review with the decoder's line; the triangle is the mean token."""
    figure = draw_layers(scene, layers)
    for ax, layer in zip(figure.axes, layers, strict=True):
        (low, high), (down, up) = ax.get_xlim(), ax.get_ylim()
        x, y = np.meshgrid(np.linspace(low, high, 60), np.linspace(down, up, 60))
        value = v[0] * x + v[1] * y + b
        ax.contourf(x, y, value, levels=[-np.inf, 0, np.inf], colors=["#d55e00", "#009e73"],
                    alpha=0.10, zorder=0)  # fmt: skip
        ax.scatter(
            [means[layer][0]],
            [means[layer][1]],
            s=70,
            marker="^",
            color="white",
            ec=ink.EDGE,
            zorder=6,
        )
        ax.set(xlim=(low, high), ylim=(down, up))
    last = len(scene.layers) - 1
    ink.draw_names(figure.axes[-1], scene, scene.leader_indices, scene.zs[last])
    return figure
