"""The whole model and the faithfulness figures, against slow counts."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from hardmax._errors import InputError
from hardmax.explain.contributions import explain
from hardmax.explain.faithfulness import faithfulness
from hardmax.explain.overview import overview, vocabulary_map
from hardmax.explain.ranking import RANKINGS, averaged_scores
from tests.unit.explain.models import random_bundle, some_text


@pytest.mark.parametrize(("sentences", "integers"), [(False, False), (True, False), (False, True)])
def test_leaders_are_counted_as_the_explanations_say(sentences: bool, integers: bool) -> None:
    bundle = random_bundle(3, sentences=sentences, integers=integers, scores=sentences)
    rng = np.random.default_rng(0)
    texts = [some_text(rng, int(rng.integers(0, 20))) for _ in range(40)]
    found = overview(bundle, iter(texts), rows=10_000, least_texts=1)
    xs = [explain(bundle, text) for text in texts]
    want: Counter[tuple[str, str]] = Counter()
    for x in xs:
        want.update({(w, x.prediction) for leader in x.leaders for w in leader.members})
    got = {
        (row.word, c): n
        for row in found.leaders
        for c, n in zip(found.classes, row.by_class, strict=True)
        if n
    }
    assert got == dict(want)
    filled = [x for x in xs if x.contributions]
    assert found.mean_leaders == pytest.approx(
        sum(len(x.leaders) for x in filled) / len(filled) / 2
    )
    assert sum(found.predicted) == found.texts == 40
    for role in found.roles[:20]:
        for c, mean in zip(found.classes, role.contribution, strict=True):
            parts = [
                part.contribution
                for x in xs
                if x.prediction == c
                for part in x.contributions
                if part.word == role.word
            ]
            assert mean == pytest.approx(np.mean(parts), abs=1e-12)


def test_unsure_texts_and_weak_leaders_can_be_left_out() -> None:
    bundle = random_bundle(3)
    rng = np.random.default_rng(0)
    texts = [some_text(rng, 12) for _ in range(60)]
    sure = [t for t in texts if max(explain(bundle, t).probabilities) >= 0.7]
    found = overview(bundle, texts, least_probability=0.7, least_valence=1.0, rows=10_000)
    assert 0 < found.texts == len(sure) < 60
    share = float(bundle.model.b.detach()[0]) / 2
    want: Counter[str] = Counter()
    for text in sure:
        xs = explain(bundle, text).leaders
        want.update({w for x in xs if abs(x.valence + share) > 1 for w in x.members})
    assert {row.word: row.texts for row in found.leaders} == dict(want)
    json.dumps(found.to_dict(), allow_nan=False)


def test_only_texts_predicted_right_count_where_labels_are_given() -> None:
    bundle = random_bundle(3)
    rng = np.random.default_rng(0)
    texts = [some_text(rng, 12) for _ in range(30)]
    guesses = [explain(bundle, text).prediction for text in texts]
    labels = [g if k % 3 else "no" for k, g in enumerate(guesses)]
    right = [t for t, g, y in zip(texts, guesses, labels, strict=True) if g == y]
    assert 0 < len(right) < 30
    found = overview(bundle, iter(texts), labels=iter(labels))
    assert found.to_dict() == overview(bundle, right).to_dict()
    with pytest.raises(InputError, match="`labels`: 'perhaps' is none of the classes"):
        overview(bundle, texts, labels=["perhaps"] * 30)
    with pytest.raises(InputError, match="`labels` must hold one label per text"):
        overview(bundle, texts, labels=labels[:-1])


def test_the_map_shows_valences_and_the_line() -> None:
    bundle = random_bundle(2, heads=1)
    seen = vocabulary_map(bundle)
    assert seen.points @ np.array(seen.normal) == pytest.approx(seen.valence)
    for c in explain(bundle, "good film").contributions:
        assert seen.valence[seen.words.index(c.word)] == pytest.approx(c.valence)
    with pytest.raises(InputError, match="a map needs heads of two coordinates; these have 3"):
        vocabulary_map(random_bundle(2, size=3))
    with pytest.raises(InputError, match="`head` must be 0 to 0; got 1"):
        vocabulary_map(bundle, head=1)


def test_faithfulness_worked_by_hand_on_a_text_of_two_words() -> None:
    bundle = random_bundle(1, ngrams=1)
    text = "good bad"
    full = explain(bundle, text)
    c = full.classes.index(full.prediction)
    only = {w: bundle.probabilities([w])[0, c] for w in text.split()}
    (row,) = faithfulness(bundle, [text], {"removal": RANKINGS["removal"]})
    effects = dict(full.removal_effects())
    sign = 1 if full.prediction == full.label else -1
    first = max(effects, key=lambda w: sign * effects[w])
    other = next(w for w in text.split() if w != first)
    whole, none = bundle.probabilities([text, ""])[:, c]
    assert row.comprehensiveness == pytest.approx(whole - only[other])
    assert row.sufficiency == pytest.approx(whole - only[first])
    assert row.deletion == pytest.approx((whole + only[other] + none) / 3)
    assert row.insertion == pytest.approx((none + only[first] + whole) / 3)
    assert (row.agreement, row.stability, row.identical) == (1.0, 1.0, True)


def test_exact_rankings_beat_chance_and_repeat_themselves() -> None:
    bundle = random_bundle(6, ngrams=2)
    rng = np.random.default_rng(4)
    texts = [some_text(rng, 20) for _ in range(25)]
    rows = {row.method: row for row in faithfulness(bundle, ["", *texts])}
    for name in RANKINGS:
        assert rows[name].comprehensiveness > rows["random"].comprehensiveness
        assert rows[name].identical
        assert rows[name].texts == 25
    assert rows["removal"].agreement == 1
    assert not rows["random"].identical


def test_averaged_contributions_are_means_over_halves_of_the_text() -> None:
    bundle = random_bundle(8, ngrams=1)
    x = explain(bundle, "good bad film dull warm")
    there = np.random.default_rng(0).random((4, 5)) < 0.5
    want, words = np.zeros(5), [x.removal.name(u) for u in range(5)]
    for row in there:
        part = explain(bundle, " ".join(w for w, k in zip(words, row, strict=True) if k))
        for c in part.contributions:
            want[words.index(c.word)] += c.contribution
    want /= np.maximum(there.sum(axis=0), 1)
    assert averaged_scores(x, samples=4) == pytest.approx(want)


def test_texts_without_words_have_no_figures() -> None:
    with pytest.raises(InputError, match="expected a text with at least two known words"):
        faithfulness(random_bundle(0), ["", "good"])
