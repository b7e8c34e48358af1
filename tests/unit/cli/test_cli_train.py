"""`hardmax train`, `evaluate` and `predict`: one call each of the library, shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from hardmax.cli import evaluate, predict, train
from hardmax.cli.main import Commands
from hardmax.estimators.classifier import HardmaxClassifier, load

ROWS = ["a good film,pos", "good and warm,pos", "a bad film,neg", "bad and cold,neg"]
FAST = ["--dim", "4", "--heads", "2", "--epochs", "4"]
Call = Callable[..., Result]


def commands() -> typer.Typer:
    """The three commands below the group that turns errors into exit statuses."""
    app = typer.Typer(cls=Commands, pretty_exceptions_enable=False)
    app.callback()(lambda: None)
    for command in (train, evaluate, predict):
        command.register(app)
    return app


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """A call in a folder that holds `reviews.csv`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reviews.csv").write_text("review,verdict\n" + "\n".join(ROWS * 6) + "\n")

    def run(*args: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(commands(), list(args), input=stdin, catch_exceptions=False)

    return run


@pytest.fixture
def trained(call: Call) -> Call:
    """The same, with a model in `model`."""
    result = call("train", "reviews.csv", "--out", "model", *FAST)
    assert result.exit_code == 0, result.output
    return call


def test_training_saves_the_model_of_the_library(trained: Call) -> None:
    texts = [row.split(",")[0] for row in ROWS * 6]
    labels = [row.split(",")[1] for row in ROWS * 6]
    own = HardmaxClassifier(dim=4, heads=2, epochs=4, random_state=0).fit(texts, labels)
    saved = load("model").decision_function(texts)
    assert saved.tobytes() == own.decision_function(texts).tobytes()


def test_training_says_which_columns_it_guessed_and_shows_no_bar_in_a_pipe(call: Call) -> None:
    result = call("train", "reviews.csv", "--out", "m", *FAST)
    assert "'review' (guessed)" in result.stderr
    assert "epoch" not in result.stderr
    assert "saved m" in result.stdout


def test_training_as_json_holds_the_settings(call: Call) -> None:
    args = ["--out", "m", "--preset", "plane", "--epochs", "3", "--validation", ".25", "--json"]
    data = json.loads(call("train", "reviews.csv", *args).stdout)
    assert data["classes"] == ["neg", "pos"]
    assert (data["settings"]["dim"], data["settings"]["heads"]) == (2, 1)
    assert data["settings"]["early_stopping"]
    assert len(data["validation_accuracy"]) == data["epochs"]


def test_evaluation_counts_every_text_once(trained: Call) -> None:
    data = json.loads(trained("evaluate", "model", "reviews.csv", "--json").stdout)
    assert sum(map(sum, data["confusion"])) == data["texts"] == 24
    assert data["interval"][0] <= data["accuracy"] <= data["interval"][1]
    assert set(data["leaders"]) >= {"mean", "deviation", "smallest", "largest", "at_start"}


def test_evaluation_writes_picture_and_data(trained: Call, tmp_path: Path) -> None:
    result = trained(
        "evaluate", "model", "reviews.csv", "--out", "r.png", "--out", "r.json", "--out", "r.svg"
    )
    assert "wrote r.png" in result.stdout
    assert "accuracy" in result.stdout
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "r.json").read_text())["texts"] == 24


def test_prediction_of_words_lines_and_files_agree(trained: Call, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("a good film\nbad\n")
    direct = trained("predict", "model", "a good film", "bad").stdout
    assert trained("predict", "model", stdin="a good film\nbad\n").stdout == direct
    assert trained("predict", "model", "--file", "lines.txt").stdout == direct
    assert len(direct.splitlines()) == 2


def test_prediction_as_json_is_one_record_a_line(trained: Call) -> None:
    out = trained("predict", "model", "--json", stdin="good\n\nünïcode\n").stdout
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["text"] for row in rows] == ["good", "", "ünïcode"]
    assert all(abs(sum(row["probabilities"].values()) - 1) < 1e-12 for row in rows)


def test_prediction_reads_a_column_without_labels(trained: Call, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id,review\n1,good\n2,bad\n")
    out = trained("predict", "model", "--file", "new.csv", "--text", "review").stdout
    assert [line.split("\t")[2] for line in out.splitlines()] == ["good", "bad"]


def test_prediction_of_a_table_says_which_rows_it_left_out(trained: Call, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("review\na good film\n\n  ,\nbad and cold\n")
    result = trained("predict", "model", "--file", "more.csv")
    assert result.exit_code == 0
    assert [line.split("\t")[2] for line in result.stdout.splitlines()] == [
        "a good film", "bad and cold",
    ]  # fmt: skip
    assert "'review' (guessed)" in result.stderr
    assert "more.csv:4" in result.stderr


def test_evaluation_prints_the_table_of_leaders(trained: Call) -> None:
    out = trained("evaluate", "model", "reviews.csv").stdout
    assert "present at layer 0" in out
    assert "per text and head, 24 texts" in out


def test_evaluation_leaves_out_labels_that_the_model_does_not_know_and_names_their_rows(
    trained: Call, tmp_path: Path
) -> None:
    known, other = json.loads(trained("evaluate", "model", "reviews.csv", "--json").stdout)[
        "classes"
    ]
    rows = [f"a good film,{known}", "a bad film,mixed", f"bad and cold,{other}"]
    (tmp_path / "three.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    result = trained("evaluate", "model", "three.csv", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["texts"] == 2
    said = "1 x a label that is not among the expected ones; left out (three.csv:3)"
    assert said in result.stderr


def test_prediction_answers_each_line_before_the_next_comes(trained: Call, tmp_path: Path) -> None:
    code = (
        "import sys; from tests.unit.cli.test_cli_train import commands; "
        "commands()(['predict', 'model'])"
    )
    root = str(Path(__file__).resolve().parents[3])
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([root, f"{root}/src"])},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for line in ("a good film", "bad and cold"):
        process.stdin.write(line + "\n")
        process.stdin.flush()
        assert process.stdout.readline().rstrip("\n").endswith(line)
    process.stdin.close()
    process.stdout.close()
    assert process.wait(timeout=60) == 0


def test_a_file_without_header_in_another_encoding_trains_and_is_evaluated(
    call: Call, tmp_path: Path
) -> None:
    rows = "".join(f"caf\xe9, {row.replace(',', ';')}\n" for row in ROWS * 6)
    (tmp_path / "old.csv").write_bytes(rows.encode("latin-1"))
    form = ["--text", "0", "--label", "1", "--encoding", "latin-1", "--delimiter", ";"]
    result = call("train", "old.csv", "--out", "m", *form, *FAST)
    assert result.exit_code == 0, result.output
    assert "line 1 is read as a row" in result.stderr
    data = json.loads(call("evaluate", "m", "old.csv", *form, "--json").stdout)
    assert data["texts"] == 24
    asked = call("predict", "m", "--file", "old.csv", *form[:2], *form[4:])
    assert len(asked.stdout.splitlines()) == 24
    refused = call("train", "old.csv", "--out", "n", *form[:4], "--delimiter", ";")
    assert "or --encoding in a command, such as latin-1." in refused.stderr


def test_training_takes_the_training_part_and_evaluation_the_test_part(
    call: Call, tmp_path: Path
) -> None:
    for part, count in (("train", 6), ("test", 2)):
        for k, row in enumerate(ROWS * count):
            text, label = row.split(",")
            place = tmp_path / "set" / part / label / f"{k}.txt"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    result = call("train", "set", "--out", "m", "--json", *FAST)
    assert json.loads(result.stdout)["texts"] == 24
    assert "the part train alone was read" in result.stderr
    data = json.loads(call("evaluate", "m", "set", "--json").stdout)
    assert data["texts"] == 8
    whole = call("evaluate", "m", "set", "--part", "train", "--json").stdout
    assert json.loads(whole)["texts"] == 24


def test_labels_of_yes_and_no_are_those_of_a_file_with_ones_and_zeros(
    call: Call, tmp_path: Path
) -> None:
    texts = [row.split(",")[0] for row in ROWS * 6]
    clf = HardmaxClassifier(dim=4, heads=2, members=1, epochs=4)
    clf.fit(texts, [k % 4 < 2 for k in range(24)]).save(tmp_path / "m")
    (tmp_path / "new.jsonl").write_text(
        '{"text": "a good film", "label": true}\n{"text": "bad and cold", "label": false}\n'
    )
    data = json.loads(call("evaluate", "m", "new.jsonl", "--json").stdout)
    assert (data["classes"], data["texts"]) == ([False, True], 2)


def test_the_name_of_a_file_as_a_text_is_noticed(trained: Call) -> None:
    result = trained("predict", "model", "reviews.csv")
    assert result.exit_code == 0
    assert "--file reviews.csv reads the file" in result.stderr
    assert "part" in trained("train", "corpus", "--out", "n", "--part", "half").stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["train", "none.csv", "--out", "m"], "none.csv"),
        (["train", "reviews.csv", "--out", "no/m"], "does not exist"),
        (["train", "reviews.csv", "--out", "m", "--label", "colour"], "colour"),
        (["train", "reviews.csv", "--out", "m", "--heads", "3"], "`heads` must divide"),
        (["train", "reviews.csv", "--out", "m", "--scope", "word"], "`scope` must be one of"),
        (["train", "reviews.csv", "--out", "m", "--validation", "2"], "`validation_fraction`"),
        (["train", "reviews.csv"], "out"),
        (["train", "reviews.csv", "--out", "m", "--preset", "cube"], "cube"),
        (["evaluate", "none", "reviews.csv"], "no such folder"),
        (["evaluate", "model", "none.csv"], "none.csv"),
        (["evaluate", "model", "other.csv"], "must be among the model's classes"),
        (["evaluate", "model", "reviews.csv", "--out", "r.gif"], "expected an ending"),
        (["predict", "none", "a"], "no such folder"),
        (["predict", "model", "a", "--file", "reviews.csv"], "Give one of them"),
        (["predict", "model", "--text", "review"], "Give --file too"),
        (["predict", "model", "--file", "none.txt"], "none.txt"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    trained: Call, tmp_path: Path, args: list[str], message: str
) -> None:
    (tmp_path / "other.csv").write_text("text,label\ngood,1\nbad,0\n")
    result = trained(*args)
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert message in lines[-1]
    assert lines[-1].startswith("error: ")
    assert all(line.startswith("reviews.csv: ") for line in lines[:-1])


def test_an_existing_model_is_replaced_only_with_force(trained: Call) -> None:
    again = ["train", "reviews.csv", "--out", "model", *FAST]
    assert trained(*again).exit_code == 2
    assert trained(*again, "--force").exit_code == 0
