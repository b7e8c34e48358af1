"""`construct`: from labelled sequences to a proved network."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from hardmax.exact.bumps import bump_drafts
from hardmax.exact.certificate import PROOFS, certify
from hardmax.exact.layers import FeedForward
from hardmax.exact.mean import Draft, mean_drafts
from hardmax.exact.network import Network, settings
from hardmax.exact.parts import in_blocks, join, remove
from hardmax.exact.plant import tree_drafts
from hardmax.exact.separate import ConflictError, PrecisionError, conflicts
from hardmax.exact.story import tell
from hardmax.exact.task import METHODS, VARIANTS, Progress, Task, check_task, read_task
from hardmax.exact.tree import Tree

__all__ = ["METHODS", "VARIANTS", "ConflictError", "PrecisionError", "construct"]

_PATIENCE = 120.0


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
    task = read_task(
        sequences, labels, method=method, positions=positions, width=width, variant=variant,
        dtype=dtype, random_state=random_state, vectors=vectors, dim=dim, progress=progress,
    )  # fmt: skip
    check_task(task, sequences, method)
    reasons: list[str] = []
    if len(task.labels.classes) == 1 and method not in ("tree", "chain"):
        only = _candidate(task, "mean", _constant(task))
        if only.certificate.proved:
            return only
        reasons.append(f"mean: {only.certificate.reason}")
    for name in ("mean", "bumps", "tree") if method == "auto" else (method,):
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


def _drafts(task: Task, method: str) -> Iterator[Draft]:
    """Candidates of one method; the same whichever methods were tried before."""
    corpus, codes = task.corpus, task.labels.codes
    rng = np.random.default_rng([task.seed, METHODS.index(method)])
    blocks = task.variant == "rho_eta"
    if method == "mean":
        return mean_drafts(corpus, codes, rng, width=task.width, blocks=blocks)
    if method == "bumps":
        return bump_drafts(corpus, codes, rng, width=task.width, blocks=blocks)
    return tree_drafts(
        corpus, codes, rng, chain=method == "chain", width=task.width, blocks=blocks,
        progress=task.progress,
    )  # fmt: skip


def _candidate(task: Task, method: str, draft: Draft) -> Network:
    """A draft as a network, with a certificate that may say that nothing was proved."""
    story = tell(draft.tree, task.corpus) if isinstance(draft.tree, Tree) else None
    classes = task.labels.classes
    margin = draft.margin if math.isfinite(draft.margin) else None
    facts = settings(
        task.source, story, task.corpus.dim, draft.column, draft.entry, classes, method,
        task.variant, margin,
    )  # fmt: skip
    proof = certify(
        draft.layers, draft.column, draft.entry, PROOFS[method], task.corpus, task.labels,
        margin=margin, extra=facts,
    )  # fmt: skip
    return Network(
        layers=draft.layers,
        dim=task.corpus.dim,
        column=draft.column,
        classes=classes,
        method=method,
        variant=task.variant,
        certificate=proof,
        entry=draft.entry,
        source=task.source,
        story=story,
    )


def _first_proved(task: Task, method: str, reasons: list[str]) -> Network | None:
    started = time.monotonic()
    for number, draft in enumerate(_drafts(task, method)):
        if task.progress is not None:
            task.progress(f"verify {method}", number, 0)
        net = _candidate(task, method, draft)
        if net.certificate.proved:
            return net
        reasons.append(f"{method}: {net.certificate.reason}")
        if time.monotonic() - started > _PATIENCE:
            break
    if not any(r.startswith(method) for r in reasons):
        reasons.append(f"{method}: no direction separates the projections")
    return None


def _constant(task: Task) -> Draft:
    """One label: every token is sent to 0."""
    layer: FeedForward = join([remove(task.corpus.dim, 0, task.corpus.table.dtype)])
    blocks = task.variant == "rho_eta"
    return Draft(tuple(in_blocks([layer], task.corpus.dim, None) if blocks else [layer]), 0)


def _refusal(task: Task, method: str, reasons: list[str]) -> Exception:
    """What failed, and what was tried and works instead."""
    kind = str(task.corpus.table.dtype)
    last = {r.split(":")[0]: r for r in reasons}
    said = "; ".join(last.values()) or "nothing could be proved"
    offer = _offer(task, method)
    hint = f"Use {offer}" if offer else "Scale or centre the tokens, or leave some out"
    return PrecisionError(f"{kind} is too small for these data ({said}). {hint}.")


def _offer(task: Task, method: str) -> str:
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
