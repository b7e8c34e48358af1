"""The table of accuracies on the IMDb reviews: every configuration, several seeds, and baselines.

    python benchmarks/text_table.py run --out FOLDER --only accurate --seeds 3
    python benchmarks/text_table.py run --out FOLDER --split validation
    python benchmarks/text_table.py run --out FOLDER --split paper --only default
    python benchmarks/text_table.py show --out FOLDER --record

The splits: the official one; a fifth of its training half held out for choosing ("validation");
and that of the paper, the first 35,000 reviews of the file and the last 15,000.  Members are
trained one after the other, exactly as `HardmaxClassifier.fit` does, and each leaves the logits of
the held-out texts in the folder, with one line in runs.jsonl; what is there already is not
repeated.  A model of several members has the mean of their logits.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import common
import numpy as np
import torch
from text_imdb import baseline, grams

from hardmax.estimators._inputs import check_labels
from hardmax.estimators._prepare import Work, prepare
from hardmax.estimators.classifier import HardmaxClassifier
from hardmax.learn.data import imdb
from hardmax.learn.fit import fit
from hardmax.learn.labelled import mixed
from hardmax.learn.presets import preset, settings_for
from hardmax.learn.report import leader_table, wilson
from hardmax.tokens.batch import Tokens

PLAIN = {
    "members": 1, "once": False, "evidence": 0.0, "length_power": 0.0, "punctuation": False,
    "learn_alpha": True, "alpha": 1.0, "word_dropout": 0.0, "key_dropout": 0.0,
}  # fmt: skip
"""Hardmax training without what was added later: the beginning of the search."""
OLDER = {
    **PLAIN, "min_count": 5, "word_dropout": 0.5, "key_dropout": 0.4, "learning_rate": 0.01,
    "epochs": 5,
}  # fmt: skip
SPLITS = {
    "official": ("", "Official split: trained on the training half"),
    "validation": (
        ", held out of the training half",
        "A fifth of the training half, drawn at random, is held out; trained on the rest",
    ),
    "paper": (", the paper's split", "Trained on the first 35,000 reviews of the paper's file"),
}
TEXTS = 300
"""Texts on which leaders are counted."""


def _plain(dim: int, heads: int, depth: int, ngrams: int, scope: str = "text") -> dict[str, Any]:
    return {
        **PLAIN, "dim": dim, "heads": heads, "depth": depth, "ngrams": ngrams, "scope": scope,
        "min_count": 5, "epochs": 5,
    }  # fmt: skip


SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "default, no layers": {"depth": 0},
    "accurate": preset("accurate"),
    "accurate, no layers": {**preset("accurate"), "depth": 0},
    "plane": preset("plane"),
    "plane, no layers": {**preset("plane"), "depth": 0},
}
"""What is shipped, with its ablation."""

EARLIER: dict[str, dict[str, Any]] = {
    **{
        f"unigrams, d = {dim}, one head, K = {depth}": _plain(dim, 1, depth, 1)
        for dim in (2, 16)
        for depth in (0, 1, 8)
    },
    **{
        f"unigrams, d = {dim}, one head, leaders per sentence, K = {depth}": _plain(
            dim, 1, depth, 1, "sentence"
        )
        for dim in (2, 16)
        for depth in (0, 1, 8)
    },
    **{
        f"8 heads of 2, 1-3-grams in 5 reviews, words and keys dropped, K = {depth}": {
            **OLDER, "dim": 16, "heads": 8, "depth": depth, "ngrams": 3,
        }
        for depth in (0, 1, 2, 8)
    },
    **{
        f"d = 2, one head, 1-3-grams in 5 reviews, words and keys dropped, K = {depth}": {
            **OLDER, "dim": 2, "heads": 1, "depth": depth, "ngrams": 3, "epochs": 10,
        }
        for depth in (0, 2)
    },
}  # fmt: skip
"""The rows of the first search, measured again."""
FIRST = [
    ("tf-idf + logistic regression, 1- / 1-2- / 1-3-grams", ".881 / .909 / .911"),
    ("NB-weighted logistic regression (C .1), 1- / 1-2- / 1-3-grams", ".890 / .914 / .916"),
    ("published NB-SVM, 1- / 2- / 3-grams (Wang & Manning 2012; Mesnil et al. 2015)",
     ".883 / .912 / .919"),
    ("paper, on its own split: d = 2 / 4 / 8 / 16, best epoch on test",
     ".791 / .823 / .850 / .882"),
    ("paper's recipe, 12 epochs, d = 2, K = 8", ".773"),
    ("words, one head, whole review: d = 2, K = 0 / 1 / 8", ".865 / .847 / .820-.830"),
    ("same, d = 16, K = 0 / 1 / 8", ".889 / .866 / .853"),
    ("leaders per sentence, words, d = 2, K = 0 / 1 / 8", ".870 / .869 / .853"),
    ("same, d = 16, K = 0 / 1 / 8", ".890 / .877 / .870"),
    ("per sentence, 1-2-grams, d = 2, K = 0 / 8; d = 16, K = 0 / 1 / 8",
     ".882 / .869-.871; .905 / .895 / .889"),
    ("16 heads of 2, whole review, words, K = 8, 30 % of keys dropped", ".889"),
    ("8 heads of 2, per sentence, 1-2-grams, K = 8 / 2, keys dropped", ".901 / .900"),
    ("16 heads of 2, per sentence, words, K = 8 / 2", ".880 / .882"),
    ("8 heads of 2, 1-3-grams in 5 reviews, 40 % of keys, 50 % of words dropped, K = 2", ".914"),
    ("same, K = 1 / K = 8 / 16 heads", ".911 / .913 / .913-.914"),
    ("same without layers, 50 % / 70 % of words dropped", ".909 / .913"),
    ("same with the first coordinates begun at the NB ratios", ".878-.899"),
    ("1-2-grams: K = 2; one head, d = 2, K = 8", ".909; .860"),
    ("one head, d = 2, 1-3-grams, K = 2, 10-12 epochs / K = 0", ".894-.899 / .883"),
    ("1-3-grams in 2 reviews, 8 or 16 heads: K = 2 / K = 0", ".911-.912 / .909"),
]  # fmt: skip
"""The search before this code: one GPU, minutes, one seed unless a range is given."""
LINEAR = {
    "tf-idf, logistic regression": ("tfidf", 10.0),
    "NB-weighted logistic regression": ("nb", 0.1),
}


@cache
def halves(split: str) -> tuple[Any, Any]:
    """Texts and labels to learn from, and those held out."""
    if split != "validation":
        return imdb(split, "train"), imdb(split, "test")
    train = imdb("official", "train")
    order = np.random.default_rng(0).permutation(len(train[0]))
    cut = len(order) // 5
    kept, held = (
        [[part[i] for i in rows] for part in train] for rows in (order[cut:], order[:cut])
    )
    return kept, held


_READ: dict[str, tuple[Work, Tokens]] = {}
_WORDS = (
    "ngrams", "scope", "min_count", "max_features", "stop_words", "punctuation", "max_words",
    "once", "gaps",
)  # fmt: skip


def read(params: dict[str, Any], split: str) -> tuple[Work, Tokens]:
    """The tokens for some settings; those read last are kept."""
    key = json.dumps([split, [params[name] for name in _WORDS]], default=str)
    if key not in _READ:
        _READ.clear()
        train, held = halves(split)
        work = prepare(iter(train[0]), lambda n: (*check_labels(train[1], n), None), params, 0)
        sentences = params["scope"] == "sentence"
        _READ[key] = work, work.vocabulary.encode(held[0], sentences=sentences)
    return _READ[key]


def member(
    name: str, changes: dict[str, Any], seed: int, number: int, out: Path, split: str
) -> None:
    """Train one member, as `fit_members` would, and keep its logits."""
    params = HardmaxClassifier(**changes).get_params(deep=False)
    work, held = read(params, split)
    settings = settings_for(params, len(work.data.labels))
    start, cpu = time.perf_counter(), time.process_time()
    model, log = fit(
        work.data, len(work.vocabulary), replace(settings, members=1),
        seed=seed if settings.members == 1 else mixed(seed, number),
    )  # fmt: skip
    spent = time.perf_counter() - start, time.process_time() - cpu
    logits = model.logits(held)[:, 0]
    target = np.array(halves(split)[1][1]) == "positive"
    np.save(out / file_of(name, seed, number), logits)
    line = {
        "name": name, "seed": seed, "member": number, "members": settings.members,
        "accuracy": float(np.mean((logits > 0) == target)), "loss": log[-1].loss,
        "tokens": len(work.vocabulary), "seconds": spent[0], "cpu_seconds": spent[1],
        "depth": settings.depth, "alpha": model.alpha.tolist(), "changes": changes,
        "texts": len(work.data.labels),
        "leaders": asdict(leader_table(model, held.take(np.arange(TEXTS)))),
    }  # fmt: skip
    append(out, line)


def append(out: Path, line: dict[str, Any]) -> None:
    """Keep a result."""
    with open(out / "runs.jsonl", "a") as file:
        file.write(json.dumps(line) + "\n")
    print({k: line[k] for k in ("name", "seed", "accuracy")}, flush=True)


def file_of(name: str, seed: int, number: int) -> str:
    """Where the logits of a member lie."""
    plain = "".join(c if c.isalnum() else "-" for c in name)
    return f"{plain}.{seed}.{number}.npy"


def linear(kind: str, C: float, ngrams: int, split: str) -> dict[str, Any]:
    """A linear model on n-grams."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    train, held = halves(split)
    if kind == "nb":
        return baseline(train, held, C, ngrams)
    counter = TfidfVectorizer(
        analyzer=lambda t: grams(t, ngrams), min_df=2, sublinear_tf=True, dtype=np.float32
    )
    a, b = counter.fit_transform(train[0]), counter.transform(held[0])
    model = LogisticRegression(C=C, solver="liblinear", dual=True, max_iter=300, tol=1e-2)
    found = model.fit(a, train[1]).predict(b) == np.array(held[1])
    return {"C": C, "features": a.shape[1], "accuracy": float(found.mean())}


def lines(out: Path) -> list[dict[str, Any]]:
    """The results that are there."""
    place = out / "runs.jsonl"
    return [json.loads(line) for line in place.read_text().splitlines()] if place.exists() else []


def wanted(chosen: list[str], seeds: int) -> list[tuple[str, dict[str, Any], int, int]]:
    """Every member that some configurations need."""
    every = {**SETTINGS, **EARLIER}
    jobs = []
    for seed in range(seeds):
        for name in chosen:
            members = HardmaxClassifier(**every[name]).members
            jobs += [(name, every[name], seed, number) for number in range(members)]
    return jobs


def run(args: argparse.Namespace) -> None:
    """Everything asked for that is not in the folder yet."""
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(args.threads)
    done = {(r["name"], r["seed"], r["member"]) for r in lines(args.out)}
    for name, (kind, C) in LINEAR.items():
        for n in (1, 2, 3) if args.linear else ():
            full = f"{name}, 1-{n}-grams"
            if (full, 0, 0) not in done:
                start = time.process_time()
                found = linear(kind, C, n, args.split)
                spent = time.process_time() - start
                line = {"name": full, "seed": 0, "member": 0, "members": 1, **found}
                append(args.out, {**line, "cpu_seconds": spent})
    chosen = args.only or [*SETTINGS]
    for job in wanted(chosen, args.seeds):
        if (job[0], job[2], job[3]) not in done:
            member(*job, args.out, args.split)


def scores(out: Path, split: str) -> dict[str, list[dict[str, Any]]]:
    """Per configuration, one entry per seed whose members are all there."""
    target = np.array(halves(split)[1][1]) == "positive"
    found: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for line in lines(out):
        found.setdefault(line["name"], {}).setdefault(line["seed"], []).append(line)
    result: dict[str, list[dict[str, Any]]] = {}
    for name, by_seed in found.items():
        for seed, parts in sorted(by_seed.items()):
            if len(parts) < parts[0]["members"]:
                continue
            entry = {"seed": seed, "accuracy": parts[0]["accuracy"], "parts": parts}
            if "leaders" in parts[0]:
                logits = [np.load(out / file_of(name, seed, p["member"])) for p in parts]
                entry["accuracy"] = float(np.mean((np.mean(logits, axis=0) > 0) == target))
                entry["moved"] = float(np.mean([p["leaders"]["moved"] for p in parts]))
            result.setdefault(name, []).append(entry)
    return result


def row(name: str, entries: list[dict[str, Any]], texts: int) -> list[str]:
    """One line of the table."""
    values = np.array([e["accuracy"] for e in entries])
    low, high = wilson(round(float(values.mean()) * texts), texts)
    spread = f"{values.std(ddof=1):.4f}" if len(values) > 1 else "-"
    each = np.array([p["accuracy"] for e in entries for p in e["parts"]])
    one = f"{each.mean():.4f} ± {each.std(ddof=1):.4f} ({len(each)})" if len(each) > 1 else "-"
    members = entries[0]["parts"][0]["members"]
    moves = "moved" in entries[0] and entries[0]["parts"][0]["depth"] > 0
    return [
        name,
        f"{values.mean():.4f}",
        spread,
        f"{low:.3f}-{high:.3f}",
        one if members > 1 else "-",
        f"{np.mean([e['moved'] for e in entries]):.2f}" if moves else "-",
        f"{np.mean([sum(p['cpu_seconds'] for p in e['parts']) for e in entries]):.0f}",
        " ".join(f"{v:.4f}" for v in values),
    ]


def show(args: argparse.Namespace) -> None:
    """The table."""
    found, texts = scores(args.out, args.split), len(halves(args.split)[1][0])
    head = ["configuration", "accuracy", "deviation", "95 % interval", "one member", "moved",
            "CPU s", "by seed"]  # fmt: skip
    order = [*SETTINGS, *EARLIER]
    names = sorted(found, key=lambda n: order.index(n) if n in order else -1)
    said = NOTES.format(split=SPLITS[args.split][1], texts=f"{texts:,}")
    title = f"Accuracy on the IMDb reviews{SPLITS[args.split][0]}"
    body = common.table(head, [row(name, found[name], texts) for name in names])
    if args.split == "official":
        body += OLD + common.table(["configuration", "accuracy"], [list(r) for r in FIRST])
    common.report(title, said + body, args.record)


NOTES = """{split}, {texts} texts held out. Each row is one
configuration; "deviation" is over seeds, the interval is Wilson's for the mean accuracy, "one
member" are mean, deviation and number of single members, each from a seed of its own, "moved" is
the share of token occurrences, averaged over heads, of whose last vector more than half is the
first vector of one other token (300 texts). Linear models were trained in the same run.

"""


OLD = """

The search that came before, with other code on a GPU, one seed unless a range is given (published
numbers as published); its rows were not measured again, but for the linear models above:

"""


def main() -> None:
    """Read the arguments, run or show."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", action="append", choices=[*SETTINGS, *EARLIER], default=None)
    parser.add_argument("--linear", action="store_true", help="the linear models as well")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--split", choices=[*SPLITS], default="official")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    (run if args.what == "run" else show)(args)


if __name__ == "__main__":
    main()
