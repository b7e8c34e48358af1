"""From texts and labels to what the training takes: tokens, class numbers, settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Array, Floats, Ints
from hardmax.learn.fit import split_rows
from hardmax.learn.labelled import Labelled
from hardmax.learn.presets import Settings, settings_for
from hardmax.tokens.batch import Tokens
from hardmax.tokens.vocabulary import Stream, Vocabulary, learn_vocabulary, read_stream

__all__ = ["Labels", "Work", "prepare"]

Labels: TypeAlias = Callable[[int], tuple[Array, Ints, Floats | None]]
"""Classes, class numbers and weights, when it is known how many texts there are."""


@dataclass(frozen=True)
class Work:
    """All that a training needs.

    Attributes
    ----------
    classes : array
    vocabulary : Vocabulary
    settings : Settings
        With the automatic ones decided.
    data, valid : Labelled
        The texts for training, and those for validation or None.
    """

    classes: Array
    vocabulary: Vocabulary
    settings: Settings
    data: Labelled
    valid: Labelled | None


def prepare(texts: Iterable[str], labels: Labels, params: dict[str, Any], seed: int) -> Work:
    """Read the texts once, learn the vocabulary, and divide the texts where asked for."""
    settings_for(params, 1)  # what is wrong with a parameter is said before the reading
    stream = read_stream(texts, punctuation=bool(params["punctuation"]))
    classes, numbers, weights = labels(len(stream.offsets) - 1)
    settings = settings_for(params, len(numbers))
    vocabulary, tokens = _encoded(stream, settings)
    data, valid = _parts(Labelled(tokens, numbers, weights), settings, seed)
    return Work(classes, vocabulary, settings, data, valid)


def _encoded(stream: Stream, settings: Settings) -> tuple[Vocabulary, Tokens]:
    vocabulary, stream = learn_vocabulary(
        stream,
        ngrams=settings.ngrams,
        min_count=settings.min_count,
        max_size=settings.max_features,
        stop_words=settings.dropped,
        punctuation=settings.punctuation,
        across=settings.scope == "text",
        max_words=settings.max_words,
        once=settings.once,
        far=settings.gaps + 1,
    )
    return vocabulary, vocabulary.tokens_of(stream, sentences=settings.scope == "sentence")


def _parts(data: Labelled, settings: Settings, seed: int) -> tuple[Labelled, Labelled | None]:
    """All texts, or those for training and those for validation."""
    if not settings.early_stopping:
        return data, None
    train, valid = split_rows(data.labels, settings.validation_fraction, seed)
    if not len(valid) or len(np.unique(data.labels[train])) < len(np.unique(data.labels)):
        raise InputError(
            "`early_stopping` needs at least two texts of a class, one of them for validation. "
            "Give more texts, or early_stopping=False."
        )
    return data.take(train), data.take(valid)
