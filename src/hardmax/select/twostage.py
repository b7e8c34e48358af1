"""Float64 choices at the speed of float32: a coarse pass, then a few keys exactly.

Let q', k' be the vectors rounded to float32, entries at most 1 in size.  The chain of
d fused multiply-adds in float32 and that in float64 differ by at most

    B = 1.01 (d + 2) 2^-24 |q| max|k| + (d + 1) 2^-148 (1 + |q|_1 + max|k|_1):

two roundings of the factors and d of the sums, each 2^-24 relatively; below 2^-126 each
is 2^-150 absolutely; the float64 roundings are within the 1 %, as (d + 2) 2^-24 <= 2^-8
for the d allowed.  Sums stay below d + 1, so nothing overflows.

The float32 pass keeps the two blocks with the largest scores and the third largest
score of a block.  Both blocks are searched in float64.  When the runner-up found
there beats the third by more than B, no other key can be best or next best; else the
row is flagged and decided over all keys in float64.  So the answer, the margin and the
ties are those of the float64 search, to the last bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hardmax._types import Array, Floats, Ints
from hardmax.select._vector import TILE, block_find, block_max
from hardmax.select.brute import BLOCK, lanes_of, pack, pack_tiles, scratch, search_into
from hardmax.select.threads import in_threads

__all__ = ["LARGEST_D", "coarse_error", "search_twice"]

LARGEST_D = 2**15
_TILES = 16


def coarse_error(scale: Floats, ones: Floats, k: Array) -> Floats:
    """The bound B for each query from |q| max|k| and its sum of absolute entries."""
    d = k.shape[1]
    widest = float(np.abs(k).sum(axis=1).max())
    tiny = (d + 1) * 2.0**-148 * (1 + ones + widest)
    return np.asarray(1.01 * (d + 2) * 2.0**-24 * scale + tiny)


@njit(nogil=True, cache=True)
def _three(
    q: Array, k: Array, n: int, first: int, stop: int, one: Ints, two: Ints, third: Array
) -> None:
    """The blocks with the two largest scores of each query, and the third largest score."""
    w, d = lanes_of(q), q.shape[1]
    size = TILE * w
    chunk = _TILES * size
    tile, now = np.empty(chunk * d, q.dtype), np.empty(size, q.dtype)
    a, b, c = np.empty(chunk, q.dtype), np.empty(chunk, q.dtype), np.empty(chunk, q.dtype)
    ia, ib = np.empty(chunk, np.int32), np.empty(chunk, np.int32)
    for i in range(first, stop, chunk):
        count = min(chunk, stop - i)
        tiles = pack_tiles(q, i, i + count, tile)
        a[:], b[:], c[:] = -np.inf, -np.inf, -np.inf
        ia[:], ib[:] = 0, 0
        for blk in range((n + BLOCK - 1) // BLOCK):
            groups = (min(BLOCK, n - blk * BLOCK) + w - 1) // w
            for t in range(tiles):
                block_max(tile, t * size * d, k, blk * BLOCK * d, groups, d, now, 0)
                o = t * size
                for lane in range(size):
                    v, x, y, z = now[lane], a[o + lane], b[o + lane], c[o + lane]
                    low = v if v < y else y
                    c[o + lane] = low if low > z else z
                    ib[o + lane] = ia[o + lane] if v > x else (blk if v > y else ib[o + lane])
                    b[o + lane] = x if v > x else (v if v > y else y)
                    ia[o + lane] = blk if v > x else ia[o + lane]
                    a[o + lane] = v if v > x else x
        for r in range(count):
            one[i + r], two[i + r], third[i + r] = ia[r], ib[r], c[r]


@njit(nogil=True, cache=True)
def _decide(
    q: Array, k: Array, n: int, first: int, stop: int, one: Ints, two: Ints, third: Array,
    error: Array, best: Array, second: Array, at: Ints,
) -> None:  # fmt: skip
    """Best and runner-up in float64 within both blocks; at = -1 where that is not enough."""
    d = q.shape[1]
    flat, rest = q.reshape(-1), np.empty(2, q.dtype)
    now = np.empty(2, q.dtype)
    for i in range(first, stop):
        best[i], second[i], at[i] = -np.inf, -np.inf, -1
        for part in range(2):
            b = min(one[i], two[i]) if part == 0 else max(one[i], two[i])
            if part == 1 and one[i] == two[i]:
                break
            o, m = b * BLOCK, min(BLOCK, n - b * BLOCK)
            block_find(flat, i * d, 1, k, o * d, m, d, np.inf, rest)
            now[0] = rest[0]
            place = block_find(flat, i * d, 1, k, o * d, m, d, now[0], rest)
            inside = now[0] if rest[1] > 1 else rest[0]
            if now[0] > best[i]:
                second[i] = max(best[i], inside)
                best[i], at[i] = now[0], o + place
            else:
                second[i] = max(second[i], now[0])
        if not third[i] + error[i] < second[i]:
            at[i] = -1


def search_twice(
    q: Floats, k: Floats, packed: Floats, error: Floats
) -> tuple[Floats, Floats, Ints, int]:
    """As `search` for float64 queries, and how many rows had to be searched again.

    `packed` are the keys k in groups, `error` is `coarse_error`.
    """
    n, m = len(k), len(q)
    coarse_q, coarse_k = q.astype(np.float32), pack(k.astype(np.float32))
    one, two = np.empty(m, dtype=np.int32), np.empty(m, dtype=np.int32)
    third = np.empty(m, dtype=np.float32)
    best, second, at = np.empty(m), np.empty(m), np.empty(m, dtype=np.int64)

    def part(first: int, stop: int) -> None:
        _three(coarse_q, coarse_k, n, first, stop, one, two, third)
        _decide(q, packed, n, first, stop, one, two, third, error, best, second, at)

    in_threads(part, m, max(1, 4_000_000 // (n * k.shape[1])), TILE * lanes_of(coarse_q))
    flagged = np.flatnonzero(at < 0)
    if len(flagged):
        again = np.ascontiguousarray(q[flagged])
        b, s, j = np.empty(len(flagged)), np.empty(len(flagged)), np.empty(len(flagged), np.int64)

        def more(first: int, stop: int) -> None:
            search_into(again, packed, n, b, s, j, scratch(q.dtype), first, stop)

        in_threads(more, len(flagged), 64, TILE * lanes_of(q))
        best[flagged], second[flagged], at[flagged] = b, s, j
    return best, second, at, len(flagged)
