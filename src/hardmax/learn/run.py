"""Texts through the layers by the compiled path, in threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hardmax._types import Array, Floats, Ints
from hardmax.learn._layers import gather_rows, pool_texts
from hardmax.learn.attention import SOFT
from hardmax.select.threads import in_threads
from hardmax.tokens.batch import Tokens

__all__ = ["Pooled", "gather", "pool"]

_PER_THREAD = 8


@dataclass(frozen=True)
class Pooled:
    """Texts after the layers, and the weight of every word in the result.

    With the choices fixed, pooled[t, block of head h] is the sum of
    u[r, h] E[ids[r], block] over the kept occurrences r of text t:
    starts[t] <= r < starts[t] + kept[t].

    Attributes
    ----------
    pooled : (b, dim) array
    slope : (b, dim) array
        Derivative of each coordinate in the gamma of its head.
    ids : (N,) int32 array
    u : (N, heads) array
        Non-negative, and summing to one over each text that has words.
    starts, kept : int arrays
    turned : (b, heads, s, s, s) array
        Derivative of each coordinate in the entries of the head's A, as if the
        choice between the best and the second-best key were soft; (b, heads, 0, 0, 0)
        where it was not asked for.
    """

    pooled: Floats
    slope: Floats
    ids: npt.NDArray[np.int32]
    u: Floats
    starts: Ints
    kept: Ints
    turned: Floats

    def derivatives(self, grad: Floats) -> tuple[Floats, Floats]:
        """Gradients of gamma (heads,) and of A (heads, s, s), from that of `pooled`."""
        heads = self.u.shape[1]
        slope = (grad * self.slope).sum(axis=0).reshape(heads, -1).sum(axis=1)
        blocks = grad.reshape(len(grad), heads, -1)
        if not self.turned.shape[2]:
            return slope, np.zeros((heads, 0, 0))
        return slope, np.einsum("bhc,bhcrk->hrk", blocks, self.turned)


def pool(
    E: Array,
    gamma: Floats,
    tokens: Tokens,
    rows: Ints,
    *,
    depth: int,
    tie_tol: float,
    A: Floats | None = None,
    learn: bool = False,
    drop: float = 0.0,
    hide: float = 0.0,
    seed: int = 0,
) -> Pooled:
    """Texts `rows` of `tokens` through `depth` layers and the mean.

    Parameters
    ----------
    E : (size, dim) array
    gamma : (heads,) array
    A : (heads, s, s) array, optional
        The scores <A z_i, z_j> of each head; the identity when None.
    learn : bool
        Whether the derivative in A is wanted.
    drop, hide : float
        Shares of the words left out, and of the keys hidden, at random by `seed`.
    """
    counts = tokens.starts[rows + 1] - tokens.starts[rows]
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    b, dim, heads = len(rows), E.shape[1], len(gamma)
    mats = np.zeros((heads, 0, 0)) if A is None else np.ascontiguousarray(A)
    size = mats.shape[1] if learn else 0
    out = Pooled(
        np.zeros((b, dim)),
        np.zeros((b, dim)),
        np.empty(starts[-1], dtype=np.int32),
        np.empty((starts[-1], heads)),
        starts,
        np.zeros(b, dtype=np.int64),
        np.zeros((b, heads, size, size, size)),
    )

    def part(first: int, stop: int) -> None:
        pool_texts(
            E, gamma, mats, tokens.ids, tokens.counts, tokens.offsets, tokens.texts, rows, starts,
            first, stop, depth, tie_tol, SOFT, drop, hide, seed, out.ids, out.u, out.kept,
            out.pooled, out.slope, out.turned,
        )  # fmt: skip

    in_threads(part, b, _PER_THREAD)
    return out


def gather(run: Pooled, grad: Floats, place: Ints) -> tuple[Ints, Floats]:
    """The tokens of a run, once each, and the gradient of their vectors.

    `grad` is the gradient of `run.pooled`; `place` is a row of -1, one per token
    of the vocabulary.
    """
    rows = np.empty(len(run.ids), dtype=np.int64)
    out = np.empty((len(run.ids), grad.shape[1]))
    m = gather_rows(run.ids, run.u, run.starts, run.kept, grad, place, rows, out)
    return rows[:m], out[:m]
