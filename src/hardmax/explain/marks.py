"""What each word of a text is to its explanation, as marks in markup and as a table."""

from __future__ import annotations

from bisect import bisect_left
from html import escape
from typing import Any

from hardmax.explain.counterfactual import Counterfactual
from hardmax.explain.explanation import Explanation

__all__ = ["clean", "leading_places", "prints", "shaded", "word_cell", "word_table"]

_SHADES = 5


def leading_places(explanation: Explanation) -> frozenset[int]:
    """The places in `words` where a token that leads stands."""
    led = {leader.word for leader in explanation.leaders}
    starts = [word.start for word in explanation.words]
    out: set[int] = set()
    for c in explanation.contributions:
        for start, stop in c.spans if c.word in led else ():
            out.update(range(bisect_left(starts, start), bisect_left(starts, stop)))
    return frozenset(out)


def shaded(explanation: Explanation, found: Counterfactual | None = None) -> str:
    """The text with its words marked: shade by contribution, leaders, what would go."""
    words, led = explanation.words, leading_places(explanation)
    top = max((abs(w.contribution) for w in words), default=0.0)
    gone = set(found.spans) if found is not None else set()
    out, at = [], 0
    for place, w in enumerate(words):
        out.append(_plain(explanation.text[at : w.start]))
        kinds = [_shade(w.contribution, top)] if w.known else ["unknown"]
        kinds += ["leader"] if place in led else []
        kinds += ["gone"] if (w.start, w.stop) in gone else []
        named = " ".join(kind for kind in kinds if kind)
        said = f"{w.contribution:+.3f}" if w.known else "not in the vocabulary"
        piece = _plain(explanation.text[w.start : w.stop])
        out.append(f'<mark class="{named}" title="{said}">{piece}</mark>' if named else piece)
        at = w.stop
    out.append(_plain(explanation.text[at:]))
    return "".join(out)


def word_table(explanation: Explanation, found: Counterfactual | None = None) -> str:
    """Every word in the order of the text, with what the marks say in words."""
    if not explanation.words:
        return ""
    led, gone = leading_places(explanation), set(found.spans) if found is not None else set()
    lines = []
    for place, w in enumerate(explanation.words):
        said = [] if w.known else ["not in the vocabulary"]
        said += ["leads"] if place in led else []
        said += ["goes in the counterfactual"] if (w.start, w.stop) in gone else []
        worth = f"{w.contribution:+.4f}" if w.known else "–"
        name = word_cell(explanation.text[w.start : w.stop])
        lines.append(f"<tr><td>{name}</td><td>{worth}</td><td>{', '.join(said)}</td></tr>")
    heads = "".join(f'<th scope="col">{h}</th>' for h in ("word", "contribution", "role"))
    return (
        "<details><summary>All words in order, as a table</summary>"
        '<div class="wide" tabindex="0" role="region" aria-label="All words in order">'
        f'<table class="bars"><thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody>'
        "</table></div></details>"
    )


def _shade(value: float, top: float) -> str:
    level = 0 if top == 0 else min(_SHADES, round(_SHADES * (abs(value) / top) ** 0.5 + 0.2))
    return "" if level == 0 else f"{'for' if value > 0 else 'against'}{level}"


def _plain(text: str) -> str:
    """Text for markup: what does not print becomes a sign that does; breaks stay."""
    shown = "".join(c if c in "\n\t" or prints(c) else "\ufffd" for c in text)
    return escape(shown)


def prints(c: str) -> bool:
    """Whether a character shows something and moves nothing around it."""
    return c.isprintable() or c in "\u00a0\u2009\u200d\u200c"


def clean(value: Any, longest: int = 80) -> str:
    """A value on one line, without what does not print, and not endless."""
    text = "".join(c if prints(c) else " " for c in str(value))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def word_cell(value: Any) -> str:
    """A word or class in the markup, apart from the direction of the text around it."""
    return f"<bdi>{escape(clean(value))}</bdi>"
