"""Exact arithmetic on doubles and Fractions: integers over one common denominator.

Doubles are dyadic rationals, so every finite array is an integer array over a
common denominator.  Positive common factors change neither an argmax nor a
sign, so no greatest common divisor is ever computed on the way.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from hardmax._types import Array, Floats

__all__ = [
    "as_fraction",
    "common",
    "flint",
    "fractions_of",
    "is_positive_definite",
    "matmul",
    "nearest_floats",
    "scale_exponent",
]


@cache
def flint() -> ModuleType | None:
    """python-flint when it is installed, else None."""
    try:
        import flint as module
    except ImportError:
        return None
    return module if hasattr(module, "fmpz_mat") else None


def as_fraction(x: Any) -> Fraction:
    """The rational number that `x` is: an int, a float of any width, or a Fraction."""
    if isinstance(x, Fraction):
        return x
    if isinstance(x, int | np.integer):
        return Fraction(int(x))
    return Fraction(float(x))


def fractions_of(x: Array) -> Array:
    """The same array with Fractions as entries."""
    out = np.empty(np.shape(x), dtype=object)
    out.ravel()[:] = [as_fraction(v) for v in np.asarray(x).ravel()]
    return out


def common(x: Array) -> tuple[Array, int]:
    """Integers and one positive denominator with `x == integers / denominator`.

    Examples
    --------
    >>> import numpy as np
    >>> common(np.array([0.5, 3.0]))
    (array([1, 6], dtype=object), 2)
    """
    flat = [as_fraction(v) for v in np.asarray(x).ravel()]
    den = math.lcm(*(v.denominator for v in flat)) if flat else 1
    out = np.empty(np.shape(x), dtype=object)
    out.ravel()[:] = [v.numerator * (den // v.denominator) for v in flat]
    return out, den


def scale_exponent(x: Array) -> int:
    """The e with 2^(e-1) <= max |x| < 2^e, up to one; 0 when all entries are zero."""
    if x.dtype != object:
        top = float(np.max(np.abs(x), initial=0.0))
        return int(np.frexp(top)[1]) if top > 0 else 0
    largest = max((abs(as_fraction(v)) for v in x.ravel()), default=Fraction(0))
    if largest == 0:
        return 0
    return largest.numerator.bit_length() - largest.denominator.bit_length() + 1


def nearest_floats(x: Array, exponent: int) -> Floats:
    """`x * 2**-exponent` as float64, each entry correctly rounded."""
    if x.dtype != object:
        return np.asarray(np.ldexp(x.astype(np.float64), -exponent))
    scale = Fraction(2) ** -exponent
    out = [float(as_fraction(v) * scale) for v in x.ravel()]
    return np.array(out, dtype=np.float64).reshape(x.shape)


def matmul(a: Array, b: Array) -> Array:
    """The product of two integer matrices (dtype object), by flint when present."""
    module = flint()
    if module is None or a.shape[0] * b.shape[1] * a.shape[1] < 512:
        return np.asarray(np.dot(a, b), dtype=object)
    left = module.fmpz_mat(a.shape[0], a.shape[1], a.ravel().tolist())
    right = module.fmpz_mat(b.shape[0], b.shape[1], b.ravel().tolist())
    out = np.empty(a.shape[0] * b.shape[1], dtype=object)
    out[:] = [int(v) for v in (left * right).entries()]
    return out.reshape(a.shape[0], b.shape[1])


def is_positive_definite(a: Array) -> bool:
    """Whether a symmetric integer matrix is positive definite, decided exactly.

    Eigenvalues in floats decide when they are far from zero (their error is below
    d * 2**-52 of the largest); else fraction-free elimination (Bareiss), whose
    pivots are the leading minors.
    """
    if len(a) > 16:
        values = np.linalg.eigvalsh(nearest_floats(a, scale_exponent(a)))
        if abs(values[0]) > 1e-9 * np.abs(values).max():
            return bool(values[0] > 0)
    m = [list(row) for row in a]
    last = 1
    for k in range(len(m)):
        if m[k][k] <= 0:
            return False
        for i in range(k + 1, len(m)):
            for j in range(k + 1, len(m)):
                m[i][j] = (m[i][j] * m[k][k] - m[i][k] * m[k][j]) // last
        last = m[k][k]
    return True
