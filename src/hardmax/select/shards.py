"""One cloud whose tokens lie in several processes, through torch.distributed.

Each process holds some rows.  The shards go round one by one; every process searches
the shard for its own rows, keeps what is within the tolerance of the best so far, and
holds two shards at most.  Scores are the chains of `select` on one scale, so that the
sets are those of one process to the last tie.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numba import njit

from hardmax._check import is_torch
from hardmax._errors import InputError, ShapeError
from hardmax._types import Array, Floats, Ints
from hardmax.select._vector import fma
from hardmax.select.asking import narrowed, rounding
from hardmax.select.chosen import Chosen
from hardmax.select.cpu import asked, shift_of
from hardmax.select.digits import best_of
from hardmax.select.measure import norms
from hardmax.select.scale import factors
from hardmax.select.search import search_cloud

__all__ = ["gather_rows", "select_shards"]


@njit(nogil=True, cache=True)
def _scores(q: Array, k: Array, rows: Ints, keys: Ints, out: Array) -> None:
    """<q_i, k_j> of some pairs."""
    for p in range(len(rows)):
        s = q.dtype.type(0)
        for c in range(q.shape[1]):
            s = fma(q[rows[p], c], k[keys[p], c], s)
        out[p] = s


class _Group:
    """The processes that share a cloud."""

    def __init__(self, group: Any) -> None:
        if not (dist.is_available() and dist.is_initialized()):
            raise InputError(
                "`group` needs torch.distributed; call torch.distributed.init_process_group first."
            )
        self.group = None if group is True else group
        if dist.get_backend(self.group) == "nccl":
            raise InputError(
                "shards are searched in main memory; give `group` a gloo group, "
                'such as torch.distributed.new_group(backend="gloo").'
            )
        self.rank, self.size = dist.get_rank(self.group), dist.get_world_size(self.group)
        world = dist.get_process_group_ranks(self.group or dist.group.WORLD)
        self.names = world

    def gather(self, x: Array) -> list[Array]:
        """The array of every process, of one type and row size; rows may differ."""
        count = torch.tensor([len(x)])
        counts = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        dist.all_gather(counts, count, group=self.group)
        most = max(int(c) for c in counts)
        mine = torch.zeros(most, *x.shape[1:], dtype=torch.from_numpy(x).dtype)
        mine[: len(x)] = torch.from_numpy(np.ascontiguousarray(x))
        parts = [torch.empty_like(mine) for _ in range(self.size)]
        if most:
            dist.all_gather(parts, mine, group=self.group)
        return [p[: int(c)].numpy() for p, c in zip(parts, counts, strict=True)]

    def most(self, value: float) -> float:
        """The largest value of all processes."""
        x = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(x, op=dist.ReduceOp.MAX, group=self.group)
        return float(x)

    def share(self, mine: Floats, owner: int, rows: int) -> Floats:
        """The rows of process `owner`, in every process."""
        x = mine if owner == self.rank else np.empty((rows, mine.shape[1]))
        if rows:
            dist.broadcast(torch.from_numpy(x), src=self.names[owner], group=self.group)
        return x


def _local(z: Any, A: Any, group: _Group) -> tuple[Floats, Floats, Floats, list[int], int]:
    """Tokens as given, and on one scale, what they ask; the rows of each; the power of two."""
    x = np.asarray(z.detach().cpu().numpy() if is_torch(z) else z)
    form = np.array([[x.ndim, *(*x.shape, 0, 0)[:2]]])
    forms = np.concatenate(group.gather(form))  # every process sees all and says the same
    if (forms[:, 0] != 2).any():
        raise ShapeError(f"a shard must be (n, d); got {forms[:, 0].tolist()} dimensions.")
    if len(set(forms[:, 2].tolist())) > 1:
        raise ShapeError(f"shards must have the same d; got {forms[:, 2].tolist()}.")
    x = np.ascontiguousarray(x, dtype=np.float64)
    shift = shift_of(group.most(float(np.abs(x).max(initial=0.0))))
    given, x = x, np.asarray(np.ldexp(x, -shift)) if shift else x
    return given, x, asked(x, given, A, norms(x)), forms[:, 1].tolist(), shift


class _Found:
    """The pairs within the tolerance of the best so far, and the best score outside."""

    def __init__(self, tol: Floats) -> None:
        self.tol = tol
        self.best, self.outside = np.full(len(tol), -np.inf), np.full(len(tol), -np.inf)
        self.rows, self.keys = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self.scores = np.zeros(0)

    def add(self, rows: Ints, keys: Ints, scores: Floats, best: Floats, outside: Floats) -> None:
        """Let in what one shard holds."""
        self.best = np.maximum(self.best, best)
        self.outside = np.maximum(self.outside, outside)
        self.rows = np.concatenate([self.rows, rows])
        self.keys = np.concatenate([self.keys, keys])
        self.scores = np.concatenate([self.scores, scores])
        stay = self.scores >= (self.best - self.tol)[self.rows]
        np.maximum.at(self.outside, self.rows[~stay], self.scores[~stay])
        self.rows, self.keys, self.scores = self.rows[stay], self.keys[stay], self.scores[stay]


def select_shards(z: Any, A: Any, tie_tol: float, path: str, group: Any) -> Chosen:
    """The sets of this process's tokens among the tokens of all processes.

    Parameters
    ----------
    z : (m, d) array or tensor
        The tokens of this process; m may differ and may be 0.
    A, tie_tol, path
        As for `select`, the same in all processes.
    group : process group, or True for the default one

    Returns
    -------
    Chosen
        Rows are this process's tokens; keys are numbered over all processes in order.
    """
    team = _Group(group)
    given, x, q, counts, shift = _local(z, A, team)
    lengths = norms(x)
    sizes = lengths if q is x else norms(q)
    longest = team.most(float(lengths.max(initial=0.0)))
    scale = sizes * longest
    found = _Found((tie_tol or rounding(A, x.shape[1])) * scale)
    starts = np.concatenate([[0], np.cumsum(counts)])
    for owner, count in enumerate(counts):
        keys = team.share(x, owner, count)
        if not (count and len(q)):
            continue
        some, best, outside = search_cloud(q, keys, found.tol, path, lengths=(sizes, norms(keys)))
        rows, scores = some.rows, np.empty(len(some.indices))
        _scores(q, keys, rows, some.indices, scores)
        found.add(rows, some.indices + starts[owner], scores, best, outside)
    order = np.lexsort((found.keys, found.rows))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(found.rows, minlength=len(q)))])
    margin = (found.best - found.outside) / np.where(scale > 0, scale, 1)
    chosen = Chosen(indptr, found.keys[order], margin, "shards")
    return chosen if tie_tol > 0 else _exactly(given, A, chosen, team, shift, longest)


def _exactly(x: Floats, A: Any, chosen: Chosen, team: _Group, shift: int, longest: float) -> Chosen:
    """The sets of exact arithmetic; tokens that several rows name come from all processes."""
    rows = np.flatnonzero(chosen.counts > 1)
    some = chosen.take(rows)
    names, keys = np.unique(some.indices, return_inverse=True)
    tokens = np.concatenate([x[rows], gather_rows(x, names, team.group or True)])
    asking = np.arange(len(rows))
    keep, gap, power = best_of(tokens, factors(A), asking, some.indptr, len(rows) + keys)
    return narrowed(chosen, rows, keep, np.ldexp(gap / (longest or 1.0), power - shift))


def gather_rows(z: Any, keys: Ints, group: Any = True) -> Array:
    """Rows of the whole cloud by their number, wherever they lie.

    Every process asks for its own keys and all call this together; only the distinct
    rows that somebody asks for are sent.

    Parameters
    ----------
    z : (m, d) array or tensor
        The rows of this process.
    keys : int array
        As in `Chosen.indices`.
    group : process group, or True for the default one

    Returns
    -------
    (len(keys), d) array
    """
    team = _Group(group)
    x = np.asarray(z.detach().cpu().numpy() if is_torch(z) else z)
    counts = np.concatenate(team.gather(np.array([len(x)])))
    first = int(counts[: team.rank].sum())
    wanted = np.unique(np.concatenate(team.gather(np.unique(keys))))
    mine = wanted[(wanted >= first) & (wanted < first + len(x))]
    rows = np.concatenate(team.gather(x[mine - first]))
    return np.asarray(rows[np.searchsorted(wanted, keys)])
