"""Which path a selection takes when the caller does not say: set for a stretch of code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from hardmax._check import check_choice

__all__ = ["BACKENDS", "PATHS", "preferred", "using"]

PATHS = ("brute", "hull", "sorted", "twostage")
BACKENDS = ("auto", "cpu", *PATHS, "gpu", "reference")
_PREFERRED: ContextVar[str] = ContextVar("path of selections", default="auto")


def preferred(backend: str) -> str:
    """`backend`, or for "auto" what `using` asked for."""
    check_choice(backend, "backend", BACKENDS)
    return _PREFERRED.get() if backend == "auto" else backend


@contextmanager
def using(backend: str) -> Iterator[None]:
    """Take this path for every selection inside the `with` block.

    Parameters
    ----------
    backend : str
        As for `select`.

    Examples
    --------
    >>> import hardmax as hm
    >>> with using("brute"):
    ...     run = hm.simulate([[1.0, 0.0], [0.0, 1.0]], 1)
    >>> run.path
    'brute'
    """
    token = _PREFERRED.set(check_choice(backend, "backend", BACKENDS))
    try:
        yield
    finally:
        _PREFERRED.reset(token)
