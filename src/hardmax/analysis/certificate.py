"""The proof of a limit as data, and its verification from the tokens alone."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np

from hardmax._check import check_choice
from hardmax._errors import HardmaxError, InputError
from hardmax._types import Floats, Ints
from hardmax.analysis.orbit import Orbit, Step
from hardmax.analysis.settle import Outcome, settle, tied_limits
from hardmax.analysis.system import read_system

__all__ = ["Certificate", "LayerRecord", "certify", "conclusions"]

_WORDS = ("reason", "digest", "gamma", "arithmetic")


@dataclass(frozen=True)
class LayerRecord:
    """The choices of one layer and what they rest on.

    `chosen[r]` is the set of classes that class `rows[r]` chose; classes not
    listed keep to their leader.  A class is named by its place among the
    distinct tokens in order of appearance.  `merged` lists pairs (class, class
    at the same point).  `margin` and `bound` are in units of |A z_i| max_j |z_j|:
    the smallest gap between scores, and the largest float error of such a gap;
    `rational` counts the classes that were decided in rationals.
    """

    rows: tuple[int, ...]
    chosen: tuple[tuple[int, ...], ...]
    merged: tuple[tuple[int, int], ...]
    margin: float
    bound: float
    rational: int


@dataclass(frozen=True)
class Certificate:
    """Why the limit is what it is: every choice of every layer up to the settled one.

    Attributes
    ----------
    proved : bool
        Whether the limit of every token is proved.
    margin : float
        Smallest margin of a choice over all layers, in units of |A z_i| max_j |z_j|.
    arithmetic : "float" or "rational"
        "rational" when at least one choice had to be decided in rationals.
    reason : str
        What was proved, or why nothing was.
    digest : str
        SHA-256 of tokens, A and gamma.
    exact : bool
        Whether every choice was decided in integer arithmetic alone.
    """

    proved: bool
    margin: float
    arithmetic: str
    reason: str
    digest: str
    n: int
    d: int
    gamma: str
    A: tuple[tuple[str, ...], ...] | None
    settled_at: int | None
    exact: bool
    leaders: tuple[int, ...]
    born: tuple[int, ...]
    labels: tuple[int, ...]
    limit: tuple[tuple[float, ...], ...]
    layers: tuple[LayerRecord, ...]

    def verify(self, z: Any, arithmetic: str | None = None) -> bool:
        """Whether the certificate proves its limit for the tokens `z`.

        Every number it states is computed again from `z` and compared.

        Parameters
        ----------
        z : (n, d) array-like
            The tokens.
        arithmetic : None, "float" or "rational"
            None and "float" decide in floats with the proved error bound, and in
            rationals where that is too coarse.  "rational" besides checks every
            choice in integer arithmetic alone.

        Returns
        -------
        bool
            False for a certificate that proves nothing, for other data, and when
            any number was altered.
        """
        check_choice(arithmetic or "float", "arithmetic", ("float", "rational"))
        try:
            return self._verify(z, arithmetic == "rational")
        except (HardmaxError, ValueError, TypeError, ArithmeticError, IndexError, KeyError):
            return False

    def _verify(self, z: Any, rational: bool) -> bool:
        if self.proved is not True or type(self.settled_at) is not int:
            return False
        matrix = None
        if self.A is not None:
            matrix = np.array([[Fraction(v) for v in row] for row in self.A], dtype=object)
        system = read_system(z, matrix, None, Fraction(self.gamma))
        if system.digest != self.digest:
            return False
        outcome = settle(system, self.settled_at, exact=self.exact is True, patient=True)
        if repr(certify(outcome)) != repr(self):  # to the letter: 1, 1.0 and True differ
            return False
        return replay(outcome) if rational else True

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; infinities and NaN as strings."""
        return {k: _jsonable(v) for k, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Certificate:
        """The certificate that `to_dict` wrote."""
        known = {f.name for f in fields(cls)}
        if not isinstance(data, Mapping) or set(data) != known:
            raise InputError(
                f"a certificate has the entries {', '.join(sorted(known))}; got {_entries(data)}. "
                "Pass what `to_dict` returned."
            )
        try:
            layers = tuple(
                LayerRecord(**{k: _from_json(v) for k, v in layer.items()})
                for layer in data["layers"]
            )
            rest = {k: v if k in _WORDS else _from_json(v) for k, v in data.items()}
            return cls(**{**rest, "layers": layers})
        except (TypeError, AttributeError) as error:
            raise InputError(
                f"this is no certificate ({error}). Pass what `to_dict` returned."
            ) from None


def _entries(data: object) -> str:
    if not isinstance(data, Mapping):
        return type(data).__name__
    return ", ".join(sorted(map(str, data))) or "none"


def _jsonable(x: Any) -> Any:
    if isinstance(x, dict):
        return {k: _jsonable(v) for k, v in x.items()}
    if isinstance(x, tuple | list):
        return [_jsonable(v) for v in x]
    if isinstance(x, float) and not np.isfinite(x):
        return str(x)
    return x


def _from_json(x: Any) -> Any:
    if isinstance(x, list | tuple):
        return tuple(_from_json(v) for v in x)
    return float(x) if isinstance(x, str) and x in ("inf", "-inf", "nan") else x


def conclusions(outcome: Outcome) -> dict[str, Any]:
    """Leaders, births, labels and float limits of the tokens."""
    system = outcome.system
    # A leader's class may have taken in others since; its own index is the one at birth.
    leads = np.flatnonzero(outcome.born >= 0)
    leads = leads[outcome.into[leads] == leads]
    token = system.first[leads]
    order = np.argsort(token)
    number = np.full(len(system.first) + 1, -1)
    number[leads[order]] = np.arange(len(order))
    classes = outcome.into[system.class_of]
    return {
        "leaders": tuple(int(v) for v in token[order]),
        "born": tuple(int(v) for v in outcome.born[leads[order]]),
        "labels": tuple(number[outcome.lock[classes]].tolist()),
        "limit": _limits(outcome)[classes],
    }


def _limits(outcome: Outcome) -> Floats:
    """(m, d) float limits of the classes; NaN where none was found."""
    system = outcome.system
    out = np.full(outcome.x.shape, np.nan)
    locked = np.flatnonzero(outcome.lock >= 0)
    out[locked] = outcome.x[outcome.lock[locked]]
    if outcome.status in ("collapsed", "settled") and outcome.tied is None:
        rest = outcome.lock < 0
        out[rest] = outcome.mean[rest]
        if outcome.status == "collapsed":
            out[rest] = outcome.x[np.unique(outcome.into)].mean(axis=0)
    with np.errstate(under="ignore"):
        out = np.asarray(np.ldexp(out, system.exponent))
    if outcome.rational and len(locked):
        leads, place = np.unique(outcome.lock[locked], return_inverse=True)
        den = outcome.orbit.denominators[outcome.layer]
        rows = outcome.orbit.at(outcome.layer, leads.tolist())
        out[locked] = np.array([[int(v) / den for v in row] for row in rows])[place]
    for c, values in (outcome.tied or {}).items():
        out[c] = [float(v) for v in values]
    return out


def certify(outcome: Outcome) -> Certificate:
    """The certificate of an outcome."""
    system = outcome.system
    found = conclusions(outcome)
    proved = outcome.proved
    margins = [p.margin for p in outcome.proofs]
    layers = tuple(
        LayerRecord(
            tuple(step.rows.tolist()),
            _sets(step),
            step.merged,
            proof.margin,
            proof.bound,
            proof.rational,
        )
        for step, proof in zip(outcome.steps, outcome.proofs, strict=True)
    )
    return Certificate(
        proved=proved,
        margin=float(min(margins)),
        arithmetic="rational" if outcome.rational else "float",
        reason=_reason(outcome),
        digest=system.digest,
        n=len(system.z),
        d=system.z.shape[1],
        gamma=str(system.gamma),
        A=None if system.A is None else tuple(tuple(_text(v) for v in row) for row in system.A),
        settled_at=outcome.layer if proved else None,
        exact=outcome.exact,
        leaders=found["leaders"],
        born=found["born"],
        labels=found["labels"],
        limit=tuple(map(tuple, found["limit"].tolist())),
        layers=layers,
    )


def _sets(step: Step) -> tuple[tuple[int, ...], ...]:
    """The set that each searched row chose."""
    chosen = step.indices.tolist()
    if len(chosen) == len(step.rows):
        return tuple(zip(chosen))
    ends = step.indptr.tolist()
    return tuple(tuple(chosen[a:b]) for a, b in itertools.pairwise(ends))


def _text(v: Any) -> str:
    return str(v if isinstance(v, Fraction) else Fraction(float(v)))


def _reason(outcome: Outcome) -> str:
    if outcome.proved and outcome.tied:
        return (
            f"layer {outcome.layer} is settled; the tie of {len(outcome.tied)} class(es) lasts "
            "and its mean is their limit, decided in rationals"
        )
    if outcome.proved:
        return f"every class follows a leader alone from layer {outcome.layer} on"
    if not outcome.certain:
        return "floats could not decide some choices, and the work in rationals was cut off"
    if outcome.status == "collapsed":
        return "the tokens shrink together to one point; no finite number of layers proves it"
    return f"not every class follows a leader at layer {outcome.layer}"


def replay(outcome: Outcome) -> bool:
    """Check every choice of every layer in integer arithmetic alone."""
    system = outcome.system
    orbit = Orbit(system)
    lock = np.full(len(system.first), -1)
    alive = np.arange(len(system.first))
    for k, step in enumerate(outcome.steps):
        gone = np.array([j for j, _ in step.merged], dtype=np.int64)
        pairs = np.array(step.merged, dtype=np.int64).reshape(-1, 2)
        for j, keeper in pairs.tolist():
            if np.any(orbit.at(k, [j])[0] != orbit.at(k, [keeper])[0]):
                return False
        alive = np.setdiff1d(alive, gone)
        if not np.array_equal(np.sort(step.rows), alive[lock[alive] < 0]):
            return False
        if not _choices_hold(orbit, k, step, alive):
            return False
        sets = {c: step.chosen(c) for c in step.rows.tolist()}
        for c, chosen in sets.items():
            lock[c] = c if chosen == [c] else -1
        for c, chosen in sets.items():
            if len(chosen) == 1 and lock[chosen[0]] == chosen[0]:
                lock[c] = chosen[0]
        if k < outcome.layer:
            orbit.add(step)
    rest = alive[lock[alive] < 0]
    if not len(rest):
        return True
    return tied_limits(orbit, outcome.layer, outcome.steps[-1], alive, rest) == outcome.tied


def _choices_hold(orbit: Orbit, k: int, step: Step, alive: Ints) -> bool:
    """Whether each searched class scores highest, equally, on exactly its chosen set."""
    for c, values in zip(step.rows.tolist(), orbit.scores(k, step.rows, alive), strict=True):
        if alive[values == values.max()].tolist() != sorted(step.chosen(c)):
            return False
    return True
