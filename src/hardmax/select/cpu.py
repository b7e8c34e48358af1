"""Selection on the CPU: scaled tokens, the search, margins in relative units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hardmax._types import Array, Ints
from hardmax.select.chosen import Chosen
from hardmax.select.measure import asks, norms
from hardmax.select.search import search_batch, search_cloud

__all__ = ["select_cpu"]

_NEAR = 8  # powers of two within which numbers need no scaling


@njit(nogil=True, cache=True)
def _largest(x: Array, offsets: Ints, out: Array) -> None:
    """The largest size of an entry of each sequence."""
    for s in range(len(offsets) - 1):
        top = x.dtype.type(0)
        for i in range(offsets[s], offsets[s + 1]):
            for c in range(x.shape[1]):
                v = abs(x[i, c])
                top = v if v > top else top
        out[s] = top


def _scaled(z: Array, offsets: Ints) -> Array:
    """Each sequence times a power of two so that its largest entry is near 1."""
    z = np.ascontiguousarray(z)
    tops = np.empty(len(offsets) - 1, dtype=z.dtype)
    _largest(z, offsets, tops)
    shift = np.frexp(tops)[1]
    if np.abs(shift).max(initial=0) <= _NEAR:
        return z
    if len(shift) == 1:
        return np.asarray(np.ldexp(z, -shift[0]))
    return np.asarray(np.ldexp(z, -np.repeat(shift, np.diff(offsets))[:, None]))


def select_cpu(z: Array, A: Any, offsets: Ints, tie_tol: float, path: str) -> Chosen:
    """The sets of `select`; A is dense or a pair, its entries near 1."""
    z = _scaled(z, offsets)
    q = asks(asks(z, A[1]), A[0].T) if isinstance(A, tuple) else asks(z, A)
    lengths = norms(z)
    sizes = lengths if q is z else norms(q)
    if len(offsets) == 2 and len(z):
        scale = sizes * lengths.max()
        tol = np.asarray(tie_tol * scale, dtype=z.dtype)
        found = search_cloud(q, z, tol, path, lengths=(sizes, lengths))[0]
    else:
        longest = np.maximum.reduceat(lengths, offsets[:-1])
        scale = sizes * np.repeat(longest, np.diff(offsets))
        found = search_batch(q, z, offsets, np.asarray(tie_tol * scale, dtype=z.dtype))[0]
    unit = np.where(scale > 0, scale, 1).astype(np.float64)
    return Chosen(found.indptr, found.indices, found.margin / unit, found.path)
