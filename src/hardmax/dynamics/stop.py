"""How a run ended, as data: a word per sequence."""

from __future__ import annotations

import numpy as np

from hardmax._types import Array, Ints

__all__ = ["MERGE_TOL", "collapsed", "spread"]

MERGE_TOL = {"float32": 1e-3, "float64": 1e-6}


def spread(x: Array, offsets: Ints) -> Array:
    """The largest extent over the coordinates of each sequence x[offsets[s]:offsets[s + 1]]."""
    with np.errstate(over="ignore", invalid="ignore"):
        high = np.maximum.reduceat(x, offsets[:-1], axis=0)
        low = np.minimum.reduceat(x, offsets[:-1], axis=0)
        return np.asarray((high - low).max(axis=1))


def collapsed(now: Array, start: Array, tol: float) -> Array:
    """Whether each spread has shrunk below tol times what it was."""
    return np.asarray((start > 0) & (now <= tol * start))
