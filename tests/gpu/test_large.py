"""Sizes that only a GPU reaches."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hardmax.select import select
from hardmax.select.gpu import select_gpu
from tests.gpu.clouds import KINDS, cloud, exact, same


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("kind", KINDS)
def test_large_clouds_have_the_sets_of_float64(
    kind: str, dtype: torch.dtype, device: torch.device
) -> None:
    n = 6000 if kind in ("line", "zeros") else 20_000  # their sets have up to n members
    for d in (2, 64):
        z = torch.from_numpy(cloud(kind, n, d, d)).to(device, dtype)
        assert same(select_gpu(z, None, np.array([0, n])), exact(z)), d


def test_a_very_large_cloud_in_lots(device: torch.device) -> None:
    z = torch.from_numpy(cloud("lognormal", 300_000, 16, 1)).to(device, torch.float32)
    whole = select(z)
    some = np.random.default_rng(2).choice(len(z), 512, replace=False)
    keys = z.double()
    scores = keys[some] @ keys.T
    assert np.array_equal(whole.take(some).indices, scores.argmax(dim=1).cpu().numpy())
