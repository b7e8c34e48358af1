"""Reading sequences and labels: what is accepted, and one line for what is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from hardmax._errors import InputError, ShapeError
from hardmax.exact import construct
from hardmax.exact.data import read_corpus, read_labels
from hardmax.exact.text import generic_vectors, words_of

X = [np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[4.0, 5.0]])]


def test_equal_tokens_are_stored_once_with_multiplicities() -> None:
    corpus = read_corpus([[[1.0, 0], [2, 0], [1, 0]], [[2.0, 0]]])
    assert corpus.table.tolist() == [[1, 0], [2, 0]]
    assert corpus.counts.tolist() == [2, 1, 1]
    assert corpus.sequence(0).tolist() == [[1, 0], [2, 0], [1, 0]]


def test_minus_zero_is_zero() -> None:
    assert len(read_corpus([[[0.0, -0.0], [-0.0, 0.0]]]).table) == 1


def test_lists_integers_and_tensors_are_the_same_data() -> None:
    lists = [[[0, 1], [2, 3]], [[4, 5]]]
    tensors = [torch.tensor(x, dtype=torch.float32) for x in lists]
    digests = {read_corpus(data).digest() for data in (X, lists, tensors)}
    assert len(digests) == 1


def test_any_changed_token_changes_the_digest() -> None:
    base = read_corpus(X).digest()
    for j, i, c in ((0, 0, 0), (0, 1, 1), (1, 0, 1)):
        changed = [x.copy() for x in X]
        changed[j][i, c] = np.nextafter(changed[j][i, c], 9)
        assert read_corpus(changed).digest() != base


@pytest.mark.parametrize(
    ("sequences", "labels", "message"),
    [
        ([], [], "at least one sequence; got none"),
        ([np.zeros((0, 2))], [0], "sequence 0 must have at least one token"),
        ([np.zeros((1, 2)), np.zeros((1, 3))], [0, 1], "d = 2 coordinates as in sequence 0"),
        ([[[1.0, 2.0], [3.0]]], [0], "ragged"),
        ([np.array([[np.nan, 0.0]])], [0], "sequence 0 holds NaN or infinity"),
        ([np.array([[1.0, 0.0]]), np.array([[np.inf, 0.0]])], [0, 1], "sequence 1 holds NaN"),
        ([np.array([[1e200, 0.0]])], [0], "at most 1e\\+150"),
        (X, [0], "one label per sequence \\(2\\); got 1"),
        (X, [0, None], "must be a number or a string; got None"),
        (X, [0, float("nan")], "must be a number or a string; got nan"),
        ([np.zeros((1, 2, 3))], [0], "must be \\(n, d\\)"),
        ("a text", [0], "must be a list of arrays or of texts; got str"),
        (["...", "word"], [0, 1], "sequence 0 must have at least one word"),
    ],
)
def test_mistakes_in_data_are_one_line(sequences: Any, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        construct(sequences, labels)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "magic"}, "`method` must be one of auto, mean, bumps, tree, chain"),
        ({"variant": "other"}, "`variant` must be one of residual, rho_eta"),
        ({"dtype": "float16"}, "`dtype` must be one of float64, float32; got 'float16'"),
        ({"width": 1}, "`width` must be an integer of at least 2; got 1"),
        ({"width": 2.5}, "`width` must be an integer"),
        ({"vectors": {"a": [1.0]}}, "`vectors` and `dim` are for texts"),
    ],
)
def test_mistakes_in_settings_are_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        construct(X, [0, 1], **settings)


def test_one_dimension_has_no_tree() -> None:
    line = [np.array([[0.0]]), np.array([[1.0]])]
    with pytest.raises(InputError, match="in one dimension only methods mean and bumps"):
        construct(line, [0, 1], method="tree")
    assert construct([[0.0, 2.0], [1.0]], [0, 1]).predict([[1.0]]).tolist() == [1]


def test_another_dimension_is_refused_when_predicting() -> None:
    net = construct(X, [0, 1])
    with pytest.raises(ShapeError, match="must have d = 2 coordinates; got 3"):
        net.predict([np.zeros((1, 3))])


def test_labels_keep_their_type() -> None:
    for labels in ([3, -1], ["no", "yes"], [True, False], [0.5, 1.5], np.array([7, 8])):
        net = construct(X, labels)
        assert net.predict(X).tolist() == list(labels)
    assert read_labels(["b", "a", "b"], 3).classes == ("a", "b")


def test_generic_vectors_depend_on_word_and_seed_alone() -> None:
    a = generic_vectors(["good", "bad"], 8)
    assert (generic_vectors(["bad"], 8)[0] == a[1]).all()
    assert (generic_vectors(["bad"], 8, seed=1)[0] != a[1]).all()
    assert np.abs(a).max() <= 1


def test_words_are_lower_case_without_markup() -> None:
    assert words_of("It's GOOD.<br />Very good!") == ["it's", "good", "very", "good"]


def test_vectors_must_cover_all_words() -> None:
    with pytest.raises(InputError, match="first 'film'"):
        construct(["good film", "bad"], [1, 0], vectors={"good": [1.0, 0], "bad": [0, 1.0]})
