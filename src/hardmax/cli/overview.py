"""`hardmax overview`: which words lead over many texts, how often, and for which class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from hardmax.cli import options as opt
from hardmax.cli import text
from hardmax.cli.reading import (
    Form,
    LabelColumn,
    TextColumn,
    load_classifier,
    notes_of,
    read_labelled,
    same_labels,
)

__all__ = ["register", "texts_of"]

_EXAMPLES = """Examples:

hardmax overview model corpus\n
hardmax overview model reviews.csv --text review --out overview.html --out overview.png
"""
_ENDINGS = (".html", ".png", ".pdf", ".svg", ".json")

Texts = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A file, folder or archive of texts; or imdb, or corpus: their test part.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("overview", epilog=_EXAMPLES)(overview)


def overview(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A folder of `hardmax train`.")],
    source: Texts,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    correct: Annotated[
        bool, typer.Option("--correct", help="Only texts whose prediction is their label.")
    ] = False,
    rows: Annotated[int, typer.Option(min=1, help="How many leaders and roles.")] = 50,
    least_probability: Annotated[
        float, typer.Option(min=0, max=1, help="Leave out texts predicted with less.")
    ] = 0.0,
    least_valence: Annotated[
        float, typer.Option(min=0, help="Count leaders only where |valence + bias| exceeds this.")
    ] = 0.0,
    out: opt.Out = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Count the leaders of many texts by class, and find the words whose role changes."""
    from hardmax.cli.targets import check_targets, json_writer, write_targets

    targets = check_targets(out, force=force, endings=_ENDINGS)
    clf = load_classifier(model)
    from hardmax.explain.overview import overview as look

    texts: Iterable[str]
    labels = None
    if correct:
        texts, read, _ = read_labelled(source, "test", Form(text_column, label_column))
        labels = clf.classes_[same_labels(clf, read, source)].tolist()
    else:
        texts = texts_of(source, text_column)
    found = look(
        clf, texts, rows=rows, labels=labels, least_probability=least_probability,
        least_valence=least_valence,
    )  # fmt: skip
    _show(found, json)
    writers = {kind: _writer(clf, found, kind) for kind in _ENDINGS[:-1]}
    write_targets(
        targets, {**writers, ".json": json_writer(found.to_dict())}, force=force, quiet=json
    )


def texts_of(source: str, column: str | None) -> Iterable[str]:
    """The texts of a source one by one; what there is to say about a file comes at the end."""
    form = Form(column)
    shipped = form.shipped(source, "test")
    if shipped is not None:
        return shipped[0]
    return _stream(form.open(source, "test", labelled=False), source)


def _stream(found: Any, source: str) -> Iterator[str]:
    for part, _ in found:
        yield from part
    for note in notes_of(source, found.report):
        text.say(note, error=True)


def _writer(clf: Any, found: Any, kind: str) -> Any:
    """How to write the overview as a page or a picture."""

    def write(file: BinaryIO) -> None:
        from hardmax.explain.glance import glance, picture

        if kind == ".html":
            file.write(glance(clf, found).encode())
        else:
            from hardmax.plot.figures import save_figure

            save_figure(picture(clf, found), file, kind)

    return write


def _show(found: Any, json: bool) -> None:
    if json:
        from hardmax.io import dumps

        typer.echo(dumps(found.to_dict()))
        return
    names = [str(c) for c in found.classes]
    facts = [(f"predicted {c}", f"{n:,}") for c, n in zip(names, found.predicted, strict=True)]
    facts.append(("leaders per text and head", f"{found.mean_leaders:.2f}"))
    text.print_facts(text.counted(found.texts, "text"), facts)
    rows = [
        [x.word, *(f"{n:,}" for n in x.by_class), f"{x.texts:,}", f"{x.valence:+.3f}"]
        for x in found.leaders
    ]
    text.print_table(["leader", *names, "texts", "valence"], rows, "leaders")
    rows = [
        [x.word, *(f"{v:+.4f}" for v in x.contribution), f"{x.difference:.4f}"] for x in found.roles
    ]
    heads = ["role changes", *(f"in {c}" for c in names), "difference"]
    text.print_table(heads, rows, "words")
