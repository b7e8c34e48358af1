"""The marks that flat figures share: dots, stars, the polytope, names, the legend."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.ticker import MaxNLocator
from PIL import Image

from hardmax._types import Array, Floats, Ints
from hardmax.plot.colours import NOBODY, colours, rgb, token_colours
from hardmax.plot.record import Scene
from hardmax.plot.shapes import View, clean, frame, outline, square

__all__ = [
    "EDGE",
    "FILL",
    "MANY_NAMES",
    "blank",
    "dot_size",
    "draw_dots",
    "draw_legend",
    "draw_names",
    "draw_polytope",
    "draw_rests",
    "draw_stars",
    "photograph",
    "set_frame",
]

FILL = "#7f8fa6"
EDGE = "#1c1f24"
MANY_NAMES = 30
"""More leaders than this are drawn without their names."""


def blank(width: float, height: float) -> Figure:
    """An empty figure with its own canvas, in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def dot_size(tokens: int) -> tuple[float, float]:
    """Area and opacity of a dot: smaller and fainter when there are many."""
    area = float(np.clip(6000 / tokens, 3, 34))
    return area, 0.95 if tokens <= 300 else 0.55


def draw_dots(ax: Axes, scene: Scene, row: int, paper: Floats) -> PathCollection:
    """Every token that does not lead yet, in the colour of the token it follows."""
    area, alpha = dot_size(scene.tokens)
    leads = np.zeros(scene.tokens, bool)
    leads[scene.leaders_at(scene.layers[row])] = True
    return ax.scatter(
        paper[~leads, 0],
        paper[~leads, 1],
        s=area,
        c=token_colours(scene, row)[~leads],
        alpha=alpha,
        edgecolors=EDGE if scene.tokens <= 60 else "none",
        linewidths=0.4,
        zorder=3,
        label="tokens",
    )


def draw_stars(ax: Axes, scene: Scene, leaders: Ints, paper: Floats, area: float) -> PathCollection:
    """Leaders as stars at their own positions, each in its own colour."""
    tint = colours(scene)
    return ax.scatter(
        paper[leaders, 0],
        paper[leaders, 1],
        s=area,
        c=np.array([rgb(tint[i]) for i in leaders.tolist()]).reshape(-1, 3),
        marker="*",
        edgecolors=EDGE,
        linewidths=0.7,
        zorder=5,
        label="leaders",
    )


def draw_polytope(ax: Axes, scene: Scene, view: View) -> None:
    """The limit polytope: an area, a segment, or in d = 1 a band."""
    if scene.vertices is None or len(scene.vertices) == 0:
        return
    if view.against_layer:
        low, high = scene.vertices.min(), scene.vertices.max()
        ax.axhspan(low, high, color=FILL, alpha=0.18, zorder=0, lw=0.8, label="polytope")
        return
    corners = outline(view.place(scene.vertices, 0))
    ax.add_patch(
        Polygon(
            corners,
            facecolor=(*rgb(FILL), 0.18),
            edgecolor=(*rgb(FILL), 0.9),
            lw=1.0,
            zorder=1,
            label="polytope",
        )
    )


def draw_rests(ax: Axes, scene: Scene, view: View) -> Array:
    """Points of S at which no leader stands, as diamonds."""
    paper = view.place(scene.rests(), scene.layers[-1])
    ax.scatter(
        paper[:, 0],
        paper[:, 1],
        s=70,
        marker="D",
        facecolors="none",
        edgecolors=EDGE,
        linewidths=1.4,
        zorder=4,
        label="rests",
    )
    return paper


def draw_names(ax: Axes, scene: Scene, leaders: Ints, paper: Floats) -> dict[int, Annotation]:
    """The names beside the stars, toward the middle; none where too many to be read."""
    known = leaders[np.isfinite(paper[leaders]).all(axis=1)]
    if len(leaders) > MANY_NAMES or len(known) == 0:
        return {}
    middle = (paper[known, 0].min() + paper[known, 0].max()) / 2
    return {token: _name(ax, scene, token, paper[token], middle) for token in known.tolist()}


def _name(ax: Axes, scene: Scene, token: int, place: Floats, middle: float) -> Annotation:
    right, up = place.tolist()
    turned = right >= middle  # against the layers all stars stand at the right end
    name = ax.annotate(
        clean(scene.name_of(token), 24),
        parse_math=False,  # a name such as $x is no formula
        xy=(right, up),
        xytext=(-7 if turned else 7, 5),
        ha="right" if turned else "left",
        textcoords="offset points",
        fontsize=9,
        zorder=6,
    )
    name.set_path_effects([withStroke(linewidth=2.5, foreground="white", alpha=0.8)])
    return name


def draw_legend(ax: Axes, scene: Scene, *, below: float = -0.13) -> None:
    """What the marks mean; only marks that the scene has."""

    def mark(shape: str, face: str, size: float, edge: str = EDGE) -> Line2D:
        return Line2D([], [], ls="", marker=shape, mfc=face, mec=edge, ms=size, mew=0.9)

    entries: list[tuple[Any, str]] = [
        (mark("o", "#0072b2", 5.5), "token, in the colour of the token it follows")
    ]
    if (scene.follows[-1] < 0).any():
        entries.append((mark("o", NOBODY, 5.5), "follows several, or none"))
    if scene.leaders:
        entries.append((mark("*", "#0072b2", 11), "leader"))
    if len(scene.rests()):
        entries.append((mark("D", "none", 7), "limit point without a leader"))
    if scene.vertices is not None and len(scene.vertices):
        entries.append((Patch(facecolor=(*rgb(FILL), 0.18), edgecolor=FILL), "limit polytope"))
    ax.legend(
        [handle for handle, _ in entries],
        [label for _, label in entries],
        loc="upper center",
        bbox_to_anchor=(0.5, below),
        ncols=2,
        frameon=False,
        fontsize=8,
    )


def set_frame(ax: Axes, points: Floats, view: View) -> None:
    """Limits around what is drawn: a square with equal scales, or layers to the right."""
    if view.against_layer:
        low, high = frame(points)
        low[1:], high[1:] = frame(points[:, 1:])
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    else:
        (right, up), half = square(points)
        ax.set(xlim=(right - half, right + half), ylim=(up - half, up + half))
        ax.set_aspect("equal")
        ax.xaxis.set_major_locator(MaxNLocator(6))
        ax.yaxis.set_major_locator(MaxNLocator(6))
    ax.set(xlabel=view.labels()[0], ylabel=view.labels()[1])


def photograph(canvas: Any) -> Image.Image:
    """What a canvas shows now."""
    return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy())
