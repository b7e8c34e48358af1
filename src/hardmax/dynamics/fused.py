"""All layers of many short texts in one compiled call, from padded ids to pooled tokens.

Equal ids of a text are one token with a weight.  A text leaves the search as soon as
every token follows a leader alone; what is left of its layers is the closed form
z_i + (1 - (1 - gamma)^m) (l_i - z_i).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hardmax._check import as_array, check_depth, check_tolerance
from hardmax._errors import InputError, ShapeError
from hardmax._types import ArrayLike, Bools, Floats, Ints
from hardmax.select._vector import TILE, fma, lanes, top_two
from hardmax.select.ragged import TIED, leave_inner
from hardmax.select.threads import in_threads

__all__ = ["pool_ids"]

_FEW = 24
_PER_THREAD = 16
_W = lanes(np.float64)
_SIZE = TILE * _W


@njit(nogil=True, cache=True)
def _distinct(row: Ints, keep: Bools, place: Ints, ids: Ints, weight: Floats) -> int:
    """The distinct ids of a text and how often each stands there; how many.

    `place` is -1 everywhere, before and after.
    """
    m = 0
    for i in range(len(row)):
        if keep[i]:
            at = place[row[i]]
            if at < 0:
                place[row[i]], ids[m], weight[m] = m, row[i], 1.0
                m += 1
            else:
                weight[at] += 1.0
    for r in range(m):
        place[ids[r]] = -1
    return m


@njit(nogil=True, cache=True)
def _search(
    z: Floats, m: int, keys: Ints, count: int, tile: Floats, packed: Floats, top: Floats,
    second: Floats, at: Ints,
) -> None:  # fmt: skip
    """Best and second-best score of the m tokens z (d, ...) over some keys."""
    d = z.shape[0]
    for j in range(count):
        for c in range(d):
            packed[(j // _W * d + c) * _W + j % _W] = z[c, keys[j]]
    for i in range(0, m, _SIZE):
        for c in range(d):
            for lane in range(_SIZE):
                tile[c * _SIZE + lane] = z[c, i + lane]
        top_two(tile, 0, packed, 0, count, d, top, second, at, i)
    for i in range(m):
        at[i] = keys[at[i]]


@njit(nogil=True, cache=True)
def _choose(
    z: Floats, m: int, tie_tol: float, keys: Ints, tile: Floats, packed: Floats, size: Floats,
    top: Floats, second: Floats, at: Ints,
) -> bool:  # fmt: skip
    """The key that each token chooses, or TIED; whether any tie.  `second` becomes the slack."""
    longest = 0.0
    for i in range(m):
        s = 0.0
        for c in range(z.shape[0]):
            s = fma(z[c, i], z[c, i], s)
        size[i], keys[i] = np.sqrt(s), i
        longest = max(longest, size[i])
    count = m
    if z.shape[0] == 2 and m > _FEW:
        count = leave_inner(z, keys, m, max(1e-9, 4 * tie_tol) * longest)
    _search(z, m, keys, count, tile, packed, top, second, at)
    ties = False
    for i in range(m):
        slack = tie_tol * (size[i] * longest)
        if second[i] >= top[i] - slack:
            at[i] = TIED
            ties = True
        second[i] = slack
    return ties


@njit(nogil=True, cache=True)
def _tied_mean(z: Floats, m: int, i: int, low: float, weight: Floats, out: Floats) -> None:
    """The mean of the tokens that token i ties for."""
    first, total = -1, 0.0
    out[:] = 0.0
    for j in range(m):
        s = 0.0
        for c in range(z.shape[0]):
            s = fma(z[c, i], z[c, j], s)
        if s >= low:
            first = j if first < 0 else first
            total += weight[j]
            for c in range(z.shape[0]):
                out[c] += weight[j] * (z[c, j] - z[c, first])
    for c in range(z.shape[0]):
        out[c] = z[c, first] + out[c] / total


@njit(nogil=True, cache=True)
def _layers(z: Floats, m: int, weight: Floats, gamma: Floats, tie_tol: float, room: Any) -> int:
    """Move the tokens z (d, m) through the layers; the layer from which on all is settled."""
    keys, tile, packed, size, top, second, at, to = room
    d, depth = z.shape[0], len(gamma)
    for k in range(depth):
        ties = _choose(z, m, tie_tol, keys, tile, packed, size, top, second, at)
        settled = not ties
        for i in range(m):
            settled &= at[i] >= 0 and at[at[i]] == at[i]
        step = gamma[k]
        if settled:
            rest = 1.0
            for later in range(k, depth):
                rest *= 1 - gamma[later]
            step = 1 - rest
        if ties:
            for i in range(m):
                if at[i] == TIED:
                    _tied_mean(z, m, i, top[i] - second[i], weight, to[:, i])
        for c in range(d):
            for i in range(m):
                if at[i] != TIED:
                    to[c, i] = z[c, at[i]]
        for c in range(d):
            for i in range(m):
                z[c, i] += step * (to[c, i] - z[c, i])
        if settled:
            return k
    return depth


@njit(nogil=True, cache=True)
def _texts(
    E: Floats, ids: Ints, keep: Bools, gamma: Floats, tie_tol: float, heads: int, first: int,
    stop: int, pooled: Floats, layers: Ints,
) -> None:  # fmt: skip
    """Texts first..stop."""
    n, d = ids.shape[1], E.shape[1] // heads
    whole = (n + _SIZE - 1) // _SIZE * _SIZE
    place = np.full(len(E), -1, np.int32)
    words, weight = np.empty(n, np.int64), np.empty(n)
    z = np.zeros((d, whole))
    room = (
        np.empty(whole, np.int64), np.empty(_SIZE * d), np.zeros(whole * d), np.empty(n),
        np.empty(whole), np.empty(whole), np.empty(whole, np.int64), np.empty((d, n)),
    )  # fmt: skip
    for t in range(first, stop):
        m = _distinct(ids[t], keep[t], place, words, weight)
        layers[t] = 0
        total = 0.0
        for i in range(m):
            total += weight[i]
        for h in range(heads if m else 0):
            for i in range(m):
                for c in range(d):
                    z[c, i] = E[words[i], h * d + c]
            layers[t] = max(layers[t], _layers(z, m, weight, gamma, tie_tol, room))
            for c in range(d):
                s = 0.0
                for i in range(m):
                    s += weight[i] * z[c, i]
                pooled[t, h * d + c] = s / total


def pool_ids(
    E: ArrayLike,
    ids: ArrayLike,
    depth: int,
    *,
    gamma: float | Floats,
    mask: ArrayLike | None = None,
    heads: int = 1,
    tie_tol: float = 1e-12,
) -> tuple[Floats, Ints]:
    """The mean token of padded texts after all layers, and how many layers were searched.

    Parameters
    ----------
    E : (v, d) array
        One vector per id.
    ids : (b, n) int array
        Ids of the tokens, padded to one length.
    depth : int
    gamma : number in (0, 1], or one per layer
    mask : (b, n) bool array, optional
        True for a real token; without it padding is a token like any other.
    heads : int
        Splits the coordinates into this many equal blocks with choices of their own.
    tie_tol : float
        As for `layer`.

    Returns
    -------
    pooled : (b, d) float64 array
        Zero for a text without tokens.
    layers : (b,) int array
        The layer from which on nothing was searched; `depth` when the text did not settle.

    Notes
    -----
    Runs in as many threads as torch may use.

    Examples
    --------
    >>> E = [[1.0, 0.0], [0.0, 1.0], [0.4, 0.2]]
    >>> pooled, layers = pool_ids(E, [[0, 1, 2, 2]], 1, gamma=0.5)
    >>> pooled
    array([[0.6, 0.3]])
    >>> layers
    array([0])
    """
    table = np.ascontiguousarray(as_array(E, "E"), dtype=np.float64)
    rows = np.asarray(ids)
    if rows.dtype.kind not in "iu":
        raise InputError(f"`ids` must be integers; got {rows.dtype}. Give token numbers.")
    rows = np.ascontiguousarray(rows)
    if table.ndim != 2 or rows.ndim != 2:
        raise ShapeError(
            f"`E` must be (v, d) and `ids` (b, n); got {table.shape} and {rows.shape}."
        )
    if rows.size and not (rows.min() >= 0 and rows.max() < len(table)):
        raise InputError(
            f"`ids` must be from 0 to {len(table) - 1}; got {rows.min()} to {rows.max()}."
        )
    if heads < 1 or table.shape[1] % heads:
        raise ShapeError(f"`heads` must divide the {table.shape[1]} coordinates; got {heads}.")
    keep = np.ones(rows.shape, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
    if keep.shape != rows.shape:
        raise ShapeError(f"`mask` must match `ids` {rows.shape}; got {keep.shape}.")
    steps = np.broadcast_to(np.asarray(gamma, dtype=np.float64), check_depth(depth)).copy()
    tol = check_tolerance(tie_tol, "tie_tol", 1e-12)
    pooled, layers = np.zeros((len(rows), table.shape[1])), np.empty(len(rows), dtype=np.int64)

    def part(first: int, stop: int) -> None:
        _texts(table, rows, keep, steps, tol, heads, first, stop, pooled, layers)

    in_threads(part, len(rows), _PER_THREAD)
    return pooled, layers
