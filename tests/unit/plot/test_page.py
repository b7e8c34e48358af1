"""Pages as text: nothing from outside, nothing unescaped, the numbers of the scene."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from hardmax._errors import InputError
from hardmax.plot.page import document, page
from hardmax.plot.scene import Scene, SceneLeader
from tests.unit.plot.scenes import by_hand, cloud, emerging, square

HOSTILE = "</script><script>window.broken=1</script>\"'<img src=x onerror=alert(1)>\x00\ud800&amp;"


class Reader(HTMLParser):
    """Elements with their attributes, and the texts in them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "input", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def embedded(text: str) -> list[Any]:
    """The data of each scene of a page."""
    found = re.findall(r'<script type="application/json" class="data">(.*?)</script>', text)
    return [json.loads(data) for data in found]


def test_a_page_asks_for_nothing_from_outside() -> None:
    read = Reader(page([emerging(2), cloud(9, 3, 2)]))
    assert read.open == []
    links = [
        value
        for _, attributes in read.elements
        for key, value in attributes.items()
        if key in ("src", "href", "srcset", "action", "data", "poster", "xlink:href")
    ]
    assert links == ["data:,"]
    style = "".join(text for tag, text in read.texts if tag == "style")
    assert "url(" not in style
    assert "@import" not in style


def test_only_the_style_and_the_script_of_the_page_may_run() -> None:
    text = page(emerging(1))
    (policy,) = [
        meta["content"]
        for meta in Reader(text).of("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for tag in ("style", "script"):
        (source,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"
    assert " style=" not in text
    assert re.search(r"\son\w+=", text) is None


def test_hostile_texts_stay_texts() -> None:
    leader = SceneLeader(0, 0, HOSTILE, (0,))
    scene = Scene(
        np.zeros((1, 2, 2)),
        (0,),
        np.zeros((1, 2), int),
        (leader,),
        names=(HOSTILE, HOSTILE),
        title=HOSTILE,
        status=HOSTILE,
        notes={HOSTILE: HOSTILE, "certificate": HOSTILE},
    )
    text = page([scene, scene], title=HOSTILE)
    assert "<script>window" not in text
    assert "<img" not in text
    read = Reader(text)
    assert read.open == []
    assert len(read.of("script")) == 3
    text.encode()
    shown = "".join(data for tag, data in read.texts if tag == "bdi")
    assert "<img src=x onerror=alert(1)>\ufffd\ufffd&amp;" in shown
    raw = re.findall(r'class="data">(.*)</script>', text)
    assert len(raw) == 2
    assert not any(sign in data for data in raw for sign in "<>&")
    assert "</script><script>window.broken=1" in embedded(text)[0]["names"][0]


def test_the_embedded_numbers_are_those_of_the_scene() -> None:
    scene = square(6, names=list("abcdefg"))
    (data,) = embedded(page(scene))
    assert np.array(data["zs"]) == pytest.approx(scene.zs, abs=1e-6)
    assert data["follows"] == scene.follows.tolist()
    assert data["layers"] == list(scene.layers)
    assert [(x["index"], x["born"]) for x in data["leaders"]] == [
        (x.index, x.born) for x in scene.leaders
    ]
    assert sorted(data["rests"]) == [[-1, 0], [1, 0]]
    assert data["names"] == list("abcdefg")
    assert len(data["vertices"]) == 4


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_positions_keep_seven_digits_at_any_scale(scale: float) -> None:
    z = np.random.default_rng(0).normal(size=(2, 5, 2)) * scale
    (data,) = embedded(page(by_hand(z)))
    assert np.array(data["zs"]) == pytest.approx(z, abs=1e-6 * np.abs(z).max())


def test_what_has_no_position_is_embedded_as_null() -> None:
    z = np.ones((1, 4, 2))
    z[0, 1], z[0, 2], z[0, 3] = np.nan, np.inf, 1e200
    (data,) = embedded(page(by_hand(z)))
    assert data["zs"][0] == [[1, 1], [None, None], [None, None], [None, None]]


@pytest.mark.parametrize(("d", "kind"), [(1, "line"), (2, "plane"), (3, "space"), (5, "plane")])
def test_each_dimension_has_its_picture(d: int, kind: str) -> None:
    (data,) = embedded(page(cloud(12, d, 2)))
    assert data["kind"] == kind
    assert len(data["zs"][0][0]) == min(d, 3) if d != 5 else 2


def test_of_many_coordinates_the_page_says_which_are_shown() -> None:
    scene = cloud(9, 5, 1)
    text = page(scene, axes=(4, 2))
    assert "Shown: coordinate 4 and coordinate 2 of 5; the others are not drawn." in text
    (data,) = embedded(text)
    assert np.array(data["zs"]) == pytest.approx(scene.zs[..., [4, 2]], abs=1e-6)
    assert "Shown: coordinate 0 and coordinate 1 of 5" in page(scene)
    assert "are not drawn" not in page(cloud(9, 3, 1))
    with pytest.raises(InputError, match="two different coordinates"):
        page(scene, axes=(0, 5))


def test_the_table_lists_leaders_with_birth_and_followers() -> None:
    names = [f"n{i}" for i in range(8)]
    text = page(emerging(names=names))
    rows = re.findall(r'<tr data-leader="(\d+)" data-born="(\d+)">(.*?)</tr>', text)
    cells = [re.sub(r"<svg.*?</svg>|</?(?:td|bdi)[^>]*>", "|", body) for _, _, body in rows]
    read = [[cell for cell in line.split("|") if cell] for line in cells]
    assert read == [
        ["n0", "0", "0", "1", "3", "(1, 0.333)"],
        ["n1", "1", "1", "1", "0", "(−0.0556, 0.139)"],
        ["n2", "2", "0", "1", "2", "(−1, −1)"],
    ]


def test_a_page_says_how_it_ended_and_what_it_rests_on() -> None:
    scene = emerging(5)
    said = " ".join(data for _, data in Reader(page(scene)).texts)
    assert "proved" in said
    assert "No choice changes from layer 1 on." in said
    assert str(scene.notes["certificate"]) in said
    for key in ("tie_tol", "merge_tol", "gamma", "precision"):
        assert key in said
    assert "float64" in said


def test_scenes_of_one_page_have_different_ids() -> None:
    ids = [
        attributes["id"]
        for _, attributes in Reader(page([emerging(1), square(1)])).elements
        if "id" in attributes
    ]
    assert len(ids) == len(set(ids)) == 6


def test_thousands_of_leaders_are_not_all_listed() -> None:
    n = 250
    scene = by_hand(np.zeros((1, n, 2)), [range(n)], tuple(range(n)))
    text = page(scene)
    assert len(re.findall("<tr data-leader", text)) == 200
    assert "50 more leaders are not listed." in text


def test_a_scene_without_leaders_says_so() -> None:
    assert "No token leads in these layers." in page(by_hand(np.zeros((1, 2, 2))))


def test_the_heading_is_the_title() -> None:
    assert "<h1><bdi>One &lt;b&gt;</bdi></h1>" in page(emerging(0, title="One <b>"))
    two = page([emerging(0, title="One"), square(0, title="Two")], title="Both")
    assert re.findall(r"<h\d><bdi>(.*?)</bdi></h\d>", two) == ["Both", "One", "Two"]
    assert "<title>a&amp;b</title>" in document("a&b", "<p>x</p>")
    with pytest.raises(InputError, match="at least one scene"):
        page([])
