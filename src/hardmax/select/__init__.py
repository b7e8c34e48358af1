"""The hot operation: the sets of tokens with the largest score <A z_i, z_j>.

One door, `select`, for every use.  The backends behind it give the same sets whenever
the margins exceed the rounding of float64 scores, also for float32 tokens, which are
taken as exact numbers; all paths of the CPU give the same sets to the last tie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardmax._check import is_torch
from hardmax._errors import InputError
from hardmax._types import Array, Ints
from hardmax.select.chosen import Chosen
from hardmax.select.plan import preferred, using

if TYPE_CHECKING:
    import torch

__all__ = ["Chosen", "select", "using"]


def select(
    z: Any,
    A: Any = None,
    offsets: Ints | None = None,
    *,
    tie_tol: float = 0.0,
    backend: str = "auto",
    group: Any = None,
) -> Chosen:
    """For each token, the tokens of its sequence with the largest score.

    C_i = {j : <A z_i, z_j> >= max_l <A z_i, z_l> - tie_tol |A z_i| max_l |z_l|}

    Parameters
    ----------
    z : (N, d) array or tensor
        Tokens of all sequences, one after the other, without padding.
    A : (d, d) array, pair (U, V) meaning UᵀV, or None for the identity
    offsets : (s + 1,) int array, optional
        Sequence s is z[offsets[s]:offsets[s + 1]]; one sequence when None.
    tie_tol : float
        Scores this close to the best, relatively, count as equal.
    backend : "auto", "cpu", "gpu", "reference" or a path of the CPU
        "cpu" is compiled and keeps no score matrix; "gpu" runs on the device of z,
        compiled too where Triton is there; "reference" is plain torch, to be read.
        "auto" takes "gpu" for CUDA tensors and "cpu" for data in main memory, where
        the path is chosen from n, d and the type; "brute", "hull", "sorted" and
        "twostage" insist on one (brute force stands in where it does not apply).
        `Chosen.path` says which it was; `using` sets it for a stretch of code.
    group : torch.distributed process group, or True for the default one, optional
        z is then this process's part of one cloud, and its tokens choose among those of
        all processes, numbered in the order of the ranks.  Every process of the group
        calls this together, with the same A, tie_tol and backend.

    Returns
    -------
    Chosen

    Notes
    -----
    Tokens and A are first scaled by powers of two, which changes no choice and
    keeps scores of very large or very small tokens finite.

    Examples
    --------
    >>> import numpy as np
    >>> select(np.array([[1.0], [2.0], [-1.0]])).indices
    array([1, 1, 2])
    """
    backend = preferred(backend)
    if group is not None:
        return _select_shards(z, A, offsets, tie_tol, backend, group)
    if offsets is None:
        offsets = np.array([0, len(z)])
    if backend == "gpu" or (backend == "auto" and is_torch(z) and z.is_cuda):
        return _select_gpu(z, A, offsets, tie_tol)
    if backend == "reference":
        return _select_torch(z, A, offsets, tie_tol)
    return _select_cpu(z, A, offsets, tie_tol, "auto" if backend == "cpu" else backend)


def _numpy(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(_numpy(v) for v in x)
    return x.detach().cpu().numpy() if is_torch(x) else x


def _unit(x: Array, offsets: Ints | None = None) -> Array:
    """x times a power of two (one per sequence) so that its largest entry is near 1."""
    tops = np.abs(x).max(axis=tuple(range(1, x.ndim)), initial=0.0)
    if offsets is None:
        shift = np.frexp(tops.max(initial=0.0))[1]
    else:
        shift = np.frexp(np.maximum.reduceat(tops, offsets[:-1]))[1]
        shift = np.repeat(shift, np.diff(offsets))[:, None]
    return np.asarray(np.ldexp(x, -shift))


def _dense(A: Any) -> Any:
    """A in float64, largest entry near 1; a pair keeps its factors when that is less work."""
    if isinstance(A, tuple):
        u, v = (_unit(np.asarray(x, dtype=np.float64)) for x in A)
        return (u, v) if 2 * len(u) < u.shape[1] else u.T @ v
    return None if A is None else _unit(np.asarray(A, dtype=np.float64))


def _select_gpu(z: Any, A: Any, offsets: Ints, tie_tol: float) -> Chosen:
    import torch

    from hardmax.select.gpu import select_gpu

    z = z if is_torch(z) else torch.from_numpy(np.asarray(z))
    return select_gpu(z, _dense(_numpy(A)), offsets, tie_tol)


def _select_cpu(z: Any, A: Any, offsets: Ints, tie_tol: float, path: str) -> Chosen:
    from hardmax.select.cpu import select_cpu  # numba, which a GPU machine may lack

    return select_cpu(np.asarray(_numpy(z)), _dense(_numpy(A)), offsets, tie_tol, path)


def _select_shards(
    z: Any, A: Any, offsets: Ints | None, tie_tol: float, backend: str, group: Any
) -> Chosen:
    from hardmax.select.shards import select_shards

    if offsets is not None or backend in ("gpu", "reference"):
        raise InputError("shards are parts of one cloud, searched by the paths of the CPU.")
    path = "auto" if backend == "cpu" else backend
    return select_shards(z, _dense(_numpy(A)), tie_tol, path, group)


def _select_torch(z: Any, A: Any, offsets: Ints, tie_tol: float) -> Chosen:
    import torch

    from hardmax.select.reference import reference

    z = z.detach() if is_torch(z) else torch.from_numpy(np.asarray(z))
    scaled = torch.from_numpy(_unit(z.cpu().numpy(), offsets)).to(z.device)
    A = _dense(_numpy(A))
    if isinstance(A, tuple):
        A = A[0].T @ A[1]
    a: torch.Tensor | None = None if A is None else torch.from_numpy(A).to(scaled.device)
    return reference(scaled, a, offsets, tie_tol)
