"""Lengths of rows, and what tokens ask for: each number by one fixed chain."""

from __future__ import annotations

import numpy as np
from numba import njit

from hardmax._types import Array
from hardmax.select._vector import fma

__all__ = ["asks", "norms"]


@njit(nogil=True, cache=True)
def _asks(z: Array, turned: Array, out: Array) -> None:
    zero = z.dtype.type(0)
    for i in range(z.shape[0]):
        for r in range(out.shape[1]):
            out[i, r] = fma(turned[0, r], z[i, 0], zero)
        for c in range(1, turned.shape[0]):
            x = z[i, c]
            for r in range(out.shape[1]):
                out[i, r] = fma(turned[c, r], x, out[i, r])


def asks(z: Array, a: Array | None) -> Array:
    """What each token asks for, A z_i as rows, each by one fixed chain."""
    if a is None:
        return z
    out = np.empty((z.shape[0], a.shape[0]), dtype=z.dtype)
    _asks(np.ascontiguousarray(z), np.ascontiguousarray(a.T, dtype=z.dtype), out)
    return out


@njit(nogil=True, cache=True)
def _norms(x: Array, out: Array) -> None:
    zero = x.dtype.type(0)
    for i in range(x.shape[0]):
        s = fma(x[i, 0], x[i, 0], zero)
        for c in range(1, x.shape[1]):
            s = fma(x[i, c], x[i, c], s)
        out[i] = np.sqrt(s)


def norms(x: Array) -> Array:
    """Euclidean lengths of the rows, each by one fixed chain."""
    out = np.empty(x.shape[0], dtype=x.dtype)
    _norms(np.ascontiguousarray(x), out)
    return out
