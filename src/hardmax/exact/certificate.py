"""Why a network is right on its data: recomputed from weights and data alone."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from hardmax._types import Array
from hardmax.exact.data import Corpus, Labels
from hardmax.exact.forward import outputs
from hardmax.exact.layers import Attention, Layer, digest_layers
from hardmax.exact.radius import error_radius
from hardmax.exact.verify import no_rounding

__all__ = ["PROOFS", "Certificate", "certify"]

PROOFS = {"mean": "radius", "bumps": "grid", "tree": "exact", "chain": "exact"}
"""The kind of proof of every method."""


@dataclass(frozen=True)
class Certificate:
    """What was proved about a network on its sequences.

    `kind` is "exact" (no operation rounds after the projection is stored, so
    every evaluation gives the same labels), "radius" (every evaluation stays
    within `radius` of the label), or "grid" (exact up to the first attention,
    a radius from there on).  `sha256` is the digest of all other entries.
    """

    kind: str
    proved: bool
    reason: str
    arithmetic: str
    sequences: int
    bits_used: float | None
    bits_available: int
    radius: float
    margin: float | None
    deviation: float
    data_sha256: str
    labels_sha256: str
    weights_sha256: str
    sha256: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def digest(self) -> str:
        """SHA-256 of every entry but `sha256` itself, to the last digit."""
        entries = {name: value for name, value in self.to_dict().items() if name != "sha256"}
        return hashlib.sha256(repr(entries).encode()).hexdigest()

    def sealed(self, **changes: Any) -> Certificate:
        """The same with `changes`, and the digest that belongs to it."""
        new = replace(self, **changes)
        return replace(new, sha256=new.digest())

    def agrees(self, other: Certificate) -> bool:
        """Whether both state the same; bounds may differ in their last digits."""
        a, b = self.to_dict(), other.to_dict()
        rounded = ("radius", "bits_used", "margin")
        loose = (*rounded, "sha256")
        for name in rounded:
            if (a[name] is None) != (b[name] is None):
                return False
            if a[name] is not None and not math.isclose(a[name], b[name], rel_tol=1e-9):
                return False
        return all(a[name] == b[name] for name in a if name not in loose)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Certificate:
        """The certificate that `to_dict` wrote; `ValueError` where a type is wrong."""
        said = cls(**{f.name: data[f.name] for f in fields(cls)})
        if len(data) != len(fields(cls)):
            raise ValueError("a certificate with other entries")
        numbers = (said.radius, said.deviation, said.bits_available, said.sequences)
        optional = [x for x in (said.bits_used, said.margin) if x is not None]
        good = all(isinstance(x, int | float) for x in (*numbers, *optional))
        words = (said.kind, said.reason, said.arithmetic, said.sha256)
        if not good or not isinstance(said.proved, bool) or not all(map(_is_text, words)):
            raise ValueError("a certificate with entries of another type")
        return said

    def __str__(self) -> str:
        """One line that states the claim."""
        if not self.proved:
            return f"not proved: {self.reason}"
        how = (
            f"no rounding, {self.bits_used:.1f} of {self.bits_available} bits"
            if self.kind == "exact" and self.bits_used is not None
            else f"error radius {self.radius:.2g} below 1/2"
        )
        return (
            f"proved for all {self.sequences} sequences in {self.arithmetic}: {how}; "
            f"deviation {self.deviation:.2g}"
        )


def _is_text(x: Any) -> bool:
    return isinstance(x, str)


@np.errstate(over="ignore", invalid="ignore")
def certify(
    layers: Sequence[Layer],
    column: int,
    entry: int,
    kind: str,
    corpus: Corpus,
    labels: Labels,
    *,
    margin: float | None = None,
    extra: str = "",
) -> Certificate:
    """One independent pass over the data, and the proof of kind `kind`."""
    low, high = outputs(layers, corpus, column)
    codes = labels.codes
    deviation = float(max(np.abs(low - codes).max(), np.abs(high - codes).max()))
    bits: float | None = None
    available = int(np.finfo(corpus.table.dtype).nmant) + 1
    if kind == "exact":
        result = no_rounding(layers, entry, corpus, column)
        bits = result.used if math.isfinite(result.used) else None
        proved, reason, radius = result.proved and deviation == 0, result.reason, deviation
        if not proved and not reason:
            reason = f"{result.used:.1f} bits needed" if not result.proved else "a label is not met"
    else:
        until, reason = 0, ""
        if kind == "grid":
            at = [i for i, x in enumerate(layers) if isinstance(x, Attention) and not x.idle]
            until = at[0] if at else len(layers)
            result = no_rounding(layers[:until], entry, corpus, min(1, corpus.dim - 1))
            bits = result.used if math.isfinite(result.used) else None
            reason = "" if result.proved else result.reason or f"{result.used:.1f} bits needed"
        radius = _farthest(layers, column, corpus, codes, until)
        if not reason and not radius < 0.5:
            reason = f"error radius {radius:.2g} is not below 1/2"
        proved = not reason
    return Certificate(
        kind=kind,
        proved=bool(proved),
        reason=reason,
        arithmetic=str(corpus.table.dtype),
        sequences=corpus.size,
        bits_used=bits,
        bits_available=available,
        radius=float(radius) if math.isfinite(radius) else 1e308,
        margin=margin,
        deviation=deviation,
        data_sha256=corpus.digest(),
        labels_sha256=labels.digest(),
        weights_sha256=digest_layers(layers, extra),
    ).sealed()


def _farthest(
    layers: Sequence[Layer], column: int, corpus: Corpus, codes: Array, until: int
) -> float:
    """Largest distance from the label that any evaluation can reach."""
    value, radius = error_radius(layers, corpus, column, until)
    per = np.diff(corpus.starts)
    if len(value) != len(corpus.rows):  # no attention: one row per distinct token
        value, radius = value[corpus.rows], radius[corpus.rows]
    wanted = np.repeat(codes, per)
    return float((np.abs(value.astype(np.float64) - wanted) + 2 * radius).max())
