"""The checks of scikit-learn's `check_estimator` that apply to texts, written by hand.

`check_estimator` skips an estimator that declares text input; the names in the comments
are those of its checks.
"""

from __future__ import annotations

import inspect

import numpy as np
import pandas
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import make_scorer
from sklearn.model_selection import RandomizedSearchCV, cross_val_predict, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from hardmax._errors import InputError, ShapeError
from hardmax.estimators.classifier import HardmaxClassifier
from tests.unit.estimators.test_classifier import LABELS, TEXTS, small


@pytest.fixture(scope="module")
def fitted():
    return small().fit(TEXTS, LABELS)


def test_it_is_made_without_arguments_and_shows_those_that_differ():
    # check_parameters_default_constructible, check_estimator_repr, check_mixin_order
    assert repr(HardmaxClassifier()) == "HardmaxClassifier()"
    assert repr(HardmaxClassifier(dim=2, heads=1)) == "HardmaxClassifier(dim=2, heads=1)"
    order = [c for c in HardmaxClassifier.__mro__ if c in (ClassifierMixin, BaseEstimator)]
    assert order == [ClassifierMixin, BaseEstimator]


def test_the_defaults_of_the_constructor_are_immutable_and_are_its_parameters():
    # check_parameters_default_constructible, check_get_params_invariance
    signature = inspect.signature(HardmaxClassifier.__init__).parameters
    given = HardmaxClassifier().get_params()
    assert set(given) == set(signature) - {"self"}
    for name, value in given.items():
        assert value is None or isinstance(value, str | int | float | bool), name
    assert given == HardmaxClassifier().get_params(deep=False)


def test_set_params_sets_and_refuses_unknown_names():
    # check_set_params, check_do_not_raise_errors_in_init_or_set_params
    clf = HardmaxClassifier()
    for name in clf.get_params():
        for value in (-np.inf, np.nan, "x", [], object()):
            clf.set_params(**{name: value})
            assert clf.get_params()[name] is value
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        clf.set_params(colour=1)


def test_its_tags_say_what_it_takes():
    # check_valid_tag_types
    tags = get_tags(HardmaxClassifier())
    assert tags.estimator_type == "classifier"
    assert tags.classifier_tags.multi_class
    assert not tags.input_tags.sparse
    assert not tags.no_validation


def test_the_order_of_the_texts_changes_no_bit(fitted):
    # check_methods_sample_order_invariance
    order = np.random.default_rng(0).permutation(len(TEXTS))
    moved = [TEXTS[k] for k in order]
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        whole, other = getattr(fitted, method)(TEXTS), getattr(fitted, method)(moved)
        assert np.array_equal(whole[order], other), method


def test_texts_one_by_one_give_the_same_bits(fitted):
    # check_methods_subset_invariance
    for method in ("predict", "predict_proba", "decision_function"):
        parts = [getattr(fitted, method)([text]) for text in TEXTS]
        assert np.array_equal(getattr(fitted, method)(TEXTS), np.concatenate(parts)), method


def test_predicting_changes_nothing_of_the_estimator(fitted):
    # check_dict_unchanged, check_estimators_overwrite_params
    before = dict(vars(fitted))
    fitted.predict(TEXTS), fitted.predict_proba(TEXTS), fitted.decision_function(TEXTS)
    fitted.explain(TEXTS[0])
    assert vars(fitted).keys() == before.keys()
    assert all(vars(fitted)[key] is before[key] for key in before)


def test_fit_sets_only_names_that_end_with_an_underscore():
    # check_dont_overwrite_attributes, check_no_attributes_set_in_init
    clf = small()
    before = set(vars(clf))
    clf.fit(TEXTS, LABELS)
    assert all(name.endswith("_") and name[0] != "_" for name in set(vars(clf)) - before)


def test_fitting_twice_is_fitting_once():
    # check_fit_idempotent
    clf = small().fit(TEXTS, LABELS)
    first = clf.predict_proba(TEXTS)
    assert np.array_equal(clf.fit(TEXTS, LABELS).predict_proba(TEXTS), first)


def test_decisions_rank_texts_as_probabilities_do(fitted):
    # check_decision_proba_consistency
    decisions, shares = fitted.decision_function(TEXTS), fitted.predict_proba(TEXTS)[:, 1]
    order = np.argsort(decisions, kind="stable")
    assert (np.diff(shares[order]) >= 0).all()
    assert fitted.predict_proba(TEXTS).min() >= 0


def test_arrays_that_may_not_be_written_are_read(fitted):
    # check_readonly_memmap_input, check_f_contiguous_array_estimator
    X, y = np.array(TEXTS), np.array(LABELS)
    w = np.ones(len(y))
    for array in (X, y, w):
        array.flags.writeable = False
    clf = small().fit(X, y, sample_weight=w)
    assert np.array_equal(clf.predict(X), fitted.predict(TEXTS))


def test_columns_of_pandas_of_any_string_type_are_read(fitted):
    for kind in ("object", "string", "category"):
        X, y = pandas.Series(TEXTS, dtype=kind), pandas.Series(LABELS, dtype=kind)
        clf = small().fit(X, y)
        assert clf.predict(X).tolist() == fitted.predict(TEXTS).tolist()
        assert clf.classes_.tolist() == ["neg", "pos"]


def test_a_missing_value_of_pandas_is_refused():
    # check_estimators_nan_inf, check_supervised_y_no_nan
    X, y = pandas.Series(TEXTS, dtype="string"), pandas.Series(LABELS, dtype="string")
    X[3] = pandas.NA
    with pytest.raises(InputError, match="text 3 is NAType"):
        small().fit(X, LABELS)
    y[3] = pandas.NA
    with pytest.raises(InputError, match="labels of one kind"):
        small().fit(TEXTS, y)
    with pytest.raises(InputError, match="no NaN"):
        small().fit(TEXTS, [np.inf, *[0.0, 1.0] * 15, 0.0])


def test_a_column_of_labels_is_flattened_with_a_warning():
    # check_supervised_y_2d
    with pytest.warns(DataConversionWarning, match="column-vector"):
        clf = small().fit(TEXTS, np.array(LABELS)[:, None])
    assert clf.classes_.tolist() == ["neg", "pos"]
    with pytest.raises(ShapeError, match="one label for each"):
        small().fit(TEXTS, np.array([LABELS, LABELS]).T)


@pytest.mark.parametrize(
    "labels", [[b"a", b"b"] * 16, [1j, 2j] * 16, np.array(["2020", "2021"] * 16, "M8[Y]")]
)
def test_labels_of_other_kinds_are_refused(labels):
    # check_classifiers_regression_target, check_complex_data
    with pytest.raises(InputError, match="strings, integers or booleans"):
        small().fit(TEXTS, labels)


@pytest.mark.parametrize("X", [scipy.sparse.eye(32, format="csr"), np.eye(32), np.float64(3)])
def test_numbers_are_refused_as_texts(X):
    # check_estimator_sparse_matrix, check_fit1d, check_estimators_dtypes
    with pytest.raises(InputError, match="text"):
        small().fit(X, LABELS)
    with pytest.raises(InputError, match="text"):
        small().fit(TEXTS, LABELS).predict(X)


def test_one_text_of_each_class_is_enough():
    # check_fit2d_1sample, check_fit2d_1feature
    clf = small().fit(["good", "bad"], ["y", "n"])
    assert clf.predict(["good", "bad"]).tolist() == ["y", "n"]
    assert small().fit(["word"] * 4, [0, 1, 0, 1]).predict(["word"]).shape == (1,)


def test_weights_of_one_are_no_weights(fitted):
    # check_sample_weight_equivalence, check_sample_weights_list, _pandas_series, _not_an_array
    for weights in ([1.0] * len(TEXTS), np.ones(len(TEXTS)), pandas.Series([1] * len(TEXTS)), 1.0):
        clf = small().fit(TEXTS, LABELS, sample_weight=weights)
        assert np.array_equal(clf.decision_function(TEXTS), fitted.decision_function(TEXTS))


def test_weights_are_not_written_to():
    # check_sample_weights_not_overwritten
    weights = np.linspace(0.5, 1.5, len(TEXTS))
    before = weights.copy()
    small().fit(TEXTS, LABELS, sample_weight=weights)
    assert np.array_equal(weights, before)


def test_a_text_of_weight_two_counts_as_two():
    # check_sample_weight_equivalence: of one full batch without anything random in it
    plain = {"word_dropout": 0.0, "batch_size": 64, "evidence": 0.0, "length_power": 0.0}
    one = small(**plain, epochs=1).fit(TEXTS, LABELS, sample_weight=[2.0] * 16 + [0.0] * 16)
    two = small(**plain, epochs=1).fit(TEXTS, LABELS)
    assert np.allclose(one.decision_function(TEXTS), two.decision_function(TEXTS), atol=1e-4)


def test_the_number_of_epochs_is_told():
    # check_non_transformer_estimators_n_iter
    assert small(epochs=3, members=2).fit(TEXTS, LABELS).n_iter_ == 6


def test_it_works_inside_the_tools_of_scikit_learn():
    # check_pipeline_consistency, and what people do with a classifier
    trim = FunctionTransformer(lambda texts: [text.strip(" !") for text in texts])
    pipe = Pipeline([("trim", trim), ("clf", small())])
    scores = cross_validate(pipe, TEXTS, LABELS, cv=2, scoring=["accuracy", "roc_auc"])
    assert scores["test_roc_auc"].min() == 1.0
    assert cross_val_predict(small(), TEXTS, LABELS, cv=2).tolist() == LABELS
    search = RandomizedSearchCV(
        pipe, {"clf__alpha": [0.2, 0.5], "clf__depth": [1, 2]}, n_iter=2, cv=2, random_state=0,
        scoring=make_scorer(lambda y, p: np.mean(y == p)),
    )  # fmt: skip
    assert search.fit(TEXTS, LABELS).best_score_ == 1.0
    vote = VotingClassifier([("a", small()), ("b", small(dim=2, heads=1))], voting="soft")
    assert vote.fit(TEXTS, LABELS).score(TEXTS, LABELS) == 1.0
    sure = CalibratedClassifierCV(small(), cv=2).fit(np.array(TEXTS), LABELS)
    assert sure.score(np.array(TEXTS), LABELS) == 1.0


def test_clones_of_clones_train_alike(fitted):
    # check_estimator_cloneable
    copy = clone(clone(small())).fit(TEXTS, LABELS)
    assert np.array_equal(copy.decision_function(TEXTS), fitted.decision_function(TEXTS))
