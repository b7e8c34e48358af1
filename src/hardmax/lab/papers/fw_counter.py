"""Frank-Wolfe paper: systems for which statements of v1 fail, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any, BinaryIO

import numpy as np

from hardmax._types import Floats
from hardmax.analysis.polytope import Polytope
from hardmax.dynamics.layer import layer
from hardmax.dynamics.run import simulate
from hardmax.lab.papers.outcome import Comparison, Context, Outcome, claim, same
from hardmax.plot import papers as draw
from hardmax.plot.figures import save_figure

__all__ = ["counterexamples"]

_SOURCE = "arXiv 2508.09628 v1, theorem 3.1, lemmas of sections 2.1 and 3"
_LAYERS = 800
_CASES = {"short": 400, "full": 4800}


def counterexamples(context: Context) -> Outcome:
    """{3, -1} against theorem 3.1, diag(.6, .7) against shrinking hulls, pairs that merge."""
    exact = _pair(12)
    steps = [F(2, t + 2) for t in range(_LAYERS)]
    run = simulate([[3.0], [-1.0]], _LAYERS, A=[[-1.0]], gamma=steps)
    paths = run.zs[:, :, 0].T.tolist()
    searched = _search(context)
    comparisons = (
        same("{3, -1}: the tokens at t = 2", "5/3 and 1/3", " and ".join(map(str, exact[2]))),
        same("{3, -1}: J of the second token, t = 2 .. 12", "1/18", _all_equal(exact)),
        claim(
            "{3, -1}: the second token never moves again, 800 layers",
            bool(np.abs(run.zs[2:, 1] - 1 / 3).max() < 1e-14), float(run.zs[-1, 1, 0]),
        ),
        claim(
            "the bound (2/(t+1)) lambda diam^2 of theorem 3.1 is crossed",
            _crossing(run) is not None, _crossing(run), rule="at some t",
        ),
        same("random starts around 0, 60 steps: violations", 0, searched["violations"]),
        *_hull(),
        claim("B = -1, gamma = 1/2: every pair a > 0 > b meets at the middle", *_merge(context)),
    )  # fmt: skip
    numbers = {"layers": _LAYERS, "paths": paths, "search": searched}

    def picture(file: BinaryIO) -> None:
        save_figure(draw.draw_escape(paths), file, "png")

    return Outcome(
        "fw-counterexamples", "Statements of the first version that fail", _SOURCE, context,
        comparisons, numbers, {"fw-counterexamples.png": picture}, _DIFFERENCES,
    )  # fmt: skip


_DIFFERENCES = (
    (
        "Theorem 3.1 (B = -B*, steps 2/(t+2): J decreases like 1/t when 0 is in the hull) fails"
        " as stated in v1, because the hull may leave the origin. 'Agrees' means here that the "
        "known counter-example is confirmed."
    ),
    (
        "The authors' lemma that hulls shrink holds for a scalar step; for a positive diagonal "
        "P it fails, as the triangle shows."
    ),
)


def _pair(layers: int) -> list[tuple[F, ...]]:
    """The pair {3, -1} in rationals, written out: each token goes towards its farthest."""
    out: list[tuple[F, ...]] = [(F(3), F(-1))]
    for t in range(layers):
        x = out[-1]
        goals = [min(x) if a > 0 else max(x) for a in x]
        out.append(tuple(a + F(2, t + 2) * (g - a) for a, g in zip(x, goals, strict=True)))
    return out


def _all_equal(path: list[tuple[F, ...]]) -> str:
    values = {min(x) ** 2 / 2 for x in path[2:]}
    return ", ".join(map(str, sorted(values)))


def _crossing(run: Any) -> int | None:
    """First t at which J of a token exceeds (2 / t) lambda diam^2."""
    worst = 0.5 * (run.zs[:, :, 0] ** 2).max(axis=1)
    bound = 2 / np.maximum(np.arange(len(worst)), 1) * 16.0
    found = np.flatnonzero(worst > bound)
    return int(found[0]) if len(found) else None


def _search(context: Context) -> dict[str, int]:
    """Random clouds with 0 in the hull, B = -(PSD), 60 steps: how often the bound is crossed."""
    rng = np.random.default_rng(context.seed)
    cases = _CASES[context.form]
    violations = 0
    steps = [2 / (t + 2) for t in range(60)]
    for k in range(cases):
        if k % 100 == 0:
            context.progress("random starts", k, cases)
        d = int(rng.integers(1, 4))
        z = rng.normal(size=(int(rng.integers(d + 2, 9)), d))
        z -= z.mean(axis=0)
        half = rng.normal(size=(d, d))
        B = half @ half.T
        violations += _violated(z, B, steps)
    return {"cases": cases, "violations": violations}


def _violated(z: Floats, B: Floats, steps: list[float]) -> bool:
    zs = np.asarray(simulate(z, len(steps), A=-B, gamma=steps, merge_tol=0.0).zs)
    J = 0.5 * np.einsum("kni,ij,knj->kn", zs, B, zs).max(axis=1)
    diam = float(np.linalg.norm(z[:, None] - z[None], axis=2).max())
    bound = 2 / np.arange(1, len(zs)) * float(np.linalg.eigvalsh(B)[-1]) * diam**2
    return bool((J[1:] > bound * (1 + 1e-9)).any())


def _hull() -> tuple[Comparison, ...]:
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    moved = layer(triangle, A=swap, gamma=np.diag([0.6, 0.7]))
    hull = Polytope.of(triangle)
    kept = all(hull.contains(x) for x in layer(triangle, A=swap, gamma=0.6))
    return (
        same("P = diag(.6, .7): e1 goes to", [0.4, 0.7], [round(float(x), 12) for x in moved[1]]),
        claim("P = diag(.6, .7): the hull does not hold its image", not hull.contains(moved[1]),
              [float(x) for x in moved[1]]),
        claim("a scalar step keeps the hull", kept, kept),
    )  # fmt: skip


def _merge(context: Context) -> tuple[bool, float]:
    """Largest distance to the middle over random pairs of opposite signs."""
    rng = np.random.default_rng(context.seed)
    pairs = np.stack([rng.uniform(0.1, 5, 200), -rng.uniform(0.1, 5, 200)], axis=1)
    gaps = [
        float(np.abs(layer(pair[:, None], A=[[-1.0]], gamma=0.5)[:, 0] - pair.mean()).max())
        for pair in pairs
    ]
    return max(gaps) <= 1e-15 * 10, max(gaps)
