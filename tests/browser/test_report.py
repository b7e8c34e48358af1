"""The page of an explanation in a real browser: nothing foreign runs, everyone can read it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hardmax.explain.contributions import explain
from hardmax.explain.explanation import Explanation
from hardmax.explain.glance import glance
from hardmax.explain.overview import overview
from hardmax.explain.report import document, fragment, report
from tests.unit.explain.models import random_bundle, some_text

pytestmark = pytest.mark.browser

Visitor = Callable[..., Any]
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
HOSTILE = (
    "<script>window.ran=1;alert(1)</script> good \"film' </style><style>body{display:none}</style>"
    " ]]> <!-- \x00\x01\x1b[31m \u2028 line \u2029 javascript:window.ran=1 bad </mark></div>"
    " <img src=x onerror='window.ran=1'> <a href='javascript:window.ran=1'>not</a> \ud800 😀"
    " &lt;b&gt; <svg onload=window.ran=1> http://example.invalid/x.png"
    " \u202e warm \ufeff\x7f <!DOCTYPE html>"
)
CONTRAST = """() => {
  const parts = (c) => c.match(/[\\d.]+/g).map(Number);
  const over = (top, low) => {
    const a = top.length > 3 ? top[3] : 1;
    return [0, 1, 2].map((k) => a * top[k] + (1 - a) * low[k]);
  };
  const light = (c) => {
    const one = (x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = c.map((x) => one(x / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const own = (e) => parts(getComputedStyle(e).backgroundColor);
  const ground = (e) => e ? over(own(e), ground(e.parentElement)) : [255, 255, 255];
  const all = "p, mark, td, th, h1, h2, h3, dt, dd, .swatch, summary";
  return [...document.querySelectorAll(all)].map((e) => {
    const back = ground(e), ink = over(parts(getComputedStyle(e).color), back);
    const [a, b] = [light(back), light(ink)].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), e.className, e.textContent.slice(0, 30)];
  }).sort((x, y) => x[0] - y[0])[0];
}"""


def explained(text: str, seed: int = 3, **options: Any) -> Explanation:
    return explain(random_bundle(seed, **options), text)


def long_text(words: int) -> str:
    return some_text(np.random.default_rng(0), words)


def shown(text: str) -> str:
    return "".join(c if c in "\n\t" or c.isprintable() else "\ufffd" for c in text)


@pytest.mark.parametrize("heads", [1, 2])
def test_a_hostile_text_is_shown_and_does_nothing(visit: Visitor, heads: int) -> None:
    found = explained(HOSTILE, heads=heads)
    seen = visit(report(found))
    assert seen.page.evaluate("window.ran") is None
    content = seen.page.locator(".review").evaluate("e => e.textContent")
    assert content == shown(HOSTILE)
    assert seen.page.locator(".review *:not(mark)").count() == 0
    assert seen.page.locator("img, a, iframe, object, link:not([rel=icon])").count() == 0
    assert seen.page.locator("h1").is_visible()


def test_a_hostile_text_does_nothing_in_a_notebook(visit: Visitor) -> None:
    seen = visit(
        document("Notebook", fragment(explained(HOSTILE)).replace("<style>", "<!--x--><style>"))
    )
    assert seen.page.evaluate("window.ran") is None
    assert shown(HOSTILE) in seen.page.locator(".review").evaluate("e => e.textContent")
    seen.wrong.clear()  # the policy of this page refuses the style of the fragment


def test_hostile_classes_are_text_too(visit: Visitor) -> None:
    bundle = random_bundle(5)
    hostile = type(bundle)(bundle.model, bundle.vocabulary, ("a", HOSTILE), bundle.sentences)
    seen = visit(report(explain(hostile, "good bad film")))
    assert seen.page.evaluate("window.ran") is None
    found = overview(hostile, ["good film was great", "a dull end", "not warm, bad"], least_texts=1)
    seen = visit(glance(hostile, found))
    assert seen.page.evaluate("window.ran") is None


def test_the_decision_line_parts_the_words_by_their_valence(visit: Visitor) -> None:
    found = explained(long_text(40), heads=2, ngrams=1)
    seen = visit(report(found))
    v, b = found.bundle.model.v.detach().numpy()[0], found.bias / 2
    for section, head in ((0, None), (1, None)):
        box = seen.page.locator("section.scene").nth(section)
        head = int(box.locator("h2").inner_text().split()[-1])
        x1, y1, x2, y2 = box.locator("line.line").evaluate(
            "e => ['x1', 'y1', 'x2', 'y2'].map(k => Number(e.getAttribute(k)))"
        )
        places = box.locator("circle.dot[data-token]").evaluate_all(
            "all => all.map(e => [Number(e.getAttribute('cx')), Number(e.getAttribute('cy'))])"
        )
        z = found.trace.block(0, head)
        worth = z @ v[2 * head : 2 * head + 2] + b
        side = [(x2 - x1) * (y - y1) - (y2 - y1) * (x - x1) for x, y in places]
        far = np.abs(worth) > 1e-3
        signs = np.sign(side)[far] * np.sign(worth)[far]
        assert len(signs) > 5
        assert len(set(signs.tolist())) == 1


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_there_is_one_picture_per_head(visit: Visitor, size: int) -> None:
    found = explained(long_text(30), heads=6, size=size)
    seen = visit(report(found))
    scenes = seen.page.locator("section.scene")
    assert scenes.count() == 6
    heads = scenes.locator("h2").all_inner_texts()
    assert sorted(
        heads[:4] + scenes.locator("h2").evaluate_all("a => a.map(e => e.textContent)")[4:]
    ) == [f"Head {h}" for h in range(6)]
    assert [scenes.nth(k).is_visible() for k in range(6)] == [True] * 4 + [False] * 2
    seen.page.get_by_text("The other 2 heads").press("Enter")
    assert scenes.nth(5).is_visible()
    seen.page.locator("input[type=range]").nth(5).press("End")
    assert scenes.nth(5).locator(".controls output").inner_text() == str(found.depth)
    if size > 3:
        assert (
            "coordinate 0 and coordinate 1 of 5" in scenes.first.locator(".hint").first.inner_text()
        )


@pytest.mark.parametrize("options", [{}, PHONE, {"color_scheme": "dark"}])
def test_the_page_fits_and_can_be_read(visit: Visitor, options: dict[str, Any]) -> None:
    seen = visit(report(explained(long_text(400), heads=2)), **options)
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ratio, where, text = seen.page.evaluate(CONTRAST)
    assert ratio >= 4.5, (where, text)


def test_a_screen_reader_finds_its_way(visit: Visitor) -> None:
    found = explained("good film. The plot was dull, not great! zzz", heads=1)
    seen = visit(report(found))
    page = seen.page
    assert page.locator("html").get_attribute("lang") == "en"
    levels = page.locator("h1, h2, h3").evaluate_all("all => all.map(e => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    bare = "all => all.filter(e => !e.getAttribute('aria-label')).length"
    assert page.locator("svg[role=img], [role=region], [role=group]").evaluate_all(bare) == 0
    assert page.locator("svg:not([role=img]):not([aria-hidden=true])").count() == 0
    assert page.locator("table:not(:has(th[scope=col]))").count() == 0
    summary = page.get_by_text("All words in order")
    summary.focus()
    page.keyboard.press("Enter")
    rows = page.get_by_role("region", name="All words in order").locator("tbody tr")
    assert rows.count() == len(found.words)
    cells = [rows.nth(k).locator("td").all_inner_texts() for k in range(rows.count())]
    assert [c[0] for c in cells] == [found.text[w.start : w.stop] for w in found.words]
    for word, (_, worth, said) in zip(found.words, cells, strict=True):
        assert worth == (f"{word.contribution:+.4f}" if word.known else "–")
        assert ("not in the vocabulary" in said) == (not word.known)
    assert any("leads" in said for _, _, said in cells)


def test_texts_from_right_to_left_run_so(visit: Visitor) -> None:
    seen = visit(report(explained("הסרט הזה היה good ומצחיק, but bad. فيلم warm جداً")))
    assert seen.page.locator(".review").evaluate("e => getComputedStyle(e).direction") == "rtl"
    assert seen.page.locator("h1").evaluate("e => getComputedStyle(e).direction") == "ltr"


@pytest.mark.parametrize("text", ["", "zzz zzz", "good"])
def test_texts_with_next_to_nothing_have_a_page(visit: Visitor, text: str) -> None:
    seen = visit(report(explained(text)))
    assert seen.text(".answer").startswith("The model says")


def test_the_model_at_a_glance_fits_a_phone(visit: Visitor) -> None:
    bundle = random_bundle(1)
    texts = [long_text(20) for _ in range(3)] + ["good film", "bad film", "a dull plot"] * 3
    seen = visit(glance(bundle, overview(bundle, texts, least_texts=1)), **PHONE)
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert seen.page.locator(".map line.line").count() == 2
    assert seen.page.evaluate(CONTRAST)[0] >= 4.5
