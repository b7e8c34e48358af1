"""Every key for every query, fused: scores stay in registers, the best in a few arrays.

Lanes are queries.  The keys of a block leave only the largest score of each query;
the block that holds the best score is looked at once more, with keys as lanes, for
the index and the runner-up.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hardmax._types import Array, Ints
from hardmax.select._vector import TILE, block_find, block_max, lanes, top_two

__all__ = ["BLOCK", "FEW", "pack", "search"]

BLOCK = 128
"""Keys per block."""
FEW = 96
"""Up to so many keys the index is carried along instead of found again."""
_TILES = 16
_W4, _W8 = lanes(np.float32), lanes(np.float64)


@njit(nogil=True, cache=True)
def lanes_of(x: Array) -> int:
    """Keys per group for numbers like those of x."""
    return _W4 if x.itemsize == 4 else _W8


@njit(nogil=True, cache=True)
def pack_into(k: Array, first: int, stop: int, out: Array) -> None:
    """Keys first..stop in groups, coordinate by coordinate; the last one fills the end."""
    w, d = lanes_of(k), k.shape[1]
    n = stop - first
    for g in range((n + w - 1) // w):
        for lane in range(w):
            j = first + min(g * w + lane, n - 1)
            for c in range(d):
                out[(g * d + c) * w + lane] = k[j, c]


def pack(k: Array) -> Array:
    """All keys in groups."""
    w = lanes(k.dtype)
    out = np.empty(-(-len(k) // w) * w * k.shape[1], dtype=k.dtype)
    pack_into(k, 0, len(k), out)
    return out


@njit(nogil=True, cache=True)
def pack_tiles(q: Array, first: int, stop: int, out: Array) -> int:
    """Queries first..stop in tiles; how many tiles."""
    size, d = TILE * lanes_of(q), q.shape[1]
    tiles: int = (stop - first + size - 1) // size
    for t in range(tiles):
        for lane in range(size):
            i = min(first + t * size + lane, stop - 1)
            for c in range(d):
                out[(t * d + c) * size + lane] = q[i, c]
    return tiles


@njit(nogil=True, cache=True)
def _few(
    q: Array, k: Array, n: int, best: Array, second: Array, at: Ints, small: Ints, first: int,
    stop: int,
) -> None:  # fmt: skip
    """Search n keys, with the index carried along; `small` has integers as wide as the scores."""
    size, d = TILE * lanes_of(q), q.shape[1]
    tile = np.empty(size * d, q.dtype)
    top, nxt = np.empty(size, q.dtype), np.empty(size, q.dtype)
    for i in range(first, stop, size):
        pack_tiles(q, i, min(i + size, stop), tile)
        top_two(tile, 0, k, 0, n, d, top, nxt, small, 0)
        for lane in range(min(size, stop - i)):
            best[i + lane], second[i + lane] = top[lane], nxt[lane]
            at[i + lane] = small[lane]


@njit(nogil=True, cache=True)
def _many(
    q: Array, k: Array, n: int, best: Array, second: Array, at: Ints, small: Ints, first: int,
    stop: int,
) -> None:  # fmt: skip
    """Search n keys block by block."""
    w, d = lanes_of(q), q.shape[1]
    size = TILE * w
    chunk = _TILES * size
    tile, blk = np.empty(chunk * d, q.dtype), small
    top, nxt = np.empty(chunk, q.dtype), np.empty(chunk, q.dtype)
    now, rest = np.empty(size, q.dtype), np.empty(2, q.dtype)
    for i in range(first, stop, chunk):
        count = min(chunk, stop - i)
        tiles = pack_tiles(q, i, i + count, tile)
        top[:] = -np.inf
        nxt[:] = -np.inf
        for b in range((n + BLOCK - 1) // BLOCK):
            groups = (min(BLOCK, n - b * BLOCK) + w - 1) // w
            for t in range(tiles):
                block_max(tile, t * size * d, k, b * BLOCK * d, groups, d, now, 0)
                o = t * size
                for lane in range(size):
                    v, old = now[lane], top[o + lane]
                    low = v if v < old else old
                    nxt[o + lane] = low if low > nxt[o + lane] else nxt[o + lane]
                    blk[o + lane] = b if v > old else blk[o + lane]
                    top[o + lane] = v if v > old else old
        for r in range(count):
            o, b = r // size * size * d + r % size, blk[r] * BLOCK
            place = block_find(tile, o, size, k, b * d, min(BLOCK, n - b), d, top[r], rest)
            inside = top[r] if rest[1] > 1 else rest[0]
            best[i + r], at[i + r] = top[r], b + place
            second[i + r] = inside if inside > nxt[r] else nxt[r]


@njit(nogil=True, cache=True)
def search_into(
    q: Array, k: Array, n: int, best: Array, second: Array, at: Ints, small: Ints, first: int,
    stop: int,
) -> None:  # fmt: skip
    """Best and second-best score of queries first..stop, and the first best of n packed keys."""
    if n <= FEW:
        _few(q, k, n, best, second, at, small, first, stop)
    else:
        _many(q, k, n, best, second, at, small, first, stop)


def scratch(dtype: np.dtype) -> Ints:
    """Room for the indices of a chunk of queries, as wide as the scores."""
    kind = np.int32 if dtype.itemsize == 4 else np.int64
    return np.zeros(_TILES * TILE * lanes(dtype), dtype=kind)


def search(q: Array, k: Array, n: int) -> tuple[Array, Array, Ints]:
    """Best and second-best scores over n packed keys, and the first best key (one thread)."""
    best, second = np.empty(len(q), q.dtype), np.empty(len(q), q.dtype)
    at = np.empty(len(q), dtype=np.int64)
    search_into(q, k, n, best, second, at, scratch(q.dtype), 0, len(q))
    return best, second, at
