"""A variant: which tokens, scores, heads, temperature, normalisation and layers between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Floats
from hardmax.dynamics.layer import NORMALIZATIONS
from hardmax.lab.matrices import (
    MATRICES,
    VALUES,
    check_class,
    draw_feed_forward,
    draw_matrix,
    draw_values,
)
from hardmax.tokens.points import arrangement

__all__ = ["Systems", "Variant", "draw_systems", "read_variant"]

TOKENS = ("gaussian", "uniform", "ball", "sphere", "clusters")


@dataclass(frozen=True)
class Variant:
    """One kind of system; a seed makes a system of it.

    A token moves by z_i' = N(z_i + alpha sum_h V_h m_h(i)) and then by
    z_i'' = N(z_i' + feed_forward F(z_i')), where m_h(i) is the mean of the tokens that
    i chooses with A_h, F a random network with one hidden layer, the same in all
    layers, and N the normalisation ("rescale" divides by 1 + alpha, and does
    nothing after F).

    Attributes
    ----------
    tokens : "gaussian", "uniform", "ball", "sphere" or "clusters"
    n, d : int
    alpha : float
    depth : int
        The most layers; a system that rests is run no further.
    matrix : str
        The class of A_h, drawn anew for each head; see `MATRICES`.
    heads : int
        Each sees all coordinates.
    values : "identity", "blocks", "rotation" or "gaussian"
        V_h; see `VALUES`.
    temperature : float
        0 is hardmax, above it softmax of scores / temperature.
    normalization : "rescale", "none", "sphere" or "layernorm"
    feed_forward : float
        Strength of the feed-forward layers; 0 leaves them out.
    causal : bool
        Whether a token sees only itself and those before it.
    """

    tokens: str = "gaussian"
    n: int = 40
    d: int = 2
    alpha: float = 0.5
    depth: int = 500
    matrix: str = "identity"
    heads: int = 1
    values: str = "identity"
    temperature: float = 0.0
    normalization: str = "rescale"
    feed_forward: float = 0.0
    causal: bool = False

    @property
    def plain(self) -> bool:
        """Whether the limit is reached once every token chooses one leader (any A)."""
        return (
            self.temperature == 0
            and self.normalization in ("rescale", "none")
            and self.values == "identity"
            and self.heads == 1
            and self.feed_forward == 0
            and not self.causal
        )

    @property
    def grows(self) -> bool:
        """Whether tokens may leave every bounded set."""
        kept = self.normalization in ("sphere", "layernorm")
        outward = self.values == "gaussian" or self.feed_forward > 0
        return not kept and (self.normalization == "none" or outward)

    def to_dict(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)


_NAMES = tuple(f.name for f in fields(Variant))
_WORDS = {"tokens": TOKENS, "values": tuple(VALUES), "normalization": NORMALIZATIONS}
_LEAST = {"n": 1, "d": 1, "depth": 1, "heads": 1}
_ABOVE = {"alpha": False, "temperature": True, "feed_forward": True}  # whether 0 is allowed


def read_variant(given: Mapping[str, Any]) -> Variant:
    """A checked variant from settings by name.

    Raises
    ------
    InputError
        For an unknown setting or a value out of range.
    """
    values = {}
    for name, value in given.items():
        if name not in _NAMES:
            raise InputError(f"{name!r} is no setting of a system. Known are {', '.join(_NAMES)}.")
        values[name] = _checked(name, value)
    found = Variant(**values)
    if found.values == "blocks" and found.d % found.heads:
        raise InputError(f"`heads` must divide d with values='blocks'; got {found.heads}.")
    return found


def _checked(name: str, value: Any) -> Any:
    if name == "matrix":
        return check_class(value)
    if name in _WORDS:
        if value not in _WORDS[name]:
            raise InputError(f"`{name}` must be one of {', '.join(_WORDS[name])}; got {value!r}.")
        return str(value)
    if name == "causal":
        if not isinstance(value, bool | np.bool_):
            raise InputError(f"`causal` must be true or false; got {value!r}.")
        return bool(value)
    number = isinstance(value, int | float | np.integer | np.floating)
    if isinstance(value, bool) or not number or not np.isfinite(value):
        raise InputError(f"`{name}` must be a number; got {value!r}.")
    if name in _LEAST:
        if value != int(value) or value < _LEAST[name]:
            raise InputError(f"`{name}` must be a whole number >= {_LEAST[name]}; got {value!r}.")
        return int(value)
    if value < 0 or (value == 0 and not _ABOVE[name]):
        wanted = ">= 0" if _ABOVE[name] else "> 0"
        raise InputError(f"`{name}` must be a number {wanted}; got {value!r}.")
    return float(value)


@dataclass(frozen=True)
class Systems:
    """Drawn systems of one variant: b of them, with h heads."""

    variant: Variant
    z: Floats  # (b, n, d)
    A: Floats  # (b, h, d, d)
    V: Floats  # (b, h, d, d)
    first: Floats  # (b, d, 4d)
    bias: Floats  # (b, 4d)
    last: Floats  # (b, 4d, d)


def draw_systems(variant: Variant, seed: int, draws: Sequence[int]) -> Systems:
    """The systems of some draws.

    A draw is decided by its number and `seed` alone, so that the results of a
    system do not depend on the others.  Tokens, matrices and layers have generators
    of their own: variants that differ in one of them share the others.
    """
    v = variant
    parts: list[list[Floats]] = [[] for _ in range(6)]
    for draw in draws:
        clouds, scores, between = (np.random.default_rng([seed, draw, k]) for k in range(3))
        name = f"{v.tokens}:n={v.n},d={v.d}"
        start = int(clouds.integers(2**31))
        ahead = draw_feed_forward(v.d, between)
        made = (
            np.asarray(arrangement(name, seed=start)),
            np.stack([draw_matrix(v.matrix, v.d, scores) for _ in range(v.heads)]),
            draw_values(v.values, v.heads, v.d, between),
            *ahead,
        )
        for part, one in zip(parts, made, strict=True):
            part.append(one)
    return Systems(v, *(np.stack(part) for part in parts))


def about() -> str:
    """The settings with their defaults, one per line, and the classes of matrices."""
    lines = [f"{f.name}={f.default}" for f in fields(Variant)]
    lines += [f"matrix={name}: {words}" for name, words in MATRICES.items()]
    return "\n".join(lines)
