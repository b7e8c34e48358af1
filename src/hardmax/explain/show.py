"""An explanation on the terminal, drawn with rich."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hardmax.explain.counterfactual import Counterfactual
from hardmax.explain.explanation import Explanation
from hardmax.explain.marks import leading_places
from hardmax.explain.sentence import counter_sentence, main_sentence, shown

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

__all__ = ["painted", "renderable"]

_ROWS, _LEADERS = 15, 12
_SOME = 0.25


def painted(explanation: Explanation) -> Text:
    """The text with its words coloured by contribution; leaders are underlined.

    Control characters are replaced, so that a text cannot move the cursor.
    """
    from rich.text import Text

    top = max((abs(w.contribution) for w in explanation.words), default=0.0)
    led = leading_places(explanation)
    out, at = Text(), 0
    for place, w in enumerate(explanation.words):
        out.append(_safe(explanation.text[at : w.start]))
        styles = [] if w.known else ["dim"]
        if top and abs(w.contribution) > _SOME**2 * top:
            strong = "bold " if abs(w.contribution) > _SOME * top else ""
            styles.append(f"{strong}{'blue' if w.contribution > 0 else 'red'}")
        styles += ["underline"] if place in led else []
        out.append(_safe(explanation.text[w.start : w.stop]), style=" ".join(styles) or None)
        at = w.stop
    out.append(_safe(explanation.text[at:]))
    return out


def renderable(
    explanation: Explanation, found: Counterfactual | None, among: str = "words"
) -> Group:
    """Sentence, text, contributions, leaders and counterfactual, for a rich console."""
    from rich.console import Group
    from rich.text import Text

    total = sum(c.contribution for c in explanation.contributions)
    said = (
        f"logit of {shown(explanation.label)}: {explanation.logit:.6f} = {explanation.bias:+.6f} "
        f"(bias) {total:+.6f} (contributions)"
    )
    parts: list[Any] = [Text(main_sentence(explanation)), Text(), painted(explanation), Text()]
    parts.append(Text(said))
    if explanation.contributions:
        parts += [_contributions(explanation), _leaders(explanation)]
    return Group(*parts, Text(counter_sentence(explanation, found, among)))


def _contributions(explanation: Explanation) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for head in ("token", "count", "contribution"):
        table.add_column(head, justify="left" if head == "token" else "right")
    for c in explanation.contributions[:_ROWS]:
        style = "blue" if c.contribution > 0 else "red"
        value = Text(f"{c.contribution:+.4f}", style=style)
        table.add_row(Text(shown(c.word)), str(c.count), value)
    rest = explanation.contributions[_ROWS:]
    if rest:
        left = sum(c.contribution for c in rest)
        table.add_row(f"{len(rest)} more", "", f"{left:+.4f}")
    return table


def _leaders(explanation: Explanation) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for head in ("leader", "head", "born", "followers", "influence", "valence"):
        table.add_column(head, justify="left" if head == "leader" else "right")
    for x in explanation.leaders[:_LEADERS]:
        cells = (str(x.head), str(x.born), str(x.followers))
        table.add_row(Text(shown(x.word)), *cells, f"{x.influence:.4f}", f"{x.valence:+.3f}")
    if len(explanation.leaders) > _LEADERS:
        table.add_row(f"{len(explanation.leaders) - _LEADERS} more")
    return table


def _safe(text: str) -> str:
    return "".join(c if c == "\n" or c.isprintable() else " " for c in text)
