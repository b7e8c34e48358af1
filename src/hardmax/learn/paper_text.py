"""Words of the reviews as the authors of arXiv 2407.01602 prepare them.

Their steps, in order: links and tags removed without a blank; blanks around
. , ! ? -; punctuation to blanks; digits and letters beyond ASCII removed; runs of
a character cut to two; contractions such as "gonna" split; stop words removed;
nouns reduced to their dictionary form; stop words removed again.  Case is kept,
so capitalised stop words stay.  With the nouns of WordNet 3.0 this gives their
vocabulary of 121,296 words, padding included, with their numbers.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from hardmax._types import Array
from hardmax.tokens.text import STOP_WORDS

__all__ = [
    "DROPPED",
    "Lemmas",
    "PaperTable",
    "guessed_lemmas",
    "noun_lemmas",
    "paper_table",
    "paper_words",
    "plain_words",
]

_LINK = re.compile(r"https?://\S+|www\.\S+")
_TAG = re.compile(r"<[^>]+>")
_APART = re.compile(r"([.,!?-])")
_MARKS = re.compile(f"[{re.escape(string.punctuation)}]")
_RUN = re.compile(r"(.)\1+")
_SPLIT = re.compile(
    r"(?i)\b(can(?=not\b)|gim(?=me\b)|lem(?=me\b)|gon(?=na\b)|got(?=ta\b)|wan(?=na\b))"
)
_ENDINGS = (
    ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"),
    ("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y"),
)  # fmt: skip
_REST = "ain aren couldn didn doesn don hadn hasn haven isn ma mightn mustn needn shan shouldn"
_REST += " wasn weren won wouldn d ll m o re s t ve y"
_ALSO = "above again against below few no nor not now very"
DROPPED = STOP_WORDS - {"also", "could", "would"} | set(_REST.split()) | set(_ALSO.split())
"""The stop words of the recipe: ours, less three, with negations and pieces such as "didn"."""

Lemmas = Callable[[str], str]


def paper_words(text: str, lemmas: Lemmas = lambda word: word) -> list[str]:
    """The words of a text in the manner of the recipe; `lemmas` reduces a word to its noun.

    Examples
    --------
    >>> paper_words("The film<br />was goooood, 10/10! I'm gonna see it.")
    ['The', 'filmwas', 'good', 'I', 'gon', 'na', 'see']
    """
    reduced = map(lemmas, plain_words(text))
    return [word for word in reduced if word not in DROPPED]


def plain_words(text: str) -> list[str]:
    """The words before they are reduced."""
    text = _APART.sub(r" \1 ", _TAG.sub("", _LINK.sub("", text)))
    text = re.sub(r"\d+", "", _MARKS.sub(" ", re.sub(r"\s{2,}", " ", text)))
    text = re.sub(r"[^\x00-\x7f]", "", re.sub(" +", " ", text))
    text = _SPLIT.sub(r"\1 ", _RUN.sub(r"\1\1", text))
    return [word for word in text.split() if word not in DROPPED]


def noun_lemmas(nouns: frozenset[str], irregular: Mapping[str, Sequence[str]]) -> Lemmas:
    """The shortest noun that a word comes down to by the rules of WordNet, else the word.

    Irregular forms come first; then endings are taken off, again and again,
    until something is a noun.
    """

    @cache
    def lemma(word: str) -> str:
        if word in irregular:
            found = [form for form in (word, *irregular[word]) if form in nouns]
        else:
            forms = _shorter([word])
            found = [form for form in (word, *forms) if form in nouns]
            while forms and not found:
                forms = _shorter(forms)
                found = [form for form in forms if form in nouns]
        return min(found, key=len, default=word)

    return lemma


def _shorter(forms: Iterable[str]) -> list[str]:
    return [f[: -len(old)] + new for f in forms for old, new in _ENDINGS if f.endswith(old)]


def guessed_lemmas(texts: Iterable[Sequence[str]], least: int = 3) -> Lemmas:
    """Without a dictionary: an ending is taken off where the shorter word occurs by itself.

    The shorter word must have three letters and occur in lower case at least
    `least` times; words in -ss, -us and -is stay.
    """
    counts = Counter(word for text in texts for word in text)
    known = {w for w, n in counts.items() if n >= least and len(w) > 2 and w.islower()}

    @cache
    def lemma(word: str) -> str:
        if word.endswith(("ss", "us", "is")) or not word.islower():
            return word
        return min((f for f in _shorter([word]) if f in known), key=len, default=word)

    return lemma


@dataclass(frozen=True)
class PaperTable:
    """Words by number (0 is padding) and texts as rows of numbers.

    `words[k]` is the word of number k.
    """

    words: tuple[str, ...]
    ids: Array

    @property
    def size(self) -> int:
        """Number of words, padding included."""
        return len(self.words)


PAD = "<PAD>"


def paper_table(texts: Sequence[Sequence[str]], length: int = 128) -> PaperTable:
    """Numbers by decreasing count, words of equal count in order of appearance.

    Each text gives its first `length` words, filled up with 0.
    """
    counts = Counter(word for text in texts for word in text)
    ordered = sorted(counts, key=lambda word: -counts[word])
    number = {word: k for k, word in enumerate(ordered, start=1)}
    ids = np.zeros((len(texts), length), dtype=np.int32)
    for row, text in zip(ids, texts, strict=True):
        kept = text[:length]
        row[: len(kept)] = [number[word] for word in kept]
    return PaperTable((PAD, *ordered), ids)
