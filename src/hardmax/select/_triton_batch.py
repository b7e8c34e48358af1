"""The kernel for batches of short sequences: all layers in one launch.

One program walks one head of one sequence through all layers.  Scores in float32
(each number split into two halves of 11 bits for the matrix unit) decide a row when
one key alone lies within the proved bound; other rows are decided by float64 chains.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["HIDDEN", "TIED", "exact", "forward", "long_of", "power_of", "scales"]

TIED = tl.constexpr(-1)
OPEN = tl.constexpr(-2)
HIDDEN = tl.constexpr(-3)


@triton.jit
def power_of(e):
    """2^e in float64 for integers -1022 <= e <= 1023."""
    return ((e + 1023) << 52).to(tl.float64, bitcast=True)


@triton.jit
def long_of(x):
    """x as int64; an argument that is 1 arrives as a constant, not as a tensor."""
    return tl.zeros((), dtype=tl.int64) + x


@triton.jit
def scales(z, keep, j, stride, d):
    """Powers of two: one that brings the largest entry near 1, one that keeps ways finite."""
    top = tl.zeros(j.shape, dtype=tl.float64)
    for c in range(d):
        top = tl.maximum(
            top, tl.abs(tl.load(z + j * stride + c, mask=keep, other=0.0)).to(tl.float64)
        )
    most = tl.max(top, axis=0)
    e = 1022 - ((most.to(tl.int64, bitcast=True) >> 52) & 2047)
    return tl.minimum(tl.maximum(e, -1022), 1000), most


@triton.jit
def exact(z, i, j, there, keep, stride, d, p, tie_tol, BR: tl.constexpr, NP: tl.constexpr):
    """Float64 chains of the rows i: scores, lengths of the keys, and which keys are chosen."""
    s = tl.zeros((BR, NP), dtype=tl.float64)
    row = tl.zeros((BR,), dtype=tl.float64)
    key = tl.zeros((NP,), dtype=tl.float64)
    for c in range(d):
        x = tl.load(z + i * stride + c, mask=there, other=0.0).to(tl.float64) * p
        y = tl.load(z + j * stride + c, mask=keep, other=0.0).to(tl.float64) * p
        s = tl.fma(x[:, None], y[None, :], s)
        row = tl.fma(x, x, row)
        key = tl.fma(y, y, key)
    s = tl.where(keep[None, :], s, float("-inf"))
    tol = tie_tol * (tl.sqrt(row) * tl.max(tl.sqrt(key), axis=0))
    return s >= (tl.max(s, axis=1) - tol)[:, None]


@triton.jit
def _halves(x):
    """Two numbers of 11 bits: x = first + second / 2048 up to 2^-22 |x|."""
    first = x.to(tl.float16)
    return first, ((x - first.to(tl.float32)) * 2048.0).to(tl.float16)


@triton.jit
def _search(
    z, at, mask, n, stride, d, p, longest, eps, floor, tie_tol, D: tl.constexpr, BM: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """Write the key of every row that one key alone can be chosen by, OPEN for the others."""
    col = tl.arange(0, D)
    here = col < d
    opened = 0
    for r0 in range(0, n, BM):
        i = r0 + tl.arange(0, BM)
        rows = (i < n)[:, None] & here[None, :]
        x = tl.load(z + i[:, None] * stride + col[None, :], mask=rows, other=0.0)
        x = (x * p).to(tl.float32)
        size = tl.sum(x * x, axis=1)
        xh, xl = _halves(x)
        room = ((2.0 * eps + tie_tol) * (tl.sqrt(size) * 1.001) + 2.0 * floor) * longest
        top = tl.full((BM,), float("-inf"), dtype=tl.float32)
        code = tl.zeros((BM,), dtype=tl.int32)
        for k0 in range(0, n, BK):
            k = k0 + tl.arange(0, BK)
            keep = tl.load(mask + k, mask=k < n, other=0) == 1
            keys = keep[None, :] & here[:, None]
            y = tl.load(z + k[None, :] * stride + col[:, None], mask=keys, other=0.0)
            yh, yl = _halves((y * p).to(tl.float32))
            s = tl.dot(xh, yl)
            s = tl.dot(xl, yh, s)
            s = tl.dot(xh, yh) + s * (1.0 / 2048.0)
            s = tl.where(keep[None, :], s, float("-inf"))
            most = tl.maximum(top, tl.max(s, axis=1))
            least = most - room
            near = tl.where(s >= least[:, None], 65536 + k[None, :], 0)
            code = tl.where(top >= least, code, 0) + tl.sum(near, axis=1)
            top = most
        choice = tl.where((code >> 16) == 1, code & 65535, OPEN)
        real = tl.load(mask + i, mask=i < n, other=0) > 0
        choice = tl.where(real, choice, HIDDEN)
        tl.store(at + i, choice, mask=i < n)
        opened += tl.sum((choice == OPEN).to(tl.int32), axis=0)
    return opened


@triton.jit
def _longest(z, keep, j, stride, d, p):
    """The length of the longest key, rounded up."""
    key = tl.zeros(j.shape, dtype=tl.float32)
    for c in range(d):
        y = (tl.load(z + j * stride + c, mask=keep, other=0.0) * p).to(tl.float32)
        key += y * y
    return tl.sqrt(tl.max(key, axis=0)) * 1.001


@triton.jit
def _decide(
    z, out, at, weight, keep, j, n, stride, d, p, g, half, tie_tol, NP: tl.constexpr,
    BR: tl.constexpr,
):  # fmt: skip
    """Rows left open: their set in float64, and for several keys the step to their mean."""
    w = tl.load(weight + j, mask=keep, other=0.0).to(tl.float64)
    for r0 in range(0, n, BR):
        i = r0 + tl.arange(0, BR)
        there = i < n
        a = tl.load(at + i, mask=there, other=HIDDEN)
        if tl.max((a == OPEN).to(tl.int32), axis=0) > 0:
            inside = exact(z, i, j, there, keep, stride, d, p, tie_tol, BR, NP)
            number = tl.sum(inside.to(tl.int32), axis=1)
            first = tl.min(tl.where(inside, j[None, :], NP), axis=1)
            tied = (a == OPEN) & (number > 1)
            tl.store(at + i, tl.where(number > 1, TIED, first), mask=there & (a == OPEN))
            if tl.max(tied.to(tl.int32), axis=0) > 0:
                whole = tl.sum(tl.where(inside, w[None, :], 0.0), axis=1)
                part = tl.where(inside, w[None, :] / tl.where(whole > 0, whole, 1.0)[:, None], 0.0)
                for c in range(d):
                    x = tl.load(z + i * stride + c, mask=there, other=0.0).to(tl.float64) * half
                    y = tl.load(z + j * stride + c, mask=keep, other=0.0).to(tl.float64) * half
                    b = tl.load(z + first * stride + c, mask=tied, other=0.0).to(tl.float64) * half
                    way = b + tl.sum((y[None, :] - b[:, None]) * part, axis=1) - x
                    tl.store(out + i * stride + c, (x + way * g) / half, mask=tied)


@triton.jit
def forward(
    zs, at, gamma, weight, mask, n, stride, batch, heads, d, depth, eps, floor, tie_tol,
    D: tl.constexpr, NP: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr, BU: tl.constexpr,
    BR: tl.constexpr,
):  # fmt: skip
    """All layers of one head of one sequence; zs[0] is given, zs[1..] and `at` are written.

    `mask` is 0 for padding, 1 for a token, 2 for a token that nobody may choose.
    """
    b = tl.program_id(0) // heads
    h = tl.program_id(0) % heads
    j = tl.arange(0, NP)
    col = tl.arange(0, D)
    flag = tl.load(mask + b * n + j, mask=j < n, other=0)
    keep = flag == 1
    wide = long_of(stride) * n
    z = zs + b * wide + h * d
    to = at + (long_of(b) * heads + h) * n
    e, most = scales(z, flag > 0, j, stride, d)
    w = weight + b * n
    settled = 0
    tol = tl.load(tie_tol)
    near = tol.to(tl.float32) * 1.001
    KIND: tl.constexpr = zs.dtype.element_ty
    WIDE: tl.constexpr = zs.dtype.element_ty.primitive_bitwidth == 64
    LIMIT: tl.constexpr = 1022 if WIDE else 126
    HUGE: tl.constexpr = 2.0**1000 if WIDE else 2.0**125
    for layer in range(depth):
        g = tl.load(gamma + layer * heads + h)
        out = z + batch * wide
        p = power_of(tl.minimum(tl.maximum(e, -LIMIT), LIMIT)).to(KIND)
        half = tl.where(most > HUGE, 0.5, 1.0).to(KIND)
        if settled == 0:
            long = _longest(z, keep, j, stride, d, p)
            opened = _search(
                z, to, mask + b * n, n, stride, d, p, long, eps, floor, near, D, BM, BK
            )
            tl.debug_barrier()
            if opened > 0:
                _decide(
                    z, out, to, w, keep, j, n, stride, d, power_of(e), g.to(tl.float64),
                    half.to(tl.float64), tol, NP, BR,
                )  # fmt: skip
                tl.debug_barrier()
            a = tl.load(to + j, mask=j < n, other=HIDDEN)
            lead = tl.load(to + a, mask=a >= 0, other=TIED)
            good = ((a >= 0) & (lead == a)) | (j >= n) | (a == HIDDEN)
            settled = tl.min(good.to(tl.int32), axis=0)
        else:
            tl.store(to + j, tl.load(to - long_of(batch) * heads * n + j, mask=j < n), mask=j < n)
        tl.debug_barrier()
        for r0 in range(0, n, BU):
            i = r0 + tl.arange(0, BU)
            a = tl.load(to + i, mask=i < n, other=TIED)
            here = (col < d)[None, :]
            x = tl.load(
                z + i[:, None] * stride + col[None, :], mask=(i < n)[:, None] & here, other=0.0
            )
            m = tl.load(
                z + a[:, None] * stride + col[None, :], mask=(a >= 0)[:, None] & here, other=0.0
            )
            moved = (x * half + (m * half - x * half) * g) / half
            new = tl.where((a == HIDDEN)[:, None], x, moved)
            tl.store(
                out + i[:, None] * stride + col[None, :],
                new,
                mask=((i < n) & (a != TIED))[:, None] & here,
            )
        tl.debug_barrier()
        z = out
        to += long_of(batch) * heads * n
