"""Batches through all layers in one launch: tokens, choices and gradients of the plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from hardmax.dynamics.attend import mean_of
from hardmax.learn.attention import Attention, _target, in_one_launch
from hardmax.learn.padded import Lot
from hardmax.select import select
from hardmax.select.gpu_batch import deep, fits, walk

Case = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def draw(
    b: int, n: int, d: int, heads: int, depth: int, seed: int, device: torch.device, twins: bool
) -> Case:
    """Tokens, steps, mask and multiplicities."""
    r = np.random.default_rng(seed)
    z = r.standard_normal((b, n, d))
    if twins:
        z = np.stack([x[r.integers(max(2, n // 3), size=n)] for x in z])
    mask = r.random((b, n)) < 0.8
    mask[:, 0] = True
    weight = r.integers(1, 4, size=(b, n)).astype(float)
    gamma = r.uniform(0.2, 0.9, size=(depth, heads))
    return tuple(torch.from_numpy(x).to(device) for x in (z, gamma, mask, weight))  # type: ignore[return-value]


def plain(
    z: torch.Tensor, gamma: torch.Tensor, mask: torch.Tensor, weight: torch.Tensor, tie_tol: float
) -> torch.Tensor:
    """The same layers one after the other, sequence by sequence, by the library's own mean."""
    heads = gamma.shape[1]
    for steps in gamma:
        rows = []
        for x, keep, w in zip(z, mask, weight, strict=True):
            parts = []
            for p, g in zip(x[keep].chunk(heads, dim=1), steps, strict=True):
                chosen = select(p.detach(), tie_tol=tie_tol, backend="reference")
                parts.append(p + g * (mean_of(p, chosen, w[keep]) - p))
            rows.append(x.masked_scatter(keep[:, None].expand_as(x), torch.cat(parts, dim=1)))
        z = torch.stack(rows)
    return z


SHAPES = [
    (2, 20, 2, 1, 3, False),
    (2, 20, 2, 1, 3, True),
    (2, 30, 8, 4, 3, False),
    (1, 70, 3, 1, 2, True),
    (2, 20, 16, 1, 2, False),
    (1, 18, 40, 2, 2, True),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tokens_and_gradients_are_those_of_the_plain_loop(
    shape: Any, dtype: torch.dtype, device: torch.device
) -> None:
    b, n, d, heads, depth, twins = shape
    z, gamma, mask, weight = draw(b, n, d, heads, depth, n + d, device, twins)
    z, gamma, weight = z.to(dtype), gamma.to(dtype), weight.to(dtype)
    mine = [z.clone().requires_grad_(), gamma.clone().requires_grad_()]
    theirs = [z.clone().requires_grad_(), gamma.clone().requires_grad_()]
    out = deep(*mine, mask, weight, heads=heads, tie_tol=1e-12)
    expected = plain(*theirs, mask, weight, 1e-12)
    tol = 1e-12 if dtype == torch.float64 else 1e-5
    assert torch.allclose(out, expected, rtol=tol, atol=tol)
    assert torch.equal(out[~mask], z[~mask])
    aim = torch.randn(z.shape, generator=torch.Generator().manual_seed(1)).to(z)
    (out * aim).sum().backward()
    (expected * aim).sum().backward()
    for got, wanted in zip(mine, theirs, strict=True):
        assert got.grad is not None
        assert torch.allclose(got.grad, wanted.grad, rtol=10 * tol, atol=10 * tol)


@pytest.mark.parametrize("d", [2, 20])
def test_choices_are_those_of_float64_where_float32_is_too_coarse(
    d: int, device: torch.device
) -> None:
    r = np.random.default_rng(d)
    few = r.standard_normal((6, d))
    z = few[r.integers(6, size=48)] * (1 + np.ldexp(r.standard_normal((48, 1)), -40))
    t = torch.from_numpy(z).to(device)
    chosen = select(t, backend="reference")
    assert chosen.single
    at = walk(t[None], torch.full((1, 1), 0.5, device=device)).at
    assert np.array_equal(at[0, 0, 0].cpu().numpy(), chosen.indices)
    rough = (t.float() @ t.float().T).argmax(dim=1).cpu().numpy()
    assert (rough != chosen.indices).mean() > 0.2


def test_settled_sequences_keep_their_choices(device: torch.device) -> None:
    z = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.4, 0.2]], device=device, dtype=torch.float64)
    run = walk(z[None], torch.full((60, 1), 0.5, device=device))
    assert (run.at[:, 0, 0] == torch.tensor([0, 1, 0], device=device)).all()
    assert torch.equal(run.zs[-1, 0, :2], z[:2])
    assert torch.allclose(run.zs[-1, 0, 2], z[0], atol=1e-15)


@pytest.mark.parametrize("power", [-1000, -140, 120, 1000])
def test_the_size_of_the_tokens_changes_no_choice(power: int, device: torch.device) -> None:
    dtype = torch.float64 if abs(power) > 140 else torch.float32
    z = torch.from_numpy(np.random.default_rng(4).integers(-9, 10, size=(2, 25, 3))).to(
        device, dtype
    )
    gamma = torch.full((1, 1), 0.5, device=device)
    plain_run, scaled = walk(z, gamma), walk(z * 2.0**power, gamma)
    assert torch.equal(plain_run.at, scaled.at)
    assert torch.isfinite(scaled.zs).all()


def test_tokens_as_large_as_the_format_allows_stay_finite(device: torch.device) -> None:
    top = torch.finfo(torch.float64).max
    z = torch.tensor([[[top, 0], [-top, 0], [top / 2, 0]]], dtype=torch.float64, device=device)
    out = walk(z, torch.full((1, 1), 0.5, device=device)).zs[-1]
    assert torch.isfinite(out).all()
    assert out[0, 2, 0] == pytest.approx(0.75 * top)


def test_no_layers_give_the_tokens_back(device: torch.device) -> None:
    z = torch.ones(1, 4, 2, device=device, requires_grad=True)
    out = deep(z, torch.ones(0, 1, device=device))
    out.sum().backward()
    assert torch.equal(out, z)
    assert z.grad is not None
    assert torch.equal(z.grad, torch.ones_like(z))


def test_training_takes_the_same_steps_in_one_launch(device: torch.device) -> None:
    """Texts with multiplicities, padding and keys that nobody may choose, in several heads."""
    r = np.random.default_rng(3)
    weights = torch.from_numpy(r.integers(0, 3, size=(3, 30)).astype(float)).to(device)
    weights[:, 0] = 1
    seen = (weights > 0) & (torch.from_numpy(r.random((3, 30)) < 0.7).to(device))
    seen[:, 0] = True
    lot = Lot(torch.arange(3), weights.long(), weights, seen, None)
    ways = []
    for run in (in_one_launch, slow):
        z = torch.from_numpy(np.random.default_rng(4).normal(size=(3, 30, 2, 3))).to(device)
        z, gamma = z.requires_grad_(), torch.tensor([0.5, 0.3], device=device, requires_grad=True)
        out = run(z, lot, gamma, 3, 1e-12)
        (out * weights[..., None, None]).square().sum().backward()
        ways.append((out * (weights > 0)[..., None, None], z.grad, gamma.grad))
    for got, wanted in zip(*ways, strict=True):
        assert torch.allclose(got, wanted, rtol=1e-6, atol=1e-9)


def slow(
    z: torch.Tensor, lot: Lot, gamma: torch.Tensor, depth: int, tie_tol: float
) -> torch.Tensor:
    """Layer after layer in torch."""
    by = Attention(tie_tol=tie_tol)
    z = z.transpose(1, 2)
    for _ in range(depth):
        z = z + gamma.to(z)[None, :, None, None] * (_target(z, lot, None, by) - z)
    return z.transpose(1, 2)


def test_what_fits_in_one_program() -> None:
    assert fits(1024, 128, 1)
    assert fits(256, 256, 2)
    assert not fits(1025, 2, 1)
    assert not fits(16, 129, 1)
