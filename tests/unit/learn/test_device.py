"""The path in torch against the compiled one: coins, choices, gradients, steps."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hardmax.learn._layers import _coin
from hardmax.learn.attention import Attention, follow
from hardmax.learn.device import DeviceTrainer
from hardmax.learn.fit import fit
from hardmax.learn.labelled import Labelled
from hardmax.learn.model import HardmaxModel
from hardmax.learn.padded import DeviceTexts, coins, lots
from hardmax.learn.presets import Settings
from hardmax.learn.run import gather, pool
from hardmax.learn.weights import pooled
from hardmax.tokens.batch import Tokens
from tests.unit.learn.test_model import SMALL, labelled, texts

CPU = torch.device("cpu")


@pytest.mark.parametrize("salt", [1, 2])
def test_the_coins_are_those_of_the_compiled_path_bit_for_bit(salt):
    rng = np.random.default_rng(salt)
    text, place = rng.integers(0, 2**40, 500), rng.integers(0, 2**20, 500)
    for seed in (0, 7, 2**61 + 12345):
        ours = coins(seed, torch.from_numpy(text), torch.from_numpy(place), salt).numpy()
        theirs = [_coin(seed, int(t), int(p), salt) for t, p in zip(text, place, strict=True)]
        assert ours.tolist() == theirs
        assert 0 <= ours.min() < ours.max() < 1


def both(model, tokens, by, **drawn):
    """Pooled texts and the gradients of E, rho and A, compiled and in torch."""
    rows, weights = np.arange(len(tokens)), model.weights.to(CPU)
    learn = by.learn
    run = pool(
        model.E.detach().numpy(), model.gamma.detach().numpy(), tokens, rows, depth=model.depth,
        tie_tol=model.tie_tol, A=model.scores(), learn=learn, **drawn,
    )  # fmt: skip
    flat = DeviceTexts(tokens, CPU).draw(rows, **drawn)
    z = weights.E[flat.ids].double().requires_grad_()
    for p in (weights.rho, *([weights.A] if learn else [])):
        p.requires_grad_()
    means = pooled(weights, z, flat, model.depth, by)
    grad = np.random.default_rng(0).standard_normal(run.pooled.shape)
    torch.autograd.backward((means * torch.from_numpy(grad)).sum())
    found, values = gather(run, grad, np.full(len(weights.E), -1))
    total = np.zeros((len(weights.E), z.shape[1]))
    np.add.at(total, flat.ids.numpy(), z.grad.numpy())
    dense = np.zeros_like(total)
    dense[found] = values
    slope, turn = run.derivatives(grad)
    rho = torch.from_numpy(model.rho.detach().numpy()).requires_grad_()
    alpha = torch.nn.functional.softplus(rho)
    torch.autograd.backward(alpha / (1 + alpha), torch.from_numpy(slope))
    pairs = [(run.pooled, means.detach().numpy()), (dense, total), (rho.grad, weights.rho.grad)]
    return [*pairs, (turn, weights.A.grad.numpy())] if learn else pairs


@pytest.mark.parametrize(("dim", "heads"), [(2, 1), (8, 4), (6, 2), (10, 2)])
@pytest.mark.parametrize("scores", ["none", "fixed", "learned"])
@pytest.mark.parametrize("sentences", [1, 3])
def test_choices_and_gradients_equal_those_of_the_compiled_path(dim, heads, scores, sentences):
    rng = np.random.default_rng(dim + heads)
    A = None if scores == "none" else rng.standard_normal((heads, dim // heads, dim // heads))
    model = HardmaxModel(60, dim, heads=heads, depth=3, spread=1.0, A=A, seed=3)
    tokens = texts(rng, 12, size=60, sentences=sentences)
    by = Attention(learn=scores == "learned")
    for drawn in ({}, {"drop": 0.5, "hide": 0.5, "seed": 11}):
        for ours, theirs in both(model, tokens, by, **drawn):
            assert np.allclose(ours, theirs, rtol=0, atol=1e-11)


@pytest.mark.parametrize("scores", [None, [[1.0, -1.0], [0.0, 2.0]]])
@pytest.mark.parametrize("sentences", [1, 3])
def test_ties_of_a_lattice_are_averaged_alike(scores, sentences):
    A = None if scores is None else np.array([scores] * 2)
    model = HardmaxModel(40, 4, heads=2, depth=2, spread=1.0, A=A)
    with torch.no_grad():
        model.E.copy_(model.E.round())
    by, tokens = Attention(), texts(np.random.default_rng(5), 20, size=40, sentences=sentences)
    for ours, theirs in both(model, tokens, by):
        assert np.allclose(ours, theirs, rtol=0, atol=1e-11)


def test_many_rows_at_a_time_or_few_give_the_same(monkeypatch):
    model = HardmaxModel(60, 4, heads=2, depth=2, spread=1.0)
    tokens = texts(np.random.default_rng(1), 6, size=60)
    soft = Attention("softmax", temperature=0.5)
    whole = [*both(model, tokens, Attention()), *both(model, tokens, soft)]
    monkeypatch.setattr("hardmax.learn.attention._MOST", 50)
    monkeypatch.setattr("hardmax.learn.weights._AREA", 50)
    cut = [*both(model, tokens, Attention()), *both(model, tokens, soft)]
    for (_, one), (_, other) in zip(whole, cut, strict=True):
        assert np.allclose(one, other, rtol=0, atol=1e-13)


def first_lot(tokens):
    return next(lots(DeviceTexts(tokens, CPU).draw(np.arange(len(tokens))), torch.float64))


def test_softmax_counts_a_word_as_often_as_it_occurs():
    tokens, rng = Tokens.of([[0, 1, 1, 2, 2, 2]]), np.random.default_rng(0)
    z = torch.from_numpy(rng.standard_normal((1, 3, 1, 2)))
    every = z[0, [0, 1, 1, 2, 2, 2], 0]
    expected = torch.softmax(every @ every.T / 0.7, dim=1) @ every
    by = Attention("softmax", temperature=0.7)
    out = follow(z, first_lot(tokens), torch.tensor([1.0]).double(), 1, None, by)
    assert torch.allclose(out[0, :, 0], expected[[0, 1, 3]], atol=1e-12)


def test_a_low_temperature_is_hardmax_and_a_high_one_is_uniform():
    tokens = texts(np.random.default_rng(2), 5, sentences=2)
    lot, gamma = first_lot(tokens), torch.tensor([0.5, 1.0]).double()
    z = torch.from_numpy(np.random.default_rng(3).standard_normal((*lot.at.shape, 2, 3)))

    def moved(*args, **options):
        return follow(z, lot, gamma, 1, None, Attention(*args, **options))[lot.weights > 0]

    soft = [moved("softmax", temperature=t) for t in (1e-9, 1e9)]
    assert torch.allclose(soft[0], moved(), atol=1e-6)
    assert torch.allclose(soft[1], moved("uniform"), atol=1e-6)


def test_random_choices_follow_the_multiplicities_and_stay_in_their_sentence():
    lists = [[0] * 3 + [1], [2, 3]]
    t = Tokens.of(lists)
    tokens = Tokens(t.ids, t.counts, t.offsets, np.array([0, 2]))
    lot, found = first_lot(tokens), []
    z = torch.arange(4.0).double().view(1, 4, 1, 1)
    by = Attention("random", source=torch.Generator().manual_seed(0))
    for _ in range(600):
        found.append(follow(z, lot, torch.ones(1).double(), 1, None, by).flatten())
    means = torch.stack(found)
    assert set(means[:, :2].unique().tolist()) == {0.0, 1.0}
    assert set(means[:, 2:].unique().tolist()) == {2.0, 3.0}
    assert abs(means[:, :2].mean().item() - 0.25) < 0.05
    assert abs(means[:, 2:].mean().item() - 2.5) < 0.05


@pytest.mark.parametrize(
    "changes",
    [{}, {"learn_alpha": True, "A": "learned"}, {"scope": "sentence"}, {"averaging": 0.0}],
)
def test_a_training_in_torch_ends_close_to_the_compiled_one(changes):
    data, size = labelled()
    settings = replace(SMALL, **changes)
    one, first = fit(data, size, settings, seed=2, valid=data)
    two, second = fit(data, size, settings, seed=2, valid=data, device=CPU)
    assert [p.loss for p in first] == pytest.approx([p.loss for p in second], abs=1e-5)
    for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True):
        assert torch.allclose(a, b, atol=1e-4)


def test_three_classes_and_weights_train_in_torch_as_compiled():
    data, size = labelled(classes=3)
    data = Labelled(data.tokens, data.labels, np.linspace(0, 2, len(data.labels)))
    one, _ = fit(data, size, SMALL, outputs=3)
    two, _ = fit(data, size, SMALL, outputs=3, device=CPU)
    assert torch.allclose(one.E, two.E, atol=1e-4)


def trainer(settings, data, size, **options):
    model = HardmaxModel(size, settings.dim, heads=settings.heads, depth=settings.depth)
    return DeviceTrainer(model.weights, settings, data, **options)


def test_gradients_longer_than_the_clip_are_cut_to_it():
    data, size = labelled()
    whole = trainer(replace(SMALL, clip=1e9), data, size)
    cut = trainer(replace(SMALL, clip=1e-3), data, size)
    for t in (whole, cut):
        t.step(np.arange(16), 0, 0.0)

    def length(t):
        grads = [p.grad for p in t.small if p.grad is not None]
        rows = (t.rows.m / (1 - 0.9)).double()
        return math.sqrt(sum(float(g.square().sum()) for g in (*grads, rows)))

    assert length(whole) > 1e-2
    assert length(cut) == pytest.approx(1e-3, rel=1e-3)


def test_dense_adam_moves_the_rows_that_a_step_left_alone():
    data, size = labelled()
    adam = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])
    assert adam is not None
    for dense in (False, True):
        t = trainer(replace(SMALL, dense=dense, word_dropout=0.0), data, size)
        t.step(np.arange(0, 16, 2), 0, 0.1)
        before = t.weights.E.clone()
        t.step(np.arange(1, 17, 2), 1, 0.1)
        only = np.setdiff1d(
            data.tokens.take(np.arange(0, 16, 2)).ids, data.tokens.take(np.arange(1, 17, 2)).ids
        )
        moved = (t.weights.E[only] != before[only]).any(dim=1)
        assert bool(moved.all()) is dense


def stop_after(steps):
    def callback(progress):
        callback.left -= 1
        if callback.left == 0:
            raise KeyboardInterrupt

    callback.left = steps
    return callback


def test_a_stopped_training_in_torch_goes_on_to_the_same_model(tmp_path):
    data, size = labelled()
    settings = replace(SMALL, temperature=0.01, clip=1.0, learn_alpha=True, A="learned")
    whole, _ = fit(data, size, settings)
    with pytest.raises(KeyboardInterrupt):
        fit(data, size, settings, checkpoint=tmp_path / "part", callbacks=[stop_after(14)])
    resumed, _ = fit(data, size, settings, checkpoint=tmp_path / "part")
    for a, b in zip(whole.state_dict().values(), resumed.state_dict().values(), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()


ALONE = """
import sys
import numpy as np
for name in ("numba", "sklearn", "scipy"):
    sys.modules[name] = None
import torch
from hardmax.learn.device import DeviceTrainer
from hardmax.learn.labelled import Labelled
from hardmax.learn.presets import Settings
from hardmax.learn.weights import first_weights
from hardmax.tokens.batch import Tokens
data = Labelled(Tokens.of([[0, 1], [2, 3]]), np.array([0, 1]))
t = DeviceTrainer(first_weights(4, 2), Settings(dim=2, heads=1), data)
for k in range(30):
    t.step(np.arange(2), k, 0.1)
print(t.logits(data, t.averaged())[:, 0] > 0)
"""


def test_it_needs_no_compiled_code():
    root = Path(__file__).resolve().parents[3] / "src"
    done = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, cwd=root, timeout=120
    )
    assert done.stdout == "[False  True]\n", done.stderr


def test_its_logits_are_those_of_the_model():
    data, size = labelled()
    t = trainer(Settings(dim=4, heads=2, depth=2), data, size)
    model = HardmaxModel.of(t.averaged(), 2, 1e-12)
    ours = t.logits(data, t.averaged())
    assert np.allclose(ours, model.logits(data.tokens), atol=1e-12)
