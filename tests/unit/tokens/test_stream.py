"""Texts read in small blocks, with rows in files, are the texts read at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hardmax.io import spool
from hardmax.tokens import batch, stream, vocabulary
from hardmax.tokens.batch import Tokens
from hardmax.tokens.stream import blocks, read_stream
from hardmax.tokens.vocabulary import learn_vocabulary

TEXT = st.lists(st.sampled_from(["a", "b", "c.", "d!", "(e)", "<br />", "f"]), max_size=12)
TEXTS = st.lists(TEXT.map(" ".join), min_size=1, max_size=25)
SMALL = ((spool, "_LIMIT", 8), (stream, "_WORDS", 6), (vocabulary, "_PLACES", 9))


@pytest.fixture
def tiny(monkeypatch):
    """Blocks of a few words, parts of a few n-grams, rows in files."""

    def make():
        for module, name, value in (*SMALL, (batch, "_TEXTS", 3)):
            monkeypatch.setattr(module, name, value)

    return make, monkeypatch.undo


def learned(texts, **options):
    found = read_stream(texts, punctuation=True)
    words, row = learn_vocabulary(found, ngrams=3, punctuation=True, **options)
    tokens = words.tokens_of(row, sentences=not words.across)
    parts = (tokens.ids, tokens.counts, tokens.offsets, tokens.texts)
    return words.words, words.grams.tolist(), [part.tolist() for part in parts]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=TEXTS, across=st.booleans(), least=st.integers(1, 2), stop=st.booleans())
def test_small_blocks_give_the_same_vocabulary_and_tokens(tiny, texts, across, least, stop):
    make, undo = tiny
    texts = [*texts, "a b", "a b a"]
    options = {"across": across, "min_count": least, "stop_words": ["b"] if stop else []}
    whole = learned(texts, **options)
    make()
    try:
        assert learned(iter(texts), **options) == whole
    finally:
        undo()


def test_taking_many_texts_is_taking_few_and_joining(tiny):
    rng = np.random.default_rng(0)
    tokens = Tokens.of([rng.integers(0, 9, rng.integers(0, 6)).tolist() for _ in range(40)])
    rows = rng.permutation(40)[:25]
    whole = tokens.take(rows)
    tiny[0]()
    parts = tokens.take(rows)
    for name in ("ids", "counts", "offsets", "texts"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name))


@given(st.lists(st.integers(0, 30), max_size=30))
def test_blocks_cover_all_texts_once(sizes):
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    before, stream._WORDS = stream._WORDS, 20
    try:
        found = list(blocks(offsets))
    finally:
        stream._WORDS = before
    assert [k for part in found for k in range(part.start, part.stop)] == list(range(len(sizes)))
    for part in found:
        assert part.stop - part.start == 1 or offsets[part.stop] - offsets[part.start] <= 20


def test_the_first_words_are_those_with_a_number():
    found = read_stream(["a x b y c", "x", "", "a b"], words=["a", "b", "c", "d"])
    cut = found.cut(2)
    assert cut.words.tolist() == [0, -1, 1, -1, -1, 0, 1]
    assert cut.offsets.tolist() == [0, 4, 5, 5, 7]
    assert np.array_equal(cut.cut(2).words, cut.words)
