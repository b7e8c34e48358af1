"""Trajectories in space: three coordinates, the faces of the polytope as glass."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from hardmax._errors import InputError
from hardmax._types import Floats, Ints
from hardmax.plot import ink
from hardmax.plot.colours import colours, rgb, token_colours
from hardmax.plot.record import Scene
from hardmax.plot.shapes import clean, drawable, faces_of, frame

__all__ = ["add_faces", "draw_trajectories_3d", "set_box", "space_of"]


def draw_trajectories_3d(
    scene: Scene, ax: Any = None, *, axes: tuple[int, int, int] | None = None
) -> Any:
    """The way of every token through the saved layers, in space.

    Parameters
    ----------
    scene : Scene
        With at least 3 coordinates.
    ax : mpl_toolkits.mplot3d.axes3d.Axes3D, optional
        Where to draw; without it, a new figure (`ax.figure` of what is returned).
    axes : (int, int, int), optional
        The three coordinates to draw; needed when d > 3.

    Returns
    -------
    mpl_toolkits.mplot3d.axes3d.Axes3D

    Raises
    ------
    InputError
        If d < 3, or d > 3 and `axes` are not given.
    """
    chosen = space_of(scene, axes)
    if ax is None:
        ax = ink.blank(6.0, 5.6).add_subplot(projection="3d")
    ax.computed_zorder = False  # stars stay visible through the glass
    zs = drawable(scene.zs[..., chosen])
    last, row = zs[-1], len(scene.layers) - 1
    add_faces(ax, scene, chosen)
    tails = Line3DCollection(
        list(zs.transpose(1, 0, 2)),
        colors=token_colours(scene, row),
        linewidths=1.0 if scene.tokens <= 300 else 0.5,
        alpha=float(np.clip(60 / scene.tokens, 0.06, 0.6)),
        zorder=2,
        label="tails",
    )
    ax.add_collection3d(tails, autolim=False)
    _add_points(ax, scene, row, last)
    _add_rests(ax, scene.rests()[:, chosen])
    _add_names(ax, scene, scene.leader_indices, last)
    set_box(ax, zs, chosen)
    ax.set_title(clean(scene.title, 60), fontsize=11, parse_math=False)
    ink.draw_legend(ax, scene, below=0.02)
    return ax


def space_of(scene: Scene, axes: tuple[int, int, int] | None) -> list[int]:
    """Three coordinates of a scene; more than three must be chosen from."""
    if axes is None and scene.dim == 3:
        return [0, 1, 2]
    if scene.dim < 3:
        raise InputError(
            f"a picture in space needs d >= 3; this scene has d = {scene.dim}. "
            "Use `draw_trajectories`."
        )
    if axes is None:
        raise InputError(
            f"a picture in space has 3 coordinates and this scene has d = {scene.dim}. "
            "Choose three, as in `axes=(0, 1, 2)`."
        )
    if len(set(axes)) != 3 or len(axes) != 3 or not all(0 <= i < scene.dim for i in axes):
        raise InputError(
            f"`axes` must be three different coordinates from 0 to {scene.dim - 1}; got {axes}. "
            "Choose others."
        )
    return [int(i) for i in axes]


def _add_points(ax: Any, scene: Scene, row: int, z: Floats) -> None:
    """Dots and stars at one saved layer."""
    area, alpha = ink.dot_size(scene.tokens)
    leaders = scene.leaders_at(scene.layers[row])
    others = np.ones(scene.tokens, bool)
    others[leaders] = False
    ax.scatter(
        *z[others].T,
        s=area,
        c=token_colours(scene, row)[others],
        alpha=alpha,
        depthshade=False,
        zorder=3,
        label="tokens",
    )
    tint = colours(scene)
    ax.scatter(
        *z[leaders].T,
        s=160,
        c=np.array([rgb(tint[i]) for i in leaders.tolist()]).reshape(-1, 3),
        marker="*",
        edgecolors=ink.EDGE,
        linewidths=0.6,
        depthshade=False,
        zorder=5,
        label="leaders",
    )


def _add_names(ax: Any, scene: Scene, leaders: Ints, z: Floats) -> None:
    """Names beside the stars, unless there are too many to be read."""
    if len(leaders) > ink.MANY_NAMES:
        return
    for token in leaders.tolist():
        if np.isfinite(z[token]).all():
            name = "    " + clean(scene.name_of(token), 24)
            ax.text(*z[token].tolist(), name, fontsize=8, zorder=6, parse_math=False)


def set_box(ax: Any, zs: Floats, chosen: list[int]) -> None:
    """Equal scales and labels."""
    low, high = frame(zs)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    ax.set_aspect("equal")
    labels = [f"coordinate {i}" for i in chosen]
    ax.set(xlabel=labels[0], ylabel=labels[1], zlabel=labels[2])
    ax.tick_params(labelsize=7)


def add_faces(ax: Any, scene: Scene, chosen: list[int]) -> None:
    """The faces of K; for d > 3 its shadow has other faces, and none are drawn."""
    if scene.vertices is None or len(scene.vertices) == 0 or scene.dim > 3:
        return
    vertices = scene.vertices[:, chosen]
    if len(vertices) == 2:
        ax.plot(*vertices.T, color=ink.FILL, lw=2, zorder=1, label="polytope")
        return
    glass = Poly3DCollection(
        [vertices[face] for face in faces_of(scene)],
        facecolors=(*rgb(ink.FILL), 0.12),
        edgecolors=(*rgb(ink.FILL), 0.6),
        linewidths=0.7,
        zorder=1,
        label="polytope",
    )
    ax.add_collection3d(glass, autolim=False)


def _add_rests(ax: Any, rests: Floats) -> None:
    ax.scatter(
        *rests.T,
        s=60,
        marker="D",
        facecolors="none",
        edgecolors=ink.EDGE,
        depthshade=False,
        zorder=4,
        label="rests",
    )
