"""Settings of the classifier, and the named sets of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from hardmax._errors import InputError
from hardmax.tokens.text import STOP_WORDS

__all__ = ["PRESETS", "SCOPES", "Settings", "preset", "settings_for"]

SCOPES = ("text", "sentence")


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
    punctuation: bool = False
    epochs: int = 8
    batch_size: int = 64
    learning_rate: float = 0.005
    word_dropout: float = 0.5
    key_dropout: float = 0.4
    averaging: float = 0.998
    members: int = 3
    alpha: float = 1.0
    learn_alpha: bool = False
    spread: float = 0.1
    tie_tol: float = 1e-12
    early_stopping: bool = False
    validation_fraction: float = 0.1
    patience: int = 2

    def __post_init__(self) -> None:
        for name, low in _WHOLE.items():
            value = getattr(self, name)
            if value is None and name == "max_features":
                continue
            if isinstance(value, bool) or not _integral(value) or value < low:
                raise InputError(f"`{name}` must be an integer >= {low}; got {value!r}.")
        for name, (low_x, high_x, text) in _REAL.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not _number(value) or not low_x <= value <= high_x:
                raise InputError(f"`{name}` must be {text}; got {value!r}.")
        if self.dim % self.heads:
            raise InputError(
                f"`heads` must divide `dim` = {self.dim}; got {self.heads}. "
                f"Take dim = {2 * self.heads} for heads in the plane."
            )
        if self.scope not in SCOPES:
            raise InputError(f"`scope` must be one of text, sentence; got {self.scope!r}.")
        if isinstance(self.stop_words, str) and self.stop_words != "english":
            raise InputError(
                f"`stop_words` must be 'english', a list of words or None; got {self.stop_words!r}."
            )

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


def _integral(value: Any) -> bool:
    return hasattr(value, "__index__")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) or hasattr(value, "__float__")


_WHOLE = {
    "dim": 1,
    "heads": 1,
    "depth": 0,
    "ngrams": 1,
    "min_count": 1,
    "max_features": 1,
    "epochs": 1,
    "batch_size": 1,
    "patience": 1,
    "members": 1,
}
_TINY, _MOST = 1e-300, 1e300
_REAL = {
    "learning_rate": (_TINY, _MOST, "a finite number > 0"),
    "word_dropout": (0.0, 1.0 - 1e-9, "a number in [0, 1)"),
    "key_dropout": (0.0, 1.0 - 1e-9, "a number in [0, 1)"),
    "averaging": (0.0, 1.0 - 1e-12, "a number in [0, 1)"),
    "alpha": (_TINY, _MOST, "a finite number > 0"),
    "spread": (_TINY, _MOST, "a finite number > 0"),
    "tie_tol": (0.0, 0.1, "a number in [0, 0.1]"),
    "validation_fraction": (1e-9, 1.0 - 1e-9, "a number in (0, 1)"),
}

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "plane": {"dim": 2, "heads": 1, "members": 1, "alpha": 0.5, "learning_rate": 0.008},
}
"""Named settings, as changes of the default.

"plane" has one head of two coordinates: all of it can be drawn.
"""

_MANY = 5_000
_STEPS = 800


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
        given["min_count"] = 2 if texts >= _MANY else 1
    if given.get("epochs") is None:
        size = given.get("batch_size", Settings.batch_size)
        per_epoch = -(-texts // size) if isinstance(size, int) and size > 0 else 1
        given["epochs"] = max(8, -(-_STEPS // max(per_epoch, 1)))
    words = given.get("stop_words")
    if words is not None and not isinstance(words, str):
        given["stop_words"] = tuple(sorted(words))
    return Settings(**given)
