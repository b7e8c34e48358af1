"""What `hardmax demo` shows of texts: a classifier of the shipped reviews, and one explained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from hardmax.estimators.classifier import HardmaxClassifier
from hardmax.explain.counterfactual import Counterfactual
from hardmax.explain.explanation import Explanation
from hardmax.explain.overview import LeaderCount, overview
from hardmax.learn.sources import corpus

__all__ = ["EXAMPLE", "LEAST_TEXTS", "Reviews", "review_classifier"]

EXAMPLE = "Top marks for service."
"""How the explained review begins; it belongs to the test part."""
LEAST_TEXTS = 5
"""A leader is shown when it leads in at least this many of the held-out reviews."""
_SHOWN = 6


@dataclass(frozen=True)
class Reviews:
    """A trained classifier, its accuracy on reviews held out, its leaders, one explanation.

    Attributes
    ----------
    classifier : HardmaxClassifier
        The preset "plane": one head of two coordinates.
    trained, held_out : int
        How many reviews of each part of the corpus.
    accuracy : float
        On the held-out reviews.
    seconds : float
        What the training took.
    leaders : dict of class -> tuple of LeaderCount
        The words that lead in at least `LEAST_TEXTS` held-out reviews and say most for
        the class.
    explanation : Explanation
        Of the held-out review that begins with `EXAMPLE`.
    label : str
        Its true class.
    counterfactual : Counterfactual or None
    """

    classifier: HardmaxClassifier
    trained: int
    held_out: int
    accuracy: float
    seconds: float
    leaders: dict[str, tuple[LeaderCount, ...]]
    explanation: Explanation
    label: str
    counterfactual: Counterfactual | None


def review_classifier(callbacks: Sequence[Callable[[Any], None]] = ()) -> Reviews:
    """Train on the reviews shipped with the package; evaluate and explain on held-out ones.

    Parameters
    ----------
    callbacks
        Each receives a `Progress` after every step of the training.

    Returns
    -------
    Reviews

    Notes
    -----
    The same numbers on every run: the seed is 0, and the parts are fixed in the corpus.
    """
    texts, labels = corpus("train")
    unseen, truth = corpus("test")
    start = perf_counter()
    clf = HardmaxClassifier.from_preset("plane", random_state=0, callbacks=list(callbacks))
    clf.fit(texts, labels)
    seconds = perf_counter() - start
    place = next(i for i, text in enumerate(unseen) if text.startswith(EXAMPLE))
    explanation = clf.explain(unseen[place])
    return Reviews(
        classifier=clf,
        trained=len(texts),
        held_out=len(unseen),
        accuracy=float(clf.score(unseen, truth)),
        seconds=seconds,
        leaders=_leaders(clf, unseen),
        explanation=explanation,
        label=truth[place],
        counterfactual=explanation.counterfactual(),
    )


def _leaders(clf: HardmaxClassifier, texts: Sequence[str]) -> dict[str, tuple[LeaderCount, ...]]:
    """The strongest leaders for each class; the valence speaks for the second."""
    found = overview(clf, texts, rows=len(clf.vocabulary_)).leaders
    often = [leader for leader in found if leader.texts >= LEAST_TEXTS]
    strong = sorted(often, key=lambda leader: (-leader.valence, leader.word))
    against, speaks = clf.classes_.tolist()
    return {speaks: tuple(strong[:_SHOWN]), against: tuple(strong[: -_SHOWN - 1 : -1])}
