"""Tables of results as CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from hardmax._errors import InputError, MissingExtraError
from hardmax.io.read import PathLike
from hardmax.io.write import write_text, write_with

__all__ = ["columns_of", "write_columns"]


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The columns of rows, in the order of their first appearance; None where a row has none."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: [row.get(name) for row in rows] for name in names}


def write_columns(
    path: PathLike, columns: Mapping[str, Sequence[Any]], *, force: bool = False
) -> Path:
    """Write columns of one length as .csv or .parquet, whole or not at all.

    Raises
    ------
    InputError
        For another ending.
    MissingExtraError
        For Parquet without pyarrow.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending == ".csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        return write_text(path, text.getvalue(), force=force)
    if ending != ".parquet":
        raise InputError(f"{path}: expected a file that ends in .csv or .parquet, got {ending!r}.")
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtraError("pyarrow", "cluster") from None
    made = arrow.table({name: _one_kind(values) for name, values in columns.items()})
    return write_with(path, lambda file: parquet.write_table(made, file), force=force)


def _one_kind(values: Sequence[Any]) -> list[Any]:
    """Values of one type, as Parquet needs them: numbers, or truths, or else texts."""
    kinds = {type(v) for v in values if v is not None}
    if len(kinds) <= 1:
        return list(values)
    if kinds <= {int, float}:
        return [None if v is None else float(v) for v in values]
    return [None if v is None else str(v) for v in values]
