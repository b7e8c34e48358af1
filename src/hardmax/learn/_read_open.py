"""Which reader a source needs: decided by its name, and by the names inside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from hardmax._errors import DataError, InputError
from hardmax.learn._read_bytes import (
    ARCHIVES,
    PACKED,
    Blob,
    check_encoding,
    damage,
    file_blob,
    is_archive,
    member_blob,
    shown,
)
from hardmax.learn._read_columns import Column, Columns
from hardmax.learn._read_folder import PARTS, FolderReader, hidden, in_part, label_folders
from hardmax.learn._read_records import JsonReader, ParquetReader
from hardmax.learn._read_table import Bad, Row, TableReader
from hardmax.learn._read_walk import files

__all__ = ["Reader", "open_reader"]

_TABLES = (".csv", ".tsv", ".tab")
_JSON = (".jsonl", ".ndjson", ".json")
_PARQUET = (".parquet", ".pq")
ENDINGS = (*_TABLES, *_JSON, *_PARQUET)


class Reader(Protocol):
    """What reads the rows of one format, again and again."""

    @property
    def format(self) -> str:
        """The format in words."""

    @property
    def columns(self) -> Columns | None:
        """The columns, where there are any."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was decided or left out."""

    def rows(self, bad: Bad) -> Iterator[Row]:
        """All rows; those that cannot be read go to `bad`."""


def open_reader(
    source: Path,
    *,
    text: Column | None,
    label: Column | None,
    delimiter: str | None,
    encoding: str,
    part: str | None,
    prefer: str | None,
    labelled: bool,
) -> Reader:
    """The reader of a file, a folder or an archive."""
    check_encoding(encoding)
    _check_delimiter(delimiter)
    with damage(shown(source)):
        source.stat()
    if source.is_dir() or is_archive(source):
        names = [member.name for member in files(source)]
        part = part or _preferred(names, prefer)
        blob = _only_table(source, names, part)
        if blob is None:
            return FolderReader(source, names, encoding, part, labelled)
    else:
        blob = file_blob(source)
    if blob.ending in _JSON and delimiter is None:
        return JsonReader(blob, encoding, text, label, labelled)
    if blob.ending in _PARQUET and delimiter is None:
        return ParquetReader(blob, text, label, labelled)
    if blob.ending in _TABLES or delimiter is not None:
        return TableReader(blob, encoding, text, label, delimiter, labelled)
    known = " ".join((*ENDINGS, *ARCHIVES, *PACKED))
    raise DataError(
        f"{shown(source)}: expected a folder or a file that ends in one of {known}, got "
        f"{blob.ending!r}. Give its delimiter to read it as a table."
    )


def _check_delimiter(delimiter: str | None) -> None:
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n\0'):
        raise InputError(f"expected one character as delimiter, got {delimiter!r}.")


def _preferred(names: list[str], prefer: str | None) -> str | None:
    """The preferred part, where texts or tables lie in parts train and test."""
    usable = [n for n in names if not hidden(n) and n.lower().endswith((".txt", *ENDINGS))]
    parts = (sum(in_part(name, part) for name in usable) for part in PARTS)
    return prefer if prefer is not None and all(parts) else None


def _only_table(source: Path, names: list[str], part: str | None) -> Blob | None:
    """The one table inside, or None where the texts are files of their own."""
    usable = [name for name in names if not hidden(name)]
    tables = [name for name in usable if name.lower().endswith(ENDINGS)]
    texts = [name for name in usable if name.lower().endswith(".txt")]
    if not tables or len(label_folders(texts)) > 1:
        return None
    chosen = [name for name in tables if in_part(name, part)]
    if len(chosen) == 1:
        inner = source / chosen[0] if source.is_dir() else None
        return member_blob(source, chosen[0]) if inner is None else file_blob(inner)
    listed = ", ".join(shown(name, 60) for name in tables[:5])
    raise DataError(
        f"{shown(source)}: expected one table inside, got {len(chosen)} of {len(tables)}: {listed}"
        f"{', ...' if len(tables) > 5 else ''}. Name one with part=, such as train for train.csv."
    )
