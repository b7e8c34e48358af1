"""Rows of JSON lines and of Parquet files."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from typing import Any

from hardmax._errors import DataError, InputError, MissingExtraError
from hardmax.learn._read_bytes import Blob, damage, open_text
from hardmax.learn._read_columns import Column, Columns, choose_columns
from hardmax.learn._read_table import Bad, Row, lines_of

__all__ = ["JsonReader", "ParquetReader"]

_SAMPLE = 100
_BATCH = 4096
_LARGEST = 1 << 30


def _refuse_numbers(text: Column | None, label: Column | None, name: str) -> None:
    if isinstance(text, int) or isinstance(label, int):
        raise InputError(f"{name}: columns have names here. Give text and label as names.")


class JsonReader:
    """JSON lines: one object per line; rows are named by their line."""

    format = "JSON lines"
    notes: tuple[str, ...] = ()

    def __init__(
        self, blob: Blob, encoding: str, text: Column | None, label: Column | None, labelled: bool
    ) -> None:
        _refuse_numbers(text, label, blob.name)
        self._blob, self._encoding = blob, encoding
        self.columns: Columns = choose_columns(self._keys(), text, label, blob.name, labelled)

    def _keys(self) -> list[str]:
        """The keys of the first objects, in the order in which they come."""
        keys: dict[str, None] = {}
        found = lines = 0
        with open_text(self._blob, self._encoding) as file:
            for line in lines_of(file, self._blob.name):
                lines += bool(line.strip())
                if lines == 1 and line.lstrip().startswith("["):
                    raise DataError(
                        f"{self._blob.name}: expected one JSON object per line, got a list. "
                        "Write each object on a line of its own."
                    )
                row = _object(line)
                if row is not None:
                    keys.update(dict.fromkeys(row))
                    found += 1
                if found == _SAMPLE or (not found and lines == _SAMPLE):
                    break
        if not found:
            got = "other text" if lines else "an empty file"
            raise DataError(f"{self._blob.name}: expected one JSON object per line, got {got}.")
        return list(keys)

    def rows(self, bad: Bad) -> Iterator[Row]:
        """The objects; lines that hold none go to `bad`."""
        text, label = self.columns.text, self.columns.label
        with open_text(self._blob, self._encoding) as file:
            for number, line in enumerate(lines_of(file, self._blob.name), 1):
                row = _object(line)
                if row is not None:
                    yield number, row.get(text), None if label is None else row.get(label)
                elif line.strip():
                    bad("encoding" if _spoiled(line) else "json", number)


def _object(line: str) -> dict[Any, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _spoiled(line: str) -> bool:
    return any("\udc80" <= c <= "\udcff" for c in line)


def _pyarrow(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtraError("pyarrow", "text") from None


class ParquetReader:
    """A Parquet file by row groups; rows are counted from 1."""

    format = "Parquet"
    notes: tuple[str, ...] = ()

    def __init__(
        self, blob: Blob, text: Column | None, label: Column | None, labelled: bool
    ) -> None:
        _refuse_numbers(text, label, blob.name)
        self._blob = blob
        with self._open() as file, damage(blob.name):
            names = list(file.schema_arrow.names)
        self.columns: Columns = choose_columns(names, text, label, blob.name, labelled)

    def _open(self) -> Any:
        parquet = _pyarrow("pyarrow.parquet")
        source: Any = self._blob.path
        if source is None:
            with self._blob.open() as packed:
                data = packed.read(_LARGEST + 1)
            if len(data) > _LARGEST:
                raise DataError(f"{self._blob.name}: is beyond 1 GiB. Take it out of the archive.")
            source = _pyarrow("pyarrow").BufferReader(data)
        with damage(self._blob.name):
            return parquet.ParquetFile(source)

    def rows(self, bad: Bad) -> Iterator[Row]:
        """The rows, in batches of bounded size."""
        text, label = self.columns.text, self.columns.label
        chosen = [text] if label is None else [text, label]
        number = 0
        with self._open() as file:
            with damage(self._blob.name):
                batches = file.iter_batches(batch_size=_BATCH, columns=chosen)
            while True:
                with damage(self._blob.name):
                    batch = next(batches, None)
                    columns = [] if batch is None else [_values(batch, name) for name in chosen]
                if not columns:
                    return
                for k, value in enumerate(columns[0]):
                    number += 1
                    yield number, value, columns[-1][k] if label is not None else None


def _values(batch: Any, name: Column) -> list[Any]:
    """The values of one column as Python knows them."""
    values: list[Any] = batch.column(batch.schema.get_field_index(name)).to_pylist()
    return values
