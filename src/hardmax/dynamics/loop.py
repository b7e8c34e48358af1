"""The loop over layers: classes of equal tokens, births of leaders, what is settled.

Tokens of all sequences lie one after the other, equal ones merged with their
multiplicity as weight.  Sequences whose choices can change no more leave the
search and go on with their last choices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from hardmax._types import Array, Bools, Floats, Ints
from hardmax.dynamics.attend import mean_of
from hardmax.dynamics.layer import step
from hardmax.dynamics.stop import collapsed, spread
from hardmax.select import Chosen, select
from hardmax.select.equal import equal_rows

__all__ = ["Loop", "start_loop"]


@dataclass
class Loop:
    """The state between two layers.  r counts merged tokens, s sequences, h heads."""

    x: torch.Tensor  # (r, d) positions
    weight: torch.Tensor  # (h, r) multiplicities; 0 for a follower merged by tolerance
    sequence: Ints  # (r,) the sequence of each merged token
    offsets: Ints  # (s + 1,)
    classes: Ints  # (h, r) the class: the merged token whose position is shared
    born: Ints  # (h, r) birth layer of the class as a leader, -1 before
    follow: Ints  # (h, r) the class chosen alone at the last layer, -1 for a tie
    active: Bools  # (s,) sequences whose choices may still change
    finite: Bools  # (s,)
    size0: Array  # (s,) spread at layer 0
    members: dict[tuple[int, int], Ints] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)  # how choices were found, each once

    @property
    def heads(self) -> int:
        return len(self.classes)

    def block(self, h: int) -> slice:
        """The coordinates of head h."""
        width = self.x.shape[1] // self.heads
        return slice(h * width, (h + 1) * width)

    def settled(self) -> Bools:
        """Sequences in which every class chose one leader, in every head."""
        heads = np.arange(self.heads)[:, None]
        leads = self.follow == self.classes
        good = (self.follow >= 0) & leads[heads, self.follow]
        return np.asarray(np.logical_and.reduceat(good.all(axis=0), self.offsets[:-1]))

    def choose(self, k: int, mats: list[Any], tie_tol: float) -> tuple[torch.Tensor, Floats]:
        """Search all active sequences; log births; return the means and the margins."""
        rows = np.flatnonzero(self.active[self.sequence])
        lengths = np.diff(self.offsets)[self.active]
        local = np.concatenate([[0], np.cumsum(lengths)])
        mean = self.x.clone()
        margins = np.full(len(self.active), np.nan)
        worst = np.full(int(self.active.sum()), np.inf)
        for h in range(self.heads):
            block = self.block(h)
            if len(rows):
                part = self.x[rows, block]
                found = select(part, mats[h], local, tie_tol=tie_tol)
                if found.path not in self.paths:
                    self.paths.append(found.path)
                self._log(h, k, rows, found)
                mean[rows, block] = mean_of(part, found, self.weight[h, rows])
                worst = np.minimum(worst, np.minimum.reduceat(found.margin, local[:-1]))
            rest = np.flatnonzero(~self.active[self.sequence] & self.finite[self.sequence])
            mean[rest, block] = self.x[self.follow[h, rest], block]
        margins[self.active] = worst
        return mean, margins

    def _log(self, h: int, k: int, rows: Ints, found: Chosen) -> None:
        """Note the class that each row chose alone, and leaders chosen by themselves."""
        low, high = self._extremes(h, rows, found)
        if np.any(low != high):
            tied = found.indices[np.repeat(low != high, found.counts)]
            self._unite(h, np.unique(rows[tied]))
            low, high = self._extremes(h, rows, found)
        self.follow[h, rows] = np.where(low == high, low, -1)
        own = self.classes[h, rows]
        new = np.unique(own[(low == high) & (low == own)])
        for c in new[self.born[h, new] < 0]:
            self.born[h, c] = k
            self.members[h, int(c)] = np.flatnonzero(self.classes[h] == c)

    def _extremes(self, h: int, rows: Ints, found: Chosen) -> tuple[Ints, Ints]:
        """The smallest and the largest class that each row chose."""
        chosen = self.classes[h, rows[found.indices]]
        start = found.indptr[:-1]
        return np.minimum.reduceat(chosen, start), np.maximum.reduceat(chosen, start)

    def _unite(self, h: int, rows: Ints) -> None:
        """Tokens that have become exactly equal are one class from now on."""
        first = _block_classes(self.x[rows, self.block(h)], self.sequence[rows])
        for place in np.flatnonzero(np.bincount(first) > 1):
            same = np.unique(self.classes[h, rows[first == place]])
            leads = same[self.born[h, same] >= 0]
            keeper = leads[0] if len(leads) else same[0]
            self.classes[h, np.isin(self.classes[h], same)] = keeper

    def merge(self, merge_tol: float) -> None:
        """Followers that have come close to their leader join its class and its position.

        They weigh nothing in later ties: without rounding they would never reach it.
        """
        top = np.maximum.reduceat(np.abs(_numpy(self.x)).max(axis=1), self.offsets[:-1])
        for h in range(self.heads):
            leads = self.follow[h] == self.classes[h]
            rows = np.flatnonzero((self.follow[h] >= 0) & ~leads & self.active[self.sequence])
            rows = rows[leads[self.follow[h, rows]]]
            target = self.follow[h, rows]
            block = self.block(h)
            gap = np.abs(_numpy(self.x[rows, block] - self.x[target, block])).max(axis=1)
            near = gap <= merge_tol * top[self.sequence[rows]]
            self.x[rows[near], block] = self.x[target[near], block]
            self.classes[h, rows[near]] = target[near]
            self.weight[h, rows[near & (gap > 0)]] = 0

    def advance(self, mean: torch.Tensor, size: torch.Tensor, normalization: str) -> None:
        """Move every token; a sequence that overflows leaves the search."""
        moving = torch.from_numpy(self.finite[self.sequence]).to(self.x.device)
        self.x = torch.where(moving[:, None], step(self.x, mean, size, normalization), self.x)
        good = np.isfinite(_numpy(self.x)).all(axis=1)
        self.finite &= np.logical_and.reduceat(good, self.offsets[:-1])
        self.active &= self.finite

    def status(self, tol: float, apart: bool) -> list[str]:
        """A word per sequence: how its run ended.

        `apart` says that the scores have a positive definite symmetric part; only
        then is one point that all tokens follow a settled state and no collapse, and
        leaders born when the tokens have met up to `tol` are more than rounding.
        """
        one = collapsed(spread(_numpy(self.x), self.offsets), self.size0, tol)
        led = np.logical_or.reduceat((self.born >= 0).any(axis=0), self.offsets[:-1])
        low = np.minimum.reduceat(self.follow, self.offsets[:-1], axis=1)
        high = np.maximum.reduceat(self.follow, self.offsets[:-1], axis=1)
        met = (low == high).all(axis=0) & (np.diff(self.offsets) > 1) & (not apart)
        settled = self.settled()
        shrunk = np.where(settled, met, one & ~led) | (one & (not apart))
        words = np.where(shrunk, "collapsed", np.where(settled, "settled", "depth_reached"))
        return [str(w) for w in np.where(self.finite, words, "not_finite")]


def start_loop(z: torch.Tensor, mask: Bools, heads: int) -> tuple[Loop, Ints, Ints]:
    """The state at layer 0, the merged token of each real token, and the reverse.

    Returns the loop, `merged` (N,) for the real tokens in order, and `first`
    (r,): the index, within its sequence, of the first token of each merged one.
    """
    keep = torch.from_numpy(mask).to(z.device)
    flat = z[keep]
    sequence, token = np.nonzero(mask)
    index, merged = equal_rows(_numpy(flat), np.concatenate([[0], np.cumsum(mask.sum(axis=1))]))
    x = flat[torch.from_numpy(index).to(z.device)].clone()
    offsets = np.searchsorted(sequence[index], np.arange(len(mask) + 1))
    weight = torch.from_numpy(np.bincount(merged)).to(x).repeat(heads, 1)
    classes = np.stack([_block_classes(b, sequence[index]) for b in x.chunk(heads, dim=1)])
    loop = Loop(
        x, weight, sequence[index], offsets, classes,
        born=np.full(classes.shape, -1), follow=np.full(classes.shape, -1),
        active=np.ones(len(mask), dtype=bool), finite=np.ones(len(mask), dtype=bool),
        size0=spread(_numpy(x), offsets),
    )  # fmt: skip
    return loop, merged, token[index]


def _block_classes(block: torch.Tensor, sequence: Ints) -> Ints:
    """The first merged token of the same sequence with the same coordinates in this head."""
    cuts = np.flatnonzero(np.diff(sequence)) + 1
    first, class_of = equal_rows(_numpy(block), np.concatenate([[0], cuts, [len(sequence)]]))
    return first[class_of]


def _numpy(x: torch.Tensor) -> Array:
    return np.asarray(x.detach().cpu().numpy())
