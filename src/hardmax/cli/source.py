"""What SOURCE means: a file of tokens or the name of an arrangement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hardmax._errors import InputError

__all__ = ["Tokens", "read_source"]


@dataclass(frozen=True)
class Tokens:
    """Tokens with their names and what the file states beside them."""

    points: Any
    names: tuple[str, ...] | None
    title: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, d) or (b, n, d)."""
        if isinstance(self.points, list):
            return len(self.points), len(self.points[0])
        return tuple(self.points.shape)

    def name(self, index: int) -> str:
        """The name of a token, with its number; or the number alone."""
        return str(index) if self.names is None else f"{self.names[index]} ({index})"

    def named(self, indices: Any) -> list[str]:
        """The names of several tokens."""
        return [str(i) if self.names is None else self.names[i] for i in indices]


def read_source(
    source: str, *, exact: bool = False, seed: int | None = None, padded: bool = False
) -> Tokens:
    """The tokens that SOURCE names.

    Fractions come from arrangements when `exact`, and from files that write
    numbers as `p/q` always.  Padded tokens are refused unless `padded`.
    """
    from hardmax.io import ENDINGS, read_table
    from hardmax.tokens.points import arrangement, is_name

    path = Path(source)
    if is_name(source):
        return Tokens(arrangement(source, exact=exact, seed=seed), None, source)
    known = path.suffix.lower() in ENDINGS or path.exists() or path.parent != Path(".")
    if not known:
        if path.suffix and ":" not in source:
            read_table(path)
        try:
            arrangement(source)
        except InputError as error:
            raise InputError(f"there is no file {source!r}, and {error}") from None
    if seed is not None:
        raise InputError("--seed belongs to random arrangements; SOURCE is a file. Leave it out.")
    table = read_table(path)
    mask = table.settings.get("mask")
    if mask is not None and not mask.all() and not padded:
        raise InputError(f"{path} states padded tokens in `mask`. Leave them out of the file.")
    return Tokens(table.points, table.names, path.name, table.settings)


def read_scores(path: Path | None, settings: Mapping[str, Any]) -> Any:
    """The score matrix: of --A, or as the file of the tokens states it."""
    from hardmax.io import read_matrix
    from hardmax.io.cells import rows_of

    if path is not None:
        return read_matrix(path)
    stated = settings.get("A")
    return rows_of(stated, "A of the file") if isinstance(stated, list) else stated
