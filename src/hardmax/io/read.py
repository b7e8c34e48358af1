"""Reading: tables and arrays of tokens, matrices and JSON.  Never runs code."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from hardmax._errors import DataError
from hardmax._types import Array
from hardmax.io.cells import Points, parse_table, rows_of

__all__ = [
    "ENDINGS",
    "PathLike",
    "Table",
    "read_array",
    "read_bytes",
    "read_json",
    "read_matrix",
    "read_table",
]

PathLike: TypeAlias = str | os.PathLike[str]

_TEXT = {".csv": None, ".tsv": "\t", ".txt": None, ".dat": None}
ENDINGS = (*_TEXT, ".npy", ".npz", ".json")
"""The endings of the files that hold tokens."""
_KEYS = ("z", "points", "tokens")
_BESIDE = ("A", "alpha", "gamma", "mask")


@dataclass(frozen=True)
class Table:
    """The content of a file of tokens.

    Parameters
    ----------
    points
        (n, d) or (b, n, d) array, or n lists of d Fractions where the file
        writes numbers as `p/q`.
    names
        One name per token, or None.
    columns
        One heading per coordinate, or None.
    settings
        What else a JSON or NPZ file states: `A`, `alpha`, `gamma`, and `mask`
        as an array of bools, one per token.
    """

    points: Points
    names: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def read_table(path: PathLike, *, what: str = "tokens") -> Table:
    """Tokens of a CSV, TSV, TXT, NPY, NPZ or JSON file, with their names.

    Parameters
    ----------
    path
        The ending decides the format.  A text table may have a header line
        and a first column of names; its delimiter is guessed.
    what
        The name of the quantity, for messages, and for the key to look up in
        NPZ and JSON files before `z`, `points` and `tokens`.

    Raises
    ------
    DataError
        For anything that cannot be used, in one line with the place.

    Notes
    -----
    Arrays of objects are refused, because reading them would run code.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending in _TEXT:
        cells = parse_table(_read_text(path), str(path), delimiter=_TEXT[ending])
        return Table(cells.points, cells.names, cells.columns)
    if ending in (".npy", ".npz"):
        array, settings = _read_numpy(path, what)
        real = _mask(settings, array.shape, str(path))
        return Table(_tokens(array, str(path), what, real), None, None, MappingProxyType(settings))
    if ending == ".json":
        return _json_table(read_json(path), str(path), what)
    read_bytes(path, 1)
    known = " ".join(ENDINGS)
    raise DataError(f"{path}: expected a file that ends in one of {known}, got {ending!r}.")


def read_array(path: PathLike, *, what: str = "tokens") -> Array:
    """The numbers of a file as an array; Fractions are rounded to doubles."""
    points = read_table(path, what=what).points
    return np.array(points, dtype=np.float64) if isinstance(points, list) else points


def read_matrix(path: PathLike, *, what: str = "A") -> Any:
    """A score matrix: an array, Fractions, or a pair (U, V) that means U^T V.

    The pair is read from an NPZ or JSON file that holds `U` and `V`.
    """
    path = Path(path)
    if path.suffix.lower() == ".npz":
        stored = _npz(path)
        if {"U", "V"} <= set(stored):
            return _tokens(stored["U"], f"{path}: U", what), _tokens(
                stored["V"], f"{path}: V", what
            )
    if path.suffix.lower() == ".json":
        data = read_json(path)
        if isinstance(data, dict) and {"U", "V"} <= set(data):
            return tuple(rows_of(data[key], f"{path}: {key}") for key in "UV")
    return read_table(path, what=what).points


def read_json(path: PathLike) -> Any:
    """The data of a JSON file; NaN and Infinity are refused."""
    path = Path(path)
    text = _read_text(path)
    if not text.strip():
        raise DataError(f"{path}: expected JSON, got an empty file.")

    def refuse(constant: str) -> Any:
        raise DataError(f"{path}: expected finite numbers, got {constant}.")

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        where = f"{path}, line {error.lineno}, column {error.colno}"
        raise DataError(f"{where}: expected JSON ({error.msg}). The file is damaged.") from None
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected JSON, got data beyond its limits ({error}).") from None


def _json_table(data: object, source: str, what: str) -> Table:
    if not isinstance(data, dict):
        return Table(rows_of(data, source))
    key = next((key for key in (what, *_KEYS) if key in data), None)
    if key is None:
        raise DataError(f'{source}: expected {{"points": [[...], ...]}}, got keys {_some(data)}.')
    points = rows_of(data[key], source)
    settings = {key: data[key] for key in _BESIDE if data.get(key) is not None}
    _mask(settings, np.shape(np.asarray(points)), source)
    names = data.get("names")
    if names is not None and (not isinstance(names, list) or len(names) != len(points)):
        raise DataError(f"{source}: expected {len(points)} `names`, one per token, got others.")
    labels = None if names is None else tuple(str(name) for name in names)
    return Table(points, labels, None, MappingProxyType(settings))


def _mask(settings: dict[str, Any], shape: tuple[int, ...], source: str) -> Array | None:
    """The mask among the settings, made an array of bools, one per token."""
    if "mask" not in settings:
        return None
    wanted = shape[: max(1, len(shape) - 1)]
    expected = f"{source}: expected `mask` as true or false per token, of shape {wanted}"
    try:
        flags = np.asarray(settings["mask"])
    except ValueError:
        raise DataError(f"{expected}; got rows of different lengths.") from None
    if flags.shape != wanted or flags.dtype != bool:
        raise DataError(f"{expected}; got {flags.dtype} of shape {flags.shape}.")
    settings["mask"] = flags
    return flags


def _some(keys: Mapping[str, Any]) -> str:
    shown = ", ".join(repr(key) for key in list(keys)[:6])
    return shown + (", ..." if len(keys) > 6 else "") if keys else "none"


def read_bytes(path: Path, size: int = -1) -> bytes:
    """The first `size` bytes of a file, or all of them."""
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file. Check the name and the folder.") from None
    except IsADirectoryError:
        raise DataError(f"{path}: expected a file, got a folder.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: cannot be read: {reason}.") from None


def _read_text(path: Path) -> str:
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: expected UTF-8 text, got the byte 0x{data[error.start]:02x} at position "
            f"{error.start}. Save it as UTF-8."
        ) from None


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """What NumPy raises on files that are damaged, foreign or pickled."""
    try:
        yield
    except DataError:
        raise
    except MemoryError:
        raise DataError(f"{path}: states a size beyond the memory. The file is damaged.") from None
    except Exception as error:  # its parsers raise whatever the bytes lead them to
        objects = read_bytes(path, 1) in (b"\x93", b"P", b"\x80")  # numpy, zip, pickle
        if objects and ("pickle" in str(error) or "objects in dtype" in str(error)):
            reason = "expected an array of numbers, got Python objects, which are never loaded"
        else:
            reason = "expected NumPy's format. The file is damaged or of another kind"
        raise DataError(f"{path}: {reason}.") from None


def _read_numpy(path: Path, what: str) -> tuple[Array, dict[str, Any]]:
    """The tokens of the file, and in an archive what stands beside them."""
    if path.suffix.lower() == ".npz":
        stored = _npz(path)
        key = next((key for key in (what, *_KEYS) if key in stored), None)
        if key is None and len(stored) == 1:
            key = next(iter(stored))
        if key is None:
            wanted = " or ".join(repr(name) for name in (what, "z", "points"))
            raise DataError(f"{path}: expected an array {wanted}, got {_some(stored)}.")
        beside = {k: stored[k] for k in _BESIDE if k in stored and k not in (key, what)}
        return stored[key], beside
    if not read_bytes(path, 1):
        raise DataError(f"{path}: expected an array, got an empty file.")
    with _damage(path):
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(mapped, np.ndarray):
            mapped.close()
            raise DataError(f"{path}: expected one array, got an archive. Name it .npz.")
        return np.array(mapped), {}


def _npz(path: Path) -> dict[str, Array]:
    if not read_bytes(path, 1):
        raise DataError(f"{path}: expected arrays, got an empty file.")
    with _damage(path), open(path, "rb") as file:
        stored = np.load(file, allow_pickle=False)
        if isinstance(stored, np.ndarray):
            return {"z": stored}
        with stored:
            return {key: stored[key] for key in stored.files}


def _tokens(array: Array, source: str, what: str, real: Array | None = None) -> Array:
    """(n, d) or (b, n, d) finite numbers; one axis is n tokens with d = 1.

    Tokens that are not `real` may hold anything.
    """
    if array.dtype.kind not in "iuf":
        raise DataError(f"{source}: expected real numbers for {what}, got {array.dtype}.")
    kind = np.float32 if array.dtype.newbyteorder("=") == np.float32 else np.float64
    array = array.astype(kind, copy=False)
    if array.ndim not in (1, 2, 3):
        raise DataError(f"{source}: expected 1, 2 or 3 axes for {what}, got {array.ndim}.")
    if array.size == 0:
        raise DataError(f"{source}: expected at least one number, got shape {array.shape}.")
    bad = ~np.isfinite(array)
    if real is not None:
        bad &= real[..., None] if array.ndim > 1 else real
    if bad.any():
        place = tuple(int(k) + 1 for k in np.argwhere(bad)[0])
        value = array[tuple(k - 1 for k in place)]
        names = ("sequence", "row", "column")[-max(array.ndim, 2) :]
        where = ", ".join(f"{name} {k}" for name, k in zip(names, place, strict=False))
        raise DataError(f"{source}, {where}: expected a finite number, got {value}.")
    return array[:, None] if array.ndim == 1 else array
