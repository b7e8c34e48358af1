"""The whole model at a glance: who leads, how often, in which class, with what valence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Array, Bools, Floats, Ints
from hardmax.explain._births import find_births
from hardmax.explain.bundle import Bundle, bundle_of, shares_of, winners
from hardmax.explain.contributions import valences
from hardmax.io import plain
from hardmax.select.threads import in_threads
from hardmax.tokens.batch import Tokens

__all__ = ["LeaderCount", "Overview", "Role", "VocabularyMap", "overview", "vocabulary_map"]

_LOT, _PER_THREAD = 2048, 64


@dataclass(frozen=True)
class LeaderCount:
    """A word that leads: in how many texts, of which predicted class, with what valence.

    `texts` counts a text once however many heads or sentences the word leads in;
    words in one place that lead together count each; `valence` sums over the heads.
    """

    word: str
    texts: int
    by_class: tuple[int, ...]
    valence: float


@dataclass(frozen=True)
class Role:
    """A word whose mean contribution, where it occurs, differs between two classes."""

    word: str
    texts: tuple[int, ...]
    contribution: tuple[float, ...]
    difference: float


@dataclass(frozen=True)
class Overview:
    """What a model does over many texts.

    Attributes
    ----------
    texts : int
    classes : tuple
    predicted : tuple of int
        Texts per predicted class.
    mean_leaders : float
        Leaders per text and head, over the texts that have words.
    leaders : tuple of LeaderCount
        The commonest first.
    roles : tuple of Role
        The words whose contributions differ most between predicted classes.
    least_probability : float
        Texts below this probability of their predicted class were left out.
    """

    texts: int
    classes: tuple[Any, ...]
    predicted: tuple[int, ...]
    mean_leaders: float
    leaders: tuple[LeaderCount, ...]
    roles: tuple[Role, ...]
    least_probability: float

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON data."""
        return dict(plain({name: getattr(self, name) for name in self.__dataclass_fields__}))


@dataclass(frozen=True)
class VocabularyMap:
    """Every token of the vocabulary in the plane of one head, and the decision line.

    The line is <normal, z> + bias = 0: with one head, where a text whose words all
    stood there would be undecided.  With several heads the bias is shared equally.
    """

    words: tuple[str, ...]
    points: Floats
    valence: Floats
    normal: tuple[float, ...]
    bias: float


def vocabulary_map(source: Any, *, head: int = 0, label: Any = None) -> VocabularyMap:
    """Where the words stand in one head, and on which side of the decision line.

    Raises
    ------
    InputError
        If there is no such head, or it has another dimension than two.
    """
    bundle = bundle_of(source)
    model, size = bundle.model, bundle.model.E.shape[1] // bundle.model.heads
    if not 0 <= head < model.heads:
        raise InputError(f"`head` must be 0 to {model.heads - 1}; got {head}.")
    if size != 2:
        raise InputError(
            f"a map needs heads of two coordinates; these have {size}. "
            "Train with dim = 2 * heads, or the preset 'plane'."
        )
    output = _output(bundle, label)
    block = slice(head * size, (head + 1) * size)
    E = model.E.detach().numpy()[:, block].astype(np.float64)
    v = model.v.detach().numpy()[output, block]
    names = bundle.vocabulary.names
    bias = float(model.b.detach()[output]) / model.heads
    return VocabularyMap(names, E, E @ v, tuple(v.tolist()), bias)


def overview(
    source: Any,
    texts: Iterable[str],
    *,
    rows: int = 50,
    least_probability: float = 0.0,
    least_valence: float = 0.0,
    least_texts: int = 5,
    label: Any = None,
    labels: Iterable[Any] | None = None,
) -> Overview:
    """Leaders and roles of words over many texts, which need not fit in memory.

    Parameters
    ----------
    source : fitted classifier or Bundle
    texts : iterable of str
        Of any length.
    rows : int
        How many leaders and roles to list.
    least_probability : float
        Leave out texts whose predicted class has a smaller probability.
    least_valence : float
        Count a leader only where |<v, z> + b / heads| exceeds this in its head.
    labels : sequence, optional
        The true classes; texts whose prediction is another are left out.
    least_texts : int
        A role needs this many texts in each of two classes.
    label : class, optional
        With more than two classes, whose logit valences speak for; the first by default.

    Returns
    -------
    Overview
    """
    bundle = bundle_of(source)
    sums = _Sums(bundle, _output(bundle, label), least_probability, least_valence)
    texts, truth = iter(texts), None if labels is None else iter(labels)
    while part := list(islice(texts, _LOT)):
        right = None if truth is None else _numbers(bundle, list(islice(truth, len(part))), part)
        sums.add(part, right)
    return sums.settle(rows, least_texts)


def _output(bundle: Bundle, label: Any) -> int:
    """Whose logit the valences speak for."""
    if label is not None and label not in bundle.classes:
        names = ", ".join(map(repr, bundle.classes[:8]))
        raise InputError(f"`label` must be one of the classes {names}; got {label!r}.")
    return 0 if len(bundle.classes) == 2 or label is None else bundle.classes.index(label)


def _numbers(bundle: Bundle, labels: list[Any], part: list[str]) -> Ints:
    """Labels as class numbers, one per text."""
    if len(labels) != len(part):
        raise InputError("`labels` must hold one label per text; there are fewer.")
    number = {c: k for k, c in enumerate(bundle.classes)}
    unknown = [label for label in labels if label not in number]
    if unknown:
        raise InputError(f"`labels`: {unknown[0]!r} is none of the classes {bundle.classes[:8]}.")
    return np.array([number[label] for label in labels])


class _Sums:
    """Counts per word and predicted class, over lots of texts."""

    def __init__(self, bundle: Bundle, output: int, probability: float, valence: float) -> None:
        size, classes = len(bundle.vocabulary), len(bundle.classes)
        self.bundle, self.probability = bundle, probability
        self.worth = valences(bundle, np.arange(size), output)
        share = float(bundle.model.b.detach()[output]) / bundle.model.heads
        self.strong = np.abs(self.worth + share) > valence if valence > 0 else None
        self.led = np.zeros((size, classes), dtype=np.int64)
        self.texts = np.zeros((size, classes), dtype=np.int64)
        self.parts = np.zeros((size, classes))
        self.predicted = np.zeros(classes, dtype=np.int64)
        self.leaders, self.filled = 0, 0

    def add(self, part: list[str], right: Ints | None) -> None:
        """Count some texts; with `right`, only those predicted so."""
        model = self.bundle.model
        tokens = self.bundle.encode(part)
        logits = model.logits(tokens)
        classes = winners(logits)
        kept = shares_of(logits).max(axis=1) >= self.probability
        rows = np.flatnonzero(kept if right is None else kept & (classes == right))
        np.add.at(self.predicted, classes[rows], 1)
        run, some = model.run(tokens, rows), tokens.take(rows)
        owner = np.repeat(np.arange(len(rows)), np.diff(run.starts))
        led = self._led(some)
        self.filled += int((np.diff(some.starts) > 0).sum())
        share = (run.u * self.worth[run.ids]).sum(axis=1)
        self._count(run.ids, owner, classes[rows], led, share)

    def _led(self, tokens: Tokens) -> Bools:
        """Which tokens lead in some head."""
        model, cuts = self.bundle.model, tokens.offsets
        born = np.empty((len(tokens.ids), model.heads), dtype=np.int64)
        first = np.empty_like(born)

        def part(low: int, high: int) -> None:
            rows = slice(cuts[low], cuts[high])
            born[rows], places, _ = find_births(
                model.E.detach().numpy(), model.gamma.detach().numpy(), self.bundle.scores(),
                tokens.ids[rows], tokens.counts[rows].astype(np.float64),
                cuts[low : high + 1] - cuts[low], model.depth, model.tie_tol,
            )  # fmt: skip
            first[rows] = np.where(places < 0, -1, places + cuts[low])

        in_threads(part, len(cuts) - 1, _PER_THREAD)
        self.leaders += int((first == np.arange(len(first))[:, None]).sum())
        leads = born >= 0
        if self.strong is not None:
            leads &= self.strong[tokens.ids]
        return np.asarray(leads.any(axis=1))

    def _count(self, ids: Array, owner: Ints, classes: Ints, led: Bools, share: Floats) -> None:
        """Add up by word and class; a word of several sentences counts once per text."""
        keys, back = np.unique(owner * len(self.texts) + ids, return_inverse=True)
        once, text = keys % len(self.texts), keys // len(self.texts)
        leads = np.zeros(len(keys), dtype=bool)
        np.logical_or.at(leads, back, led)
        parts = np.bincount(back, weights=share, minlength=len(keys))
        np.add.at(self.texts, (once, classes[text]), 1)
        np.add.at(self.parts, (once, classes[text]), parts)
        np.add.at(self.led, (once[leads], classes[text[leads]]), 1)

    def settle(self, rows: int, few: int) -> Overview:
        """The lists, the commonest and the most different first."""
        names, worth = self.bundle.vocabulary.names_of, self.worth.sum(axis=1)
        total = self.led.sum(axis=1)
        order = np.lexsort((np.arange(len(total)), -total))[:rows]
        order = order[total[order] > 0]
        counts = tuple(
            LeaderCount(name, int(total[i]), tuple(self.led[i].tolist()), float(worth[i]))
            for name, i in zip(names(order), order.tolist(), strict=True)
        )
        heads = self.bundle.model.heads
        return Overview(
            int(self.predicted.sum()),
            self.bundle.classes,
            tuple(self.predicted.tolist()),
            self.leaders / max(1, self.filled * heads),
            counts,
            self._roles(rows, few),
            self.probability,
        )

    def _roles(self, rows: int, few: int) -> tuple[Role, ...]:
        mean = self.parts / np.maximum(self.texts, 1)
        enough = self.texts >= max(few, 1)
        top = np.where(enough, mean, -np.inf).max(axis=1)
        low = np.where(enough, mean, np.inf).min(axis=1)
        gap = np.where(enough.sum(axis=1) >= 2, top - low, -np.inf)
        order = np.argsort(-gap, kind="stable")[:rows]
        order = order[np.isfinite(gap[order])]
        names = self.bundle.vocabulary.names_of(order)
        return tuple(
            Role(name, tuple(self.texts[i].tolist()), tuple(mean[i].tolist()), float(gap[i]))
            for name, i in zip(names, order.tolist(), strict=True)
        )
