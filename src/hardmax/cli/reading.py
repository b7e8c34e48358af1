"""Labelled texts in commands: the options that say how a file is read, and the reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from hardmax._errors import DataError, InputError
from hardmax.cli import text

__all__ = [
    "SHIPPED",
    "Delimiter",
    "Encoding",
    "Form",
    "LabelColumn",
    "Labelled",
    "Part",
    "TextColumn",
    "column_of",
    "delimiter_of",
    "load_classifier",
    "none_of",
    "notes_of",
    "read_batches",
    "read_labelled",
    "same_labels",
]

TextColumn = Annotated[
    str | None,
    typer.Option(
        "--text",
        metavar="NAME",
        help="The column of the texts, or its position (from 0) in a file without a header.",
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option("--label", metavar="NAME", help="The column of the labels, or its position."),
]
Labelled = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A .csv .tsv .jsonl .parquet file, a folder LABEL/FILE.txt, an archive of those; "
        "or imdb (after `hardmax data imdb`), or corpus (shipped).",
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(metavar="MARK", help="What separates cells; `tab` for a tab.")
]
Encoding = Annotated[
    str, typer.Option(metavar="NAME", help="Of the file: utf-8, latin-1, cp1252, ...")
]
Part = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only a folder or table of that name: train.")
]

SHIPPED = ("imdb", "corpus")


@dataclass(frozen=True)
class Form:
    """How a file of texts is read, as the options say."""

    text: str | None = None
    label: str | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    part: str | None = None

    def open(self, source: str, prefer: str | None = None, **more: Any) -> Any:
        """The texts of a source, as a stream; of two parts the preferred one."""
        from hardmax.learn import data

        return data.read_texts(
            source,
            text=column_of(self.text),
            label=column_of(self.label),
            delimiter=delimiter_of(self.delimiter),
            encoding=self.encoding,
            part=self.part,
            prefer=prefer,
            **more,
        )

    def shipped(self, source: str, usual: str) -> tuple[list[str], list[Any]] | None:
        """A part of the shipped or fetched reviews; None for any other source."""
        from hardmax.learn import data

        if source not in SHIPPED or Path(source).exists():
            return None
        part = self.part or usual
        if part not in ("train", "test"):
            raise InputError(f"--part {part}: {source} has the parts train and test. Give one.")
        found = data.imdb("official", part) if source == "imdb" else data.corpus(part)
        return list(found[0]), list(found[1])


def column_of(name: str | None) -> str | int | None:
    """A column as the library takes it: digits alone are a position."""
    return int(name) if name is not None and name.isascii() and name.isdigit() else name


def delimiter_of(mark: str | None) -> str | None:
    """A delimiter as the library takes it."""
    return {"tab": "\t", "\\t": "\t"}.get(mark, mark) if mark is not None else None


def read_batches(
    source: str, form: Form, first: bool = True, seen: Callable[[int], None] | None = None
) -> Iterator[tuple[list[str], list[Any]]]:
    """Texts and labels to learn from, lot after lot; says what is wrong with the file."""
    shipped = form.shipped(source, "train")
    if shipped is not None:
        yield shipped
        return
    found = form.open(source, "train")
    count = 0
    for texts, labels in found.batches():
        count += len(texts)
        if seen is not None:
            seen(count)
        yield texts, list(labels)
    for note in notes_of(source, found.report) if first else ():
        text.say(note, error=True)
    found.report.require_classes()


def read_labelled(
    source: str, usual: str, form: Form, classes: list[Any] | None = None
) -> tuple[list[str], list[Any], tuple[str, ...]]:
    """Texts, labels, and what there is to say about the file; of two parts the usual one.

    Rows with labels that are none of `classes` are left out and counted.
    """
    shipped = form.shipped(source, usual)
    if shipped is not None:
        return *shipped, ()
    found = form.open(source, usual, classes=_named(classes))
    try:
        texts, read = found.load()
    except DataError as error:
        if "label unknown" not in str(error):
            raise
        raise DataError(f"{error} {none_of(classes or [])}") from None
    if usual == "train":
        found.report.require_classes()
    return texts, list(read), tuple(notes_of(source, found.report))


def _named(classes: list[Any] | None) -> list[Any] | None:
    """Classes as a file spells them: whole numbers, else words."""
    from hardmax.learn.data import as_label, label_kind, label_text

    if classes is None:
        return None
    names = [label_text(c) or "" for c in classes]
    return [as_label(name, label_kind(names)) for name in names]


def none_of(classes: list[Any]) -> str:
    """What to say of labels that the model does not have."""
    return f"Labels must be among the model's classes ({text.listed([str(c) for c in classes])})."


def notes_of(source: str, report: Any) -> Iterator[str]:
    """What there is to say about a file that was read."""
    if report.columns:
        yield f"{source}: {report.columns}"
    for note in report.notes:
        yield f"{source}: {note}"
    for p in report.problems:
        skipped = "; left out" * p.skipped
        yield f"{source}: {p.count} x {p.message}{skipped} ({', '.join(p.rows) or 'all'})"


def load_classifier(folder: Path) -> Any:
    """The classifier in a folder."""
    from hardmax.estimators.classifier import load

    if not folder.exists():
        raise DataError(f"{folder}: no such folder. Make one with: hardmax train")
    return load(folder)


def same_labels(clf: Any, labels: list[Any], source: str) -> Any:
    """Labels as class numbers of a classifier."""
    import numpy as np

    number = {str(label): k for k, label in enumerate(_named(clf.classes_.tolist()) or ())}
    unknown = sorted({str(label) for label in labels} - set(number))
    if unknown:
        raise InputError(f"{source}: label {unknown[0]!r}. {none_of(list(number))}")
    return np.array([number[str(label)] for label in labels], dtype=np.int64)
