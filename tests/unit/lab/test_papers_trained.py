"""Items that need a trained classifier, on a small stand-in for the reviews."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hardmax._errors import DataError
from hardmax.lab.papers import classifier, leaders, moving, training
from hardmax.lab.papers import reviews as prepared
from hardmax.lab.papers.outcome import AGREES, DIFFERS, UNKNOWN, Context, Outcome
from hardmax.lab.papers.reviews import PaperReviews, paper_reviews
from tests.unit.lab.small_reviews import paper_arrays, small_reviews, write_pth
from tests.unit.lab.test_papers import drawn

DATA = small_reviews()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "paper_reviews", lambda cache: DATA)
    monkeypatch.setattr(training, "_EPOCHS", {"short": 1, "full": 2})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trainings of every size, made once by the first test that needs them."""
    return tmp_path_factory.mktemp("trained")


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return write_pth(tmp_path / "model.pth", paper_arrays())


def rows(outcome: Outcome) -> dict[str, Any]:
    return {c.quantity: c for c in outcome.comparisons}


# ------------------------------------------------------------------ trainings


def test_a_training_is_kept_and_taken_again(tmp_path: Path) -> None:
    told: list[str] = []
    context = Context(
        short=True, work=tmp_path, progress=lambda what, done, total: told.append(what)
    )
    first = training.trained(2, context)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "short-d2-seed0.json",
        "short-d2-seed0.npz",
    ]
    assert "training d = 2" in told
    told.clear()
    again = training.trained(2, context)
    assert told == []
    assert np.array_equal(first.model.E.detach(), again.model.E.detach())
    assert again.best == (again.history[0]["test_accuracy"], 0)


def test_an_interrupted_training_ends_like_one_without_a_break(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    whole = training.trained(4, Context(work=tmp_path / "a"))
    keep = training._keep

    def stop(trainer: Any, place: Path) -> None:
        keep(trainer, place)
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "_keep", stop)
    with pytest.raises(KeyboardInterrupt):
        training.trained(4, Context(work=tmp_path / "b"))
    assert (tmp_path / "b" / "d4-seed0.state.npz").is_file()
    monkeypatch.setattr(training, "_keep", keep)
    resumed = training.trained(4, Context(work=tmp_path / "b"))
    assert np.array_equal(whole.model.E.detach(), resumed.model.E.detach())
    assert [row["train_loss"] for row in resumed.history] == [
        row["train_loss"] for row in whole.history
    ]
    assert not (tmp_path / "b" / "d4-seed0.state.npz").exists()


@pytest.mark.parametrize("content", [b"damaged", b""])
def test_a_damaged_state_is_refused_with_its_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "d2-seed0.state.npz").write_bytes(content)
    with pytest.raises(DataError, match="expected a training to go on with"):
        training.trained(2, Context(work=tmp_path))


def test_trainings_of_all_sizes_in_one_file_are_found(tmp_path: Path) -> None:
    done = training.trained(2, Context(work=tmp_path))
    record = json.loads((tmp_path / "d2-seed0.json").read_text())
    (tmp_path / "d2-seed0.json").unlink()
    (tmp_path / "seed0.json").write_text(json.dumps({"runs": [{"dim": 4}, record]}))
    given = Context(training=tmp_path, work=tmp_path / "none")
    assert training.trained(2, given).history == done.history
    with pytest.raises(DataError, match=r"expected d16-seed0\.npz with d16-seed0\.json or seed0"):
        training.trained(16, given)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("d2-seed0.npz", b"no archive", "expected trained weights"),
        ("d2-seed0.json", b"[1]", "expected the record of a training"),
        ("d2-seed0.json", b'{"dim": 2}', "expected the record of a training"),
    ],
)
def test_damaged_trainings_are_refused(
    tmp_path: Path, file: str, content: bytes, message: str
) -> None:
    training.trained(2, Context(work=tmp_path))
    (tmp_path / file).write_bytes(content)
    with pytest.raises(DataError, match=message):
        training.trained(2, Context(training=tmp_path))


def test_weights_of_another_size_or_of_other_words_are_refused(tmp_path: Path) -> None:
    done = training.trained(2, Context(work=tmp_path))
    arrays = done.model.arrays()
    np.savez(tmp_path / "d2-seed0.npz", **{**arrays, "v": np.ones(3)})
    with pytest.raises(DataError, match="expected weights of d = 2"):
        training.trained(2, Context(training=tmp_path))
    fewer = replace(DATA, words=DATA.words[:50], lemmas="guessed")
    with pytest.raises(DataError, match="the weights have 119 words and the reviews 50"):
        training.fitting(done.model, fewer)


# ------------------------------------------------------------------ items


def test_losses_at_both_temperatures_beside_the_published_ones(folder: Path) -> None:
    outcome = classifier.losses(Context(short=True, work=folder))
    found = rows(outcome)
    assert found["d = 2: training loss of the first epoch"].paper == 0.69572
    gap = found["d = 2: softmax and hardmax loss with the same weights, largest relative gap"]
    assert (gap.verdict, gap.ours < 0.05) == (AGREES, True)
    assert drawn(outcome)[0].startswith(b"\x89PNG")
    assert set(outcome.numbers["4"]) == {"dim", "seed", "device", "history", "checks"}


def test_numbers_of_other_words_are_not_compared() -> None:
    history = [{"epoch": 0, "test_accuracy": 0.538}]
    for lemmas, verdict in (("WordNet 3.0", AGREES), ("guessed", UNKNOWN)):
        run = training.Trained(2, None, {"history": history, "lemmas": lemmas})  # type: ignore[arg-type]
        (row,) = classifier._short_form(2, run)
        assert (row.verdict, row.paper, row.ours) == (verdict, 0.53841, 0.538)


def test_accuracies_of_every_size_best_and_last(tmp_path: Path, weights: Path) -> None:
    outcome = classifier.accuracies(Context(work=tmp_path, weights=weights))
    found = rows(outcome)
    assert list(outcome.numbers) == ["2", "4", "8", "16"]
    assert found["d = 8: last test accuracy"].paper == 0.81343
    last = outcome.numbers["8"]["history"][-1]["test_accuracy"]
    assert found["d = 8: last test accuracy"].ours == last
    assert found["d = 2: test accuracy of the authors' weights"].exact
    assert drawn(outcome)[0].startswith(b"\x89PNG")
    full = classifier.losses(Context(work=tmp_path))
    assert rows(full)["d = 4: training loss of the last epoch"].verdict == UNKNOWN


def test_the_table_of_leaders_by_both_rules(folder: Path, weights: Path) -> None:
    outcome = leaders.leader_table(Context(short=True, work=folder, weights=weights))
    tables = outcome.numbers["tables"]
    assert list(tables) == ["2", "4", "8", "16", "authors' weights"]
    theirs = tables["authors' weights"]["code"]
    assert (theirs["min"] >= 1, theirs["max"] <= 20) == (True, True)
    assert theirs["average"] == pytest.approx(tables["authors' weights"]["birth"]["average"])
    assert rows(outcome)["both rules count the same leaders, on average"].verdict == AGREES
    assert drawn(outcome)[0].startswith(b"\x89PNG")


def test_the_histogram_with_and_without_the_authors_weights(folder: Path, weights: Path) -> None:
    own = leaders.leader_words(Context(short=True, work=folder))
    assert [c.verdict for c in own.comparisons] == [UNKNOWN]
    both = leaders.leader_words(Context(short=True, work=folder, weights=weights))
    found = rows(both)
    assert found["'money' with the authors' weights"].verdict == DIFFERS  # not in these reviews
    assert found["'great' with the authors' weights"].ours == 0
    assert both.numbers["published"]["great"] == 1247
    assert [drawn(o)[0][:4] for o in (own, both)] == [b"\x89PNG"] * 2
    model = training.trained(2, Context(short=True, work=folder)).model
    whole = leaders._overlap({"top": leaders._count(model, DATA)["top"]}, Context())
    assert whole.verdict in (DIFFERS, UNKNOWN)
    words = [(word, 1) for word in leaders.PUBLISHED_BARS]
    assert leaders._overlap({"top": words}, Context()).verdict == AGREES


def test_bars_that_are_one_pass_and_a_share_of_another_are_told_from_others() -> None:
    counts = {
        word: n if word in leaders._WEAK else round(n / 1.5)
        for word, n in leaders.PUBLISHED_BARS.items()
    }
    found = {c.quantity: c for c in leaders._against(counts, {}, DATA)}
    assert found["'money' with the authors' weights"].verdict == AGREES
    assert found["the other bars are one pass and the same share of another"].verdict == AGREES
    uneven = {word: n * (1 + k % 2) // 2 for k, (word, n) in enumerate(counts.items())}
    assert leaders._against(uneven, {}, DATA)[-1].verdict == DIFFERS


def test_the_reviews_of_the_pictures_are_found_by_their_leaders(weights: Path) -> None:
    outcome = moving.moving_reviews(Context(short=True, weights=weights))
    assert [c.quantity for c in outcome.comparisons if c.verdict != AGREES] == []
    assert outcome.numbers["positive"]["leaders"]["amazing"] == pytest.approx(29.9, abs=0.06)
    assert outcome.numbers["negative"]["distinct"] == 103
    kinds = {name: data[:3] for name, data in zip(outcome.pictures, drawn(outcome), strict=True)}
    assert kinds["reviews-positive.gif"] == b"GIF"
    assert kinds["reviews-negative.png"] == b"\x89PN"


def test_without_the_authors_weights_the_surest_reviews_move(folder: Path) -> None:
    context = Context(short=True, work=folder)
    outcome = moving.moving_reviews(context)
    model = training.trained(2, context).model
    picked = moving._surest(model, DATA)
    p = model.logits(DATA.ids[DATA.train :])
    assert p[picked["positive"] - DATA.train] == p[DATA.labels[DATA.train :] == 1].max()
    assert rows(outcome)["positive: leaders"].verdict == UNKNOWN
    assert rows(outcome)["negative: leaders never move from their birth on"].verdict == AGREES
    gathered = rows(outcome)["negative: after 8 layers every token sits on a leader"]
    assert gathered.verdict == UNKNOWN
    assert "one epoch, alpha = " in gathered.rule


def test_what_depends_on_our_training_is_no_exact_fact(folder: Path) -> None:
    one = {"leaders": {}, "leaders moved": 0.0, "farthest from a leader": 0.3, "alpha": 0.4}
    found = moving._compare("positive", one, Context(work=folder), exact=True)
    far = next(c for c in found if "sits on a leader" in c.quantity)
    assert (far.verdict, far.exact) == (DIFFERS, False)
    assert moving._gathered("positive", one, Context(weights=Path("w")), exact=True).exact


def test_no_review_is_shown_where_alpha_is_not_positive(folder: Path) -> None:
    context = Context(short=True, work=folder)
    model = training.trained(2, context).model
    model.take({**model.arrays(), "alpha": np.array([-0.1])})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moving, "trained", lambda dim, c: training.Trained(2, model, {}))
        outcome = moving.moving_reviews(context)
    assert [c.verdict for c in outcome.comparisons] == [UNKNOWN, UNKNOWN]
    assert outcome.pictures == {}


# ------------------------------------------------------------------ preparation


@pytest.mark.parametrize("known", [True, False])
def test_reviews_are_prepared_with_nouns_or_guessed_ones(
    monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    parts = {"train": (["Great films", "bad film film"], ["positive", "negative"]),
             "test": (["a film"] * 3, ["positive"] * 3)}  # fmt: skip
    monkeypatch.setattr(prepared, "imdb", lambda split, part, cache: parts[part])
    lemmas = (lambda word: word.removesuffix("s")) if known else None
    monkeypatch.setattr(prepared, "wordnet_lemmas", lambda cache: lemmas)
    paper_reviews.cache_clear()
    data: PaperReviews = paper_reviews()
    paper_reviews.cache_clear()
    assert data.words == ("<PAD>", "film", "Great", "bad")
    assert (data.train, data.labels.tolist()) == (2, [1, 0, 1, 1, 1])
    assert (data.exact, data.size) == (known, 4)
    assert data.ids[0, :3].tolist() == [2, 1, 0]
