"""An animation in space: the picture turns while the tokens glide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from PIL import Image

from hardmax._types import Floats
from hardmax.plot import ink
from hardmax.plot.colours import NOBODY, PALETTE, colours
from hardmax.plot.record import Scene
from hardmax.plot.shapes import clean, drawable
from hardmax.plot.solid import add_faces, set_box, space_of

__all__ = ["Turntable"]

_INCHES = 4.8
_TURN = 120.0
"""How far the picture turns from the first frame to the last, in degrees."""
_ZOOM = 0.8
"""So that the labels of the axes stay on the picture while it turns."""


class Turntable:
    """Artists of a scene in space, made once and moved from frame to frame."""

    def __init__(self, scene: Scene, size: int) -> None:
        self.scene, chosen = scene, space_of(scene, None)
        self.zs = drawable(scene.zs[..., chosen])
        figure = ink.blank(_INCHES, _INCHES)
        figure.set_dpi(size / _INCHES)
        self.canvas: Any = figure.canvas
        self.ax: Any = figure.add_subplot(projection="3d")
        self.ax.computed_zorder = False
        add_faces(self.ax, scene, chosen)
        self.tint = colours(scene)
        area, alpha = ink.dot_size(scene.tokens)
        plain: dict[str, Any] = {"ls": "", "marker": "o", "ms": area**0.5, "alpha": alpha, "mew": 0}
        self.groups = {
            colour: self.ax.plot([], [], [], color=colour, **plain)[0]
            for colour in (*PALETTE, NOBODY)
        }
        self.stars = {
            leader.index: self.ax.plot(
                [], [], [], ls="", marker="*", ms=13, color=self.tint[leader.index], mec=ink.EDGE
            )[0]
            for leader in scene.leaders
        }
        self.names = self._names()
        self.text = self.ax.text2D(0.02, 0.95, "", transform=self.ax.transAxes)
        set_box(self.ax, self.zs, chosen)
        self.ax.set_box_aspect(None, zoom=_ZOOM)
        self.ax.grid(False)
        self.ax.set_title(clean(scene.title, 60), fontsize=10, parse_math=False)

    def _names(self) -> dict[int, Any]:
        """The names of the leaders, unless there are too many to be read."""
        if len(self.scene.leaders) > ink.MANY_NAMES:
            return {}
        return {
            leader.index: self.ax.text(
                0, 0, 0, "   " + clean(leader.name, 24), fontsize=8, zorder=6, parse_math=False
            )
            for leader in self.scene.leaders
        }

    def frames(self, moments: Iterable[tuple[int, float]]) -> Iterator[Image.Image]:
        """A picture for each (saved layer, share of the way to the next)."""
        end = max(1, len(self.zs) - 1)
        for row, share in moments:
            start = self.zs[row]
            following = self.zs[min(row + 1, len(self.zs) - 1)]
            self._move(row, start + share * (following - start))
            self.ax.view_init(elev=22, azim=-60 + _TURN * (row + share) / end)
            self.canvas.draw()
            yield ink.photograph(self.canvas)

    def _move(self, row: int, now: Floats) -> None:
        layer = self.scene.layers[row]
        shade = np.array([self.tint.get(i, NOBODY) for i in self.scene.follows[row].tolist()])
        for colour, group in self.groups.items():
            group.set_data_3d(*now[shade == colour].T)
        for leader in self.scene.leaders:
            there = now[[leader.index]] if leader.born <= layer else now[:0]
            self.stars[leader.index].set_data_3d(*there.T)
            self._name(leader.index, there)
        self.text.set_text(f"layer {layer}")

    def _name(self, token: int, there: Floats) -> None:
        """The name beside its star; hidden where there is no star."""
        name = self.names.get(token)
        if name is not None:
            seen = len(there) > 0 and bool(np.isfinite(there).all())
            name.set_visible(seen)
            if seen:
                name.set_position_3d(there[0])
