"""`hardmax demo`: proved limits and a page with pictures; no network, no arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hardmax.cli import options as opt
from hardmax.cli import text

__all__ = ["demo_page", "register"]

_PAGE = Path("hardmax-demo.html")
_EXAMPLES = """Example:

hardmax demo
"""
_INTRODUCTION = (
    "In every layer each token looks only at the tokens with the largest score and moves toward "
    "their mean. A token that looks at itself alone is a leader and never moves again; the others "
    "end on leaders, or on points between several of them."
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", epilog=_EXAMPLES)(demo)


def demo(
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The page; hardmax-demo.html is replaced, others not."),
    ] = None,
    force: opt.Force = False,
) -> None:
    """Prove the limits of the paper's four arrangements and draw them on one page."""
    from hardmax.cli.targets import check_targets

    force = force or out is None
    (target,) = check_targets([out or _PAGE], force=force, endings=(".html",))

    from hardmax.io import write_text
    from hardmax.lab.reproduce import figure2

    figure = figure2()
    for row in figure.rows:
        _show(row)
    for fact in figure.facts:
        text.say(f"{'holds' if fact.holds else 'FAILS'}  {fact.claim}")
    write_text(target, demo_page(figure), force=force)
    text.say(f"wrote {target}: open it in a browser")
    if not figure.holds:
        typer.echo("error: a fact of the figure does not hold", err=True)
        raise typer.Exit(1)


def _show(row: Any) -> None:
    eq = row.equilibrium
    ends = sorted({(tuple(place), int(k)) for place, k in zip(row.places, eq.labels, strict=True)})
    leads = [text.point(place) for place, k in ends if k >= 0]
    rests = [text.point(place) for place, k in ends if k < 0]
    facts = [
        ("limit", f"{eq.status} at layer {eq.settled_at}: {eq.certificate.reason}"),
        ("leaders end at", ", ".join(leads)),
        ("others end at", ", ".join(rests)),
    ]
    text.print_facts(
        f"{row.name}: {len(row.tokens)} tokens in R^2, alpha = 1/2",
        [(name, value) for name, value in facts if value],
    )
    text.say("")


def demo_page(figure: Any) -> str:
    """The page: what is proved, figure 2, and its rows to step through."""
    from base64 import b64encode
    from io import BytesIO

    from hardmax.plot.figures import save_figure
    from hardmax.plot.page import document, section

    picture = BytesIO()
    save_figure(figure.draw(), picture, "svg")
    data = b64encode(picture.getvalue()).decode()
    facts = "".join(f"<li>{fact.claim}</li>" for fact in figure.facts if fact.holds)
    source = f"data:image/svg+xml;base64,{data}"
    described = "Tokens of the four arrangements at layers 0, 1, 2, 5 and 30"
    body = [
        f"<p>{_INTRODUCTION}</p>",
        f"<h2>Decided in rational arithmetic</h2><ul>{facts}</ul>",
        "<h2>Figure 2</h2>",
        f'<div class="wide"><img alt="{described}" src="{source}"></div>',
        *(section(row.scene, number) for number, row in enumerate(figure.rows)),
    ]
    return document("Leaders and clusters of hardmax attention", "\n".join(body))
