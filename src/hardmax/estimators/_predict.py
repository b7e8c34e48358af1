"""What a fitted classifier of texts gives: logits, probabilities, classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from hardmax._types import Array, Floats
from hardmax.estimators._inputs import check_texts

if TYPE_CHECKING:
    from hardmax.learn.model import HardmaxModel
    from hardmax.learn.presets import Settings
    from hardmax.tokens.vocabulary import Vocabulary

    class BaseEstimator:
        """What is used of scikit-learn's class of that name."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Any: ...
        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin:
        """What is used of scikit-learn's class of that name."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    def check_is_fitted(estimator: Any) -> None:
        """Raise NotFittedError before `fit`."""
else:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.validation import check_is_fitted

__all__ = ["Predictor", "check_is_fitted"]

_CHUNK = 2048


class Predictor(ClassifierMixin, BaseEstimator):
    """Predictions from `model_`, `vocabulary_`, `classes_` and `settings_`."""

    model_: HardmaxModel
    vocabulary_: Vocabulary
    classes_: Array
    settings_: Settings

    def decision_function(self, X: Any) -> Floats:
        """Logits: (n,) of the second class for two classes, else (n, classes)."""
        check_is_fitted(self)
        logits = self._logits(check_texts(X))
        return logits[:, 0] if logits.shape[1] == 1 else logits

    def _logits(self, texts: Sequence[str]) -> Floats:
        split = self.settings_.scope == "sentence"
        parts = [np.empty((0, len(self.model_.b)))]
        for low in range(0, len(texts), _CHUNK):
            tokens = self.vocabulary_.encode(texts[low : low + _CHUNK], sentences=split)
            parts.append(self.model_.logits(tokens))
        return np.concatenate(parts)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (n, classes), in the order of `classes_`."""
        check_is_fitted(self)
        return _probabilities(self._logits(check_texts(X)))

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities, without the rounding of tiny ones."""
        check_is_fitted(self)
        logits = self._logits(check_texts(X))
        if logits.shape[1] == 1:
            logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
        top = logits - logits.max(axis=1, keepdims=True)
        return np.asarray(top - np.log(np.exp(top).sum(axis=1, keepdims=True)))

    def predict(self, X: Any) -> Array:
        """The class of each text; of equal logits the first."""
        check_is_fitted(self)
        return np.asarray(self.classes_[_picks(self._logits(check_texts(X)))])

    def predict_stream(
        self, texts: Iterable[str], lot: int = 256
    ) -> Iterator[tuple[str, Any, Floats]]:
        """Text, class and probabilities, one by one, for texts that need not fit in memory."""
        check_is_fitted(self)
        source = iter(texts)
        while part := check_texts(list(islice(source, lot))):
            logits = self._logits(part)
            labels = self.classes_[_picks(logits)]
            yield from zip(part, labels.tolist(), _probabilities(logits), strict=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        return tags


def _picks(logits: Floats) -> Array:
    """The class number of each row of logits; of equal logits the first."""
    if logits.shape[1] == 1:
        return (logits[:, 0] > 0).astype(int)
    return np.asarray(logits.argmax(axis=1))


def _probabilities(logits: Floats) -> Floats:
    if logits.shape[1] == 1:
        from scipy.special import expit

        return np.concatenate([expit(-logits), expit(logits)], axis=1)
    top = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(top / top.sum(axis=1, keepdims=True))
