"""A fitted classifier as tensors and plain data, and back, with every field checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from hardmax._errors import DataError, InputError
from hardmax._types import Array
from hardmax.io import plain
from hardmax.learn.model import HardmaxModel
from hardmax.learn.presets import Settings
from hardmax.learn.weights import Weights
from hardmax.tokens.vocabulary import Vocabulary

__all__ = ["KIND", "from_saved", "to_saved"]

KIND = "classifier"
_VERSION, _SUM = 1, "sha256"
_CLASS_KINDS = {"U": "text", "i": "integer", "u": "integer", "b": "boolean", "f": "float"}
_DTYPES = {"text": np.str_, "integer": np.int64, "boolean": np.bool_, "float": np.float64}


def to_saved(
    model: HardmaxModel, vocabulary: Vocabulary, classes: Array, settings: Settings, params: Any
) -> tuple[dict[str, Array], dict[str, Any]]:
    """The tensors and the settings that `save_model` takes."""
    tensors = {key: value.numpy() for key, value in model.state_dict().items()}
    meta = {
        "version": _VERSION,
        "settings": settings.to_dict(),
        "params": params,
        "classes": classes.tolist(),
        "class_kind": _CLASS_KINDS[classes.dtype.kind],
        "words": list(vocabulary.words),
        "ngrams": vocabulary.ngrams,
        "punctuation": vocabulary.punctuation,
        "across": vocabulary.across,
        "stop_words": sorted(vocabulary.stop_words),
        "max_words": vocabulary.max_words,
        "once": vocabulary.once,
        "far": vocabulary.far,
    }
    meta[_SUM] = _sum(meta)
    return {**tensors, "grams": vocabulary.grams, "pairs": vocabulary.pairs}, meta


def _sum(meta: Mapping[str, Any]) -> str:
    """A digest of the plain data, so that damage does not pass as other words."""
    rest = {key: value for key, value in meta.items() if key != _SUM}
    return hashlib.sha256(json.dumps(plain(rest), sort_keys=True).encode()).hexdigest()


def from_saved(
    tensors: Mapping[str, Array], meta: Mapping[str, Any], where: str
) -> tuple[HardmaxModel, Vocabulary, Array, Settings, dict[str, Any]]:
    """What `to_saved` was given.

    Raises
    ------
    DataError
        If anything does not fit.
    """
    try:
        if meta["version"] > _VERSION:
            raise DataError(f"{where}: written by a newer hardmax. Update hardmax.")
        settings = Settings.from_dict(dict(meta["settings"]))
        vocabulary = _vocabulary(tensors["grams"], tensors.get("pairs"), meta)
        classes = _classes(meta)
        model = _model(tensors, settings, len(vocabulary), 1 if len(classes) == 2 else len(classes))
        params = dict(meta["params"])
        if meta[_SUM] != _sum(meta):
            raise InputError("the settings or the words differ from what was saved")
    except DataError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"{where}: expected a saved classifier, but it does not fit together ({error}). "
            "Copy the folder again."
        ) from None
    return model, vocabulary, classes, settings, params


def _vocabulary(grams: Array, pairs: Array | None, meta: Mapping[str, Any]) -> Vocabulary:
    words, stop = meta["words"], meta["stop_words"]
    for name, values in (("words", words), ("stop_words", stop)):
        if not isinstance(values, list) or not all(isinstance(w, str) and w for w in values):
            raise InputError(f"`{name}` must be a list of words")
    if not words or len(set(words)) < len(words):
        raise InputError("`words` must be different and at least one")
    if meta["ngrams"] != meta["settings"]["ngrams"]:
        raise InputError("`ngrams` must be that of the settings")
    most = meta.get("max_words")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
        raise InputError("`max_words` must be an integer >= 1 or null")
    for name in ("punctuation", "across"):
        if not isinstance(meta[name], bool):
            raise InputError(f"`{name}` must be true or false")
    if grams.dtype != np.int32 or grams.ndim != 2 or grams.shape[1] != 2:
        raise InputError(f"`grams` must be (m, 2) int32; got {grams.shape} {grams.dtype}")
    below = np.arange(len(grams)) + len(words)
    if np.any(grams < 0) or np.any(grams[:, 0] >= below) or np.any(grams[:, 1] >= len(words)):
        raise InputError("`grams` must name tokens before them")
    return Vocabulary(
        tuple(words),
        grams,
        meta["ngrams"],
        meta["punctuation"],
        meta["across"],
        frozenset(stop),
        most,
        *_pairs(pairs, meta, len(words)),
    )


def _pairs(
    pairs: Array | None, meta: Mapping[str, Any], words: int
) -> tuple[bool, int, npt.NDArray[np.int32]]:
    """Whether tokens count once, the largest distance, and the gapped pairs."""
    once, far = meta.get("once", False), meta.get("far", 1)
    if not isinstance(once, bool):
        raise InputError("`once` must be true or false")
    if not isinstance(far, int) or isinstance(far, bool) or not 1 <= far < 1 << 10:
        raise InputError("`far` must be an integer from 1 to 1023")
    pairs = np.zeros((0, 3), dtype=np.int32) if pairs is None else pairs
    if pairs.dtype != np.int32 or pairs.ndim != 2 or pairs.shape[1] != 3:
        raise InputError(f"`pairs` must be (m, 3) int32; got {pairs.shape} {pairs.dtype}")
    if np.any(pairs < 0) or np.any(pairs[:, :2] >= words):
        raise InputError("`pairs` must name words")
    if np.any(pairs[:, 2] < 2) or np.any(pairs[:, 2] > far):
        raise InputError(f"distances of `pairs` must be from 2 to far = {far}")
    return once, far, pairs


def _classes(meta: Mapping[str, Any]) -> Array:
    values = meta["classes"]
    if not isinstance(values, list) or len(values) < 2:
        raise InputError("`classes` must be a list of at least two")
    kinds = {"text": str, "integer": int, "boolean": bool, "float": float | int}
    if not all(isinstance(v, kinds[meta["class_kind"]]) for v in values):
        raise InputError(f"`classes` must be {meta['class_kind']} values")
    classes: Array = np.array(values, dtype=_DTYPES[meta["class_kind"]])
    if len(np.unique(classes)) < len(classes):
        raise InputError("`classes` must be different")
    return classes


def _model(
    tensors: Mapping[str, Array], settings: Settings, size: int, outputs: int
) -> HardmaxModel:
    shape, heads = tensors["E"].shape, len(tensors["rho"])
    wanted = {"E": (size, shape[-1]), "rho": (heads,), "v": (outputs, shape[-1]), "b": (outputs,)}
    for key, expected in wanted.items():
        value = tensors[key]
        kind = np.float32 if key == "E" else np.float64
        if value.shape != expected or value.dtype != kind:
            raise InputError(
                f"`{key}` must be {expected} {np.dtype(kind)}; got {value.shape} {value.dtype}"
            )
        if not np.all(np.isfinite(value)):
            raise InputError(f"`{key}` must be finite")
    if (shape[-1], heads) != (settings.dim * settings.members, settings.heads * settings.members):
        raise InputError("`E` and `rho` must have the coordinates and heads of the settings")
    if heads < 1 or shape[-1] % heads:
        raise InputError("`rho` must divide the coordinates of `E` into heads")
    E, rho, v, b = (torch.from_numpy(tensors[name].copy()) for name in ("E", "rho", "v", "b"))
    weights = Weights(E, rho, v, b, _scores(tensors, heads, shape[-1] // heads))
    return HardmaxModel.of(weights, settings.depth, settings.tie_tol)


def _scores(tensors: Mapping[str, Array], heads: int, size: int) -> torch.Tensor | None:
    A = tensors.get("A")
    if A is None:
        return None
    if A.shape != (heads, size, size) or A.dtype != np.float64 or not np.all(np.isfinite(A)):
        raise InputError(f"`A` must be finite ({heads}, {size}, {size}) float64; got {A.shape}")
    return torch.from_numpy(A.copy())
