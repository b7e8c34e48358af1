"""`hardmax simulate`: the run of the library, shown and written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hardmax import io, simulate
from hardmax.plot.record import Scene
from hardmax.tokens.points import arrangement
from tests.unit.cli.conftest import Call

MAGIC = {
    ".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml", ".gif": b"GIF8",
    ".html": b"<!DOCTYPE html>", ".json": b"{", ".npz": b"PK",
}  # fmt: skip


def test_table_names_leaders_births_and_followers(call: Call) -> None:
    text = call("simulate", "emerging", "--alpha", ".5").stdout
    assert "emerging: 8 tokens in R^2" in text
    assert re.search(r"status +settled", text)
    assert re.search(r"^ 0 +0 +3 +3, 6, 7$", text, re.MULTILINE)
    assert re.search(r"^ 1 +1 +0 +none$", text, re.MULTILINE)
    assert re.search(r"tie_tol, merge_tol +1e-12, 1e-06 \(float64\)", text)


def test_names_of_the_file_are_the_names_of_the_leaders(call: Call, tmp_path: Path) -> None:
    (tmp_path / "words.csv").write_text("good,3,0\nbad,-3,0\n[red]film\x1b[0m,1,0\n")
    text = call("simulate", "words.csv").stdout
    assert re.search(r"^ good \(0\) +0 +1 +\[red\]film\?\[0m$", text, re.MULTILINE)
    assert "\x1b" not in text


def test_json_is_the_data_of_the_run(call: Call) -> None:
    data = json.loads(call("simulate", "square", "--depth", "3", "--gamma", ".3", "--json").stdout)
    run = simulate(arrangement("square"), 3, gamma=0.3)
    assert data["zs"] == run.zs.tolist()
    assert data["follows"] == run.follows.tolist()
    assert data["labels"] == run.labels.tolist()
    assert data["leaders"] == io.plain(run.leaders)
    assert data["followers"] == io.plain(run.followers)
    assert (data["status"], data["tie_tol"], data["gamma"]) == (run.status, run.tie_tol, [0.3] * 3)


def test_options_reach_the_library(call: Call, tmp_path: Path) -> None:
    np.save(tmp_path / "A.npy", np.diag([1.0, 2.0, 3.0, 4.0]))
    line = (
        "simulate gaussian:n=12,d=4 --seed 3 --depth 4 --alpha 1,.5,1/4,2 --A A.npy --tie-tol 1e-9 "
        "--merge-tol 1e-4 --normalization sphere --dtype float32 --layers 4,0 --json"
    )
    data = json.loads(call(*line.split()).stdout)
    run = simulate(
        arrangement("gaussian:n=12,d=4", seed=3).astype(np.float32), 4,
        A=np.diag([1.0, 2.0, 3.0, 4.0]), alpha=[1, 0.5, 0.25, 2], tie_tol=1e-9, merge_tol=1e-4,
        normalization="sphere", save=[0, 4],
    )  # fmt: skip
    assert data["layers"] == [0, 4]
    assert data["dtype"] == "float32"
    assert data["z"] == run.z.tolist()
    assert data["normalization"] == "sphere"


def test_padding_of_a_file_takes_no_part(
    call: Call, refusal: Callable[..., str], tmp_path: Path
) -> None:
    z, mask = arrangement("gaussian:n=6", seed=2), np.arange(6) < 4
    np.savez(tmp_path / "a.npz", z=np.where(mask[:, None], z, np.nan), mask=mask, alpha=0.5)
    out = ("--out", "a.png", "--out", "b.npz")
    data = json.loads(call("simulate", "a.npz", "--depth", "3", "--json", *out).stdout)
    run = simulate(z[:4], 3, alpha=0.5)
    assert np.array_equal(np.array(data["zs"], dtype=float)[:, :4], run.zs)
    assert data["leaders"] == io.plain(run.leaders)
    assert np.load(tmp_path / "b.npz")["mask"].tolist() == mask.tolist()
    assert "at the last layer" not in call("simulate", "a.npz").stdout
    assert "states padded tokens" in refusal("equilibrium", "a.npz")


def test_how_choices_are_searched_can_be_said_and_is_shown(call: Call) -> None:
    for path in ("brute", "sorted", "twostage"):
        words = ("gaussian:n=300,d=4,seed=1", "--search", path)
        for command in (("simulate", *words, "--depth", "2"), ("equilibrium", *words)):
            assert re.search(rf"searched by +{path}", call(*command).stdout)
    assert "exact scores" in call("equilibrium", "triangle", "--exact").stdout


def test_temperature_and_heads_reach_the_library(call: Call) -> None:
    line = "simulate gaussian:n=6,d=4 --depth 2 --temperature .5 --heads 2 --json"
    data = json.loads(call(*line.split()).stdout)
    run = simulate(arrangement("gaussian:n=6,d=4"), 2, temperature=0.5, heads=2)
    assert data["z"] == run.z.tolist()
    assert np.shape(data["follows"]) == (2, 2, 6)


def test_several_heads_have_a_column_of_their_own(call: Call) -> None:
    text = call("simulate", "gaussian:n=9,d=4,seed=1", "--heads", "2").stdout
    assert re.search(r"leader +born +followers +head +who follows", text)


def test_matrix_and_strength_of_a_json_file_are_used_unless_given(
    call: Call, tmp_path: Path
) -> None:
    stated = {"points": [[1, 0], [0, 1], [0.3, 0.4]], "A": [[1, 0], [0, 9]], "alpha": "1/3"}
    (tmp_path / "a.json").write_text(json.dumps(stated))
    data = json.loads(call("simulate", "a.json", "--depth", "1", "--json").stdout)
    assert data["A"] == [[1, 0], [0, 9]]
    assert data["gamma"] == [0.25]
    data = json.loads(call("simulate", "a.json", "--depth", "1", "--alpha", "1", "--json").stdout)
    assert data["gamma"] == [0.5]


def test_a_written_run_can_be_continued(call: Call, tmp_path: Path) -> None:
    call("simulate", "edges", "--alpha", ".5", "--depth", "2", "--out", "a.json", "--out", "a.npz")
    z = simulate(arrangement("edges"), 5, alpha=0.5).z
    for source in ("a.json", "a.npz"):
        line = f"simulate {source} --depth 3 --alpha .5 --json"
        np.testing.assert_allclose(json.loads(call(*line.split()).stdout)["z"], z, rtol=1e-14)


def test_every_kind_of_file_is_written(call: Call, tmp_path: Path) -> None:
    out = [part for kind in MAGIC for part in ("--out", f"run{kind}")]
    result = call("simulate", "edges", "--alpha", ".5", "--depth", "6", *out)
    assert result.exit_code == 0
    assert result.stdout.count("wrote run.") == len(MAGIC)
    for kind, magic in MAGIC.items():
        assert (tmp_path / f"run{kind}").read_bytes().startswith(magic)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(f"run{kind}" for kind in MAGIC)
    with np.load(tmp_path / "run.npz") as stored:
        assert stored["zs"].shape == (7, 10, 2)
        assert stored["leaders"].tolist() == [0, 1, 2, 3]
    data = json.loads((tmp_path / "run.json").read_text())
    scene = Scene.from_dict(data["scene"])
    assert np.array_equal(scene.zs, np.array(data["zs"]))


def test_layers_choose_the_panels_and_what_is_kept(call: Call, tmp_path: Path) -> None:
    line = "simulate edges --alpha .5 --layers 0,1,30 --out a.png --out a.npz"
    assert call(*line.split()).exit_code == 0
    with Image.open(tmp_path / "a.png") as image:
        assert image.width > 2 * image.height
    with np.load(tmp_path / "a.npz") as stored:
        assert stored["layers"].tolist() == [0, 1, 30]


def test_a_picture_of_lasting_ties_has_the_polytope_and_the_points_between(
    call: Call, tmp_path: Path
) -> None:
    line = "simulate edges --alpha .5 --depth 5 --out a.json"
    assert call(*line.split()).exit_code == 0
    data = json.loads((tmp_path / "a.json").read_text())
    assert data["status"] == "depth_reached"  # a run cannot know that a tie lasts
    assert sorted(data["scene"]["vertices"]) == [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    assert Scene.from_dict(data["scene"]).rests().tolist() == [[-1, 0], [1, 0]]


@pytest.mark.parametrize("content", ["1e300,1\n0,1\n", "1e-310,1\n0,1\n"])
def test_tokens_that_float32_does_not_hold_are_refused(
    refusal: Callable[..., str], tmp_path: Path, content: str
) -> None:
    (tmp_path / "a.csv").write_text(content)
    line = refusal("simulate", "a.csv", "--dtype", "float32")
    assert "--dtype float32 has no number near 1e" in line


@pytest.mark.parametrize("source", ["uniform:n=5,d=1", "ball:n=8,d=3", "gaussian:n=9,d=5"])
def test_pictures_of_any_dimension(call: Call, source: str) -> None:
    axes = ["--axes", "0,4"] if "d=5" in source else []
    out = ["--out", "a.png", "--out", "a.html", "--out", "a.gif"]
    assert call("simulate", source, "--depth", "2", *out, *axes).exit_code == 0


def test_a_batch_is_shown_by_sequence_and_drawn_on_request(call: Call, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.random.default_rng(0).standard_normal((3, 5, 2)))
    text = call("simulate", "a.npy").stdout
    assert "3 sequences of 5 tokens in R^2" in text
    assert re.search(r"^ 2 +settled +\d+$", text, re.MULTILINE)
    line = "simulate a.npy --depth 2 --sequence 1 --out a.png --out a.npz"
    assert call(*line.split()).exit_code == 0


def test_many_leaders_are_cut_with_a_line(call: Call) -> None:
    text = call("simulate", "gaussian:n=40,d=40", "--depth", "1").stdout
    assert "... and 20 more leaders; --json shows all" in text


@pytest.mark.parametrize(
    ("content", "leaders"),
    [
        ("1,2\n", [0]),
        ("3\n1\n-2\n", [0, 2]),
        ("0,0\n0,0\n", [0]),
        ("1,2\n1,2\n1,2\n", [0]),
        ("1e300,0\n-1e300,0\n1e300,1e299\n", [1, 2]),
    ],
)
def test_degenerate_tokens_give_their_leaders(
    call: Call, tmp_path: Path, content: str, leaders: list[int]
) -> None:
    (tmp_path / "a.csv").write_text(content)
    result = call("simulate", "a.csv", "--json")
    assert result.exit_code == 0
    assert [leader["index"] for leader in json.loads(result.stdout)["leaders"]] == leaders


def test_no_layers_at_all_is_a_run_of_depth_zero(call: Call) -> None:
    result = call("simulate", "square", "--depth", "0", "--out", "a.png")
    assert result.exit_code == 0
    assert "no token leads" in result.stdout


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "expected one token per line, got an empty file"),
        ("a.csv", "x,y\n", "got no further line"),
        ("a.csv", "1,2\n3\n", "line 2: expected 2 cells as in line 1, got 1"),
        ("a.csv", "1,2\n3,x\n", "line 2, column 2: expected a number, but 'x'"),
        ("a.csv", "1,2\n3,nan\n", "line 2, column 2: expected a number, but 'nan' is not a finite"),
        ("a.csv", "1,inf\n3,4\n", "line 1, column 2: expected a number, but 'inf' is not a finite"),
        ("a.npy", "junk", "a.npy: expected NumPy's format"),
        ("a.csv", '"', "expected one token per line, got empty cells only"),
        ("a.npz", "", "a.npz: expected arrays, got an empty file"),
        ("a.json", "[]", "expected a list of rows of numbers, got an empty list"),
        ("a.json", '{"points": [[1, 2]], "alpha": []}', "the file states alpha = []"),
        ("a.json", '{"points": [[1, 2]], "alpha": "x"}', "alpha: expected a number"),
        ("a.json", '{"points": [[1, 2]], "alpha": 1, "gamma": 1}', "states both alpha and gamma"),
        ("a.json", '{"points": [[1, 2]], "A": [[1]]}', "`A` must be (2, 2)"),
        ("a.xls", "1", "ends in one of .csv .tsv"),
    ],
)
def test_files_that_hold_no_tokens_are_refused(
    refusal: Callable[..., str], tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    assert message in refusal("simulate", name)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("nothing.csv", "nothing.csv: no such file"),
        ("nothing", "there is no file 'nothing', and 'nothing' names no arrangement"),
        ("gausian:n=3", "Did you mean gaussian?"),
        ("gaussian:n=0", "`n` must be a whole number >= 1; got '0'"),
        ("ball:seed=1 --seed 2", "seed=1 in 'ball:seed=1' and seed 2 differ"),
        ("good.csv --seed 2", "--seed belongs to random arrangements"),
        ("triangle --alpha 0", "`alpha` must be a finite number > 0"),
        ("triangle --alpha -1", "`alpha` must be a finite number > 0"),
        ("triangle --alpha inf", "--alpha: expected a number such as .5 or 1/2, but 'inf'"),
        ("triangle --alpha nan", "--alpha: expected a number such as .5 or 1/2, but 'nan'"),
        ("triangle --alpha big", "--alpha: expected a number such as .5 or 1/2, but 'big'"),
        ("triangle --alpha 1/0", "--alpha: expected a number such as .5 or 1/2, but '1/0' divides"),
        ("triangle --alpha 1,,2", "--alpha: expected a number such as .5 or 1/2, but ''"),
        ("triangle --alpha 1,2", "`alpha` must be one number or one per layer (depth = 30)"),
        ("triangle --gamma 1.5", "`gamma` must be a number in (0, 1]"),
        ("triangle --alpha 1 --gamma .5", "--alpha and --gamma were both given"),
        ("triangle --temperature -1", "`temperature` must be"),
        ("triangle --heads 3", "`heads` must divide"),
        ("triangle --heads 0", "`heads` must be an integer >= 1"),
        ("triangle --tie-tol -1", "`tie_tol` must be a finite number >= 0"),
        ("triangle --layers 0,31", "--layers: 31 is beyond the depth 30"),
        ("triangle --layers 0,x", "--layers: expected whole numbers such as 0,1,2"),
        ("triangle --axes 0,2", "--axes: expected two or three different coordinates of 0 to 1"),
        ("triangle --axes 0,0", "--axes: expected two or three different coordinates"),
        ("triangle --A missing.csv", "missing.csv: no such file"),
        ("triangle --A wrong.csv", "`A` must be (2, 2)"),
        ("triangle --A nan.csv", "nan.csv, line 1, column 2: expected a number, but 'nan'"),
        ("triangle --out a.bmp", "--out a.bmp: expected an ending of .png .pdf"),
        ("triangle --out a", "--out a: expected an ending of .png .pdf"),
        ("triangle --out no/a.png", "the folder no does not exist. Create it first."),
        ("triangle --out good.json", "good.json exists. Give another name or --force."),
        ("triangle --out a.png --out a.png", "--out a.png is given twice"),
        ("gaussian:d=5 --out a.png", "the tokens have d = 5. Choose with --axes 0,1."),
        ("gaussian:d=5 --out a.gif --axes 0,1,2", "--out a.gif: expected two --axes, got 3"),
        ("batch.npy --out a.png", "the file holds 2 sequences. Choose one with --sequence 0."),
        ("batch.npy --sequence 2", "--sequence 2: the file holds a batch of 2."),
        ("triangle --sequence 0", "--sequence 0: the file holds one sequence."),
        ("triangle --head 1", "--head 1: expected 0 to 0."),
    ],
)
def test_wrong_options_are_refused_in_one_line(
    refusal: Callable[..., str], tmp_path: Path, args: str, message: str
) -> None:
    (tmp_path / "good.csv").write_text("1,2\n3,4\n")
    (tmp_path / "good.json").write_text("[[1, 2]]")
    (tmp_path / "wrong.csv").write_text("1,2,3\n4,5,6\n")
    (tmp_path / "nan.csv").write_text("1,nan\n0,1\n")
    np.save(tmp_path / "batch.npy", np.ones((2, 3, 2)))
    before = sorted(tmp_path.iterdir())
    assert message in refusal("simulate", *args.split())
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "good.json").read_text() == "[[1, 2]]"


def test_force_replaces_a_file(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("old")
    assert call("simulate", "square", "--out", "a.json", "--force").exit_code == 0
    assert json.loads((tmp_path / "a.json").read_text())["status"] == "settled"


def test_places_are_checked_before_the_work(
    refusal: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import hardmax.dynamics.run

    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("the work began")

    def denied(*args: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(hardmax.dynamics.run, "simulate", never)
    monkeypatch.setattr(os, "open", denied)
    assert "cannot be written: Permission denied" in refusal("simulate", "square", "--out", "a.npz")


def test_a_target_that_fails_does_not_cost_the_others(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    result = call("simulate", "square", "--out", "a.npz", "--out", "a.json")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: a.npz: cannot be written: No space left on device. Give another place.\n"
    )
    assert "wrote a.json" in result.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_json_on_standard_output_stays_json_when_files_are_written(call: Call) -> None:
    result = call("simulate", "square", "--json", "--out", "a.npz")
    assert json.loads(result.stdout)["status"] == "settled"
    assert result.stderr == "wrote a.npz\n"
