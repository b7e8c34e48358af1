"""`hardmax train`: a classifier of texts from a file of labelled texts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hardmax._errors import InputError, OutputError
from hardmax.cli import options as opt
from hardmax.cli import text
from hardmax.cli.progress import progress_bar
from hardmax.cli.reading import (
    Delimiter,
    Encoding,
    Form,
    LabelColumn,
    Labelled,
    Part,
    TextColumn,
    read_batches,
)

__all__ = ["progress_bar", "register"]

_OWN = {"callbacks", "checkpoint", "device", "random_state"}

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
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    part: Part = None,
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
        form = Form(text_column, label_column, delimiter, encoding, part)
        clf = _trained(source, preset.value, given, form, first)
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


def _trained(source: str, preset: str, given: dict[str, Any], form: Form, first: bool) -> Any:
    """A fitted classifier; the texts are read one by one."""
    from hardmax.estimators.classifier import HardmaxClassifier

    clf = HardmaxClassifier.from_preset(preset, **given)
    with progress_bar(first) as bar:
        batches = read_batches(source, form, first, None if bar is None else bar.read)
        clf.set_params(callbacks=None if bar is None else [bar]).fit_stream(batches)
    return clf


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
