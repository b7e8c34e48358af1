"""Items of the papers: known numbers come out, and each comparison can fail."""

from __future__ import annotations

import io
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hardmax._errors import DataError, InputError
from hardmax.lab.papers import (
    fw_cells,
    fw_counter,
    fw_metastable,
    fw_rates,
    registry,
    tikhonov,
)
from hardmax.lab.papers.outcome import (
    AGREES,
    DIFFERS,
    UNKNOWN,
    Comparison,
    Context,
    Outcome,
    claim,
    near,
    same,
    unknown,
)


def drawn(outcome: Outcome) -> list[bytes]:
    """Every picture of an item."""
    files = []
    for write in outcome.pictures.values():
        file = io.BytesIO()
        write(file)
        files.append(file.getvalue())
    return files


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(short=True, work=tmp_path)


# ------------------------------------------------------------------ comparisons


def test_a_comparison_agrees_within_its_rule_and_differs_beyond() -> None:
    assert near("x", 1.0, 1.1, 0.2).verdict == AGREES
    assert near("x", 1.0, 1.1, 0.05, why="noise").rule == "at most 0.05 apart (noise)"
    assert near("x", 1.0, 1.1, 0.05).verdict == DIFFERS
    assert (same("x", 3, 3).verdict, same("x", 3, 4).verdict) == (AGREES, DIFFERS)
    assert claim("x", False, 1).exact
    assert unknown("x", 1, "nothing stated").verdict == UNKNOWN


def test_an_item_differs_when_one_row_does_and_is_sound_unless_an_exact_one_does(
    context: Context,
) -> None:
    def outcome(*rows: Comparison) -> Outcome:
        return Outcome("x", "x", "x", context, rows, {}, {})

    loose = near("a", 0.0, 1.0, 0.1)
    assert outcome(same("b", 1, 1), unknown("c", 0, "")).verdict == AGREES
    assert outcome(unknown("c", 0, "")).verdict == UNKNOWN
    assert (outcome(loose).verdict, outcome(loose).sound) == (DIFFERS, True)
    assert not outcome(claim("d", False, 0)).sound
    data = outcome(loose, same("b", 1, 1)).to_dict()
    assert data["counts"] == {"agrees": 1, "differs": 1, "cannot be compared": 0}
    assert (data["form"], data["seed"], data["weights"]) == ("short", 0, None)


# ------------------------------------------------------------------ deterministic items


def test_an_unknown_item_is_refused() -> None:
    with pytest.raises(InputError, match=r"no item 'figure9'\. There are: figure2, losses"):
        registry.item_of("figure9")


def test_figure_2_is_an_item_with_its_facts(context: Context) -> None:
    outcome = registry.reproduce("figure2", context)
    assert (outcome.verdict, len(outcome.comparisons)) == (AGREES, 8)
    assert outcome.seconds > 0
    assert drawn(outcome)[0].startswith(b"\x89PNG")


def test_counterexample_leaves_the_origin_and_stays_at_a_third(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fw_counter, "_CASES", {"short": 6})
    outcome = fw_counter.counterexamples(context)
    assert (outcome.verdict, outcome.sound) == (AGREES, True)
    assert outcome.numbers["paths"][1][:4] == pytest.approx([-1, 3, 1 / 3, 1 / 3])
    assert fw_counter._pair(2)[2] == (Fraction(5, 3), Fraction(1, 3))
    assert outcome.numbers["search"] == {"cases": 6, "violations": 0}
    assert drawn(outcome)[0].startswith(b"\x89PNG")


def test_a_crossing_of_the_bound_is_found_and_missed_where_there_is_none() -> None:
    assert fw_counter._violated(np.array([[3.0], [-1.0]]), np.eye(1), [1.0] * 400)
    assert not fw_counter._violated(np.array([[1.0], [-1.0]]), np.eye(1), [0.5, 0.5])
    run = type("Run", (), {"zs": np.zeros((4, 2, 1))})
    assert fw_counter._crossing(run) is None


def test_closed_form_rates_and_what_is_left_for_ever(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fw_rates, "_CASES", {"short": 3})
    outcome = fw_rates.rates(context)
    assert {c.verdict for c in outcome.comparisons} == {AGREES}
    assert outcome.numbers["errors"]["gamma = 0.7"][2] == pytest.approx(0.09)
    left = outcome.numbers["errors"]["2^-(t + 1), summable"][-1]
    assert left == pytest.approx(0.2887880951)
    assert drawn(outcome)[0].startswith(b"\x89PNG")


def test_cells_are_those_of_the_propositions(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fw_cells, "_CASES", {"short": (8, 20)})
    calls: list[Any] = []
    outcome = fw_cells.cells(Context(short=True, progress=lambda *told: calls.append(told)))
    exact = [c for c in outcome.comparisons if "high dimension" not in c.quantity]
    assert {c.verdict for c in exact} == {AGREES}
    assert outcome.numbers["all own"]["128"] == 1
    assert calls == [("cells", 1, 2)]
    assert drawn(outcome)[0].startswith(b"\x89PNG")


def test_the_cell_of_a_corner_of_a_square_is_its_quarter() -> None:
    square = np.array([[1.0, 1], [-1, 1], [-1, -1], [1, -1]])
    part = fw_cells._cut(square, 0)
    assert set(map(tuple, part.round(9).tolist())) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    inner = np.array([[1.0, 0], [0.1, 0], [-1, 0.5], [-1, -0.5]])
    own, _ = fw_cells.owners(inner, inner, np.eye(2))
    assert own[1] == 0  # a point nearer to the origin does not own its cell


def test_a_vertex_that_wins_nowhere_has_no_cell() -> None:
    apart = np.array([[0.1, 0.0], [1.0, 1.0], [1.0, -1.0], [0.5, 0.0]])
    assert len(fw_cells._cut(apart, 0)) == 0


def test_first_times_are_those_of_the_reproduction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fw_metastable, "_PATIENCE", 40)
    assert [fw_metastable.first_time(beta) for beta in (16, 32, 64)] == [31, 20, 19]


def test_escape_times_are_those_of_the_chain_drawn_layer_by_layer() -> None:
    rng, beta, corners = np.random.default_rng(0), 3.0, 3
    v = fw_metastable.polygon(corners)
    weights = np.exp(beta * v @ v.T)
    weights /= weights.sum(axis=1, keepdims=True)
    times = []
    for _ in range(2000):
        layer = 1
        while all(rng.uniform() < weights[i, i] for i in range(corners)):
            layer += 1
        times.append(layer)
    drawn_times = fw_metastable.escape_times(corners, beta, 20_000, rng)
    assert drawn_times.min() == min(times) == 1
    assert np.mean(times) == pytest.approx(drawn_times.mean(), rel=0.08)
    assert np.quantile(times, 0.9) == pytest.approx(np.quantile(drawn_times, 0.9), rel=0.1)


def test_slopes_of_escape_times(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fw_metastable, "NEVER", (8,))
    monkeypatch.setattr(fw_metastable, "FIRST", {64: 19})
    monkeypatch.setattr(fw_metastable, "_PATIENCE", 30)
    monkeypatch.setattr(fw_metastable, "_MEET", 300)
    outcome = fw_metastable.metastable(context)
    slopes = [fit["slope"] for fit in outcome.numbers["escapes"].values()]
    assert slopes == pytest.approx([1.5, 1.0, 0.691, 0.5], abs=0.03)
    assert [c.quantity for c in outcome.comparisons if c.verdict == DIFFERS] == []
    assert drawn(outcome)[0].startswith(b"\x89PNG")


# ------------------------------------------------------------------ penalties


def penalties(monkeypatch: pytest.MonkeyPatch, context: Context) -> Outcome:
    monkeypatch.setattr(tikhonov, "_STAGES", ((1e-1, 30), (1e-2, 20), (1e-3, 10)))
    monkeypatch.setattr(tikhonov, "_LONG", ((1e-4, 10),))
    return tikhonov.penalties(context)


def test_penalties_start_as_published_and_are_kept(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = penalties(monkeypatch, context)
    rows = {c.quantity: c for c in outcome.comparisons}
    assert rows["squared norm of the teacher's weights"].verdict == AGREES
    assert rows["first loss"].verdict == AGREES
    assert rows["smallest loss, epsilon = 0.1"].verdict == DIFFERS  # 30 epochs are too few
    assert drawn(outcome)[0].startswith(b"\x89PNG")
    again = penalties(monkeypatch, context)
    assert again.numbers == outcome.numbers
    (place,) = context.work.glob("tikhonov-*.json")
    place.write_text('[{"epsilon": 1}]')
    with pytest.raises(DataError, match="expected runs of this item"):
        penalties(monkeypatch, context)


def test_the_full_form_has_the_long_penalty_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    whole = Context(work=tmp_path, progress=lambda what, done, total: told.append(done))
    outcome = penalties(monkeypatch, whole)
    assert list(outcome.numbers) == ["0.1", "0.01", "0.001", "0.0001"]
    assert "epsilon = 1e-4: last loss" in [c.quantity for c in outcome.comparisons]
    assert told[-2:] == [0, 10]


def test_losses_between_stages_move_the_bar_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, int, int]] = []
    monkeypatch.setattr(tikhonov, "_STAGES", ((1e-1, 5), (1e-2, 5)))
    step: Callable[..., None] = lambda *all_of: told.append(all_of)  # noqa: E731
    tikhonov.penalties(Context(short=True, work=tmp_path, progress=step))
    assert [done for _, done, _ in told] == [0, 5, 5, 10]
