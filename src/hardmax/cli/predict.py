"""`hardmax predict`: the class of texts given as words, a file, or lines on standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from hardmax._errors import DataError, InputError
from hardmax.cli import options as opt
from hardmax.cli import text
from hardmax.cli.network import is_network, predict_network
from hardmax.cli.reading import (
    Delimiter,
    Encoding,
    Form,
    TextColumn,
    load_classifier,
    notes_of,
)
from hardmax.cli.sequences import is_sequences, read_unlabelled

__all__ = ["register"]

_EXAMPLES = """Examples:

hardmax predict model "A warm and clever film."\n
hardmax predict model --file reviews.csv --text review --json\n
hardmax predict net --file sequences.json\n
cat lines.txt | hardmax predict model
"""
_LONGEST = 80


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict", epilog=_EXAMPLES)(predict)


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A folder of `hardmax train` or `construct`.")
    ],
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts; else lines are read.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A table of texts, or .txt with one a line.")
    ] = None,
    text_column: TextColumn = None,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    json: opt.Json = False,
) -> None:
    """Print class, probability and text, line by line as they come."""
    if texts and file is not None:
        raise InputError("texts and --file were both given. Give one of them.")
    if text_column is not None and file is None:
        raise InputError("--text names a column of --file. Give --file too.")
    form = Form(text_column, delimiter=delimiter, encoding=encoding)
    if is_network(model):
        if texts and len(texts) == 1 and is_sequences(texts[0]) and Path(texts[0]).is_file():
            file, texts = Path(texts[0]), None
        given = texts or (_lines() if file is None else _sequences(file, form))
        predict_network(model, given, json=json)
        return
    clf = load_classifier(model)
    _hint(texts or [])
    lot = 1 if not texts and file is None else 256
    source = texts if texts else _lines() if file is None else _texts_of(file, form)
    for one, label, shares in clf.predict_stream(source, lot):
        _show(clf, one, label, shares, json)


def _hint(texts: list[str]) -> None:
    """Say how a file is read, where a text is the name of one."""
    for one in texts:
        if len(one) < _LONGEST and Path(one).suffix and Path(one).is_file():
            text.say(f"{one} is taken as a text; --file {one} reads the file", error=True)


def _lines() -> Iterator[str]:
    """Lines of standard input as they arrive."""
    stream = sys.stdin
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(encoding="utf-8", errors="replace")
    for line in stream:
        yield line.rstrip("\r\n")


def _texts_of(path: Path, form: Form) -> Iterable[str]:
    if path.suffix.lower() == ".txt" and form.delimiter is None:
        return _file_lines(path, form.encoding)
    return _cells(form.open(str(path), labelled=False), path)


def _cells(source: Any, path: Path) -> Iterator[str]:
    """The texts of a table; what was guessed and left out is said on standard error."""
    for part, _ in source:
        yield from part
    for note in notes_of(str(path), source.report):
        text.say(note, error=True)


def _sequences(path: Path, form: Form) -> list[Any]:
    """What a constructed network reads: texts, or the sequences of a .json or .npz file."""
    if form.text is None and is_sequences(path):
        return read_unlabelled(path)
    return list(_texts_of(path, form))


def _file_lines(path: Path, encoding: str) -> Iterator[str]:
    from hardmax.learn.data import check_encoding

    plain = encoding.lower() in ("utf-8", "utf8")
    name = "utf-8-sig" if plain else check_encoding(encoding)
    try:
        with open(path, encoding=name, errors="replace") as lines:
            for line in lines:
                yield line.rstrip("\r\n")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}.") from None


def _show(clf: Any, one: str, label: Any, shares: Any, json: bool) -> None:
    if json:
        from json import dumps

        names = [str(c) for c in clf.classes_.tolist()]
        probabilities = dict(zip(names, shares.tolist(), strict=True))
        row = {"label": label, "probabilities": probabilities, "text": one}
        typer.echo(dumps(row, ensure_ascii=True))
    else:
        short = text.one_line(one)
        short = short if len(short) <= _LONGEST else short[: _LONGEST - 3] + "..."
        typer.echo(f"{label}\t{shares.max():.3f}\t{short}")
    sys.stdout.flush()
