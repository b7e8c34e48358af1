"""Numbers out of text: tables of cells, and rows as JSON holds them.

Opens no file (`io` does); `source` is the name that the messages begin with.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from hardmax._errors import DataError
from hardmax._types import Array, Floats

__all__ = ["Cells", "Points", "exact_number", "parse_table", "rows_of"]

Points: TypeAlias = Array | list[list[Fraction]]
"""Coordinates as an array, or as Fractions where one of them was written `p/q`."""

_RATIO = re.compile(r"([+-]?\d{1,4000})\s*/\s*(\d{1,4000})")
_SAMPLE = 50
_NAMING = {"", "name", "names", "token", "word", "id", "index"}
_FIX = "Correct it or remove the line."


@dataclass(frozen=True)
class Cells:
    """What a table of text holds: numbers, names of the rows, names of the columns."""

    points: Points
    names: tuple[str, ...] | None
    columns: tuple[str, ...] | None


@dataclass(frozen=True)
class _Layout:
    delimiter: str
    skip: int
    header: bool
    named: bool


def exact_number(text: str) -> Fraction:
    """A decimal or `p/q`, exactly as written.

    Raises
    ------
    ValueError
        If the text is no number, divides by zero or lies beyond the doubles.
    """
    text = text.strip()
    ratio = _RATIO.fullmatch(text)
    if ratio and int(ratio[2]) == 0:
        raise ValueError("divides by zero")
    if not ratio and not np.isfinite(_decimal(text)):
        raise ValueError("is not a finite number")
    if not ratio and (_exponent(text) > 400 or len(text) > 4000):
        raise ValueError("is beyond the range of doubles")
    value = Fraction(int(ratio[1]), int(ratio[2])) if ratio else Fraction(text)
    try:
        float(value)
    except OverflowError:
        raise ValueError("is beyond the range of doubles") from None
    return value


def _decimal(text: str) -> float:
    if "_" in text:
        raise ValueError("is not a number")
    try:
        return float(text)
    except ValueError:
        raise ValueError("is not a number") from None


def _exponent(text: str) -> int:
    tail = text.lower().partition("e")[2]
    return abs(int(tail[:8])) if tail else 0


def _number(text: str) -> float:
    """One cell; ValueError says what is wrong with it."""
    value = _decimal(text)
    if not np.isfinite(value):
        raise ValueError("is not a finite number")
    return value


def _is_number(text: str) -> bool:
    """True also for nan, inf and ratios: such a cell is meant as a number."""
    try:
        float(text)
    except ValueError:
        return _RATIO.fullmatch(text.strip()) is not None
    return True


def parse_table(text: str, source: str, *, delimiter: str | None = None) -> Cells:
    """The numbers of a delimited text; the layout is read off its first lines.

    The delimiter is the first of `;`, tab, `,` and white space that stands in
    most of the lines.  A first line without numbers is a header.  A first
    column is taken as names when its heading is empty, `name`, `token`,
    `word`, `id` or `index`, or when most of its cells are no numbers.  Lines
    before the table that begin with `# ` are comments.

    Raises
    ------
    DataError
        With the line and the column of what cannot be read.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    layout = _layout(text, source, delimiter)
    if not layout.named and '"' not in text and "/" not in text:
        points = _quick(text, layout)
        if points is not None:
            return Cells(points, None, _heading(text, layout))
    return _careful(text, layout, source)


def _lines(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that hold something, with their line numbers."""
    stream = io.StringIO(text, newline="")
    if delimiter == " ":
        split = ((k, line.split()) for k, line in enumerate(stream, 1))
        yield from (row for row in split if row[1])
        return
    reader = csv.reader(stream, delimiter=delimiter, skipinitialspace=True)
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield reader.line_num, [cell.strip() for cell in cells]


def _layout(text: str, source: str, delimiter: str | None) -> _Layout:
    lines = list(islice(io.StringIO(text), 1000))
    skip = 0
    while skip < len(lines) and (not lines[skip].strip() or lines[skip].startswith(("# ", "#\n"))):
        skip += 1
    sample = [line for line in lines[skip : skip + _SAMPLE] if line.strip()]
    if not sample:
        raise DataError(f"{source}: expected one token per line, got an empty file.")
    delimiter = delimiter or _delimiter(sample)
    rows = _read_rows("".join(lines[skip : skip + _SAMPLE]), delimiter, source)
    if not rows:
        raise DataError(f"{source}: expected one token per line, got empty cells only.")
    header = not any(_is_number(cell) for cell in rows[0][1])
    body = [cells for _, cells in rows[header:]]
    if not body:
        raise DataError(f"{source}: expected numbers below the header line, got no further line.")
    named = header and len(rows[0][1]) > 1 and rows[0][1][0].lower() in _NAMING
    return _Layout(delimiter, skip, header, named or _mostly_words(body))


def _delimiter(sample: Sequence[str]) -> str:
    for mark in (";", "\t", ","):
        if 2 * sum(mark in line for line in sample) > len(sample):
            return mark
    if 2 * sum(len(line.split()) > 1 for line in sample) > len(sample):
        return " "
    return ","


def _mostly_words(body: Sequence[Sequence[str]]) -> bool:
    words = sum(not _is_number(cells[0]) for cells in body)
    return 2 * words > len(body) and all(len(cells) > 1 for cells in body)


def _read_rows(text: str, delimiter: str, source: str) -> list[tuple[int, list[str]]]:
    try:
        return list(_lines(text, delimiter))
    except csv.Error as error:
        raise DataError(f"{source}: expected a table of numbers, got text ({error}).") from None


def _quick(text: str, layout: _Layout) -> Floats | None:
    """The numbers by NumPy's reader; None where something is wrong with them."""
    try:
        points = np.loadtxt(
            io.StringIO(text),
            delimiter=None if layout.delimiter == " " else layout.delimiter,
            skiprows=layout.skip + layout.header,
            comments=None,
            ndmin=2,
        )
    except (ValueError, OverflowError):
        return None
    return points if points.size and bool(np.isfinite(points).all()) else None


def _heading(text: str, layout: _Layout) -> tuple[str, ...] | None:
    if not layout.header:
        return None
    line = next(islice(io.StringIO(text), layout.skip, None))
    return tuple(next(_lines(line, layout.delimiter))[1])


def _careful(text: str, layout: _Layout, source: str) -> Cells:
    body = "".join(islice(io.StringIO(text), layout.skip, None))
    rows = _read_rows(body, layout.delimiter, source)
    width = len(rows[0][1])
    for line, cells in rows:
        if len(cells) != width:
            raise DataError(
                f"{source}, line {line + layout.skip}: expected {width} cells as in line "
                f"{rows[0][0] + layout.skip}, got {len(cells)}. {_FIX}"
            )
    heading = tuple(rows[0][1][layout.named :]) if layout.header else None
    rows = rows[layout.header :]
    names = tuple(cells[0] for _, cells in rows) if layout.named else None
    return Cells(_points(rows, layout, source), names, heading)


def _points(rows: Sequence[tuple[int, list[str]]], layout: _Layout, source: str) -> Points:
    first, width = int(layout.named), len(rows[0][1]) - layout.named
    exact = any("/" in cell for _, cells in rows for cell in cells[first:])
    number = exact_number if exact else _number
    values: list[Any] = []
    for line, cells in rows:
        for column in range(first, len(cells)):
            try:
                values.append(number(cells[column]))
            except ValueError as error:
                where = f"{source}, line {line + layout.skip}, column {column + 1}"
                raise DataError(f"{where}: {_wrong(cells[column], str(error))}") from None
    if exact:
        return [values[k : k + width] for k in range(0, len(values), width)]
    return np.array(values, dtype=np.float64).reshape(-1, width)


def _wrong(cell: str, reason: str) -> str:
    if not cell:
        return f"expected a number, got an empty cell. {_FIX}"
    shown = cell if len(cell) <= 40 else cell[:37] + "..."
    if re.fullmatch(r"[+-]?\d+,\d+", cell):
        return f"{shown!r} {reason}. Write decimals with a point: {cell.replace(',', '.')}."
    return f"expected a number, but {shown!r} {reason}. {_FIX}"


def rows_of(values: object, source: str) -> Points:
    """Rows of numbers as JSON holds them; `"1/3"` makes all of them Fractions.

    A flat list is n tokens with one coordinate; three levels are a batch.

    Raises
    ------
    DataError
        With the row and the column of what cannot be used.
    """
    if not isinstance(values, list) or not values:
        raise DataError(f"{source}: expected a list of rows of numbers, got {_kind(values)}.")
    if not any(isinstance(row, list) for row in values):
        return _matrix([[value] for value in values], source)
    if all(isinstance(row, list) and row and isinstance(row[0], list) for row in values):
        return _batch(values, source)
    return _matrix(values, source)


def _batch(values: list[list[object]], source: str) -> Floats:
    blocks = [_matrix(row, f"{source}, sequence {k}") for k, row in enumerate(values, 1)]
    if any(isinstance(block, list) for block in blocks):
        raise DataError(f"{source}: expected one sequence of Fractions, got a batch of them.")
    arrays = [np.asarray(block, dtype=np.float64) for block in blocks]
    if len({array.shape for array in arrays}) > 1:
        raise DataError(f"{source}: expected sequences of one length, got several lengths.")
    return np.stack(arrays)


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "an empty list"
    kinds = {dict: "an object", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


def _matrix(rows: list[object], source: str) -> Points:
    width = len(rows[0]) if isinstance(rows[0], list) else 0
    for k, row in enumerate(rows, 1):
        if not isinstance(row, list):
            raise DataError(f"{source}, row {k}: expected a list of numbers, got {_kind(row)}.")
        if len(row) != width or width == 0:
            raise DataError(
                f"{source}, row {k}: expected {width or 'some'} numbers as in row 1, "
                f"got {len(row)}."
            )
    exact = any(isinstance(value, str) for row in rows for value in _list(row))
    numbers = []
    for i, row in enumerate(rows, 1):
        where = f"{source}, row {i}, column"
        cells = enumerate(_list(row), 1)
        numbers.append([_json_number(value, exact, f"{where} {j}") for j, value in cells])
    if exact:
        return [[Fraction(value) for value in row] for row in numbers]
    return np.array(numbers, dtype=np.float64)


def _list(row: object) -> list[object]:
    return row if isinstance(row, list) else [row]


def _json_number(value: object, exact: bool, where: str) -> float | Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise DataError(f"{where}: expected a number, got {_kind(value)}.")
    try:
        if isinstance(value, str):
            return exact_number(value)
        finite = np.isfinite(float(value))
    except ValueError as error:
        raise DataError(f"{where}: expected a number, but {value!r} {error}.") from None
    except OverflowError:
        finite = False
    if not finite:
        raise DataError(f"{where}: expected a finite number, got {str(value)[:40]}.")
    return Fraction(value) if exact else float(value)
