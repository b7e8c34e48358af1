"""`hardmax demo`: reviews held out and explained, limits proved, one page."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hardmax.lab.demo as lab
import hardmax.lab.reproduce as figures
from hardmax.lab.demo import EXAMPLE, LEAST_TEXTS, Reviews, review_classifier
from hardmax.learn.sources import corpus
from tests.unit.cli.conftest import Call


@pytest.fixture(scope="module")
def reviews() -> Reviews:
    """Trained once for this file."""
    return review_classifier()


@pytest.fixture
def trained(reviews: Reviews, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command finds the classifier trained."""
    monkeypatch.setattr(lab, "review_classifier", lambda callbacks=(): reviews)


def test_the_accuracy_is_that_of_reviews_it_has_not_seen(reviews: Reviews) -> None:
    texts, labels = corpus("test")
    right = sum(a == b for a, b in zip(reviews.classifier.predict(texts), labels, strict=True))
    assert reviews.accuracy == right / len(texts)
    assert (reviews.trained, reviews.held_out) == (1000, 250)
    assert not set(texts) & set(corpus("train")[0])
    assert reviews.accuracy > 0.75  # guessing gives a half


def test_the_leaders_shown_lead_in_that_many_reviews(reviews: Reviews) -> None:
    clf, texts = reviews.classifier, corpus("test")[0]
    led = Counter(word for text in texts for word in {x.word for x in clf.explain(text).leaders})
    for sign, (_, leaders) in zip((1, -1), reviews.leaders.items(), strict=True):
        assert len(leaders) == 6
        assert all(x.texts == led[x.word] >= LEAST_TEXTS for x in leaders)
        assert all(sign * x.valence > 0 for x in leaders)
    weakest = min(abs(x.valence) for x in reviews.leaders["positive"])
    best = [word for word, count in led.items() if count >= LEAST_TEXTS]
    values = [_valence(clf, word) for word in best]
    assert sum(value > weakest + 1e-9 for value in values) == 5


def _valence(clf: Any, word: str) -> float:
    """<v, E(word)>, from the weights alone."""
    model, names = clf.model_, clf.vocabulary_.names
    vector = model.E.detach().numpy()[names.index(word)].astype(np.float64)
    return float(vector @ model.v.detach().numpy()[0])


def test_the_explained_review_is_held_out_and_its_sum_is_exact(reviews: Reviews) -> None:
    texts, labels = corpus("test")
    found = reviews.explanation
    assert found.text.startswith(EXAMPLE)
    assert labels[texts.index(found.text)] == reviews.label
    parts = [c.contribution for c in found.contributions]
    assert found.logit == pytest.approx(found.bias + sum(parts), abs=1e-9 * sum(map(abs, parts)))
    assert found.logit == pytest.approx(reviews.classifier.decision_function([found.text])[0])
    assert reviews.counterfactual is not None
    assert reviews.counterfactual.prediction != found.prediction


@pytest.mark.usefixtures("trained")
def test_demo_prints_what_was_learned_and_proved(call: Call, reviews: Reviews) -> None:
    result = call("demo")
    assert (result.exit_code, result.stderr) == (0, "")
    shown = result.stdout
    assert f"{reviews.accuracy:.1%} of 250 reviews held out" in shown
    assert reviews.explanation.text in shown.replace("\n", " ")
    assert re.search(r"^leaders for negative +(\w+, ){5}\w+$", shown, flags=re.M)
    assert re.search(r"emerging +proved at 1 +\(-1, -1\), \(-1/18, 5/36\), \(1, 1/3\)", shown)
    assert re.search(r"edges .* \(-1, 0\), \(1, 0\)$", shown, flags=re.M)
    assert shown.count("holds  ") == 8
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.usefixtures("trained")
def test_demo_writes_one_page_that_asks_nothing_of_a_network(
    call: Call, tmp_path: Path, reviews: Reviews
) -> None:
    assert call("demo").exit_code == 0
    page = (tmp_path / "hardmax-demo.html").read_text()
    assert page.count('<section class="scene"') == 5
    ids = re.findall(r'id="([^"]+)"', page.split("<svg", 1)[0])
    assert len(ids) == len(set(ids))
    for number in range(5):
        assert page.count(f'id="scene-{number}"') == 1
    words = re.sub(r"<[^>]+>", "", page)
    assert reviews.explanation.text in words
    assert f"{reviews.accuracy:.1%} of 250 reviews held out" in words
    assert 'src="data:image/svg+xml;base64,' in page
    assert 'src="http' not in page
    assert 'href="http' not in page
    assert [p.name for p in tmp_path.iterdir()] == ["hardmax-demo.html"]


@pytest.mark.usefixtures("trained")
def test_demo_replaces_its_own_page_and_no_other(
    call: Call, refusal: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "hardmax-demo.html").write_text("old")
    (tmp_path / "mine.html").write_text("mine")
    assert call("demo").exit_code == 0
    assert (tmp_path / "hardmax-demo.html").read_text().startswith("<!DOCTYPE html>")
    assert "mine.html exists. Give another name" in refusal("demo", "--out", "mine.html")
    assert (tmp_path / "mine.html").read_text() == "mine"
    assert call("demo", "--out", "mine.html", "--force").exit_code == 0
    assert (tmp_path / "mine.html").read_text().startswith("<!DOCTYPE html>")


def test_demo_refuses_a_place_before_it_trains(refusal: Callable[..., str]) -> None:
    assert "expected an ending of .html" in refusal("demo", "--out", "page.png")
    assert "the folder no does not exist" in refusal("demo", "--out", "no/page.html")


@pytest.mark.usefixtures("trained")
def test_a_fact_that_fails_ends_with_1(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    good = figures.figure2()
    wrong = dataclasses.replace(good, facts=(figures.Fact("two is one", False),))
    monkeypatch.setattr(figures, "figure2", lambda **settings: wrong)
    result = call("demo")
    assert result.exit_code == 1
    assert "FAILS  two is one" in result.stdout
    assert result.stderr == "error: a fact of the figure does not hold\n"
