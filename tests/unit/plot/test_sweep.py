"""Pictures of sweeps show the means and the intervals they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hardmax._errors import InputError
from hardmax.plot.sweep import draw_sweep


def row(**settings: Any) -> dict[str, Any]:
    value = float(settings.pop("value"))
    return {**settings, "clusters": value, "clusters_low": value - 1, "clusters_high": value + 2}


ROWS = [row(temperature=t, d=d, value=10 * d - t) for t in (0.0, 0.01, 0.1, 1.0) for d in (2, 4)]


def bars(ax: Any) -> list[np.ndarray]:
    """The ends of the vertical error bars of each line."""
    return [np.array(c.lines[2][0].get_segments())[:, :, 1] for c in ax.containers]


def test_lines_points_and_error_bars_are_the_numbers() -> None:
    figure = draw_sweep(ROWS, ("temperature", "d"))
    (ax,) = (a for a in figure.axes if a.get_visible())
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["d = 2", "d = 4"]
    first = ax.containers[0].lines[0]
    assert first.get_xdata().tolist() == [0.0, 0.01, 0.1, 1.0]
    assert first.get_ydata().tolist() == [20.0, 19.99, 19.9, 19.0]
    assert np.allclose(bars(ax)[0][0], [19, 22])
    assert ax.get_xlabel() == "temperature"
    assert ax.get_xscale() == "symlog"


def test_words_stand_side_by_side_and_lines_are_shifted() -> None:
    rows = [row(matrix=m, d=d, value=3) for m in ("spd", "skew", "vv") for d in (2, 4)]
    figure = draw_sweep(rows, ("matrix", "d"), ["clusters"])
    ax = figure.axes[0]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["spd", "skew", "vv"]
    one, other = (c.lines[0].get_xdata() for c in ax.containers)
    assert np.allclose(one.round(), [0, 1, 2])
    assert np.all(other > one)


def test_the_setting_to_the_right_can_be_chosen() -> None:
    figure = draw_sweep(ROWS, ("temperature", "d"), ["clusters"], "d")
    assert figure.axes[0].get_xlabel() == "d"
    assert len(figure.axes[0].containers) == 4


def test_one_kind_of_system_is_one_point() -> None:
    figure = draw_sweep([row(n=5, value=2)], ())
    assert figure.axes[0].containers[0].lines[0].get_ydata().tolist() == [2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: draw_sweep(ROWS, ("temperature", "d"), ["heat"]), "`y` must name measures"),
        (lambda: draw_sweep(ROWS, ("temperature", "d"), (), "heat"), "`x` must name a setting"),
        (lambda: draw_sweep([{"n": 3}], ()), "at least one measure"),
        (
            lambda: draw_sweep(
                [row(a=k, b=j, value=1) for k in range(13) for j in range(14)], "ba"
            ),
            "13 lines are too many for a picture",
        ),
    ],
)
def test_what_cannot_be_drawn_is_said(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
