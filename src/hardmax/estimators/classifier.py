"""`HardmaxClassifier`: texts to classes, in scikit-learn's manner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardmax._errors import InputError
from hardmax._types import Array, Floats, Ints
from hardmax.estimators._inputs import (
    check_labels,
    check_weights,
    device_of,
    each_text,
    plain_param,
    seed_of,
)
from hardmax.estimators._predict import Predictor, check_is_fitted
from hardmax.estimators._prepare import Labels, prepare
from hardmax.estimators._saved import KIND, from_saved, to_saved
from hardmax.io import load_model, save_model
from hardmax.learn.fit import fit_members
from hardmax.learn.presets import preset

if TYPE_CHECKING:
    from hardmax.explain.explanation import Explanation

__all__ = ["HardmaxClassifier", "load"]


class HardmaxClassifier(Predictor):
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
        Texts in which a token must occur; by default 1 below 5,000 texts, then 2, and
        one more for every 20,000 texts from 50,000 on.
    max_features : int, optional
        Keep at most this many tokens, the commonest.
    stop_words : "english", list of str, or None
        Words that are left out.
    punctuation : bool
        Whether marks of punctuation count as words.
    epochs : int, optional
        Passes over the texts; by default 5, with one head 8, or more for at least 800 steps.
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
    A : "learned", (s, s) array, (heads, s, s) array, or None
        Scores <A z_i, z_j> of the tokens in each head, s = dim / heads; the identity
        when None.  A learned one begins as the identity and follows the gradient of
        a soft choice between the best and the second-best key.
    temperature : float
        Above 0 the model is trained with the softmax of the scores over it, in torch;
        what results is used with hardmax all the same.
    max_words : int, optional
        A text is its first so many known words.
    schedule : "cycle" or "constant"
        Of the learning rate.
    clip : float, optional
        The largest length of all gradients together.
    dense : bool
        Whether Adam moves every vector at every step, also those that a batch leaves
        alone.
    once : bool
        Whether a token counts once in a text, however often it occurs in it.
    gaps : int
        Most words left open between the two words of a gapped pair ("not _ good" is a
        token with one); 0 for no such pairs.
    evidence : float
        Vectors begin, and learn, in proportion to this power of the absolute log-ratio
        of the token's frequencies in the classes: words that say little move little.
    length_power : float
        In training the logit of a text of n tokens counts (n / mean n)^length_power.
    device : "auto", "cpu", "cuda" or "cuda:0", ...
        Where the model is trained; "auto" takes a GPU where there is one.  With
        `temperature`, `clip` or `dense` torch computes the steps on the CPU too.
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
    >>> clf = HardmaxClassifier(dim=4, heads=2, epochs=100).fit(texts, [1, 1, 0, 0] * 10)
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
        punctuation: bool = True,
        epochs: int | None = None,
        batch_size: int = 64,
        learning_rate: float = 0.005,
        word_dropout: float = 0.5,
        key_dropout: float = 0.2,
        averaging: float = 0.998,
        alpha: float = 0.5,
        learn_alpha: bool = False,
        spread: float = 0.1,
        tie_tol: float = 1e-12,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 2,
        A: Any = None,
        temperature: float = 0.0,
        max_words: int | None = None,
        schedule: str = "cycle",
        clip: float | None = None,
        dense: bool = False,
        once: bool = True,
        gaps: int = 0,
        evidence: float = 0.3,
        length_power: float = 0.5,
        device: str = "auto",
        checkpoint: Any = None,
        callbacks: Any = None,
    ) -> None:
        self.dim, self.heads, self.depth = dim, heads, depth
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
        self.early_stopping, self.validation_fraction = early_stopping, validation_fraction
        self.patience = patience
        self.A = A
        self.temperature = temperature
        self.max_words = max_words
        self.schedule = schedule
        self.clip = clip
        self.dense = dense
        self.once = once
        self.gaps = gaps
        self.evidence = evidence
        self.length_power = length_power
        self.device = device
        self.checkpoint = checkpoint
        self.callbacks = callbacks

    @classmethod
    def from_preset(cls, name: str, **changes: Any) -> HardmaxClassifier:
        """A classifier with the settings of a preset of `hardmax.learn.presets`, some changed."""
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
        texts = each_text(X)
        if hasattr(X, "__len__"):
            check_labels(y, len(X))

        def labels(n: int) -> tuple[Array, Ints, Floats | None]:
            return *check_labels(y, n), check_weights(sample_weight, n)

        return self._learn(texts, labels)

    def fit_stream(self, batches: Iterable[tuple[Iterable[str], Iterable[Any]]]) -> Any:
        """Learn from pairs (texts, labels) that come one after the other, read once.

        Neither the texts nor, where it is large, their tokens need fit in memory:
        what is larger than 128 MiB lies in a temporary file.

        Parameters
        ----------
        batches : iterable of (texts, labels)
            As `hardmax.learn.data.read_texts` gives them.

        Returns
        -------
        self
        """
        read: list[Any] = []

        def texts() -> Iterator[str]:
            for part, labels in batches:
                before = len(read)
                some = list(part)
                read.extend(labels)
                if len(read) - before != len(some):
                    raise InputError(
                        f"each batch must hold one label per text; one has {len(some)} texts and "
                        f"{len(read) - before} labels."
                    )
                yield from some

        return self._learn(texts(), lambda n: (*check_labels(read, n), None))

    def _learn(self, texts: Iterable[str], labels: Labels) -> HardmaxClassifier:
        device, seed = device_of(self.device), seed_of(self.random_state)
        params = self.get_params(deep=False)
        work = prepare(texts, labels, params, seed)
        self.model_, self.history_ = fit_members(
            work.data,
            len(work.vocabulary),
            work.settings,
            outputs=1 if len(work.classes) == 2 else len(work.classes),
            seed=seed,
            valid=work.valid,
            callbacks=tuple(self.callbacks or ()),
            checkpoint=None if self.checkpoint is None else Path(self.checkpoint),
            device=device,
        )
        self.classes_, self.vocabulary_ = work.classes, work.vocabulary
        self.settings_, self.n_iter_ = work.settings, len(self.history_)
        return self

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
        params = self.get_params(deep=False) | {"A": self.settings_.A}
        kept = {key: plain_param(params[key]) for key in params if key not in _NOT_SAVED}
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


_NOT_SAVED = {"checkpoint", "callbacks", "device"}


def load(folder: Any) -> HardmaxClassifier:
    """The classifier saved in a folder."""
    return HardmaxClassifier.load(folder)
