"""The words of one head as a scene: on their way to their leaders, layer by layer."""

from __future__ import annotations

from typing import IO

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Floats, Ints
from hardmax.explain.explanation import Explanation
from hardmax.plot.record import Scene, SceneLeader

__all__ = ["decision_line", "heads_by_weight", "save_gif", "scene_of_head"]

MOST = 250
"""A scene of more tokens keeps its leaders and the most influential others."""


def heads_by_weight(explanation: Explanation) -> list[int]:
    """The heads, those first that add or take away most of the logit."""
    worth = np.zeros(explanation.heads)
    for c in explanation.contributions:
        influence, valence = np.atleast_1d(c.influence), np.atleast_1d(c.valence)
        worth += np.abs(influence * valence)
    return [int(h) for h in np.argsort(-worth, kind="stable")]


def scene_of_head(explanation: Explanation, head: int, *, most: int = MOST) -> Scene:
    """The scene of one head, in the coordinates of that head.

    Parameters
    ----------
    explanation : Explanation
    head : int
    most : int
        Of more tokens the leaders and the most influential others are kept.

    Raises
    ------
    InputError
        If there is no such head, or the text has no known word.
    """
    trace = explanation.trace
    if not 0 <= head < explanation.heads:
        raise InputError(f"`head` must be 0 to {explanation.heads - 1}; got {head}.")
    if not len(trace.tokens.ids):
        raise InputError("a text without a known word has no picture. Give another text.")
    zs = np.stack([trace.block(k, head) for k in range(explanation.depth + 1)])
    follows = np.stack([trace.follows(k, head) for k in range(explanation.depth + 1)])
    if explanation.depth:
        follows[-1] = follows[-2]
    born = [b for b in trace.leaders if b.head == head]
    rows = _rows(trace.weights[:, head], [b.index for b in born], most)
    place = {int(row): at for at, row in enumerate(rows)}
    names = explanation.bundle.vocabulary.names_of(trace.tokens.ids[rows])
    leaders = tuple(
        SceneLeader(
            place[b.index],
            b.born,
            names[place[b.index]],
            tuple(place[j] for j in b.members if j in place),
        )
        for b in born
        if b.index in place
    )
    kept = np.array([[place.get(int(j), -1) for j in row[rows]] for row in follows])
    return Scene(
        zs[:, rows],
        tuple(range(explanation.depth + 1)),
        kept,
        leaders,
        tuple(names),
        title=f"Head {head}" if explanation.heads > 1 else "Words and leaders",
        notes={
            "gamma": float(trace.gamma[head]),
            "tie_tol": trace.tie_tol,
            "tokens shown": f"{len(rows)} of {len(trace.tokens.ids)}",
        },
    )


def save_gif(explanation: Explanation, file: IO[bytes], head: int = 0) -> None:
    """Write the words of one head on their way to their leaders as an animation."""
    from hardmax.plot.gif import save_gif as save

    scene = scene_of_head(explanation, head)
    save(scene, file, axes=(0, 1) if scene.dim > 3 else None)


def _rows(weights: Floats, leaders: list[int], most: int) -> Ints:
    """The tokens that are shown, in the order of the text's tokens."""
    first = sorted(leaders, key=lambda i: (-weights[i], i))[:most]
    order = [i for i in np.argsort(-weights, kind="stable").tolist() if i not in set(first)]
    return np.array(sorted([*first, *order[: most - len(first)]]), dtype=np.int64)


def decision_line(explanation: Explanation, head: int) -> tuple[float, float, float] | None:
    """(v_1, v_2, b / heads) for heads of two coordinates: the line <v, z> + b / heads = 0."""
    model = explanation.bundle.model
    size = model.E.shape[1] // model.heads
    if size != 2:
        return None
    v = model.v.detach().numpy()[explanation.output, 2 * head : 2 * head + 2]
    return float(v[0]), float(v[1]), explanation.bias / model.heads
