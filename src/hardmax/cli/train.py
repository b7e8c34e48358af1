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
from hardmax.cli.progress import progress_bar

__all__ = [
    "LabelColumn",
    "Labelled",
    "TextColumn",
    "load_classifier",
    "notes_of",
    "progress_bar",
    "read_batches",
    "read_labelled",
    "register",
    "same_labels",
]

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

_OWN = {"callbacks", "checkpoint", "device", "random_state"}
SHIPPED = ("imdb", "corpus")
Columns = tuple[str | None, str | None]

_EXAMPLES = """Examples:

hardmax train corpus --out model\n
hardmax train reviews.csv --text review --label stars --out model\n
hardmax train imdb --preset plane --out plane --set learning_rate=0.004

torchrun --nproc_per_node 2 -m hardmax train imdb --out model
"""


class Preset(StrEnum):
    """Named settings."""

    default = "default"
    plane = "plane"
    accurate = "accurate"
    paper = "paper"


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
    more: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter of the estimator."),
    ] = None,
    device: Annotated[
        str, typer.Option(metavar="auto|cpu|cuda", help="Where it is trained.")
    ] = "auto",
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Kept after every epoch; else DIR.part, removed at the end."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same model.")] = 0,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Train a classifier and save it as a folder."""
    changes: dict[str, Any] = {
        "dim": dim,
        "heads": heads,
        "depth": depth,
        "ngrams": ngrams,
        "scope": scope,
        "min_count": min_count,
        "epochs": epochs,
        "validation_fraction": validation,
        "early_stopping": None if validation is None else True,
    }
    given = {key: value for key, value in changes.items() if value is not None}
    place = checkpoint or out.with_name(f"{out.name}.part")
    given |= {**_more(more or []), "random_state": seed, "device": device, "checkpoint": place}
    _check_folder(out, force)
    with _processes() as first, _told(place, first):
        clf = _trained(source, preset.value, given, (text_column, label_column), first)
        if first:
            clf.save(out, force=force)
            for left in [] if checkpoint else _kept(place):
                left.unlink(missing_ok=True)
            _tell(clf, out, json)


def _more(pairs: list[str]) -> dict[str, Any]:
    """Parameters given as NAME=VALUE; values are JSON where they can be, else words."""
    from json import loads

    from hardmax.estimators.classifier import HardmaxClassifier

    known = set(HardmaxClassifier().get_params()) - _OWN
    out = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or name not in known:
            raise InputError(
                f"--set {pair}: expected NAME=VALUE with a parameter of the estimator, such as "
                f"{text.listed(sorted(known), 40)}."
            )
        try:
            out[name] = loads(value)
        except ValueError:
            out[name] = value
    return out


def _trained(source: str, preset: str, given: dict[str, Any], columns: Columns, first: bool) -> Any:
    """A fitted classifier; the texts are read one by one."""
    from hardmax.estimators.classifier import HardmaxClassifier

    clf = HardmaxClassifier.from_preset(preset, **given)
    with progress_bar(first) as bar:
        batches = read_batches(source, columns, first, None if bar is None else bar.read)
        clf.set_params(callbacks=None if bar is None else [bar]).fit_stream(batches)
    return clf


def read_batches(
    source: str, columns: Columns, first: bool = True, seen: Callable[[int], None] | None = None
) -> Iterator[tuple[list[str], list[Any]]]:
    """Texts and labels to learn from, lot after lot; says what is wrong with the file."""
    from hardmax.learn import data

    if source in SHIPPED and not Path(source).exists():
        yield data.imdb("official", "train") if source == "imdb" else data.corpus("train")
        return
    found = data.read_texts(source, text=columns[0], label=columns[1])
    count = 0
    for texts, labels in found.batches():
        count += len(texts)
        if seen is not None:
            seen(count)
        yield texts, list(labels)
    for note in notes_of(source, found.report) if first else ():
        text.say(note, error=True)
    found.report.require_classes()


def _kept(checkpoint: Path) -> list[Path]:
    """The files of a checkpoint: one, or one for each member."""
    names = f"{checkpoint.name}.*"
    numbered = [p for p in checkpoint.parent.glob(names) if p.suffix[1:].isdigit()]
    return [p for p in (checkpoint, *sorted(numbered)) if p.is_file()]


@contextmanager
def _told(checkpoint: Path, first: bool) -> Iterator[None]:
    """On an interruption say what is kept, and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        kept = _kept(checkpoint)
        if first and kept:
            text.say(
                f"kept in {text.listed([str(p) for p in kept])}: give the same command again, and "
                "it goes on from there",
                error=True,
            )
        elif first:
            text.say("no epoch had ended: nothing is kept", error=True)
        raise


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
    source: str,
    part: str,
    text_column: str | None,
    label_column: str | None,
    classes: list[Any] | None = None,
) -> tuple[list[str], list[Any], tuple[str, ...]]:
    """Texts, labels, and what there is to say about the file.

    Rows with labels that are none of `classes` are left out and counted.
    """
    from hardmax.learn import data

    if source in SHIPPED and not Path(source).exists():
        texts, labels = data.imdb("official", part) if source == "imdb" else data.corpus(part)
        return texts, list(labels), ()
    found = data.read_texts(source, text=text_column, label=label_column, classes=_named(classes))
    try:
        texts, read = found.load()
    except DataError as error:
        if "label unknown" not in str(error):
            raise
        raise DataError(f"{error} {_none_of(classes or [])}") from None
    if part == "train":
        found.report.require_classes()
    return texts, list(read), tuple(notes_of(source, found.report))


def _named(classes: list[Any] | None) -> list[Any] | None:
    """Classes as a file spells them: whole numbers, else words."""
    if classes is None or all(type(c) is int for c in classes):
        return classes
    return [str(c) for c in classes]


def _none_of(classes: list[Any]) -> str:
    return f"Labels must be among the model's classes ({text.listed([str(c) for c in classes])})."


def notes_of(source: str, report: Any) -> Iterator[str]:
    """What there is to say about a file that was read."""
    if report.columns:
        yield f"{source}: {report.columns}"
    for p in report.problems:
        yield f"{source}: {p.count} x {p.message} ({', '.join(p.rows)})"


def _tell(clf: Any, out: Path, json: bool) -> None:
    from hardmax.io import dumps

    last = clf.history_[-1]
    texts = last.total
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
        raise InputError(f"{source}: label {unknown[0]!r}. {_none_of(list(number))}")
    return np.array([number[str(label)] for label in labels], dtype=np.int64)
