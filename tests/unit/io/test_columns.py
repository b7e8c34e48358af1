"""Tables of results as files."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from hardmax._errors import InputError, MissingExtraError
from hardmax.io.columns import columns_of, write_columns

ROWS = [
    {"matrix": "spd", "n": 4, "share": 0.1, "good": True, "mixed": 1},
    {"matrix": "a,b", "n": 5, "share": None, "good": False, "mixed": 2.5, "late": "x"},
]


def test_rows_with_different_names_become_full_columns() -> None:
    columns = columns_of(ROWS)
    assert list(columns) == ["matrix", "n", "share", "good", "mixed", "late"]
    assert columns["late"] == [None, "x"]


def test_csv_and_parquet_hold_the_same_values(tmp_path: Path) -> None:
    columns = columns_of(ROWS)
    with write_columns(tmp_path / "t.csv", columns).open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == list(columns)
    assert rows[1] == ["spd", "4", "0.1", "True", "1", ""]
    assert rows[2] == ["a,b", "5", "", "False", "2.5", "x"]
    table = parquet.read_table(write_columns(tmp_path / "t.parquet", columns)).to_pydict()
    assert table == {**columns, "mixed": [1.0, 2.5]}


def test_values_of_several_kinds_become_texts_in_parquet(tmp_path: Path) -> None:
    path = write_columns(tmp_path / "t.parquet", {"x": [1, "a", None, True]})
    assert parquet.read_table(path).to_pydict() == {"x": ["1", "a", None, "True"]}


def test_other_endings_and_a_missing_package_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"ends in .csv or .parquet"):
        write_columns(tmp_path / "t.xls", {"x": [1]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"hardmax\[cluster\]"):
        write_columns(tmp_path / "t.parquet", {"x": [1]})
