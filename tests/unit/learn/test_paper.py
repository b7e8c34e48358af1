"""The recipe of the paper: what it keeps, and that its temperature is nearly hardmax."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hardmax import simulate
from hardmax._errors import InputError
from hardmax.learn.paper import PaperModel, PaperSettings, fit_paper
from hardmax.learn.paper_leaders import (
    TextLeaders,
    histogram,
    leaders_by_birth,
    leaders_by_code,
    summary,
)
from hardmax.learn.paper_train import PaperTrainer, train_together


def test_at_temperature_zero_the_layers_are_those_of_the_library():
    settings = PaperSettings(dim=2, depth=3)
    model, ids = PaperModel(30, settings, seed=1), np.random.default_rng(0).integers(0, 30, (4, 9))
    E, alpha = model.E.detach().numpy(), float(model.alpha.detach())
    z = simulate(E[ids], 3, alpha=alpha).z
    expected = z.mean(axis=1) @ model.v.detach().numpy() + model.b.item()
    assert np.allclose(model.logits(ids, 0.0), expected, atol=1e-5)


def test_a_low_temperature_is_close_to_hardmax():
    model, ids = PaperModel(30, PaperSettings()), np.random.default_rng(0).integers(0, 30, (50, 9))
    gaps = np.abs(model.logits(ids, 1e-6) - model.logits(ids, 0.0))
    assert np.median(gaps) < 1e-4


def test_padding_takes_part_as_in_the_recipe():
    model = PaperModel(5, PaperSettings())
    short, long = np.array([[1, 2, 3]]), np.array([[1, 2, 3, 0, 0, 0]])
    assert model.logits(short)[0] != model.logits(long)[0]


def test_the_recipe_learns_and_repeats_itself():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    ids = rng.integers(1, 20, (200, 12)) + 20 * y[:, None]
    losses: list[float] = []
    settings = PaperSettings(epochs=8, learning_rate=0.05)
    first = fit_paper(ids, y, 40, settings, callbacks=[lambda e, loss, m: losses.append(loss)])
    second = fit_paper(ids, y, 40, settings)
    assert losses[-1] < 0.2 < losses[0]
    assert first.E.detach().numpy().tobytes() == second.E.detach().numpy().tobytes()


def test_labels_other_than_0_and_1_are_refused():
    with pytest.raises(InputError, match="0 or 1"):
        fit_paper(np.ones((2, 3), int), np.array([0, 2]), 5, PaperSettings(epochs=1))


def test_captured_order_is_that_of_the_data_loaders():
    """Two loaders of torch, seeded once, give the order that the trainer draws by itself."""
    from torch.utils.data import DataLoader, TensorDataset

    n = 13
    torch.manual_seed(5)
    loaders = [DataLoader(TensorDataset(torch.arange(k)), shuffle=True, batch_size=4)
               for k in (n, 7)]  # fmt: skip
    seen = []
    for _ in range(2):
        orders = [torch.cat([batch[0] for batch in loader]) for loader in loaders]
        seen.append(orders[0].tolist())
    trainer = PaperTrainer(np.ones((n, 2), int), np.zeros(n), 3, PaperSettings(epochs=2))
    trainer.g = torch.Generator().manual_seed(5)
    ours = []
    for _ in range(2):
        trainer.begin()
        ours.append(trainer._order.tolist())
    assert ours == seen


def test_training_goes_on_where_it_stopped():
    rng = np.random.default_rng(0)
    ids, y = rng.integers(1, 20, (40, 6)), np.arange(40) % 2

    def trainer(epochs: int) -> PaperTrainer:
        return PaperTrainer(ids, y, 20, PaperSettings(epochs=epochs, batch_size=16), seed=3)

    whole, half, rest = trainer(4), trainer(2), trainer(4)
    train_together([whole])
    train_together([half])
    rest.resume(half.state())
    train_together([rest])
    assert whole.model.E.detach().numpy().tobytes() == rest.model.E.detach().numpy().tobytes()
    drop = [{k: v for k, v in row.items() if k != "seconds"} for row in rest.history]
    assert drop == [{k: v for k, v in r.items() if k != "seconds"} for r in whole.history]
    assert [check["epoch"] for check in rest.checks] == [0]


def test_leaders_by_birth_are_those_of_the_library():
    model, ids = PaperModel(30, PaperSettings(depth=5), seed=2), _texts(0, (25, 12), 30)
    found = leaders_by_birth(model, ids)
    E, alpha = model.E.detach().double().numpy(), float(model.alpha.detach())
    for row, count, first in zip(ids, found.counts, found.initial, strict=True):
        run = simulate(E[row], 5, alpha=alpha)
        assert len(run.leaders) == count
        assert sum(leader.born == 0 for leader in run.leaders) == first


def test_leaders_by_code_follow_the_loop_of_the_notebook():
    model, ids = PaperModel(40, PaperSettings(depth=3), seed=4), _texts(1, (20, 9), 40)
    found = leaders_by_code(model, ids)
    E, alpha = model.E.detach().numpy(), model.alpha.detach().numpy()
    shrink = 1 / (1 + alpha)
    for k, row in enumerate(ids):
        f, first = E[row], 0
        for layer in range(4):
            new = np.empty((9, 2))
            for i in range(9):
                scores = [(f[i] * f[j]).sum() for j in range(9)]
                best = np.flatnonzero(np.array(scores) == max(scores))
                first += layer == 0 and best[0] == i
                new[i] = shrink * f[i] + alpha * shrink * f[best].mean(axis=0)
            f = new
        lead = [i for i in range(9) if int(np.argmax([(f[i] * g).sum() for g in f])) == i]
        assert np.flatnonzero(found.places[k]).tolist() == lead
        assert found.initial[k] == first


def test_table_and_histogram_count_what_is_marked():
    places = np.array([[1, 1, 0], [1, 0, 0]], bool)
    leaders = TextLeaders(places, np.array([1, 1]), np.array([[3.0, 1.0, 9.0], [4.0, 0.0, 0.0]]))
    assert summary(leaders) == {
        "average": 1.5, "deviation": 0.5, "min": 1, "max": 2, "fraction_initial": 0.75,
    }  # fmt: skip
    ids = np.array([[5, 6, 7], [5, 6, 6]])
    assert histogram(leaders, ids, np.array([True, True])) == [(5, 2)]
    assert histogram(leaders, ids, np.array([True, False]), least=0.5) == [(5, 1), (6, 1)]


def _texts(seed: int, shape: tuple[int, int], words: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, words, shape)
