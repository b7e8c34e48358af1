"""The hot operation: the sets of tokens with the largest score <A z_i, z_j>.

One door, `select`, for every use.  The backends behind it give the same sets: without a
tolerance those of exact arithmetic, with one those of float64 scores, also for float32
tokens, which are taken as exact numbers.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from hardmax._check import is_torch
from hardmax._errors import InputError
from hardmax._types import Ints
from hardmax.select.chosen import Chosen
from hardmax.select.plan import preferred, using

__all__ = ["Chosen", "select", "using"]

_COMPILED = find_spec("numba") is not None  # a GPU machine may lack it


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
    With tie_tol = 0 the sets are those of exact arithmetic on the numbers given: keys that
    float64 cannot tell apart are compared in integers.  With tie_tol > 0 scores are
    float64, right up to their rounding, also where the terms of A z_i cancel.
    Tokens and A are first scaled by powers of two, which changes no choice and
    keeps scores of very large or very small tokens finite.

    Examples
    --------
    >>> import numpy as np
    >>> select(np.array([[1.0], [2.0], [-1.0]])).indices
    array([1, 1, 2])
    """
    backend, A = preferred(backend), _numpy(A)
    if group is not None:
        return _select_shards(z, A, offsets, tie_tol, backend, group)
    if offsets is None:
        offsets = np.array([0, len(z)])
    z = z.detach() if is_torch(z) else np.asarray(z)
    if tie_tol > 0 or not len(z) or not _COMPILED:
        return _by_floats(z, A, offsets, tie_tol, backend)
    from hardmax.select.asking import decided, rounding

    found = _by_floats(z, A, offsets, rounding(A, z.shape[1]), backend)
    return decided(found, z, offsets, A)


def _by_floats(z: Any, A: Any, offsets: Ints, tie_tol: float, backend: str) -> Chosen:
    """Everything within a tolerance above the rounding of float64."""
    if backend == "gpu" or (backend == "auto" and is_torch(z) and z.is_cuda):
        return _select_gpu(z, A, offsets, tie_tol)
    if backend == "reference":
        return _select_torch(z, A, offsets, tie_tol)
    return _select_cpu(z, A, offsets, tie_tol, "auto" if backend == "cpu" else backend)


def _numpy(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(_numpy(v) for v in x)
    return x.detach().cpu().numpy() if is_torch(x) else x


def _select_gpu(z: Any, A: Any, offsets: Ints, tie_tol: float) -> Chosen:
    import torch

    from hardmax.select.gpu import select_gpu

    z = z if is_torch(z) else torch.from_numpy(np.asarray(z))
    return select_gpu(z, A, offsets, tie_tol)


def _select_cpu(z: Any, A: Any, offsets: Ints, tie_tol: float, path: str) -> Chosen:
    from hardmax.select.cpu import select_cpu

    return select_cpu(np.asarray(_numpy(z)), A, offsets, tie_tol, path)


def _select_shards(
    z: Any, A: Any, offsets: Ints | None, tie_tol: float, backend: str, group: Any
) -> Chosen:
    from hardmax.select.shards import select_shards

    if offsets is not None or backend in ("gpu", "reference"):
        raise InputError("shards are parts of one cloud, searched by the paths of the CPU.")
    path = "auto" if backend == "cpu" else backend
    return select_shards(z, A, tie_tol, path, group)


def _select_torch(z: Any, A: Any, offsets: Ints, tie_tol: float) -> Chosen:
    from hardmax.select.reference import reference

    return reference(z, A, offsets, tie_tol)
