"""The estimator, in scikit-learn's manner: every check is written here by hand."""

from __future__ import annotations

import hashlib
import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from hardmax._errors import DataError, InputError, OutputError, ShapeError
from hardmax.estimators.classifier import HardmaxClassifier, load
from hardmax.learn.export import onnx_inputs, onnx_model
from hardmax.learn.report import leader_table

TEXTS = ["A good film. Very warm!", "good and warm", "a bad film", "Bad and cold. Not good"] * 8
LABELS = ["pos", "pos", "neg", "neg"] * 8
FAST = {"dim": 4, "heads": 2, "epochs": 12, "members": 1, "learning_rate": 0.05, "batch_size": 8}
FAST |= {"punctuation": False}


def small(**changes):
    return HardmaxClassifier(**{**FAST, **changes})


@pytest.fixture(scope="module")
def fitted():
    return small().fit(TEXTS, LABELS)


def test_the_constructor_only_stores_its_arguments():
    clf = HardmaxClassifier(dim=-3, scope="nowhere")
    assert clf.get_params()["dim"] == -3
    assert vars(clf).keys() == clf.get_params().keys()


def test_clone_keeps_parameters_and_drops_the_fit(fitted):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "model_")


def test_it_is_a_classifier_of_strings():
    tags = get_tags(HardmaxClassifier())
    assert is_classifier(HardmaxClassifier())
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required


@pytest.mark.parametrize("name", ["predict", "predict_proba", "decision_function", "save"])
def test_before_fit_everything_says_so(name, tmp_path):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(small(), name)(str(tmp_path / "m") if name == "save" else TEXTS)


def test_fit_returns_itself_and_learns_its_texts(fitted):
    clf = small()
    assert clf.fit(TEXTS, LABELS) is clf
    assert fitted.classes_.tolist() == ["neg", "pos"]
    assert fitted.score(TEXTS, LABELS) == 1.0
    assert fitted.n_iter_ == len(fitted.history_) == 12


def test_probabilities_decisions_and_predictions_agree(fitted):
    shares, logit = fitted.predict_proba(TEXTS), fitted.decision_function(TEXTS)
    assert shares.shape == (len(TEXTS), 2)
    assert np.allclose(shares.sum(axis=1), 1)
    assert np.allclose(shares[:, 1], 1 / (1 + np.exp(-logit)))
    assert np.allclose(np.exp(fitted.predict_log_proba(TEXTS)), shares)
    assert np.array_equal(fitted.predict(TEXTS), fitted.classes_[(logit > 0).astype(int)])


def test_three_classes_have_a_logit_each():
    clf = small(epochs=30).fit(["red", "green", "blue"] * 8, ["r", "g", "b"] * 8)
    assert clf.decision_function(["red"]).shape == (1, 3)
    assert clf.predict(["red", "green", "blue"]).tolist() == ["r", "g", "b"]
    assert np.allclose(clf.predict_proba(["red", "mauve"]).sum(axis=1), 1)


@pytest.mark.parametrize(
    "labels",
    [[1, 1, 0, 0] * 8, [True, True, False, False] * 8, np.array(["b", "b", "a", "a"] * 8, object)],
)
def test_labels_of_any_kind_come_back_as_they_were(labels):
    clf = small().fit(TEXTS, labels)
    assert clf.predict(TEXTS[:3]).tolist() == list(labels[:3])


def test_arrays_tuples_generators_and_lists_are_the_same(fitted):
    expected = fitted.decision_function(TEXTS)
    for X in (np.array(TEXTS), np.array(TEXTS, dtype=object), tuple(TEXTS), (t for t in TEXTS)):
        assert np.array_equal(fitted.decision_function(X), expected)


class Series:
    """As much of a column of pandas as matters: an index that does not start at zero."""

    def __init__(self, values):
        self.values, self.index, self.ndim = list(values), range(100, 100 + len(values)), 1
        self.shape, self.dtype = (len(self.values),), np.dtype(object)

    def __iter__(self):
        return iter(self.values)

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype or object)


def test_columns_with_an_index_of_their_own_are_read_by_position(fitted):
    clf = small().fit(Series(TEXTS), Series(LABELS))
    assert np.array_equal(clf.decision_function(Series(TEXTS)), fitted.decision_function(TEXTS))


def test_pandas_series_are_read(fitted):
    import pandas

    table = pandas.DataFrame({"text": TEXTS, "label": LABELS}, index=range(50, 50 + len(TEXTS)))
    clf = small().fit(table["text"], table["label"])
    assert np.array_equal(clf.decision_function(table["text"]), fitted.decision_function(TEXTS))


def test_the_same_integer_gives_the_same_bytes_and_another_does_not(fitted):
    again, other = small().fit(TEXTS, LABELS), small(random_state=1).fit(TEXTS, LABELS)
    assert again.model_.E.detach().numpy().tobytes() == fitted.model_.E.detach().numpy().tobytes()
    assert not np.array_equal(other.model_.E.detach(), fitted.model_.E.detach())


def test_a_random_state_object_is_accepted_and_none_differs_each_time():
    one = small(random_state=np.random.RandomState(5)).fit(TEXTS, LABELS)
    two = small(random_state=np.random.RandomState(5)).fit(TEXTS, LABELS)
    free = [small(random_state=None, epochs=1).fit(TEXTS, LABELS) for _ in range(2)]
    assert np.array_equal(one.model_.E.detach(), two.model_.E.detach())
    assert not np.array_equal(free[0].model_.E.detach(), free[1].model_.E.detach())


def test_fitting_again_forgets_the_first_fit():
    clf = small().fit(["red", "green"] * 8, ["r", "g"] * 8).fit(TEXTS, LABELS)
    assert clf.classes_.tolist() == ["neg", "pos"]
    assert "red" not in clf.vocabulary_.words


def test_fit_leaves_its_arguments_and_parameters_alone():
    texts, labels, clf = list(TEXTS), list(LABELS), small()
    before = dict(clf.get_params())
    clf.fit(texts, labels)
    assert (texts, labels) == (TEXTS, LABELS)
    assert clf.get_params() == before


def test_weights_of_zero_leave_texts_out():
    weights = [1.0, 1.0, 1.0, 1.0] * 4 + [0.0] * 16
    flipped = LABELS[:16] + ["pos" if y == "neg" else "neg" for y in LABELS[16:]]
    clf = small(epochs=30).fit(TEXTS, flipped, sample_weight=weights)
    assert clf.score(TEXTS, LABELS) == 1.0


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ("one text", ["a"], InputError, "got one str"),
        (b"bytes", ["a"], InputError, "got one bytes"),
        ([b"bytes", b"x"], ["a", "b"], InputError, "text 0 is bytes"),
        (["a", None], ["a", "b"], InputError, "text 1 is NoneType"),
        (["a", float("nan")], ["a", "b"], InputError, "text 1 is float"),
        (np.array([["a"], ["b"]]), ["a", "b"], ShapeError, "one column"),
        (7, ["a"], InputError, "expected a list of texts, got int"),
        (["a", "b"], None, InputError, "y is None"),
        (["a", "b"], ["x"], ShapeError, "one label for each of the 2 texts"),
        (["a", "b"], ["x", "x"], InputError, "at least two classes, got 1 class"),
        (["a", "b"], [0.5, 1.5], InputError, "Unknown label type"),
        (["a", "b"], [0.0, float("nan")], InputError, "no NaN"),
        (["a", "b"], np.array(["x", 1], dtype=object), InputError, "labels of one kind"),
        ([], [], InputError, "at least two classes, got 0"),
        (["!", "?"], ["x", "y"], InputError, "no word occurs"),
    ],
)
def test_what_cannot_be_learned_is_refused(X, y, error, message):
    with pytest.raises(error, match=message):
        small().fit(X, y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [([1.0], "one per text"), ([-1.0] * 32, ">= 0"), ([0.0] * 32, "not all zero")],
)
def test_weights_out_of_range_are_refused(weights, message):
    with pytest.raises(InputError, match=message):
        small().fit(TEXTS, LABELS, sample_weight=weights)


@pytest.mark.parametrize(
    ("name", "value"),
    [("dim", 3), ("scope", "word"), ("random_state", "x"), ("random_state", -1), ("members", 0)],
)
def test_parameters_out_of_range_are_named_by_fit(name, value):
    with pytest.raises(InputError, match="must"):
        small(**{name: value}).fit(TEXTS, LABELS)


def test_an_empty_text_and_unknown_words_get_the_bias(fitted):
    bias = fitted.model_.b.item()
    assert fitted.decision_function(["", "zebra", "..."]).tolist() == [bias] * 3
    assert fitted.predict([]).tolist() == []


def test_pipelines_grids_and_cross_validation_work():
    scores = cross_val_score(make_pipeline(small()), TEXTS, LABELS, cv=2)
    assert scores.tolist() == [1.0, 1.0]
    grid = GridSearchCV(small(), {"depth": [0, 2], "scope": ["text", "sentence"]}, cv=2)
    assert grid.fit(TEXTS, LABELS).best_score_ == 1.0


def test_pickles_predict_the_same_bits(fitted):
    copy = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copy.decision_function(TEXTS), fitted.decision_function(TEXTS))


@pytest.mark.parametrize("scope", ["text", "sentence"])
@pytest.mark.parametrize("labels", [LABELS, [0, 1, 2, 3] * 8])
def test_saved_models_predict_the_same_bits(tmp_path, scope, labels):
    clf = small(scope=scope, members=2, stop_words=["and"]).fit(TEXTS, labels)
    clf.save(tmp_path / "m")
    copy = load(tmp_path / "m")
    assert np.array_equal(copy.decision_function(TEXTS), clf.decision_function(TEXTS))
    assert copy.predict(TEXTS).tolist() == clf.predict(TEXTS).tolist()
    assert copy.get_params()["scope"] == scope
    assert clone(copy).fit(TEXTS, labels).settings_ == clf.settings_


def test_the_names_of_hugging_face_work(tmp_path, fitted):
    fitted.save_pretrained(tmp_path / "m")
    copy = HardmaxClassifier.from_pretrained(tmp_path / "m")
    assert np.array_equal(copy.decision_function(TEXTS), fitted.decision_function(TEXTS))


def test_an_existing_model_is_replaced_only_on_request(tmp_path, fitted):
    fitted.save(tmp_path / "m")
    with pytest.raises(OutputError, match="exists"):
        fitted.save(tmp_path / "m")
    fitted.save(tmp_path / "m", force=True)
    assert load(tmp_path / "m").classes_.tolist() == ["neg", "pos"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("classes", ["neg"]), ("classes", ["neg", "neg"]), ("classes", [1, 2]), ("words", []),
        ("words", ["a", "a"]), ("words", "abc"), ("words", [1, 2]), ("ngrams", 0),
        ("ngrams", "3"), ("settings", {"dim": "x"}), ("settings", {"colour": 1}), ("settings", 5),
        ("version", 99), ("version", "x"), ("params", None), ("class_kind", "nothing"),
        ("punctuation", 3), ("stop_words", None),
    ],
)  # fmt: skip
def test_a_changed_card_is_refused(tmp_path, fitted, key, value):
    folder = fitted.save(tmp_path / "m")
    card = json.loads((folder / "model.json").read_text())
    card["meta"][key] = value
    (folder / "model.json").write_text(json.dumps(card))
    with pytest.raises(DataError, match="m"):
        load(folder)


def damaged(data, rng, trial):
    """Bytes cut off, flipped, spliced or repeated."""
    data, at = bytearray(data), int(rng.integers(len(data)))
    if trial % 4 == 0:
        return bytes(data[:at])
    if trial % 4 == 1:
        data[at] ^= 1 << int(rng.integers(8))
    elif trial % 4 == 2:
        data[at:at] = rng.bytes(int(rng.integers(1, 50)))
    else:
        data += data[at:]
    return bytes(data)


def test_damage_is_refused_or_changes_nothing(tmp_path, fitted):
    folder, rng = fitted.save(tmp_path / "m"), np.random.default_rng(0)
    wanted, refused = fitted.decision_function(TEXTS), 0
    for name in ("model.json", "model.safetensors"):
        place = folder / name
        good = place.read_bytes()
        for trial in range(80):
            place.write_bytes(damaged(good, rng, trial))
            try:
                assert np.array_equal(load(folder).decision_function(TEXTS), wanted)
            except DataError:
                refused += 1
        place.write_bytes(good)
    assert refused >= 150
    assert np.array_equal(load(folder).decision_function(TEXTS), wanted)


@pytest.mark.parametrize(
    ("key", "value"),
    [("depth", 10**9), ("ngrams", 10**9), ("dim", 10**9), ("heads", 0), ("A", [[[1e999]]])],
)
def test_settings_that_would_fill_the_memory_are_refused(tmp_path, fitted, key, value):
    from hardmax.estimators._saved import _sum

    folder = fitted.save(tmp_path / "m")
    card = json.loads((folder / "model.json").read_text())
    card["meta"]["settings"][key] = value
    card["meta"]["sha256"] = _sum(card["meta"])
    (folder / "model.json").write_text(json.dumps(card))
    with pytest.raises(DataError, match="m"):
        load(folder)


class Poison:
    """Runs when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("code was run",))


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_a_pickle_in_place_of_a_file_runs_nothing(tmp_path, fitted, name):
    folder = fitted.save(tmp_path / "m")
    (folder / name).write_bytes(pickle.dumps(Poison()))
    with pytest.raises(DataError, match=name):
        load(folder)


def test_a_newer_format_and_a_huge_header_are_one_line(tmp_path, fitted):
    folder = fitted.save(tmp_path / "m")
    card = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**card, "format": 99}))
    with pytest.raises(DataError, match="Update hardmax"):
        load(folder)
    header = (2**62).to_bytes(8, "little") + b"{}"
    sha = hashlib.sha256(header).hexdigest()
    (folder / "model.json").write_text(json.dumps({**card, "sha256": sha}))
    (folder / "model.safetensors").write_bytes(header)
    with pytest.raises(DataError, match="expected safetensors"):
        load(folder)


def test_another_kind_of_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match="m"):
        load(tmp_path / "missing")


def test_the_explanation_sums_to_the_logit(fitted):
    told = fitted.explain("A good film, and not a bad one")
    total = told.bias + sum(c.contribution for c in told.contributions)
    assert abs(total - told.logit) < 1e-9
    assert told.logit == pytest.approx(fitted.decision_function([told.text])[0], abs=1e-9)


def test_streaming_gives_the_texts_with_their_classes(fitted):
    rows = list(fitted.predict_stream(iter(TEXTS[:5]), lot=2))
    assert [text for text, _, _ in rows] == TEXTS[:5]
    assert [label for _, label, _ in rows] == fitted.predict(TEXTS[:5]).tolist()


def test_the_plane_has_one_head_of_two_coordinates():
    clf = HardmaxClassifier.from_preset("plane", epochs=2).fit(TEXTS, LABELS)
    assert clf.model_.heads == 1
    assert clf.model_.E.shape[1] == 2


def test_members_are_heads_of_one_model():
    clf = small(members=3, epochs=2).fit(TEXTS, LABELS)
    assert clf.model_.heads == 6
    assert clf.model_.E.shape == (len(clf.vocabulary_), 12)


def test_a_fit_with_a_checkpoint_ends_with_the_same_model(tmp_path):
    first = small(members=2, checkpoint=tmp_path / "part").fit(TEXTS, LABELS)
    second = small(members=2, checkpoint=tmp_path / "part").fit(TEXTS, LABELS)
    plain = small(members=2).fit(TEXTS, LABELS)
    assert np.array_equal(first.model_.E.detach(), plain.model_.E.detach())
    assert np.array_equal(second.model_.E.detach(), plain.model_.E.detach())


@pytest.mark.parametrize("scope", ["text", "sentence"])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_onnx_gives_the_same_logits_also_when_scores_tie(scope, depth):
    import onnxruntime

    clf = small(scope=scope, depth=depth, spread=1.0, epochs=1).fit(TEXTS, LABELS)
    E = clf.model_.E.data
    E[:] = E.round()  # a lattice: many scores are equal
    tokens = clf.vocabulary_.encode([*TEXTS, ""], sentences=scope == "sentence")
    session = onnxruntime.InferenceSession(onnx_model(clf.model_).SerializeToString())
    (logits,) = session.run(None, onnx_inputs(tokens))
    assert np.allclose(logits, clf.model_.logits(tokens), rtol=0, atol=1e-12)


def test_the_onnx_file_is_written_whole(tmp_path, fitted):
    import onnx

    onnx.checker.check_model(onnx.load(fitted.to_onnx(tmp_path / "m.onnx")))


def test_the_shipped_reviews_are_learned_better_than_chance():
    from hardmax.learn.data import corpus

    clf = HardmaxClassifier(members=1, epochs=25).fit(*corpus("train"))
    texts, labels = corpus("test")
    assert clf.score(texts, labels) > 0.7
    assert leader_table(clf.model_, clf.vocabulary_.encode(texts)).moved > 0.5
