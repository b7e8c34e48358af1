"""`construct`: from labelled sequences to a proved network."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Array
from hardmax.exact.bumps import bump_drafts
from hardmax.exact.certificate import Certificate, certify
from hardmax.exact.data import Corpus, Labels, read_corpus, read_labels
from hardmax.exact.layers import FeedForward
from hardmax.exact.mean import Draft, mean_drafts
from hardmax.exact.network import Network, Source, settings
from hardmax.exact.parts import join, remove
from hardmax.exact.plant import tree_drafts
from hardmax.exact.separate import ConflictError, PrecisionError, check_conflicts, conflicts
from hardmax.exact.story import tell
from hardmax.exact.text import is_text
from hardmax.exact.tree import Tree

__all__ = ["METHODS", "VARIANTS", "construct"]

METHODS = ("auto", "mean", "bumps", "tree", "chain")
VARIANTS = ("residual", "rho_eta")
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class _Task:
    """Checked input of one construction."""

    corpus: Corpus
    labels: Labels
    source: Source
    width: int | None
    variant: str
    rng: np.random.Generator
    progress: Progress | None


def construct(
    sequences: Any,
    labels: Any,
    *,
    method: str = "auto",
    positions: bool = False,
    width: int | None = None,
    variant: str = "residual",
    dtype: str = "float64",
    random_state: int = 0,
    vectors: Any = None,
    dim: int | None = None,
    progress: Progress | None = None,
) -> Network:
    """A transformer that gives every sequence its label, built without training.

    Parameters
    ----------
    sequences
        Arrays (n_j, d) of any lengths, or texts, or lists of words.
    labels
        One number or string per sequence, of any number of classes.
    method
        "mean": one attention layer; sequences of different label must have
        different token frequencies.  "bumps": one attention layer, for tokens
        that lie very close.  "tree": all classes split in parallel, no rounding
        anywhere; sets of tokens must differ.  "chain": one split per block, the
        shape of the published construction.  "auto": the first of mean, bumps,
        tree that can be proved.
    positions
        Add i times a generic vector to the i-th token, so that order counts.
    width
        Largest number of neurons in a layer (at least 2): width against depth.
    variant
        "residual", or "rho_eta": blocks of attention, then feed-forward of
        width 4 without output bias.
    dtype
        "float64" or "float32".
    random_state
        Seed of all random choices.
    vectors, dim
        For texts: a mapping from words to vectors, or the dimension of generic
        ones (64).
    progress
        Called with (stage, done, total).

    Raises
    ------
    ConflictError
        If sequences that cannot be told apart have different labels; `.pairs`.
    PrecisionError
        If nothing could be proved in this float type; the message says what to do.

    Notes
    -----
    Nothing is claimed about sequences that were not given.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.array([[0.0, 0.0], [1.0, 2.0]]), np.array([[1.0, 2.0]])
    >>> net = construct([a, b], ["long", "short"])
    >>> net.predict([b, a]).tolist(), net.certificate.proved
    (['short', 'long'], True)
    """
    task = _read(
        sequences, labels, method, positions, width, variant, dtype, random_state, vectors, dim,
        progress,
    )  # fmt: skip
    if len(task.labels.classes) == 1:
        return _network(task, "mean", _constant(task), _proof(task, _constant(task), "radius"))
    chosen = ("mean", "bumps", "tree") if method == "auto" else (method,)
    check_conflicts(task.corpus, task.labels.codes, "measures")
    if method in ("tree", "chain"):
        check_conflicts(task.corpus, task.labels.codes, "sets")
    reasons: list[str] = []
    for name in chosen:
        if name == "tree" and method == "auto":
            if task.corpus.dim == 1:
                continue
            if conflicts(task.corpus, task.labels.codes, "sets"):
                reasons.append("tree: equal sets of different label")
                continue
        try:
            found = _first_proved(task, name, reasons)
        except PrecisionError as error:
            reasons.append(f"{name}: {error}")
            continue
        if found is not None:
            return found
    raise _refusal(task, method, reasons)


def _read(
    sequences: Any, labels: Any, method: str, positions: bool, width: int | None, variant: str,
    dtype: str, random_state: int, vectors: Any, dim: int | None, progress: Progress | None,
) -> _Task:  # fmt: skip
    _check_choice("method", method, METHODS)
    _check_choice("variant", variant, VARIANTS)
    kind = str(np.dtype(dtype)) if dtype is not None else "None"
    _check_choice("dtype", kind, ("float64", "float32"))
    if width is not None and (not isinstance(width, int | np.integer) or width < 2):
        raise InputError(f"`width` must be an integer of at least 2; got {width}. Enlarge it.")
    texts = _texts(sequences)
    if not texts and (vectors is not None or dim is not None):
        raise InputError("`vectors` and `dim` are for texts; got arrays. Leave them out.")
    corpus = read_corpus(sequences, dtype=kind, vectors=vectors, dim=dim, seed=random_state)
    rng = np.random.default_rng(random_state)
    step = None
    if positions:
        step = _step(corpus, rng)
        corpus = read_corpus(
            sequences, dtype=kind, step=step, vectors=vectors, dim=dim, seed=random_state
        )
    given = read_labels(labels, corpus.size)
    if variant == "rho_eta":
        width = 4 if width is None else int(width)
    if corpus.dim == 1 and (method in ("tree", "chain") or (width is not None)):
        raise InputError(
            "in one dimension only methods mean and bumps without `width` or blocks exist; "
            f"got method={method!r}, width={width}, variant={variant!r}. "
            "Use method='mean', or add a coordinate to every token."
        )
    source = Source(texts, int(random_state), step, vectors)
    return _Task(corpus, given, source, width, variant, rng, progress)


def _texts(sequences: Any) -> bool:
    return hasattr(sequences, "__len__") and len(sequences) > 0 and is_text(list(sequences[:1]))


def _step(corpus: Corpus, rng: np.random.Generator) -> Array:
    """A generic vector; the last position moves by about the range of the data."""
    span = np.ptp(corpus.table.astype(np.float64), axis=0)
    span = np.where(span > 0, span, 1.0)
    length = max(int(corpus.lengths.max()) - 1, 1)
    return np.asarray(span * (0.5 + rng.random(corpus.dim)) / length, corpus.table.dtype)


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(
            f"`{name}` must be one of {', '.join(choices)}; got {value!r}. Choose one of them."
        )


def _drafts(task: _Task, method: str) -> Iterator[Draft]:
    corpus, codes = task.corpus, task.labels.codes
    blocks = task.variant == "rho_eta"
    if method == "mean":
        return mean_drafts(corpus, codes, task.rng, width=task.width, blocks=blocks)
    if method == "bumps":
        return bump_drafts(corpus, codes, task.rng, width=task.width, blocks=blocks)
    return tree_drafts(
        corpus, codes, task.rng, chain=method == "chain", width=task.width, blocks=blocks,
        progress=task.progress,
    )  # fmt: skip


def _proof(task: _Task, draft: Draft, kind: str) -> Certificate:
    return certify(
        draft.layers, draft.column, draft.entry, kind, task.corpus, task.labels,
        margin=draft.margin, extra=settings(draft.column, draft.entry, task.source),
    )  # fmt: skip


def _first_proved(task: _Task, method: str, reasons: list[str]) -> Network | None:
    kind = {"mean": "radius", "bumps": "grid"}.get(method, "exact")
    started = time.monotonic()
    for number, draft in enumerate(_drafts(task, method)):
        if task.progress is not None:
            task.progress(f"verify {method}", number, 0)
        proof = _proof(task, draft, kind)
        if proof.proved:
            return _network(task, method, draft, proof)
        reasons.append(f"{method}: {proof.reason}")
        if time.monotonic() - started > 120:
            break
    if not any(r.startswith(method) for r in reasons):
        reasons.append(f"{method}: no direction separates the projections")
    return None


def _network(task: _Task, method: str, draft: Draft, proof: Certificate) -> Network:
    story = tell(draft.tree, task.corpus) if isinstance(draft.tree, Tree) else None
    return Network(
        layers=draft.layers,
        dim=task.corpus.dim,
        column=draft.column,
        classes=task.labels.classes,
        method=method,
        variant=task.variant,
        certificate=proof,
        entry=draft.entry,
        source=task.source,
        story=story,
    )


def _constant(task: _Task) -> Draft:
    """One label: every token is sent to 0."""
    layer: FeedForward = join([remove(task.corpus.dim, 0, task.corpus.table.dtype)])
    return Draft((layer,), 0)


def _refusal(task: _Task, method: str, reasons: list[str]) -> Exception:
    """What failed, and what was tried and works instead."""
    kind = str(task.corpus.table.dtype)
    last = {r.split(":")[0]: r for r in reasons}
    said = "; ".join(last.values()) or "nothing could be proved"
    offer = _offer(task, method)
    hint = f"Use {offer}" if offer else "Scale or centre the tokens, or leave some out"
    return PrecisionError(f"{kind} is too small for these data ({said}). {hint}.")


def _offer(task: _Task, method: str) -> str:
    """A method, or float64, for which a proof is found; empty where none is."""
    others = [] if method == "auto" else [m for m in METHODS[1:4] if m != method]
    choices = [(m, task, f"method={m!r}") for m in others]
    if task.corpus.table.dtype == np.float32:
        corpus = replace(task.corpus, table=task.corpus.table.astype(np.float64))
        larger = replace(task, corpus=corpus)
        same = METHODS[1:4] if method == "auto" else (method,)
        choices = [(m, larger, "dtype='float64'") for m in same] + choices
    for name, trial, offer in choices:
        if name == "tree" and (
            trial.corpus.dim == 1 or conflicts(trial.corpus, trial.labels.codes, "sets")
        ):
            continue
        try:
            if _first_proved(trial, name, []) is not None:
                return offer
        except PrecisionError:
            continue
    return ""


__all__ += ["ConflictError", "PrecisionError"]
