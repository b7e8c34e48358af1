"""`hardmax train`: a classifier of texts from a file of labelled texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hardmax._errors import DataError, InputError, OutputError
from hardmax.cli import options as opt
from hardmax.cli import text

__all__ = ["LabelColumn", "TextColumn", "read_labelled", "register"]

TextColumn = Annotated[
    str | None, typer.Option("--text", metavar="NAME", help="The column of the texts.")
]
LabelColumn = Annotated[
    str | None, typer.Option("--label", metavar="NAME", help="The column of the labels.")
]
Labelled = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A .csv .tsv .jsonl .parquet file, a folder LABEL/FILE.txt, an archive of those; "
        "or imdb (after `hardmax data imdb`), or corpus (shipped).",
    ),
]

_EXAMPLES = """Examples:

hardmax train corpus --out model\n
hardmax train reviews.csv --text review --label stars --out model\n
hardmax train imdb --preset plane --out plane --checkpoint plane.part
"""


class Preset(StrEnum):
    """Named settings."""

    default = "default"
    plane = "plane"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("train", epilog=_EXAMPLES)(train)


def train(
    source: Labelled,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the model.")],
    preset: Annotated[Preset, typer.Option(help="Named settings.")] = Preset.default,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    dim: Annotated[int | None, typer.Option(help="Coordinates of a word vector.")] = None,
    heads: Annotated[int | None, typer.Option(help="Equal blocks of coordinates.")] = None,
    depth: Annotated[int | None, typer.Option(help="Number of layers.")] = None,
    ngrams: Annotated[int | None, typer.Option(help="Longest number of words in a token.")] = None,
    scope: Annotated[
        str | None, typer.Option(metavar="text|sentence", help="Where words attend.")
    ] = None,
    min_count: Annotated[int | None, typer.Option(help="Texts a token must occur in.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the texts.")] = None,
    validation: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Hold out this share; keep the best epoch."),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Go on from here after an interruption.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same model.")] = 0,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Train a classifier and save it as a folder."""
    changes = {
        "dim": dim,
        "heads": heads,
        "depth": depth,
        "ngrams": ngrams,
        "scope": scope,
        "min_count": min_count,
        "epochs": epochs,
        "checkpoint": checkpoint,
        "validation_fraction": validation,
        "early_stopping": None if validation is None else True,
    }
    given = {key: value for key, value in changes.items() if value is not None}
    _check_folder(out, force)
    with _processes() as first:
        _train(
            source, out, preset.value, given, (text_column, label_column), seed, json, force, first
        )


def _train(
    source: str, out: Path, preset: str, given: dict[str, Any],
    columns: tuple[str | None, str | None], seed: int, json: bool, force: bool, first: bool,
) -> None:  # fmt: skip
    from hardmax.estimators.classifier import HardmaxClassifier

    texts, labels, notes = read_labelled(source, "train", *columns)
    for note in notes if first else ():
        text.say(note, error=True)
    clf = HardmaxClassifier.from_preset(preset, random_state=seed, **given)
    with progress_bar(first) as show:
        clf.set_params(callbacks=None if show is None else [show]).fit(texts, labels)
    if not first:
        return
    clf.save(out, force=force)
    _tell(clf, len(texts), out, json)


def _check_folder(out: Path, force: bool) -> None:
    """The folder can be written, before the work."""
    if not out.parent.is_dir():
        raise OutputError(f"{out}: the folder {out.parent} does not exist. Create it first.")
    if out.exists() and not force and not (out.is_dir() and not any(out.iterdir())):
        raise OutputError(f"{out} exists. Give another name or --force.")


@contextmanager
def _processes() -> Iterator[bool]:
    """Join the other processes of a `torchrun`, if any; whether this is the first one."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield True
        return
    import torch.distributed as dist

    dist.init_process_group("gloo")
    try:
        yield dist.get_rank() == 0
    finally:
        dist.destroy_process_group()


def read_labelled(
    source: str, part: str, text_column: str | None, label_column: str | None
) -> tuple[list[str], list[Any], tuple[str, ...]]:
    """Texts, labels, and what there is to say about the file."""
    from hardmax.learn import data

    if source in ("imdb", "corpus") and not Path(source).exists():
        texts, labels = data.imdb("official", part) if source == "imdb" else data.corpus(part)
        return texts, list(labels), ()
    found = data.read_texts(source, text=text_column, label=label_column)
    texts, read = found.load()
    report = found.report
    notes = [f"{source}: {report.columns}"] if report.columns else []
    notes += [f"{source}: {p.count} x {p.message} ({', '.join(p.rows)})" for p in report.problems]
    if part == "train":
        report.require_classes()
    return texts, list(read), tuple(notes)


@contextmanager
def progress_bar(first: bool = True) -> Iterator[Callable[[Any], None] | None]:
    """A bar with loss, validation accuracy and time left; none in a pipe."""
    out = text.console(error=True)
    if not (first and out.is_terminal):
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("training", total=1.0)
        seen = ""

        def show(p: Any) -> None:
            nonlocal seen
            if p.accuracy is not None:
                seen = f", validation {p.accuracy:.3f}"
            share = (p.epoch + p.done / max(p.total, 1)) / p.epochs
            words = f"epoch {p.epoch + 1} of {p.epochs}, loss {p.loss:.3f}{seen}"
            bar.update(task, completed=min(share, 1.0), description=words)

        yield show


def _tell(clf: Any, texts: int, out: Path, json: bool) -> None:
    from hardmax.io import dumps

    last = clf.history_[-1]
    data = {
        "model": str(out),
        "texts": texts,
        "classes": clf.classes_.tolist(),
        "tokens": len(clf.vocabulary_),
        "epochs": clf.n_iter_,
        "loss": last.loss,
        "validation_accuracy": [p.accuracy for p in clf.history_],
        "seconds": last.seconds,
        "alpha": clf.model_.alpha.tolist(),
        "settings": clf.settings_.to_dict(),
    }
    if json:
        typer.echo(dumps(data))
        return
    facts = [
        ("texts", f"{texts:,}"),
        ("classes", text.listed([str(c) for c in data["classes"]])),
        ("tokens", f"{data['tokens']:,}"),
        ("epochs", f"{clf.n_iter_} in {last.seconds:.1f} s"),
        ("loss", f"{last.loss:.4f}"),
        ("alpha", text.point(data["alpha"])),
    ]
    scores = [p.accuracy for p in clf.history_ if p.accuracy is not None]
    if scores:
        facts.append(("best validation accuracy", f"{max(scores):.4f}"))
    text.print_facts(f"saved {out}", facts)


def load_classifier(folder: Path) -> Any:
    """The classifier in a folder."""
    from hardmax.estimators.classifier import load

    if not folder.exists():
        raise DataError(f"{folder}: no such folder. Make one with: hardmax train")
    return load(folder)


def same_labels(clf: Any, labels: list[Any], source: str) -> Any:
    """Labels as class numbers of a classifier."""
    import numpy as np

    number = {str(label): k for k, label in enumerate(clf.classes_.tolist())}
    unknown = sorted({str(label) for label in labels} - set(number))
    if unknown:
        raise InputError(
            f"{source}: label {unknown[0]!r} is none of the model's classes "
            f"({text.listed(list(number))})."
        )
    return np.array([number[str(label)] for label in labels], dtype=np.int64)
