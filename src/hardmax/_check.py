"""Checks of arguments; each failure says what was expected, what came, what to do."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from hardmax._errors import InputError, ShapeError
from hardmax._types import Array, Bools

if TYPE_CHECKING:
    import torch

__all__ = [
    "Batch",
    "as_array",
    "as_batch",
    "check_choice",
    "check_depth",
    "check_gamma",
    "check_matrix",
    "check_tolerance",
    "is_torch",
]

_WHOLE = 2.0**53


def is_torch(x: Any) -> bool:
    """Whether `x` is a torch tensor, without importing torch."""
    return type(x).__module__.split(".")[0] == "torch"


def as_array(x: Any, name: str) -> Array:
    """A numeric NumPy array: float32 and float64 kept, Fractions kept as objects."""
    if is_torch(x):
        x = _from_torch(x, name)
    if isinstance(x, np.ma.MaskedArray) and np.any(np.ma.getmaskarray(x)):
        raise InputError(
            f"`{name}` must not have masked entries. Pass the numbers, and a mask of tokens beside."
        )
    try:
        out = np.asarray(x)
    except ValueError:
        raise ShapeError(
            f"`{name}` must be a rectangular array; the rows have different lengths. "
            "Pad the rows and pass a mask, or give one system at a time."
        ) from None
    if not out.dtype.isnative:
        out = out.astype(out.dtype.newbyteorder("="))
    if out.dtype == object:
        return _object_array(out, name)
    listed = out.dtype.kind in "iu" or (out.dtype == np.float64 and out is not x)
    if listed and out.ndim and np.any(np.abs(out) >= _WHOLE):
        exact = np.asarray(x, dtype=object)  # integers that no double holds stay integers
        _check_range(exact, name)
        if any(isinstance(v, int) and int(float(v)) != v for v in exact.ravel()):
            return exact
    if out.dtype.kind in "biu":
        return out.astype(np.float64)
    if out.dtype in (np.float32, np.float64):
        return out
    found = "text" if out.dtype.kind in "US" else out.dtype
    raise InputError(
        f"`{name}` must hold float32, float64, integer or Fraction numbers; got {found}. "
        "Convert it first."
    )


def _from_torch(x: Any, name: str) -> Array:
    """A tensor as a NumPy array, where NumPy has its kind of numbers."""
    try:
        return np.asarray(x.detach().cpu().numpy())
    except (TypeError, RuntimeError):
        kind = str(x.layout if "sparse" in str(x.layout) else x.dtype).removeprefix("torch.")
        raise InputError(
            f"`{name}` must be a dense tensor of float32, float64 or integers; got {kind}. "
            "Convert it with .to_dense() or .double()."
        ) from None


def _object_array(x: Array, name: str) -> Array:
    """Keep objects when a Fraction is among them, else floats."""
    kinds = {type(v) for v in x.ravel()}
    numbers = (int, float, Fraction, np.integer, np.floating)
    wrong = [k for k in kinds if not issubclass(k, numbers)]
    if wrong:
        hint = "the rows have different lengths" if wrong[0] in (list, tuple) else ""
        raise InputError(
            f"`{name}` must hold numbers; got {wrong[0].__name__}"
            + (f" ({hint}). Pad the rows and pass a mask." if hint else ". Convert it first.")
        )
    bad = [v for v in x.ravel() if not isinstance(v, int | Fraction) and not np.isfinite(v)]
    if bad:
        raise InputError(f"`{name}` must be finite; got {bad[0]}. Remove or replace it.")
    if not kinds & {Fraction, int}:
        return x.astype(np.float64)
    _check_range(x, name)
    return x


def _check_range(x: Array, name: str) -> None:
    """Exact numbers have a double near them: limits and pictures are given in doubles."""
    try:
        for v in x.ravel():
            float(v)
    except OverflowError:
        raise InputError(
            f"`{name}` must lie within the range of doubles, about 1.8e308. Divide all of it "
            "by one number: choices do not change."
        ) from None


@dataclass(frozen=True)
class Batch:
    """Tokens as a torch tensor (b, n, d), their mask, and how to give results back."""

    z: torch.Tensor
    mask: Bools
    batched: bool
    kind: str

    def back(self, x: torch.Tensor) -> Any:
        """A result whose shape ends in (b, n, d), in the user's array library and shape."""
        x = x if self.batched else x.squeeze(-3)
        return x if self.kind == "torch" else x.detach().cpu().numpy()


def as_batch(z: Any, mask: Any = None) -> Batch:
    """Tokens (n, d) or (b, n, d) with an optional boolean mask, checked."""
    import torch

    if is_torch(z):
        tensor, kind = _as_tensor(z), "torch"
    else:
        array = as_array(z, "z")
        array = array.astype(np.float64) if array.dtype == object else array
        tensor, kind = torch.from_numpy(np.array(array, order="C")), "numpy"
    check_token_shape(tuple(tensor.shape))
    batched = tensor.ndim == 3
    tensor = tensor if batched else tensor.unsqueeze(0)
    flags = _check_mask(mask, (tensor.shape[0], tensor.shape[1]), batched)
    check_finite(tensor.detach().cpu().numpy(), "z", flags, batched)
    return Batch(tensor, flags, batched, kind)


def _as_tensor(z: torch.Tensor) -> torch.Tensor:
    """The tensor, integers as float64."""
    import torch

    if z.layout != torch.strided:
        raise InputError("`z` must be a dense tensor; got a sparse one. Use z.to_dense().")
    if not z.is_floating_point() and not z.is_complex():
        return z.double()
    if z.dtype not in (torch.float32, torch.float64):
        raise InputError(
            f"`z` must be float32 or float64; got {z.dtype}. Convert it with z.double()."
        )
    return z


def check_token_shape(shape: tuple[int, ...]) -> None:
    """Tokens are (n, d) or (b, n, d) with every extent at least one."""
    if 0 in shape:
        raise ShapeError(
            f"`z` must hold at least one token with one coordinate; got shape {shape}."
        )
    if len(shape) not in (2, 3):
        raise ShapeError(
            f"`z` must be (n, d) or (b, n, d); got shape {shape}. "
            "A list of numbers is n tokens only as (n, 1)."
        )


def _check_mask(mask: Any, shape: tuple[int, int], batched: bool) -> Bools:
    if mask is None:
        return np.ones(shape, dtype=bool)
    wanted = shape if batched else shape[1:]
    try:
        flags = mask.detach().cpu().numpy() if is_torch(mask) else np.asarray(mask)
    except ValueError:
        raise ShapeError(
            f"`mask` must have the shape {wanted} of the tokens; its rows have different lengths. "
            "Pass one flag per token."
        ) from None
    if flags.shape != wanted:
        letters = "(b, n)" if batched else "(n,)"
        raise ShapeError(
            f"`mask` must be {letters} = {wanted} to match `z`; got {flags.shape}. "
            "Pass the mask of the same tokens."
        )
    if flags.dtype != bool:
        raise InputError(
            f"`mask` must be boolean, True for a real token; got {flags.dtype}. "
            "Convert it with mask.astype(bool)."
        )
    flags = flags.reshape(shape)
    empty = np.flatnonzero(~flags.any(axis=1))
    if len(empty):
        where = f"sequence {empty[0]}" if batched else "the sequence"
        raise InputError(f"`mask` must keep at least one real token; {where} has none.")
    return np.asarray(flags)


def check_finite(x: Array, name: str, mask: Bools | None = None, batched: bool = True) -> None:
    """Every entry (of a real token) is finite; the message names the first that is not."""
    bad = ~np.isfinite(x) if x.dtype != object else np.zeros(x.shape, dtype=bool)
    if mask is not None:
        bad &= mask[..., None]
    if bad.any():
        at = tuple(int(v) for v in np.argwhere(bad)[0])
        shown = at if batched else at[1:]
        place = ", ".join(map(str, shown))
        raise InputError(f"`{name}` must be finite; {name}[{place}] is {x[at]}.")


def check_choice(value: str, name: str, choices: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in choices:
        raise InputError(f"`{name}` must be one of {', '.join(choices)}; got {value!r}.")
    return value


def check_flag(value: Any, name: str) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"`{name}` must be True or False; got {str(value)[:40]!r}.")
    return bool(value)


def check_tolerance(value: float | None, name: str, default: float) -> float:
    """A number >= 0, or None for the default."""
    if value is None:
        return default
    if not _is_number(value) or not 0 <= value <= np.finfo(np.float64).max:
        raise InputError(f"`{name}` must be a finite number >= 0; got {str(value)[:40]}.")
    return float(value)


def check_depth(depth: Any, name: str = "depth") -> int:
    """A number of layers: an integer >= 0."""
    if isinstance(depth, bool) or not isinstance(depth, int | np.integer) or depth < 0:
        raise InputError(f"`{name}` must be an integer >= 0; got {depth!r}.")
    return int(depth)


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float | Fraction | np.integer | np.floating) and not isinstance(
        x, bool
    )


def check_gamma(
    alpha: Any, gamma: Any, depth: int | None, d: int
) -> tuple[Fraction, ...] | Fraction | Array:
    """The step: a Fraction, a tuple of one per layer, or a (d, d) matrix.

    gamma = alpha / (1 + alpha); only one of the two may be given (alpha = 1 counts as not given).
    """
    if gamma is None:
        return _steps(alpha, "alpha", depth)
    if alpha is not None and (np.ndim(_plain(alpha)) or alpha != 1):
        raise InputError("`alpha` and `gamma` were both given. Give one; gamma = alpha/(1+alpha).")
    if is_torch(gamma) or isinstance(gamma, np.ndarray | list | tuple):
        matrix = as_array(gamma, "gamma")
        if matrix.ndim == 2:
            if matrix.shape != (d, d):
                raise ShapeError(f"`gamma` as a matrix must be ({d}, {d}); got {matrix.shape}.")
            check_finite(matrix, "gamma")
            return matrix.astype(np.float64)
    return _steps(gamma, "gamma", depth)


def _steps(value: Any, name: str, depth: int | None) -> tuple[Fraction, ...] | Fraction:
    if is_torch(value):
        value = value.detach().cpu().numpy()
    if np.ndim(value) == 0:
        return _step(value.item() if isinstance(value, np.ndarray) else value, name)
    if np.ndim(value) != 1:
        raise ShapeError(f"`{name}` must be one number or one per layer; got {np.shape(value)}.")
    if depth is None:
        raise InputError(f"`{name}` must be one number here; got {len(value)} of them.")
    if len(value) != depth:
        raise ShapeError(
            f"`{name}` must be one number or one per layer (depth = {depth}); got {len(value)}."
        )
    return tuple(_step(v, name) for v in value)


def _step(value: Any, name: str) -> Fraction:
    wanted = "a finite number > 0" if name == "alpha" else "a number in (0, 1]"
    exact_kind = isinstance(value, int | Fraction)
    if not _is_number(value) or (not exact_kind and not np.isfinite(value)):
        raise InputError(f"`{name}` must be {wanted}; got {value!r}.")
    exact = value if isinstance(value, int | Fraction) else Fraction(float(value))
    exact = Fraction(exact)
    if exact <= 0 or (name == "gamma" and exact > 1):
        raise InputError(f"`{name}` must be {wanted}; got {value}.")
    return exact / (1 + exact) if name == "alpha" else exact


def check_matrix(A: Any, d: int, heads: int = 1, *, exact: bool = False) -> list[Any]:
    """The score matrices, one per head: None, a square array, or a pair (U, V).

    A pair means UᵀV.  With several heads, A is one matrix per head, or one that
    all heads share.  Fractions become floats unless `exact`.
    """
    found = _check_matrices(A, d, heads)
    return found if exact else [_in_floats(a) for a in found]


def _in_floats(a: Any) -> Any:
    if isinstance(a, tuple):
        return tuple(_in_floats(x) for x in a)
    return a.astype(np.float64) if isinstance(a, np.ndarray) and a.dtype == object else a


def _check_matrices(A: Any, d: int, heads: int) -> list[Any]:
    if isinstance(heads, bool) or not isinstance(heads, int | np.integer) or heads < 1:
        raise InputError(f"`heads` must be an integer >= 1; got {heads!r}.")
    if d % heads:
        raise ShapeError(f"`heads` must divide the number of coordinates d = {d}; got {heads}.")
    size = d // heads
    if A is None:
        return [None] * heads
    if heads == 1:
        return [_one_matrix(A, size, "A")]
    many = isinstance(A, list | tuple) or _axes(A) == 3
    if many and len(A) == heads and all(a is None or _axes(a) == 2 for a in A):
        return [a if a is None else _one_matrix(a, size, f"A[{h}]") for h, a in enumerate(A)]
    if _axes(A) == 2:
        return [_one_matrix(A, size, "A")] * heads
    raise ShapeError(
        f"`A` with heads = {heads} must be one ({size}, {size}) matrix or {heads} of them."
    )


def _axes(A: Any) -> int:
    """How many axes one matrix has; a pair (U, V) stands for a matrix, -1 for neither."""
    if isinstance(A, tuple) and len(A) == 2 and all(_axes(x) == 2 for x in A):
        return 2
    try:
        return int(np.ndim(_plain(A)))
    except ValueError:
        return -1


def _plain(x: Any) -> Any:
    return x.detach().cpu().numpy() if is_torch(x) else x


def _one_matrix(A: Any, d: int, name: str) -> Any:
    """A checked; a torch tensor is given on as it came, so that gradients reach it."""
    pair = isinstance(A, tuple | list) and len(A) == 2 and np.ndim(_plain(A[0])) == 2
    if pair:
        u, v = as_array(A[0], name), as_array(A[1], name)
        if u.shape != v.shape or u.shape[1] != d:
            raise ShapeError(
                f"`{name}` = (U, V) must be two (r, {d}) factors of UᵀV; got {u.shape}, {v.shape}."
            )
        check_finite(u, name)
        check_finite(v, name)
        return (A[0], A[1]) if is_torch(A[0]) and is_torch(A[1]) else (u, v)
    matrix = as_array(A, name)
    if matrix.shape != (d, d):
        raise ShapeError(
            f"`{name}` must be ({d}, {d}) to score tokens in R^{d}; got {matrix.shape}."
        )
    check_finite(matrix, name)
    return A if is_torch(A) else matrix
