"""All paths of the CPU: one answer, that of exact arithmetic, on clouds made to mislead them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.select import cpu, select, sharp, twostage
from hardmax.select.hull import near_hull
from hardmax.select.plan import PATHS
from hardmax.select.search import search_cloud
from tests import oracle

KINDS = (
    "gauss", "ball", "cube", "near equilibrium", "duplicates", "near ties", "nearer ties",
    "lattice", "line", "plane", "zeros", "wide", "sphere", "far from the origin", "parabola",
)  # fmt: skip


def cloud(kind: str, n: int, d: int, seed: int) -> np.ndarray:
    """n tokens in R^d: random, degenerate, or alike up to the last bits."""
    r = np.random.default_rng([seed, n, d])
    z = r.standard_normal((n, d))
    if kind == "near equilibrium":  # followers at 2^-k from their leaders
        leaders = z[: max(1, n // 20)]
        at = r.integers(len(leaders), size=n)
        return leaders[at] + np.ldexp(z, -r.integers(0, 60, size=(n, 1)))
    if kind in ("duplicates", "near ties", "nearer ties"):
        few = z[: max(1, n // 8)]
        bits = {"duplicates": 1100, "near ties": 25, "nearer ties": 38}[kind]
        return few[r.integers(len(few), size=n)] * (1 + np.ldexp(r.normal(size=(n, 1)), -bits))
    t = r.integers(-20, 21, size=(n, 1)) / 4
    others = {
        "ball": lambda: z / np.linalg.norm(z, axis=1)[:, None] * r.random((n, 1)) ** (1 / d),
        "cube": lambda: r.uniform(-1, 1, size=(n, d)),
        "lattice": lambda: r.integers(-3, 4, size=(n, d)).astype(float),
        "line": lambda: r.integers(-9, 10, size=(n, 1)) * r.integers(-3, 4, size=d).astype(float),
        "plane": lambda: (r.integers(-5, 6, (n, 2)) @ r.integers(-3, 4, (2, d))).astype(float),
        "zeros": lambda: z * (r.random((n, 1)) < 0.5),
        "wide": lambda: np.ldexp(z, r.integers(-60, 1, size=(n, 1))),
        "sphere": lambda: z / np.linalg.norm(z, axis=1)[:, None],
        "far from the origin": lambda: 1e-6 * z + r.standard_normal(d),
        "parabola": lambda: np.concatenate([1 - t * t, *[t] * (d - 1)], axis=1),
    }
    return others[kind]() if kind in others else z


def sets(chosen: Any) -> list[tuple[int, ...]]:
    return [tuple(chosen.row(i).tolist()) for i in range(len(chosen.indptr) - 1)]


def whole(x: np.ndarray) -> np.ndarray:
    """Floats times one power of two, as Python integers."""
    m, e = np.frexp(x.astype(np.float64))
    low = int(e[x != 0].min(initial=1000))
    shift = np.where(x != 0, e - low, 0)
    return np.vectorize(lambda a, s: int(a) << int(s), otypes=[object])(m * 2.0**53, shift)


def exact(z: np.ndarray, rows: np.ndarray) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """The sets of some rows in integers, and the gap behind each, of the largest score."""
    keys = whole(z)
    scores = keys[rows] @ keys.T
    best = scores.max(axis=1)
    chosen = scores == best[:, None]
    rest = np.where(chosen, -(1 << 4000), scores).max(axis=1)
    size = np.abs(scores).max(axis=1)
    gap = [float((b - r) / s) if s else 1.0 for b, r, s in zip(best, rest, size, strict=True)]
    return [tuple(np.flatnonzero(row).tolist()) for row in chosen], np.array(gap)


def test_the_integers_are_those_of_the_loop_over_fractions() -> None:
    for kind in ("gauss", "lattice", "wide"):
        z = cloud(kind, 15, 3, 0)
        assert exact(z, np.arange(15))[0] == oracle.State.of(z, None).sets


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_path_gives_the_sets_of_exact_arithmetic(kind: str, dtype: Any) -> None:
    """Where the gap exceeds the rounding of float64, whatever the type of the tokens."""
    for seed, (n, d) in enumerate(((150, 1), (300, 2), (260, 3), (140, 4), (260, 17))):
        z = cloud(kind, n, d, seed).astype(dtype)
        rows = np.random.default_rng(n).choice(n, size=12, replace=False)
        expected, gap = exact(z, rows)
        sure = gap > 8 * (d + 4) * 2.0**-53
        for path in (*PATHS, "auto", "reference", "gpu"):
            found = sets(select(z, backend=path).take(rows))
            wrong = [i for i in range(len(rows)) if found[i] != expected[i]]
            assert not sure[wrong].any(), (path, n, d)


@pytest.mark.parametrize("kind", KINDS)
def test_all_paths_of_the_cpu_agree_to_the_last_tie(kind: str) -> None:
    for seed, (n, d, tol) in enumerate(((500, 2, 0.0), (400, 3, 1e-12), (400, 9, 1e-5))):
        z = cloud(kind, n, d, seed)
        A = np.random.default_rng(seed).normal(size=(d, d)) if seed else None
        base = select(z, A, tie_tol=tol, backend="brute")
        for path in PATHS[1:]:
            other = select(z, A, tie_tol=tol, backend=path)
            assert sets(other) == sets(base), path
            if other.path == "sorted":
                assert (other.margin <= base.margin * (1 + 1e-9)).all()
                assert other.margin.min() == pytest.approx(base.margin.min(), rel=1e-9)
            else:
                assert np.array_equal(other.margin, base.margin), path


@settings(max_examples=60)
@given(
    st.sampled_from(KINDS), st.sampled_from([1, 2, 3, 5, 16, 33]), st.integers(1, 400),
    st.integers(0, 1000), st.sampled_from([0.0, 1e-12, 1e-7, 1e-5, 1e-2]),
    st.sampled_from(["none", "dense", "pair"]), st.sampled_from([*PATHS, "auto"]),
)  # fmt: skip
def test_float32_tokens_have_the_sets_of_the_same_numbers_in_float64(
    kind: str, d: int, n: int, seed: int, tol: float, how: str, path: str
) -> None:
    z, r = cloud(kind, n, d, seed).astype(np.float32), np.random.default_rng(seed)
    A: Any = None if how == "none" else r.normal(size=(d, d))
    A = (A[: d // 3 + 1], A[-(d // 3 + 1) :]) if how == "pair" else A
    expected = sets(select(z.astype(np.float64), A, tie_tol=tol, backend="brute"))
    assert sets(select(z, A, tie_tol=tol, backend=path)) == expected
    assert sets(select(torch.from_numpy(z), A, tie_tol=tol)) == expected
    offsets = np.array([0, n // 3, n // 3, n])
    apart = sets(select(z, A, offsets[[0, 1, 3]], tie_tol=tol)) if n > 2 else []
    double = select(z.astype(np.float64), A, offsets[[0, 1, 3]], tie_tol=tol) if n > 2 else None
    assert apart == (sets(double) if double is not None else [])


@pytest.mark.parametrize("d", [2, 8, 40])
def test_plain_float32_is_wrong_where_two_stages_are_right(d: int) -> None:
    """Two-stage searches flag the rows that float32 cannot decide; none is decided wrongly."""
    z, some = cloud("nearer ties", 700, d, 1), np.arange(0, 700, 9)
    expected, gap = exact(z, some)
    coarse = z.astype(np.float32)
    rough = (coarse[some] @ coarse.T).argmax(axis=1)
    assert np.mean([j not in row for j, row in zip(rough.tolist(), expected, strict=True)]) > 0.1
    chosen = select(z, backend="twostage")
    assert chosen.path == "twostage"
    sure = gap > 8 * (d + 4) * 2.0**-53
    assert sure.mean() > 0.7
    found = sets(chosen.take(some))
    assert [s for s, k in zip(found, sure, strict=True) if k] == [
        s for s, k in zip(expected, sure, strict=True) if k
    ]


def test_the_bound_of_the_coarse_scores_holds_and_is_not_idle() -> None:
    """Scores in float32 against float64, on vectors for which all roundings go one way."""
    worst = 0.0
    for seed in range(30):
        r = np.random.default_rng(seed)
        d = int(r.choice([1, 3, 16, 64, 300]))
        q, k = (np.abs(r.uniform(0.5, 1, size=(m, d))) for m in (40, 50))
        q, k = (np.round(x * 2**23) / 2**23 + 2.0**-24 * 0.999 for x in (q, k))
        sums = np.zeros((40, 50), dtype=np.float32)
        for c in range(d):
            x, y = q[:, c, None].astype(np.float32), k[None, :, c].astype(np.float32)
            sums = (x.astype(float) * y + sums).astype(np.float32)
        scale = np.linalg.norm(q, axis=1) * np.linalg.norm(k, axis=1).max()
        bound = twostage.coarse_error(scale, np.abs(q).sum(axis=1), k)
        share = np.abs(sums - q @ k.T) / bound[:, None]
        worst = max(worst, float(share.max()))
    assert 0.1 < worst <= 1


def test_flagged_rows_are_searched_again() -> None:
    z = cloud("duplicates", 600, 20, 2)
    packed = twostage.pack(z)
    sizes = np.linalg.norm(z, axis=1)
    error = twostage.coarse_error(sizes * sizes.max(), np.abs(z).sum(axis=1), z)
    best, second, at, flagged = twostage.search_twice(z, z, packed, error)
    assert flagged > 0
    scores = np.array([[float(v) for v in row] for row in z @ z.T])
    assert np.allclose(best, scores.max(axis=1), rtol=1e-14)
    assert np.array_equal(sizes[at] > 0, sizes > 0)
    assert (second <= best).all()


def test_where_float32_tells_too_little_all_is_done_in_float64(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    z = cloud("near ties", 300, 6, 3).astype(np.float32)
    usual = select(z)
    monkeypatch.setattr(cpu, "_CROWD", 0)
    monkeypatch.setattr(sharp, "sharpened", None)
    z = np.repeat(z[:5], 60, axis=0)
    assert sets(select(z)) == sets(select(z.astype(np.float64)))
    assert len(usual.indptr) == 301


@pytest.mark.parametrize("kind", ["gauss", "ball", "cube", "sphere", "lattice"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_no_direction_is_led_by_a_token_left_out_of_the_hull(kind: str, d: int) -> None:
    z = cloud(kind, 6000, d, 4)
    keep = near_hull(z, 1e-9)
    if keep is None:
        return
    assert len(keep) < len(z)
    out = np.setdiff1d(np.arange(len(z)), keep)
    ways = np.random.default_rng(5).normal(size=(400, d))
    inside = np.sort(ways @ z[keep].T, axis=1)[:, -2]
    assert (inside > (ways @ z[out].T).max(axis=1)).all()


@pytest.mark.parametrize("path", PATHS)
def test_each_path_says_its_name_and_threads_change_nothing(path: str) -> None:
    d = {"hull": 2, "sorted": 6}.get(path, 20)
    z = cloud("gauss", 6000, d, 6)
    one = select(z, backend=path)
    assert one.path == path
    before = torch.get_num_threads()
    torch.set_num_threads(1 if before > 1 else 2)
    try:
        other = select(z, backend=path)
    finally:
        torch.set_num_threads(before)
    assert sets(one) == sets(other)
    assert np.array_equal(one.margin, other.margin)


@pytest.mark.parametrize(
    ("n", "d", "path"), [(20_000, 2, "hull"), (6000, 20, "twostage"), (300, 5, "brute")]
)
def test_the_choice_follows_n_and_d(n: int, d: int, path: str) -> None:
    assert select(cloud("gauss", n, d, 7)).path == path


def test_sorted_keys_are_chosen_when_norms_tell_much() -> None:
    z = cloud("gauss", 6000, 8, 8) * np.exp(np.random.default_rng(9).normal(size=(6000, 1)))
    assert select(z).path == "sorted"


def test_rows_too_short_for_the_hull_see_all_keys() -> None:
    z = cloud("gauss", 6000, 2, 10)
    z[:40] = np.ldexp(z[:40], -1000)
    z[40] = 0
    chosen = select(z, backend="hull")
    assert chosen.path == "hull"
    assert sets(chosen) == sets(select(z, backend="brute"))
    assert len(chosen.row(40)) == len(z)


def test_queries_of_their_own_find_keys_of_their_own() -> None:
    r = np.random.default_rng(11)
    q, k = r.normal(size=(200, 3)), r.normal(size=(5000, 3))
    for path in PATHS:
        chosen, best, outside = search_cloud(q, k, np.zeros(200), path)
        scores = np.sort(q @ k.T, axis=1)
        assert np.allclose(best, scores[:, -1])
        assert (outside >= scores[:, -2] - 1e-12).all()
        assert np.array_equal(chosen.indices, (q @ k.T).argmax(axis=1))
