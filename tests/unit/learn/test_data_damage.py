"""Damaged, hostile and random files: one DataError at most, nothing written, no code run."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import lzma
import os
import random
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardmax._errors import DataError, MissingExtraError
from hardmax.learn.data import Label, read_texts

TEXTS = {
    f"{label}/{k}.txt": f"text {k} of {label} " * 9 for label in ("pos", "neg") for k in range(9)
}
ENDINGS = ["csv", "tsv", "jsonl", "parquet", "zip", "tar", "tar.gz", "tar.xz", "csv.gz", "csv.xz"]


def packed(kind: str) -> bytes:
    """An archive of the texts."""
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in TEXTS.items():
                archive.writestr(name, text)
        return out.getvalue()
    with tarfile.open(fileobj=out, mode=f"w:{kind}") as archive:
        for name, text in TEXTS.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


WATCHED = ("pickle.find_class", "subprocess.Popen", "os.system", "socket.connect", "os.mkdir")
deeds: list[str] = []
watching: list[bool] = []


def watch(event: str, args: tuple[object, ...]) -> None:
    """Note what a reader must not do: run code, write, connect."""
    if watching and event == "open" and "__pycache__" not in str(args[0]):
        flags = args[2] if isinstance(args[2], int) else 0
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            deeds.append(f"writes {args[0]}")
    elif watching and event in WATCHED:
        deeds.append(event)


sys.addaudithook(watch)


@contextmanager
def harmlessly() -> Iterator[None]:
    """No file is written and no code is run inside."""
    deeds.clear()
    watching.append(True)
    try:
        yield
    finally:
        watching.clear()
    assert deeds == []


def load(path: Path) -> tuple[list[str], list[Label | None]]:
    """All texts and labels of a file, read without a trace."""
    with harmlessly():
        return read_texts(path).load()


def outcome(path: Path) -> list[str] | None:
    """The texts, or None where the file is refused; any other exception fails the test."""
    try:
        return load(path)[0]
    except DataError as error:
        message = str(error)
    except MissingExtraError as error:
        message = str(error)
    assert "\n" not in message
    return None


def test_the_watch_sees_a_file_that_is_written(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="writes"), harmlessly():
        (tmp_path / "a").write_text("x")


@pytest.mark.parametrize("kind", ["zip", "gz", "xz"])
def test_every_truncated_archive_is_refused(tmp_path: Path, kind: str) -> None:
    whole = packed(kind)
    path = tmp_path / ("a.zip" if kind == "zip" else f"a.tar.{kind}")
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        assert outcome(path) is None, size
    path.write_bytes(whole)
    assert outcome(path) == list(TEXTS.values())


def test_a_truncated_tar_is_refused_until_its_closing_zeros(tmp_path: Path) -> None:
    whole = packed("")
    filled = len(whole.rstrip(b"\0"))
    path = tmp_path / "a.tar"
    for size in range(0, filled, 411):
        path.write_bytes(whole[:size])
        assert outcome(path) is None, size


def test_a_damaged_header_in_the_middle_of_a_tar_is_refused(tmp_path: Path) -> None:
    whole = bytearray(packed(""))
    whole[512 * 8 + 150] ^= 0xFF
    (tmp_path / "a.tar").write_bytes(whole)
    with pytest.raises(DataError, match="damaged or cut off"):
        read_texts(tmp_path / "a.tar").load()


@pytest.mark.parametrize("kind", ["zip", "gz", "xz"])
def test_flipped_bits_never_alter_a_text(tmp_path: Path, kind: str) -> None:
    whole, dice = packed(kind), random.Random(0)
    path = tmp_path / ("a.zip" if kind == "zip" else f"a.tar.{kind}")
    for _ in range(150):
        data = bytearray(whole)
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        path.write_bytes(data)
        assert set(outcome(path) or ()) <= set(TEXTS.values())


@pytest.mark.parametrize("ending", ENDINGS)
def test_random_bytes_are_refused_or_read(tmp_path: Path, ending: str) -> None:
    dice = random.Random(ending)
    path = tmp_path / f"a.{ending}"
    for _ in range(40):
        path.write_bytes(dice.randbytes(dice.randrange(300)))
        assert outcome(path) is None or "csv" in ending or ending == "tsv"


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "csv.gz", "csv.xz"])
def test_random_bytes_below_a_good_head_are_refused_or_read(tmp_path: Path, ending: str) -> None:
    dice = random.Random(ending)
    mark = "\t" if ending == "tsv" else ","
    head = f"text{mark}label\ngood{mark}1\nbad{mark}0\n".encode()
    if ending == "jsonl":
        head = b'{"text": "good", "label": 1}\n{"text": "bad", "label": 0}\n'
    squeeze = {"csv.gz": gzip.compress, "csv.xz": lzma.compress}.get(ending, bytes)
    path = tmp_path / f"a.{ending}"
    for _ in range(40):
        path.write_bytes(squeeze(head + dice.randbytes(dice.randrange(2000))))
        texts = outcome(path)
        assert texts is not None
        assert texts[:2] == ["good", "bad"]


@given(st.text(st.sampled_from('a ,;\t"\r\n\0{}[]:é\ud800'), max_size=60))
def test_any_table_of_awkward_characters_keeps_its_good_rows(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("t") / "a.csv"
    path.write_bytes(b"text,label\nfirst,1\n" + text.encode("utf-8", "surrogatepass"))
    source = read_texts(path)
    texts, labels = source.load()
    report = source.report
    assert (texts[0], labels[0]) in (("first", 1), ("first", "1"))
    assert len(texts) == report.used
    assert report.rows == report.used + report.skipped


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_any_json_value_as_text_or_label_is_read_or_counted(
    tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    path = tmp_path_factory.mktemp("t") / "a.jsonl"
    rows = [
        {"text": "a", "label": "x"},
        {"text": value, "label": "x"},
        {"text": "b", "label": value},
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    source = read_texts(path)
    assert source.load()[0][0] == "a"
    assert source.report.rows == 3


@pytest.mark.parametrize("kind", ["zip", "gz"])
def test_names_that_climb_out_of_an_archive_become_no_files(tmp_path: Path, kind: str) -> None:
    names = ["../../evil/pos/1.txt", "/tmp/evil/neg/2.txt", "pos/x\\..\\3.txt"]
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w") as archive:
            for name in names:
                archive.writestr(name, "text")
    else:
        with tarfile.open(fileobj=out, mode="w:gz") as archive:
            for name in names:
                info = tarfile.TarInfo(name)
                info.size = 4
                archive.addfile(info, io.BytesIO(b"text"))
    path = tmp_path / ("a.zip" if kind == "zip" else "a.tar.gz")
    path.write_bytes(out.getvalue())
    assert sorted(map(str, load(path)[1])) == ["neg", "pos", "pos"]
    assert os.listdir(tmp_path) == [path.name]


def test_links_and_devices_in_an_archive_are_not_followed(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind in [("pos/l.txt", tarfile.SYMTYPE), ("pos/d.txt", tarfile.CHRTYPE)]:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/hostname"
            archive.addfile(info)
        for label in ("pos", "neg"):
            info = tarfile.TarInfo(f"{label}/1.txt")
            info.size = 4
            archive.addfile(info, io.BytesIO(b"text"))
    (tmp_path / "a.tar").write_bytes(out.getvalue())
    assert load(tmp_path / "a.tar") == (["text", "text"], ["pos", "neg"])


def test_a_member_that_unpacks_to_gigabytes_is_not_held(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pos/1.txt", b"x" * (1 << 24) + b"y")
        archive.writestr("pos/2.txt", b"short")
        archive.writestr("neg/3.txt", b"short")
    report = read_texts(tmp_path / "a.zip").report
    problem = report.problem("text too long")
    assert problem is not None
    assert problem.rows[0].endswith("a.zip:pos/1.txt")
    assert report.used == 2


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"text,label\n" + b"x" * ((1 << 24) + 1))
    with pytest.raises(DataError, match=r":2: expected lines of at most"):
        read_texts(tmp_path / "a.csv").load()


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    data = bytearray(packed("zip"))
    for signature, flags in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        at = data.find(signature)
        while at >= 0:
            data[at + flags] |= 1
            at = data.find(signature, at + 4)
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(DataError, match="is encrypted"):
        read_texts(tmp_path / "a.zip").load()


def test_parquet_is_read_where_pyarrow_is_installed_and_named_where_not(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    if importlib.util.find_spec("pyarrow") is None:
        path.write_bytes(b"PAR1")
        with pytest.raises(MissingExtraError, match=r"hardmax\[text\]"):
            read_texts(path)
        return
    pa = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    texts = ["good", None, "bad", " ", "fine"] * 2000
    labels = [1, 0, 0, 1, None] * 2000
    columns = {"id": range(10_000), "review": texts, "label": labels}
    parquet.write_table(pa.table({k: list(v) for k, v in columns.items()}), path)
    source = read_texts(path)
    assert source.load() == (["good", "bad"] * 2000, [1, 0] * 2000)
    missing = source.report.problem("text missing")
    assert missing is not None
    assert missing.rows[0] == f"{path}:2"
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(path, "train.parquet")
    assert read_texts(tmp_path / "a.zip").load() == source.load()
    with pytest.raises(DataError, match="Did you mean 'review'"):
        read_texts(path, text="reviews")
    whole = path.read_bytes()
    for size in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:size])
        assert outcome(path) is None
    dice = random.Random(0)
    for _ in range(60):
        data = bytearray(whole)
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        path.write_bytes(data)
        outcome(path)
