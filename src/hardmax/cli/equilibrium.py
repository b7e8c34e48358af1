"""`hardmax equilibrium`: the limit in closed form, with its proof."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hardmax.cli import options as opt
from hardmax.cli import text

__all__ = ["register", "show_equilibrium"]

_EXAMPLES = """Examples:

hardmax equilibrium emerging --alpha 1/2 --exact --verify\n
hardmax equilibrium edges --alpha .5 --out edges.png --out edges.json\n
hardmax equilibrium gaussian:n=1000,d=3,seed=1 --gamma .3
"""
_NEAR = 1e-6
_LONGEST = 200


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("equilibrium", epilog=_EXAMPLES)(equilibrium)


def equilibrium(
    source: opt.Source,
    alpha: opt.Alpha = None,
    gamma: opt.Gamma = None,
    matrix: opt.Matrix = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Decide and give the limit in rational numbers.")
    ] = False,
    max_depth: Annotated[int, typer.Option(min=0, help="Layers to try.")] = 10_000,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check the certificate again, also in rationals.")
    ] = False,
    out: opt.Out = None,
    axes: opt.Axes = None,
    json: opt.Json = False,
    force: opt.Force = False,
    seed: opt.Seed = None,
    search: opt.Search = opt.SearchPath.auto,
) -> None:
    """Give the limit of every token for infinite depth, and prove it."""
    from hardmax.cli.source import read_scores, read_source
    from hardmax.cli.targets import check_pictures, check_targets

    targets = check_targets(out, force=force)
    tokens = read_source(source, exact=exact, seed=seed)
    steps = opt.read_steps(alpha, gamma, tokens.settings, exact=exact)
    scores = read_scores(matrix, tokens.settings)
    view = opt.read_axes(axes, tokens.shape[-1])
    check_pictures(targets, tokens.shape[-1], view)

    from hardmax.analysis.equilibrium import equilibrium as find_limit
    from hardmax.select import using

    with using(search.value):
        eq = find_limit(tokens.points, A=scores, **steps, exact=exact, max_depth=max_depth)
    checks = _verify(eq, tokens.points) if verify else {}
    if json:
        from hardmax.io import dumps

        typer.echo(dumps(eq.to_dict()))
    else:
        show_equilibrium(eq, tokens, checks)
    if targets:
        _write(eq, tokens, scores, view, targets, force, json)
    if eq.certificate.proved and not all(checks.values()):
        typer.echo("error: the certificate does not verify; please report these tokens", err=True)
        raise typer.Exit(1)


def _verify(eq: Any, points: Any) -> dict[str, bool]:
    certificate = eq.certificate
    return {
        "from the tokens alone": certificate.verify(points),
        "in rational arithmetic": certificate.verify(points, arithmetic="rational"),
    }


def show_equilibrium(eq: Any, tokens: Any, checks: dict[str, bool] | None = None) -> None:
    """Print what is known of the limit, and how it is known."""
    certificate = eq.certificate
    kind = "proved" if certificate.proved else "not proved"
    facts = [
        ("status", eq.status),
        ("settled at", "no layer" if eq.settled_at is None else f"layer {eq.settled_at}"),
        ("certificate", f"{kind}, {certificate.arithmetic} arithmetic: {certificate.reason}"),
        ("smallest margin", f"{text.number(certificate.margin, 3)} in units of |A z| max |z|"),
        ("assumptions", ("hold. " if eq.assumptions.hold else "fail. ") + eq.assumptions.message),
        ("step", f"alpha = {text.number(eq.alpha)}, gamma = {text.number(eq.gamma)}"),
        ("searched by", eq.path or "exact scores"),
        ("rate", f"{text.number(eq.rate)} per layer{_near(eq)}"),
        ("polytope", _polytope(eq.polytope)),
    ]
    for name, good in (checks or {}).items():
        facts.append((f"verified {name}", "yes" if good else "no"))
    n, d = tokens.shape
    text.print_facts(f"{tokens.title}: {text.counted(n, 'token')} in R^{d}", facts)
    _show_leaders(eq, tokens)
    _show_others(eq, tokens)


def _near(eq: Any) -> str:
    if eq.settled_at is None:
        return ""
    return f"; all tokens within {_NEAR:g} of their limits at layer {eq.layers_within(_NEAR)}"


def _polytope(polytope: Any) -> str:
    if polytope is None:
        return "none"
    return f"{text.counted(len(polytope.vertices), 'vertex', 'vertices')}, dimension {polytope.dim}"


def _place(eq: Any, index: int) -> str:
    exact = eq.limit_exact
    return text.point(exact[index] if exact is not None else eq.limit[index])


def _show_leaders(eq: Any, tokens: Any) -> None:
    import numpy as np

    rows = []
    shown = zip(eq.leaders[: text.ROWS], eq.born, strict=False)
    for place, (index, born) in enumerate(shown):
        others = [int(i) for i in np.flatnonzero(eq.labels == place) if i != index]
        row = [tokens.name(index), str(born), _place(eq, index), str(len(others))]
        rows.append([*row, text.listed(tokens.named(others))])
    if rows:
        heads = ["leader", "born", "limit", "followers", "who follows"]
        text.print_table(heads, rows, "leaders", len(eq.leaders))
    else:
        text.say("no token leads")


def _show_others(eq: Any, tokens: Any) -> None:
    """The points of S where no leader stands, and the tokens without a limit."""
    import numpy as np

    free = np.flatnonzero(eq.labels < 0)
    known = [int(i) for i in free if np.isfinite(eq.limit[i]).all()]
    groups: dict[bytes, list[int]] = {}
    for i in known:
        groups.setdefault((eq.limit[i] + 0.0).tobytes(), []).append(i)
    rows = [[_place(eq, g[0]), str(len(g)), text.listed(tokens.named(g))] for g in groups.values()]
    if rows:
        heads = ["point of S without a leader", "tokens", "which"]
        text.print_table(heads, rows, "points")
    lost = sorted({int(i) for i in free} - set(known))
    if lost:
        text.say(f"limit not reached: {text.listed(tokens.named(lost))}")


def _write(
    eq: Any, tokens: Any, scores: Any, view: Any, targets: Any, force: bool, quiet: bool
) -> None:
    from hardmax.cli.targets import json_writer, npz_writer, pictures_of, write_targets

    scene = scene_of_limit(eq, tokens.points, tokens.title, names=tokens.names, A=scores)
    arrays = {key: getattr(eq, key) for key in ("limit", "labels", "leaders", "born", "points")}
    if eq.polytope is not None:
        arrays["vertices"] = eq.polytope.vertices
    writers = {
        **pictures_of(scene, axes=view),
        ".json": json_writer({**eq.to_dict(), "scene": scene.to_dict()}),
        ".npz": npz_writer({key: value for key, value in arrays.items() if value is not None}),
    }
    write_targets(targets, writers, force=force, quiet=quiet)


def scene_of_limit(
    eq: Any, points: Any, title: str, *, names: Any = None, A: Any = None, depth: int | None = None
) -> Any:
    """The scene of a limit: enough layers that the tokens are seen to arrive."""
    import numpy as np

    from hardmax.dynamics.run import simulate
    from hardmax.plot.scene import scene_of

    if depth is None:
        depth = 30 if eq.settled_at is None else max(eq.layers_within(1e-3), 1)
        depth = min(depth, _LONGEST)
    run = simulate(np.array(points, dtype=np.float64), depth, A=A, gamma=eq.gamma)
    return scene_of(run, eq, names=names, title=title)
