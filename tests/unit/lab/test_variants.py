"""Variants of the layer: beside one layer, the limit of the theory, and formulas written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hardmax import equilibrium, layer
from hardmax._errors import DataError, InputError
from hardmax.estimators.classifier import HardmaxClassifier
from hardmax.lab import matrices, trained
from hardmax.lab._groups import agreement, count_near, groups_of
from hardmax.lab.matrices import MATRICES, draw_feed_forward, draw_matrix, draw_values
from hardmax.lab.measure import MEASURES, cost, measure_systems
from hardmax.lab.variants import Systems, Variant, draw_systems, read_variant
from hardmax.lab.walk import walk
from hardmax.learn import data


def drawn(draws: int = 6, seed: int = 0, **settings: Any) -> Systems:
    return draw_systems(read_variant(settings), seed, range(draws))


# --------------------------------------------------------------- against one layer


@pytest.mark.parametrize("normalization", ["none", "sphere", "layernorm"])
@pytest.mark.parametrize("temperature", [0.0, 0.3])
def test_a_walk_is_the_layer_again_and_again(normalization: str, temperature: float) -> None:
    systems = drawn(
        n=9, d=3, matrix="general", depth=4, normalization=normalization, temperature=temperature
    )
    done = walk(systems)
    for s, end in enumerate(done.end):
        z = systems.z[s]
        for _ in range(done.layers[s]):
            z = layer(
                z, A=systems.A[s, 0], alpha=0.5, normalization=normalization,
                temperature=temperature,
            )  # fmt: skip
        if done.status[s] == "settled":  # `end` is the limit then; the last layers lead there
            continue
        scale = 1.5 ** done.layers[s] if normalization == "none" else 1.0
        assert np.allclose(end, z / scale, rtol=1e-10, atol=1e-12)


def test_blocks_of_values_are_the_heads_of_the_layer() -> None:
    rng = np.random.default_rng(5)
    z, small = rng.normal(size=(12, 4)), rng.normal(size=(2, 2, 2))
    A = np.zeros((1, 2, 4, 4))
    A[0, 0, :2, :2], A[0, 1, 2:, 2:] = small
    variant = Variant(n=12, d=4, heads=2, values="blocks", depth=5)
    V = draw_values("blocks", 2, 4, rng)[None]
    first, bias, last = (x[None] for x in draw_feed_forward(4, rng))
    done = walk(Systems(variant, z[None], A, V, first, bias, last))
    for _ in range(5):
        z = layer(z, A=list(small), heads=2, alpha=0.5)
    assert np.allclose(done.end[0], z, atol=1e-12)


@pytest.mark.parametrize("matrix", ["identity", "spd", "spd+3skew", "general", "indefinite"])
def test_plain_systems_end_where_the_certified_limit_says(matrix: str) -> None:
    settings = {"matrix": matrix, "d": 3, "n": 25}
    systems = drawn(20, 5, **settings)
    done = walk(systems)
    rows = measure_systems(settings, 5, range(20))
    for s, row in enumerate(rows):
        eq = equilibrium(systems.z[s], A=systems.A[s, 0], alpha=0.5)
        assert row["leaders"] == len(eq.leaders)
        assert row["settled_at"] == eq.settled_at
        assert np.allclose(done.end[s], eq.limit, atol=1e-12)
        assert row["distance"] < 1e-12
        assert row["same"] == 1


def test_causal_tokens_follow_those_before_them() -> None:
    systems = drawn(3, n=15, d=2, matrix="general", causal=True, depth=3)
    done = walk(systems)
    for s, end in enumerate(done.end):
        z, A = systems.z[s].copy(), systems.A[s, 0]
        for _ in range(3):
            best = [int(np.argmax(z[: i + 1] @ (A @ z[i]))) for i in range(15)]
            z = z + (z[best] - z) / 3
        assert np.allclose(end, z, atol=1e-13)
        assert np.array_equal(end[0], systems.z[s, 0])


def test_heads_and_feed_forward_are_the_formula() -> None:
    systems = drawn(
        2, n=8, d=3, matrix="spd", heads=2, values="gaussian", feed_forward=0.2, depth=2,
        normalization="sphere",
    )  # fmt: skip
    done = walk(systems)
    for s, end in enumerate(done.end):
        z = systems.z[s]
        for _ in range(2):
            move = np.zeros_like(z)
            for A, V in zip(systems.A[s], systems.V[s], strict=True):
                best = (z @ A.T @ z.T).argmax(axis=1)
                move += z[best] @ V.T
            z = z + 0.5 * move
            z = z / np.linalg.norm(z, axis=1, keepdims=True)
            hidden = np.maximum(z @ systems.first[s] + systems.bias[s], 0)
            z = z + 0.2 * hidden @ systems.last[s]
            z = z / np.linalg.norm(z, axis=1, keepdims=True)
        assert np.allclose(end, z, atol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        {"matrix": "general", "d": 4},
        {"temperature": 0.1, "matrix": "general"},
        {"heads": 2, "values": "gaussian", "matrix": "spd"},
        {"feed_forward": 0.1, "normalization": "sphere"},
        {"causal": True, "temperature": 0.3},
    ],
)
def test_a_system_does_not_depend_on_what_runs_beside_it(settings: dict[str, Any]) -> None:
    settings = {"n": 12, "depth": 60, **settings}
    together = measure_systems(settings, 1, range(8))
    alone = [measure_systems(settings, 1, [k])[0] for k in (7, 2)]
    assert alone == [together[7], together[2]]


# ------------------------------------------------------------------- known answers


def test_on_the_sphere_with_the_identity_every_token_leads() -> None:
    (row,) = measure_systems({"normalization": "sphere", "n": 30, "d": 3}, 0, [0])
    assert (row["clusters"], row["leaders"], row["status"]) == (30, 30, "still")


def test_rank_one_leaves_two_clusters_and_skew_scores_consensus() -> None:
    for row in measure_systems({"matrix": "vv", "d": 4}, 0, range(10)):
        assert (row["clusters"], row["settled_at"], row["status"]) == (2, 0, "settled")
    for row in measure_systems({"matrix": "skew", "d": 3}, 0, range(10)):
        assert (row["clusters"], row["status"], row["converged"]) == (1, "collapsed", True)


def test_a_high_temperature_melts_the_clusters_and_a_low_one_keeps_them() -> None:
    cold = measure_systems({"temperature": 1e-4, "depth": 200}, 0, range(6))
    hot = measure_systems({"temperature": 10.0, "depth": 200}, 0, range(6))
    hard = measure_systems({"depth": 200}, 0, range(6))
    assert [r["clusters"] for r in cold] == [r["clusters"] for r in hard]
    assert all(r["distance"] < 0.01 and r["left"] is False for r in cold)
    assert all(r["life"] == 200 - r["near_at"] for r in cold)
    assert all(r["clusters"] == 1 and r["life"] is None for r in hot)


def test_times_are_those_of_a_case_worked_by_hand() -> None:
    # Tokens 0 and 1 lead at once; token 2 halves its way to token 0 in every layer.
    z = np.array([[[4.0, 0.0], [0.0, 4.0], [3.0, 0.0]]])
    rng = np.random.default_rng(0)
    first, bias, last = (x[None] for x in draw_feed_forward(2, rng))
    variant = Variant(n=3, d=2, alpha=1.0)
    done = walk(
        Systems(variant, z, np.eye(2)[None, None], np.eye(2)[None, None], first, bias, last)
    )
    assert done.status == ["settled"]
    assert done.layers.tolist() == [0]
    assert done.leaders.tolist() == [2]
    assert done.end[0].tolist() == [[4, 0], [0, 4], [4, 0]]
    from hardmax.lab.measure import _rows

    (row,) = _rows(done)
    size = np.sqrt(41 / 3)
    assert (row["settled_at"], row["final_6"], row["clusters"]) == (0, 1.0, 2)
    assert row["far_6"] == pytest.approx(1 / size / 2**6)
    assert row["arrived_at"] == 3  # 1 / size = .27, then .135, .068, .034 <= .05
    assert row["largest"] == pytest.approx(2 / 3)


def test_growing_tokens_end_the_run_and_are_said_to_grow() -> None:
    rows = measure_systems(
        {"normalization": "none", "temperature": 0.0, "feed_forward": 3.0, "depth": 3000}, 0, [0, 1]
    )
    assert {r["status"] for r in rows} <= {"grew", "still"}
    assert all(np.isfinite(v) for r in rows for v in r.values() if isinstance(v, float))


# ---------------------------------------------------------------- drawing and names


_OTHERS = ("spd+0.5skew", "file:PATH", "model:DIR", "trained")


@pytest.mark.parametrize("name", [m for m in MATRICES if m not in _OTHERS])
def test_each_class_of_matrices_is_what_it_says(name: str) -> None:
    for seed in range(5):
        A = draw_matrix(name, 4, np.random.default_rng(seed))
        symmetric = np.linalg.eigvalsh((A + A.T) / 2)
        rank = np.linalg.matrix_rank(A)
        claim = {
            "identity": np.array_equal(A, np.eye(4)),
            "spd": np.allclose(A, A.T) and symmetric[0] > 0,
            "skew": np.array_equal(A, -A.T),
            "indefinite": np.allclose(A, A.T) and (symmetric > 0).sum() == 1,
            "symmetric": np.allclose(A, A.T),
            "negative": np.allclose(A, A.T) and symmetric[-1] < 0,
            "general": rank == 4 and not np.allclose(A, A.T),
            "low-rank": rank == 2 and not np.allclose(A, A.T),
            "low-rank-psd": rank == 2 and symmetric[0] > -1e-12,
            "vv": rank == 1 and np.allclose(A, A.T),
            "uv": rank == 1 and not np.allclose(A, A.T),
        }
        assert claim[name]


TEXTS = ["a good fine day", "good and fine", "fine work", "a bad poor day", "bad and poor", "poor"]
LABELS = [1, 1, 1, 0, 0, 0]


def test_trained_scores_are_those_that_small_classifiers_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(data, "corpus", lambda part: (TEXTS, LABELS))
    trained.trained_scores.cache_clear()
    monkeypatch.setattr(matrices, "MODELS", 2)
    drawn_ones = [draw_matrix("trained", 2, np.random.default_rng(seed)) for seed in range(8)]
    row = measure_systems({"matrix": "trained", "d": 2, "n": 12}, 0, [3])
    trained.trained_scores.cache_clear()
    assert len({one.tobytes() for one in drawn_ones}) == 2
    assert all(not np.allclose(one, np.eye(2)) for one in drawn_ones)
    assert row[0]["converged"]


def test_scores_of_a_saved_model_are_taken_head_by_head(tmp_path: Any) -> None:
    learned = HardmaxClassifier(4, 2, 1, 1, members=1, A="learned", epochs=2, random_state=0)
    plain = HardmaxClassifier(4, 2, 1, 1, members=1, epochs=2, random_state=0)
    for name, model in (("learned", learned), ("plain", plain)):
        model.fit(TEXTS, LABELS).save(tmp_path / name)
    heads = learned.model_.scores()
    taken = [draw_matrix(f"model:{tmp_path / 'learned'}", 2, np.random.default_rng(s))
             for s in range(8)]  # fmt: skip
    assert {one.tobytes() for one in taken} == {np.array(h, dtype=float).tobytes() for h in heads}
    with pytest.raises(InputError, match=r"its heads have d = 2, and d = 3. Set d"):
        measure_systems({"matrix": f"model:{tmp_path / 'learned'}", "d": 3}, 0, [0])
    with pytest.raises(InputError, match="its scores are not learned"):
        read_variant({"matrix": f"model:{tmp_path / 'plain'}"})
    with pytest.raises(DataError, match="nowhere"):
        read_variant({"matrix": f"model:{tmp_path / 'nowhere'}"})


def test_a_multiple_of_a_skew_part_is_added_and_files_are_read(tmp_path: Any) -> None:
    plain = draw_matrix("spd", 3, np.random.default_rng(1))
    mixed = draw_matrix("spd+2.5skew", 3, np.random.default_rng(1))
    assert np.allclose(mixed - plain, -(mixed - plain).T)
    path = tmp_path / "A.npy"
    np.save(path, plain)
    assert np.array_equal(draw_matrix(f"file:{path}", 3, np.random.default_rng(0)), plain)
    with pytest.raises(InputError, match=r"the matrix is \(3, 3\), and d = 2"):
        measure_systems({"matrix": f"file:{path}", "d": 2}, 0, [0])
    with pytest.raises(DataError, match="no such file"):
        read_variant({"matrix": "file:nowhere.npy"})


def test_variants_share_their_tokens_and_matrices() -> None:
    one, other = drawn(3, matrix="spd"), drawn(3, matrix="spd", temperature=0.5, heads=2)
    assert np.array_equal(one.z, other.z)
    assert np.array_equal(one.A[:, 0], other.A[:, 0])
    assert not np.array_equal(one.z, drawn(3, seed=1).z)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"m": 3}, "'m' is no setting of a system. Known are tokens, n"),
        ({"n": 0}, "`n` must be a whole number >= 1; got 0"),
        ({"n": 2.5}, r"`n` must be a whole number >= 1; got 2\.5"),
        ({"n": True}, "`n` must be a number; got True"),
        ({"alpha": 0}, "`alpha` must be a number > 0; got 0"),
        ({"alpha": float("nan")}, "`alpha` must be a number; got nan"),
        ({"temperature": -1}, "`temperature` must be a number >= 0; got -1"),
        ({"matrix": "best"}, "`matrix` must be one of identity"),
        ({"values": "none"}, "`values` must be one of identity, blocks"),
        ({"normalization": "batch"}, "`normalization` must be one of rescale"),
        ({"tokens": "words"}, "`tokens` must be one of gaussian"),
        ({"causal": 1}, "`causal` must be true or false; got 1"),
        ({"values": "blocks", "heads": 3, "d": 4}, "`heads` must divide d"),
    ],
)
def test_settings_that_make_no_system_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_variant(given)


# ---------------------------------------------------------------------- small parts


def test_groups_are_chains_of_near_points() -> None:
    z = np.array([[0.0], [0.9], [1.8], [5.0], [5.5]])
    assert groups_of(z, 1.0).tolist() == [0, 0, 0, 1, 1]
    assert groups_of(z, 0.1).tolist() == [0, 1, 2, 3, 4]
    assert count_near(z, 1.0) == 3  # 0, 1.8 and 5: the others are near a kept one


def test_agreement_is_the_adjusted_rand_index() -> None:
    from sklearn.metrics import adjusted_rand_score

    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.integers(0, 4, size=(2, 15))
        assert agreement(a, b) == pytest.approx(adjusted_rand_score(a, b))
    assert agreement(np.zeros(5, dtype=int), np.zeros(5, dtype=int)) == 1


def test_every_measure_is_described_and_more_work_costs_more() -> None:
    (row,) = measure_systems({"temperature": 0.1, "n": 5, "depth": 10}, 0, [0])
    assert set(row) - {"status"} == set(MEASURES)
    assert cost({"n": 80}) > cost({"n": 40})
    assert cost({"temperature": 0.1}) > cost({})


def test_tokens_that_shrink_to_the_origin_are_one_cluster_and_collapsed() -> None:
    rows = measure_systems({"values": "rotation", "heads": 4, "matrix": "spd", "d": 8}, 0, [0, 1])
    assert [(row["clusters"], row["status"]) for row in rows] == [(1, "collapsed")] * 2
    one = measure_systems({"values": "rotation", "heads": 1, "matrix": "spd", "d": 8}, 0, [0])
    assert (one[0]["clusters"], one[0]["status"]) == (2, "still")
