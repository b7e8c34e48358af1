"""`hardmax construct`: a network that classifies given sequences exactly, and its proof."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from hardmax._errors import DataError, InputError
from hardmax.cli import options as opt
from hardmax.cli import text
from hardmax.cli.train import LabelColumn, TextColumn, read_labelled

__all__ = [
    "evaluate_network",
    "is_network",
    "predict_network",
    "read_sequences",
    "register",
]

_EXAMPLES = """Examples:

hardmax construct reviews.csv --out net --method tree\n
hardmax construct data.json --out net --picture steps.png --softmax\n
hardmax construct corpus --out net --method tree --show tree --picture t.pdf
"""
_PICTURES = (".png", ".pdf", ".svg")


class Method(StrEnum):
    """The construction."""

    auto = "auto"
    mean = "mean"
    bumps = "bumps"
    tree = "tree"
    chain = "chain"


class Variant(StrEnum):
    """The form of the layers."""

    residual = "residual"
    rho_eta = "rho_eta"


class Precision(StrEnum):
    """The floating-point kind."""

    float64 = "float64"
    float32 = "float32"


class Show(StrEnum):
    """What the picture shows."""

    steps = "steps"
    tree = "tree"
    trace = "trace"


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help='.json: {"sequences": ..., "labels": ...}; .npz: tokens (T, d), lengths, labels; '
        "or labelled texts: .csv .tsv .jsonl .parquet, a folder LABEL/FILE.txt, imdb, corpus.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("construct", epilog=_EXAMPLES)(construct)


def construct(
    source: Data,
    out: Annotated[Path | None, typer.Option(metavar="NET", help="Folder for the network.")] = None,
    method: Annotated[Method, typer.Option(help="The construction.")] = Method.auto,
    positions: Annotated[bool, typer.Option(help="Let the order of tokens count.")] = False,
    width: Annotated[
        int | None, typer.Option(min=2, help="Most neurons in a layer: width against depth.")
    ] = None,
    variant: Annotated[Variant, typer.Option(help="The form of the layers.")] = Variant.residual,
    dtype: Annotated[Precision, typer.Option(help="Precision.")] = Precision.float64,
    dim: Annotated[
        int | None, typer.Option(min=1, help="Coordinates of generic word vectors; 64.")
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    exact: Annotated[
        int, typer.Option(min=0, metavar="K", help="Run K sequences in rational arithmetic.")
    ] = 0,
    softmax: Annotated[
        bool, typer.Option("--softmax", help="State the proved and the smallest temperature.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw to .png .pdf or .svg.")
    ] = None,
    show: Annotated[Show, typer.Option(help="What the picture shows.")] = Show.steps,
    sequence: Annotated[int, typer.Option(min=0, help="The sequence of --show trace.")] = 0,
    onnx: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write ONNX.")] = None,
    json: opt.Json = False,
    force: opt.Force = False,
    seed: opt.Seed = None,
) -> None:
    """Build a transformer that gives every sequence its label, and prove it."""
    from hardmax.cli.targets import check_targets
    from hardmax.exact import construct as build
    from hardmax.io import check_target

    check_targets([picture] if picture else None, force=force, endings=_PICTURES)
    if onnx is not None:
        check_target(onnx, force=force)
    sequences, labels = read_sequences(source, text_column, label_column)
    with _progress() as progress:
        net = build(
            sequences, labels, method=method.value, positions=positions, width=width,
            variant=variant.value, dtype=dtype.value, random_state=seed or 0, dim=dim,
            progress=progress,
        )  # fmt: skip
    data = _facts(net, sequences, labels, exact, softmax)
    if out is not None:
        net.save(out, force=force)
    if onnx is not None:
        net.to_onnx(onnx, force=force)
    _show(net, data, json)
    if picture is not None:
        _draw(net, sequences, show, sequence, picture, force)


def read_sequences(
    source: str, text_column: str | None = None, label_column: str | None = None
) -> tuple[list[Any], list[Any]]:
    """Sequences and labels of a file."""
    kind = Path(source).suffix.lower()
    if kind == ".json":
        return _from_json(source)
    if kind == ".npz":
        return _from_npz(source)
    texts, labels, notes = read_labelled(source, "train", text_column, label_column)
    for note in notes:
        text.say(note, error=True)
    return list(texts), labels


def _from_json(source: str) -> tuple[list[Any], list[Any]]:
    from hardmax.io import read_json

    data = read_json(source)
    if not isinstance(data, dict) or "labels" not in data or not {"sequences", "texts"} & set(data):
        raise DataError(
            f'{source}: expected {{"sequences": [...], "labels": [...]}} or "texts". Add the keys.'
        )
    return list(data["sequences" if "sequences" in data else "texts"]), list(data["labels"])


def _from_npz(source: str) -> tuple[list[Any], list[Any]]:
    from io import BytesIO

    import numpy as np

    from hardmax.io.read import read_bytes

    try:
        with np.load(BytesIO(read_bytes(Path(source))), allow_pickle=False) as data:
            tokens, lengths, labels = (data[k] for k in ("tokens", "lengths", "labels"))
    except (KeyError, ValueError, OSError) as error:
        raise DataError(
            f"{source}: expected arrays tokens (T, d), lengths (N,), labels (N,); {error}."
        ) from None
    if tokens.ndim != 2 or lengths.ndim != 1 or int(lengths.sum()) != len(tokens):
        raise DataError(
            f"{source}: lengths must sum to the {len(tokens)} rows of tokens; "
            f"got {int(lengths.sum())}. Correct the file."
        )
    return np.split(tokens, np.cumsum(lengths)[:-1]), labels.tolist()


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """A spinner with the stage on a terminal, nothing in a pipe."""
    out = text.console(error=True)
    if not out.is_terminal:
        yield None
        return
    with out.status("reading") as status:
        yield lambda stage, done, total: status.update(
            f"{stage} {done}" + (f"/{total}" * (total > 0))
        )


def _facts(net: Any, sequences: Any, labels: Any, exact: int, softmax: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "method": net.method,
        "variant": net.variant,
        "classes": list(net.classes),
        "counts": net.counts.to_dict(),
        "certificate": net.certificate.to_dict(),
    }
    if exact:
        some = sequences[:exact]
        right = net.predict_exact(some).tolist() == list(labels[: len(some)])
        data["rational"] = {"sequences": len(some), "right": bool(right)}
    if softmax:
        star, least = net.beta_star(sequences), net.smallest_beta(sequences, labels)
        data["softmax"] = {"beta_star": star, "smallest_beta": least}
    return data


def _show(net: Any, data: dict[str, Any], json: bool) -> None:
    if json:
        from hardmax.io import dumps

        typer.echo(dumps(data))
        return
    counts = net.counts
    facts = [("certificate", str(net.certificate))]
    if "rational" in data:
        r = data["rational"]
        facts.append(
            ("rational run", f"{r['sequences']} sequences: {'right' if r['right'] else 'WRONG'}")
        )
    if "softmax" in data:
        s = data["softmax"]
        said = (
            "any"
            if s["beta_star"] == 0
            else f"{s['beta_star']:.3g} proved, {s['smallest_beta']:.3g} works"
        )
        facts.append(("softmax, inverse temperature", said))
    text.print_facts(
        f"{net.method} ({net.variant}): N = {counts.sequences} sequences, d = {counts.dim}", facts
    )
    bounds = counts.bounds
    rows = [
        ["blocks", f"{counts.blocks:,}", f"{bounds['blocks']:,}"],
        ["attention layers", f"{counts.attention_layers:,}", f"{bounds['attention_layers']:,}"],
        ["hidden neurons", f"{counts.neurons:,}", f"{bounds['neurons']:,}"],
        ["parameters", f"{counts.parameters:,}", f"{bounds['parameters']:,}"],
        ["non-zero numbers", f"{counts.nonzeros:,}", ""],
    ]
    text.print_table(["", "here", "bound of the paper's shape"], rows, "counts")


def _draw(net: Any, sequences: Any, show: Show, sequence: int, path: Path, force: bool) -> None:
    from hardmax.io import write_with
    from hardmax.plot.construction import draw_steps, draw_trace, draw_tree

    names = [str(c) for c in net.classes]
    if show is Show.steps:
        figure = draw_steps(net.steps(sequences[:12]))
    elif show is Show.tree:
        if net.story is None:
            raise InputError("--show tree needs --method tree or chain. Give one of them.")
        figure = draw_tree(net.story, names)
    else:
        if sequence >= len(sequences):
            raise InputError(f"--sequence {sequence}: the data hold {len(sequences)} sequences.")
        figure = draw_trace(net.trace(sequences[sequence]), f"sequence {sequence}")

    def write(file: BinaryIO) -> None:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)

    write_with(path, write, force=force)


def is_network(folder: Path) -> bool:
    """Whether a folder holds a network of `hardmax construct`."""
    from hardmax.io import read_json

    card = folder / "model.json"
    if not card.is_file():
        return False
    data = read_json(card)
    return isinstance(data, dict) and data.get("kind") == "exact"


def predict_network(folder: Path, sequences: list[Any], *, json: bool = False) -> None:
    """Print the label of every sequence or text, one a line."""
    from json import dumps

    from hardmax.exact import Network

    net = Network.load(folder)
    for label in net.predict(sequences).tolist():
        typer.echo(dumps({"label": label}) if json else str(label))


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
