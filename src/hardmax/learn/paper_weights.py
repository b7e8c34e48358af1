"""The authors' trained weights, read from their file without running what is in it.

A module saved whole by torch is a zip archive: a pickle that would run code, and
the raw numbers of each weight.  Only the numbers are read; their order is that
of the module (embedding, alpha, decoder, bias).
"""

from __future__ import annotations

import os
import zipfile

import numpy as np

from hardmax._errors import DataError
from hardmax._types import Array
from hardmax.learn.paper import PaperModel, PaperSettings

__all__ = ["read_weights"]

_MOST = 1 << 28


def read_weights(path: str | os.PathLike[str]) -> PaperModel:
    """The model in a file such as `model_d=2_epoch=100.pth` of the authors' repository.

    Raises
    ------
    DataError
        If the file is no such archive.
    """
    wrong = DataError(
        f"{os.fspath(path)}: expected the weights of the paper's classifier as torch saves them "
        "(four float32 storages: embedding, alpha, decoder, bias)."
    )
    try:
        with zipfile.ZipFile(path) as archive:
            stored = {
                info.filename.rpartition("/data/")[2]: info
                for info in archive.infolist()
                if "/data/" in info.filename and info.file_size <= _MOST
            }
            if sorted(stored) != ["0", "1", "2", "3"]:
                raise wrong
            parts = [_floats(archive.read(stored[str(k)])) for k in range(4)]
    except (OSError, zipfile.BadZipFile, ValueError):
        raise wrong from None
    E, alpha, v, b = parts
    if len(alpha) != 1 or len(b) != 1 or not len(v) or not len(E) or len(E) % len(v):
        raise wrong
    model = PaperModel(len(E) // len(v), PaperSettings(dim=len(v)))
    model.take({"E": E.reshape(-1, len(v)), "alpha": alpha, "v": v, "b": b})
    return model


def _floats(data: bytes) -> Array:
    return np.frombuffer(data, "<f4")
