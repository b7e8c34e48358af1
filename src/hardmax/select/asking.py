"""What tokens ask for, exact where floats would not do, and sets decided to the last bit.

A z_i in floats is right up to a few roundings of |A| |z_i|, which says little where
terms cancel; such rows, and rows far shorter than the longest, are computed again from
integers, each times its own power of two: a choice does not change when its row asks
twice as loudly.  After that every score is right up to `rounding` in units of
|A z_i| max_j |z_j|, and keys closer than that are compared in exact arithmetic.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hardmax._types import Array, Bools, Floats, Ints
from hardmax.select.chosen import Chosen
from hardmax.select.digits import best_of, exact_asks
from hardmax.select.measure import norms
from hardmax.select.scale import factors, per_sequence, unit

__all__ = ["CANCELS", "SHORT", "decided", "mended", "narrowed", "rounding", "weak_rows"]

_U = 2.0**-53
CANCELS = 8.0
SHORT = 2.0**-40


def rounding(A: Any, d: int) -> float:
    """More than the error of a difference of float scores, in units of |A z_i| max_j |z_j|."""
    width = max([d, *(n for a in factors(A) for n in a.shape)])
    asked = 0.0 if A is None else CANCELS * (2 * width + 8)
    return 2.2 * (asked + d + 4) * _U


def weak_rows(x: Array, q: Floats, A: Any) -> Ints:
    """Rows whose `q` floats may have got wrong, or that are very short.

    x has its largest entries near 1, sequence by sequence, and so have the factors of A.
    """
    size = norms(q)
    weak = size < SHORT
    for a in factors(A):
        x = np.abs(x) @ np.abs(unit(a)).T
    if A is not None:
        weak |= norms(x) > CANCELS * size
    return np.flatnonzero(weak)


def mended(q: Floats, z: Array, weak: Ints, A: Any) -> Floats:
    """q with the weak rows computed again from the tokens z as they were given."""
    weak = weak[(z[weak] != 0).any(axis=1)]
    if not len(weak):
        return q
    q = q.copy()
    q[weak] = exact_asks(z[weak], factors(A))
    return q


def decided(found: Chosen, z: Any, offsets: Ints, A: Any) -> Chosen:
    """The sets of exact arithmetic from sets that hold everything within `rounding`.

    Parameters
    ----------
    found : Chosen
    z : (n, d) array or tensor
        As given, so that nothing is lost.
    offsets : int array
    A : matrix, pair or None
    """
    rows = np.flatnonzero(found.counts > 1)
    if not len(rows):
        return found
    some = found.take(rows)
    names = np.unique(np.concatenate([rows, some.indices]))
    tokens = _rows(z, names)
    asking, keys = np.searchsorted(names, rows), np.searchsorted(names, some.indices)
    keep, gap, power = best_of(tokens, factors(A), asking, some.indptr, keys)
    longest, e = _longest(z, offsets)
    owner = np.searchsorted(offsets, rows, side="right") - 1
    return narrowed(found, rows, keep, np.ldexp(gap / longest[owner], power - e[owner]))


def narrowed(found: Chosen, rows: Ints, keep: Bools, margin: Floats) -> Chosen:
    """Only the keys to `keep` in some rows, with margins where these are finite."""
    margins = found.margin.copy()
    margins[rows] = np.where(np.isfinite(margin), margin, margins[rows])
    whole = np.ones(len(found.indices), dtype=bool)
    counts = found.counts[rows]
    starts = np.repeat(found.indptr[rows] - (np.cumsum(counts) - counts), counts)
    whole[starts + np.arange(len(keep))] = keep
    indptr = np.concatenate([[0], np.cumsum(np.add.reduceat(whole, found.indptr[:-1], dtype=int))])
    return replace(found, indptr=indptr, indices=found.indices[whole], margin=margins)


def _rows(z: Any, rows: Ints) -> Floats:
    if not isinstance(z, np.ndarray):
        import torch

        z = z.detach()[torch.from_numpy(rows).to(z.device)].cpu().numpy()
        return np.asarray(z, dtype=np.float64)
    return np.asarray(z[rows], dtype=np.float64)


def _longest(z: Any, offsets: Ints) -> tuple[Floats, Ints]:
    """f and e with f 2^e the length of the longest token of each sequence."""
    x = _rows(z, np.arange(len(z)))
    e = np.frexp(per_sequence(np.abs(x).max(axis=1, initial=0.0), offsets))[1]
    longest = per_sequence(norms(unit(x, offsets)), offsets)
    return np.where(longest > 0, longest, 1.0), e
