"""The kernel of the gradients of `_triton_batch`: all layers in one launch, last one first."""

from __future__ import annotations

import triton
import triton.language as tl

from hardmax.select._triton_batch import HIDDEN, TIED, exact, long_of, power_of, scales

__all__ = ["backward"]


@triton.jit
def _spread(
    z, at, grad, to, weight, keep, j, n, stride, d, p, g, tie_tol, NP: tl.constexpr,
    BR: tl.constexpr,
):  # fmt: skip
    """Gradients of rows with several keys go to all of them, by their share in the mean."""
    w = tl.load(weight + j, mask=keep, other=0.0).to(tl.float64)
    for r0 in range(0, n, BR):
        i = r0 + tl.arange(0, BR)
        there = i < n
        tied = tl.load(at + i, mask=there, other=HIDDEN) == TIED
        if tl.max(tied.to(tl.int32), axis=0) > 0:
            inside = exact(z, i, j, there, keep, stride, d, p, tie_tol, BR, NP) & tied[:, None]
            whole = tl.sum(tl.where(inside, w[None, :], 0.0), axis=1)
            part = tl.where(inside, w[None, :] / tl.where(whole > 0, whole, 1.0)[:, None], 0.0)
            for c in range(d):
                x = tl.load(grad + i * stride + c, mask=there, other=0.0).to(tl.float64)
                more = tl.sum(part * (x * g)[:, None], axis=0)
                old = tl.load(to + j * stride + c, mask=keep, other=0.0)
                tl.store(to + j * stride + c, old + more.to(old.dtype), mask=keep)
        tl.debug_barrier()


@triton.jit
def backward(
    zs, at, gamma, weight, mask, grads, slopes, n, stride, batch, heads, d, depth, tie_tol,
    D: tl.constexpr, NP: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr, BR: tl.constexpr,
):  # fmt: skip
    """Gradients of zs[0] and of gamma; grads[0] is given, grads[0] and [1] are overwritten.

    The gradient of zs[0] ends in grads[depth % 2].
    """
    b = tl.program_id(0) // heads
    h = tl.program_id(0) % heads
    j = tl.arange(0, NP)
    col = tl.arange(0, D)
    here = (col < d)[None, :]
    flag = tl.load(mask + b * n + j, mask=j < n, other=0)
    keep = flag == 1
    wide = long_of(stride) * n
    step = batch * wide
    offset = b * wide + h * d
    e, _ = scales(zs + offset, flag > 0, j, stride, d)
    tol = tl.load(tie_tol)
    for back in range(depth):
        layer = depth - 1 - back
        g = tl.load(gamma + layer * heads + h)
        z = zs + layer * step + offset
        a_ptr = at + (long_of(layer * batch + b) * heads + h) * n
        grad = grads + (back % 2) * step + offset
        to = grads + ((back + 1) % 2) * step + offset
        slope = tl.zeros((BM,), dtype=tl.float64)
        for r0 in range(0, n, BM):
            i = r0 + tl.arange(0, BM)
            rows = (i < n)[:, None] & here
            a = tl.load(a_ptr + i, mask=i < n, other=HIDDEN)
            x = tl.load(z + i[:, None] * stride + col[None, :], mask=rows, other=0.0)
            y = tl.load(z + step + i[:, None] * stride + col[None, :], mask=rows, other=0.0)
            m = tl.load(
                z + a[:, None] * stride + col[None, :], mask=(a >= 0)[:, None] & here, other=0.0
            )
            own = tl.load(grad + i[:, None] * stride + col[None, :], mask=rows, other=0.0)
            way = tl.where((a >= 0)[:, None], m - x, (y - x) / g)
            way = tl.where((a == HIDDEN)[:, None], 0.0, way)
            slope += tl.sum((own * way).to(tl.float64), axis=1)
            total = tl.zeros((BM, D), dtype=zs.dtype.element_ty)
            for k0 in range(0, n, BK):
                k = k0 + tl.arange(0, BK)
                ak = tl.load(a_ptr + k, mask=k < n, other=HIDDEN)
                gk = tl.load(
                    grad + k[:, None] * stride + col[None, :],
                    mask=(k < n)[:, None] & here,
                    other=0.0,
                )
                follows = (ak[None, :] == i[:, None]).to(zs.dtype.element_ty)
                total = tl.dot(
                    follows, gk, total, input_precision="tf32x3", out_dtype=zs.dtype.element_ty
                )
            rest = tl.where(a == HIDDEN, 1.0, 1.0 - g).to(zs.dtype.element_ty)
            tl.store(
                to + i[:, None] * stride + col[None, :], own * rest[:, None] + total * g, mask=rows
            )
        tl.debug_barrier()
        _spread(
            z, a_ptr, grad, to, weight + b * n, keep, j, n, stride, d, power_of(e),
            g.to(tl.float64), tol, NP, BR,
        )  # fmt: skip
        tl.debug_barrier()
        tl.store(slopes + (layer * batch + b) * heads + h, tl.sum(slope, axis=0))
