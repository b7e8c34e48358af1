"""Rows of CSV and TSV files, one at a time; what one bad quote spoils is bounded."""

from __future__ import annotations

import csv
import io
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from hardmax._errors import DataError
from hardmax.learn._read_bytes import LONGEST, Blob, open_text, shown
from hardmax.learn._read_columns import Column, Columns, choose_columns

__all__ = ["Bad", "Row", "TableReader", "lines_of"]

Row: TypeAlias = tuple[int | str, object, object]
"""Where the row is, its text, its label; as stored."""
Bad: TypeAlias = Callable[[str, int | str], None]
"""Is told the kind and the place of each row that cannot be read."""

_DELIMITERS = ",\t;|"
_RETRIES = 8 * LONGEST
_SAMPLE = 1 << 20
_ENCLOSED = re.compile(r'"(?:[^"]|"")*"')
_LIMIT = threading.Lock()


def lines_of(file: io.TextIOWrapper, name: str) -> Iterator[str]:
    """The lines of a text with their ends.

    Raises
    ------
    DataError
        At a line beyond the limit, or where the encoding cannot go on.
    """
    number = 0
    while True:
        try:
            line = file.readline(LONGEST + 1)
        except UnicodeError as error:
            raise DataError(
                f"{name}:{number + 1}: expected text in {file.encoding}, got other bytes "
                f"({shown(error)}). Give the encoding."
            ) from None
        if not line:
            return
        number += 1
        if len(line) > LONGEST:
            raise DataError(
                f"{name}:{number}: expected lines of at most {LONGEST} characters, got a longer "
                "one. The file is of another kind or lacks line ends."
            )
        yield line


class TableReader:
    """A delimited table; rows are named by the line on which they begin.

    Parameters
    ----------
    blob
        The bytes.
    text, label
        Names of columns, or positions from 0 in a file without a header line.
    delimiter
        None for the one that splits the header into the most cells.
    """

    def __init__(
        self,
        blob: Blob,
        encoding: str,
        text: Column | None,
        label: Column | None,
        delimiter: str | None,
        labelled: bool,
    ) -> None:
        self._blob, self._encoding = blob, encoding
        self._headed = not isinstance(text, int) and not isinstance(label, int)
        first = self._first_line()
        self._delimiter = delimiter or _guess_delimiter(first, blob.ending)
        self._quoted = True
        self._quoted = self._delimiter != "\t" or self._has_quotes()
        with open_text(blob, encoding) as file:
            head = self._records(lines_of(file, blob.name)).header()
        self._width = len(head)
        names = [cell.strip() for cell in head] if self._headed else [""] * len(head)
        self.columns: Columns = choose_columns(names, text, label, blob.name, labelled)
        self._text = self._place(self.columns.text)
        self._label = None if self.columns.label is None else self._place(self.columns.label)
        kind = {",": "CSV", "\t": "TSV"}.get(self._delimiter, f"CSV with {self._delimiter!r}")
        self.format = kind
        self.notes = tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        if not self._headed:
            yield "columns are numbers: line 1 is read as a row"
        if not self._quoted:
            yield "cells are not quoted here: quotes are part of the text"

    def _records(self, lines: Iterable[str]) -> _Records:
        return _Records(iter(lines), self._delimiter, self._blob.name, quoted=self._quoted)

    def _has_quotes(self) -> bool:
        """Whether quotes enclose cells: not where that spoils more rows than it explains."""
        sample: list[str] = []
        with open_text(self._blob, self._encoding) as file:
            lines, size = lines_of(file, self._blob.name), 0
            while size < _SAMPLE and (line := next(lines, "")):
                sample.append(line)
                size += len(line)
        spoiled: list[int | str] = []
        for _ in self._records(sample).read(lambda kind, line: spoiled.append(line)):
            pass
        rows = [line.rstrip("\r\n").split(self._delimiter) for line in sample if line.strip()]
        explained = sum(len(row) != len(rows[0]) for row in rows)
        explained += sum(1 for row in rows for cell in row if _ENCLOSED.fullmatch(cell))
        return len(spoiled) <= explained

    def _place(self, column: Column) -> int:
        return column if isinstance(column, int) else self.columns.available.index(column)

    def _first_line(self) -> str:
        with open_text(self._blob, self._encoding) as file:
            for line in lines_of(file, self._blob.name):
                if line.strip():
                    return line
        raise DataError(f"{self._blob.name}: expected rows of text, got an empty file.")

    def rows(self, bad: Bad) -> Iterator[Row]:
        """The rows below the header; ragged and badly quoted ones go to `bad`."""
        text, label, width = self._text, self._label, self._width
        with open_text(self._blob, self._encoding) as file:
            records = self._records(lines_of(file, self._blob.name))
            if self._headed:
                records.header()
            for line, cells in records.read(bad):
                if len(cells) == width:
                    yield line, cells[text], None if label is None else cells[label]
                else:
                    bad("ragged", line)


def _guess_delimiter(line: str, ending: str) -> str:
    """The mark that splits the first line into the most cells."""
    if ending in (".tsv", ".tab"):
        return "\t"

    def cells(mark: str) -> int:
        return len(next(csv.reader([line[:100_000]], delimiter=mark), []))

    return max(_DELIMITERS, key=cells)


@contextmanager
def _long_fields() -> Iterator[None]:
    """Cells as long as a row may be, for one record; the limit is the process's."""
    with _LIMIT:
        before = csv.field_size_limit(LONGEST)
        try:
            yield
        finally:
            csv.field_size_limit(before)


class _Spoiled(Exception):
    """A record that a quote spoils or that is too long."""


class _Records:
    """Records of a table, whose lines can be put back when a quote spoils them."""

    def __init__(
        self, lines: Iterator[str], delimiter: str, name: str, *, quoted: bool = True
    ) -> None:
        self._quoted = quoted
        self._lines, self._delimiter, self._name = lines, delimiter, name
        self._back: deque[str] = deque()
        self._kept: list[str] = []
        self._size = self._retried = self._number = 0
        self._start()

    def _start(self) -> None:
        self._reader = csv.reader(
            self._feed(),
            delimiter=self._delimiter,
            quoting=csv.QUOTE_MINIMAL if self._quoted else csv.QUOTE_NONE,
            strict=True,
        )

    def _feed(self) -> Iterator[str]:
        while True:
            line = self._back.popleft() if self._back else next(self._lines, None)
            if line is None:
                return
            self._number += 1
            self._kept.append(line)
            self._size += len(line)
            if self._size > LONGEST:
                raise _Spoiled
            yield line

    def _put_back(self, lines: list[str]) -> None:
        self._back.extendleft(reversed(lines))
        self._number -= len(lines)
        self._retried += sum(map(len, lines))
        if self._retried > _RETRIES:
            raise DataError(
                f"{self._name}:{self._number}: expected quotes that close within a row, got too "
                "many that do not. Correct the quotes or give the delimiter."
            )
        self._forget()
        self._start()

    def _forget(self) -> None:
        self._kept.clear()
        self._size = 0

    def _next(self) -> list[str] | None:
        try:
            return next(self._reader, None)
        except csv.Error as error:
            if "field limit" not in str(error):
                raise _Spoiled from None
        self._put_back(self._kept[:])
        with _long_fields():
            try:
                return next(self._reader, None)
            except csv.Error:
                raise _Spoiled from None

    def header(self) -> list[str]:
        """The first record that holds something."""

        def refuse(kind: str, line: int | str) -> None:
            raise DataError(f"{self._name}:{line}: expected a header line, got an open quote.")

        return next((cells for _, cells in self.read(refuse) if cells), [])

    def read(self, bad: Bad) -> Iterator[tuple[int, list[str]]]:
        """The records that hold something, with the lines on which they begin.

        Of a record that a quote spoils, the first line is left out and the
        others are read again as records of their own.
        """
        while True:
            self._forget()
            line = self._number + 1
            try:
                cells = self._next()
            except _Spoiled:
                bad("quote", line)
                self._put_back(self._kept[1:])
                continue
            if cells is None:
                return
            if len(cells) > 1 or (cells and cells[0].strip()):
                yield line, cells
