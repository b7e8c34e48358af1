"""The numbers that a page embeds: positions to 7 digits, colours, outlines."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardmax._types import Floats
from hardmax.plot.colours import NOBODY, colours
from hardmax.plot.plain import to_numbers
from hardmax.plot.record import Scene
from hardmax.plot.shapes import clean, drawable, faces_of, outline, view_of

__all__ = ["payload"]

_DIGITS = 7


def payload(scene: Scene, axes: tuple[int, int] | None = None) -> dict[str, Any]:
    """What the page's script draws; plain data for JSON."""
    chosen, kind = _chosen(scene, axes)
    vertices, faces = _body(scene, chosen, kind)
    decimals = _decimals(scene.zs[..., chosen])
    names = scene.names
    return {
        "kind": kind,
        "dim": scene.dim,
        "hidden": scene.dim > len(chosen),
        "labels": ["layer", "position"] if kind == "line" else [f"coordinate {i}" for i in chosen],
        "layers": list(scene.layers),
        "zs": _numbers(scene.zs[..., chosen], decimals),
        "follows": scene.follows.tolist(),
        "colours": {str(token): colour for token, colour in colours(scene).items()},
        "nobody": NOBODY,
        "leaders": [
            {"index": leader.index, "born": leader.born, "name": clean(leader.name)}
            for leader in scene.leaders
        ],
        "names": None if names is None else [clean(name) for name in names],
        "vertices": _numbers(vertices, decimals),
        "faces": faces,
        "rests": _numbers(scene.rests()[:, chosen], decimals),
    }


def _chosen(scene: Scene, axes: tuple[int, int] | None) -> tuple[list[int], str]:
    """The coordinates on the page, and whether they are a line, a plane or space."""
    if axes is None and scene.dim == 3:
        return [0, 1, 2], "space"
    if axes is None and scene.dim > 3:
        axes = (0, 1)
    view = view_of(scene, axes)
    return list(view.axes), "line" if view.against_layer else "plane"


def _body(scene: Scene, chosen: list[int], kind: str) -> tuple[Floats, list[list[int]]]:
    """The corners to draw and the faces between them; on a plane, the outline."""
    if scene.vertices is None or len(scene.vertices) == 0:
        return np.empty((0, len(chosen))), []
    if kind == "space":
        faces = faces_of(scene) or [list(range(len(scene.vertices)))]
        return scene.vertices, faces
    corners = scene.vertices[:, chosen]
    corners = np.sort(corners, axis=0)[[0, -1]] if kind == "line" else outline(corners)
    return corners, [list(range(len(corners)))] if len(corners) else []


def _decimals(points: Floats) -> int | None:
    """How many decimals keep 7 digits of the largest coordinate; None: keep all."""
    size = np.abs(drawable(points))
    largest = float(np.nanmax(size)) if np.isfinite(size).any() else 0.0
    if largest <= 1e-100:
        return None
    return _DIGITS - int(np.floor(np.log10(largest)))


def _numbers(points: Floats, decimals: int | None) -> list[Any]:
    shown = drawable(points)
    return to_numbers(shown if decimals is None else np.round(shown, decimals))
