"""Saved models: a folder of safetensors and JSON, with a format version."""

from __future__ import annotations

import hashlib
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hardmax._errors import DataError, InputError, OutputError
from hardmax._types import Array
from hardmax.io.read import PathLike, read_bytes, read_json
from hardmax.io.write import dumps, plain, unwritable, write_bytes

__all__ = ["FORMAT", "check_folder", "load_model", "model_kind", "save_model"]

FORMAT = 1
"""The version that saved models carry; a newer one is refused."""

_WEIGHTS, _CARD = "model.safetensors", "model.json"


def save_model(
    folder: PathLike,
    tensors: Mapping[str, Any],
    meta: Mapping[str, Any],
    kind: str,
    *,
    force: bool = False,
) -> Path:
    """Save tensors and settings as a folder: safetensors and JSON.

    The folder appears whole or not at all.  With `force` an earlier saved
    model of that name is replaced; any other folder is never touched.
    """
    from safetensors.numpy import save

    folder = Path(folder)
    check_folder(folder, force=force)
    arrays = {key: np.array(value, order="C") for key, value in tensors.items()}
    for key, value in arrays.items():
        if value.dtype.kind not in "biuf":
            raise InputError(f"tensor `{key}` must hold real numbers; got {value.dtype}.")
    weights = save(arrays)
    card = {
        "format": FORMAT,
        "kind": kind,
        "sha256": hashlib.sha256(weights).hexdigest(),
        "tensors": {key: list(value.shape) for key, value in arrays.items()},
        "meta": plain(meta),
    }
    _replace_folder(folder, {_WEIGHTS: weights, _CARD: (dumps(card) + "\n").encode()})
    return folder


def check_folder(folder: PathLike, *, force: bool = False) -> None:
    """A model can be saved there; `OutputError` where not."""
    folder = Path(folder)
    if not folder.parent.is_dir():
        raise OutputError(f"{folder}: the folder {folder.parent} does not exist. Create it first.")
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    ours = folder.is_dir() and {entry.name for entry in folder.iterdir()} == {_WEIGHTS, _CARD}
    if not ours:
        raise OutputError(f"{folder} exists and is no saved model. Give another name.")
    if not force:
        raise OutputError(f"{folder} exists. Give another name or --force.")


def _replace_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    mark = secrets.token_hex(6)
    new = folder.with_name(f".{folder.name}.{mark}.tmp")
    old = folder.with_name(f".{folder.name}.{mark}.old")
    try:
        new.mkdir()
        for name, data in files.items():
            write_bytes(new / name, data)
        if folder.exists():
            folder.rename(old)
        try:
            new.rename(folder)
        except OSError:
            if old.exists():
                old.rename(folder)
            raise
    except OutputError:
        raise
    except OSError as error:
        raise unwritable(folder, error) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)


def load_model(folder: PathLike, kind: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """The tensors and settings that `save_model` wrote.

    Raises
    ------
    DataError
        If the folder is damaged, of another kind, foreign, or written in a
        newer format.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder}: expected the folder of a saved model, got a file.")
    card = _card(folder, kind)
    weights = read_bytes(_regular(folder / _WEIGHTS))
    if hashlib.sha256(weights).hexdigest() != card.get("sha256"):
        raise DataError(f"{folder / _WEIGHTS}: differs from what was saved. Copy the folder again.")
    try:
        tensors = load(weights)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise DataError(f"{folder / _WEIGHTS}: expected safetensors ({error}).") from None
    if {key: list(value.shape) for key, value in tensors.items()} != card.get("tensors"):
        raise DataError(f"{folder}: the tensors differ from those stated in {_CARD}.")
    return tensors, card["meta"]


def model_kind(folder: PathLike) -> Any:
    """What kind of model a folder says it holds; None when it says nothing.

    Raises
    ------
    DataError
        If the folder or its card cannot be read.
    """
    card = read_json(_regular(Path(folder) / _CARD))
    return card.get("kind") if isinstance(card, dict) else None


def _regular(path: Path) -> Path:
    """A file that has an end, which a pipe or a device may not have."""
    if path.exists() and not path.is_file():
        raise DataError(f"{path}: expected a file, got a folder, a pipe or a device.")
    return path


def _card(folder: Path, kind: str) -> dict[str, Any]:
    card = read_json(_regular(folder / _CARD))
    number = card.get("format") if isinstance(card, dict) else None
    if not isinstance(number, int) or number < 1:
        raise DataError(f"{folder / _CARD}: expected a saved model of hardmax, got another file.")
    if number > FORMAT:
        raise DataError(
            f"{folder}: written in format {number}, this version reads {FORMAT}. Update hardmax."
        )
    if card.get("kind") != kind:
        raise DataError(f"{folder}: expected a saved {kind}, got {card.get('kind')!r}.")
    if not isinstance(card.get("meta"), dict):
        raise DataError(f"{folder / _CARD}: expected `meta`. The file is damaged.")
    return dict(card)
