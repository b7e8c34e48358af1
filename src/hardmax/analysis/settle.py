"""From the input to the settled layer, and the limit of infinitely many layers.

A layer is settled when every class follows a leader alone.  With ties it is
settled when the means T = P z of the choices satisfy P T = T, and when on the
segments z(u) = T + u (z - T), along which all tokens then contract together,
no choice changes for 0 < u <= 1.  Each score difference is a quadratic in u;
it is positive when its Bernstein coefficients on [0, 1] are (>0 at u = 1,
>= 0 at u = 0 and between), and a tie lasts when they all vanish.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hardmax._types import Array, Floats, Ints
from hardmax.analysis.decide import Decider, LayerProof
from hardmax.analysis.orbit import Orbit, Step
from hardmax.analysis.system import System

__all__ = ["Outcome", "settle", "tied_limits"]

_BUDGET = 1e7
_COLLAPSE = 1e-10
_CLOSE = 1e-9


@dataclass(frozen=True)
class Outcome:
    """Everything that was found, over classes of equal tokens.

    Attributes
    ----------
    tied : dict of class -> list of Fraction, or None
        Exact limits of the classes that are not locked, when settled with ties.
    x, mean : (m, d) arrays
        Float positions at the last layer and where each class goes, times 2**-exponent.
    """

    system: System
    steps: tuple[Step, ...]
    proofs: tuple[LayerProof, ...]
    status: str
    orbit: Orbit
    lock: Ints
    born: Ints
    into: Ints
    tied: dict[int, list[Fraction]] | None
    x: Floats
    mean: Floats
    certain: bool
    exact: bool
    path: str = ""

    @property
    def layer(self) -> int:
        """The last layer that was decided."""
        return len(self.steps) - 1

    @property
    def rational(self) -> bool:
        """Whether anything was decided in rationals."""
        return bool(self.tied) or any(p.rational for p in self.proofs)

    @property
    def proved(self) -> bool:
        """Whether the limit of every token is proved."""
        closed = bool(np.all(self.lock[self.into] >= 0))
        return self.certain and (closed or self.tied is not None)


def settle(
    system: System, max_depth: int, *, exact: bool = False, patient: bool = False
) -> Outcome:
    """Decide layer after layer until nothing can change, or `max_depth` is reached.

    `exact` decides every choice in integer arithmetic alone; `patient` only lifts
    the limit on the work in rationals where floats cannot decide.
    """
    decider = Decider(system, np.inf if exact or patient else _BUDGET, exact)
    steps: list[Step] = []
    proofs: list[LayerProof] = []
    extent = np.ptp(decider.x, axis=0).max(initial=0.0)
    while True:
        step, proof = decider.decide()
        steps.append(step)
        proofs.append(proof)
        mean = decider.means(step)
        tied = _tied_if_close(decider, step, mean) if len(decider.open) else {}
        status = _status(decider, mean, tied, float(extent))
        if status is None and decider.k == max_depth:
            status = "depth_reached"
        if status is not None:
            break
        decider.advance(step, mean)
    return Outcome(
        system, tuple(steps), tuple(proofs), status, decider.orbit, decider.lock, decider.born,
        decider.into, tied, decider.x, mean, decider.certain, exact,
        ", ".join(decider.paths),
    )  # fmt: skip


def _status(
    decider: Decider, mean: Floats, tied: dict[int, list[Fraction]] | None, extent: float
) -> str | None:
    """A word when the run is over, None to go on."""
    alive = decider.alive
    led = decider.born[alive] >= 0
    many = len(decider.into) > 1
    if tied is not None:
        lock = decider.lock[alive]
        lock = lock[lock >= 0]
        ends = {(int(lock.min()),), (int(lock.max()),)} if len(lock) else set()
        one_point = len(ends | {tuple(t) for t in tied.values()}) == 1
        if many and one_point and not decider.system.keeps_apart:
            return "collapsed"
        return "proved" if decider.certain else "settled"
    if many and not led.any() and np.ptp(decider.x[alive], axis=0).max() <= _COLLAPSE * extent:
        return "collapsed"
    way = np.abs(mean[alive] - decider.x[alive]).max()
    if not decider.certain and way <= _CLOSE * np.abs(decider.x[alive]).max():
        return "settled"
    return None


def _tied_if_close(decider: Decider, step: Step, mean: Floats) -> dict[int, list[Fraction]] | None:
    """Exact limits of the open classes, or None when ties do not last or cannot be decided."""
    if not decider.certain or not _may_last(decider, step, mean):
        return None
    words = decider.orbit.denominators[decider.k].bit_length() / 64 + 2
    decider.budget -= 4 * len(decider.open) * len(decider.alive) * mean.shape[1] * words
    if decider.budget < 0:
        decider.certain = False
        return None
    return tied_limits(decider.orbit, decider.k, step, decider.alive, decider.open)


def _may_last(decider: Decider, step: Step, mean: Floats) -> bool:
    """Whether P T = T is possible: no open class goes to one that moves, up to rounding."""
    counts = np.diff(step.indptr)
    single = np.zeros(len(decider.into), dtype=bool)
    single[step.rows[counts == 1]] = True
    single |= decider.lock >= 0
    moves = single & (decider.lock != np.arange(len(single)))
    open_rows = np.isin(step.rows, decider.open)
    if np.any(moves[step.indices[step.indptr[:-1]]] & open_rows & (counts == 1)):
        return False
    w = step.weight[step.indices].astype(np.float64)
    sums = np.add.reduceat(mean[step.indices] * w[:, None], step.indptr[:-1], axis=0)
    again = sums / np.add.reduceat(w, step.indptr[:-1])[:, None]
    gap = np.abs(again - mean[step.rows])[open_rows].max()
    rounding = (counts.max() + 20) * 2.0**-52 * np.abs(decider.x).max() + 1e-300
    return bool(gap <= 4 * (decider.error.max() + rounding))


def tied_limits(
    orbit: Orbit, k: int, step: Step, alive: Ints, open_rows: Ints
) -> dict[int, list[Fraction]] | None:
    """Exact limits of the open classes when the tied layer k is settled, else None."""
    ids = alive.tolist()
    place = {c: i for i, c in enumerate(ids)}
    means, den = orbit.targets(k, step, ids)
    factor = den // orbit.denominators[k]
    here = np.array([p * factor for p in orbit.at(k, ids)], dtype=object)
    goal = np.array(means, dtype=object)
    sets = {c: step.chosen(c) for c in open_rows.tolist()}
    for c in open_rows.tolist():
        members = [place[j] for j in sets[c]]
        weights = [int(step.weight[j]) for j in sets[c]]
        total = sum(w * goal[m] for w, m in zip(weights, members, strict=True))
        if np.any(total != sum(weights) * goal[place[c]]):
            return None
    if orbit.system.gamma == 1 and np.any(here != goal):
        return None  # the next layer is u = 0 itself, where sets may grow: wait for a fixed point
    for c in open_rows.tolist():
        if not _lasts(orbit.system, here, goal, place[c], [place[j] for j in sets[c]]):
            return None
    return {c: [Fraction(int(v), den) for v in goal[place[c]]] for c in open_rows.tolist()}


def _lasts(system: System, here: Array, goal: Array, i: int, members: list[int]) -> bool:
    """Whether the choices of class i stay as they are while all tokens contract to `goal`."""
    a = system.integer_matrix
    ask_here = here[i] if a is None else a.dot(here[i])
    ask_goal = goal[i] if a is None else a.dot(goal[i])
    j = members[0]
    at_one = here.dot(ask_here)
    between = goal.dot(ask_here) + here.dot(ask_goal)
    at_zero = goal.dot(ask_goal)
    inside = np.zeros(len(here), dtype=bool)
    inside[members] = True
    for values, strict in ((at_one, True), (between, False), (at_zero, False)):
        gap = values[j] - values
        if np.any(gap[inside] != 0) or np.any(gap[~inside] < 0):
            return False
        if strict and np.any(gap[~inside] == 0):
            return False
    return True
