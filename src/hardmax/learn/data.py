"""Labelled texts: streamed from files, reported on, and the review collections.

Reading runs no code and writes nothing; archives are read where they lie.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np

from hardmax._errors import DataError, InputError
from hardmax.learn._fetch_imdb import Fetched, fetch_imdb
from hardmax.learn._read_bytes import check_encoding, damage, shown
from hardmax.learn._read_columns import (
    Column,
    Columns,
    Label,
    as_label,
    label_kind,
    label_text,
    positive_label,
)
from hardmax.learn._read_folder import FolderReader
from hardmax.learn._read_open import Reader, open_reader
from hardmax.learn._read_report import FEW, ClassCount, Lengths, Problem, TextReport
from hardmax.learn._read_tally import Digests, Tally, digests_of
from hardmax.learn.sources import cache_folder, corpus, imdb

__all__ = [
    "ClassCount",
    "Columns",
    "Fetched",
    "Label",
    "Lengths",
    "Overlap",
    "Problem",
    "TextReport",
    "TextSource",
    "as_label",
    "cache_folder",
    "check_encoding",
    "corpus",
    "fetch_imdb",
    "imdb",
    "label_kind",
    "label_text",
    "overlap",
    "positive_label",
    "read_texts",
]

Batch: TypeAlias = tuple[list[str], list[Label | None]]
_SAMPLE = 1000
_BATCH = 1024


class TextSource:
    """Texts and labels of a file, read batch by batch, as often as wanted.

    Made by `read_texts`.  Iterating gives pairs of lists (texts, labels).
    A pass that reaches the end leaves its counts in `report`.

    Attributes
    ----------
    name, format
        The source as given, and what it is read as.
    columns
        The columns and which of them were guessed; None for folders.
    """

    def __init__(
        self, name: str, reader: Reader, *, labelled: bool, classes: Sequence[Label] | None
    ) -> None:
        self.name, self.format, self.columns = name, reader.format, reader.columns
        self._reader, self._labelled = reader, labelled
        self._classes = None if classes is None else tuple(classes)
        self._kind = self._guess_kind()
        self._report: TextReport | None = None
        self._tally: Tally | None = None

    def _guess_kind(self) -> type[int] | type[str]:
        """Labels are numbers when the first ones (or the expected ones) all are."""
        if self._classes is not None:
            return int if all(isinstance(label, int) for label in self._classes) else str
        if isinstance(self._reader, FolderReader):
            return label_kind(self._reader.labels)
        if not self._labelled:
            return str
        first = islice(self._reader.rows(lambda kind, place: None), _SAMPLE)
        texts = [label_text(label) for _, _, label in first]
        return label_kind([text for text in texts if text is not None])

    def batches(self, size: int = _BATCH) -> Iterator[Batch]:
        """Lists of at most `size` texts and their labels; labels are None if not read.

        Rows with a problem are skipped and counted; see `report`.

        Raises
        ------
        DataError
            If the file is damaged, or no row of it can be used.
        """
        if size < 1:
            raise InputError(f"`size` must be at least 1; got {size}.")
        tally = Tally(
            self.name,
            labelled=self._labelled,
            kind=self._kind,
            allowed=self._classes,
            named=isinstance(self._reader, FolderReader),
        )
        texts: list[str] = []
        labels: list[Label | None] = []
        for place, text, label in self._reader.rows(tally.bad):
            taken = tally.take(text, label, place)
            if taken is not None:
                texts.append(taken[0])
                labels.append(taken[1])
            if len(texts) == size:
                yield texts, labels
                texts, labels = [], []
        if texts:
            yield texts, labels
        self._finish(tally)

    def _finish(self, tally: Tally) -> None:
        said = self.columns.statement if self.columns else "label from the folder"
        report = tally.report(self.format, said, self._reader.notes)
        if report.used == 0:
            found = ", ".join(f"{p.count} {p.kind} ({p.rows[0]})" for p in report.problems)
            raise DataError(
                f"{self.name}: expected rows with a text{' and a label' * self._labelled}, got "
                f"none in {report.rows} rows{': ' + found if found else ''}."
                + " Name another: encoding=, or --encoding in a command, such as latin-1."
                * bool(report.problem("encoding"))
            )
        self._report, self._tally = report, tally

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def load(self) -> tuple[list[str], list[Label | None]]:
        """All texts and labels, in the order of the file."""
        texts: list[str] = []
        labels: list[Label | None] = []
        for some_texts, some_labels in self.batches():
            texts += some_texts
            labels += some_labels
        return texts, labels

    @property
    def report(self) -> TextReport:
        """The counts of the last whole pass; makes one when there was none."""
        if self._report is None:
            for _ in self.batches():
                pass
        if self._report is None:
            raise DataError(f"{self.name}: changed while it was read. Read it again.")
        return self._report

    def _rows(self) -> tuple[Digests, Tally]:
        """The digests of all texts, and the record that knows their places."""
        if self._tally is None:
            self._report = None
        _ = self.report
        if self._tally is None:
            raise DataError(f"{self.name}: changed while it was read. Read it again.")
        return self._tally.digests, self._tally


def read_texts(
    source: str | os.PathLike[str],
    *,
    text: Column | None = None,
    label: Column | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    part: str | None = None,
    prefer: str | None = None,
    classes: Sequence[Label] | None = None,
    labelled: bool = True,
) -> TextSource:
    """Labelled texts of a file, a folder or an archive, as a stream of batches.

    Parameters
    ----------
    source
        CSV, TSV, JSON lines or Parquet; any of them compressed (.gz, .xz,
        .bz2); a folder `<label>/<file>.txt`, such as the aclImdb layout; a
        .zip or .tar archive of one table or of such folders.
    text, label
        Names of the columns.  Left out, they are guessed from the names and
        the guess is stated in the report.  Numbers are positions from 0 in a
        file without a header line.
    delimiter
        Of a table; left out, the mark that splits the header most.
    encoding
        Of the text.  UTF-16 with a byte order mark is recognised.
    part
        Only what lies in a folder of that name or in the table of that name:
        "train" or "test".
    prefer
        The part to take where there is a part train and a part test, and
        `part` names none.
    classes
        The labels to expect; rows with others are skipped and counted.
    labelled
        False reads texts alone; every label is None.

    Returns
    -------
    TextSource
        Nothing but the head of the file has been read.

    Raises
    ------
    DataError
        If there is no such file or column, or the format is not known.
    MissingExtraError
        If a Parquet file is given and pyarrow is not installed.

    Notes
    -----
    Labels are numbers when all of the first thousand are whole numbers, and
    text otherwise.  Rows are named `file:line` for tables and JSON lines
    (the line on which the row begins, the header being line 1), `file:row`
    counted from 1 for Parquet, and by file name for folders.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> path = Path(folder.name) / "reviews.csv"
    >>> _ = path.write_text("review,stars\\nGood film,1\\n,0\\nDull film,0\\n")
    >>> source = read_texts(path)
    >>> for texts, labels in source.batches(256):
    ...     print(texts, labels)
    ['Good film', 'Dull film'] [1, 0]
    >>> [(p.kind, p.count, p.rows[0].rpartition(":")[2]) for p in source.report.problems]
    [('text empty', 1, '3')]
    >>> folder.cleanup()
    """
    path = Path(source)
    with damage(shown(path)):
        regular = path.is_dir() or path.is_file() or not path.exists()
    if not regular:
        raise DataError(f"{shown(path)}: expected a file that can be read twice, got a pipe.")
    reader = open_reader(
        path,
        text=text,
        label=label,
        delimiter=delimiter,
        encoding=encoding,
        part=part,
        prefer=prefer,
        labelled=labelled,
    )
    return TextSource(shown(path), reader, labelled=labelled, classes=classes)


@dataclass(frozen=True)
class Overlap:
    """Texts that two sources share.

    Parameters
    ----------
    texts
        Distinct texts in both.
    pairs
        The size of the intersection as multisets: a text three times in one
        and twice in the other counts twice.
    rows
        Rows of the second source whose text is in the first.
    places
        The first of these rows.
    """

    texts: int
    pairs: int
    rows: int
    places: tuple[str, ...]


def overlap(first: TextSource | Sequence[str], second: TextSource | Sequence[str]) -> Overlap:
    """Which texts of `second` are also in `first`; such rows leak across splits.

    Compares 64-bit digests of the exact texts: 8 bytes per row are held.
    """
    one, two = _digests(first), _digests(second)
    kinds, counts = np.unique(one, return_counts=True)
    others, more = np.unique(two, return_counts=True)
    _, here, there = np.intersect1d(kinds, others, assume_unique=True, return_indices=True)
    rows = np.flatnonzero(np.isin(two, kinds))
    if isinstance(second, TextSource):
        tally = second._rows()[1]
        places = tuple(tally.where(int(k)) for k in rows[:FEW])
    else:
        places = tuple(f"row {int(k) + 1}" for k in rows[:FEW])
    pairs = int(np.minimum(counts[here], more[there]).sum())
    return Overlap(len(here), pairs, len(rows), places)


def _digests(texts: TextSource | Sequence[str]) -> Digests:
    return texts._rows()[0] if isinstance(texts, TextSource) else digests_of(texts)
