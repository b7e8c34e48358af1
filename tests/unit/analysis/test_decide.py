"""The error bound of the float trajectory, against exact positions."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction as F
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.analysis.decide import Decider
from hardmax.analysis.system import read_system
from tests import oracle, strategies


def layers(z: Any, A: Any, gamma: Any) -> Iterator[Decider]:
    """The decider at layer 0, 1, ..."""
    decider = Decider(read_system(z, A, None, gamma), np.inf)
    while True:
        yield decider
        step, _ = decider.decide()
        decider.advance(step, decider.means(step))


def within_bound(decider: Decider, place: int, exact: list[F]) -> bool:
    """Whether a class stands no further from its exact position than its bound, decided exactly."""
    unit = F(2) ** decider.system.exponent
    gap = sum((F(float(a)) * unit - b) ** 2 for a, b in zip(decider.x[place], exact, strict=True))
    return bool(gap <= (F(float(decider.error[place])) * unit) ** 2)


@settings(max_examples=40)
@given(st.data())
def test_no_float_position_is_further_off_than_its_bound(data: st.DataObject) -> None:
    z = data.draw(strategies.clouds(min_n=2, max_n=10))
    if data.draw(st.booleans()):
        z = oracle.fractions(z) if data.draw(st.booleans()) else [[F(x) / 3 for x in r] for r in z]
    A = data.draw(strategies.matrices(len(z[0])))
    gamma = data.draw(st.sampled_from([F(1, 3), F(1, 50), 0.1, 0.9, 1]))
    exact = oracle.layers_of(z, A, gamma=gamma)
    for _, decider, state in zip(range(9), layers(z, A, gamma), exact, strict=False):
        tokens = state.z
        for place in decider.alive:
            assert within_bound(decider, place, tokens[decider.system.first[place]])


def test_errors_that_pile_up_over_many_layers_stay_within_the_bound() -> None:
    # Small steps: near its leader a float token stops moving, dozens of ulps too early.
    shear, gamma, ahead = np.array([[2.0, 1.0], [1.0, 1.0]]), F(1, 32), 1 / 128
    plain = [(1, 1), (1, -1), (1 + ahead, 0.5), (1 + ahead, -0.5), (0.5, 0)]
    z, A = np.array(plain) @ shear.T, np.array([[2.0, -3.0], [-3.0, 5.0]])
    off = 0.0
    for k, decider in zip(range(1301), layers(z, A, gamma), strict=False):
        for token in (2, 3, 4) if k % 130 == 0 else ():
            exact = moving_tie(k, token, ahead, gamma, shear)
            assert within_bound(decider, token, exact)
            unit = 2.0**decider.system.exponent
            found = [F(float(v) * unit) for v in decider.x[token]]
            off = max(off, *(float(abs(a - b)) for a, b in zip(found, exact, strict=True)))
    assert decider.lock[4] < 0  # token 4 has been tied all the time
    assert off > 20 * 2.0**-52


def moving_tie(k: int, token: int, ahead: float, gamma: F, shear: Any) -> list[F]:
    """Layer k: 2 and 3 follow 0 and 1 at (1, +-1); 4 follows the middle of 2 and 3."""
    left, e = (1 - gamma) ** k, F(ahead)
    if token == 4:
        x = [1 - left / 2 + k * gamma * (1 - gamma) ** (k - 1) * e, F(0)]
    else:
        x = [1 + left * e, (1 - left / 2) * (1 if token == 2 else -1)]
    return [sum((F(a) * b for a, b in zip(row, x, strict=True)), F(0)) for row in shear.tolist()]
