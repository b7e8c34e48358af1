"""How often the answers of each probability came true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardmax.learn.report import Evaluation, wilson

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_reliability"]

_BLUE, _GREY = "#0072b2", "0.6"


def draw_reliability(result: Evaluation) -> Figure:
    """The share of right answers against their probability, with 95 % intervals, and the counts.

    Parameters
    ----------
    result : Evaluation

    Returns
    -------
    matplotlib Figure
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 4.8), layout="constrained")
    top, low = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    x = [b.confidence for b in result.bins]
    y = [b.accuracy for b in result.bins]
    ends = [wilson(round(b.accuracy * b.count), b.count) for b in result.bins]
    bars = [[b - e[0] for b, e in zip(y, ends, strict=True)],
            [e[1] - b for b, e in zip(y, ends, strict=True)]]  # fmt: skip
    top.plot([0, 1], [0, 1], color=_GREY, linewidth=1, label="as sure as right")
    top.errorbar(
        x, y, yerr=[[max(v, 0.0) for v in row] for row in bars], color=_BLUE, marker="o",
        markersize=4, linewidth=1.5, elinewidth=1, capsize=2, label="95 % intervals",
    )  # fmt: skip
    top.set_ylabel("share correct")
    top.set_ylim(0, 1.03)
    top.legend(loc="lower right", frameon=False, fontsize="small")
    top.set_title(
        f"{result.texts:,} texts, accuracy {result.accuracy:.3f}, "
        f"calibration error {result.calibration_error:.3f}",
        fontsize="medium",
    )
    low.bar([b.low for b in result.bins], [b.count for b in result.bins],
            width=[0.96 * (b.high - b.low) for b in result.bins], align="edge",
            color=_BLUE, alpha=0.35)  # fmt: skip
    low.set_ylabel("texts")
    low.set_xlabel("probability of the answer")
    low.set_xlim(min(1 / len(result.classes), min(x, default=0.5)) - 0.02, 1.02)
    return figure
