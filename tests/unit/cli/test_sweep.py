"""`hardmax sweep`: what it prints and writes, how it goes on, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from tests.unit.cli.conftest import Call


def test_a_grid_is_a_table_with_intervals(call: Call) -> None:
    result = call("sweep", "matrix=indefinite,skew", "n=12", "d=3", "--draws", "10")
    assert result.exit_code == 0
    assert "20 of 2 kinds, seed 0" in result.stdout
    rows = [line.split() for line in result.stdout.splitlines()]
    (skew,) = (row for row in rows if row and row[0] == "skew")
    assert skew[1:4] == ["1", "[1,", "1]"]
    assert "matrix" in result.stdout
    assert " d " not in result.stdout  # what does not vary is not a column


def test_json_is_the_data_of_the_object(call: Call) -> None:
    import hardmax as hm

    words = ["sweep", "matrix=spd", "n=10", "--draws", "5", "--seed", "4", "--level", "0.9"]
    data = json.loads(call(*words, "--json").stdout)
    found = hm.sweep({"matrix": "spd", "n": 10}, draws=5, seed=4, level=0.9)
    assert data == json.loads(json.dumps(found.to_dict()))


def test_a_folder_gets_tables_and_a_picture_and_goes_on(call: Call) -> None:
    words = ["sweep", "matrices", "n=8", "d=2", "--out", "found"]
    first = call(*words, "--draws", "3")
    assert "wrote sweep.png, summary and cells to found" in first.stdout
    assert "from an earlier run" not in first.stdout
    names = {p.name for p in Path("found").iterdir()}
    assert names == {
        "journal.txt", "cells.csv", "cells.parquet", "summary.csv", "summary.parquet",
        "summary.json", "sweep.png",
    }  # fmt: skip
    with Image.open("found/sweep.png") as picture:
        assert picture.width > 500
    again = call(*words, "--draws", "4")
    assert "from an earlier run   36" in again.stdout
    assert len(Path("found/cells.csv").read_text().splitlines()) == 1 + 4 * 12


def test_many_lines_give_no_picture_and_say_so(call: Call) -> None:
    words = ["sweep", "n=3,4,5,6", "d=1,2,3,4", "alpha=.5,1,2,3", "--draws", "1", "--out", "f"]
    result = call(*words)
    assert result.exit_code == 0
    assert "no picture: 16 lines are too many" in result.stderr
    assert not Path("f/sweep.png").exists()
    assert Path("f/summary.csv").exists()


def test_measures_and_the_axis_are_chosen(call: Call) -> None:
    words = ["sweep", "n=5,8,11", "d=2,3", "--draws", "3", "--show", "leaders,layers"]
    result = call(*words, "--x", "n", "--out", "f")
    assert result.exit_code == 0
    assert "leaders" in result.stdout
    assert "clusters" not in result.stdout
    assert Path("f/sweep.png").exists()


def test_a_measure_that_no_system_has_is_left_out_and_said(call: Call) -> None:
    result = call("sweep", "n=5", "--draws", "2", "--show", "clusters,life", "--out", "f")
    assert result.exit_code == 0
    assert "no system has life" in result.stderr
    assert Path("f/sweep.png").exists()


def test_the_classifier_is_measured_by_its_own_settings(call: Call) -> None:
    words = ["sweep", "classifier", "texts=60", "heads=2", "A=identity", "dim=4", "ngrams=1"]
    result = call(*words, "normalization=rescale,sphere", "--draws", "1", "--json")
    assert result.exit_code == 0
    plain, sphere = json.loads(result.stdout)["summary"]
    assert (plain["draws"], plain["normalization"]) == (1, "rescale")
    assert sphere["normalization"] == "sphere"
    assert 0.3 < plain["accuracy"] <= 1
    assert "accuracy" not in sphere
    assert 0 < plain["followed"] <= 1
    assert sphere["tokens"] == plain["tokens"] > 5


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("", "Missing argument"),
        ("why", "'why' is no question. Known are matrices, depth"),
        ("n=3,x", "`n` must be a number; got 'x'"),
        ("matrix=best", "`matrix` must be one of identity"),
        ("heat=3", "'heat' is no setting of a system"),
        ("n=2..5", "`n` is a range, which needs a sample"),
        ("matrices n", "expected NAME=VALUE,VALUE"),
        ("n=5 --draws 0", "Invalid value for '--draws'"),
        ("n=5 --draws 2 --show heat", "--show: 'heat' is not measured. Known: arrived_at"),
        ("n=5 --out no/where", "the folder no does not exist"),
        ("n=5 --scheduler somewhere", "`scheduler` must be here, local"),
        ("classifier data=web", "`data` must be one of corpus, imdb; got 'web'"),
        ("classifier n=5", "'n' is no setting of this check"),
        ("classifier heads=0", "`heads` must be a whole number >= 1; got 0"),
    ],
)
def test_mistakes_are_one_line(refusal: Callable[..., str], args: str, message: str) -> None:
    assert message in refusal("sweep", *args.split())


def test_another_seed_in_the_same_folder_is_refused(
    call: Call, refusal: Callable[..., str]
) -> None:
    call("sweep", "n=5", "--draws", "1", "--out", "f")
    line = refusal("sweep", "n=5", "--draws", "1", "--out", "f", "--seed", "2")
    assert "was begun with seed = 0, and now it is 2" in line
    Path("g").write_text("text")
    assert "cannot be a folder of results" in refusal("sweep", "n=5", "--out", "g")
