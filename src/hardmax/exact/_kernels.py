"""Compiled loops over sequences: distinct tokens and hashes of sets and measures."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardmax._types import Array
from hardmax.exact._jit import jit

__all__ = ["distinct_pairs", "intern_rows", "measure_keys"]


@jit
def _mix(x: Any) -> Any:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@jit
def _intern(values: Array, bits: Array, slots: Array) -> tuple[Array, Array]:
    """Number equal rows alike, in the order of first appearance (open addressing)."""
    rows, d = values.shape
    ids = np.empty(rows, np.int32)
    first = np.empty(rows, np.int64)
    mask = np.uint64(len(slots) - 1)
    seen = 0
    for i in range(rows):
        h = np.uint64(0x243F6A8885A308D3)
        for c in range(d):
            h = (h ^ np.uint64(bits[i, c])) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
        at = _mix(h) & mask
        while True:
            k = slots[at]
            if k < 0:
                slots[at] = seen
                first[seen] = i
                ids[i] = seen
                seen += 1
                break
            same = True
            o = first[k]
            for c in range(d):
                if bits[i, c] != bits[o, c]:
                    same = False
                    break
            if same:
                ids[i] = k
                break
            at = (at + np.uint64(1)) & mask
    return ids, first[:seen].copy()


def intern_rows(values: Array) -> tuple[Array, Array]:
    """Ids of equal rows, and the index of the first row of every id."""
    bits = values.view(np.uint64 if values.dtype == np.float64 else np.uint32)
    size = 1 << max(4, int(2 * len(values) - 1).bit_length())
    return _intern(values, bits, np.full(size, -1, dtype=np.int32))


@jit
def distinct_pairs(ids: Array, offsets: Array, size: int) -> tuple[Array, Array, Array]:
    """Distinct ids of every sequence with multiplicities, in order of appearance."""
    place = np.full(size, -1, np.int64)
    rows = np.empty(len(ids), np.int32)
    counts = np.empty(len(ids), np.int32)
    starts = np.zeros(len(offsets), np.int64)
    end = 0
    for j in range(len(offsets) - 1):
        begin = end
        for pos in range(offsets[j], offsets[j + 1]):
            w = ids[pos]
            at = place[w]
            if at >= begin:
                counts[at] += 1
            else:
                place[w] = end
                rows[end] = w
                counts[end] = 1
                end += 1
        starts[j + 1] = end
    return rows[:end].copy(), counts[:end].copy(), starts


@jit
def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


@jit
def measure_keys(rows: Array, counts: Array, starts: Array, sets: bool) -> Array:
    """Two 64-bit sums per sequence, equal for equal empirical measures (or sets)."""
    keys = np.zeros((len(starts) - 1, 2), np.uint64)
    for j in range(len(starts) - 1):
        g = 0
        for pos in range(starts[j], starts[j + 1]):
            g = _gcd(counts[pos], g)
        a = np.uint64(0)
        b = np.uint64(0)
        for pos in range(starts[j], starts[j + 1]):
            m = 1 if sets else counts[pos] // g
            x = np.uint64(rows[pos]) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(m)
            x = _mix(x + np.uint64(0x632BE59BD9B4E019))
            a += x
            b += _mix(x ^ np.uint64(0xD1B54A32D192ED03))
        keys[j, 0] = a
        keys[j, 1] = b
    return keys
