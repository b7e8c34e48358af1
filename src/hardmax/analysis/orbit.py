"""The exact trajectory, computed only where it is asked for.

All positions of layer k are integers over one common denominator; each layer
multiplies it by the denominator of gamma (and by the sizes of the tied sets),
so no greatest common divisor is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hardmax._types import Array, Ints
from hardmax.analysis.system import System
from hardmax.rational import matmul

__all__ = ["Orbit", "Step"]

_BLOCK = 256


@dataclass(frozen=True)
class Step:
    """The choices of one layer: sets of classes for the rows searched.

    Classes that were not searched keep to their leader.  `weight` holds the
    multiplicities at this layer; `merged` lists (class, class it is equal to).
    """

    rows: Ints
    indptr: Ints
    indices: Ints
    lock: Ints
    weight: Ints
    merged: tuple[tuple[int, int], ...] = ()

    def row(self, c: int) -> int:
        """The place of class c among the searched rows, -1 when it was not searched."""
        return int(self._places[c])

    @cached_property
    def _places(self) -> Ints:
        places = np.full(len(self.lock), -1)
        places[self.rows] = np.arange(len(self.rows))
        return places

    def chosen(self, c: int) -> list[int]:
        """The set that class c chose; a class that was not searched keeps to its leader."""
        r = self.row(c)
        if r < 0:
            return [int(self.lock[c])]
        return list(map(int, self.indices[self.indptr[r] : self.indptr[r + 1]]))

    @cached_property
    def tie_factor(self) -> int:
        """The least common multiple of the sizes of the tied sets."""
        tied = np.flatnonzero(np.diff(self.indptr) > 1)
        totals = {int(self.weight[self.chosen(int(self.rows[r]))].sum()) for r in tied}
        return math.lcm(*totals)


class Orbit:
    """Exact positions of classes at any layer whose earlier choices are known."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.denominators = [system.denominator]
        self._steps: list[Step] = []
        self._known: list[dict[int, Array]] = [{}]

    def add(self, step: Step) -> None:
        """Append the choices of the last layer, which gives the next one."""
        self._steps.append(step)
        self._known.append({})
        factor = self.system.gamma.denominator * step.tie_factor
        self.denominators.append(self.denominators[-1] * factor)

    def at(self, k: int, classes: Iterable[int]) -> list[Array]:
        """Numerators over `denominators[k]` of the positions of `classes` at layer k."""
        wanted = list(classes)
        missing = [set(wanted) - self._known[k].keys()]
        for j in range(k - 1, -1, -1):
            if not missing[-1]:
                break
            below = set(missing[-1])
            for c in missing[-1]:
                below.update(self._steps[j].chosen(c))
            missing.append(below - self._known[j].keys())
        for back in range(len(missing) - 1, -1, -1):
            self._compute(k - back, missing[back])
        return [self._known[k][c] for c in wanted]

    def _compute(self, k: int, classes: set[int]) -> None:
        if not classes:
            return
        known = self._known[k]
        if k == 0:
            ids = np.array(sorted(classes))
            known.update(zip(ids.tolist(), self.system.integers(ids), strict=True))
            return
        step = self._steps[k - 1]
        p, q = self.system.gamma.numerator, self.system.gamma.denominator
        before = self._known[k - 1]
        for c in classes:
            mean = self._mean(before, step.chosen(c), step)
            known[c] = (q - p) * step.tie_factor * before[c] + p * mean

    @staticmethod
    def _mean(before: dict[int, Array], chosen: list[int], step: Step) -> Array:
        """The mean of a set, times `tie_factor`."""
        if len(chosen) == 1:
            return step.tie_factor * before[chosen[0]]
        total = int(step.weight[chosen].sum())
        parts = [int(step.weight[j]) * before[j] for j in chosen]
        return np.asarray(sum(parts[1:], parts[0]) * (step.tie_factor // total), dtype=object)

    def scores(self, k: int, rows: Ints, keys: Ints) -> Iterator[Array]:
        """The integers <A z_i, z_j>, up to one positive factor, row by row."""
        a = self.system.integer_matrix
        answers = np.ascontiguousarray(_stack(self.at(k, keys.tolist())).T)
        for start in range(0, len(rows), _BLOCK):
            ask = _stack(self.at(k, rows[start : start + _BLOCK].tolist()))
            if a is not None:
                ask = matmul(ask, np.ascontiguousarray(a.T))
            yield from matmul(ask, answers)

    def targets(self, k: int, step: Step, classes: Iterable[int]) -> tuple[list[Array], int]:
        """The mean of each class's choices at layer k, and their denominator."""
        wanted = [step.chosen(c) for c in classes]
        needed = {j for chosen in wanted for j in chosen}
        here = dict(zip(needed, self.at(k, needed), strict=True))
        means = [self._mean(here, chosen, step) for chosen in wanted]
        return means, self.denominators[k] * step.tie_factor


def _stack(rows: list[Array]) -> Array:
    """Integer vectors as the rows of one matrix."""
    out = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        out[i] = row
    return out
