"""One text through the layers with everything kept: positions, choices, births, weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from hardmax._types import Floats, Ints
from hardmax.dynamics.attend import mean_of
from hardmax.dynamics.layer import step
from hardmax.learn.model import HardmaxModel
from hardmax.select import Chosen, select
from hardmax.select.ragged import select_ragged
from hardmax.tokens.batch import Tokens

__all__ = ["Born", "Trace", "trace"]


@dataclass(frozen=True)
class Born:
    """A class of equal tokens that chose itself alone: where, since when, and who else."""

    index: int
    head: int
    born: int
    members: tuple[int, ...]


@dataclass(frozen=True)
class Trace:
    """What happens to the tokens of one text.

    Attributes
    ----------
    tokens : Tokens
        One text; its n tokens are distinct within each sequence.
    zs : (depth + 1, n, dim) array
        Positions after 0, 1, ... layers.
    chosen : tuple of tuples of Chosen
        `chosen[k][h]`: whom each token chooses at layer k in head h.  The last
        layer, k = depth, is not followed any more; it only shows who leads.
    gamma : (heads,) array
    weights : (n, heads) array
        How much of each first vector is in the mean of the last ones; each
        column is non-negative and sums to one.
    A : (heads, s, s) array, optional
        The scores of each head; the identity when None.
    """

    tokens: Tokens
    zs: Floats
    chosen: tuple[tuple[Chosen, ...], ...]
    gamma: Floats
    weights: Floats
    tie_tol: float
    A: Floats | None = None

    @property
    def depth(self) -> int:
        """The number of layers."""
        return len(self.zs) - 1

    @property
    def heads(self) -> int:
        """The number of heads."""
        return len(self.gamma)

    @property
    def cuts(self) -> Ints:
        """Where the sequences that hold tokens begin and end."""
        return np.unique(self.tokens.offsets)

    def block(self, k: int, h: int) -> Floats:
        """Positions at layer k in the coordinates of head h, (n, dim / heads)."""
        size = self.zs.shape[2] // self.heads
        return np.ascontiguousarray(self.zs[k, :, h * size : (h + 1) * size])

    def margins(self, k: int, h: int) -> Floats:
        """Best score less the best outside the chosen set, per token; inf where none is."""
        if not len(self.tokens.ids):
            return np.empty(0)
        z = self.block(k, h)
        A = None if self.A is None else self.A[h]
        margin = select(z, A, self.cuts, tie_tol=self.tie_tol).margin
        size, asks = np.sqrt((z * z).sum(axis=1)), z if A is None else z @ A.T
        top = np.repeat(np.maximum.reduceat(size, self.cuts[:-1]), np.diff(self.cuts))
        unit = np.sqrt((asks * asks).sum(axis=1)) * top
        return np.asarray(np.where(np.isinf(margin), np.inf, margin * np.where(unit > 0, unit, 1)))

    def follows(self, k: int, h: int) -> Ints:
        """The token that each token chooses alone at layer k in head h, else -1."""
        chosen = self.chosen[k][h]
        first = chosen.indices[chosen.indptr[:-1]]
        return np.asarray(np.where(chosen.counts == 1, first, -1), dtype=np.int64)

    @cached_property
    def leaders(self) -> tuple[Born, ...]:
        """Classes that chose themselves alone at some layer, logged at the first; by token."""
        found: list[Born] = []
        for h in range(self.heads):
            led: set[int] = set()
            for k in range(self.depth + 1):
                for members in self._alone(k, h):
                    if not led & set(members):
                        found.append(Born(members[0], h, k, members))
                    led |= set(members)
        return tuple(sorted(found, key=lambda leader: (leader.head, leader.index)))

    def _alone(self, k: int, h: int) -> list[tuple[int, ...]]:
        """The chosen sets that are one place, chosen by a token that stands there."""
        chosen, z = self.chosen[k][h], self.block(k, h)
        rows = chosen.rows
        there = (z[chosen.indices] == z[rows]).all(axis=1)
        pure = np.bincount(rows[~there], minlength=len(z)) == 0
        out = []
        for i in np.flatnonzero(pure).tolist():
            members = tuple(chosen.row(i).tolist())
            if members[0] == i:
                out.append(members)
        return out


def trace(model: HardmaxModel, tokens: Tokens) -> Trace:
    """The layers of a model on one text, by the library's selection, mean and step."""
    weights = torch.from_numpy(tokens.counts.astype(np.float64))
    cuts, E = np.unique(tokens.offsets), model.E.detach()
    gamma, A = model.gamma.detach(), model.scores()
    zs = [E[torch.from_numpy(tokens.ids.astype(np.int64))].double()]
    chosen: list[tuple[Chosen, ...]] = []
    for k in range(model.depth + 1):
        blocks = zs[k].chunk(model.heads, dim=1)
        picks = tuple(
            select_ragged(z.numpy(), cuts, A=None if A is None else A[h], tie_tol=model.tie_tol)
            for h, z in enumerate(blocks)
        )
        chosen.append(picks)
        if k < model.depth:
            parts = zip(blocks, picks, gamma, strict=True)
            moved = [step(z, mean_of(z, c, weights), g, "rescale") for z, c, g in parts]
            zs.append(torch.cat(moved, dim=1))
    positions = np.stack([z.numpy() for z in zs])
    run = model.run(tokens)
    return Trace(tokens, positions, tuple(chosen), gamma.numpy(), run.u, model.tie_tol, A)
