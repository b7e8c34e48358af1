"""Rows of numbers that may be larger than the memory.

Small rows lie in memory.  Large ones lie in a temporary file that has no name, is
mapped, and vanishes with the last use of the array; the system writes its pages out
when memory is short.
"""

from __future__ import annotations

import os
import tempfile
from typing import IO, Any

import numpy as np

from hardmax._errors import OutputError
from hardmax._types import Array

__all__ = ["Spool", "blank"]

_LIMIT = 1 << 27
"""Bytes from which on a row lies in a file."""


def blank(size: int, dtype: Any) -> Array:
    """A row of `size` numbers without a value yet, in memory or in a file.

    Raises
    ------
    OutputError
        If there is no room for the file.
    """
    kind = np.dtype(dtype)
    if size * kind.itemsize < _LIMIT:
        return np.empty(size, dtype=kind)
    try:
        with tempfile.TemporaryFile() as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size * kind.itemsize)
            return _mapped(file, kind, size)
    except OSError as error:
        raise _no_room(error) from None


def _mapped(file: IO[bytes], kind: np.dtype[Any], size: int) -> Array:
    return np.asarray(np.memmap(file, dtype=kind, mode="r+", shape=(size,)))


def _no_room(error: OSError) -> OutputError:
    return OutputError(
        f"{tempfile.gettempdir()}: no room for temporary files ({error.strerror}). "
        "Free some, or name another folder in TMPDIR."
    )


class Spool:
    """A row of numbers that grows at its end."""

    def __init__(self, dtype: Any) -> None:
        self._kind = np.dtype(dtype)
        self._parts: list[Array] = []
        self._size = self._held = 0
        self._file: IO[bytes] | None = None

    def add(self, part: Array) -> None:
        """Append numbers."""
        part = np.ascontiguousarray(part, dtype=self._kind)
        self._parts.append(part)
        self._size += len(part)
        self._held += part.nbytes
        if self._held >= _LIMIT:
            self._flush()

    def _flush(self) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it lives on in the map)
            for part in self._parts:
                self._file.write(part.data)
        except OSError as error:
            raise _no_room(error) from None
        self._parts, self._held = [], 0

    def done(self) -> Array:
        """The whole row; the spool is empty after it."""
        size, self._size = self._size, 0
        if self._file is None:
            parts, self._parts, self._held = self._parts, [], 0
            return np.concatenate(parts) if parts else np.empty(0, dtype=self._kind)
        self._flush()
        file, self._file = self._file, None
        try:
            with file:
                file.flush()
                return _mapped(file, self._kind, size)
        except OSError as error:
            raise _no_room(error) from None
