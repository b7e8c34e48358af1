"""The IMDb reviews as the clustering paper takes them: 35,000 to train, 15,000 to test."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hardmax._types import Array, Ints
from hardmax.learn.data import imdb
from hardmax.learn.paper_text import guessed_lemmas, paper_table, paper_words, plain_words
from hardmax.learn.wordnet import wordnet_lemmas

__all__ = ["PaperReviews", "paper_reviews"]


@dataclass(frozen=True)
class PaperReviews:
    """All reviews as rows of word numbers; the first `train` of them are trained on.

    `lemmas` says how nouns were reduced: "WordNet 3.0" as in the paper, or
    "guessed" where WordNet is not in the cache.
    """

    words: tuple[str, ...]
    ids: Array
    labels: Ints
    texts: tuple[str, ...]
    train: int
    lemmas: str

    @property
    def size(self) -> int:
        """Number of words, padding included."""
        return len(self.words)

    @property
    def exact(self) -> bool:
        """Whether words are reduced as in the paper."""
        return self.lemmas != "guessed"


@lru_cache(maxsize=1)
def paper_reviews(cache: str | os.PathLike[str] | None = None) -> PaperReviews:
    """Read and prepare the reviews; about 20 s on one core.

    Raises
    ------
    DataError
        If the reviews are not in the cache.
    """
    parts = [imdb("paper", part, cache) for part in ("train", "test")]
    texts = [text for part in parts for text in part[0]]
    lemmas = wordnet_lemmas(cache)
    kind = "guessed" if lemmas is None else "WordNet 3.0"
    if lemmas is None:
        lemmas = guessed_lemmas(plain_words(text) for text in texts)
    table = paper_table([paper_words(text, lemmas) for text in texts])
    labels = np.array([label == "positive" for part in parts for label in part[1]], np.int64)
    return PaperReviews(table.words, table.ids, labels, tuple(texts), len(parts[0][0]), kind)
