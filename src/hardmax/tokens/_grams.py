"""Compiled loops over word streams: counting n-grams, and texts as distinct tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hardmax._types import Array, Ints

__all__ = [
    "MARK",
    "STOP",
    "UNKNOWN",
    "build_table",
    "count_grams",
    "count_words",
    "encode",
    "look_up",
    "settle",
]

UNKNOWN, MARK, STOP = -1, -2, -3
"""Codes below zero: a word outside the vocabulary, nothing, and the end of a sentence."""


@njit(nogil=True, cache=True)
def settle(codes: Array, offsets: Ints, closes: Array) -> Any:
    """The stream without marks: words, whether a sentence ends after each, new offsets."""
    words = np.empty(len(codes), dtype=np.int32)
    ends = np.zeros(len(codes), dtype=np.bool_)
    cuts = np.zeros(len(offsets), dtype=np.int64)
    m = 0
    for t in range(len(offsets) - 1):
        for p in range(offsets[t], offsets[t + 1]):
            c = codes[p]
            if c >= UNKNOWN:
                words[m] = c
                ends[m] = c >= 0 and closes[c]
                m += 1
            elif c == STOP and m > cuts[t]:
                ends[m - 1] = True
        cuts[t + 1] = m
    return words[:m].copy(), ends[:m].copy(), cuts


@njit(nogil=True, cache=True)
def count_words(words: Array, offsets: Ints, size: int) -> Any:
    """In how many texts each word occurs."""
    count = np.zeros(size, dtype=np.int64)
    last = np.full(size, -1, dtype=np.int64)
    for t in range(len(offsets) - 1):
        for p in range(offsets[t], offsets[t + 1]):
            w = words[p]
            if w >= 0 and last[w] != t:
                last[w] = t
                count[w] += 1
    return count


@njit(nogil=True, cache=True, inline="always")
def _slot(keys: Array, key: int) -> Any:
    """Where a key stands, or the free place where it would."""
    mask = len(keys) - 1
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    at = np.int64(h >> np.uint64(20)) & mask
    while keys[at] != -1 and keys[at] != key:
        at = (at + 1) & mask
    return at


@njit(nogil=True, cache=True)
def look_up(table: Ints, value: Array, key: int) -> int:
    """The token number of a key of `build_table`, or -1."""
    return int(value[_slot(table, key)])


@njit(nogil=True, cache=True, inline="always")
def _part(key: int, parts: int) -> Any:
    """Which of several parts counts a key."""
    h = (np.uint64(key) ^ (np.uint64(key) >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64((h >> np.uint64(33)) % np.uint64(parts))


@njit(nogil=True, cache=True)
def _grown(keys: Array, count: Array, last: Array) -> Any:
    size = 2 * len(keys)
    k2 = np.full(size, -1, dtype=np.int64)
    c2 = np.zeros(size, dtype=np.int32)
    l2 = np.full(size, -1, dtype=np.int32)
    for i in range(len(keys)):
        if keys[i] != -1:
            at = _slot(k2, keys[i])
            k2[at], c2[at], l2[at] = keys[i], count[i], last[i]
    return k2, c2, l2


@njit(nogil=True, cache=True)
def count_grams(
    words: Array, ends: Array, offsets: Ints, heads: Array, n: int, size: int, across: bool,
    part: int, parts: int, gapped: bool,
) -> Any:  # fmt: skip
    """In how many texts each n-gram of kept (n-1)-grams occurs.

    `heads[p]` is the token number of the (n-1)-gram that begins at p, or -1.
    An n-gram is the key heads[p] * size + (its last word).  Returns the keys
    and their numbers of texts; of several parts only those of one.  With `gapped`
    the words between the first and the last of n words are left open.
    """
    keys = np.full(1 << 16, -1, dtype=np.int64)
    count = np.zeros(1 << 16, dtype=np.int32)
    last = np.full(1 << 16, -1, dtype=np.int32)
    used = 0
    for t in range(len(offsets) - 1):
        for p in range(offsets[t], offsets[t + 1] - n + 1):
            if gapped:
                key = _far_key(words, ends, p, n, size, across)
            else:
                key = _key(words, ends, heads, p, n, size, across)
            if key < 0 or (parts > 1 and _part(key, parts) != part):
                continue
            at = _slot(keys, key)
            if keys[at] == -1:
                keys[at] = key
                used += 1
            if last[at] != t:
                last[at] = t
                count[at] += 1
            if 2 * used > len(keys):
                keys, count, last = _grown(keys, count, last)
    there = keys >= 0
    return keys[there], count[there]


@njit(nogil=True, cache=True, inline="always")
def _key(words: Array, ends: Array, heads: Array, p: int, n: int, size: int, across: bool) -> Any:
    """The key of the n-gram at p, or -1 where its parts are not kept."""
    if heads[p] < 0 or heads[p + 1] < 0 or (not across and ends[p + n - 2]):
        return -1
    return np.int64(heads[p]) * size + words[p + n - 1]


@njit(nogil=True, cache=True, inline="always")
def _far_key(words: Array, ends: Array, p: int, n: int, size: int, across: bool) -> Any:
    """The key of the first and the last of n words at p, or -1."""
    if words[p] < 0 or words[p + n - 1] < 0:
        return np.int64(-1)
    if not across:
        for q in range(p, p + n - 1):
            if ends[q]:
                return np.int64(-1)
    return np.int64(words[p]) * size + words[p + n - 1]


@njit(nogil=True, cache=True)
def build_table(keys: Ints, first: int) -> Any:
    """A hash table from keys to token numbers first, first + 1, ..."""
    size = 1 << 4
    while size < 2 * len(keys) + 2:
        size *= 2
    table = np.full(size, -1, dtype=np.int64)
    value = np.full(size, -1, dtype=np.int32)
    for i in range(len(keys)):
        at = _slot(table, keys[i])
        table[at] = keys[i]
        value[at] = first + i
    return table, value


@njit(nogil=True, cache=True)
def number_grams(
    words: Array,
    ends: Array,
    offsets: Ints,
    heads: Array,
    n: int,
    size: int,
    across: bool,
    table: Ints,
    value: Array,
    out: Array,
) -> None:
    """The token number of the n-gram that begins at each place, or -1, into `out`."""
    out[:] = -1
    for t in range(len(offsets) - 1):
        for p in range(offsets[t], offsets[t + 1] - n + 1):
            key = _key(words, ends, heads, p, n, size, across)
            if key >= 0:
                out[p] = value[_slot(table, key)]


@njit(nogil=True, cache=True)
def _emit(
    words: Array, ends: Array, p: int, stop: int, n: int, size: int, table: Ints, value: Array,
    across: bool, out: Array, m: int,
) -> int:  # fmt: skip
    """The tokens that begin at place p, longest last, written to out[m:]; the new m."""
    token = words[p]
    if token < 0:
        return m
    out[m] = token
    m += 1
    for q in range(p + 1, min(p + n, stop)):
        if words[q] < 0 or (not across and ends[q - 1]):
            break
        token = value[_slot(table, np.int64(token) * size + words[q])]
        if token < 0:
            break
        out[m] = token
        m += 1
    return m


@njit(nogil=True, cache=True)
def _emit_far(
    words: Array, ends: Array, p: int, stop: int, far: int, size: int, table: Ints, value: Array,
    across: bool, out: Array, m: int,
) -> int:  # fmt: skip
    """The gapped pairs that begin at place p, nearest first, written to out[m:]; the new m."""
    if words[p] < 0:
        return m
    for q in range(p + 1, min(p + far + 1, stop)):
        if not across and ends[q - 1]:
            break
        if q > p + 1 and words[q] >= 0:
            key = (np.int64(words[p]) * size + words[q]) * (far + 1) + (q - p)
            token = value[_slot(table, key)]
            if token >= 0:
                out[m] = token
                m += 1
    return m


@njit(nogil=True, cache=True)
def encode(
    words: Array, ends: Array, offsets: Ints, n: int, size: int, table: Ints, value: Array,
    across: bool, split: bool, far: int, far_table: Ints, far_value: Array,
) -> Any:  # fmt: skip
    """Texts as distinct tokens: ids, counts, offsets of the sequences, texts."""
    buffer = np.empty((n + far - 1) * len(words), dtype=np.int32)
    counts = np.empty((n + far - 1) * len(words), dtype=np.int32)
    cuts = np.zeros(len(words) + len(offsets) + 1, dtype=np.int64)
    texts = np.zeros(len(offsets), dtype=np.int64)
    m, s = 0, 0
    for t in range(len(offsets) - 1):
        start, stop = offsets[t], offsets[t + 1]
        begin = m
        for p in range(start, stop):
            m = _emit(words, ends, p, stop, n, size, table, value, across, buffer, m)
            if far > 1:
                m = _emit_far(
                    words, ends, p, stop, far, size, far_table, far_value, across, buffer, m
                )
            if (split and ends[p]) or p == stop - 1:
                if m > begin:
                    m = _merge(buffer, counts, begin, m)
                    s += 1
                    cuts[s] = m
                begin = m
        texts[t + 1] = s
    return buffer[:m].copy(), counts[:m].copy(), cuts[: s + 1].copy(), texts


@njit(nogil=True, cache=True)
def _merge(ids: Array, counts: Array, start: int, stop: int) -> int:
    """Sort ids[start:stop], keep each once with its count; the new stop."""
    part = np.sort(ids[start:stop])
    m = start - 1
    for i in range(len(part)):
        if i > 0 and part[i] == part[i - 1]:
            counts[m] += 1
        else:
            m += 1
            ids[m] = part[i]
            counts[m] = 1
    return m + 1
