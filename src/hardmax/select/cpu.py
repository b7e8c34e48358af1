"""Selection on the CPU: scaled tokens, the search, margins in relative units.

float32 tokens are exact numbers, and their sets are those of float64 scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from hardmax._types import Array, Floats, Ints
from hardmax.select.asking import SHORT, mended, weak_rows
from hardmax.select.chosen import Chosen
from hardmax.select.measure import asks, norms
from hardmax.select.scale import dense, per_sequence
from hardmax.select.search import search_batch, search_cloud
from hardmax.select.sharp import sharpened, wide_tolerance
from hardmax.select.ties import Crowded

__all__ = ["asked", "select_cpu", "shift_of"]

_MANY = 2048
_CROWD = 10_000_000  # pairs of float32 that are worth scoring again
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
    shift = np.repeat(shift, np.diff(offsets))[:, None] if len(shift) > 1 else shift
    with np.errstate(under="ignore"):
        x = np.asarray(np.ldexp(z, -shift))
        if z.dtype == np.float32 and not np.array_equal(np.ldexp(x, shift), z):
            x = np.ldexp(z.astype(np.float64), -shift)  # float32 would lose small numbers
    return x


def shift_of(top: float) -> int:
    """The power of two by which a cloud with this largest entry is scaled down."""
    shift = int(np.frexp(top)[1])
    return shift if abs(shift) > _NEAR else 0


def asked(x: Floats, given: Array, A: Any, lengths: Floats) -> Floats:
    """What each token asks for; x are the tokens with entries near 1, `lengths` theirs."""
    if A is None and not lengths.min(initial=1.0) < SHORT:
        return x
    a = dense(A)
    q = asks(asks(x, a[1]), a[0].T) if isinstance(a, tuple) else asks(x, a)
    return mended(q, given, weak_rows(x, q, A), A)


def select_cpu(z: Array, A: Any, offsets: Ints, tie_tol: float, path: str) -> Chosen:
    """The sets of `select`, everything within a tolerance above the rounding of float64."""
    given, z = z, _scaled(z, offsets)
    exact = z.astype(np.float64, copy=False)
    lengths = norms(exact)
    q = asked(exact, given, A, lengths)
    sizes = lengths if q is exact else norms(q)
    one = len(offsets) == 2 and len(z) > 0
    longest = lengths.max() if one else per_sequence(lengths, offsets)
    scale = sizes * (longest if one else np.repeat(longest, np.diff(offsets)))
    call = _Call(q, z, tie_tol * scale, sizes, lengths, offsets if not one else None, path)
    found = call.double() if call.in_double() else call.single(scale)
    unit = np.where(scale > 0, scale, 1)
    return Chosen(found.indptr, found.indices, found.margin / unit, found.path)


@dataclass
class _Call:
    """One search in float64, or by way of float32: asks in float64, keys as they stand."""

    q: Floats
    k: Array
    tol: Floats
    sizes: Floats
    lengths: Floats
    offsets: Ints | None
    path: str

    def in_double(self) -> bool:
        """Whether float64 alone is quicker: few keys of many are looked at."""
        n, d = self.k.shape
        few = self.offsets is None and self.path in ("auto", "hull") and d <= 3 and n >= _MANY * d
        return few or self.k.dtype == np.float64

    def double(self) -> Chosen:
        """All in float64."""
        keys = self.k.astype(np.float64, copy=False)
        return self._search(self.q, keys, self.tol, None)[0]

    def single(self, scale: Floats) -> Chosen:
        """Float32 proposes, float64 decides; all in float64 where float32 tells too little."""
        q = self.q.astype(np.float32)
        wide = wide_tolerance(self.tol, self.q, self.k, scale)
        most = max(_CROWD, 16 * len(q))
        try:
            found = self._search(q, self.k, wide, most)
            return sharpened(found, self.q, self.k, self.tol)
        except Crowded:
            return self.double()

    def _search(
        self, q: Array, k: Array, tol: Array, most: int | None
    ) -> tuple[Chosen, Array, Array]:
        if self.offsets is not None:
            return search_batch(q, k, self.offsets, tol)
        kind = q.dtype
        lengths = self.sizes.astype(kind, copy=False), self.lengths.astype(kind, copy=False)
        return search_cloud(q, k, tol, self.path, lengths=lengths, most=most)
