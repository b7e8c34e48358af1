"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from hardmax._errors import InputError

__all__ = [
    "Alpha",
    "Axes",
    "Force",
    "Gamma",
    "Json",
    "Matrix",
    "Out",
    "Search",
    "SearchPath",
    "Seed",
    "Source",
    "read_axes",
    "read_layers",
    "read_steps",
]

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A file of tokens (.csv .tsv .npy .npz .json) or an arrangement: triangle, emerging, "
        "square, edges, tie-breaks, tie-leaves, gaussian:n=100,d=2,seed=0, uniform:, ball:, "
        "sphere:, clusters:n=100,d=2,k=5,spread=0.1, lattice:m=3,d=2.",
    ),
]
Alpha = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER", help="Strength > 0: .5, 1/2, or one per layer: 1,.5,.25; 1 by default."
    ),
]
Gamma = Annotated[
    str | None,
    typer.Option(metavar="NUMBER", help="Step in (0, 1] instead of alpha; also one per layer."),
]
Matrix = Annotated[
    Path | None,
    typer.Option("--A", metavar="FILE", help="The (d, d) score matrix; or U and V in .npz/.json."),
]
Out = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Write .png .pdf .svg .gif .html .json or .npz; may be given several times.",
    ),
]
Axes = Annotated[
    str | None, typer.Option(metavar="I,J", help="The coordinates that pictures show.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the data of the result as JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Seed of a random arrangement.", show_default="0")
]


class SearchPath(StrEnum):
    """How the largest scores are searched; the names of `hardmax.select`."""

    auto = "auto"
    brute = "brute"
    hull = "hull"
    sorted = "sorted"
    twostage = "twostage"
    reference = "reference"


Search = Annotated[
    SearchPath, typer.Option(help="How the largest scores are searched; all give the same sets.")
]


def read_steps(alpha: str | None, gamma: str | None, settings: Any, *, exact: bool) -> Any:
    """`alpha` or `gamma` as a keyword of the library: given, or as the file states."""
    if alpha is not None and gamma is not None:
        raise InputError("--alpha and --gamma were both given. Give one of them.")
    if alpha is not None:
        return {"alpha": _numbers("--alpha", alpha, exact)}
    if gamma is not None:
        return {"gamma": _numbers("--gamma", gamma, exact)}
    stated = {key: settings[key] for key in ("alpha", "gamma") if key in settings}
    if len(stated) > 1:
        raise InputError("the file states both alpha and gamma. Give --alpha or --gamma.")
    return {key: _stated(key, value, exact) for key, value in stated.items()}


def _numbers(name: str, text: str, exact: bool) -> Any:
    values = [_number(name, part, exact) for part in text.split(",")]
    return values[0] if len(values) == 1 else values


def _number(name: str, text: str, exact: bool) -> float | Fraction:
    from hardmax.io.cells import exact_number

    try:
        value = exact_number(text)
    except ValueError as error:
        wanted = "a number such as .5 or 1/2"
        raise InputError(f"{name}: expected {wanted}, but {text!r} {error}.") from None
    return value if exact else float(value)


def _stated(key: str, value: Any, exact: bool) -> Any:
    value = getattr(value, "tolist", lambda: value)()  # an array of an NPZ file
    parts = value if isinstance(value, list) else [value]
    if not parts or any(isinstance(part, bool | list | dict) or part is None for part in parts):
        raise InputError(f"the file states {key} = {value!r}; expected a number or a list of them.")
    same = all(part == parts[0] for part in parts)
    return _numbers(key, ",".join(map(str, parts[:1] if same else parts)), exact)


def read_layers(text: str | None, depth: int) -> list[int] | None:
    """`0,1,2,5,30` as increasing layer numbers up to `depth`."""
    if text is None:
        return None
    layers = _integers("--layers", text)
    wrong = [k for k in layers if k > depth]
    if wrong:
        raise InputError(f"--layers: {wrong[0]} is beyond the depth {depth}. Give --depth too.")
    return sorted(set(layers))


def read_axes(text: str | None, d: int) -> tuple[int, ...] | None:
    """`0,1` as two or three different coordinates below d."""
    if text is None:
        return None
    axes = tuple(_integers("--axes", text))
    if len(axes) not in (2, 3) or len(set(axes)) < len(axes) or max(axes) >= d:
        wanted = f"two or three different coordinates of 0 to {d - 1}"
        raise InputError(f"--axes: expected {wanted}, got {text!r}.")
    return axes


def _integers(name: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise InputError(f"{name}: expected whole numbers such as 0,1,2, got {text!r}.")
    return [int(part) for part in parts]
