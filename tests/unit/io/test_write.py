"""Writing: whole or not at all, and never over another file unasked."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax import io
from hardmax._errors import InputError, OutputError


def test_written_files_are_whole_and_leave_nothing_else(tmp_path: Path) -> None:
    io.write_text(tmp_path / "a.txt", "héllo\n")
    io.write_bytes(tmp_path / "a.bin", b"\x00\x01")
    io.write_npz(tmp_path / "a.npz", {"z": [[1.0]], "names": ["x"]})
    io.write_json(tmp_path / "a.json", {"z": np.array([[1.0, np.nan]]), "p": Fraction(1, 3)})
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "héllo\n"
    assert json.loads((tmp_path / "a.json").read_text()) == {"z": [[1.0, None]], "p": "1/3"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.bin", "a.json", "a.npz", "a.txt"]


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path) -> None:
    path = io.write_text(tmp_path / "a.txt", "old")
    with pytest.raises(OutputError, match=r"a.txt exists. Give another name or --force."):
        io.write_text(path, "new")
    assert path.read_text() == "old"
    io.write_text(path, "new", force=True)
    assert path.read_text() == "new"


def test_a_failing_writer_leaves_the_old_file_and_no_temporary_one(tmp_path: Path) -> None:
    path = io.write_text(tmp_path / "a.txt", "old")

    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        io.write_with(path, fail, force=True)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_full_disk_is_an_output_error(tmp_path: Path) -> None:
    def full(file: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="cannot be written: No space left on device"):
        io.write_with(tmp_path / "a.txt", full)
    assert not list(tmp_path.iterdir())


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"the folder .*nowhere does not exist. Create it first"):
        io.write_text(tmp_path / "nowhere" / "a.txt", "x")
    with pytest.raises(OutputError, match="expected the name of a file, got a folder"):
        io.write_text(tmp_path, "x", force=True)
    with pytest.raises(OutputError, match="expected a regular file"):
        io.write_text(os.devnull, "x", force=True)
    with pytest.raises(OutputError, match="cannot be written: File name too long"):
        io.write_text(tmp_path / ("x" * 300), "x")
    with pytest.raises(OutputError, match=r"cannot be written: .*null byte"):
        io.write_text(tmp_path / "a\0b", "x")


def test_a_folder_without_permission_is_an_output_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*args: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(OutputError, match="cannot be written: Permission denied"):
        io.check_target(tmp_path / "a.txt")


def test_writing_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    target = io.write_text(tmp_path / "a.txt", "old")
    link = tmp_path / "b.txt"
    link.symlink_to(target)
    io.write_text(link, "new", force=True)
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_new_files_have_the_permissions_of_new_files(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    io.write_text(tmp_path / "a.txt", "x")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_plain_keeps_records_infinities_and_the_numbers_of_numpy() -> None:
    table = io.Table([[Fraction(1, 2)]], ("a",))
    assert io.plain(table)["points"] == [["1/2"]]
    assert io.plain({3: np.float32(0.5), "s": {2, 1}}) == {"3": 0.5, "s": [1, 2]}
    assert io.plain([-np.inf, np.int64(3), np.bool_(True)]) == ["-inf", 3, True]


def test_plain_refuses_what_json_cannot_hold() -> None:
    with pytest.raises(InputError, match="expected numbers, text, lists or mappings"):
        io.plain({"x": object()})
    with pytest.raises(InputError, match="`x` must be an array of numbers or text"):
        io.write_npz("never.npz", {"x": [None]})


@settings(deadline=None, max_examples=60)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=12,
    )
)
def test_dumps_is_json_of_the_same_data(data: object) -> None:
    assert json.loads(io.dumps(data)) == data
