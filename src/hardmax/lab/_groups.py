"""Groups of points that lie together, counted in compiled loops."""

from __future__ import annotations

import numpy as np
from numba import njit

from hardmax._types import Array, Floats, Ints

__all__ = ["agreement", "count_near", "groups_of"]


@njit(nogil=True, cache=True)
def _far(z: Array, i: int, j: int, tol: float) -> bool:
    s = 0.0
    for c in range(z.shape[1]):
        s += (z[i, c] - z[j, c]) ** 2
    return bool(s > tol * tol)


@njit(nogil=True, cache=True)
def _link(z: Array, tol: float, label: Ints) -> int:
    """Number the connected components of points within tol of each other."""
    n, count = len(z), 0
    stack = np.empty(n, dtype=np.int64)
    label[:] = -1
    for start in range(n):
        if label[start] >= 0:
            continue
        size = 1
        stack[0] = start
        label[start] = count
        while size:
            size -= 1
            i = stack[size]
            for j in range(n):
                if label[j] < 0 and not _far(z, i, j, tol):
                    label[j] = count
                    stack[size] = j
                    size += 1
        count += 1
    return count


@njit(nogil=True, cache=True)
def _cover(z: Array, tol: float, first: Ints) -> int:
    """Points, in order, none within tol of an earlier one that was kept."""
    count = 0
    for i in range(len(z)):
        new = True
        for r in range(count):
            if not _far(z, first[r], i, tol):
                new = False
                break
        if new:
            first[count] = i
            count += 1
    return count


def groups_of(z: Floats, tol: float) -> Ints:
    """The group of each row of z (n, d): rows within tol of each other, linked in chains.

    Groups are numbered in the order of their first row.
    """
    label = np.empty(len(z), dtype=np.int64)
    _link(np.ascontiguousarray(z, dtype=np.float64), tol, label)
    return label


def count_near(z: Floats, tol: float) -> int:
    """How many rows stay when each row within tol of an earlier kept one is left out."""
    return int(
        _cover(np.ascontiguousarray(z, dtype=np.float64), tol, np.empty(len(z), dtype=np.int64))
    )


def agreement(one: Ints, other: Ints) -> float:
    """The adjusted Rand index of two groupings; 1 when they are the same."""
    table = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(table, (one, other), 1)

    def pairs(x: Floats) -> float:
        return float((x * (x - 1)).sum() / 2)

    both, a, b = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    total = len(one) * (len(one) - 1) / 2
    expected = a * b / total if total else 0.0
    top = (a + b) / 2
    return 1.0 if top == expected else (both - expected) / (top - expected)
