"""Confidence intervals: Wilson's for shares, the bootstrap for means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from hardmax._types import Floats

__all__ = ["bootstrap", "summarise", "wilson"]

RESAMPLES = 2000


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
    rng = np.random.default_rng(seed)
    part = max(1, min(RESAMPLES, 4_000_000 // n))  # resamples at a time
    means = [
        rng.multinomial(n, np.full(n, 1 / n), size=min(part, RESAMPLES - start)) @ values / n
        for start in range(0, RESAMPLES, part)
    ]
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


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
