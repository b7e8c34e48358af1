"""Compiled loops in as many threads as torch may use; the parts are disjoint."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch

__all__ = ["in_threads"]


@cache
def _threads(process: int, size: int) -> ThreadPoolExecutor:
    """Threads of this process; `process` keeps a fork from using those of its parent."""
    return ThreadPoolExecutor(size)


def in_threads(part: Callable[[int, int], Any], n: int, least: int, step: int = 1) -> None:
    """Call `part(first, stop)` on ranges that cover 0..n, each of about `least` or more.

    Ranges begin at multiples of `step`.
    """
    threads = min(torch.get_num_threads(), n // max(least, 1))
    if threads <= 1:
        part(0, n)
        return
    cuts = np.linspace(0, n // step, 4 * threads + 1).astype(int) * step
    cuts[-1] = n
    list(_threads(os.getpid(), threads).map(part, cuts[:-1].tolist(), cuts[1:].tolist()))
