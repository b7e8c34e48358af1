"""`hardmax construct`, and evaluate and predict on its networks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from hardmax._errors import DataError, InputError
from hardmax.cli import construct as command
from hardmax.exact import ConflictError, Network


@pytest.fixture
def app() -> typer.Typer:
    one = typer.Typer()
    command.register(one)
    return one


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    sequences = [rng.normal(size=(3, 2)).tolist() for _ in range(8)]
    path = tmp_path / "data.json"
    path.write_text(json.dumps({"sequences": sequences, "labels": ["a", "b"] * 4}))
    return path


def test_json_holds_counts_proof_and_temperatures(app: typer.Typer, data: Path) -> None:
    arguments = [str(data), "--method", "tree", "--exact", "3", "--softmax", "--json"]
    said = CliRunner().invoke(app, arguments, catch_exceptions=False)
    out = json.loads(said.stdout)
    assert out["certificate"]["proved"]
    assert out["rational"] == {"sequences": 3, "right": True}
    assert 0 < out["softmax"]["smallest_beta"] <= out["softmax"]["beta_star"]
    assert out["counts"]["attention_layers"] <= out["counts"]["bounds"]["attention_layers"]


def test_text_output_names_bound_and_certificate(app: typer.Typer, data: Path) -> None:
    said = CliRunner().invoke(app, [str(data), "--method", "chain"], catch_exceptions=False)
    assert "no rounding" in said.stdout
    assert "bound of the paper's shape" in said.stdout


def test_saved_network_evaluates_and_predicts(
    app: typer.Typer, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "net"
    picture, onnx = tmp_path / "steps.png", tmp_path / "net.onnx"
    arguments = [str(data), "--out", str(out), "--picture", str(picture), "--onnx", str(onnx)]
    CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert command.is_network(out)
    assert not command.is_network(tmp_path)
    assert picture.stat().st_size > 1000
    assert onnx.stat().st_size > 100
    command.evaluate_network(out, str(data), json=True)
    result = json.loads(capsys.readouterr().out)
    assert (result["accuracy"], result["certified"]) == (1.0, True)
    sequences, labels = command.read_sequences(str(data))
    command.predict_network(out, sequences)
    assert capsys.readouterr().out.split() == labels
    assert Network.load(out).verify(sequences, labels)


def test_texts_and_arrays_are_read(app: typer.Typer, tmp_path: Path) -> None:
    table = tmp_path / "reviews.csv"
    table.write_text("text,label\na good film,pos\na bad film,neg\n")
    tree = tmp_path / "tree.svg"
    arguments = [str(table), "--method", "tree", "--picture", str(tree), "--show", "tree"]
    assert CliRunner().invoke(app, arguments, catch_exceptions=False).exit_code == 0
    assert tree.read_text().startswith("<?xml")
    arrays = tmp_path / "data.npz"
    tokens = np.random.default_rng(0).normal(size=(5, 3))
    np.savez(arrays, tokens=tokens, lengths=np.array([2, 3]), labels=np.array([1, 0]))
    sequences, labels = command.read_sequences(str(arrays))
    assert [len(z) for z in sequences] == [2, 3]
    assert labels == [1, 0]


def test_mistakes_are_one_line(app: typer.Typer, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    with pytest.raises(DataError, match=r"expected .*sequences.*labels"):
        command.read_sequences(str(wrong))
    arrays = tmp_path / "wrong.npz"
    np.savez(arrays, tokens=np.ones((3, 2)), lengths=np.array([1]), labels=np.array([1]))
    with pytest.raises(DataError, match="lengths must sum to the 3 rows"):
        command.read_sequences(str(arrays))
    same = tmp_path / "same.json"
    same.write_text('{"texts": ["one word", "word one"], "labels": [0, 1]}')
    with pytest.raises(ConflictError, match=r"\(0, 1\)"):
        CliRunner().invoke(app, [str(same)], catch_exceptions=False)
    good = tmp_path / "good.json"
    good.write_text('{"texts": ["one word", "word two"], "labels": [0, 1]}')
    arguments = [
        str(good),
        "--show",
        "tree",
        "--method",
        "mean",
        "--picture",
        str(tmp_path / "x.png"),
    ]
    with pytest.raises(InputError, match="--show tree needs --method tree or chain"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
