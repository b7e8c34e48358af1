"""What an explanation needs of a classifier: its model, vocabulary, classes and scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Array, Floats, Ints
from hardmax.learn.model import HardmaxModel
from hardmax.tokens.batch import Tokens
from hardmax.tokens.text import Word, split_words, word_strings
from hardmax.tokens.vocabulary import Stream, Vocabulary

__all__ = ["Bundle", "bundle_of", "check_text", "shares_of", "winners"]

_CHUNK = 2048


@dataclass(frozen=True)
class Bundle:
    """A trained model with the words and classes that its numbers stand for.

    Attributes
    ----------
    model : HardmaxModel
    vocabulary : Vocabulary
    classes : tuple
        Sorted; with two, the logit speaks for the second.
    sentences : bool
        Whether words attend within their sentence only.
    """

    model: HardmaxModel
    vocabulary: Vocabulary
    classes: tuple[Any, ...]
    sentences: bool = False

    @cached_property
    def every(self) -> Vocabulary:
        """The vocabulary, with every occurrence counted."""
        found = replace(self.vocabulary, once=False)
        for name in ("gram_table", "pair_table", "numbers"):  # large, and the same
            found.__dict__[name] = getattr(self.vocabulary, name)
        return found

    def scores(self) -> Floats:
        """The matrices A of the heads, (heads, s, s); (heads, 0, 0) for the identity."""
        A = self.model.scores()
        return np.zeros((self.model.heads, 0, 0)) if A is None else np.ascontiguousarray(A)

    def encode(self, texts: Sequence[str]) -> Tokens:
        """Texts as the distinct tokens that the model sees."""
        return self.vocabulary.encode(texts, sentences=self.sentences)

    def read(self, text: str) -> tuple[tuple[str, ...], Stream]:
        """The words of a text without stop words, and the same as the model's numbers."""
        vocabulary = self.vocabulary
        stream, dropped = vocabulary.stream([text]), vocabulary.stop_words
        marks = vocabulary.punctuation
        words = [
            piece
            for piece in word_strings(text)
            if piece[0].isalnum() or (marks and len(piece) == 1)  # is_word, is_mark
        ]
        if dropped:
            words = [word for word in words if word not in dropped]
        return tuple(words), stream

    def places(self, text: str) -> tuple[Word, ...]:
        """The words that `read` gives, with their places in the text."""
        words = split_words(text, punctuation=self.vocabulary.punctuation)
        return tuple(word for word in words if word.text not in self.vocabulary.stop_words)

    @cached_property
    def vectors(self) -> Array:
        """The word vectors, (tokens, dim), in float32."""
        return np.asarray(self.model.E.detach().numpy())

    @cached_property
    def gamma(self) -> Floats:
        """The step of each head."""
        return np.asarray(self.model.gamma.detach().numpy())

    def logits(self, texts: Sequence[str]) -> Floats:
        """Logits (b, outputs), from the texts alone."""
        parts = [np.empty((0, len(self.model.b)))]
        for low in range(0, len(texts), _CHUNK):
            parts.append(self.model.logits(self.encode(texts[low : low + _CHUNK])))
        return np.concatenate(parts)

    def probabilities(self, texts: Sequence[str]) -> Floats:
        """Probabilities (b, classes), from the texts alone."""
        return shares_of(self.logits(texts))


def bundle_of(source: Any) -> Bundle:
    """A bundle from itself or from a fitted classifier.

    Raises
    ------
    InputError
        If `source` is neither, or has not been fitted.
    """
    if isinstance(source, Bundle):
        return source
    try:
        return Bundle(
            source.model_,
            source.vocabulary_,
            tuple(np.asarray(source.classes_).tolist()),
            source.settings_.scope == "sentence",
        )
    except AttributeError:
        raise InputError(
            f"expected a fitted classifier, got {type(source).__name__}. Call `fit` first, "
            "or load a saved one."
        ) from None


def check_text(text: Any) -> str:
    """The text, if it is one string."""
    if isinstance(text, str):
        return str(text)
    raise InputError(
        f"expected one text, got {type(text).__name__}. Explain texts one by one, as strings."
    )


def winners(logits: Floats) -> Ints:
    """The class number of each row of logits; of equal logits the first."""
    if logits.shape[1] == 1:
        return (logits[:, 0] > 0).astype(np.int64)
    return np.asarray(logits.argmax(axis=1), dtype=np.int64)


def shares_of(logits: Array) -> Floats:
    """Probabilities (b, classes) of logits (b, outputs)."""
    if logits.shape[1] == 1:
        from scipy.special import expit

        return np.concatenate([expit(-logits), expit(logits)], axis=1)
    top = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(top / top.sum(axis=1, keepdims=True))
