"""Matrices found by search: of low rank, for the limit, and for as many wishes as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp, minimize

from hardmax._errors import InputError
from hardmax._types import Floats, Number
from hardmax.analysis import _control_program as program
from hardmax.analysis._control_proof import (
    ControlCertificate,
    certify_matrix,
    granted,
    is_semidefinite,
    stated,
)
from hardmax.analysis._control_wishes import Wishes
from hardmax.analysis.equilibrium import equilibrium
from hardmax.rational import common, fractions_of

__all__ = ["Fewest", "Found", "Limit", "fewest_violated", "low_rank", "settled_matrix"]

_SHIFTS = (0.0, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5)


@dataclass(frozen=True)
class Found:
    """A matrix with its proof."""

    A: Floats
    proof: ControlCertificate
    factor: Floats | None = None


def settled_matrix(wishes: Wishes, A: Floats, *, diagonal: bool = False) -> Found | None:
    """Doubles near A that are semidefinite and grant the wishes, both exactly."""
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    if not np.isfinite(values).all() or values[-1] <= 0:
        return None
    for shift in _SHIFTS:
        if diagonal:
            B = np.diag(np.maximum(np.diag(A), shift * values[-1]))
        else:
            B = A if shift == 0 else (vectors * np.maximum(values, shift * values[-1])) @ vectors.T
            B = (B + B.T) / 2
        proof = certify_matrix(wishes, B, diagonal=diagonal)
        if proof is not None:
            return Found(B, proof)
    return None


def low_rank(wishes: Wishes, A: Floats, rank: int, seed: int) -> Found | None:
    """A = U'U with U (rank, d) that grants the wishes, by search; None proves nothing."""
    rng = np.random.default_rng(seed)
    d = wishes.dim
    weight = np.eye(d)
    for _ in range(8):
        found = _cut(wishes, A, rank)
        if found is not None:
            return found
        inverse = np.linalg.inv(A + 1e-3 * np.trace(A) / d * np.eye(d))
        weight = inverse * d / np.trace(inverse)
        A = program.best_margin(wishes.packed, d, weight=weight).A
    for start in [_root(A, rank), *rng.normal(size=(12, rank, d))]:
        found = _try_factor(wishes, _climb(wishes, start), rank)
        if found is not None:
            return found
    return None


def _root(A: Floats, rank: int) -> Floats:
    values, vectors = np.linalg.eigh(A)
    return np.asarray((vectors[:, -rank:] * np.sqrt(np.maximum(values[-rank:], 0))).T)


def _cut(wishes: Wishes, A: Floats, rank: int) -> Found | None:
    root = _root(A, rank)
    return _try_factor(wishes, root, rank) or _try_factor(wishes, _climb(wishes, root), rank)


def _try_factor(wishes: Wishes, U: Floats, rank: int) -> Found | None:
    whole = fractions_of(U)
    A = np.asarray(whole.T.dot(whole), dtype=object)
    proof = certify_matrix(wishes, A, rank=rank)
    return None if proof is None else Found(A.astype(np.float64), proof, U)


def _climb(wishes: Wishes, start: Floats) -> Floats:
    """Raise the smallest margin of U'U: a soft minimum, sharpened in steps."""
    a, b = wishes.unit_a, wishes.unit_b
    shape = start.shape
    x0 = start.ravel() / max(float(np.linalg.norm(start)), 1e-300)
    for sharp in (5.0, 50.0, 500.0):

        def loss(x: Floats, sharp: float = sharp) -> tuple[float, Floats]:
            V = x.reshape(shape)
            size = float(np.sum(V * V))
            va, vb = a @ V.T, b @ V.T
            t = np.sum(va * vb, axis=1) / size
            low = t.min()
            w = np.exp(-sharp * (t - low))
            value = low - np.log(w.sum()) / sharp
            w /= w.sum()
            slope = ((va * w[:, None]).T @ b + (vb * w[:, None]).T @ a) / size
            return -value, -(slope - 2 * float(w @ t) / size * V).ravel()

        x0 = minimize(loss, x0, jac=True, method="L-BFGS-B").x
    return np.asarray(x0.reshape(shape))


@dataclass(frozen=True)
class Limit:
    """Candidates for wishes about the limit, each decided by `equilibrium`."""

    wishes: Wishes
    gamma: Number
    diagonal: bool

    def prove(self, A: Floats) -> Found | None:
        """The proof that A grants all wishes in the limit, or None."""
        if not is_semidefinite(common(A)[0].tolist()):
            return None
        eq = equilibrium(self.wishes.system.z, A=A, gamma=self.gamma)
        if not eq.certificate.proved:
            return None
        if not granted(self.wishes, eq.leaders, eq.labels.tolist()):
            return None
        proof = stated(self.wishes, A, "limit", diagonal=self.diagonal, limit=eq.certificate)
        return Found(A, proof)

    def granted_by(self, A: Floats) -> int:
        """How many wishes come true."""
        eq = equilibrium(self.wishes.system.z, A=A, gamma=self.gamma, max_depth=500)
        labels = eq.labels.tolist()
        each = (self.wishes.only([w]) for w in range(len(self.wishes.asked)))
        return sum(granted(one, eq.leaders, labels) for one in each)

    def search(self, starts: Sequence[Floats], tries: int, seed: int) -> tuple[Found | None, int]:
        """Climb from the best start by random turns and stretches; proof and most wishes."""
        rng = np.random.default_rng(seed)
        d, goal = self.wishes.dim, len(self.wishes.asked)
        scored = [(self.granted_by(A), A) for A in starts]
        best, A = max(scored, key=lambda pair: pair[0])
        most = best
        for k in range(tries):
            if best == goal:
                found = self.prove(A)
                if found is not None:
                    return found, goal
            size = (0.1, 0.3, 1.0)[k % 3]
            base = A if k % 4 else np.eye(d)
            other = _stirred(base, size * rng.normal(size=(d, d)), self.diagonal)
            count = self.granted_by(other)
            if count >= best:
                best, A = count, other
            most = max(most, count)
        return (self.prove(A), most) if best == goal else (None, most)


def _stirred(A: Floats, noise: Floats, diagonal: bool) -> Floats:
    """exp(S/2) A exp(S/2) with S symmetric: definite again."""
    if diagonal:
        return np.diag(np.diag(A) * np.exp(np.diag(noise)))
    values, vectors = np.linalg.eigh((noise + noise.T) / 2)
    root = (vectors * np.exp(values / 2)) @ vectors.T
    B = root @ A @ root
    B = (B + B.T) / 2 + 1e-6 * np.trace(B) / len(B) * np.eye(len(B))
    return np.asarray(B * len(B) / np.trace(B))


@dataclass(frozen=True)
class Fewest:
    """Wishes (by number) whose removal leaves the others feasible, and why fewer do not do."""

    dropped: tuple[int, ...]
    found: Found | None
    conflicts: tuple[ControlCertificate, ...]
    proved: bool


Decide = Callable[[Wishes], tuple[Found | None, ControlCertificate | None]]


def fewest_violated(wishes: Wishes, decide: Decide) -> Fewest:
    """The smallest set of wishes to give up: a hitting set of all conflicts found.

    Each infeasible attempt names wishes that cannot be had together; the next attempt
    drops the fewest wishes that break all such conflicts.  When an attempt is
    feasible its size is the least, proved by the conflicts.
    """
    place = {(w.token, w.target): k for k, w in enumerate(wishes.asked)}
    count = len(wishes.asked)
    sets: list[set[int]] = []
    proofs: list[ControlCertificate] = []
    proved = True
    while True:
        dropped = _hitting_set(sets, count)
        kept = [k for k in range(count) if k not in dropped]
        if not kept:
            return Fewest(dropped, None, tuple(proofs), proved)
        found, proof = decide(wishes.only(kept))
        if found is not None:
            return Fewest(dropped, found, tuple(proofs), proved)
        if proof is None:
            proved = False
            sets.append(set(kept))
        else:
            proofs.append(proof)
            sets.append({place[pair] for pair in proof.wishes})


def _hitting_set(sets: Sequence[set[int]], count: int) -> tuple[int, ...]:
    """The fewest numbers below `count` that meet every set."""
    if not sets:
        return ()
    rows = np.array([[float(k in s) for k in range(count)] for s in sets])
    found = milp(
        np.ones(count) + 1e-6 * np.arange(count),
        constraints=LinearConstraint(rows, 1.0),
        integrality=np.ones(count),
        bounds=Bounds(0, 1),
    )
    if found.x is None:
        raise InputError(f"the wishes cannot be relaxed: {found.message}")
    return tuple(np.flatnonzero(found.x > 0.5).tolist())
