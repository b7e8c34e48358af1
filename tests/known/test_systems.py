"""A part of the large comparison; all of it is `python -m tests.known.check_systems`."""

from __future__ import annotations

import numpy as np
import pytest

from tests import strategies
from tests.known import check_systems


def faults(reports: list[check_systems.Report]) -> list[str]:
    return [f"{r.system.name}: {fault}" for r in reports for fault in r.faults]


def test_small_random_systems_equal_the_oracle() -> None:
    reports = list(check_systems.check_many(40, seed=1, n_max=20))
    assert faults(reports) == []
    assert all(r.proved for r in reports)


@pytest.mark.slow
def test_random_systems_equal_the_oracle_and_nearly_all_are_proved() -> None:
    reports = list(check_systems.check_many(150, seed=2, n_max=120))
    assert faults(reports) == []
    assert check_systems.proved_share(reports) >= 0.995


def test_the_systems_are_the_ones_that_were_promised() -> None:
    many = list(strategies.systems(400, seed=0))
    sizes = [s.z.shape for s in many]
    assert (min(n for n, _ in sizes), max(n for n, _ in sizes)) >= (2, 250)
    assert {d for _, d in sizes} == set(range(1, 17))
    assert min(s.alpha for s in many) >= 0.05
    assert max(s.alpha for s in many) <= 5
    assert {s.cloud for s in many} == set(strategies.CLOUDS)
    assert {s.z.dtype for s in many} == {np.dtype(np.float32), np.dtype(np.float64)}
    for s in many:
        assert np.isfinite(s.z).all()
        if s.A is not None:
            assert np.array_equal(s.A, s.A.T)
            spectrum = np.linalg.eigvalsh(s.A.astype(np.float64))
            assert 0 < spectrum.min() <= spectrum.max() <= 1.01e3 * spectrum.min()


def test_the_comparison_notices_a_wrong_limit() -> None:
    from types import SimpleNamespace

    import hardmax as hm
    from tests import oracle

    system = strategies.system(0, 3, n_max=20)
    eq = hm.equilibrium(system.z, A=system.A, alpha=system.alpha)
    found = oracle.answer(system.z, system.A, system.alpha)
    names = ("leaders", "born", "labels", "limit", "limit_exact", "settled_at", "certificate")
    said = {name: getattr(eq, name) for name in names}
    assert list(check_systems.limit_faults(SimpleNamespace(**said), found)) == []
    moved = eq.limit.copy()
    moved[0, 0] += 1e-6 * np.abs(moved).max()
    other = -np.ones_like(eq.labels)
    for wrong in (
        {"limit": moved},
        {"leaders": eq.leaders[1:], "born": eq.born[1:]},
        {"born": tuple(k + 1 for k in eq.born)},
        {"labels": other},
        {"settled_at": eq.settled_at + 1},
        {"limit_exact": [[x + 1 for x in row] for row in found.limit or []]},
    ):
        claim = SimpleNamespace(**{**said, **wrong})
        assert list(check_systems.limit_faults(claim, found)) != []
