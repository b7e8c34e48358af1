"""Vector code as LLVM instructions: what `_vector` says in plain Python."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["TILE", "block_find", "block_max", "fma", "lanes", "scores_of", "top_two"]

_FEATURES = llvm.get_host_cpu_features()
_BYTES = 64 if _FEATURES.get("avx512f") else 32 if _FEATURES.get("avx2") else 16
_KEYS = 4 if _BYTES == 32 else 8  # keys at a time: 16 registers with avx2, 32 elsewhere
TILE = 3
"""Vectors of queries searched at a time."""

_I32, _I64 = ir.IntType(32), ir.IntType(64)


def lanes(dtype: Any) -> int:
    """Numbers in a vector of this machine, at least 8: the size of a group of keys."""
    return max(_BYTES // int(np.dtype(dtype).itemsize), 8)


class Code:
    """What the instructions below share: types, pointers, loads."""

    def __init__(self, context: Any, builder: Any, array: Any) -> None:
        self.context, self.b = context, builder
        self.scalar = context.get_value_type(array.dtype)
        self.size = array.dtype.bitwidth // 8
        self.w = lanes(np.dtype(str(array.dtype)))
        self.vector = ir.VectorType(self.scalar, self.w)
        self.index = ir.VectorType(ir.IntType(8 * self.size), self.w)

    def pointer(self, array: Any, value: Any, offset: Any) -> Any:
        data = self.context.make_array(array)(self.context, self.b, value).data
        return self.b.gep(data, [offset])

    def const(self, value: Any) -> Any:
        return ir.Constant(self.vector, [value] * self.w)

    def plus(self, value: Any, number: int) -> Any:
        return self.b.add(value, _I64(number))

    def times(self, value: Any, number: int) -> Any:
        return self.b.mul(value, _I64(number))

    def load(self, pointer: Any, offset: Any, kind: Any = None) -> Any:
        kind = kind or self.vector
        place = self.b.bitcast(self.b.gep(pointer, [offset]), kind.as_pointer())
        return self.b.load(place, align=self.size)

    def store(self, value: Any, pointer: Any, offset: Any) -> None:
        place = self.b.gep(pointer, [offset])
        self.b.store(value, self.b.bitcast(place, value.type.as_pointer()), align=self.size)

    def splat(self, x: Any) -> Any:
        kind = ir.VectorType(x.type, self.w)
        none = ir.Constant(kind, ir.Undefined)
        one = self.b.insert_element(none, x, _I32(0))
        zeros = ir.Constant(ir.VectorType(_I32, self.w), [0] * self.w)
        return self.b.shuffle_vector(one, none, zeros)

    def spread(self, pointer: Any, offset: Any) -> Any:
        """One number in all lanes."""
        return self.splat(self.b.load(self.b.gep(pointer, [offset])))

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        kind = ir.FunctionType(x.type, [x.type] * 3)
        name = f"llvm.fma.v{self.w}f{8 * self.size}"
        return self.b.call(cgutils.get_or_insert_function(self.b.module, kind, name), [x, y, z])

    def max(self, x: Any, y: Any) -> Any:
        return self.b.select(self.b.fcmp_ordered(">", x, y), x, y)

    def top(self, xs: list[Any]) -> Any:
        """The largest, lane by lane."""
        while len(xs) > 1:
            rest = xs[-1:] if len(xs) % 2 else []
            xs = [self.max(xs[i], xs[i + 1]) for i in range(0, len(xs) - 1, 2)] + rest
        return xs[0]

    def across(self, x: Any) -> Any:
        """The largest of all lanes."""
        step = self.w // 2
        while step:
            order = [(i + step) % self.w for i in range(self.w)]
            mask = ir.Constant(ir.VectorType(_I32, self.w), order)
            x = self.max(x, self.b.shuffle_vector(x, x, mask))
            step //= 2
        return self.b.extract_element(x, _I32(0))

    def tile_scores(self, q: Any, k: Any, d: Any, keys: int) -> list[list[Any]]:
        """Scores of a tile of queries with `keys` keys that lie side by side."""
        sums = [
            [cgutils.alloca_once(self.b, self.vector) for _ in range(TILE)] for _ in range(keys)
        ]
        for row in sums:
            for s in row:
                self.b.store(self.const(0.0), s)
        with cgutils.for_range(self.b, d) as loop:
            start = self.times(loop.index, TILE * self.w)
            qs = [self.load(q, self.plus(start, v * self.w)) for v in range(TILE)]
            row = self.times(loop.index, self.w)
            for j in range(keys):
                y = self.spread(k, self.plus(row, j))
                for v in range(TILE):
                    self.b.store(self.fma(qs[v], y, self.b.load(sums[j][v])), sums[j][v])
        return [[self.b.load(s) for s in row] for row in sums]

    def group_scores(self, q: Any, step: Any, k: Any, d: Any) -> Any:
        """Scores of one query with a group of keys."""
        total = cgutils.alloca_once(self.b, self.vector)
        self.b.store(self.const(0.0), total)
        with cgutils.for_range(self.b, d) as loop:
            x = self.spread(q, self.b.mul(loop.index, step))
            y = self.load(k, self.times(loop.index, self.w))
            self.b.store(self.fma(x, y, self.b.load(total)), total)
        return self.b.load(total)


@intrinsic
def fma(_: Any, x: Any, y: Any, z: Any) -> Any:
    """a b + c, rounded once."""

    def codegen(context: Any, b: Any, sig: Any, args: Any) -> Any:
        kind = context.get_value_type(sig.return_type)
        name = f"llvm.fma.f{sig.return_type.bitwidth}"
        f = cgutils.get_or_insert_function(b.module, ir.FunctionType(kind, [kind] * 3), name)
        return b.call(f, args)

    return x(x, x, x), codegen


@intrinsic
def block_max(
    _: Any, q: Any, qo: Any, k: Any, ko: Any, groups: Any, d: Any, out: Any, oo: Any
) -> Any:
    """The largest score of each query of a tile over some groups of keys."""
    i = types.int64

    def codegen(context: Any, b: Any, sig: Any, args: Any) -> Any:
        v = Code(context, b, q)
        qp, kp, op = v.pointer(q, *args[:2]), v.pointer(k, *args[2:4]), v.pointer(out, *args[6:])
        tops = [cgutils.alloca_once_value(b, v.const(-np.inf)) for _ in range(TILE)]
        with cgutils.for_range(b, args[4]) as loop:
            group = b.gep(kp, [b.mul(loop.index, v.times(args[5], v.w))])
            for part in range(0, v.w, _KEYS):
                found = v.tile_scores(qp, b.gep(group, [_I64(part)]), args[5], _KEYS)
                for lane, top in enumerate(tops):
                    b.store(v.max(v.top([row[lane] for row in found]), b.load(top)), top)
        for lane, top in enumerate(tops):
            v.store(b.load(top), op, _I64(lane * v.w))
        return context.get_dummy_value()

    return types.void(q, i, k, i, i, i, out, i), codegen


@intrinsic
def block_find(
    _: Any, q: Any, qo: Any, qs: Any, k: Any, ko: Any, n: Any, d: Any, low: Any, rest: Any
) -> Any:
    """The first of n keys that scores `low` or more; the next best score, and how many do."""
    i = types.int64

    def codegen(context: Any, b: Any, sig: Any, args: Any) -> Any:
        v = Code(context, b, q)
        qp, kp = v.pointer(q, *args[:2]), v.pointer(k, *args[3:5])
        target, none = v.splat(args[7]), v.const(-np.inf)
        second = cgutils.alloca_once_value(b, none)
        at, hits = cgutils.alloca_once_value(b, _I64(-1)), cgutils.alloca_once_value(b, _I64(0))
        bits, order = ir.IntType(v.w), ir.Constant(v.index, list(range(v.w)))
        groups = b.sdiv(v.plus(args[5], v.w - 1), _I64(v.w))
        with cgutils.for_range(b, groups) as loop:
            start = v.times(loop.index, v.w)
            s = v.group_scores(qp, args[2], b.gep(kp, [b.mul(start, args[6])]), args[6])
            left = v.splat(b.trunc(b.sub(args[5], start), v.index.element))
            s = b.select(b.icmp_signed("<", order, left), s, none)
            hit = b.fcmp_ordered(">=", s, target)
            b.store(v.max(b.select(hit, none, s), b.load(second)), second)
            mask = b.bitcast(hit, bits)
            place = b.add(start, b.zext(b.cttz(mask, ir.IntType(1)(0)), _I64))
            some = b.icmp_signed("!=", mask, bits(0))
            new = b.and_(b.icmp_signed("<", b.load(at), _I64(0)), some)
            b.store(b.select(new, place, b.load(at)), at)
            b.store(b.add(b.load(hits), b.zext(b.ctpop(mask), _I64)), hits)
        out = v.pointer(rest, args[8], _I64(0))
        b.store(v.across(b.load(second)), out)
        b.store(b.sitofp(b.load(hits), v.scalar), b.gep(out, [_I64(1)]))
        return b.load(at)

    return i(q, i, i, k, i, i, i, q.dtype, rest), codegen


@intrinsic
def top_two(
    _: Any,
    q: Any,
    qo: Any,
    k: Any,
    ko: Any,
    n: Any,
    d: Any,
    best: Any,
    second: Any,
    at: Any,
    oo: Any,
) -> Any:
    """Best and second-best score of each query of a tile, and the first best key."""
    i = types.int64

    def codegen(context: Any, b: Any, sig: Any, args: Any) -> Any:
        v = Code(context, b, q)
        qp, kp, n, d = v.pointer(q, *args[:2]), v.pointer(k, *args[2:4]), args[4], args[5]
        none = ir.Constant(v.index, [-1] * v.w)
        tops = [cgutils.alloca_once_value(b, v.const(-np.inf)) for _ in range(TILE)]
        nexts = [cgutils.alloca_once_value(b, v.const(-np.inf)) for _ in range(TILE)]
        ats = [cgutils.alloca_once_value(b, none) for _ in range(TILE)]

        def see(j: Any, keys: int) -> None:
            """Let the tile see the keys j, j + 1, ..., all of one group."""
            base = v.times(b.mul(b.sdiv(j, _I64(v.w)), d), v.w)
            found = v.tile_scores(qp, b.gep(kp, [b.add(base, b.srem(j, _I64(v.w)))]), d, keys)
            for r, row in enumerate(found):
                here = v.splat(b.trunc(v.plus(j, r), v.index.element))
                for s, top, nxt, at in zip(row, tops, nexts, ats, strict=True):
                    old = b.load(top)
                    more = b.fcmp_ordered(">", s, old)
                    b.store(v.max(b.select(more, old, s), b.load(nxt)), nxt)
                    b.store(b.select(more, here, b.load(at)), at)
                    b.store(b.select(more, s, old), top)

        whole = b.sdiv(n, _I64(4))
        with cgutils.for_range(b, whole) as loop:
            see(v.times(loop.index, 4), 4)
        with cgutils.for_range(b, b.srem(n, _I64(4))) as loop:
            see(b.add(v.times(whole, 4), loop.index), 1)
        places = [
            v.pointer(a, x, args[9]) for a, x in ((best, args[6]), (second, args[7]), (at, args[8]))
        ]
        for lane in range(TILE):
            for place, values in zip(places, (tops, nexts, ats), strict=True):
                v.store(b.load(values[lane]), place, _I64(lane * v.w))
        return context.get_dummy_value()

    return types.void(q, i, k, i, i, i, best, second, at, i), codegen


@intrinsic
def scores_of(
    _: Any, q: Any, qo: Any, qs: Any, k: Any, ko: Any, groups: Any, d: Any, out: Any
) -> Any:
    """The scores of one query with the keys of some groups."""
    i = types.int64

    def codegen(context: Any, b: Any, sig: Any, args: Any) -> Any:
        v = Code(context, b, q)
        qp, kp, op = (
            v.pointer(q, *args[:2]),
            v.pointer(k, *args[3:5]),
            v.pointer(out, args[7], _I64(0)),
        )
        with cgutils.for_range(b, args[5]) as loop:
            group = b.gep(kp, [b.mul(loop.index, v.times(args[6], v.w))])
            v.store(v.group_scores(qp, args[2], group, args[6]), op, v.times(loop.index, v.w))
        return context.get_dummy_value()

    return types.void(q, i, i, k, i, i, i, out), codegen
