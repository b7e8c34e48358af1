"""What the removal of words changes in the tokens of a text: n-grams lost, n-grams made."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hardmax._types import Array, Bools, Ints
from hardmax.tokens._grams import look_up

__all__ = ["find_deltas", "longer"]


@njit(nogil=True, cache=True)
def longer(
    heads: Array, words: Array, ends: Bools, n: int, size: int, across: bool,
    table: Ints, value: Array,
) -> Ints:  # fmt: skip
    """From the tokens of n - 1 words at each place to those of n words; -1 for none."""
    out = np.full(len(words), -1, np.int64)
    for p in range(len(words) - n + 1):
        if heads[p] >= 0 and words[p + n - 1] >= 0 and (across or not ends[p + n - 2]):
            out[p] = look_up(table, value, np.int64(heads[p]) * size + words[p + n - 1])
    return out


@njit(nogil=True, cache=True)
def _emit(
    words: Array, keep: Bools, p: int, n: int, size: int, table: Ints, value: Array,
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
        token = look_up(table, value, np.int64(token) * size + words[q])
        length += 1
    return m


@njit(nogil=True, cache=True)
def _one(
    words: Array, keep: Bools, every: Bools, n: int, size: int, table: Ints, value: Array,
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
            m = _emit(words, every, p, n, size, table, value, -1, out, way, m)
            if keep[p]:
                m = _emit(words, keep, p, n, size, table, value, 1, out, way, m)
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
def find_deltas(words: Array, keeps: Bools, n: int, size: int, table: Ints, value: Array) -> Any:
    """The changes of every selection of words, one after the other.

    Parameters
    ----------
    words : (m,) int array
        Word numbers of the text, -1 for unknown words.
    keeps : (t, m) bool array
        The words that stay.
    n, size : int
        Longest n-gram; number of words in the vocabulary.
    table, value : int arrays
        `Vocabulary.gram_table`.

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
        m = _one(words, keeps[t], every, n, size, table, value, out, way)
        a = cuts[t]
        while a + m > len(ids):
            ids, change = np.concatenate((ids, ids)), np.concatenate((change, change))
        ids[a : a + m] = out[:m]
        change[a : a + m] = way[:m]
        cuts[t + 1] = a + m
    return cuts, ids[: cuts[-1]].copy(), change[: cuts[-1]].copy()
