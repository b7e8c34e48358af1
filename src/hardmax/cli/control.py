"""`hardmax control`: scores with which given tokens lead, or a proof that there are none."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from hardmax._errors import InputError
from hardmax.cli import options as opt
from hardmax.cli import text

__all__ = ["register"]

_EXAMPLES = """Examples:

hardmax control emerging --lead 0,1,2\n
hardmax control gaussian:n=40,d=2,seed=1 --lead 18,34,20 --relax --out A.json --out both.png\n
hardmax control triangle --lead 0,2 --follow 3:0,4:2 --diagonal
"""
_DRAWN = (".png", ".pdf", ".svg")
_SHOWN = 8


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("control", epilog=_EXAMPLES)(control)


def control(
    source: opt.Source,
    lead: Annotated[str, typer.Option(metavar="I,J,...", help="Tokens that shall lead.")],
    follow: Annotated[
        str | None, typer.Option(metavar="I:L,...", help="Token I shall follow the leader L.")
    ] = None,
    limit: Annotated[
        bool, typer.Option("--limit", help="In the limit, born at any layer; found by search.")
    ] = False,
    diagonal: Annotated[bool, typer.Option("--diagonal", help="Only diagonal A.")] = False,
    rank: Annotated[
        int | None, typer.Option(min=1, help="Largest rank of A; found by search.")
    ] = None,
    closest_to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The nearest A to this matrix, not the largest margin."),
    ] = None,
    relax: Annotated[
        bool, typer.Option("--relax", help="Leave out the fewest wishes when not all can be had.")
    ] = False,
    alpha: opt.Alpha = None,
    gamma: opt.Gamma = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Take an arrangement in rational numbers.")
    ] = False,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Write A and the proof (.json), or before and after (.png .pdf .svg).",
        ),
    ] = None,
    axes: opt.Axes = None,
    json: opt.Json = False,
    force: opt.Force = False,
    seed: opt.Seed = None,
) -> None:
    """Find scores A so that given tokens lead, with the largest margin, or prove there are none."""
    from hardmax.cli.source import read_source
    from hardmax.cli.targets import check_targets

    targets = check_targets(out, force=force, endings=(*_DRAWN, ".json"))
    tokens = read_source(source, exact=exact, seed=seed)
    steps = opt.read_steps(alpha, gamma, tokens.settings, exact=exact)
    view = opt.read_axes(axes, tokens.shape[-1])
    _check_axes(targets, tokens.shape[-1], view)
    leads = _tokens("--lead", lead)
    wanted = None if closest_to is None else _matrix(closest_to)

    from hardmax.analysis.control import choose_matrix

    found = choose_matrix(
        tokens.points,
        leads,
        follow=_pairs(follow),
        where="limit" if limit else "input",
        shape="diagonal" if diagonal else "full",
        rank=rank,
        closest_to=wanted,
        relax=relax,
        **steps,
    )
    proofs = [found.certificate, *found.conflicts]
    good = all(proof.verify() for proof in proofs if proof is not None)
    if json:
        from hardmax.io import dumps

        typer.echo(dumps(_data(found)))
    else:
        _show(found, tokens, good)
    if targets:
        _write(found, tokens, steps, leads, view, targets, force, json)
    if not good:
        typer.echo("error: the certificate does not verify; please report these tokens", err=True)
        raise typer.Exit(1)


def _tokens(name: str, given: str) -> list[int]:
    parts = [part.strip() for part in given.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise InputError(f"{name}: expected token numbers such as 0,3, got {given!r}.")
    return [int(part) for part in parts]


def _pairs(given: str | None) -> list[tuple[int, int]]:
    if given is None:
        return []
    pairs = []
    for part in given.split(","):
        ends = part.split(":")
        if len(ends) != 2:
            raise InputError(f"--follow: expected pairs such as 5:0,6:3, got {given!r}.")
        follower, leader = (_tokens("--follow", end) for end in ends)
        pairs.append((follower[0], leader[0]))
    return pairs


def _matrix(path: Path) -> Any:
    from hardmax.io import read_matrix

    found = read_matrix(path)
    if isinstance(found, tuple):
        raise InputError(f"--closest-to {path}: expected one matrix, got factors U and V.")
    return found


def _check_axes(targets: list[Path], d: int, view: tuple[int, ...] | None) -> None:
    for path in targets:
        if path.suffix.lower() in _DRAWN and d > 2 and (view is None or len(view) != 2):
            raise InputError(f"--out {path}: the tokens have d = {d}. Choose two with --axes 0,1.")


def _data(found: Any) -> dict[str, Any]:
    """The data of the result; with a rank also the factors, as --A reads them."""
    factors = {} if found.factor is None else {key: found.factor.tolist() for key in "UV"}
    return {**found.to_dict(), **factors}


def _show(found: Any, tokens: Any, good: bool) -> None:
    low, high = found.interval
    facts = [("status", _status(found))]
    if found.margin is not None:
        kept = "of the wishes granted, " if found.violated else ""
        facts.append(("margin", f"{text.number(found.margin)} {kept}at the input, for trace A = d"))
    known = f"between {text.number(low, 8)} and {text.number(high, 8)}"
    facts.append(("largest margin of all", known if high > 0 else "not positive"))
    if found.distance is not None:
        facts.append(("distance", text.number(found.distance)))
    if found.violated:
        least = "no fewer is possible" if found.violated_proved else "fewer may be possible"
        left = text.listed([str(w) for w in found.violated])
        facts.append(("left out", f"{left} ({least})"))
    if found.certificate is not None:
        facts.append(("verified in rational arithmetic", "yes" if good else "no"))
    n, d = tokens.shape
    text.print_facts(f"{tokens.title}: {text.counted(n, 'token')} in R^{d}", facts)
    if found.A is not None:
        rows = [[text.number(v, 8) for v in row[:_SHOWN]] for row in found.A[: text.ROWS]]
        heads = [f"A {j}" for j in range(min(d, _SHOWN))]
        text.print_table(heads, rows, "rows", d)


def _status(found: Any) -> str:
    wishes = text.listed([str(w) for w in found.wishes])
    proof = found.certificate
    if found.status == "feasible":
        return f"feasible: {wishes}"
    if found.status == "undecided":
        return f"undecided: no A was found, and no proof that there is none ({wishes})"
    names = {(w.token, w.target): str(w) for w in found.wishes}
    core = text.listed([names[pair] for pair in proof.wishes])
    used = text.counted(len(proof.multipliers), "inequality", "inequalities")
    return f"infeasible: {used} contradict each other ({core})"


def _write(
    found: Any,
    tokens: Any,
    steps: Any,
    leads: list[int],
    view: Any,
    targets: list[Path],
    force: bool,
    quiet: bool,
) -> None:
    from hardmax.cli.targets import json_writer, write_targets

    drawn = [path for path in targets if path.suffix.lower() in _DRAWN]
    if drawn and found.A is None:
        targets = [path for path in targets if path not in drawn]
    data: dict[str, Any] = _data(found)
    writers: dict[str, Any] = {}
    if drawn and found.A is not None:
        before, after = _scenes(found, tokens, steps)
        data |= {"before": before.to_dict(), "after": after.to_dict()}
        for kind in _DRAWN:
            writers[kind] = partial(_draw, before, after, leads, view, kind)
    writers[".json"] = json_writer(data)
    write_targets(targets, writers, force=force, quiet=quiet)
    if drawn and found.A is None:
        raise InputError(f"--out {drawn[0]}: there is no A to draw. See --relax.")


def _scenes(found: Any, tokens: Any, steps: Any) -> tuple[Any, Any]:
    from hardmax.analysis.equilibrium import equilibrium
    from hardmax.cli.equilibrium import scene_of_limit

    scenes = []
    for title, A in (("A = I", None), ("chosen A", found.scores)):
        eq = equilibrium(tokens.points, A=A, **steps)
        scenes.append(scene_of_limit(eq, tokens.points, title, names=tokens.names, A=A))
    return scenes[0], scenes[1]


def _draw(before: Any, after: Any, leads: list[int], view: Any, kind: str, file: Any) -> None:
    from hardmax.plot.control import draw_before_after
    from hardmax.plot.figures import save_figure

    save_figure(draw_before_after(before, after, leads, axes=view), file, kind)
