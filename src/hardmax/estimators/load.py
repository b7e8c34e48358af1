"""`hm.load`: whatever the library saved, a classifier or a constructed network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hardmax._errors import DataError
from hardmax.io import model_kind

__all__ = ["load"]


def load(folder: str | Path) -> Any:
    """What was saved in a folder: a classifier, a constructed network, an interpolation.

    Parameters
    ----------
    folder : path
        A folder that `save` wrote: safetensors and JSON, never a pickle.

    Returns
    -------
    HardmaxClassifier, Network or Interpolation

    Raises
    ------
    DataError
        If the folder is damaged, foreign, or written in a newer format.
    """
    kind = model_kind(folder)
    if kind == "classifier":
        from hardmax.estimators.classifier import HardmaxClassifier

        return HardmaxClassifier.load(folder)
    if kind == "exact":
        from hardmax.exact.network import Network

        return Network.load(folder)
    if kind == "interpolation":
        from hardmax.exact.interpolate import Interpolation

        return Interpolation.load(folder)
    raise DataError(f"{folder}: expected a model saved by hardmax, got kind {kind!r}.")
