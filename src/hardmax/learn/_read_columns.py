"""Which columns hold the text and the label: as named, or guessed and said."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hardmax._errors import DataError, InputError
from hardmax.learn._read_bytes import shown

__all__ = [
    "LABELS",
    "TEXTS",
    "Column",
    "Columns",
    "Label",
    "as_label",
    "choose_columns",
    "label_kind",
    "label_text",
    "positive_label",
    "sort_labels",
]

Label: TypeAlias = str | int
Column: TypeAlias = str | int

_TEXTS = (
    "text review sentence comment content body document message tweet phrase statement reviewtext "
    "reviewbody reviewcontent fulltext rawtext utterance sms"
)
TEXTS = tuple(_TEXTS.split())
"""Names taken for the text, best first; case, blanks, `-` and `_` do not count."""
_LABELS = (
    "label sentiment class target polarity category rating stars star score labels y tag overall "
    "labeltext sentimentlabel"
)
LABELS = tuple(_LABELS.split())
"""Names taken for the label, best first."""
_POSITIVE = ("positive", "pos", "1", "true", "yes", "good", "fresh", "+")
_NEGATIVE = ("negative", "neg", "0", "-1", "false", "no", "bad", "rotten", "-")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}(\.0+)?")
_NAMED = 20


@dataclass(frozen=True)
class Columns:
    """The columns of a file and the two that are read.

    Parameters
    ----------
    text, label
        The names, or the position where the file has no header line; `label`
        is None where labels are not read.
    guessed
        Those of "text" and "label" that were guessed from the names.
    available
        All columns, in the order of the file.
    """

    text: Column
    label: Column | None
    guessed: tuple[str, ...]
    available: tuple[str, ...]

    @property
    def statement(self) -> str:
        """One sentence on what was chosen and what was guessed."""
        parts = [f"text from {_said(self.text)}{self._how('text')}"]
        if self.label is not None:
            parts.append(f"label from {_said(self.label)}{self._how('label')}")
        return ", ".join(parts)

    def _how(self, role: str) -> str:
        return " (guessed)" if role in self.guessed else ""


def _said(column: Column) -> str:
    return f"column {column}" if isinstance(column, int) else f"column {shown(column)!r}"


def choose_columns(
    available: Sequence[str], text: Column | None, label: Column | None, where: str, labelled: bool
) -> Columns:
    """The two columns to read.

    Raises
    ------
    DataError
        If a named column is not there (with the columns there are and near
        misses), or if none looks like the one that was not named.
    """
    names = tuple(available)
    guessed = []
    taken: list[Column] = [name for name in (text, label) if name is not None]
    if text is None:
        others = [name for name in names if name not in taken]
        text = _guess(others, TEXTS)
        if text is None and labelled and len(names) == 2:
            text = _other(names, label if label is not None else _guess(names, LABELS))
        if text is None:
            raise _nothing(names, "text", where)
        guessed.append("text")
    if labelled and label is None:
        label = _guess([name for name in names if name != text], LABELS)
        if label is None and len(names) == 2:
            label = _other(names, text)
        if label is None:
            raise _nothing(names, "label", where)
        guessed.append("label")
    chosen = [text] if label is None or not labelled else [text, label]
    for role, name in zip(("text", "label"), chosen, strict=False):
        _check_there(name, names, role, where)
    if len(chosen) == 2 and chosen[0] == chosen[1]:
        raise InputError(f"{where}: text and label are both {_said(text)}. Name two columns.")
    return Columns(text, label if labelled else None, tuple(guessed), names)


def _guess(names: Sequence[str], known: Sequence[str]) -> str | None:
    bare = [re.sub(r"[\s_.-]+", "", name).casefold() for name in names]
    return next((names[bare.index(word)] for word in known if word in bare), None)


def _other(names: Sequence[str], one: Column | None) -> str | None:
    """The second of two columns, where one is known."""
    if one not in names:
        return None
    return names[1] if names[0] == one else names[0]


def _check_there(name: Column, names: Sequence[str], role: str, where: str) -> None:
    if isinstance(name, int):
        if not 0 <= name < len(names):
            raise DataError(
                f"{where}: expected {role} in column {name}, got columns 0 to {len(names) - 1}."
            )
        return
    if names.count(name) > 1:
        raise DataError(f"{where}: {_said(name)} is there {names.count(name)} times. Rename one.")
    if name not in names:
        folded = {other.casefold(): other for other in names}
        near = difflib.get_close_matches(name.casefold(), list(folded), n=2, cutoff=0.6)
        hint = " or ".join(repr(shown(folded[key])) for key in near)
        raise DataError(
            f"{where}: expected {role} in {_said(name)}, got the columns {_listed(names)}. "
            + (f"Did you mean {hint}?" if hint else "Name one of them.")
        )


def _nothing(names: Sequence[str], role: str, where: str) -> DataError:
    known = ", ".join((TEXTS if role == "text" else LABELS)[:4])
    return DataError(
        f"{where}: expected a column for the {role}, named {known} or the like, got "
        f"{_listed(names)}. Name it: {role}=, or --{role} in a command (without a header line its "
        "position, from 0)."
    )


def _listed(names: Sequence[str]) -> str:
    some = ", ".join(repr(shown(name, 40)) for name in names[:_NAMED])
    return some + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "") or "none"


def label_text(value: object) -> str | None:
    """A label as text, whatever the format stored; None where there is none."""
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and value == value:
        return str(int(value)) if value.is_integer() else str(value)
    return None


def label_kind(sample: Sequence[str]) -> type[int] | type[str]:
    """`int` when all labels of a sample are whole numbers, otherwise `str`."""
    whole = bool(sample) and all(_INTEGER.fullmatch(label) for label in sample)
    return int if whole else str


def as_label(label: str, kind: type[int] | type[str]) -> Label | None:
    """The label as its kind; None where a whole number is expected and not given."""
    if kind is str:
        return label
    return int(label.partition(".")[0]) if _INTEGER.fullmatch(label) else None


def positive_label(labels: Sequence[Label]) -> tuple[Label | None, str]:
    """The positive one of two labels, and the rule that decided.

    Of two whole numbers the larger one.  Else in this order: the one named
    positive, pos, 1, true, yes, good or fresh; the one beside negative, neg, 0,
    -1, false, no, bad or rotten; the last in alphabetical order.  None when
    there are not two.
    """
    count = len(set(labels))
    if count != 2:
        return None, f"{count} class{'es' * (count != 1)}: none is positive"
    low, high = sort_labels(labels)
    whole = isinstance(low, int) and isinstance(high, int)
    for names, word, swap in ((_POSITIVE, "positive", False), (_NEGATIVE, "negative", True)):
        named = [str(label).casefold() in names for label in (low, high)]
        if sum(named) == 1 and (not whole or named.index(True) != swap):
            found = (low, high)[named.index(True)]
            return (high if found == low else low) if swap else found, (
                f"{shown(found)!r} is a name of the {word} class"
            )
    if whole:
        return high, f"{high} is the larger number"
    return high, f"{shown(high)!r} is the last in alphabetical order"


def sort_labels(labels: Sequence[Label]) -> list[Label]:
    """The distinct labels: numbers by size, then texts by alphabet."""
    whole = sorted(label for label in set(labels) if isinstance(label, int))
    return [*whole, *sorted(label for label in set(labels) if isinstance(label, str))]
