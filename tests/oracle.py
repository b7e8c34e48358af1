"""The hardmax dynamics over Python fractions: slow, plain, and apart from the library.

Nothing here is imported from `hardmax`.  Two versions of the same layer live
side by side: `chosen` and `layer` are the definition, written as loops over
`Fraction`; `State` carries integers over one common denominator and looks at
exact scores only where floating point cannot decide.  The tests of this file
compare the two.

`answer` iterates exactly until the choices can be shown never to change, and
then watches some further layers: the choices must be the same and the distance
to the claimed limit must shrink by exactly (1 - gamma) per layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from operator import mul
from typing import Any

import numpy as np

Point = list[Fraction]
Points = list[Point]
Choices = list[tuple[int, ...]]


# ------------------------------------------------------------------ exact input


def fraction(x: Any) -> Fraction:
    """The exact value of a number; a float is the dyadic rational it stores."""
    if isinstance(x, Fraction):
        return x
    if isinstance(x, (int, np.integer)):
        return Fraction(int(x))
    return Fraction(float(x))


def fractions(rows: Any) -> Points:
    """Rows of exact numbers from an array, a tensor or nested lists."""
    rows = rows.tolist() if hasattr(rows, "tolist") else rows
    return [[fraction(x) for x in row] for row in rows]


def matrix(A: Any, d: int) -> Points:
    """The score matrix in fractions: None is I, a pair (U, V) is U^T V."""
    if A is None:
        return [[Fraction(int(i == j)) for j in range(d)] for i in range(d)]
    if isinstance(A, tuple):
        U, V = fractions(A[0]), fractions(A[1])
        return [
            [sum((u[i] * v[j] for u, v in zip(U, V, strict=True)), Fraction(0)) for j in range(d)]
            for i in range(d)
        ]
    return fractions(A)


def step_size(alpha: Any = 1.0, gamma: Any = None) -> Fraction:
    """gamma, or alpha / (1 + alpha) without rounding."""
    if gamma is not None:
        return fraction(gamma)
    a = fraction(alpha)
    return a / (1 + a)


# ------------------------------------------------------------- the definition


def dot(x: Sequence[Any], y: Sequence[Any]) -> Any:
    """Sum of products."""
    return sum(map(mul, x, y))


def chosen(z: Points, A: Points) -> Choices:
    """For each token i, all tokens j at which <A z_i, z_j> is largest."""
    sets = []
    for x in z:
        w = [dot(row, x) for row in A]
        scores = [dot(w, y) for y in z]
        best = max(scores)
        sets.append(tuple(j for j, s in enumerate(scores) if s == best))
    return sets


def means(z: Points, sets: Choices) -> Points:
    """The mean of the chosen tokens, each token counted once."""
    return [
        [sum((z[j][c] for j in js), Fraction(0)) / len(js) for c in range(len(z[0]))] for js in sets
    ]


def layer(z: Points, A: Points, gamma: Fraction) -> Points:
    """One layer: z_i + gamma (mean of the chosen - z_i)."""
    targets = means(z, chosen(z, A))
    return [
        [a + gamma * (b - a) for a, b in zip(x, m, strict=True)]
        for x, m in zip(z, targets, strict=True)
    ]


def trajectory(
    z: Any, depth: int, A: Any = None, alpha: Any = 1.0, gamma: Any = None
) -> list[Points]:
    """The layers 0 .. depth by the definition."""
    zs = [fractions(z)]
    B, g = matrix(A, len(zs[0][0])), step_size(alpha, gamma)
    for _ in range(depth):
        zs.append(layer(zs[-1], B, g))
    return zs


def classes(z: Sequence[Sequence[Any]]) -> list[int]:
    """For each token the smallest index of a token equal to it."""
    first: dict[tuple[Any, ...], int] = {}
    return [first.setdefault(tuple(x), i) for i, x in enumerate(z)]


# ----------------------------------------- the same with integers, for larger systems


def _common(rows: Points) -> tuple[list[list[int]], int]:
    """Numerators over the least common denominator."""
    low = math.lcm(*(x.denominator for row in rows for x in row)) if rows else 1
    return [[x.numerator * (low // x.denominator) for x in row] for row in rows], low


def _floats(row: Sequence[int]) -> list[float]:
    """The row divided by a power of two so that the largest entry is below 1, rounded."""
    top = 1 << max(x.bit_length() for x in row)
    return [x / top for x in row]


@dataclass
class State:
    """Tokens as integers over one common denominator."""

    top: list[list[int]]
    low: int
    A: list[list[int]]
    gamma: Fraction
    sets: Choices = field(default_factory=list)
    margins: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, z: Any, A: Any = None, alpha: Any = 1.0, gamma: Any = None) -> State:
        """From numbers as a user gives them."""
        rows = fractions(z)
        top, low = _common(rows)
        scale, _ = _common(matrix(A, len(rows[0])))
        state = cls(top, low, scale, step_size(alpha, gamma))
        state.look()
        return state

    @property
    def z(self) -> Points:
        """The tokens as fractions."""
        return [[Fraction(x, self.low) for x in row] for row in self.top]

    def turned(self, x: Sequence[Any]) -> list[Any]:
        """A x, up to one positive factor that is the same for every x."""
        return [dot(row, x) for row in self.A]

    def look(self) -> None:
        """Find the chosen sets and the relative margin of each token."""
        home = classes(self.top)
        heads = sorted(set(home))
        crowd = {h: tuple(i for i, c in enumerate(home) if c == h) for h in heads}
        picks, gaps = self._look_at([self.top[h] for h in heads])
        found = {
            h: tuple(sorted(i for c in js for i in crowd[heads[c]]))
            for h, js in zip(heads, picks, strict=True)
        }
        wide = dict(zip(heads, gaps, strict=True))
        self.sets = [found[c] for c in home]
        self.margins = [wide[c] for c in home]

    def _look_at(self, rows: list[list[int]]) -> tuple[Choices, list[float]]:
        """Chosen rows for each row: floats discard, integers decide.

        The float score of a pair differs from the exact one by at most
        (d + 3) u (1 + small) sum |w||z| plus underflow; `slack` is over twice that.
        """
        d = len(rows[0])
        unit = 1 << max(1, *(x.bit_length() for row in rows for x in row))
        Z = np.array([[x / unit for x in row] for row in rows])
        turned = [self.turned(row) for row in rows]
        W = np.array([_floats(w) for w in turned])
        scores = W @ Z.T
        slack = (d + 4) * 2.0**-51 * (abs(W) @ abs(Z).T) + 1e-300
        floor = (scores - slack).max(axis=1, keepdims=True)
        maybe = scores + slack >= floor
        reach = max(math.sqrt(float(r @ r)) for r in Z) or 1.0
        picks, gaps = [], []
        for i, w in enumerate(turned):
            near = [int(j) for j in np.flatnonzero(maybe[i])]
            exact = {j: dot(w, rows[j]) for j in near} if len(near) > 1 else {near[0]: 0}
            best = max(exact.values())
            picks.append(tuple(j for j in near if exact[j] == best))
            size = math.sqrt(float(W[i] @ W[i])) * reach
            unit_i = unit << max(x.bit_length() for x in w)
            inner = [(best - s) / unit_i for s in exact.values() if s != best]
            far = scores[i][~maybe[i]]
            outer = [float(scores[i][picks[-1][0]] - far.max())] if far.size else []
            gaps.append(min(inner + outer, default=math.inf) / size if size else math.inf)
        return picks, gaps

    def step(self) -> State:
        """The next layer."""
        p, q = self.gamma.numerator, self.gamma.denominator
        many = math.lcm(*(len(js) for js in self.sets))
        sums: dict[tuple[int, ...], list[int]] = {}
        rows = []
        for x, js in zip(self.top, self.sets, strict=True):
            if js not in sums:
                part = p * (many // len(js))
                sums[js] = [part * sum(col) for col in zip(*(self.top[j] for j in js), strict=True)]
            rows.append([(q - p) * many * a + b for a, b in zip(x, sums[js], strict=True)])
        state = State(rows, self.low * q * many, self.A, self.gamma)
        state.look()
        return state

    def targets(self) -> tuple[list[list[int]], int]:
        """The means of the chosen tokens, over their own common denominator."""
        many = math.lcm(*(len(js) for js in self.sets))
        sums: dict[tuple[int, ...], list[int]] = {}
        for js in self.sets:
            if js not in sums:
                cols = zip(*(self.top[j] for j in js), strict=True)
                sums[js] = [(many // len(js)) * sum(col) for col in cols]
        return [sums[js] for js in self.sets], self.low * many

    def strict(self) -> set[int]:
        """Tokens whose class is alone in its own chosen set (they are leaders)."""
        home = classes(self.top)
        return {i for i, js in enumerate(self.sets) if {home[j] for j in js} == {home[i]}}


# ------------------------------------------------------------- when nothing changes again


def settled_by_leaders(state: State) -> bool:
    """Every class chooses exactly one class, and that class chooses itself alone."""
    home, strict = classes(state.top), state.strict()
    return all(len({home[j] for j in js}) == 1 and js[0] in strict for js in state.sets)


def settled_by_ties(state: State) -> bool:
    """As above, but a token may choose several leaders l with mean m under three conditions.

    <A m, l> is the same for all of them, <A m, l - z_j> >= 0 for every token j,
    and <A m, l - x_j> >= 0 for every limit x_j.
    """
    strict, home = state.strict(), classes(state.top)
    if any(j not in strict for js in state.sets for j in js):
        return False
    limits, low = state.targets()
    up = low // state.low
    spots = [list(x) for x in {tuple(x) for x in limits}]
    for m, js in {tuple(m): js for m, js in zip(limits, state.sets, strict=True)}.items():
        if len({home[j] for j in js}) == 1:
            continue
        w = state.turned(m)
        levels = {up * dot(w, state.top[j]) for j in js}
        if len(levels) > 1:
            return False
        level = levels.pop()
        if any(up * dot(w, x) > level for x in state.top) or any(dot(w, x) > level for x in spots):
            return False
    return True if state.gamma < 1 else _rests(state)


def _rests(state: State) -> bool:
    """With gamma = 1 the tokens stand on their limits after one layer: do they stay?

    Tokens that land on a chosen one are chosen with it from then on, and move the mean.
    """
    after = state.step()
    return after.sets == state.sets and after.step().z == after.z


def settled_on_lines(state: State) -> bool:
    """Any fixed choice under which all tokens move on straight lines.

    With x the means of the chosen tokens, and the mean of x over each chosen
    set equal to x_i, fixed choices give z_i(s) = (1-s) z_i + s x_i for all i
    with one common s.  Then <A z_i(s), z_c(s) - z_j(s)> is a quadratic in s: it
    must vanish for c, j both chosen, and be positive on [0, 1) for j outside.
    """
    if state.gamma == 1:
        return _rests(state)
    x, low = state.targets()
    up = low // state.low
    z = [[up * a for a in row] for row in state.top]
    for row, js in zip(x, state.sets, strict=True):
        if any(len(js) * a != sum(x[j][c] for j in js) for c, a in enumerate(row)):
            return False
    done = set()
    for i, js in enumerate(state.sets):
        if tuple(state.top[i]) in done:
            continue
        done.add(tuple(state.top[i]))
        if not _lasts(state.turned(z[i]), state.turned(x[i]), z, x, js):
            return False
    return True


def _lasts(w: list[int], v: list[int], z: list[list[int]], x: list[list[int]], js: Any) -> bool:
    """The quadratics of one token: w = A z_i, v = A x_i."""
    start = [dot(w, y) for y in z]
    cross = [dot(w, y) + dot(v, u) for y, u in zip(x, z, strict=True)]
    end = [dot(v, y) for y in x]
    c = js[0]
    for j in range(len(z)):
        p, q, r = start[c] - start[j], cross[c] - cross[j], end[c] - end[j]
        if j in js:
            if (p, q, r) != (0, 0, 0):
                return False
        elif not (p > 0 and r >= 0 and (q >= 0 or q * q < 4 * p * r)):
            return False
    return True


RULES = (
    ("leaders", settled_by_leaders),
    ("ties", settled_by_ties),
    ("lines", settled_on_lines),
)


# ------------------------------------------------------------------ the answer


@dataclass(frozen=True)
class Answer:
    """What the exact dynamics does."""

    settled_at: int | None
    rule: str | None
    limit: Points | None
    leaders: tuple[int, ...]
    born: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]
    labels: tuple[int, ...] | None
    margin: float
    margins: tuple[float, ...]
    sets: tuple[Choices, ...]
    layers: int

    @property
    def settled(self) -> bool:
        """Whether the limit was found."""
        return self.limit is not None

    def found_by(self, layer: int) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
        """(index, birth, members) of the leaders born before `layer`."""
        rows = zip(self.leaders, self.born, self.members, strict=True)
        return tuple(row for row in rows if row[1] < layer)


def layers_of(z: Any, A: Any = None, alpha: Any = 1.0, gamma: Any = None) -> Iterator[State]:
    """The exact layers, one after the other, for ever."""
    state = State.of(z, A, alpha, gamma)
    while True:
        yield state
        state = state.step()


def _births(state: State, k: int, known: dict[int, tuple[int, tuple[int, ...]]]) -> None:
    """Log the classes that choose themselves alone for the first time."""
    taken = {i for _, (_, members) in known.items() for i in members}
    here = {tuple(state.top[i]) for i in taken}
    for i in sorted(state.strict()):
        if tuple(state.top[i]) not in here:
            same = tuple(j for j, row in enumerate(state.top) if row == state.top[i])
            known[i] = (k, same)
            here.add(tuple(state.top[i]))


def confirm(state: State, limits: Points, extra: int) -> None:
    """Watch further layers: same choices, and exactly (1 - gamma) per layer."""
    gaps = [
        [a - b for a, b in zip(x, y, strict=True)] for x, y in zip(state.z, limits, strict=True)
    ]
    sets, keep = state.sets, 1 - state.gamma
    for _ in range(extra):
        state = state.step()
        gaps = [[keep * g for g in row] for row in gaps]
        moved = [
            [a - b for a, b in zip(x, y, strict=True)] for x, y in zip(state.z, limits, strict=True)
        ]
        if moved != gaps:
            raise AssertionError("the distance to the claimed limit does not shrink as it should")
        if state.gamma < 1 and state.sets != sets:
            raise AssertionError("a settled layer changed its choices")


def answer(
    z: Any,
    A: Any = None,
    alpha: Any = 1.0,
    gamma: Any = None,
    max_depth: int = 150,
    extra: int = 2,
) -> Answer:
    """Iterate exactly until the limit is certain, or `max_depth` layers are done."""
    known: dict[int, tuple[int, tuple[int, ...]]] = {}
    sets, margins, rule, k = [], [], None, 0
    for k, state in enumerate(layers_of(z, A, alpha, gamma)):
        _births(state, k, known)
        sets.append(state.sets)
        margins.append(min(state.margins))
        rule = next((name for name, holds in RULES if holds(state)), None)
        if rule is not None or k >= max_depth:
            break
    limits = None
    if rule is not None:
        x, low = state.targets()
        limits = [[Fraction(a, low) for a in row] for row in x]
        if state.gamma == 1:
            limits = state.step().z
        confirm(state, limits, extra)
    order = tuple(sorted(known))
    spots = {tuple(state.z[i]): c for c, i in enumerate(order)}
    return Answer(
        settled_at=k if rule is not None else None,
        rule=rule,
        limit=limits,
        leaders=order,
        born=tuple(known[i][0] for i in order),
        members=tuple(known[i][1] for i in order),
        labels=None if limits is None else tuple(spots.get(tuple(x), -1) for x in limits),
        margin=min(margins),
        margins=tuple(margins),
        sets=tuple(sets),
        layers=k,
    )


def changes(answer: Answer) -> list[int]:
    """The layers at which some token chose otherwise than a layer before."""
    return [k + 1 for k, (a, b) in enumerate(pairwise(answer.sets)) if a != b]
