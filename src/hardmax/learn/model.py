"""The classifier as a torch module: word vectors, hardmax layers, mean, linear decoder."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from hardmax._types import Array, Floats, Ints
from hardmax.dynamics.attend import mean_of
from hardmax.dynamics.layer import step
from hardmax.learn.run import Pooled, gather, pool
from hardmax.learn.weights import Weights, first_weights
from hardmax.select import select
from hardmax.tokens.batch import Tokens

__all__ = ["HardmaxModel", "join_heads"]

_CHUNK = 1024


class HardmaxModel(nn.Module):
    """Words to vectors, `depth` hardmax layers within each sequence, mean, linear decoder.

        logit = b + <v, mean over the words of z_i^depth>

    Each head is a block of the coordinates with choices and a strength of its
    own; all layers of a head share it, and it is positive by construction:
    alpha = log(1 + exp(rho)).  Token i of a head scores token j by <A z_i, z_j>.

    Parameters
    ----------
    size : int
        Number of tokens.
    dim : int
        Coordinates of a word vector, all heads together.
    heads : int
        Divides `dim`.
    depth : int
        Number of layers; 0 leaves the attention out.
    outputs : int
        Logits: 1 for two classes, else one per class.
    alpha : float
        Strength at the beginning.
    spread : float
        Standard deviation of the coordinates at the beginning.
    tie_tol : float
        Scores within tie_tol |z_i| max_j |z_j| of the best are ties.
    seed : int
        Of the random beginning.
    A : (heads, s, s) array, optional
        The scores of each head, s = dim / heads; the identity when None.

    Notes
    -----
    Word vectors are stored in float32; every computation is in float64.
    Choices are piecewise constant and carry no gradient; the values and alpha do.
    A receives the gradient that it would have if the choice between the best and
    the second-best key were soft, a logistic function of the gap of their scores
    over SOFT |A z_i| max_j |z_j|; rows that tie give none.
    """

    A: nn.Parameter | None

    def __init__(
        self,
        size: int,
        dim: int,
        *,
        heads: int = 1,
        depth: int = 2,
        outputs: int = 1,
        alpha: float = 1.0,
        spread: float = 0.1,
        tie_tol: float = 1e-12,
        seed: int | list[int] = 0,
        A: Array | None = None,
    ) -> None:
        super().__init__()
        w = first_weights(
            size, dim, heads=heads, outputs=outputs, alpha=alpha, spread=spread, seed=seed, A=A
        )
        self.E, self.rho = nn.Parameter(w.E), nn.Parameter(w.rho)
        self.v, self.b = nn.Parameter(w.v), nn.Parameter(w.b)
        self.register_parameter("A", None if w.A is None else nn.Parameter(w.A))
        self.depth, self.tie_tol = depth, tie_tol

    @classmethod
    def of(cls, weights: Weights, depth: int, tie_tol: float) -> HardmaxModel:
        """A model with these weights."""
        out = cls(1, weights.E.shape[1], depth=depth, tie_tol=tie_tol)
        for name in ("E", "rho", "v", "b", "A"):
            value = getattr(weights, name)
            setattr(out, name, None if value is None else nn.Parameter(value.detach()))
        return out

    @property
    def weights(self) -> Weights:
        """The parameters as plain tensors that share their memory."""
        A = None if self.A is None else self.A.detach()
        return Weights(self.E.detach(), self.rho.detach(), self.v.detach(), self.b.detach(), A)

    @property
    def heads(self) -> int:
        """The number of heads."""
        return len(self.rho)

    @property
    def alpha(self) -> torch.Tensor:
        """The strength of each head, (heads,)."""
        return nn.functional.softplus(self.rho)

    @property
    def gamma(self) -> torch.Tensor:
        """The step of each head, alpha / (1 + alpha)."""
        alpha = self.alpha
        return alpha / (1 + alpha)

    def small(self, alpha: bool = True, scores: bool = False) -> list[nn.Parameter]:
        """The parameters other than the word vectors, with or without strength and scores."""
        A = [self.A] if scores and self.A is not None else []
        return [*([self.rho] if alpha else []), *A, self.v, self.b]

    def scores(self) -> Floats | None:
        """A as an array; None for the identity."""
        return None if self.A is None else np.asarray(self.A.detach().numpy())

    def forward(self, tokens: Tokens) -> torch.Tensor:
        """Logits (b, outputs); a text without words has the logits b."""
        apply: Any = _Pool.apply
        return self.decode(apply(self.E, self.gamma, self.A, tokens, self.depth, self.tie_tol))

    def decode(self, pooled: torch.Tensor) -> torch.Tensor:
        """The linear decoder on pooled tokens."""
        return pooled @ self.v.T + self.b

    def run(self, tokens: Tokens, rows: Ints | None = None) -> Pooled:
        """Texts through the compiled layers, with the weight of every word."""
        return pool(
            self.E.detach().numpy(),
            self.gamma.detach().numpy(),
            tokens,
            np.arange(len(tokens)) if rows is None else rows,
            depth=self.depth,
            tie_tol=self.tie_tol,
            A=self.scores(),
        )

    def logits(self, tokens: Tokens) -> Floats:
        """Logits (b, outputs) without gradients, in lots of texts."""
        v, b = self.v.detach().numpy(), self.b.detach().numpy()
        out = np.empty((len(tokens), len(b)))
        for low in range(0, len(tokens), _CHUNK):
            rows = np.arange(low, min(low + _CHUNK, len(tokens)))
            pooled = self.run(tokens, rows).pooled
            for c in range(len(b)):  # no BLAS: a text scores the same in every lot
                out[rows, c] = (pooled * v[c]).sum(axis=1) + b[c]
        return out

    def layers(self, tokens: Tokens) -> list[torch.Tensor]:
        """Tokens after 0, 1, ..., depth layers, by the library's own selection and step.

        This is the definition; `forward` takes a compiled path with the same answers.
        """
        cuts = np.unique(tokens.offsets)
        weights = torch.from_numpy(tokens.counts.astype(np.float64))
        zs = [self.E[torch.from_numpy(tokens.ids.astype(np.int64))].double()]
        for _ in range(self.depth):
            moved = []
            for h, (z, size) in enumerate(
                zip(zs[-1].chunk(self.heads, dim=1), self.gamma, strict=True)
            ):
                A = None if self.A is None else self.A[h].detach()
                chosen = select(z.detach(), A, cuts, tie_tol=self.tie_tol)
                moved.append(step(z, mean_of(z, chosen, weights), size, "rescale"))
            zs.append(torch.cat(moved, dim=1))
        return zs


class _Pool(torch.autograd.Function):
    """The compiled layers and the mean, with their exact derivative."""

    @staticmethod
    def forward(
        ctx: Any,
        E: torch.Tensor,
        gamma: torch.Tensor,
        A: torch.Tensor | None,
        tokens: Tokens,
        depth: int,
        tie_tol: float,
    ) -> torch.Tensor:
        """Pooled tokens (b, dim)."""
        ctx.run = pool(
            E.detach().numpy(),
            gamma.detach().numpy(),
            tokens,
            np.arange(len(tokens)),
            depth=depth,
            tie_tol=tie_tol,
            A=None if A is None else A.detach().numpy(),
            learn=A is not None and A.requires_grad,
        )
        ctx.shape = E.shape
        return torch.from_numpy(ctx.run.pooled.copy())

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of the word vectors (sparse), of gamma and of A."""
        grad = np.ascontiguousarray(grads[0].numpy())
        rows, values = gather(ctx.run, grad, np.full(ctx.shape[0], -1, dtype=np.int64))
        sparse = torch.sparse_coo_tensor(
            torch.from_numpy(rows)[None],
            torch.from_numpy(values).float(),
            ctx.shape,
            check_invariants=False,
        )
        slope, turn = ctx.run.derivatives(grad)
        A = torch.from_numpy(turn) if turn.size else None
        return sparse, torch.from_numpy(slope), A, None, None, None


def join_heads(models: list[HardmaxModel]) -> HardmaxModel:
    """Models of one vocabulary as one model with all their heads: the mean of their logits."""
    if len(models) == 1:
        return models[0]
    first = models[0]
    out = HardmaxModel(
        first.E.shape[0],
        sum(m.E.shape[1] for m in models),
        heads=sum(m.heads for m in models),
        depth=first.depth,
        outputs=len(first.b),
        tie_tol=first.tie_tol,
    )
    if first.A is not None:
        out.A = nn.Parameter(torch.cat([_scores_of(m) for m in models]))
    with torch.no_grad():
        out.E.copy_(torch.cat([m.E for m in models], dim=1))
        out.rho.copy_(torch.cat([m.rho for m in models]))
        out.v.copy_(torch.cat([m.v for m in models], dim=1) / len(models))
        out.b.copy_(torch.stack([m.b for m in models]).mean(dim=0))
    return out


def _scores_of(model: HardmaxModel) -> torch.Tensor:
    size = model.E.shape[1] // model.heads
    eye = torch.eye(size, dtype=torch.float64).expand(model.heads, size, size)
    return eye if model.A is None else model.A.detach()
