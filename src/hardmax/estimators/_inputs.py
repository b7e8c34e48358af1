"""What a classifier of texts accepts: texts, labels and weights, checked."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from hardmax._errors import InputError, ShapeError
from hardmax._types import Array, Floats, Ints

__all__ = [
    "check_labels",
    "check_texts",
    "check_weights",
    "device_of",
    "each_text",
    "plain_param",
    "seed_of",
]


def each_text(X: Any) -> Iterable[str]:
    """The texts of a list, a column, or any other iterable; each is checked as it is read."""
    if isinstance(X, str | bytes):
        raise InputError(
            f"expected a list of texts, got one {type(X).__name__}. Put it in a list: [text]."
        )
    if getattr(X, "ndim", 1) != 1:
        raise ShapeError(
            f"expected one column of texts, got an array of shape {tuple(X.shape)}. "
            "Choose the column, as in data['text']."
        )
    if not isinstance(X, Iterable):
        raise InputError(f"expected a list of texts, got {type(X).__name__}.")
    return X.to_pylist() if hasattr(X, "to_pylist") else X


def check_texts(X: Any) -> list[str]:
    """A list of strings from a list, a column, or any other iterable of strings."""
    texts = list(each_text(X))
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"each text must be a string; text {row} is {type(text).__name__}. "
                "Convert it, or leave the row out."
            )
    return texts


def check_labels(y: Any, n: int) -> tuple[Array, Ints]:
    """The classes, sorted, and the class number of each text."""
    if y is None:
        raise InputError(
            "requires y to be passed, but the target y is None. Give one label per text."
        )
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        _warn_column()
        labels = labels[:, 0]
    if labels.ndim != 1 or len(labels) != n:
        raise ShapeError(
            f"`y` must hold one label for each of the {n} texts; got shape {labels.shape}."
        )
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        raise InputError("`y` must hold no NaN or infinite labels. Leave those rows out.")
    if labels.dtype.kind == "f" and np.any(labels != np.round(labels)):
        raise InputError(
            "Unknown label type: continuous numbers. Expected classes, such as 0 and 1 or words."
        )
    if labels.dtype == object:
        labels = _plain_objects(labels)
    if labels.size and labels.dtype.kind not in "Uiubf":
        raise InputError(
            f"`y` must hold strings, integers or booleans; got {labels.dtype}. Convert the labels."
        )
    classes, numbers = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InputError(
            f"expected at least two classes, got {len(classes)} class"
            f"{'' if len(classes) == 0 else f' ({classes[0]})'}. Give texts of another class too."
        )
    return classes, numbers.astype(np.int64)


def _warn_column() -> None:
    """What scikit-learn says of labels in a column of a table."""
    import warnings

    from sklearn.exceptions import DataConversionWarning

    warnings.warn(
        "A column-vector y was passed when a 1d array was expected; it is flattened.",
        DataConversionWarning,
        stacklevel=4,
    )


def _plain_objects(labels: Array) -> Array:
    """Objects as an array of one plain kind: all strings, or all numbers."""
    kinds = {type(v) for v in labels}
    if all(issubclass(k, str) for k in kinds):
        return labels.astype(str)
    if all(issubclass(k, bool | int | np.integer | np.bool_) for k in kinds):
        return np.array(labels.tolist())
    names = ", ".join(sorted(k.__name__ for k in kinds))
    raise InputError(f"`y` must hold labels of one kind, strings or integers; got {names}.")


def check_weights(weights: Any, n: int) -> Floats | None:
    """Weights of the texts: finite, not negative, not all zero."""
    if weights is None:
        return None
    w = np.array(weights, dtype=np.float64)
    w = np.full(n, float(w)) if w.ndim == 0 else w
    if w.shape != (n,):
        raise ShapeError(f"`sample_weight` must be ({n},), one per text; got {w.shape}.")
    if not np.all(np.isfinite(w)) or np.any(w < 0) or not w.any():
        raise InputError("`sample_weight` must be finite, >= 0 and not all zero.")
    return w


def seed_of(random_state: Any) -> int:
    """A seed from an integer, None or a RandomState."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if random_state < 0:
            raise InputError(f"`random_state` must be >= 0; got {random_state}.")
        return int(random_state)
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    raise InputError(
        f"`random_state` must be an integer, None or a RandomState; got {random_state!r}."
    )


def device_of(name: Any) -> torch.device | None:
    """Where torch trains; None for the compiled path on the CPU."""
    if name == "auto":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        return (
            torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % count) if count else None
        )
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError, ValueError):
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise InputError(f"`device` must be 'auto', 'cpu', 'cuda' or 'cuda:0'; got {name!r}.")
    if device.type == "cpu":
        return None
    if (device.index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"`device` = {name!r}: torch finds {torch.cuda.device_count()} CUDA devices. "
            "Take 'auto' or 'cpu'."
        )
    return device


def plain_param(value: Any) -> Any:
    """A parameter as JSON keeps it; generators of random numbers are left out."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, tuple | list | np.ndarray):
        return [plain_param(entry) for entry in value]
    return value if value is None or isinstance(value, bool | int | float | str) else None
