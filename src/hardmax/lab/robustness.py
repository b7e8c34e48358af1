"""The classifier under heads, learned scores and normalisations: accuracy and clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hardmax._errors import InputError
from hardmax._types import Bools, Floats, Ints
from hardmax.dynamics.attend import mean_of
from hardmax.dynamics.layer import NORMALIZATIONS, step
from hardmax.estimators.classifier import HardmaxClassifier
from hardmax.learn import data
from hardmax.select import Chosen, select

__all__ = ["GRID", "SHOWN", "measure_classifier"]

GRID: dict[str, Any] = {
    "data": "corpus",
    "heads": [1, 2, 8],
    "A": ["identity", "learned"],
    "normalization": list(NORMALIZATIONS),
    "dim": 16,
    "depth": 2,
    "ngrams": 3,
    "texts": 0,
}
"""The settings of the check; `texts` limits each part, 0 takes all."""
SHOWN = ("accuracy", "refitted", "followed", "settled")
_WHOLE = {"heads": 1, "dim": 1, "depth": 0, "ngrams": 1, "texts": 0}


def measure_classifier(
    params: Mapping[str, Any], seed: int, draws: Sequence[int]
) -> list[dict[str, Any]]:
    """Train a classifier per draw, and look at its layers under a normalisation.

    Returns
    -------
    list of dict
        `accuracy` of the trained model on the test texts (it is trained with
        "rescale", and None for other normalisations); `refitted`: that of a logistic
        regression on the mean of the last tokens, fitted on the training texts, which
        all normalisations have; and over the test texts `tokens` (distinct ones per
        text), `leaders` (per text and head, alone in their own set at the last layer),
        `followed` (chosen tokens as a share of all), `settled` (share of texts in which
        every token chooses one leader).
    """
    settings = _checked(params)
    return [_one(settings, seed, draw) for draw in draws]


def _checked(params: Mapping[str, Any]) -> dict[str, Any]:
    unknown = [name for name in params if name not in GRID]
    if unknown:
        raise InputError(
            f"{unknown[0]!r} is no setting of this check. Known are {', '.join(GRID)}."
        )
    found = {**{k: v for k, v in GRID.items() if not isinstance(v, list)}, **params}
    words = {"data": ("corpus", "imdb"), "A": ("identity", "learned")}
    for name, known in {**words, "normalization": NORMALIZATIONS}.items():
        if found.setdefault(name, known[0]) not in known:
            raise InputError(f"`{name}` must be one of {', '.join(known)}; got {found[name]!r}.")
    for name, least in _WHOLE.items():
        value = found.setdefault(name, 1)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"`{name}` must be a whole number >= {least}; got {value!r}.")
    return found


@lru_cache(maxsize=2)
def _texts(source: str, limit: int) -> tuple[list[str], list[str], list[str], list[str]]:
    """Training texts and labels, test texts and labels; balanced starts when limited."""
    parts: list[list[str]] = []
    for part in ("train", "test"):
        x, y = data.corpus(part) if source == "corpus" else data.imdb("official", part)
        texts, labels = list(x), list(y)
        if limit and limit < len(texts):
            order = np.random.default_rng(0).permutation(len(texts))[:limit]
            texts, labels = [texts[k] for k in order], [labels[k] for k in order]
        parts += [texts, labels]
    return parts[0], parts[1], parts[2], parts[3]


@lru_cache(maxsize=2)
def _trained(
    source: str, limit: int, heads: int, A: str, dim: int, depth: int, ngrams: int, seed: int
) -> tuple[HardmaxClassifier, float]:
    """A model and its accuracy on the test texts; normalisations share it."""
    x, y, test, labels = _texts(source, limit)
    model = HardmaxClassifier(
        dim, heads, depth, ngrams, random_state=seed, members=1, A=None if A == "identity" else A
    ).fit(x, y)
    return model, float(model.score(test, labels))


def _one(settings: Mapping[str, Any], seed: int, draw: int) -> dict[str, Any]:
    s = settings
    own = 1000 * seed + draw
    model, accuracy = _trained(
        s["data"], s["texts"], s["heads"], s["A"], s["dim"], s["depth"], s["ngrams"], own
    )
    x, y, test, labels = _texts(s["data"], s["texts"])
    fit, _ = _pooled(model, x, s["normalization"])
    features, seen = _pooled(model, test, s["normalization"])
    decoder = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    refitted = float(decoder.fit(fit, y).score(features, labels))
    own_way = s["normalization"] == "rescale"
    return {"accuracy": accuracy if own_way else None, "refitted": refitted, **seen.mean()}


@dataclass
class _Seen:
    """What is counted at the last layer, per text."""

    tokens: Floats
    leaders: Floats
    followed: Floats
    settled: Bools

    def mean(self) -> dict[str, float]:
        return {
            "tokens": float(self.tokens.mean()),
            "leaders": float(self.leaders.mean()),
            "followed": float(self.followed.mean()),
            "settled": float(self.settled.mean()),
        }


def _pooled(model: HardmaxClassifier, texts: Sequence[str], kind: str) -> tuple[Floats, _Seen]:
    """The mean of the last tokens of each text, and what was chosen; in lots of texts."""
    rows, parts = [], []
    for low in range(0, len(texts), 512):
        pooled, seen = _layers(model, texts[low : low + 512], kind)
        rows.append(pooled)
        parts.append(seen)
    names = ("tokens", "leaders", "followed", "settled")
    joined = _Seen(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))
    return np.concatenate(rows), joined


def _layers(model: HardmaxClassifier, texts: Sequence[str], kind: str) -> tuple[Floats, _Seen]:
    tokens = model.vocabulary_.encode(texts, sentences=False)
    net = model.model_
    weights = torch.from_numpy(tokens.counts.astype(np.float64))
    cuts = np.unique(tokens.offsets)  # without the texts that hold no known word
    z = net.E.detach()[torch.from_numpy(tokens.ids.astype(np.int64))].double()
    scores, heads = net.scores(), net.heads
    gamma = net.gamma.detach().double().repeat_interleave(z.shape[1] // heads)
    size = torch.diag(gamma if kind == "rescale" else gamma / (1 - gamma))
    found: list[Chosen] = []
    for _ in range(max(net.depth, 1)):
        blocks = z.chunk(heads, dim=1)
        found = [
            select(x, None if scores is None else scores[h], cuts, tie_tol=net.tie_tol)
            for h, x in enumerate(blocks)
        ]
        if net.depth == 0:
            break
        means = [mean_of(x, c, weights) for x, c in zip(blocks, found, strict=True)]
        z = step(z, torch.cat(means, dim=1), size, kind)
    text = np.repeat(np.arange(len(texts)), np.diff(tokens.offsets))
    total = np.bincount(text, weights=tokens.counts, minlength=len(texts))
    pooled = np.zeros((len(texts), z.shape[1]))
    np.add.at(pooled, text, (z * weights[:, None]).numpy())
    seen = _count(found, text, len(texts))
    return pooled / np.maximum(total, 1)[:, None], seen


def _count(found: Sequence[Chosen], text: Ints, texts: int) -> _Seen:
    """Distinct tokens, leaders, chosen tokens and settled texts, averaged over the heads."""
    tokens = np.bincount(text, minlength=texts)
    leaders, followed = np.zeros(texts), np.zeros(texts)
    settled = np.ones(texts, dtype=bool)
    for chosen in found:
        goal = chosen.indices[chosen.indptr[:-1]]
        single = chosen.counts == 1
        leads = single & (goal == np.arange(len(goal)))
        leaders += np.bincount(text[leads], minlength=texts)
        followed += np.bincount(text[np.unique(chosen.indices)], minlength=texts)
        settled[text[~(single & leads[goal])]] = False
    some = np.maximum(tokens, 1)
    return _Seen(
        tokens.astype(np.float64), leaders / len(found), followed / len(found) / some, settled
    )
