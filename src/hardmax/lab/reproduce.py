"""Figure 2 of the clustering paper, with its facts decided in rationals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hardmax.analysis.equilibrium import Equilibrium, equilibrium
from hardmax.dynamics.run import simulate
from hardmax.plot.figures import draw_layers
from hardmax.plot.scene import Scene, scene_of
from hardmax.tokens.points import SEED, arrangement

__all__ = ["ALPHA", "LAYERS", "ROWS", "Fact", "Figure2", "Row", "figure2"]

ROWS = ("triangle", "emerging", "square", "edges")
"""The arrangements of the rows, from the top."""
LAYERS = (0, 1, 2, 5, 30)
"""The layers of the panels."""
ALPHA = Fraction(1, 2)

_EMERGING = {
    (Fraction(1), Fraction(1, 3)): {0, 3, 6, 7},
    (Fraction(-1, 18), Fraction(5, 36)): {1},
    (Fraction(-1), Fraction(-1)): {2, 4, 5},
}
_CORNERS = {0, 1, 2, 3}
_EDGES = {(Fraction(-1), Fraction(0)): 4, (Fraction(1), Fraction(0)): 5}


@dataclass(frozen=True)
class Fact:
    """A claim about the figure, and whether it holds."""

    claim: str
    holds: bool


@dataclass(frozen=True)
class Row:
    """One arrangement: its tokens, its limit and its scene."""

    name: str
    tokens: list[list[Fraction]]
    equilibrium: Equilibrium
    scene: Scene

    @property
    def places(self) -> list[tuple[Fraction, ...]]:
        """The exact limit of every token; empty where there is none."""
        exact = self.equilibrium.limit_exact
        return [] if exact is None else [tuple(place) for place in exact]

    @property
    def rests(self) -> list[tuple[Fraction, ...]]:
        """The points of S at which no leader stands."""
        labels = self.equilibrium.labels
        return sorted({place for place, k in zip(self.places, labels, strict=False) if k < 0})


@dataclass(frozen=True)
class Figure2:
    """The four rows with their facts; drawn from the scenes alone."""

    rows: tuple[Row, ...]
    facts: tuple[Fact, ...]
    seed: int

    @property
    def holds(self) -> bool:
        """Whether every fact holds."""
        return all(fact.holds for fact in self.facts)

    def draw(self) -> Any:
        """The figure: one row per arrangement, one panel per layer."""
        return draw_layers([row.scene for row in self.rows], layers=LAYERS)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: facts, and the tokens, limit and scene of every row."""
        rows = [
            {
                "name": row.name,
                "tokens": [[str(x) for x in token] for token in row.tokens],
                "equilibrium": row.equilibrium.to_dict(),
                "scene": row.scene.to_dict(),
            }
            for row in self.rows
        ]
        facts = [{"claim": fact.claim, "holds": fact.holds} for fact in self.facts]
        head = {"item": "figure2", "alpha": str(ALPHA), "seed": self.seed, "layers": list(LAYERS)}
        return {**head, "holds": self.holds, "facts": facts, "rows": rows}


def figure2(*, seed: int | None = None) -> Figure2:
    """The rows of figure 2 at alpha = 1/2, limits decided in rationals.

    Parameters
    ----------
    seed
        For the random tokens of rows 1, 3 and 4; 0 where none is given.  The
        paper states no seed; its facts do not depend on it.

    Returns
    -------
    Figure2
    """
    seed = SEED if seed is None else seed
    rows = tuple(row_of(name, seed) for name in ROWS)
    _, emerging, square, edges = rows
    facts = (_proved(rows), *_emerging_facts(emerging), _square_fact(square), *_edges_facts(edges))
    return Figure2(rows, facts, seed)


def row_of(name: str, seed: int, depth: int = LAYERS[-1]) -> Row:
    """One arrangement with its run, its limit in rationals and its scene."""
    tokens: Any = arrangement(name, exact=True, seed=seed)
    eq = equilibrium(tokens, alpha=ALPHA, exact=True)
    run = simulate(np.array(tokens, dtype=np.float64), depth, alpha=ALPHA)
    return Row(name, tokens, eq, scene_of(run, eq, title=name))


def _proved(rows: Sequence[Row]) -> Fact:
    verified = [row.equilibrium.certificate.verify(row.tokens, "rational") for row in rows]
    proved = [row.equilibrium.status == "proved" for row in rows]
    return Fact("all four limits are proved, and verified in rationals", all(proved + verified))


def _emerging_facts(row: Row) -> list[Fact]:
    eq = row.equilibrium
    births = dict(zip(eq.leaders, eq.born, strict=True))
    ends = {place: {i for i, p in enumerate(row.places) if p == place} for place in row.places}
    where = "(1, 1/3), (-1/18, 5/36), (-1, -1)"
    return [
        Fact(
            "emerging: tokens 0 and 2 lead at layer 0, token 1 from layer 1",
            births == {0: 0, 1: 1, 2: 0},
        ),
        Fact(f"emerging: the limits are exactly {where}", set(ends) == set(_EMERGING)),
        Fact("emerging: tokens 3, 6, 7 end on token 0, tokens 4, 5 on token 2", ends == _EMERGING),
    ]


def _square_fact(row: Row) -> Fact:
    eq = row.equilibrium
    good = set(eq.leaders) == _CORNERS and bool((eq.labels >= 0).all())
    return Fact("square: the four corners lead and all tokens end on them", good)


def _edges_facts(row: Row) -> list[Fact]:
    eq = row.equilibrium
    free = {place: i for i, place in enumerate(row.places) if eq.labels[i] < 0}
    shown = {tuple(map(float, place)) for place in free}
    listed = {tuple(place) for place in eq.points.tolist()}
    return [
        Fact("edges: the four corners lead", set(eq.leaders) == _CORNERS),
        Fact("edges: tokens 4 and 5 end at (-1, 0) and (1, 0), where nobody leads", free == _EDGES),
        Fact("edges: both places are points of S", bool(shown) and shown <= listed),
    ]
