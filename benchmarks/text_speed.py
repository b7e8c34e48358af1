"""CPU seconds per epoch at the paper's configuration: plain torch, and the compiled loop.

    python benchmarks/text_speed.py --texts 2000

Both train d = 2 and 16, K = 8, 128 words, batches of 64, on the same synthetic
texts (Zipf-distributed words, vocabulary 121,296), one after the other in one
process with one thread.  The plain step is the paper's: dense embedding and Adam,
softmax of the scores over 0.001, clipped gradients; its tokens are padded places, ours
are distinct words with multiplicities.  Prints one JSON line per dimension.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import torch
from torch import nn

from hardmax.learn.fit import Labelled, fit
from hardmax.learn.presets import Settings
from hardmax.tokens.batch import Tokens

SIZE = 121_296


class Plain(nn.Module):
    """Embedding, eight softmax layers at temperature 0.001, mean, linear: no more than that."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.E, self.out = nn.Embedding(SIZE, dim), nn.Linear(dim, 1)
        self.alpha = nn.Parameter(torch.rand(()))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits of a batch."""
        z = self.E(ids)
        for _ in range(8):
            weights = torch.softmax(z @ z.transpose(1, 2) / 0.001, dim=-1)
            z = (z + self.alpha * (weights @ z)) / (1 + self.alpha)
        return self.out(z.mean(dim=1))[:, 0]


def seconds_of_plain(ids: np.ndarray, y: np.ndarray, dim: int) -> float:
    """The second epoch of the paper's loop."""
    torch.manual_seed(0)
    model = Plain(dim)
    adam = torch.optim.Adam(model.parameters(), lr=0.001)
    x, target = torch.from_numpy(ids), torch.from_numpy(y).float()
    for _ in range(2):
        start = time.process_time()
        for rows in torch.randperm(len(x)).split(64):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]), target[rows])
            adam.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            adam.step()
    return time.process_time() - start


def seconds_of_ours(ids: np.ndarray, y: np.ndarray, dim: int) -> float:
    """The second epoch of the compiled loop, one head, nothing dropped."""
    data = Labelled(Tokens.of(ids.tolist()), y)
    settings = Settings(
        dim=dim, heads=1, depth=8, epochs=2, word_dropout=0.0, key_dropout=0.0, spread=1.0,
        learn_alpha=True, learning_rate=0.001,
    )  # fmt: skip
    marks: list[float] = []
    fit(data, SIZE, settings, callbacks=[lambda p: p.end and marks.append(time.process_time())])
    return marks[1] - marks[0]


def main() -> None:
    """Read the number of texts, run, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=2000)
    count = parser.parse_args().texts
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    ids = np.minimum(rng.zipf(1.2, (count, 128)), SIZE) - 1
    y = np.arange(count) % 2
    for dim in (2, 16):
        plain, ours = seconds_of_plain(ids, y, dim), seconds_of_ours(ids, y, dim)
        row = {"dim": dim, "texts": count, "plain": plain, "ours": ours, "ratio": plain / ours}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
