"""Vector code for the searches, written as LLVM instructions through numba.

Every score is one fixed chain of fused multiply-adds,

    s_0 = 0,   s_{c+1} = fma(q_c, k_c, s_c),

each correctly rounded, in whatever lane and order of keys it is computed: equal
tokens score equally to the last bit, and every machine gives the same bits.

Keys lie in groups of `lanes(dtype)`, coordinate by coordinate: key j has coordinate c
at ((j // W) d + c) W + j % W.  Queries lie in tiles of `TILE` W lanes in the same way.
Each function here is plain Python that says what is computed; under numba the vector
code stands in for it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numba.extending import overload

from hardmax._types import Array
from hardmax.select import _llvm
from hardmax.select._llvm import TILE, lanes

__all__ = ["TILE", "block_find", "block_max", "fma", "lanes", "scores_of", "top_two"]


def fma(a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once to the precision of a."""
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    near = float(exact)
    if not isinstance(a, np.float32):
        return near
    if Fraction(near) != exact:  # rounded to odd, so that the second rounding meets no false tie
        cut = near if abs(Fraction(near)) < abs(exact) else np.nextafter(near, 0.0)
        near = float((np.float64(cut).view(np.int64) | 1).view(np.float64))
    return np.float32(near)


def block_max(
    q: Array, qo: int, k: Array, ko: int, groups: int, d: int, out: Array, oo: int
) -> None:
    """The largest score of each query of the tile at q[qo] over `groups` groups at k[ko]."""
    w = lanes(q.dtype)
    for lane in range(TILE * w):
        scores = [_chain(q[qo + lane :: TILE * w], k, ko, d, w, j) for j in range(groups * w)]
        out[oo + lane] = max(scores)


def block_find(
    q: Array, qo: int, qs: int, k: Array, ko: int, n: int, d: int, low: float, rest: Array
) -> int:
    """The first of n keys that scores `low` or more, or -1.

    rest[0] becomes the best score below `low`, rest[1] the number of keys that are
    not below it.  The query has coordinate c at q[qo + c qs].
    """
    w = lanes(q.dtype)
    found = np.array([_chain(q[qo::qs], k, ko, d, w, j) for j in range(n)])
    hits = np.flatnonzero(found >= low)
    rest[0], rest[1] = max(found[found < low], default=-np.inf), len(hits)
    return int(hits[0]) if len(hits) else -1


def top_two(
    q: Array, qo: int, k: Array, ko: int, n: int, d: int,
    best: Array, second: Array, at: Array, oo: int,
) -> None:  # fmt: skip
    """Best and second-best score of each query of a tile over n keys, and the first best key."""
    w = lanes(q.dtype)
    for lane in range(TILE * w):
        found = [_chain(q[qo + lane :: TILE * w], k, ko, d, w, j) for j in range(n)]
        at[oo + lane] = int(np.argmax(found))
        top = found.pop(int(at[oo + lane]))
        best[oo + lane], second[oo + lane] = top, max(found, default=-np.inf)


def scores_of(
    q: Array, qo: int, qs: int, k: Array, ko: int, groups: int, d: int, out: Array
) -> None:
    """The scores of one query with the keys of some groups."""
    w = lanes(q.dtype)
    for j in range(groups * w):
        out[j] = _chain(q[qo::qs], k, ko, d, w, j)


def _chain(q: Array, k: Array, ko: int, d: int, w: int, j: int) -> Any:
    s = q.dtype.type(0)
    for c in range(d):
        s = fma(q[c], k[ko + (j // w * d + c) * w + j % w], s)
    return s


def _compiled(plain: Any, vector: Any) -> None:
    """Under numba the vector code stands in for a function."""

    @overload(plain, strict=False)
    def _typed(*_: Any) -> Any:
        return lambda *args: vector(*args)


for _name in ("fma", "block_max", "block_find", "top_two", "scores_of"):
    _compiled(globals()[_name], getattr(_llvm, _name))
