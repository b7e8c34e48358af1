"""One layer in floats for all classes at once, with its error bound."""

from __future__ import annotations

import numpy as np
from numba import njit

from hardmax._types import Floats, Ints

__all__ = ["move"]


@njit(nogil=True, cache=True)
def move(
    x: Floats, mean: Floats, lock: Ints, g: float, error: Floats, reach: Floats, added: Floats
) -> tuple[Floats, Floats]:
    """Positions x + g (mean - x) of the classes that move, and their error bounds.

    A locked class reaches as far as the errors of itself and its leader, the others
    as `reach` says; `added` is the rounding of one layer.
    """
    out, bound = np.empty_like(x), np.empty_like(error)
    for i in range(len(x)):
        far = reach[i]
        if lock[i] >= 0:
            far = max(error[i], error[lock[i]])
        stays = lock[i] == i
        bound[i] = error[i] if stays else far + added[i]
        for c in range(x.shape[1]):
            out[i, c] = x[i, c] if stays else x[i, c] + g * (mean[i, c] - x[i, c])
    return out, bound
