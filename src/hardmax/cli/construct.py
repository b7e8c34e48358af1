"""`hardmax construct`: a network that classifies given sequences exactly, and its proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from hardmax._errors import InputError
from hardmax.cli import options as opt
from hardmax.cli import text
from hardmax.cli.reading import LabelColumn, TextColumn, load_classifier
from hardmax.cli.sequences import read_sequences

__all__ = ["register"]

_EXAMPLES = """Examples:

hardmax construct reviews.csv --out net --method tree\n
hardmax construct data.json --out net --picture steps.png --softmax\n
hardmax construct corpus --out net --method tree --show tree --picture t.pdf\n
hardmax construct reviews.csv --method tree --vectors model --show trace --sequence 3
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
    vectors: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Word vectors of a classifier of `hardmax train`."),
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
    show: Annotated[
        Show, typer.Option(help="What the picture shows; a trace without picture is printed.")
    ] = Show.steps,
    sequence: Annotated[int, typer.Option(min=0, help="The sequence of --show trace.")] = 0,
    onnx: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write ONNX.")] = None,
    json: opt.Json = False,
    force: opt.Force = False,
    seed: opt.Seed = None,
) -> None:
    """Build a transformer that gives every sequence its label, and prove it."""
    from hardmax.cli.targets import check_targets
    from hardmax.exact import construct as build
    from hardmax.io import check_folder, check_target

    drawn = [picture] if picture else None
    check_targets(drawn, force=force, endings=_PICTURES, option="--picture")
    asks = method in (Method.tree, Method.chain)
    if show is not Show.steps and not asks:
        raise InputError(f"--show {show.value} needs --method tree or chain. Give one of them.")
    if show is Show.tree and picture is None:
        raise InputError("--show tree needs --picture FILE. Give a file to draw to.")
    if out is not None:
        check_folder(out, force=force)
    if onnx is not None:
        check_target(onnx, force=force)
    clf = None if vectors is None else load_classifier(vectors)
    sequences, labels = read_sequences(source, text_column, label_column)
    if sequence >= len(sequences):
        raise InputError(f"--sequence {sequence}: the data hold {len(sequences)} sequences.")
    if show is not Show.steps and all(y == labels[0] for y in labels):
        raise InputError(f"--show {show.value}: all labels are equal, so nothing is asked.")
    with _progress() as progress:
        net = build(
            sequences, labels, method=method.value, positions=positions, width=width,
            variant=variant.value, dtype=dtype.value, random_state=seed or 0, dim=dim,
            vectors=clf, progress=progress,
        )  # fmt: skip
    data = _facts(net, sequences, labels, exact, softmax)
    if out is not None:
        net.save(out, force=force)
    if onnx is not None:
        net.to_onnx(onnx, force=force)
    if show is Show.trace and picture is None:
        data["trace"] = [asdict(step) for step in net.trace(sequences[sequence])]
    _show(net, data, json)
    if picture is not None:
        _draw(net, sequences, show, sequence, picture, force)


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
    if "trace" in data:
        _show_trace(data["trace"])


def _show_trace(steps: list[dict[str, Any]]) -> None:
    """The questions that the tree asks one sequence, with the answers."""
    rows = []
    for step in steps:
        answer = "holds none: stays" if step["token"] is None else f"holds {step['token']}"
        result = f"code {step['next_code']}" if step["label"] is None else f"label {step['label']}"
        rows.append([f"{step['code']}", f"{step['size']:,}", f"{step['asked']:,}", answer, result])
    text.print_table(["code", "sequences there", "tokens asked", "answer", "then"], rows, "trace")


def _draw(net: Any, sequences: Any, show: Show, sequence: int, path: Path, force: bool) -> None:
    from hardmax.io import write_with
    from hardmax.plot.construction import draw_steps, draw_trace, draw_tree

    names = [str(c) for c in net.classes]
    if show is Show.steps:
        figure = draw_steps(net.steps(sequences[:12]))
    elif show is Show.tree:
        figure = draw_tree(net.story, names)
    else:
        figure = draw_trace(net.trace(sequences[sequence]), f"sequence {sequence}")

    def write(file: BinaryIO) -> None:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)

    write_with(path, write, force=force)
