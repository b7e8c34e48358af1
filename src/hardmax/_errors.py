"""The exceptions of the library: one tree below `HardmaxError`::

    HardmaxError
    |-- InputError (also ValueError)       a value that the user gave
    |   |-- ShapeError                     an array of the wrong shape
    |   `-- DataError                      the content of a file
    |-- OutputError (also OSError)         a place that cannot be written
    `-- MissingExtraError (also ImportError)

Each message says what was expected, what came, and what to do.  How a run
ended is data (`status`), never an exception.
"""

from __future__ import annotations

__all__ = [
    "DataError",
    "HardmaxError",
    "InputError",
    "MissingExtraError",
    "OutputError",
    "ShapeError",
]


class HardmaxError(Exception):
    """Anything that this library reports about its use."""


class InputError(HardmaxError, ValueError):
    """A value that cannot be used as given."""


class ShapeError(InputError):
    """An array whose shape does not fit the others."""


class DataError(InputError):
    """A file whose content cannot be used."""


class OutputError(HardmaxError, OSError):
    """A place where a result cannot be written."""


class MissingExtraError(HardmaxError, ImportError):
    """An optional package that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"`{package}` is needed here and is not installed. "
            f"Install it with: pip install 'hardmax[{extra}]'"
        )
