"""`HardmaxClassifier`: texts to classes, in scikit-learn's manner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Array, Floats
from hardmax.estimators._inputs import check_labels, check_texts, check_weights, seed_of
from hardmax.estimators._saved import KIND, from_saved, to_saved
from hardmax.io import load_model, save_model
from hardmax.learn.fit import Labelled, fit_members, split_rows
from hardmax.learn.presets import Settings, preset, settings_for
from hardmax.tokens.vocabulary import learn_vocabulary, read_stream

if TYPE_CHECKING:
    from hardmax.explain.explanation import Explanation

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

__all__ = ["HardmaxClassifier", "load"]

_CHUNK = 2048


class HardmaxClassifier(ClassifierMixin, BaseEstimator):
    """Classify texts by words that follow leader words; every logit is an exact sum of words.

    Words and n-grams become vectors; in each of `depth` layers every word moves
    toward the word of its text that scores highest for it, head by head; the
    logit is linear in the mean of the words.

    Parameters
    ----------
    dim : int
        Coordinates of a word vector, all heads together.
    heads : int
        Divides `dim`; `dim / heads` coordinates each.
    depth : int
        Number of layers; 0 leaves the attention out.
    ngrams : int
        Longest number of words in a token.
    scope : "text" or "sentence"
        Whether words attend within their text or within their sentence.
    random_state : int, RandomState or None
        The same integer gives the same model, byte for byte, on the CPU.
    members : int
        This many models of `heads` heads are trained, each from its own seed, and
        joined into one with all their heads: its logit is the mean of theirs,
        still one exact sum.
    min_count : int, optional
        Texts in which a token must occur; by default 2 from 5,000 texts on, else 1.
    max_features : int, optional
        Keep at most this many tokens, the commonest.
    stop_words : "english", list of str, or None
        Words that are left out.
    punctuation : bool
        Whether marks of punctuation count as words.
    epochs : int, optional
        Passes over the texts; by default 8, or more for at least 800 steps.
    batch_size : int
    learning_rate : float
        The largest rate of the cycle.
    word_dropout, key_dropout : float
        In training, shares of the words left out, and of the words that others
        may not follow.
    averaging : float
        Decay of the average of the weights, which is what remains.
    alpha : float
        Strength of the attention; where it begins with `learn_alpha`.
    learn_alpha : bool
        Whether every head learns its strength; it stays positive by construction.
    spread : float
        Standard deviation of the word vectors' coordinates at the beginning.
    tie_tol : float
        Scores within tie_tol |z_i| max_j |z_j| of the best are ties.
    early_stopping : bool
        Hold out a part of the texts, keep the best epoch there, and stop
        `patience` epochs after it.
    validation_fraction : float
    patience : int
    checkpoint : path, optional
        A file written whole after every epoch; `fit` goes on from it.
    callbacks : sequence of callables, optional
        Each receives a `Progress` after every step.

    Attributes
    ----------
    classes_ : array
        The classes, sorted; the logit speaks for the second of two.
    vocabulary_ : Vocabulary
    model_ : HardmaxModel
    settings_ : Settings
        All settings with the automatic ones decided.
    history_ : list of Progress
        One per epoch.
    n_iter_ : int
        Epochs that were run.

    Notes
    -----
    A text without any known word gets the bias alone.

    Examples
    --------
    >>> texts = ["a good film", "good and warm", "a bad film", "bad and cold"] * 10
    >>> clf = HardmaxClassifier(dim=4, heads=2, random_state=0).fit(texts, [1, 1, 0, 0] * 10)
    >>> clf.predict(["good", "what a bad evening"])
    array([1, 0])
    """

    def __init__(
        self,
        dim: int = 16,
        heads: int = 8,
        depth: int = 2,
        ngrams: int = 3,
        scope: str = "text",
        random_state: Any = 0,
        *,
        members: int = 3,
        min_count: int | None = None,
        max_features: int | None = None,
        stop_words: Any = None,
        punctuation: bool = False,
        epochs: int | None = None,
        batch_size: int = 64,
        learning_rate: float = 0.005,
        word_dropout: float = 0.5,
        key_dropout: float = 0.4,
        averaging: float = 0.998,
        alpha: float = 1.0,
        learn_alpha: bool = False,
        spread: float = 0.1,
        tie_tol: float = 1e-12,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 2,
        checkpoint: Any = None,
        callbacks: Any = None,
    ) -> None:
        self.dim = dim
        self.heads = heads
        self.depth = depth
        self.ngrams = ngrams
        self.scope = scope
        self.random_state = random_state
        self.members = members
        self.min_count = min_count
        self.max_features = max_features
        self.stop_words = stop_words
        self.punctuation = punctuation
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.word_dropout = word_dropout
        self.key_dropout = key_dropout
        self.averaging = averaging
        self.alpha = alpha
        self.learn_alpha = learn_alpha
        self.spread = spread
        self.tie_tol = tie_tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.checkpoint = checkpoint
        self.callbacks = callbacks

    @classmethod
    def from_preset(cls, name: str, **changes: Any) -> HardmaxClassifier:
        """A classifier with the settings of "default" or "plane", some of them changed."""
        return cls(**{**preset(name), **changes})

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HardmaxClassifier:
        """Learn from texts and their labels.

        Parameters
        ----------
        X : list, column or iterable of str
        y : (n,) array-like
            Labels of two or more classes: strings, integers or booleans.
        sample_weight : (n,) array-like, optional

        Returns
        -------
        self

        Raises
        ------
        InputError
            For anything that is not a text, fewer than two classes, or a
            parameter out of range.
        """
        texts = check_texts(X)
        classes, labels = check_labels(y, len(texts))
        weights = check_weights(sample_weight, len(texts))
        settings = settings_for(self.get_params(deep=False), len(texts))
        seed = seed_of(self.random_state)
        vocabulary, stream = learn_vocabulary(
            read_stream(texts, punctuation=settings.punctuation),
            ngrams=settings.ngrams,
            min_count=settings.min_count,
            max_size=settings.max_features,
            stop_words=settings.dropped,
            punctuation=settings.punctuation,
            across=settings.scope == "text",
        )
        tokens = vocabulary.tokens_of(stream, sentences=settings.scope == "sentence")
        data, valid = _parts(Labelled(tokens, labels, weights), settings, seed)
        self.model_, self.history_ = fit_members(
            data,
            len(vocabulary),
            settings,
            outputs=1 if len(classes) == 2 else len(classes),
            seed=seed,
            valid=valid,
            callbacks=tuple(self.callbacks or ()),
            checkpoint=None if self.checkpoint is None else Path(self.checkpoint),
        )
        self.classes_, self.vocabulary_, self.settings_ = classes, vocabulary, settings
        self.n_iter_ = len(self.history_)
        return self

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
        logits = self.decision_function(X)
        picks = (logits > 0).astype(int) if logits.ndim == 1 else logits.argmax(axis=1)
        return np.asarray(self.classes_[picks])

    def predict_stream(
        self, texts: Iterable[str], lot: int = 256
    ) -> Iterator[tuple[str, Any, Floats]]:
        """Text, class and probabilities, one by one, for texts that need not fit in memory."""
        check_is_fitted(self)
        source = iter(texts)
        while part := check_texts(list(islice(source, lot))):
            shares = _probabilities(self._logits(part))
            labels = self.classes_[self._picks(shares)]
            yield from zip(part, labels.tolist(), shares, strict=True)

    @staticmethod
    def _picks(shares: Floats) -> Array:
        if shares.shape[1] == 2:
            return (shares[:, 1] > shares[:, 0]).astype(int)
        return np.asarray(shares.argmax(axis=1))

    def explain(self, text: str, label: Any = None) -> Explanation:
        """Leaders, exact contributions and paths of the words of one text.

        The logit is that of the second of two classes, or of `label` when
        there are more.
        """
        from hardmax.explain.contributions import explain

        check_is_fitted(self)
        return explain(self, text, label)

    def save(self, folder: Any, *, force: bool = False) -> Path:
        """Save as a folder of safetensors and JSON; it appears whole or not at all.

        Raises
        ------
        OutputError
            If the folder cannot be written, or exists and `force` is not given.
        """
        check_is_fitted(self)
        params = self.get_params(deep=False)
        kept = {key: _plain(params[key]) for key in params if key not in _NOT_SAVED}
        saved = to_saved(self.model_, self.vocabulary_, self.classes_, self.settings_, kept)
        return save_model(folder, *saved, KIND, force=force)

    @classmethod
    def load(cls, folder: Any) -> HardmaxClassifier:
        """The classifier that `save` wrote.

        Raises
        ------
        DataError
            If the folder is damaged, of another kind, foreign, or of a newer format.
        """
        tensors, meta = load_model(folder, KIND)
        model, vocabulary, classes, settings, params = from_saved(tensors, meta, str(folder))
        known = set(cls().get_params(deep=False))
        out = cls(**{key: value for key, value in params.items() if key in known})
        out.model_, out.vocabulary_, out.classes_ = model, vocabulary, classes
        out.settings_, out.history_, out.n_iter_ = settings, [], settings.epochs
        return out

    def save_pretrained(self, folder: Any, *, force: bool = False) -> Path:
        """`save` under the name that Hugging Face's libraries use."""
        return self.save(folder, force=force)

    @classmethod
    def from_pretrained(cls, folder: Any) -> HardmaxClassifier:
        """`load` under the name that Hugging Face's libraries use."""
        return cls.load(folder)

    def to_onnx(self, path: Any, *, force: bool = False) -> Path:
        """Write the layers and the decoder as ONNX, ties averaged as here; see `learn.export`."""
        from hardmax.learn.export import write_onnx

        check_is_fitted(self)
        return write_onnx(self.model_, path, force=force)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        return tags


_NOT_SAVED = {"checkpoint", "callbacks"}


def _plain(value: Any) -> Any:
    """A parameter as JSON keeps it; generators of random numbers are left out."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, set | frozenset | tuple | list | np.ndarray):
        return sorted(map(str, value))
    return value if value is None or isinstance(value, bool | int | float | str) else None


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


def _probabilities(logits: Floats) -> Floats:
    if logits.shape[1] == 1:
        from scipy.special import expit

        return np.concatenate([expit(-logits), expit(logits)], axis=1)
    top = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(top / top.sum(axis=1, keepdims=True))


def load(folder: Any) -> HardmaxClassifier:
    """The classifier saved in a folder."""
    return HardmaxClassifier.load(folder)
