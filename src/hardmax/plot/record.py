"""A scene: every number of a picture, and nothing that needs computing.

Figures, animations and pages are drawn from scenes alone, so each picture can
be drawn again from the saved numbers of its scene.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hardmax._errors import DataError, InputError, ShapeError
from hardmax._types import Floats, Ints
from hardmax.plot.plain import from_numbers, plain, to_numbers

__all__ = ["Scene", "SceneLeader"]

_FORMAT = "hardmax-scene"
_VERSION = 1


@dataclass(frozen=True)
class SceneLeader:
    """A leader as drawn: its token, the layer it was born at, and its name."""

    index: int
    born: int
    name: str
    members: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Scene:
    """Positions of n tokens at k saved layers, who follows whom, and the limit.

    Parameters
    ----------
    zs : (k, n, d) array
        Positions; a token that is padding, or that left the finite numbers, is NaN.
    layers : k integers
        The layer number of each saved position, increasing.
    follows : (k, n) array of integers
        The token that each token chose alone at that layer, -1 where it chose several
        or none. At the last layer of a run the choice of the layer before stands.
    leaders : tuple of SceneLeader
        Sorted by token.
    names : tuple of n strings, optional
        What the tokens are called.
    limit : (n, d) array, optional
        Where each token tends; NaN where that is not known.
    vertices, faces : (m, d) array and tuples of indices into it, optional
        The limit polytope; its faces where d = 3.
    points : (s, d) array, optional
        The finite set S of limit points.
    title, status : str
        A heading, and how the run ended.
    notes : dict of plain values
        Tolerances, gamma, precision, certificate: what the numbers rest on.

    Raises
    ------
    ShapeError
        If the arrays do not fit each other.

    Examples
    --------
    >>> import numpy as np
    >>> Scene(zs=np.zeros((1, 2, 2)), layers=(0,), follows=np.array([[0, 0]])).tokens
    2
    """

    zs: Floats
    layers: tuple[int, ...]
    follows: Ints
    leaders: tuple[SceneLeader, ...] = ()
    names: tuple[str, ...] | None = None
    limit: Floats | None = None
    vertices: Floats | None = None
    faces: tuple[tuple[int, ...], ...] = ()
    points: Floats | None = None
    title: str = ""
    status: str = ""
    notes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.zs.ndim != 3:
            raise ShapeError(f"`zs` must be (k, n, d); got {self.zs.shape}. Give one system.")
        k, n, d = self.zs.shape
        if len(self.layers) != k or any(np.diff(self.layers) <= 0):
            raise ShapeError(
                f"`layers` must be {k} increasing numbers to match `zs`; got {self.layers}."
            )
        if k == 0 or n == 0 or d == 0:
            raise ShapeError(f"a scene needs a layer, a token and a coordinate; got {(k, n, d)}.")
        _fits("follows", self.follows, (k, n))
        _fits("limit", self.limit, (n, d))
        for name, array in (("vertices", self.vertices), ("points", self.points)):
            _fits(name, array, (array.shape[0] if array is not None else 0, d))
        if self.names is not None and len(self.names) != n:
            raise ShapeError(f"`names` must be {n} strings, one per token; got {len(self.names)}.")
        if any(not 0 <= leader.index < n for leader in self.leaders):
            raise ShapeError(f"a leader must be one of the {n} tokens; got {self.leaders}.")

    @property
    def tokens(self) -> int:
        """How many tokens there are, padding included."""
        return int(self.zs.shape[1])

    @property
    def dim(self) -> int:
        """How many coordinates a token has."""
        return int(self.zs.shape[2])

    @property
    def leader_indices(self) -> Ints:
        """The tokens that lead, sorted."""
        return np.array([leader.index for leader in self.leaders], dtype=np.int64)

    def row(self, layer: int) -> int:
        """Where in `zs` a layer number is."""
        if layer not in self.layers:
            raise InputError(
                f"layer {layer} is not in the scene, which holds {_listed(self.layers)}. "
                f"Choose among these with `layers=`, or save more of the run."
            )
        return self.layers.index(layer)

    def leaders_at(self, layer: int) -> Ints:
        """The tokens that lead at a layer: those born by then."""
        born = [leader.index for leader in self.leaders if leader.born <= layer]
        return np.array(born, dtype=np.int64)

    def name_of(self, token: int) -> str:
        """The name of a token, or its number."""
        return str(token) if self.names is None else self.names[token]

    def rests(self) -> Floats:
        """The points of S at which no leader stands: (r, d)."""
        if self.points is None:
            return np.empty((0, self.dim))
        seats = self.zs[-1][self.leader_indices]
        if self.limit is not None:
            seats = np.concatenate([seats, self.limit[self.leader_indices]])
        taken = {seat.tobytes() for seat in seats + 0.0}
        free = self.points[[point.tobytes() not in taken for point in self.points + 0.0]]
        near = 1e-6 * np.abs(self.points).max(initial=0.0)
        apart = [not (np.abs(seats - point).max(axis=1) <= near).any() for point in free]
        return np.array(free[np.array(apart, dtype=bool)], dtype=np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; `from_dict` gives the same scene back, bit for bit."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "zs": to_numbers(self.zs),
            "layers": [int(layer) for layer in self.layers],
            "follows": self.follows.tolist(),
            "leaders": [plain(vars(leader)) for leader in self.leaders],
            "names": None if self.names is None else list(self.names),
            "limit": to_numbers(self.limit),
            "vertices": to_numbers(self.vertices),
            "faces": [list(face) for face in self.faces],
            "points": to_numbers(self.points),
            "title": self.title,
            "status": self.status,
            "notes": plain(self.notes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Scene:
        """The scene that `to_dict` wrote; DataError if the data are something else."""
        if data.get("format") != _FORMAT or data.get("version") != _VERSION:
            raise DataError(
                f"a scene has format {_FORMAT!r} and version {_VERSION}; got "
                f"{data.get('format')!r} and {data.get('version')!r}. Save it with `to_dict`."
            )
        try:
            return cls(**_fields(data))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"a scene could not be read: {error}. Save it again.") from error


def _fields(data: Mapping[str, Any]) -> dict[str, Any]:
    width = len(data["zs"][0][0]) if data["zs"] and data["zs"][0] else 0
    return {
        "zs": from_numbers(data["zs"], width),
        "layers": tuple(int(layer) for layer in data["layers"]),
        "follows": np.array(data["follows"], dtype=np.int64),
        "leaders": tuple(
            SceneLeader(int(x["index"]), int(x["born"]), str(x["name"]), tuple(x["members"]))
            for x in data["leaders"]
        ),
        "names": None if data["names"] is None else tuple(map(str, data["names"])),
        "limit": from_numbers(data["limit"], width),
        "vertices": from_numbers(data["vertices"], width),
        "faces": tuple(tuple(map(int, face)) for face in data["faces"]),
        "points": from_numbers(data["points"], width),
        "title": str(data["title"]),
        "status": str(data["status"]),
        "notes": dict(data["notes"]),
    }


def _fits(name: str, array: Floats | Ints | None, shape: tuple[int, ...]) -> None:
    if array is not None and array.shape != shape:
        raise ShapeError(f"`{name}` must be {shape} to match `zs`; got {array.shape}.")


def _listed(layers: tuple[int, ...]) -> str:
    """The layer numbers in words, a long run of them as its two ends."""
    if len(layers) > 12 and layers[-1] - layers[0] == len(layers) - 1:
        return f"layers {layers[0]} to {layers[-1]}"
    return "layers " + ", ".join(map(str, layers))
