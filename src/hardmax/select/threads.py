"""Compiled loops in as many threads as torch may use, or work in one thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch

__all__ = ["in_threads", "one_thread"]


@cache
def _threads(process: int, size: int) -> ThreadPoolExecutor:
    """Threads of this process; `process` keeps a fork from using those of its parent."""
    return ThreadPoolExecutor(size)


def in_threads(part: Callable[[int, int], Any], n: int, least: int, step: int = 1) -> None:
    """Call `part(first, stop)` on disjoint ranges that cover 0..n, of about `least` or more.

    Ranges begin at multiples of `step`.
    """
    threads = min(torch.get_num_threads(), n // max(least, 1))
    if threads <= 1:
        part(0, n)
        return
    cuts = np.linspace(0, n // step, 4 * threads + 1).astype(int) * step
    cuts[-1] = n
    list(_threads(os.getpid(), threads).map(part, cuts[:-1].tolist(), cuts[1:].tolist()))


@contextmanager
def one_thread() -> Iterator[None]:
    """Where tensors are small, more threads of torch only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
