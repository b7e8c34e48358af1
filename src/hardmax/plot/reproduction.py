"""The page of `hardmax reproduce`: every item with its pictures, comparisons and differences."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from hardmax.plot.page import document

__all__ = ["draw_page", "said", "tally"]

_KINDS = {"png": "image/png", "gif": "image/gif"}
_DIGITS = 5
_LONG = 240


def draw_page(records: Sequence[Mapping[str, Any]], pictures: Mapping[str, bytes]) -> str:
    """One self-contained HTML page.

    Parameters
    ----------
    records : sequence of mappings
        The data of the items (`Outcome.to_dict`).
    pictures : mapping
        File name -> content, for the names in the records.

    Returns
    -------
    str
    """
    body = [_INTRO, _overview(records)]
    body += [_item(record, pictures) for record in records]
    body.append(_all_differences(records))
    return document("The papers, reproduced", "\n".join(body))


_INTRO = (
    "<p>What the papers say beside what came out. Rows marked <b>exact</b> are facts without "
    "chance or training. Numbers, seeds and settings are in the JSON file of each item.</p>"
)


def _overview(records: Sequence[Mapping[str, Any]]) -> str:
    rows = "".join(
        f'<tr><td><a href="#{_safe(r["item"])}">{_safe(r["title"])}</a></td><td>{_safe(r["form"])}'
        f"</td><td>{_safe(r['seed'])}</td><td><b>{_safe(r['verdict'])}</b></td>"
        f"<td>{_safe(tally(r))}</td><td>{_safe(r['seconds'])} s</td></tr>"
        for r in records
    )
    heads = _heads("item", "form", "seed", "verdict", "rows", "time")
    return _table("Items", heads, rows)


def _table(label: str, heads: str, rows: str) -> str:
    """A table of words, scrolled to the side where the screen is narrow."""
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{_safe(label)}">'
        f'<table class="words"><thead>{heads}</thead><tbody>{rows}</tbody></table></div>'
    )


def tally(record: Mapping[str, Any]) -> str:
    """How many rows have which verdict: `agrees 7, differs 1`."""
    counts = record["counts"]
    shown = [f"{name} {count}" for name, count in counts.items() if count]
    return ", ".join(shown)


def _item(record: Mapping[str, Any], pictures: Mapping[str, bytes]) -> str:
    drawn = "".join(_picture(name, pictures[name]) for name in record["pictures"])
    rows = "".join(_row(c) for c in record["comparisons"])
    heads = _heads("quantity", "the paper", "here", "verdict", "rule")
    return (
        f'<section id="{_safe(record["item"])}"><h2>{_safe(record["title"])}</h2>'
        f'<p class="status"><strong>{_safe(record["verdict"])}</strong> {_safe(tally(record))}</p>'
        f'<p class="hint">Source: {_safe(record["source"])}. Data: {_safe(record["item"])}.json. '
        f"Form: {_safe(record['form'])}, seed {_safe(record['seed'])}.</p>{drawn}"
        f"{_table('Comparisons', heads, rows)}"
        f"{_differences(record['differences'])}</section>"
    )


def _heads(*names: str) -> str:
    return "<tr>" + "".join(f'<th scope="col">{name}</th>' for name in names) + "</tr>"


def _row(c: Mapping[str, Any]) -> str:
    exact = " <b>exact</b>" if c["exact"] else ""
    cells = (said(c["paper"]), said(c["ours"]), c["verdict"], c["rule"])
    shown = "".join(f"<td>{_safe(cell)}</td>" for cell in cells)
    return f"<tr><td>{_safe(c['quantity'])}{exact}</td>{shown}</tr>"


def _picture(name: str, data: bytes) -> str:
    kind = _KINDS[name.rpartition(".")[2]]
    source = base64.b64encode(data).decode()
    return f'<p><img alt="{_safe(name)}" src="data:{kind};base64,{source}"></p>'


def _differences(sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    items = "".join(f"<li>{_safe(sentence)}</li>" for sentence in sentences)
    return f"<h3>Done otherwise than in the papers' code, and why</h3><ul>{items}</ul>"


def _all_differences(records: Sequence[Mapping[str, Any]]) -> str:
    """Every difference once, with the items that it concerns."""
    found: dict[str, list[str]] = {}
    for record in records:
        for sentence in record["differences"]:
            found.setdefault(sentence, []).append(record["item"])
    rows = "".join(
        f"<tr><td>{_safe(sentence)}</td><td>{_safe(', '.join(items))}</td></tr>"
        for sentence, items in found.items()
    )
    table = _table("All differences", _heads("difference and reason", "items"), rows)
    return f"<h2>All differences from the papers' code</h2>{table}"


def said(value: Any) -> str:
    """A value of a comparison as a short text."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    if isinstance(value, Mapping):
        text = ", ".join(f"{key}: {said(v)}" for key, v in value.items())
    elif isinstance(value, Sequence) and not isinstance(value, str):
        text = ", ".join(map(said, value))
    else:
        text = str(value)
    return text if len(text) <= _LONG else text[: _LONG - 3] + "..."


def _safe(value: Any) -> str:
    return escape(str(value))
