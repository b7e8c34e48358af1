"""Pictures of constructed networks hold every sequence, test and answer."""

from __future__ import annotations

import numpy as np
import pytest

from hardmax._errors import InputError
from hardmax.exact import construct
from hardmax.plot.construction import draw_steps, draw_trace, draw_tree

TEXTS = ["a good film", "a bad film", "good acting", "no film at all", "bad, bad acting"]
LABELS = ["pos", "neg", "pos", "neg", "neg"]


def _plane() -> tuple[list[np.ndarray], list[int]]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(4, 2)) for _ in range(5)], [0, 1, 2, 0, 1]


@pytest.mark.parametrize("method", ["mean", "bumps", "tree", "chain"])
def test_steps_end_with_the_labels_on_every_token(method: str) -> None:
    sequences, labels = _plane()
    net = construct(sequences, labels, method=method)
    steps = net.steps(sequences, labels)
    assert len(steps.frames) == len(net.layers) + 1
    assert steps.frames[0].x == tuple(np.concatenate(sequences)[:, 0])
    last = steps.frames[-1]
    assert np.allclose((last.x, last.y)[net.column], steps.label)
    figure = draw_steps(steps)
    shown = [ax for ax in figure.axes if ax.collections]
    assert len(shown) == len(steps.frames)
    assert all(len(ax.collections) == 5 for ax in shown)
    assert steps.to_dict()["classes"] == ("0", "1", "2")


def test_codes_show_as_unit_cells() -> None:
    sequences, labels = _plane()
    net = construct(sequences, labels, method="tree")
    stored = net.steps(sequences).frames[net.entry]
    assert stored.title == "stored on a grid"
    assert 0 < min(stored.x) <= max(stored.x) < 1


def test_tree_names_the_words_it_asks_about() -> None:
    net = construct(TEXTS, LABELS, method="tree")
    figure = draw_tree(net.story, [str(c) for c in net.classes])
    text = " ".join(t.get_text() for t in figure.axes[0].texts)
    assert "good -> pos (2)" in text
    assert "else -> neg" in text


def test_large_trees_count_what_they_leave_out() -> None:
    rng = np.random.default_rng(3)
    tokens = rng.normal(size=(30, 2))
    sequences = [tokens[rng.choice(30, 9, replace=False)] for _ in range(300)]
    net = construct(sequences, [int(v) for v in rng.integers(0, 5, 300)], method="tree")
    assert net.story is not None
    axes = draw_tree(net.story, [str(c) for c in net.classes], most=2).axes[0]
    texts = [t.get_text() for t in axes.texts]
    drawn = sum(t.startswith("code ") for t in texts)
    left = sum(int(t.split()[1]) for t in texts if t.endswith("more classes"))
    assert drawn + left == len(net.story.nodes)
    assert any(" more\n" in t for t in texts)


def test_long_chains_show_their_first_and_last_steps() -> None:
    sequences = [np.array([[float(i), 0.0]]) for i in range(30)]
    net = construct(sequences, [i % 2 for i in range(30)], method="chain")
    titles = [ax.get_title() for ax in draw_steps(net.steps(sequences)).axes if ax.get_title()]
    assert len(titles) == 24 < len(net.layers)
    assert titles[0] == "1. tokens"
    assert titles[-1] == f"{len(net.layers) + 1}. label read out"


def test_labels_stand_at_the_ticks_of_the_last_step() -> None:
    for method in ("mean", "tree"):
        net = construct(TEXTS, LABELS, method=method)
        last = draw_steps(net.steps(TEXTS)).axes[len(net.layers)]
        ticks = last.get_yticklabels() if net.column else last.get_xticklabels()
        assert [t.get_text() for t in ticks] == ["neg", "pos"]


def test_trace_tells_the_word_and_the_label() -> None:
    net = construct(TEXTS, LABELS, method="tree")
    for one, label, token in ((TEXTS[0], "pos", "good"), (TEXTS[1], "neg", None)):
        steps = net.trace(one)
        assert (steps[-1].label, steps[-1].token) == (label, token)
        text = " ".join(t.get_text() for t in draw_trace(steps, one).axes[0].texts)
        assert f"label {label}" in text


def test_trace_leads_to_the_prediction_on_every_sequence() -> None:
    rng = np.random.default_rng(1)
    tokens = rng.normal(size=(14, 2))
    sequences = [tokens[rng.choice(14, 6, replace=False)] for _ in range(60)]
    labels = [int(v) for v in rng.integers(0, 3, 60)]
    net = construct(sequences, labels, method="tree")
    assert [net.trace(z)[-1].label for z in sequences] == labels


def test_mean_asks_no_questions() -> None:
    sequences, labels = _plane()
    with pytest.raises(InputError, match="only tree and chain ask questions"):
        construct(sequences, labels, method="mean").trace(sequences[0])
