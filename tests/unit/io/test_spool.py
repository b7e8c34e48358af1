"""Rows in memory and rows in files hold the same numbers."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardmax._errors import OutputError
from hardmax.io import spool
from hardmax.io.spool import Spool, blank


@given(sizes=st.lists(st.integers(0, 40), max_size=12), limit=st.sampled_from([1, 64, 10**6]))
def test_a_row_is_its_parts_one_after_the_other(sizes, limit):
    before, spool._LIMIT = spool._LIMIT, limit
    try:
        row, parts = Spool(np.int32), [np.arange(n, dtype=np.int32) for n in sizes]
        for part in parts:
            row.add(part)
        assert np.array_equal(row.done(), np.concatenate([np.zeros(0, np.int32), *parts]))
        row.add(np.array([7, 8]))
        assert row.done().tolist() == [7, 8]  # it begins anew
    finally:
        spool._LIMIT = before


@pytest.mark.parametrize("limit", [1, 10**6])
def test_a_blank_row_can_be_filled_and_read(monkeypatch, limit):
    monkeypatch.setattr(spool, "_LIMIT", limit)
    row = blank(1000, np.int64)
    row[:] = np.arange(1000)
    assert row.dtype == np.int64
    assert type(row) is np.ndarray
    assert row.sum() == 499500


def test_large_rows_leave_no_file_behind(monkeypatch, tmp_path):
    monkeypatch.setattr(spool, "_LIMIT", 1)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    row, whole = Spool(np.float64), blank(100, np.float64)
    row.add(np.ones(100))
    kept = row.done()
    assert list(tmp_path.iterdir()) == []
    assert kept.sum() == 100
    whole[:] = 1


def test_no_room_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(spool, "_LIMIT", 1)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(OutputError, match="no room for temporary files"):
        blank(10, np.int32)
    with pytest.raises(OutputError, match="no room for temporary files"):
        Spool(np.int32).add(np.ones(10))


@pytest.mark.parametrize("size", [1 << 60])
def test_more_than_the_disk_holds_is_one_line(size):
    if hasattr(os, "posix_fallocate"):
        with pytest.raises(OutputError, match="TMPDIR"):
            blank(size, np.int8)
