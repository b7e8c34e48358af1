"""Drawn systems through their layers, side by side, each until it rests."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from hardmax._types import Array, Bools, Floats, Ints
from hardmax.dynamics.attend import mean_of, soft_mean
from hardmax.dynamics.layer import step
from hardmax.lab.variants import Systems
from hardmax.select.chosen import Chosen
from hardmax.select.rows import select_rows

__all__ = ["Walk", "walk"]

TIE_TOL = 1e-12
_STILL = 1e-12
_PATIENCE = 3
_HUGE = 1e150
_LOG_HUGE = 700.0
_MERGED = 1e-6


@dataclass
class Walk:
    """What b systems did.

    Attributes
    ----------
    end : (b, n, d) array
        Where the tokens end: their limit when the status is "settled", else where they
        were at the last layer.
    status : list of str
        "settled": every token chooses one leader, which is proved to last; "still": no
        token moved by more than 1e-12 of the size in three layers; "moving" at the last
        layer; "grew" beyond 1e150.
    layers : (b,) int array
        How many layers were run.
    leaders : (b,) int array
        Tokens that were alone in their own chosen set at some layer, in some head.
    places : list of (active systems, their tokens; float32 where they cannot grow)
        Before each layer, and after the last one.
    chosen : list of (active systems, lowest and highest token chosen)
        In each layer, of shape (systems, heads, n).
    """

    systems: Systems
    end: Floats
    status: list[str]
    layers: Ints
    leaders: Ints
    places: list[tuple[Ints, Array]] = field(default_factory=list)
    chosen: list[tuple[Ints, Array, Array]] = field(default_factory=list)

    def scale(self, k: int) -> float:
        """What positions before layer k are divided by: without rescaling tokens grow."""
        v = self.systems.variant
        power = min(k * float(np.log1p(v.alpha)), _LOG_HUGE)
        return float(np.exp(power)) if v.normalization == "none" else 1.0


class _State:
    """The systems that are still running."""

    def __init__(self, systems: Systems) -> None:
        v, b = systems.variant, len(systems.z)
        self.systems = systems
        self.active = np.arange(b)
        self.z = torch.from_numpy(systems.z.copy())
        self.A, self.V = systems.A, torch.from_numpy(systems.V)
        self.between = [torch.from_numpy(x) for x in (systems.first, systems.bias, systems.last)]
        self.led = np.zeros((b, v.n), dtype=bool)
        self.quiet = np.zeros(b, dtype=np.int64)
        self.extent = np.ptp(systems.z, axis=1).max(axis=1)

    def keep(self, rows: Bools) -> None:
        """Leave out the systems that have come to an end."""
        pick = torch.from_numpy(np.flatnonzero(rows))
        self.active, self.quiet, self.A = self.active[rows], self.quiet[rows], self.A[rows]
        self.z, self.V = self.z[pick], self.V[pick]
        self.between = [x[pick] for x in self.between]

    def choices(self) -> list[Chosen]:
        """The chosen sets of each head, over all tokens of the active systems in a row."""
        v, b = self.systems.variant, len(self.active)
        flat = self.z.reshape(-1, v.d).numpy()
        offsets = np.arange(b + 1) * v.n
        return [
            select_rows(flat, self.A[:, h], offsets, causal=v.causal, tie_tol=TIE_TOL)
            for h in range(v.heads)
        ]

    def means(self, found: list[Chosen]) -> torch.Tensor:
        """sum_h V_h m_h for every token."""
        v = self.systems.variant
        total = torch.zeros_like(self.z)
        for h, chosen in enumerate(found):
            if v.temperature > 0:
                mean = self._soft(h)
            else:
                mean = mean_of(self.z.reshape(-1, v.d), chosen).reshape(self.z.shape)
            total += _mapped(mean, self.V[:, h].mT) if v.values != "identity" else mean / v.heads
        return total

    def _soft(self, h: int) -> torch.Tensor:
        """Softmax means, system by system: in one product rounding would depend on the batch."""
        v, mask = self.systems.variant, np.ones((1, self.systems.variant.n), dtype=bool)
        A = torch.from_numpy(self.A[:, h])
        each = [
            soft_mean(z, mask, a, v.temperature, causal=v.causal)
            for z, a in zip(self.z.split(1), A, strict=True)
        ]
        return torch.cat(each)

    def advance(self, mean: torch.Tensor) -> torch.Tensor:
        """The tokens after the layer."""
        v = self.systems.variant
        rescaled = v.normalization == "rescale"
        size = torch.tensor(v.alpha / (1 + v.alpha) if rescaled else v.alpha, dtype=torch.float64)
        new = step(self.z, mean, size, v.normalization)
        if v.feed_forward == 0:
            return new
        first, bias, last = self.between
        hidden = torch.relu(_mapped(new, first) + bias[:, None])
        after = "none" if rescaled else v.normalization
        strength = torch.tensor(v.feed_forward, dtype=torch.float64)
        return step(new, _mapped(hidden, last), strength, after)


def _mapped(x: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """x (b, n, p) times (b, p, q), each entry by one chain whatever else is in the batch."""
    out = x[..., :1] * matrix[:, None, 0]
    for c in range(1, x.shape[-1]):
        out = out + x[..., c : c + 1] * matrix[:, None, c]
    return out


def walk(systems: Systems, *, record: bool = True) -> Walk:
    """Run systems until they rest, at most `depth` layers.

    A token that is followed is never merged with its followers here; a plain system is
    stopped at the settled layer, where its limit is known.
    """
    v, b = systems.variant, len(systems.z)
    out = Walk(
        systems, systems.z.copy(), ["moving"] * b, np.zeros(b, dtype=np.int64),
        np.zeros(b, dtype=np.int64),
    )  # fmt: skip
    state = _State(systems)
    for k in range(v.depth):
        found = state.choices()
        if record:
            out.places.append((state.active, _kept(state)))
            out.chosen.append((state.active, *_extremes(found, v.n)))
        _log_leaders(state, found)
        if v.plain:
            _stop_settled(state, out, found[0], k)
            if not len(state.active):
                break
            found = state.choices() if len(found[0].counts) != state.z[..., 0].numel() else found
        _take_step(state, out, found, k)
        if not len(state.active):
            break
    if record and len(state.active):
        out.places.append((state.active, _kept(state)))
    out.end[state.active] = state.z.numpy() / out.scale(v.depth)
    out.leaders[:] = state.led.sum(axis=1)
    return out


def _kept(state: _State) -> Array:
    kind = np.float64 if state.systems.variant.grows else np.float32
    return state.z.numpy().astype(kind)


def _extremes(found: list[Chosen], n: int) -> tuple[Array, Array]:
    """(b, h, n): the lowest and the highest token of each chosen set, counted per system."""
    low = [c.indices[c.indptr[:-1]].reshape(-1, n) for c in found]
    high = [c.indices[c.indptr[1:] - 1].reshape(-1, n) for c in found]
    base = np.arange(len(low[0]))[:, None, None] * n
    return (
        (np.stack(low, axis=1) - base).astype(np.int32),
        (np.stack(high, axis=1) - base).astype(np.int32),
    )


def _log_leaders(state: _State, found: list[Chosen]) -> None:
    """Tokens alone in their own set lead, unless all tokens have met in a point."""
    n = state.systems.variant.n
    apart = np.ptp(state.z.numpy(), axis=1).max(axis=1) > _MERGED * state.extent[state.active]
    for chosen in found:
        own = chosen.indices[chosen.indptr[:-1]] == np.arange(len(chosen.counts))
        alone = (own & (chosen.counts == 1)).reshape(-1, n)
        state.led[state.active] |= alone & apart[:, None]


def _stop_settled(state: _State, out: Walk, found: Chosen, k: int) -> None:
    """Systems in which every token chose one leader: theory gives their limit."""
    n = state.systems.variant.n
    goal = found.indices[found.indptr[:-1]]
    single = found.counts == 1
    good = (single & single[goal] & (goal[goal] == goal)).reshape(-1, n).all(axis=1)
    if not good.any():
        return
    flat = state.z.reshape(-1, state.z.shape[-1]).numpy()
    ends = flat[goal].reshape(state.z.shape)
    for row in np.flatnonzero(good).tolist():
        s = int(state.active[row])
        out.end[s], out.status[s], out.layers[s] = ends[row] / out.scale(k), "settled", k
    state.keep(~good)


def _take_step(state: _State, out: Walk, found: list[Chosen], k: int) -> None:
    """One layer; systems that rest or grow without bound end here."""
    old = state.z
    new = state.advance(state.means(found))
    size = new.abs().amax(dim=(1, 2)).numpy()
    state.quiet = np.where(_motion(state, old, new, size) <= _STILL, state.quiet + 1, 0)
    state.z = new
    out.layers[state.active] = k + 1
    still = state.quiet >= _PATIENCE
    grew = ~(size < _HUGE)
    for row in np.flatnonzero(still | grew).tolist():
        s = int(state.active[row])
        good = bool(np.isfinite(size[row]))
        out.end[s] = (new if good else old)[row].numpy() / out.scale(k + good)
        out.status[s] = "still" if still[row] else "grew"
    if np.any(still | grew):
        state.keep(~(still | grew))


def _motion(state: _State, old: torch.Tensor, new: torch.Tensor, size: Floats) -> Floats:
    """How far tokens moved, relative to the largest coordinate; growth alone is no motion."""
    before = old.abs().amax(dim=(1, 2)).numpy()
    if not state.systems.variant.grows:
        way = (new - old).abs().amax(dim=(1, 2)).numpy()
        return np.asarray(way / np.maximum(state.extent[state.active], 1e-300))
    one = new / torch.from_numpy(np.maximum(size, 1e-300))[:, None, None]
    other = old / torch.from_numpy(np.maximum(before, 1e-300))[:, None, None]
    return np.asarray((one - other).abs().amax(dim=(1, 2)).numpy())
