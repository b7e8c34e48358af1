"""Animations: tokens glide from layer to layer, as the layers move them.

A layer moves a token along a straight line, so the frames between two saved
layers lie on straight lines too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from matplotlib.collections import LineCollection
from PIL import Image

from hardmax._errors import InputError
from hardmax.plot import ink
from hardmax.plot.colours import NOBODY, PALETTE, rgb, token_colours
from hardmax.plot.record import Scene
from hardmax.plot.shapes import View, clean, view_of
from hardmax.plot.turntable import Turntable

__all__ = ["animate", "save_gif"]

_INCHES = 4.8
_MOST_TRAILS = 2000
"""More tokens than this move without a trail."""
_FADES = (1.0, 0.75, 0.5, 0.25, 0.18)
"""The strengths at which the palette of a file holds each colour on white."""
_STILL = 20
"""How many times longer the last frame stays."""


def animate(
    scene: Scene,
    *,
    steps_between: int = 6,
    size: int = 480,
    axes: tuple[int, int] | None = None,
) -> list[Image.Image]:
    """Frames of the tokens on their way through the saved layers.

    Parameters
    ----------
    scene : Scene
        With d = 1 the positions run against the layer; with d = 3 the picture turns.
    steps_between : int
        Frames from one saved layer to the next.
    size : int
        Width and height in pixels.
    axes : (int, int), optional
        The two coordinates to draw; needed when d > 3.

    Returns
    -------
    list of PIL.Image.Image
        `steps_between * (k - 1) + 1` of them for k saved layers.

    Raises
    ------
    InputError
        If a number is below 1, or `axes` are needed.
    """
    if steps_between < 1 or size < 1:
        raise InputError(
            f"`steps_between` and `size` must be at least 1; got {steps_between} and {size}."
        )
    if scene.dim == 3 and axes is None:
        return list(Turntable(scene, size).frames(_moments(scene, steps_between)))
    stage = _Stage(scene, view_of(scene, axes), size)
    return [stage.shot(row, share) for row, share in _moments(scene, steps_between)]


def save_gif(
    scene: Scene,
    file: IO[bytes],
    *,
    steps_between: int = 6,
    size: int = 480,
    axes: tuple[int, int] | None = None,
    milliseconds: int = 50,
) -> None:
    """Write the frames of `animate` as a GIF that repeats for ever.

    Parameters
    ----------
    scene, steps_between, size, axes
        As in `animate`.
    file : binary file object
    milliseconds : int
        How long a frame stays; the last one stays longer.

    Notes
    -----
    Equal frames that follow each other are stored as one that stays longer.
    """
    frames = animate(scene, steps_between=steps_between, size=size, axes=axes)
    palette = _common_palette()
    reduced = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in frames]
    reduced[0].save(
        file,
        format="GIF",
        save_all=True,
        append_images=reduced[1:],
        duration=[milliseconds] * (len(frames) - 1) + [milliseconds * _STILL],
        loop=0,
        optimize=False,
    )


class _Stage:
    """A flat picture whose still parts are drawn once."""

    def __init__(self, scene: Scene, view: View, size: int) -> None:
        self.scene, self.view = scene, view
        self.paths = view.paths(scene)
        figure: Any = ink.blank(_INCHES, _INCHES)
        figure.set_dpi(size / _INCHES)
        self.canvas = figure.canvas
        self.ax = figure.add_subplot()
        ink.draw_polytope(self.ax, scene, view)
        rests = ink.draw_rests(self.ax, scene, view)
        ink.set_frame(self.ax, np.concatenate([self.paths.reshape(-1, 2), rests]), view)
        self.ax.set_title(clean(scene.title, 60), fontsize=10, parse_math=False)
        self._add_movers()
        self.canvas.draw()
        self.still = self.canvas.copy_from_bbox(figure.bbox)

    def _add_movers(self) -> None:
        scene, leaders = self.scene, self.scene.leader_indices
        area, alpha = ink.dot_size(scene.tokens)
        self.trails = LineCollection([], linewidths=1.0, alpha=0.5 * alpha, animated=True)
        self.ax.add_collection(self.trails, autolim=False)
        self.dots = self.ax.scatter([], [], s=area, alpha=alpha, lw=0, animated=True, zorder=3)
        self.stars = ink.draw_stars(self.ax, scene, leaders, self.paths[:, -1], 150)
        self.stars.set_animated(True)
        self.text = self.ax.text(
            0.02, 0.98, "", transform=self.ax.transAxes, va="top", animated=True
        )
        self.born = np.array([leader.born for leader in scene.leaders])
        self.names = ink.draw_names(self.ax, scene, leaders, self.paths[:, -1])
        for name in self.names.values():
            name.set_animated(True)

    def shot(self, row: int, share: float) -> Image.Image:
        """The picture a share of the way from one saved layer to the next."""
        scene, following = self.scene, min(row + 1, len(self.scene.layers) - 1)
        start = self.paths[:, row]
        now = start + share * (self.paths[:, following] - start)
        tint: Any = token_colours(scene, row)
        self.canvas.restore_region(self.still)
        if scene.tokens <= _MOST_TRAILS:
            self.trails.set_segments(list(np.stack([start, now], axis=1)))
            self.trails.set_color(tint)
        self.dots.set_offsets(now)
        self.dots.set_facecolor(tint)
        born = self.born <= scene.layers[row]
        self.stars.set_offsets(now[scene.leader_indices])
        self.stars.set_sizes(np.where(born, 150.0, 0.0))
        self.text.set_text(f"layer {scene.layers[row]}")
        here = scene.leaders_at(scene.layers[row])
        shown = [name for token, name in self.names.items() if token in here]
        for artist in (self.trails, self.dots, self.stars, self.text, *shown):
            self.ax.draw_artist(artist)
        return ink.photograph(self.canvas)


def _moments(scene: Scene, steps: int) -> Iterator[tuple[int, float]]:
    """(saved layer, share of the way to the next) for every frame."""
    for row in range(len(scene.layers) - 1):
        for step in range(steps):
            yield row, step / steps
    yield len(scene.layers) - 1, 0.0


def _common_palette() -> Image.Image:
    """One palette for all frames: the colours drawn, and how they fade into white."""
    shades = [rgb(colour) for colour in (*PALETTE, NOBODY, ink.FILL)]
    steps = [tuple(1 - t * (1 - part) for part in shade) for shade in shades for t in _FADES]
    greys = [(grey / 31,) * 3 for grey in range(32)]
    numbers = [round(255 * part) for colour in (*greys, *steps) for part in colour]
    sheet = Image.new("P", (1, 1))
    sheet.putpalette(numbers + [255] * (768 - len(numbers)))
    return sheet
