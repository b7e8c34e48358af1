"""The proofs: lookup equals neurons, bits are counted, radii hold for any order of sums."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardmax.exact import construct
from hardmax.exact.data import read_corpus
from hardmax.exact.forward import outputs, plan, plans, run
from hardmax.exact.layers import Attention, FeedForward, Layer, pack, unpack
from hardmax.exact.piecewise import evaluate_exact, low_unit, piecewise
from hardmax.exact.radius import error_radius
from hardmax.exact.rationals import forward_exact
from hardmax.exact.verify import no_rounding


def _layer(rng: np.random.Generator, h: int, d: int = 2) -> FeedForward:
    """Random neurons that read coordinate 0 with weight +-1 and write all coordinates."""
    w = rng.choice([-1.0, 1.0], size=(h, 1))
    return FeedForward(
        (0,), tuple(range(d)), w, rng.normal(size=h), rng.normal(size=(d, h)), rng.normal(size=d)
    )


def _neurons(layer: FeedForward, x: float) -> list[Fraction]:
    pre = [
        max(Fraction(float(w)) * Fraction(x) + Fraction(float(b)), Fraction(0))
        for w, b in zip(layer.W1[:, 0], layer.b1, strict=True)
    ]
    return [
        sum((Fraction(float(v)) * p for v, p in zip(row, pre, strict=True)), Fraction(0))
        for row in layer.W2
    ]


@given(st.integers(1, 40), st.floats(-5, 5), st.integers(0, 2**31))
def test_sorted_lookup_is_the_exact_sum_of_neurons(h: int, x: float, seed: int) -> None:
    layer = _layer(np.random.default_rng(seed), h)
    f = piecewise(layer, np.arange(h), 0)
    assert evaluate_exact(f, Fraction(x)) == _neurons(layer, x)
    for kink in f.kinks[:3]:
        assert evaluate_exact(f, Fraction(float(kink))) == _neurons(layer, float(kink))


def test_wide_layers_use_lookup_and_agree_with_dense_ones() -> None:
    rng = np.random.default_rng(0)
    layer = _layer(rng, 60, 3)
    corpus = read_corpus([rng.normal(size=(50, 3))])
    planned = plan(layer)
    assert len(planned.lookups) == 1
    dense = replace(planned, dense=np.arange(60), lookups=())
    a, b = (run([layer], corpus, (0, 1, 2), [p]).z for p in (planned, dense))
    assert np.abs(a - b).max() < 1e-12


def test_neurons_that_are_no_powers_of_two_are_not_looked_up() -> None:
    layer = _layer(np.random.default_rng(0), 60)
    odd = replace(layer, W1=layer.W1 * 0.3)
    assert len(plan(odd).dense) == 60


@pytest.mark.parametrize("seed", range(6))
def test_radius_bounds_every_order_of_summation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    corpus = read_corpus([rng.normal(size=(int(rng.integers(1, 9)), 2)) for _ in range(5)])
    first = FeedForward(
        (0, 1), (0, 1), rng.normal(size=(7, 2)), rng.normal(size=7), rng.normal(size=(2, 7))
    )
    zero = np.zeros(2)
    layers: list[Layer] = [
        first,
        Attention(zero, zero, np.array([1.0, 2.0]), np.array([0.0, 1.0])),
        _layer(rng, 300),
    ]
    value, radius = error_radius(layers, corpus, 1)
    for j in range(corpus.size):
        piece = slice(corpus.starts[j], corpus.starts[j + 1])
        exact = forward_exact(layers, corpus.table[corpus.rows[piece]], corpus.counts[piece])
        for place, row in zip(range(piece.start, piece.stop), exact, strict=True):
            assert abs(float(row[1] - Fraction(float(value[place])))) <= radius[place]
    for _ in range(5):
        order = rng.permutation(300)
        last = layers[-1]
        assert isinstance(last, FeedForward)
        mixed = replace(last, W1=last.W1[order], b1=last.b1[order], W2=last.W2[:, order])
        dense = [replace(p, dense=np.arange(p.layer.neurons), lookups=()) if not isinstance(
            p, Attention) else p for p in plans([*layers[:-1], mixed])]  # fmt: skip
        other = run([*layers[:-1], mixed], corpus, (1,), dense).column(1)
        assert (np.abs(other - value) <= 2 * radius).all()
    assert radius.max() < 1e-10


def test_flatness_is_needed_within_one_grid_step() -> None:
    rng = np.random.default_rng(1)
    sequences = [rng.normal(size=(5, 2)) for _ in range(10)]
    labels = [i % 2 for i in range(10)]
    net = construct(sequences, labels, method="tree")
    corpus = net.read(sequences)
    assert no_rounding(net.layers, net.entry, corpus, 1).proved
    bump = net.layers[net.entry]
    assert isinstance(bump, FeedForward)
    state = run(net.layers[: net.entry], corpus, (0, 1))
    token = float(state.column(0)[0])
    b1 = bump.b1.copy()
    b1[-1] = -token * bump.W1[-1, 0]
    layers = list(net.layers)
    layers[net.entry] = replace(bump, b1=b1)
    result = no_rounding(layers, net.entry, corpus, 1)
    assert not result.proved
    assert "flat" in result.reason


@pytest.mark.parametrize("value", [1e300, 5e-324])
def test_scores_that_overflow_or_vanish_are_not_proved(value: float) -> None:
    sequences = [np.array([[0.0, i], [1.0, i]]) for i in range(6)]
    net = construct(sequences, [i % 2 for i in range(6)], method="tree")
    layers = list(net.layers)
    at = next(i for i, x in enumerate(layers) if isinstance(x, Attention))
    query = np.array([value, 0.0])
    layers[at] = replace(layers[at], q=query)
    result = no_rounding(layers, net.entry, net.read(sequences), 1)
    assert not result.proved
    assert "range of the float type" in result.reason
    zero = np.zeros(2)
    layers[at] = replace(layers[at], k=zero, v=zero, u=zero)  # idle, but inf times 0 is nan
    assert not no_rounding(layers, net.entry, net.read(sequences), 1).proved
    mean = construct(sequences, [i % 2 for i in range(6)], method="mean")
    layers = [replace(x, q=query) if isinstance(x, Attention) else x for x in mean.layers]
    assert np.isinf(error_radius(layers, mean.read(sequences), mean.column)[1]).all()


@pytest.mark.parametrize("value", [1e-310, 1e-20])
def test_scratch_coordinate_must_be_exactly_zero_on_entry(value: float) -> None:
    rng = np.random.default_rng(3)
    sequences = [rng.normal(size=(3, 2)) for _ in range(6)]
    net = construct(sequences, [i % 2 for i in range(6)], method="tree")
    layers = list(net.layers)
    first = layers[0]
    assert isinstance(first, FeedForward)
    b1 = first.b1.copy()
    b1[2] = value
    layers[0] = replace(first, b1=b1)
    result = no_rounding(layers, net.entry, net.read(sequences), 1)
    assert not result.proved
    assert "exactly zero on entry" in result.reason


def test_weights_without_a_unit_are_not_proved() -> None:
    rng = np.random.default_rng(3)
    sequences = [rng.normal(size=(3, 2)) for _ in range(6)]
    net = construct(sequences, [i % 2 for i in range(6)], method="tree")
    layers = list(net.layers)
    last = layers[-1]
    assert isinstance(last, FeedForward)
    w2 = last.W2.copy()
    w2[w2 != 0] = 5e-324
    layers[-1] = replace(last, W2=w2)
    assert not no_rounding(layers, net.entry, net.read(sequences), 1).proved


def test_too_many_bits_are_noticed() -> None:
    rng = np.random.default_rng(2)
    sequences = [rng.normal(size=(5, 2)) for _ in range(10)]
    net = construct(sequences, [i % 2 for i in range(10)], method="tree")
    layers = list(net.layers)
    last = layers[-1]
    assert isinstance(last, FeedForward)
    tiny = last.W2.copy()
    tiny[tiny != 0] *= 1 + 2.0**-50
    layers[-1] = replace(last, W2=tiny)
    assert not no_rounding(layers, net.entry, net.read(sequences), 1).proved


def test_projection_error_must_stay_below_half_a_step() -> None:
    rng = np.random.default_rng(3)
    sequences = [rng.normal(size=(3, 2)) for _ in range(6)]
    net = construct(sequences, [i % 2 for i in range(6)], method="tree")
    layers = list(net.layers)
    first = layers[0]
    assert isinstance(first, FeedForward)
    layers[0] = replace(first, W1=first.W1 * 2.0**40, b1=first.b1 * 2.0**40)
    result = no_rounding(layers, net.entry, net.read(sequences), 1)
    assert not result.proved


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1), st.integers(-30, 30))
def test_low_unit_divides_every_value(numbers: list[int], power: int) -> None:
    values = np.array(numbers, dtype=np.float64) * 2.0**power
    unit = low_unit(values)
    if any(numbers):
        assert all((Fraction(float(v)) / Fraction(unit)).denominator == 1 for v in values)
        assert any((Fraction(float(v)) / Fraction(unit)) % 2 == 1 for v in values)
    else:
        assert unit == np.inf


def test_packed_layers_come_back() -> None:
    rng = np.random.default_rng(4)
    zero = np.zeros(2)
    layers: list[Layer] = [
        replace(_layer(rng, 5), eta=0.5),
        Attention(zero, zero, np.ones(2), np.ones(2), rho=0.25, beta=3.0),
    ]
    again = unpack(*pack(layers))
    corpus = read_corpus([rng.normal(size=(4, 2))])
    assert (outputs(layers, corpus, 1)[0] == outputs(again, corpus, 1)[0]).all()


def test_hardmax_means_ties_over_all_best_tokens() -> None:
    """Keys 0, 2, 2: tokens that ask with a positive sign see 2, 2; negative ones see 0."""
    z = np.array([[1.0, 0.0, 10.0], [-1.0, 2.0, 20.0], [0.0, 2.0, 40.0]])
    q, k, v, u = np.eye(3)[0], np.eye(3)[1], np.eye(3)[2], np.array([1.0, 0, 0])
    corpus = read_corpus([z])
    out = run([Attention(q, k, v, u)], corpus, (0,)).column(0)
    assert out.tolist() == [1 + 30.0, -1 + 10.0, 0 + 70.0 / 3]
    exact = forward_exact([Attention(q, k, v, u)], z, np.ones(3, np.int64))
    assert [row[0] for row in exact] == [31, 9, Fraction(70, 3)]
