"""Which rows are equal: classes in order of appearance, by hashing."""

from __future__ import annotations

import numpy as np
from numba import njit

from hardmax._types import Array, Ints

__all__ = ["equal_rows"]


@njit(nogil=True, cache=True)
def _classes(bits: Array, offsets: Ints, table: Ints, first: Ints, class_of: Ints) -> int:
    """Number the classes of each stretch of rows; how many there are."""
    m = 0
    for s in range(len(offsets) - 1):
        size = 2
        while size < 2 * (offsets[s + 1] - offsets[s]):
            size *= 2
        table[:size] = -1
        for i in range(offsets[s], offsets[s + 1]):
            h = np.uint64(0x9E3779B97F4A7C15)
            for c in range(bits.shape[1]):
                h = (h ^ np.uint64(bits[i, c])) * np.uint64(0xBF58476D1CE4E5B9)
                h ^= h >> np.uint64(29)
            slot = np.int64(h & np.uint64(size - 1))
            while table[slot] >= 0:
                j = first[table[slot]]
                same = True
                for c in range(bits.shape[1]):
                    same &= bits[i, c] == bits[j, c]
                if same:
                    break
                slot = (slot + 1) & (size - 1)
            if table[slot] < 0:
                table[slot] = m
                first[m] = i
                m += 1
            class_of[i] = table[slot]
    return m


def equal_rows(x: Array, offsets: Ints | None = None) -> tuple[Ints, Ints]:
    """The first row of each class of equal rows, and the class of each row.

    Parameters
    ----------
    x : (n, d) array of floats
        Without NaN; 0 and -0 are equal.
    offsets : (s + 1,) int array, optional
        Rows are equal only within x[offsets[s]:offsets[s + 1]].

    Examples
    --------
    >>> equal_rows(np.array([[2.0], [1.0], [2.0]]))
    (array([0, 1]), array([0, 1, 0]))
    """
    offsets = np.array([0, len(x)]) if offsets is None else np.asarray(offsets, dtype=np.int64)
    kind = np.uint32 if x.dtype.itemsize == 4 else np.uint64
    bits = np.ascontiguousarray(x + x.dtype.type(0)).view(kind)
    longest = int(np.diff(offsets).max(initial=0))
    table = np.empty(2 ** max(1, (2 * longest - 1).bit_length()), dtype=np.int64)
    first, class_of = np.empty(len(x), dtype=np.int64), np.empty(len(x), dtype=np.int64)
    m = _classes(bits, offsets, table, first, class_of)
    return first[:m].copy(), class_of
