"""Saved models: round trips, and damage that is noticed."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hardmax import io
from hardmax._errors import DataError, InputError, OutputError


def _saved(folder: Path) -> Path:
    tensors = {"E": np.arange(6, dtype=np.float32).reshape(3, 2).T, "b": np.array(0.5)}
    return io.save_model(folder, tensors, {"alpha": 0.5, "words": ["é", "b"]}, "classifier")


def test_saved_model_comes_back_with_shapes_kinds_and_settings(tmp_path: Path) -> None:
    tensors, meta = io.load_model(_saved(tmp_path / "m"), "classifier")
    assert tensors["E"].dtype == np.float32
    assert tensors["E"].tolist() == [[0, 2, 4], [1, 3, 5]]
    assert tensors["b"].shape == ()
    assert meta == {"alpha": 0.5, "words": ["é", "b"]}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m"]
    assert io.model_kind(tmp_path / "m") == "classifier"


def test_an_earlier_model_is_replaced_only_by_force_and_other_folders_never(
    tmp_path: Path,
) -> None:
    folder = _saved(tmp_path / "m")
    with pytest.raises(OutputError, match=r"m exists. Give another name or --force"):
        _saved(folder)
    io.save_model(folder, {"x": np.ones(1)}, {}, "classifier", force=True)
    assert list(io.load_model(folder, "classifier")[0]) == ["x"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    with pytest.raises(OutputError, match="exists and is no saved model"):
        io.save_model(other, {"x": np.ones(1)}, {}, "classifier", force=True)
    assert (other / "thesis.txt").read_text() == "years of work"
    with pytest.raises(OutputError, match=r"does not exist. Create it first"):
        _saved(tmp_path / "no" / "m")
    with pytest.raises(InputError, match="tensor `x` must hold real numbers"):
        io.save_model(tmp_path / "n", {"x": np.array(["a"])}, {}, "classifier")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "other"]


def test_a_model_whose_writing_fails_leaves_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _saved(tmp_path / "m")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OutputError, match="No space left on device"):
            io.save_model(folder, {"x": np.ones(1)}, {}, "classifier", force=True)
    assert "E" in io.load_model(folder, "classifier")[0]
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def _edit(folder: Path, **changes: object) -> None:
    card = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**card, **changes}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "written in format 2, this version reads 1. Update hardmax"),
        ({"format": "1"}, "expected a saved model of hardmax, got another file"),
        ({"kind": "network"}, "expected a saved classifier, got 'network'"),
        ({"sha256": "0"}, "differs from what was saved"),
        ({"tensors": {"E": [1]}}, "the tensors differ from those stated"),
        ({"meta": 3}, "expected `meta`. The file is damaged"),
    ],
)
def test_altered_newer_or_foreign_models_are_refused(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    folder = _saved(tmp_path / "m")
    _edit(folder, **changes)
    with pytest.raises(DataError, match=re.escape(message)):
        io.load_model(folder, "classifier")


def test_every_truncation_of_a_saved_model_is_refused(tmp_path: Path) -> None:
    folder = _saved(tmp_path / "m")
    for name in ("model.json", "model.safetensors"):
        path = folder / name
        data = path.read_bytes()
        for size in range(0, len(data) - 1, 9):
            path.write_bytes(data[:size])
            with pytest.raises(DataError, match="m"):
                io.load_model(folder, "classifier")
        path.unlink()
        with pytest.raises(DataError, match=f"{name}: no such file"):
            io.load_model(folder, "classifier")
        path.write_bytes(data)
    io.load_model(folder, "classifier")
    with pytest.raises(DataError, match="expected the folder of a saved model, got a file"):
        io.load_model(folder / "model.json", "classifier")


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_pipes_folders_and_devices_in_place_of_a_file_are_not_read(
    tmp_path: Path, name: str
) -> None:
    place = _saved(tmp_path / "m") / name
    for put in (lambda: os.mkfifo(place), place.mkdir, lambda: place.symlink_to("/dev/zero")):
        place.rmdir() if place.is_dir() else place.unlink()
        put()
        with pytest.raises(DataError, match=rf"{name}: expected a file, got a folder, a pipe"):
            io.load_model(tmp_path / "m", "classifier")
    if name == "model.json":
        with pytest.raises(DataError, match="expected a file, got a folder, a pipe"):
            io.model_kind(tmp_path / "m")


def test_weights_that_are_no_safetensors_are_refused_even_when_the_digest_fits(
    tmp_path: Path,
) -> None:
    import hashlib

    folder = _saved(tmp_path / "m")
    data = pickle.dumps([1])
    (folder / "model.safetensors").write_bytes(data)
    _edit(folder, sha256=hashlib.sha256(data).hexdigest())
    with pytest.raises(DataError, match="expected safetensors"):
        io.load_model(folder, "classifier")


def test_file_access_imports_no_torch() -> None:
    code = "import sys, hardmax.io, safetensors.numpy; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
