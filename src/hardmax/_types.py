"""Names for the shapes that recur: b sequences, n tokens, d coordinates, k layers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Number: TypeAlias = int | float | Fraction
ArrayLike: TypeAlias = Any
"""A NumPy array, a torch tensor or nested lists of numbers."""
PerLayer: TypeAlias = Number | Sequence[Number]
"""One number for all layers, or one per layer."""
