"""A journal: entries survive crashes whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hardmax._errors import DataError, OutputError
from hardmax.io.journal import Journal

HEAD = {"format": 1, "seed": 3}


def written(path: Path, count: int = 5) -> list[dict[str, int]]:
    entries = [{"draw": k, "value": k * k} for k in range(count)]
    with Journal(path, HEAD) as journal:
        journal.append(entries[:2])
        journal.append(entries[2:])
    return entries


def test_entries_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "j"
    entries = written(path)
    with Journal(path, HEAD) as again:
        assert again.entries == entries
        again.append([{"draw": 5}])
    with Journal(path, HEAD) as last:
        assert last.entries == [*entries, {"draw": 5}]
        assert last.damaged == 0


def test_a_line_cut_at_any_byte_is_dropped_and_the_next_entry_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "j"
    entries = written(path, 3)
    data = path.read_bytes()
    last = len(data) - len(data.splitlines(keepends=True)[-1])
    for cut in range(last + 1, len(data)):
        path.write_bytes(data[:cut])
        with Journal(path, HEAD) as journal:
            assert journal.entries == entries[:2]
            journal.append([{"draw": 9}])
        with Journal(path, HEAD) as journal:
            assert journal.entries == [*entries[:2], {"draw": 9}]
            assert journal.damaged == 0


def test_a_damaged_line_in_the_middle_is_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "j"
    entries = written(path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"value":1', b'"value":7')
    path.write_bytes(b"".join(lines))
    with Journal(path, HEAD) as journal:
        assert journal.entries == [entries[0], *entries[2:]]
        assert journal.damaged == 1


def test_another_header_is_refused_with_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path)
    with pytest.raises(DataError, match="was begun with seed = 3, and now it is 4"):
        Journal(path, {**HEAD, "seed": 4})
    (tmp_path / "text").write_text("hello\nworld\n")
    with pytest.raises(DataError, match="expected a journal of results, got another file"):
        Journal(tmp_path / "text", HEAD)
    with pytest.raises(OutputError, match="cannot be written"):
        Journal(tmp_path, HEAD)


def test_only_one_process_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "j"
    code = (
        "import sys\nfrom hardmax.io.journal import Journal\n"
        f"Journal({str(path)!r}, {HEAD!r})\nprint('held', flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(OutputError, match="another process is writing it"):
            Journal(path, HEAD)
        other.communicate("")
    with Journal(path, HEAD) as journal:
        assert journal.entries == []


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> int:
        raise OSError(28, "No space left on device")

    with Journal(tmp_path / "j", HEAD) as journal:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(OutputError, match="No space left on device"):
            journal.append([{"draw": 0}])
