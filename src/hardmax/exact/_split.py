"""Compiled search for the tests of one class of sequences."""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from hardmax._types import Array
from hardmax.exact._jit import jit

__all__ = ["Index", "Scratch", "grow", "inverted"]

_SMALL = 30
_WORK = 30_000_000


class Index(NamedTuple):
    """The sequences as rows of token ranks, and for every token its sequences."""

    rows: Array
    starts: Array
    heads: Array
    owners: Array
    codes: Array
    keys: Array
    grid: Array


class Scratch(NamedTuple):
    """Arrays by token (n ... stamp) and by sequence (alive, place), left clean.

    n[w]: living sequences that hold w; sums[w]: sum of the keys of their labels.
    """

    n: Array
    sums: Array
    room: Array
    mark: Array
    square: Array
    cross: Array
    inner: Array
    stamp: Array
    alive: Array
    place: Array


@jit
def inverted(rows: Array, starts: Array, size: int) -> tuple[Array, Array]:
    """For every token the sequences that hold it."""
    heads = np.zeros(size + 1, np.int64)
    for w in rows:
        heads[w + 1] += 1
    for w in range(size):
        heads[w + 1] += heads[w]
    fill = heads[:-1].copy()
    owners = np.empty(len(rows), np.int32)
    for j in range(len(starts) - 1):
        for pos in range(starts[j], starts[j + 1]):
            owners[fill[rows[pos]]] = j
            fill[rows[pos]] += 1
    return heads, owners


@jit
def _enter(members: Array, x: Index, s: Scratch, sizes: Array) -> Array:
    """Count the tokens of a class; its tokens in the order of the grid."""
    seen = [np.int32(0)]
    seen.clear()
    for i in range(len(members)):
        j = members[i]
        s.alive[j] = True
        s.place[j] = i
        sizes[x.codes[j]] += 1
        for pos in range(x.starts[j], x.starts[j + 1]):
            w = x.rows[pos]
            if s.n[w] == 0:
                seen.append(w)
            s.n[w] += 1
            s.sums[w] += x.keys[x.codes[j]]
    return np.sort(np.array(seen))


@jit
def _isolation(touched: Array, grid: Array, room: Array) -> None:
    """room[w] = distance, in grid units, to the nearest other token of the class."""
    for i in range(len(touched)):
        gap = np.int64(1) << np.int64(60)
        if i > 0:
            gap = grid[touched[i]] - grid[touched[i - 1]]
        if i + 1 < len(touched):
            gap = min(gap, grid[touched[i + 1]] - grid[touched[i]])
        room[touched[i]] = gap


@jit
def _leave(w: int, test: int, x: Index, s: Scratch, sizes: Array, test_of: Array) -> int:
    """All living sequences that hold w go to `test`; how many."""
    gone = 0
    for at in range(x.heads[w], x.heads[w + 1]):
        j = x.owners[at]
        if s.alive[j]:
            s.alive[j] = False
            gone += 1
            sizes[x.codes[j]] -= 1
            test_of[s.place[j]] = test
            key = x.keys[x.codes[j]]
            for pos in range(x.starts[j], x.starts[j + 1]):
                s.n[x.rows[pos]] -= 1
                s.sums[x.rows[pos]] -= key
    return gone


@jit
def _cross(members: Array, x: Index, s: Scratch, sizes: Array) -> None:
    """square[w] = sum over labels of n_wc^2, cross[w] = sum of n_c n_wc; members by label."""
    for j in members:
        if s.alive[j]:
            for pos in range(x.starts[j], x.starts[j + 1]):
                w = x.rows[pos]
                s.square[w] = 0.0
                s.cross[w] = 0.0
                s.stamp[w] = -1
    for j in members:
        if s.alive[j]:
            c = x.codes[j]
            for pos in range(x.starts[j], x.starts[j + 1]):
                w = x.rows[pos]
                if s.stamp[w] != c:
                    s.stamp[w] = c
                    s.inner[w] = 0
                s.square[w] += 2 * s.inner[w] + 1
                s.inner[w] += 1
                s.cross[w] += sizes[c]


@jit
def _best(touched: Array, least: int, s: Scratch, sizes: Array, total: int) -> int:
    """The token of best Gini gain; ties go to the rarer, then the more isolated token."""
    two = len(sizes) <= 2
    whole = 0.0
    for c in range(len(sizes)):
        whole += np.float64(sizes[c]) * sizes[c]
    best = -1
    best_gain = -1.0
    for w in touched:
        a = s.n[w]
        if a == 0 or a == total or s.room[w] < least:
            continue
        if two:
            n1 = np.float64(s.sums[w])
            n0 = a - n1
            inside = n0 * n0 + n1 * n1
            other = n0 * sizes[0] + n1 * sizes[1]
        else:
            inside = s.square[w]
            other = s.cross[w]
        gain = inside / a + (whole - 2 * other + inside) / (total - a)
        better = gain > best_gain * (1 + 1e-12)
        if not better and gain > best_gain * (1 - 1e-12):
            rarer = a < s.n[best]
            better = rarer or (a == s.n[best] and s.room[w] > s.room[best])
        if better:
            best = w
            best_gain = gain
    return best


@jit
def _pure(members: Array, key: int, x: Index, s: Scratch, least: int) -> Any:
    """A heap of the isolated tokens that only sequences of one label hold."""
    heap = [(np.int64(0), np.int64(0), np.int64(0))]
    heap.clear()
    for j in members:
        if s.alive[j]:
            for pos in range(x.starts[j], x.starts[j + 1]):
                w = x.rows[pos]
                if s.room[w] >= least and not s.mark[w] and s.sums[w] == np.uint64(s.n[w]) * key:
                    s.mark[w] = True
                    heap.append((-np.int64(s.n[w]), -s.room[w], np.int64(w)))
    for item in heap:
        s.mark[item[2]] = False
    heapq.heapify(heap)
    return heap


@jit
def _catch(
    members: Array, test: int, x: Index, s: Scratch, least: int, sizes: Array, test_of: Array
) -> Any:
    """Cover the living sequences of one label by tokens that only they hold, greedily."""
    heap = _pure(members, x.keys[x.codes[members[0]]], x, s, least)
    taken = [np.int64(0)]
    taken.clear()
    while len(heap) > 0:
        size, gap, w = heapq.heappop(heap)
        if s.n[w] == 0:
            continue
        if -size != s.n[w]:
            heapq.heappush(heap, (-np.int64(s.n[w]), gap, w))
            continue
        taken.append(w)
        _leave(w, test, x, s, sizes, test_of)
    return taken


@jit
def _minorities(
    members: Array, test: int, x: Index, s: Scratch, least: int, sizes: Array, test_of: Array,
    tokens: Any, tests: Any,
) -> int:  # fmt: skip
    """One test per label, but for the most frequent, that catches what it can; next test."""
    keep = sizes.argmax()
    first = 0
    while first < len(members):
        c = x.codes[members[first]]
        last = first
        while last < len(members) and x.codes[members[last]] == c:
            last += 1
        if c != keep and sizes[c] > 0:
            taken = _catch(members[first:last], test, x, s, least, sizes, test_of)
            for w in taken:
                tokens.append(w)
                tests.append(np.int64(test))
            test += len(taken) > 0
        first = last
    return test


@jit
def grow(
    members: Array, x: Index, s: Scratch, least: int, share: float
) -> tuple[bool, Array, Any, Any]:
    """Tests of one class, in order: which test takes each member (-1: stays), the tokens.

    One token at a time splits a class while it takes many sequences; else, and
    after much scanning, each label but the most frequent is caught in one test.
    `members` are sorted by label.  Returns False first when some members cannot
    be told apart by an isolated token.
    """
    sizes = np.zeros(len(x.keys), np.int64)
    touched = _enter(members, x, s, sizes)
    _isolation(touched, x.grid, s.room)
    test_of = np.full(len(members), -1, np.int32)
    tokens = [np.int64(0)]
    tokens.clear()
    tests = [np.int64(0)]
    tests.clear()
    test = 0
    done = True
    work = 0
    while sizes.max() < sizes.sum():
        total = sizes.sum()
        work += len(touched)
        if len(x.keys) > 2:
            _cross(members, x, s, sizes)
        best = _best(touched, least, s, sizes, total)
        if best < 0:
            done = False
            break
        rare = s.n[best] == 1 or s.n[best] < share * len(members)
        if rare or total <= _SMALL or work > _WORK:
            test = _minorities(members, test, x, s, least, sizes, test_of, tokens, tests)
            if sizes.sum() < total:
                continue
        tokens.append(np.int64(best))
        tests.append(np.int64(test))
        _leave(best, test, x, s, sizes, test_of)
        test += 1
    for j in members:
        s.alive[j] = False
    for w in touched:
        s.n[w] = 0
        s.sums[w] = 0
    return done, test_of, tokens, tests
