"""From a run, and a limit where there is one, to the scene that shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hardmax._check import is_torch
from hardmax._errors import InputError, ShapeError
from hardmax._types import Array, Bools, Floats, Ints
from hardmax.plot.plain import plain
from hardmax.plot.record import Scene, SceneLeader

__all__ = ["Scene", "SceneLeader", "scene_of"]

_SAID = ("gamma", "temperature", "heads", "normalization", "tie_tol", "merge_tol", "depth")


def scene_of(
    run: Any,
    equilibrium: Any = None,
    *,
    names: Sequence[str] | None = None,
    title: str = "",
    sequence: int | None = None,
    head: int = 0,
    notes: Mapping[str, Any] | None = None,
) -> Scene:
    """The scene of a run, with the limit and the polytope where they are given.

    Parameters
    ----------
    run : Run
        What `simulate` returned.
    equilibrium : Equilibrium, optional
        What `equilibrium` returned for the same tokens.
    names : n strings, optional
        What the tokens are called.
    title : str
        A heading.
    sequence : int, optional
        Which sequence of a batch; a batch needs it.
    head : int
        Which head; with several, the scene holds that head's block of coordinates.
    notes : mapping, optional
        More to be said beside the picture, such as a seed.

    Returns
    -------
    Scene

    Raises
    ------
    InputError
        If a batch is given without `sequence`, or there is no such sequence or head.
    ShapeError
        If names or equilibrium are not those of the tokens of the run.
    """
    part = _Part(run, sequence, head)
    facts = _facts(run) | part.facts() | _certificate(equilibrium) | dict(notes or {})
    named = None if names is None else tuple(map(str, names))
    if named is not None and len(named) != len(part.real):
        raise ShapeError(
            f"`names` must be {len(part.real)} strings, one per token; got {len(named)}."
        )
    status = run.status if sequence is None else run.status[sequence]
    return Scene(
        zs=part.zs,
        layers=tuple(int(layer) for layer in run.layers),
        follows=part.follows,
        leaders=_leaders(part, equilibrium, named),
        names=named,
        title=title,
        status=str(status if equilibrium is None else equilibrium.status),
        notes=plain(facts),
        **_limit(equilibrium, part),
    )


class _Part:
    """One sequence and one head of a run, as NumPy arrays."""

    def __init__(self, run: Any, sequence: int | None, head: int) -> None:
        zs, follows, mask = _numpy(run.zs), _numpy(run.follows), run.mask
        if zs.ndim == 4 and sequence is None:
            raise InputError(
                f"this run is a batch of {zs.shape[1]} sequences and a scene shows one. "
                "Choose it with `sequence=0`."
            )
        if zs.ndim == 3 and sequence is not None:
            raise InputError("`sequence` is for a batch; this run is one system. Leave it out.")
        self.heads = int(run.heads)
        self.precision = str(run.dtype)
        records = run.leaders
        if sequence is not None:
            _among("sequence", sequence, zs.shape[1])
            zs, follows, records = zs[:, sequence], follows[:, sequence], records[sequence]
            mask = None if mask is None else mask[sequence]
        _among("head", head, self.heads)
        self.head = head
        self.records = [leader for leader in records if leader.head == head]
        if self.heads > 1:
            follows = follows[:, head]
            width = zs.shape[2] // self.heads
            zs = zs[..., head * width : (head + 1) * width]
        self.real: Bools = np.ones(zs.shape[1], bool) if mask is None else _numpy(mask).astype(bool)
        self.zs: Floats = zs.astype(np.float64)
        self.zs[:, ~self.real] = np.nan
        self.follows = self._choices(follows, run.layers)

    def _choices(self, follows: Array, layers: Sequence[int]) -> Ints:
        """The choice shown at each saved layer; the last one made stands after it."""
        if len(follows) == 0:
            return np.full(self.zs.shape[:2], -1, dtype=np.int64)
        rows = np.minimum(np.asarray(layers), len(follows) - 1)
        return np.where(self.real, follows[rows], -1).astype(np.int64)

    def facts(self) -> dict[str, Any]:
        """The precision, and which head is shown where there are several."""
        shown = {"head": self.head} if self.heads > 1 else {}
        return {"precision": self.precision, **shown}


def _leaders(
    part: _Part, equilibrium: Any, names: tuple[str, ...] | None
) -> tuple[SceneLeader, ...]:
    """The run's leaders, and those that the limit has and the run is too short to see."""
    found = {int(x.index): (int(x.born), tuple(map(int, x.members))) for x in part.records}
    if equilibrium is not None:
        known = {i for index, (_, members) in found.items() for i in (index, *members)}
        tokens = np.arange(len(part.real))
        if len(equilibrium.limit) != len(tokens):
            tokens = np.flatnonzero(part.real)
        for place, born in zip(equilibrium.leaders, equilibrium.born, strict=True):
            index = int(tokens[place])
            if index not in known:
                found[index] = (int(born), (index,))
    return tuple(
        SceneLeader(index, born, str(index) if names is None else names[index], members)
        for index, (born, members) in sorted(found.items())
    )


def _limit(equilibrium: Any, part: _Part) -> dict[str, Any]:
    if equilibrium is None:
        return {}
    real, (_, n, d) = part.real, part.zs.shape
    given = _numpy(equilibrium.limit).astype(np.float64)
    if given.shape not in ((n, d), (int(real.sum()), d)):
        raise ShapeError(
            f"`equilibrium` must be of the same tokens, ({n}, {d}); got {given.shape}. "
            "Compute both from one array."
        )
    limit = np.full((n, d), np.nan)
    limit[real] = given[real] if len(given) == n else given
    found: dict[str, Any] = {"limit": limit}
    if equilibrium.points is not None:
        found["points"] = _numpy(equilibrium.points).astype(np.float64).reshape(-1, d)
    polytope = equilibrium.polytope
    if polytope is not None:
        found["vertices"] = _numpy(polytope.vertices).astype(np.float64).reshape(-1, d)
        if d == 3:  # elsewhere no picture has faces, and in high dimensions they cannot be listed
            found["faces"] = tuple(tuple(int(v) for v in face) for face in polytope.faces)
    return found


def _facts(run: Any) -> dict[str, Any]:
    facts = {key: getattr(run, key) for key in _SAID}
    gamma = plain(facts["gamma"])
    if isinstance(gamma, list) and gamma and all(step == gamma[0] for step in gamma):
        facts["gamma"] = gamma[0]
    return facts


def _certificate(equilibrium: Any) -> dict[str, Any]:
    if equilibrium is None:
        return {}
    certificate = equilibrium.certificate
    return {
        "settled_at": equilibrium.settled_at,
        "proved": bool(certificate.proved),
        "arithmetic": certificate.arithmetic,
        "margin": certificate.margin,
        "certificate": str(certificate.reason),
    }


def _among(name: str, value: int, count: int) -> None:
    if not 0 <= value < count:
        raise InputError(f"`{name}` must be 0 to {count - 1}; got {value}.")


def _numpy(x: Any) -> Array:
    return np.asarray(x.detach().cpu().numpy() if is_torch(x) else x)
