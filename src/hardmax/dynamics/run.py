"""Runs of many layers: `simulate` and its record `Run`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from hardmax._check import (
    Batch,
    as_array,
    as_batch,
    check_choice,
    check_depth,
    check_gamma,
    check_matrix,
    check_tolerance,
)
from hardmax._errors import InputError
from hardmax._types import Array, ArrayLike, Floats, Ints, PerLayer
from hardmax.dynamics.attend import attend
from hardmax.dynamics.layer import NORMALIZATIONS, TIE_TOL, step_size
from hardmax.dynamics.loop import Loop, start_loop
from hardmax.dynamics.stop import MERGE_TOL
from hardmax.rational import nearest_floats, scale_exponent

__all__ = ["Leader", "Run", "simulate"]


@dataclass(frozen=True)
class Leader:
    """A class of equal tokens that chose itself alone.

    Attributes
    ----------
    index : int
        Its smallest token.
    born : int
        The layer at which it first chose itself alone.
    members : tuple of int
        The tokens that were equal to it then.
    head : int
        The head in which it leads.
    """

    index: int
    born: int
    members: tuple[int, ...]
    head: int = 0


@dataclass(frozen=True)
class Run:
    """What happened in `depth` layers.  For a batch, entries are per sequence.

    Attributes
    ----------
    zs : (k, n, d) or (k, b, n, d) array
        Tokens at the saved `layers`; all depth + 1 of them by default.
    layers : tuple of int
    z : array like the input
        Tokens after the last layer.
    status : str
        "settled" (no choice can change any more), "collapsed" (all tokens shrink to
        one point, and A has no positive definite symmetric part that keeps them
        apart), "depth_reached", or "not_finite".
    leaders : tuple of Leader
        Sorted by index; each logged once, at its birth.
    follows : (depth, n) int array
        The token whose class was chosen alone (a leader follows itself), -1 for
        a tie between several classes and for padding.  Batches have shape
        (depth, b, n); several heads add an axis before n.
    labels : (n,) int array
        Index into `leaders` of the leader chosen at the last layer, -1 where none.
    margins : (depth,) array
        Smallest margin of a choice in each layer, in units of |A z_i| max_j |z_j|;
        NaN once settled, when nothing is searched.
    path : str
        How choices were searched on the CPU ("brute", "hull", "sorted", "twostage", or
        "batch" for several sequences); several, in order, when they changed.
    """

    zs: Any
    layers: tuple[int, ...]
    z: Any
    status: Any
    leaders: Any
    follows: Ints
    labels: Ints
    margins: Floats
    depth: int
    gamma: Any
    A: Any
    temperature: float
    heads: int
    normalization: str
    tie_tol: float
    merge_tol: float
    mask: Array
    dtype: str = field(default="float64")
    path: str = ""

    @property
    def followers(self) -> list[Any]:
        """Per layer, {token followed: tokens that chose it alone}; per sequence in a batch."""
        return [_grouped(layer, self.follows.ndim - 2) for layer in self.follows]


def _grouped(follows: Ints, axes: int) -> Any:
    if axes > 0:
        return [_grouped(part, axes - 1) for part in follows]
    leads = np.unique(follows[follows >= 0])
    return {int(c): tuple(np.flatnonzero(follows == c).tolist()) for c in leads}


def simulate(
    z: ArrayLike,
    depth: int,
    *,
    A: ArrayLike | None = None,
    alpha: PerLayer = 1.0,
    gamma: PerLayer | ArrayLike | None = None,
    mask: ArrayLike | None = None,
    temperature: float = 0.0,
    heads: int = 1,
    normalization: str = "rescale",
    tie_tol: float | None = None,
    merge_tol: float | None = None,
    save: str | Iterable[int] = "all",
) -> Run:
    """Iterate the layer and log who follows whom, and when leaders are born.

    Parameters
    ----------
    z, A, mask, temperature, heads, normalization, tie_tol
        As for `layer`.
    depth : int >= 0
        Number of layers.
    alpha, gamma : number, or one per layer; `gamma` also a (d, d) matrix
        As for `layer`.
    merge_tol : float, optional
        A follower within merge_tol times the largest coordinate of its leader
        joins its class and takes its position.  Default 1e-6 in float64, 1e-3 in float32.
    save : "all", "last", or layer numbers
        Which layers `Run.zs` keeps.

    Returns
    -------
    Run

    Raises
    ------
    InputError, ShapeError
        As for `layer`.

    Notes
    -----
    The tolerances are part of the definition of a leader.  A settled sequence
    (every class chooses one leader) is searched no more: its choices stay the same
    for any A and any steps, so that counts of leaders do not depend on the depth.
    Gradients do not flow through a run; use `layer` for that.

    Rounding is not hidden: a token that exact arithmetic keeps at zero may leave it
    along noise, since ties are relative to |A z_i|.  `equilibrium` decides such cases.

    Examples
    --------
    >>> run = simulate([[1.0, 0.0], [0.0, 1.0], [0.4, 0.2]], 2)
    >>> run.status, [leader.index for leader in run.leaders]
    ('settled', [0, 1])
    >>> run.z[2]
    array([0.85, 0.05])
    """
    batch = as_batch(z, mask)
    depth = check_depth(depth)
    d = batch.z.shape[-1]
    name = str(batch.z.dtype).split(".")[1]
    settings = {
        "temperature": check_tolerance(temperature, "temperature", 0.0),
        "heads": heads,
        "normalization": check_choice(normalization, "normalization", NORMALIZATIONS),
        "tie_tol": check_tolerance(tie_tol, "tie_tol", TIE_TOL[batch.z.dtype]),
        "merge_tol": check_tolerance(merge_tol, "merge_tol", MERGE_TOL[name]),
    }
    mats = check_matrix(A, d, heads)
    steps = check_gamma(alpha, gamma, depth, d)
    kept = _saved(save, depth)
    with torch.no_grad():
        return _simulate(batch, depth, mats, steps, kept, settings, A)


def _saved(save: str | Iterable[int], depth: int) -> list[int]:
    if isinstance(save, str):
        check_choice(save, "save", ("all", "last"))
        return list(range(depth + 1)) if save == "all" else [depth]
    if not isinstance(save, Iterable):
        raise InputError(f"`save` must be 'all', 'last' or layer numbers; got {save!r}.")
    layers = sorted({check_depth(k, "save") for k in save})
    if not layers or layers[-1] > depth:
        raise InputError(f"`save` must name layers 0..{depth}; got {layers}.")
    return layers


def _simulate(
    batch: Batch,
    depth: int,
    mats: list[Any],
    steps: Any,
    kept: list[int],
    settings: dict[str, Any],
    A: Any,
) -> Run:
    """The layers one after the other, and the record of them."""
    loop, merged, first = start_loop(batch.z, batch.mask, settings["heads"])
    hard = settings["temperature"] == 0
    scalar = not isinstance(steps, np.ndarray)
    freezes = hard and scalar and settings["normalization"] in ("rescale", "none")
    b, n = batch.mask.shape
    follows = np.full((depth, b, loop.heads, n), -1)
    margins = np.full((depth, b), np.nan)
    saved = [batch.z] if 0 in kept else []
    for k in range(depth):
        size = step_size(
            steps[k] if isinstance(steps, tuple) else steps, settings["normalization"], batch.z
        )
        mean, margins[k] = loop.choose(k, mats, settings["tie_tol"])
        if not hard:
            mean = _soft(loop, batch, merged, mats, settings)
        token = np.where(loop.follow >= 0, first[loop.follow], -1)
        follows[k][batch.mask.nonzero()[0], :, batch.mask.nonzero()[1]] = token[:, merged].T
        loop.advance(mean, size, settings["normalization"])
        if freezes:
            loop.merge(settings["merge_tol"])
            loop.active &= ~loop.settled()
        if k + 1 in kept:
            saved.append(_expand(loop, batch, merged))
    return _record(
        loop, batch, merged, first, follows, margins, saved, kept, steps, settings, mats, A
    )


def _expand(loop: Loop, batch: Batch, merged: Ints) -> torch.Tensor:
    """Positions of all tokens (b, n, d); padding as it came."""
    out = batch.z.clone()
    out[torch.from_numpy(batch.mask).to(out.device)] = loop.x[merged]
    return out


def _soft(
    loop: Loop, batch: Batch, merged: Ints, mats: list[Any], settings: dict[str, Any]
) -> torch.Tensor:
    """Softmax means of the merged tokens, over all tokens with their multiplicity."""
    full = attend(_expand(loop, batch, merged), batch.mask, mats, settings["temperature"], 0.0)
    mean = torch.empty_like(loop.x)
    mean[merged] = full[torch.from_numpy(batch.mask).to(full.device)]
    return mean


def _record(
    loop: Loop,
    batch: Batch,
    merged: Ints,
    first: Ints,
    follows: Ints,
    margins: Floats,
    saved: list[torch.Tensor],
    kept: list[int],
    steps: Any,
    settings: dict[str, Any],
    mats: list[Any],
    A: Any,
) -> Run:
    b = len(batch.mask)
    depth = len(follows)
    status = loop.status(settings["merge_tol"], all(_keeps_apart(a) for a in mats))
    leaders = _leaders(loop, batch, merged, first)
    labels = np.full(follows.shape[1:], -1)
    for s, h in np.ndindex(b, loop.heads) if depth else ():
        for place, leader in enumerate(leaders[s]):
            if leader.head == h:
                labels[s, h][follows[-1, s, h] == leader.index] = place
    if loop.heads == 1:
        follows, labels = follows[:, :, 0], labels[:, 0]
    if not batch.batched:
        follows, labels, margins = follows[:, 0], labels[0], margins[:, 0]
    gamma = steps if isinstance(steps, np.ndarray) else _floats(steps, depth)
    return Run(
        zs=batch.back(torch.stack(saved)),
        layers=tuple(kept),
        z=batch.back(_expand(loop, batch, merged)),
        status=tuple(status) if batch.batched else status[0],
        leaders=tuple(leaders) if batch.batched else leaders[0],
        follows=follows,
        labels=labels,
        margins=margins,
        depth=depth,
        gamma=gamma,
        A=A,
        mask=batch.mask if batch.batched else batch.mask[0],
        dtype=str(batch.z.dtype).split(".")[1],
        path=", ".join(filter(None, loop.paths)),
        **settings,
    )


def _keeps_apart(a: Any) -> bool:
    """Whether <A x, x> > 0 for all x != 0, up to rounding."""
    if a is None:
        return True
    given = (
        as_array(a[0], "A").T @ as_array(a[1], "A") if isinstance(a, tuple) else as_array(a, "A")
    )
    dense = nearest_floats(given, scale_exponent(given))
    values = np.linalg.eigvalsh(dense + dense.T)
    return bool(values[0] > 1e-12 * np.abs(values).max())


def _floats(steps: Fraction | tuple[Fraction, ...], depth: int) -> tuple[float, ...]:
    values = steps if isinstance(steps, tuple) else (steps,) * depth
    return tuple(float(g) for g in values)


def _leaders(loop: Loop, batch: Batch, merged: Ints, first: Ints) -> list[tuple[Leader, ...]]:
    """The leaders of each sequence by index, with the tokens of their class at birth."""
    out: list[list[Leader]] = [[] for _ in batch.mask]
    token = batch.mask.nonzero()[1]
    order = np.argsort(merged, kind="stable")
    cuts = np.searchsorted(merged[order], np.arange(len(first) + 1))
    for (h, c), rows in loop.members.items():
        members = np.sort(np.concatenate([token[order[cuts[r] : cuts[r + 1]]] for r in rows]))
        leader = Leader(int(first[c]), int(loop.born[h, c]), tuple(int(i) for i in members), h)
        out[int(loop.sequence[c])].append(leader)
    return [tuple(sorted(part, key=lambda x: (x.head, x.index))) for part in out]
