"""Texts as tensors on a device: drawn by the same coins as in the compiled path, then padded.

Padding has weight 0, is seen by nobody and enters no mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from hardmax._types import Ints
from hardmax.tokens.batch import Tokens, ranges

__all__ = ["DeviceTexts", "Flat", "Lot", "coins", "lots"]

_DROP, _HIDE = 1, 2
_RATIO, _FEWEST = 0.6, 8


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


_C1, _C2, _C3 = (_signed(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def coins(seed: int, text: torch.Tensor, place: torch.Tensor, salt: int) -> torch.Tensor:
    """Numbers in [0, 1), those of the compiled path: bit for bit the same hash."""

    def stir(h: torch.Tensor, bits: int) -> torch.Tensor:
        return h ^ ((h >> bits) & ((1 << (64 - bits)) - 1))

    h = text + _signed(seed * 0x9E3779B97F4A7C15 % (1 << 64))
    h = stir(h, 30) * _C2 + (4 * place + salt)
    h = stir(stir(h, 27) * _C3, 31) * _C2
    return ((h >> 11) & ((1 << 53) - 1)).double() / 9007199254740992.0


@dataclass(frozen=True)
class Flat:
    """The kept tokens of some texts, one after the other.

    Attributes
    ----------
    ids, counts : (m,) tensors
    seq : (m,) tensor
        The number of the sequence, within these texts.
    hidden : (m,) bool tensor
        Tokens that nobody may choose.
    kept : (b,) array
        Tokens of each text.
    split : bool
        Whether a text may hold several sequences.
    """

    ids: torch.Tensor
    counts: torch.Tensor
    seq: torch.Tensor
    hidden: torch.Tensor
    kept: Ints
    split: bool


class DeviceTexts:
    """`Tokens` on a device."""

    def __init__(self, tokens: Tokens, device: torch.device) -> None:
        self.tokens, self.device = tokens, device
        self.ids = torch.from_numpy(np.asarray(tokens.ids)).to(device)
        self.counts = torch.from_numpy(np.asarray(tokens.counts)).to(device)
        self.split = bool(np.any(np.diff(tokens.texts) > 1))

    def draw(self, rows: Ints, *, drop: float = 0.0, hide: float = 0.0, seed: int = 0) -> Flat:
        """The tokens of some texts, without those dropped, and which keys are hidden."""
        t = self.tokens
        seqs, texts = ranges(t.texts, np.asarray(rows, dtype=np.int64))
        sizes = t.offsets[seqs + 1] - t.offsets[seqs]
        first = self._spread(t.offsets[seqs], sizes)
        seq = self._spread(np.arange(len(seqs)), sizes)
        text = self._spread(np.repeat(np.arange(len(rows)), np.diff(texts)), sizes)
        begin = self._spread(np.cumsum(sizes) - sizes, sizes)
        place = torch.arange(len(seq), device=self.device) - begin
        at, b = first + place, len(rows)
        if drop > 0:
            keep = coins(seed, first, place, _DROP) >= drop
            some = torch.zeros(b, dtype=torch.int64, device=self.device)
            keep |= some.index_add_(0, text, keep.long())[text] == 0
            at, seq, text, first = at[keep], seq[keep], text[keep], first[keep]
        kept = torch.bincount(text, minlength=b).cpu().numpy()
        hidden = torch.zeros(len(at), dtype=torch.bool, device=self.device)
        if hide > 0:
            hidden = self._hidden(first, seq, len(seqs), hide, seed)
        return Flat(self.ids[at].long(), self.counts[at], seq, hidden, kept, self.split)

    def _spread(self, values: Ints, sizes: Ints) -> torch.Tensor:
        one = torch.from_numpy(np.asarray(values, dtype=np.int64)).to(self.device)
        many = torch.from_numpy(np.asarray(sizes, dtype=np.int64)).to(self.device)
        return torch.repeat_interleave(one, many, output_size=int(sizes.sum()))

    def _hidden(
        self, first: torch.Tensor, seq: torch.Tensor, count: int, hide: float, seed: int
    ) -> torch.Tensor:
        """Keys hidden at random, never all of a sequence."""
        sizes = torch.bincount(seq, minlength=count)
        place = torch.arange(len(seq), device=self.device) - (sizes.cumsum(0) - sizes)[seq]
        hidden = coins(seed, first, place, _HIDE) < hide
        seen = torch.zeros(count, dtype=torch.int64, device=self.device)
        return hidden & (seen.index_add_(0, seq, (~hidden).long())[seq] > 0)


@dataclass(frozen=True)
class Lot:
    """Some texts of a `Flat`, padded to the longest of them.

    Attributes
    ----------
    rows : (b,) tensor
        Their numbers in the `Flat`.
    at : (b, n) tensor
        Where each token stands there; 0 for padding.
    weights : (b, n) tensor
        Multiplicities; 0 for padding.
    seen : (b, n) bool tensor
        Which tokens may be chosen.
    same : (b, n, n) bool tensor or None
        Which tokens are of one sequence; None where a text is one.
    """

    rows: torch.Tensor
    at: torch.Tensor
    weights: torch.Tensor
    seen: torch.Tensor
    same: torch.Tensor | None


def lots(flat: Flat, dtype: torch.dtype, area: int | None = None) -> Iterator[Lot]:
    """Lots of texts of similar length, the longest first; texts without tokens are left out.

    `area` bounds the texts of a lot times the square of its longest text.
    """
    device = flat.ids.device
    order = np.argsort(-flat.kept, kind="stable")
    order = order[flat.kept[order] > 0]
    starts = torch.from_numpy(np.cumsum(flat.kept) - flat.kept).to(device)
    low = 0
    while low < len(order):
        longest = int(flat.kept[order[low]])
        stop = int(np.searchsorted(-flat.kept[order], -_RATIO * longest, side="right"))
        most = len(order) if area is None else max(1, area // longest**2)
        stop = min(max(stop, low + _FEWEST), len(order), low + most)
        yield _lot(flat, order[low:stop], starts, longest, dtype)
        low = stop


def _lot(flat: Flat, texts: Ints, starts: torch.Tensor, longest: int, dtype: torch.dtype) -> Lot:
    """Some texts, padded to the longest."""
    device = flat.ids.device
    rows = torch.from_numpy(texts).to(device)
    sizes = torch.from_numpy(flat.kept[texts]).to(device)[:, None]
    span = torch.arange(longest, device=device)
    real = span < sizes
    at = torch.where(real, starts[rows][:, None] + span, 0)
    weights, same = flat.counts[at].to(dtype) * real, None
    if flat.split:
        seq = torch.where(real, flat.seq[at], -1)
        same = seq[:, :, None] == seq[:, None, :]
    return Lot(rows, at, weights, real & ~flat.hidden[at], same)
