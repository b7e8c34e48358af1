"""Scenes for the tests of pictures: from real runs, and made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardmax import equilibrium, simulate
from hardmax.plot.scene import Scene, SceneLeader, scene_of

EMERGING = [
    [1, 4 / 12],
    [-1 / 12, 1 / 12],
    [-1, -1],
    [0, 3 / 12],
    [-0.3, -0.7],
    [-0.6, -0.9],
    [0.8, 0.1],
    [0.6, 0.15],
]
SQUARE = [[1, 1], [1, -1], [-1, 1], [-1, -1], [-0.5, 0], [0.5, 0], [0.25, 0.4]]


def scene_from(z: Any, depth: int = 30, **said: Any) -> Scene:
    """The scene of tokens with alpha = 1/2, with its limit."""
    tokens = np.array(z, dtype=np.float64)
    run = simulate(tokens, depth, alpha=0.5)
    return scene_of(run, equilibrium(tokens, alpha=0.5), **said)


def emerging(depth: int = 30, **said: Any) -> Scene:
    """Eight tokens of the plane, of which one becomes a leader at layer 1."""
    return scene_from(EMERGING, depth, **said)


def square(depth: int = 30, **said: Any) -> Scene:
    """A square with two tokens that end in the middle of two of its sides."""
    return scene_from(SQUARE, depth, **said)


def cloud(n: int, d: int, depth: int = 12, seed: int = 0, **said: Any) -> Scene:
    """Gaussian tokens."""
    return scene_from(np.random.default_rng(seed).normal(size=(n, d)), depth, **said)


def by_hand(zs: Any, follows: Any = None, leaders: tuple[int, ...] = (), **said: Any) -> Scene:
    """A scene of given positions; leaders are born at layer 0."""
    positions = np.array(zs, dtype=np.float64)
    k, n, _ = positions.shape
    chosen = np.full((k, n), -1) if follows is None else np.array(follows)
    records = tuple(SceneLeader(i, 0, str(i), (i,)) for i in leaders)
    return Scene(positions, tuple(range(k)), chosen, records, **said)
