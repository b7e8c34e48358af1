"""Writing: each file whole or not at all, and never over another unasked."""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hardmax._errors import InputError, OutputError
from hardmax.io.read import PathLike

__all__ = [
    "check_target",
    "dumps",
    "plain",
    "unwritable",
    "write_bytes",
    "write_json",
    "write_npz",
    "write_text",
    "write_with",
]


def check_target(path: PathLike, *, force: bool = False) -> Path:
    """The path, when a file can be written there.

    Raises
    ------
    OutputError
        If the folder is missing or not writable, or the file exists and
        `force` is not given.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise OutputError(f"{path}: expected the name of a file, got a folder.")
        if path.exists() and not path.is_file():
            raise OutputError(f"{path}: expected a regular file. Give another name.")
        if path.exists() and not force:
            raise OutputError(f"{path} exists. Give another name or --force.")
        if not path.parent.is_dir():
            raise OutputError(f"{path}: the folder {path.parent} does not exist. Create it first.")
        _temporary(path).unlink()
    except OutputError:
        raise
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from None
    return path


def unwritable(path: Path, error: Exception) -> OutputError:
    """The one line for a place that the system refuses."""
    reason = getattr(error, "strerror", None) or error
    return OutputError(f"{path}: cannot be written: {reason}. Give another place.")


def _temporary(path: Path) -> Path:
    """A new empty file beside `path`, with the permissions of a new file."""
    place = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.tmp")
    os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    return place


def write_with(path: PathLike, write: Callable[[BinaryIO], Any], *, force: bool = False) -> Path:
    """Write a file whole: `write` receives a binary file object.

    Returns
    -------
    Path
        Where the file is.

    Raises
    ------
    OutputError
        If it cannot be written; an earlier file of that name is then intact.
    """
    path = check_target(path, force=force)
    target = path.resolve() if path.is_symlink() else path
    place = None
    try:
        place = _temporary(target)
        with open(place, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(place, target)
    except OutputError:
        raise
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        if place is not None:
            place.unlink(missing_ok=True)
    return path


def write_bytes(path: PathLike, data: bytes, *, force: bool = False) -> Path:
    """Write bytes whole or not at all."""
    return write_with(path, lambda file: file.write(data), force=force)


def write_text(path: PathLike, text: str, *, force: bool = False) -> Path:
    """Write UTF-8 text whole or not at all."""
    return write_bytes(path, text.encode("utf-8"), force=force)


def write_json(path: PathLike, data: Any, *, force: bool = False) -> Path:
    """Write data as JSON; see `plain` for arrays, Fractions and NaN."""
    return write_text(path, dumps(data) + "\n", force=force)


def write_npz(path: PathLike, arrays: Mapping[str, Any], *, force: bool = False) -> Path:
    """Write arrays of numbers as a compressed NPZ file."""
    stored = {key: np.asarray(value) for key, value in arrays.items()}
    for key, value in stored.items():
        if value.dtype.kind not in "biufcSU":
            raise InputError(f"`{key}` must be an array of numbers or text; got {value.dtype}.")
    save: Callable[..., None] = np.savez_compressed
    return write_with(path, lambda file: save(file, **stored), force=force)


def plain(data: Any) -> Any:
    """The data as JSON knows it: Fractions as "p/q", NaN as None, infinities as "inf".

    Frozen records become their fields.
    """
    if isinstance(data, Mapping):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, np.ndarray | np.generic):
        ready = data.dtype.kind in "biu" or (data.dtype.kind == "f" and np.isfinite(data).all())
        return data.tolist() if ready else plain(data.tolist())
    if isinstance(data, list | tuple | set | frozenset):
        return [
            plain(value) for value in (sorted(data) if isinstance(data, set | frozenset) else data)
        ]
    if isinstance(data, float):
        return data if math.isfinite(data) else None if math.isnan(data) else str(data)
    if isinstance(data, Fraction):
        return str(data)
    if data is None or isinstance(data, bool | int | str):
        return data
    if is_dataclass(data) and not isinstance(data, type):
        return {entry.name: plain(getattr(data, entry.name)) for entry in fields(data)}
    raise InputError(f"expected numbers, text, lists or mappings for JSON, got {type(data)}.")


def dumps(data: Any) -> str:
    """JSON text of the data, each innermost list on one line."""
    return _indented(plain(data), "")


def _indented(data: Any, margin: str) -> str:
    inner = margin + "  "
    if isinstance(data, dict) and data:
        lines = [f"{inner}{json.dumps(k)}: {_indented(v, inner)}" for k, v in data.items()]
        return "{\n" + ",\n".join(lines) + f"\n{margin}}}"
    if isinstance(data, list) and any(isinstance(value, list | dict) for value in data):
        lines = [inner + _indented(value, inner) for value in data]
        return "[\n" + ",\n".join(lines) + f"\n{margin}]"
    return json.dumps(data, allow_nan=False)
