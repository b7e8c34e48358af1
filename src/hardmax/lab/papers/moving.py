"""Two test reviews on their way through the layers, d = 2, as pictures and animations."""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np

from hardmax._types import Array, Floats
from hardmax.analysis.equilibrium import equilibrium
from hardmax.dynamics.run import simulate
from hardmax.lab.papers.outcome import Comparison, Context, Outcome, claim, near, same, unknown
from hardmax.lab.papers.reviews import PaperReviews
from hardmax.lab.papers.training import SHARED, fitting, reviews, trained
from hardmax.learn.paper import PaperModel
from hardmax.learn.paper_leaders import leaders_by_code
from hardmax.learn.paper_weights import read_weights
from hardmax.plot import papers as draw
from hardmax.plot.figures import save_figure, save_gif
from hardmax.plot.scene import scene_of

__all__ = ["moving_reviews"]

_SOURCE = "arXiv 2407.01602, figures of two reviews and their animations"
_LAYERS = (0, 1, 2, 8)
_STATED: dict[str, dict[str, Any]] = {
    "positive": {
        "words": ("amazing", "get", "time", "torture"), "distinct": 89,
        "values": {"amazing": 29.9, "get": -1.9, "torture": -22.6, "time": 0.3},
    },
    "negative": {
        "words": ("Avoid", "dark", "issue", "perfect"), "distinct": 103,
        "values": {"dark": 0.9, "perfect": 25.4, "issue": 2.4, "Avoid": -57.2},
    },
}  # fmt: skip
"""What the authors' pictures show: the leaders, distinct words, and decoder values."""


def moving_reviews(context: Context) -> Outcome:
    """One positive and one negative review, layer by layer."""
    data = reviews(context)
    theirs = context.weights is not None
    model = read_weights(context.weights) if context.weights else trained(2, context).model
    fitting(model, data)
    picked = _named(model, data) if theirs else _surest(model, data)
    comparisons: list[Comparison] = []
    shown: dict[str, Any] = {}
    pictures: dict[str, Any] = {}
    for kind, row in picked.items():
        if row is None or float(model.alpha.detach()) <= 0:
            comparisons.append(unknown(f"{kind} review", None, "not found with these weights"))
            continue
        one = _review(model, data, row, kind)
        comparisons += _compare(kind, one, context, exact=data.exact)
        shown[kind] = {key: value for key, value in one.items() if key != "scene"}
        pictures[f"reviews-{kind}.gif"] = _gif(one["scene"])
        shown[kind]["scene"] = one["scene"].to_dict()
        pictures[f"reviews-{kind}.png"] = _panels(one)
    return Outcome(
        "reviews", "Two reviews through the layers", _SOURCE, context, tuple(comparisons), shown,
        pictures, (*SHARED, *_CHOICE),
    )  # fmt: skip


_CHOICE = (
    (
        "The authors draw the eleventh of the shuffled reviews that are right with confidence "
        ".999. Without their weights the surest review of each kind is drawn; with them the very "
        "reviews of the paper are found by their leaders."
    ),
    "Leader words stand beside their stars; other words are not written.",
)


def _gif(scene: Any) -> Any:
    return lambda file: save_gif(scene, file)


def _panels(one: dict[str, Any]) -> Any:
    def picture(file: BinaryIO) -> None:
        figure = draw.draw_review(one["scene"], _LAYERS, one["v"], one["b"], one["means"])
        save_figure(figure, file, "png")

    return picture


def _surest(model: PaperModel, data: PaperReviews) -> dict[str, int | None]:
    logits = model.logits(data.ids[data.train :])
    truth = data.labels[data.train :] == 1
    enough = (data.ids[data.train :] > 0).sum(axis=1) >= 60
    out: dict[str, int | None] = {}
    for kind, sign in (("positive", 1), ("negative", -1)):
        score = np.where(enough & (truth == (sign > 0)), sign * logits, -np.inf)
        best = int(np.argmax(score))
        out[kind] = data.train + best if np.isfinite(score[best]) else None
    return out


def _named(model: PaperModel, data: PaperReviews) -> dict[str, int | None]:
    """The test review whose leaders and number of distinct words are those of each picture."""
    rows = data.ids[data.train :]
    found = leaders_by_code(model, rows)
    out: dict[str, int | None] = {}
    for kind, stated in _STATED.items():
        wanted = sorted(data.words.index(w) for w in stated["words"] if w in data.words)
        out[kind] = None
        for k, row in enumerate(rows):
            if sorted(set(row[found.places[k]].tolist())) == wanted:
                out[kind] = data.train + k
                if len(set(row.tolist()) - set(wanted)) == stated["distinct"]:
                    break
    return out


def _review(model: PaperModel, data: PaperReviews, row: int, kind: str) -> dict[str, Any]:
    ids: Array = data.ids[row]
    E = model.E.detach().numpy().astype(np.float64)
    v, b = model.v.detach().numpy().astype(np.float64), float(model.b.detach())
    alpha = float(model.alpha.detach())
    z: Floats = E[ids]
    run = simulate(z, model.settings.depth, alpha=alpha)
    names = [data.words[k] for k in ids]
    logit = float(run.z.mean(axis=0) @ v + b)
    scene = scene_of(
        run, equilibrium(z, alpha=alpha), names=names, title=f"{kind}, logit {logit:.2f}"
    )
    leaders = [leader.index for leader in run.leaders]
    ends = np.array([run.zs[leader.born, leader.index] for leader in run.leaders])
    gaps = np.linalg.norm(run.z[:, None] - ends[None], axis=2).min(axis=1)
    spread = float(np.linalg.norm(z[:, None] - z[None], axis=2).max())
    others = set(ids.tolist()) - {int(ids[i]) for i in leaders}
    return {
        "scene": scene, "logit": logit, "alpha": alpha, "v": v.tolist(), "b": b,
        "leaders": {names[i]: float(end @ v + b) for i, end in zip(leaders, ends, strict=True)},
        "places": {names[i]: end.tolist() for i, end in zip(leaders, ends, strict=True)},
        "distinct": len(others),
        "means": run.zs.mean(axis=1).tolist(),
        "farthest from a leader": float(gaps.max()) / spread,
        "leaders moved": float(np.abs(run.zs[-1, leaders] - ends).max()),
    }  # fmt: skip


def _compare(kind: str, one: dict[str, Any], context: Context, *, exact: bool) -> list[Comparison]:
    theirs = context.weights is not None
    found = [
        claim(
            f"{kind}: leaders never move from their birth on",
            one["leaders moved"] == 0,
            one["leaders moved"],
        ),
        _gathered(kind, one, context, exact=theirs and exact),
    ]
    stated = _STATED[kind]
    if not theirs:
        why = "another training has other leaders; give the authors' weights with --weights"
        theirs_lead = ", ".join(stated["words"])
        found.append(unknown(f"{kind}: leaders", ", ".join(one["leaders"]), why, theirs_lead))
        return found
    words = tuple(sorted(one["leaders"]))
    found.append(same(f"{kind}: leaders", stated["words"], words, exact=exact))
    found.append(
        same(f"{kind}: distinct starting points besides", stated["distinct"], one["distinct"],
             exact=False)
    )  # fmt: skip
    found += [
        near(f"{kind}: decoder value of '{word}'", value, one["leaders"].get(word, 0.0), 0.06,
             why="stated to one decimal")
        for word, value in stated["values"].items()
    ]  # fmt: skip
    return found


def _gathered(kind: str, one: dict[str, Any], context: Context, *, exact: bool) -> Comparison:
    """Whether 8 layers bring all tokens to their leaders: a matter of the learned step."""
    name = f"{kind}: after 8 layers every token sits on a leader"
    far = one["farthest from a leader"]
    left = (1 / (1 + one["alpha"])) ** 8
    if context.short and context.weights is None:
        alpha = f"one epoch, alpha = {one['alpha']:.2f}"
        why = f"{alpha}: 8 layers leave {left:.0%} of a way; full form"
        return unknown(name, far, why, "stated")
    rule = "at most 5 % of the cloud's diameter away"
    return claim(name, far <= 0.05, far, rule=rule, exact=exact)
