"""Figures on paper: layers side by side, trajectories; PNG, PDF and SVG.

Nothing here touches pyplot or a backend: figures draw onto their own Agg canvas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from hardmax._errors import InputError
from hardmax._types import Floats
from hardmax.plot import ink
from hardmax.plot.colours import token_colours
from hardmax.plot.gif import animate, save_gif
from hardmax.plot.record import Scene
from hardmax.plot.shapes import View, clean, square, view_of
from hardmax.plot.solid import draw_trajectories_3d

__all__ = [
    "animate",
    "draw_layers",
    "draw_trajectories",
    "draw_trajectories_3d",
    "save_figure",
    "save_gif",
]

_STRIPPED = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""Formats, and what is left out so that one scene gives one file."""


def draw_layers(
    scenes: Scene | Sequence[Scene],
    layers: Sequence[int] = (0, 1, 2, 5, 30),
    *,
    axes: tuple[int, int] | None = None,
) -> Figure:
    """One row per scene and one panel per layer, as in the paper's figure 2.

    Parameters
    ----------
    scenes : Scene or sequence of Scene
        The rows; a scene's title stands at the left of its row.
    layers : sequence of int
        The layer numbers of the columns; each scene must hold them.
    axes : (int, int), optional
        The two coordinates to draw; needed when d > 2.

    Returns
    -------
    matplotlib.figure.Figure
        Stars lead at that layer; the other tokens have the colour of the token that
        they follow; the limit polytope is filled.

    Raises
    ------
    InputError
        If there is nothing to draw, a layer is missing, or `axes` are needed.
    """
    rows = [scenes] if isinstance(scenes, Scene) else list(scenes)
    if not rows or not layers:
        raise InputError(
            f"`draw_layers` needs a scene and a layer; got {len(rows)} and {len(layers)}."
        )
    figure = ink.blank(2.1 * len(layers) + 0.4, 2.1 * len(rows) + 0.35)
    grid = figure.subplots(len(rows), len(layers), squeeze=False)
    for line, scene in zip(grid, rows, strict=True):
        view = view_of(scene, axes)
        box = _box(scene, view, [scene.row(layer) for layer in layers])
        for ax, layer in zip(line, layers, strict=True):
            _panel(ax, scene, view, layer, box)
        line[0].set_ylabel(clean(scene.title, 30), fontsize=10, parse_math=False)
    for ax, layer in zip(grid[0], layers, strict=True):
        ax.set_title(f"$k = {layer}$", fontsize=10)
    return figure


def draw_trajectories(
    scene: Scene, ax: Axes | None = None, *, axes: tuple[int, int] | None = None
) -> Axes:
    """The way of every token through the saved layers, on a plane.

    Parameters
    ----------
    scene : Scene
        With d = 1 the positions are drawn against the layer.
    ax : matplotlib Axes, optional
        Where to draw; without it, a new figure (`ax.figure` of what is returned).
    axes : (int, int), optional
        The two coordinates to draw; needed when d > 2.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        If d > 2 and `axes` are not given, or are not coordinates of the scene.
    """
    view = view_of(scene, axes, solid="draw_trajectories_3d")
    if ax is None:
        ax = ink.blank(5.6, 5.4).add_subplot()
    paths = view.paths(scene)
    last, leaders = paths[:, -1], scene.leader_indices
    ink.draw_polytope(ax, scene, view)
    ax.add_collection(_tails(scene, paths), autolim=False)
    if not view.against_layer:
        _draw_starts(ax, paths[:, 0])
    ink.draw_dots(ax, scene, len(scene.layers) - 1, last)
    rests = ink.draw_rests(ax, scene, view)
    ink.draw_stars(ax, scene, leaders, last, 170)
    ink.draw_names(ax, scene, leaders, last)
    ink.set_frame(ax, np.concatenate([paths.reshape(-1, 2), rests]), view)
    ax.set_title(clean(scene.title, 70), fontsize=11, parse_math=False)
    ink.draw_legend(ax, scene)
    return ax


def save_figure(figure: Figure, file: IO[bytes], format: str = "png", *, dpi: int = 160) -> None:
    """Write a figure as PNG, PDF or SVG into a file opened for bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    file : binary file object
    format : {"png", "pdf", "svg"}
    dpi : int
        Pixels per inch of a PNG.

    Raises
    ------
    InputError
        If the format is another.

    Notes
    -----
    No date is written: the same scene gives the same bytes with the same matplotlib.
    """
    kind = format.lower().lstrip(".")
    if kind not in _STRIPPED:
        raise InputError(
            f"`format` must be one of {', '.join(_STRIPPED)}; got {format!r}. "
            "An animation is written with `save_gif`."
        )
    with mpl.rc_context({"svg.hashsalt": "hardmax", "pdf.fonttype": 42}):
        figure.savefig(file, format=kind, dpi=dpi, metadata=_STRIPPED[kind])


def _panel(ax: Axes, scene: Scene, view: View, layer: int, box: tuple[Floats, float]) -> None:
    row, (middle, half) = scene.row(layer), box
    paper = view.place(scene.zs[row], layer)
    ink.draw_polytope(ax, scene, view)
    ink.draw_dots(ax, scene, row, paper)
    ink.draw_stars(ax, scene, scene.leaders_at(layer), paper, 110)
    right = layer if view.against_layer else middle[0]
    ax.set(xlim=(right - half, right + half), ylim=(middle[1] - half, middle[1] + half))
    ax.set(xticks=[], yticks=[], aspect="equal")


def _box(scene: Scene, view: View, rows: list[int]) -> tuple[Floats, float]:
    """A square that holds the tokens at the given rows and the polytope."""
    clouds = [view.place(scene.zs[row], 0) for row in rows]
    if scene.vertices is not None:
        clouds.append(view.place(scene.vertices, 0))
    return square(np.concatenate(clouds), margin=0.09)


def _tails(scene: Scene, paths: Floats) -> LineCollection:
    """One line per token, in the colour of the token it follows at the end."""
    alpha = float(np.clip(60 / scene.tokens, 0.06, 0.6))
    return LineCollection(
        list(paths),
        colors=token_colours(scene, -1),
        alpha=alpha,
        linewidths=1.1 if scene.tokens <= 300 else 0.6,
        zorder=2,
        label="tails",
    )


def _draw_starts(ax: Axes, paper: Floats) -> None:
    """Where the tokens start: small open circles."""
    area = ink.dot_size(len(paper))[0] / 3
    ax.scatter(
        paper[:, 0],
        paper[:, 1],
        s=area,
        facecolors="none",
        edgecolors=ink.EDGE,
        linewidths=0.5,
        alpha=0.5 if len(paper) <= 300 else 0.2,
        zorder=2,
        label="starts",
    )
