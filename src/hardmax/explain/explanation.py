"""`Explanation`: why a text got its logit, as the numbers that were added up."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hardmax._check import check_choice
from hardmax.explain.bundle import Bundle
from hardmax.explain.radius import stability_radius
from hardmax.explain.reading import Sums
from hardmax.explain.trace import Trace, trace
from hardmax.io import plain
from hardmax.tokens.batch import Tokens

if TYPE_CHECKING:
    from pathlib import Path

    from hardmax.explain.counterfactual import Counterfactual
    from hardmax.explain.removal import Removal

__all__ = ["Contribution", "Explanation", "Leader", "Path_", "Step", "WordPlace"]

_FIELDS = (
    "text", "label", "classes", "prediction", "logit", "bias", "probability", "probabilities",
    "contributions", "words", "leaders", "stability_radius", "paths",
)  # fmt: skip
_HALF = re.compile("[\ud800-\udfff]")

PerHead = float | list[float]
"""One number, or with several heads one per head."""


@dataclass(frozen=True)
class Contribution:
    """A distinct token of the text: contribution = influence x valence, summed over heads.

    Attributes
    ----------
    word : str
        A word or n-gram, in its counted form.
    count : int
        How often it occurs.
    influence : float, or list of one per head
        The weight of its first vector in the mean of the last ones: >= 0, and over
        the tokens of the text they sum to one in every head.
    valence : float, or list of one per head
        What the decoder makes of its vector: <v, E(word)>.
    contribution : float
    spans : tuple of (start, stop)
        Where it stands in the text.
    """

    word: str
    count: int
    influence: PerHead
    valence: PerHead
    contribution: float
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class WordPlace:
    """One word as written: `text[start:stop]`, and its part of the contributions.

    A token's contribution is divided equally among its occurrences, and that of an
    n-gram among its words; over the words of a text the parts add up to the same sum.
    """

    word: str
    start: int
    stop: int
    known: bool
    contribution: float


@dataclass(frozen=True)
class Leader:
    """A token that at some layer chose itself alone, in one head of one sequence.

    Attributes
    ----------
    word : str
    born : int
        The first layer at which it did.
    head, sentence : int
        `sentence` counts the sequences that hold words; 0 when words attend to the text.
    members : tuple of str
        The tokens in its place then, itself included.
    followers : int
        Occurrences of other tokens that chose it alone in the last layer.
    influence, valence : float
        In its head, over all its sentences.
    """

    word: str
    born: int
    head: int
    sentence: int
    members: tuple[str, ...]
    followers: int
    influence: float
    valence: float


@dataclass(frozen=True)
class Step:
    """One layer of one word: whom it chose (several when tied), and by what margin.

    The margin is the best score less the best of those not chosen; inf without any.
    """

    layer: int
    follows: tuple[str, ...]
    margin: float


@dataclass(frozen=True)
class Path_:
    """The way of one token through the layers of one head."""

    word: str
    head: int
    sentence: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, eq=False)
class Explanation:
    """A prediction as an exact sum: logit = bias + the contributions.

    Attributes
    ----------
    text : str
    label : class
        The class that the logit speaks for: the second of two, or of several the one
        asked for, by default the predicted one.
    classes : tuple
    prediction : class
    logit, bias : float
    probability : float
        Of `label`.
    probabilities : tuple of float
        In the order of `classes`.
    contributions : tuple of Contribution
        One per distinct token, the largest first.
    words : tuple of WordPlace
        Every word in order, with its place.
    leaders : tuple of Leader
        By head, the most influential first.

    Notes
    -----
    |logit - bias - sum(contributions)| <= 1e-9 max(1, |bias| + sum|contribution|).
    Contributions say what was added up, not what would happen without a word: then
    followers choose again.  `removal_effects` and `counterfactual` answer that.
    """

    text: str
    label: Any
    classes: tuple[Any, ...]
    prediction: Any
    logit: float
    bias: float
    probability: float
    probabilities: tuple[float, ...]
    sums: Sums = field(repr=False)

    @property
    def bundle(self) -> Bundle:
        """The model with its vocabulary and classes."""
        return self.sums.reading.bundle

    @cached_property
    def contributions(self) -> tuple[Contribution, ...]:
        """One per distinct token, the largest first."""
        from hardmax.explain.contributions import contributions_of

        return contributions_of(self.sums)

    @cached_property
    def words(self) -> tuple[WordPlace, ...]:
        """Every word in order, with its place."""
        from hardmax.explain.contributions import places_of

        return places_of(self.sums)

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.bundle.model.heads

    @property
    def depth(self) -> int:
        """The number of layers."""
        return self.bundle.model.depth

    @property
    def output(self) -> int:
        """Which of the model's logits is explained."""
        return 0 if len(self.classes) == 2 else self.classes.index(self.label)

    @cached_property
    def tokens(self) -> Tokens:
        """The text as the model sees it."""
        return self.sums.reading.tokens

    @cached_property
    def trace(self) -> Trace:
        """The text through the layers with everything kept."""
        return trace(self.bundle.model, self.tokens)

    @cached_property
    def leaders(self) -> tuple[Leader, ...]:
        """The tokens that lead, in every head and sentence."""
        from hardmax.explain.contributions import leaders_of

        return leaders_of(self.bundle, self.tokens, self.output)

    @cached_property
    def stability_radius(self) -> float:
        """Every word vector may move by less than this before any choice changes."""
        return stability_radius(self.trace)

    @cached_property
    def paths(self) -> tuple[Path_, ...]:
        """Whom each token chose, layer by layer, in each head."""
        return paths_of(self.bundle, self.trace)

    @cached_property
    def removal(self) -> Removal:
        """The text with its words as removable units."""
        from hardmax.explain.removal import Removal

        return Removal(self.bundle, self.text, read=self.sums.reading.every)

    def removal_effects(self) -> tuple[tuple[str, float], ...]:
        """What each distinct word holds up: its logit less the logit without the word.

        Everything is recomputed without the word: n-grams, choices, layers.  In the
        order of first occurrence.
        """
        from hardmax.explain.ranking import removal_effects

        effects = removal_effects(self)
        return tuple((self.removal.name(u), float(x)) for u, x in enumerate(effects))

    def ranking(self, by: str = "peeled") -> tuple[tuple[str, float], ...]:
        """The distinct words by how much they speak for `label`, the most first.

        Parameters
        ----------
        by : "peeled", "joint", "removal" or "contribution"
            See `hardmax.explain.ranking`; all but the last know that followers choose
            again when words go.
        """
        from hardmax.explain.ranking import RANKINGS

        scores = RANKINGS[check_choice(by, "by", tuple(RANKINGS))](self)
        order = np.argsort(-scores, kind="stable").tolist()
        return tuple((self.removal.name(u), float(scores[u])) for u in order)

    def counterfactual(
        self, among: str = "words", *, by: str = "words", work: int | None = None
    ) -> Counterfactual | None:
        """The smallest set of words found whose removal changes the prediction.

        See `hardmax.explain.counterfactual.find_counterfactual`.
        """
        from hardmax.explain.counterfactual import WORK, find_counterfactual

        return find_counterfactual(self, among, by=by, work=WORK if work is None else work)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON data; an infinite margin or radius is the text "inf".

        Halves of surrogate pairs, which no other program could read, become U+FFFD.
        """
        data = plain({name: getattr(self, name) for name in _FIELDS})
        return dict(_paired(data))

    def to_html(self, path: Any, *, force: bool = False) -> Path:
        """Write a page that works from a file, without a network; see `explain.report`."""
        from hardmax.explain.report import report
        from hardmax.io import write_text

        return write_text(path, report(self), force=force)

    def to_gif(self, path: Any, *, head: int = 0, force: bool = False) -> Path:
        """Write an animation of the words of one head on their way to their leaders."""
        from hardmax.explain.scenes import save_gif
        from hardmax.io import write_with

        return write_with(path, lambda file: save_gif(self, file, head), force=force)

    def _repr_html_(self) -> str:
        """The shaded text and the largest contributions, for a notebook."""
        from hardmax.explain.report import fragment

        return fragment(self)


def _paired(data: Any) -> Any:
    """JSON data without halves of surrogate pairs; places stay where they are."""
    if isinstance(data, str):
        return _HALF.sub("\ufffd", data)
    if isinstance(data, list):
        return [_paired(item) for item in data]
    if isinstance(data, dict):
        return {key: _paired(item) for key, item in data.items()}
    return data


def paths_of(bundle: Bundle, trace: Trace) -> tuple[Path_, ...]:
    """The path of every token in every head."""
    names = bundle.vocabulary.names_of(trace.tokens.ids)
    sentence = sentences_of(trace).tolist()
    out = []
    for h in range(trace.heads):
        margins = [trace.margins(k, h).tolist() for k in range(trace.depth)]
        rows = [trace.chosen[k][h] for k in range(trace.depth)]
        for i, name in enumerate(names):
            steps = tuple(
                Step(k, tuple(names[j] for j in rows[k].row(i)), margins[k][i])
                for k in range(trace.depth)
            )
            out.append(Path_(name, h, sentence[i], steps))
    return tuple(out)


def sentences_of(trace: Trace) -> Any:
    """The number of the sequence of each token, among those that hold tokens."""
    cuts = trace.cuts
    return np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
