"""Leaders as exemplars: scikit-learn's own checks, steering, prediction, proof."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from hardmax import equilibrium
from hardmax.estimators.clustering import LeaderClustering


@parametrize_with_checks(
    [
        LeaderClustering(),
        LeaderClustering(alpha=0.2, n_clusters=3, scale=True, A="whiten"),
        LeaderClustering(reach=0.01),
    ]
)
def test_scikit_learn_finds_nothing_to_object_to(
    estimator: Any, check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # else one check leaves itself out
    check(estimator)


def blobs(seed: int = 8, n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(n, random_state=seed)


def test_separate_blobs_are_found_without_being_told_how_many() -> None:
    X, y = blobs()
    found = LeaderClustering().fit(X)
    assert adjusted_rand_score(y, found.labels_) == 1
    assert len(found.leader_indices_) == 3
    assert sorted(y[found.leader_indices_]) == [0, 1, 2]


@pytest.mark.parametrize("k", [1, 2, 5, 17, 150])
def test_the_number_of_leaders_is_the_wished_one(k: int) -> None:
    X, _ = blobs()
    found = LeaderClustering(n_clusters=k).fit(X)
    assert len(found.leader_indices_) == k
    assert np.array_equal(np.unique(found.labels_), np.arange(k))


def test_never_more_leaders_than_wished_where_some_are_born_on_the_way() -> None:
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(60, 2))
        for k in (2, 4, 8):
            assert len(LeaderClustering(n_clusters=k).fit(X).leader_indices_) <= k


def test_a_number_and_a_reach_together_take_the_larger_reach() -> None:
    X, _ = blobs()
    few = LeaderClustering(n_clusters=3).fit(X)
    assert LeaderClustering(n_clusters=3, reach=0.0).fit(X).reach_ == few.reach_
    assert LeaderClustering(n_clusters=3, reach=1e-9).fit(X).leader_indices_.size == 3
    wide = LeaderClustering(n_clusters=3, reach=1e4).fit(X)
    assert (wide.reach_, len(wide.leader_indices_)) == (1e4, 1)


def test_a_larger_reach_leaves_fewer_leaders() -> None:
    X, _ = make_moons(200, noise=0.1, random_state=0)
    counts = [
        len(LeaderClustering(reach=r).fit(X).leader_indices_) for r in (0.0, 0.001, 0.03, 1.0, 1e4)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 200
    assert counts[-1] == 1


def test_a_point_leads_iff_no_denser_one_is_within_reach() -> None:
    X = np.random.default_rng(3).normal(size=(40, 2))
    found = LeaderClustering(reach=0.05, alpha=0.5).fit(X)
    pairs = ((X[:, None] - X) ** 2).sum(axis=2)
    far = pairs / (pairs.sum() / (40 * 39))
    kernel = np.exp(-far / (2 * 0.15**2))
    density = np.log(kernel.sum(axis=1) - 1)
    score = 0.05 * density - far / 2
    first = set(np.flatnonzero(score.argmax(axis=1) == np.arange(40)).tolist())
    born = dict(
        zip(
            found.leader_indices_.tolist(),
            equilibrium(found.tokens_, alpha=0.5).born,
            strict=True,
        )
    )
    assert first == {i for i, layer in born.items() if layer == 0}
    assert 1 < len(first) < 20


def test_the_proof_holds_for_the_tokens_and_for_no_others() -> None:
    X, _ = blobs(n=60)
    found = LeaderClustering().fit(X)
    assert found.certificate_.proved
    assert found.certificate_.verify(found.tokens_)
    assert found.certificate_.verify(found.tokens_, arithmetic="rational")
    assert not found.certificate_.verify(found.tokens_[::-1])
    assert found.n_iter_ == len(found.certificate_.layers)
    assert tuple(found.leader_indices_) == found.certificate_.leaders


@pytest.mark.parametrize("options", [{}, {"alpha": 0.1}, {"lift": False}, {"A": "whiten"}])
def test_training_points_are_predicted_as_they_were_labelled(options: dict[str, Any]) -> None:
    for X in (blobs()[0], load_iris().data, np.random.default_rng(0).normal(size=(80, 3))):
        found = LeaderClustering(**options).fit(X)
        known = found.labels_ >= 0
        assert np.array_equal(found.predict(X)[known], found.labels_[known])
        assert known.mean() > 0.95


@pytest.mark.parametrize("seed", [1, 26])
def test_training_points_with_far_ones_among_them_keep_their_exact_labels(seed: int) -> None:
    X = np.random.default_rng(seed).standard_cauchy(size=(120, 4))
    for options in ({}, {"alpha": 2.8}, {"reach": 0.33}):
        found = LeaderClustering(**options).fit(X)
        sure = found.labels_ >= 0
        assert np.array_equal(found.predict(X)[sure], found.labels_[sure])
        assert found.predict(X).min() >= 0


def test_a_new_point_reaches_the_leader_it_would_reach_among_the_others() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 2))
    found = LeaderClustering(lift=False, alpha=0.5).fit(X)
    hull = X[found.leader_indices_]
    agree = 0
    for x in rng.normal(size=(40, 2)) * 0.4:
        z = np.vstack([X - X.mean(axis=0), x - X.mean(axis=0)])
        eq = equilibrium(z, alpha=0.5)
        reached = z[eq.leaders[eq.labels[-1]]] + X.mean(axis=0)
        agree += np.allclose(reached, hull[found.predict(x[None])[0]])
    assert agree == 40


def test_centres_are_the_leading_points_or_where_they_had_moved() -> None:
    X, _ = blobs()
    found = LeaderClustering().fit(X)
    assert np.array_equal(found.cluster_centers_, X[found.leader_indices_])
    emerging = np.array([[1, 4 / 12], [-1 / 12, 1 / 12], [-1, -1], [0, 3 / 12], [-0.3, -0.7]])
    for more in range(200):
        rng = np.random.default_rng(more)
        X = np.vstack([emerging, rng.normal(size=(3, 2)) / 5])
        found = LeaderClustering(lift=False, alpha=0.5).fit(X)
        born = np.array(equilibrium(found.tokens_, alpha=0.5).born)
        if born.max() > 0:
            break
    late = int(np.argmax(born))
    limit = equilibrium(found.tokens_, alpha=0.5).limit[found.leader_indices_[late]]
    spread = np.sqrt(2 * X.var(axis=0, ddof=1).sum())
    assert np.allclose(found.cluster_centers_[late], limit * spread + X.mean(axis=0))
    assert not np.allclose(found.cluster_centers_[late], X[found.leader_indices_[late]])


def test_without_lift_the_extreme_points_lead() -> None:
    X = np.array([[2.0, 0], [0, 2], [-2, 0], [0, -2], [0.3, 0.1], [-0.1, 0.4]])
    found = LeaderClustering(lift=False).fit(X)
    assert found.leader_indices_.tolist() == [0, 1, 2, 3]
    assert found.labels_.tolist() == [0, 1, 2, 3, 0, 1]
    assert np.isnan(found.reach_)


def test_the_metric_is_that_of_the_matrix() -> None:
    X, _ = blobs(n=80)
    L = np.array([[2.0, 0.5], [0.0, 0.3]])
    direct = LeaderClustering(n_clusters=4).fit(X @ L.T)
    through = LeaderClustering(n_clusters=4, A=L.T @ L).fit(X)
    assert np.array_equal(direct.labels_, through.labels_)
    stretched = X * [1000, 0.001]
    one = LeaderClustering(A="whiten").fit(X)
    two = LeaderClustering(A="whiten").fit(stretched)
    assert np.array_equal(one.labels_, two.labels_)
    three = LeaderClustering(scale=True).fit(X)
    four = LeaderClustering(scale=True).fit(stretched)
    assert np.array_equal(three.labels_, four.labels_)


def test_labels_do_not_depend_on_place_or_scale() -> None:
    X, _ = blobs(n=60)
    found = LeaderClustering().fit(X).labels_
    assert np.array_equal(found, LeaderClustering().fit(X * 1024).labels_)
    assert np.array_equal(found, LeaderClustering().fit(X + np.array([5.0, -3])).labels_)
    assert np.array_equal(found, LeaderClustering().fit(X * 2.0**-500).labels_)


@pytest.mark.parametrize(
    "X", [[[1.0, 2]], [[1.0, 2], [1, 2], [1, 2]], [[0.0], [1.0]], [[0.0], [0.0], [5.0], [5.0]]]
)
def test_few_and_equal_points_are_clustered(X: list[list[float]]) -> None:
    for options in ({}, {"n_clusters": 1}, {"n_clusters": 9}, {"lift": False}, {"A": "whiten"}):
        found = LeaderClustering(**options).fit(X)
        groups = {tuple(row): label for row, label in zip(X, found.labels_, strict=True)}
        assert all(groups[tuple(r)] == v for r, v in zip(X, found.labels_, strict=True))
        assert found.labels_.min() >= 0
        assert found.certificate_.proved


def test_it_lives_in_pipelines_and_pickles() -> None:
    X, y = blobs()
    pipe = make_pipeline(StandardScaler(), LeaderClustering(n_clusters=3))
    assert adjusted_rand_score(y, pipe.fit_predict(X)) == 1
    found = LeaderClustering().fit(X)
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.predict(X), found.predict(X))
    assert clone(found).get_params() == found.get_params()
    with pytest.raises(NotFittedError, match="not fitted"):
        LeaderClustering().predict(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "`alpha` must be a finite number > 0"),
        ({"n_clusters": 0}, "`n_clusters` must be an integer >= 1; got 0"),
        ({"n_clusters": 2.5}, r"got 2\.5"),
        ({"reach": -1}, "`reach` must be a finite number >= 0"),
        ({"bandwidth": 0}, "`bandwidth` must be a finite number > 0"),
        ({"lift": False, "n_clusters": 2}, "steer the lift"),
        ({"A": "best"}, "`A` must be one of identity, whiten"),
        ({"A": np.eye(3)}, r"`A` must be \(2, 2\)"),
        ({"A": [[1.0, 2], [0, 1]]}, "finite and symmetric"),
        ({"A": [[1.0, 0], [0, -1]]}, "positive definite"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LeaderClustering(**options).fit(blobs(n=20)[0])
