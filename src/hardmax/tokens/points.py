"""Tokens to start from: the arrangements of the paper, and random clouds.

An arrangement is a name, or a name with settings: `gaussian:n=100,d=2,seed=0`.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Floats

__all__ = ["SEED", "arrangement", "is_name", "names"]

SEED = 0
"""The seed of every random arrangement for which none is given."""

_LIMIT = 2**27
Rows: TypeAlias = list[list[Fraction]]


def _exact(*rows: str) -> Rows:
    return [[Fraction(cell) for cell in row.split()] for row in rows]


_CORNERS = _exact("1 1", "1 -1", "-1 1", "-1 -1")


@dataclass(frozen=True)
class _Classic:
    """Fixed tokens, then `extra` groups (count, low, high) drawn in squares."""

    about: str
    fixed: Rows
    extra: tuple[tuple[int, float, float], ...] = ()


_CLASSIC = {
    "triangle": _Classic(
        "figure 2, row 1: a triangular polytope; 5 fixed and 4 random tokens",
        _exact("1 1", "1/2 -1/2", "-1 -1", "3/10 -1/5", "1/10 -1/5"),
        ((2, 0.0, 1.0), (2, -1.0, 0.0)),
    ),
    "emerging": _Classic(
        "figure 2, row 2: a leader emerges at layer 1; 8 fixed tokens",
        _exact(
            "1 4/12", "-1/12 1/12", "-1 -1", "0 3/12", "-3/10 -7/10", "-6/10 -9/10",
            "8/10 1/10", "6/10 15/100",
        ),
    ),
    "square": _Classic(
        "figure 2, row 3: a square polytope; 4 corners and 6 random tokens",
        _CORNERS,
        ((6, -0.5, 0.5),),
    ),
    "edges": _Classic(
        "figure 2, row 4: two clusters without leaders; 6 fixed and 4 random tokens",
        [*_CORNERS, *_exact("-1/2 0", "1/2 0")],
        ((4, -0.5, 0.5),),
    ),
    "tie-breaks": _Classic(
        "a tie of two leaders that lasts one layer only (take alpha = 1)",
        _exact("1 3", "1 -1", "1/2 0"),
    ),
    "tie-leaves": _Classic(
        "a tie of equal products that a third token ends (take alpha = 0.5)",
        _exact("1 2 0", "1 -2 0", "3/2 0 -1", "1/10 0 1/10"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class _Sampler:
    """A random cloud: its settings with their defaults, and how to draw it."""

    about: str
    defaults: Mapping[str, int | float]
    draw: Callable[..., Floats]


def _uniform(rng: np.random.Generator, n: int, d: int, low: float, high: float) -> Floats:
    if not low < high:
        raise InputError(f"`low` must be below `high`; got low={low}, high={high}.")
    return rng.uniform(low, high, size=(n, d))


def _sphere(rng: np.random.Generator, n: int, d: int, radius: float) -> Floats:
    z = rng.standard_normal((n, d))
    return np.asarray(radius * z / np.linalg.norm(z, axis=1, keepdims=True))


def _ball(rng: np.random.Generator, n: int, d: int, radius: float) -> Floats:
    shell = rng.uniform(size=(n, 1)) ** (1.0 / d)
    return _sphere(rng, n, d, radius) * shell


def _clusters(rng: np.random.Generator, n: int, d: int, k: int, spread: float) -> Floats:
    centres = rng.standard_normal((k, d))
    return centres[np.arange(n) % k] + spread * rng.standard_normal((n, d))


_RANDOM = {
    "gaussian": _Sampler(
        "independent standard normal coordinates",
        {"n": 100, "d": 2},
        lambda rng, n, d: rng.standard_normal((n, d)),
    ),
    "uniform": _Sampler(
        "uniform in a cube", {"n": 100, "d": 2, "low": -1.0, "high": 1.0}, _uniform
    ),
    "ball": _Sampler("uniform in a ball", {"n": 100, "d": 2, "radius": 1.0}, _ball),
    "sphere": _Sampler("uniform on a sphere", {"n": 100, "d": 2, "radius": 1.0}, _sphere),
    "clusters": _Sampler(
        "normal clouds around k normal centres, in turn",
        {"n": 100, "d": 2, "k": 5, "spread": 0.1},
        _clusters,
    ),
}
_LATTICE: dict[str, int | float] = {"m": 3, "d": 2}


def names() -> dict[str, str]:
    """Every arrangement with one line about it, samplers with their defaults."""
    lines = {name: classic.about for name, classic in _CLASSIC.items()}
    for name, sampler in _RANDOM.items():
        settings = ",".join(f"{key}={value}" for key, value in sampler.defaults.items())
        lines[f"{name}:{settings},seed={SEED}"] = sampler.about
    lines["lattice:m=3,d=2"] = "the grid of m^d points in [-1, 1]^d"
    return lines


def is_name(text: str) -> bool:
    """True when the part of `text` before a colon names an arrangement."""
    return text.partition(":")[0].strip() in {*_CLASSIC, *_RANDOM, "lattice"}


def arrangement(name: str, *, exact: bool = False, seed: int | None = None) -> Floats | Rows:
    """Tokens by name: the rows of figure 2, two kinds of tie, random clouds.

    Parameters
    ----------
    name
        One of `names()`; settings follow a colon, as in `ball:n=50,d=3`.
    exact
        Return lists of Fractions.  The fixed tokens are then the rationals of
        the paper (1/3 is a third), random ones the doubles that were drawn.
    seed
        For the random tokens; 0 where neither this nor `seed=` is given.

    Returns
    -------
    ndarray or list
        (n, d) doubles, or n lists of d Fractions.

    Raises
    ------
    InputError
        For an unknown name or setting, with the nearest known one.

    Examples
    --------
    >>> arrangement("tie-breaks").tolist()
    [[1.0, 3.0], [1.0, -1.0], [0.5, 0.0]]
    >>> arrangement("emerging", exact=True)[0]
    [Fraction(1, 1), Fraction(1, 3)]
    >>> arrangement("gaussian:n=3,d=4", seed=1).shape
    (3, 4)
    """
    head, _, tail = name.partition(":")
    head = head.strip()
    if not is_name(head):
        raise InputError(f"{head!r} names no arrangement. {_near(head)}")
    defaults = _defaults(head)
    given = _settings(head, tail, {**defaults, "seed": SEED})
    rng = np.random.default_rng(_seed(name, given.pop("seed", None), seed))
    if head in _CLASSIC:
        return _classic(_CLASSIC[head], rng, exact)
    values = {**defaults, **given}
    if head == "lattice":
        rows = _lattice(int(values["m"]), int(values["d"]))
        return rows if exact else np.array(rows, dtype=np.float64)
    _bounded(int(values["n"]) * int(values["d"]), name)
    points = _RANDOM[head].draw(rng, **values)
    return _fractions(points) if exact else points


def _seed(name: str, stated: int | None, seed: int | None) -> int:
    """The seed of the name or of the argument; both must agree."""
    if seed is None:
        return SEED if stated is None else stated
    if stated is not None and stated != seed:
        raise InputError(f"seed={stated} in {name!r} and seed {seed} differ. Give one.")
    return _whole_number("seed", seed)


def _classic(classic: _Classic, rng: np.random.Generator, exact: bool) -> Floats | Rows:
    drawn = [rng.uniform(low, high, size=(count, 2)) for count, low, high in classic.extra]
    if exact:
        return [*map(list, classic.fixed), *(row for block in drawn for row in _fractions(block))]
    return np.concatenate([np.array(classic.fixed, dtype=np.float64), *drawn])


def _fractions(points: Floats) -> Rows:
    return [[Fraction(x) for x in row] for row in points.tolist()]


def _lattice(m: int, d: int) -> Rows:
    _bounded(d * m ** min(d, 64), f"lattice:m={m},d={d}")
    axis = [Fraction(2 * k, m - 1) - 1 for k in range(m)] if m > 1 else [Fraction(0)]
    return [list(point) for point in itertools.product(axis, repeat=d)]


def _bounded(size: int, name: str) -> None:
    if size > _LIMIT:
        raise InputError(f"{name!r} would have more than {_LIMIT} coordinates. Give smaller ones.")


def _defaults(head: str) -> Mapping[str, int | float]:
    if head == "lattice":
        return _LATTICE
    return _RANDOM[head].defaults if head in _RANDOM else {}


def _near(head: str) -> str:
    known = [*_CLASSIC, *_RANDOM, "lattice"]
    close = difflib.get_close_matches(head, known, n=2)
    if close:
        return f"Did you mean {' or '.join(close)}?"
    return f"Known are {', '.join(known)}."


def _settings(head: str, tail: str, known: Mapping[str, int | float]) -> dict[str, Any]:
    """`n=100,seed=3` as numbers of the kinds of `known`."""
    given: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in tail.split(","))):
        key, equals, text = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise InputError(f"expected settings as {head}:key=value, got {part!r}.")
        if key not in known:
            raise InputError(f"{head} has no setting {key!r}. It has {', '.join(known)}.")
        if key in given:
            raise InputError(f"{key!r} is given twice in {head}:{tail}.")
        whole = isinstance(known[key], int)
        given[key] = _whole_number(key, text) if whole else _positive(key, text)
    return given


def _whole_number(key: str, value: Any) -> int:
    least = 0 if key == "seed" else 1
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = least - 1
    if number < least or number > 2**53 or (isinstance(value, float) and value != number):
        raise InputError(f"`{key}` must be a whole number >= {least}; got {value!r}.")
    return number


def _positive(key: str, text: str) -> float:
    """A finite number, positive unless it is an end of an interval."""
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not np.isfinite(number) or (key not in ("low", "high") and number <= 0):
        kind = "a finite number" if key in ("low", "high") else "a positive number"
        raise InputError(f"`{key}` must be {kind}; got {text!r}.")
    return number
