"""One process of a group that shares clouds: `python -m ... RANK SIZE STORE OUT`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

import hardmax as hm
from hardmax._errors import InputError, ShapeError
from hardmax.dynamics.attend import mean_of
from hardmax.select import Chosen, select
from hardmax.select.shards import gather_rows

KINDS = ("gauss", "duplicates", "near equilibrium", "near ties", "lattice", "zeros", "huge")
TOLS = (0.0, 1e-12, 1e-2)


def cloud(kind: str, n: int, d: int, seed: int) -> np.ndarray:
    r = np.random.default_rng([seed, n, d])
    z = r.normal(size=(n, d))
    few, at = z[: max(1, n // 8)], r.integers(max(1, n // 8), size=n)
    return {
        "gauss": z,
        "duplicates": few[at],
        "near equilibrium": few[at] + np.ldexp(z, -r.integers(0, 60, size=(n, 1))),
        "near ties": few[at] * (1 + np.ldexp(r.normal(size=(n, 1)), -38)),
        "lattice": r.integers(-3, 4, size=(n, d)).astype(float),
        "zeros": z * (r.random((n, 1)) < 0.5),
        "huge": z * 2.0**900,
    }[kind]


def tasks() -> list[tuple[np.ndarray, Any, float, str, list[int]]]:
    """Clouds, matrices, tolerances, paths, and where the cloud is cut."""
    out: list[tuple[np.ndarray, Any, float, str, list[int]]] = []
    for seed, kind in enumerate(KINDS):
        for n, d, cut in ((90, 2, 30), (61, 5, 61), (1, 3, 0)):
            r = np.random.default_rng(seed)
            z = cloud(kind, n, d, seed)
            z = z.astype(np.float32) if seed % 2 and kind != "huge" else z
            A: Any = (None, r.normal(size=(d, d)), (z[:1].astype(float), z[-1:].astype(float)))
            out.append((z, A[(seed + d) % 3], TOLS[seed % 3], "auto", [0, cut, n]))
    for path, d in (("hull", 2), ("hull", 3), ("sorted", 4), ("twostage", 20), ("brute", 2)):
        z = cloud("duplicates", 900, d, d)
        out.append((z, None, 1e-12, path, [0, 400, 900]))
    return out


def answers(rank: int) -> list[Chosen]:
    """What this process finds for its part of every cloud."""
    return [
        select(z[cuts[rank] : cuts[rank + 1]], A, tie_tol=tol, backend=path, group=True)
        for z, A, tol, path, cuts in tasks()
    ]


def layers(rank: int, depth: int) -> np.ndarray:
    """This process's part of a cloud after some layers."""
    z = cloud("gauss", 120, 2, 5)
    mine = torch.from_numpy(z[:50] if rank == 0 else z[50:])
    for _ in range(depth):
        chosen = select(mine, tie_tol=1e-12, group=dist.group.WORLD)
        values = torch.from_numpy(gather_rows(mine, chosen.indices))
        places = Chosen(chosen.indptr, np.arange(len(values)), chosen.margin)
        mine = mine + 0.5 * (mean_of(values, places) - mine)
    return np.asarray(mine.numpy())


def refusals(rank: int) -> list[str]:
    """The messages for shards that do not fit together."""
    said = []
    for z, more in (
        (np.ones((2, 2 + rank)), {}),
        (np.ones((3, 2)[: 2 - rank]), {}),
        (np.ones((2, 2)), {"offsets": np.array([0, 2])}),
        (np.ones((2, 2)), {"backend": "gpu"}),
    ):
        try:
            select(z, group=True, **more)  # type: ignore[arg-type]
        except (InputError, ShapeError) as error:
            said.append(str(error))
    return said


def join(rank: int, size: int, store: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)


def main() -> None:
    rank, size, store, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    torch.set_num_threads(1)
    join(rank, size, store)
    found = answers(rank)
    after, said = layers(rank, 3), refusals(rank)
    dist.destroy_process_group()
    names = ("indptr", "indices", "margin")
    arrays = {f"{k}.{name}": getattr(c, name) for k, c in enumerate(found) for name in names}
    np.savez(out, after=after, said=np.array(said), depth=hm.layer(np.eye(2)).shape, **arrays)


if __name__ == "__main__":
    main()
