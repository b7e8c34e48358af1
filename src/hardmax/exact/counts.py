"""Counts of a network beside the bounds of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hardmax.exact.layers import Attention, FeedForward, Layer

__all__ = ["Counts", "count"]


@dataclass(frozen=True)
class Counts:
    """Sizes of a network for N sequences in R^d.

    `blocks` counts pairs of a feed-forward and an attention layer, without the
    layers that embed the tokens first and those that read the label out (at most
    two); of idle attention layers ("rho_eta") all count.  Where `width` makes
    more feed-forward layers than attention layers, these count.

    `parameters` counts every entry of W1, b1, b2, W2 and of the vectors q, k,
    u, v; `nonzeros` those that are not zero.  `bounds` are those of the chain:
    N - 1 attention layers, 7 N - 2 neurons, (18 d + 8) N parameters; the
    published number of blocks is 4 N + 1.
    """

    sequences: int
    dim: int
    attention_layers: int
    feed_forward_layers: int
    blocks: int
    neurons: int
    widest: int
    parameters: int
    nonzeros: int
    bounds: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def __str__(self) -> str:
        """A table: what was built, beside the bound."""
        b = self.bounds
        rows = [
            ("blocks", self.blocks, b["blocks"], "published: 2 sum(m) + 2N + 1, m = 1"),
            ("attention layers", self.attention_layers, b["attention_layers"], "N - 1"),
            ("hidden neurons", self.neurons, b["neurons"], "7N - 2"),
            ("parameters", self.parameters, b["parameters"], "(18d + 8) N"),
        ]
        lines = [f"N = {self.sequences} sequences, d = {self.dim}"]
        lines += [
            f"{name:<18}{here:>12,}   bound {most:>12,}  {how}" for name, here, most, how in rows
        ]
        lines.append(f"{'non-zero numbers':<18}{self.nonzeros:>12,}")
        return "\n".join(lines)


def count(layers: Sequence[Layer], sequences: int, d: int, entry: int = 0) -> Counts:
    """Count layers, neurons and weights; idle attention layers carry no weights.

    `entry` is the number of the first layer after the embedding, where there is a grid.
    """
    attention = [x for x in layers if isinstance(x, Attention) and not x.idle]
    feed = [x for x in layers if isinstance(x, FeedForward)]
    parameters = sum(x.parameters(d) for x in feed) + sum(x.parameters(d) for x in attention)
    n = sequences
    bounds = {
        "blocks": 4 * n + 1,
        "attention_layers": max(n - 1, 1),
        "neurons": 7 * n - 2,
        "parameters": (18 * d + 8) * n,
    }
    return Counts(
        sequences=n,
        dim=d,
        attention_layers=len(attention),
        feed_forward_layers=len(feed),
        blocks=_blocks(layers, entry),
        neurons=sum(x.neurons for x in feed),
        widest=max((x.neurons for x in feed), default=0),
        parameters=parameters,
        nonzeros=sum(x.nonzeros() for x in feed) + sum(x.nonzeros() for x in attention),
        bounds=bounds,
    )


def _blocks(layers: Sequence[Layer], entry: int) -> int:
    """Pairs of layers between the embedding and the readout."""
    at = [i for i, x in enumerate(layers) if isinstance(x, Attention)]
    if any(isinstance(x, Attention) and x.idle for x in layers) or not at:
        return len(at)
    feed = len(layers) - len(at)
    embed, readout = entry or at[0], min(2, len(layers) - 1 - at[-1])
    return max(len(at), feed - embed - readout)
