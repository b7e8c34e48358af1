"""Constructed networks: refusals, proofs, independent runs, saving."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hardmax._errors import InputError
from hardmax.exact import ConflictError, Network, PrecisionError, construct
from hardmax.exact.layers import Attention, FeedForward
from tests.unit.exact.families import SETS

METHODS = ("mean", "bumps", "tree", "chain")


def _data(n: int = 40, d: int = 3, seed: int = 0) -> tuple[list[np.ndarray], list[int]]:
    rng = np.random.default_rng(seed)
    sequences = [rng.normal(size=(int(rng.integers(1, 12)), d)) for _ in range(n)]
    return sequences, [int(v) for v in rng.integers(0, 3, n)]


@pytest.mark.parametrize("variant", ["residual", "rho_eta"])
@pytest.mark.parametrize("method", METHODS)
def test_torch_module_with_plain_attention_gives_the_same_labels(method: str, variant: str) -> None:
    sequences, labels = _data()
    net = construct(sequences, labels, method=method, variant=variant)
    module = net.to_torch()
    with torch.no_grad():
        for z, y in zip(sequences, labels, strict=True):
            final = module(torch.tensor(z)).numpy()[:, net.column]
            assert np.abs(final - net.classes.index(y)).max() < 1e-9
            assert np.allclose(net.forward(z)[:, net.column], final, atol=1e-9)


def test_torch_module_takes_padded_batches() -> None:
    sequences, labels = _data()
    net = construct(sequences, labels, method="tree")
    n = max(len(z) for z in sequences)
    batch, mask = torch.full((len(sequences), n, 3), 7.0).double(), torch.zeros(len(sequences), n)
    for j, z in enumerate(sequences):
        batch[j, : len(z)], mask[j, : len(z)] = torch.tensor(z), 1
    with torch.no_grad():
        codes = net.to_torch().codes(batch, mask.bool())
    assert [net.classes[c] for c in codes.tolist()] == labels


@pytest.mark.parametrize("method", METHODS)
def test_rational_forward_is_within_rounding_of_the_label(method: str) -> None:
    sequences, labels = _data(12)
    net = construct(sequences, labels, method=method)
    for z, y in zip(sequences, labels, strict=True):
        for lookup in (True, False):
            final = [row[net.column] for row in net.forward_exact(z, lookup=lookup)]
            assert set(final) == {net.classes.index(y)}
    assert net.predict_exact(sequences).tolist() == labels


@pytest.mark.parametrize("method", METHODS)
def test_every_altered_weight_is_noticed(method: str) -> None:
    sequences, labels = _data(8, 2)
    net = construct(sequences, labels, method=method)
    assert net.verify(sequences, labels)
    for i, layer in enumerate(net.layers):
        names = ("W1", "b1", "W2", "b2") if isinstance(layer, FeedForward) else ("q", "k", "v", "u")
        for name in names:
            value = getattr(layer, name)
            for at in range(0 if value is None else value.size):
                wrong = value.copy()
                wrong.flat[at] = np.nextafter(wrong.flat[at], 9.0)
                layers = list(net.layers)
                layers[i] = replace(layer, **{name: wrong})
                altered = replace(net, layers=tuple(layers))
                assert not altered.verify(sequences, labels), (i, name, at)


def test_every_altered_datum_or_label_is_noticed() -> None:
    sequences, labels = _data(6, 2)
    net = construct(sequences, labels)
    for j, z in enumerate(sequences):
        for at in range(z.size):
            changed = [x.copy() for x in sequences]
            changed[j].flat[at] = np.nextafter(changed[j].flat[at], 9.0)
            assert "sequences differ" in net.check(changed, labels)
    assert "labels differ" in net.check(sequences, [*labels[1:], labels[0] + 1])
    assert not net.verify(sequences[::-1], labels)


def test_altered_certificate_is_noticed() -> None:
    sequences, labels = _data(10)
    for method in ("mean", "tree"):
        net = construct(sequences, labels, method=method)
        for name, value in (("radius", 1e-30), ("deviation", 5.0), ("sequences", 3)):
            said = replace(net.certificate, **{name: value})
            assert not replace(net, certificate=said).verify(sequences, labels)


def test_equal_measures_of_different_label_are_named() -> None:
    a, b = [1.0, 2.0], [3.0, 4.0]
    with pytest.raises(ConflictError, match=r"equal: \(0, 2\)") as caught:
        construct([[a, b], [a], [b, a, a, b]], [0, 0, 1])
    assert caught.value.pairs == ((0, 2),)


def test_equal_sets_are_refused_by_tree_and_chain_only() -> None:
    a, b = [1.0, 2.0], [3.0, 4.0]
    data = [[a, b], [a, a, b]]
    for method in ("tree", "chain"):
        with pytest.raises(ConflictError, match=r"equal sets: \(0, 1\).*method='mean'"):
            construct(data, ["x", "y"], method=method)
    for method in ("auto", "mean", "bumps"):
        assert construct(data, ["x", "y"], method=method).predict(data).tolist() == ["x", "y"]


def test_equal_sequences_of_equal_label_are_no_conflict() -> None:
    data = [[[1.0, 2.0]], [[1.0, 2.0], [1.0, 2.0]], [[0.0, 0.0]]]
    for method in METHODS:
        assert construct(data, [1, 1, 0], method=method).predict(data).tolist() == [1, 1, 0]


def test_positions_tell_orders_apart(tmp_path: Path) -> None:
    a, b, c = [1.0, 2.0], [3.0, 4.0], [0.0, 1.0]
    data, labels = [[a, b, c], [c, b, a], [b, a, c]], [0, 1, 1]
    with pytest.raises(ConflictError, match="positions=True"):
        construct(data, labels)
    for method in METHODS:
        net = construct(data, labels, positions=True, method=method)
        assert net.predict(data).tolist() == labels
        assert net.verify(data, labels)
        path = net.to_onnx(tmp_path / f"{method}.onnx")
        session, module = onnxruntime.InferenceSession(str(path)), net.to_torch()
        for z, y in zip(data, labels, strict=True):
            final = session.run(None, {"tokens": np.array(z)})[0]
            assert np.abs(final[:, net.column] - y).max() < 1e-9
            with torch.no_grad():
                assert int(module.codes(torch.tensor(z, dtype=torch.float64))) == y


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("width", [2, 3, 5, 16])
def test_width_is_kept_and_traded_for_depth(method: str, width: int) -> None:
    sequences, labels = _data(30)
    net = construct(sequences, labels, method=method, width=width)
    wide = construct(sequences, labels, method=method)
    assert net.counts.widest <= width
    assert net.counts.feed_forward_layers >= wide.counts.feed_forward_layers
    assert net.counts.attention_layers == wide.counts.attention_layers
    assert net.predict(sequences).tolist() == labels


def test_blocks_of_the_authors_alternate_and_have_no_output_bias() -> None:
    sequences, labels = _data(50, 2)
    net = construct(sequences, labels, method="mean", variant="rho_eta")
    assert all(isinstance(x, Attention) for x in net.layers[::2])
    feed = [x for x in net.layers[1::2] if isinstance(x, FeedForward)]
    assert len(feed) == len(net.layers) // 2
    assert all(x.b2 is None and x.neurons <= 4 for x in feed)
    assert net.counts.blocks <= math.ceil(2 * len(labels) / 4) + 1


def test_softmax_at_beta_star_gives_the_same_labels() -> None:
    for name in ("plane", "nested", "close_tokens", "one_outlier"):
        sequences, labels = SETS[name](np.random.default_rng(0), 30)
        net = construct(sequences, labels, method="tree")
        star = net.beta_star(sequences)
        assert 1 <= star < 64
        for beta in (star, 3 * star):
            soft = net.softmax(beta, sequences, labels)
            assert soft.certificate.proved
            assert soft.certificate.deviation == 0
            assert soft.verify(sequences, labels)
            with torch.no_grad():
                final = soft.to_torch()(torch.tensor(sequences[-1]))[:, soft.column]
            assert set(final.tolist()) == {net.classes.index(labels[-1])}
        smallest = net.smallest_beta(sequences, labels)
        assert smallest <= star
        if name == "one_outlier":  # all other projections lie so close that any mean will do
            assert smallest == 0
            continue
        assert net.softmax(smallest).predict(sequences).tolist() == labels
        low, high = net.softmax(smallest / 1.03).outputs(sequences)
        assert (np.rint(low) != np.array(labels)).any() or (np.rint(high) != labels).any()


def test_temperatures_know_some_of_the_labels_and_refuse_others() -> None:
    sequences, labels = _data(12)
    net = construct(sequences, labels, method="tree")
    one = [j for j, y in enumerate(labels) if y == max(labels)]
    some, theirs = [sequences[j] for j in one], [labels[j] for j in one]
    star = net.beta_star(some)
    assert net.smallest_beta(some, theirs) <= star
    assert net.softmax(star, some, theirs).certificate.proved
    with pytest.raises(InputError, match="does not give these labels"):
        net.smallest_beta(sequences, [*labels[1:], labels[0]])
    with pytest.raises(InputError, match="among the classes of the network"):
        net.smallest_beta(sequences, ["other"] * len(labels))


def test_softmax_that_is_too_soft_is_not_called_proved() -> None:
    sequences, labels = SETS["plane"](np.random.default_rng(0), 30)
    net = construct(sequences, labels, method="tree")
    soft = net.softmax(1.0, sequences, labels)
    assert not soft.certificate.proved
    assert "softmax may miss the maximum" in soft.check(sequences, labels)
    unasked = net.softmax(100.0)
    assert not unasked.verify(sequences, labels)
    assert "not proved for these sequences" in str(unasked.certificate)


def test_mean_is_the_same_at_every_temperature() -> None:
    sequences, labels = _data()
    net = construct(sequences, labels, method="mean")
    assert net.beta_star(sequences) == net.smallest_beta(sequences, labels) == 0
    for beta in (0.01, 1.0, 100.0):
        assert net.softmax(beta).predict(sequences).tolist() == labels
        assert net.softmax(beta).verify(sequences, labels)
        module = net.softmax(beta).to_torch()
        with torch.no_grad():
            code = int(module.codes(torch.tensor(sequences[0])))
        assert net.classes[code] == labels[0]
    wrong: Any
    for wrong in (0.0, math.nan, "1"):
        with pytest.raises(InputError, match="`beta` must be above 0"):
            net.softmax(wrong)
    with pytest.raises(InputError, match="no rational values"):
        construct(sequences, labels, method="tree").softmax(9.0).forward_exact(sequences[0])


@pytest.mark.parametrize("method", METHODS)
def test_saved_network_is_the_same(method: str, tmp_path: Path) -> None:
    sequences, labels = _data()
    net = construct(sequences, labels, method=method, positions=method == "mean")
    net.save(tmp_path / "net")
    again = Network.load(tmp_path / "net")
    assert again.verify(sequences, labels)
    assert again.certificate == net.certificate
    assert again.story == net.story
    assert again.counts == net.counts


@pytest.mark.parametrize("method", METHODS)
def test_onnx_runtime_gives_the_same_tokens(method: str, tmp_path: Path) -> None:
    sequences, labels = _data(20)
    net = construct(sequences, labels, method=method)
    path = net.to_onnx(tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(str(path))
    for z, y in zip(sequences, labels, strict=True):
        final = session.run(None, {"tokens": z})[0]
        assert np.abs(final[:, net.column] - net.classes.index(y)).max() < 1e-9


def test_texts_are_classified_and_the_tree_names_words() -> None:
    texts = ["a good film", "a bad film", "good acting", "no film at all", "bad, bad acting"]
    labels = ["pos", "neg", "pos", "neg", "neg"]
    for method in METHODS:
        net = construct(texts, labels, method=method)
        assert net.dim == 64
        assert net.predict(texts).tolist() == labels
        assert net.verify(texts, labels)
    net = construct(texts, labels, method="tree")
    assert net.story is not None
    assert {t.tokens for n in net.story.nodes for t in n.tests} <= {("good",)}
    assert net.story.trace({"good", "film"}) == [(0, 0, "good")]
    assert net.story.trace({"bad", "film"}) == [(0, -1, None)]


def test_given_word_vectors_are_used_and_saved(tmp_path: Path) -> None:
    vectors = {"good": [1.0, 0.0], "bad": [0.0, 1.0], "film": [0.3, 0.4]}
    net = construct(["good film", "bad film"], [1, 0], vectors=vectors)
    assert net.dim == 2
    net.save(tmp_path / "net")
    assert Network.load(tmp_path / "net").predict(["bad film", "good film"]).tolist() == [0, 1]
    with pytest.raises(InputError, match="'new'"):
        net.predict(["new film"])


def test_float32_is_proved_or_refused_with_the_type_that_works() -> None:
    sequences, labels = _data(16, 4)
    for method in ("tree", "chain"):
        net = construct(sequences, labels, method=method, dtype="float32")
        assert net.dtype == np.float32
        assert net.certificate.bits_available == 24
        assert net.predict(sequences).tolist() == labels
        final = net.to_torch()(torch.tensor(sequences[0], dtype=torch.float32))
        assert set(final[:, net.column].tolist()) == {net.classes.index(labels[0])}
    sequences, labels = _data(2000, 2)
    with pytest.raises(PrecisionError, match=r"float32 is too small.*dtype='float64'"):
        construct(sequences, labels, method="tree", dtype="float32")


def test_refusals_offer_what_was_tried_and_works() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=(400, 2))
    step = np.zeros((400, 2))
    step[0], step[1] = (1.0, 0.0), (-1.0, 0.0)
    near = [base + (i + 1) * 1e-11 * step for i in range(12)]
    labels = [i % 2 for i in range(12)]
    with pytest.raises(PrecisionError, match="float64 is too small") as caught:
        construct(near, labels, method="mean")
    offered = str(caught.value).split("Use method=")[1].strip("'.")
    assert construct(near, labels, method=offered).certificate.proved


def test_equal_means_need_kinks_in_the_blocks_of_the_authors_too() -> None:
    sequences, labels = SETS["equal_means"](np.random.default_rng(0), 20)
    net = construct(sequences, labels, method="mean", variant="rho_eta")
    assert net.predict(sequences).tolist() == labels
    assert net.counts.widest <= 4


def test_blocks_of_the_authors_reach_as_far_as_layers_with_biases() -> None:
    rng = np.random.default_rng(0)
    sequences = [np.round(64 * rng.normal(size=(4, 3))) / 64 + 1e11 for _ in range(20)]
    labels = [i % 2 for i in range(20)]
    for method in METHODS:
        net = construct(sequences, labels, method=method, variant="rho_eta")
        assert net.predict(sequences).tolist() == labels


@pytest.mark.parametrize("variant", ["residual", "rho_eta"])
@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_one_label_needs_no_attention(method: str, variant: str) -> None:
    sequences, _ = _data(5)
    net = construct(sequences, ["only"] * 5, method=method, variant=variant)
    assert net.predict(sequences).tolist() == ["only"] * 5
    assert net.counts.attention_layers == 0
    assert net.verify(sequences, ["only"] * 5)
    assert net.beta_star(sequences) == net.smallest_beta(sequences, ["only"] * 5) == 0
    assert (net.method == method) == (method in ("mean", "tree", "chain"))
    kinds = [isinstance(x, Attention) for x in net.layers]
    assert variant == "residual" or kinds == [True, False] * (len(kinds) // 2)


def test_counts_count_the_dense_module() -> None:
    sequences, labels = _data()
    net = construct(sequences, labels, method="chain")
    feed = [x for x in net.layers if isinstance(x, FeedForward)]
    attention = [x for x in net.layers if isinstance(x, Attention)]
    assert net.counts.neurons == sum(len(x.dense(3)[1]) for x in feed)
    assert net.counts.attention_layers == len(attention) <= len(sequences) - 1
    dense = sum(x.dense(3)[0].size + x.dense(3)[1].size + x.dense(3)[2].size for x in feed)
    biases = sum(3 for x in feed if x.b2 is not None)
    assert net.counts.parameters == dense + biases + 12 * len(attention)
    assert "bound" in str(net.counts)


def test_depth_of_the_tree_for_all_but_one() -> None:
    """A maximum separates one set at a time; alternating labels halve the number of blocks."""
    sequences, labels = SETS["all_but_one"](np.random.default_rng(0), 20)
    assert construct(sequences, labels, method="tree").counts.attention_layers == 10
    assert construct(sequences, labels, method="mean").counts.attention_layers == 1


def test_nested_sets_need_one_level() -> None:
    sequences, labels = SETS["nested"](np.random.default_rng(0), 60)
    assert construct(sequences, labels, method="tree").counts.attention_layers == 1


def test_same_seed_gives_the_same_network() -> None:
    sequences, labels = _data()
    for method in METHODS:
        one, two = (construct(sequences, labels, method=method) for _ in range(2))
        assert one.certificate == two.certificate


@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=5),
            st.integers(0, 2),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_small_integer_data_are_classified_or_refused_as_conflicts(
    data: list[tuple[list[tuple[int, int]], int]],
) -> None:
    sequences, labels = [x for x, _ in data], [y for _, y in data]
    measures: dict[frozenset[tuple[tuple[int, int], int]], set[int]] = {}
    for x, y in data:
        g = math.gcd(*[x.count(w) for w in x])
        key = frozenset((w, x.count(w) // g) for w in x)
        measures.setdefault(key, set()).add(y)
    if any(len(v) > 1 for v in measures.values()):
        with pytest.raises(ConflictError, match="different token frequencies"):
            construct(sequences, labels)
    else:
        net = construct(sequences, labels)
        assert net.predict(sequences).tolist() == labels
        assert net.predict_exact(sequences).tolist() == labels


class _Trained:
    """What a trained classifier shows of its word vectors."""

    def __init__(self, words: list[str], rows: np.ndarray) -> None:
        self.vocabulary_ = type("Vocabulary", (), {"words": tuple(words)})()
        self.model_ = type("Model", (), {"E": torch.tensor(rows, dtype=torch.float32)})()


@pytest.mark.parametrize("method", METHODS)
def test_vectors_of_a_classifier_and_generic_ones_for_other_words(
    method: str, tmp_path: Path
) -> None:
    rows = np.array([[0.5, 0.0], [0.0, 0.25], [0.3, 0.4], [9.0, 9.0]])  # the last is an n-gram's
    clf = _Trained(["good", "bad", "it's"], rows)
    texts, labels = ["It’s good", "bad, unseen!", "bad"], ["pos", "pos", "neg"]
    net = construct(texts, labels, vectors=clf, method=method)
    table = net.read(["good unseen"]).table
    assert table[0].tolist() == [0.5, 0.0]
    assert 0 < np.abs(table[1]).max() <= 0.5
    net.save(tmp_path / "net")
    again = Network.load(tmp_path / "net")
    assert again.verify(texts, labels)
    assert again.predict([*texts, "words never read"]).tolist()[:3] == labels


def test_every_altered_word_vector_is_noticed(tmp_path: Path) -> None:
    vectors = {"good": [1.0, 0.0], "bad": [0.0, 1.0], "unused": [0.3, 0.4]}
    data = ["good", "bad"], [1, 0]
    net = construct(*data, vectors=vectors)
    for word in vectors:
        other = {**vectors, word: [0.3, np.nextafter(0.4, 1)]}
        source = replace(net.source, vectors=other)
        assert "weights or settings differ" in replace(net, source=source).check(*data)
    with pytest.raises(InputError, match="or be a trained classifier; got int"):
        construct(*data, vectors=3)


def test_blocks_are_counted_between_embedding_and_readout() -> None:
    rng = np.random.default_rng(0)
    own = [rng.normal(size=(3, 5)) for _ in range(20)]
    far = [z + 1e9 for z in own]
    for sequences in (own, far):
        chain = construct(sequences, list(range(20)), method="chain").counts
        assert chain.blocks == chain.attention_layers == 19
        assert chain.feed_forward_layers >= 22
    assert construct(own, list(range(20)), method="mean").counts.blocks == 1
    assert construct(own, list(range(20)), method="tree", width=4).counts.blocks >= 19


def test_a_network_is_shown_in_one_line() -> None:
    sequences, labels = _data(5)
    net = construct(sequences, labels, method="tree")
    assert "\n" not in repr(net)
    assert "method='tree'" in repr(net)
    assert "proved=True" in repr(net)
