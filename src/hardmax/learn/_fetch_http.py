"""One file over HTTP: resumed where it stopped, and kept only with the right sum."""

from __future__ import annotations

import hashlib
import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeAlias

from hardmax._errors import DataError, OutputError

__all__ = ["Progress", "Unreachable", "download", "sha256_of"]

Progress: TypeAlias = Callable[[str, int, int], None]
"""Is told what is fetched, the bytes so far and the bytes in all."""
_CHUNK = 1 << 18
_ATTEMPTS = 4
_WAIT = 10.0
_AGENT = "hardmax (reads public review collections)"


class Unreachable(Exception):
    """The place cannot be reached or does not give the file."""


def sha256_of(path: Path) -> str:
    """The checksum of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(
    url: str, part: Path, size: int, sha256: str, progress: Progress, *, wait: float = _WAIT
) -> int:
    """Fetch `url` into the file `part`, going on where an earlier try stopped.

    Parameters
    ----------
    part
        The partial file; it stays when the connection breaks.
    size, sha256
        What the whole file must be; a file with another sum is removed.
    wait
        Seconds without an answer after which the place counts as unreachable.

    Returns
    -------
    int
        The bytes that were there before.

    Raises
    ------
    Unreachable
        If nothing, or not all, could be fetched.
    DataError
        If what came is not the file.
    """
    start = before = _present(part, size)
    for attempt in range(_ATTEMPTS):
        here = before
        try:
            _fetch_rest(url, part, size, progress, wait)
            break
        except (OSError, http.client.HTTPException) as error:
            before = _present(part, size)
            if isinstance(error, OutputError):
                raise
            if before == here or attempt == _ATTEMPTS - 1:
                raise Unreachable(_said(error, before)) from None
    if _present(part, size) == size and sha256_of(part) == sha256:
        return start
    part.unlink(missing_ok=True)
    if start:  # what was there before may have been of another file
        return download(url, part, size, sha256, progress, wait=wait)
    raise DataError(f"{url}: expected {size} bytes with sha256 {sha256[:12]}..., got other data.")


def _said(error: Exception, got: int) -> str:
    reason = getattr(error, "reason", None) or error
    text = str(getattr(reason, "strerror", None) or reason) or type(error).__name__
    return text + (f" after {got} bytes, which are kept" if got else "")


def _present(part: Path, size: int) -> int:
    """The bytes already there; more than the whole file are none of it."""
    try:
        got = part.stat().st_size
    except OSError:
        return 0
    if got > size:
        part.unlink()
        return 0
    return got


def _fetch_rest(url: str, part: Path, size: int, progress: Progress, wait: float) -> None:
    got = _present(part, size)
    if got == size:
        return
    headers = {"User-Agent": _AGENT, "Accept-Encoding": "identity"}
    if got:
        headers["Range"] = f"bytes={got}-"
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=wait) as answer:
        resumed = got > 0 and _continues(answer, got, size)
        _append(answer, part, resumed, size, progress)


def _continues(answer: Any, got: int, size: int) -> bool:
    """Whether the answer goes on at the byte that was asked for, of the same file."""
    span = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", answer.headers.get("Content-Range", ""))
    return answer.status == 206 and span is not None and span.groups() == (str(got), str(size))


def _append(answer: Any, part: Path, resumed: bool, size: int, progress: Progress) -> None:
    with _opened(part, "ab" if resumed else "wb") as file:
        got = file.tell()
        while got < size and (data := answer.read(min(_CHUNK, size - got))):
            file.write(data)
            got += len(data)
            progress("download", got, size)
    if got < size:
        raise ConnectionError("the connection ended early")


def _opened(part: Path, mode: str) -> IO[bytes]:
    try:
        return open(part, mode)
    except OSError as error:
        raise OutputError(f"{part}: cannot be written: {error.strerror}.") from None
