"""Linear algebra and linear inequalities decided in rational numbers.

Everything works on rows of integers or fractions and divides only where the
quotient is exact.  python-flint, when installed, does the elimination; the
reduced row echelon form is unique, so the answers are the same without it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from hardmax._errors import InputError

IntRow: TypeAlias = Sequence[int]
Row: TypeAlias = Sequence[Fraction] | Sequence[int]


def dot(a: IntRow, b: IntRow) -> int:
    """Sum of the products of the entries."""
    return sum(map(int.__mul__, a, b))


def primitive(row: Row) -> list[int]:
    """The integer vector without common factor on the same ray."""
    scale = math.lcm(*(value.denominator for value in row))
    whole = [value.numerator * (scale // value.denominator) for value in row]
    factor = math.gcd(*whole) or 1
    return [value // factor for value in whole]


def flint_or_none() -> Any:
    """The module `flint`, or None where it is not installed."""
    try:
        import flint
    except ImportError:
        return None
    return flint


def rref(rows: Sequence[Row]) -> tuple[list[int], list[list[Fraction]]]:
    """Pivot columns and nonzero rows of the reduced row echelon form."""
    whole = [primitive(row) for row in rows]
    if not whole or not whole[0]:
        return [], []
    flint = flint_or_none()
    reduced, pivot = _rref_python(whole) if flint is None else _rref_flint(flint, whole)
    columns = [next(j for j, value in enumerate(row) if value) for row in reduced]
    return columns, [[Fraction(value, pivot) for value in row] for row in reduced]


def _rref_flint(flint: Any, rows: list[list[int]]) -> tuple[list[list[int]], int]:
    matrix, pivot, rank = flint.fmpz_mat(rows).rref()
    return [[int(value) for value in row] for row in matrix.tolist()[:rank]], int(pivot)


def _rref_python(rows: list[list[int]]) -> tuple[list[list[int]], int]:
    """Fraction-free Gauss-Jordan elimination: all pivots are equal at the end."""
    work = [list(row) for row in rows]
    last, rank = 1, 0
    for column in range(len(work[0])):
        found = next((i for i in range(rank, len(work)) if work[i][column]), None)
        if found is None:
            continue
        work[rank], work[found] = work[found], work[rank]
        top = work[rank]
        pivot = top[column]
        for i, row in enumerate(work):
            if i != rank:
                factor = row[column]
                work[i] = [(pivot * a - factor * b) // last for a, b in zip(row, top, strict=True)]
        last, rank = pivot, rank + 1
        work[rank:] = [row for row in work[rank:] if any(row)]
        if rank == len(work):
            break
    return work[:rank], last


def rank(rows: Sequence[Row]) -> int:
    """Exact rank of a matrix given by rows."""
    return len(rref(rows)[0])


def nullspace(rows: Sequence[Row], width: int) -> list[list[int]]:
    """Integer basis of the vectors of length `width` that every row maps to 0."""
    pivots, reduced = rref(rows)
    basis = []
    for free in sorted(set(range(width)) - set(pivots)):
        vector = [Fraction(0)] * width
        vector[free] = Fraction(1)
        for column, row in zip(pivots, reduced, strict=True):
            vector[column] = -row[free]
        basis.append(primitive(vector))
    return basis


def solve(columns: Sequence[Row], target: Row) -> list[Fraction] | None:
    """One solution of sum_j x_j columns_j = target (free x_j = 0), or None."""
    rows = [
        [*(Fraction(column[i]) for column in columns), Fraction(target[i])]
        for i in range(len(target))
    ]
    pivots, reduced = rref(rows)
    if len(columns) in pivots:
        return None
    answer = [Fraction(0)] * len(columns)
    for column, row in zip(pivots, reduced, strict=True):
        answer[column] = row[-1]
    return answer


@dataclass(frozen=True)
class ConeAnswer:
    """Either weights >= 0 that give the target, or a normal that excludes it.

    `normal` satisfies <normal, column> <= 0 for every column and
    <normal, target> > 0.  Exactly one of the two is present.
    """

    weights: list[Fraction] | None
    normal: list[int] | None


def in_cone(columns: Sequence[IntRow], target: IntRow) -> ConeAnswer:
    """Exact simplex method: is the target in the cone of the columns?"""
    size, count = len(target), len(columns)
    sign = [-1 if value < 0 else 1 for value in target]
    table = []
    for i in range(size):
        row = [sign[i] * column[i] for column in columns] + [0] * (size + 1)
        row[count + i], row[-1] = 1, abs(target[i])
        table.append(row)
    cost = [-sum(row[j] for row in table) for j in range(count + size + 1)]
    cost[count:-1] = [0] * size
    basis = list(range(count, count + size))
    scale = _minimise(table, cost, basis, count)
    if cost[-1] == 0:
        weights = [Fraction(0)] * count
        for j, row in zip(basis, table, strict=True):
            if j < count:
                weights[j] = Fraction(row[-1], scale)
        return ConeAnswer(weights, None)
    normal = [sign[i] * (scale - cost[count + i]) for i in range(size)]
    return ConeAnswer(None, primitive(normal))


def _minimise(table: list[list[int]], cost: list[int], basis: list[int], count: int) -> int:
    """Pivot the integer tableau to its optimum in place; returns its common denominator.

    The steepest column enters; after many steps of length 0 the first one does
    (Bland), which cannot cycle.
    """
    scale, idle = 1, 0
    while True:
        falling = [j for j in range(count) if cost[j] < 0]
        if not falling:
            return scale
        enter = min(falling, key=lambda j: cost[j]) if idle <= len(basis) else falling[0]
        leave = _leaving_row(table, basis, enter)
        top = table[leave]
        pivot = top[enter]
        idle = 0 if top[-1] else idle + 1
        for row in (*table, cost):
            factor = row[enter]
            if row is not top and (factor or pivot != scale):
                row[:] = [(pivot * a - factor * b) // scale for a, b in zip(row, top, strict=True)]
        basis[leave], scale = enter, pivot


def _leaving_row(table: list[list[int]], basis: list[int], enter: int) -> int:
    """Row of the smallest ratio; among equals the smallest variable (Bland)."""
    best = -1
    for i, row in enumerate(table):
        if row[enter] <= 0:
            continue
        if best >= 0:
            other = table[best]
            gap = row[-1] * other[enter] - other[-1] * row[enter]
            if gap > 0 or (gap == 0 and basis[i] > basis[best]):
                continue
        best = i
    return best


Ray: TypeAlias = tuple[list[int], int]
"""A primitive integer vector and the rows orthogonal to it, as bits."""


def extreme_rays(rows: Sequence[IntRow], budget: int) -> list[Ray]:
    """Extreme rays of {y : <a, y> >= 0 for all rows a} by double description.

    The rows must span the space.  More than `budget` comparisons of rays:
    `InputError`.
    """
    width = len(rows[0])
    start = rref([[row[j] for row in rows] for j in range(width)])[0]
    rays = _simplicial_cone([rows[i] for i in start], start)
    for i in sorted(set(range(len(rows))) - set(start), key=lambda i: tuple(rows[i])):
        values = [dot(rows[i], ray) for ray, _ in rays]
        split = {
            sign: [k for k, v in enumerate(values) if (v > 0) - (v < 0) == sign]
            for sign in (-1, 0, 1)
        }
        budget -= len(split[1]) * len(split[-1])
        pairs, budget = _adjacent_pairs(rays, split[1], split[-1], width - 2, budget)
        kept = [rays[k] for k in split[1]]
        kept += [(rays[k][0], rays[k][1] | 1 << i) for k in split[0]]
        for p, q in pairs:
            ray = [
                values[p] * b - values[q] * a for a, b in zip(rays[p][0], rays[q][0], strict=True)
            ]
            kept.append((primitive(ray), rays[p][1] & rays[q][1] | 1 << i))
        rays = kept
    return rays


def _adjacent_pairs(
    rays: list[Ray], above: list[int], below: list[int], least: int, budget: int
) -> tuple[list[tuple[int, int]], int]:
    """Pairs that span an edge of the cone, and what is left of the budget."""
    masks = [tight for _, tight in rays]
    pairs = []
    for p in above:
        for q in below:
            if budget < 0:
                raise InputError(
                    "The exact faces of this polytope are too many to enumerate. "
                    "Ask `vertices`, `contains(x)` or `on_boundary(x)` instead."
                )
            common = masks[p] & masks[q]
            if common.bit_count() >= least:
                budget -= len(masks)
                if _adjacent(common, masks):
                    pairs.append((p, q))
    return pairs, budget


def _adjacent(common: int, masks: list[int]) -> bool:
    """Whether only two rays are tight at all of these rows."""
    seen = 0
    for mask in masks:
        seen += mask & common == common
        if seen > 2:
            return False
    return True


def _simplicial_cone(rows: Sequence[IntRow], names: list[int]) -> list[Ray]:
    """Rays of the cone of as many independent rows as coordinates."""
    width = len(rows)
    unit = [[int(i == j) for j in range(width)] for i in range(width)]
    _, reduced = rref([[*row, *extra] for row, extra in zip(rows, unit, strict=True)])
    every = sum(1 << name for name in names)
    return [
        (primitive([row[width + k] for row in reduced]), every & ~(1 << names[k]))
        for k in range(width)
    ]
