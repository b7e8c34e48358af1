"""Figure 1 of the interpolation paper: Tikhonov penalties and the loss they leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from hardmax._errors import DataError
from hardmax.exact.tikhonov import TikhonovRun, tikhonov_stages
from hardmax.io import read_json, write_json
from hardmax.lab.papers.outcome import (
    AGREES,
    DIFFERS,
    Comparison,
    Context,
    Outcome,
    claim,
    near,
    unknown,
)
from hardmax.plot import papers as draw
from hardmax.plot.figures import save_figure

__all__ = ["penalties"]

_SOURCE = "arXiv 2502.02270, figure 1 and its training scripts"
_PUBLISHED = {1e-1: 3.26e-2, 1e-2: 1.32e-2, 1e-3: 4.96e-4}
_STAGES = ((1e-1, 5_000), (1e-2, 10_000), (1e-3, 50_000))
"""Figure 1b: one student, each stage from where the last ended."""
_LONG = ((1e-4, 50_000),)
"""Figure 1a: a student of its own."""
_WITHIN = 0.05
_THEIRS = {"norm": 62.53, "first": 1718.0, "below": 18_777, "last": 3.902e-4}


def penalties(context: Context) -> Outcome:
    """Losses along the training for each penalty, beside the teacher's threshold."""
    plans = [_STAGES[:2]] if context.short else [_STAGES, _LONG]
    runs = {run.epsilon: run for plan in plans for run in _runs(plan, context)}
    first = runs[1e-1]
    comparisons: list[Comparison] = [
        near("squared norm of the teacher's weights", _THEIRS["norm"], first.teacher_norm, 0.005),
        near("first loss", _THEIRS["first"], first.losses[0], 1.0, why="stated to four digits"),
    ]
    comparisons += [
        _close(f"smallest loss, epsilon = {epsilon:g}", _PUBLISHED[epsilon], run.smallest)
        for epsilon, run in runs.items()
        if epsilon in _PUBLISHED
    ]
    crossed = "epsilon = 1e-4: first epoch below the threshold 6.253e-3"
    if 1e-4 in runs:
        run = runs[1e-4]
        comparisons.append(_close(crossed, _THEIRS["below"], run.below))
        comparisons.append(_close("epsilon = 1e-4: last loss", _THEIRS["last"], run.losses[-1]))
    else:
        comparisons.append(unknown(crossed, None, "50,000 epochs: full form only", 18_777))
    comparisons.append(_linear(runs))
    numbers = {str(epsilon): run.to_dict() for epsilon, run in runs.items()}

    def picture(file: BinaryIO) -> None:
        save_figure(draw.draw_penalties(numbers), file, "png")

    return Outcome(
        "tikhonov", "Penalties and losses of a block that an exact one teaches", _SOURCE, context,
        tuple(comparisons), numbers, {"tikhonov.png": picture}, _DIFFERENCES,
    )  # fmt: skip


_DIFFERENCES = (
    (
        "The penalty is Adam's weight_decay, as in the authors' scripts: gradient epsilon "
        "theta, so the penalty is (epsilon / 2) ||theta||^2 and a minimiser's loss is at most "
        "(epsilon / 2) ||theta*||^2. The threshold in the figure is twice that."
    ),
    (
        "Figure 1b looks like three trainings from scratch. The script goes on with one "
        "student: 5,000 epochs at .1, then 10,000 at .01, then 50,000 at .001; the published "
        "numbers come out only that way, and so it is done here."
    ),
    "Loss curves are recorded every hundredth epoch; smallest losses are over all epochs.",
)


def _runs(plan: Sequence[tuple[float, int]], context: Context) -> tuple[TikhonovRun, ...]:
    """The stages of one student; finished ones are taken from the folder of work."""
    name = "-".join(f"{epsilon:g}x{epochs}" for epsilon, epochs in plan)
    place = context.work / f"tikhonov-{name}-seed{context.seed}.json"
    if place.is_file():
        try:
            return tuple(_read(data) for data in read_json(place))
        except (KeyError, TypeError):
            raise DataError(f"{place}: expected runs of this item. Remove the file.") from None
    total, stage = sum(epochs for _, epochs in plan), [0, 0]

    def advance(epoch: int, loss: float) -> None:
        if epoch < stage[1]:
            stage[0] += stage[1]
        stage[1] = epoch
        context.progress("penalties", stage[0] + epoch, total)

    runs = tikhonov_stages(plan, seed=context.seed, progress=advance)
    write_json(place, [run.to_dict() for run in runs], force=True)
    return runs


def _read(data: dict[str, Any]) -> TikhonovRun:
    whole = {"epochs_seen": tuple(data["epochs_seen"]), "losses": tuple(data["losses"])}
    return TikhonovRun(**{**data, **whole})


def _close(quantity: str, stated: float, ours: float | None) -> Comparison:
    agrees = ours is not None and abs(ours / stated - 1) <= _WITHIN
    rule = f"within {100 * _WITHIN:g} % (same draws, another machine's rounding)"
    return Comparison(quantity, stated, ours, rule, AGREES if agrees else DIFFERS)


def _linear(runs: dict[float, TikhonovRun]) -> Comparison:
    """The bound behind the figure: each smallest loss is below epsilon ||theta*||^2."""
    shown: dict[str, Any] = {f"{e:g}": r.smallest / r.threshold for e, r in runs.items()}
    slope = float(np.polyfit(np.log(list(runs)), np.log([r.smallest for r in runs.values()]), 1)[0])
    return claim(
        "the loss falls at least linearly with epsilon: it is below epsilon ||theta*||^2",
        max(shown.values()) < 1, {"loss over threshold": shown, "slope in log-log": slope},
    )  # fmt: skip
