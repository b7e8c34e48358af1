"""The Tikhonov experiment: an exact interpolant bounds the penalised minimum."""

from __future__ import annotations

import pytest

from hardmax._errors import InputError
from hardmax.exact.tikhonov import tikhonov

SMALL = {"sequences": 3, "length": 6, "dim": 4}


def test_published_norm_of_the_teacher_and_first_loss() -> None:
    run = tikhonov(1e-1, 200)
    assert abs(run.teacher_norm - 62.53) < 0.005
    assert abs(run.losses[0] - 1718) < 40  # the start of the student is not published
    assert run.losses[-1] < run.losses[0]
    assert run.threshold == pytest.approx(6.253, abs=1e-3)
    assert run.below is None
    assert run.epochs_seen == (0, 100, 200)


def test_first_epoch_below_the_threshold_is_recorded() -> None:
    assert tikhonov(100.0, 1, **SMALL).below == 0


def test_smaller_penalty_leaves_a_larger_norm() -> None:
    weak, strong = (tikhonov(e, 400, **SMALL) for e in (1e-3, 10.0))
    assert weak.losses[-1] < strong.losses[-1]
    assert weak.student_norm > strong.student_norm


def test_same_seed_gives_the_same_run() -> None:
    assert tikhonov(0.1, 50, **SMALL) == tikhonov(0.1, 50, **SMALL)
    assert tikhonov(0.1, 50, **SMALL) != tikhonov(0.1, 50, seed=1, **SMALL)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InputError, match="`epsilon` must be at least 0 and `epochs`"):
        tikhonov(-1.0, 10)
