"""A page for the browser: one file, no request to anywhere, scenes that move.

The texts of a scene (title, names, notes) are shown as text whatever they hold:
they are escaped in the markup, and in the embedded data no `<` is left.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from hardmax._errors import InputError
from hardmax.plot.payload import payload
from hardmax.plot.record import Scene, SceneLeader
from hardmax.plot.shapes import clean

__all__ = ["document", "page", "script", "section", "style"]

_MOST_ROWS = 200
_MOST_NUMBERS = 3
_LONG = 400


def page(
    scene: Scene | Sequence[Scene], *, title: str = "", axes: tuple[int, int] | None = None
) -> str:
    """One self-contained HTML page: slider over the layers, leaders, certificate.

    Parameters
    ----------
    scene : Scene or sequence of Scene
        What to show, one below the other.
    title : str
        The heading; by default the title of a single scene.
    axes : (int, int), optional
        The two coordinates to draw when d > 3; by default the first two, and the page
        says which.

    Returns
    -------
    str
        HTML that works from a file, without a network.

    Raises
    ------
    InputError
        If there is no scene, or `axes` are not coordinates of it.

    Notes
    -----
    The page holds positions rounded to 7 digits of the largest one; the exact
    numbers are those of `Scene.to_dict`.
    """
    scenes = [scene] if isinstance(scene, Scene) else list(scene)
    if not scenes:
        raise InputError("`page` needs at least one scene; got none.")
    alone = len(scenes) == 1
    heading = title or (scenes[0].title if alone else "") or "Hardmax attention, layer by layer"
    body = [
        section(one, number, axes=axes, heading=not alone or bool(title))
        for number, one in enumerate(scenes)
    ]
    return document(heading, "\n".join(body))


def document(title: str, body: str) -> str:
    """A whole page around trusted markup; only the page's own style and script may run."""
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src '{_digest(style())}'; script-src '{_digest(script())}'"
    )
    shown = escape(clean(title, _LONG))
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
            f"<title>{shown}</title>",
            f"<style>{style()}</style>",
            "</head>",
            "<body>",
            f"<h1>{_text(title)}</h1>",
            body,
            f"<script>{script()}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def section(
    scene: Scene, number: int = 0, *, axes: tuple[int, int] | None = None, heading: bool = True
) -> str:
    """One scene of a page as markup; `number` tells the scenes of a page apart."""
    data = payload(scene, axes)
    head = f"<h2>{_text(scene.title)}</h2>" if heading and scene.title else ""
    return _SECTION.format(
        number=number,
        head=head,
        status=_status(scene),
        kind=data["kind"],
        summary=escape(_summary(scene)),
        steps=len(scene.layers) - 1,
        first=scene.layers[0],
        hint=_hint(data),
        legend=_legend(scene),
        leaders=_leaders(scene, data["colours"]),
        rests=_rests(scene),
        notes=_notes(scene),
        data=_embedded(data),
    )


@cache
def style() -> str:
    """The style sheet of a page."""
    return _asset("page.css")


@cache
def script() -> str:
    """The script of a page."""
    return _asset("picture.js") + _asset("reader.js")


_SECTION = """<section class="scene" id="scene-{number}">
{head}
{status}
<div class="columns">
<div>
<div class="stage {kind}" tabindex="0" role="group"
 aria-label="Picture of the tokens; arrow keys go from token to token"
 aria-describedby="description-{number}">
<svg viewBox="0 0 640 640" role="img" aria-label="{summary}"></svg>
</div>
<div class="controls">
<button type="button" class="play">Play</button>
<label for="layer-{number}">Layer</label>
<input type="range" id="layer-{number}" min="0" max="{steps}" step="1" value="0" autocomplete="off">
<output for="layer-{number}">{first}</output>
</div>
<p class="description" id="description-{number}" aria-live="polite">{summary}</p>
<noscript><p>The picture needs JavaScript; the table does not.</p></noscript>
<p class="token" role="status">Point at a token, or use the arrow keys on the picture.</p>
{hint}
{legend}
</div>
<div>
{leaders}
{rests}
{notes}
</div>
</div>
<script type="application/json" class="data">{data}</script>
</section>"""


def _asset(name: str) -> str:
    return files("hardmax.plot").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(source: str) -> str:
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    return f"sha256-{digest}"


def _embedded(data: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    raw = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return raw.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _text(text: Any) -> str:
    """A text of the user's, apart from the direction of the text around it."""
    return f"<bdi>{escape(clean(str(text), _LONG))}</bdi>"


def _status(scene: Scene) -> str:
    status = f"<strong>{_text(scene.status)}</strong>" if scene.status else ""
    settled = scene.notes.get("settled_at")
    said = [] if settled is None else [f"No choice changes from layer {settled} on."]
    reason = scene.notes.get("certificate")
    if reason:
        said.append(f"Certificate: {_text(reason)}")
    return f'<p class="status">{status} {" ".join(said)}</p>' if status or said else ""


def _summary(scene: Scene) -> str:
    there = int(np.isfinite(scene.zs[0]).all(axis=1).sum())
    born = len(scene.leaders_at(scene.layers[0]))
    return f"Layer {scene.layers[0]}: {there} tokens, {born} leaders."


def _hint(data: dict[str, Any]) -> str:
    said = []
    if data["hidden"]:
        said.append(
            f"Shown: {' and '.join(data['labels'])} of {data['dim']}; the others are not drawn."
        )
    if data["kind"] == "space":
        said.append("Drag to turn the picture, or hold Shift with the arrow keys.")
    return f'<p class="hint">{" ".join(said)}</p>' if said else ""


def _icon(mark: str) -> str:
    return f'<svg viewBox="-12 -12 24 24" aria-hidden="true">{mark}</svg>'


def _legend(scene: Scene) -> str:
    star = "0 -11 2.7 -3.7 10.5 -3.4 4.4 1.4 6.5 8.9 0 4.6 -6.5 8.9 -4.4 1.4 -10.5 -3.4 -2.7 -3.7"
    entries = [
        (f'<polygon class="star" points="{star}" fill="#0072b2"/>', "leader"),
        ('<circle class="dot" r="7" fill="#0072b2"/>', "token, in the colour of what it follows"),
        ('<circle class="dot" r="7" fill="#8a8f98"/>', "follows several, or none"),
    ]
    if len(scene.rests()):
        entries.append(('<path class="rest" d="M0-9L9 0L0 9L-9 0Z"/>', "limit without a leader"))
    if scene.vertices is not None and len(scene.vertices):
        entries.append(
            ('<rect class="polytope" x="-10" y="-8" width="20" height="16"/>', "limit polytope")
        )
    items = "".join(f"<li>{_icon(mark)}{label}</li>" for mark, label in entries)
    return f'<ul class="legend">{items}</ul>'


def _leaders(scene: Scene, colours: dict[str, str]) -> str:
    if not scene.leaders:
        return "<h3>Leaders</h3><p>No token leads in these layers.</p>"
    heads = _HEADS if scene.names is not None else (_HEADS[0], *_HEADS[2:])
    columns = "".join(f'<th scope="col">{head}</th>' for head in heads)
    rows = "".join(_leader(scene, leader, colours) for leader in scene.leaders[:_MOST_ROWS])
    more = len(scene.leaders) - _MOST_ROWS
    after = f" {more} more leaders are not listed." if more > 0 else ""
    return (
        '<h3>Leaders</h3><div class="wide" tabindex="0" role="region" aria-label="Leaders">'
        f"<table><thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table></div>"
        f'<p class="hint">{_HEADS_SAID}{after}</p>'
    )


_HEADS = ("leader", "token", "born", "equal", "followers", "position")
_HEADS_SAID = (
    "Born: the layer at which it first chose itself alone. Equal: tokens in the same place then."
)


def _leader(scene: Scene, leader: SceneLeader, colours: dict[str, str]) -> str:
    index, last = leader.index, scene.follows[-1]
    dot = _icon(f'<circle class="dot" r="7" fill="{colours[str(index)]}"/>')
    followers = int((last == index).sum() - (last[index] == index))
    number = "" if scene.names is None else f"<td>{index}</td>"
    return (
        f'<tr data-leader="{index}" data-born="{leader.born}">'
        f"<td>{dot}{_text(leader.name)}</td>{number}<td>{leader.born}</td>"
        f'<td>{len(leader.members) or 1}</td><td class="followers">{followers}</td>'
        f'<td class="position">{_position(scene.zs[-1][index])}</td></tr>'
    )


def _rests(scene: Scene) -> str:
    rests = scene.rests()
    if not len(rests):
        return ""
    items = "".join(f"<li>{_position(point)}</li>" for point in rests[:_MOST_ROWS])
    more = len(rests) - _MOST_ROWS
    after = f"<p>{more} more are not listed.</p>" if more > 0 else ""
    return f"<h3>Limit points without a leader</h3><ul>{items}</ul>{after}"


def _position(point: Any) -> str:
    """Up to three coordinates; of more, the first two."""
    few = point if len(point) <= _MOST_NUMBERS else point[: _MOST_NUMBERS - 1]
    shown = [f"{x:.3g}".replace("-", "−") for x in few.tolist()]
    rest = ["…"] if len(point) > len(few) else []
    return "(" + ", ".join(shown + rest) + ")"


def _notes(scene: Scene) -> str:
    shown = {key: value for key, value in scene.notes.items() if value is not None}
    if not shown:
        return ""
    items = "".join(f"<dt>{_text(key)}</dt><dd>{_text(_said(v))}</dd>" for key, v in shown.items())
    return f"<details><summary>What the numbers rest on</summary><dl>{items}</dl></details>"


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
