"""Exact explanations against LIME, SHAP and integrated gradients, on the same model.

The classifier is trained on the package's corpus, or on files of your own:

    python benchmarks/bench_faithfulness.py --model FOLDER --reviews FILE --texts 500

FILE is any table of texts that `hardmax data` reads.  Every method ranks the distinct
words of each text; the figures are those of `hardmax.explain.faithfulness`, side by
side in one run. Times are of the processor, in one thread; every tenth text is
explained twice.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import report, table

from hardmax.estimators.classifier import HardmaxClassifier, load
from hardmax.explain.faithfulness import faithfulness, random_scores
from hardmax.explain.ranking import RANKINGS
from hardmax.learn.data import corpus, read_texts


def lime_scores(samples: int) -> Callable[[Any], Any]:
    """LIME's text explainer with its defaults; words are the units of the removal."""
    from lime.lime_text import LimeTextExplainer

    def scores(explanation: Any) -> Any:
        removal = explanation.removal
        explainer = LimeTextExplainer(split_expression=r"\s+", bow=True)
        text = " ".join(removal.names)
        found = explainer.explain_instance(
            text,
            explanation.bundle.probabilities,
            num_features=len(removal),
            num_samples=samples,
        ).as_map()[1]
        names = list(dict.fromkeys(text.split()))
        by_name = {names[k]: weight for k, weight in found if k < len(names)}
        return np.array([by_name.get(removal.name(u), 0.0) for u in range(len(removal))])

    return scores


def shap_scores(explanation: Any) -> Any:
    """SHAP's partition explainer with its text masker; occurrences are added up by word."""
    import shap

    removal, bundle = explanation.removal, explanation.bundle
    masker = shap.maskers.Text(r"\s+", mask_token="...")
    explainer = shap.explainers.Partition(
        lambda texts: bundle.probabilities([str(t) for t in texts])[:, 1], masker
    )
    found = explainer([" ".join(removal.names)], silent=True)
    by_word: dict[str, float] = {}
    for piece, value in zip(found.data[0], found.values[0], strict=True):
        by_word[piece.strip()] = by_word.get(piece.strip(), 0.0) + float(value)
    return np.array([by_word.get(removal.name(u), 0.0) for u in range(len(removal))])


def gradient_scores(explanation: Any, steps: int = 50) -> Any:
    """Integrated gradients from zero vectors to the word vectors, shared out to words."""
    from captum.attr import IntegratedGradients

    removal, bundle = explanation.removal, explanation.bundle
    model, tokens = bundle.model, removal.base
    start = model.E.detach()[torch.from_numpy(tokens.ids.astype(np.int64))].double()
    counts = torch.from_numpy(tokens.counts.astype(np.float64))
    cuts = np.unique(tokens.offsets)

    def logits(vectors: torch.Tensor) -> torch.Tensor:
        return torch.stack([_logit(model, z, counts, cuts) for z in vectors])

    found = IntegratedGradients(logits).attribute(start[None], n_steps=steps)
    worth = found.sum(dim=2)[0].detach().numpy()
    parts = bundle.vocabulary.parts_of(tokens.ids)
    share = worth / (parts >= 0).sum(axis=1)
    by_word = np.zeros(len(bundle.vocabulary.words))
    for column in parts.T:
        np.add.at(by_word, column[column >= 0], share[column >= 0])
    codes = [bundle.vocabulary.numbers.get(removal.name(u), -1) for u in range(len(removal))]
    return np.array([by_word[c] if c >= 0 else 0.0 for c in codes])


def _logit(model: Any, z: torch.Tensor, counts: torch.Tensor, cuts: Any) -> torch.Tensor:
    from hardmax.dynamics.attend import mean_of
    from hardmax.dynamics.layer import step
    from hardmax.select.ragged import select_ragged

    for _ in range(model.depth):
        moved = []
        for block, size in zip(z.chunk(model.heads, dim=1), model.gamma.detach(), strict=True):
            chosen = select_ragged(block.detach().numpy(), cuts, tie_tol=model.tie_tol)
            moved.append(step(block, mean_of(block, chosen, counts), size, "rescale"))
        z = torch.cat(moved, dim=1)
    pooled = (z * counts[:, None]).sum(dim=0) / counts.sum()
    return (pooled @ model.v.detach().T + model.b.detach())[0]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="a folder of `hardmax train`")
    parser.add_argument("--reviews", type=Path, help="a table of held-out texts")
    parser.add_argument("--texts", type=int, default=500)
    parser.add_argument("--samples", type=int, default=1000, help="of LIME")
    parser.add_argument("--record", action="store_true", help="keep the result in RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="20 texts, 200 samples of LIME")
    options = parser.parse_args()
    if options.quick:
        options.texts, options.samples = min(options.texts, 20), min(options.samples, 200)
    return options


def _tell(done: int) -> None:
    if done % 25 == 0:
        print(f"{done} texts", file=sys.stderr, flush=True)


def _ratios(rows: Any) -> str:
    """How many times faster the rankings are than LIME and SHAP."""
    seconds = {r.method: r.seconds for r in rows}
    said = [
        f"{name} {seconds['LIME'] / seconds[name]:.0f} and "
        f"{seconds['SHAP partition'] / seconds[name]:.0f} times"
        for name in RANKINGS
    ]
    return f"Faster than LIME and SHAP: {', '.join(said)}."


def main() -> None:
    options = _options()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if options.model is None:
        clf = HardmaxClassifier(random_state=0).fit(*corpus("train"))
    else:
        clf = load(options.model)
    texts = corpus("test")[0]
    if options.reviews is not None:
        texts = [one for part, _ in read_texts(options.reviews, labelled=False) for one in part]
    methods: dict[str, Any] = {
        **RANKINGS,
        "LIME": lime_scores(options.samples),
        "SHAP partition": shap_scores,
        "integrated gradients": gradient_scores,
        "random": random_scores(),
    }
    start = time.perf_counter()
    rows = faithfulness(clf, texts[: options.texts], methods, again=10, progress=_tell)
    head = ("method", "compr. ↑", "suff. ↓", "deletion ↓", "insertion ↑", "tau LOO", "same", "ms")
    lines = [
        (
            r.method,
            f"{r.comprehensiveness:.4f}",
            f"{r.sufficiency:.4f}",
            f"{r.deletion:.4f}",
            f"{r.insertion:.4f}",
            f"{r.agreement:.3f}",
            "yes" if r.identical else f"no (tau {r.stability:.2f})",
            f"{1000 * r.seconds:.1f}",
        )
        for r in rows
    ]
    model = clf.settings_
    said = (
        f"{rows[0].texts} texts; heads of {model.dim // model.heads}, "
        f"{model.depth} layers; LIME with {options.samples} samples; "
        f"{time.perf_counter() - start:.0f} s in all."
    )
    text = f"{said}\n\n{table(head, lines)}\n\n{_ratios(rows)}"
    heads = f"{model.heads} {'head' if model.heads == 1 else 'heads'}"
    report(f"Faithfulness of explanations, {heads}", text, options.record)


if __name__ == "__main__":
    main()
