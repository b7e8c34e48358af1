"""The answer of every selection: argmax sets as rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardmax._types import Array, Floats, Ints

__all__ = ["Chosen"]


@dataclass(frozen=True)
class Chosen:
    """Who chooses whom: row i holds `indices[indptr[i]:indptr[i + 1]]`, ascending.

    Attributes
    ----------
    indptr : (m + 1,) int array
    indices : (nnz,) int array
        Key numbers, counted over all sequences.
    margin : (m,) float array
        Best score less the best score outside the set, in units of
        |A z_i| max_j |z_j|; inf where nothing is outside.  On the path "sorted" a
        lower bound, exact for the rows where it is smallest.
    path : str
        How the sets were found: a path of `plan.PATHS`, "batch" for several sequences,
        "" where there is only one way.
    """

    indptr: Ints
    indices: Ints
    margin: Floats
    path: str = ""

    @property
    def counts(self) -> Ints:
        """The number of chosen tokens of each row."""
        return np.diff(self.indptr)

    @property
    def rows(self) -> Ints:
        """The row number of each entry of `indices`."""
        return np.repeat(np.arange(len(self.indptr) - 1), self.counts)

    @property
    def single(self) -> bool:
        """Whether every row chooses exactly one token."""
        return len(self.indices) == len(self.indptr) - 1

    def row(self, i: int) -> Array:
        """The tokens that row i chooses."""
        return self.indices[self.indptr[i] : self.indptr[i + 1]]

    def take(self, rows: Ints) -> Chosen:
        """The same for some of the rows, in the order given."""
        counts = self.counts[rows]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        start = np.repeat(self.indptr[rows] - indptr[:-1], counts)
        return Chosen(
            indptr, self.indices[start + np.arange(indptr[-1])], self.margin[rows], self.path
        )
