"""The table of leaders and the histogram of leader words, over all 15,000 test reviews."""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np

from hardmax._types import Bools
from hardmax.lab.papers.outcome import Comparison, Context, Outcome, claim, near, same, unknown
from hardmax.lab.papers.reviews import PaperReviews
from hardmax.lab.papers.training import DIMS, SHARED, fitting, reviews, trained
from hardmax.learn.paper import PaperModel
from hardmax.learn.paper_leaders import (
    TextLeaders,
    histogram,
    leaders_by_birth,
    leaders_by_code,
    summary,
)
from hardmax.learn.paper_weights import read_weights
from hardmax.plot import papers as draw
from hardmax.plot.figures import save_figure

__all__ = ["PUBLISHED_BARS", "leader_table", "leader_words"]

_SOURCE = "arXiv 2407.01602, table of leaders and histogram; its notebook"
PUBLISHED_BARS = {
    "great": 1247, "worst": 677, "waste": 670, "love": 561, "awful": 532, "money": 457,
    "year": 414, "amazing": 391, "boring": 380, "perfect": 335, "left": 308, "enjoyed": 293,
    "people": 273, "found": 250, "poor": 244,
}  # fmt: skip
"""Heights of the bars in the authors' figure."""
_WEAK = ("money", "boring")
"""Their words with |<v, z> + b| below 2.8: counted once in the figure."""
_CONFIDENCE = 0.95


def leader_table(context: Context) -> Outcome:
    """Leaders per review for every size: by the notebook's rule, and as classes with a birth."""
    data = reviews(context)
    test = _test_rows(context, data)
    tables: dict[str, Any] = {}
    for k, dim in enumerate(DIMS):
        model = fitting(trained(dim, context).model, data)
        context.progress("counting leaders", k, len(DIMS))
        tables[str(dim)] = _both(model, test)
    comparisons: list[Comparison] = [
        unknown(f"d = {dim}: leaders per review, and the share that lead from the start",
                {key: round(value, 3) for key, value in tables[str(dim)]["code"].items()},
                "the repository holds neither the table nor the weights for it")
        for dim in DIMS
    ]  # fmt: skip
    gaps = {d: abs(t["code"]["average"] - t["birth"]["average"]) for d, t in tables.items()}
    comparisons.append(
        claim("both rules count the same leaders, on average", max(gaps.values()) <= 0.05, gaps,
              rule="averages at most .05 apart", exact=False)
    )  # fmt: skip
    if context.weights is not None:
        theirs = fitting(read_weights(context.weights), data)
        tables["authors' weights"] = _both(theirs, data.ids[data.train :])
        comparisons.append(
            unknown(f"d = {theirs.settings.dim}: the same with the authors' own weights",
                    tables["authors' weights"]["code"], "the table's numbers are not stored")
        )  # fmt: skip
    shown = {key: table for key, table in tables.items() if key.isdigit()}

    def picture(file: BinaryIO) -> None:
        save_figure(draw.draw_counts(shown), file, "png")

    return Outcome(
        "leaders", "Leaders per review, d = 2, 4, 8, 16", _SOURCE, context, tuple(comparisons),
        {"reviews": len(test), "tables": tables}, {"leaders.png": picture},
        (*SHARED, *_TABLE),
    )  # fmt: skip


_TABLE = (
    (
        "The notebook's cell loads files for epoch 2 that are not in the repository; here the "
        "weights of the last epoch are used."
    ),
    (
        "Its loop makes depth + 1 = 9 updates before the last count; the rule 'code' does so too. "
        "The rule 'birth' follows the 8 layers of the model and counts classes of equal words that "
        "were strictly alone in their chosen set at some layer."
    ),
)


def _test_rows(context: Context, data: PaperReviews) -> Any:
    rows = data.ids[data.train :]
    return rows[:2000] if context.short else rows


def _both(model: PaperModel, rows: Any) -> dict[str, Any]:
    rules = {"code": leaders_by_code, "birth": leaders_by_birth}
    return {name: summary(rule(model, rows)) for name, rule in rules.items()}


def leader_words(context: Context) -> Outcome:
    """Words that lead in confidently and rightly classified test reviews, d = 2."""
    data = reviews(context)
    model = fitting(trained(2, context).model, data)
    ours = _count(model, data)
    comparisons: list[Comparison] = []
    theirs = None
    if context.weights is not None:
        theirs = _count(fitting(read_weights(context.weights), data), data)
        comparisons = _against(dict(theirs["all words"]), theirs, data)
    comparisons.append(_overlap(ours, context))
    numbers = {"trained here": _said(ours), "authors' weights": theirs and _said(theirs),
               "published": PUBLISHED_BARS}  # fmt: skip
    bars = (theirs or ours)["top"] or ours["any confidence"]

    def picture(file: BinaryIO) -> None:
        save_figure(draw.draw_bars(bars, PUBLISHED_BARS if theirs else None), file, "png")

    return Outcome(
        "histogram", "Words that lead, d = 2", _SOURCE, context, tuple(comparisons), numbers,
        {"histogram.png": picture}, (*SHARED, *_BARS),
    )  # fmt: skip


_BARS = (
    (
        "With the authors' own weights the counts of 'money' and 'boring' are exactly those of the "
        "figure, and every other bar is higher there by about the same factor. These two are the "
        "only words whose decoder value lies between 2 and 4, so the figure looks like a full "
        "pass added to part of an earlier one with a higher limit: the notebook's list of leaders "
        "is not emptied when its counting cell is run again."
    ),
    "The rule is the notebook's: 9 updates, first index, confidence .95, |<v, z> + b| > 2.",
)


def _count(model: PaperModel, data: PaperReviews) -> dict[str, Any]:
    rows, truth = data.ids[data.train :], data.labels[data.train :] == 1
    p = 1 / (1 + np.exp(-model.logits(rows)))
    right: Bools = (p > 0.5) == truth
    sure: Bools = right & (np.maximum(p, 1 - p) > _CONFIDENCE)
    found = leaders_by_code(model, rows)
    v, b = model.v.detach().numpy(), float(model.b.detach())
    value = {data.words[k]: float(x @ v + b) for k, x in enumerate(model.E.detach().numpy())}
    return {
        "confident": int(sure.sum()),
        "top": _words(found, rows, sure, data, 15),
        "any confidence": _words(found, rows, right, data, 15, least=0.0),
        "all words": _words(found, rows, sure, data, len(data.words)),
        "value": {word: value.get(word) for word in PUBLISHED_BARS},
    }


def _words(
    found: TextLeaders, rows: Any, chosen: Bools, data: PaperReviews, top: int, least: float = 2.0
) -> list[tuple[str, int]]:
    counts = histogram(found, rows, chosen, least=least, top=top)
    return [(data.words[k], count) for k, count in counts]


def _said(count: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in count.items() if key != "all words"}


def _against(
    counts: dict[str, int], theirs: dict[str, Any], data: PaperReviews
) -> list[Comparison]:
    """The figure's bars beside counts from the authors' weights."""
    found = [
        same(f"'{word}' with the authors' weights", PUBLISHED_BARS[word], counts.get(word, 0),
             why="counted once", exact=data.exact)
        for word in _WEAK
    ]  # fmt: skip
    rest = [word for word in PUBLISHED_BARS if word not in _WEAK]
    ratios = {word: PUBLISHED_BARS[word] / max(counts.get(word, 0), 1) for word in rest}
    found += [
        near(f"'{word}' with the authors' weights", PUBLISHED_BARS[word], counts.get(word, 0), 0)
        for word in rest
    ]
    share = float(np.mean(list(ratios.values()))) - 1
    expected = {w: counts.get(w, 0) for w in rest}
    chi = sum(
        (PUBLISHED_BARS[w] - n - share * n) ** 2 / (n * share * (1 - share))
        for w, n in expected.items()
        if n
    )
    found.append(
        claim("the other bars are one pass and the same share of another",
              bool(0 < share < 1 and chi < 22.4), {"share": share, "chi-square, 12 degrees": chi},
              rule="chi-square below 22.4, its 97 % point", exact=False)
    )  # fmt: skip
    return found


def _overlap(ours: dict[str, Any], context: Context) -> Comparison:
    words = [word for word, _ in ours["top"]]
    both = sorted(set(words) & set(PUBLISHED_BARS))
    if context.short or not words:
        return unknown("words of the figure among the 15 most frequent here", both,
                       "one epoch makes no confident predictions: full form", 15)  # fmt: skip
    return near("words of the figure among the 15 most frequent here", 15, len(both), 8,
                why="another training; at least 7 of 15")  # fmt: skip
