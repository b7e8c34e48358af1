"""A constructed network: layers as data, what they were proved to do, ways to run them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardmax._errors import DataError, InputError
from hardmax._types import Array
from hardmax.exact.certificate import PROOFS, Certificate, certify
from hardmax.exact.counts import Counts, count
from hardmax.exact.data import Corpus, Labels, decode, listed, read_corpus, read_labels
from hardmax.exact.forward import Plan, outputs, plans, run
from hardmax.exact.layers import (
    Attention,
    FeedForward,
    Layer,
    at_temperature,
    digest_layers,
    pack,
    unpack,
)
from hardmax.exact.rationals import forward_exact
from hardmax.exact.softmax import beta_star, smallest_beta
from hardmax.exact.steps import Steps, TraceStep, plane_steps, trace
from hardmax.exact.story import Story
from hardmax.exact.text import TrainedVectors, is_text
from hardmax.io import load_model, plain, save_model

if TYPE_CHECKING:
    from hardmax.exact.torch_module import ConstructedTransformer

__all__ = ["KIND", "Network", "Source"]

KIND = "exact"


@dataclass(frozen=True, eq=False)
class Source:
    """How sequences become tokens: positions, and vectors where they are texts."""

    texts: bool = False
    seed: int = 0
    step: Array | None = None
    vectors: Mapping[str, Any] | None = None

    def read(self, sequences: Any, dim: int | None, dtype: Any) -> Corpus:
        """The corpus of `sequences`."""
        items = listed(sequences)
        if is_text(items) and not self.texts:
            raise InputError(
                "the network was built from arrays and knows no words; got texts. "
                "Pass arrays (n, d)."
            )
        return read_corpus(
            items, dtype=dtype, step=self.step, vectors=self.vectors, dim=dim, seed=self.seed
        )


@dataclass(frozen=True, eq=False)
class Network:
    """A transformer that was built, not trained, and proved right on its sequences.

    `layers` are feed-forward and rank-one attention layers; the code of the
    label ends in coordinate `column` of every token.  On other sequences
    `predict` answers too, but nothing is claimed there.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmax.exact import construct
    >>> net = construct([np.array([[0.0, 1], [1, 2]]), np.array([[0.0, 1]])], ["a", "b"])
    >>> net.predict([np.array([[0.0, 1]])]).tolist()
    ['b']
    """

    layers: tuple[Layer, ...]
    dim: int
    column: int
    classes: tuple[Any, ...]
    method: str
    variant: str
    certificate: Certificate
    entry: int = 0
    source: Source = field(default_factory=Source)
    story: Story | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The float type of all weights."""
        first = self.layers[0]
        return (first.W2 if isinstance(first, FeedForward) else first.q).dtype

    @cached_property
    def counts(self) -> Counts:
        """Layers, neurons and weights, beside the bounds."""
        return count(self.layers, self.certificate.sequences, self.dim, self.entry)

    @cached_property
    def _plans(self) -> list[Plan | Attention]:
        return plans(self.layers)

    def __repr__(self) -> str:
        """What it is, not its weights."""
        said = self.certificate
        return (
            f"Network(method={self.method!r}, variant={self.variant!r}, dim={self.dim}, "
            f"classes={len(self.classes)}, layers={len(self.layers)}, sequences={said.sequences}, "
            f"proved={said.proved})"
        )

    def read(self, sequences: Any) -> Corpus:
        """The sequences as this network sees them."""
        return self.source.read(sequences, self.dim, self.dtype)

    def outputs(self, sequences: Any) -> tuple[Array, Array]:
        """Smallest and largest final value of the label coordinate per sequence."""
        return outputs(self.layers, self.read(sequences), self.column, self._plans)

    def predict(self, sequences: Any) -> Array:
        """The label of every sequence."""
        low, high = self.outputs(sequences)
        return self._decode((low + high) / 2)

    def _decode(self, values: Array) -> Array:
        codes = np.clip(np.rint(np.nan_to_num(values)), 0, len(self.classes) - 1)
        return decode(self.classes, codes.astype(np.int64))

    def forward(self, sequence: Any) -> Array:
        """The final tokens (n, d) of one sequence."""
        corpus = self.read([sequence])
        state = run(self.layers, corpus, range(self.dim), self._plans)
        place = np.empty(len(corpus.table), np.int64)
        place[corpus.rows] = np.arange(len(corpus.rows))
        return np.asarray(state.z[place[corpus.ids]])

    def forward_exact(self, sequence: Any, *, lookup: bool = True) -> list[list[Fraction]]:
        """The final tokens of one sequence in rational arithmetic, from its floats."""
        corpus = self.read([sequence])
        tokens = corpus.table[corpus.rows]
        rows = forward_exact(self.layers, tokens, corpus.counts, lookup=lookup)
        place = {int(w): i for i, w in enumerate(corpus.rows)}
        return [rows[place[int(w)]] for w in corpus.ids]

    def predict_exact(self, sequences: Any) -> Array:
        """The label of every sequence from its exact value, rounded once at the end."""
        corpus = self.read(sequences)
        values = np.empty(corpus.size)
        for j in range(corpus.size):
            piece = slice(corpus.starts[j], corpus.starts[j + 1])
            tokens = corpus.table[corpus.rows[piece]]
            rows = forward_exact(self.layers, tokens, corpus.counts[piece])
            values[j] = float(rows[0][self.column])
        return self._decode(values)

    def verify(self, sequences: Any, labels: Any) -> bool:
        """Recompute the certificate from these sequences, labels and weights.

        False when a weight, a token or a label differs from what was certified,
        or a stated number does not come out again.
        """
        return self.check(sequences, labels) == ""

    def check(self, sequences: Any, labels: Any) -> str:
        """Why `verify` fails; empty when it does not."""
        said = self.certificate
        corpus = self.read(sequences)
        given = read_labels(labels, corpus.size)
        if digest_layers(self.layers, self.settings()) != said.weights_sha256:
            return "weights or settings differ from those that were certified"
        if not said.proved or said.kind != PROOFS.get(self.method):
            return said.reason or "the certificate states no proof of this method"
        if said.sha256 != said.digest():
            return "the certificate is not the one that was issued"
        if corpus.digest() != said.data_sha256:
            return "the sequences differ from those that were certified"
        if given.digest() != said.labels_sha256 or given.classes != self.classes:
            return "the labels differ from those that were certified"
        again = self.certify(corpus, given, margin=said.margin)
        return (
            "" if again.proved and again.agrees(said) else "the certificate does not come out again"
        )

    def _labels(self, labels: Any, size: int) -> Labels:
        """Labels as codes of the classes of this network."""
        given = read_labels(labels, size)
        if not set(given.classes) <= set(self.classes):
            raise InputError(
                f"labels must be among the classes of the network; got {given.classes!r:.60}."
            )
        codes = [self.classes.index(c) for c in given.classes]
        return Labels(np.array(codes, np.int64)[given.codes], self.classes)

    def certify(self, corpus: Corpus, labels: Labels, margin: float | None = None) -> Certificate:
        """A certificate of this network for `corpus`, of the kind of its own."""
        return certify(
            self.layers, self.column, self.entry, self.certificate.kind, corpus, labels,
            margin=margin, extra=self.settings(),
        )  # fmt: skip

    def settings(self) -> str:
        """What is digested with the weights."""
        return settings(
            self.source, self.story, self.dim, self.column, self.entry, self.classes, self.method,
            self.variant, self.certificate.margin,
        )  # fmt: skip

    def softmax(self, beta: float, sequences: Any = None, labels: Any = None) -> Network:
        """The same weights with softmax attention at inverse temperature `beta`.

        Mean and bumps stay proved at every temperature.  Tree and chain are
        proved again for the `sequences` and `labels` of the construction where
        these are given; else, or where that fails, the certificate says so.
        """
        if not (isinstance(beta, int | float | np.number) and beta > 0):
            raise InputError(f"`beta` must be above 0; got {beta!r}. Take `beta_star(sequences)`.")
        net = replace(self, layers=at_temperature(self.layers, float(beta)))
        said = self.certificate.sealed(weights_sha256=digest_layers(net.layers, self.settings()))
        if not all(x.uniform or x.idle for x in net.layers if isinstance(x, Attention)):
            reason = f"softmax at inverse temperature {beta:g}, not proved for these sequences"
            said = said.sealed(proved=False, reason=reason)
            if sequences is not None:
                corpus = self.read(sequences)
                said = net.certify(corpus, self._labels(labels, corpus.size), said.margin)
        return replace(net, certificate=said)

    def beta_star(self, sequences: Any) -> float:
        """A proved inverse temperature from which softmax gives the same labels.

        0 where any temperature does (mean and bumps: all scores are equal).
        """
        corpus = self.read(sequences)
        scale = self.scale
        return beta_star(self.layers, self.entry, corpus, self.column, scale)

    @property
    def scale(self) -> float:
        """The size of the state: 1, or the power of two that the data asked for."""
        keys = [float(x.k[1]) for x in self.layers if isinstance(x, Attention) and x.k.any()]
        return 1.0 / keys[0] if keys else 1.0

    def smallest_beta(self, sequences: Any, labels: Any) -> float:
        """The smallest inverse temperature, within 2 %, that gives all labels here."""
        corpus = self.read(sequences)
        codes = self._labels(labels, corpus.size).codes
        star = beta_star(self.layers, self.entry, corpus, self.column, self.scale)
        low, high = outputs(self.layers, corpus, self.column, self._plans)
        if not (np.rint(low) == codes).all() or not (np.rint(high) == codes).all():
            raise InputError("the network does not give these labels. Pass those it was built for.")
        if star == 0:
            return 0.0

        def works(beta: float) -> bool:
            low, high = outputs(at_temperature(self.layers, beta), corpus, self.column)
            return bool((np.rint(low) == codes).all() and (np.rint(high) == codes).all())

        return smallest_beta(works, star)

    def steps(self, sequences: Any, labels: Any = None) -> Steps:
        """Tokens in the plane after every layer: the data of a picture."""
        return plane_steps(self, sequences, labels)

    def trace(self, sequence: Any) -> tuple[TraceStep, ...]:
        """The questions that the tree asks this sequence, with the answers."""
        return trace(self, sequence)

    def to_torch(self, dtype: Any = None) -> ConstructedTransformer:
        """An ordinary torch module with dense weights and n x n attention."""
        import torch

        from hardmax.exact.torch_module import ConstructedTransformer

        kind = dtype or (torch.float64 if self.dtype == np.float64 else torch.float32)
        return ConstructedTransformer(self.layers, self.dim, self.column, kind, self.source.step)

    def to_onnx(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the network as ONNX: input "tokens" (n, d), output "final" (n, d)."""
        from hardmax.exact.onnx_export import write_onnx

        return write_onnx(self, Path(path), force=force)

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write weights and settings: safetensors and JSON."""
        save_model(folder, *self._packed(), KIND, force=force)

    def _packed(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Tensors and settings: all that is saved."""
        tensors, records = pack(self.layers)
        meta: dict[str, Any] = {
            "layers": records,
            "dim": self.dim,
            "column": self.column,
            "classes": list(self.classes),
            "method": self.method,
            "variant": self.variant,
            "entry": self.entry,
            "certificate": self.certificate.to_dict(),
            "texts": self.source.texts,
            "seed": self.source.seed,
            "words": None,
            "size": 0.0,
            "story": None if self.story is None else self.story.to_dict(),
        }
        if self.source.step is not None:
            tensors["step"] = self.source.step
        if self.source.vectors is not None:
            meta["words"] = list(self.source.vectors)
            meta["size"] = _size(self.source.vectors)
            tensors["vectors"] = np.array([self.source.vectors[w] for w in meta["words"]])
        return tensors, meta

    @classmethod
    def load(cls, folder: str | Path) -> Network:
        """The network that `save` wrote.

        Raises
        ------
        DataError
            If the folder is damaged or foreign, or anything in it was altered.
        """
        tensors, meta = load_model(folder, KIND)
        try:
            net = _unpacked(tensors, meta)
            again, facts = net._packed()
            same = digest_layers(net.layers, net.settings()) == net.certificate.weights_sha256
            same &= plain(facts) == meta and again.keys() == tensors.keys()
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise DataError(
                f"{folder}: expected a constructed network, got {type(error).__name__}: {error}. "
                "Copy the folder again."
            ) from None
        if not same:
            raise DataError(f"{folder}: differs from what was certified. Copy the folder again.")
        return net


def _unpacked(tensors: dict[str, Array], meta: dict[str, Any]) -> Network:
    words = meta["words"]
    vectors = None if words is None else dict(zip(words, tensors["vectors"], strict=True))
    size = float(meta["size"])
    if size:
        if vectors is None:
            raise ValueError("a size of word vectors, but no word vectors")
        vectors = TrainedVectors(vectors, size)
    story = meta["story"]
    return Network(
        layers=unpack(tensors, meta["layers"]),
        dim=int(meta["dim"]),
        column=int(meta["column"]),
        classes=tuple(meta["classes"]),
        method=str(meta["method"]),
        variant=str(meta["variant"]),
        certificate=Certificate.from_dict(meta["certificate"]),
        entry=int(meta["entry"]),
        source=Source(bool(meta["texts"]), int(meta["seed"]), tensors.get("step"), vectors),
        story=None if story is None else Story.from_dict(story),
    )


def settings(source: Source, story: Story | None, *facts: Any) -> str:
    """What a certificate covers beside weights and data."""
    step = "" if source.step is None else source.step.tobytes().hex()
    vectors = source.vectors or {}
    words = sorted(vectors)
    rows = hashlib.sha256(np.array([vectors[w] for w in words], np.float64).tobytes()).hexdigest()
    return repr((source.texts, source.seed, step, words, rows, _size(vectors), story, *facts))


def _size(vectors: Mapping[str, Any]) -> float:
    """How large generic vectors of other words are; 0 where other words are refused."""
    return vectors.size if isinstance(vectors, TrainedVectors) else 0.0
