"""The whole model on one page and in one picture, from an `Overview`."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from hardmax._types import Floats
from hardmax.explain.bundle import Bundle, bundle_of
from hardmax.explain.marks import word_cell
from hardmax.explain.overview import LeaderCount, Overview, Role, VocabularyMap, vocabulary_map
from hardmax.explain.report import document
from hardmax.plot.shapes import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["glance", "picture"]

_MAPS, _DOTS, _NAMES = 4, 1500, 20
_SIDE = 640


def glance(source: Any, found: Overview, title: str = "The model at a glance") -> str:
    """A self-contained page: leaders, words of changing role, and the vocabulary in the plane.

    Parameters
    ----------
    source : fitted classifier or Bundle
        The model that `found` was made with.
    found : Overview
    title : str
    """
    bundle = bundle_of(source)
    predicted = ", ".join(
        f"{n:,} {word_cell(c)}" for c, n in zip(found.classes, found.predicted, strict=True)
    )
    said = f"{found.texts:,} texts; predicted: {predicted}."
    parts = [
        f'<p class="answer">{said} {found.mean_leaders:.2f} leaders per text and head.</p>',
        _leaders(found),
        _roles(found),
        _maps(bundle, found),
    ]
    return document(title, "\n".join(parts))


def picture(source: Any, found: Overview) -> Figure:
    """The same as a figure; the map is that of the head whose leaders say most."""
    from hardmax.plot.overview import draw_overview

    bundle = bundle_of(source)
    plane = None
    if _flat(bundle):
        seen = vocabulary_map(bundle, head=_heads(bundle, found)[0])
        named = _named(bundle, found)
        plane = {
            "points": seen.points, "valence": seen.valence, "normal": seen.normal,
            "bias": seen.bias, "named": named,
        }  # fmt: skip
    return draw_overview(
        [str(c) for c in found.classes],
        [(x.word, x.by_class) for x in found.leaders],
        [(x.word, x.contribution) for x in found.roles],
        plane,
    )


def _leaders(found: Overview) -> str:
    if not found.leaders:
        return "<h2>Who leads</h2><p>No word leads.</p>"
    top = max(x.texts for x in found.leaders)
    heads = [
        "leader",
        "",
        *(f"predicted {word_cell(c)}" for c in found.classes),
        "texts",
        "valence",
    ]
    rows = "".join(_leader(x, top) for x in found.leaders)
    return (
        "<h2>Who leads</h2>"
        + _table("Leaders", heads, rows)
        + '<p class="hint">In how many texts the word leads, by predicted class (bars: shaded the '
        "last class, dotted the first). Valence: what the decoder makes of it.</p>"
    )


def _leader(x: LeaderCount, top: int) -> str:
    counts = "".join(f"<td>{n:,}</td>" for n in x.by_class)
    return (
        f"<tr><td>{word_cell(x.word)}</td><td>{_stack(x.by_class, top)}</td>{counts}"
        f"<td>{x.texts:,}</td><td>{x.valence:+.3f}</td></tr>"
    )


def _stack(counts: tuple[int, ...], top: int) -> str:
    """A bar divided by class."""
    at, parts = 0.0, []
    for k, n in enumerate(counts):
        wide = 100 * n / top
        parts.append(
            f'<rect class="class{k % 4}" x="{at:.2f}" y="1" width="{wide:.2f}" height="8"/>'
        )
        at += wide
    return f'<svg class="bar" viewBox="0 0 100 10" {_STILL}>{"".join(parts)}</svg>'


_STILL = 'preserveAspectRatio="none" aria-hidden="true"'


def _roles(found: Overview) -> str:
    if not found.roles:
        return ""
    wide = max(abs(v) for x in found.roles for v in x.contribution) or 1.0
    heads = ["token", "", *(f"in {word_cell(c)}" for c in found.classes), "difference"]
    rows = "".join(_role(x, wide) for x in found.roles)
    return (
        "<h2>Words whose role differs most</h2>"
        + _table("Roles", heads, rows)
        + '<p class="hint">The mean contribution where the token occurs, by predicted class.</p>'
    )


def _role(x: Role, wide: float) -> str:
    means = "".join(f"<td>{v:+.4f}</td>" for v in x.contribution)
    places = [50 + 48 * v / wide for v in x.contribution]
    dots = "".join(
        f'<rect class="class{k % 4}" x="{at - 1:.2f}" y="2" width="2" height="6"/>'
        for k, at in enumerate(places)
    )
    line = f'<line x1="{min(places):.2f}" x2="{max(places):.2f}" y1="5" y2="5"/>'
    zero = '<line x1="50" x2="50" y1="0" y2="10"/>'
    svg = f'<svg class="bar" viewBox="0 0 100 10" {_STILL}>{zero}{line}{dots}</svg>'
    cells = f"<td>{word_cell(x.word)}</td><td>{svg}</td>{means}<td>{x.difference:.4f}</td>"
    return f"<tr>{cells}</tr>"


def _table(name: str, heads: list[str], rows: str) -> str:
    columns = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{name}"><table class="bars">'
        f"<thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _flat(bundle: Bundle) -> bool:
    return int(bundle.model.E.shape[1]) == 2 * bundle.model.heads


def _named(bundle: Bundle, found: Overview) -> list[tuple[int, str]]:
    """The tokens that get a name: the commonest leaders."""
    names = [x.word for x in found.leaders[:_NAMES]]
    places = {name: index for index, name in enumerate(bundle.vocabulary.names) if name in names}
    return [(places[name], name) for name in names if name in places]


def _heads(bundle: Bundle, found: Overview) -> list[int]:
    """The heads, those first whose commonest leaders are worth most."""
    rows = [index for index, _ in _named(bundle, found)] or [0]
    E, v = bundle.model.E.detach().numpy(), bundle.model.v.detach().numpy()[0]
    worth = np.abs((E[rows] * v).reshape(len(rows), bundle.model.heads, -1).sum(axis=2)).sum(axis=0)
    return [int(h) for h in np.argsort(-worth, kind="stable")]


def _maps(bundle: Bundle, found: Overview) -> str:
    if not _flat(bundle):
        return ""
    shown, named = _heads(bundle, found)[:_MAPS], _named(bundle, found)
    said = (
        f"{_shown(bundle)} Dots and squares by the side of the dashed line, where a text standing "
        "there would be undecided; stars: the commonest leaders."
    )
    parts = ["<h2>The vocabulary in the plane</h2>", f'<p class="hint">{said}</p>']
    for head in shown:
        if bundle.model.heads > 1:
            parts.append(f"<h3>Head {head}</h3>")
        parts.append(_map(vocabulary_map(bundle, head=head), named, head))
    return "\n".join(parts)


def _shown(bundle: Bundle) -> str:
    n = len(bundle.vocabulary)
    return f"The {min(n, _DOTS):,} commonest of {n:,} tokens, and the leaders."


def _map(seen: VocabularyMap, named: list[tuple[int, str]], head: int) -> str:
    """Dots for the first tokens of the vocabulary, stars and names for the leaders."""
    rows = np.array(sorted({*range(min(len(seen.words), _DOTS)), *(i for i, _ in named)}))
    low, high = seen.points[rows].min(axis=0), seen.points[rows].max(axis=0)
    half = 1.08 * max(float((high - low).max()) / 2, 1e-9)
    scale, middle = _SIDE / 2 / half, (low + high) / 2
    paper = (seen.points - middle) * scale * [1, -1] + _SIDE / 2
    stars = {index for index, _ in named}
    marks = [_mark(seen, paper, int(i)) for i in rows if int(i) not in stars]
    marks += [_line(seen, scale, middle)]
    marks += [_star(paper[i], word) for i, word in named]
    said = (
        f"Map of head {head}: {len(rows)} tokens, {len(named)} leaders by name, the decision line."
    )
    return (
        f'<div class="stage map"><svg viewBox="0 0 {_SIDE} {_SIDE}" role="img" '
        f'aria-label="{said}">{"".join(marks)}</svg></div>'
    )


def _mark(seen: VocabularyMap, paper: Floats, i: int) -> str:
    x, y = paper[i].tolist()
    said = f"<title>{escape(clean(seen.words[i]))} {seen.valence[i]:+.3f}</title>"
    if seen.valence[i] + seen.bias > 0:
        return f'<circle class="pro" cx="{x:.1f}" cy="{y:.1f}" r="2.6">{said}</circle>'
    at = f'x="{x - 2.2:.1f}" y="{y - 2.2:.1f}" width="4.4" height="4.4"'
    return f'<rect class="con" {at}>{said}</rect>'


def _star(place: Floats, word: str) -> str:
    x, y = place.tolist()
    left = x > 0.75 * _SIDE
    return (
        f'<polygon class="star lead" transform="translate({x:.1f} {y:.1f})" points="{_POINTS}"/>'
        f'<text class="name" x="{x + (-9 if left else 9):.1f}" y="{y - 5:.1f}" '
        f'text-anchor="{"end" if left else "start"}">{escape(clean(word))}</text>'
    )


_POINTS = "0,-9 2.2,-3 8.6,-2.8 3.6,1.1 5.3,7.3 0,3.8 -5.3,7.3 -3.6,1.1 -8.6,-2.8 -2.2,-3"


def _line(seen: VocabularyMap, scale: float, middle: Floats) -> str:
    """The decision line across the map."""
    normal = np.array(seen.normal)
    size = float(np.hypot(*normal))
    if size == 0:
        return ""
    foot = middle - (float(normal @ middle) + seen.bias) / size**2 * normal
    way = np.array([-normal[1], normal[0]]) / size
    ends = [
        ((foot + t * way - middle) * scale * [1, -1] + _SIDE / 2).tolist()
        for t in (-2 * _SIDE / scale, 2 * _SIDE / scale)
    ]
    (a, b), (c, d) = ends
    return f'<line class="line" x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}"/>'
