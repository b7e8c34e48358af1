"""A network at work, as plain numbers: tokens in the plane after every layer, one decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Array
from hardmax.exact.forward import State, states
from hardmax.exact.layers import Attention, FeedForward, Layer
from hardmax.exact.story import token_name

if TYPE_CHECKING:
    from hardmax.exact.network import Network

__all__ = ["Frame", "Steps", "TraceStep", "plane_steps", "trace"]


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates 0 and 1 of every (sequence, token) pair after some layer.

    `axes` says what they hold.
    """

    title: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    axes: tuple[str, str]


@dataclass(frozen=True, eq=False)
class Steps:
    """The construction step by step; `sequence` and `label` belong to the points.

    `column` is the coordinate, 0 or 1, that holds the label in the last frame.
    """

    frames: tuple[Frame, ...]
    sequence: tuple[int, ...]
    label: tuple[int, ...]
    classes: tuple[str, ...]
    column: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True)
class TraceStep:
    """One question of a tree: at `level`, with code `code`, the sequence holds `token`.

    `token` is None where it holds none of the `asked` tokens and stays; `label`
    is given at the last step.
    """

    level: int
    code: int
    size: int
    asked: int
    token: str | None
    next_code: int
    label: Any


def plane_steps(net: Network, sequences: Any, labels: Sequence[Any] | None = None) -> Steps:
    """The tokens of some sequences before the first layer and after every layer.

    The common offset and size of a stored projection are taken off, so that code
    c shows at [c, c + 1] and a test of height h lifts its tokens to h.
    """
    if net.dim < 2:
        raise InputError("steps in the plane need d >= 2; got d = 1. Build with two coordinates.")
    corpus = net.read(sequences)
    owner = np.repeat(np.arange(corpus.size), np.diff(corpus.starts))
    named = net.predict(sequences) if labels is None else np.asarray(labels)
    index = {c: i for i, c in enumerate(net.classes)}
    codes = [index[y.item() if isinstance(y, np.generic) else y] for y in named]
    offset, scale = _offset(net), net.scale
    frames = []
    for i, state in enumerate(states(net.layers, corpus, (0, 1))):
        points = _pairs(state, corpus.rows)
        stored = 0 < net.entry <= i and bool((points[:, 0] >= offset * scale).all())
        if stored:
            points[:, 0] = points[:, 0] / scale - offset
            if i < len(net.layers):
                points[:, 1] = points[:, 1] / scale
        x, y = (tuple(points[:, c].tolist()) for c in (0, 1))
        frames.append(Frame(_title(net.layers, i, net), x, y, _axes(net, i, stored)))
    marks = tuple(codes[j] for j in owner)
    return Steps(
        tuple(frames), tuple(owner.tolist()), marks, tuple(map(str, net.classes)), net.column
    )


def _axes(net: Network, i: int, stored: bool) -> tuple[str, str]:
    """What the two coordinates hold after layer `i`."""
    if i == 0:
        return "z_1", "z_2"
    gathered = any(isinstance(x, Attention) and not x.idle for x in net.layers[:i])
    names = ["projection", "mean" if gathered else ""]
    if net.method == "bumps":
        first = "projection" if i <= net.entry else "projection, taken away"
        names = ["mean" if gathered else first, "height"]
    elif stored:
        names = ["code + projection", "height"]
    if i == len(net.layers):
        names[net.column] = "label"
    return names[0], names[1]


def _offset(net: Network) -> float:
    if net.entry == 0:
        return 0.0
    lift = net.layers[net.entry - 1]
    if not isinstance(lift, FeedForward):
        return 0.0
    stored = lift.b2 if lift.b2 is not None else lift.W2[:, -1]
    return float(stored[0]) / net.scale


def _pairs(state: State, rows: Array) -> Array:
    at = [state.columns.index(c) for c in (0, 1) if c in state.columns]
    z = state.z[:, at] if state.paired else state.z[rows][:, at]
    return z if z.shape[1] == 2 else np.column_stack([z, np.zeros(len(z))])


def _title(layers: Sequence[Layer], i: int, net: Network) -> str:
    if i == 0:
        return "tokens"
    layer = layers[i - 1]
    if i == len(layers):
        return "label read out"
    if isinstance(layer, Attention):
        number = sum(isinstance(x, Attention) and not x.idle for x in layers[:i])
        return "idle attention" if layer.idle else f"attention {number}: gathered"
    if net.entry and i <= net.entry:
        return "projected" if i < net.entry else "stored on a grid"
    if any(isinstance(x, Attention) and not x.idle for x in layers[i:]):
        return "tokens lifted" if net.entry else "projected"
    return "reading out"


def trace(net: Network, sequence: Any) -> tuple[TraceStep, ...]:
    """The questions that a tree or chain asks one sequence, with the answers."""
    if net.story is None:
        raise InputError(
            f"only tree and chain ask questions; this network is {net.method!r}. "
            "Build it with method='tree'."
        )
    corpus = net.read([sequence])
    held = {token_name(corpus, int(w)) for w in corpus.rows}
    out = []
    for at, number, token in net.story.trace(held):
        node = net.story.nodes[at]
        asked = sum(len(t.tokens) for t in node.tests)
        test = node.tests[number] if number >= 0 else None
        last = test is None or test.child < 0
        code = node.label if test is None else test.label
        label = net.classes[code] if last else None
        step = 0 if test is None else test.height
        out.append(
            TraceStep(node.level, node.base, node.size, asked, token, node.base + step, label)
        )
    return tuple(out)
