"""The authors' trained weights, read from their file without running what is in it.

What torch saves, a module whole or its state dictionary, is a zip archive: a pickle, and
the raw numbers of each storage.  The pickle is read as data (`_pickled.py`): it says
which numbers have which name.  One that would call anything but what torch writes for
such a module is refused.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from hardmax._errors import DataError
from hardmax._types import Array
from hardmax.learn._pickled import Called, Made, Name, Stored, read_pickle
from hardmax.learn.paper import PaperModel, PaperSettings

__all__ = ["read_weights"]

_MOST, _MOST_PICKLE = 1 << 28, 1 << 20
_DTYPES = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2"}
_NAMES = {
    "E": "encoder.weight", "alpha": "attention.alpha", "v": "decoder.weight", "b": "decoder.bias",
}  # fmt: skip
_CALLS = {
    ("collections", "OrderedDict"), ("__builtin__", "set"), ("builtins", "set"),
    ("torch._utils", "_rebuild_tensor_v2"), ("torch._utils", "_rebuild_parameter"),
}  # fmt: skip
_CLASSES = {"TClassifier", "CustomSelfAttention"}


def read_weights(path: str | os.PathLike[str]) -> PaperModel:
    """The model in a file such as `model_d=2_epoch=100.pth` of the authors' repository.

    The file holds the module, or its state dictionary: encoder.weight (words, d),
    attention.alpha (1), decoder.weight (1, d) and decoder.bias (1).

    Raises
    ------
    DataError
        If the file is no such archive, or its pickle would call anything else.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = _arrays(archive)
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: cannot be read: {error.strerror}.") from None
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, RuntimeError) as error:
        raise DataError(
            f"{os.fspath(path)}: expected the weights of the paper's classifier as torch saves "
            f"them ({', '.join(_NAMES.values())}), got {error}. "
            "Give the authors' file, or the state dictionary saved by torch.save."
        ) from None
    model = PaperModel(len(arrays["E"]), PaperSettings(dim=arrays["E"].shape[1]))
    model.take(arrays)
    return model


def _arrays(archive: zipfile.ZipFile) -> dict[str, Array]:
    """The four weights, of shapes that fit."""
    members = {info.filename.partition("/")[2]: info for info in archive.infolist()}
    tree = read_pickle(_bytes(archive, members, "data.pkl", _MOST_PICKLE))
    if "byteorder" in members and _bytes(archive, members, "byteorder", 16) != b"little":
        raise ValueError("numbers in another order of bytes")
    found = dict(_tensors(tree))
    out = {}
    for name, wanted in _NAMES.items():
        keys = [key for key in found if f".{key}".endswith(f".{wanted}")]
        if len(keys) != 1:
            raise ValueError(f"{len(keys)} weights named {wanted} among {sorted(found)[:8]}")
        out[name] = _numbers(archive, members, found[keys[0]].arguments)
    E, v = out["E"], out["v"]
    if E.ndim != 2 or not E.size or v.size != E.shape[1] or out["alpha"].size * out["b"].size != 1:
        raise ValueError(f"the shapes {', '.join(str(x.shape) for x in out.values())}")
    if not all(np.isfinite(x).all() for x in out.values()):
        raise ValueError("numbers that are not finite")
    return out


def _bytes(archive: zipfile.ZipFile, members: dict[str, Any], name: str, most: int) -> bytes:
    if name not in members:
        raise ValueError(f"an archive without {name}")
    if members[name].file_size > most:
        raise ValueError(f"{members[name].file_size:,} bytes of {name}")
    return archive.read(members[name])


def _tensors(tree: Any) -> Iterator[tuple[str, Called]]:
    """The tensors of a tree by name, as attributes of modules or keys of dictionaries."""
    seen: set[int] = set()
    left: list[tuple[str, Any]] = [("", tree)]
    while left:
        path, node = left.pop()
        if id(node) in seen and not isinstance(node, Called):
            continue
        if isinstance(node, Called):
            function = _allowed(node)
            if function == "_rebuild_tensor_v2":
                yield path, node
                continue
            if id(node) in seen:
                continue
            parts: list[Any] = [node.arguments, node.entries]
            parts += [node.state] if isinstance(node, Made) else []
            left += [(path, part) for part in parts]
        elif isinstance(node, dict):
            left += [(_below(path, key), value) for key, value in node.items()]
        elif isinstance(node, list | tuple):
            left += [(path, value) for value in node]
        seen.add(id(node))


def _below(path: str, key: Any) -> str:
    hidden = key in ("_modules", "_parameters")
    return path if hidden else f"{path}.{key}" if path else str(key)


def _allowed(node: Called) -> str:
    """The name of what the pickle would call; only what torch writes for such a module."""
    wish = node.function
    if isinstance(wish, Name):
        known = (wish.module, wish.name) in _CALLS
        if isinstance(node, Made):
            known = wish.module.startswith("torch.nn.modules.") or wish.name in _CLASSES
        if known:
            return wish.name
        raise ValueError(f"a pickle that would call {wish.module}.{wish.name}")
    raise ValueError("a pickle that would call what is no name")


def _numbers(archive: zipfile.ZipFile, members: dict[str, Any], arguments: Any) -> Array:
    """The array of a tensor: storage, offset, shape and strides."""
    try:
        stored, offset, shape, strides = arguments[:4]
        if not isinstance(stored, Stored):
            raise TypeError
        _, kind, key = stored.key[:3]
        dtype = np.dtype(_DTYPES[kind.name])
        shape, strides = [int(n) for n in shape], [int(n) for n in strides]
        offset = int(offset)
    except (TypeError, ValueError, KeyError, AttributeError):
        raise ValueError("a tensor that is not of plain floats") from None
    flat = np.frombuffer(_bytes(archive, members, f"data/{key}", _MOST), dtype)
    last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    if min([offset, *shape, *strides, 0]) < 0 or 0 in shape or last >= len(flat):
        raise ValueError("a tensor beyond its numbers")
    places = np.full([1] * len(shape), offset)
    for axis, (n, step) in enumerate(zip(shape, strides, strict=True)):
        places = places + np.expand_dims(
            np.arange(n) * step, tuple(a for a in range(len(shape)) if a != axis)
        )
    return np.asarray(flat[places], dtype=np.float64)
