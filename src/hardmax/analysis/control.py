"""Choosing the scores A so that given tokens lead and others follow them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hardmax._check import as_array, check_choice, check_depth, check_finite, check_tolerance
from hardmax._errors import InputError, ShapeError
from hardmax._types import ArrayLike, Floats, Number
from hardmax.analysis import _control_program as program
from hardmax.analysis._control_dual import refute, refute_diagonal, refute_plainly
from hardmax.analysis._control_proof import ControlCertificate
from hardmax.analysis._control_search import (
    Found,
    Limit,
    fewest_violated,
    low_rank,
    settled_matrix,
)
from hardmax.analysis._control_turn import decide_turned
from hardmax.analysis._control_wishes import Wish, Wishes, read_wishes
from hardmax.analysis._exact_linear import dot

__all__ = ["Control", "ControlCertificate", "Wish", "choose_matrix"]


@dataclass(frozen=True)
class Control:
    """A score matrix that grants wishes, or why there is none.

    Attributes
    ----------
    status : "feasible", "infeasible" or "undecided"
        About all wishes together.  The first two are proved by `certificate`.
    A : (d, d) float64 array or None
        Symmetric positive semidefinite.  It grants all wishes when feasible, all but
        `violated` when those were asked for, else None.
    factor : (rank, d) float64 array or None
        With `rank`: A is exactly factorᵀ factor, and `A` is its rounding.
    margin : float or None
        Smallest <A z_i, z_l - z_j> / (|z_i| |z_l - z_j|) at the input, for trace A = d,
        over the wishes that A grants; for the limit it may be negative.
    interval : (float, float)
        What is known of the largest margin that all wishes can have at the input.
    certificate : ControlCertificate or None
        The proof with its data; None when undecided.
    wishes : tuple of Wish
        What was asked; equal wishes once.
    violated : tuple of Wish or None
        With `relax`: the fewest wishes that A leaves out.
    conflicts : tuple of ControlCertificate
        With `relax`: wishes that cannot be had together, with proofs.
    violated_proved : bool
        Whether the conflicts prove that no fewer wishes can be left out.
    distance : float or None
        With `closest_to`: the Frobenius distance to it.
    """

    status: str
    A: Floats | None
    factor: Floats | None
    margin: float | None
    interval: tuple[float, float]
    certificate: ControlCertificate | None
    wishes: tuple[Wish, ...]
    where: str
    shape: str
    violated: tuple[Wish, ...] | None = None
    conflicts: tuple[ControlCertificate, ...] = ()
    violated_proved: bool = False
    distance: float | None = None

    @property
    def feasible(self) -> bool:
        """Whether A grants all wishes."""
        return self.status == "feasible"

    @property
    def scores(self) -> Any:
        """What to give as `A` to other functions: A, or its exact factors (U, U)."""
        return self.A if self.factor is None else (self.factor, self.factor)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; an unbounded end of the interval as None."""
        low, high = (v if np.isfinite(v) else None for v in self.interval)
        proof = self.certificate
        return {
            "status": self.status,
            "where": self.where,
            "shape": self.shape,
            "wishes": [[w.token, w.target] for w in self.wishes],
            "A": None if self.A is None else self.A.tolist(),
            "factor": None if self.factor is None else self.factor.tolist(),
            "margin": self.margin if self.margin is None or np.isfinite(self.margin) else None,
            "interval": [low, high],
            "distance": self.distance,
            "violated": (
                None if self.violated is None else [[w.token, w.target] for w in self.violated]
            ),
            "violated_proved": self.violated_proved,
            "conflicts": [c.to_dict() for c in self.conflicts],
            "certificate": None if proof is None else proof.to_dict(),
        }


def choose_matrix(
    z: ArrayLike,
    lead: ArrayLike,
    *,
    follow: ArrayLike = (),
    where: str = "input",
    shape: str = "full",
    rank: int | None = None,
    closest_to: ArrayLike | None = None,
    relax: bool = False,
    alpha: Number = 1.0,
    gamma: Number | None = None,
    least: float = 1e-3,
    tries: int = 200,
    seed: int = 0,
) -> Control:
    """Find A so that the tokens in `lead` lead and others follow them, or prove there is none.

    Token i leads at the input iff <A z_i, z_i - z_j> > 0 for every other token j, and
    i follows l alone iff <A z_i, z_l - z_j> > 0: linear in A.  Among symmetric
    positive semidefinite A with trace d the one with the largest common margin is
    found by a semidefinite program, and rounded so that everything holds exactly.
    Otherwise weights >= 0 are sought whose combination of the inequalities is
    contradictory for every such A.

    Parameters
    ----------
    z : (n, d) array-like
        Tokens: numbers as given are exact rationals; Fractions are accepted.
    lead : sequence of int
        Tokens that shall lead.
    follow : sequence of pairs (follower, leader)
        Who shall follow which of them.
    where : "input" or "limit"
        "input": at the first layer, from where on it lasts for ever.  "limit": born
        at any layer; found by search beyond the input, proved by `equilibrium`.
    shape : "full" or "diagonal"
    rank : int, optional
        Largest rank of A.  Not convex: a search; "infeasible" only when no A of any
        rank exists.
    closest_to : (d, d) array, optional
        Instead of the largest margin, the A nearest to this symmetric matrix whose
        margin is at least `least` or half of the largest, whichever is smaller.
    relax : bool
        When not all wishes can be had, also find the fewest to give up.
    alpha, gamma : number
        The step, which matters for the limit alone.
    tries, seed : int
        Length and seed of the search for the limit or a rank.

    Returns
    -------
    Control

    Raises
    ------
    InputError, ShapeError
        For tokens or wishes that name nothing, or options that exclude each other.
    MissingExtraError
        When the extra `control` is not installed.

    Notes
    -----
    At the input a full or diagonal A is decided in practice; what no exact proof was
    found for is "undecided", with the interval of the margin.  For the limit
    and for a rank a failed search proves nothing.  Equal tokens count as one.

    Examples
    --------
    >>> z = [[2, 0], [0, 1], [1, 1]]
    >>> found = choose_matrix(z, [0, 1])
    >>> found.status, found.certificate.verify()
    ('feasible', True)
    >>> none = choose_matrix([[1, 0], [2, 0]], [0])
    >>> none.status, none.certificate.verify()
    ('infeasible', True)
    """
    check_choice(where, "where", ("input", "limit"))
    check_choice(shape, "shape", ("full", "diagonal"))
    wishes = read_wishes(z, lead, follow, alpha, gamma)
    wanted = _wanted(closest_to, wishes.dim)
    _check_options(rank, where, shape, wanted is not None, relax, wishes.dim)
    check_tolerance(least, "least", 1e-3)
    check_depth(tries, "tries")
    check_depth(seed, "seed")
    solver = _Solver(wishes, shape == "diagonal", wanted, rank, least, seed)
    if where == "limit":
        return _in_the_limit(solver, tries, seed)
    found, proof, interval = solver.decide(wishes)
    status = "feasible" if found else "infeasible" if proof else "undecided"
    extra: dict[str, Any] = {"violated": (), "violated_proved": True} if relax else {}
    if relax and found is None:
        fewest = fewest_violated(wishes, lambda part: solver.decide(part)[:2])
        found = fewest.found
        extra = {
            "violated": tuple(wishes.asked[k] for k in fewest.dropped),
            "conflicts": fewest.conflicts,
            "violated_proved": fewest.proved,
        }
    return solver.control(status, found, proof, interval, where, extra)


@dataclass(frozen=True)
class _Solver:
    """Wishes at the input: a matrix with its proof, or a proof that there is none."""

    wishes: Wishes
    diagonal: bool
    wanted: Floats | None
    rank: int | None
    least: float
    seed: int

    def decide(
        self, wishes: Wishes
    ) -> tuple[Found | None, ControlCertificate | None, tuple[float, float]]:
        """A matrix, or a refutation, or neither; and the interval of the margin."""
        if not len(wishes.wish):
            start = np.eye(wishes.dim) if self.wanted is None else self.wanted
            return settled_matrix(wishes, start, diagonal=self.diagonal), None, (np.inf, np.inf)
        proof = refute_plainly(wishes)
        if proof is not None:
            return None, proof, (-np.inf, 0.0)
        best = program.best_margin(wishes.packed, wishes.dim, diagonal=self.diagonal)
        high = _upper_bound(wishes, best.weights, self.diagonal)
        found = None
        if best.t > 1e-13:
            found = settled_matrix(wishes, best.A, diagonal=self.diagonal)
        if found is None:
            proof, other = self._refute(wishes, best.weights)
            if proof is not None:
                return None, proof, (-np.inf, 0.0)
            if other is not None:
                found = settled_matrix(wishes, other, diagonal=self.diagonal)
        if found is None and not self.diagonal:
            found, proof = decide_turned(wishes)
            if proof is not None:
                return None, proof, (-np.inf, 0.0)
        low = best.t if found is None else _margin(wishes, found.proof)
        interval = (min(low, high), high)
        return (None if found is None else self._wished(wishes, found, low)), None, interval

    def _refute(
        self, wishes: Wishes, weights: Floats
    ) -> tuple[ControlCertificate | None, Floats | None]:
        if self.diagonal:
            return refute_diagonal(wishes), None
        return refute(wishes, np.maximum(weights, 0.0))

    def _wished(self, wishes: Wishes, found: Found, margin: float) -> Found | None:
        """The matrix of the wished rank, or nearest to the wished one."""
        if self.rank is not None and self.rank < wishes.dim:
            return low_rank(wishes, found.A, self.rank, self.seed)
        if self.wanted is None:
            return found
        same = settled_matrix(wishes, self.wanted, diagonal=self.diagonal)
        if same is not None and np.array_equal(same.A, self.wanted):
            return same
        share = min(self.least, margin / 2)
        scale = max(float(np.abs(self.wanted).max()), 1e-300)
        near = program.closest(wishes.packed, self.wanted / scale, share, diagonal=self.diagonal)
        return settled_matrix(wishes, near * scale, diagonal=self.diagonal) or found

    def control(
        self,
        status: str,
        found: Found | None,
        proof: ControlCertificate | None,
        interval: tuple[float, float],
        where: str,
        extra: dict[str, Any],
    ) -> Control:
        """The record of what was found."""
        distance = None
        if found is not None and self.wanted is not None:
            distance = float(np.linalg.norm(found.A - self.wanted))
        left = extra.get("violated") or ()
        kept = [k for k, w in enumerate(self.wishes.asked) if w not in left]
        margin = None if found is None else _margin(self.wishes.only(kept), found.proof)
        return Control(
            status=status,
            A=None if found is None else found.A,
            factor=None if found is None else found.factor,
            margin=margin,
            interval=interval,
            certificate=found.proof if found is not None and status == "feasible" else proof,
            wishes=self.wishes.asked,
            where=where,
            shape="diagonal" if self.diagonal else "full",
            distance=distance,
            **extra,
        )


def _in_the_limit(solver: _Solver, tries: int, seed: int) -> Control:
    """Layer 0 first, since what holds there lasts; then the search."""
    wishes = solver.wishes
    leaders: dict[int, int] = {}
    for token, target in wishes.classes:
        if leaders.setdefault(token, target) != target:
            i = int(wishes.system.first[token])
            raise InputError(
                f"token {i} cannot end at two leaders. Let each token lead or follow one leader."
            )
    limit = Limit(wishes, wishes.system.gamma, solver.diagonal)
    found, _, interval = solver.decide(wishes)
    settled = None if found is None else limit.prove(found.A)
    if settled is None:
        starts = [np.eye(wishes.dim)]
        if solver.wanted is not None:
            starts.append(solver.wanted)
        part = fewest_violated(wishes, lambda some: solver.decide(some)[:2])
        if part.found is not None:
            starts.append(part.found.A)
        settled, _ = limit.search(starts, tries, seed)
    status = "undecided" if settled is None else "feasible"
    return solver.control(status, settled, None, interval, "limit", {})


def _margin(wishes: Wishes, proof: ControlCertificate) -> float:
    """The smallest normalised product of the matrix that a proof states, for trace d."""
    A = [[Fraction(v) for v in row] for row in proof.matrix or ()]
    floats = np.array([[float(v) for v in row] for row in A])
    trace = sum((A[i][i] for i in range(len(A))), Fraction(0))
    if not len(wishes.wish) or trace == 0:
        return float("inf") if not len(wishes.wish) else 0.0
    products = np.einsum("ki,ij,kj->k", wishes.unit_a, floats, wishes.unit_b)
    k = int(np.argmin(products))
    a, b = wishes.a(k), wishes.b(k)
    exact = sum((x * y * A[i][j] for i, x in enumerate(a) for j, y in enumerate(b)), Fraction(0))
    size = dot(a, a) * dot(b, b)
    if size == 0:
        return 0.0
    square = exact * exact * len(A) ** 2 / (trace * trace * size)
    return float(np.copysign(float(square) ** 0.5, float(exact > 0) - 0.5)) if exact else 0.0


def _upper_bound(wishes: Wishes, weights: Floats, diagonal: bool) -> float:
    """What no A with trace d can exceed, from weights >= 0 of the inequalities."""
    w = np.maximum(weights, 0.0)
    if not w.sum() > 0:
        return float("inf")
    w = w / w.sum()
    if diagonal:
        return float(wishes.dim * (w @ (wishes.unit_a * wishes.unit_b)).max())
    total = np.einsum("k,ki,kj->ij", w, wishes.unit_a, wishes.unit_b)
    return float(wishes.dim * np.linalg.eigvalsh((total + total.T) / 2)[-1])


def _wanted(matrix: Any, d: int) -> Floats | None:
    if matrix is None:
        return None
    A = as_array(matrix, "closest_to").astype(np.float64)
    if A.shape != (d, d):
        raise ShapeError(f"`closest_to` must be ({d}, {d}); got {A.shape}.")
    check_finite(A, "closest_to")
    if not np.array_equal(A, A.T):
        raise InputError("`closest_to` must be symmetric. Give (A + A.T) / 2.")
    return A


def _check_options(rank: Any, where: str, shape: str, near: bool, relax: bool, d: int) -> None:
    if rank is not None:
        if isinstance(rank, bool) or not isinstance(rank, int | np.integer) or rank < 1:
            raise InputError(f"`rank` must be an integer >= 1; got {rank!r}.")
        if where == "limit" or shape == "diagonal" or near:
            raise InputError(
                "`rank` goes with where='input' and shape='full', without `closest_to`. "
                "Leave one of them out."
            )
    if relax and where == "limit":
        raise InputError("`relax` goes with where='input'. Leave one of them out.")
