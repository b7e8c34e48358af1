"""`hardmax control`: what is printed, written and refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner, Result

from hardmax import equilibrium
from hardmax.analysis.control import ControlCertificate, choose_matrix
from hardmax.cli.control import register
from hardmax.cli.main import Commands
from hardmax.io import read_matrix
from hardmax.plot.control import draw_before_after
from hardmax.plot.record import Scene
from hardmax.tokens.points import arrangement

Call = Callable[..., Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command alone, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    app = typer.Typer(cls=Commands, pretty_exceptions_enable=False)
    register(app)
    app.callback()(lambda: None)

    def run(*args: str) -> Result:
        return CliRunner().invoke(app, ["control", *args], catch_exceptions=False)

    return run


def test_a_feasible_wish_prints_the_matrix_and_that_it_is_verified(call: Call) -> None:
    result = call("gaussian:n=40,d=2,seed=1", "--lead", "18,34")
    assert result.exit_code == 0
    assert re.search(r"status +feasible: 18 leads, 34 leads", result.stdout)
    assert re.search(r"verified in rational arithmetic +yes", result.stdout)
    A = choose_matrix(arrangement("gaussian:n=40,d=2,seed=1"), [18, 34]).A
    assert A is not None
    assert f"{A[0, 0]:.8g}" in result.stdout


def test_an_infeasible_wish_names_what_contradicts(call: Call) -> None:
    result = call("emerging", "--lead", "0,1,2")
    assert result.exit_code == 0
    assert re.search(r"infeasible: 2 inequalities contradict each other \(1 leads\)", result.stdout)
    assert re.search(r"largest margin of all +not positive", result.stdout)


def test_the_limit_grants_what_the_input_cannot(call: Call) -> None:
    text = call("emerging", "--lead", "0,1,2", "--limit", "--alpha", ".5").stdout
    assert re.search(r"status +feasible", text)


def test_json_is_the_data_of_the_result(call: Call) -> None:
    data = json.loads(call("edges", "--lead", "0,1", "--follow", "6:0", "--json").stdout)
    found = choose_matrix(arrangement("edges"), [0, 1], follow=[(6, 0)])
    assert data == json.loads(json.dumps(found.to_dict()))


def test_exact_arrangements_and_diagonal_matrices(call: Call) -> None:
    line = "triangle --exact --lead 0,2 --diagonal --json"
    data = json.loads(call(*line.split()).stdout)
    assert data["shape"] == "diagonal"
    assert ControlCertificate.from_dict(data["certificate"]).verify()


def test_files_hold_a_matrix_that_other_commands_read_and_both_scenes(
    call: Call, tmp_path: Path
) -> None:
    line = "gaussian:n=40,d=2,seed=1 --lead 18,34,20 --relax --out A.json --out both.png"
    result = call(*line.split())
    assert result.exit_code == 0
    assert "20 leads (no fewer is possible)" in result.stdout
    data = json.loads((tmp_path / "A.json").read_text())
    before, after = (Scene.from_dict(data[key]) for key in ("before", "after"))
    assert 34 not in before.leader_indices
    assert {18, 34} <= set(after.leader_indices.tolist())
    with Image.open(tmp_path / "both.png") as image:
        assert image.width > image.height
    figure = draw_before_after(before, after, [18, 34])
    assert [ax.get_title() for ax in figure.axes] == ["A = I: 0 of 2 lead", "chosen A: 2 of 2 lead"]
    rings = [c for c in figure.axes[1].collections if c.get_label() == "wished"]
    z = arrangement("gaussian:n=40,d=2,seed=1")
    assert np.allclose(rings[0].get_offsets(), z[[18, 34]])


def test_factors_of_low_rank_are_written_as_scores_are_read(call: Call, tmp_path: Path) -> None:
    z = arrangement("gaussian:n=30,d=4,seed=0")
    lead = np.argsort(-np.linalg.norm(z, axis=1))[:2].tolist()
    line = f"gaussian:n=30,d=4,seed=0 --lead {lead[0]},{lead[1]} --rank 2 --out A.json"
    assert call(*line.split()).exit_code == 0
    U, V = read_matrix(tmp_path / "A.json")
    assert U.shape == (2, 4)
    assert set(lead) <= set(equilibrium(z, A=(U, V)).leaders)


def test_a_picture_of_no_matrix_is_refused_and_the_proof_still_written(
    call: Call, tmp_path: Path
) -> None:
    line = "emerging --lead 1 --out a.json --out a.png"
    result = call(*line.split())
    assert result.exit_code == 2
    assert result.stderr.startswith("error: --out a.png: there is no A to draw")
    assert json.loads((tmp_path / "a.json").read_text())["status"] == "infeasible"
    assert not (tmp_path / "a.png").exists()


def test_a_certificate_that_does_not_verify_is_our_fault(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ControlCertificate, "verify", lambda self: False)
    result = call("square", "--lead", "0")
    assert result.exit_code == 1
    assert "the certificate does not verify" in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("triangle --lead 0,x", "--lead: expected token numbers such as 0,3, got '0,x'"),
        ("triangle --lead 0,9", "from 0 to 8; got 9"),
        ("triangle --lead 0 --follow 3", "--follow: expected pairs such as 5:0,6:3, got '3'"),
        ("triangle --lead 0 --follow 3:1", "Add 1 to `lead`"),
        ("triangle", "Missing option '--lead'"),
        ("triangle --lead 0 --rank 1 --limit", "`rank` goes with"),
        ("triangle --lead 0 --out a.gif", "--out a.gif: expected an ending"),
        ("gaussian:d=3 --lead 0 --out a.png", "Choose two with --axes 0,1"),
        ("nowhere.csv --lead 0", "nowhere.csv"),
    ],
)
def test_mistakes_are_one_line(call: Call, args: str, message: str) -> None:
    result = call(*args.split())
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert message in line


def test_scenes_of_other_tokens_are_refused() -> None:
    one = Scene(np.zeros((1, 3, 2)), (0,), np.full((1, 3), -1), ())
    other = Scene(np.ones((1, 3, 2)), (0,), np.full((1, 3), -1), ())
    with pytest.raises(ValueError, match="scenes of the same tokens"):
        draw_before_after(one, other, [0])


def test_the_examples_of_the_help_work(call: Call) -> None:
    text = call("--help").stdout
    for line in (
        "emerging --lead 0,1,2",
        "gaussian:n=40,d=2,seed=1 --lead 18,34,20 --relax --out A.json --out both.png",
        "triangle --lead 0,2 --follow 3:0,4:2 --diagonal",
    ):
        assert line in " ".join(text.split())
        assert call(*line.split()).exit_code == 0
