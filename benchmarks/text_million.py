"""A million reviews: how much memory and time it takes to learn from a file of them.

    python benchmarks/text_million.py make million.csv              # about 1.3 GB
    python benchmarks/text_million.py train million.csv --record

The reviews are generated: about 230 words each, drawn by Zipf's law from 200,000 words, half of
them continued by one of eight fixed successors of the word before, so that n-grams repeat as they
do in language; a tenth of the words lean to the label.  Training stops after `--seconds`; the time
of an epoch is extrapolated from the reviews done by then.  Times are those of the processor, all
threads together.  Memory is the peak of the resident set, mapped temporary files included, as the
system counts it.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import report, table

from hardmax.estimators.classifier import HardmaxClassifier
from hardmax.learn.data import read_texts

WORDS, LOT = 200_000, 5_000


class Enough(Exception):
    """The time is up."""


def make(place: Path, reviews: int) -> None:
    """Write the file, lot after lot."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgkqjxz"))
    names: list[str] = []
    taken = set()
    while len(names) < WORDS:
        name = "".join(rng.choice(letters, int(rng.integers(2, 9))))
        if name not in taken:
            taken.add(name)
            names.append(name)
    words = np.array(names, dtype=object)
    follow = np.minimum(rng.zipf(1.15, (WORDS, 8)), WORDS) - 1
    with open(place, "w") as file:
        file.write("review,sentiment\n")
        for low in range(0, reviews, LOT):
            n = min(LOT, reviews - low)
            labels = rng.integers(0, 2, n)
            sizes = np.maximum(10, rng.lognormal(5.2, 0.66, n)).astype(int)
            ids = np.minimum(rng.zipf(1.15, sizes.sum()), WORDS) - 1
            linked = rng.random(len(ids)) < 0.5
            ids[1:][linked[1:]] = follow[ids[:-1], rng.integers(0, 8, len(ids) - 1)][linked[1:]]
            leaning = (ids > 100) & (rng.random(len(ids)) < 0.1)
            ids[leaning] = ids[leaning] // 2 * 2 + np.repeat(labels, sizes)[leaning]
            cuts = np.concatenate([[0], np.cumsum(sizes)])
            row = words[np.minimum(ids, WORDS - 1)]
            for k in range(n):
                label = ("negative", "positive")[labels[k]]
                file.write(f"{' '.join(row[cuts[k] : cuts[k + 1]])},{label}\n")


def memory() -> tuple[float, float, float]:
    """Peak of the resident set, and what of it is anonymous and mapped now, in GiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    lines = dict(x.split(":") for x in Path("/proc/self/status").read_text().splitlines())
    anonymous, mapped = (int(lines[k].split()[0]) / 2**20 for k in ("RssAnon", "RssFile"))
    return peak, anonymous, mapped


def train(place: Path, seconds: float, record: bool) -> None:
    """Read everything, train for a while, and report."""
    start = time.process_time()
    marks: list[tuple[str, float]] = []
    seen: dict[str, Any] = {}

    def watch(p: Any) -> None:
        done = p.epoch * p.total + p.done
        if not seen:
            marks.append(("read, tokenised, n-grams counted", time.process_time() - start))
            seen.update(time=time.process_time(), done=done)
        spent = time.process_time() - seen["time"]
        if spent > seconds:
            seen.update(rate=(done - seen["done"]) / spent, total=p.total, epochs=p.epochs)
            raise Enough

    clf = HardmaxClassifier(callbacks=[watch], device="cpu")
    with contextlib.suppress(Enough):
        clf.fit_stream(read_texts(place).batches(1024))
    peak, anonymous, mapped = memory()
    epoch = seen["total"] / seen["rate"] / 60
    rows = [
        ["reviews", f"{seen['total']:,}"],
        ["file", f"{place.stat().st_size / 1e9:.2f} GB"],
        [marks[0][0], f"{marks[0][1] / 60:.1f} CPU min"],
        ["reviews trained on a CPU minute", f"{60 * seen['rate']:,.0f}"],
        ["one epoch, extrapolated", f"{epoch:.1f} CPU min"],
        [f"all {seen['epochs']} epochs of the default, extrapolated",
         f"{epoch * seen['epochs'] / 60:.1f} CPU h"],
        ["peak of the resident set", f"{peak:.2f} GiB"],
        ["of it at the end anonymous, mapped", f"{anonymous:.2f}, {mapped:.2f} GiB"],
        ["threads", str(torch.get_num_threads())],
    ]  # fmt: skip
    report("A million reviews", table(["what", "value"], rows), record)


def main() -> None:
    """Read the arguments, make or train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["make", "train"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--reviews", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    if args.what == "make":
        make(args.file, args.reviews)
    else:
        train(args.file, args.seconds, args.record)


if __name__ == "__main__":
    main()
