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


def in_threads(part: Callable[[int, int], Any], n: int, least: int) -> None:
    """Call `part(first, stop)` on ranges that cover 0..n, each of about `least` or more."""
    threads = min(torch.get_num_threads(), n // least)
    if threads <= 1:
        part(0, n)
        return
    cuts = np.linspace(0, n, 2 * threads + 1).astype(int)
    list(_threads(os.getpid(), threads).map(part, cuts[:-1], cuts[1:]))
