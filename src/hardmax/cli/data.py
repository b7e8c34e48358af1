"""`hardmax data`: fetch the reviews, check a file of texts, say what is shipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hardmax.cli import options as opt
from hardmax.cli import text
from hardmax.cli.reading import Delimiter, Encoding, Form, LabelColumn, Part, TextColumn

__all__ = ["register"]

_EXAMPLES = """Examples:

hardmax data imdb\n
hardmax data check reviews.csv --text review --label stars\n
hardmax data corpus
"""


class Split(StrEnum):
    """How the IMDb reviews are divided."""

    official = "official"
    paper = "paper"


Cache = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Where fetched files are kept; else $HARDMAX_CACHE or the user's cache."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(invoke_without_command=True, epilog=_EXAMPLES)
    group.callback()(_overview)
    group.command("imdb", epilog="Example:\n\nhardmax data imdb --split paper")(imdb)
    group.command("check", epilog="Example:\n\nhardmax data check reviews.csv --json")(check)
    group.command("corpus", epilog="Example:\n\nhardmax data corpus")(corpus)
    app.add_typer(group, name="data")


def _overview(context: typer.Context) -> None:
    """Fetch the IMDb reviews, or check a file of texts."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def imdb(
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="PATH", help="Take them from a file or folder; fetch nothing."
        ),
    ] = None,
    cache: Cache = None,
    split: Annotated[
        Split, typer.Option(help="25,000 / 25,000, or the paper's 35,000 / 15,000.")
    ] = Split.official,
    json: opt.Json = False,
) -> None:
    """Bring the IMDb reviews into the cache, and count both parts of a split.

    With the paper's split, WordNet's nouns too: `hardmax reproduce` prepares words by them.
    """
    from hardmax.learn.data import cache_folder, fetch_imdb

    with _progress() as advance:
        fetched = fetch_imdb(cache, advance, split=split.value, source=source)
        notes = list(fetched.notes)
        if split is Split.paper and source is None:
            notes += _nouns(cache, advance)
    for note in notes:
        text.say(note, error=True)
    data = {
        "split": split.value,
        "cache": str(cache_folder(cache)),
        "files": [str(path) for path in fetched.files],
        "origin": fetched.origin,
        "notes": notes,
        **_parts(split.value, fetched.parts(split.value), cache),
    }
    if json:
        _dump(data)
    else:
        _show_imdb(data)


def _nouns(cache: Path | None, advance: Callable[[str, int, int], None]) -> list[str]:
    """Bring WordNet's nouns, by which the paper reduces words; what stood in the way."""
    from hardmax._errors import DataError
    from hardmax.learn.wordnet import fetch_wordnet

    try:
        fetch_wordnet(cache, advance)
    except DataError as error:
        return [f"{error} Without them `hardmax reproduce` guesses nouns."]
    return []


def _parts(split: str, parts: tuple[str, ...], cache: Path | None) -> dict[str, Any]:
    """Counts of the parts there are, and what the test part shares with the other."""
    from hardmax.learn.data import imdb as load
    from hardmax.learn.data import overlap

    loaded = {part: load(split, part, cache) for part in parts}
    counts = {part: _counts(*rows) for part, rows in loaded.items()}
    if len(parts) < 2:
        return {"parts": counts, "shared": None}
    return {"parts": counts, "shared": overlap(loaded["train"][0], loaded["test"][0])}


def _counts(texts: list[str], labels: list[str]) -> dict[str, Any]:
    return {"rows": len(texts), **Counter(labels), "duplicates": len(texts) - len(set(texts))}


def _show_imdb(data: dict[str, Any]) -> None:
    origins = {
        "cache": "already there, sums checked",
        "archive": "fetched from the official archive, sums checked",
        "package": "fetched from the package, sums checked",
        "file": "taken from the file given, sums checked",
    }
    facts = [("files", ", ".join(data["files"])), ("origin", origins[data["origin"]])]
    for part in ("train", "test"):
        facts.append((part, _said(data["parts"].get(part))))
    if data["shared"] is not None:
        facts.append(("in both", f"{data['shared'].rows} test rows are also in train"))
    text.print_facts(f"IMDb reviews, {data['split']} split", facts)


def _said(counts: dict[str, Any] | None) -> str:
    if counts is None:
        return "not in the file given"
    classes = ", ".join(f"{counts[name]} {name}" for name in ("negative", "positive"))
    return f"{counts['rows']} rows: {classes}; {counts['duplicates']} repeat an earlier one"


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal, nothing in a pipe."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    out = text.console(error=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=out, transient=True, disable=not out.is_terminal
    ) as bar:
        tasks: dict[str, Any] = {}

        def advance(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done)

        yield advance


def check(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="CSV, TSV, JSON lines, Parquet, a folder or an archive."
        ),
    ],
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    part: Part = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Count the rows whose text is also in this file."),
    ] = None,
    json: opt.Json = False,
) -> None:
    """Report columns, classes, lengths and problems; status 2 when it cannot train."""
    from hardmax.learn.data import overlap

    form = Form(text_column, label_column, delimiter, encoding)
    source = replace(form, part=part).open(str(file))
    report = source.report
    shared = None if against is None else overlap(form.open(str(against)), source)
    if json:
        _dump({**_fields(report), "shared": shared})
    else:
        _show_report(report)
        if shared is not None:
            text.say("")
            text.say(f"{shared.rows} rows are also in {against}: {text.listed(shared.places, 5)}")
    report.require_classes()


def _fields(record: Any) -> dict[str, Any]:
    from dataclasses import fields

    return {entry.name: getattr(record, entry.name) for entry in fields(record)}


def _dump(data: dict[str, Any]) -> None:
    from hardmax.io import dumps

    typer.echo(dumps(data))


def _show_report(report: Any) -> None:
    facts = [
        ("format", report.format),
        ("columns", report.columns),
        ("rows", f"{report.rows}: {report.used} used, {report.skipped} skipped"),
        ("classes", text.listed([f"{c.label}: {c.count}" for c in report.classes], 20)),
        ("positive", report.positive_rule),
        ("characters", _lengths(report.lengths)),
    ]
    facts += [("note", note) for note in report.notes]
    text.print_facts(report.source, facts)
    heads = ["problem", "rows", "skipped", "first places", "meaning"]
    rows = [
        [p.kind, str(p.count), "yes" if p.skipped else "no", _places(p.rows), p.message]
        for p in report.problems
    ]
    if rows:
        text.print_table(heads, rows, "problems")
    else:
        text.say("no problems")


def _places(rows: tuple[str, ...]) -> str:
    """The places without the name of the file, which the heading says."""
    return ", ".join(row.rpartition(":")[2] for row in rows) or "all"


def _lengths(lengths: Any) -> str:
    return (
        f"{lengths.shortest} to {lengths.longest}, median {lengths.median:g}, "
        f"mean {lengths.mean:.1f}"
    )


def corpus(json: opt.Json = False) -> None:
    """Say where the package's own reviews are, and count them."""
    from hardmax.learn.sources import corpus_place, corpus_rows

    rows = corpus_rows()
    parts = {
        part: Counter(row["label"] for row in rows if row["part"] == part)
        for part in ("train", "test")
    }
    topics = Counter(row["topic"] for row in rows)
    if json:
        _dump({"file": corpus_place(), "rows": len(rows), "parts": parts, "topics": topics})
        return
    facts = [("file", corpus_place()), ("rows", str(len(rows)))]
    facts += [(part, _listed(counts)) for part, counts in parts.items()]
    facts.append(("topics", _listed(topics)))
    text.print_facts("reviews written for this package", facts)


def _listed(counts: Counter[str]) -> str:
    return text.listed([f"{name}: {count}" for name, count in sorted(counts.items())], 20)
