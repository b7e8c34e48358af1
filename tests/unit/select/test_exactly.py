"""Without a tolerance the sets are those of exact arithmetic, from every path."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from hardmax.select import select
from hardmax.select.asking import rounding
from hardmax.select.digits import best_of, exact_asks
from hardmax.select.plan import PATHS
from tests import oracle

BACKENDS = (*PATHS, "auto", "reference", "gpu")


def sets(chosen: Any) -> list[tuple[int, ...]]:
    return [tuple(chosen.row(i).tolist()) for i in range(len(chosen.indptr) - 1)]


def _ulp(r: np.random.Generator, z: np.ndarray) -> np.ndarray:
    up = np.nextafter(z, z.dtype.type(np.inf))
    return np.where(r.random(z.shape) < 0.5, up, z)


def clouds(r: np.random.Generator, n: int, d: int) -> dict[str, np.ndarray]:
    """Tokens whose scores float64 cannot tell apart, or loses."""
    z = r.normal(size=(n, d))
    few = z[r.integers(max(2, n // 8), size=n)]
    turned = [few[i, r.permutation(d)] * r.choice([-1, 1], size=d) for i in range(n)]
    return {
        "one bit apart": _ulp(r, few),
        "one bit apart, float32": _ulp(r, few.astype(np.float32)),
        "at the limit": few * (1 + r.integers(-2, 3, size=(n, 1)) * 2.0**-52),
        "coordinates exchanged": np.array(turned),
        "on a line": r.integers(-7, 8, size=(n, 1)) * r.normal(size=d),
        "tenths": r.integers(-9, 10, size=(n, d)) / 10,
        "nearly one": 1 + 1e-8 * z,
        "huge": 1e300 * z,
        "denormal": 1e-315 * z,
        "all sizes": z * 10.0 ** r.integers(-150, 150, size=(n, 1)),
        "all sizes, float32": (z * 10.0 ** r.integers(-38, 38, size=(n, 1))).astype(np.float32),
        "zeros": few * r.integers(0, 2, size=(n, 1)),
    }


def matrices(r: np.random.Generator, d: int) -> list[Any]:
    B = r.normal(size=(d, d))
    tenths = [r.integers(-9, 10, size=d) / 10 for _ in range(2)]
    return [
        None, B + B.T, B, np.outer(*tenths), (B[:1], B[-1:]), B - B.T, np.zeros((d, d)),
        np.diag(10.0 ** np.linspace(0, -310, d)),
    ]  # fmt: skip


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_path_gives_the_sets_of_rational_scores(seed: int, d: int) -> None:
    r = np.random.default_rng([seed, d])
    lost = 0
    for name, z in clouds(r, 26, d).items():
        for A in matrices(r, d):
            expected = oracle.chosen(oracle.fractions(z), oracle.matrix(A, d))
            for backend in BACKENDS:
                assert sets(select(z, A, backend=backend)) == expected, (name, backend)
            twice = select(np.concatenate([z[:5], z]), A, np.array([0, 5, 31]))
            assert [tuple(j - 5 for j in s) for s in sets(twice)[5:]] == expected, name
            x = z if A is None or isinstance(A, tuple) else z @ A.T
            with np.errstate(over="ignore", invalid="ignore"):
                rough = (x @ z.T).argmax(axis=1)
            lost += sum(j not in s for j, s in zip(rough.tolist(), expected, strict=True))
    assert lost > 100  # a plain argmax is wrong here


@pytest.mark.parametrize("backend", ["brute", "reference", "gpu"])
def test_terms_that_cancel_leave_no_rounding_behind(backend: str) -> None:
    """A z_1 is exactly zero: token 1 ties for all, with a tolerance and without."""
    A = np.outer([0.1, 0.2], [0.3, -0.1])
    A[1] = 2 * A[0]
    z = np.array([[0.5, 1.0], [A[0, 1], -A[0, 0]], [2.0, -3.0]])
    for tol in (0.0, 1e-12):
        assert sets(select(z, A, tie_tol=tol, backend=backend))[1] == (0, 1, 2)
    assert len(select(z, (A[:1], np.eye(2)[:1]), tie_tol=1e-12, backend=backend).row(0)) == 1


def test_margins_are_exact_where_sets_are() -> None:
    z = np.array([[1.0, 0.0], [1.0 + 2.0**-52, 0.0], [1.0 + 2.0**-52, 1.0], [0.5, 3.0]])
    chosen = select(z)
    assert sets(chosen)[0] == (1, 2)
    longest = np.linalg.norm(z, axis=1).max()
    assert chosen.margin[0] == pytest.approx(2.0**-52 / longest, rel=1e-12)
    assert np.isinf(select(np.ones((3, 2))).margin).all()


def test_exact_scores_of_wide_numbers() -> None:
    r = np.random.default_rng(3)
    for k in range(40):
        d, n = int(r.integers(1, 5)), int(r.integers(2, 8))
        z = r.normal(size=(n, d)) * 2.0 ** r.integers(-600, 600, size=(n, d))
        mats = [r.normal(size=(d, d)) * 2.0 ** r.integers(-300, 300) for _ in range(k % 3)]
        asks = oracle.fractions(z)
        for a in mats:
            rows = oracle.fractions(a)
            asks = [[oracle.dot(row, x) for row in rows] for x in asks]
        for found, q in zip(exact_asks(z, mats), asks, strict=True):
            c = max(range(d), key=lambda c: abs(q[c]))
            ratio = Fraction(float(found[c])) / q[c]
            assert 0.4 < abs(found[c]) <= 1
            assert found == pytest.approx([float(x * ratio) for x in q], rel=2.0**-49, abs=0)
        indptr, keys = np.arange(n + 1) * n, np.tile(np.arange(n), n)
        keep, gap, power = best_of(z, mats, np.arange(n), indptr, keys)
        keys_of = oracle.fractions(z)
        for i in range(n):
            scores = [oracle.dot(asks[i], y) for y in keys_of]
            best = max(scores)
            assert keep[i * n : i * n + n].tolist() == [s == best for s in scores]
            below = best - max(s for s in scores if s < best)
            square = below * below / oracle.dot(asks[i], asks[i])
            mine = Fraction(float(gap[i])) ** 2 * Fraction(4) ** int(power[i])
            assert float(mine / square) == pytest.approx(1, rel=1e-13)


def test_the_rounding_that_is_assumed_is_more_than_what_is_seen() -> None:
    r = np.random.default_rng(4)
    worst = 0.0
    for d in (2, 7, 30):
        z, A = r.normal(size=(60, d)), r.normal(size=(d, d))
        exact = oracle.State.of(z, A).margins
        floats = select(z, A, tie_tol=1e-300, backend="brute").margin
        worst = max(worst, float(np.abs(floats - exact).max()) / rounding(A, d))
    assert 0 < worst < 0.5


def test_sequences_without_tokens_are_passed_over() -> None:
    z = np.array([[1.0, 0.0], [0.5, 0.5], [2.0, 1.0]])
    offsets = np.array([0, 0, 2, 2, 3, 3])
    for backend in ("cpu", "reference"):
        for tol in (0.0, 1e-12):
            assert sets(select(z, None, offsets, tie_tol=tol, backend=backend)) == [
                (0,), (0, 1), (2,),
            ]  # fmt: skip


def test_tensors_without_a_tolerance_give_the_same() -> None:
    z = clouds(np.random.default_rng(5), 30, 3)["coordinates exchanged"]
    assert sets(select(torch.from_numpy(z), torch.eye(3).double())) == sets(select(z))
