"""Searches on the CPU: one cloud by the path that suits it, or many sequences.

Every path gives the sets of the brute-force search in the same precision, to the last
bit; only the margins of "sorted" are lower bounds, exact where they are smallest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from hardmax._types import Array, Ints
from hardmax.select._vector import TILE, lanes
from hardmax.select.brute import lanes_of, pack, pack_into, scratch, search_into
from hardmax.select.chosen import Chosen
from hardmax.select.hull import near_hull
from hardmax.select.measure import norms
from hardmax.select.sorted import Sorted, share_to_see
from hardmax.select.threads import in_threads
from hardmax.select.ties import assemble, few_rows, tied_rows, ties_in_batch, ties_in_cloud
from hardmax.select.twostage import LARGEST_D, coarse_error, search_twice

__all__ = ["search_batch", "search_cloud"]

_PER_THREAD = 4_000_000
_PER_SECOND = 8e9  # multiply-adds of one lane
_SORTED = (0.5e-3, 150e-9)  # seconds, and per row, for sampling, sorting and stopping
_SOLID = 30_000  # tokens in space from which on the hull is quicker than sorting
_HANDFUL = 16
_Answer = tuple[Chosen, Array, Array]


def search_cloud(
    q: Array,
    k: Array,
    tol: Array,
    path: str = "auto",
    *,
    lengths: tuple[Array, Array] | None = None,
    own: Ints | None = None,
    most: int | None = None,
) -> _Answer:
    """Keys whose score with q_i is within tol[i] of the best, over all keys.

    Parameters
    ----------
    q, k : (m, d), (n, d) arrays
        Queries and keys, with entries of size near 1 at most.
    tol : (m,) array of numbers >= 0
    path : "auto" or one of `plan.PATHS`
    lengths : pair of arrays, optional
        The lengths of queries and keys, when they are known.
    own : (m,) int array, optional
        A key that probably scores high; the queries themselves when there are as many.
    most : int, optional
        `Crowded` is raised when tied rows choose more keys than this.

    Returns
    -------
    chosen : Chosen
        With `margin` as the plain difference of scores.
    best, outside : (m,) arrays
        The best score, and the best one outside the set (-inf when none).
    """
    q, k = np.ascontiguousarray(q), np.ascontiguousarray(k)
    sizes, long = lengths or (norms(q), norms(k))
    if own is None and len(q) == len(k):
        own = np.arange(len(q))
    cloud = _Cloud(q, k, tol, sizes, long, own, most)
    for name in _order(path, cloud):
        found: _Answer | None = getattr(cloud, name)()
        if found is not None:
            return found
    return cloud.brute()


def _order(path: str, cloud: _Cloud) -> list[str]:
    """The paths to try, first to last; brute force follows when all of them decline.

    Rough costs of the others, in CPU seconds, are compared with those of brute force.
    """
    if path != "auto":
        return [path]
    (m, d), n = cloud.q.shape, len(cloud.k)
    double = cloud.q.dtype == np.float64
    brute = m * n * (d + 1) / (_PER_SECOND * lanes(cloud.q.dtype))
    hull = (1e-3, 25e-9) if d < 3 else (4e-3, 60e-9)
    few = ["hull"] if d <= 3 and brute > hull[0] + hull[1] * (n + m) / 2 else []
    if d < 3 or (d == 3 and n >= _SOLID):
        return few
    twice = 0.7 if double and d >= 12 and n >= 2_000 and d <= LARGEST_D else 1.0
    rest = (_SORTED[0] + _SORTED[1] * m) / brute if brute else 1.0
    if d <= 32 and 0.3 + rest < twice:
        share = share_to_see(*cloud.measured)
        again = 1.0 if d > 16 and share > 0.4 else 0.0  # stopped rows whose margins stay open
        if 0.1 + 1.8 * share + rest + again < twice:
            return ["sorted"]
    return ["twostage"] if twice < 1 else few


@dataclass
class _Cloud:
    """One search: queries, keys, slack, lengths of both."""

    q: Array
    k: Array
    tol: Array
    sizes: Array
    lengths: Array
    own: Ints | None
    most: int | None

    @property
    def measured(self) -> tuple[Array, Array, Array, Array]:
        return self.q, self.sizes, self.k, self.lengths

    @property
    def longest(self) -> float:
        return float(self.lengths.max(initial=0.0))

    @property
    def rounding(self) -> Array:
        """More than the error of a score of each query."""
        d = self.q.shape[1]
        small = 2.0 ** (-120 if self.q.dtype == np.float32 else -1000)
        unit = float(np.finfo(self.q.dtype).eps)
        return np.asarray(self.sizes * (2 * (d + 4) * unit * self.longest) + d * small)

    def brute(self) -> _Answer:
        packed = pack(self.k)
        best, second, at = self._scan(packed, len(self.k))
        return self._finish("brute", packed, best, second, at)

    def hull(self) -> _Answer | None:
        """Only the keys near the hull, and all keys for queries too short for that."""
        if self.q.shape[1] > 3:
            return None
        error = self.rounding
        with np.errstate(divide="ignore", invalid="ignore"):
            wide = (self.tol + 2 * error) / self.sizes
        usual = np.median(wide[:: max(1, len(wide) // 1000)])
        depth = max(1e-9 * self.longest, 2 * float(usual))
        weak = np.flatnonzero(~(wide < depth))
        if not np.isfinite(depth) or 20 * len(weak) > len(self.q):
            return None
        keep = near_hull(self.k, depth)
        if keep is None:
            return None
        few = replace(self, k=np.ascontiguousarray(self.k[keep]))
        packed = pack(few.k)
        best, second, at = few._scan(packed, len(keep))
        return few._finish("hull", packed, best, second, at, keep, self._again(weak))

    def sorted(self) -> _Answer:
        """Keys by length, and margins made exact where they are smallest."""
        keys = Sorted(self.k, self.lengths)
        floor = np.full(len(self.q), -np.inf, self.q.dtype)
        if self.own is not None:
            floor = (self.q * self.k[self.own]).sum(axis=1) - self.rounding.astype(self.q.dtype)
        best, second, at, seen, rest = keys.search(self.q, self.sizes, self.tol, floor)
        tied = tied_rows(best, second, self.tol)
        some = ties_in_cloud(
            self.q, keys.packed, seen[tied], best, second, self.tol, tied, self.most
        )
        some = _renamed(some, keys.order)
        indptr, indices = assemble(keys.order[at], tied, some)
        unit = np.where(self.sizes > 0, self.sizes, 1).astype(np.float64)
        most = (best.astype(np.float64) - second) / unit
        least = (best.astype(np.float64) - np.maximum(second, rest)) / unit
        open_rows = np.flatnonzero((rest > second) & (least < most.min() * (1 + 1e-9)))
        second = np.maximum(second, rest)
        if len(open_rows):
            _, _, outside = self._again(open_rows)[1]
            second[open_rows] = outside
        margin = best.astype(np.float64) - second
        return Chosen(indptr, indices, margin, "sorted"), best, second

    def twostage(self) -> _Answer | None:
        """Float32 first; float64 where that leaves a doubt."""
        if self.q.dtype != np.float64 or self.q.shape[1] > LARGEST_D or len(self.k) < 256:
            return None
        packed = pack(self.k)
        ones = np.abs(self.q).sum(axis=1)
        if max(float(ones.max()), self.longest) > 2.0**60:
            return None
        error = coarse_error(self.sizes * self.longest, ones, self.k)
        best, second, at, _ = search_twice(self.q, self.k, packed, error)
        return self._finish("twostage", packed, best, second, at)

    def _again(self, rows: Ints) -> tuple[Ints, _Answer]:
        """Some rows over all keys."""
        q, tol = np.ascontiguousarray(self.q[rows]), self.tol[rows]
        if len(rows) > _HANDFUL:
            return rows, replace(self, q=q, tol=tol, sizes=self.sizes[rows]).brute()
        best, second, at = few_rows(q, self.k)  # not worth packing the keys
        tied = tied_rows(best, second, tol)
        ends = np.zeros(len(tied), dtype=np.int64), np.full(len(tied), len(self.k))
        some = ties_in_batch(q, self.k, *ends, best, second, tol, tied)
        margin = best.astype(np.float64) - second
        return rows, (Chosen(*assemble(at, tied, some), margin), best, second)

    def _scan(self, packed: Array, n: int) -> tuple[Array, Array, Ints]:
        m, dtype = len(self.q), self.q.dtype
        best, second, at = np.empty(m, dtype), np.empty(m, dtype), np.empty(m, np.int64)

        def part(first: int, stop: int) -> None:
            search_into(self.q, packed, n, best, second, at, scratch(dtype), first, stop)

        least = max(1, _PER_THREAD // (n * self.q.shape[1]))
        in_threads(part, m, least, TILE * lanes(dtype))
        return best, second, at

    def _finish(
        self, path: str, packed: Array, best: Array, second: Array, at: Ints,
        names: Ints | None = None, again: tuple[Ints, _Answer] | None = None,
    ) -> _Answer:  # fmt: skip
        """Ties and margins; `again` holds rows that were decided over all keys."""
        rows = tied_rows(best, second, self.tol)
        if again is not None and len(again[0]):
            rows = np.setdiff1d(rows, again[0])
        stops = np.full(len(rows), len(self.k))
        some = ties_in_cloud(self.q, packed, stops, best, second, self.tol, rows, self.most)
        if names is not None:
            some, at = replace(some, indices=names[some.indices]), names[at]
        if again is not None and len(again[0]):
            chosen, top, outside = again[1]
            best[again[0]], second[again[0]] = top, outside
            rows, some = np.concatenate([rows, again[0]]), _joined(some, chosen)
        indptr, indices = assemble(at, rows, some)
        return Chosen(indptr, indices, best.astype(np.float64) - second, path), best, second


def _renamed(some: Chosen, names: Ints) -> Chosen:
    """The same sets with other numbers, ascending in each row."""
    indices = names[some.indices]
    order = np.lexsort((indices, some.rows))
    return replace(some, indices=indices[order])


def _joined(a: Chosen, b: Chosen) -> Chosen:
    indptr = np.concatenate([a.indptr, a.indptr[-1] + b.indptr[1:]])
    return Chosen(indptr, np.concatenate([a.indices, b.indices]), np.empty(0))


@njit(nogil=True, cache=True)
def _sequences(
    q: Array, k: Array, offsets: Ints, lo: int, hi: int, longest: int, small: Ints,
    best: Array, second: Array, at: Ints,
) -> None:  # fmt: skip
    """Sequences lo..hi one after the other."""
    w = lanes_of(q)
    packed = np.empty((longest + w - 1) // w * w * q.shape[1], q.dtype)
    for s in range(lo, hi):
        a, b = offsets[s], offsets[s + 1]
        if b > a:
            pack_into(k, a, b, packed)
            search_into(q, packed, b - a, best, second, at, small, a, b)
            for i in range(a, b):
                at[i] += a


def search_batch(q: Array, k: Array, offsets: Ints, tol: Array) -> _Answer:
    """As `search_cloud` for the sequences q[offsets[s]:offsets[s + 1]] and the same of k."""
    q, k = np.ascontiguousarray(q), np.ascontiguousarray(k)
    m, dtype = len(q), q.dtype
    best, second, at = np.empty(m, dtype), np.empty(m, dtype), np.empty(m, np.int64)
    lengths = np.diff(offsets)
    longest = int(lengths.max(initial=0))

    def part(first: int, stop: int) -> None:
        _sequences(q, k, offsets, first, stop, longest, scratch(dtype), best, second, at)

    in_threads(part, len(lengths), max(1, _PER_THREAD // max(1, longest**2 * q.shape[1])))
    rows = tied_rows(best, second, tol)
    place = np.searchsorted(offsets, rows, side="right") - 1
    some = ties_in_batch(q, k, offsets[place], offsets[place + 1], best, second, tol, rows)
    indptr, indices = assemble(at, rows, some)
    return Chosen(indptr, indices, best.astype(np.float64) - second, "batch"), best, second
