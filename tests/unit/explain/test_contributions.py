"""Explanations: the exact sum, its places in the text, leaders and paths."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax._errors import InputError
from hardmax.estimators.classifier import HardmaxClassifier
from hardmax.explain.bundle import bundle_of
from hardmax.explain.contributions import explain
from hardmax.explain.trace import trace
from hardmax.learn.data import corpus
from hardmax.select import select
from tests.unit.explain.models import random_bundle, some_text


def gap(x: Any) -> float:
    """The error of the sum, in units of product's bound."""
    parts = [c.contribution for c in x.contributions]
    scale = max(1.0, abs(x.bias) + sum(map(abs, parts)))
    return abs(x.logit - x.bias - sum(parts)) / (1e-9 * scale)


@pytest.fixture(scope="module")
def trained() -> HardmaxClassifier:
    texts, labels = corpus("train")
    return HardmaxClassifier(dim=8, heads=4, members=2, epochs=4, random_state=0).fit(
        texts[:400], labels[:400]
    )


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10_000),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([0, 1, 3]),
    st.sampled_from([1, 3]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 1, 2, 9, 40]),
    st.sampled_from([1, 3]),
    st.booleans(),
)
def test_bias_and_contributions_add_up_to_the_logit(
    seed: int, heads: int, size: int, depth: int, ngrams: int, sentences: bool, integers: bool,
    words: int, outputs: int, scores: bool,
) -> None:  # fmt: skip
    bundle = random_bundle(
        seed, heads=heads, size=size, depth=depth, ngrams=ngrams, sentences=sentences,
        integers=integers, outputs=outputs, scores=scores,
        stop_words=("the",) if seed % 3 == 0 else (),
    )  # fmt: skip
    text = some_text(np.random.default_rng(seed), words)
    for label in (None, *bundle.classes):
        x = explain(bundle, text, label)
        assert gap(x) <= 1
        assert x.logit == bundle.logits([text])[0, x.output]
        influence = np.array([np.atleast_1d(c.influence) for c in x.contributions])
        if len(influence):
            assert influence.min() >= 0
            assert influence.sum(axis=0) == pytest.approx(1)
        else:
            assert x.logit == x.bias
        for c in x.contributions:
            assert c.contribution == pytest.approx(np.dot(c.influence, c.valence), abs=1e-12)
            assert c.count == len(c.spans)
            for start, stop in c.spans:
                said = "".join(ch if ch.isalpha() else " " for ch in text[start:stop])
                kept = [
                    w for w in said.split() if w != "br" and w not in x.bundle.vocabulary.stop_words
                ]
                assert " ".join(kept) == c.word
        whole = sum(w.contribution for w in x.words)
        assert whole == pytest.approx(sum(c.contribution for c in x.contributions), abs=1e-9)


def test_the_sum_is_exact_on_reviews_and_equals_the_decision_function(
    trained: HardmaxClassifier,
) -> None:
    texts = corpus("test")[0][:150]
    logits = trained.decision_function(texts)
    for text, logit in zip(texts, logits, strict=True):
        x = explain(trained, text)
        assert x.logit == logit
        assert gap(x) <= 1
        assert x.prediction == trained.predict([text])[0]
        assert x.probabilities == pytest.approx(
            trained.predict_proba([text])[0].tolist(), rel=1e-12
        )
        assert x.probability == x.probabilities[1]


def test_the_bound_holds_when_vectors_of_many_millions_cancel() -> None:
    bundle = random_bundle(5, heads=1, size=3)
    with torch.no_grad():
        bundle.model.E[:, 1:] += 1e15
        bundle.model.v[0, 2] = -bundle.model.v[0, 1]
    x = explain(bundle, some_text(np.random.default_rng(1), 30))
    assert gap(x) <= 1


def test_the_words_and_their_numbers_are_those_of_the_vocabulary() -> None:
    for seed in range(12):
        bundle = random_bundle(seed, stop_words=("the", "of"), sentences=seed % 2 == 0)
        text = some_text(np.random.default_rng(seed), 30)
        names, mine = bundle.read(text)
        words = bundle.places(text)
        theirs = bundle.vocabulary.stream([text])
        assert mine.words.tolist() == theirs.words.tolist()
        assert mine.ends.tolist() == theirs.ends.tolist()
        assert [text[w.start : w.stop].lower() for w in words] == [w.text for w in words]
        assert names == tuple(w.text for w in words)


def test_the_trace_is_the_models_own_layers_and_weights() -> None:
    for seed, integers in ((0, False), (1, True), (2, True), (3, True)):
        bundle = random_bundle(seed, integers=integers, sentences=seed == 2, scores=seed == 3)
        tokens = bundle.encode([some_text(np.random.default_rng(seed), 25)])
        found = trace(bundle.model, tokens)
        for mine, theirs in zip(found.zs, bundle.model.layers(tokens), strict=True):
            assert mine == pytest.approx(theirs.detach().numpy(), abs=1e-12)
        pooled = (tokens.counts / tokens.counts.sum()) @ found.zs[-1]
        size = pooled.size // found.heads
        for h in range(found.heads):
            block = found.zs[0][:, h * size : (h + 1) * size]
            assert found.weights[:, h] @ block == pytest.approx(pooled[h * size : (h + 1) * size])


@pytest.mark.parametrize("scores", [False, True])
def test_margins_are_scores_over_the_best_not_chosen(scores: bool) -> None:
    bundle = random_bundle(3, heads=1, scores=scores)
    found = trace(bundle.model, bundle.encode([some_text(np.random.default_rng(3), 15)]))
    A = np.eye(2) if found.A is None else found.A[0]
    for k in range(2):
        table = found.block(k, 0) @ A.T @ found.block(k, 0).T
        for i, margin in enumerate(found.margins(k, 0)):
            outside = np.delete(table[i], found.chosen[k][0].row(i))
            assert margin == pytest.approx(table[i].max() - outside.max(), rel=1e-9)


def test_paths_say_whom_each_word_chose() -> None:
    bundle = random_bundle(4)
    x = explain(bundle, some_text(np.random.default_rng(4), 12))
    ids = x.trace.tokens.ids
    names = [bundle.vocabulary.names[i] for i in ids]
    for path in x.paths:
        for step in path.steps:
            z = x.trace.block(step.layer, path.head)
            chosen = select(z, None, x.trace.cuts, tie_tol=1e-12)
            row = chosen.row(names.index(path.word))
            assert step.follows == tuple(names[j] for j in row)
    assert len(x.paths) == x.heads * len(ids)


def test_a_leader_worked_by_hand() -> None:
    bundle = random_bundle(0, heads=1, ngrams=1, depth=2, alpha=1.0)
    number = {word: k for k, word in enumerate(bundle.vocabulary.words)}
    with torch.no_grad():
        bundle.model.E.zero_()
        bundle.model.v.copy_(torch.tensor([[1.0, 0.0]]))
        bundle.model.b.zero_()
        bundle.model.E[number["great"]] = torch.tensor([4.0, 0.0])
        bundle.model.E[number["film"]] = torch.tensor([1.0, 0.0])
        bundle.model.E[number["bad"]] = torch.tensor([-1.0, 0.0])
    x = explain(bundle, "Great film, bad film!")
    # film: 1 -> 2.5 -> 3.25 with weight 3/4 of great; bad follows itself; great stays
    assert x.logit == pytest.approx((4 + 2 * 3.25 - 1) / 4)
    assert [(c.word, c.influence) for c in x.contributions] == [
        ("great", pytest.approx(1 / 4 + 2 / 4 * 3 / 4)),
        ("bad", pytest.approx(1 / 4)),
        ("film", pytest.approx(2 / 4 * 1 / 4)),
    ]
    assert [(leader.word, leader.born, leader.followers) for leader in x.leaders] == [
        ("great", 0, 2),
        ("bad", 0, 0),
    ]


@pytest.mark.parametrize("scores", [False, True])
@pytest.mark.parametrize("integers", [False, True])
def test_leaders_are_those_of_the_layers(integers: bool, scores: bool) -> None:
    for seed in range(8):
        bundle = random_bundle(
            seed, integers=integers, scores=scores, depth=3, sentences=seed % 2 == 0
        )
        x = explain(bundle, some_text(np.random.default_rng(seed), 25))
        ids, cuts = x.trace.tokens.ids, x.trace.cuts
        names = [bundle.vocabulary.names[i] for i in ids]
        want = {
            (b.head, names[b.index], b.born, tuple(names[j] for j in b.members), followers(x, b))
            for b in x.trace.leaders
        }
        found = {(y.head, y.word, y.born, y.members, y.followers) for y in x.leaders}
        assert found == want
        assert {y.sentence for y in x.leaders} <= set(range(len(cuts) - 1))


def followers(x: Any, leader: Any) -> int:
    """Occurrences that chose a member of the leader alone in the last layer."""
    goal = x.trace.follows(x.depth - 1, leader.head)
    counts = x.trace.tokens.counts
    return int(sum(c for i, c in enumerate(counts) if goal[i] in leader.members and goal[i] != i))


def test_words_with_one_vector_lead_together() -> None:
    bundle = random_bundle(0, heads=1, ngrams=1)
    number = {word: k for k, word in enumerate(bundle.vocabulary.words)}
    with torch.no_grad():
        for word, place in (("great", 3.0), ("good", 3.0), ("film", 1.0)):
            bundle.model.E[number[word]] = torch.tensor([place, 0.0])
    (leader,) = explain(bundle, "great good film").leaders
    assert set(leader.members) == {"great", "good"}
    assert explain(bundle, "great good film").stability_radius == 0


def test_no_choice_changes_while_vectors_move_by_less_than_the_radius() -> None:
    rng = np.random.default_rng(0)
    tight = []
    for seed in range(15):
        bundle = random_bundle(seed, ngrams=1, sentences=seed % 3 == 0, scores=seed % 4 == 0)
        text = some_text(rng, 6)
        x = explain(bundle, text)
        radius = x.stability_radius
        if not math.isfinite(radius):
            continue
        assert radius > 0
        before = [[c.indices.tolist() for c in row] for row in x.trace.chosen[:-1]]
        E = bundle.model.E.detach().clone()
        for scale in (0.999, 30.0):
            for _ in range(20):
                move = rng.standard_normal(E.shape)
                move *= scale * radius / np.linalg.norm(move, axis=1, keepdims=True)
                with torch.no_grad():
                    bundle.model.E.copy_((E.double() + torch.from_numpy(move)).float())
                    after = trace(bundle.model, bundle.encode([text])).chosen[:-1]
                    bundle.model.E.copy_(E)
                same = [[c.indices.tolist() for c in row] for row in after] == before
                assert same or scale > 1
                tight.append(same)
    assert not all(tight), "the radius says something: thirty times it changes a choice"


def test_a_radius_worked_by_hand() -> None:
    bundle = random_bundle(0, heads=1, ngrams=1, depth=1)
    number = {word: k for k, word in enumerate(bundle.vocabulary.words)}
    with torch.no_grad():
        bundle.model.E[number["good"]] = torch.tensor([1.0, 0.0])
        bundle.model.E[number["bad"]] = torch.tensor([-1.0, 0.0])
    # each chooses itself by 2; 2 - r (2 + 2) - 2 r^2 = 0
    assert explain(bundle, "good bad").stability_radius == pytest.approx(math.sqrt(2) - 1)
    assert explain(bundle, "good").stability_radius == math.inf
    assert explain(bundle, "").stability_radius == math.inf


def test_everything_is_plain_json(trained: HardmaxClassifier) -> None:
    x = explain(trained, "A <b>warm</b> film, and \x00 so on")
    data = json.loads(json.dumps(x.to_dict(), allow_nan=False))
    assert data["logit"] == x.logit
    assert [c["word"] for c in data["contributions"]] == [c.word for c in x.contributions]
    assert len(data["contributions"][0]["influence"]) == x.heads == 4 * 2, "heads of both members"
    assert len(data["paths"]) == len(x.paths)
    empty = json.loads(json.dumps(explain(trained, "").to_dict(), allow_nan=False))
    assert (empty["contributions"], empty["stability_radius"]) == ([], "inf")


@pytest.mark.parametrize(
    ("text", "label", "message"),
    [
        (["a", "b"], None, "expected one text, got list"),
        (None, None, "expected one text, got NoneType"),
        ("good", "maybe", "must be one of the classes 'no', 'yes'; got 'maybe'"),
    ],
)
def test_what_cannot_be_explained_is_refused(text: Any, label: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        explain(random_bundle(0), text, label)


def test_an_unfitted_classifier_is_refused() -> None:
    with pytest.raises(InputError, match=r"expected a fitted classifier, got HardmaxClassifier"):
        bundle_of(HardmaxClassifier())
