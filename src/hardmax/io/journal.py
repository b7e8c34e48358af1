"""A file that only grows: each entry is there whole or not at all, also after a crash."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from hardmax._errors import DataError, OutputError
from hardmax.io.read import PathLike
from hardmax.io.write import plain, unwritable

__all__ = ["Journal"]


class Journal:
    """Entries of plain data in a file, one line each with its checksum.

    Opening reads all entries, cuts off a line that was being written when a process was
    killed, and leaves out lines that are damaged.  One process may hold a journal.

    Parameters
    ----------
    path : path
        Made when it does not exist.
    header : mapping
        What the journal is about; an existing journal must have the same.

    Attributes
    ----------
    entries : list
        What was there when it was opened.
    damaged : int
        Lines whose checksum did not fit.

    Raises
    ------
    DataError
        If the file is no journal, or is about something else.
    OutputError
        If it cannot be written, or another process holds it.
    """

    def __init__(self, path: PathLike, header: Mapping[str, Any]) -> None:
        self.path = Path(path)
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except (OSError, ValueError) as error:
            raise unwritable(self.path, error) from None
        try:
            self._lock()
            self.entries, self.damaged = self._read(plain(header))
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # no such locks on this system
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise OutputError(
                f"{self.path}: another process is writing it. Wait for it, or give another folder."
            ) from None

    def _read(self, header: Any) -> tuple[list[Any], int]:
        with open(self.path, "rb") as file:
            data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(self._file, whole)
        lines = data[:whole].splitlines()
        if not lines:
            self.append([header])
            return [], 0
        found = [_entry(line) for line in lines]
        if not isinstance(found[0], dict):
            raise DataError(f"{self.path}: expected a journal of results, got another file.")
        if found[0] != header:
            other = [key for key in {**found[0], **header} if found[0].get(key) != header.get(key)]
            key = sorted(other)[0]
            raise DataError(
                f"{self.path}: was begun with {key} = {found[0].get(key)!r}, and now it is "
                f"{header.get(key)!r}. Give another folder."
            )
        good = [entry for entry in found[1:] if entry is not None]
        return good, len(found) - 1 - len(good)

    def append(self, entries: Iterable[Any]) -> None:
        """Add entries; when this returns they are on the disk."""
        text = b"".join(_line(plain(entry)) for entry in entries)
        try:
            while text:
                text = text[os.write(self._file, text) :]
            os.fsync(self._file)
        except OSError as error:
            raise unwritable(self.path, error) from None

    def close(self) -> None:
        """Let other processes have it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _line(entry: Any) -> bytes:
    body = json.dumps(entry, separators=(",", ":"), allow_nan=False).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _entry(line: bytes) -> Any:
    """The data of a line, or None when its checksum does not fit."""
    mark, space, body = line.partition(b" ")
    if not space or mark != b"%08x" % zlib.crc32(body):
        return None
    return json.loads(body)
