"""The files of a folder or an archive, one after the other, in memory only."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from hardmax._errors import DataError
from hardmax.learn._read_bytes import LONGEST, OPENERS, damage, shown

__all__ = ["Member", "files"]

_TAR_OPENERS: dict[str, Callable[..., Any]] = {
    ".tgz": gzip.open,
    ".txz": lzma.open,
    ".tbz2": bz2.open,
}
_BLOCK = 512


@dataclass(frozen=True)
class Member:
    """A file in a folder or an archive, as the walk meets it."""

    name: str
    size: int
    read: Callable[[], bytes]
    """At most LONGEST + 1 bytes; to be called before the walk goes on."""


def files(path: Path) -> Iterator[Member]:
    """The regular files of a folder (sorted) or of an archive (in its order)."""
    if path.is_dir():
        return _folder_files(path)
    if path.name.lower().endswith((".zip", ".whl")):
        return _zip_files(path)
    return _tar_files(path)


def _folder_files(path: Path) -> Iterator[Member]:
    for root, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            place = Path(root, name)
            with damage(shown(place)):
                size = place.stat().st_size if place.is_file() else None
            if size is not None:
                yield Member(place.relative_to(path).as_posix(), size, partial(_start, place))


def _start(path: Path) -> bytes:
    with damage(shown(path)), open(path, "rb") as file:
        return file.read(LONGEST + 1)


def _zip_files(path: Path) -> Iterator[Member]:
    name = shown(path)
    with ExitStack() as stack:
        with damage(name):
            archive = stack.enter_context(zipfile.ZipFile(path))
            infos = [info for info in archive.infolist() if not info.is_dir()]
        for info in infos:
            yield Member(info.filename, info.file_size, _zip_reader(name, archive, info))


def _zip_reader(name: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], bytes]:
    def read() -> bytes:
        with damage(f"{name}:{shown(info.filename)}"), archive.open(info) as file:
            return file.read(LONGEST + 1)

    return read


class _Tail:
    """A stream that remembers its length and where its last nonzero byte ends."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self.size = self.filled = 0

    def read(self, size: int = -1) -> bytes:
        data = self._raw.read(size)
        kept = len(data.rstrip(b"\0"))
        if kept:
            self.filled = self.size + kept
        self.size += len(data)
        return data


def _tar_files(path: Path) -> Iterator[Member]:
    name, lower = shown(path), path.name.lower()
    ending = Path(lower).suffix
    opener: Callable[..., Any] = _TAR_OPENERS.get(ending) or OPENERS.get(ending) or open
    with ExitStack() as stack:
        with damage(name):
            tail = _Tail(stack.enter_context(opener(path, "rb")))
            archive: Any = stack.enter_context(
                tarfile.open(fileobj=cast("BinaryIO", tail), mode="r|")
            )
        while True:
            with damage(name):
                info = archive.next()
                archive.members = []  # the walk needs none of those that have passed
            if info is None:
                break
            if info.isreg():
                yield Member(info.name, info.size, _tar_reader(name, archive, info))
        _check_end(name, archive, tail)


def _tar_reader(name: str, archive: tarfile.TarFile, info: tarfile.TarInfo) -> Callable[[], bytes]:
    def read() -> bytes:
        with damage(f"{name}:{shown(info.name)}"):
            file = archive.extractfile(info)
            return b"" if file is None else file.read(LONGEST + 1)

    return read


def _check_end(name: str, archive: tarfile.TarFile, tail: _Tail) -> None:
    """`tarfile` ends silently at damage; a whole archive ends in zeros from there on."""
    with damage(name):
        while tail.read(1 << 16):
            pass
    if tail.filled > archive.offset or tail.size < archive.offset + _BLOCK:
        raise DataError(f"{name}: is damaged or cut off after {archive.offset} bytes.")
