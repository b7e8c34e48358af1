"""What was read and what was wrong with it: counts, places, lengths, classes."""

from __future__ import annotations

from dataclasses import dataclass

from hardmax._errors import DataError
from hardmax.learn._read_bytes import shown
from hardmax.learn._read_columns import Label

__all__ = ["FEW", "KINDS", "ClassCount", "Lengths", "Problem", "TextReport"]

FEW = 5
"""How many places of each kind of problem a report names."""
KINDS: dict[str, tuple[bool, str]] = {
    "encoding": (True, "bytes or characters that the encoding does not have"),
    "nul": (True, "a NUL character in the text or the label"),
    "quote": (True, "a quote that does not close, or text after a closing quote"),
    "ragged": (True, "more or fewer cells than the header"),
    "json": (True, "a line that is not a JSON object"),
    "text missing": (True, "no text under the chosen name, or not text"),
    "text empty": (True, "a text without a visible character"),
    "text too long": (True, "more than 16 MiB"),
    "label missing": (True, "an empty label"),
    "label unknown": (True, "a label that is not among the expected ones"),
    "duplicate": (False, "a text that an earlier row holds as well; kept"),
    "other label": (False, "a text that also occurs with another label; kept"),
    "one class": (False, "all rows have the same label"),
}
"""Each kind of problem: whether its rows are skipped, and what it is."""


@dataclass(frozen=True)
class Problem:
    """One kind of problem: how many rows have it, and the first places as `file:row`."""

    kind: str
    count: int
    skipped: bool
    rows: tuple[str, ...]
    message: str


@dataclass(frozen=True)
class ClassCount:
    """A label and the number of its rows."""

    label: Label
    count: int


@dataclass(frozen=True)
class Lengths:
    """Lengths of the texts in characters."""

    shortest: int
    median: float
    mean: float
    longest: int


@dataclass(frozen=True)
class TextReport:
    """The outcome of one pass over a source of texts.

    Parameters
    ----------
    source, format
        The name of the file, and what it was read as.
    columns
        One sentence on the columns, and which of them were guessed.
    rows, used, skipped
        Rows met, rows given out, rows left out; `rows == used + skipped`.
    classes
        The labels with their counts; numbers by size, texts by alphabet.
    positive, positive_rule
        The positive one of two classes (None otherwise) and why.
    lengths
        Of the texts used, in characters.
    problems
        What was found, one record per kind, with the first places.
    notes
        What else was decided or left out.
    """

    source: str
    format: str
    columns: str
    rows: int
    used: int
    skipped: int
    classes: tuple[ClassCount, ...]
    positive: Label | None
    positive_rule: str
    lengths: Lengths | None
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]

    def problem(self, kind: str) -> Problem | None:
        """The problem of that kind, or None where there was none."""
        return next((p for p in self.problems if p.kind == kind), None)

    def require_classes(self) -> None:
        """Nothing, when the rows can train or test a classifier.

        Raises
        ------
        DataError
            If there are fewer than two classes.
        """
        if len(self.classes) < 2:
            only = f"only {shown(self.classes[0].label)!r}" if self.classes else "no label"
            raise DataError(
                f"{self.source}: expected two or more labels, got {only} in {self.used} rows. "
                "Give a file with rows of each class, or choose another label column."
            )
