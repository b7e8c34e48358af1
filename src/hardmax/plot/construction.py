"""Pictures of a constructed network: its steps in the plane, its tree, one decision.

Everything is drawn from plain records (`Steps`, `Story`, `TraceStep`); nothing is computed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from hardmax.exact.steps import Steps, TraceStep
from hardmax.exact.story import Story, StoryTest
from hardmax.plot.colours import PALETTE

__all__ = ["draw_steps", "draw_trace", "draw_tree"]

_MARKS = "osD^vP*X<>hp"
_WORDS = 4
_LONG = 30
_MOST_PANELS = 24
_EDGE = "#4a5568"


def draw_steps(steps: Steps, frames: Sequence[int] | None = None, columns: int = 4) -> Figure:
    """One panel per step: colour tells the label, shape the sequence.

    Parameters
    ----------
    steps : Steps
        From `Network.steps`.
    frames : sequence of int, optional
        The steps to draw; all by default, of more than 24 the first and the last 12.
    columns : int
        Panels in a row.

    Returns
    -------
    matplotlib.figure.Figure
    """
    many = len(steps.frames)
    ends = (*range(_MOST_PANELS // 2), *range(many - _MOST_PANELS // 2, many))
    usual = range(many) if many <= _MOST_PANELS else ends
    chosen = list(usual if frames is None else frames)
    columns = max(1, min(columns, len(chosen)))
    rows = -(-len(chosen) // columns)
    figure = Figure(figsize=(3.0 * columns, 2.9 * rows + 0.35), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, at in zip(panels, chosen, strict=False):
        _panel(ax, steps, at, f"{at + 1}. {steps.frames[at].title}")
    for ax in panels[len(chosen) :]:
        ax.set_axis_off()
    figure.legend(handles=_legend(steps), loc="outside lower center", ncols=8, fontsize=8)
    return figure


def _legend(steps: Steps) -> list[Line2D]:
    """One square per label that occurs, at most 16."""
    shown = sorted(set(steps.label))[:16]
    return [
        Line2D(
            [], [], linestyle="", marker="s", color=PALETTE[c % len(PALETTE)],
            label=steps.classes[c],
        )
        for c in shown
    ]  # fmt: skip


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
    ax.set_xlabel(frame.axes[0], fontsize=8)
    ax.set_ylabel(frame.axes[1], fontsize=8)
    if not any(frame.y):
        ax.set(ylim=(-0.5, 1.5), yticks=[0])
    ax.margins(0.08)
    ax.grid(color="0.92", linewidth=0.6)
    ax.set_axisbelow(True)
    if "label" in frame.axes:
        _name_labels(ax, steps)


def _name_labels(ax: Axes, steps: Steps) -> None:
    """The labels themselves at the ticks of the coordinate that holds them."""
    codes = sorted(set(steps.label))
    if len(codes) <= 8:
        names = [steps.classes[c] for c in codes]
        names = [n if len(n) <= 10 else n[:8] + "..." for n in names]
        (ax.set_yticks if steps.column else ax.set_xticks)(codes, names)


def draw_tree(story: Story, classes: Sequence[str], most: int = 12) -> Figure:
    """The questions of a tree: one box per class of sequences, in columns by level.

    At most `most` tests of a box are written out, and at most `most` boxes per
    level; what is left out is counted.
    """
    levels = 1 + max((n.level for n in story.nodes), default=0)
    by_level = [_row(story, k) for k in range(levels)]
    texts = {i: _box_text(story, i, classes, most) for row in by_level for i in row[:most]}
    tops, tall = _places(story, by_level, texts)
    figure = Figure(figsize=(4.3 * levels, max(1.0, 0.16 * tall)), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    ax.set_axis_off()
    ax.set(xlim=(-0.02, levels - 0.02), ylim=(-tall, 1))
    boxes: dict[int, Text] = {}
    style = {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": _EDGE}
    for k, row in enumerate(by_level):
        for i in row[:most]:
            boxes[i] = ax.text(
                k, tops[i], texts[i], fontsize=7, va="top", family="monospace", bbox=style, zorder=3
            )
        if len(row) > most:
            y = tops[row[most - 1]] - texts[row[most - 1]].count("\n") - 2.5
            ax.text(k, y, f"... {len(row) - most} more classes", fontsize=7, va="top", color="0.4")
    figure.draw_without_rendering()
    for i in boxes:
        _arrows(ax, story, i, boxes, most)
    return figure


def _places(
    story: Story, by_level: Sequence[Sequence[int]], texts: dict[int, str]
) -> tuple[dict[int, float], float]:
    """The top of every box, no higher than that of its parent, and the height of all."""
    parent = {t.child: i for i, n in enumerate(story.nodes) for t in n.tests}
    tops: dict[int, float] = {}
    tall = 3.0
    for row in by_level:
        y = 0.0
        for i in row:
            if i in texts:
                y = min(y, tops.get(parent.get(i, -1), 0.0))
                tops[i] = y
                y -= texts[i].count("\n") + 3
        tall = max(tall, -y)
    return tops, tall


def _row(story: Story, level: int) -> list[int]:
    """Classes of a level, highest code first: the first test leads to the uppermost box."""
    row = [i for i, n in enumerate(story.nodes) if n.level == level]
    return sorted(row, key=lambda i: -story.nodes[i].base)


def _arrows(ax: Axes, story: Story, i: int, boxes: dict[int, Text], most: int) -> None:
    """From the row of a test to the box of the class that it leads to."""
    back = ax.transData.inverted()
    box = boxes[i].get_window_extent()
    lines = boxes[i].get_text().count("\n") + 1
    for number, test in enumerate(story.nodes[i].tests[:most]):
        if test.child in boxes:
            child = boxes[test.child].get_window_extent()
            row = box.y1 - box.height * (number + 1.5) / lines
            start = back.transform((box.x1 + 5, row))
            end = back.transform((child.x0 - 5, child.y1 - 5))
            ax.annotate(
                "", xy=(end[0], end[1]), xytext=(start[0], start[1]), zorder=1,
                arrowprops={"arrowstyle": "->", "color": "#a0aec0", "linewidth": 0.8},
            )  # fmt: skip


def _box_text(story: Story, i: int, classes: Sequence[str], most: int) -> str:
    node = story.nodes[i]
    lines = [f"code {node.base}: {node.size} sequences"]
    lines += [
        f"  {_words(t)} -> {_goal(node.base, t, classes)} ({t.size})" for t in node.tests[:most]
    ]
    if len(node.tests) > most:
        lines.append(f"  ... {len(node.tests) - most} more")
    return "\n".join([*lines, f"  else -> {classes[node.label]}"])


def _words(test: StoryTest) -> str:
    shown: list[str] = []
    for token in test.tokens[:_WORDS]:
        if shown and len(" | ".join([*shown, _short(token)])) > _LONG:
            break
        shown.append(_short(token))
    rest = len(test.tokens) - len(shown)
    return " | ".join(shown) + (f" +{rest}" if rest else "")


def _short(token: str) -> str:
    """Coordinates in three digits; words as they are, but for very long ones."""
    if token.startswith("("):
        token = re.sub(r"-?\d+\.\d+(e[+-]?\d+)?", lambda m: f"{float(m.group()):.3g}", token)
    return token if len(token) <= _LONG else token[: _LONG - 3] + "..."


def _goal(base: int, test: StoryTest, classes: Sequence[str]) -> str:
    return classes[test.label] if test.child < 0 else f"code {base + test.height}"


def draw_trace(steps: Sequence[TraceStep], title: str = "") -> Figure:
    """One decision: a row per question, from the first class to the label."""
    figure = Figure(figsize=(5.0, 0.72 * len(steps) + 0.45), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    ax.set_axis_off()
    ax.set(xlim=(0, 1), ylim=(-len(steps), 0))
    ax.set_title(title, fontsize=9)
    for i, step in enumerate(steps):
        held = "holds none of them: stays" if step.token is None else f"holds {_short(step.token)}"
        result = f"label {step.label}" if step.label is not None else f"code {step.next_code}"
        line = f"code {step.code} ({step.size} sequences, {step.asked} tokens asked)"
        last = step.label is not None
        style = {
            "boxstyle": "round,pad=0.35",
            "facecolor": "#fef3e2" if last else "white",
            "edgecolor": "#d55e00" if last else _EDGE,
        }
        said = f"{line}\n{held}  ->  {result}"
        ax.text(0.02, -i - 0.5, said, fontsize=8, va="center", bbox=style)
        if i:
            ax.annotate(
                "", xy=(0.06, -i - 0.17), xytext=(0.06, -i + 0.17),
                arrowprops={"arrowstyle": "->", "color": _EDGE},
            )  # fmt: skip
    return figure
