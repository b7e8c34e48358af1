"""Texts as distinct tokens with multiplicities."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardmax._errors import InputError, ShapeError
from hardmax.tokens.batch import Tokens, join_tokens, pad

lists = st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=6)


def rows(tokens):
    """Every text as a list of its token numbers, repeated as often as they occur."""
    starts = tokens.starts
    return [
        np.repeat(tokens.ids[a:b], tokens.counts[a:b]).tolist()
        for a, b in itertools.pairwise(starts)
    ]


@given(lists)
def test_merging_keeps_every_occurrence(texts):
    assert rows(Tokens.of(texts)) == [sorted(t) for t in texts]


@given(lists, st.randoms(use_true_random=False))
def test_taking_texts_keeps_their_order(texts, random):
    picks = [random.randrange(len(texts)) for _ in range(4)] if texts else []
    taken = Tokens.of(texts).take(np.array(picks, dtype=int))
    assert rows(taken) == [sorted(texts[k]) for k in picks]


@given(lists, lists)
def test_joining_is_concatenation(first, second):
    assert rows(join_tokens([Tokens.of(first), Tokens.of(second)])) == rows(
        Tokens.of(first + second)
    )


def test_counts_must_match_ids():
    with pytest.raises(ShapeError, match="`counts` must match"):
        Tokens(np.zeros(2, np.int32), np.ones(1, np.int32), np.array([0, 2]), np.array([0, 1]))


def test_offsets_must_cover_the_ids():
    with pytest.raises(InputError, match="`offsets` must rise from 0 to 2"):
        Tokens(np.zeros(2, np.int32), np.ones(2, np.int32), np.array([0, 1]), np.array([0, 1]))


def test_padding_cuts_fills_and_marks():
    ids, mask = pad([[5, 6, 7], [8]], 2)
    assert ids.tolist() == [[5, 6], [8, 0]]
    assert mask.tolist() == [[True, True], [True, False]]
