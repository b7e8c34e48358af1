"""Words, their places, and the vocabulary."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardmax._errors import InputError
from hardmax.tokens.text import STOP_WORDS, is_word, split_words, word_strings
from hardmax.tokens.vocabulary import Vocabulary, learn_vocabulary, read_stream

TEXTS = [
    "The film is good. Not a bad film!",
    "a good good good film",
    "not not a bad<br />idea, film",
    "",
]


def learned(texts=TEXTS, **settings):
    stream = read_stream(texts, punctuation=settings.get("punctuation", False))
    return learn_vocabulary(stream, **settings)


def test_tags_separate_words_and_are_none():
    assert [w.text for w in split_words("bad<br /><br />idea <b>now</b>")] == ["bad", "idea", "now"]


def test_a_less_than_sign_is_no_tag():
    assert [w.text for w in split_words("a < b and c > d")] == ["a", "b", "and", "c", "d"]


def test_accents_composed_or_not_are_one_word():
    one, two = split_words("Caf\u00e9"), split_words("cafe\u0301")
    assert one[0].text == two[0].text == "caf\u00e9"
    assert two[0].stop == 5


def test_ideographs_are_words_of_their_own():
    assert [w.text for w in split_words("映画は good")] == ["映", "画", "は", "good"]


def test_straight_and_curly_apostrophes_agree():
    assert split_words("don’t")[0].text == split_words("Don't")[0].text == "don't"


def test_punctuation_counts_only_on_request():
    assert [w.text for w in split_words("Go!")] == ["go"]
    assert [w.text for w in split_words("Go!", punctuation=True)] == ["go", "!"]


def test_sentences_end_at_marks_tags_and_blank_lines():
    words = split_words("one two. three<br />four\n\nfive, six")
    assert [w.text for w in words if w.ends] == ["two", "three", "four"]


def test_stop_words_keep_the_negations():
    assert not {"no", "not", "nor", "never"} & STOP_WORDS


@given(st.text(max_size=60))
def test_places_give_back_the_words_and_both_tokenisers_agree(text):
    words = split_words(text)
    assert all(0 <= w.start < w.stop <= len(text) for w in words)
    assert all(a.stop <= b.start for a, b in itertools.pairwise(words))
    assert [w.text for w in words] == [p for p in word_strings(text) if is_word(p)]


@given(st.text(alphabet="<a/>br \n.", max_size=300))
def test_odd_markup_never_hangs(text):
    assert len(split_words(text)) <= len(text)


def by_hand(text, vocabulary):
    """Counts of the tokens of a text by a plain double loop over its words."""
    words = [w.text for w in split_words(text)]
    number = {name: k for k, name in enumerate(vocabulary.names)}
    grams = [
        " ".join(words[i : i + n])
        for n in range(1, vocabulary.ngrams + 1)
        for i in range(len(words) - n + 1)
    ]
    out = np.zeros(len(vocabulary), dtype=int)
    for gram in grams:
        if gram in number:
            out[number[gram]] += 1
    return out


@pytest.mark.parametrize("min_count", [1, 2])
@pytest.mark.parametrize("ngrams", [1, 2, 3])
def test_encoding_equals_a_plain_loop(ngrams, min_count):
    vocabulary, stream = learned(ngrams=ngrams, min_count=min_count)
    tokens = vocabulary.tokens_of(stream)
    for row, text in enumerate(TEXTS):
        one = tokens.take(np.array([row]))
        found = np.zeros(len(vocabulary), dtype=int)
        found[one.ids] = one.counts
        assert np.array_equal(found, by_hand(text, vocabulary))


@pytest.mark.parametrize(
    "settings",
    [
        {"ngrams": 3},
        {"ngrams": 2, "across": False},
        {"ngrams": 2, "stop_words": STOP_WORDS},
        {"ngrams": 3, "punctuation": True},
        {"ngrams": 2, "min_count": 2},
    ],
)
def test_texts_encode_as_when_they_were_learned_and_spans_count_the_same(settings):
    vocabulary, stream = learned(**settings)
    first, second = vocabulary.tokens_of(stream), vocabulary.encode(TEXTS)
    for name in ("ids", "counts", "offsets", "texts"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
    for row, text in enumerate(TEXTS):
        one = first.take(np.array([row]))
        seen = np.bincount([s.token for s in vocabulary.spans(text)], minlength=len(vocabulary))
        assert np.array_equal(seen[one.ids], one.counts)
        assert seen.sum() == one.counts.sum()


def test_minimum_count_counts_texts_and_not_occurrences():
    vocabulary, _ = learned(ngrams=1, min_count=2)
    assert set(vocabulary.words) == {"film", "good", "a", "bad", "not"}


def test_an_n_gram_is_kept_only_with_its_parts():
    vocabulary, _ = learned(ngrams=3, min_count=2)
    names = set(vocabulary.names)
    for name in names:
        parts = name.split(" ")
        assert all(" ".join(parts[:k]) in names for k in range(1, len(parts)))
        assert all(" ".join(parts[k:]) in names for k in range(1, len(parts)))


def test_the_largest_size_is_kept_to():
    full, _ = learned(ngrams=3)
    for size in (1, 3, 8, 12):
        vocabulary, _ = learned(ngrams=3, max_size=size + 8)
        assert len(vocabulary) <= size + 8 < len(full) or len(vocabulary) == len(full)


def test_n_grams_of_sentences_do_not_cross_their_end():
    vocabulary, _ = learned(ngrams=2, across=False)
    assert "good not" not in vocabulary.names
    assert "good not" in learned(ngrams=2)[0].names


def test_sentences_become_sequences_of_one_text():
    vocabulary, _ = learned(ngrams=1)
    tokens = vocabulary.encode(TEXTS, sentences=True)
    assert np.diff(tokens.texts).tolist() == [2, 1, 2, 0]


def test_dropped_stop_words_leave_the_ends_of_sentences():
    settings = {"stop_words": ("the", "of"), "across": False, "ngrams": 2}
    texts = ["Good film. Bad plot of the! Warm end", "The. Good"]
    vocabulary, stream = learned(texts, **settings)
    table = vocabulary.words
    for read in (stream, vocabulary.stream(texts)):
        assert [table[k] for k in read.words] == [
            "good",
            "film",
            "bad",
            "plot",
            "warm",
            "end",
            "good",
        ]
        assert read.ends.tolist() == [False, True, False, True, False, False, False]
    assert sorted(n for n in vocabulary.names if " " in n) == ["bad plot", "good film", "warm end"]
    assert np.diff(vocabulary.encode(texts, sentences=True).texts).tolist() == [3, 1]


def test_unknown_words_are_left_out_and_break_n_grams():
    vocabulary, _ = learned(ngrams=2)
    names = [vocabulary.names[k] for k in vocabulary.encode(["good zebra film"]).ids]
    assert sorted(names) == ["film", "good"]


def test_what_is_no_text_is_refused_with_its_row():
    with pytest.raises(InputError, match="text 1 is int"):
        read_stream(["a", 3])


def test_texts_without_words_are_refused():
    with pytest.raises(InputError, match="no word occurs"):
        learned(["...", ""])


def test_an_empty_vocabulary_of_pairs_encodes():
    vocabulary = Vocabulary(("a", "b"), np.zeros((0, 2), np.int32), ngrams=3)
    assert vocabulary.encode(["b a b"]).counts.tolist() == [1, 2]
