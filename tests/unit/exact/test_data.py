"""Reading sequences and labels: what is accepted, and one line for what is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from hardmax._errors import InputError, ShapeError
from hardmax.exact import PrecisionError, construct
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
        ([["a", 3], ["b"]], [0, 1], "sequence 0 must hold words only"),
        ([X[0], "word"], [0, 1], "sequence 1 must be an \\(n, d\\) array of numbers"),
        ([np.array([[1.0, "2"]], dtype=object)], [0], "words among numbers"),
        ([X[0] + 1j], [0], "complex128 content"),
        ([np.array([[2**53 + 1, 0]])], [0], "the integer 9007199254740993, which float64"),
        ([np.array([[2**70 + 1, 0]], dtype=object)], [0], "the integer 1180591620717411303425"),
        ({"a": X[0]}, [0], "must be a list of arrays or of texts; got dict"),
        ({1.0, 2.0}, [0, 1], "must be a list of arrays or of texts; got set"),
        (X, {0: 1, 1: 2}, "`labels` must be a list"),
        (X, [b"a", b"b"], "must be a number or a string; got b'a'"),
        (X, [float("inf"), 1], "must be a number or a string; got inf"),
        (["a", 5], [0, 1], "sequence 1 must hold words only"),
        ([np.ma.masked_equal(np.eye(2), 0)], [0], "sequence 0 has masked entries"),
    ],
)
def test_mistakes_in_data_are_one_line(sequences: Any, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        construct(sequences, labels)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"positions": "yes"}, "`positions` must be True or False; got 'yes'"),
        ({"progress": 3}, "`progress` must be a function; got 3"),
        ({"method": "magic"}, "`method` must be one of auto, mean, bumps, tree, chain"),
        ({"variant": "other"}, "`variant` must be one of residual, rho_eta"),
        ({"dtype": "float16"}, "`dtype` must be one of float64, float32; got 'float16'"),
        ({"width": 1}, "`width` must be an integer of at least 2; got 1"),
        ({"width": 2.5}, "`width` must be an integer"),
        ({"width": True}, "`width` must be an integer of at least 2; got True"),
        ({"dtype": "floaty"}, "`dtype` must be one of float64, float32; got 'floaty'"),
        ({"dtype": None}, "`dtype` must be one of float64, float32; got 'None'"),
        ({"random_state": -1}, "`random_state` must be an integer from 0"),
        ({"random_state": 0.5}, "`random_state` must be an integer from 0"),
        ({"random_state": 2**63}, "`random_state` must be an integer from 0"),
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


def test_arrays_of_words_are_lists_of_words() -> None:
    lists = [["New York", "x"], ["x"]]
    assert read_corpus(lists).digest() == read_corpus([np.array(x) for x in lists]).digest()


def test_labels_keep_their_type() -> None:
    kinds: list[Any] = [[3, -1], ["no", "yes"], [True, False], [0.5, 1.5], np.array([7, 8])]
    kinds += [[2**63 + 1, -1], ["a\0", "a"], [1, "one"], torch.tensor([4, 2]), [np.int8(3), 2]]
    for labels in kinds:
        net = construct(X, labels)
        assert net.predict(X).tolist() == [getattr(y, "item", lambda y=y: y)() for y in labels]
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
    with pytest.raises(
        InputError,
        match="`vectors` must map words to vectors, or be a trained classifier; got list",
    ):
        construct(["a", "b"], [0, 1], vectors=[[1.0]])
    with pytest.raises(ShapeError, match="finite vectors of one length"):
        construct(["a", "b"], [0, 1], vectors={"a": [1.0, 2.0], "b": [1.0]})
    with pytest.raises(InputError, match=r"at most 1e\+150 .* word 1 holds 1e\+200"):
        construct(["a", "b"], [0, 1], vectors={"a": [1.0], "b": [1e200]})
    with pytest.raises(ShapeError, match="must have d = 3 coordinates; got 1"):
        construct(["a", "b"], [0, 1], vectors={"a": [1.0], "b": [2.0]}, dim=3)
    with pytest.raises(InputError, match="`dim` must be an integer of at least 1; got 0"):
        construct(["a", "b"], [0, 1], dim=0)


def test_words_with_equal_vectors_are_one_token() -> None:
    vectors = {"a": [1.0, 0.0], "b": [1.0, -0.0], "c": [0.0, 1.0]}
    assert len(read_corpus(["a b", "c"], vectors=vectors).table) == 2
    with pytest.raises(InputError, match=r"equal: \(0, 1\)"):
        construct(["a", "b", "c"], [0, 1, 0], vectors=vectors)


def test_float32_names_the_sequences_that_it_merges() -> None:
    near = [np.array([[1.0, 0.0]]), np.array([[1 + 1e-12, 0.0]]), np.array([[3.0, 0.0]])]
    assert construct(near, [0, 1, 0]).predict(near).tolist() == [0, 1, 0]
    with pytest.raises(PrecisionError, match=r"\(0, 1\). Use dtype='float64'"):
        construct(near, [0, 1, 0], dtype="float32")
    with pytest.raises(InputError, match=r"at most 1e\+18 in absolute value in float32"):
        construct([1e30 * z for z in near], [0, 1, 0], dtype="float32")
    same = [near[0], near[0].copy()]
    with pytest.raises(InputError, match="different token frequencies"):
        construct(same, [0, 1], dtype="float32")


def test_data_below_the_rounding_of_the_network_are_noticed() -> None:
    for settings in ({"dtype": "float32"}, {"positions": True}):
        net = construct(X, [0, 1], **settings)  # type: ignore[arg-type]
        changed = [X[0].copy(), X[1]]
        changed[0][1, 1] = np.nextafter(changed[0][1, 1], 9)
        assert net.verify(X, [0, 1])
        assert "sequences differ" in net.check(changed, [0, 1])


def test_ranges_whose_reciprocal_overflows_are_refused_or_left_out() -> None:
    tiny = [np.array([[5e-324, 0.0]]), np.array([[0.0, 5e-324]])]
    with pytest.raises(PrecisionError, match="sequences 0 and 1"):
        construct(tiny, [0, 1], method="tree")
    beside = [np.array([[5e-324, 1.0]]), np.array([[0.0, 2.0]])]
    assert construct(beside, [0, 1]).predict(beside).tolist() == [0, 1]
    small = [1e-300 * z for z in X]
    for method in ("mean", "bumps", "tree", "chain"):
        assert construct(small, [0, 1], method=method).certificate.proved


def test_equal_sequences_are_not_told_to_use_positions_twice() -> None:
    with pytest.raises(InputError, match=r"must differ in some token; equal: \(0, 1\)"):
        construct([X[0], X[0]], [0, 1], positions=True)


def test_networks_of_arrays_take_no_texts() -> None:
    net = construct(X, [0, 1])
    with pytest.raises(InputError, match="knows no words; got texts"):
        net.predict(["a text"])
