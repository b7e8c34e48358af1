"""The page of an explanation: one file, offline, for eyes and for screen readers.

Whatever a text holds is shown as text: it is escaped in the markup, characters
that do not print are replaced, and only the page's own style and script may run.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from html import escape
from importlib.resources import files

from hardmax.explain.counterfactual import Counterfactual
from hardmax.explain.explanation import Explanation, Leader
from hardmax.explain.marks import clean, shaded, word_cell, word_table
from hardmax.explain.scenes import MOST, decision_line, heads_by_weight, scene_of_head
from hardmax.explain.sentence import counter_sentence, main_sentence
from hardmax.plot.page import section, style

__all__ = ["document", "fragment", "report", "report_body"]

_HEADS, _ROWS, _LEADERS = 4, 30, 60
_FEWER = 100
"""Tokens in the pictures of the heads that say less."""


def report(explanation: Explanation) -> str:
    """The whole page of an explanation, with its counterfactual."""
    return document(f"Prediction: {clean(explanation.prediction)}", report_body(explanation))


def report_body(explanation: Explanation, *, first: int = 0) -> str:
    """The markup of the page of an explanation, to stand in a `document`.

    Scenes count from `first`; each scene of a page needs a number of its own.
    """
    found = explanation.counterfactual()
    parts = [
        f'<p class="answer">{escape(main_sentence(explanation))}</p>',
        _counter(explanation, found),
        "<h2>The text</h2>",
        _legend(explanation),
        _TEXT.format(shaded(explanation, found)),
        word_table(explanation, found),
        "<h2>What was added up</h2>",
        _sum(explanation),
        _table(explanation),
        _leaders(explanation),
        _pictures(explanation, first),
        _rest(explanation),
    ]
    return "\n".join(parts)


def fragment(explanation: Explanation) -> str:
    """The shaded text and the largest contributions, for a notebook; it brings its style."""
    return (
        f'<div class="hardmax-explanation"><style>{_scoped()}</style>'
        f"<p>{escape(main_sentence(explanation))}</p>"
        f'<div class="review" dir="auto">{shaded(explanation)}</div>'
        f"{_table(explanation, 10)}</div>"
    )


def document(title: str, body: str) -> str:
    """A page around trusted markup, with the style and the script of scenes and reports."""
    looks, does = style() + _asset("explanation.css"), _script()
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src '{_digest(looks)}'; script-src '{_digest(does)}'"
    )
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<link rel="icon" href="data:,">',
            f"<title>{escape(title)}</title>",
            f"<style>{looks}</style>",
            "</head>",
            "<body>",
            f"<h1>{escape(title)}</h1>",
            body,
            f"<script>{does}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


_TEXT = '<div class="review" dir="auto" tabindex="0" role="region" aria-label="The text">{}</div>'


def _legend(explanation: Explanation) -> str:
    label = word_cell(explanation.label)
    return (
        f'<p class="hint"><span class="swatch for">shaded</span> speaks for {label}, '
        f'<span class="swatch against">underlined with dots</span> against {label}; double line: '
        "leads; dashed box: goes in the counterfactual; grey: not in the vocabulary.</p>"
    )


def _counter(explanation: Explanation, found: Counterfactual | None) -> str:
    return f'<p class="counter">{escape(counter_sentence(explanation, found))}</p>'


def _sum(explanation: Explanation) -> str:
    total = sum(c.contribution for c in explanation.contributions)
    parts = f"{explanation.bias:+.6f} (bias) {total:+.6f} (contributions)"
    return (
        f"<p>logit of {word_cell(explanation.label)}: {explanation.logit:.6f} = "
        f"{parts.replace('-', '−')}; probability {explanation.probability:.4f}.</p>"
    )


def _table(explanation: Explanation, rows: int = _ROWS) -> str:
    kept = explanation.contributions[:rows]
    if not kept:
        return "<p>No word of the text is in the vocabulary: the logit is the bias.</p>"
    top = max(abs(c.contribution) for c in kept)
    lines = "".join(
        f"<tr><td>{word_cell(c.word)}</td><td>{_bar(c.contribution, top)}</td>"
        f"<td>{c.contribution:+.4f}</td><td>{c.count}</td></tr>"
        for c in kept
    )
    rest = explanation.contributions[rows:]
    more = (
        f'<p class="hint">{len(rest)} more tokens together: '
        f"{sum(c.contribution for c in rest):+.4f}.</p>"
        if rest
        else ""
    )
    heads = "".join(f'<th scope="col">{h}</th>' for h in ("token", "", "contribution", "count"))
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="Contributions">'
        f'<table class="bars"><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>'
        f"</div>{more}"
    )


def _bar(value: float, top: float) -> str:
    wide = 0 if top == 0 else 50 * abs(value) / top
    left = 50 if value > 0 else 50 - wide
    kind = "for" if value > 0 else "against"
    return (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="{kind}" x="{left:.2f}" y="1" width="{wide:.2f}" height="8"/>'
        '<line x1="50" x2="50" y1="0" y2="10"/></svg>'
    )


def _leaders(explanation: Explanation) -> str:
    if not explanation.leaders:
        return "<h2>Leaders</h2><p>No word leads.</p>"
    several = explanation.heads > 1
    heads = ["leader", *(["head"] if several else []), "born", "followers", "influence", "valence"]
    columns = "".join(f'<th scope="col">{h}</th>' for h in heads)
    kept = explanation.leaders[:_LEADERS]
    lines = "".join(_leader(x, several) for x in kept)
    rest = len(explanation.leaders) - len(kept)
    more = f'<p class="hint">{rest} more are not listed.</p>' if rest else ""
    return (
        '<h2>Leaders</h2><div class="wide" tabindex="0" role="region" aria-label="Leaders">'
        f"<table><thead><tr>{columns}</tr></thead><tbody>{lines}</tbody></table></div>{more}"
        '<p class="hint">Born: the layer at which it first chose itself alone. Influence: its '
        "weight in the mean. Valence: what the decoder makes of it.</p>"
    )


def _leader(x: Leader, several: bool) -> str:
    head = f"<td>{x.head}</td>" if several else ""
    return (
        f"<tr><td>{word_cell(x.word)}</td>{head}<td>{x.born}</td><td>{x.followers}</td>"
        f"<td>{x.influence:.4f}</td><td>{x.valence:+.3f}</td></tr>"
    )


def _pictures(explanation: Explanation, first: int) -> str:
    """One picture per head: of many, the heads that say less stay folded up."""
    if not explanation.contributions:
        return ""
    order = heads_by_weight(explanation)
    few, rest = order[:_HEADS], order[_HEADS:]
    said = (
        f"The {len(few)} of {len(order)} heads that add or take away most; the others below."
        if rest
        else "Words move to the words they follow."
    )
    parts = [f'<h2>Layer by layer</h2><p class="hint">{said} {_LINE}</p>']
    parts += [_picture(explanation, head, number) for number, head in enumerate(few, first)]
    if rest:
        others = "The other head" if len(rest) == 1 else f"The other {len(rest)} heads"
        parts.append(f"<details><summary>{others}</summary>")
        numbers = enumerate(rest, first + len(few))
        parts += [_picture(explanation, head, number, _FEWER) for number, head in numbers]
        parts.append("</details>")
    return "\n".join(parts)


def _picture(explanation: Explanation, head: int, number: int, most: int = MOST) -> str:
    line = decision_line(explanation, head)
    data = "" if line is None else f' data-line="{" ".join(map(repr, line))}"'
    scene = scene_of_head(explanation, head, most=most)
    return f"<div{data}></div>\n{section(scene, number)}"


_LINE = (
    "In a plane the dashed line is where the decoder is undecided "
    "(with several heads, the bias is shared equally)."
)


def _rest(explanation: Explanation) -> str:
    facts = [
        ("stability radius", f"{explanation.stability_radius:.3g}"),
        ("layers", explanation.depth),
        ("heads", explanation.heads),
        ("tie_tol", explanation.bundle.model.tie_tol),
        ("arithmetic", "float64"),
        ("attends within", "its sentence" if explanation.bundle.sentences else "the text"),
    ]
    items = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts)
    return (
        "<details><summary>What the numbers rest on</summary>"
        f"<dl>{items}</dl><p>While every word vector moves by less than the radius, "
        "no choice of any word changes.</p></details>"
    )


def _scoped() -> str:
    """The style of the fragment, for its own elements only."""
    base = ":root { --line: #8886; --raised: transparent; --muted: #888; --ink: currentColor; }"
    rules = (base + _asset("explanation.css")).replace(":root", ".hardmax-explanation")
    return re.sub(r"(^|{ )\.(?!hardmax)", r"\1.hardmax-explanation .", rules, flags=re.MULTILINE)


@cache
def _script() -> str:
    picture, reader = (
        files("hardmax.plot").joinpath("assets", name).read_text(encoding="utf-8")
        for name in ("picture.js", "reader.js")
    )
    return picture + _asset("line.js") + reader


@cache
def _asset(name: str) -> str:
    return files("hardmax.explain").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(source: str) -> str:
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    return f"sha256-{digest}"
