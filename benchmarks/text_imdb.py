"""Accuracy on the IMDb reviews, official split: one configuration per call.

    python benchmarks/text_imdb.py default --data FOLDER        # or plane, no-attention, ...
    python benchmarks/text_imdb.py baseline --data FOLDER
    python benchmarks/text_imdb.py default --validate           # a fifth of the training half

FOLDER is the cache of `hardmax data imdb`.  Prints one JSON line: configuration, seed,
accuracy with its interval, log-loss, share of words moved more than half way, seconds.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from typing import Any

import numpy as np

from hardmax.estimators.classifier import HardmaxClassifier
from hardmax.learn.data import imdb
from hardmax.learn.presets import preset
from hardmax.learn.report import evaluate, leader_table, wilson
from hardmax.tokens.text import is_word, word_strings

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "no-attention": {"depth": 0},
    "accurate": preset("accurate"),
    "accurate-no-attention": {**preset("accurate"), "depth": 0},
    "plane": preset("plane"),
    "plane-no-attention": {**preset("plane"), "depth": 0},
    "one-member": {"members": 1},
    "five-members": {"members": 5},
    "five-members-no-attention": {"members": 5, "depth": 0},
}


def words(text: str) -> list[str]:
    """The words of a text, without marks and tags."""
    return [piece for piece in word_strings(text) if is_word(piece)]


def baseline(train: Any, test: Any, C: float, longest: int = 3) -> dict[str, Any]:
    """Logistic regression on n-grams weighted by their log-count ratios."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    start = time.perf_counter()
    counter = CountVectorizer(
        binary=True, analyzer=lambda text: grams(text, longest), dtype=np.float32
    )
    a, b = counter.fit_transform(train[0]), counter.transform(test[0])
    y, target = np.array(train[1]) == "positive", np.array(test[1]) == "positive"
    pos, neg = (np.asarray(a[rows].sum(axis=0)).ravel() + 1 for rows in (y, ~y))
    ratio = np.log(pos / pos.sum() / (neg / neg.sum())).astype(np.float32)
    a, b = a.multiply(ratio).tocsr(), b.multiply(ratio).tocsr()
    model = LogisticRegression(C=C, solver="liblinear", dual=True, max_iter=300, tol=1e-2)
    correct = int((model.fit(a, y).predict(b) == target).sum())
    low, high = wilson(correct, len(target))
    return {
        "C": C,
        "features": a.shape[1],
        "accuracy": correct / len(target),
        "interval": [low, high],
        "seconds": time.perf_counter() - start,
    }


def grams(text: str, longest: int) -> list[str]:
    """All n-grams of a text, with repetitions."""
    row = words(text)
    return [
        " ".join(row[i : i + n]) for n in range(1, longest + 1) for i in range(len(row) - n + 1)
    ]


def run(name: str, train: Any, test: Any, seed: int, checkpoint: str | None) -> dict[str, Any]:
    """Train one configuration and evaluate it once."""
    start, spent = time.perf_counter(), time.process_time()
    clf = HardmaxClassifier(random_state=seed, checkpoint=checkpoint, **SETTINGS[name])
    clf.fit(*train)
    fitted, cpu = time.perf_counter() - start, time.process_time() - spent
    start = time.perf_counter()
    shares = clf.predict_proba(test[0])
    speed = 60 * len(test[0]) / (time.perf_counter() - start)
    number = {label: k for k, label in enumerate(clf.classes_.tolist())}
    result = asdict(evaluate(clf.classes_, np.array([number[v] for v in test[1]]), shares))
    table = leader_table(clf.model_, clf.vocabulary_.encode(test[0][:300]))
    return {
        "settings": clf.settings_.to_dict(),
        "tokens": len(clf.vocabulary_),
        **{key: result[key] for key in ("accuracy", "interval", "log_loss", "calibration_error")},
        "leaders": asdict(table),
        "train_seconds": fitted,
        "train_cpu_seconds": cpu,
        "predicted_per_minute": speed,
    }


def main() -> None:
    """Read the arguments, run, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=[*SETTINGS, "baseline"])
    parser.add_argument("--data", default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--validate", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--C", type=float, default=0.1)
    parser.add_argument("--checkpoint", default=None)
    args = parser.parse_args()
    import torch

    torch.set_num_threads(args.threads)
    train = imdb("official", "train", args.data)
    if args.validate:
        order = np.random.default_rng(0).permutation(len(train[0]))
        cut = len(order) // 5
        held = [[part[i] for i in order[:cut]] for part in train]
        test, train = held, tuple([part[i] for i in order[cut:]] for part in train)
    else:
        test = imdb("official", "test", args.data)
    job = baseline(train, test, args.C) if args.name == "baseline" else None
    out = job or run(args.name, train, test, args.seed, args.checkpoint)
    print(json.dumps({"name": args.name, "seed": args.seed, "validate": args.validate, **out}))


if __name__ == "__main__":
    main()
