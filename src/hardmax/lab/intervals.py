"""Confidence intervals: Wilson's for shares, the bootstrap for means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from hardmax._types import Floats

__all__ = ["bootstrap", "summarise", "wilson"]

RESAMPLES = 2000
_MANY = 1000


def wilson(hits: int, count: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share; it is right at 0 and 1, where others have no width.

    Examples
    --------
    >>> low, high = wilson(10, 10)
    >>> round(low, 3), high
    (0.722, 1.0)
    """
    if count == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, squared = hits / count, z * z / count
    middle = (share + squared / 2) / (1 + squared)
    half = z / (1 + squared) * float(np.sqrt(share * (1 - share) / count + squared / count / 4))
    low = 0.0 if hits == 0 else middle - half
    return low, 1.0 if hits == count else middle + half


def bootstrap(values: Floats, level: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """The percentile interval of a mean, from 2,000 resamples with a fixed seed.

    Notes
    -----
    It has no width when all values are equal, and is too short for few values.

    Examples
    --------
    >>> bootstrap(np.array([2.0, 2.0, 2.0]))
    (2.0, 2.0)
    """
    n = len(values)
    if not n or np.all(values == values[0]):
        same = float(values[0]) if n else float("nan")
        return same, same
    means = np.concatenate([weights @ values for weights in _resamples(n, seed)])
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


@lru_cache(maxsize=2)
def _kept(n: int, seed: int) -> Floats:
    return _weights(n, RESAMPLES, np.random.default_rng(seed))


def _weights(n: int, count: int, rng: np.random.Generator) -> Floats:
    return np.asarray(rng.multinomial(n, np.full(n, 1 / n), size=count) / n)


def _resamples(n: int, seed: int) -> Iterator[Floats]:
    """(resamples, n) weights, in parts where they would be large."""
    if n <= _MANY:
        yield _kept(n, seed)
        return
    rng, part = np.random.default_rng(seed), max(1, _MANY * RESAMPLES // n)
    for start in range(0, RESAMPLES, part):
        yield _weights(n, min(part, RESAMPLES - start), rng)


def summarise(
    groups: Mapping[str, Sequence[Mapping[str, Any]]], level: float = 0.95
) -> dict[str, dict[str, Any]]:
    """Per group and measure: the mean, its interval, and of how many systems.

    Shares of truths have Wilson's interval, means the bootstrap.  Texts and measures
    that no system of the group has are left out.

    Returns
    -------
    dict
        Group -> {"draws": ..., "clusters": ..., "clusters_low": ..., "clusters_high": ...,
        "clusters_of": ...}.
    """
    out: dict[str, dict[str, Any]] = {}
    for group, rows in groups.items():
        found: dict[str, Any] = {"draws": len(rows)}
        for name in dict.fromkeys(name for row in rows for name in row):
            values = [row[name] for row in rows if row.get(name) is not None]
            values = [v for v in values if not isinstance(v, str)]
            if not values:
                continue
            numbers = np.array(values, dtype=np.float64)
            if isinstance(values[0], bool):
                interval = wilson(int(numbers.sum()), len(numbers), level)
            else:
                interval = bootstrap(numbers, level)
            found |= {name: float(numbers.mean()), f"{name}_low": interval[0]}
            found |= {f"{name}_high": interval[1], f"{name}_of": len(values)}
        out[group] = found
    return out
