"""Tokens and matrices times powers of two, so that their largest entries are near 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardmax._types import Array, Floats, Ints

__all__ = ["dense", "factors", "per_sequence", "unit"]


def per_sequence(values: Array, offsets: Ints) -> Array:
    """The largest value of each sequence; 0 for one without tokens."""
    out = np.zeros(len(offsets) - 1, dtype=values.dtype)
    some = np.diff(offsets) > 0
    if some.any():
        out[some] = np.maximum.reduceat(values, offsets[:-1][some])
    return out


def unit(x: Array, offsets: Ints | None = None) -> Array:
    """x times a power of two (one per sequence) so that its largest entry is near 1."""
    tops = np.abs(x).max(axis=tuple(range(1, x.ndim)), initial=0.0)
    if offsets is None:
        return np.asarray(np.ldexp(x, -np.frexp(tops.max(initial=0.0))[1]))
    shift = np.repeat(np.frexp(per_sequence(tops, offsets))[1], np.diff(offsets))
    return np.asarray(np.ldexp(x, -shift[:, None]))


def dense(A: Any) -> Any:
    """A in float64, largest entry near 1; a pair keeps its factors when that is less work."""
    if isinstance(A, tuple):
        u, v = (unit(np.asarray(x, dtype=np.float64)) for x in A)
        return (u, v) if 2 * len(u) < u.shape[1] else u.T @ v
    return None if A is None else unit(np.asarray(A, dtype=np.float64))


def factors(A: Any) -> list[Floats]:
    """The matrices that a token is multiplied by, one after the other."""
    if A is None:
        return []
    parts = (A[1], np.asarray(A[0]).T) if isinstance(A, tuple) else (A,)
    return [np.ascontiguousarray(x, dtype=np.float64) for x in parts]
