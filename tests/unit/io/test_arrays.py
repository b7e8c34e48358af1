"""JSON and NumPy files: what is read, and what is refused in one line."""

from __future__ import annotations

import io as stdio
import os
import pickle
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hardmax import io
from hardmax._errors import DataError


def _file(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _refused(path: Path) -> str:
    """The line that says why a file is not read."""
    with pytest.raises(DataError, match=re.escape(path.name)) as caught:
        io.read_table(path)
    return str(caught.value)


def _outcome(read: Callable[[], object]) -> object:
    """What was read, or the line of the refusal."""
    try:
        return read()
    except DataError as error:
        return str(error)


def test_json_numbers_written_as_text_are_exact(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.json", '{"points": [["1/3", 0.5], ["0.1", 2]], "names": ["a", "b"]}')
    table = io.read_table(path)
    assert table.points == [[Fraction(1, 3), Fraction(1, 2)], [Fraction(1, 10), Fraction(2)]]
    assert table.names == ("a", "b")


def test_json_settings_are_kept(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.json", '{"z": [[1, 2]], "A": [[1, 0], [0, 2]], "alpha": "1/2"}')
    table = io.read_table(path)
    assert table.points.tolist() == [[1, 2]]
    assert dict(table.settings) == {"A": [[1, 0], [0, 2]], "alpha": "1/2"}


def test_a_mask_is_read_and_padding_may_hold_anything(tmp_path: Path) -> None:
    z, mask = np.array([[1.0, 2.0], [np.nan, np.inf]]), np.array([True, False])
    np.savez(tmp_path / "a.npz", z=z, mask=mask, alpha=0.5)
    table = io.read_table(tmp_path / "a.npz")
    assert table.settings["mask"].tolist() == [True, False]
    assert float(table.settings["alpha"]) == 0.5
    np.savez(tmp_path / "b.npz", z=z, mask=~mask)
    assert "row 2, column 1" in _refused(tmp_path / "b.npz")
    read = io.read_table(_file(tmp_path, "a.json", '{"z": [["1/3"], [0]], "mask": [true, false]}'))
    assert read.settings["mask"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("mask", "got"),
    [
        ("[1, 0]", "got int64 of shape (2,)"),
        ("[true]", "got bool of shape (1,)"),
        ('"yes"', "of shape ()"),
        ("[[true], [true, false]]", "got rows of different lengths"),
    ],
)
def test_a_mask_has_one_flag_per_token(mask: str, got: str, tmp_path: Path) -> None:
    text = _refused(_file(tmp_path, "a.json", f'{{"z": [[1, 2], [3, 4]], "mask": {mask}}}'))
    assert "expected `mask` as true or false per token, of shape (2,)" in text
    assert got in text


def test_json_lists_of_one_two_and_three_levels(tmp_path: Path) -> None:
    for text, shape in (
        ("[1, 2]", (2, 1)),
        ("[[1, 2]]", (1, 2)),
        ("[[[1, 2]], [[3, 4]]]", (2, 1, 2)),
    ):
        assert io.read_array(_file(tmp_path, "a.json", text)).shape == shape


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected JSON, got an empty file"),
        ("[[1, 2], [3", "line 1, column 12: expected JSON"),
        ("[[1, NaN]]", "expected finite numbers, got NaN"),
        ("[[1, -Infinity]]", "expected finite numbers, got -Infinity"),
        ("[[1, 1e999]]", "row 1, column 2: expected a finite number, got inf"),
        ("[[1, 2], [3]]", "row 2: expected 2 numbers as in row 1, got 1"),
        ("[[1, 2], 3]", "row 2: expected a list of numbers, got a number"),
        ("[1, [2]]", "row 1: expected a list of numbers, got a number"),
        ("[[]]", "row 1: expected some numbers as in row 1, got 0"),
        ("[]", "expected a list of rows of numbers, got an empty list"),
        ("3", "expected a list of rows of numbers, got a number"),
        ("null", "expected a list of rows of numbers, got null"),
        ('[["a", 1]]', "row 1, column 1: expected a number, but 'a' is not a number"),
        ("[[true, 1]]", "row 1, column 1: expected a number, got true or false"),
        ("[[null, 1]]", "row 1, column 1: expected a number, got null"),
        ("[[{}, 1]]", "row 1, column 1: expected a number, got an object"),
        ('{"x": 1}', "got keys 'x'"),
        ('{"points": [[1, 2]], "names": ["a", "b"]}', "expected 1 `names`, one per token"),
        ("[[[1, 2]], [[3, 4], [5, 6]]]", "expected sequences of one length"),
        ('[[["1/2"]]]', "expected one sequence of Fractions, got a batch"),
        ("[[1" + "0" * 400 + "]]", "row 1, column 1: expected a finite number"),
        ("[[1" + "0" * 5000 + "]]", "expected JSON, got data beyond its limits"),
        ("[" * 100_000, "expected JSON"),
    ],
)
def test_bad_json_is_refused_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        io.read_table(_file(tmp_path, "a.json", text))
    assert "\n" not in str(caught.value)


def _npy(array: np.ndarray) -> bytes:
    buffer = stdio.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i4", "u1", ">f8", ">f4", "g"])
def test_npy_of_any_real_kind_is_read(tmp_path: Path, dtype: str) -> None:
    z = np.array([[1, 2], [3, 4]], dtype=dtype)
    read = io.read_array(_file(tmp_path, "a.npy", _npy(z)))
    assert read.dtype == (np.float32 if dtype.endswith("f4") else np.float64)
    assert read.tolist() == [[1, 2], [3, 4]]


def test_axes_of_a_npy_file_decide_tokens_and_batches(tmp_path: Path) -> None:
    for shape, expected in (((5,), (5, 1)), ((5, 2), (5, 2)), ((3, 5, 2), (3, 5, 2))):
        assert io.read_array(_file(tmp_path, "a.npy", _npy(np.ones(shape)))).shape == expected


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array(1.0), "expected 1, 2 or 3 axes for tokens, got 0"),
        (np.ones((1, 1, 1, 1)), "expected 1, 2 or 3 axes for tokens, got 4"),
        (np.ones((0, 2)), "expected at least one number, got shape (0, 2)"),
        (np.ones((2, 0)), "expected at least one number, got shape (2, 0)"),
        (np.array([[1, np.nan]]), "row 1, column 2: expected a finite number, got nan"),
        (np.array([1, -np.inf]), "row 2: expected a finite number, got -inf"),
        (np.array([[[1.0, np.inf]]]), "sequence 1, row 1, column 2: expected a finite number"),
        (np.array([[1j]]), "expected real numbers for tokens, got complex128"),
        (np.array([["a"]]), "expected real numbers for tokens, got <U1"),
        (np.array([[True]]), "expected real numbers for tokens, got bool"),
        (np.array([[None, 1]]), "got Python objects, which are never loaded"),
    ],
)
def test_npy_that_holds_no_tokens_is_refused(
    tmp_path: Path, array: np.ndarray, message: str
) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        io.read_table(_file(tmp_path, "a.npy", _npy(array)))


def test_every_truncation_of_a_npy_or_npz_file_is_refused(tmp_path: Path) -> None:
    buffer = stdio.BytesIO()
    np.savez_compressed(buffer, z=np.arange(40.0).reshape(20, 2))
    for name, data in (("a.npy", _npy(np.ones((4, 2)))), ("a.npz", buffer.getvalue())):
        for size in range(0, len(data), 7):
            with pytest.raises(DataError, match=re.escape(name)):
                io.read_table(_file(tmp_path, name, data[:size]))


def test_flipped_bytes_of_a_npz_file_are_refused_or_harmless(tmp_path: Path) -> None:
    buffer = stdio.BytesIO()
    np.savez_compressed(buffer, z=np.arange(40.0).reshape(20, 2))
    data = buffer.getvalue()
    refused = 0
    for place in range(0, len(data), 5):
        damaged = data[:place] + bytes([data[place] ^ 0x5A]) + data[place + 1 :]
        path = _file(tmp_path, "a.npz", damaged)
        outcome = _outcome(lambda path=path: io.read_array(path))
        if isinstance(outcome, str):
            refused += 1
            assert "\n" not in outcome
        else:
            assert np.array_equal(outcome, np.arange(40.0).reshape(20, 2))
    assert refused > 10


def test_a_header_that_promises_more_than_the_file_is_refused(tmp_path: Path) -> None:
    data = _npy(np.ones((4, 2))).replace(b"(4, 2), }         ", b"(4, 2000000000), }")
    assert b"2000000000" in data
    with pytest.raises(DataError, match="damaged"):
        io.read_table(_file(tmp_path, "a.npy", data))


class _Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("trapped",)


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_pickles_are_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = _file(tmp_path, name, pickle.dumps(_Trap()))
    with pytest.raises(DataError, match="Python objects, which are never loaded"):
        io.read_table(path)
    np.save(tmp_path / "b.npy", np.array([_Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="Python objects, which are never loaded"):
        io.read_table(tmp_path / "b.npy")
    assert not (tmp_path / "trapped").exists()


def test_npz_gives_its_only_array_or_the_one_with_a_known_name(tmp_path: Path) -> None:
    one, two = np.ones((2, 2)), np.zeros((3, 2))
    np.savez(tmp_path / "only.npz", anything=one)
    np.savez(tmp_path / "known.npz", other=one, points=two)
    np.savez(tmp_path / "unknown.npz", p=one, q=two)
    assert io.read_array(tmp_path / "only.npz").shape == (2, 2)
    assert io.read_array(tmp_path / "known.npz").shape == (3, 2)
    with pytest.raises(DataError, match="expected an array 'tokens' or 'z' or 'points', got 'p'"):
        io.read_array(tmp_path / "unknown.npz")


def test_an_archive_named_npy_is_refused_and_an_array_named_npz_is_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", z=np.ones((2, 2)))
    (tmp_path / "a.npz").rename(tmp_path / "a.npy")
    with pytest.raises(DataError, match=r"expected one array, got an archive. Name it .npz"):
        io.read_array(tmp_path / "a.npy")
    assert io.read_array(_file(tmp_path, "b.npz", _npy(np.ones((2, 3))))).shape == (2, 3)


def test_score_matrix_is_one_array_or_a_pair(tmp_path: Path) -> None:
    u, v = np.ones((1, 2)), np.zeros((1, 2))
    np.savez(tmp_path / "a.npz", U=u, V=v)
    _file(tmp_path, "a.json", '{"U": [["1/2", 0]], "V": [[1, 0]]}')
    _file(tmp_path, "b.json", '{"A": [[2, 0], [0, 1]], "points": [[1, 1]]}')
    _file(tmp_path, "a.csv", "2,0\n0,1\n")
    first, second = io.read_matrix(tmp_path / "a.npz")
    assert (first.tolist(), second.tolist()) == ([[1, 1]], [[0, 0]])
    assert io.read_matrix(tmp_path / "a.json")[0] == [[Fraction(1, 2), Fraction(0)]]
    assert io.read_matrix(tmp_path / "b.json").tolist() == [[2, 0], [0, 1]]
    assert io.read_matrix(tmp_path / "a.csv").tolist() == [[2, 0], [0, 1]]
