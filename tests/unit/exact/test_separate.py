"""What cannot be told apart is named, all of it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hardmax.exact import ConflictError, construct
from hardmax.exact.data import read_corpus
from hardmax.exact.separate import conflicts


@pytest.mark.parametrize("what", ["measures", "sets"])
def test_all_pairs_that_cannot_be_told_apart_are_named(what: str) -> None:
    rng = np.random.default_rng(8)
    sequences = [rng.integers(0, 2, size=(int(rng.integers(1, 5)), 1)) * [1, 2] for _ in range(40)]
    labels = rng.integers(0, 3, 40)

    def seen(z: np.ndarray) -> object:
        share = Fraction(int(z[:, 0].sum()), len(z))
        return share if what == "measures" else set(map(tuple, z.tolist()))

    slow = [
        (i, j)
        for j in range(40)
        for i in range(j)
        if labels[i] != labels[j] and seen(sequences[i]) == seen(sequences[j])
    ]
    with pytest.raises(ConflictError, match=r"and \d+ more"):
        construct(sequences, labels)
    corpus = read_corpus(sequences)
    assert conflicts(corpus, labels, what) == slow


def test_of_very_many_pairs_every_disagreeing_sequence_is_named_once() -> None:
    labels = np.random.default_rng(1).integers(0, 3, 200)
    corpus = read_corpus([[[1.0, 2.0]]] * 200)
    pairs = conflicts(corpus, labels)  # of 13,000 pairs
    wanted = [j for j in range(200) if (labels[:j] != labels[j]).any()]
    assert [j for _, j in pairs] == wanted
    assert all(i < j and labels[i] != labels[j] for i, j in pairs)
