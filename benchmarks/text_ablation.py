"""What the leaders are worth: hardmax and its alternatives at equal size and equal training.

    python benchmarks/text_ablation.py --prepare imdb.npz        # from the cached reviews
    python benchmarks/text_ablation.py imdb.npz --out runs.jsonl --jobs 5
    python benchmarks/text_ablation.py --table runs.jsonl --record
    python benchmarks/text_ablation.py --size small ...          # each of the three: without a GPU

Official split of the IMDb reviews.  Every run has the same tokens, parameters, optimiser, order of
texts, hidden words and epochs; only what a token moves toward differs: the best-scoring tokens
(hardmax), a softmax of the scores at several temperatures, the mean of the text, one token drawn at
random, or nothing (no layers).  Training needs torch and numpy alone, and takes a GPU when there is
one.  Each finished run is one line of JSON; runs that are already in the file are not repeated.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.multiprocessing as mp

from hardmax.learn.device import DeviceTrainer
from hardmax.learn.evidence import evidence
from hardmax.learn.labelled import Labelled
from hardmax.learn.presets import Settings
from hardmax.learn.weights import first_weights
from hardmax.tokens.batch import Tokens

SIZES = {
    "default": Settings(members=1, min_count=5, epochs=5, gaps=0),
    "small": Settings(
        members=1, min_count=5, epochs=5, ngrams=1, dim=2, heads=1, evidence=0.0, key_dropout=0.4,
        learning_rate=0.008,
    ),
}  # fmt: skip
"""One member of the default model; one head of two coordinates on words alone, for a CPU."""

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "hardmax": ("hardmax", {}),
    "softmax, temperature 0.001": ("softmax", {"temperature": 0.001}),
    "softmax, temperature 0.01": ("softmax", {"temperature": 0.01}),
    "softmax, temperature 0.1": ("softmax", {"temperature": 0.1}),
    "softmax, temperature 1": ("softmax", {"temperature": 1.0}),
    "uniform": ("uniform", {}),
    "random choices": ("random", {}),
    "none": ("hardmax", {"depth": 0}),
}


def prepare(place: Path, texts: int | None, base: Settings) -> None:
    """Both halves as token numbers, packed as differences in three planes of bytes."""
    from hardmax.learn.data import imdb
    from hardmax.tokens.vocabulary import learn_vocabulary, read_stream

    train, test = imdb("official", "train"), imdb("official", "test")
    train = tuple(part[:texts] for part in train)
    vocabulary, stream = learn_vocabulary(
        read_stream(train[0], punctuation=base.punctuation),
        ngrams=base.ngrams,
        min_count=base.min_count,
        punctuation=base.punctuation,
        once=base.once,
    )
    halves = {"train": vocabulary.tokens_of(stream), "test": vocabulary.encode(test[0])}
    arrays: dict[str, Any] = {"size": np.array(len(vocabulary))}
    for name, tokens in halves.items():
        labels = train[1] if name == "train" else test[1]
        arrays[f"{name}.labels"] = np.array([label == "positive" for label in labels])
        arrays[f"{name}.sizes"] = np.diff(tokens.offsets).astype(np.int32)
        arrays[f"{name}.counts"] = np.minimum(tokens.counts, 255).astype(np.uint8)
        steps = np.diff(tokens.ids, prepend=0)
        starts = tokens.offsets[:-1][np.diff(tokens.offsets) > 0]
        steps[starts] = tokens.ids[starts]
        for k in range(3):
            arrays[f"{name}.ids{k}"] = (steps >> (8 * k) & 255).astype(np.uint8)
    np.savez_compressed(place, **arrays)
    print(f"{place}: {place.stat().st_size / 1e6:.1f} MB, {len(vocabulary):,} tokens")


def unpack(place: Path, name: str) -> Labelled:
    """One half of a prepared file."""
    with np.load(place) as stored:
        sizes = stored[f"{name}.sizes"].astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        steps = sum(stored[f"{name}.ids{k}"].astype(np.int64) << (8 * k) for k in range(3))
        sums = np.concatenate([[0], np.cumsum(steps)])
        ids = (sums[1:] - np.repeat(sums[offsets[:-1]], sizes)).astype(np.int32)
        counts = stored[f"{name}.counts"].astype(np.int32)
        labels = stored[f"{name}.labels"].astype(np.int64)
    return Labelled(Tokens(ids, counts, offsets, np.arange(len(offsets))), labels)


def train(
    variant: str, seed: int, halves: list[Labelled], size: int, base: Settings
) -> dict[str, Any]:
    """One run: test accuracy of the averaged weights after the last epoch."""
    kind, changes = VARIANTS[variant]
    settings = replace(base, **changes)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    weights = first_weights(
        size, settings.dim, heads=settings.heads, alpha=settings.alpha, spread=settings.spread,
        seed=[seed, 0],
    )  # fmt: skip
    scale = evidence(halves[0], size, settings.evidence).astype(np.float32)
    weights.E.mul_(torch.from_numpy(scale)[:, None])
    trainer = DeviceTrainer(
        weights, settings, halves[0], seed, device=device, kind=kind, dtype=torch.float32
    )
    start, total = time.perf_counter(), settings.epochs * trainer.per_epoch
    losses = torch.zeros((), dtype=torch.float64, device=device)
    for epoch in range(settings.epochs):
        order, losses = trainer.order(epoch), torch.zeros_like(losses)
        for k in range(trainer.per_epoch):
            rows = order[k * settings.batch_size : (k + 1) * settings.batch_size]
            losses += trainer.step_loss(
                rows, epoch, settings.rate((epoch * trainer.per_epoch + k) / total)
            )
    spent = time.perf_counter() - start
    logits = trainer.logits(halves[1], trainer.averaged())[:, 0]
    return {
        "variant": variant,
        "seed": seed,
        "accuracy": float(np.mean((logits > 0) == (halves[1].labels == 1))),
        "loss": float(losses) / len(halves[0].labels),
        "seconds": spent,
        "epochs": settings.epochs,
        "texts": len(halves[0].labels),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
    }


def work(place: Path, jobs: Any, out: Path, base: Settings, threads: int) -> None:
    """Runs from a queue until it is empty; each result is appended to the file."""
    torch.set_num_threads(threads)
    halves = [unpack(place, "train"), unpack(place, "test")]
    with np.load(place) as stored:
        size = int(stored["size"])
    while (job := jobs.get()) is not None:
        line = json.dumps(train(*job, halves, size, base))
        with open(out, "a") as file:
            file.write(line + "\n")
        print(line, flush=True)


def runs(out: Path) -> list[dict[str, Any]]:
    """The runs that are in a file."""
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def run(place: Path, out: Path, seeds: int, jobs: int, names: list[str], base: Settings) -> None:
    """All runs that are not in the file yet, in several processes."""
    done = {(r["variant"], r["seed"]) for r in runs(out)}
    wanted = [(name, seed) for seed in range(seeds) for name in names if (name, seed) not in done]
    context = mp.get_context("spawn")
    queue = context.Queue()
    for job in [*wanted, *[None] * jobs]:
        queue.put(job)
    threads = torch.get_num_threads() if torch.cuda.is_available() else 1
    args = (place, queue, out, base, threads)
    workers = [context.Process(target=work, args=args) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def show(out: Path, record: bool, base: Settings) -> None:
    """Mean and deviation of each variant."""
    import common

    found = runs(out)
    rows = []
    for name in VARIANTS:
        scores = [r["accuracy"] for r in found if r["variant"] == name]
        if scores:
            spread = float(np.std(scores, ddof=1)) if len(scores) > 1 else float("nan")
            loss = np.mean([r["loss"] for r in found if r["variant"] == name])
            listed = ", ".join(f"{s:.4f}" for s in scores)
            rows.append([name, f"{np.mean(scores):.4f}", f"{spread:.4f}", f"{loss:.3f}", listed])
    head = ["attention", "mean", "deviation", "training loss", "accuracy by seed"]
    first = found[0]
    grams = "words" if base.ngrams == 1 else f"1-{base.ngrams}-grams"
    said = (
        f"IMDb, official split, {first['texts']:,} training reviews, {first['epochs']} epochs; "
        f"{base.heads} x {base.dim // base.heads} coordinates (heads x their size), "
        f"{base.depth} layers, alpha = {base.alpha:g}, {grams} in at least {base.min_count} "
        f"reviews, {base.word_dropout:.0%} of the words and {base.key_dropout:.0%} of the keys "
        "hidden in training. Test accuracy on 25,000 reviews after the last epoch, each by its own "
        f"attention; trained on {first['device']}.\n\n"
    )
    common.report("Ablation: hardmax and its alternatives", said + common.table(head, rows), record)


def main() -> None:
    """Read the arguments, and prepare, run or show."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--prepare", type=Path, metavar="FILE")
    parser.add_argument("--texts", type=int, help="with --prepare: the first texts alone")
    parser.add_argument("--table", type=Path, metavar="FILE")
    parser.add_argument("--record", action="store_true", help="keep the table in RESULTS.md")
    parser.add_argument("--out", type=Path, default=Path("ablation.jsonl"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--size", choices=list(SIZES), default="default")
    parser.add_argument("--only", action="append", choices=list(VARIANTS), default=None)
    args = parser.parse_args()
    base = replace(SIZES[args.size], epochs=args.epochs)
    if args.prepare:
        prepare(args.prepare, args.texts, base)
    elif args.table:
        show(args.table, args.record, base)
    else:
        run(args.data, args.out, args.seeds, args.jobs, args.only or list(VARIANTS), base)


if __name__ == "__main__":
    main()
