"""One colour per followed token, the same in every figure, animation and page.

The first six are those of Okabe and Ito that carry on white and on black; then
the same, lighter and darker.  Colour is never the only sign: leaders are stars
with names.
"""

from __future__ import annotations

import numpy as np

from hardmax._types import Floats
from hardmax.plot.record import Scene

__all__ = ["NOBODY", "colours", "rgb", "token_colours"]

NOBODY = "#8a8f98"
"""The colour of a token that follows several tokens, or none."""

_BASE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def rgb(colour: str) -> tuple[float, float, float]:
    """The three parts of "#rrggbb", each from 0 to 1."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def _mixed(colour: str, other: float, share: float) -> str:
    parts = [round(255 * ((1 - share) * part + share * other)) for part in rgb(colour)]
    return "#" + "".join(f"{part:02x}" for part in parts)


PALETTE = (
    *_BASE,
    *(_mixed(colour, 1.0, 0.45) for colour in _BASE),
    *(_mixed(colour, 0.0, 0.30) for colour in _BASE),
)


def colours(scene: Scene) -> dict[int, str]:
    """The colour of each token that leads or is followed at some layer.

    Leaders come first, so that few leaders have the colours that differ most; a
    leader's members share its colour.
    """
    out: dict[int, str] = {}
    for place, leader in enumerate(scene.leaders):
        out[leader.index] = PALETTE[place % len(PALETTE)]
    for leader in scene.leaders:
        for member in leader.members:
            out.setdefault(member, out[leader.index])
    used = len(scene.leaders)
    for token in np.unique(scene.follows).tolist():
        if token >= 0 and token not in out:
            out[token] = PALETTE[used % len(PALETTE)]
            used += 1
    return out


def token_colours(scene: Scene, row: int) -> Floats:
    """(n, 3) colours of the tokens at a saved layer: those of the tokens followed."""
    table = np.tile(rgb(NOBODY), (scene.tokens + 1, 1))
    for token, colour in colours(scene).items():
        table[token] = rgb(colour)
    table[-1] = rgb(NOBODY)
    return np.asarray(table[scene.follows[row]], dtype=np.float64)
