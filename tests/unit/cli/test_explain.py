"""`hardmax explain`, `overview` and `faithfulness`: one call each of the library, shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from hardmax.estimators.classifier import HardmaxClassifier, load
from hardmax.explain.faithfulness import faithfulness
from hardmax.explain.overview import overview

TEXTS = ["a good film", "good and warm", "a bad film", "bad and cold"] * 6
LABELS = ["pos", "pos", "neg", "neg"] * 6
ROWS = "text,label\n" + "".join(f"{t},{y}\n" for t, y in zip(TEXTS, LABELS, strict=True))
Call = Callable[..., Result]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explained") / "model"
    clf = HardmaxClassifier(dim=4, heads=2, members=1, epochs=30, random_state=0)
    clf.fit(TEXTS, LABELS).save(folder)
    return folder


@pytest.fixture
def model(saved: Path, call: Call) -> str:  # after `call`, which goes to an empty folder
    Path("texts.csv").write_text(ROWS)
    return str(saved)


def test_explain_says_the_sum_the_leaders_and_what_would_change(call: Call, model: str) -> None:
    result = call("explain", model, "a good film")
    assert result.exit_code == 0, result.output
    found = load(model).explain("a good film")
    assert f"logit of pos: {found.logit:.6f}" in result.stdout
    for part in ("The model says pos", "contribution", "leader", "Without the word"):
        assert part in result.stdout
    assert "\x1b" not in result.stdout


def test_explain_as_json_is_the_python_object(call: Call, model: str) -> None:
    for among in ("words", "leaders"):
        told = json.loads(call("explain", model, "a good", "--json", "--among", among).stdout)
        found = load(model).explain("a good")
        counter = found.counterfactual(among)
        assert told.pop("counterfactual") == (counter and counter.to_dict())
        assert told == found.to_dict()


def test_explain_reads_a_file_and_writes_page_animation_and_data(call: Call, model: str) -> None:
    Path("review.txt").write_text("a good <script>alert(1)</script> film\x00\u2028", "utf-8")
    outs = ["--out", "a.html", "--out", "a.gif", "--out", "a.json"]
    result = call("explain", model, "--file", "review.txt", *outs)
    assert result.exit_code == 0, result.output
    page = Path("a.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "<script>alert" not in page
    assert Path("a.gif").read_bytes().startswith(b"GIF89a")
    assert json.loads(Path("a.json").read_text())["prediction"] == "pos"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "expected a text or --file"),
        (["good", "--file", "texts.csv"], "expected a text or --file"),
        (["--file", "none.txt"], "none.txt"),
        (["good", "--label", "maybe"], "none of the classes"),
        (["good", "--among", "verbs"], "among"),
        (["good", "--out", "a.docx"], ".html"),
        (["good", "--out", "texts.csv/a.html"], "texts.csv"),
    ],
)
def test_explain_refuses_in_one_line(
    refusal: Callable[..., str], model: str, args: list[str], said: str
) -> None:
    assert said in refusal("explain", model, *args)


def test_files_that_exist_stay(refusal: Callable[..., str], model: str) -> None:
    Path("a.html").write_text("mine")
    assert "--force" in refusal("explain", model, "good", "--out", "a.html")
    assert Path("a.html").read_text() == "mine"


def test_overview_is_the_python_object(call: Call, model: str) -> None:
    told = json.loads(call("overview", model, "texts.csv", "--text", "text", "--json").stdout)
    assert told == overview(load(model), TEXTS).to_dict()
    right = call("overview", model, "texts.csv", "--correct", "--json", "--rows", "3")
    assert json.loads(right.stdout)["texts"] == len(TEXTS)
    assert len(json.loads(right.stdout)["leaders"]) <= 3


def test_overview_shows_tables_and_writes_page_and_picture(call: Call, model: str) -> None:
    outs = ["--out", "o.html", "--out", "o.png", "--out", "o.svg", "--out", "o.json"]
    result = call("overview", model, "texts.csv", "--text", "text", *outs)
    assert result.exit_code == 0, result.output
    assert "24 texts" in result.stdout
    assert "leader" in result.stdout
    assert "<h2>Who leads</h2>" in Path("o.html").read_text("utf-8")
    assert Path("o.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in Path("o.svg").read_text("utf-8")
    assert json.loads(Path("o.json").read_text())["texts"] == 24


def test_faithfulness_is_the_table_of_the_library(call: Call, model: str) -> None:
    args = ("faithfulness", model, "texts.csv", "--text", "text", "--limit", "4")
    told = json.loads(call(*args, "--json").stdout)
    rows = [row.to_dict() for row in faithfulness(load(model), TEXTS[:4])]
    for one, other in zip(told, rows, strict=True):
        one.pop("seconds"), other.pop("seconds")
        assert one == other
    shown = call(*args).stdout
    assert all(row["method"] in shown for row in rows)
    assert "4 texts" in shown


def test_faithfulness_needs_texts(call: Call, model: str) -> None:
    Path("empty.csv").write_text("text\nzzz\n")
    result = call("faithfulness", model, "empty.csv", "--text", "text")
    assert result.exit_code == 2
    assert "two known words" in result.stderr.splitlines()[-1]
