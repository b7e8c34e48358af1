"""Saved constructed networks in `hardmax evaluate` and `hardmax predict`."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from hardmax._errors import InputError
from hardmax.cli import text
from hardmax.cli.sequences import read_sequences

__all__ = ["evaluate_network", "is_network", "predict_network"]

_LONGEST = 80


def is_network(folder: Path) -> bool:
    """Whether a folder holds a network of `hardmax construct`."""
    from hardmax.io import read_json

    card = folder / "model.json"
    if not card.is_file():
        return False
    data = read_json(card)
    return isinstance(data, dict) and data.get("kind") == "exact"


def predict_network(folder: Path, sequences: Iterable[Any], *, json: bool = False) -> None:
    """Print the label of every sequence or text, one a line, a text beside its label."""
    from hardmax.exact import Network

    net = Network.load(folder)
    if isinstance(sequences, list):
        for one, label in zip(sequences, net.predict(sequences).tolist(), strict=True):
            _print(one, label, json)
        return
    for number, one in enumerate(sequences, 1):  # lines as they arrive
        try:
            label = net.predict([one]).tolist()[0]
        except InputError as error:
            raise InputError(f"line {number}: {error}") from None
        _print(one, label, json)


def _print(one: Any, label: Any, json: bool) -> None:
    from json import dumps

    if json:
        row = {"label": label} | ({"text": one} if isinstance(one, str) else {})
        typer.echo(dumps(row))
    elif isinstance(one, str):
        short = text.one_line(one)
        short = short if len(short) <= _LONGEST else short[: _LONGEST - 3] + "..."
        typer.echo(f"{label}\t{short}")
    else:
        typer.echo(str(label))
    sys.stdout.flush()


def evaluate_network(
    folder: Path,
    source: str,
    text_column: str | None = None,
    label_column: str | None = None,
    *,
    json: bool = False,
) -> None:
    """Accuracy on a file, and whether the certificate covers exactly these data."""
    from hardmax.exact import Network

    net = Network.load(folder)
    sequences, labels = read_sequences(source, text_column, label_column)
    predicted = net.predict(sequences).tolist()
    if len(labels) != len(predicted):
        raise InputError(f"{source}: {len(predicted)} sequences and {len(labels)} labels.")
    right = sum(a == b for a, b in zip(predicted, labels, strict=True))
    reason = net.check(sequences, labels)
    data = {
        "sequences": len(labels),
        "correct": right,
        "accuracy": right / len(labels),
        "certified": reason == "",
        "reason": reason,
        "deviation": net.certificate.deviation if reason == "" else math.nan,
    }
    if json:
        from hardmax.io import dumps

        typer.echo(dumps({k: v for k, v in data.items() if v == v}))
        return
    facts = [
        ("accuracy", f"{data['accuracy']:.4f}"),
        (
            "certificate",
            str(net.certificate) if reason == "" else f"does not cover these: {reason}",
        ),
    ]
    text.print_facts(f"{len(labels):,} sequences, {right:,} correct", facts)
