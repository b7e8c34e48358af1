"""One hardmax layer, to be read beside the paper."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import torch

from hardmax._check import (
    as_batch,
    check_choice,
    check_gamma,
    check_matrix,
    check_tolerance,
    is_torch,
)
from hardmax._errors import InputError
from hardmax._types import Array, ArrayLike, Number
from hardmax.dynamics.attend import attend

__all__ = ["NORMALIZATIONS", "TIE_TOL", "layer", "step", "step_size"]

NORMALIZATIONS = ("rescale", "none", "sphere", "layernorm")
TIE_TOL = {torch.float32: 1e-5, torch.float64: 1e-12}


def layer(
    z: ArrayLike,
    *,
    A: ArrayLike | None = None,
    alpha: Number = 1.0,
    gamma: Number | ArrayLike | None = None,
    mask: ArrayLike | None = None,
    temperature: float = 0.0,
    heads: int = 1,
    normalization: str = "rescale",
    tie_tol: float | None = None,
) -> Any:
    """One layer: each token moves toward the mean of the tokens it chooses.

        C_i  = {j : <A z_i, z_j> = max_l <A z_i, z_l>}
        z_i' = z_i + gamma (mean_{j in C_i} z_j - z_i),   gamma = alpha / (1 + alpha)

    Parameters
    ----------
    z : (n, d) or (b, n, d) array-like
        Tokens.  float32 and float64 are kept; integers become float64.
    A : (d, d) array, pair (U, V) of (r, d) arrays meaning UᵀV, or one per head
        The scores; the identity when None.
    alpha : float > 0
        Strength of the attention.
    gamma : float in (0, 1] or (d, d) array, optional
        The step itself, instead of alpha / (1 + alpha).
    mask : (n,) or (b, n) bool array, optional
        True for a real token.  Padding neither attends nor is attended to.
    temperature : float
        0 is hardmax; t > 0 puts softmax weights of scores / t in place of the mean.
    heads : int
        Splits the coordinates into this many equal blocks with choices of their own.
    normalization : "rescale", "none", "sphere" or "layernorm"
        z + alpha mean divided by 1 + alpha as above, not divided, divided by its length,
        or with its coordinates brought to mean 0 and variance 1.
    tie_tol : float, optional
        Scores within tie_tol |A z_i| max_j |z_j| of the best are ties.
        Default 1e-12 in float64 and 1e-5 in float32.

    Returns
    -------
    array like `z`
        A torch tensor for a torch tensor (gradients flow through the values,
        the choices being piecewise constant), else a NumPy array.

    Raises
    ------
    InputError
        For tokens that are not finite, a mask without a real token, a step out of range.
    ShapeError
        For shapes that do not fit.

    Examples
    --------
    >>> layer([[1.0, 0.0], [0.0, 1.0], [0.4, 0.2]], alpha=1.0)
    array([[1. , 0. ],
           [0. , 1. ],
           [0.7, 0.1]])
    """
    batch = as_batch(z, mask)
    d = batch.z.shape[-1]
    mats = check_matrix(A, d, heads)
    check_choice(normalization, "normalization", NORMALIZATIONS)
    tol = check_tolerance(tie_tol, "tie_tol", TIE_TOL[batch.z.dtype])
    heat = check_tolerance(temperature, "temperature", 0.0)
    size = step_size(check_gamma(alpha, gamma, None, d), normalization, batch.z)
    if is_torch(alpha if gamma is None else gamma):
        size = _learned_size(alpha, gamma, normalization).to(batch.z)
    if batch.mask.all():
        mean = attend(batch.z, batch.mask, mats, heat, tol)
        return batch.back(step(batch.z, mean, size, normalization))
    keep = torch.from_numpy(batch.mask).to(batch.z.device)[..., None]
    real = torch.where(keep, batch.z, torch.zeros_like(batch.z))  # padding may hold anything
    moved = step(real, attend(real, batch.mask, mats, heat, tol), size, normalization)
    return batch.back(torch.where(keep, moved, batch.z))


def _learned_size(alpha: Any, gamma: Any, normalization: str) -> Any:
    """`step_size` of a tensor, with its gradient."""
    eye = torch.eye(len(gamma)).to(gamma) if gamma is not None and gamma.ndim == 2 else 1
    if normalization == "rescale":
        return torch.as_tensor(alpha / (1 + alpha) if gamma is None else gamma)
    if gamma is None:
        return torch.as_tensor(alpha)
    return gamma / (1 - gamma) if gamma.ndim == 0 else torch.linalg.solve(eye - gamma, gamma)


def step_size(
    gamma: Fraction | tuple[Fraction, ...] | Array, normalization: str, like: torch.Tensor
) -> torch.Tensor:
    """gamma for "rescale", alpha = gamma / (1 - gamma) for the others; number or matrix."""
    if isinstance(gamma, Fraction):
        if normalization != "rescale" and gamma == 1:
            raise InputError(
                "`gamma` = 1 is alpha = infinity, which needs `normalization='rescale'`."
            )
        value = gamma if normalization == "rescale" else gamma / (1 - gamma)
        if value > torch.finfo(like.dtype).max:
            raise InputError(
                "`alpha` must lie in the range of the tokens' numbers unless "
                "`normalization='rescale'`."
            )
        return torch.tensor(float(value), dtype=like.dtype, device=like.device)
    matrix = torch.as_tensor(gamma, dtype=torch.float64)
    if normalization != "rescale":
        rest = torch.eye(len(matrix), dtype=torch.float64) - matrix
        if torch.linalg.matrix_rank(rest) < len(rest):
            raise InputError(
                "`gamma` as a matrix G needs I - G invertible unless `normalization='rescale'`."
            )
        matrix = torch.linalg.solve(rest, matrix)
    return matrix.to(like)


def step(
    z: torch.Tensor, mean: torch.Tensor, size: torch.Tensor, normalization: str
) -> torch.Tensor:
    """Move every token: toward the mean ("rescale"), or by it (all others)."""
    if normalization == "rescale":
        way = mean - z
        if not torch.isfinite(way).all():  # the way may be twice as long as any token
            return 2 * step(z / 2, mean / 2, size, normalization)
        return z + (way * size if size.ndim == 0 else way @ size.T)
    moved = z + (mean * size if size.ndim == 0 else mean @ size.T)
    if normalization == "none":
        return moved
    moved = _near_one(moved)
    if normalization == "layernorm":
        return _standard(moved)
    length = moved.norm(dim=-1, keepdim=True)
    return moved / torch.where(length > 0, length, torch.ones_like(length))


def _near_one(x: torch.Tensor) -> torch.Tensor:
    """Each row times a power of two that brings its largest entry near 1: squares stay finite."""
    shift = torch.frexp(x.detach().abs().amax(dim=-1, keepdim=True))[1].to(x.dtype)
    half = torch.floor(shift / 2)
    return x * torch.exp2(-half) * torch.exp2(half - shift)  # 2**shift itself may overflow


def _standard(x: torch.Tensor) -> torch.Tensor:
    """Coordinates with mean 0 and variance 1; zero where they are equal up to rounding."""
    flat = x - x.mean(dim=-1, keepdim=True)
    width = flat.norm(dim=-1, keepdim=True) / x.shape[-1] ** 0.5
    noise = 4 * torch.finfo(x.dtype).eps * x.abs().amax(dim=-1, keepdim=True)
    return torch.where(width > noise, flat / torch.where(width > 0, width, 1), 0)
