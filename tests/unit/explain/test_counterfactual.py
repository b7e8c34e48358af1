"""Removals recomputed two ways; counterfactuals against exhaustive search."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from hardmax._errors import InputError
from hardmax.explain.bundle import Bundle, winners
from hardmax.explain.contributions import explain
from hardmax.explain.counterfactual import find_counterfactual
from hardmax.explain.removal import Removal
from tests.unit.explain.models import random_bundle, some_text


def without(text: str, gone: set[str]) -> str:
    """The text without some words, by splitting at blanks alone."""
    return " ".join(w for w in text.split() if w not in gone)


def plain_text(rng: np.random.Generator, n: int) -> str:
    """Words without marks, so that blanks are all there is between them."""
    words = some_text(rng, n, 0.05).replace("<br />", "")
    return " ".join("".join(c for c in w if c.isalpha()) for w in words.split())


def smallest_size(bundle: Bundle, text: str, allowed: set[str] | None = None) -> int | None:
    """The least number of distinct words whose removal flips, by trying all from scratch."""
    before = winners(bundle.logits([text]))[0]
    words = sorted(set(text.split()) & (allowed if allowed is not None else set(text.split())))
    for size in range(1, len(words) + 1):
        left = [without(text, set(gone)) for gone in combinations(words, size)]
        if (winners(bundle.logits(left)) != before).any():
            return size
    return None


@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("sentences", [False, True])
@pytest.mark.parametrize("ngrams", [1, 3])
def test_logits_without_words_are_those_of_the_remaining_text(
    ngrams: int, sentences: bool, integers: bool
) -> None:
    rng = np.random.default_rng(7)
    for seed in range(6):
        bundle = random_bundle(
            seed, ngrams=ngrams, sentences=sentences, integers=integers,
            outputs=1 + 2 * (seed % 2), scores=seed % 3 == 2,
        )  # fmt: skip
        for by in ("words", "occurrences"):
            removal = Removal(bundle, some_text(rng, 14), by)
            sets = [tuple(u for u in range(len(removal)) if rng.random() < 0.3) for _ in range(20)]
            sets += [(), tuple(range(len(removal)))]
            scratch = bundle.logits([removal.without(units) for units in sets])
            assert removal.logits(sets) == pytest.approx(scratch, abs=1e-9)


@pytest.mark.parametrize(("ngrams", "outputs", "heads"), [(1, 1, 1), (3, 1, 2), (2, 3, 2)])
def test_the_smallest_set_is_that_of_exhaustive_search(
    ngrams: int, outputs: int, heads: int
) -> None:
    rng = np.random.default_rng(11)
    sizes = []
    for seed in range(60):
        bundle = random_bundle(seed, ngrams=ngrams, outputs=outputs, heads=heads)
        text = plain_text(rng, int(rng.integers(2, 15)))
        want = smallest_size(bundle, text)
        found = explain(bundle, text).counterfactual()
        sizes.append(want)
        if want is None:
            assert found is None
            continue
        assert found is not None
        assert (found.proved_minimal, len(found.removed), found.at_least) == (True, want, want)
        left = bundle.logits([without(text, set(found.removed))])
        assert winners(left)[0] != winners(bundle.logits([text]))[0]
        assert found.logit == pytest.approx(left[0, explain(bundle, text).output], abs=1e-12)
        assert bundle.classes[winners(left)[0]] == found.prediction
    assert {1, 2, None} <= set(sizes), "the cases differ"


def test_among_leaders_only_words_of_leaders_go() -> None:
    rng = np.random.default_rng(5)
    proved = 0
    for seed in range(15):
        bundle = random_bundle(seed, ngrams=2, heads=1)
        text = plain_text(rng, 10)
        x = explain(bundle, text)
        led = {word for leader in x.leaders for word in leader.word.split()}
        want, found = smallest_size(bundle, text, led), x.counterfactual("leaders")
        assert (want is None) == (found is None)
        if found is not None:
            assert set(found.removed) <= led
            assert (len(found.removed), found.proved_minimal) == (want, True)
            proved += 1
    assert proved >= 5


def test_a_long_text_flips_and_says_what_is_proved() -> None:
    rng = np.random.default_rng(2)
    for seed in range(4):
        bundle = random_bundle(seed, heads=1)
        text = some_text(rng, 300)
        for work in (0, 4_000_000):
            found = explain(bundle, text).counterfactual(by="occurrences", work=work)
            if found is None:
                continue
            before = winners(bundle.logits([text]))[0]
            assert winners(bundle.logits([found.text]))[0] != before
            assert 1 <= found.at_least <= len(found.removed)
            assert found.proved_minimal == (found.at_least == len(found.removed))


def test_the_answer_is_the_same_every_time() -> None:
    bundle = random_bundle(1, integers=True)
    text = some_text(np.random.default_rng(1), 40)
    first, second = (explain(bundle, text).counterfactual() for _ in range(2))
    assert first == second


def test_an_empty_text_has_no_counterfactual() -> None:
    x = explain(random_bundle(0), " ... ")
    assert x.counterfactual() is None
    assert x.counterfactual("leaders") is None


def test_the_remaining_text_reads_as_the_other_words() -> None:
    bundle = random_bundle(0, sentences=True)
    removal = Removal(bundle, "good\nfilm\nbad. <b>great</b> plot")
    unit = [removal.name(u) for u in range(len(removal))].index("film")
    left = removal.without([unit])
    assert list(bundle.read(left)[0]) == ["good", "bad", "great", "plot"]
    assert bundle.read(left)[1].ends.tolist()[0] is False, "no blank line appears"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"among": "letters"}, "`among` must be one of words, leaders"),
        ({"by": "letters"}, "`by` must be one of words, occurrences"),
        ({"work": -1}, "`work` must be >= 0; got -1"),
    ],
)
def test_unknown_options_are_refused(options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_counterfactual(explain(random_bundle(0), "good"), **options)
