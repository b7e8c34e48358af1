"""Every family of sequences, easy and adversarial, is classified and proved."""

from __future__ import annotations

import numpy as np
import pytest

from hardmax.exact import construct
from tests.unit.exact.families import MEASURES, ONE_DIMENSION, SETS, Family

FREQUENCIES = {**SETS, **MEASURES}
EVERYTHING = {**FREQUENCIES, **ONE_DIMENSION}


def _names(families: dict[str, Family]) -> list[str]:
    return sorted(families)


def _check(family: Family, method: str, seed: int, n: int = 24) -> None:
    sequences, labels = family(np.random.default_rng(seed), n)
    net = construct(sequences, labels, method=method, random_state=seed)
    d = net.dim
    assert net.certificate.proved
    assert net.predict(sequences).tolist() == labels
    assert net.verify(sequences, labels)
    counts = net.counts
    assert counts.attention_layers <= max(1, len(sequences) - 1)
    if method in ("tree", "chain"):
        assert net.certificate.deviation == 0.0
        assert counts.parameters <= (18 * d + 8) * len(sequences)
        assert counts.neurons <= 7 * len(sequences) - 2
    if method == "mean":
        assert counts.attention_layers == 1
        kinks = sum(x.neurons for x in net.layers[:-1] if hasattr(x, "W1"))
        assert counts.parameters <= 4 * len(sequences) * d + (2 * d + 1) * (kinks + 6) + 8 * d


@pytest.mark.parametrize("name", _names(EVERYTHING))
def test_mean_classifies_with_one_attention_layer(name: str) -> None:
    _check(EVERYTHING[name], "mean", 0)


@pytest.mark.parametrize("name", _names(SETS))
def test_tree_classifies_without_rounding(name: str) -> None:
    _check(SETS[name], "tree", 1)


@pytest.mark.parametrize("name", _names(SETS))
def test_chain_classifies_without_rounding(name: str) -> None:
    _check(SETS[name], "chain", 2)


@pytest.mark.parametrize("name", _names(FREQUENCIES))
def test_bumps_classify_with_one_attention_layer(name: str) -> None:
    _check(FREQUENCIES[name], "bumps", 3)


@pytest.mark.parametrize("name", _names(EVERYTHING))
def test_auto_classifies_any_size(name: str) -> None:
    for n in (4, 61):
        _check(EVERYTHING[name], "auto", n, n)


@pytest.mark.parametrize("name", _names(SETS))
def test_rational_arithmetic_gives_the_labels_exactly(name: str) -> None:
    sequences, labels = SETS[name](np.random.default_rng(5), 8)
    sequences = [z[:40] if len(z) > 200 else z for z in sequences]
    net = construct(sequences, labels, method="tree")
    codes = [net.classes.index(y) for y in labels]
    for sequence, code in list(zip(sequences, codes, strict=True))[:4]:
        final = net.forward_exact(sequence)
        assert {row[net.column] for row in final} == {code}
