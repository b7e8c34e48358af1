"""`LeaderClustering` beside scikit-learn's clusterers: agreement, time, convergence.

OMP_NUM_THREADS=1 python benchmarks/bench_clustering.py [--quick] [--record] [--picture F]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common import report, table
from scipy.spatial.distance import cdist
from sklearn import cluster, datasets
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from hardmax.estimators.clustering import LeaderClustering

Points = tuple[np.ndarray, np.ndarray]


def toy(n: int) -> dict[str, Points]:
    """The sets of scikit-learn's comparison of clusterers."""
    X, y = datasets.make_blobs(n, random_state=170)
    return {
        "circles": datasets.make_circles(n, factor=0.5, noise=0.05, random_state=30),
        "moons": datasets.make_moons(n, noise=0.05, random_state=30),
        "varied": datasets.make_blobs(n, cluster_std=[1.0, 2.5, 0.5], random_state=170),
        "anisotropic": (X @ [[0.6, -0.6], [-0.4, 0.8]], y),
        "blobs": datasets.make_blobs(n, random_state=8),
        "no structure": (np.random.default_rng(30).random((n, 2)), np.zeros(n, dtype=int)),
    }


def real() -> dict[str, Points]:
    found = {}
    for name in ("iris", "wine", "breast_cancer", "digits"):
        data = getattr(datasets, f"load_{name}")()
        found[name] = (data.data, data.target)
    return found


class KMedoids:
    """Exemplars as in k-medoids: k-means++ starts, then points and medoids in turn; best of 10."""

    def __init__(self, count: int) -> None:
        self.count = count

    def fit(self, X: np.ndarray) -> KMedoids:
        far = cdist(X, X)
        best = np.inf
        for seed in range(10):
            medoids = self._starts(far, np.random.default_rng(seed))
            while True:
                labels = far[:, medoids].argmin(axis=1)
                groups = [np.flatnonzero(labels == k) for k in range(self.count)]
                new = [g[far[np.ix_(g, g)].sum(axis=0).argmin()] for g in groups if len(g)]
                if sorted(new) == sorted(medoids):
                    break
                medoids = new
            total = far[:, medoids].min(axis=1).sum()
            if total < best:
                best, self.labels_ = total, far[:, medoids].argmin(axis=1)
        return self

    def _starts(self, far: np.ndarray, rng: np.random.Generator) -> list[int]:
        medoids = [int(rng.integers(len(far)))]
        while len(medoids) < self.count:
            weight = far[:, medoids].min(axis=1) ** 2
            medoids.append(int(rng.choice(len(far), p=weight / weight.sum())))
        return medoids


def methods(count: int) -> dict[str, Any]:
    """Defaults, except that those marked (k) are told the number of classes."""
    return {
        "Leader": LeaderClustering(),
        "Leader (k)": LeaderClustering(n_clusters=count),
        "KMeans (k)": cluster.KMeans(count, n_init=10, random_state=0),
        "KMedoids (k)": KMedoids(count),
        "AffinityPropagation": cluster.AffinityPropagation(random_state=0),
        "MeanShift": cluster.MeanShift(bin_seeding=True),
        "HDBSCAN": cluster.HDBSCAN(copy=True),
    }


def compare(sets: dict[str, Points]) -> tuple[list[list[object]], dict[tuple[str, str], Any]]:
    rows, labels = [], {}
    for name, (X, y) in sets.items():
        X = StandardScaler().fit_transform(X)
        for method, model in methods(len(set(y.tolist()))).items():
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                start = time.process_time()
                found = model.fit(X).labels_
                spent = time.process_time() - start
            labels[name, method] = (X, found)
            failed = any("converge" in str(w.message) for w in said)
            state = "did not converge" if failed else ""
            if isinstance(model, LeaderClustering):
                state = "proved" if model.certificate_.proved else "not proved"
            clusters = len(set(found.tolist()) - {-1})
            scores = [adjusted_rand_score(y, found), adjusted_mutual_info_score(y, found)]
            if name == "no structure":
                scores = []
            shown = [f"{s:.2f}" for s in scores] or ["-", "-"]
            rows.append([name, method, clusters, *shown, f"{spent:.2f}", state])
    return rows, labels


def draw(labels: dict[tuple[str, str], Any], path: Path) -> None:
    """The toy sets as coloured by each method."""
    from matplotlib import colormaps

    from hardmax.plot import ink
    from hardmax.plot.figures import save_figure

    names = list(dict.fromkeys(name for name, _ in labels))
    kinds = list(dict.fromkeys(method for _, method in labels))
    figure = ink.blank(1.7 * len(kinds), 1.7 * len(names))
    grid = figure.subplots(len(names), len(kinds), squeeze=False)
    for line, name in zip(grid, names, strict=True):
        for ax, method in zip(line, kinds, strict=True):
            X, found = labels[name, method]
            colour = colormaps["tab20"](np.maximum(found, 0) % 20)
            colour[found < 0] = (0.6, 0.6, 0.6, 1)
            ax.scatter(X[:, 0], X[:, 1], s=3, c=colour)
            ax.set(xticks=[], yticks=[])
        line[0].set_ylabel(name, fontsize=8)
    for ax, method in zip(grid[0], kinds, strict=True):
        ax.set_title(method, fontsize=8)
    with path.open("wb") as file:
        save_figure(figure, file, path.suffix.lstrip("."), dpi=110)


def main() -> None:
    import argparse

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="keep the result in RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--picture", type=Path, help="draw the toy sets into this file")
    options = parser.parse_args()
    rows, labels = compare(toy(150 if options.quick else 500))
    if options.picture:
        draw(labels, options.picture)
    more = {} if options.quick else real()
    rows += compare(more)[0]
    header = ["set", "method", "clusters", "ARI", "AMI", "CPU s", "convergence"]
    text = "Standardised features; (k) is told the number of classes.\n\n" + table(header, rows)
    report("Clustering", text, options.record)


if __name__ == "__main__":
    main()
