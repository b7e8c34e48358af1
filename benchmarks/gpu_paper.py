"""The classifier of the clustering paper trained in full: every size, on one GPU or a CPU.

Prepare once where the reviews and WordNet's nouns are in the cache, then train
anywhere with torch and numpy alone:

    python benchmarks/gpu_paper.py --prepare paper.npz
    python benchmarks/gpu_paper.py --data paper.npz --out results --minutes 8.5

Writes seed<S>.json (losses, accuracies, leader tables of every size) per seed,
and for the first seed the weights d<D>-seed<S>.npz.  `hardmax reproduce
--training results` takes them from there.  `--check` trains a few steps with
and without the captured graph and compares.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np


def prepare(file: Path) -> None:
    """Word numbers of all 50,000 reviews, and their labels."""
    from hardmax.lab.papers.reviews import paper_reviews

    data = paper_reviews()
    words = "\n".join(data.words).encode()
    np.savez_compressed(
        file, ids=data.ids.astype(np.int32), labels=data.labels.astype(np.int8),
        train=data.train, words=np.frombuffer(words, np.uint8), lemmas=data.lemmas,
    )  # fmt: skip
    print(f"{file}: {len(data.ids)} reviews, {len(data.words)} words, lemmas {data.lemmas}")


def main() -> None:
    """Train every size for every seed, as far as the time allows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prepare", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--dims", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--epochs", type=int, default=101)
    parser.add_argument("--rows", type=int, help="use only this many training reviews (a trial)")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--device", default=None)
    parser.add_argument("--check-rows", type=int, help="training reviews evaluated as hardmax")
    parser.add_argument("--no-graph", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if args.prepare:
        prepare(args.prepare)
    else:
        check(args) if args.check else train(args)


def check(args: Any) -> None:
    """The same 50 steps with the captured step and without: losses must agree."""
    import torch

    from hardmax.learn.paper import PaperSettings
    from hardmax.learn.paper_train import PaperTrainer

    with np.load(args.data) as file:
        ids, labels = file["ids"][:3200], file["labels"][:3200]
    for dim in args.dims:
        losses = []
        for graph in (True, False):
            t = PaperTrainer(
                ids, labels, 121_296, PaperSettings(dim=dim), device="cuda", graph=graph
            )
            t.begin()
            torch.cuda.synchronize()
            start = time.perf_counter()
            for k in range(t.steps):
                t.step(k)
            losses.append(t.end().loss)
            each = 1e3 * (time.perf_counter() - start) / t.steps
            print(f"d {dim} graph {graph}: loss {losses[-1]:.6f}, {each:.2f} ms a step", flush=True)
        if abs(losses[0] - losses[1]) > 1e-3:
            raise SystemExit("the captured step differs")


def train(args: Any) -> None:
    """One group per seed; a group is only begun when the last one's time is left."""
    import torch

    start, longest = time.perf_counter(), 0.0
    device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    args.out.mkdir(parents=True, exist_ok=True)
    with np.load(args.data) as file:
        data = {name: file[name] for name in file.files}
    for seed in args.seeds:
        spent = time.perf_counter() - start
        if longest and spent + longest > 60 * args.minutes:
            print(f"seed {seed}: not begun, {spent:.0f} s spent")
            break
        group(args, data, seed, device, 60 * args.minutes - spent)
        longest = time.perf_counter() - start - spent
        print(f"seed {seed}: {longest:.0f} s for sizes {args.dims}", flush=True)


def group(args: Any, data: dict[str, Any], seed: int, device: str, seconds: float) -> None:
    """All sizes of one seed side by side, then their leaders."""
    from hardmax.learn.paper import PaperSettings
    from hardmax.learn.paper_train import HeldOut, PaperTrainer, notebook_draws, train_together

    cut, rows = int(data["train"]), args.rows or int(data["train"])
    size = int(data["ids"].max()) + 1
    held = HeldOut(data["ids"][cut:], data["labels"][cut:])
    if args.rows:
        held = HeldOut(held.ids[: args.rows], held.labels[: args.rows])
    trainers = [
        PaperTrainer(
            data["ids"][:rows], data["labels"][:rows], size,
            PaperSettings(dim=dim, epochs=args.epochs),
            seed=notebook_draws(dim, size, seed=seed), test=held, device=device,
            graph=not args.no_graph, compiled=device == "cpu", check_rows=args.check_rows,
        )
        for dim in args.dims
    ]  # fmt: skip
    start = time.perf_counter()

    def after(trainer: Any) -> bool:
        last = trainer.history[-1]
        if trainer.epoch % 10 == 1 or trainer.epoch == args.epochs:
            shown = " ".join(f"{k} {v:.4f}" for k, v in last.items() if k != "epoch")
            print(f"d {trainer.settings.dim} epoch {last['epoch']}: {shown}", flush=True)
        return bool(time.perf_counter() - start < 0.93 * seconds)

    train_together(trainers, after)
    records = [record(t, seed, held, device) for t in trainers]
    whole = {"seed": seed, "trial": bool(args.rows), "lemmas": str(data["lemmas"]), "runs": records}
    (args.out / f"seed{seed}.json").write_text(json.dumps(whole) + "\n")
    if seed == args.seeds[0]:
        for trainer in trainers:
            place = args.out / f"d{trainer.settings.dim}-seed{seed}.npz"
            np.savez(place, **trainer.model.arrays())


def record(trainer: Any, seed: int, held: Any, device: str) -> dict[str, Any]:
    """Everything measured of one model."""
    from hardmax.learn.paper_leaders import leaders_by_birth, leaders_by_code, summary

    code = leaders_by_code(trainer.model, held.ids)
    birth = leaders_by_birth(trainer.model, held.ids)
    return {
        "dim": trainer.settings.dim,
        "seed": seed,
        "draws": "in the order of the authors' notebook",
        "device": device,
        "settings": vars(trainer.settings),
        "epochs_done": trainer.epoch,
        "history": trainer.history,
        "checks": trainer.checks,
        "leaders_by_code": summary(code),
        "leaders_by_birth": summary(birth),
    }


if __name__ == "__main__":
    main()
