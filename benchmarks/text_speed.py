"""Seconds: training as the paper does and as here, the default model, prediction, one review.

    python benchmarks/text_speed.py paper --record        # d = 2 and 16, K = 8
    python benchmarks/text_speed.py default --record      # 25,000 reviews

`paper` trains on the first reviews of the paper's training part, an epoch of each in turn, in one
process with one thread.  The paper's code is `learn.paper_train`: dense embedding and Adam, softmax
of the scores over 0.001, padding, clipped gradients.  Ours are the compiled steps with hardmax on
the same reviews, words with multiplicities, one head, alpha learned, nothing dropped.  `default`
trains the default model on the official training half, from texts to weights, and then predicts the
test half.  The reviews are those that `hardmax data imdb` fetched.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from common import report, table

from hardmax.estimators.classifier import HardmaxClassifier
from hardmax.learn.data import imdb
from hardmax.learn.labelled import Labelled
from hardmax.learn.model import HardmaxModel
from hardmax.learn.paper import PaperSettings
from hardmax.learn.paper_train import PaperTrainer
from hardmax.learn.presets import Settings
from hardmax.learn.trainer import Trainer
from hardmax.tokens.batch import Tokens, pad
from hardmax.tokens.text import STOP_WORDS
from hardmax.tokens.vocabulary import read_stream

SIZE = 121_296
"""Words of the paper's vocabulary, padding included: the table that its Adam moves."""


def rows_of(count: int) -> tuple[np.ndarray, np.ndarray]:
    """The first 128 words of reviews as numbers below SIZE, padded with 0, and their labels."""
    texts, labels = imdb("paper", "train")
    stream = read_stream(texts)
    used = np.bincount(stream.words, minlength=len(stream.table))
    used[[word in STOP_WORDS for word in stream.table]] = 0
    number = np.zeros(len(used), dtype=np.int64)
    number[np.argsort(-used)] = np.arange(1, len(used) + 1)
    number[(used == 0) | (number >= SIZE)] = 0
    cuts = stream.offsets
    lists = [number[stream.words[cuts[k] : cuts[k + 1]]] for k in range(count)]
    ids, _ = pad([row[row > 0].tolist() for row in lists], 128)
    return ids, np.array([label == "positive" for label in labels[:count]]).astype(np.int64)


def paper_epoch(ids: np.ndarray, y: np.ndarray, dim: int) -> Callable[[], object]:
    """An epoch of the paper's code."""
    trainer = PaperTrainer(ids, y, SIZE, PaperSettings(dim=dim), device="cpu")

    def run() -> None:
        trainer.begin()
        for k in range(trainer.steps):
            trainer.step(k)

    return run


def our_epoch(ids: np.ndarray, y: np.ndarray, dim: int) -> Callable[[], object]:
    """An epoch of the compiled steps on the same reviews."""
    s = Settings(
        dim=dim, heads=1, depth=8, members=1, learn_alpha=True, spread=1.0, alpha=0.5,
        learning_rate=0.001, schedule="constant", word_dropout=0.0, key_dropout=0.0, averaging=0.0,
    )  # fmt: skip
    data = Labelled(Tokens.of([row[row > 0].tolist() for row in ids]), y)
    model = HardmaxModel(SIZE, dim, depth=8, alpha=0.5, spread=1.0)
    trainer, epochs = Trainer(model, s, data), iter(range(10**6))

    def run() -> None:
        epoch = next(epochs)
        order = trainer.order(epoch)
        for k in range(trainer.per_epoch):
            trainer.step(order[64 * k : 64 * k + 64], epoch, 0.001)

    return run


def paper(count: int, repeats: int, record: bool) -> None:
    """Both epochs in turn; medians of CPU seconds and of the clock, and their ratios."""
    torch.set_num_threads(1)
    ids, y = rows_of(count)
    rows = []
    for dim in (2, 16):
        runs = {"theirs": paper_epoch(ids, y, dim), "ours": our_epoch(ids, y, dim)}
        spent: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
        for k in range(repeats + 1):
            for name, run in runs.items():
                start, cpu = time.perf_counter(), time.process_time()
                run()
                if k:  # the first epoch compiles and warms
                    now = time.process_time() - cpu, time.perf_counter() - start
                    spent[name].append(now)
        cpu, clock = (
            {name: float(np.median([x[i] for x in xs])) for name, xs in spent.items()}
            for i in (0, 1)
        )
        rows.append(
            [
                dim,
                f"{cpu['theirs']:.2f}",
                f"{cpu['ours']:.2f}",
                f"{cpu['theirs'] / cpu['ours']:.1f}",
                f"{clock['theirs'] / clock['ours']:.1f}",
            ]
        )
    head = ["d", "paper's code, CPU s", "here, CPU s", "ratio", "ratio of the clock"]
    said = f"An epoch of {count:,} reviews of the paper's training part, median of {repeats}.\n\n"
    report("Training speed at the paper's configuration", said + table(head, rows), record)


def default(threads: int, preset: str, record: bool) -> None:
    """Train, predict and explain; what the clock and the processor say."""
    torch.set_num_threads(threads)
    train, test = imdb("official", "train"), imdb("official", "test")
    warm = HardmaxClassifier.from_preset(preset, epochs=1, members=1, device="cpu")
    warm.fit(*(part[:200] for part in train)).explain(train[0][0])
    start, cpu = time.perf_counter(), time.process_time()
    clf = HardmaxClassifier.from_preset(preset, device="cpu").fit(*train)
    fitted = time.perf_counter() - start, time.process_time() - cpu
    start, cpu = time.perf_counter(), time.process_time()
    clf.predict(test[0])
    told = time.perf_counter() - start, time.process_time() - cpu
    per_minute = [60 * len(test[0]) / (told[0]), 60 * len(test[0]) * threads / told[1]]
    one, two, three = (latency(clf, test[0][:300], act) for act in ACTS.values())
    rows = [
        ["training, 25,000 reviews", f"{fitted[0]:.0f} s", f"{fitted[1] / threads:.0f} s"],
        ["reviews predicted a minute", *(f"{x:,.0f}" for x in per_minute)],
        *([name, *row] for name, row in zip(ACTS, (one, two, three), strict=True)),
    ]
    head = ["what", "clock", f"CPU seconds / {threads}"]
    said = (
        f"Preset {preset!r}, {threads} threads, {len(clf.vocabulary_):,} tokens, "
        f"{clf.n_iter_} epochs in all. One review: median and 90 % of 300 reviews.\n\n"
    )
    report(f"Speed of the preset {preset}", said + table(head, rows), record)


ACTS: dict[str, Callable[[Any, str], object]] = {
    "one review predicted": lambda clf, text: clf.predict([text]),
    "predicted and explained": lambda clf, text: (clf.predict([text]), clf.explain(text)),
    "with its leaders": lambda clf, text: clf.explain(text).leaders,
}


def latency(clf: Any, texts: list[str], act: Callable[[Any, str], object]) -> list[str]:
    """Milliseconds of one call: median, and what nine of ten stay below."""
    for text in texts[:20]:
        act(clf, text)
    clock, cpu = [], []
    for text in texts:
        start, spent = time.perf_counter(), time.process_time()
        act(clf, text)
        clock.append(1000 * (time.perf_counter() - start))
        cpu.append(1000 * (time.process_time() - spent))
    return [f"{np.median(x):.1f}, {np.quantile(x, 0.9):.1f} ms" for x in (clock, cpu)]


def main() -> None:
    """Read the arguments, run, report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["paper", "default"])
    parser.add_argument("--texts", type=int, default=1920)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--preset", default="default")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    if args.what == "paper":
        paper(args.texts, args.repeats, args.record)
    else:
        default(args.threads, args.preset, args.record)


if __name__ == "__main__":
    main()
