"""One pass over the rows of a file: each is judged and counted, none is kept."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from hardmax._errors import DataError
from hardmax.learn._read_bytes import shown
from hardmax.learn._read_columns import (
    Label,
    as_label,
    label_text,
    positive_label,
    sort_labels,
)
from hardmax.learn._read_report import FEW, KINDS, ClassCount, Lengths, Problem, TextReport

__all__ = ["Digests", "Place", "Tally", "digests_of"]

Place: TypeAlias = int | str
"""A line or row number (from 1), or the name of a file."""
Digests: TypeAlias = npt.NDArray[np.uint64]
_MOST_CLASSES = 1000
_LONGEST_LABEL = 200


def digests_of(texts: Sequence[str]) -> Digests:
    """64-bit digests of texts."""
    data = (text.encode("utf-8", "surrogatepass") for text in texts)
    return np.frombuffer(b"".join(blake2b(x, digest_size=8).digest() for x in data), np.uint64)


def _flaw(text: object) -> str | None:
    """What is wrong with a text, encoding aside."""
    if not isinstance(text, str):
        return "text missing"
    if not text or text.isspace():
        return "text empty"
    return "nul" if "\0" in text else None


class Tally:
    """Judges each row of a pass and counts; 18 bytes are kept per row."""

    def __init__(
        self,
        name: str,
        *,
        labelled: bool,
        kind: type[int] | type[str],
        allowed: Sequence[Label] | None,
        named: bool,
    ) -> None:
        self._name, self._labelled, self._kind = name, labelled, kind
        self._allowed = None if allowed is None else frozenset(allowed)
        self._labels: dict[object, Label] = {}
        self._codes: dict[Label | None, int] = {}
        self._counts: Counter[str] = Counter()
        self._first: dict[str, list[str]] = {}
        self._digests, self._lengths, self._classes = bytearray(), array("I"), array("H")
        self._places: Any = [] if named else array("q")

    def bad(self, kind: str, place: Place) -> None:
        """Count a row that cannot be used."""
        self._counts[kind] += 1
        first = self._first.setdefault(kind, [])
        if len(first) < FEW:
            first.append(self._where(place))

    def _where(self, place: Place) -> str:
        return f"{self._name}:{shown(place)}"

    def take(self, value: object, label: object, place: Place) -> tuple[str, Label | None] | None:
        """The text and the label when they can be used; otherwise the row is skipped."""
        flaw, known = _flaw(value), None
        if flaw is None and self._labelled:
            known, flaw = self._label(label, place)
        if flaw is None:
            text = cast("str", value)
            try:
                data = text.encode()
            except UnicodeEncodeError:
                flaw = "encoding"
            else:
                self._keep(data, len(text), known, place)
                return text, known
        self.bad(flaw, place)
        return None

    def _keep(self, data: bytes, length: int, label: Label | None, place: Place) -> None:
        self._digests += blake2b(data, digest_size=8).digest()
        self._lengths.append(length)
        self._classes.append(self._codes.get(label, 0))
        self._places.append(place)

    def _label(self, value: object, place: Place) -> tuple[Label | None, str | None]:
        """The label, or what is wrong with it."""
        if isinstance(value, str) and value in self._labels:
            return self._labels[value], None
        text = label_text(value)
        if text is None:
            return None, "label missing"
        if "\0" in text:
            return None, "nul"
        if any("\ud800" <= c <= "\udfff" for c in text):
            return None, "encoding"
        label = as_label(text, self._kind) if len(text) <= _LONGEST_LABEL else None
        if label is None or (self._allowed is not None and label not in self._allowed):
            return None, "label unknown"
        if label not in self._codes and len(self._codes) == _MOST_CLASSES:
            raise DataError(
                f"{self._where(place)}: expected labels of at most {_MOST_CLASSES} classes, got "
                "more. Choose another label column."
            )
        self._codes.setdefault(label, len(self._codes))
        if isinstance(value, str) and len(self._labels) < 4 * _MOST_CLASSES:
            self._labels[value] = label
        return label, None

    @property
    def digests(self) -> Digests:
        """The digests of the texts given out, in their order."""
        return np.frombuffer(bytes(self._digests), dtype=np.uint64)

    def where(self, index: int) -> str:
        """The place of a row given out."""
        return self._where(self._places[index])

    def report(self, form: str, columns: str, notes: Sequence[str]) -> TextReport:
        """The record of the pass."""
        skipped = sum(self._counts.values())
        self._count_repeats()
        used = len(self._lengths)
        sizes = np.bincount(np.asarray(self._classes), minlength=len(self._codes))
        classes = tuple(
            ClassCount(label, int(sizes[self._codes[label]]))
            for label in sort_labels([label for label in self._codes if label is not None])
            if sizes[self._codes[label]]
        )
        labels = [entry.label for entry in classes]
        if len(labels) == 1:
            self._counts["one class"] = used
        positive, rule = positive_label(labels)
        return TextReport(
            self._name,
            form,
            columns,
            used + skipped,
            used,
            skipped,
            classes,
            positive,
            rule,
            self._measure(),
            tuple(self._problem(kind) for kind in KINDS if self._counts[kind]),
            tuple(notes),
        )

    def _problem(self, kind: str) -> Problem:
        skipped, message = KINDS[kind]
        rows = tuple(self._first.get(kind, ()))
        return Problem(kind, self._counts[kind], skipped, rows, message)

    def _measure(self) -> Lengths | None:
        if not self._lengths:
            return None
        sizes = np.asarray(self._lengths)
        median, mean = float(np.median(sizes)), float(sizes.mean())
        return Lengths(int(sizes.min()), median, mean, int(sizes.max()))

    def _count_repeats(self) -> None:
        """Count texts met before, and texts met with two labels."""
        if not self._lengths:
            return
        digests, codes = self.digests, np.asarray(self._classes)
        order = np.argsort(digests, kind="stable")
        starts = np.concatenate(([True], np.diff(digests[order]) != 0))
        self._note("duplicate", np.sort(order[~starts]))
        first = np.flatnonzero(starts)
        grouped = codes[order]
        mixed = np.minimum.reduceat(grouped, first) != np.maximum.reduceat(grouped, first)
        sizes = np.diff(np.append(first, len(order)))
        self._note("other label", np.sort(order[np.repeat(mixed, sizes)]))

    def _note(self, kind: str, rows: npt.NDArray[np.intp]) -> None:
        self._counts[kind] = len(rows)
        self._first[kind] = [self.where(int(k)) for k in rows[:FEW]]
