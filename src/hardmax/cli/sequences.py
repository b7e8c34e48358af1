"""Sequences as files: JSON, NPZ, or the tables and folders of texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hardmax._errors import DataError
from hardmax.cli import text
from hardmax.cli.reading import Form, read_labelled

__all__ = ["is_sequences", "read_sequences", "read_unlabelled"]


def is_sequences(source: str | Path) -> bool:
    """Whether a file holds arrays, or texts in the form of this module."""
    return Path(source).suffix.lower() in (".json", ".npz")


def read_sequences(
    source: str, text_column: str | None = None, label_column: str | None = None
) -> tuple[list[Any], list[Any]]:
    """Sequences and labels of a file."""
    if is_sequences(source):
        return _read(source, labelled=True)
    texts, labels, notes = read_labelled(source, "train", Form(text_column, label_column))
    for note in notes:
        text.say(note, error=True)
    return list(texts), labels


def read_unlabelled(source: str | Path) -> list[Any]:
    """Sequences of a .json or .npz file, which may hold labels too."""
    return _read(str(source), labelled=False)[0]


def _read(source: str, *, labelled: bool) -> tuple[list[Any], list[Any]]:
    return (_from_json if Path(source).suffix.lower() == ".json" else _from_npz)(source, labelled)


def _from_json(source: str, labelled: bool) -> tuple[list[Any], list[Any]]:
    from hardmax.io import read_json

    data = read_json(source)
    held = set(data) & {"sequences", "texts"} if isinstance(data, dict) else set()
    if len(held) != 1 or (labelled and "labels" not in data):
        wanted = '{"sequences": [...]' + (', "labels": [...]}' if labelled else "}")
        raise DataError(f'{source}: expected {wanted}, or "texts" for sequences. Add the keys.')
    name = held.pop()
    parts = [data[name], data["labels"] if labelled else []]
    for key, part in zip((name, "labels"), parts, strict=True):
        if not isinstance(part, list):
            raise DataError(f"{source}: expected a list under {key!r}. Correct the file.")
    return parts[0], parts[1]


def _from_npz(source: str, labelled: bool) -> tuple[list[Any], list[Any]]:
    from io import BytesIO
    from zipfile import BadZipFile

    import numpy as np

    from hardmax.io.read import read_bytes

    wanted = ("tokens", "lengths", "labels") if labelled else ("tokens", "lengths")
    try:
        with np.load(BytesIO(read_bytes(Path(source))), allow_pickle=False) as data:
            tokens, lengths, *labels = (data[k] for k in wanted)
    except (KeyError, ValueError, TypeError, OSError, EOFError, BadZipFile) as error:
        shape = "tokens (T, d), lengths (N,)" + (", labels (N,)" if labelled else "")
        said = text.one_line(error).rstrip(".")
        raise DataError(f"{source}: expected arrays {shape}; {said}.") from None
    whole = lengths.ndim == 1 and lengths.dtype.kind in "iu" and (lengths > 0).all()
    if tokens.ndim != 2 or not whole or int(lengths.sum()) != len(tokens):
        raise DataError(
            f"{source}: lengths must be integers above 0 and sum to the {len(tokens)} rows of "
            f"tokens (T, d); got {_said(lengths)}. Correct the file."
        )
    pieces = np.split(tokens, np.cumsum(lengths)[:-1])
    return pieces, labels[0].tolist() if labels else []


def _said(lengths: Any) -> str:
    return f"{lengths.sum()}" if lengths.dtype.kind in "iuf" else str(lengths.dtype)
