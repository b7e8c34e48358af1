"""The fastest this machine can multiply and add: fused multiply-adds in registers alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from hardmax.select._llvm import Code, lanes

_CHAINS = 24


@intrinsic
def _fmas(_: Any, x: Any, n: Any) -> Any:
    """n rounds of 24 independent fused multiply-adds, no memory."""

    def codegen(context: Any, b: Any, sig: Any, args: Any) -> Any:
        v = Code(context, b, x)
        zero = args[1].type(0)
        place = v.pointer(x, args[0], zero)
        start = v.load(place, zero)
        sums = [cgutils.alloca_once_value(b, start) for _ in range(_CHAINS)]
        with cgutils.for_range(b, args[1]):
            for s in sums:
                b.store(v.fma(b.load(s), start, start), s)
        v.store(v.top([b.load(s) for s in sums]), place, zero)
        return context.get_dummy_value()

    return types.void(x, types.int64), codegen


@njit
def _run(x: np.ndarray, n: int) -> None:
    _fmas(x, n)


def work(dtype: type, n: int = 300_000) -> tuple[Callable[[], None], float]:
    """A run at the peak, to be timed beside others, and its floating-point operations."""
    x = np.zeros(16, dtype=dtype)
    _run(x, 10)
    return lambda: _run(x, n), 2.0 * _CHAINS * lanes(dtype) * n


def peak(dtype: type) -> float:
    """Floating-point operations per CPU second of one thread, the best of five tries."""
    x, n, best = np.zeros(16, dtype=dtype), 2_000_000, 0.0
    width = lanes(dtype)
    _run(x, 10)
    for _ in range(5):
        start = time.process_time()
        _run(x, n)
        best = max(best, 2.0 * _CHAINS * width * n / (time.process_time() - start))
    return best
