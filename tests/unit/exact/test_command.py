"""`hardmax construct`, and evaluate and predict on its networks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from hardmax._errors import DataError, HardmaxError, InputError
from hardmax.cli import construct as command
from hardmax.cli import predict
from hardmax.cli.network import evaluate_network, is_network, predict_network
from hardmax.cli.sequences import read_sequences, read_unlabelled
from hardmax.estimators.classifier import HardmaxClassifier
from hardmax.exact import Network


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
    assert is_network(out)
    assert not is_network(tmp_path)
    assert picture.stat().st_size > 1000
    assert onnx.stat().st_size > 100
    evaluate_network(out, str(data), json=True)
    result = json.loads(capsys.readouterr().out)
    assert (result["accuracy"], result["certified"]) == (1.0, True)
    sequences, labels = read_sequences(str(data))
    predict_network(out, sequences)
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
    sequences, labels = read_sequences(str(arrays))
    assert [len(z) for z in sequences] == [2, 3]
    assert labels == [1, 0]


def _refused(app: typer.Typer, message: str, *arguments: str) -> None:
    """A user's mistake is one line that holds `message`."""
    with pytest.raises(HardmaxError, match=re.escape(message)) as caught:
        CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", r'expected {"sequences": [...], "labels": [...]}'),
        ('{"sequences": [[[1, 2]]]}', '"labels": [...]}'),
        ("[]", 'or "texts" for sequences'),
        ('{"sequences": 5, "labels": [1]}', "expected a list under 'sequences'"),
        ('{"sequences": [[[1, 2]]], "labels": 7}', "expected a list under 'labels'"),
        ('{"sequences": [[[1, 2]]], "labels": []}', "one label per sequence (1); got 0"),
        ('{"texts": ["one word", "word one"], "labels": [0, 1]}', "(0, 1)"),
    ],
)
def test_wrong_files_are_one_line(
    app: typer.Typer, tmp_path: Path, content: str, message: str
) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text(content)
    _refused(app, message, str(wrong))


def test_wrong_arrays_are_one_line(app: typer.Typer, tmp_path: Path) -> None:
    path = tmp_path / "wrong.npz"
    for lengths in ([1], [2, 2], [3, 0], [1.5, 1.5], [[3]]):
        np.savez(path, tokens=np.ones((3, 2)), lengths=np.array(lengths), labels=np.array([1]))
        _refused(app, "lengths must be integers above 0 and sum to the 3 rows", str(path))
    np.savez(path, tokens=np.ones((3, 2)))
    _refused(app, "expected arrays tokens (T, d), lengths (N,), labels (N,)", str(path))
    path.write_bytes(b"PK no archive")
    _refused(app, "expected arrays tokens", str(path))


def test_wrong_options_are_refused_before_the_work(
    app: typer.Typer, data: Path, tmp_path: Path
) -> None:
    picture, full = str(tmp_path / "x.png"), tmp_path / "full"
    full.mkdir()
    (full / "note.txt").write_text("mine")
    asked = ("--show", "tree", "--picture", picture)
    _refused(app, "needs --method tree or chain", str(data), "--method", "mean", *asked)
    _refused(app, "needs --method tree or chain", str(data), *asked)
    _refused(app, "needs --method tree or chain", str(data), "--show", "trace")
    _refused(app, "needs --picture FILE", str(data), "--method", "tree", "--show", "tree")
    _refused(app, "no such folder", str(data), "--vectors", str(tmp_path / "none"))
    _refused(app, "--picture x.gif: expected an ending", str(data), "--picture", "x.gif")
    _refused(app, "is no saved model", str(data), "--out", str(full))
    _refused(app, "hold 8 sequences", str(data), "--sequence", "8")
    assert (full / "note.txt").read_text() == "mine"


def test_one_label_has_no_tree_to_show(app: typer.Typer, data: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.json"
    one.write_text(data.read_text().replace('"b"', '"a"'))
    picture = str(tmp_path / "x.png")
    asked = (str(one), "--method", "tree")
    _refused(app, "all labels are equal", *asked, "--show", "tree", "--picture", picture)
    _refused(app, "all labels are equal", *asked, "--show", "trace")
    assert CliRunner().invoke(app, [*asked, "--picture", picture]).exit_code == 0


def test_predict_reads_files_without_labels_and_lines(
    app: typer.Typer, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps({"sequences": json.loads(data.read_text())["sequences"]}))
    assert read_unlabelled(bare) == read_sequences(str(data))[0]
    with pytest.raises(DataError, match="expected"):
        read_sequences(str(bare))
    arrays = tmp_path / "bare.npz"
    np.savez(arrays, tokens=np.eye(3), lengths=np.array([1, 2]))
    assert [len(z) for z in read_unlabelled(arrays)] == [1, 2]
    texts = tmp_path / "texts.json"
    texts.write_text('{"texts": ["good film", "bad film"], "labels": ["pos", "neg"]}')
    out = tmp_path / "net"
    CliRunner().invoke(app, [str(texts), "--out", str(out)], catch_exceptions=False)
    predict_network(out, iter(["bad film", "good film"]))
    assert capsys.readouterr().out.splitlines() == ["neg\tbad film", "pos\tgood film"]
    predict_network(out, ["bad film"], json=True)
    assert json.loads(capsys.readouterr().out) == {"label": "neg", "text": "bad film"}
    everything = typer.Typer()
    predict.register(everything)
    named = CliRunner().invoke(everything, [str(out), str(texts)], catch_exceptions=False)
    assert named.stdout.splitlines() == ["pos\tgood film", "neg\tbad film"]
    built = tmp_path / "arrays"
    CliRunner().invoke(app, [str(data), "--out", str(built)], catch_exceptions=False)
    with pytest.raises(InputError, match="built from arrays and knows no words"):
        predict_network(built, ["good film"])


def test_other_data_are_not_called_certified(
    app: typer.Typer, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "net"
    CliRunner().invoke(app, [str(data), "--out", str(out)], catch_exceptions=False)
    other = json.loads(data.read_text())
    other["sequences"][0][0][0] += 1e-9
    changed = tmp_path / "other.json"
    changed.write_text(json.dumps(other))
    evaluate_network(out, str(changed), json=True)
    result = json.loads(capsys.readouterr().out)
    assert result["certified"] is False
    assert "sequences differ" in result["reason"]
    evaluate_network(out, str(changed))
    assert "does not cover these: the sequences differ" in capsys.readouterr().out
    evaluate_network(out, str(data))
    assert "proved for all 8 sequences" in capsys.readouterr().out


def test_trace_and_steps_are_drawn_as_vectors(app: typer.Typer, data: Path, tmp_path: Path) -> None:
    for show in ("trace", "steps"):
        path = tmp_path / f"{show}.svg"
        arguments = [str(data), "--method", "chain", "--show", show, "--picture", str(path)]
        CliRunner().invoke(app, [*arguments, "--sequence", "3"], catch_exceptions=False)
        assert path.read_text().startswith("<?xml")


def test_trace_is_printed_where_no_picture_is_asked(app: typer.Typer, data: Path) -> None:
    asked = [str(data), "--method", "tree", "--show", "trace", "--sequence", "1"]
    said = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert "holds" in said.stdout
    assert "label b" in said.stdout
    steps = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)["trace"]
    assert steps[-1]["label"] == "b"


def test_word_vectors_of_a_trained_classifier(app: typer.Typer, tmp_path: Path) -> None:
    table, model = tmp_path / "reviews.csv", tmp_path / "model"
    table.write_text("text,label\na good film,pos\na bad film,neg\n")
    texts = ["a good film", "a bad film"] * 4
    clf = HardmaxClassifier(dim=4, heads=2, members=1, epochs=1, ngrams=1, min_count=1)
    clf.fit(texts, ["pos", "neg"] * 4).save(model)
    out = tmp_path / "net"
    asked = [str(table), "--vectors", str(model), "--out", str(out), "--method", "tree"]
    assert CliRunner().invoke(app, asked, catch_exceptions=False).exit_code == 0
    net = Network.load(out)
    word = clf.vocabulary_.words.index("good")
    assert net.read(["good"]).table[0].tolist() == clf.model_.E[word].tolist()
    assert net.predict(texts[:2]).tolist() == ["pos", "neg"]
