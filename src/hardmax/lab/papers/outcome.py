"""What an item of a paper gives: numbers, what the paper says beside them, a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

__all__ = [
    "AGREES",
    "DIFFERS",
    "UNKNOWN",
    "Comparison",
    "Context",
    "Item",
    "Outcome",
    "claim",
    "near",
    "same",
    "unknown",
]

AGREES, DIFFERS, UNKNOWN = "agrees", "differs", "cannot be compared"


@dataclass(frozen=True)
class Comparison:
    """One quantity: what the paper says, what came out, and by which rule they agree.

    `exact` marks facts without chance or training: one that differs is a fault.
    """

    quantity: str
    paper: Any
    ours: Any
    rule: str
    verdict: str
    exact: bool = False


def near(
    quantity: str, paper: float, ours: float, within: float, *, why: str = "", exact: bool = False
) -> Comparison:
    """Agrees when the numbers are at most `within` apart."""
    verdict = AGREES if abs(paper - ours) <= within else DIFFERS
    rule = f"at most {within:g} apart" + (f" ({why})" if why else "")
    return Comparison(quantity, paper, ours, rule, verdict, exact)


def same(quantity: str, paper: Any, ours: Any, *, why: str = "", exact: bool = True) -> Comparison:
    """Agrees when they are equal."""
    rule = "equal" + (f" ({why})" if why else "")
    return Comparison(quantity, paper, ours, rule, AGREES if paper == ours else DIFFERS, exact)


def claim(
    statement: str, holds: bool, ours: Any, *, rule: str = "it holds", exact: bool = True
) -> Comparison:
    """Agrees when a statement of the paper (or its known correction) holds."""
    return Comparison(statement, "stated", ours, rule, AGREES if holds else DIFFERS, exact)


def unknown(quantity: str, ours: Any, why: str, paper: Any = None) -> Comparison:
    """Nothing to compare with; `why` says what is missing."""
    return Comparison(quantity, paper, ours, why, UNKNOWN)


@dataclass(frozen=True)
class Context:
    """How an item is to be computed.

    Parameters
    ----------
    short : bool
        The form for a laptop.
    seed : int
        Of everything random.
    work : Path
        Where long items keep what they have, to go on later.
    training : Path, optional
        A folder of finished trainings; nothing is trained then.
    weights : Path, optional
        The authors' own weights for d = 2, as their repository holds them.
    device : str
        For training: "cpu" or "cuda".
    cache : Path, optional
        Where the reviews are.
    progress : callable
        Called with what is done, how far, and of how much.
    """

    short: bool = False
    seed: int = 0
    work: Path = Path("reproduction")
    training: Path | None = None
    weights: Path | None = None
    device: str = "cpu"
    cache: Path | None = None
    progress: Callable[[str, int, int], None] = lambda what, done, total: None

    @property
    def form(self) -> str:
        """The name of the form."""
        return "short" if self.short else "full"

    def settings(self) -> dict[str, Any]:
        """What decides the numbers; results with other settings are other results."""
        return {
            "form": self.form,
            "seed": self.seed,
            "training": None if self.training is None else str(self.training),
            "weights": None if self.weights is None else str(self.weights),
        }


@dataclass(frozen=True)
class Outcome:
    """An item computed.

    `pictures` maps file names to what writes them; each is drawn from `numbers`
    alone.  `differences` are sentences: what is done otherwise than in the
    papers' code, and why.
    """

    item: str
    title: str
    source: str
    context: Context
    comparisons: tuple[Comparison, ...]
    numbers: Mapping[str, Any]
    pictures: Mapping[str, Callable[[BinaryIO], Any]]
    differences: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)

    @property
    def verdict(self) -> str:
        """Differs if anything does; agrees if anything does; else nothing could be compared."""
        found = {c.verdict for c in self.comparisons}
        return next((v for v in (DIFFERS, AGREES) if v in found), UNKNOWN)

    @property
    def sound(self) -> bool:
        """Whether no exact fact fails."""
        return all(c.verdict != DIFFERS for c in self.comparisons if c.exact)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        counts = {v: sum(c.verdict == v for c in self.comparisons) for v in _VERDICTS}
        return {
            "item": self.item,
            "title": self.title,
            "source": self.source,
            **self.context.settings(),
            "verdict": self.verdict,
            "counts": counts,
            "comparisons": [vars(c) for c in self.comparisons],
            "differences": list(self.differences),
            "pictures": sorted(self.pictures),
            "numbers": dict(self.numbers),
            "seconds": round(self.seconds, 1),
        }


_VERDICTS = (AGREES, DIFFERS, UNKNOWN)


@dataclass(frozen=True)
class Item:
    """One thing that can be reproduced."""

    name: str
    title: str
    compute: Callable[[Context], Outcome]
    needs: Sequence[str] = ()
