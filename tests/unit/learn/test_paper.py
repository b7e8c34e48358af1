"""The recipe of the paper: what it keeps, and that its temperature is nearly hardmax."""

from __future__ import annotations

import numpy as np
import pytest

from hardmax import simulate
from hardmax._errors import InputError
from hardmax.learn.paper import PaperModel, PaperSettings, fit_paper, paper_table, paper_words


def test_words_keep_their_case_and_tags_glue_their_neighbours():
    text = "The film<br />was goooood, 10/10! see http://x.org the end"
    assert paper_words(text) == ["The", "filmwas", "good".replace("oo", "oo"), "see", "end"]


def test_numbers_follow_the_counts_and_rows_are_cut_or_filled():
    number, ids = paper_table([["b", "a", "b"], ["a", "b", "c", "d"]], words=3)
    assert number == {"b": 1, "a": 2, "c": 3, "d": 4}
    assert ids.tolist() == [[1, 2, 1], [2, 1, 3]]


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
