"""Score matrices that training found: of small classifiers made here, or of a saved model."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Floats

__all__ = ["MODELS", "saved_scores", "trained_scores"]

MODELS = 4
"""How many classifiers are trained for a dimension; each draw takes one of them."""


@lru_cache(maxsize=64)
def trained_scores(d: int, number: int) -> Floats:
    """(d, d) scores of a classifier with one head and one layer, trained on the package's reviews.

    The number is its random state.  A starts at the identity and is learned freely.
    """
    from hardmax.estimators.classifier import HardmaxClassifier
    from hardmax.learn import data

    texts, labels = data.corpus("train")
    model = HardmaxClassifier(d, 1, 1, 1, members=1, A="learned", random_state=number)
    found = model.fit(list(texts), list(labels)).model_.scores()
    return np.array(found, dtype=np.float64).reshape(d, d)


@lru_cache(maxsize=32)
def saved_scores(folder: str) -> Floats:
    """(h, d, d) learned scores of the heads of a saved classifier.

    Raises
    ------
    DataError
        If the folder holds no model.
    InputError
        If its scores are not learned.
    """
    from hardmax.estimators.load import load

    model = getattr(load(folder), "model_", None)
    found = None if model is None else model.scores()
    if found is None:
        raise InputError(
            f"model:{folder}: its scores are not learned. Train one with `hardmax train ... "
            "--set A=learned`, or take matrix=identity."
        )
    return np.array(found, dtype=np.float64)
