"""The recipe's layers compiled: the values and gradients of the plain ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hardmax.learn import _paper_softmax, paper_cpu
from hardmax.learn.paper import PaperModel, PaperSettings
from hardmax.learn.paper_cpu import pooled_texts
from hardmax.learn.paper_train import HeldOut, PaperTrainer, train_together


def _model(dim: int, scale: float) -> PaperModel:
    model = PaperModel(60, PaperSettings(dim=dim, depth=4), seed=dim)
    with torch.no_grad():
        model.E.mul_(scale)
    return model


def _texts(seed: int, places: int = 24) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    ids = rng.integers(1, 60, (20, places))
    ids[5:, rng.integers(3, places) :] = 0  # padding
    ids[3] = 7  # one word alone
    return torch.from_numpy(ids)


@pytest.mark.parametrize("heat", [0.001, 0.1, 10.0])
@pytest.mark.parametrize(("dim", "scale"), [(1, 1.0), (2, 0.05), (2, 3.0), (16, 1.0)])
def test_values_and_gradients_are_those_of_plain_layers_in_float64(
    dim: int, scale: float, heat: float
) -> None:
    model, ids = _model(dim, scale), _texts(dim)
    wanted = _model(dim, scale).double()
    way = torch.randn(20, dim, generator=torch.Generator().manual_seed(0))
    pooled = pooled_texts(model.E, model.alpha, ids, 4, heat)
    torch.autograd.backward(pooled, way)
    plain = wanted.layers(ids, heat).mean(dim=1)
    torch.autograd.backward(plain, way.double())
    assert _gap(pooled, plain) < 1e-5
    assert _gap(model.E.grad, wanted.E.grad) < 2e-3
    assert model.alpha.grad is not None
    assert wanted.alpha.grad is not None
    assert model.alpha.grad.item() == pytest.approx(wanted.alpha.grad.item(), rel=2e-3, abs=1e-8)


@pytest.mark.parametrize("alpha", [-0.1, 0.7])
def test_hardmax_values_are_those_of_plain_layers(alpha: float) -> None:
    model, ids = _model(2, 1.0), _texts(5)
    with torch.no_grad():
        model.alpha.fill_(alpha)
    plain = model.logits(ids.numpy(), 0.0)
    model.compiled = True
    assert np.abs(model.logits(ids.numpy(), 0.0) - plain).max() < 1e-5


def _gap(found: torch.Tensor | None, wanted: torch.Tensor | None) -> float:
    """Norm of the difference over the norm of what is wanted."""
    assert found is not None
    assert wanted is not None
    found, wanted = found.detach().double(), wanted.detach()
    return float((found - wanted).norm() / wanted.norm())


def test_training_takes_the_same_path_as_with_plain_layers() -> None:
    y = np.arange(120) % 2
    ids = np.random.default_rng(0).integers(1, 20, (120, 12)) + 20 * y[:, None]
    settings = PaperSettings(epochs=4, learning_rate=0.02, temperature=0.05)
    plain, fast = (
        PaperTrainer(ids, y, 40, settings, seed=1, test=HeldOut(ids[:30], y[:30]), compiled=way)
        for way in (False, True)
    )
    train_together([plain])
    train_together([fast])
    for row, other in zip(plain.history, fast.history, strict=True):
        assert row["train_loss"] == pytest.approx(other["train_loss"], rel=1e-3)
        assert row["test_accuracy"] == pytest.approx(other["test_accuracy"], abs=0.04)
    assert fast.history[-1]["train_loss"] < fast.history[0]["train_loss"]


def test_threads_change_no_bit() -> None:
    model, ids = _model(4, 1.0), _texts(1).repeat(8, 1)
    found = []
    before = torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        model.zero_grad()
        pooled = pooled_texts(model.E, model.alpha, ids, 4, 0.001)
        torch.autograd.backward(pooled.sum())
        assert model.E.grad is not None
        found.append((pooled.detach().numpy().tobytes(), model.E.grad.numpy().tobytes()))
    torch.set_num_threads(before)
    assert found[0] == found[1]


def test_the_compiled_code_does_what_its_source_says(monkeypatch: pytest.MonkeyPatch) -> None:
    model, ids = _model(2, 1.0), _texts(3, 8)[:4]

    def gradients() -> list[np.ndarray]:
        model.zero_grad()
        pooled = pooled_texts(model.E, model.alpha, ids, 2, 0.2)
        torch.autograd.backward(pooled.square().sum())
        assert model.E.grad is not None
        assert model.alpha.grad is not None
        return [x.detach().numpy().copy() for x in (pooled, model.E.grad, model.alpha.grad)]

    compiled = gradients()
    kernels = [
        (module, name, kernel.py_func)
        for module in (paper_cpu, _paper_softmax)
        for name, kernel in vars(module).items()
        if hasattr(kernel, "py_func")
    ]
    assert len(kernels) > 15
    for module, name, source in kernels:
        monkeypatch.setattr(module, name, source)
    for found, wanted in zip(gradients(), compiled, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
