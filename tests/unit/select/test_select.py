"""The selection: both backends against the loop over fractions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.select import Chosen, select
from tests import oracle, strategies

BACKENDS = ("cpu", "gpu", "reference")


def rows(chosen: Chosen) -> list[tuple[int, ...]]:
    return [tuple(int(j) for j in chosen.row(i)) for i in range(len(chosen.indptr) - 1)]


def exact(z: Any, A: Any = None) -> list[tuple[int, ...]]:
    """Chosen sets of the oracle."""
    return oracle.State.of(z, A).sets


@pytest.mark.parametrize("backend", BACKENDS)
@given(st.data())
def test_sets_of_small_integers_are_exact(backend: str, data: st.DataObject) -> None:
    z = data.draw(strategies.grids(max_n=14))
    kind = data.draw(st.sampled_from(["none", "integers", "pair"]))
    d = z.shape[1]
    entries = st.lists(st.lists(st.integers(-3, 3), min_size=d, max_size=d), min_size=d, max_size=d)
    A: Any = None if kind == "none" else np.array(data.draw(entries), dtype=float)
    A = (A[:1], np.array(data.draw(entries), dtype=float)[:1]) if kind == "pair" else A
    assert rows(select(z, A, backend=backend)) == exact(z, A)


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=25)
@given(strategies.gaussians(max_n=80, max_d=20), strategies.seeds)
def test_sets_of_gaussian_tokens_are_exact(backend: str, z: Any, seed: int) -> None:
    d = z.shape[1]
    A = np.random.default_rng(seed).normal(size=(d, d))
    for B in (None, A, (A[: d // 3 + 1], A[-(d // 3 + 1) :])):
        assert rows(select(z, B, backend=backend)) == exact(z, B)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 127, 128, 129, 200])
@pytest.mark.parametrize("d", [1, 2, 3, 8, 17])
def test_every_size_of_block_is_searched_whole(backend: str, n: int, d: int) -> None:
    z = np.random.default_rng(n * 100 + d).normal(size=(n, d))
    assert rows(select(z, backend=backend)) == exact(z)


@pytest.mark.parametrize("backend", BACKENDS)
def test_margins_are_those_of_the_exact_scores(backend: str) -> None:
    r = np.random.default_rng(3)
    z, A = r.normal(size=(90, 4)), r.normal(size=(4, 4))
    expected = oracle.State.of(z, A).margins
    assert np.allclose(select(z, A, backend=backend).margin, expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_margin_is_infinite_where_everything_is_chosen(backend: str) -> None:
    z = np.array([[0.0, 0.0], [1.0, 2.0], [-3.0, 1.0]])
    chosen = select(z, backend=backend)
    assert chosen.margin[0] == np.inf
    assert np.isfinite(chosen.margin[1:]).all()
    assert rows(chosen)[0] == (0, 1, 2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_equal_tokens_are_chosen_together_to_the_last_bit(backend: str) -> None:
    r = np.random.default_rng(4)
    base = r.normal(size=(40, 5))
    order = r.integers(40, size=300)
    z = base[order]
    for A in (None, r.normal(size=(5, 5))):
        for js in rows(select(z, A, backend=backend)):
            twins = {j for j in range(300) if order[j] in {order[i] for i in js}}
            assert set(js) == twins


@pytest.mark.parametrize("backend", BACKENDS)
def test_sequences_do_not_see_each_other(backend: str) -> None:
    r = np.random.default_rng(5)
    lengths = [1, 7, 64, 3, 100]
    parts = [r.normal(size=(n, 3)) * 10.0**k for k, n in enumerate(lengths)]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    together = rows(select(np.concatenate(parts), None, offsets, backend=backend))
    apart = [
        tuple(j + int(start) for j in js)
        for part, start in zip(parts, offsets[:-1], strict=True)
        for js in exact(part)
    ]
    assert together == apart


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("power", [-1070, -600, -100, 100, 500, 1000])
def test_powers_of_two_change_neither_sets_nor_margins(backend: str, power: int) -> None:
    z = np.random.default_rng(6).integers(-9, 10, size=(50, 3)).astype(float)
    plain, scaled = select(z, backend=backend), select(np.ldexp(z, power), backend=backend)
    assert rows(plain) == rows(scaled)
    assert np.array_equal(plain.margin, scaled.margin)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_size_of_the_scores_changes_nothing(backend: str) -> None:
    r = np.random.default_rng(7)
    z, A = r.normal(size=(30, 3)), r.normal(size=(3, 3))
    plain = rows(select(z, A, backend=backend))
    for scale in (2.0**-1000, 2.0**1000):
        assert rows(select(z, A * scale, backend=backend)) == plain
        assert rows(select(z * scale, A * scale, backend=backend)) == plain


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("digits", [2, 5, 8])
def test_scores_within_the_tolerance_are_ties(backend: str, digits: int) -> None:
    r = np.random.default_rng(8)
    z = r.normal(size=(4, 2))[r.integers(4, size=60)] + 10.0**-digits * r.normal(size=(60, 2))
    tol = 0.3 * 10.0**-digits
    scores = z @ z.T
    room = tol * np.linalg.norm(z, axis=1) * np.linalg.norm(z, axis=1).max()
    expected = [
        tuple(np.flatnonzero(s >= s.max() - t).tolist()) for s, t in zip(scores, room, strict=True)
    ]
    assert rows(select(z, tie_tol=tol, backend=backend)) == expected


def test_the_backends_agree_in_float32_wherever_margins_exceed_rounding() -> None:
    r = np.random.default_rng(9)
    for d in (1, 2, 8, 30):
        z = r.normal(size=(200, d)).astype(np.float32)
        a, b = (select(z, backend=name) for name in ("cpu", "reference"))
        sure = np.minimum(a.margin, b.margin) > 1e-5
        assert sure.mean() > 0.9
        assert [x for x, s in zip(rows(a), sure, strict=True) if s] == [
            x for x, s in zip(rows(b), sure, strict=True) if s
        ]


def test_many_rows_in_threads_equal_the_plain_search() -> None:
    z = np.random.default_rng(10).normal(size=(4000, 2))
    assert rows(select(z, backend="cpu")) == rows(select(z, backend="reference"))


def test_torch_and_numpy_give_the_same_sets() -> None:
    z = np.random.default_rng(11).normal(size=(50, 3))
    assert rows(select(torch.tensor(z, requires_grad=True))) == rows(select(z))


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(ValueError, match="auto, cpu"):
        select(np.eye(2), backend="fpga")


def test_chosen_can_be_taken_by_rows() -> None:
    chosen = select(np.array([[2.0, 1.0], [2.0, -1.0], [1.0, 0.0], [0.0, 0.0]]))
    assert rows(chosen) == [(0,), (1,), (0, 1), (0, 1, 2, 3)]
    assert chosen.counts.tolist() == [1, 1, 2, 4]
    assert not chosen.single
    part = chosen.take(np.array([3, 0]))
    assert rows(part) == [(0, 1, 2, 3), (0,)]
    assert part.margin.tolist() == chosen.margin[[3, 0]].tolist()
    assert chosen.take(np.array([0, 1])).single
