"""Tables of text: every common layout, and refusals that name the place."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hardmax import io
from hardmax._errors import DataError
from hardmax.io.cells import exact_number, parse_table


def _file(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _outcome(read: Callable[[], object]) -> object:
    """What was read, or the line of the refusal."""
    try:
        return read()
    except DataError as error:
        return str(error)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "1,2\n-3,4.5\n"),
        ("a.csv", "x,y\n1,2\n-3,4.5\n"),
        ("a.csv", "1;2\n-3;4.5\n"),
        ("a.csv", "1\t2\n-3\t4.5\n"),
        ("a.tsv", "1\t2\n-3\t4.5\n"),
        ("a.txt", "  1   2\n -3 4.5\n"),
        ("a.csv", "\n1, 2\n\n-3, 4.5\n\n"),
        ("a.csv", "\ufeffx,y\n1,2\n-3,4.5"),
        ("a.csv", "1,2\r\n-3,4.5\r\n"),
        ("a.csv", "# written by a program\n# x y\n1,2\n-3,4.5\n"),
        ("a.csv", '"1","2"\n"-3","4.5"\n'),
        ("a.csv", "+1e0,.2E1\n-3.,4.5\n,\n"),
        ("A.CSV", "1,2\n-3,4.5\n"),
    ],
)
def test_every_common_way_to_write_a_table_gives_the_same_numbers(
    tmp_path: Path, name: str, text: str
) -> None:
    table = io.read_table(_file(tmp_path, name, text))
    assert np.array_equal(table.points, [[1, 2], [-3, 4.5]])
    assert table.names is None
    assert table.columns in (None, ("x", "y"))


@pytest.mark.parametrize(
    ("text", "names", "columns"),
    [
        ("good,1,2\nbad,3,4\n", ("good", "bad"), None),
        ("name,x,y\ngood,1,2\nbad,3,4\n", ("good", "bad"), ("x", "y")),
        (",x,y\n0,1,2\n1,3,4\n", ("0", "1"), ("x", "y")),
        ("Token,x,y\n7,1,2\nnan,3,4\n", ("7", "nan"), ("x", "y")),
        ('"a, b",1,2\n"c""d",3,4\n', ("a, b", 'c"d'), None),
        ("#,1,2\n#b,3,4\n", ("#", "#b"), None),
    ],
)
def test_first_column_of_names_is_returned_beside_the_numbers(
    tmp_path: Path, text: str, names: tuple[str, ...], columns: tuple[str, ...] | None
) -> None:
    table = io.read_table(_file(tmp_path, "a.csv", text))
    assert np.array_equal(table.points, [[1, 2], [3, 4]])
    assert table.names == names
    assert table.columns == columns


def test_one_column_is_tokens_with_one_coordinate(tmp_path: Path) -> None:
    assert io.read_array(_file(tmp_path, "a.csv", "x\n1\n2\n3\n")).tolist() == [[1], [2], [3]]
    assert io.read_array(_file(tmp_path, "b.csv", "5")).tolist() == [[5]]


def test_a_ratio_in_a_table_makes_every_number_exact(tmp_path: Path) -> None:
    table = io.read_table(_file(tmp_path, "a.csv", "x,y\n1/3,0.1\n-2 / 4,1e-2\n"))
    assert table.points == [[Fraction(1, 3), Fraction(1, 10)], [Fraction(-1, 2), Fraction(1, 100)]]
    np.testing.assert_array_equal(io.read_array(tmp_path / "a.csv"), [[1 / 3, 0.1], [-0.5, 0.01]])


def test_extreme_doubles_survive(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.csv", "1e300,5e-324\n-1.7976931348623157e308,-0.0\n")
    assert io.read_array(path).tolist() == [[1e300, 5e-324], [-1.7976931348623157e308, -0.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected one token per line, got an empty file"),
        ("\n \n", "expected one token per line, got an empty file"),
        ("x,y\n", "expected numbers below the header line, got no further line"),
        ("x,y\n1,2\n3\n", "line 3: expected 2 cells as in line 1, got 1"),
        ("1,2\n3,4\n5,6,7\n", "line 3: expected 2 cells as in line 1, got 3"),
        ("1,2\n3,abc\n", "line 2, column 2: expected a number, but 'abc' is not a number"),
        ("1,2\nabc,3\n5,6\n", "line 2, column 1: expected a number, but 'abc' is not a number"),
        ("# head\n\n1,2\n3,abc\n", "line 4, column 2: expected a number, but 'abc'"),
        ("a,1,2\nb,x,4\n", "line 2, column 2: expected a number, but 'x' is not a number"),
        ("1,2\nnan,3\n", "line 2, column 1: expected a number, but 'nan' is not a finite number"),
        ("1,2\n3,-Inf\n", "line 2, column 2: expected a number, but '-Inf' is not a finite"),
        ("1,2\n3,1e999\n", "line 2, column 2: expected a number, but '1e999' is not a finite"),
        ("1,2\n3,\n", "line 2, column 2: expected a number, got an empty cell"),
        ("1;2\n3;4,5\n", "line 2, column 2: '4,5' is not a number. Write decimals with a point"),
        ("1,2\n1_0,2\n", "line 2, column 1: expected a number, but '1_0' is not a number"),
        ("1/0,2\n", "line 1, column 1: expected a number, but '1/0' divides by zero"),
        ("1/2,1e-999999999\n", "column 2: expected a number, but '1e-999999999' is beyond"),
        ("1,2\n3," + "y" * 99 + "\n", "but '" + "y" * 37 + "...' is not a number"),
        ("1,2\n3," + "y" * 200_000 + "\n", "expected a table of numbers, got text"),
        ("1,2\n3,\x00\n", "line 2, column 2: expected a number, but '\\x00' is not a number"),
    ],
)
def test_bad_tables_are_refused_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    path = _file(tmp_path, "a.csv", text)
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        io.read_table(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_wrong_encoding_names_the_byte(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected UTF-8 text, got the byte 0xe9 at position 3"):
        io.read_table(_file(tmp_path, "a.csv", "caf\xe9,1\n".encode("latin-1")))
    with pytest.raises(DataError, match=r"got the byte 0xff at position 0. Save it as UTF-8"):
        io.read_table(_file(tmp_path, "b.csv", "1,2\n".encode("utf-16")))


def test_missing_file_folder_and_unknown_ending_say_so(tmp_path: Path) -> None:
    for name in ("a.csv", "a.npy", "a.npz", "a.json"):
        with pytest.raises(DataError, match=re.escape(f"{name}: no such file")):
            io.read_table(tmp_path / name)
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(DataError, match="expected a file, got a folder"):
        io.read_table(tmp_path / "d.csv")
    with pytest.raises(DataError, match=r"ends in one of .csv .tsv .* got '.xls'"):
        io.read_table(_file(tmp_path, "a.xls", "1"))
    with pytest.raises(DataError, match="no such file"):
        io.read_table(tmp_path / "nothing")


_MARKS = st.text(alphabet="\"',;\t \n\r#/.-+_e0123nainf\ufeffx", max_size=40)


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=40) | _MARKS)
@example('"')
@example('# only\n"",\n')
def test_any_text_is_a_table_or_one_line_of_refusal(text: str) -> None:
    outcome = _outcome(lambda: parse_table(text, "a.csv").points)
    if isinstance(outcome, str):
        assert "\n" not in outcome
        return
    points = np.array(outcome, dtype=np.float64)
    assert points.ndim == 2
    assert points.size
    assert np.isfinite(points).all()


@settings(deadline=None, max_examples=40)
@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    )
)
def test_written_and_read_doubles_are_equal_to_the_last_bit(points: np.ndarray) -> None:
    text = "\n".join(",".join(repr(x) for x in row) for row in points.tolist())
    assert np.array_equal(np.asarray(parse_table(text, "a").points), points)


def test_a_long_table_is_read_and_its_bad_cell_named(tmp_path: Path) -> None:
    block = "0.25,-1.5,3e-2\n" * 1000
    path = _file(tmp_path, "a.csv", "x,y,z\n" + block * 20)
    assert io.read_array(path).shape == (20_000, 3)
    path.write_text("x,y,z\n" + block * 20 + "1,2,oops\n")
    with pytest.raises(DataError, match=r"line 20002, column 3: .*'oops'"):
        io.read_array(path)


@pytest.mark.parametrize("text", ["0x10", "", "1e", "1/", "/2", "one"])
def test_exact_number_refuses_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        exact_number(text)
