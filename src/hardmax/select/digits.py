"""Scores in exact arithmetic, for the few pairs that float64 cannot tell apart.

A number is a row of digits to the base 2^20 with one sign; products of digits are added
in 64-bit integers and carried once, so that nothing is ever rounded.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from hardmax._types import Array, Floats, Ints

__all__ = ["best_of", "exact_asks", "parts"]

_B = 20
_MASK = (1 << _B) - 1
_W = 4  # digits that a float64 touches at most
_NONE = 1 << 30


@njit(nogil=True, cache=True)
def _parts(x: Floats, whole: Ints, power: Ints) -> None:
    for i in range(x.shape[0]):
        for c in range(x.shape[1]):
            f, e = math.frexp(x[i, c])
            m = np.int64(f * 9007199254740992.0)
            e -= 53
            while m != 0 and m & 1 == 0:
                m >>= 1
                e += 1
            whole[i, c], power[i, c] = m, e


def parts(x: Array) -> tuple[Ints, Ints]:
    """Odd integers m (or 0) and exponents e with x = m 2^e."""
    x = np.ascontiguousarray(x, dtype=np.float64)
    whole, power = np.empty(x.shape, dtype=np.int64), np.empty(x.shape, dtype=np.int64)
    _parts(x, whole, power)
    return whole, power


@njit(nogil=True, cache=True)
def _lowest(whole: Ints, power: Ints, i: int, low: int) -> int:
    for c in range(whole.shape[1]):
        if whole[i, c] != 0 and power[i, c] < low:
            low = power[i, c]
    return low


@njit(nogil=True, cache=True)
def _add(m: int, shift: int, times: int, out: Ints, start: int) -> None:
    """out += times m 2^shift, digit by digit from `start` on."""
    sign = -1 if m < 0 else 1
    m, at, r = abs(m), start + shift // _B, shift % _B
    times *= sign
    out[at] += times * ((m & ((1 << (_B - r)) - 1)) << r)
    m >>= _B - r
    while m:
        at += 1
        out[at] += times * (m & _MASK)
        m >>= _B


@njit(nogil=True, cache=True)
def _carry(x: Ints) -> None:
    """Digits from 0 to 2^20 - 1, the sign in the last one."""
    over = np.int64(0)
    for t in range(len(x) - 1):
        v = x[t] + over
        x[t] = v & _MASK
        over = v >> _B
    x[-1] += over


@njit(nogil=True, cache=True)
def _tidy(x: Ints) -> None:
    """Digits of one sign, each less than 2^20 in size."""
    _carry(x)
    if x[-1] < 0:
        x[:] = -x
        _carry(x)
        x[:] = -x


@njit(nogil=True, cache=True)
def _value(x: Ints) -> tuple[float, int]:
    """f and e with x = f 2^e up to one part in 2^52; (0, -2^30) for zero."""
    sign = 1.0
    if x[-1] < 0:
        sign = -1.0
        x = -x
        _carry(x)
    top = len(x) - 1
    while top >= 0 and x[top] == 0:
        top -= 1
    if top < 0:
        return 0.0, -_NONE
    f, last = 0.0, max(0, top - 3)
    for t in range(last, top + 1):  # small digits first
        f += math.ldexp(float(x[t]), _B * (t - last))
    f, e = math.frexp(f)
    return sign * f, e + _B * last


@njit(nogil=True, cache=True)
def _compare(x: Ints, y: Ints) -> int:
    for t in range(len(x) - 1, -1, -1):
        if x[t] != y[t]:
            return 1 if x[t] > y[t] else -1
    return 0


@njit(nogil=True, cache=True)
def _ask(
    whole: Ints, power: Ints, i: int, one: Ints, one_e: Ints, two: Ints, two_e: Ints, low: int,
    length: int,
) -> Ints:  # fmt: skip
    """What token i asks for, as digits (r, length): its coordinates after both matrices."""
    q = np.zeros((whole.shape[1], length), np.int64)
    base = _lowest(whole, power, i, _NONE)
    for c in range(whole.shape[1]):
        if whole[i, c] != 0:
            _add(whole[i, c], power[i, c] - base, 1, q[c], 0)
    for a, e in ((one, one_e), (two, two_e)):
        if len(a):
            out = np.zeros((len(a), length), np.int64)
            for r in range(len(a)):
                for c in range(a.shape[1]):
                    for t in range(length if a[r, c] != 0 else 0):
                        if q[c, t] != 0:
                            _add(a[r, c], e[r, c] - low, q[c, t], out[r], t)
                _tidy(out[r])
            q = out
    return q


@njit(nogil=True, cache=True)
def _asks(
    whole: Ints, power: Ints, one: Ints, one_e: Ints, two: Ints, two_e: Ints, low: int,
    length: int, out: Floats,
) -> None:  # fmt: skip
    f, e = np.empty(out.shape[1]), np.empty(out.shape[1], np.int64)
    for i in range(len(whole)):
        q = _ask(whole, power, i, one, one_e, two, two_e, low, length)
        top = -_NONE
        for r in range(len(q)):
            f[r], e[r] = _value(q[r])
            top = max(top, e[r])
        for r in range(len(q)):
            out[i, r] = math.ldexp(f[r], int(max(e[r] - top, -2000)))


class _Matrices:
    """One or two matrices as integers, and the room that digits need."""

    def __init__(self, mats: list[Floats], width: int) -> None:
        none = np.zeros((0, 0), dtype=np.int64)
        found = [parts(a) for a in mats]
        self.low = min((int(e[m != 0].min(initial=0)) for m, e in found), default=0)
        high = max((int(e[m != 0].max(initial=0)) for m, e in found), default=0)
        self.arrays = [x for pair in found for x in pair] + [none] * (4 - 2 * len(found))
        self.digits = width + len(mats) * ((high - self.low) // _B + _W + 2)


def _width(whole: Ints, power: Ints) -> int:
    """Digits of a row, at most."""
    e = power[whole != 0]
    return int(np.ptp(e)) // _B + _W + 2 if len(e) else _W + 2


def exact_asks(z: Floats, mats: list[Floats]) -> Floats:
    """A z_i rounded once, each row times a power of two so that its largest entry is near 1."""
    whole, power = parts(z)
    a = _Matrices(mats, _width(whole, power))
    out = np.empty((len(z), len(mats[-1]) if mats else z.shape[1]))
    _asks(whole, power, *a.arrays, a.low, a.digits, out)
    return out


@njit(nogil=True, cache=True)
def _length(q: Ints) -> tuple[float, int]:
    """f and e with |q| = f 2^e."""
    top, size = -_NONE, 0.0
    for c in range(len(q)):
        top = max(top, _value(q[c])[1])
    for c in range(len(q)):
        f, e = _value(q[c])
        size += math.ldexp(f, int(max(e - top, -1000))) ** 2
    return math.sqrt(size), top


@njit(nogil=True, cache=True)
def _rows(
    whole: Ints, power: Ints, asking: Ints, indptr: Ints, indices: Ints, one: Ints, one_e: Ints,
    two: Ints, two_e: Ints, low: int, length: int, room: int, keep: Array, gap: Floats,
    gap_e: Ints,
) -> None:  # fmt: skip
    """Keep the keys with the largest score of each row; how far the next one lies below."""
    s, best, second = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int64)
    for r in range(len(asking)):
        first, stop = indptr[r], indptr[r + 1]
        gap[r], gap_e[r] = np.inf, 0
        same, base = True, np.int64(_NONE)
        for p in range(first, stop):
            base = _lowest(whole, power, indices[p], base)
            for c in range(whole.shape[1]):
                same &= whole[indices[p], c] == whole[indices[first], c]
                same &= power[indices[p], c] == power[indices[first], c]
        if same:
            continue
        q = _ask(whole, power, asking[r], one, one_e, two, two_e, low, length)
        some, start = False, first  # keys from `start` on may be kept
        for p in range(first, stop):
            s[:] = 0
            for c in range(whole.shape[1]):
                m = whole[indices[p], c]
                for t in range(length if m != 0 else 0):
                    if q[c, t] != 0:
                        _add(m, power[indices[p], c] - base, q[c, t], s, t)
            _carry(s)
            more = 1 if p == first else _compare(s, best)
            keep[p] = more >= 0
            if more > 0:
                if p > first:
                    second[:] = best
                    some = True
                keep[start:p] = False
                best[:] = s
                start = p
            elif more < 0 and (not some or _compare(s, second) > 0):
                second[:] = s
                some = True
        if some:
            s[:] = best - second
            _carry(s)
            f, e = _value(s)
            size, top = _length(q)
            gap[r], gap_e[r] = f / size, e + base - top


def best_of(
    z: Floats, mats: list[Floats], asking: Ints, indptr: Ints, indices: Ints
) -> tuple[Array, Floats, Ints]:
    """Which of the candidates have the largest score, decided without rounding.

    Parameters
    ----------
    z : (m, d) array
    mats : list of at most two matrices
        Their product A gives what token i asks for.
    asking : (r,) int array
        Rows of z.
    indptr, indices : int arrays
        The candidates of each, rows of z.

    Returns
    -------
    keep : bool array, one per candidate
    gap, exponent : arrays
        gap 2^exponent is how far below the best the next candidate lies, in units of
        |A z_i|; infinite where no candidate does.
    """
    whole, power = parts(z)
    width = _width(whole, power)
    a = _Matrices(mats, width)
    keep = np.ones(len(indices), dtype=np.bool_)
    gap, exponent = np.empty(len(asking)), np.empty(len(asking), dtype=np.int64)
    _rows(
        whole, power, asking, indptr, indices, *a.arrays, a.low, a.digits, a.digits + width,
        keep, gap, exponent,
    )  # fmt: skip
    return keep, gap, exponent
