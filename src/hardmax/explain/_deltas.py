"""What the removal of words changes in the tokens of a text: n-grams lost, n-grams made."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hardmax._types import Array, Bools, Ints

__all__ = ["find_deltas"]


@njit(nogil=True, cache=True)
def _number(keys: Ints, values: Ints, key: int) -> int:
    """The token of an n-gram, -1 for none; `keys` are sorted."""
    at = np.searchsorted(keys, key)
    return int(values[at]) if at < len(keys) and keys[at] == key else -1


@njit(nogil=True, cache=True)
def _emit(
    words: Array, keep: Bools, p: int, n: int, size: int, keys: Ints, values: Ints,
    by: int, out: Array, way: Array, m: int,
) -> int:  # fmt: skip
    """The tokens that begin at word p, over the words kept; counted `by` one."""
    token, length, q = words[p], 1, p
    while token >= 0:
        out[m] = token
        way[m] = by
        m += 1
        q += 1
        while q < len(words) and not keep[q]:
            q += 1
        if length == n or q >= len(words) or words[q] < 0:
            break
        token = _number(keys, values, np.int64(token) * size + words[q])
        length += 1
    return m


@njit(nogil=True, cache=True)
def _one(
    words: Array, keep: Bools, every: Bools, n: int, size: int, keys: Ints, values: Ints,
    out: Array, way: Array,
) -> int:  # fmt: skip
    """The changes of one selection, by ascending token, none of them zero; how many."""
    m, next_gone = 0, len(words) + n
    near = np.zeros(len(words), np.bool_)
    for p in range(len(words) - 1, -1, -1):
        next_gone = next_gone if keep[p] else p
        near[p] = next_gone - p < n
    for p in range(len(words)):
        if near[p]:
            m = _emit(words, every, p, n, size, keys, values, -1, out, way, m)
            if keep[p]:
                m = _emit(words, keep, p, n, size, keys, values, 1, out, way, m)
    order = np.argsort(out[:m])
    ids, by = out[:m][order], way[:m][order]
    k = 0
    for i in range(m):
        if k > 0 and out[k - 1] == ids[i]:
            way[k - 1] += by[i]
        else:
            if k > 0 and way[k - 1] == 0:
                k -= 1
            out[k] = ids[i]
            way[k] = by[i]
            k += 1
    return k - 1 if k > 0 and way[k - 1] == 0 else k


@njit(nogil=True, cache=True)
def find_deltas(words: Array, keeps: Bools, n: int, size: int, keys: Ints, values: Ints) -> Any:
    """The changes of every selection of words, one after the other.

    Parameters
    ----------
    words : (m,) int array
        Word numbers of the text, -1 for unknown words.
    keeps : (t, m) bool array
        The words that stay.
    n, size : int
        Longest n-gram; number of words in the vocabulary.
    keys, values : int arrays
        Sorted keys head * size + word of the n-grams, and their tokens.

    Returns
    -------
    cuts : (t + 1,) int array
    ids, change : int arrays
        Tokens whose counts change, ascending per selection, and by how much.
    """
    cuts = np.zeros(len(keeps) + 1, np.int64)
    most = 2 * n * len(words) + 1
    ids, change = np.empty(4 * most, np.int64), np.empty(4 * most, np.int64)
    out, way = np.empty(most, np.int64), np.empty(most, np.int64)
    every = np.ones(len(words), np.bool_)
    for t in range(len(keeps)):
        m = _one(words, keeps[t], every, n, size, keys, values, out, way)
        a = cuts[t]
        while a + m > len(ids):
            ids, change = np.concatenate((ids, ids)), np.concatenate((change, change))
        ids[a : a + m] = out[:m]
        change[a : a + m] = way[:m]
        cuts[t + 1] = a + m
    return cuts, ids[: cuts[-1]].copy(), change[: cuts[-1]].copy()
