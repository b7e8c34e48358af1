"""The same network in rational arithmetic: what the layers give without rounding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hardmax._errors import InputError
from hardmax._types import Array
from hardmax.exact.forward import Plan, plan
from hardmax.exact.layers import Attention, FeedForward, Layer
from hardmax.exact.piecewise import evaluate_exact
from hardmax.rational import flint

__all__ = ["forward_exact"]

Row = list[Any]


def _number(x: float) -> Any:
    module = flint()
    if module is None:
        return Fraction(float(x))
    return module.fmpq(*float(x).as_integer_ratio())


def _fraction(x: Any) -> Fraction:
    return x if isinstance(x, Fraction) else Fraction(int(x.p), int(x.q))


def forward_exact(
    layers: Sequence[Layer], tokens: Array, counts: Array, *, lookup: bool = True
) -> list[list[Fraction]]:
    """Final coordinates of the tokens of one sequence, as Fractions.

    With `lookup` wide layers are evaluated by their exact kinks, values and
    slopes, else neuron by neuron; both are exact.
    """
    z: list[Row] = [[_number(x) for x in row] for row in tokens]
    for layer in layers:
        if isinstance(layer, FeedForward):
            z = _feed(plan(layer) if lookup else None, layer, z)
        else:
            z = _attend(layer, z, [int(c) for c in counts])
    return [[_fraction(x) for x in row] for row in z]


def _feed(step: Plan | None, layer: FeedForward, z: list[Row]) -> list[Row]:
    dense = np.arange(layer.neurons) if step is None else step.dense
    neurons = []
    for r in dense:
        reads = [
            (layer.reads[i], _number(layer.W1[r, i])) for i in np.flatnonzero(layer.W1[r]).tolist()
        ]
        writes = [(i, _number(layer.W2[i, r])) for i in np.flatnonzero(layer.W2[:, r]).tolist()]
        neurons.append((reads, _number(layer.b1[r]), writes))
    bias = None if layer.b2 is None else [_number(x) for x in layer.b2]
    eta = _number(layer.eta)
    out = []
    for row in z:
        add = [_number(0.0)] * len(layer.writes) if bias is None else list(bias)
        for reads, b, writes in neurons:
            pre = sum((w * row[c] for c, w in reads), b)
            if pre > 0:
                for i, w in writes:
                    add[i] = add[i] + w * pre
        for c, f in () if step is None else step.lookups:
            for i, value in enumerate(evaluate_exact(f, row[c])):
                add[i] = add[i] + value
        new = list(row) if layer.eta == 1.0 else [eta * x for x in row]
        for i, c in enumerate(layer.writes):
            new[c] = new[c] + add[i]
        out.append(new)
    return out


def _dot(vector: Array, row: Row) -> Any:
    return sum((_number(vector[c]) * row[c] for c in np.flatnonzero(vector).tolist()), _number(0.0))


def _attend(layer: Attention, z: list[Row], counts: list[int]) -> list[Row]:
    if layer.idle:
        return z
    if math.isfinite(layer.beta) and not layer.uniform:
        raise InputError(
            "a softmax layer has no rational values; got a finite `beta`. Use the hardmax network."
        )
    key = [_dot(layer.k, row) for row in z]
    value = [_dot(layer.v, row) for row in z]
    means: dict[int, Any] = {}
    out = []
    for row in z:
        ask = _dot(layer.q, row)
        sign = (ask > 0) - (ask < 0)
        if sign not in means:
            best = None if sign == 0 else (max(key) if sign > 0 else min(key))
            chosen = [pos for pos in range(len(z)) if best is None or key[pos] == best]
            total = sum((value[pos] * counts[pos] for pos in chosen), _number(0.0))
            means[sign] = total / sum(counts[pos] for pos in chosen)
        new = list(row) if layer.rho == 1.0 else [_number(layer.rho) * x for x in row]
        for c in np.flatnonzero(layer.u):
            new[c] = new[c] + _number(layer.u[c]) * means[sign]
        out.append(new)
    return out
