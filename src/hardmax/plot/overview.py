"""A picture of a whole model: who leads in which class, changing roles, words in the plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hardmax._types import Floats
from hardmax.plot import ink
from hardmax.plot.colours import PALETTE
from hardmax.plot.shapes import clean

__all__ = ["draw_leader_counts", "draw_overview", "draw_roles", "draw_vocabulary"]

_BARS, _NAMES = 20, 14


def draw_overview(
    classes: Sequence[str],
    leaders: Sequence[tuple[str, Sequence[int]]],
    roles: Sequence[tuple[str, Sequence[float]]],
    plane: dict[str, Any] | None = None,
) -> Figure:
    """Bars of leaders by predicted class, contributions by class, and the map where there is one.

    Parameters
    ----------
    classes : sequence of str
    leaders : sequence of (word, texts per class)
    roles : sequence of (word, mean contribution per class)
    plane : dict, optional
        Arguments of `draw_vocabulary`.
    """
    columns = 2 if plane is None else 3
    figure = ink.blank(4.3 * columns, 5.6)
    axes = figure.subplots(1, columns, squeeze=False, width_ratios=[1, 1, 1.5][:columns])[0]
    draw_leader_counts(axes[0], classes, leaders)
    draw_roles(axes[1], classes, roles)
    if plane is not None:
        draw_vocabulary(axes[2], **plane)
    return figure


def draw_leader_counts(
    ax: Axes, classes: Sequence[str], leaders: Sequence[tuple[str, Sequence[int]]]
) -> None:
    """One bar per word, divided by predicted class."""
    shown = list(leaders[:_BARS])[::-1]
    left = np.zeros(len(shown))
    for k, name in enumerate(classes):
        counts = np.array([by[k] for _, by in shown], dtype=np.float64)
        ax.barh(np.arange(len(shown)), counts, left=left, color=PALETTE[_tone(k)],
                label=clean(str(name), 24), height=0.75, hatch="" if k else "///",
                edgecolor="white", lw=0.4)  # fmt: skip
        left += counts
    _rows(ax, [word for word, _ in shown])
    ax.set_xlabel("texts in which the word leads, by predicted class")
    _legend(ax)


def draw_roles(
    ax: Axes, classes: Sequence[str], roles: Sequence[tuple[str, Sequence[float]]]
) -> None:
    """One line per word, from its mean contribution in one class to that in another."""
    shown = list(roles[:_BARS])[::-1]
    for row, (_, means) in enumerate(shown):
        ax.plot([min(means), max(means)], [row, row], color=ink.FILL, lw=2, zorder=1)
    for k, name in enumerate(classes):
        ax.scatter([means[k] for _, means in shown], np.arange(len(shown)), s=34, zorder=2,
                   color=PALETTE[_tone(k)], marker="os^vDP"[k % 6],
                   label=clean(str(name), 24), edgecolors=ink.EDGE, linewidths=0.4)  # fmt: skip
    ax.axvline(0, color=ink.FILL, lw=0.8, zorder=0)
    _rows(ax, [word for word, _ in shown])
    ax.set_xlabel("mean contribution where it occurs, by predicted class")
    _legend(ax)


def draw_vocabulary(
    ax: Axes,
    points: Floats,
    valence: Floats,
    normal: Sequence[float],
    bias: float,
    named: Sequence[tuple[int, str]],
) -> None:
    """Every token as a dot by the side it speaks for, some names, and the decision line."""
    side = np.asarray(valence) + bias > 0
    for on, colour, mark in ((side, PALETTE[0], "o"), (~side, PALETTE[1], "s")):
        ax.scatter(points[on, 0], points[on, 1], s=3, marker=mark, color=colour, alpha=0.35, lw=0,
                   rasterized=True)  # fmt: skip
    low, high = points.min(axis=0), points.max(axis=0)
    middle, half = (low + high) / 2, 1.08 * max(float((high - low).max()) / 2, 1e-9)
    ax.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half))
    v0, v1 = (float(part) for part in normal)
    size = math.hypot(v0, v1)
    if size > 0:
        foot = -bias / size**2 * v0, -bias / size**2 * v1
        along = foot[0] - v1 / size, foot[1] + v0 / size
        ax.axline(foot, along, color=ink.EDGE, ls="dashed", lw=1.2)
    rows = [index for index, _ in named[:_NAMES]]
    ax.scatter(points[rows, 0], points[rows, 1], s=90, marker="*", color=PALETTE[4],
               edgecolors=ink.EDGE, linewidths=0.6, zorder=4)  # fmt: skip
    for index, word in named[:_NAMES]:
        ax.annotate(clean(word, 24), points[index], xytext=(5, 4), textcoords="offset points",
                    fontsize=8, parse_math=False, zorder=5)  # fmt: skip
    ax.set_aspect("equal")
    ax.set(xlabel="coordinate 0", ylabel="coordinate 1")
    ax.set_title("vocabulary, leaders as stars, dashed: undecided", fontsize=9)


def _tone(k: int) -> int:
    """The colour of a class: the first is that which speaks against, as on the pages."""
    return (1, 0)[k] if k < 2 else k % len(PALETTE)


def _rows(ax: Axes, words: Sequence[str]) -> None:
    ax.set_yticks(np.arange(len(words)), [clean(word, 24) for word in words], fontsize=9,
                  parse_math=False)  # fmt: skip
    ax.spines[["top", "right"]].set_visible(False)


def _legend(ax: Axes) -> None:
    ax.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
