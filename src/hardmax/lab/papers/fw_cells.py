"""Frank-Wolfe paper, section 4: the cells of a polytope's vertices.

C_i = {x in K: <B x, v_i> = max_y <B x, y>} for the vertices v_i of K.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np
from scipy.spatial import ConvexHull

from hardmax._types import Floats, Ints
from hardmax.lab.papers.outcome import Comparison, Context, Outcome, claim, near
from hardmax.plot import papers as draw
from hardmax.plot.figures import save_figure

__all__ = ["cells", "conditions", "owners"]

_SOURCE = "arXiv 2508.09628, section 4: lemma on cells, propositions 4.5 and on the condition"
_NEAR = 1e-9
_CASES = {"short": (60, 50), "full": (600, 400)}
"""Polytopes, and draws in each dimension."""


def owners(x: Floats, v: Floats, B: Floats) -> tuple[Ints, Floats]:
    """The vertex whose cell each point lies in, and by how much it wins."""
    scores = x @ B.T @ v.T
    ranked = np.sort(scores, axis=1)
    return np.argmax(scores, axis=1), ranked[:, -1] - ranked[:, -2]


def cells(context: Context) -> Outcome:
    """Cells cover, are convex and do not overlap; Voronoi; the local condition; many dimensions."""
    rng = np.random.default_rng(context.seed)
    cases, draws = _CASES[context.form]
    shape = _shape(rng, cases)
    voronoi = _voronoi(rng, cases)
    local = conditions(rng, cases)
    context.progress("cells", 1, 2)
    share = _dimensions(rng, draws)
    comparisons = (
        claim("lemma: every point of K is in a cell, in one only but for ties",
              shape["points"] == shape["one cell"], shape),
        claim("lemma: cells are convex", shape["pairs"] == shape["middle in the cell"], shape),
        near("proposition 4.5: mismatches with the Voronoi cells of the B-norm, J equal", 0,
             voronoi["mismatches"], 0, exact=True),
        claim("proposition 4.5 needs equal J: unequal ones do mismatch",
              voronoi["mismatches, J not equal"] > 0, voronoi),
        near("condition: v_i owns its cell iff <B v_i, w - v_i> < 0 for adjacent w; mismatches",
             0, local["mismatches"], 0, exact=True),
        _rising(share),
    )  # fmt: skip
    pictures = [_picture(rng, k, equal) for equal in (True, False) for k in (4, 6, 9)]
    numbers = {"shape": shape, "voronoi": voronoi, "condition": local, "all own": share,
               "cells": pictures}  # fmt: skip

    def picture(file: BinaryIO) -> None:
        save_figure(draw.draw_cells(pictures), file, "png")

    return Outcome(
        "fw-cells", "Cells: convex, Voronoi for equal norms, who owns its own", _SOURCE, context,
        comparisons, numbers, {"fw-cells.png": picture}, _DIFFERENCES,
    )  # fmt: skip


_DIFFERENCES = (
    (
        "The authors' scripts colour cells on a grid; here the statements are checked on random"
        " points and polytopes, and the picture is drawn from half planes."
    ),
    "The condition is the corrected one (adjacent vertices, strict, v_i not 0).",
)


def _system(rng: np.random.Generator, d: int, *, equal: bool) -> tuple[Floats, Floats]:
    """Vertices of a random polytope, and B > 0; with `equal`, all of one B-norm."""
    half = rng.normal(size=(d, d))
    B = half @ half.T / d + 0.3 * np.eye(d)
    v = rng.normal(size=(int(rng.integers(d + 2, d + 8)), d))
    if equal:
        v /= np.sqrt(np.einsum("ni,ij,nj->n", v, B, v))[:, None]
    return v[ConvexHull(v).vertices], B


def _inside(rng: np.random.Generator, v: Floats, count: int) -> Floats:
    return np.asarray(rng.dirichlet(np.full(len(v), 0.6), size=count) @ v)


def _shape(rng: np.random.Generator, cases: int) -> dict[str, int]:
    out = {"polytopes": cases, "points": 0, "one cell": 0, "pairs": 0, "middle in the cell": 0}
    for _ in range(cases):
        v, B = _system(rng, int(rng.integers(2, 4)), equal=False)
        x = _inside(rng, v, 100)
        own, gap = owners(x, v, B)
        out["points"] += int((gap != 0).sum())
        out["one cell"] += int((gap > 0).sum())
        a, b = x[:50], x[50:]
        pairs = own[:50] == own[50:]
        share = rng.uniform(size=(50, 1))
        between = owners(share * a + (1 - share) * b, v, B)[0]
        out["pairs"] += int(pairs.sum())
        out["middle in the cell"] += int((between[pairs] == own[:50][pairs]).sum())
    return out


def _voronoi(rng: np.random.Generator, cases: int) -> dict[str, int]:
    out = {"points": 0, "mismatches": 0, "mismatches, J not equal": 0}
    for _ in range(cases):
        for equal in (True, False):
            v, B = _system(rng, int(rng.integers(2, 5)), equal=equal)
            x = _inside(rng, v, 100)
            own, gap = owners(x, v, B)
            way = x[:, None] - v[None]
            nearest = np.argmin(np.einsum("nvi,ij,nvj->nv", way, B, way), axis=1)
            wrong = int(((own != nearest) & (gap > _NEAR)).sum())
            out["mismatches" if equal else "mismatches, J not equal"] += wrong
            out["points"] += len(x) if equal else 0
    return out


def conditions(rng: np.random.Generator, cases: int) -> dict[str, int]:
    """How often the test against adjacent vertices and the one against all disagree."""
    out = {"vertices": 0, "own": 0, "mismatches": 0}
    for _ in range(cases):
        d = int(rng.integers(2, 4))
        v, B = _system(rng, d, equal=False)
        v = v + rng.normal(size=d) * 0.5
        scores = v @ B.T @ v.T
        best = np.where(np.eye(len(v), dtype=bool), -np.inf, scores).max(axis=1)
        alone = scores.diagonal() > best
        for i, beside in _adjacent(v).items():
            local = all(scores[i, w] < scores[i, i] for w in beside)
            out["vertices"] += 1
            out["own"] += int(alone[i])
            out["mismatches"] += int(local != alone[i])
    return out


def _adjacent(v: Floats) -> dict[int, set[int]]:
    """Neighbours of each vertex along the facets of a simplicial polytope."""
    beside: dict[int, set[int]] = {}
    for facet in ConvexHull(v).simplices.tolist():
        for i in facet:
            beside.setdefault(i, set()).update(set(facet) - {i})
    return beside


def _dimensions(rng: np.random.Generator, draws: int, kappa: int = 10) -> dict[str, float]:
    """Share of draws in which all of `kappa` Gaussian vertices own their cells, by dimension."""
    share = {}
    for d in (2, 4, 8, 16, 32, 64, 128):
        count = 0
        for _ in range(draws):
            v = rng.normal(size=(kappa, d))
            half = rng.normal(size=(d, d))
            B = np.eye(d) + half @ half.T / (4 * d)  # condition number bounded for all d
            scores = v @ B.T @ v.T
            count += bool((scores.argmax(axis=1) == np.arange(kappa)).all())
        share[str(d)] = count / draws
    return share


def _rising(share: dict[str, float]) -> Comparison:
    values = list(share.values())
    slack = 0.1
    rising = all(b >= a - slack for a, b in pairwise(values))
    return claim(
        "proposition on high dimension: the share of draws in which all vertices own their cells "
        "tends to 1", rising and values[-1] >= 0.99, share,
        rule="never falls by more than .1, and at least .99 at d = 128",
    )  # fmt: skip


def _picture(rng: np.random.Generator, k: int, equal: bool) -> dict[str, Any]:
    """A random k-gon with its cells as polygons, for the picture."""
    turn = np.sort(rng.uniform(0, 2 * np.pi, k))
    while max(np.diff(np.concatenate([turn, [turn[0] + 2 * np.pi]]))) > 0.9 * np.pi:
        turn = np.sort(rng.uniform(0, 2 * np.pi, k))
    radius = np.ones(k) if equal else rng.uniform(0.4, 1, k)
    v = radius[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    v = v[ConvexHull(v).vertices]
    parts = [_cut(v, i).tolist() for i in range(len(v))]
    own, _ = owners(v, v, np.eye(2))
    return {"vertices": v.tolist(), "cells": parts, "equal": equal,
            "owns": (own == np.arange(len(v))).tolist()}  # fmt: skip


def _cut(v: Floats, i: int) -> Floats:
    """The polygon K cut by the half planes <x, v_i - v_j> >= 0."""
    part = v
    for j in range(len(v)):
        side = part @ (v[i] - v[j])
        kept: list[Any] = []
        for k in range(len(part)):
            a, b, s, t = part[k - 1], part[k], side[k - 1], side[k]
            if (s >= 0) != (t >= 0):
                kept.append(a + (b - a) * s / (s - t))
            if t >= 0:
                kept.append(b)
        part = np.array(kept) if kept else np.empty((0, 2))
        if len(part) == 0:
            break
    return np.asarray(part)
