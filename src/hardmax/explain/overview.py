"""The whole model at a glance: who leads, how often, in which class, with what valence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numba import njit

from hardmax._errors import InputError
from hardmax._types import Array, Bools, Floats, Ints
from hardmax.explain.bundle import Bundle, bundle_of, shares_of, winners
from hardmax.explain.contributions import valences
from hardmax.io import plain
from hardmax.select.ragged import TIED, asks_of, choose_between, score_of

__all__ = ["LeaderCount", "Overview", "Role", "VocabularyMap", "overview", "vocabulary_map"]

_LOT = 2048


@dataclass(frozen=True)
class LeaderCount:
    """A word that leads: in how many texts, of which predicted class, with what valence.

    `texts` counts a text once however many heads or sentences the word leads in;
    `valence` sums over the heads.
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
    output = 0 if len(bundle.classes) == 2 or label is None else bundle.classes.index(label)
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
        Count only leaders with |valence| of at least this.
    least_texts : int
        A role needs this many texts in each of two classes.
    label : class, optional
        With more than two classes, whose logit valences speak for; the first by default.

    Returns
    -------
    Overview
    """
    bundle = bundle_of(source)
    output = 0 if len(bundle.classes) == 2 or label is None else bundle.classes.index(label)
    sums = _Sums(bundle, output)
    worth = valences(bundle, np.arange(len(bundle.vocabulary)), output)
    source_texts = iter(texts)
    while part := list(islice(source_texts, _LOT)):
        sums.add(part, worth, least_probability)
    return sums.settle(worth.sum(axis=1), rows, least_probability, least_valence, least_texts)


class _Sums:
    """Counts per word and predicted class, over lots of texts."""

    def __init__(self, bundle: Bundle, output: int) -> None:
        size, classes = len(bundle.vocabulary), len(bundle.classes)
        self.bundle, self.output = bundle, output
        self.led = np.zeros((size, classes), dtype=np.int64)
        self.texts = np.zeros((size, classes), dtype=np.int64)
        self.parts = np.zeros((size, classes))
        self.predicted = np.zeros(classes, dtype=np.int64)
        self.leaders, self.filled = 0, 0

    def add(self, part: list[str], worth: Floats, least: float) -> None:
        """Count some texts."""
        model = self.bundle.model
        tokens = self.bundle.encode(part)
        logits = model.logits(tokens)
        classes = winners(logits)
        rows = np.flatnonzero(shares_of(logits).max(axis=1) >= least)
        np.add.at(self.predicted, classes[rows], 1)
        run = model.run(tokens, rows)
        led = np.zeros(len(run.ids), dtype=np.bool_)
        some = tokens.take(rows)
        self.leaders += int(
            _leads(
                model.E.detach().numpy(), model.gamma.detach().numpy(), some.ids,
                some.counts.astype(np.float64), some.offsets, model.depth, model.tie_tol,
                np.zeros((model.heads, 0, 0)) if model.A is None else model.scores(), led,
            )
        )  # fmt: skip
        self.filled += int((np.diff(some.starts) > 0).sum())
        share = (run.u * worth[run.ids]).sum(axis=1)
        owner = np.repeat(np.arange(len(rows)), np.diff(run.starts))
        self._count(run.ids, owner, classes[rows], led, share)

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

    def settle(
        self, worth: Floats, rows: int, least_probability: float, least_valence: float, few: int
    ) -> Overview:
        """The lists, the commonest and the most different first."""
        names = self.bundle.vocabulary.names
        total = np.where(np.abs(worth) >= least_valence, self.led.sum(axis=1), 0)
        order = np.lexsort((np.arange(len(total)), -total))[:rows]
        counts = tuple(
            LeaderCount(names[i], int(total[i]), tuple(self.led[i].tolist()), float(worth[i]))
            for i in order.tolist()
            if total[i]
        )
        heads = self.bundle.model.heads
        return Overview(
            int(self.predicted.sum()),
            self.bundle.classes,
            tuple(self.predicted.tolist()),
            self.leaders / max(1, self.filled * heads),
            counts,
            self._roles(names, rows, few),
            least_probability,
        )

    def _roles(self, names: tuple[str, ...], rows: int, few: int) -> tuple[Role, ...]:
        mean = self.parts / np.maximum(self.texts, 1)
        enough = self.texts >= max(few, 1)
        top = np.where(enough, mean, -np.inf).max(axis=1)
        low = np.where(enough, mean, np.inf).min(axis=1)
        gap = np.where(enough.sum(axis=1) >= 2, top - low, -np.inf)
        order = np.argsort(-gap, kind="stable")[:rows]
        return tuple(
            Role(names[i], tuple(self.texts[i].tolist()), tuple(mean[i].tolist()), float(gap[i]))
            for i in order.tolist()
            if np.isfinite(gap[i])
        )


@njit(nogil=True, cache=True)
def _same(z: Array, i: int, j: int) -> bool:
    """Whether two tokens stand in one place."""
    same = True
    for c in range(z.shape[0]):
        same &= z[c, i] == z[c, j]
    return same


@njit(nogil=True, cache=True)
def _alone(z: Array, q: Array, at: Ints, top: Array, slack: Array, led: Bools, known: Bools) -> int:
    """Mark the words that newly lead: a class of equal tokens chosen by itself alone.

    A class with a member that has led before is the same leader; how many are new.
    """
    n, found = z.shape[1], 0
    some = np.empty(n, np.int64)
    for i in range(n):
        if at[i] == i:
            found += 0 if known[i] else 1
            led[i] |= not known[i]
            known[i] = True
        if at[i] != TIED:
            continue
        m, pure, old = 0, True, False
        for j in range(n):
            if score_of(q, z, i, j) < top[i] - slack[i]:
                continue
            pure &= _same(z, i, j) and (m > 0 or j == i)  # the first member speaks for all
            old |= known[j]
            some[m] = j
            m += 1
        for r in range(m if pure else 0):
            led[some[r]] |= not old
            known[some[r]] = True
        found += 1 if pure and not old else 0
    return found


@njit(nogil=True, cache=True)
def _leads(
    E: Array, gamma: Floats, ids: Array, counts: Array, offsets: Ints, depth: int, tol: float,
    A: Array, led: Bools,
) -> int:  # fmt: skip
    """Mark the tokens that lead in some head; how many leaders there are, heads apart."""
    found, size = 0, E.shape[1] // len(gamma)
    for s in range(len(offsets) - 1):
        a, n = offsets[s], offsets[s + 1] - offsets[s]
        if n == 0:
            continue
        at, top, slack = np.empty(n, np.int64), np.empty(n), np.empty(n)
        hidden = np.zeros(n, np.bool_)
        for h in range(len(gamma)):
            z = np.empty((size, n))
            for i in range(n):
                for c in range(size):
                    z[c, i] = E[ids[a + i], h * size + c]
            fresh = np.zeros(n, np.bool_)
            for k in range(depth + 1):
                q = asks_of(z, A[h]) if len(A[h]) else z
                choose_between(z, q, hidden, n, tol, at, top, slack)
                found += _alone(z, q, at, top, slack, led[a : a + n], fresh)
                if k < depth:
                    z = _moved(z, q, at, top, slack, counts[a : a + n], gamma[h])
    return found


@njit(nogil=True, cache=True)
def _moved(
    z: Array, q: Array, at: Ints, top: Array, slack: Array, counts: Array, gamma: float
) -> Array:
    """The tokens of one head after one layer."""
    d, n = z.shape
    out = np.empty((d, n))
    for i in range(n):
        for c in range(d):
            goal = z[c, max(at[i], 0)]
            if at[i] == TIED:
                goal, total = 0.0, 0.0
                for j in range(n):
                    if score_of(q, z, i, j) >= top[i] - slack[i]:
                        goal += counts[j] * z[c, j]
                        total += counts[j]
                goal /= total
            out[c, i] = z[c, i] + gamma * (goal - z[c, i])
    return out
