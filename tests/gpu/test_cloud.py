"""One large cloud through the kernels: the sets of float64, whatever half precision says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hardmax.select import select
from hardmax.select._cloud import Plan, search
from hardmax.select.chosen import Chosen
from hardmax.select.gpu import select_gpu
from tests.gpu.clouds import KINDS, cloud, exact, same

SMALL = Plan(rows=64, keys=32, step=2)


def unit(z: torch.Tensor) -> torch.Tensor:
    """Tokens times a power of two, the largest entry near 1."""
    return torch.ldexp(z, -torch.frexp(z.abs().max())[1])


def found(
    z: torch.Tensor,
    A: np.ndarray | None = None,
    tie_tol: float = 0.0,
    margins: bool = False,
    plan: Plan = SMALL,
) -> tuple[Chosen, dict[str, float]]:
    """The kernels' answer as `Chosen`, and the shares of work."""
    mats = [] if A is None else [torch.from_numpy(A).to(z.device)]
    r = search(
        unit(z) if z.dtype == torch.float64 else z, mats, tie_tol, margins=margins, plan=plan
    )
    margin = ((r.score - r.second) / r.scale).cpu().numpy()
    chosen = Chosen(r.indptr.cpu().numpy(), r.indices.cpu().numpy(), margin)
    return chosen, {k: float(v) for k, v in r.shares.items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("kind", KINDS)
def test_sets_are_those_of_float64(
    kind: str, dtype: torch.dtype, device: torch.device, scale: int
) -> None:
    for d, n in ((3, 90 * scale), (20, 70 * scale)):
        z = torch.from_numpy(cloud(kind, n, d, d)).to(device, dtype)
        assert same(found(z)[0], exact(z)), (n, d)


@pytest.mark.parametrize("tie_tol", [1e-12, 1e-5, 1e-2])
def test_scores_within_the_tolerance_are_ties(
    tie_tol: float, device: torch.device, scale: int
) -> None:
    for kind in ("lognormal", "clusters"):
        z = torch.from_numpy(cloud(kind, 80 * scale, 5, 1)).to(device)
        chosen, _ = found(z, tie_tol=tie_tol)
        assert same(chosen, exact(z, tie_tol=tie_tol))


@pytest.mark.parametrize("kind", ["gaussian", "duplicates", "clusters", "zeros"])
def test_margins_are_those_of_float64(kind: str, device: torch.device, scale: int) -> None:
    z = torch.from_numpy(cloud(kind, 70 * scale, 4, 2)).to(device)
    chosen, _ = found(z, tie_tol=1e-3, margins=True)
    expected = exact(z, tie_tol=1e-3)
    assert same(chosen, expected)
    assert np.allclose(chosen.margin, expected.margin, rtol=1e-9, atol=1e-14)


def test_any_matrix_may_score(device: torch.device, scale: int) -> None:
    r = np.random.default_rng(3)
    z = torch.from_numpy(cloud("lognormal", 90 * scale, 6, 3)).to(device)
    for A in (r.standard_normal((6, 6)) / 8, -np.eye(6), np.diag([1.0, 0, 0, 0, 0, 0])):
        assert same(found(z, A)[0], exact(z, A))


@pytest.mark.parametrize("d", [1, 16, 17, 130])
def test_any_number_of_coordinates(d: int, device: torch.device, scale: int) -> None:
    z = torch.from_numpy(cloud("lognormal", 50 * scale, d, d)).to(device, torch.float32)
    assert same(found(z)[0], exact(z))


def test_leaving_tiles_out_changes_no_set_and_saves_work(device: torch.device, scale: int) -> None:
    z = torch.from_numpy(cloud("lognormal", 250 * scale, 8, 5)).to(device)
    some, less = found(z, plan=Plan(rows=64, keys=32, step=1))
    everything, all_of_it = found(z, plan=Plan(rows=64, keys=32, step=1, prune=False))
    assert same(some, everything)
    assert all_of_it["looked"] == 1.0
    assert less["looked"] < 0.6


def test_half_precision_alone_would_choose_other_keys(device: torch.device, scale: int) -> None:
    z = torch.from_numpy(cloud("near ties", 90 * scale, 4, 6)).to(device)
    half = unit(z).half().float()
    rough = (half @ half.T).argmax(dim=1).cpu().numpy()
    chosen, shares = found(z)
    assert chosen.single
    assert (rough != chosen.indices).mean() > 0.2
    assert shares["several"] > 0.05
    assert same(chosen, exact(z))


def test_rows_in_several_lots_give_the_same(
    device: torch.device, scale: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    z = torch.from_numpy(cloud("duplicates", 150 * scale, 3, 7)).to(device)
    whole = found(z)[0]
    monkeypatch.setattr("hardmax.select._cloud._BYTES", 1)
    assert same(found(z)[0], whole)


def test_the_door_sends_large_clouds_to_the_kernels(
    device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hardmax.select.gpu._LARGE", 60)
    r = np.random.default_rng(8)
    lengths = [61, 3, 100, 1]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    z = torch.from_numpy(r.standard_normal((offsets[-1], 3))).to(device)
    for A in (None, r.standard_normal((3, 3)), (r.standard_normal((1, 3)), np.eye(3)[:1])):
        chosen = select(z, A, offsets, tie_tol=1e-9, backend="gpu")
        plain = select(z, A, offsets, tie_tol=1e-9, backend="reference")
        assert same(chosen, plain)
        assert np.allclose(chosen.margin, plain.margin, rtol=1e-9, atol=1e-14)


def test_without_margins_the_sets_are_the_same(
    device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hardmax.select.gpu._LARGE", 60)
    z = torch.from_numpy(cloud("lognormal", 90, 3, 9)).to(device)
    with_them = select_gpu(z, None, np.array([0, 90]))
    without = select_gpu(z, None, np.array([0, 90]), margins=False)
    assert same(with_them, without)
    assert np.isnan(without.margin).all()
    assert np.isfinite(with_them.margin).all()
