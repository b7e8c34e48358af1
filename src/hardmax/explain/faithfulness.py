"""How far a ranking of words agrees with what the model does without them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Bools, Floats
from hardmax.explain.bundle import bundle_of, shares_of
from hardmax.explain.contributions import explain
from hardmax.explain.explanation import Explanation
from hardmax.explain.ranking import RANKINGS, removal_effects
from hardmax.io import plain

__all__ = ["SHARES", "Faithfulness", "faithfulness", "random_scores"]

SHARES = (0.01, 0.05, 0.10, 0.20, 0.50)
"""The shares of the words that comprehensiveness and sufficiency remove and keep."""
_STEPS = 20

Scorer = Callable[[Explanation], Floats]


@dataclass(frozen=True)
class Faithfulness:
    """Figures of one ranking, means over the texts.

    Attributes
    ----------
    method : str
    texts : int
    comprehensiveness : float
        Probability of the predicted class less that without the highest words,
        mean over shares of 1, 5, 10, 20 and 50 % of the distinct words; larger is better.
    sufficiency : float
        The same less that of the highest words alone; smaller is better.
    deletion, insertion : float
        Mean probability while words are removed, or put in, highest first; smaller,
        and larger, is better.
    agreement : float
        Kendall's tau-b with the effects of leaving out one word.
    stability : float
        Kendall's tau-b between two runs; 1 when they are the same.
    identical : bool
        Whether the scores of both runs are equal on every text that was scored twice.
    seconds : float
        Processor time per explanation from the text on, median over the texts.
    """

    method: str
    texts: int
    comprehensiveness: float
    sufficiency: float
    deletion: float
    insertion: float
    agreement: float
    stability: float
    identical: bool
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON data."""
        return dict(plain({name: getattr(self, name) for name in self.__dataclass_fields__}))


def random_scores(seed: int = 0) -> Scorer:
    """Scores drawn at random, another time on every call."""
    rng = np.random.default_rng(seed)
    return lambda explanation: rng.standard_normal(len(explanation.removal))


def faithfulness(
    source: Any,
    texts: Sequence[str],
    methods: Mapping[str, Scorer] | None = None,
    *,
    seed: int = 0,
    again: int = 1,
    progress: Callable[[int], None] | None = None,
) -> tuple[Faithfulness, ...]:
    """Compare rankings of the distinct words of texts on the same model.

    Parameters
    ----------
    source : fitted classifier or Bundle
    texts : sequence of str
        Texts with fewer than two known words are left out.
    methods : mapping of names to functions, optional
        Each takes an `Explanation` and gives one score per unit of its `removal`,
        larger for words that speak more for `explanation.label`.  By default those of
        `RANKINGS` and random scores; "removal" is leaving out one word.
    seed : int
        Of the random scores.
    again : int
        Every so many texts one is scored twice, for the stability.
    progress : function, optional
        Called with the number of texts done.

    Returns
    -------
    tuple of Faithfulness
        One per method, in the order given.

    Raises
    ------
    InputError
        If no text has two known words.
    """
    if again < 1:
        raise InputError(f"`again` must be >= 1; got {again}.")
    bundle = bundle_of(source)
    named = dict(methods or {**RANKINGS, "random": random_scores(seed)})
    rows: dict[str, list[list[float]]] = {name: [] for name in named}
    for done, text in enumerate(texts):
        try_ = explain(bundle, text)
        if len(try_.removal) < 2:
            continue
        prediction = None if len(bundle.classes) == 2 else try_.prediction
        truth = _toward(try_, removal_effects(try_))
        for name, score in named.items():
            rows[name].append(_measure(try_, score, prediction, truth, done % again == 0))
        if progress is not None:
            progress(done + 1)
    if not rows[next(iter(rows))]:
        raise InputError("expected a text with at least two known words, got none.")
    return tuple(_figures(name, np.array(values)) for name, values in rows.items())


def _toward(explanation: Explanation, scores: Floats) -> Floats:
    """Scores for the predicted class instead of `label`."""
    return np.asarray(scores if explanation.prediction == explanation.label else -scores)


def _measure(
    explanation: Explanation, score: Scorer, label: Any, truth: Floats, twice: bool
) -> list[float]:
    """The figures of one method on one text; NaN for the stability of one run."""
    runs, seconds = [], []
    for _ in range(2 if twice else 1):
        start = time.process_time()
        one = explain(explanation.bundle, explanation.text, label)
        runs.append(_toward(one, np.asarray(score(one), dtype=np.float64)))
        seconds.append(time.process_time() - start)
    order = np.argsort(-runs[0], kind="stable")
    return [
        *_removals(explanation, order),
        _tau(runs[0], truth),
        _tau(runs[0], runs[1]) if twice else np.nan,
        float(np.array_equal(runs[0], runs[-1])),
        min(seconds),
    ]


def _removals(explanation: Explanation, order: Any) -> tuple[float, float, float, float]:
    """Comprehensiveness, sufficiency, deletion and insertion of one order of units."""
    n = len(order)
    few = [max(1, round(share * n)) for share in SHARES]
    steps = sorted({round(n * k / _STEPS) for k in range(_STEPS + 1)})
    keeps = [_kept(explanation, order[:m], False) for m in few]
    keeps += [_kept(explanation, order[:m], True) for m in few]
    keeps += [_kept(explanation, order[:m], False) for m in steps]
    keeps += [_kept(explanation, order[:m], True) for m in steps]
    shares = shares_of(explanation.removal.logits_of(np.stack(keeps)))
    p = shares[:, explanation.classes.index(explanation.prediction)]
    full = explanation.probabilities[explanation.classes.index(explanation.prediction)]
    a, b = len(few), len(steps)
    return (
        float(full - p[:a].mean()),
        float(full - p[a : 2 * a].mean()),
        float(p[2 * a : 2 * a + b].mean()),
        float(p[2 * a + b :].mean()),
    )


def _kept(explanation: Explanation, units: Any, only: bool) -> Bools:
    """The words that stay when some units go, or when only they stay."""
    removal = explanation.removal
    places = [place for unit in units.tolist() for place in removal.units[unit]]
    keep = np.full(len(removal.names), not only)
    keep[places] = only
    return keep


def _tau(one: Floats, two: Floats) -> float:
    """Kendall's tau-b; 1 for equal scores, 0 where one of them is constant."""
    from scipy.stats import kendalltau

    if np.array_equal(one, two):
        return 1.0
    if np.ptp(one) == 0 or np.ptp(two) == 0:
        return 0.0
    return float(kendalltau(one, two).statistic)


def _figures(name: str, values: Floats) -> Faithfulness:
    a, b, c, d, e = values[:, :5].mean(axis=0).tolist()
    f = float(np.nanmean(values[:, 5]))
    same, seconds = bool((values[:, 6] == 1).all()), float(np.median(values[:, 7]))
    return Faithfulness(name, len(values), a, b, c, d, e, f, same, seconds)
