"""The smallest set of words whose removal changes the prediction, found and proved minimal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import Any

import numpy as np

from hardmax._check import check_choice
from hardmax._errors import InputError
from hardmax._types import Bools, Floats
from hardmax.explain.bundle import shares_of, winners
from hardmax.explain.explanation import Explanation
from hardmax.explain.removal import Removal
from hardmax.io import plain

__all__ = ["EXHAUSTIVE", "WORK", "Counterfactual", "candidates", "find_counterfactual"]

WORK = 4_000_000
"""Tokens that the search may look at, over all sets; about a second."""
EXHAUSTIVE = 14
"""Up to this many words every set is tried if need be, whatever the work."""

Units = tuple[int, ...]
_AMONG = ("words", "leaders")
_WIDTH, _POOL, _DEEP, _LOT = 4, 40, 24, 512


@dataclass(frozen=True)
class Counterfactual:
    """A set of words without which the prediction is another.

    Attributes
    ----------
    removed : tuple of str
        The words, in their counted form and in the order of the text.
    spans : tuple of (start, stop)
        Every place of the text that is removed.
    text : str
        What is left.
    logit, probability : float
        Of the explanation's `label` on what is left, from its words alone.
    prediction : class
        On what is left.
    proved_minimal : bool
        Whether every smaller set was tried; otherwise the size is an upper bound.
    at_least : int
        No set of fewer words than this changes the prediction.
    tried : int
        How many sets were evaluated.
    """

    removed: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    text: str
    logit: float
    probability: float
    prediction: Any
    proved_minimal: bool
    at_least: int
    tried: int

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON data."""
        return dict(plain({name: getattr(self, name) for name in self.__dataclass_fields__}))


def find_counterfactual(
    explanation: Explanation, among: str = "words", *, by: str = "words", work: int = WORK
) -> Counterfactual | None:
    """The smallest set of words found whose removal changes the prediction.

    Each set is evaluated with everything recomputed without its words: n-grams,
    choices, layers.  Where no choice of a head can change, the head's part of the
    logit is found by addition instead, which is the same number.

    Parameters
    ----------
    explanation : Explanation
    among : "words" or "leaders"
        Which words may be removed: all, or those that leaders consist of.
    by : "words" or "occurrences"
        Whether a word is removed everywhere, or each occurrence counts.
    work : int
        Sets of one size are all tried while the tokens to look at stay below this.

    Returns
    -------
    Counterfactual or None
        None where no removal changes the prediction: proved up to 14 words; in
        longer texts, none was found.

    Raises
    ------
    InputError
        If `among` or `by` is unknown, or `work` is negative.

    Examples
    --------
    >>> from hardmax.estimators.classifier import HardmaxClassifier
    >>> from hardmax.explain.contributions import explain
    >>> texts = ["a good film", "good and warm", "a bad film", "bad and cold"] * 10
    >>> clf = HardmaxClassifier(dim=4, heads=2, epochs=100).fit(texts, [1, 1, 0, 0] * 10)
    >>> found = find_counterfactual(explain(clf, "a good cold evening"))
    >>> found.removed, found.prediction, found.proved_minimal
    (('good',), 0, True)
    """
    check_choice(among, "among", _AMONG)
    if work < 0:
        raise InputError(f"`work` must be >= 0; got {work}.")
    removal = explanation.removal if by == "words" else _by(explanation, by)
    search = _Search(explanation, removal, candidates(explanation, removal, among), work)
    best = search.smallest(work)
    return None if best is None else _record(explanation, removal, best, search)


def _by(explanation: Explanation, by: str) -> Removal:
    return Removal(explanation.bundle, explanation.text, by)


def candidates(explanation: Explanation, removal: Removal, among: str) -> list[int]:
    """The units that may be removed."""
    if among == "words":
        return list(range(len(removal)))
    led = {word for leader in explanation.leaders for word in leader.word.split(" ")}
    return [unit for unit in range(len(removal)) if removal.name(unit) in led]


class _Search:
    """Sets of units, how far each is from changing the prediction, and what is proved."""

    def __init__(
        self, explanation: Explanation, removal: Removal, units: list[int], work: int
    ) -> None:
        self.removal, self.units = removal, units
        self.goal = explanation.classes.index(explanation.prediction)
        self.tried, self.at_least, self.proved = 0, 1, False
        self.cost, self.room = max(1, len(removal.base.ids)), work

    def look(self, sets: Sequence[Units], within: Units = ()) -> tuple[Floats, Bools]:
        """Margins of the prediction without each set, and where it is another.

        All sets hold `within`: what they share is computed once.
        """
        self.tried += len(sets)
        logits = self.removal.logits(sets, within)
        flips = winners(logits) != self.goal
        if logits.shape[1] == 1:
            return np.asarray(logits[:, 0] * (1 if self.goal else -1)), flips
        rest = np.delete(logits, self.goal, axis=1).max(axis=1)
        return np.asarray(logits[:, self.goal] - rest), flips

    def smallest(self, work: int) -> Units | None:
        """The smallest set found; `at_least` and `proved` say what is known."""
        if not self.units:
            return None
        singles = [(unit,) for unit in self.units]
        margins, flips = self.look(singles)
        self.order = [self.units[r] for r in np.argsort(margins, kind="stable").tolist()]
        if flips.any():
            self.proved = True
            return singles[int(np.where(flips, margins, np.inf).argmin())]
        self.at_least = 2
        best = self.shortest_prefix()
        best = self.beam(best)
        if best is None and len(self.units) > EXHAUSTIVE:
            best = self.leave_one()
        return self.exhaust(best, work)

    def shortest_prefix(self) -> Units | None:
        """The first words by single effect, as few as change the prediction; made smaller."""
        n, low = len(self.order), 2
        while low <= n:
            step = max(1, low // 32)
            sizes = [min(low + step * r, n) for r in range(16)]
            sets = [tuple(self.order[:size]) for size in dict.fromkeys(sizes)]
            _, flips = self.look(sets)
            if flips.any():
                return self.shrink(sets[int(flips.argmax())])
            low = sizes[-1] + 1
        return None

    def leave_one(self) -> Units | None:
        """All words but one, of those that hold the prediction least; made smaller."""
        sets = [tuple(u for u in self.order if u != left) for left in self.order[::-1][:_LOT]]
        _, flips = self.look(sets)
        return self.shrink(sets[int(flips.argmax())]) if flips.any() else None

    def shrink(self, units: Units) -> Units:
        """A subset that still changes the prediction, without words that can stay."""
        for unit in reversed(self.order):  # the weakest first, one by one
            if unit in units and len(units) > _DEEP:
                fewer = tuple(u for u in units if u != unit)
                units = fewer if self.look([fewer])[1][0] else units
        while 1 < len(units) <= _DEEP:
            sets = [units[:r] + units[r + 1 :] for r in range(len(units))]
            margins, flips = self.look(sets)
            if not flips.any():
                break
            units = sets[int(np.where(flips, margins, np.inf).argmin())]
        return units

    def beam(self, best: Units | None) -> Units | None:
        """A few sets grown word by word, each time by the words that help most."""
        front: list[Units] = [(unit,) for unit in self.order[:_WIDTH]]
        top = min(_DEEP, len(self.units)) if best is None else min(_DEEP, len(best) - 1)
        for _ in range(2, top + 1):
            sets = sorted({tuple(sorted((*front[0], u))) for u in self.order if u not in front[0]})
            if (self.tried + len(sets)) * self.cost > self.room and len(self.units) > EXHAUSTIVE:
                break
            margins, flips = self.look(sets, front[0])
            rank = np.argsort(margins, kind="stable").tolist()
            pool = [next(iter(set(sets[r]) - set(front[0]))) for r in rank[:_POOL]]
            seen = set(sets)
            for start in front[1:]:
                more = sorted({tuple(sorted((*start, u))) for u in pool if u not in start} - seen)
                if more:
                    seen.update(more)
                    margins_2, flips_2 = self.look(more, start)
                    sets, margins = sets + more, np.concatenate([margins, margins_2])
                    flips = np.concatenate([flips, flips_2])
            if flips.any():
                return self.shrink(sets[int(np.where(flips, margins, np.inf).argmin())])
            front = [sets[r] for r in np.argsort(margins, kind="stable")[:_WIDTH].tolist()]
        return best

    def exhaust(self, best: Units | None, work: int) -> Units | None:
        """Try all sets smaller than the best, size by size, while the work allows."""
        n = len(self.units)
        most = n if best is None else len(best) - 1
        for size in range(2, most + 1):
            work -= comb(n, size) * self.cost
            if work < 0 and n > EXHAUSTIVE:
                return best
            for sets, within in self.lots(size):
                margins, flips = self.look(sets, within)
                if flips.any():
                    self.proved = True
                    return sets[int(np.where(flips, margins, np.inf).argmin())]
            self.at_least = size + 1
        self.proved = best is not None
        return best

    def lots(self, size: int) -> Iterator[tuple[list[Units], Units]]:
        """All sets of one size, in lots, and what the sets of a lot share."""
        if not self.removal.near or (size > 2 and len(self.units) <= EXHAUSTIVE):
            every = combinations(self.order, size)
            while lot := list(islice(every, _LOT)):
                yield lot, ()
            return
        for places in combinations(range(len(self.order) - 1), size - 1):
            shared = tuple(self.order[p] for p in places)
            yield [(*shared, u) for u in self.order[places[-1] + 1 :]], shared


def _record(
    explanation: Explanation, removal: Removal, best: Units, search: _Search
) -> Counterfactual:
    """The counterfactual, its logit recomputed from the remaining text alone."""
    units = tuple(sorted(best, key=lambda unit: removal.units[unit][0]))
    text = removal.without(units)
    logits = explanation.bundle.logits([text])
    c = explanation.classes.index(explanation.label)
    return Counterfactual(
        tuple(removal.name(unit) for unit in units),
        removal.spans(units),
        text,
        float(logits[0, explanation.output]),
        float(shares_of(logits)[0, c]),
        explanation.classes[int(winners(logits)[0])],
        search.proved,
        len(units) if search.proved else search.at_least,
        search.tried,
    )
