"""`hardmax demo`: reviews classified and explained, limits proved, one page; no network."""

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
    """Train on the shipped reviews and explain one; prove limits; draw it all on one page."""
    from hardmax.cli.targets import check_targets

    force = force or out is None
    (target,) = check_targets([out or _PAGE], force=force, endings=(".html",))

    from hardmax.cli.train import progress_bar
    from hardmax.io import write_text
    from hardmax.lab.demo import review_classifier
    from hardmax.lab.reproduce import figure2

    with progress_bar() as show:
        reviews = review_classifier([] if show is None else [show])
    _show_reviews(reviews)
    _show_review(reviews)
    figure = figure2()
    _show_limits(figure)
    write_text(target, demo_page(figure, reviews), force=force)
    text.say(f"wrote {target}: open it in a browser")
    if not figure.holds:
        typer.echo("error: a fact of the figure does not hold", err=True)
        raise typer.Exit(1)


def _show_reviews(reviews: Any) -> None:
    """What the classifier learned, and how well it does on reviews it has not seen."""
    tokens = f"{len(reviews.classifier.vocabulary_):,} words and n-grams"
    facts = [
        ("trained", f"in {reviews.seconds:.1f} s, {tokens}, in the plane"),
        ("accuracy", f"{reviews.accuracy:.1%} of {reviews.held_out} reviews held out"),
        *(
            (f"leaders for {name}", text.listed([leader.word for leader in leaders]))
            for name, leaders in reviews.leaders.items()
        ),
    ]
    text.print_facts(f"{reviews.trained:,} short reviews of the package, positive or not", facts)
    text.say("")


def _show_review(reviews: Any) -> None:
    """One held-out review: prediction, the exact sum, the leaders, what would change it."""
    from hardmax.explain.sentence import counter_sentence, main_sentence

    found = reviews.explanation
    total = sum(c.contribution for c in found.contributions)
    text.say(f"a review held out, {reviews.label}:")
    text.paragraph(f"“{found.text}”")
    text.say("")
    text.paragraph(main_sentence(found))
    text.say(f"logit {found.logit:+.4f} = {found.bias:+.4f} (bias) {total:+.4f} (its words)")
    rows = [
        [x.word, str(x.born), str(x.followers), f"{x.influence:.2f}", f"{x.valence:+.2f}"]
        for x in found.leaders
    ]
    heads = ["leader", "born", "followers", "influence", "valence"]
    text.print_table(heads, rows, "leaders")
    text.say("")
    text.paragraph(counter_sentence(found, reviews.counterfactual))
    text.say("")


def _show_limits(figure: Any) -> None:
    """Row by row of figure 2: where the tokens end, and what was decided in rationals."""
    text.say("the four arrangements of figure 2, alpha = 1/2, infinitely many layers:")
    rows = []
    for row in figure.rows:
        labels = row.equilibrium.labels
        leads = {place for place, k in zip(row.places, labels, strict=True) if k >= 0}
        ends = [text.listed([text.point(place) for place in sorted(leads)])]
        ends += [text.listed([text.point(place) for place in row.rests])]
        eq = row.equilibrium
        rows.append([row.name, f"{eq.status} at {eq.settled_at}", *ends])
    heads = ["row", "settled", "leaders end at", "others end at"]
    text.print_table(heads, rows, "rows")
    text.say("")
    for fact in figure.facts:
        text.say(f"{'holds' if fact.holds else 'FAILS'}  {fact.claim}")


def demo_page(figure: Any, reviews: Any) -> str:
    """The page: one review explained, what is proved, figure 2 and its rows to step through."""
    from base64 import b64encode
    from io import BytesIO

    from hardmax.explain.report import document, report_body
    from hardmax.plot.figures import save_figure
    from hardmax.plot.page import section

    picture = BytesIO()
    save_figure(figure.draw(), picture, "svg")
    data = b64encode(picture.getvalue()).decode()
    facts = "".join(f"<li>{fact.claim}</li>" for fact in figure.facts if fact.holds)
    source = f"data:image/svg+xml;base64,{data}"
    described = "Tokens of the four arrangements at layers 0, 1, 2, 5 and 30"
    body = [
        f"<p>{_INTRODUCTION}</p>",
        _reviews_section(reviews),
        report_body(reviews.explanation),
        f"<h2>Limits, decided in rational arithmetic</h2><ul>{facts}</ul>",
        "<h2>Figure 2</h2>",
        f'<div class="wide"><img alt="{described}" src="{source}"></div>',
        *(section(row.scene, number) for number, row in enumerate(figure.rows, 1)),
    ]
    return document("Leaders and clusters of hardmax attention", "\n".join(body))


def _reviews_section(reviews: Any) -> str:
    from html import escape

    said = (
        f"Trained on {reviews.trained:,} short reviews that come with the package, with one head "
        f"in the plane, it is right on {reviews.accuracy:.1%} of {reviews.held_out} reviews held "
        "out. These words lead in several of those and say most:"
    )
    lines = "".join(
        f"<tr><td>{escape(x.word)}</td><td>{escape(name)}</td><td>{x.texts}</td>"
        f"<td>{x.valence:+.2f}</td></tr>"
        for name, leaders in reviews.leaders.items()
        for x in leaders
    )
    columns = "".join(
        f'<th scope="col">{head}</th>' for head in ("leader", "for", "leads in", "valence")
    )
    return (
        f'<h2>Reviews</h2><p>{said}</p><div class="wide" tabindex="0" role="region" '
        f'aria-label="Leaders of the reviews"><table><thead><tr>{columns}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
        f"<p>One of the reviews held out, {escape(reviews.label)}, explained:</p>"
    )
