"""Bytes of files and of members of archives; what is damaged is a DataError.

Members are read where they lie.  Nothing is extracted, so the names inside an
archive never become places on the disk.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from hardmax._errors import DataError, HardmaxError, InputError

__all__ = [
    "ARCHIVES",
    "LONGEST",
    "OPENERS",
    "PACKED",
    "Blob",
    "check_encoding",
    "damage",
    "file_blob",
    "is_archive",
    "member_blob",
    "open_text",
    "shown",
]

LONGEST = 1 << 24
"""The most characters of one row and bytes of one text file; longer ones are skipped."""
ARCHIVES = (".zip", ".whl", ".tar", ".tgz", ".txz", ".tbz2", ".tar.gz", ".tar.xz", ".tar.bz2")
PACKED = (".gz", ".bz2", ".xz")
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_MAGIC = {
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "gzip data",
    b"\xfd7zXZ\x00": "xz data",
    b"BZh": "bzip2 data",
    b"PAR1": "a Parquet file",
    b"SQLite format 3": "a SQLite database",
    b"%PDF-": "a PDF document",
}


def shown(name: object, limit: int = 120) -> str:
    """A name as one line of printable characters."""
    text = str(name)
    text = text if len(text) <= limit else text[: limit - 3] + "..."
    return "".join(c if c.isprintable() else "?" for c in text)


def check_encoding(encoding: str) -> str:
    """The name of a text encoding, as given.

    Raises
    ------
    InputError
        If Python knows no such encoding.
    """
    try:
        "".encode(encoding)
        codecs.lookup(encoding)
    except (LookupError, ValueError, UnicodeError):
        raise InputError(
            f"expected the name of a text encoding, got {encoding!r}. "
            "Give utf-8, latin-1 or cp1252."
        ) from None
    return encoding


class damage:
    """What the readers of archives raise on damaged files, as one DataError."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, HardmaxError):
            raise DataError(f"{self._name}: {_reason(error)}.") from None


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file. Check the name and the folder"
    if isinstance(error, IsADirectoryError):
        return "expected a file, got a folder"
    if isinstance(error, PermissionError):
        return "cannot be read: permission denied"
    if isinstance(error, MemoryError):
        return "states a size beyond the memory. The file is damaged"
    if "encrypted" in str(error):
        return "is encrypted. Give it without a password"
    return f"is damaged or cut off ({shown(error) or type(error).__name__})"


class _Guarded(io.RawIOBase):
    """A stream of bytes whose failures are DataErrors."""

    def __init__(self, name: str, stack: ExitStack, raw: BinaryIO) -> None:
        self._name, self._stack, self._raw = name, stack, raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer)
        with damage(self._name):
            data = self._raw.read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._stack.close()
        super().close()


@dataclass(frozen=True)
class Blob:
    """Bytes with a name that can be opened again and again.

    Parameters
    ----------
    name
        For messages and for row numbers.
    ending
        The ending that tells the format, without that of a compression.
    opener
        Opens the bytes; whatever must be closed is put on the stack.
    path
        The plain file, where the bytes are one.
    """

    name: str
    ending: str
    opener: Callable[[ExitStack], BinaryIO]
    path: Path | None = None

    def open(self) -> io.BufferedReader:
        """A buffered stream of the bytes."""
        with damage(self.name), ExitStack() as stack:
            raw = self.opener(stack)
            return io.BufferedReader(_Guarded(self.name, stack.pop_all(), raw), 1 << 18)

    def head(self, size: int) -> bytes:
        """The first bytes."""
        with self.open() as file:
            return file.read(size)


def is_archive(path: Path) -> bool:
    """Whether the name is that of a zip or a tar archive."""
    return path.name.lower().endswith(ARCHIVES)


def file_blob(path: Path) -> Blob:
    """A file, decompressed where its name says so."""
    ending = path.suffix.lower()
    if ending not in PACKED:

        def plain(stack: ExitStack) -> BinaryIO:
            return stack.enter_context(open(path, "rb"))

        return Blob(shown(path), ending, plain, path)

    def packed(stack: ExitStack) -> BinaryIO:
        return cast("BinaryIO", stack.enter_context(OPENERS[ending](path, "rb")))

    return Blob(shown(path), path.with_suffix("").suffix.lower(), packed)


def member_blob(path: Path, member: str) -> Blob:
    """One member of an archive, read where it lies."""
    name = f"{shown(path)}:{shown(member)}"
    ending = Path(member).suffix.lower()
    if path.name.lower().endswith((".zip", ".whl")):

        def from_zip(stack: ExitStack) -> BinaryIO:
            archive = stack.enter_context(zipfile.ZipFile(path))
            return cast("BinaryIO", stack.enter_context(archive.open(member)))

        return Blob(name, ending, from_zip)

    def from_tar(stack: ExitStack) -> BinaryIO:
        archive = stack.enter_context(tarfile.TarFile.open(path, "r:*"))
        file = archive.extractfile(member)
        if file is None:
            raise DataError(f"{name}: expected a file, got a link or a folder.")
        return cast("BinaryIO", stack.enter_context(file))

    return Blob(name, ending, from_tar)


def open_text(blob: Blob, encoding: str) -> io.TextIOWrapper:
    """The text of a blob, line ends kept; bytes that fail become lone surrogates."""
    head = blob.head(16)
    for magic, what in _MAGIC.items():
        if head.startswith(magic):
            raise DataError(f"{blob.name}: expected text, got {what}. Give it the matching ending.")
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        encoding = "utf-16" if wide else "utf-8-sig"
    return io.TextIOWrapper(blob.open(), encoding=encoding, errors="surrogateescape", newline="")
