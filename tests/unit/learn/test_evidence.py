"""Scales of the vectors from counts of texts, and what they do to the training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from hardmax.learn.device import DeviceTrainer
from hardmax.learn.evidence import evidence, lengths
from hardmax.learn.fit import Labelled, fit
from hardmax.learn.presets import Settings
from hardmax.tokens.batch import Tokens

SMALL = Settings(dim=4, heads=2, epochs=2, batch_size=8, members=1, evidence=0.7, length_power=0.5)


def data(classes=2, n=48, size=30):
    rng = np.random.default_rng(classes)
    labels = np.arange(n) % classes
    lists = [(rng.integers(0, 18, rng.integers(2, 20)) + 6 * k).tolist() for k in labels]
    return Labelled(Tokens.of(lists), labels), max(size, 18 + 6 * classes)


def test_evidence_by_hand():
    found = evidence(Labelled(Tokens.of([[0, 1], [0], [1, 2], [1]]), np.array([1, 1, 0, 0])), 3, 1)
    p, q = np.array([3, 2, 1]) / 6, np.array([1, 3, 2]) / 6  # one more than the counts
    expected = np.abs(np.log(p / q))
    expected /= (expected * [2, 3, 1]).sum() / 6
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("power", [0.3, 1.0, 2.0])
def test_the_mean_scale_over_occurrences_is_one(classes, power):
    part, size = data(classes)
    scale = evidence(part, size, power)
    assert abs(scale[part.tokens.ids].mean() - 1) < 1e-12
    assert (scale >= 0).all()


def test_power_zero_and_equal_classes_leave_everything():
    part, size = data()
    assert (evidence(part, size, 0.0) == 1).all()
    same = Labelled(Tokens.of([[0, 1], [0, 1]]), np.array([0, 1]))
    assert (evidence(same, 2, 0.5) == 1).all()


def test_factors_of_lengths():
    part = Labelled(Tokens.of([[1], [1, 2, 3]]), np.array([0, 1]))
    assert lengths(part, 0.0) is None
    np.testing.assert_allclose(lengths(part, 1.0), [0.5, 1.5])
    np.testing.assert_allclose(lengths(part, 0.5), np.sqrt([0.5, 1.5]))


def test_a_token_without_evidence_never_moves():
    # token 0 occurs in every text, so it tells nothing but for the other tokens' counts
    part = Labelled(Tokens.of([[0, 1], [0, 2], [0, 1], [0, 2]]), np.array([0, 1, 0, 1]))
    scale = evidence(part, 3, 1.0)
    assert scale[0] < 1e-12 < scale[1]
    model, _ = fit(part, 3, SMALL)
    assert model.E[0].abs().max() < 1e-12 < model.E[1].abs().max()


@pytest.mark.parametrize("classes", [2, 3])
def test_torch_and_compiled_training_agree(classes):
    part, size = data(classes)
    settings, outputs = replace(SMALL, word_dropout=0.2), 1 if classes == 2 else classes
    one, _ = fit(part, size, settings, outputs=outputs)
    two, _ = fit(part, size, settings, outputs=outputs, device=torch.device("cpu"))
    assert (one.E - two.E).abs().max() < 1e-5
    assert np.abs(one.logits(part.tokens) - two.logits(part.tokens)).max() < 1e-5


def test_lengths_scale_what_is_learned_from_and_not_the_model():
    part, size = data()
    plain, _ = fit(part, size, replace(SMALL, length_power=0.0))
    scaled, _ = fit(part, size, SMALL)
    assert (plain.E - scaled.E).abs().max() > 1e-6
    assert DeviceTrainer(plain.weights, SMALL, part).lengths.shape == (48,)
