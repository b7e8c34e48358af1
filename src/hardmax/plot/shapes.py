"""Where drawn things lie on the paper: coordinates chosen, outlines ordered."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Floats
from hardmax.plot.record import Scene

__all__ = ["View", "clean", "drawable", "faces_of", "frame", "outline", "ring", "square", "view_of"]

_FAR = 1e100
_DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@dataclass(frozen=True)
class View:
    """Which coordinates of a scene go to the right and up; in d = 1 the layer goes right."""

    axes: tuple[int, ...]

    @property
    def against_layer(self) -> bool:
        return len(self.axes) == 1

    def place(self, points: Floats, layer: float) -> Floats:
        """(..., 2) paper coordinates of points (..., d) at a layer."""
        points = drawable(points)
        if not self.against_layer:
            return points[..., list(self.axes)]
        right = np.full(points.shape[:-1], float(layer))
        return np.stack([right, points[..., self.axes[0]]], axis=-1)

    def paths(self, scene: Scene) -> Floats:
        """(n, k, 2) paper coordinates of every token through the saved layers."""
        rows = [self.place(z, layer) for z, layer in zip(scene.zs, scene.layers, strict=True)]
        return np.stack(rows, axis=1)

    def labels(self) -> tuple[str, str]:
        if self.against_layer:
            return "layer", "position"
        return f"coordinate {self.axes[0]}", f"coordinate {self.axes[1]}"


def view_of(scene: Scene, axes: tuple[int, int] | None, *, solid: str = "") -> View:
    """The flat view of a scene; more than two coordinates must be chosen from."""
    if axes is None:
        if scene.dim <= 2:
            return View(tuple(range(scene.dim)))
        also = f", or draw all three with `{solid}`" if solid and scene.dim == 3 else ""
        raise InputError(
            f"a flat picture has 2 coordinates and this scene has d = {scene.dim}. "
            f"Choose two, as in `axes=(0, 1)`{also}."
        )
    if len(axes) != 2 or axes[0] == axes[1] or not all(0 <= i < scene.dim for i in axes):
        raise InputError(
            f"`axes` must be two different coordinates from 0 to {scene.dim - 1}; got {axes}. "
            "Choose others."
        )
    return View((int(axes[0]), int(axes[1])))


def outline(points: Floats) -> Floats:
    """The corners of the shadow of a polytope on the paper, counterclockwise: (m, 2)."""
    found = np.unique(points[np.isfinite(points).all(axis=1)], axis=0)
    if len(found) < 3:
        return found
    lower, upper = _chain(found), _chain(found[::-1])
    return np.array(lower[:-1] + upper[:-1])


def _chain(points: Floats) -> list[Floats]:
    """One side of the outline of points sorted by their first coordinate."""
    side: list[Floats] = []
    for point in points:
        while len(side) > 1 and _turn(side[-2], side[-1], point) <= 0:
            side.pop()
        side.append(point)
    return side


def _turn(a: Floats, b: Floats, c: Floats) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def ring(corners: Floats) -> list[int]:
    """The order that goes around the corners of a flat face in space."""
    if len(corners) < 4:
        return list(range(len(corners)))
    spokes = corners - corners.mean(axis=0)
    _, _, plane = np.linalg.svd(spokes, full_matrices=False)
    flat = spokes @ plane[:2].T
    return [int(i) for i in np.argsort(np.arctan2(flat[:, 1], flat[:, 0]), kind="stable")]


def frame(points: Floats, margin: float = 0.06) -> tuple[Floats, Floats]:
    """The corners of a box around finite points, a little larger; never empty."""
    flat = points.reshape(-1, points.shape[-1])
    flat = flat[np.isfinite(flat).all(axis=1)]
    if len(flat) == 0:
        flat = np.zeros((1, points.shape[-1]))
    low, high = flat.min(axis=0), flat.max(axis=0)
    widest, largest = float((high - low).max()), float(np.abs(flat).max())
    visible = widest > max(1e-9 * largest, 1 / _FAR)
    room = margin * widest if visible else max(0.5, 0.1 * largest)
    return low - room, high + room


def faces_of(scene: Scene) -> list[list[int]]:
    """Faces as rings of vertex indices; a flat polytope is one face, on both sides."""
    if scene.vertices is None or len(scene.vertices) < 3:
        return []
    faces = [list(face) for face in scene.faces if len(face) >= 3]
    if not faces:
        faces = [list(range(len(scene.vertices)))]
    return [[face[i] for i in ring(scene.vertices[face])] for face in faces]


def drawable(points: Floats) -> Floats:
    """The points, with NaN for what is too far away for a picture's arithmetic."""
    return np.where(np.abs(points) < _FAR, points, np.nan)


def square(points: Floats, margin: float = 0.08) -> tuple[Floats, float]:
    """The centre and half the side of a square around points of the paper."""
    low, high = frame(points, margin)
    return (low + high) / 2, float((high - low).max() / 2)


def clean(text: str, longest: int = 40) -> str:
    """Text as it can be shown on one line: no control characters, not endless."""
    shown = "".join("\ufffd" if _unfit(c) else c for c in text[: longest + 1])
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def _unfit(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs") or character in _DIRECTIONS
