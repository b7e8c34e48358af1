"""One large cloud through the kernels of `_triton_cloud`: which arrays, in which order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from hardmax.select import _triton_cloud as kernels

__all__ = ["Plan", "Spoken", "search"]

_KEEP = 8  # candidate tiles of a row that are kept by name
_BYTES = 1 << 30  # of tile maxima at a time


@dataclass(frozen=True)
class Plan:
    """How the kernels are cut: rows and keys of a tile, warps, stages, tiles between stops."""

    rows: int = 128
    keys: int = 128
    warps: int = 4
    stages: int = 3
    step: int = 8
    unroll: int = 8
    prune: bool = True


@dataclass
class Spoken:
    """The choices of a cloud, on its device.

    Attributes
    ----------
    indptr, indices : int64 tensors
        Row i chose indices[indptr[i]:indptr[i + 1]], ascending.
    score, second : float64 tensors
        The best score, and the best one outside the set (only with margins).
    scale : float64 tensor
        The unit of margins, |A z_i| max_j |z_j|, or 1 where that is 0.
    shares : dict of 0-dimensional tensors
        What the work was: the share of the score tiles looked at, of rows with
        several candidate tiles, and of rows with several chosen keys.
    """

    indptr: torch.Tensor
    indices: torch.Tensor
    score: torch.Tensor
    second: torch.Tensor
    scale: torch.Tensor
    shares: dict[str, torch.Tensor]


@dataclass
class _Keys:
    half: torch.Tensor
    turned: torch.Tensor
    long: torch.Tensor
    rest: torch.Tensor
    order: torch.Tensor
    shift: torch.Tensor
    tiles: int


@dataclass
class _Rows:
    half: torch.Tensor
    order: torch.Tensor
    tol: torch.Tensor
    scale: torch.Tensor
    parts: dict[str, torch.Tensor]


def _measure(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Lengths of the rows of x, and their products with the rows of y, in float64."""
    n, d = x.shape
    norm, dot = (torch.empty(n, dtype=torch.float64, device=x.device) for _ in range(2))
    kernels.measure[(-(-n // 128),)](
        x, y, n, d, norm, dot, own=True, B=128, enable_fp_fusion=False
    )  # fmt: skip
    return norm, dot


def _asks(z: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """A z_i as rows, in float64."""
    n, r = len(z), len(a)
    out = torch.empty(n, r, dtype=torch.float64, device=z.device)
    kernels.product[(-(-n // 128), r)](
        z, a.contiguous(), out, n, z.shape[1], r, B=128, enable_fp_fusion=False
    )  # fmt: skip
    return out


def _width(d: int) -> tuple[int, int]:
    """Coordinates after padding, and how many of them a product takes at a time."""
    part = 16
    while part < min(d, 128):
        part *= 2
    return -(-d // part) * part, part


def _pack_keys(z: torch.Tensor, norm: torch.Tensor, plan: Plan) -> _Keys:
    n, d = z.shape
    wide, _ = _width(d)
    wide = 1 << (wide - 1).bit_length()
    size = -(-n // plan.keys) * plan.keys
    dev = z.device
    order = torch.argsort(norm.float(), descending=True).int()
    top = z.abs().amax().double()
    shift = 14 - torch.frexp(top)[1].long()
    half = torch.empty(size, wide, dtype=torch.float16, device=dev)
    turned = torch.empty(d, size, dtype=z.dtype, device=dev)
    length, rest = (torch.empty(size, dtype=torch.float32, device=dev) for _ in range(2))
    block = max(1, min(64, plan.keys, 4096 // wide))
    kernels.pack_keys[(-(-size // block),)](
        z, order, norm, shift, half, turned, length, rest, n, d, size, D=wide, B=block
    )
    tiles = size // plan.keys
    long = length.view(tiles, -1).amax(1).flip(0).cummax(0).values.flip(0).contiguous()
    return _Keys(half, turned, long, rest.view(tiles, -1).amax(1), order, shift, tiles)


def _pack_rows(
    q: torch.Tensor,
    keys: _Keys,
    norms: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    tie_tol: float,
    plan: Plan,
    ordered: bool,
) -> _Rows:
    """Asking rows; in the order of the keys, or of what their own score lets them leave out."""
    n, d = q.shape
    qnorm, own, knorm = norms
    wide = keys.half.shape[1]
    dev = q.device
    size = -(-n // plan.rows) * plan.rows
    order = keys.order
    if not ordered:
        order = torch.argsort((own / qnorm.clamp_min(1e-300)).float(), descending=True).int()
    scale = qnorm * knorm.amax()
    tol = tie_tol * scale
    half = torch.empty(size, wide, dtype=torch.float16, device=dev)
    names = ("ca", "cb", "cc", "cr", "low", "room")
    parts = {x: torch.empty(size, dtype=torch.float32, device=dev) for x in names}
    parts["unit"] = torch.empty(size, dtype=torch.float64, device=dev)
    block = max(1, min(64, plan.rows, 4096 // wide))
    kernels.pack_rows[(-(-size // block),)](
        q, order, qnorm, own, tol, knorm, keys.shift, half, *parts.values(), n, d,
        (wide + 16) * 2.0**-22, D=wide, B=block,
    )  # fmt: skip
    return _Rows(half, order, tol, torch.where(scale > 0, scale, 1.0), parts)


def search(
    z: torch.Tensor,
    mats: list[torch.Tensor],
    tie_tol: float,
    *,
    margins: bool = False,
    plan: Plan | None = None,
    patch: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> Spoken:
    """Argmax sets of <A z_i, z_j> as float64 decides them; A is the product of `mats`.

    z is (n, d), float32 (taken as exact) or float64 with entries near 1.  `patch` holds
    rows and what they ask in place of A z_i.
    """
    plan = plan or Plan()
    z = z.contiguous()
    q = z
    for a in mats:
        q = _asks(q, a)
    if patch is not None:
        q = q.double().index_put((patch[0],), patch[1])
    knorm, own = _measure(z, z)
    qnorm, same = knorm, q is z
    if not same:
        qnorm, own = _measure(q, z)
    keys = _pack_keys(z, knorm, plan)
    rows = _pack_rows(q, keys, (qnorm, own, knorm), tie_tol, plan, same)
    lot = max(1, _BYTES // (4 * keys.tiles) // plan.rows) * plan.rows
    state = _State(z, q, keys, rows, margins, plan)
    for row0 in range(0, len(rows.half), lot):
        state.chunk(row0, min(lot, len(rows.half) - row0))
    return state.result()


class _State:
    """The arrays that all lots of rows write to."""

    def __init__(
        self,
        z: torch.Tensor,
        q: torch.Tensor,
        keys: _Keys,
        rows: _Rows,
        margins: bool,
        plan: Plan,
    ) -> None:
        self.n, self.d = z.shape
        self.q, self.keys, self.rows, self.margins, self.plan = q, keys, rows, margins, plan
        self.device = z.device
        self.at = torch.empty(self.n, dtype=torch.int32, device=z.device)
        self.score, self.second = (
            torch.empty(self.n, dtype=torch.float64, device=z.device) for _ in range(2)
        )
        self.tied: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.looked: list[torch.Tensor] = []
        self.several: list[torch.Tensor] = []

    def chunk(self, row0: int, size: int) -> None:
        """All steps for `size` rows from `row0` on."""
        best, done, tops = self.candidates(row0, size)
        count, slots = self._pick(row0, size, best, done, tops)
        real = min(size, self.n - row0)
        ties = torch.empty(size, dtype=torch.int32, device=self.device)
        kernels.decide[(real,)](
            self.q, self.keys.turned, self.rows.order, self.keys.order, self.rows.tol, tops,
            *self._parts("ca", "cb", "cr"), best, self.rows.parts["room"], self.keys.long,
            self.keys.rest, done, count, slots, self.at, self.score, self.second, ties,
            row0, size, self.n, self.d, self.keys.turned.shape[1],
            BM=self.plan.rows, BN=self.plan.keys, K=_KEEP, TB=16, UNROLL=self.plan.unroll,
            num_warps=1, enable_fp_fusion=False,
        )  # fmt: skip
        self.looked.append(done)
        self.several.append((count[:real] > 1).sum())
        which = ties[:real].nonzero()[:, 0].int()
        if len(which):
            self._ties(row0, size, which, done, tops)

    def _parts(self, *names: str) -> list[torch.Tensor]:
        return [self.rows.parts[x] for x in names]

    def candidates(self, row0: int, size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The pass in half precision: lower bounds, tiles looked at, tile maxima."""
        keys, plan = self.keys, self.plan
        wide = keys.half.shape[1]
        part = min(wide, 128)
        tops = torch.empty(keys.tiles, size, dtype=torch.float32, device=self.device)
        best = torch.empty(size, dtype=torch.float32, device=self.device)
        blocks = size // plan.rows
        done = torch.empty(blocks, dtype=torch.int32, device=self.device)
        kernels.candidates[(blocks,)](
            self.rows.half, keys.half, *self._parts("ca", "cb", "cc", "cr", "low", "room"),
            keys.long, keys.rest, tops, best, done, row0, size, keys.tiles, wide // part,
            BM=plan.rows, BN=plan.keys, D=wide, DC=part, STEP=plan.step,
            TWO=self.margins, PRUNE=plan.prune, num_warps=plan.warps, num_stages=plan.stages,
        )  # fmt: skip
        return best, done, tops

    def _pick(
        self, row0: int, size: int, best: torch.Tensor, done: torch.Tensor, tops: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        count = torch.empty(size, dtype=torch.int32, device=self.device)
        slots = torch.empty(_KEEP, size, dtype=torch.int32, device=self.device)
        kernels.pick[(size // 64,)](
            tops, *self._parts("ca", "cb", "cr"), best, self.rows.parts["room"], self.keys.long,
            self.keys.rest, done, count, slots, row0, size,
            BM=self.plan.rows, R=64, TB=32, K=_KEEP,
        )  # fmt: skip
        return count, slots

    def _ties(
        self, row0: int, size: int, which: torch.Tensor, done: torch.Tensor, tops: torch.Tensor
    ) -> None:
        """Rows whose runner-up lies within the tolerance: their whole sets."""
        counts = torch.empty(len(which), dtype=torch.int32, device=self.device)
        nothing = torch.zeros(1, dtype=torch.int64, device=self.device)
        begin = nothing
        indices = nothing
        for fill in (False, True):
            kernels.tied[(len(which),)](
                self.q, self.keys.turned, self.rows.order, self.keys.order, self.rows.tol, tops,
                *self._parts("ca", "cb", "cc", "cr"), self.keys.long, self.keys.rest, done,
                self.score, self.second, which, counts, begin, indices, self.rows.parts["unit"],
                row0, size, self.n, self.d, self.keys.turned.shape[1], self.keys.tiles,
                ALL=self.margins and not fill, FILL=fill, BM=self.plan.rows, BN=self.plan.keys,
                TB=64, UNROLL=self.plan.unroll, num_warps=1, enable_fp_fusion=False,
            )  # fmt: skip
            if not fill:
                ends = counts.long().cumsum(0)
                begin = ends - counts
                indices = torch.empty(int(ends[-1]), dtype=torch.int64, device=self.device)
        tokens = self.rows.order[row0 + which.long()].long()
        self.tied.append((torch.stack([tokens, counts.long()]), indices))

    def result(self) -> Spoken:
        """Rows put together; the lists of tied rows ascending."""
        n = self.n
        looked = torch.cat(self.looked).double().mean() / self.keys.tiles
        several = torch.stack(self.several).sum().double() / n
        indptr = torch.arange(n + 1, device=self.device)
        indices = self.at.long()
        tied = 0
        if self.tied:
            rows = torch.cat([r for r, _ in self.tied], dim=1)
            tied = rows.shape[1]
            counts = torch.ones(n, dtype=torch.int64, device=self.device)
            counts[rows[0]] = rows[1]
            indptr[1:] = counts.cumsum(0)
            alone = torch.ones(n, dtype=torch.bool, device=self.device)
            alone[rows[0]] = False
            pairs = alone.nonzero()[:, 0] * n + indices[alone]
            indices = torch.cat([pairs, *(x for _, x in self.tied)]).sort().values % n
        shares = {"looked": looked, "several": several, "tied": looked.new_tensor(tied / n)}
        return Spoken(indptr, indices, self.score, self.second, self.rows.scale, shares)


def without_pruning(plan: Plan) -> Plan:
    """The same plan, looking at every tile of scores."""
    return replace(plan, prune=False)
