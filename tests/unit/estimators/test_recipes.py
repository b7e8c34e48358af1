"""Matrices, sentences, temperatures, devices, streams: trained, saved, explained, exported."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from hardmax._errors import InputError
from hardmax.estimators.classifier import HardmaxClassifier, load
from hardmax.learn.data import read_texts
from hardmax.learn.export import onnx_inputs, onnx_model
from hardmax.learn.presets import PRESETS
from tests.unit.estimators.test_classifier import LABELS, TEXTS, small

MATRIX = np.array([[1.0, 0.5], [-0.5, 2.0]])
RECIPES = {
    "learned scores": {"A": "learned", "learn_alpha": True},
    "fixed scores": {"A": MATRIX},
    "scores per head": {"A": np.stack([MATRIX, np.eye(2)])},
    "scores in sentences": {"A": "learned", "scope": "sentence"},
    "softmax": {"temperature": 0.1, "scope": "sentence"},
    "softmax with learned scores": {"temperature": 0.5, "A": "learned"},
    "few words": {"max_words": 3},
    "plain steps": {"schedule": "constant", "clip": 1.0, "dense": True},
}
MORE = [*TEXTS[:4], "A film. Not bad! Good, warm and good.", "", "zebra"]


@pytest.fixture(scope="module", params=RECIPES)
def trained(request):
    return small(members=2, **RECIPES[request.param]).fit(TEXTS, LABELS)


def test_it_learns_its_texts(trained):
    assert trained.score(TEXTS, LABELS) == 1.0


def test_the_saved_model_predicts_the_same_bits(trained, tmp_path):
    copy = load(trained.save(tmp_path / "m"))
    assert np.array_equal(copy.decision_function(MORE), trained.decision_function(MORE))
    assert copy.settings_ == trained.settings_
    again = clone(copy).fit(TEXTS, LABELS)
    assert np.array_equal(again.decision_function(MORE), trained.decision_function(MORE))


def test_the_explanation_sums_to_the_logit_of_the_prediction(trained):
    for text in MORE:
        told = trained.explain(text)
        parts = [c.contribution for c in told.contributions]
        bound = 1e-9 * max(1.0, abs(told.bias) + sum(map(abs, parts)))
        assert abs(told.bias + sum(parts) - told.logit) <= bound
        assert abs(told.logit - trained.decision_function([text])[0]) <= bound
        assert all(leader.born >= 0 for leader in told.leaders)


def test_a_text_without_the_removed_words_gets_the_logit_that_was_said(trained):
    found = trained.explain(MORE[4]).counterfactual()
    if found is not None:
        flipped = trained.explain(MORE[4]).logit * found.logit
        assert flipped <= 0


def test_onnx_gives_the_same_logits(trained):
    import onnxruntime

    split = trained.settings_.scope == "sentence"
    tokens = trained.vocabulary_.encode(MORE, sentences=split)
    session = onnxruntime.InferenceSession(onnx_model(trained.model_).SerializeToString())
    (logits,) = session.run(None, onnx_inputs(tokens))
    assert np.allclose(logits, trained.model_.logits(tokens), rtol=0, atol=1e-12)


def test_a_learned_matrix_moves_and_a_fixed_one_stays():
    learned = small(A="learned").fit(TEXTS, LABELS).model_.scores()
    fixed = small(A=MATRIX).fit(TEXTS, LABELS).model_.scores()
    assert np.abs(learned - np.eye(2)).max() > 1e-3
    assert np.array_equal(fixed, np.stack([MATRIX, MATRIX]))


def test_onnx_with_a_matrix_also_where_scores_tie():
    import onnxruntime

    clf = small(A=np.array([[1.0, -1.0], [0.0, 2.0]]), spread=1.0, epochs=1).fit(TEXTS, LABELS)
    clf.model_.E.data[:] = clf.model_.E.data.round()
    tokens = clf.vocabulary_.encode(TEXTS)
    session = onnxruntime.InferenceSession(onnx_model(clf.model_).SerializeToString())
    (logits,) = session.run(None, onnx_inputs(tokens))
    assert np.allclose(logits, clf.model_.logits(tokens), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "A", ["clever", [[1.0, 0.0]], np.ones((3, 2, 2)), [[np.nan, 0.0], [0.0, 1.0]], [["a"]], 1.0]
)
def test_other_matrices_are_refused(A):
    with pytest.raises(InputError, match="`A` must be None, 'learned', a finite"):
        small(A=A).fit(TEXTS, LABELS)


def test_the_recipe_of_the_paper_is_a_preset():
    clf = HardmaxClassifier.from_preset("paper", epochs=60, learning_rate=0.02)
    clf.fit(TEXTS, LABELS)
    s = clf.settings_
    assert (s.dim, s.heads, s.depth, s.max_words, s.batch_size) == (2, 1, 8, 128, 64)
    assert (s.temperature, s.clip, s.dense, s.averaging) == (0.001, 5.0, True, 0.0)
    assert clf.model_.alpha.item() > 0
    assert clf.score(TEXTS, LABELS) == 1.0


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_trains_from_its_name(name):
    clf = HardmaxClassifier.from_preset(name, epochs=1).fit(TEXTS, LABELS)
    assert clf.n_iter_ == clf.settings_.members


def test_words_beyond_the_first_ones_change_nothing():
    clf = small(max_words=3, punctuation=True).fit(TEXTS, LABELS)
    base = clf.decision_function(["a good film"])
    assert np.array_equal(clf.decision_function(["a good film bad bad bad"]), base)
    assert np.array_equal(clf.decision_function(["zebra a good film bad"]), base)
    told = clf.explain("a good film bad bad bad")
    assert {c.word for c in told.contributions} <= {"a", "good", "film", "a good", "good film",
                                                    "a good film"}  # fmt: skip
    assert told.text[told.contributions[0].spans[0][0] :]


def test_unknown_and_absent_devices_are_refused():
    for name in ("gpu", "tpu", 3.5, "mps"):
        with pytest.raises(InputError, match="`device` must be"):
            small(device=name).fit(TEXTS, LABELS)
    with pytest.raises(InputError, match="torch finds"):
        small(device=f"cuda:{torch.cuda.device_count() + 7}").fit(TEXTS, LABELS)


def test_a_device_is_no_part_of_a_saved_model(tmp_path):
    clf = small(device="cpu").fit(TEXTS, LABELS)
    assert load(clf.save(tmp_path / "m")).device == "auto"


def test_a_generator_of_texts_is_enough():
    one = small().fit(TEXTS, LABELS)
    two = small().fit((text for text in TEXTS), LABELS)
    assert np.array_equal(one.model_.E.detach(), two.model_.E.detach())


def test_batches_of_a_file_train_the_same_model(tmp_path):
    rows = [f'"{text}",{label}\n' for text, label in zip(TEXTS, LABELS, strict=True)]
    (tmp_path / "r.csv").write_text("text,label\n" + "".join(rows))
    one, source = small().fit(TEXTS, LABELS), read_texts(tmp_path / "r.csv")
    two = small().fit_stream(source.batches(7))
    assert np.array_equal(one.model_.E.detach(), two.model_.E.detach())
    assert two.classes_.tolist() == ["neg", "pos"]


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([(["a", "b"], ["x"])], "one label per text"),
        ([(["a", 3], ["x", "y"])], "text 1 is int"),
        ([(["a", "b"], ["x", "x"])], "at least two classes"),
        ([], "at least two classes"),
    ],
)
def test_batches_that_do_not_fit_are_refused(batches, message):
    with pytest.raises(InputError, match=message):
        small().fit_stream(batches)


def test_a_parameter_out_of_range_is_named_before_anything_is_read():
    def texts():
        raise AssertionError
        yield ""

    with pytest.raises(InputError, match="`clip` must"):
        small(clip=-1.0).fit(texts(), LABELS)


def test_grids_over_recipes_work():
    grid = GridSearchCV(small(), {"A": [None, "learned"], "temperature": [0.0, 0.1]}, cv=2)
    assert grid.fit(TEXTS, LABELS).best_score_ == 1.0


@pytest.mark.parametrize(
    ("key", "change"),
    [("A", lambda A: A[:1]), ("A", lambda A: A.astype(np.float32)), ("A", lambda A: A * np.inf)],
)
def test_a_changed_matrix_is_refused(tmp_path, key, change):
    from hardmax._errors import DataError
    from hardmax.io import load_model, save_model

    clf = small(A="learned").fit(TEXTS, LABELS)
    tensors, meta = load_model(clf.save(tmp_path / "m"), "classifier")
    tensors[key] = change(tensors[key])
    save_model(tmp_path / "n", tensors, meta, "classifier")
    with pytest.raises(DataError, match="`A` must be finite"):
        load(tmp_path / "n")
