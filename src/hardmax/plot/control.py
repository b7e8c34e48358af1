"""Before and after: the same tokens with the old scores and with the chosen ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hardmax._errors import InputError
from hardmax.plot import ink
from hardmax.plot.figures import draw_trajectories
from hardmax.plot.record import Scene
from hardmax.plot.shapes import clean, view_of

__all__ = ["draw_before_after"]

_RING = "#d1495b"


def draw_before_after(
    before: Scene,
    after: Scene,
    wished: Sequence[int],
    *,
    axes: tuple[int, int] | None = None,
) -> Figure:
    """Two scenes of the same tokens side by side; wished leaders are ringed in both.

    Parameters
    ----------
    before, after : Scene
        Each under its own title.
    wished : sequence of int
        The tokens that shall lead.
    axes : (int, int), optional
        The two coordinates to draw; needed when d > 2.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        If the scenes are not of the same tokens, or `axes` are needed.
    """
    if before.zs.shape[1:] != after.zs.shape[1:] or not np.array_equal(before.zs[0], after.zs[0]):
        raise InputError(
            "`before` and `after` must be scenes of the same tokens. Make both from one array."
        )
    figure = ink.blank(10.2, 6.0)
    panels = figure.subplots(1, 2)
    figure.set_layout_engine("constrained", rect=(0, 0.06, 1, 0.94))  # room for the legends
    for ax, scene in zip(panels, (before, after), strict=True):
        draw_trajectories(scene, ax, axes=axes)
        _ring(ax, scene, wished, axes)
        _name_ring(ax)
        granted = sum(i in scene.leader_indices for i in wished)
        title = f"{clean(scene.title, 50)}: {granted} of {len(wished)} lead"
        ax.set_title(title, fontsize=11, parse_math=False)
    return figure


def _name_ring(ax: Axes) -> None:
    """The legend of the panel once more, with the ring."""
    old = ax.get_legend()
    if old is None:
        return
    ring = Line2D([], [], ls="", marker="o", mfc="none", mec=_RING, ms=11, mew=1.6)
    names = [text.get_text() for text in old.get_texts()]
    handles = [handle for handle in old.legend_handles if handle is not None]
    ax.legend(
        [*handles, ring],
        [*names, "shall lead"],
        loc="upper center",
        bbox_to_anchor=(0.5, -0.13),
        ncols=2,
        frameon=False,
        fontsize=8,
    )


def _ring(ax: Axes, scene: Scene, wished: Sequence[int], axes: tuple[int, int] | None) -> None:
    """A ring around the place where each wished leader starts."""
    paper = view_of(scene, axes).place(scene.zs[0], scene.layers[0])[list(wished)]
    ax.scatter(
        paper[:, 0],
        paper[:, 1],
        s=260,
        facecolors="none",
        edgecolors=_RING,
        linewidths=1.6,
        zorder=6,
        label="wished",
    )
