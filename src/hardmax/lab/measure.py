"""What is measured on a system: clusters, leaders, times, distance to the limit of the theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hardmax._types import Array, Floats, Ints
from hardmax.analysis.equilibrium import equilibrium
from hardmax.lab._groups import agreement, count_near, groups_of
from hardmax.lab.variants import draw_systems, read_variant
from hardmax.lab.walk import Walk, walk

__all__ = ["MEASURES", "cost", "measure_systems"]

CLUSTER_TOL = 1e-6
"""Tokens this close, relative to the largest coordinate, are one cluster."""
NEAR = 0.05
"""Tokens this close to where they end have arrived, relative to the size of the cloud."""
_COARSE = 0.1
_DEPTHS = (6, 12)
_MEMORY = 48_000_000

MEASURES = {
    "clusters": "groups of tokens within 1e-6 at the end; one where all have shrunk to the origin",
    "largest": "share of the tokens in the largest cluster",
    "leaders": "tokens that were alone in their own chosen set at some layer",
    "converged": "whether the system rests: settled or still",
    "layers": "layers that were run",
    "settled_at": "first layer from which on every token chooses the token it follows at the end",
    "arrived_at": "first layer from which on every token is within 5 % of where it ends",
    "final_6": "share of tokens whose choice after 6 layers is the final one",
    "final_12": "the same after 12 layers",
    "far_6": "largest distance from the end after 6 layers, relative to the size of the cloud",
    "far_12": "the same after 12 layers",
    "distance": "mean distance from the limit of one hardmax head, relative to the size; "
    "where tokens may grow, after both are brought to one size",
    "same": "agreement with the clusters of that limit (adjusted Rand index)",
    "near_at": "temperature > 0: first layer with every token within 10 % of the hardmax limit",
    "life": "layers from there until a token is farther than 20 %; the run's end when never",
    "left": "whether it left before the run's end",
    "plateau": "longest run of layers with a constant number > 1 of coarse clusters (10 %)",
    "plateau_clusters": "that number",
}
"""The columns of a sweep, each with one line."""


def measure_systems(params: Mapping[str, Any], seed: int, draws: Sequence[int]) -> list[Any]:
    """One row of measures per draw of a variant; see `MEASURES`."""
    v = read_variant(params)
    rows: list[dict[str, Any]] = []
    size = max(1, min(256, _MEMORY // (v.n * (4 * v.d + 8 * v.heads) * min(v.depth, 4000))))
    for start in range(0, len(draws), size):
        rows += _rows(walk(draw_systems(v, seed, draws[start : start + size])))
    return rows


def _rows(done: Walk) -> list[dict[str, Any]]:
    v, b = done.systems.variant, len(done.end)
    size = np.sqrt((done.systems.z**2).sum(axis=2).mean(axis=1))
    goals = [_limit(done, s) for s in range(b)]
    gone, labels = _clusters(done.end, size)
    far = _far(done, done.end, size)
    final = _final(done)
    rows = []
    for s in range(b):
        converged = done.status[s] in ("settled", "still")
        parts = np.bincount(labels[s])
        met = converged and (gone[s] or _collapsed(done, s, len(parts)))
        status = "collapsed" if met else done.status[s]
        row = {
            "clusters": len(parts),
            "largest": float(parts.max() / v.n),
            "leaders": int(done.leaders[s]),
            "status": status,
            "converged": converged,
            "layers": int(done.layers[s]),
        }
        row |= _times(done, s, converged, far[:, s], final[:, s])
        end, goal, unit = done.end[s], goals[s], float(size[s])
        if goal is not None and v.feed_forward + (v.values != "identity") > 0:
            end, goal, unit = _shape(end), _shape(goal), 1.0
        row |= _beside_limit(goal, end, labels[s], unit)
        rows.append(row)
    if v.temperature > 0:
        for row, more in zip(rows, _metastable(done, goals, size), strict=True):
            row |= more
    return rows


def _collapsed(done: Walk, s: int, clusters: int) -> bool:
    """Whether all tokens met in one point, and no positive definite A kept them apart."""
    if clusters > 1 or done.systems.variant.n == 1:
        return False
    A = done.systems.A[s].mean(axis=0)
    values = np.linalg.eigvalsh(A + A.T)
    return not values[0] > 1e-12 * np.abs(values).max()


def _clusters(ends: Floats, size: Floats) -> tuple[list[bool], list[Ints]]:
    """Whether all tokens of a system have shrunk to the origin, and their clusters."""
    gone = [bool(np.abs(z).max() <= CLUSTER_TOL * unit) for z, unit in zip(ends, size, strict=True)]
    units = [float(unit) if lost else None for unit, lost in zip(size, gone, strict=True)]
    return gone, [_groups(z, unit) for z, unit in zip(ends, units, strict=True)]


def _groups(z: Floats, unit: float | None = None) -> Ints:
    scale = float(np.abs(z).max()) if unit is None else unit
    return groups_of(z / scale if scale > 0 else z, CLUSTER_TOL)


def _limit(done: Walk, s: int) -> Floats | None:
    """The limit of hardmax attention with one head, the mean of the A_h, and rescaling.

    Brought to the sphere, or standardised, where the variant does so.
    """
    v = done.systems.variant
    A = done.systems.A[s].mean(axis=0)
    found = equilibrium(done.systems.z[s], A=A, alpha=v.alpha, max_depth=2000)
    limit = np.asarray(found.limit)
    if not np.isfinite(limit).all():
        return None
    return _normed(limit, v.normalization)


def _normed(z: Floats, kind: str) -> Floats:
    if kind == "layernorm":
        z = z - z.mean(axis=-1, keepdims=True)
    if kind in ("layernorm", "sphere"):
        length = np.linalg.norm(z, axis=-1, keepdims=True)
        unit = 1.0 if kind == "sphere" else np.sqrt(z.shape[-1])
        return np.asarray(unit * z / np.where(length > 0, length, 1.0))
    return z


def _shape(z: Floats) -> Floats:
    """Tokens brought to root mean squared length 1."""
    unit = z / max(float(np.abs(z).max()), 1e-300)
    return np.asarray(unit / max(float(np.sqrt((unit**2).sum(axis=1).mean())), 1e-300))


def _beside_limit(goal: Floats | None, end: Floats, labels: Ints, size: float) -> dict[str, Any]:
    if goal is None or not np.isfinite(end).all():
        return {"distance": None, "same": None}
    with np.errstate(over="ignore"):
        gaps = np.sqrt(((end - goal) ** 2).sum(axis=1))
    return {
        "distance": float(gaps.mean() / size) if np.isfinite(gaps).all() else None,
        "same": float(agreement(labels, _groups(goal))),
    }


def _far(done: Walk, goals: Floats, size: Floats) -> Floats:
    """(layers + 1, b): the largest distance of a token from its goal, over the size; NaN after."""
    out = np.full((len(done.places), len(size)), np.nan)
    for k, (active, z) in enumerate(done.places):
        with np.errstate(over="ignore", invalid="ignore"):
            gap = z / np.float64(done.scale(k)) - goals[active]
            out[k, active] = np.sqrt((gap**2).sum(axis=2)).max(axis=1) / size[active]
    return out


def _final(done: Walk) -> Array:
    """(layers, b, n): whether a token's choice changes no more, in any head; -1 after the run.

    A choice stays the same when the token chosen then and the one chosen next lie on one
    point: tokens that have met count as one.
    """
    v, b = done.systems.variant, len(done.end)
    out = np.full((len(done.chosen), b, v.n), -1, dtype=np.int8)
    after: dict[int, int] = {}
    for k in range(len(done.chosen) - 1, -1, -1):
        active, *pair = done.chosen[k]
        out[k, active] = 1
        if not after:
            after = {int(s): row for row, s in enumerate(active)}
            continue
        rows = np.array([after.get(int(s), -1) for s in active])
        known = rows >= 0
        _, z = done.places[k + 1]
        same = _same_points(z[rows[known]], pair, done.chosen[k + 1][1:], known, rows[known])
        out[k, active[known]] = same & (out[k + 1, active[known]] == 1)
        after = {int(s): row for row, s in enumerate(active)}
    return out


def _same_points(z: Array, now: list[Array], then: Any, known: Array, rows: Ints) -> Array:
    """(systems, n): whether the tokens chosen now and then lie on one point of z, in all heads."""
    place = np.arange(len(z))[:, None, None]
    tol = CLUSTER_TOL * np.abs(z).max(axis=(1, 2))[:, None, None]
    good = np.ones((len(z), z.shape[1]), dtype=bool)
    for one, other in zip(now, then, strict=True):
        a, b = one[known], other[rows]
        near = np.abs(z[place, a] - z[place, b]).max(axis=3) <= tol
        good &= ((a == b) | near).all(axis=1)
    return good


def _times(done: Walk, s: int, converged: bool, far: Floats, final: Array) -> dict[str, Any]:
    """When choices and positions became final, and how far they were at small depths."""
    v = done.systems.variant
    final = final[final[:, 0] >= 0]
    far = far[~np.isnan(far)]
    out: dict[str, Any] = {"settled_at": None, "arrived_at": None}
    if converged:
        if v.temperature == 0:
            out["settled_at"] = _since(final.all(axis=1))
        out["arrived_at"] = _arrival(far, v.alpha if v.plain else None)
    for k in _DEPTHS:
        out[f"final_{k}"] = float(final[min(k, len(final) - 1)].mean()) if converged else None
        out[f"far_{k}"] = _at(far, k, v.alpha if v.plain else None) if converged else None
    return out


def _since(good: Any) -> int:
    """The first place from which on all are true; the length when the last one is not."""
    bad = np.flatnonzero(~good)
    return int(bad[-1]) + 1 if len(bad) else 0


def _at(far: Floats, k: int, alpha: float | None) -> float:
    """The distance at layer k; a settled system goes on contracting by 1 / (1 + alpha)."""
    if k < len(far):
        return float(far[k])
    return float(far[-1] / (1 + alpha) ** (k - len(far) + 1)) if alpha else float(far[-1])


def _arrival(far: Floats, alpha: float | None) -> int:
    place = _since(far <= NEAR)
    if place < len(far) or alpha is None:
        return place
    return len(far) - 1 + int(np.ceil(np.log(far[-1] / NEAR) / np.log1p(alpha)))


def _metastable(done: Walk, goals: list[Floats | None], size: Floats) -> list[dict[str, Any]]:
    """How long a softmax system stays beside the hardmax limit, and its longest plateau."""
    known = np.stack(
        [np.full_like(e, np.nan) if g is None else g for g, e in zip(goals, done.end, strict=True)]
    )
    with np.errstate(invalid="ignore"):
        far = _far(done, known, size)
    counts = np.zeros(far.shape, dtype=np.int64)
    for k, (active, z) in enumerate(done.places):
        for row, s in enumerate(active.tolist()):
            counts[k, s] = count_near(z[row] / done.scale(k), _COARSE * float(size[s]))
    return [_stay(done, s, far[:, s], counts[:, s]) for s in range(len(size))]


def _stay(done: Walk, s: int, far: Floats, counts: Ints) -> dict[str, Any]:
    run = int(done.layers[s]) + 1
    out: dict[str, Any] = {"near_at": None, "life": None, "left": None}
    far, counts = far[:run], counts[:run]
    near = np.flatnonzero(far <= _COARSE)
    if len(near):
        away = np.flatnonzero(far[near[0] :] > 2 * _COARSE)
        out["near_at"], out["left"] = int(near[0]), bool(len(away))
        end = int(away[0]) if len(away) else done.systems.variant.depth - int(near[0])
        out["life"] = end
    counts = counts[counts > 0]
    cuts = np.flatnonzero(np.diff(counts)) + 1
    spans = np.split(np.arange(len(counts)), cuts)
    many = [span for span in spans if len(span) and counts[span[0]] > 1]
    rests = done.status[s] == "still"
    best, number = 0, None
    for span in many:
        length = len(span)
        if rests and span[-1] == len(counts) - 1:
            length += done.systems.variant.depth - len(counts)
        if length > best:
            best, number = length, int(counts[span[0]])
    return {**out, "plateau": best, "plateau_clusters": number}


def cost(params: Mapping[str, Any]) -> float:
    """Roughly how many elementary operations one system takes."""
    v = read_variant(params)
    layers = min(v.depth, 30 if v.plain else 150)
    each = 30.0 if v.temperature > 0 else 2.0
    return v.n**2 * (v.d + 4) * v.heads * layers * each + 1.5e6
