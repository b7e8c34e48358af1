"""Keys by length, longest first: a query stops where no shorter key can win.

|<q, k>| <= |q| |k|, so a query whose best score is above |q| times the length of the
next key has seen every key that matters.  Queries that need about the same number of
keys are searched together.  The margins of rows that stopped are lower bounds,
exact for the rows where they are smallest.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hardmax._types import Array, Ints
from hardmax.select._vector import TILE, block_find, block_max
from hardmax.select.brute import BLOCK, lanes_of, pack, scratch
from hardmax.select.threads import in_threads

__all__ = ["Sorted", "lost_in_squares", "share_to_see"]

_FIRST = 2  # blocks that everybody sees
_GROWTH = 3
_SAMPLE = 48


@njit(nogil=True, cache=True)
def _advance(
    q: Array, k: Array, n: int, rows: Ints, reach: Array, bounds: Array, b0: int, b1: int,
    floor: Array, tol: Array, best: Array, second: Array, at: Ints, seen: Ints, blk: Ints,
) -> None:  # fmt: skip
    """Let `rows` see blocks b0..b1, tile by tile, as far as one row of the tile needs.

    Row i needs block b while reach[i] bounds[b] >= max(best[i], floor[i]) - tol[i].
    """
    w, d = lanes_of(q), q.shape[1]
    size = TILE * w
    tile, now = np.empty(size * d, q.dtype), np.empty(size, q.dtype)
    top, nxt, least = np.empty(size, q.dtype), np.empty(size, q.dtype), np.empty(size, q.dtype)
    far, room = np.empty(size, q.dtype), np.empty(size, q.dtype)
    rest = np.empty(2, q.dtype)
    for i in range(0, len(rows), size):
        count = min(size, len(rows) - i)
        for lane in range(size):
            r = rows[i + min(lane, count - 1)]
            for c in range(d):
                tile[c * size + lane] = q[r, c]
            top[lane], nxt[lane], far[lane], room[lane] = -np.inf, -np.inf, reach[r], tol[r]
            least[lane] = max(floor[r], best[r]) - tol[r]
        b = b0
        while b < b1:
            needed = 0
            for lane in range(size):
                needed += far[lane] * bounds[b] >= least[lane]
            if needed == 0:
                break
            groups = (min(BLOCK, n - b * BLOCK) + w - 1) // w
            block_max(tile, 0, k, b * BLOCK * d, groups, d, now, 0)
            for lane in range(size):
                v, old = now[lane], top[lane]
                low = v if v < old else old
                nxt[lane] = low if low > nxt[lane] else nxt[lane]
                blk[lane] = b if v > old else blk[lane]
                top[lane] = v if v > old else old
                enough = v - room[lane]
                least[lane] = enough if enough > least[lane] else least[lane]
            b += 1
        for lane in range(count):
            r = rows[i + lane]
            seen[r] = max(seen[r], min(n, b * BLOCK))
            if b == b0 or top[lane] < second[r]:
                continue
            if top[lane] > best[r]:
                o = blk[lane] * BLOCK
                place = block_find(
                    tile, lane, size, k, o * d, min(BLOCK, n - o), d, top[lane], rest
                )
                inside = top[lane] if rest[1] > 1 else rest[0]
                second[r] = max(max(inside, nxt[lane]), best[r])
                best[r], at[r] = top[lane], o + place
            else:
                second[r] = max(second[r], top[lane])


def lost_in_squares(dtype: np.dtype, d: int) -> float:
    """How much longer a vector may be than a sum of squares that underflow says."""
    return d * (2.0**-60 if dtype.itemsize == 4 else 2.0**-500)


class Sorted:
    """Keys sorted by length, ready for searches by many queries.

    Attributes
    ----------
    order : (n,) int array
        The place of each sorted key among the keys given.
    packed : array
    """

    def __init__(self, k: Array, lengths: Array) -> None:
        self.order = np.argsort(-lengths, kind="stable")
        self.packed = pack(k[self.order])
        self.n, self.d = k.shape
        # more than any rounding of lengths, products and scores
        safe = 1 + 4 * (self.d + 8) * float(np.finfo(k.dtype).eps)
        lost = lost_in_squares(k.dtype, self.d)
        self.lengths = (lengths[self.order] * safe + lost).astype(k.dtype)
        self.bounds = self.lengths[::BLOCK].copy()

    def search(
        self, q: Array, sizes: Array, tol: Array, floor: Array
    ) -> tuple[Array, Array, Ints, Ints, Array]:
        """Best score, best other score seen, index in `order`, keys seen, bound of the rest.

        `sizes` are the lengths of the queries; `floor` is a lower bound of each best
        score, -inf where none is known.
        """
        m = len(q)
        best, second = np.full(m, -np.inf, q.dtype), np.full(m, -np.inf, q.dtype)
        at, seen = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
        reach = sizes + q.dtype.type(lost_in_squares(q.dtype, self.d))
        self._pass(q, np.argsort(-sizes), reach, tol, floor, best, second, at, seen, (0, _FIRST))
        b, blocks = _FIRST, len(self.bounds)
        while b < blocks:
            low = np.maximum(best, floor) - tol
            active = np.flatnonzero(reach * self.bounds[b] >= low)
            if not len(active):
                break
            with np.errstate(divide="ignore", over="ignore"):
                need = low[active] / reach[active]
            rows = active[np.argsort(need)]
            end = min(blocks, b * _GROWTH)
            self._pass(q, rows, reach, tol, floor, best, second, at, seen, (b, end))
            b = end
        return best, second, at, seen, self._unseen(reach, seen)

    def _pass(
        self, q: Array, rows: Ints, reach: Array, tol: Array, floor: Array, best: Array,
        second: Array, at: Ints, seen: Ints, blocks: tuple[int, int],
    ) -> None:  # fmt: skip
        """One range of blocks for some rows, in threads."""
        start, stop = blocks[0], min(blocks[1], len(self.bounds))

        def part(first: int, last: int) -> None:
            _advance(
                q, self.packed, self.n, rows[first:last], reach, self.bounds, start, stop,
                floor, tol, best, second, at, seen, scratch(q.dtype),
            )  # fmt: skip

        in_threads(part, len(rows), 4096, 64)

    def _unseen(self, reach: Array, seen: Ints) -> Array:
        """No key that a row has not seen scores more than this."""
        more = np.append(self.lengths, -np.inf)[seen]
        return np.where(seen < self.n, reach * more, -np.inf)


def share_to_see(q: Array, sizes: Array, k: Array, lengths: Array) -> float:
    """The share of the keys that a query must see, from a sample of queries."""
    rows = np.arange(0, len(q), max(1, len(q) // _SAMPLE))
    best = (q[rows] @ k.T).max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        need = np.where(sizes[rows] > 0, best / sizes[rows], 0)
    order = np.sort(lengths)
    return float(1 - (np.searchsorted(order, need) / len(k)).mean())
