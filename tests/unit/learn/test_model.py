"""The compiled model against the library's own layers, and its training."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from hardmax._errors import DataError, InputError
from hardmax.learn.fit import Labelled, fit, fit_members, split_rows
from hardmax.learn.model import HardmaxModel, join_heads
from hardmax.learn.optim import LazyAdam
from hardmax.learn.presets import PRESETS, Settings, preset, settings_for
from hardmax.learn.report import evaluate, leader_table, wilson
from hardmax.learn.run import pool
from hardmax.tokens.batch import Tokens

SMALL = Settings(dim=4, heads=2, epochs=3, batch_size=16, members=1, learning_rate=0.02)


def texts(rng, n, size=50, longest=40, sentences=1):
    lists = [rng.integers(0, size, rng.integers(1, longest)).tolist() for _ in range(n * sentences)]
    t = Tokens.of(lists)
    return Tokens(t.ids, t.counts, t.offsets, np.arange(0, n * sentences + 1, sentences))


def labelled(seed=0, n=120, classes=2):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    lists = [(rng.integers(0, 20, 12) + 15 * k).tolist() for k in y]
    return Labelled(Tokens.of(lists), y), 20 + 15 * classes


def pooled_by_definition(model, tokens):
    z = model.layers(tokens)[-1]
    w = torch.from_numpy(tokens.counts).double()[:, None]
    cuts = tokens.starts
    return torch.stack(
        [(z[a:b] * w[a:b]).sum(0) / w[a:b].sum() for a, b in itertools.pairwise(cuts)]
    )


@pytest.mark.parametrize(("dim", "heads"), [(2, 1), (16, 8), (6, 2), (3, 1)])
@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("sentences", [1, 3])
def test_the_compiled_path_and_its_gradients_equal_the_layers(dim, heads, depth, sentences):
    rng = np.random.default_rng(7)
    model = HardmaxModel(50, dim, heads=heads, depth=depth, spread=1.0, outputs=2)
    with torch.no_grad():
        model.E[:5] = model.E[5:10]  # ties between equal vectors
        model.E[11] = 0.0
    tokens = texts(rng, 9, sentences=sentences)
    weigh = torch.arange(18.0).double().view(9, 2)
    fast = (model(tokens) * weigh).sum()
    slow = (model.decode(pooled_by_definition(model, tokens)) * weigh).sum()
    assert abs(fast - slow).item() < 1e-11
    parameters = model.small(depth > 0)
    for x, y in zip(
        torch.autograd.grad(fast, [*parameters, model.E]),
        torch.autograd.grad(slow, [*parameters, model.E]),
        strict=True,
    ):
        assert torch.allclose(x.to_dense(), y, rtol=1e-5, atol=1e-5)


def test_the_weights_of_the_words_give_the_logit_exactly():
    model, rng = HardmaxModel(50, 6, heads=3, depth=2, spread=1.0), np.random.default_rng(1)
    tokens = texts(rng, 8)
    run = model.run(tokens)
    for t in range(8):
        rows = slice(run.starts[t], run.starts[t] + run.kept[t])
        u = run.u[rows]
        assert u.min() >= 0
        assert np.allclose(u.sum(axis=0), 1, atol=1e-12)
        E = model.E.detach().numpy()[run.ids[rows]].astype(float).reshape(-1, 3, 2)
        total = np.einsum("rh,rhc->hc", u, E).ravel()
        assert np.allclose(total, run.pooled[t], atol=1e-12)


def test_a_text_without_words_has_the_bias_as_logit():
    model = HardmaxModel(5, 2)
    with torch.no_grad():
        model.b.fill_(0.25)
    assert model.logits(Tokens.of([[], [1]]))[0, 0] == 0.25


def test_threads_and_lots_change_no_bit():
    model, rng = HardmaxModel(50, 4, heads=2, spread=1.0), np.random.default_rng(2)
    tokens, before = texts(rng, 64), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = model.logits(tokens)
        torch.set_num_threads(2)
        two = model.logits(tokens)
    finally:
        torch.set_num_threads(before)
    parts = [model.logits(tokens.take(np.array([k]))) for k in range(64)]
    assert np.array_equal(one, two)
    assert np.array_equal(one, np.concatenate(parts))


def test_dropped_words_and_hidden_keys_have_the_rates_asked_for():
    rng = np.random.default_rng(3)
    tokens = texts(rng, 400, size=1000, longest=60)
    E = rng.standard_normal((1000, 2))
    rows, gamma = np.arange(400), np.array([1.0])
    run = pool(E, gamma, tokens, rows, depth=0, tie_tol=0.0, drop=0.5, seed=5)
    assert 0.47 < run.kept.sum() / len(tokens.ids) < 0.53
    again = pool(E, gamma, tokens, rows, depth=0, tie_tol=0.0, drop=0.5, seed=5)
    other = pool(E, gamma, tokens, rows, depth=0, tie_tol=0.0, drop=0.5, seed=6)
    assert np.array_equal(run.pooled, again.pooled)
    assert not np.array_equal(run.pooled, other.pooled)
    led = pool(E, gamma, tokens, rows, depth=1, tie_tol=0.0, hide=0.9, seed=5)
    free = pool(E, gamma, tokens, rows, depth=1, tie_tol=0.0, seed=5)
    assert (led.u > 0).sum() < (free.u > 0).sum()


def test_joined_models_give_the_mean_of_their_logits():
    models = [HardmaxModel(50, 4, heads=2, spread=1.0, seed=k) for k in range(3)]
    tokens = texts(np.random.default_rng(4), 10)
    mean = np.mean([m.logits(tokens) for m in models], axis=0)
    assert np.allclose(join_heads(models).logits(tokens), mean, atol=1e-13)


def test_untouched_rows_keep_their_vector_and_their_average_catches_up():
    E = np.ones((3, 2), dtype=np.float32)
    E[2] = 5
    adam, dense = LazyAdam(E, decay=0.9), E.copy()
    average, rng = dense.copy(), np.random.default_rng(0)
    for _ in range(30):
        rows = np.flatnonzero(rng.random(2) < 0.5)
        decay = adam.step(rows, rng.standard_normal((len(rows), 2)), 0.1)
        average = E + decay * (average - E)
    assert np.array_equal(E[2], [5, 5])
    assert np.allclose(adam.settle(), average, atol=1e-5)


def test_training_learns_and_the_same_seed_gives_the_same_bytes():
    data, size = labelled()
    settings = replace(SMALL, epochs=20)
    first, history = fit(data, size, settings, seed=3, valid=data)
    second, _ = fit(data, size, settings, seed=3, valid=data)
    other, _ = fit(data, size, settings, seed=4)
    assert history[-1].accuracy == 1.0
    assert history[-1].loss < history[0].loss
    for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()
    assert not torch.equal(first.E, other.E)


def test_threads_change_no_byte_of_a_training(monkeypatch):
    monkeypatch.setattr("hardmax.learn.optim._PER_THREAD", 4)
    monkeypatch.setattr("hardmax.learn.run._PER_THREAD", 2)
    data, size = labelled()
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(fit(data, size, SMALL)[0].E.detach().numpy().tobytes())
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_more_than_two_classes_are_learned():
    data, size = labelled(classes=3)
    _, history = fit(data, size, replace(SMALL, epochs=20), outputs=3, valid=data)
    assert history[-1].accuracy == 1.0


def test_alpha_stays_positive_and_moves_only_when_learned():
    data, size = labelled()
    held, _ = fit(data, size, replace(SMALL, alpha=0.7))
    free, _ = fit(data, size, replace(SMALL, alpha=0.7, learn_alpha=True, learning_rate=1.0))
    assert held.alpha.tolist() == pytest.approx([0.7, 0.7])
    assert min(free.alpha.tolist()) > 0
    assert free.alpha.tolist() != pytest.approx([0.7, 0.7])


def test_early_stopping_keeps_the_best_epoch():
    data, size = labelled(n=60)
    wrong = Labelled(data.tokens, 1 - data.labels)  # gets worse with every epoch
    settings = replace(SMALL, epochs=30, early_stopping=True, patience=2)
    _, history = fit(data, size, settings, valid=wrong)
    scores = [p.accuracy for p in history]
    assert len(history) == scores.index(max(scores)) + 3 < 30


def test_callbacks_receive_every_step_and_each_end():
    data, size = labelled()
    seen = []
    _, history = fit_members(data, size, replace(SMALL, members=2), callbacks=[seen.append])
    assert len(history) == 6
    assert [p.epoch for p in history] == [0, 1, 2, 3, 4, 5]
    assert sum(p.end for p in seen) == 6
    assert len(seen) == 6 * (8 + 1)


def test_the_split_takes_its_share_of_every_class():
    y = np.array([0] * 90 + [1] * 10)
    train, valid = split_rows(y, 0.1, 0)
    assert np.bincount(y[valid]).tolist() == [9, 1]
    assert sorted([*train, *valid]) == list(range(100))


def stop_after(steps):
    def callback(progress):
        callback.left -= 1
        if callback.left == 0:
            raise KeyboardInterrupt

    callback.left = steps
    return callback


@pytest.mark.parametrize("steps", [1, 9, 12, 26])
def test_a_stopped_training_goes_on_to_the_same_model(tmp_path, steps):
    data, size = labelled()
    settings = replace(SMALL, early_stopping=True, learn_alpha=True)
    whole, _ = fit(data, size, settings, valid=data)
    place = tmp_path / "part"
    with pytest.raises(KeyboardInterrupt):
        fit(data, size, settings, valid=data, checkpoint=place, callbacks=[stop_after(steps)])
    resumed, history = fit(data, size, settings, valid=data, checkpoint=place)
    assert [p.epoch for p in history] == list(range(len(history)))
    for a, b in zip(whole.state_dict().values(), resumed.state_dict().values(), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()


def test_a_checkpoint_of_other_data_or_settings_is_refused(tmp_path):
    data, size = labelled()
    fit(data, size, SMALL, checkpoint=tmp_path / "part")
    with pytest.raises(InputError, match="another training"):
        fit(data, size, replace(SMALL, alpha=2.0), checkpoint=tmp_path / "part")
    with pytest.raises(InputError, match="another training"):
        fit(labelled(1)[0], size, SMALL, checkpoint=tmp_path / "part")


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\xff" * 100, b"8" * 5000])
def test_a_damaged_checkpoint_is_refused(tmp_path, content):
    (tmp_path / "part").write_bytes(content)
    with pytest.raises(DataError, match="expected a checkpoint"):
        fit(*labelled(), SMALL, checkpoint=tmp_path / "part")


def test_a_checkpoint_with_one_altered_bit_is_refused(tmp_path):
    data, size = labelled()
    fit(data, size, SMALL, checkpoint=tmp_path / "part")
    whole = (tmp_path / "part").read_bytes()
    rng = np.random.default_rng(0)
    for place in [*rng.integers(0, len(whole), 40), len(whole) - 1]:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        (tmp_path / "part").write_bytes(damaged)
        with pytest.raises(DataError, match=r"expected a checkpoint|damaged"):
            fit(data, size, SMALL, checkpoint=tmp_path / "part")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dim", 0), ("heads", 3), ("depth", -1), ("ngrams", 1.5), ("scope", "word"),
        ("epochs", 0), ("learning_rate", float("nan")), ("word_dropout", 1.0),
        ("averaging", -0.1), ("alpha", 0.0), ("alpha", True), ("stop_words", "french"),
        ("validation_fraction", 1.0), ("max_features", 0),
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(name, value):
    with pytest.raises(InputError, match=f"`{name}` must"):
        Settings(**{name: value})


def test_settings_survive_the_round_trip_and_unknown_ones_are_refused():
    settings = Settings(stop_words=("a", "b"), max_features=7)
    data = settings.to_dict()
    assert Settings.from_dict({**data, "stop_words": list(data["stop_words"])}) == settings
    with pytest.raises(InputError, match="unknown settings: colour"):
        Settings.from_dict({"colour": 1})


def test_presets_are_settings_and_others_are_refused():
    for name in PRESETS:
        assert settings_for(preset(name), 100).epochs >= 8
    with pytest.raises(InputError, match="`preset` must be one of"):
        preset("cube")


def test_the_evaluation_of_a_known_table():
    shares = np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7], [0.8, 0.2]])
    result = evaluate(np.array(["n", "p"]), np.array([0, 0, 1, 0]), shares)
    assert result.correct == 3
    assert result.confusion == ((2, 1), (0, 1))
    expected = (0.1 + 0.6 + 0.3 + 0.2) / 4  # one text per bin
    assert result.calibration_error == pytest.approx(expected)
    assert result.log_loss == pytest.approx(-np.log([0.9, 0.4, 0.7, 0.8]).mean())


def test_the_interval_of_wilson_at_known_points():
    low, high = wilson(8, 10)
    assert (low, high) == pytest.approx((0.4901625, 0.9433178), abs=1e-6)
    assert wilson(0, 5)[0] == 0.0
    assert wilson(5, 5)[1] == 1.0


def test_leaders_and_movement_of_a_system_worked_by_hand():
    model = HardmaxModel(3, 2, depth=2, alpha=1.0)
    with torch.no_grad():
        model.E.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.4, 0.2]]))
    table = leader_table(model, Tokens.of([[0, 1, 2, 2]]))
    assert (table.mean, table.smallest, table.largest, table.at_start) == (2.0, 2, 2, 1.0)
    assert table.moved == 0.5  # the two occurrences of token 2, three quarters of the way


def test_leaders_and_movement_follow_the_scores_of_the_model():
    swap = np.array([[[0.0, 1.0], [1.0, 0.0]]])  # each of two words asks for the other
    model = HardmaxModel(2, 2, depth=1, alpha=3.0, A=swap)
    with torch.no_grad():
        model.E.copy_(torch.eye(2))
    table = leader_table(model, Tokens.of([[0, 1]]))
    assert (table.mean, table.at_start, table.moved) == (0.0, 0.0, 1.0)
