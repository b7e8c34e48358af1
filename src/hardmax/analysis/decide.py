"""Every choice of every layer, decided: by floats with a proved bound, else in rationals.

A choice is certain in floats when the best score beats all others by more than
twice a bound B on the error of a score,

    B = |q| E + (err(q) + c_d |q|) (M + E),   err(q) = |A|_F (e_i + c_d |z_i|),

where e bounds the distance of a float token to the exact one (E the largest),
M is the longest token and c_d = (d + 4) 2^-53.  A layer is a convex combination,
so it adds rounding to e and never amplifies it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hardmax._types import Floats, Ints
from hardmax.analysis._advance import move
from hardmax.analysis.orbit import Orbit, Step
from hardmax.analysis.system import System
from hardmax.select.chosen import Chosen
from hardmax.select.measure import asks, norms
from hardmax.select.plan import PATHS, preferred
from hardmax.select.search import search_cloud

__all__ = ["Decider", "LayerProof"]

_U = 2.0**-53
_SAFE = 1 + 2.0**-20
_TINY = 2.0**-1040


@dataclass(frozen=True)
class LayerProof:
    """What one layer's choices rest on.

    Attributes
    ----------
    margin : float
        Smallest best-minus-outside score of the searched classes, in units of
        |A z_i| max_j |z_j|; inf where no class chose between different scores.
    bound : float
        Largest float error of a difference of scores, in the same units.
    rational : int
        How many classes were decided in rationals.
    """

    margin: float
    bound: float
    rational: int


class Decider:
    """The state between two layers: float positions with error bounds, and locks.

    A class is locked once it is a leader (it chose itself alone) or follows a
    leader alone: both last for ever, for any A, so it is searched no more.
    """

    def __init__(self, system: System, budget: float, everything: bool = False) -> None:
        m = len(system.first)
        self.system = system
        self.everything = everything
        self.orbit = Orbit(system)
        self.k = 0
        self.x = system.floats.copy()
        self.error = np.full(m, _TINY)
        if system.z.dtype == object:
            self.error = self.error + 1.01 * _U * norms(self.x)
        self.alive = np.arange(m)
        self.into = np.arange(m)
        self.lock = np.full(m, -1)
        self.born = np.full(m, -1)
        self.weight = system.weight.copy()
        self.budget = budget
        self.certain = True
        self.paths: list[str] = []
        self._unit = Fraction(4) ** -system.exponent * system.matrix_unit

    @property
    def open(self) -> Ints:
        """The classes that must still be searched."""
        return self.alive[self.lock[self.alive] < 0]

    def decide(self) -> tuple[Step, LayerProof]:
        """The choices at this layer; leaders and their followers are locked."""
        rows = self.open
        equal: dict[int, int] = {}
        search = self._search_exactly if self.everything else self._search
        first, tied, proof = search(rows, equal)
        step = self._step(rows, first, tied, equal)
        self._log(step)
        return step, proof

    def _search(
        self, rows: Ints, equal: dict[int, int]
    ) -> tuple[Ints, dict[int, Ints], LayerProof]:
        """The choices by floats, and in rationals where their bound is too coarse."""
        found, scale, bound = self._candidates(rows)
        margins = found.margin / scale
        tied: dict[int, Ints] = {}
        count = 0
        for i in np.flatnonzero(found.counts > 1).tolist():
            tied[i] = self.alive[found.row(i)]
            if self.certain and self._afford(len(tied[i])):
                tied[i], gap = self._exact_row(int(rows[i]), tied[i], equal)
                margins[i] = min(gap / scale[i], margins[i])
                count += 1
            else:
                self.certain = False
        first = self.alive[found.indices[found.indptr[:-1]]]
        coarse = float((bound / scale).max(initial=0.0))
        return first, tied, LayerProof(float(margins.min(initial=np.inf)), coarse, count)

    def _search_exactly(
        self, rows: Ints, equal: dict[int, int]
    ) -> tuple[Ints, dict[int, Ints], LayerProof]:
        """Every choice in integer arithmetic alone."""
        first = np.empty(len(rows), dtype=np.int64)
        tied: dict[int, Ints] = {}
        scale = self._scale(rows)
        margin = np.inf
        for i, scores in enumerate(self.orbit.scores(self.k, rows, self.alive)):
            best = scores.max()
            inside = scores == best
            chosen = self.alive[inside]
            first[i] = chosen[0]
            if len(chosen) > 1:
                tied[i] = chosen
                self._note_equal(chosen.tolist(), equal)
            if not inside.all():
                margin = min(margin, self._gap(best - scores[~inside].max()) / scale[i])
        return first, tied, LayerProof(float(margin), 0.0, len(rows))

    def _scale(self, rows: Ints) -> Floats:
        """|A z_i| max_j |z_j| in floats; 1 where it is zero."""
        size = norms(asks(self.x[rows], self.system.matrix[0]))
        scale = size * (float(norms(self.x[self.alive]).max()) * _SAFE)
        return np.where(scale > 0, scale, 1.0)

    def _candidates(self, rows: Ints) -> tuple[Chosen, Floats, Floats]:
        """Candidates within the error bound of the best, with the scale and the bound."""
        a, rounded = self.system.matrix
        keys = self.x[self.alive]
        z = self.x[rows]
        q = asks(z, a)
        d = z.shape[1]
        c = (d + 4) * _U * _SAFE
        longest = float(norms(keys).max()) * _SAFE
        worst = float(self.error[self.alive].max())
        own, size = self.error[rows], norms(q)
        slip = own
        if a is not None:
            frobenius = math.sqrt(math.fsum((a * a).ravel())) * _SAFE
            slip = frobenius * (own + (c + rounded) * norms(z))
        bound = size * worst + (slip + c * size) * (longest + worst) + _TINY
        bound = 2 * _SAFE * bound
        path = preferred("auto")
        found, _, _ = search_cloud(q, keys, bound, path if path in PATHS else "auto")
        if found.path not in self.paths:
            self.paths.append(found.path)
        return found, self._scale(rows), bound

    def _afford(self, candidates: int) -> bool:
        """Whether one more row may be decided in rationals; big numbers cost more."""
        words = self.orbit.denominators[self.k].bit_length() / 64 + 2
        self.budget -= (candidates + 8) * self.x.shape[1] * words
        return self.budget >= 0

    def _exact_row(self, i: int, candidates: Ints, equal: dict[int, int]) -> tuple[Ints, float]:
        """The exact argmax set among the candidates and its gap to the next of them."""
        ids = candidates.tolist()
        z_i, *others = self.orbit.at(self.k, [i, *ids])
        a = self.system.integer_matrix
        ask = z_i if a is None else a.dot(z_i)
        scores = [int(ask.dot(y)) for y in others]
        best = max(scores)
        tied = [j for j, s in zip(ids, scores, strict=True) if s == best]
        rest = [s for s in scores if s < best]
        if len(tied) > 1:
            self._note_equal(tied, equal)
        gap = self._gap(best - max(rest)) if rest else np.inf
        return np.array(tied), gap

    def _gap(self, difference: int) -> float:
        """An integer difference of scores in the units of the float scores."""
        return float(Fraction(difference, self.orbit.denominators[self.k] ** 2) * self._unit)

    def _note_equal(self, tied: list[int], equal: dict[int, int]) -> None:
        """Classes of a tie that stand at the same point become one."""
        where: dict[tuple[int, ...], int] = {}
        order = sorted(tied, key=lambda j: (self.lock[j] != j, j))
        for j, position in zip(order, self.orbit.at(self.k, order), strict=True):
            keeper = where.setdefault(tuple(position), j)
            if keeper != j:
                equal[j] = keeper

    def _step(self, rows: Ints, first: Ints, tied: dict[int, Ints], equal: dict[int, int]) -> Step:
        """The choices as rows (`first` where a row is not in `tied`), equal classes merged."""
        keep = np.ones(len(rows), dtype=bool)
        if equal:
            for j, keeper in equal.items():
                self.into[self.into == j] = keeper
                self.weight[keeper] += self.weight[j]
            gone = np.fromiter(equal, dtype=np.int64)
            self.alive = np.setdiff1d(self.alive, gone)
            keep = ~np.isin(rows, gone)
            tied = {i: np.unique(self.into[s]) for i, s in tied.items()}
        counts = np.ones(len(rows), dtype=np.int64)
        for i, chosen in tied.items():
            counts[i] = len(chosen)
        counts[~keep] = 0
        indptr = np.concatenate([[0], np.cumsum(counts)])
        indices = np.empty(indptr[-1], dtype=np.int64)
        indices[indptr[:-1][keep]] = first[keep]
        for i, chosen in tied.items():
            if keep[i]:
                indices[indptr[i] : indptr[i + 1]] = chosen
        indptr = np.concatenate([[0], np.cumsum(counts[keep])])
        merged = tuple(sorted((j, int(self.into[keeper])) for j, keeper in equal.items()))
        return Step(rows[keep], indptr, indices, self.lock.copy(), self.weight.copy(), merged)

    def _log(self, step: Step) -> None:
        """Lock the classes that chose themselves alone, then those that chose a leader alone."""
        counts = np.diff(step.indptr)
        target = step.indices[step.indptr[:-1]]
        alone = counts == 1
        leads = step.rows[alone & (target == step.rows)]
        self.lock[leads] = leads
        self.born[leads] = self.k
        led = alone & (self.lock[target] == target)
        self.lock[step.rows[led]] = target[led]

    def means(self, step: Step) -> Floats:
        """Where each class is going, in floats: the mean of its choices."""
        out = self.x.copy()
        locked = self.lock >= 0
        out[locked] = self.x[self.lock[locked]]
        counts = np.diff(step.indptr)
        alone = counts == 1
        out[step.rows[alone]] = self.x[step.indices[step.indptr[:-1][alone]]]
        for r in np.flatnonzero(~alone).tolist():
            chosen = step.chosen(int(step.rows[r]))
            w = self.weight[chosen].astype(np.float64)
            parts = (self.x[chosen] * w[:, None]).T
            out[step.rows[r]] = [math.fsum(p) / math.fsum(w) for p in parts]  # in any order
        return out

    def advance(self, step: Step, mean: Floats) -> None:
        """Go one layer on; the error bound grows by the rounding of one layer."""
        width = np.ones(len(self.x))
        reach = self.error.copy()
        if len(step.rows):
            width[step.rows] = np.diff(step.indptr)
            worst = np.maximum.reduceat(self.error[step.indices], step.indptr[:-1])
            reach[step.rows] = np.maximum(self.error[step.rows], worst)
        longest = float(norms(self.x[self.alive]).max())
        added = (14 + width) * _U * _SAFE * longest + _TINY
        g = float(self.system.gamma)
        self.x, self.error = move(self.x, mean, self.lock, g, self.error, reach, added)
        self.orbit.add(step)
        self.k += 1
