"""Saved networks: anything altered is refused when loading, or noticed when verifying."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from hardmax._errors import DataError
from hardmax.exact import Interpolation, Network, construct, interpolate


@pytest.fixture(scope="module")
def data() -> tuple[list[np.ndarray], list[str]]:
    rng = np.random.default_rng(3)
    return [rng.normal(size=(int(rng.integers(2, 5)), 2)) for _ in range(7)], list("abcabac")


@pytest.fixture
def folder(data: tuple[list[np.ndarray], list[str]], tmp_path: Path) -> Path:
    construct(*data, method="tree").save(tmp_path / "net")
    return tmp_path / "net"


def _card(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "model.json").read_text()))


def _rewrite(folder: Path, card: dict[str, Any]) -> None:
    (folder / "model.json").write_text(json.dumps(card))


def _seal(folder: Path, tensors: dict[str, np.ndarray]) -> None:
    """Write other tensors and make the checksum of the file fit."""
    import hashlib

    save_file(tensors, folder / "model.safetensors")
    card = _card(folder)
    card["sha256"] = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    _rewrite(folder, card)


def test_one_flipped_bit_is_refused_even_with_a_fitting_checksum(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    for name in list(tensors):
        if not tensors[name].size:
            continue
        wrong = {k: v.copy() for k, v in tensors.items()}
        wrong[name].view(np.uint64).reshape(-1)[-1] ^= np.uint64(1)
        _seal(folder, wrong)
        with pytest.raises(DataError, match="differs from what was certified"):
            Network.load(folder)
    _seal(folder, tensors)
    assert Network.load(folder).certificate.proved


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("classes", ["b", "a", "c"]),
        ("column", 0),
        ("entry", 1),
        ("method", "chain"),
        ("seed", 9),
        ("story", None),
        ("texts", True),
        ("texts", None),
        ("dim", 2.5),
        ("entry", 2.5),
        ("another", 1),
    ],
)
def test_altered_settings_are_refused(folder: Path, key: str, value: Any) -> None:
    card = _card(folder)
    assert card["meta"].get(key) != value
    card["meta"][key] = value
    _rewrite(folder, card)
    with pytest.raises(DataError, match="differs from what was certified"):
        Network.load(folder)


@pytest.mark.parametrize("method", ["mean", "tree"])
def test_the_last_digit_of_a_certificate_is_noticed(
    data: tuple[list[np.ndarray], list[str]], method: str
) -> None:
    net = construct(*data, method=method)
    for name in ("radius", "bits_used", "margin", "deviation"):
        value = getattr(net.certificate, name)
        if value is not None:
            said = replace(net.certificate, **{name: float(np.nextafter(value, 9))})
            assert not replace(net, certificate=said).verify(*data)
    assert net.verify(*data)


def test_altered_words_of_the_tree_are_refused(folder: Path) -> None:
    card = _card(folder)
    card["meta"]["story"]["nodes"][0]["tests"][0]["tokens"][0] = "another"
    _rewrite(folder, card)
    with pytest.raises(DataError, match="differs from what was certified"):
        Network.load(folder)


def test_damaged_settings_are_one_line(folder: Path) -> None:
    whole = _card(folder)
    for key, before in whole["meta"].items():
        for value in ("x", None, -1, [], {}):
            if bool(value) == bool(before) and not value:
                continue  # nothing, written otherwise
            card = json.loads(json.dumps(whole))
            card["meta"][key] = value
            _rewrite(folder, card)
            with pytest.raises(DataError, match=r"Copy the folder again") as caught:
                Network.load(folder)
            assert "\n" not in str(caught.value)
    for key in whole["meta"]:
        card = json.loads(json.dumps(whole))
        del card["meta"][key]
        _rewrite(folder, card)
        with pytest.raises(DataError, match=f"KeyError: '{key}'"):
            Network.load(folder)


def test_numbers_of_the_certificate_are_recomputed(
    data: tuple[list[np.ndarray], list[str]], folder: Path
) -> None:
    whole = _card(folder)
    for key, value in (
        ("bits_used", 20.0),
        ("bits_used", float(np.nextafter(whole["meta"]["certificate"]["bits_used"], 0))),
        ("radius", 1e-9),
        ("deviation", 1e-9),
        ("kind", "grid"),
    ):
        card = json.loads(json.dumps(whole))
        card["meta"]["certificate"][key] = value
        _rewrite(folder, card)
        assert not Network.load(folder).verify(*data)
    net = Network.load(folder)
    said = net.certificate.sealed(kind="exact", bits_used=20.0)  # its digest fits
    assert replace(net, certificate=said).check(*data) == (
        "the certificate does not come out again"
    )
    for key, other in (("radius", "small"), ("proved", "yes"), ("arithmetic", 64)):
        card = json.loads(json.dumps(whole))
        card["meta"]["certificate"][key] = other
        _rewrite(folder, card)
        with pytest.raises(DataError, match="entries of another type"):
            Network.load(folder)


def test_unproved_certificates_verify_nothing(
    data: tuple[list[np.ndarray], list[str]], folder: Path
) -> None:
    card = _card(folder)
    card["meta"]["certificate"]["proved"] = False
    _rewrite(folder, card)
    net = Network.load(folder)
    assert not net.verify(*data)
    assert "states no proof" in net.check(*data)


def test_truncated_files_are_refused(folder: Path) -> None:
    for name in ("model.json", "model.safetensors"):
        path = folder / name
        whole = path.read_bytes()
        for end in range(0, len(whole), max(1, len(whole) // 9)):
            path.write_bytes(whole[:end])
            with pytest.raises(DataError, match=r"model|expected"):
                Network.load(folder)
        path.write_bytes(whole)


def test_altered_interpolations_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sequences = [rng.normal(size=(3, 2)) for _ in range(4)]
    targets = [rng.normal(size=(3, 2)) for _ in sequences]
    interpolate(sequences, targets, positions=True).save(tmp_path / "net")
    again = Interpolation.load(tmp_path / "net")
    assert again.verify(sequences, targets)
    assert (again.forward(sequences[0]) == again.predict(sequences[:1])[0]).all()
    tensors = load_file(tmp_path / "net" / "model.safetensors")
    for name in ("step", "0.W1"):
        wrong = {k: v.copy() for k, v in tensors.items()}
        wrong[name].view(np.uint64).reshape(-1)[0] ^= np.uint64(1)
        _seal(tmp_path / "net", wrong)
        with pytest.raises(DataError, match="differs from what was proved"):
            Interpolation.load(tmp_path / "net")
    _seal(tmp_path / "net", tensors)
    for key in ("radius", "error", "sequences", "bits_used"):
        card = _card(tmp_path / "net")
        card["meta"][key] *= 2
        _rewrite(tmp_path / "net", card)
        with pytest.raises(DataError, match="differs from what was proved"):
            Interpolation.load(tmp_path / "net")
        other = replace(again, **{key: getattr(again, key) * 2})
        assert not other.verify(sequences, targets)
    card = _card(tmp_path / "net")
    card["meta"]["radius"] = "small"
    _rewrite(tmp_path / "net", card)
    with pytest.raises(DataError, match="expected an interpolation, got ValueError"):
        Interpolation.load(tmp_path / "net")
