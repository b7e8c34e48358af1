"""Random models over a small language, with ties, equal vectors and several heads."""

from __future__ import annotations

import numpy as np
import torch

from hardmax.explain.bundle import Bundle
from hardmax.learn.model import HardmaxModel
from hardmax.tokens.vocabulary import learn_vocabulary, read_stream

_ALL = "good bad film the a was not plot dull great warm cold never end of it"
WORDS = _ALL.split(" ")


def some_text(rng: np.random.Generator, words: int, unknown: float = 0.1) -> str:
    """Words of the language with marks between, and now and then an unknown one."""
    pieces = []
    for _ in range(words):
        word = "zzz" if rng.random() < unknown else str(rng.choice(WORDS))
        pieces.append(word + str(rng.choice(["", "", "", ".", ",", "!", "<br />"])))
    return " ".join(pieces)


def random_bundle(
    seed: int,
    *,
    heads: int = 2,
    size: int = 2,
    depth: int = 2,
    ngrams: int = 2,
    outputs: int = 1,
    sentences: bool = False,
    integers: bool = False,
    alpha: float = 2.0,
    stop_words: tuple[str, ...] = (),
    scores: bool = False,
) -> Bundle:
    """An untrained model; with `integers`, small integer vectors that tie and coincide.

    With `scores`, every head has a matrix A of its own, neither symmetric nor definite.
    """
    rng = np.random.default_rng(seed)
    texts = [some_text(rng, 12, 0.0) for _ in range(40)]
    vocabulary, _ = learn_vocabulary(
        read_stream(texts), ngrams=ngrams, min_count=2, across=not sentences, stop_words=stop_words
    )
    model = HardmaxModel(
        len(vocabulary),
        heads * size,
        heads=heads,
        depth=depth,
        outputs=outputs,
        alpha=alpha,
        spread=1.0,
        seed=seed,
        A=rng.integers(-2, 3, (heads, size, size)).astype(np.float64) if scores else None,
    )
    with torch.no_grad():
        model.b.copy_(torch.from_numpy(rng.standard_normal(outputs) / 4))
        if integers:
            vectors = rng.integers(-2, 3, (len(vocabulary), heads * size)).astype(np.float32)
            model.E.copy_(torch.from_numpy(vectors))
    classes = ("no", "yes") if outputs == 1 else tuple(range(outputs))
    return Bundle(model, vocabulary, classes, sentences)
