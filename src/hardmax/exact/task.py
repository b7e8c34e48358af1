"""The checked input of a construction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Array
from hardmax.exact.data import Corpus, Labels, listed, read_corpus, read_labels
from hardmax.exact.network import Source
from hardmax.exact.separate import PrecisionError, check_conflicts, conflicts, name_pairs
from hardmax.exact.text import is_text, trained_vectors

__all__ = [
    "METHODS",
    "VARIANTS",
    "Progress",
    "Task",
    "check_seed",
    "check_task",
    "position_step",
    "read_task",
]

METHODS = ("auto", "mean", "bumps", "tree", "chain")
VARIANTS = ("residual", "rho_eta")
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Task:
    """Sequences, labels and settings of one construction."""

    corpus: Corpus
    labels: Labels
    source: Source
    width: int | None
    variant: str
    seed: int
    progress: Progress | None


def read_task(
    sequences: Any, labels: Any, *, method: str, positions: bool, width: int | None, variant: str,
    dtype: str, random_state: int, vectors: Any, dim: int | None, progress: Progress | None,
) -> Task:  # fmt: skip
    """Check all arguments of `construct`."""
    _check_choice("method", method, METHODS)
    _check_choice("variant", variant, VARIANTS)
    kind = _float_type(dtype)
    if width is not None:
        width = _check_whole("width", width, 2)
    seed = check_seed(random_state)
    if not isinstance(positions, bool | np.bool_):
        raise InputError(f"`positions` must be True or False; got {positions!r}.")
    if progress is not None and not callable(progress):
        raise InputError(f"`progress` must be a function; got {progress!r}.")
    items = listed(sequences)
    texts = is_text(items)
    if not texts and (vectors is not None or dim is not None):
        raise InputError("`vectors` and `dim` are for texts; got arrays. Leave them out.")
    if dim is not None:
        dim = _check_whole("dim", dim, 1)
    vectors = trained_vectors(vectors)
    corpus = read_corpus(items, dtype=kind, vectors=vectors, dim=dim, seed=seed)
    step = None
    if positions:
        step = position_step(corpus, seed)
        corpus = read_corpus(items, dtype=kind, step=step, vectors=vectors, dim=dim, seed=seed)
    given = read_labels(labels, corpus.size)
    if variant == "rho_eta":
        width = 4 if width is None else width
    if corpus.dim == 1 and (method in ("tree", "chain") or (width is not None)):
        raise InputError(
            "in one dimension only methods mean and bumps exist, without `width` and in the "
            "variant 'residual'; got "
            f"method={method!r}, width={width}, variant={variant!r}. "
            "Use method='mean', or add a coordinate to every token."
        )
    return Task(corpus, given, Source(texts, seed, step, vectors), width, variant, seed, progress)


def check_task(task: Task, sequences: Any, method: str) -> None:
    """Refuse sequences of different label that nothing, or not this method, tells apart."""
    codes, positions = task.labels.codes, task.source.step is not None
    if task.corpus.table.dtype == np.float32:
        _check_rounding(task, listed(sequences))
    check_conflicts(task.corpus, codes, "measures", positions=positions)
    if method in ("tree", "chain"):
        check_conflicts(task.corpus, codes, "sets", positions=positions)


def _check_rounding(task: Task, items: list[Any]) -> None:
    """In float32 different tokens may become one: say so, instead of naming the labels."""
    pairs = conflicts(task.corpus, task.labels.codes)
    if not pairs:
        return
    finer = task.source.read(items, None if not task.source.texts else task.corpus.dim, np.float64)
    same = set(conflicts(finer, task.labels.codes))
    merged = [p for p in pairs if p not in same]
    if merged and not same:
        raise PrecisionError(
            "float32 makes tokens equal in sequences of different label: "
            f"{name_pairs(merged)}. Use dtype='float64'."
        )


def position_step(corpus: Corpus, seed: int) -> Array:
    """A generic vector; the last position moves by about the range of the data."""
    rng = np.random.default_rng(seed)
    span = np.ptp(corpus.table.astype(np.float64), axis=0)
    span = np.where(span > 0, span, 1.0)
    length = max(int(corpus.lengths.max()) - 1, 1)
    return np.asarray(span * (0.5 + rng.random(corpus.dim)) / length, corpus.table.dtype)


def check_seed(seed: Any) -> int:
    """A seed that every random generator and hash here takes."""
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or not 0 <= seed < 2**63:
        raise InputError(f"`random_state` must be an integer from 0 to 2^63 - 1; got {seed!r}.")
    return int(seed)


def _check_whole(name: str, value: Any, least: int) -> int:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:
        raise InputError(
            f"`{name}` must be an integer of at least {least}; got {value!r}. Enlarge it."
        )
    return int(value)


def _float_type(dtype: Any) -> str:
    try:
        kind = str(np.dtype(dtype)) if dtype is not None else "None"
    except TypeError:
        kind = str(dtype)
    if kind not in ("float64", "float32"):
        raise InputError(f"`dtype` must be one of float64, float32; got {kind!r}. Choose one.")
    return kind


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(
            f"`{name}` must be one of {', '.join(choices)}; got {value!r}. Choose one of them."
        )
