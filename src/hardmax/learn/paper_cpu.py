"""The layers of the paper's recipe, compiled: equal words once, no score matrix.

Words that are equal have equal tokens in every layer, so a text is its distinct
words with multiplicities, the padding word included.  Values and gradients are
those of `PaperModel.layers` up to the order of sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numba import njit

from hardmax._types import Array, Floats, Ints
from hardmax.learn._paper_softmax import JIT, LANES, add, dot, dot_at, scratch, weights
from hardmax.select.threads import in_threads

__all__ = ["pooled_texts"]

_LEAST = 16
_KEPT = 16
"""Weights on at most so many places are kept for the way back; others are computed again."""
_LN2 = np.float32(np.log(2))


@dataclass(frozen=True)
class _Words:
    """Distinct words of each text, one text after the other, and how often each occurs."""

    ids: Ints
    counts: Array
    offsets: Ints
    places: int

    @classmethod
    def of(cls, rows: Array) -> _Words:
        rows = np.sort(rows, axis=1)
        new = np.ones(rows.shape, dtype=bool)
        new[:, 1:] = rows[:, 1:] != rows[:, :-1]
        starts = np.flatnonzero(new)
        counts = np.diff(starts, append=rows.size).astype(np.float32)
        offsets = np.concatenate([[0], np.cumsum(new.sum(axis=1))])
        return cls(rows.ravel()[starts], counts, offsets, rows.shape[1])


@njit(**JIT)
def _groups(choice: Ints, order: Ints, starts: Ints) -> int:
    """Tokens by the leader they follow into `order`; how many groups, or 0 if not all follow one.

    Scores of a token on those of another group stay as far below the best as they are (the
    difference is bilinear on the way to the leaders), so the groups stay apart in all later layers.
    """
    n, found = len(choice), 0
    for i in range(n):
        if choice[i] < 0 or choice[choice[i]] != choice[i]:
            return 0
    starts[0], at = 0, 0
    for leader in range(n):
        if choice[leader] == leader:
            for i in range(n):
                if choice[i] == leader:
                    order[at] = i
                    at += 1
            found += 1
            starts[found] = at
    return found


@njit(**JIT)
def _layer(
    z: Array, own: Array, order: Ints, shrink: Any, alpha: Any, scale: Any, spare: Any,
    few: Array, kept: Array, sizes: Array, out: Array, choice: Ints,
) -> None:  # fmt: skip
    """One layer of the tokens `order` of a text, which see each other alone."""
    s, high, near, at, power, p, bits = spare
    d, n = z.shape
    high = high[: (n + LANES - 1) // LANES]
    s[n : len(high) * LANES] = -np.inf
    for i in range(n):
        m, to = weights(z, i, own, scale, s, high, near, at, power, p[:n], bits), order[i]
        count = m if m >= 0 else n
        few[to] = count if count <= _KEPT else -1
        for r in range(few[to]):
            kept[to, r], sizes[to, r] = order[at[r] if m >= 0 else r], p[r]
        choice[to] = kept[to, 0] if count == 1 else -1
        for c in range(d):
            y = dot(p[:n], z[c]) if m < 0 else dot_at(p, z[c], at, m)
            out[c, to] = shrink * (z[c, i] + alpha * y)


@njit(**JIT)
def _forward(
    zs: Array, counts: Array, offsets: Ints, places: int, alpha: Any, scale: Any, few: Array,
    kept: Array, sizes: Array, pooled: Array, first: int, stop: int,
) -> None:  # fmt: skip
    """All layers of texts first..stop into `zs` (layers, d, tokens), and their means.

    `kept` and `sizes` (layers, tokens, `_KEPT`) take places and weights where there are so few,
    and `few` their number, else -1.
    """
    layers, d, _ = zs.shape
    shrink = np.float32(1) / (np.float32(1) + alpha)
    for text in range(first, stop):
        a, b = offsets[text], offsets[text + 1]
        order, starts, choice = np.arange(b - a), np.empty(b - a + 1, np.int64), np.arange(b - a)
        starts[0], starts[1], groups, apart = 0, b - a, 1, False
        spare, z, own = scratch(b - a), zs[:, :, a:b], counts[a:b]
        room, times = np.empty(d * (b - a), np.float32), np.empty(b - a, np.float32)
        for k in range(layers - 1):
            for g in range(groups):
                some = order[starts[g] : starts[g + 1]]
                if len(some) == 1:  # it moves toward itself
                    i = some[0]
                    few[k, a + i], kept[k, a + i, 0], sizes[k, a + i, 0] = 1, i, 1
                    choice[i] = i
                    for c in range(d):
                        z[k + 1, c, i] = z[k, c, i]
                    continue
                tokens = room[: d * len(some)].reshape(d, len(some))
                for i in range(len(some)):
                    times[i] = own[some[i]]
                    for c in range(d):
                        tokens[c, i] = z[k, c, some[i]]
                _layer(
                    tokens, times, some, shrink, alpha, scale, spare, few[k, a:b],
                    kept[k, a:b], sizes[k, a:b], z[k + 1], choice,
                )  # fmt: skip
            if not apart:
                found = _groups(choice, order, starts)
                if found > 0:
                    groups, apart = found, True
                else:
                    starts[1] = b - a
        for c in range(d):
            pooled[text, c] = dot(own, zs[layers - 1, c, a:b]) / np.float32(places)


@njit(**JIT)
def _back_all(
    z: Array, i: int, g: Array, move: Any, steep: Any, p: Array, dp: Array, y: Array, out: Array
) -> None:
    """Gradients through the choice of token i with weights on all; its mean into `y`."""
    d, n = z.shape
    dp[:] = np.float32(0)
    for c in range(d):
        q, row = move * g[c, i], z[c]
        for j in range(n):
            dp[j] += q * row[j]
    mean = dot(p, dp)
    for j in range(n):
        dp[j] = steep * p[j] * (dp[j] - mean)
    for c in range(d):
        x = z[c, i]
        add(out[c], move * g[c, i], p, x, dp)
        out[c, i] += dot(dp, z[c])
        y[c] = dot(p, z[c])


@njit(**JIT)
def _back_some(
    z: Array, i: int, g: Array, move: Any, steep: Any, p: Array, dp: Array, y: Array, out: Array,
    at: Array, m: int,
) -> None:  # fmt: skip
    """The same with weights on the places `at` alone."""
    d, mean = len(z), np.float32(0)
    for r in range(m):
        dp[r] = np.float32(0)
        for c in range(d):
            dp[r] += move * g[c, i] * z[c, at[r]]
        mean += p[r] * dp[r]
    for r in range(m):
        dp[r] = steep * p[r] * (dp[r] - mean)
    for c in range(d):
        x, q, own, to, row = z[c, i], move * g[c, i], np.float32(0), out[c], z[c]
        for r in range(m):
            own += dp[r] * row[at[r]]
            to[at[r]] += q * p[r] + dp[r] * x
        to[i] += own
        y[c] = dot_at(p, row, at, m)


@njit(**JIT)
def _back_text(
    zs: Array, counts: Array, alpha: Any, scale: Any, few: Array, kept: Array, sizes: Array,
    g: Array, before: Array,
) -> Any:  # fmt: skip
    """Gradients of a text's first tokens from `g`, those of its last; and that of alpha."""
    layers, d, n = zs.shape
    shrink, slope = np.float32(1) / (np.float32(1) + alpha), 0.0
    move, steep = shrink * alpha, scale * _LN2
    s, high, near, at, power, p, bits = scratch(n)
    z, dp, y = np.empty((d, n), np.float32), np.empty(n, np.float32), np.empty(d, np.float32)
    for k in range(layers - 2, -1, -1):
        z[:] = zs[k]
        for c in range(d):
            for i in range(n):
                before[c, i] = shrink * g[c, i]
        for i in range(n):
            m = few[k, i]
            if m == 1:  # one weight is 1 and stays so
                j = kept[k, i, 0]
                for c in range(d):
                    before[c, j] += move * g[c, i]
                    slope += g[c, i] * shrink * (z[c, j] - zs[k + 1, c, i])
                continue
            if m > 1:
                _back_some(z, i, g, move, steep, sizes[k, i], dp, y, before, kept[k, i], m)
            else:
                m = weights(z, i, counts, scale, s, high, near, at, power, p, bits)
                if m < 0:
                    _back_all(z, i, g, move, steep, p, dp, y, before)
                else:
                    _back_some(z, i, g, move, steep, p, dp, y, before, at, m)
            for c in range(d):
                slope += g[c, i] * shrink * (y[c] - zs[k + 1, c, i])
        g, before = before, g
    return g, slope


@njit(**JIT)
def _backward(
    zs: Array, counts: Array, offsets: Ints, places: int, alpha: Any, scale: Any, few: Array,
    kept: Array, sizes: Array, dpooled: Array, dz: Array, dalpha: Floats, first: int, stop: int,
) -> None:  # fmt: skip
    """Gradients of the first tokens (d, tokens) and of alpha, text by text."""
    d = zs.shape[1]
    for text in range(first, stop):
        a, b = offsets[text], offsets[text + 1]
        g, before = np.empty((d, b - a), np.float32), np.empty((d, b - a), np.float32)
        for c in range(d):
            for i in range(b - a):
                g[c, i] = dpooled[text, c] * counts[a + i] / np.float32(places)
        g, dalpha[text] = _back_text(
            zs[:, :, a:b], counts[a:b], alpha, scale, few[:, a:b], kept[:, a:b], sizes[:, a:b], g,
            before,
        )  # fmt: skip
        dz[:, a:b] = g


@njit(nogil=True, cache=True)
def _scatter(dz: Array, ids: Ints, out: Array) -> None:
    """Add the gradient of each token to its word's."""
    for i in range(len(ids)):
        for c in range(len(dz)):
            out[ids[i], c] += dz[c, i]


class _Pooled(torch.autograd.Function):
    """Means of the texts after all layers, as a function of the word vectors and alpha."""

    @staticmethod
    def forward(
        ctx: Any, E: torch.Tensor, alpha: torch.Tensor, words: _Words, depth: int, heat: float
    ) -> torch.Tensor:
        table, texts = E.detach().numpy(), len(words.offsets) - 1
        zs = np.empty((depth + 1, table.shape[1], len(words.ids)), np.float32)
        zs[0] = table[words.ids].T
        pooled = np.empty((texts, table.shape[1]), np.float32)
        heats = np.float32(alpha.item()), np.float32(1 / (heat * np.log(2)))
        few = np.empty((depth, len(words.ids)), np.int32)
        kept, sizes = (np.empty((*few.shape, _KEPT), kind) for kind in (np.int32, np.float32))
        call = (zs, words.counts, words.offsets, words.places, *heats, few, kept, sizes)
        in_threads(partial(_forward, *call, pooled), texts, _LEAST)
        ctx.call, ctx.words, ctx.shape = call, words, table.shape
        return torch.from_numpy(pooled)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        texts = len(ctx.words.offsets) - 1
        dz, dalpha = np.empty(ctx.call[0].shape[1:], np.float32), np.zeros(texts)
        dpooled = np.ascontiguousarray(grads[0].numpy())
        in_threads(partial(_backward, *ctx.call, dpooled, dz, dalpha), texts, _LEAST)
        dE = np.zeros(ctx.shape, np.float32)
        _scatter(dz, ctx.words.ids, dE)
        total = torch.tensor([dalpha.sum()], dtype=torch.float32)
        return torch.from_numpy(dE), total, None, None, None


def pooled_texts(
    E: torch.Tensor, alpha: torch.Tensor, ids: torch.Tensor, depth: int, heat: float
) -> torch.Tensor:
    """Means (b, d) of texts `ids` (b, places) after `depth` softmax layers at `heat` > 0."""
    pooled: torch.Tensor = _Pooled.apply(E, alpha, _Words.of(ids.numpy()), depth, heat)
    return pooled
