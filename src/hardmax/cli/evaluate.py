"""`hardmax evaluate`: a saved classifier on labelled texts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from hardmax._errors import InputError
from hardmax.cli import options as opt
from hardmax.cli import text
from hardmax.cli.network import evaluate_network, is_network
from hardmax.cli.reading import (
    Delimiter,
    Encoding,
    Form,
    LabelColumn,
    Labelled,
    Part,
    TextColumn,
    load_classifier,
    read_labelled,
    same_labels,
)

__all__ = ["register"]

_EXAMPLES = """Examples:

hardmax evaluate model corpus\n
hardmax evaluate model reviews.csv --out reliability.png --json
"""
_ENDINGS = (".png", ".pdf", ".svg", ".json")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("evaluate", epilog=_EXAMPLES)(evaluate)


def evaluate(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A folder of `hardmax train` or `construct`.")
    ],
    source: Labelled,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    part: Part = None,
    leaders: Annotated[
        int, typer.Option(min=1, help="Texts on which leaders are counted, from the first.")
    ] = 200,
    out: opt.Out = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Accuracy with its interval, confusion, calibration, and statistics of leaders."""
    from hardmax.cli.targets import check_targets, json_writer, write_targets

    targets = check_targets(out, force=force, endings=_ENDINGS)
    if is_network(model):
        if targets:
            raise InputError("--out draws a trained classifier; a constructed network has none.")
        evaluate_network(model, source, text_column, label_column, json=json)
        return
    clf = load_classifier(model)
    form = Form(text_column, label_column, delimiter, encoding, part)
    texts, labels, notes = read_labelled(source, "test", form, clf.classes_.tolist())
    numbers = same_labels(clf, labels, source)
    for note in notes:
        text.say(note, error=True)
    from hardmax.learn.report import evaluate as compare
    from hardmax.learn.report import leader_table

    result = compare(clf.classes_, numbers, clf.predict_proba(texts))
    split = clf.settings_.scope == "sentence"
    table = leader_table(clf.model_, clf.vocabulary_.encode(texts[:leaders], sentences=split))
    data = {**asdict(result), "leaders": asdict(table)}
    _show(result, table, data, json)
    writers = {kind: _picture(result, kind) for kind in _ENDINGS[:-1]}
    write_targets(targets, {**writers, ".json": json_writer(data)}, force=force, quiet=json)


def _show(result: Any, table: Any, data: dict[str, Any], json: bool) -> None:
    if json:
        from hardmax.io import dumps

        typer.echo(dumps(data))
        return
    low, high = result.interval
    facts = [
        ("accuracy", f"{result.accuracy:.4f}   95 % interval {low:.4f} to {high:.4f}"),
        ("log loss", f"{result.log_loss:.4f}"),
        ("calibration error", f"{result.calibration_error:.4f}"),
        ("words moved more than half way", f"{table.moved:.3f}, mean over the heads"),
    ]
    text.print_facts(f"{result.texts:,} texts, {result.correct:,} correct", facts)
    names = [str(c) for c in result.classes]
    rows = [[name, *map(str, row)] for name, row in zip(names, result.confusion, strict=True)]
    text.print_table(["true \\ predicted", *names], rows, "classes")
    bins = [
        [f"{b.low:.1f} to {b.high:.1f}", str(b.count), f"{b.confidence:.3f}", f"{b.accuracy:.3f}"]
        for b in result.bins
    ]
    text.print_table(["probability", "texts", "mean", "correct"], bins, "bins")
    heads = ["leaders", "mean", "deviation", "min", "max", "present at layer 0"]
    row = [
        f"per text and head, {table.texts} texts",
        f"{table.mean:.2f}",
        f"{table.deviation:.2f}",
        str(table.smallest),
        str(table.largest),
        f"{table.at_start:.3f}",
    ]
    text.print_table(heads, [row], "rows")


def _picture(result: Any, kind: str) -> Any:
    """How to draw the reliability of the probabilities."""

    def draw(file: BinaryIO) -> None:
        from hardmax.plot.reliability import draw_reliability

        draw_reliability(result).savefig(file, format=kind.removeprefix("."), dpi=150)

    return draw
