"""All layers of a batch of short sequences in one launch, with gradients.

    z_i' = z_i + gamma (mean_{j in C_i} z_j - z_i),   C_i = {j : <z_i, z_j> largest}

The matrix of the scores is the identity; heads are blocks of the coordinates with
choices of their own.  The step itself is that of `hardmax.dynamics.layer`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from hardmax.select._triton_batch import forward
from hardmax.select._triton_gradient import backward

__all__ = ["Walk", "deep", "fits", "walk"]

_LONGEST, _WIDEST = 1024, 128


@dataclass(frozen=True)
class Walk:
    """What the layers of a batch were.

    Attributes
    ----------
    zs : (depth + 1, b, n, d) tensor
    at : (depth, b, heads, n) int32 tensor
        The key that each token chose alone; -1 for several keys, -3 for padding.
    """

    zs: torch.Tensor
    at: torch.Tensor


def fits(n: int, d: int, heads: int) -> bool:
    """Whether sequences of n tokens with d coordinates are short enough for one program."""
    return n <= _LONGEST and d // heads <= _WIDEST


@dataclass(frozen=True)
class _Shape:
    n: int
    d: int
    heads: int
    depth: int
    batch: int

    @property
    def width(self) -> int:
        """Coordinates of a head."""
        return self.d // self.heads

    def constants(self) -> dict[str, int]:
        """How both kernels are cut; measured on one H200."""
        whole = max(16, 1 << (self.n - 1).bit_length())
        return {
            "D": max(16, 1 << (self.width - 1).bit_length()),
            "NP": whole,
            "BR": max(1, min(4, 1024 // whole)),
            "num_stages": 1,
        }

    def forward(self) -> dict[str, int]:
        """How the kernel of the layers is cut."""
        part = self.constants()
        few = self.width <= 8 or part["NP"] <= 64
        part |= {"BM": min(part["NP"], 64 if few else 256), "BK": min(part["NP"], 64)}
        part |= {"BU": min(part["NP"], 64), "num_warps": 4 if few else 8}
        return part if few else part | {"maxnreg": 128}

    def backward(self) -> dict[str, int]:
        """How the kernel of the gradients is cut."""
        part = self.constants()
        side = min(part["NP"], 32)
        return part | {"BM": side, "BK": side, "num_warps": 4}


def _bound(width: int) -> tuple[float, float]:
    """Relative and absolute error of a score, in units of |q| max |k| and max |k|."""
    return (width + 24) * 2.0**-22, 2.0**-30


def walk(
    z: torch.Tensor,
    gamma: torch.Tensor,
    mask: torch.Tensor | None = None,
    weight: torch.Tensor | None = None,
    *,
    heads: int = 1,
    tie_tol: float = 0.0,
    keys: torch.Tensor | None = None,
    plan: dict[str, int] | None = None,
) -> Walk:
    """The tokens after every layer, and who chose whom.

    Parameters
    ----------
    z : (b, n, d) float32 or float64 tensor, n <= 1024 and d / heads <= 128
    gamma : (depth, heads) tensor with entries in (0, 1]
    mask : (b, n) bool tensor, optional
        True for a real token; padding keeps its place and is chosen by nobody.
    weight : (b, n) tensor, optional
        Multiplicities: the weight of a token in the means of those who choose it.
    heads : int
        Blocks of the coordinates.
    tie_tol : float
        Scores within tie_tol |z_i| max_j |z_j| of the best are ties.
    keys : (b, n) bool tensor, optional
        Tokens that may be chosen, at least one of each sequence; all real ones when None.
    plan : dict, optional
        Constants of the kernel in place of those chosen here.

    Returns
    -------
    Walk

    Notes
    -----
    A head of a sequence in which every token has chosen one token that chose itself
    is searched no more: its choices stay the same.
    """
    b, n, d = z.shape
    shape = _Shape(n, d, heads, len(gamma), b)
    mask, weight = _whole(z, mask, weight, keys)
    zs = torch.empty(shape.depth + 1, b, n, d, dtype=z.dtype, device=z.device)
    zs[0] = z
    at = torch.empty(shape.depth, b, heads, n, dtype=torch.int32, device=z.device)
    if not shape.depth:
        return Walk(zs, at)
    part = shape.forward() | (plan or {})
    forward[(b * heads,)](
        zs, at, gamma.to(z.dtype).contiguous(), weight, mask, n, d, b, heads, shape.width,
        shape.depth, *_bound(part["D"]),
        torch.full((1,), tie_tol, dtype=torch.float64, device=z.device),
        enable_fp_fusion=False, **part,
    )  # fmt: skip
    return Walk(zs, at)


def _whole(
    z: torch.Tensor,
    mask: torch.Tensor | None,
    weight: torch.Tensor | None,
    keys: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mask (2 for a token that is no key) and weights as the kernels read them."""
    shape = z.shape[:2]
    flags = torch.ones(shape, dtype=torch.int8, device=z.device)
    if mask is not None:
        flags = mask.to(torch.int8).contiguous()
    if keys is not None:
        flags = torch.where(keys, flags, 2 * flags)
    w = torch.ones(shape, dtype=z.dtype, device=z.device)
    if weight is not None:
        w = weight.to(z.dtype).contiguous()
    return flags, w


class _Deep(torch.autograd.Function):
    """The last layer of `walk`; choices carry no gradient, values and gamma do."""

    @staticmethod
    def forward(
        ctx: Any,
        z: torch.Tensor,
        gamma: torch.Tensor,
        mask: torch.Tensor | None,
        weight: torch.Tensor | None,
        heads: int,
        tie_tol: float,
        keys: torch.Tensor | None,
        plan: dict[str, int] | None,
    ) -> torch.Tensor:
        """(b, n, d) -> (b, n, d)."""
        found = walk(z, gamma, mask, weight, heads=heads, tie_tol=tie_tol, keys=keys)
        ctx.save_for_backward(found.zs, found.at, gamma, *_whole(z, mask, weight, keys))
        ctx.heads, ctx.tie_tol, ctx.plan = heads, tie_tol, plan or {}
        return found.zs[-1].clone()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of z and gamma."""
        zs, at, gamma, mask, weight = ctx.saved_tensors
        depth, b = at.shape[:2]
        n, d = zs.shape[2:]
        shape = _Shape(n, d, ctx.heads, depth, b)
        buffers = torch.empty(2, b, n, d, dtype=zs.dtype, device=zs.device)
        buffers[0] = grads[0]
        slopes = torch.zeros(depth, b, ctx.heads, dtype=torch.float64, device=zs.device)
        if depth:
            part = shape.backward() | ctx.plan
            backward[(b * ctx.heads,)](
                zs, at, gamma.to(zs.dtype).contiguous(), weight, mask, buffers, slopes, n, d, b,
                ctx.heads, shape.width, depth,
                torch.full((1,), ctx.tie_tol, dtype=torch.float64, device=zs.device),
                enable_fp_fusion=False, **part,
            )  # fmt: skip
        return buffers[depth % 2], slopes.sum(dim=1).to(gamma.dtype), *(None,) * 6


def deep(
    z: torch.Tensor,
    gamma: torch.Tensor,
    mask: torch.Tensor | None = None,
    weight: torch.Tensor | None = None,
    *,
    heads: int = 1,
    tie_tol: float = 0.0,
    keys: torch.Tensor | None = None,
    plan: dict[str, int] | None = None,
) -> torch.Tensor:
    """The tokens after all layers of `walk`; gradients flow to z and gamma."""
    apply: Any = _Deep.apply
    out: torch.Tensor = apply(z, gamma, mask, weight, heads, tie_tol, keys, plan)
    return out
