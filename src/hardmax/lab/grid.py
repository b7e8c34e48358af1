"""Grids of settings: every combination, or a random sample of them."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardmax._errors import InputError

__all__ = ["Range", "digest_of", "read_grid", "read_words"]


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, for samples; evenly spread, or their logarithms."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise InputError(
                f"a range must go up, and from a number > 0 when logarithmic; "
                f"got {self.low} to {self.high}."
            )

    def draw(self, rng: np.random.Generator) -> float | int:
        """One number."""
        if self.log:
            value = float(np.exp(rng.uniform(np.log(self.low), np.log(self.high))))
        else:
            value = float(rng.uniform(self.low, self.high + self.whole))
        return min(int(value), int(self.high)) if self.whole else value


def read_grid(
    grid: Mapping[str, Any], sample: int | None = None, seed: int = 0
) -> list[dict[str, Any]]:
    """The settings of every cell of a grid, or of `sample` random ones.

    Parameters
    ----------
    grid : mapping
        A value, a list of values, or (for samples) a `Range` per setting.
    sample : int, optional
        How many combinations are drawn at random; all when None.
    seed : int
        Of the sample.

    Examples
    --------
    >>> read_grid({"n": 40, "d": [2, 4]})
    [{'n': 40, 'd': 2}, {'n': 40, 'd': 4}]
    """
    ways = {str(name): _ways(value) for name, value in grid.items()}
    for name, values in ways.items():
        if not isinstance(values, Range) and not values:
            raise InputError(f"`{name}` must have at least one value; got none.")
        if isinstance(values, Range) and sample is None:
            raise InputError(f"`{name}` is a range, which needs a sample. Say how many.")
    if sample is None:
        choices = [values for values in ways.values() if not isinstance(values, Range)]
        every = [dict(zip(ways, values, strict=True)) for values in itertools.product(*choices)]
        return list({digest_of(params): params for params in every}.values())
    rng = np.random.default_rng([seed, 7])
    return [{name: _pick(values, rng) for name, values in ways.items()} for _ in range(sample)]


def _ways(value: Any) -> Range | list[Any]:
    if isinstance(value, Range):
        return value
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [_plain(value)]
    return [_plain(v) for v in value]


def _pick(values: Range | Sequence[Any], rng: np.random.Generator) -> Any:
    return values.draw(rng) if isinstance(values, Range) else values[int(rng.integers(len(values)))]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def digest_of(params: Mapping[str, Any]) -> str:
    """A name for settings that does not depend on their order."""
    text = json.dumps(dict(params), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_words(words: Sequence[str]) -> dict[str, Any]:
    """A grid from words such as n=40, d=2,4, alpha=.1..2 (range) or temperature=.01..1:log.

    Raises
    ------
    InputError
        For a word that is none of these, or a setting given twice.
    """
    grid: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name or not text:
            raise InputError(f"expected NAME=VALUE,VALUE or NAME=LOW..HIGH, got {word!r}.")
        if name in grid:
            raise InputError(f"{name!r} is given twice. Give its values as {name}=1,2.")
        grid[name] = _range(name, text) if ".." in text else [_word(v) for v in text.split(",")]
    return grid


def _range(name: str, text: str) -> Range:
    ends, _, kind = text.partition(":")
    low, _, high = ends.partition("..")
    try:
        numbers = float(low), float(high)
    except ValueError:
        raise InputError(f"expected {name}=LOW..HIGH, got {name}={text}.") from None
    if kind not in ("", "log"):
        raise InputError(f"expected {name}=LOW..HIGH:log, got {name}={text}.")
    whole = all("." not in end and "e" not in end for end in (low, high)) and kind == ""
    return Range(*numbers, log=kind == "log", whole=whole)


def _word(text: str) -> Any:
    """A number, true or false, or the text."""
    known = {"true": True, "yes": True, "false": False, "no": False}
    if text.lower() in known:
        return known[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
