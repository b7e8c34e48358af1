"""Compiled loops: one fixed chain of operations, no fast-math, cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile `function` for the types of its first call."""
    compiled: F = numba.njit(cache=True, fastmath=False, error_model="numpy")(function)
    return compiled
