"""The authors' weights as torch saves them are read; nothing in a file runs."""

from __future__ import annotations

import os
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from hardmax._errors import DataError
from hardmax.learn.paper_weights import read_weights

NAMES = {
    "E": "encoder.weight", "alpha": "attention.alpha", "v": "decoder.weight", "b": "decoder.bias",
}  # fmt: skip


class TClassifier(nn.Module):
    """Named as the authors' module, so that a whole module can be saved too."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.attention = nn.Embedding(30, 2), CustomSelfAttention()
        self.decoder, self.sigmoid = nn.Linear(2, 1), nn.Sigmoid()


class CustomSelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor([2.5]))


class Trap:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def state() -> dict[str, Any]:
    torch.manual_seed(3)
    return dict(TClassifier().state_dict())


def saved(tmp_path: Path, value: Any, **options: Any) -> Path:
    torch.save(value, tmp_path / "weights.pth", **options)
    return tmp_path / "weights.pth"


def archive(tmp_path: Path, pickled: bytes) -> Path:
    with zipfile.ZipFile(tmp_path / "made.pth", "w") as file:
        file.writestr("made/data.pkl", pickled)
    return tmp_path / "made.pth"


def same(file: Path, wanted: dict[str, Any]) -> None:
    found = read_weights(file).arrays()
    for name, key in NAMES.items():
        assert np.array_equal(found[name].ravel(), wanted[key].numpy().ravel()), key


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_state_dictionary_is_read_by_its_names(tmp_path: Path, protocol: int) -> None:
    wanted = state()
    for value in (wanted, OrderedDict(reversed(wanted.items())), {"epoch": 3, "model": wanted}):
        same(saved(tmp_path, value, pickle_protocol=protocol), wanted)


def test_a_whole_module_is_read(tmp_path: Path) -> None:
    module = TClassifier()
    same(saved(tmp_path, module), dict(module.state_dict()))


def test_views_and_other_floats_keep_their_numbers(tmp_path: Path) -> None:
    wanted = state()
    wide = torch.arange(240.0).reshape(2, 30, 4)
    wanted["encoder.weight"] = wide[1, :, ::2]
    same(saved(tmp_path, wanted), wanted)
    same(saved(tmp_path, {key: value.double() for key, value in wanted.items()}), wanted)


def test_a_pickle_that_would_call_is_refused_and_does_not(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    trap = Trap(mark)
    for value in ({**state(), "more": trap}, [state(), trap], trap):
        with pytest.raises(DataError, match=r"would call (posix|nt)\.mkdir"):
            read_weights(saved(tmp_path, value))
    (tmp_path / "bare.pth").write_bytes(pickle.dumps(trap))
    with pytest.raises(DataError, match="not a zip file"):
        read_weights(tmp_path / "bare.pth")
    assert not mark.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decoder.bias": None}, "0 weights named decoder.bias"),
        ({"copy.decoder.bias": torch.zeros(1)}, "2 weights named decoder.bias"),
        ({"decoder.weight": torch.zeros(1, 3)}, "the shapes"),
        ({"decoder.bias": torch.tensor([torch.nan])}, "not finite"),
        ({"encoder.weight": torch.ones(4, 2, dtype=torch.int64)}, "plain floats"),
    ],
)
def test_other_weights_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_weights(saved(tmp_path, {**state(), **change}))


@pytest.mark.parametrize(
    ("pickled", "message"),
    [
        (b"", "pickle exhausted"),
        (b"(S'x'\nios\nsystem\n.", "instruction INST"),
        (b"cos\nsystem\n(S'x'\ntR.", "would call os.system"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x01x\x85R.", "would call os.system"),
        (b"\x80\x02)\x85R.", "takes what is not there"),
        (b"\x80\x02)h\x05.", "was not told"),
        (b"\x80\x02)t.", "without a mark"),
        (b"\x80\x02))R.", "no name"),
        (b"\x80\x02)).", "in the middle"),
        (b"\x80\x02)}b.", "a state to a plain value"),
        (b"\x80\x02})]s.", "no plain value"),
        (b"\x80\x02)K\x01K\x02s.", "sets entries of what has none"),
        (b"\x80\x02)K\x01a.", "no list"),
        (b"\x80\x02]q\x00h\x00a.", "0 weights named"),
        (b"\x80\x02)" + b"\x85" * 50_000 + b".", "0 weights named"),
    ],
)
def test_pickles_that_are_not_torchs_are_refused(
    tmp_path: Path, pickled: bytes, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_weights(archive(tmp_path, pickled))


def test_missing_numbers_and_files_are_named(tmp_path: Path) -> None:
    file = saved(tmp_path, state())
    short = tmp_path / "short.pth"
    with zipfile.ZipFile(file) as whole, zipfile.ZipFile(short, "w") as less:
        for info in whole.infolist():
            data = whole.read(info)
            less.writestr(info.filename, data[:8] if info.filename.endswith("data/0") else data)
    with pytest.raises(DataError, match="beyond its numbers"):
        read_weights(short)
    with pytest.raises(DataError, match=r"without data\.pkl"):
        read_weights(_empty(tmp_path))
    with pytest.raises(DataError, match="No such file"):
        read_weights(tmp_path / "none.pth")


def _empty(tmp_path: Path) -> Path:
    with zipfile.ZipFile(tmp_path / "empty.pth", "w") as file:
        file.writestr("made/version", b"3")
    return tmp_path / "empty.pth"
