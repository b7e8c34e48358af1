"""Arrays as plain JSON numbers and back: NaN as null, infinities as strings."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, overload

import numpy as np

from hardmax._types import Floats

__all__ = ["from_numbers", "plain", "to_numbers"]


@overload
def to_numbers(array: None) -> None: ...
@overload
def to_numbers(array: Floats) -> list[Any]: ...
def to_numbers(array: Floats | None) -> list[Any] | None:
    """Nested lists; JSON has no NaN (null here) and no infinity ("inf", "-inf")."""
    if array is None:
        return None
    if np.isfinite(array).all():
        return list(array.tolist())
    out = array.astype(object)
    out[np.isnan(array)] = None
    out[array == np.inf] = "inf"
    out[array == -np.inf] = "-inf"
    return list(out.tolist())


@overload
def from_numbers(data: None, width: int) -> None: ...
@overload
def from_numbers(data: list[Any], width: int) -> Floats: ...
def from_numbers(data: list[Any] | None, width: int) -> Floats | None:
    """The float64 array of `to_numbers`; no rows mean shape (0, width)."""
    if data is None:
        return None
    return np.array(data, dtype=np.float64) if data else np.empty((0, width))


def plain(value: Any) -> Any:
    """Any value as JSON data: arrays as lists, fractions and the unknown as text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        return plain_float(float(value))
    if isinstance(value, np.integer | np.bool_ | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain({f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
    return str(value)


def plain_float(value: float) -> float | str | None:
    """One float: NaN as None, an infinity as "inf" or "-inf"."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)
