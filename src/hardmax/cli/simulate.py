"""`hardmax simulate`: layers of hardmax attention, leaders and followers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from hardmax._errors import InputError
from hardmax.cli import options as opt
from hardmax.cli import text

__all__ = ["register"]


class Normalization(StrEnum):
    """What follows the attention in each layer."""

    rescale = "rescale"
    none = "none"
    sphere = "sphere"
    layernorm = "layernorm"


class Precision(StrEnum):
    """The floating-point kind."""

    float64 = "float64"
    float32 = "float32"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate", epilog=_EXAMPLES)(simulate)


_EXAMPLES = """Examples:

hardmax simulate triangle --depth 30 --alpha .5\n
hardmax simulate edges --alpha .5 --layers 0,1,2,5,30 --out edges.png\n
hardmax simulate gaussian:n=50,seed=1 --depth 8 --out walk.gif --out walk.npz\n
hardmax simulate square --depth 3 --alpha 1,1/2,1/4 --json
"""


Depth = Annotated[int, typer.Option(min=0, help="Number of layers.")]
Temperature = Annotated[float, typer.Option(help="0 is hardmax, above it softmax.")]
Heads = Annotated[int, typer.Option(help="Equal blocks of coordinates.")]
After = Annotated[Normalization, typer.Option(help="What follows the attention.")]
Kind = Annotated[Precision, typer.Option(help="Precision.")]
TieTol = Annotated[float | None, typer.Option(help="Relative gap of scores that counts as a tie.")]
MergeTol = Annotated[
    float | None, typer.Option(help="Relative distance at which a follower joins its leader.")
]
Layers = Annotated[
    str | None,
    typer.Option(metavar="K,K", help="Keep these layers only; pictures show one panel each."),
]
Head = Annotated[int, typer.Option(min=0, help="The head that pictures show.")]
Sequence = Annotated[
    int | None, typer.Option(min=0, help="The sequence of a batch that pictures show.")
]


@dataclass(frozen=True)
class _View:
    """What of the run the pictures show."""

    axes: tuple[int, ...] | None
    panels: list[int] | None
    head: int
    sequence: int | None


def simulate(
    source: opt.Source,
    depth: Depth = 30,
    alpha: opt.Alpha = None,
    gamma: opt.Gamma = None,
    matrix: opt.Matrix = None,
    temperature: Temperature = 0.0,
    heads: Heads = 1,
    normalization: After = Normalization.rescale,
    dtype: Kind = Precision.float64,
    tie_tol: TieTol = None,
    merge_tol: MergeTol = None,
    out: opt.Out = None,
    layers: Layers = None,
    axes: opt.Axes = None,
    head: Head = 0,
    sequence: Sequence = None,
    json: opt.Json = False,
    force: opt.Force = False,
    seed: opt.Seed = None,
    search: opt.Search = opt.SearchPath.auto,
) -> None:
    """Run the layers and tell who leads, since when, and who follows."""
    from hardmax.cli.source import read_scores, read_source
    from hardmax.cli.targets import check_pictures, check_targets

    targets = check_targets(out, force=force)
    tokens = read_source(source, seed=seed, padded=True)
    kept = opt.read_layers(layers, depth)
    width = tokens.shape[-1] // max(heads, 1)
    view = _View(opt.read_axes(axes, width), kept, head, sequence)
    check_pictures(targets, width, view.axes)
    _check_view(view, tokens.shape, heads, bool(targets))
    settings = {
        **opt.read_steps(alpha, gamma, tokens.settings, exact=False),
        "A": read_scores(matrix, tokens.settings),
        "mask": tokens.settings.get("mask"),
        "temperature": temperature,
        "heads": heads,
        "normalization": normalization.value,
        "tie_tol": tie_tol,
        "merge_tol": merge_tol,
        "save": "all" if kept is None else kept,
    }
    run = _run(tokens, depth, dtype, settings, search)
    _show(run, tokens, json)
    limit = _limit(run, tokens, settings, sequence) if targets else None
    _write(run, limit, tokens, view, targets, force, json)


def _limit(run: Any, tokens: Any, settings: dict[str, Any], sequence: int | None) -> Any:
    """The limit and its polytope for the pictures, where the layers reach a settled one."""
    import numpy as np

    from hardmax.analysis.equilibrium import equilibrium

    one_step = isinstance(run.gamma, tuple) and len(set(run.gamma)) == 1
    plain = run.temperature == 0 and run.heads == 1 and run.normalization == "rescale"
    if not (one_step and plain):
        return None
    points = np.array(tokens.points, dtype=np.float64).astype(run.dtype)
    points = points if sequence is None else points[sequence]
    points = points[run.mask if sequence is None else run.mask[sequence]]
    eq = equilibrium(points, A=settings["A"], gamma=run.gamma[0], max_depth=run.depth)
    return eq if eq.status in ("proved", "settled") and eq.polytope is not None else None


def _run(
    tokens: Any, depth: int, dtype: Precision, settings: dict[str, Any], search: opt.SearchPath
) -> Any:
    import numpy as np

    from hardmax.dynamics.run import simulate as run_layers
    from hardmax.select import using

    given = np.array(tokens.points, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        points = given.astype(dtype.value)
    lost = ~np.isfinite(points) | ((points == 0) & (given != 0))
    if settings["mask"] is not None:
        lost &= settings["mask"][..., None]
    if lost.any():
        raise InputError(
            f"--dtype {dtype.value} has no number near {given[lost][0]:g}. Use --dtype float64."
        )
    with using(search.value):
        return run_layers(points, depth, **settings)


def _check_view(view: _View, shape: tuple[int, ...], heads: int, pictures: bool) -> None:
    if view.sequence is not None and (len(shape) < 3 or view.sequence >= shape[0]):
        size = f"a batch of {shape[0]}" if len(shape) == 3 else "one sequence"
        raise InputError(f"--sequence {view.sequence}: the file holds {size}.")
    if pictures and len(shape) == 3 and view.sequence is None:
        raise InputError(f"the file holds {shape[0]} sequences. Choose one with --sequence 0.")
    if view.head >= max(heads, 1):
        raise InputError(f"--head {view.head}: expected 0 to {heads - 1}.")


def run_data(run: Any) -> dict[str, Any]:
    """The data of a run, named as its attributes."""
    from dataclasses import fields

    data = {entry.name: getattr(run, entry.name) for entry in fields(run)}
    return {**data, "followers": run.followers}


def _write(
    run: Any, limit: Any, tokens: Any, view: _View, targets: Any, force: bool, quiet: bool
) -> None:
    if not targets:
        return
    from hardmax.cli.targets import json_writer, npz_writer, pictures_of, write_targets
    from hardmax.plot.scene import scene_of

    scene = scene_of(
        run, limit, names=tokens.names, title=tokens.title, sequence=view.sequence, head=view.head
    )
    arrays = {key: getattr(run, key) for key in ("zs", "layers", "z", "follows", "labels", "mask")}
    arrays |= {"margins": run.margins}
    if view.sequence is None:
        arrays |= {"leaders": [leader.index for leader in run.leaders]}
        arrays |= {"born": [leader.born for leader in run.leaders]}
    writers = {
        **pictures_of(scene, axes=view.axes, panels=view.panels),
        ".json": json_writer({**run_data(run), "scene": scene.to_dict()}),
        ".npz": npz_writer(arrays),
    }
    write_targets(targets, writers, force=force, quiet=quiet)


def _show(run: Any, tokens: Any, json: bool) -> None:
    if json:
        from hardmax.io import dumps

        typer.echo(dumps(run_data(run)))
        return
    *batch, n, d = tokens.shape
    many = f"{batch[0]} sequences of " if batch else ""
    facts = [
        ("status", run.status if not batch else text.listed(run.status)),
        ("layers", str(run.depth)),
        ("step", _step(run.gamma)),
        ("smallest margin", _margin(run, bool(batch))),
        ("searched by", run.path or "no search"),
        ("tie_tol, merge_tol", f"{run.tie_tol:g}, {run.merge_tol:g} ({run.dtype})"),
    ]
    if run.temperature:
        facts.append(("temperature", f"{run.temperature:g} (softmax)"))
    text.print_facts(f"{tokens.title}: {many}{text.counted(n, 'token')} in R^{d}", facts)
    if batch:
        rows = [
            [str(k), status, str(len(leaders))]
            for k, (status, leaders) in enumerate(zip(run.status, run.leaders, strict=True))
        ]
        text.print_table(["sequence", "status", "leaders"], rows, "sequences")
    else:
        _show_leaders(run, tokens)


def _step(gamma: Any) -> str:
    if not isinstance(gamma, tuple):
        return "gamma is a matrix"
    if not gamma:
        return "none"
    if len(set(gamma)) > 1:
        return f"gamma = {text.listed([text.number(g) for g in gamma])}"
    alpha = gamma[0] / (1 - gamma[0]) if gamma[0] < 1 else float("inf")
    return f"alpha = {text.number(alpha)}, gamma = {text.number(gamma[0])}"


def _margin(run: Any, batch: bool) -> str:
    import numpy as np

    known = run.margins[~np.isnan(run.margins)]
    if not known.size:
        return "none: nothing was searched"
    layer = int(np.argwhere(run.margins == known.min())[0][0])
    return f"{known.min():.3g} at layer {layer}, in units of |A z| max |z|"


def _show_leaders(run: Any, tokens: Any) -> None:
    import numpy as np

    labels = np.atleast_2d(run.labels)
    rows = []
    for place, leader in enumerate(run.leaders[: text.ROWS]):
        follow = np.flatnonzero(labels[leader.head] == place)
        others = [int(i) for i in follow if i != leader.index]
        row = [tokens.name(leader.index), str(leader.born), str(len(others))]
        row += [str(leader.head)] * (run.heads > 1)
        rows.append([*row, text.listed(tokens.named(others))])
    heads = ["leader", "born", "followers", *["head"] * (run.heads > 1), "who follows"]
    if rows:
        text.print_table(heads, rows, "leaders", len(run.leaders))
    else:
        text.say("no token leads")
    free = [int(i) for i in np.flatnonzero((labels < 0).any(axis=0) & run.mask)]
    if free and run.depth:
        text.say(f"no leader chosen alone at the last layer: {text.listed(tokens.named(free))}")
