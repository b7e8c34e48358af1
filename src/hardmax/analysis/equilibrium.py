"""The limit of infinitely many layers, in closed form, with its certificate."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from hardmax._check import check_depth, check_flag, is_torch
from hardmax._errors import InputError
from hardmax._types import ArrayLike, Floats, Ints, Number
from hardmax.analysis.certificate import Certificate, certify, conclusions
from hardmax.analysis.polytope import Polytope
from hardmax.analysis.settle import Outcome, settle
from hardmax.analysis.system import Assumptions, read_system

__all__ = ["Equilibrium", "equilibrium"]


@dataclass(frozen=True)
class Equilibrium:
    """Where every token ends, who leads, and why.

    Attributes
    ----------
    limit : (n, d) float64 array
        Positions after infinitely many layers; NaN where not reached.  A torch
        tensor on the same device when the tokens were one, as are `labels`,
        `points` and what `at` returns.
    leaders : tuple of int
        One token (the smallest) per class of equal tokens that leads, sorted.
    born : tuple of int
        The layer at which each of them first chose itself alone.
    labels : (n,) int array
        Index into `leaders`, -1 where the limit is not a leader.
    settled_at : int or None
        The layer from which on no choice changes.
    status : str
        "proved"; "settled" (found in floats, not proved); "collapsed" (all tokens
        shrink to one point, and A has no positive definite symmetric part that
        keeps them apart; `certificate.proved` says whether that is proved);
        "depth_reached".
    """

    leaders: tuple[int, ...]
    born: tuple[int, ...]
    settled_at: int | None
    status: str
    gamma: float
    _limit: Floats = field(repr=False)
    _labels: Ints = field(repr=False)
    _outcome: Outcome = field(repr=False, compare=False)
    _device: Any = field(repr=False, default=None)

    @property
    def limit(self) -> Any:
        """Positions after infinitely many layers."""
        return self._give(self._limit)

    @property
    def labels(self) -> Any:
        """Index into `leaders` of the leader that each token reaches, -1 for none."""
        return self._give(self._labels)

    def _give(self, x: Any) -> Any:
        """A NumPy array, or a tensor where the tokens were given as one."""
        if self._device is None:
            return x
        import torch

        return torch.from_numpy(x.copy()).to(self._device)

    @property
    def path(self) -> str:
        """How choices were searched: "brute", "hull", "sorted" or "twostage"; see docs/speed."""
        return self._outcome.path

    @property
    def alpha(self) -> float:
        """gamma / (1 - gamma); inf for gamma = 1."""
        return self.gamma / (1 - self.gamma) if self.gamma < 1 else math.inf

    @property
    def rate(self) -> float:
        """The factor 1 - gamma by which every distance to the limit shrinks per layer."""
        return float(1 - self._outcome.system.gamma)

    @cached_property
    def certificate(self) -> Certificate:
        """Every choice of every layer, and what it rests on."""
        return certify(self._outcome)

    @cached_property
    def assumptions(self) -> Assumptions:
        """Which assumption of the convergence theorem fails, and what still holds."""
        return self._outcome.system.assumptions

    @cached_property
    def limit_exact(self) -> list[list[Fraction]] | None:
        """The limit as Fractions, when it was decided in rationals or given in them."""
        outcome = self._outcome
        if not (outcome.rational and outcome.proved):
            return None
        return exact_limits(outcome)

    @property
    def points(self) -> Any:
        """(m, d) the finite set S of distinct limit points: leaders first, then the others."""
        return self._give(self._points)

    @cached_property
    def _points(self) -> Floats:
        lead = self._limit[list(self.leaders)].reshape(-1, self._limit.shape[1])
        rest = self._limit[(self._labels < 0) & np.isfinite(self._limit).all(axis=1)]
        return np.concatenate([lead, np.unique(rest, axis=0)]) if len(rest) else lead

    @cached_property
    def polytope(self) -> Polytope | None:
        """The limit polytope K, the hull of S; None when some limit is unknown."""
        if not np.isfinite(self._limit).all():
            return None
        known = tuple(range(len(self.leaders)))
        if self.limit_exact is not None:
            rest = sorted({tuple(self.limit_exact[i]) for i in np.flatnonzero(self._labels < 0)})
            points = [self.limit_exact[i] for i in self.leaders] + [list(p) for p in rest]
            return Polytope.of(points, known_vertices=known)
        return Polytope.of(self._points, known_vertices=known)

    def at(self, k: int) -> Any:
        """Positions at layer `k` >= `settled_at`: limit + (1 - gamma)^m (z - limit).

        Raises
        ------
        InputError
            For an earlier layer, or when no layer settled.
        """
        start = self._settled_layer()
        if check_depth(k, "k") < start:
            raise InputError(
                f"`k` must be at least the settled layer {start}; got {k}. Use simulate before it."
            )
        shrink = self.rate ** (k - start)
        return self._give(self._limit + shrink * (self._settled_tokens() - self._limit))

    def layers_within(self, eps: float) -> int:
        """The first layer from the settled one on with every token within `eps` of its limit.

        Distances are Euclidean and shrink by exactly 1 - gamma per layer.
        """
        start = self._settled_layer()
        if not (isinstance(eps, int | float | Fraction) and eps > 0):
            raise InputError(f"`eps` must be a number > 0; got {eps!r}.")
        way = self._settled_tokens() / 2 - self._limit / 2
        top = float(np.abs(way).max())
        far = 2 * top * float(np.linalg.norm(way / top, axis=1).max()) if top > 0 else 0.0
        if far <= eps:
            return start
        if self.rate == 0:
            return start + 1
        more = max(1, math.floor((math.log(eps) - math.log(far)) / math.log(self.rate)) - 1)
        while far * self.rate**more > eps:
            more += 1
        return start + more

    def _settled_layer(self) -> int:
        if self.settled_at is None:
            raise InputError(
                f"no layer settled (status {self.status!r}), so there is no closed form. "
                "Use simulate, or a larger max_depth."
            )
        return self.settled_at

    def _settled_tokens(self) -> Floats:
        outcome = self._outcome
        classes = outcome.into[outcome.system.class_of]
        return np.ldexp(outcome.x[classes], outcome.system.exponent)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; NaN as None, Fractions as strings."""
        exact = self.limit_exact
        polytope = self.polytope
        return {
            "status": self.status,
            "settled_at": self.settled_at,
            "gamma": self.gamma,
            "alpha": self.alpha if self.gamma < 1 else None,
            "rate": self.rate,
            "leaders": list(self.leaders),
            "born": list(self.born),
            "labels": self._labels.tolist(),
            "limit": [
                [v if math.isfinite(v) else None for v in row] for row in self._limit.tolist()
            ],
            "limit_exact": None if exact is None else [[str(v) for v in row] for row in exact],
            "points": self._points.tolist(),
            "polytope": None if polytope is None else polytope.to_dict(),
            "assumptions": {**asdict(self.assumptions), "hold": self.assumptions.hold},
            "certificate": self.certificate.to_dict(),
        }


def exact_limits(outcome: Outcome) -> list[list[Fraction]]:
    """The limit of every token of a proved outcome, as Fractions."""
    leads = np.unique(outcome.lock[outcome.lock >= 0]).tolist()
    den = outcome.orbit.denominators[outcome.layer]
    rows = outcome.orbit.at(outcome.layer, leads)
    exact = {c: [Fraction(int(v), den) for v in row] for c, row in zip(leads, rows, strict=True)}
    tied = outcome.tied or {}
    classes = outcome.into[outcome.system.class_of].tolist()
    return [list(tied[c] if c in tied else exact[int(outcome.lock[c])]) for c in classes]


def equilibrium(
    z: ArrayLike,
    *,
    A: ArrayLike | None = None,
    alpha: Number = 1.0,
    gamma: Number | None = None,
    exact: bool = False,
    max_depth: int = 10_000,
) -> Equilibrium:
    """The limit k -> infinity of one system, found in finitely many layers and proved.

    A layer is settled when every class of equal tokens follows a leader alone.
    It then stays so for any A, and z_i^{k+m} = l_i + (1 - gamma)^m (z_i^k - l_i).
    Ties whose mean is their limit are recognised by exact conditions.

    Parameters
    ----------
    z : (n, d) array-like
        Tokens: float32, float64 or integers, which are rational numbers, or Fractions.
    A : (d, d) array or pair (U, V) meaning UᵀV, optional
        The scores; the identity when None.
    alpha : number > 0
        Strength of the attention; gamma = alpha / (1 + alpha).
    gamma : number in (0, 1], optional
        The step itself, instead of alpha.
    exact : bool
        Decide every choice in integer arithmetic, however long it takes, as always for
        Fractions.  Otherwise floats decide where a proved bound allows it and rationals
        elsewhere; if those take too long the result is "settled" instead of "proved".
    max_depth : int
        Give up after this many layers.

    Returns
    -------
    Equilibrium

    Raises
    ------
    InputError, ShapeError
        For tokens that are not finite, a batch, or a step out of range.

    Notes
    -----
    For A symmetric positive definite and nonzero, distinct tokens the theorem of
    Alcalde, Fantuzzi and Zuazua gives convergence.  For other A nothing promises
    that a layer settles; what is called proved is proved all the same.

    Examples
    --------
    >>> eq = equilibrium([[1, 0], [0, 1], [0.4, 0.2]], alpha=1)
    >>> eq.status, eq.leaders, eq.limit[2]
    ('proved', (0, 1), array([1., 0.]))
    >>> eq.certificate.verify([[1, 0], [0, 1], [0.4, 0.2]], arithmetic="rational")
    True
    """
    system = read_system(z, A, alpha, gamma)
    depth = check_depth(max_depth, "max_depth")
    wanted = check_flag(exact, "exact")
    outcome = settle(system, depth, exact=wanted or system.exact_input)
    found = conclusions(outcome)
    limit = found["limit"]
    limit.setflags(write=False)
    closed = outcome.proved or (outcome.status == "settled" and not np.isnan(limit).any())
    return Equilibrium(
        leaders=found["leaders"],
        born=found["born"],
        settled_at=outcome.layer if closed else None,
        status=outcome.status,
        gamma=float(system.gamma),
        _limit=limit,
        _labels=np.array(found["labels"], dtype=np.int64),
        _outcome=outcome,
        _device=z.device if is_torch(z) else None,
    )
