"""Wishes whose answer is known: with a planted A, or impossible by construction.

Each case is (tokens, leads, follows), and None where the draw came out degenerate.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

Case = tuple[object, list[int], list[tuple[int, int]]]


def _size(rng: np.random.Generator, low: int, high: int) -> int:
    return int(np.exp(rng.uniform(np.log(low), np.log(high + 1))))


def _grid(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Gaussian tokens with few binary digits, so that sums are exact."""
    return np.round(rng.normal(size=(n, d)) * 64) / 64


def planted(seed: int) -> Case | None:
    """n 3-200, d 1-10, eight kinds of tokens; some of what a random definite A does."""
    rng = np.random.default_rng([1, seed])
    d, n = int(rng.integers(1, 11)), _size(rng, 3, 200)
    z = rng.normal(size=(n, d))
    z = (
        lambda: z,
        lambda: z + 3 * rng.normal(size=d),
        lambda: rng.integers(-5, 6, size=(n, d)).astype(float),
        lambda: z.astype(np.float32).astype(float) * 10.0 ** rng.integers(-6, 7),
        lambda: z * 10.0 ** rng.uniform(-3, 3, size=d),
        lambda: z / np.linalg.norm(z, axis=1, keepdims=True),
        lambda: np.column_stack([z[:, 1:], np.ones(n)]),
        lambda: z[rng.integers(0, n, size=n)],
    )[seed % 8]()
    Q, _ = np.linalg.qr(rng.normal(size=(d, d)))
    A = (Q * 10.0 ** rng.uniform(-(seed % 4), seed % 4, size=d)) @ Q.T
    scores = z @ (A + A.T) @ z.T / 2
    target = scores.argmax(axis=1)
    equal = (z[:, None] == z).all(axis=2)
    second = np.where(equal[target], -np.inf, scores).max(axis=1)
    clear = scores.max(axis=1) - second > 1e-9 * np.abs(scores).max(axis=1)
    leads = rng.permutation([i for i in range(n) if clear[i] and equal[i, target[i]]]).tolist()
    if not leads:
        return None
    most = len(leads) if seed % 2 else 4
    leads = leads[: int(rng.integers(1, min(most, len(leads)) + 1))]
    pairs = [
        (i, next(v for v in leads if equal[target[i], v]))
        for i in rng.permutation(n).tolist()
        if clear[i] and not equal[i, target[i]] and equal[target[i], leads].any()
    ]
    return z, leads, pairs[: int(rng.integers(0, (len(pairs) if seed % 4 == 3 else 4) + 1))]


def inside(rng: np.random.Generator) -> Case:
    """In the interior of the hull of d + 2 others."""
    d = int(rng.integers(1, 9))
    z = rng.normal(size=(_size(rng, d + 3, 120), d))
    z[0] = rng.dirichlet(np.ones(d + 2)) @ z[1 : d + 3]
    return [[Fraction(v) for v in row] for row in z.tolist()], [0], []


def midpoint(rng: np.random.Generator) -> Case:
    """Half way between two others."""
    z = _grid(rng, _size(rng, 3, 200), int(rng.integers(1, 11)))
    z[0] = (z[1] + z[2]) / 2
    return z, [0], []


def on_a_face(rng: np.random.Generator) -> Case:
    """A rational mean of 2 to d + 1 others, among far ones that may lead."""
    d = int(rng.integers(2, 11))
    m = int(rng.integers(2, d + 2))
    drawn = rng.normal(size=(_size(rng, m + 3, 100), d))
    z = [[Fraction(v) for v in row] for row in drawn.tolist()]
    w = [Fraction(int(v)) for v in rng.integers(1, 9, size=m)]
    z[0] = [sum(w[k] * z[1 + k][c] for k in range(m)) / sum(w) for c in range(d)]
    return z, [0, int(np.linalg.norm(drawn[1:], axis=1).argmax()) + 1], []


def shorter(rng: np.random.Generator) -> Case:
    """The same direction as a longer token."""
    z = _grid(rng, _size(rng, 3, 200), int(rng.integers(1, 11)))
    z[0] = z[1] / 4
    return z, [0], []


def duplicate(rng: np.random.Generator) -> Case:
    """Two equal tokens, of which one shall lead and one follow another."""
    z = rng.normal(size=(_size(rng, 4, 60), int(rng.integers(1, 7))))
    z[1] = z[0]
    return z, [0, 2], [(1, 2)]


def contradictory(rng: np.random.Generator) -> Case:
    """One token shall follow two."""
    return rng.normal(size=(_size(rng, 4, 60), int(rng.integers(1, 7)))), [0, 1], [(2, 0), (2, 1)]


def zero(rng: np.random.Generator) -> Case:
    """The zero token shall lead or follow."""
    z = rng.normal(size=(_size(rng, 4, 60), int(rng.integers(1, 7))))
    z[0] = 0
    return (z, [0], []) if rng.random() < 0.5 else (z, [1], [(0, 1)])


def collinear(rng: np.random.Generator) -> Case | None:
    """The middle one of tokens on a line."""
    d, n = int(rng.integers(1, 8)), _size(rng, 3, 60)
    u, v = rng.integers(-5, 6, size=(2, d))
    t = rng.permutation(200)[:n] - 100.0
    return (v + np.outer(t, u), [int(np.argsort(t)[n // 2])], []) if u.any() else None


def crossing(rng: np.random.Generator) -> Case:
    """x follows p and y follows q, but x - y is opposite to p - q; each wish alone may hold."""
    z = _grid(rng, _size(rng, 5, 80), int(rng.integers(2, 11)))
    z[3] = z[2] + (z[0] - z[1]) / 2
    return z, [0, 1], [(2, 0), (3, 1)]


def cycle(rng: np.random.Generator) -> Case:
    """3 to 8 followers on the far sides of their leaders."""
    m, d = int(rng.integers(3, 9)), int(rng.integers(2, 11))
    z = _grid(rng, _size(rng, 2 * m, 60), d)
    z[m : 2 * m] = _grid(rng, 1, d) - z[:m] / 2
    return z, list(range(m)), [(m + i, i) for i in range(m)]


def summed(rng: np.random.Generator) -> Case:
    """Followers of p and of q whose sums differ by q - p."""
    m, d = int(rng.integers(2, 5)), int(rng.integers(2, 7))
    z = _grid(rng, _size(rng, 2 * m + 2, 60), d)
    one, two = z[2 : 2 + m], z[2 + m : 1 + 2 * m]
    z[1 + 2 * m] = one.sum(axis=0) - two.sum(axis=0) + z[0] - z[1]
    follows = [(2 + i, 0) for i in range(m)] + [(2 + m + i, 1) for i in range(m)]
    return z, [0, 1], follows


def opposed(rng: np.random.Generator) -> Case:
    """One wish needs <A z_0, z_1> < 0 and another > 0."""
    z = _grid(rng, _size(rng, 6, 80), int(rng.integers(2, 9)))
    z[2], z[3] = z[0] + z[1], z[4] + z[0]
    return z, [0, 3], [(1, 3)]


def lattice(rng: np.random.Generator) -> Case:
    """An inner point of a lattice, with corners."""
    d = int(rng.integers(1, 4))
    z = np.stack(np.meshgrid(*[np.arange(-2.0, 3)] * d), axis=-1).reshape(-1, d)
    inner = np.flatnonzero(np.abs(z).max(axis=1) < 2)
    return z, [int(rng.choice(inner)), 0], []


IMPOSSIBLE = (
    inside,
    midpoint,
    on_a_face,
    shorter,
    duplicate,
    contradictory,
    zero,
    collinear,
    crossing,
    cycle,
    summed,
    opposed,
    lattice,
)
