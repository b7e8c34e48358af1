"""Gapped pairs, and tokens that count once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardmax.tokens.text import split_words
from hardmax.tokens.vocabulary import learn_vocabulary, read_stream

LINES = st.lists(
    st.lists(st.sampled_from(["not", "very", "good", "bad", "film", "!", "."]), max_size=12).map(
        " ".join
    ),
    min_size=3,
    max_size=8,
)


def learned(texts, **settings):
    return learn_vocabulary(read_stream(texts, punctuation=True), punctuation=True, **settings)


def gapped(text, far, across):
    """The gapped pairs of a text by the definition, word by word."""
    words = split_words(text, punctuation=True)
    for p in range(len(words)):
        for distance in range(2, far + 1):
            between = words[p : p + distance]
            if p + distance < len(words) and (across or not any(w.ends for w in between)):
                yield " ".join([words[p].text, *["_"] * (distance - 1), words[p + distance].text])


@given(LINES, st.integers(2, 4), st.booleans())
def test_gapped_pairs_are_those_of_the_definition(texts, far, across):
    if not any(text.strip() for text in texts):
        return
    vocabulary, _ = learned(texts, far=far, across=across)
    found = [list(gapped(text, far, across)) for text in texts]
    often = {name for row in found for name in row if sum(name in other for other in found) >= 3}
    assert set(vocabulary.names[vocabulary.first_pair :]) == often
    tokens = vocabulary.encode(texts)
    for t, row in enumerate(found):
        a, b = tokens.starts[t : t + 2]
        counts = dict(
            zip(vocabulary.names_of(tokens.ids[a:b]), tokens.counts[a:b].tolist(), strict=True)
        )
        for name in often:
            assert counts.get(name, 0) == row.count(name)


@given(LINES, st.booleans())
def test_spans_of_gapped_pairs_begin_and_end_at_their_words(texts, across):
    if not any(text.strip() for text in texts):
        return
    vocabulary, _ = learned(texts, far=3, across=across)
    for text in texts:
        spans = [s for s in vocabulary.spans(text) if s.token >= vocabulary.first_pair]
        names = [vocabulary.names[s.token] for s in spans]
        kept = set(vocabulary.names)
        assert sorted(names) == sorted(n for n in gapped(text, 3, across) if n in kept)
        for span, name in zip(spans, names, strict=True):
            piece = text[span.start : span.stop].split(" ")
            assert (piece[0], piece[-1]) == (name.split(" ")[0], name.split(" ")[-1])


def test_a_token_that_counts_once_counts_one():
    texts = ["good good bad", "good bad bad bad", "bad"]
    many, _ = learned(texts, ngrams=2)
    once, _ = learned(texts, ngrams=2, once=True)
    assert once.encode(texts).counts.tolist() == [1] * len(many.encode(texts).counts)
    assert many.encode(texts).counts.max() == 3
    assert np.array_equal(once.encode(texts).ids, many.encode(texts).ids)


def test_the_commonest_tokens_are_kept_among_pairs_too():
    texts = ["not a good film"] * 9 + ["never a bad film"] * 3
    vocabulary, _ = learned(texts, far=2, max_size=7)
    assert len(vocabulary) <= 7
    assert vocabulary.names[vocabulary.first_pair :] == ("a _ film",)


@pytest.mark.parametrize("far", [1, 3])
def test_parts_of_a_token_are_its_words(far):
    vocabulary, _ = learned(["not a good film !"] * 3, ngrams=3, far=far)
    parts = vocabulary.parts_of(np.arange(len(vocabulary)))
    for name, row in zip(vocabulary.names, parts.tolist(), strict=True):
        words = [vocabulary.words[k] for k in row if k >= 0]
        assert words == [word for word in name.split(" ") if word != "_"]
