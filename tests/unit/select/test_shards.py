"""A cloud in two processes: the sets that one process finds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch.distributed as dist

import hardmax as hm
from hardmax._errors import InputError
from hardmax.select import select, shards
from tests.unit.select import shard_member as member

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What the two processes found: this one, and one of its own."""
    folder = tmp_path_factory.mktemp("shards")
    store, out = folder / "store", folder / "one.npz"
    command = [sys.executable, "-m", "tests.unit.select.shard_member", "1", "2", store, out]
    other = subprocess.Popen([str(x) for x in command], cwd=ROOT)
    member.join(0, 2, str(store))
    try:
        found = member.answers(0)
        mine = {
            f"{k}.{n}": getattr(c, n)
            for k, c in enumerate(found)
            for n in ("indptr", "indices", "margin")
        }
        mine |= {"after": member.layers(0, 3), "said": member.refusals(0)}
    finally:
        dist.destroy_process_group()
    assert other.wait(120) == 0
    return [mine, dict(np.load(out))]


def test_two_processes_find_the_sets_of_one_to_the_last_tie(both: list[dict[str, Any]]) -> None:
    ties = 0
    for k, (z, A, tol, path, _) in enumerate(member.tasks()):
        whole = select(z, A, tie_tol=tol, backend=path)
        counts = np.concatenate([np.diff(part[f"{k}.indptr"]) for part in both])
        assert np.array_equal(counts, whole.counts), k
        assert np.array_equal(np.concatenate([p[f"{k}.indices"] for p in both]), whole.indices), k
        margin = np.concatenate([part[f"{k}.margin"] for part in both])
        exact = select(z.astype(np.float64), A, tie_tol=tol, backend="brute").margin
        if path == "sorted":
            assert (margin <= exact * (1 + 1e-9)).all()
        else:
            assert np.array_equal(margin, exact), k
        ties += int((counts > 1).sum())
    assert ties > 500


def test_layers_over_shards_are_those_of_the_whole_cloud(both: list[dict[str, Any]]) -> None:
    z = member.cloud("gauss", 120, 2, 5)
    for _ in range(3):
        z = hm.layer(z, gamma=0.5)
    assert np.allclose(np.concatenate([part["after"] for part in both]), z, rtol=0, atol=1e-14)


def test_shards_that_do_not_fit_are_refused_in_every_process(both: list[dict[str, Any]]) -> None:
    for part in both:
        same, flat, cut, gpu = (str(x) for x in part["said"])
        assert same == "shards must have the same d; got [2, 3]."
        assert flat == "a shard must be (n, d); got [2, 1] dimensions."
        assert cut == gpu == "shards are parts of one cloud, searched by the paths of the CPU."


def test_a_group_needs_torch_distributed() -> None:
    with pytest.raises(InputError, match="init_process_group first"):
        select(np.eye(2), group=True)


def test_a_group_without_main_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_backend", lambda group: "nccl")
    with pytest.raises(InputError, match="give `group` a gloo group"):
        shards.gather_rows(np.eye(2), np.array([0]))
