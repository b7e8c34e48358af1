"""Kernels for one large cloud: candidates in half precision, choices in float64.

The proof that no chosen key is missed stands in docs/gpu.md; the letters are the same.
All float64 sums that decide are one fixed chain of fused multiply-adds, as on the CPU.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["candidates", "decide", "measure", "pack_keys", "pack_rows", "pick", "product", "tied"]

# Relative slack for sums in float32, and for rounding to float32; see docs/gpu.md.
UP = tl.constexpr(1.0 + 2.0**-18)
TINY = tl.constexpr(2.0**-100)


@triton.jit
def _power(e):
    """2^e in float64 for integers -1022 <= e <= 1023."""
    return ((e + 1023) << 52).to(tl.float64, bitcast=True)


@triton.jit
def measure(x, y, n, d, norm, dot, own: tl.constexpr, B: tl.constexpr):
    """Length of every row of x, and its product with the same row of y."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    at = i.to(tl.int64) * d
    s = tl.zeros((B,), dtype=tl.float64)
    p = tl.zeros((B,), dtype=tl.float64)
    for c in range(d):
        v = tl.load(x + at + c, mask=i < n, other=0.0).to(tl.float64)
        s = tl.fma(v, v, s)
        if own:
            p = tl.fma(v, tl.load(y + at + c, mask=i < n, other=0.0).to(tl.float64), p)
    tl.store(norm + i, tl.sqrt(s), mask=i < n)
    if own:
        tl.store(dot + i, p, mask=i < n)


@triton.jit
def product(x, a, out, n, d, r, B: tl.constexpr):
    """out[i, k] = sum_c a[k, c] x[i, c], one chain in float64; one program per k and block."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    k = tl.program_id(1)
    s = tl.zeros((B,), dtype=tl.float64)
    for c in range(d):
        v = tl.load(x + i.to(tl.int64) * d + c, mask=i < n, other=0.0).to(tl.float64)
        s = tl.fma(tl.load(a + k * d + c), v, s)
    tl.store(out + i.to(tl.int64) * r + k, s, mask=i < n)


@triton.jit
def pack_keys(
    z, order, norm, shift, half, turned, length, rest, n, d, size, D: tl.constexpr,
    B: tl.constexpr,
):  # fmt: skip
    """Keys in order: half precision, the numbers themselves transposed, |k| and |k - half|."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.arange(0, D)
    row = tl.load(order + tl.minimum(i, n - 1)).to(tl.int64)
    up = _power(tl.load(shift))
    x = tl.load(z + row[:, None] * d + c[None, :], mask=c[None, :] < d, other=0.0)
    wide = i.to(tl.int64)
    tl.store(turned + c[None, :].to(tl.int64) * size + wide[:, None], x, mask=c[None, :] < d)
    y = x.to(tl.float64) * up
    h = y.to(tl.float32).to(tl.float16)
    tl.store(half + wide[:, None] * D + c[None, :], h)
    gap = y - h.to(tl.float64)
    tl.store(rest + i, tl.sqrt(tl.sum(gap * gap, axis=1)).to(tl.float32) * UP)
    tl.store(length + i, (tl.load(norm + row) * up).to(tl.float32) * UP)


@triton.jit
def pack_rows(
    q, order, norm, own, tol, knorm, shift, half, ca, cb, cc, cr, low, room, unit, n, d, acc,
    D: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Asking rows in order, each scaled by its own power of two, and their error constants."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.arange(0, D)
    row = tl.load(order + tl.minimum(i, n - 1)).to(tl.int64)
    x = tl.load(q + row[:, None] * d + c[None, :], mask=c[None, :] < d, other=0.0).to(tl.float64)
    top = tl.max(tl.abs(x), axis=1)
    e = 1022 - ((top.to(tl.int64, bitcast=True) >> 52) & 2047)
    e = tl.minimum(tl.maximum(e, -900), 900)
    b = tl.load(shift)
    up = _power(e)
    y = x * up[:, None]
    h = y.to(tl.float32).to(tl.float16)
    tl.store(half + i.to(tl.int64)[:, None] * D + c[None, :], h)
    gap = y - h.to(tl.float64)
    qn = (tl.load(norm + row) * up).to(tl.float32) * UP + TINY
    qd = tl.sqrt(tl.sum(gap * gap, axis=1)).to(tl.float32) * UP
    whole = qn + qd
    tl.store(ca + i, (qd + acc * whole) * UP)
    tl.store(cb + i, whole * (1.0 + acc) * UP)
    tl.store(cc + i, qn * UP)
    far = tl.where(e + b > 800, _power(tl.minimum(e + b, 1020)), 0.0)
    lost = (far * 2.0**-1000 * 2.0**-74 * d).to(tl.float32) + TINY
    tl.store(cr + i, lost)
    both = up * _power(b)
    tl.store(unit + i, both)
    s = (tl.load(own + row) * both).to(tl.float32)
    size = qn * ((tl.load(knorm + row) * _power(b)).to(tl.float32) * UP)
    tl.store(low + i, s - size * 2.0**-20 - lost)
    tl.store(room + i, (tl.load(tol + row) * both).to(tl.float32) * UP + TINY)


@triton.jit
def candidates(
    qh, kh, ca, cb, cc, cr, low, room, long, rest, tops, best, done, row0, rows, tiles, d_chunks,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, DC: tl.constexpr, STEP: tl.constexpr,
    TWO: tl.constexpr, PRUNE: tl.constexpr,
):  # fmt: skip
    """Largest half-precision score of each row in each tile of keys; stops by norms.

    `best` receives a lower bound of the largest score (of the second largest with
    TWO), and `done` the number of tiles that were looked at.
    """
    block = tl.num_programs(0) - 1 - tl.program_id(0)  # short rows look at most tiles: first
    i = block * BM + tl.arange(0, BM)
    g = row0 + i
    c = tl.arange(0, DC)
    j = tl.arange(0, BN)
    a = tl.load(ca + g)
    b = tl.load(cb + g)
    r = tl.load(cr + g)
    cut = tl.load(cc + g)
    slack = tl.load(room + g)
    if TWO:
        one = tl.full((BM,), float("-inf"), dtype=tl.float32)
        two = tl.full((BM,), float("-inf"), dtype=tl.float32)
    else:
        one = tl.load(low + g)
        two = one
    wide = g.to(tl.int64)
    rows64 = tl.zeros((BM,), dtype=tl.int64) + rows
    if DC == D:
        q = tl.load(qh + wide[:, None] * D + c[None, :])
    t = 0
    go = 1
    while (t < tiles) & (go > 0):
        for tile in range(t, tl.minimum(t + STEP, tiles)):
            at = (tile * BN + j).to(tl.int64)
            if DC == D:
                k = tl.load(kh + at[None, :] * D + c[:, None])
                s = tl.dot(q, k)
            else:
                s = tl.zeros((BM, BN), dtype=tl.float32)
                for part in range(d_chunks):
                    x = tl.load(qh + wide[:, None] * D + (part * DC + c)[None, :])
                    k = tl.load(kh + at[None, :] * D + (part * DC + c)[:, None])
                    s = tl.dot(x, k, s)
            m = tl.max(s, axis=1)
            tl.store(tops + (i.to(tl.int64) + tile * rows64), m)
            sure = m - (a * tl.load(long + tile) + (b * tl.load(rest + tile) + r))
            if TWO:
                two = tl.maximum(two, tl.minimum(one, sure))
            one = tl.maximum(one, sure)
        t = tl.minimum(t + STEP, tiles)
        if PRUNE:
            reach = cut * tl.load(long + tl.minimum(t, tiles - 1)) + r
            least = (two if TWO else one) - slack
            go = tl.max((reach >= least).to(tl.int32), axis=0)
    tl.store(best + i, two if TWO else one)
    tl.store(done + block, t)


@triton.jit
def pick(
    tops, ca, cb, cr, best, room, long, rest, done, count, slots, row0, rows, BM: tl.constexpr,
    R: tl.constexpr, TB: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Tiles that may hold a chosen key: how many per row, and the first K of them."""
    i = tl.program_id(0) * R + tl.arange(0, R)
    g = row0 + i
    a = tl.load(ca + g)
    b = tl.load(cb + g)
    r = tl.load(cr + g)
    least = tl.load(best + i) - tl.load(room + g)
    stop = tl.load(done + (tl.program_id(0) * R) // BM)
    found = tl.zeros((R,), dtype=tl.int32)
    for t0 in range(0, stop, TB):
        t = t0 + tl.arange(0, TB)
        there = t < stop
        big = tl.load(long + t, mask=there, other=0.0)
        small = tl.load(rest + t, mask=there, other=0.0)
        where = t.to(tl.int64)[:, None] * rows + i[None, :]
        top = tl.load(tops + where, mask=there[:, None], other=float("-inf"))
        e = a[None, :] * big[:, None] + (b[None, :] * small[:, None] + r[None, :])
        may = ((top + e) >= least[None, :]) & there[:, None]
        ones = may.to(tl.int32)
        place = found[None, :] + tl.cumsum(ones, axis=0) - 1
        put = place.to(tl.int64) * rows + i[None, :]
        tl.store(slots + put, t[:, None] + tl.zeros((TB, R), tl.int32), mask=may & (place < K))
        found += tl.sum(ones, axis=0)
    tl.store(count + i, found)


@triton.jit
def _scores(q, turned, at, size, d, tile, n, BN: tl.constexpr, UNROLL: tl.constexpr):
    """Float64 scores of one row with the keys of one tile; -inf behind the last key."""
    j = tile * BN + tl.arange(0, BN)
    wide = j.to(tl.int64)
    s = tl.zeros((BN,), dtype=tl.float64)
    keys = turned + wide
    for c in tl.range(0, d, loop_unroll_factor=UNROLL):
        s = tl.fma(tl.load(q + at + c).to(tl.float64), tl.load(keys).to(tl.float64), s)
        keys += size
    return tl.where(j < n, s, float("-inf"))


@triton.jit
def decide(
    q, turned, order, korder, tol, tops, ca, cb, cr, best, room, long, rest, done, count, slots,
    at, score, second, ties, row0, rows, n, d, size, BM: tl.constexpr, BN: tl.constexpr,
    K: tl.constexpr, TB: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """The best key of one row in float64 among its candidate tiles, and the runner-up."""
    i = tl.program_id(0)
    if row0 + i < n:
        row = tl.load(order + row0 + i).to(tl.int64)
        start = row * d
        one = tl.full((), float("-inf"), dtype=tl.float64)
        two = one
        arg = tl.full((), 0, dtype=tl.int32)
        found = tl.load(count + i)
        lane = tl.arange(0, BN)
        inf = float("-inf")
        many = found > K
        if many:
            found = tl.load(done + i // BM)
        t0 = 0
        a = tl.load(ca + row0 + i)
        b = tl.load(cb + row0 + i)
        r = tl.load(cr + row0 + i)
        least = tl.load(best + i) - tl.load(room + row0 + i)
        while t0 < found:
            t = t0 + tl.arange(0, TB)
            if many:
                there = t < found
                top = tl.load(tops + t.to(tl.int64) * rows + i, mask=there, other=inf)
                e = a * tl.load(long + t, mask=there, other=0.0)
                e += b * tl.load(rest + t, mask=there, other=0.0) + r
                left = ((top + e) >= least) & there
                name = t
            else:
                left = t < found
                name = tl.load(slots + t.to(tl.int64) * rows + i, mask=left, other=0)
            more = tl.sum(left.to(tl.int32), axis=0)
            while more > 0:
                tile = tl.min(tl.where(left, name, 2147483647), axis=0)
                left = left & (name != tile)
                more -= 1
                s = _scores(q, turned, start, size, d, tile, n, BN, UNROLL)
                m = tl.max(s, axis=0)
                here = s == m
                low = tl.max(tl.where(here, inf, s), axis=0)
                low = tl.where(tl.sum(here.to(tl.int32), axis=0) > 1, m, low)
                where = tl.min(tl.where(here, lane, BN), axis=0)
                arg = tl.where(m > one, tile * BN + where, arg)
                two = tl.maximum(tl.maximum(two, low), tl.minimum(one, m))
                one = tl.maximum(one, m)
            t0 += TB
        tl.store(at + row, tl.load(korder + arg))
        tl.store(score + row, one)
        tl.store(second + row, two)
        tl.store(ties + i, (two >= one - tl.load(tol + row)).to(tl.int32))


@triton.jit
def tied(
    q, turned, order, korder, tol, tops, ca, cb, cc, cr, long, rest, done, score, second, which,
    counts, begin, indices, unit, row0, rows, n, d, size, tiles, ALL: tl.constexpr,
    FILL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, TB: tl.constexpr,
    UNROLL: tl.constexpr,
):  # fmt: skip
    """Count, or list, the keys within the tolerance of the best; the best score outside.

    A tile is searched while its upper bound reaches the tolerance, or (ALL) the
    best score outside that is known so far.
    """
    p = tl.program_id(0)
    i = tl.load(which + p)
    row = tl.load(order + row0 + i).to(tl.int64)
    g = row0 + i
    a = tl.load(ca + g)
    b = tl.load(cb + g)
    r = tl.load(cr + g)
    cut = tl.load(cc + g)
    inf = float("-inf")
    inside = tl.load(score + row) - tl.load(tol + row)
    scale = tl.load(unit + g)  # the power of two of this row, so that bounds compare
    outside = tl.full((), inf, dtype=tl.float64)
    found = tl.full((), 0, dtype=tl.int32)
    if FILL:
        put = tl.load(begin + p)
    seen = tl.load(done + i // BM)
    t0 = 0
    while t0 < tiles:
        t = t0 + tl.arange(0, TB)
        there = t < tiles
        big = tl.load(long + t, mask=there, other=0.0)
        top = tl.load(tops + t.to(tl.int64) * rows + i, mask=t < seen, other=inf)
        e = a * big + (b * tl.load(rest + t, mask=there, other=0.0) + r)
        reach = tl.where(t < seen, top + e, cut * big + r).to(tl.float64) / scale
        level = tl.minimum(outside, inside) if ALL else inside
        left = (reach >= level) & there
        more = tl.sum(left.to(tl.int32), axis=0)
        while more > 0:
            tile = tl.min(tl.where(left, t, 2147483647), axis=0)
            s = _scores(q, turned, row * d, size, d, tile, n, BN, UNROLL)
            chosen = s >= inside
            outside = tl.maximum(outside, tl.max(tl.where(chosen, inf, s), axis=0))
            ones = chosen.to(tl.int32)
            if FILL:
                place = put + (found + tl.cumsum(ones, axis=0) - 1).to(tl.int64)
                key = tl.load(korder + tile * BN + tl.arange(0, BN), mask=chosen, other=0)
                tl.store(indices + place, row * n + key, mask=chosen)
            found += tl.sum(ones, axis=0)
            left = left & (t != tile)
            if ALL:
                left = left & (reach >= tl.minimum(outside, inside))
            more = tl.sum(left.to(tl.int32), axis=0)
        t0 += TB
    if not FILL:
        tl.store(counts + p, found)
        tl.store(second + row, outside)
