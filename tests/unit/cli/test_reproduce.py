"""`hardmax reproduce figure2`: the facts of the figure, and its files."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hardmax.lab.reproduce as lab
from hardmax.lab.reproduce import figure2
from hardmax.plot.record import Scene
from tests.unit.cli.conftest import Call


@pytest.mark.parametrize("seed", [0, 1, 17])
def test_facts_of_figure_2_hold_for_any_seed(seed: int) -> None:
    figure = figure2(seed=seed)
    assert [fact.claim for fact in figure.facts if not fact.holds] == []
    assert len(figure.facts) == 8


def test_facts_fail_for_other_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "ROWS", ("square", "square", "edges", "square"))
    failed = [fact.claim for fact in figure2().facts if not fact.holds]
    assert len(failed) == 6
    assert "edges: tokens 4 and 5 end at (-1, 0) and (1, 0), where nobody leads" in failed


def test_figure_and_its_numbers_are_written_side_by_side(call: Call, tmp_path: Path) -> None:
    result = call("reproduce", "figure2", "--out", "fig.png", "--seed", "3")
    assert result.exit_code == 0
    assert result.stdout.count("holds  ") == 8
    assert (tmp_path / "fig.png").read_bytes().startswith(b"\x89PNG")
    data = json.loads((tmp_path / "fig.json").read_text())
    assert (data["holds"], data["seed"], data["layers"]) == (True, 3, [0, 1, 2, 5, 30])
    emerging = data["rows"][1]
    assert emerging["tokens"][0] == ["1", "1/3"]
    assert emerging["equilibrium"]["limit_exact"][1] == ["-1/18", "5/36"]
    scene = Scene.from_dict(data["rows"][3]["scene"])
    np.testing.assert_allclose(scene.zs[30, 4], [-1, 0], atol=1e-5)


def test_json_is_the_data_of_the_figure(call: Call) -> None:
    data = json.loads(call("reproduce", "figure2", "--json").stdout)
    assert data == json.loads(json.dumps(figure2().to_dict()))


def test_a_fact_that_fails_ends_with_1(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    good = figure2()
    wrong = dataclasses.replace(good, facts=(lab.Fact("two is one", False),))
    monkeypatch.setattr(lab, "figure2", lambda **settings: wrong)
    result = call("reproduce", "figure2")
    assert result.exit_code == 1
    assert "FAILS  two is one" in result.stdout
    assert result.stderr == "error: a fact of the figure does not hold\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("figure2 --out fig.gif", "--out fig.gif: expected an ending of .png .pdf .svg"),
        ("figure2 --out old.png", "old.png exists. Give another name or --force."),
        ("figure2 --out numbers.png", "numbers.json exists. Give another name or --force."),
        ("figure2 --out no/fig.png", "the folder no does not exist"),
    ],
)
def test_places_are_checked_first(
    refusal: Callable[..., str], tmp_path: Path, args: str, message: str
) -> None:
    (tmp_path / "old.png").write_text("old")
    (tmp_path / "numbers.json").write_text("old")
    assert message in refusal("reproduce", *args.split())
