"""Settings of the classifier, and the named sets of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Floats
from hardmax.learn.labelled import rate_at
from hardmax.tokens.text import STOP_WORDS

__all__ = ["PRESETS", "SCHEDULES", "SCOPES", "Settings", "preset", "settings_for"]

SCOPES = ("text", "sentence")
SCHEDULES = ("cycle", "constant")


@dataclass(frozen=True)
class Settings:
    """What a model is and how it is trained; see `HardmaxClassifier` for each name."""

    dim: int = 16
    heads: int = 8
    depth: int = 2
    ngrams: int = 3
    scope: str = "text"
    min_count: int = 2
    max_features: int | None = None
    stop_words: str | tuple[str, ...] | None = None
    punctuation: bool = True
    epochs: int = 5
    batch_size: int = 64
    learning_rate: float = 0.005
    word_dropout: float = 0.5
    key_dropout: float = 0.2
    averaging: float = 0.998
    members: int = 3
    alpha: float = 0.5
    learn_alpha: bool = False
    spread: float = 0.1
    tie_tol: float = 1e-12
    early_stopping: bool = False
    validation_fraction: float = 0.1
    patience: int = 2
    A: Any = None
    temperature: float = 0.0
    max_words: int | None = None
    schedule: str = "cycle"
    clip: float | None = None
    dense: bool = False
    once: bool = True
    gaps: int = 0
    evidence: float = 0.3
    length_power: float = 0.5

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_choices()
        object.__setattr__(self, "A", _scores_of(self.A, self.heads, self.dim // self.heads))

    def _check_numbers(self) -> None:
        for name, low in _WHOLE.items():
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            if isinstance(value, bool) or not _integral(value) or value < low:
                raise InputError(f"`{name}` must be an integer >= {low}; got {value!r}.")
            if value > _LARGEST.get(name, value):
                raise InputError(f"`{name}` must be at most {_LARGEST[name]}; got {value!r}.")
        for name, (low_x, high_x, text) in _REAL.items():
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            if isinstance(value, bool) or not _number(value) or not low_x <= value <= high_x:
                raise InputError(f"`{name}` must be {text}; got {value!r}.")
        if self.dim % self.heads:
            raise InputError(
                f"`heads` must divide `dim` = {self.dim}; got {self.heads}. "
                f"Take dim = {2 * self.heads} for heads in the plane."
            )

    def _check_choices(self) -> None:
        if self.scope not in SCOPES:
            raise InputError(f"`scope` must be one of text, sentence; got {self.scope!r}.")
        if isinstance(self.stop_words, str) and self.stop_words != "english":
            raise InputError(
                f"`stop_words` must be 'english', a list of words or None; got {self.stop_words!r}."
            )
        if self.schedule not in SCHEDULES:
            raise InputError(
                f"`schedule` must be one of {', '.join(SCHEDULES)}; got {self.schedule!r}."
            )

    def scores(self) -> Floats | None:
        """The matrices A of the heads at the beginning, (heads, s, s); None for the identity."""
        if self.A is None:
            return None
        if isinstance(self.A, str):
            return np.tile(np.eye(self.dim // self.heads), (self.heads, 1, 1))
        return np.array(self.A, dtype=np.float64)

    def rate(self, share: float) -> float:
        """The learning rate after a share of all steps."""
        return self.learning_rate * (rate_at(share) if self.schedule == "cycle" else 1.0)

    @property
    def dropped(self) -> frozenset[str]:
        """The words that are left out."""
        if isinstance(self.stop_words, str):
            return STOP_WORDS
        return frozenset(self.stop_words or ())

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Settings:
        """The settings that `to_dict` gave; other names are refused."""
        known = {entry.name for entry in fields(cls)}
        if not known >= set(data):
            raise InputError(f"unknown settings: {', '.join(sorted(set(data) - known))}.")
        words = data.get("stop_words")
        return cls(**{**data, "stop_words": tuple(words) if isinstance(words, list) else words})


def _scores_of(A: Any, heads: int, size: int) -> Any:
    """A as None, "learned", or one matrix of numbers per head, in tuples."""
    if A is None or (isinstance(A, str) and A == "learned"):
        return A
    try:
        array = np.asarray(A, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    array = np.tile(array, (heads, 1, 1)) if array.ndim == 2 else array
    if array.shape != (heads, size, size) or not np.all(np.isfinite(array)):
        raise InputError(
            f"`A` must be None, 'learned', a finite ({size}, {size}) matrix or one per head; "
            f"got {A if isinstance(A, str) else f'shape {np.shape(A)}'!r}."
        )
    return tuple(tuple(tuple(row) for row in block) for block in array.tolist())


def _integral(value: Any) -> bool:
    return hasattr(value, "__index__")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) or hasattr(value, "__float__")


_OPTIONAL = {"max_features", "max_words", "clip"}
_WHOLE = {
    "dim": 1,
    "heads": 1,
    "depth": 0,
    "ngrams": 1,
    "min_count": 1,
    "max_features": 1,
    "max_words": 1,
    "epochs": 1,
    "batch_size": 1,
    "patience": 1,
    "members": 1,
    "gaps": 0,
}
_LARGEST = {"depth": 1000, "ngrams": 100}
_TINY, _MOST = 1e-300, 1e300
_REAL = {
    "learning_rate": (_TINY, _MOST, "a finite number > 0"),
    "word_dropout": (0.0, 1.0 - 1e-9, "a number in [0, 1)"),
    "key_dropout": (0.0, 1.0 - 1e-9, "a number in [0, 1)"),
    "averaging": (0.0, 1.0 - 1e-12, "a number in [0, 1)"),
    "alpha": (_TINY, _MOST, "a finite number > 0"),
    "spread": (_TINY, _MOST, "a finite number > 0"),
    "tie_tol": (0.0, 0.1, "a number in [0, 0.1]"),
    "temperature": (0.0, _MOST, "a finite number >= 0"),
    "evidence": (0.0, 4.0, "a number in [0, 4]"),
    "length_power": (0.0, 1.0, "a number in [0, 1]"),
    "clip": (_TINY, _MOST, "a finite number > 0"),
    "validation_fraction": (1e-9, 1.0 - 1e-9, "a number in (0, 1)"),
}

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "plane": {
        "dim": 2,
        "heads": 1,
        "members": 1,
        "learning_rate": 0.008,
        "key_dropout": 0.4,
        "evidence": 0.0,
    },
    "accurate": {"gaps": 2, "members": 6, "key_dropout": 0.4},
    "paper": {
        "dim": 2,
        "heads": 1,
        "depth": 8,
        "ngrams": 1,
        "members": 1,
        "min_count": 1,
        "stop_words": "english",
        "max_words": 128,
        "temperature": 0.001,
        "alpha": 0.5,
        "learn_alpha": True,
        "spread": 1.0,
        "epochs": 101,
        "learning_rate": 0.001,
        "schedule": "constant",
        "word_dropout": 0.0,
        "key_dropout": 0.0,
        "averaging": 0.0,
        "clip": 5.0,
        "dense": True,
        "punctuation": False,
        "once": False,
        "evidence": 0.0,
        "length_power": 0.0,
    },
}
"""Named settings, as changes of the default.

"plane" has one head of two coordinates: all of it can be drawn.  "accurate" adds gapped
pairs and members: slower, and the most accurate known.  "paper" is the
training of arXiv 2407.01602: softmax at temperature 0.001, the first 128 words, Adam
on all vectors at a constant rate, clipped gradients; the result is used as hardmax.
Padding is no token here, and alpha is positive; `learn.paper` keeps to the letter.
"""

_MANY = 5_000
_EACH = 20_000
_STEPS = 800
_EPOCHS_ALONE = 8
"""Epochs of one head, which learns more slowly than many."""


def preset(name: str) -> dict[str, Any]:
    """The parameters that a named set changes."""
    if name not in PRESETS:
        raise InputError(f"`preset` must be one of {', '.join(PRESETS)}; got {name!r}.")
    return dict(PRESETS[name])


def settings_for(params: dict[str, Any], texts: int) -> Settings:
    """Settings from parameters, the automatic ones decided by the number of texts."""
    known = {entry.name for entry in fields(Settings)}
    given = {key: value for key, value in params.items() if key in known}
    if given.get("min_count") is None:
        given["min_count"] = max(2, round(texts / _EACH)) if texts >= _MANY else 1
    if given.get("epochs") is None:
        size = given.get("batch_size", Settings.batch_size)
        per_epoch = -(-texts // size) if isinstance(size, int) and size > 0 else 1
        least = _EPOCHS_ALONE if given.get("heads", Settings.heads) == 1 else Settings.epochs
        given["epochs"] = max(least, -(-_STEPS // max(per_epoch, 1)))
    words = given.get("stop_words")
    if words is not None and not isinstance(words, str):
        given["stop_words"] = tuple(sorted(words))
    return Settings(**given)
