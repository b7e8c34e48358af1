"""`hardmax equilibrium`: the limit, its proof, and what fails."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hardmax import Certificate, equilibrium
from hardmax.plot.record import Scene
from hardmax.tokens.points import arrangement
from tests.unit.cli.conftest import Call


def test_limits_of_the_emerging_leader_are_exact_rationals(call: Call) -> None:
    line = "equilibrium emerging --alpha 1/2 --exact --verify"
    text = call(*line.split()).stdout
    assert re.search(r"^ 0 +0 +\(1, 1/3\) +3 +3, 6, 7$", text, re.MULTILINE)
    assert re.search(r"^ 1 +1 +\(-1/18, 5/36\) +0 +none$", text, re.MULTILINE)
    assert re.search(r"verified from the tokens alone +yes", text)
    assert re.search(r"verified in rational arithmetic +yes", text)
    assert re.search(r"status +proved", text)
    assert re.search(r"polytope +3 vertices, dimension 2", text)


def test_points_of_s_without_a_leader_are_listed(call: Call) -> None:
    text = call("equilibrium", "edges", "--alpha", ".5").stdout
    assert re.search(r"^ \(-1, 0\) +1 +4$", text, re.MULTILINE)
    assert re.search(r"^ \(1, 0\) +1 +5$", text, re.MULTILINE)


def test_layers_within_a_millionth_are_stated(call: Call) -> None:
    text = " ".join(call("equilibrium", "emerging", "--alpha", ".5").stdout.split())
    layers = equilibrium(arrangement("emerging"), alpha=0.5).layers_within(1e-6)
    assert f"within 1e-06 of their limits at layer {layers}" in text


def test_json_is_the_data_of_the_equilibrium(call: Call) -> None:
    data = json.loads(call("equilibrium", "square", "--gamma", ".25", "--json").stdout)
    assert data == equilibrium(arrangement("square"), gamma=0.25).to_dict()


def test_fractions_of_a_file_are_decided_exactly(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[["1/3", "1/7"], ["-1/3", "0.1"], ["1/9", "-1/11"]]')
    data = json.loads(call("equilibrium", "a.json", "--alpha", "1", "--json").stdout)
    assert data["limit_exact"][0] == ["1/3", "1/7"]
    assert data["limit_exact"][1] == ["-1/3", "1/10"]


def test_assumptions_that_fail_are_named_with_what_still_holds(call: Call, tmp_path: Path) -> None:
    (tmp_path / "A.csv").write_text("1,2\n0,1\n")
    (tmp_path / "a.csv").write_text("0,0\n1,0\n0,1\n")
    text = " ".join(call("equilibrium", "triangle", "--A", "A.csv").stdout.split())
    assert "assumptions fail." in text
    assert "symmetric" in text
    text = " ".join(call("equilibrium", "a.csv").stdout.split())
    assert "token 0 is zero" in text
    assert "What still holds" in text


def test_a_limit_that_is_not_reached_is_said(call: Call) -> None:
    result = call("equilibrium", "emerging", "--alpha", ".5", "--max-depth", "0")
    assert result.exit_code == 0
    assert re.search(r"status +depth_reached", result.stdout)
    assert "settled at" in result.stdout
    assert "limit not reached:" in result.stdout
    data = json.loads(call("equilibrium", "emerging", "--max-depth", "0", "--json").stdout)
    assert None in data["limit"][1]


def test_files_hold_the_certificate_and_the_scene(call: Call, tmp_path: Path) -> None:
    out = [part for kind in ("png", "html", "json", "npz") for part in ("--out", f"eq.{kind}")]
    assert call("equilibrium", "edges", "--alpha", ".5", *out).exit_code == 0
    data = json.loads((tmp_path / "eq.json").read_text())
    certificate = Certificate.from_dict(data["certificate"])
    assert certificate.verify(arrangement("edges"))
    scene = Scene.from_dict(data["scene"])
    assert scene.vertices is not None
    assert len(scene.vertices) == 4
    assert len(scene.rests()) == 2
    with np.load(tmp_path / "eq.npz") as stored:
        assert stored["limit"].shape == (10, 2)
        assert stored["vertices"].shape == (4, 2)


def test_an_unreached_limit_can_be_written_and_drawn(call: Call, tmp_path: Path) -> None:
    line = "equilibrium emerging --max-depth 0 --out a.png --out a.json --out a.npz"
    assert call(*line.split()).exit_code == 0
    assert "NaN" not in (tmp_path / "a.json").read_text()


@pytest.mark.parametrize(
    ("content", "limit"),
    [
        ("1,2\n", [[1, 2]]),
        ("3\n1\n-2\n", [[3], [3], [-2]]),
        ("0,0\n0,0\n", [[0, 0], [0, 0]]),
        ("1,2\n1,2\n", [[1, 2], [1, 2]]),
        ("1e300\n5e-324\n-3\n", [[1e300], [1e300], [-3]]),
        ("5e-324,0\n-5e-324,5e-324\n", [[5e-324, 0], [-5e-324, 5e-324]]),
    ],
)
def test_degenerate_tokens_have_their_limits(
    call: Call, tmp_path: Path, content: str, limit: list[list[float]]
) -> None:
    (tmp_path / "a.csv").write_text(content)
    result = call("equilibrium", "a.csv", "--json", "--verify")
    assert result.exit_code == 0
    data = json.loads(result.stdout)
    assert (data["status"], data["limit"]) == ("proved", limit)
    assert call("equilibrium", "a.csv").exit_code == 0


def test_a_certificate_that_does_not_verify_is_our_fault(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Certificate, "verify", lambda *args, **kwargs: False)
    result = call("equilibrium", "square", "--verify")
    assert result.exit_code == 1
    assert "the certificate does not verify" in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("triangle --alpha 1,2", "`alpha` must be one number here; got 2 of them"),
        ("triangle --alpha 0", "`alpha` must be a finite number > 0"),
        ("triangle --alpha 0 --exact", "`alpha` must be a finite number > 0"),
        ("triangle --gamma 0", "`gamma` must be a number in (0, 1]"),
        ("triangle --max-depth -1", "Invalid value for '--max-depth'"),
        ("triangle --out a.gif --out b.gi", "--out b.gi: expected an ending"),
        ("gaussian:d=4 --out a.svg", "the tokens have d = 4. Choose with --axes 0,1."),
        ("batch.npy", "(2, 3, 2)"),
    ],
)
def test_wrong_options_are_refused_in_one_line(
    refusal: Callable[..., str], tmp_path: Path, args: str, message: str
) -> None:
    np.save(tmp_path / "batch.npy", np.ones((2, 3, 2)))
    assert message in refusal("equilibrium", *args.split())
