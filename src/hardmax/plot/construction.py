"""Pictures of a constructed network: its steps in the plane, its tree, one decision.

Everything is drawn from plain records (`Steps`, `Story`, `TraceStep`); nothing is computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hardmax.exact.steps import Steps, TraceStep
from hardmax.exact.story import Story, StoryTest
from hardmax.plot.colours import PALETTE

__all__ = ["draw_steps", "draw_trace", "draw_tree"]

_MARKS = "osD^vP*X<>hp"
_WORDS = 4
_LONG = 30


def draw_steps(steps: Steps, frames: Sequence[int] | None = None, columns: int = 4) -> Figure:
    """One panel per step: colour tells the label, shape the sequence.

    Parameters
    ----------
    steps : Steps
        From `Network.steps`.
    frames : sequence of int, optional
        The steps to draw; all by default.
    columns : int
        Panels in a row.

    Returns
    -------
    matplotlib.figure.Figure
    """
    chosen = list(range(len(steps.frames)) if frames is None else frames)
    columns = max(1, min(columns, len(chosen)))
    rows = -(-len(chosen) // columns)
    figure = Figure(figsize=(3.0 * columns, 2.9 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for number, (ax, at) in enumerate(zip(panels, chosen, strict=False)):
        _panel(ax, steps, at, f"{number + 1}. {steps.frames[at].title}")
    for ax in panels[len(chosen) :]:
        ax.set_axis_off()
    return figure


def _panel(ax: Axes, steps: Steps, at: int, title: str) -> None:
    frame = steps.frames[at]
    groups: dict[int, list[int]] = {}
    for i, j in enumerate(steps.sequence):
        groups.setdefault(j, []).append(i)
    for j, members in groups.items():
        ax.scatter(
            [frame.x[i] for i in members],
            [frame.y[i] for i in members],
            s=26,
            marker=_MARKS[j % len(_MARKS)],
            color=PALETTE[steps.label[members[0]] % len(PALETTE)],
            alpha=0.75,
            linewidths=0.4,
            edgecolors="white",
        )
    ax.set_title(title, fontsize=9)
    ax.tick_params(labelsize=7)
    ax.margins(0.08)
    ax.grid(color="0.92", linewidth=0.6)
    ax.set_axisbelow(True)


def draw_tree(story: Story, classes: Sequence[str], most: int = 12) -> Figure:
    """The questions of a tree: one box per class of sequences, in columns by level.

    At most `most` tests of a box are written out, and at most `most` boxes per level.
    """
    levels = 1 + max((n.level for n in story.nodes), default=0)
    by_level = [
        [(i, n) for i, n in enumerate(story.nodes) if n.level == k][:most] for k in range(levels)
    ]
    texts = {i: _box_text(story, i, classes, most) for row in by_level for i, _ in row}
    tall = max((sum(texts[i].count("\n") + 3 for i, _ in row) for row in by_level), default=3)
    figure = Figure(figsize=(4.3 * levels, max(2.0, 0.17 * tall)), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    ax.set_axis_off()
    ax.set(xlim=(-0.05, levels), ylim=(-tall, 1))
    places = {}
    for k, row in enumerate(by_level):
        y = 0.0
        for i, _ in row:
            places[i] = (float(k), y)
            y -= texts[i].count("\n") + 3
    for i, (x, y) in places.items():
        _arrows(ax, story, i, places)
        style = {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": "#4a5568"}
        ax.text(x, y, texts[i], fontsize=7, va="top", family="monospace", bbox=style, zorder=3)
    return figure


def _arrows(ax: Axes, story: Story, i: int, places: dict[int, tuple[float, float]]) -> None:
    for number, test in enumerate(story.nodes[i].tests):
        if test.child in places:
            x, y = places[i]
            ax.annotate(
                "",
                xy=(places[test.child][0] - 0.02, places[test.child][1] - 0.5),
                xytext=(x + 0.3, y - number - 1.5),
                arrowprops={"arrowstyle": "->", "color": "#a0aec0", "linewidth": 0.8},
                zorder=1,
            )


def _box_text(story: Story, i: int, classes: Sequence[str], most: int) -> str:
    node = story.nodes[i]
    lines = [f"code {node.base}: {node.size} sequences"]
    lines += [f"  {_words(t)} -> {_goal(t, classes)} ({t.size})" for t in node.tests[:most]]
    if len(node.tests) > most:
        lines.append(f"  ... {len(node.tests) - most} more")
    return "\n".join([*lines, f"  else -> {classes[node.label]}"])


def _words(test: StoryTest) -> str:
    shown = " | ".join(test.tokens[:_WORDS])
    shown = shown if len(shown) <= _LONG else shown[: _LONG - 3] + "..."
    rest = len(test.tokens) - _WORDS
    return f"{shown} +{rest}" if rest > 0 else shown


def _goal(test: StoryTest, classes: Sequence[str]) -> str:
    return classes[test.label] if test.child < 0 else f"code +{test.height}"


def draw_trace(steps: Sequence[TraceStep], title: str = "") -> Figure:
    """One decision: a row per question, from the first class to the label."""
    figure = Figure(figsize=(6.0, 0.75 * len(steps) + 0.9), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    ax.set_axis_off()
    ax.set(xlim=(0, 1), ylim=(-len(steps) - 0.4, 0.4))
    ax.set_title(title, fontsize=9)
    for i, step in enumerate(steps):
        held = f"holds {step.token}" if step.token is not None else "holds none of them: stays"
        result = f"label {step.label}" if step.label is not None else f"code {step.next_code}"
        line = f"code {step.code} ({step.size} sequences, {step.asked} tokens asked)"
        style = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "#4a5568"}
        ax.text(
            0.02, -i - 0.5, f"{line}\n{held}  ->  {result}", fontsize=8, va="center", bbox=style
        )
        if i:
            ax.annotate(
                "", xy=(0.06, -i - 0.2), xytext=(0.06, -i + 0.2),
                arrowprops={"arrowstyle": "->", "color": "#4a5568"},
            )  # fmt: skip
    return figure
