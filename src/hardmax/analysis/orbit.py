"""The exact trajectory, computed only where it is asked for.

All positions of layer k are integers over one common denominator; each layer
multiplies it by the denominator of gamma (and by the sizes of the tied sets),
so no greatest common divisor is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hardmax._types import Array, Ints
from hardmax.analysis.system import System

__all__ = ["Orbit", "Step"]


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

    def chosen(self) -> dict[int, Ints]:
        """The set of each searched class."""
        cuts = np.split(self.indices, self.indptr[1:-1])
        return dict(zip(self.rows.tolist(), cuts, strict=True))


class Orbit:
    """Exact positions of classes at any layer whose earlier choices are known."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.denominators = [system.denominator]
        self._steps: list[tuple[Step, dict[int, Ints], int]] = []
        self._known: list[dict[int, Array]] = [{}]

    def add(self, step: Step) -> None:
        """Append the choices of the last layer, which gives the next one."""
        sets = step.chosen()
        sizes = {int(step.weight[s].sum()) for s in sets.values() if len(s) > 1}
        lcm = math.lcm(*sizes)
        self._steps.append((step, sets, lcm))
        self._known.append({})
        self.denominators.append(self.denominators[-1] * self.system.gamma.denominator * lcm)

    def _set(self, k: int, c: int) -> list[int]:
        step, sets, _ = self._steps[k]
        return sets[c].tolist() if c in sets else [int(step.lock[c])]

    def at(self, k: int, classes: Iterable[int]) -> list[Array]:
        """Numerators over `denominators[k]` of the positions of `classes` at layer k."""
        wanted = list(classes)
        missing = [set(wanted) - self._known[k].keys()]
        for j in range(k - 1, -1, -1):
            if not missing[-1]:
                break
            below = set(missing[-1])
            for c in missing[-1]:
                below.update(self._set(j, c))
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
        step, _, lcm = self._steps[k - 1]
        p, q = self.system.gamma.numerator, self.system.gamma.denominator
        before = self._known[k - 1]
        for c in classes:
            chosen = self._set(k - 1, c)
            mean = self._mean(before, chosen, step.weight, lcm)
            known[c] = (q - p) * lcm * before[c] + p * mean

    @staticmethod
    def _mean(before: dict[int, Array], chosen: list[int], weight: Ints, lcm: int) -> Array:
        """The mean of a set, times `lcm`."""
        if len(chosen) == 1:
            return lcm * before[chosen[0]]
        total = int(weight[chosen].sum())
        parts = [int(weight[j]) * before[j] for j in chosen]
        return np.asarray(sum(parts[1:], parts[0]) * (lcm // total), dtype=object)

    def targets(self, k: int, step: Step, classes: Iterable[int]) -> tuple[list[Array], int]:
        """The mean of each class's choices at layer k, and their denominator."""
        sets = step.chosen()
        totals = [int(step.weight[s].sum()) for s in sets.values() if len(s) > 1]
        lcm = math.lcm(*totals)
        wanted = [(sets[c].tolist() if c in sets else [int(step.lock[c])]) for c in classes]
        needed = {j for chosen in wanted for j in chosen}
        here = dict(zip(needed, self.at(k, needed), strict=True))
        means = [self._mean(here, chosen, step.weight, lcm) for chosen in wanted]
        return means, self.denominators[k] * lcm
