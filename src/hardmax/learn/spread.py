"""Several processes that train one model: each takes a part of every batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist

from hardmax._types import Floats, Ints

__all__ = ["Group"]


@dataclass(frozen=True)
class Group:
    """This process among those that train together; all hold the same model."""

    rank: int
    size: int

    @classmethod
    def alone(cls) -> Group:
        """One process."""
        return cls(0, 1)

    @classmethod
    def current(cls) -> Group:
        """The processes of `torch.distributed`, when it is initialised."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls.alone()

    def share(self, rows: Ints) -> Ints:
        """The texts of a batch that this process computes."""
        return rows[self.rank :: self.size]

    def totals(self, parameters: Sequence[torch.Tensor], loss: float) -> float:
        """Sum the gradients of the small parameters, and the losses, over the processes."""
        if self.size == 1:
            return loss
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([*(g.flatten().cpu() for g in grads), torch.tensor([loss]).double()])
        dist.all_reduce(flat)
        at = 0
        for p in parameters:
            p.grad = flat[at : at + p.numel()].view(p.shape).clone().to(p.device)
            at += p.numel()
        return float(flat[-1])

    def rows(self, rows: Ints, values: Floats, place: Ints) -> tuple[Ints, Floats]:
        """Sum the gradients of word vectors over the processes, in the order of ranks."""
        if self.size == 1:
            return rows, values
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        dist.all_gather(sizes, torch.tensor([len(rows)]))
        most = max(int(n) for n in sizes)
        lots = [torch.zeros(most, 1 + values.shape[1]).double() for _ in range(self.size)]
        mine = torch.zeros(most, 1 + values.shape[1]).double()
        mine[: len(rows), 0] = torch.from_numpy(rows).double()
        mine[: len(rows), 1:] = torch.from_numpy(values)
        dist.all_gather(lots, mine)
        every = np.concatenate([x[: int(n)].numpy() for x, n in zip(lots, sizes, strict=True)])
        found, where = np.unique(every[:, 0].astype(np.int64), return_inverse=True)
        total = np.zeros((len(found), values.shape[1]))
        np.add.at(total, where, every[:, 1:])
        return found, total
