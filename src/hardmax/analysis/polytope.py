"""The convex hull of finitely many points: the limit polytope K of the tokens.

In the limit every token lies in a finite set S in the boundary of a convex
polytope K whose vertices are the leaders.  `Polytope.of` builds K from the
limit points, flat or degenerate sets included.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from hardmax._errors import InputError, ShapeError
from hardmax._types import ArrayLike, Bools, Floats, Ints
from hardmax.analysis._exact_body import ExactBody
from hardmax.analysis._float_body import FloatBody
from hardmax.analysis._hull_frame import distinct_rows

Rows = list[list[Fraction]]


@dataclass(frozen=True, eq=False, repr=False)
class Polytope:
    """Convex hull of a finite set of points, of any dimension.

    Use `Polytope.of(points)`; the fields are filled there.

    Attributes
    ----------
    points : (m, d) array
        The distinct given points, in the order of their first appearance.
    vertices : (v, d) array
        The vertices: counter-clockwise when `dim` is 2, else by index.
    vertex_indices : (v,) array
        Index of each vertex in the given points, the smallest where points repeat.
    dim : int
        Dimension of the affine hull: 0 for a point, 1 for a segment.
    exact : bool
        Whether everything is decided in rational numbers.
    vertices_exact : list of lists of Fraction, or None
        The vertices without rounding, in the exact case.
    tol : float
        Tolerance of the float case, relative to the size of the set.

    Notes
    -----
    Counter-clockwise in a plane of R^d means so in the first two coordinates
    in which the polygon has area.  The size of a set is its largest extent along
    a coordinate (for a single point: its largest coordinate).

    Examples
    --------
    >>> square = Polytope.of([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])
    >>> square.dim, square.vertex_indices.tolist()
    (2, [0, 1, 2, 3])
    >>> square.faces
    ((0, 1), (0, 3), (1, 2), (2, 3))
    >>> square.contains([0.5, 1.0]), square.on_boundary([0.5, 0.5])
    (True, False)
    """

    points: Floats
    vertices: Floats
    vertex_indices: Ints
    dim: int
    exact: bool
    vertices_exact: Rows | None
    tol: float
    _body: FloatBody | ExactBody = field(repr=False)

    @classmethod
    def of(
        cls, points: ArrayLike, *, tol: float = 1e-9, known_vertices: Sequence[int] = ()
    ) -> Polytope:
        """Convex hull of points in R^d, given as rows.

        Parameters
        ----------
        points : (m, d) array, tensor, or lists of numbers
            At least one point.  One `Fraction` among lists of numbers makes the
            polytope exact: then each coordinate counts as the rational it is.
        tol : float
            Differences below `tol` times the size of the set count as nothing, as
            do differences below the rounding of the coordinates.  Unused when exact.
        known_vertices : sequence of int
            Indices of points that are vertices for sure (leaders); their tests
            may be skipped and they are not checked.

        Returns
        -------
        Polytope

        Raises
        ------
        ShapeError
            If the points are not rows of one length.
        InputError
            If a coordinate is not a finite number, `tol` is not in [0, 1), or an
            index is out of range.

        Notes
        -----
        In the float case a set thinner than `tol` counts as flat, and a vertex sticks
        out of the hull of the others by more than `tol` / 8.  Each given point is
        within 2 `tol` of the hull of the vertices, the default tolerance of `contains`.
        """
        if not _is_real(tol) or not 0 <= tol < 1:
            raise InputError(f"`tol` must be in [0, 1); got {tol!r}. It is relative: try 1e-9.")
        given = _floats(points, "points")
        if given.ndim != 2 or given.shape[0] == 0 or given.shape[1] == 0:
            raise ShapeError(
                f"`points` must be (m, d) with at least one point; got {given.shape}. "
                "Give one row per point."
            )
        known = _known(known_vertices, len(given))
        if _has_fractions(points):
            return cls._of_fractions(given, _fractions(points), tol, known)
        return cls._of_floats(given, tol, known)

    @classmethod
    def _of_floats(cls, given: Floats, tol: float, known: list[int]) -> Polytope:
        first, which = distinct_rows(given)
        points = given[first]
        body = FloatBody.of(points, tol, sorted({int(which[i]) for i in known}))
        rows = body.rows
        fixed = [_frozen(x) for x in (points, points[rows], first[rows])]
        return cls(fixed[0], fixed[1], fixed[2], body.dim, False, None, float(tol), body)

    @classmethod
    def _of_fractions(cls, given: Floats, rows: Rows, tol: float, known: list[int]) -> Polytope:
        seen: dict[tuple[Fraction, ...], int] = {}
        which = [seen.setdefault(tuple(row), len(seen)) for row in rows]
        first = np.unique(which, return_index=True)[1]
        body = ExactBody.of(list(seen), sorted({which[i] for i in known}))
        index = first[body.rows]
        exact = [list(rows[i]) for i in index]
        fixed = [_frozen(x) for x in (given[first], given[index], index)]
        return cls(fixed[0], fixed[1], fixed[2], body.dim, True, exact, float(tol), body)

    def __repr__(self) -> str:
        kind = "exact" if self.exact else "float"
        count, width = self.vertices.shape
        return f"Polytope(dim={self.dim}, vertices={count}, ambient={width}, {kind})"

    @cached_property
    def faces(self) -> tuple[tuple[int, ...], ...]:
        """Facets: faces of dimension `dim` - 1 as sorted indices into `vertices`.

        A point has none, a segment its two ends, a polygon its edges.  In the
        float case simplices in one plane up to the tolerance are one facet.

        Raises
        ------
        InputError
            If they may be too many to enumerate (many vertices above dimension 8).
        """
        if self.dim == 0:
            return ()
        if self.dim == 1:
            return ((0,), (1,))
        body = self._body
        sets = body.facets if isinstance(body, ExactBody) else body.facets[0]
        return tuple(tuple(int(i) for i in members) for members in sets)

    def contains(self, x: ArrayLike, *, tol: float | None = None) -> bool | Bools:
        """Whether points belong to the polytope, boundary included.

        Parameters
        ----------
        x : (d,) or (k, d) array, tensor, or lists of numbers
            For an exact polytope each number counts as the rational it is.
        tol : float, optional
            Distance still accepted, relative to the size of the set.  Default: twice
            the tolerance of the polytope.  An exact one decides in rationals, with 0;
            without `tol` it also accepts floats that miss it by their rounding alone,
            such as 1/3 in a double; a positive `tol` makes it decide in floats.

        Returns
        -------
        bool, or (k,) array of bools

        Raises
        ------
        ShapeError
            If x does not have d columns.
        InputError
            If a coordinate is not finite.
        """
        return self._ask("contains", x, tol)

    def on_boundary(self, x: ArrayLike, *, tol: float | None = None) -> bool | Bools:
        """Whether points belong to a proper face of the polytope.

        This is the relative boundary: inside a flat polytope the middle is no
        boundary.  A single point has no proper face and counts as its own boundary.
        Arguments, result and errors are those of `contains`.

        Notes
        -----
        In the float case above dimension 3 the tolerance is measured to the facet
        behind the point as seen from the mean of the vertices.
        """
        return self._ask("on_boundary", x, tol)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; fractions as "p/q", `faces` None where they are too many."""
        try:
            faces: list[list[int]] | None = [list(face) for face in self.faces]
        except InputError:
            faces = None
        exact = self.vertices_exact
        return {
            "dim": self.dim,
            "points": self.points.tolist(),
            "vertices": self.vertices.tolist(),
            "vertex_indices": self.vertex_indices.tolist(),
            "faces": faces,
            "exact": self.exact,
            "vertices_exact": exact and [[str(value) for value in row] for row in exact],
            "tol": self.tol,
        }

    @cached_property
    def _rounded(self) -> FloatBody:
        """The same hull in floats, for questions with a tolerance."""
        return FloatBody.of(self.points, self.tol)

    def _ask(self, question: str, x: ArrayLike, tol: float | None) -> bool | Bools:
        """Put one question to the body for one point or for rows of points."""
        if tol is not None and not (_is_real(tol) and 0 <= tol < np.inf):
            raise InputError(f"`tol` must be at least 0 and finite; got {tol!r}.")
        values = _floats(x, "x")
        width = self.points.shape[1]
        if values.ndim not in (1, 2) or values.shape[-1] != width:
            raise ShapeError(
                f"`x` must be ({width},) or (k, {width}) to match the polytope; got {values.shape}."
            )
        rows = np.atleast_2d(values)
        if self.exact and not tol:
            given = values if hasattr(x, "detach") else x  # integers beyond 2^53 stay exact
            exact = _fractions([given] if values.ndim == 1 else given)
            answer = np.asarray([getattr(self._body, question)(row) for row in exact], dtype=bool)
            if tol is None:
                near = ~answer & _holds_floats(given, rows)
                answer[near] = getattr(self._rounded, question)(rows[near], 0.0)
        else:
            body = self._rounded if isinstance(self._body, ExactBody) else self._body
            answer = getattr(body, question)(rows, tol)
        return bool(answer[0]) if values.ndim == 1 else answer


def _frozen(x: Any) -> Any:
    """A copy that cannot be written to."""
    copy = np.array(x)
    copy.setflags(write=False)
    return copy


def _has_fractions(x: ArrayLike) -> bool:
    """Whether nested lists (or an array of objects) hold a Fraction."""
    if isinstance(x, Fraction):
        return True
    if isinstance(x, np.ndarray):
        return x.dtype == object and any(map(_has_fractions, x.flat))
    return isinstance(x, (list, tuple)) and any(map(_has_fractions, x))


def _holds_floats(x: ArrayLike, rows: Floats) -> Bools:
    """Which of the rows have a float among their numbers, which may have been rounded."""
    if isinstance(x, np.ndarray) and x.dtype != object:
        return np.full(len(rows), x.dtype.kind == "f")
    parts = np.array(x, dtype=object).reshape(rows.shape)
    return np.array([any(isinstance(v, float | np.floating) for v in row) for row in parts])


def _floats(x: ArrayLike, name: str) -> Floats:
    """Finite doubles from arrays, tensors and nested lists."""
    if hasattr(x, "detach"):
        x = x.detach().cpu().double().numpy()
    try:
        values = np.array(x, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ShapeError(
            f"`{name}` must be rows of numbers of one length, each within the range of a "
            f"double; got {type(x).__name__} ({error})."
        ) from error
    if not np.isfinite(values).all():
        raise InputError(f"`{name}` must be finite; got NaN or infinity. Remove those rows.")
    return values


def _fractions(x: ArrayLike) -> Rows:
    """Rows of numbers as the rationals they are."""
    try:
        return [[_fraction(value) for value in row] for row in x]
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"Exact coordinates must be Fraction, int or finite float, in rows; got {error}."
        ) from error


def _fraction(value: Any) -> Fraction:
    """A number as a Fraction; NumPy scalars through their Python value."""
    return Fraction(value.item() if isinstance(value, np.generic) else value)


def _is_real(x: Any) -> bool:
    return isinstance(x, int | float | Fraction | np.integer | np.floating)


def _known(indices: Sequence[int], count: int) -> list[int]:
    known = list(indices) if isinstance(indices, Iterable) else [indices]
    if any(not isinstance(i, int | np.integer) or not 0 <= i < count for i in known):
        raise InputError(
            f"`known_vertices` must be indices from 0 to {count - 1}; got {indices!r}. "
            "Give positions in `points`."
        )
    return [int(i) for i in known]
