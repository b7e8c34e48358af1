"""Words of a text with their places, n-grams, sentences, and the vocabulary.

A word is a run of letters, digits and the marks that belong to them, with
apostrophes inside; an ideograph or kana is a word of its own; a mark of
punctuation is a word when `punctuation` is on.  Tags such as `<br />` separate
words and are no words.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache

__all__ = [
    "STOP_WORDS",
    "Word",
    "ends_sentence",
    "is_mark",
    "is_word",
    "split_words",
    "word_strings",
]

_TAG = r"</?[a-zA-Z][^<>]{0,500}>"
_ENDS = frozenset(".!?。！？…<\n")
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"

_STOP = """
a about after all also am an and any are as at be because been before being between both but
by can could did do does doing down during each for from further had has have having he her
here hers herself him himself his how i if in into is it its itself just me more most my
myself of off on once only or other our ours ourselves out over own same she should so some
such than that the their theirs them themselves then there these they this those through to
too under until up was we were what when where which while who whom why will with would you
your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP.split())
"""English words that carry little; written for this library.  "no", "not", "nor" and
"very" are not among them, since they change a judgement."""


@dataclass(frozen=True)
class Word:
    """A word and where it stands: `source[start:stop]`, and whether a sentence ends after it."""

    text: str
    start: int
    stop: int
    ends: bool = False


@cache
def _marks() -> str:
    """The combining marks as a character class, so that accents stay in their words."""
    points = [c for c in range(0x300, 0x10000) if unicodedata.category(chr(c))[0] == "M"]
    runs: list[list[int]] = []
    for c in points:
        if runs and c == runs[-1][1] + 1:
            runs[-1][1] = c
        else:
            runs.append([c, c])
    return "".join(f"\\u{a:04x}-\\u{b:04x}" for a, b in runs)


@cache
def _pattern(ascii_only: bool) -> re.Pattern[str]:
    """Tags, blank lines, words and marks of punctuation, in one pass."""
    apart = rf"{_TAG}|\n\s*\n"
    marks = r"[.,!?;:()\"]"
    if ascii_only:
        return re.compile(rf"[a-zA-Z0-9]+(?:'[a-zA-Z0-9]+)*|{marks}|{apart}", re.ASCII)
    letter = rf"(?:[^\W_{_CJK}][{_marks()}]*)"
    return re.compile(rf"{letter}+(?:['’]{letter}+)*|[{_CJK}]|{marks}|[。！？…]|{apart}")


def _plain(word: str) -> str:
    """The form under which a word is counted: lower case, composed, straight apostrophes."""
    if word.isascii():
        return word.lower()
    return unicodedata.normalize("NFC", word.lower().replace("’", "'"))


def word_strings(text: str) -> list[str]:
    """Every word, mark and separator of a text in its counted form, in order.

    `is_word`, `is_mark` and `ends_sentence` tell them apart.
    """
    if text.isascii():
        return _pattern(True).findall(text.lower())
    return [_plain(word) for word in _pattern(False).findall(text)]


def is_word(piece: str) -> bool:
    """Whether a piece of `word_strings` is a word: it begins with a letter or digit."""
    return piece[0].isalnum()


def is_mark(piece: str) -> bool:
    """Whether a piece of `word_strings` is a mark of punctuation."""
    return len(piece) == 1 and not piece.isalnum()


def ends_sentence(piece: str) -> bool:
    """Whether a piece of `word_strings` closes a sentence: . ! ? or a tag or blank line."""
    return piece[0] in _ENDS


def split_words(text: str, *, punctuation: bool = False) -> tuple[Word, ...]:
    """The words of a text with their places in it.

    Parameters
    ----------
    text : str
    punctuation : bool
        Whether marks of punctuation count as words.

    Returns
    -------
    tuple of Word
        In order; `text[word.start:word.stop]` is the word as written.

    Examples
    --------
    >>> [(w.text, w.start, w.ends) for w in split_words("Don't go.<br />Please!")]
    [("don't", 0, False), ('go', 6, True), ('please', 15, True)]
    """
    words: list[Word] = []
    for match in _pattern(text.isascii()).finditer(text):
        piece = _plain(match.group())
        if is_word(piece) or (punctuation and is_mark(piece)):
            words.append(Word(piece, match.start(), match.end(), ends_sentence(piece)))
        elif words and ends_sentence(piece) and not words[-1].ends:
            words[-1] = Word(words[-1].text, words[-1].start, words[-1].stop, True)
    return tuple(words)
