"""What each public function says of input it cannot use, and what it takes without a word."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import hardmax as hm
from hardmax._errors import HardmaxError

Z = np.array([[1.0, 0.0], [0.0, 1.0], [0.4, 0.2]])
CALLS: dict[str, Callable[..., Any]] = {
    "layer": hm.layer,
    "simulate": lambda z, **more: hm.simulate(z, 3, **more),
    "equilibrium": hm.equilibrium,
}
BAD_TOKENS = {
    "nan": ([[1.0, np.nan]], r"finite; z\[0, 1\] is nan"),
    "infinity in float32": (np.array([[-np.inf]], np.float32), r"finite; z\[0, 0\] is -inf"),
    "one axis": ([1.0, 2.0], r"got shape \(2,\)"),
    "a number": (3.0, r"got shape \(\)"),
    "four axes": (np.zeros((1, 2, 3, 4)), r"got shape \(1, 2, 3, 4\)"),
    "ragged": ([[1.0, 2.0], [3.0]], "rows have different lengths"),
    "empty list": ([], r"at least one token .* got shape \(0,\)"),
    "no coordinate": ([[]], r"at least one token .* got shape \(1, 0\)"),
    "no token": (torch.zeros(0, 2), r"at least one token .* got shape \(0, 2\)"),
    "text": ([["1", "2"]], "got text"),
    "None": ([[None, 1.0]], "got NoneType"),
    "a dict": ({"a": 1}, "got dict"),
    "a generator": ((row for row in [[1.0]]), "got generator"),
    "complex": ([[1j]], "got complex128"),
    "dates": (np.array([["2020-01-01"]], "datetime64[D]"), r"got datetime64\[D\]"),
    "decimals": ([[Decimal("1.5")]], "got Decimal"),
    "objects": (np.array([[object(), 1]], dtype=object), "got object"),
    "nan among fractions": ([[Fraction(1, 3), float("nan")]], "finite; got nan"),
    "half precision": (np.ones((2, 2), np.float16), "got float16"),
    "bfloat16": (torch.ones(2, 2, dtype=torch.bfloat16), "bfloat16"),
    "sparse": (torch.eye(2).to_sparse(), "dense tensor"),
    "masked entries": (np.ma.array([[1.0, 2.0]], mask=[[False, True]]), "masked entries"),
    "integers beyond doubles": ([[10**400, 1]], "range of doubles"),
    "fractions beyond doubles": ([[Fraction(10**400, 3)]], "range of doubles"),
}
BAD_SCORES = {
    "another size": (np.eye(3), r"`A` must be \(2, 2\)"),
    "a number": (2.0, r"`A` must be \(2, 2\)"),
    "nan": ([[np.nan, 0], [0, 1]], r"finite; A\[0, 0\] is nan"),
    "complex": (1j * np.eye(2), "got complex128"),
    "text": ([["a", "b"], ["c", "d"]], "got text"),
    "factors that differ": ((np.ones((1, 2)), np.ones((2, 2))), "two .* factors"),
    "factors of another width": ((np.ones((1, 3)), np.ones((1, 3))), "two .* factors"),
    "bfloat16": (torch.eye(2, dtype=torch.bfloat16), "bfloat16"),
    "beyond doubles": ([[Fraction(10**400), 0], [0, Fraction(1)]], "range of doubles"),
}
BAD_STEPS = [
    ({"alpha": value}, "`alpha` must be a finite number > 0")
    for value in (0, -1, np.nan, np.inf, None, "1", True, 1j, {}, Decimal(1), -(10**400))
] + [
    ({"gamma": 0}, r"`gamma` must be a number in \(0, 1\]"),
    ({"gamma": 1.5}, r"`gamma` must be a number in \(0, 1\]"),
    ({"gamma": np.eye(3)}, r"`gamma` as a matrix must be \(2, 2\)"),
    ({"gamma": np.full((2, 2), np.nan)}, "`gamma` must be finite"),
    ({"alpha": 2.0, "gamma": 0.5}, "both given"),
    ({"alpha": np.eye(2)}, "one number or one per layer"),
    ({"alpha": [1.0, 2.0]}, "one number"),
]


def refused(call: Callable[..., Any], *args: Any, match: str, **more: Any) -> None:
    """The call raises one line of ours that is also a ValueError."""
    with pytest.raises(HardmaxError, match=match) as caught:
        call(*args, **more)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("case", BAD_TOKENS)
def test_tokens_that_cannot_be_used_get_one_line(call: Callable[..., Any], case: str) -> None:
    z, said = BAD_TOKENS[case]
    refused(call, z, match=said)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("case", BAD_SCORES)
def test_scores_that_cannot_be_used_get_one_line(call: Callable[..., Any], case: str) -> None:
    A, said = BAD_SCORES[case]
    refused(call, Z, A=A, match=said)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(("step", "said"), BAD_STEPS, ids=str)
def test_steps_out_of_range_get_one_line(
    call: Callable[..., Any], step: dict[str, Any], said: str
) -> None:
    refused(call, Z, match=said, **step)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"heads": 3}, "`heads` must divide"),
        ({"heads": 1.5}, "`heads` must be an integer"),
        ({"heads": 2, "A": 3}, r"must be one \(1, 1\) matrix or 2 of them"),
        ({"heads": 2, "A": [np.eye(1)] * 3}, r"must be one \(1, 1\) matrix or 2 of them"),
        ({"mask": [1, 1, 0]}, "`mask` must be boolean"),
        ({"mask": [True]}, r"`mask` must be \(n,\) = \(3,\)"),
        ({"mask": [False] * 3}, "at least one real token"),
        ({"mask": [[True], [True, False]]}, "its rows have different lengths"),
        ({"temperature": np.inf}, "`temperature` must be a finite number >= 0"),
        ({"temperature": 1j}, "`temperature` must be a finite number >= 0"),
        ({"tie_tol": "a"}, "`tie_tol` must be a finite number >= 0"),
        ({"normalization": "x"}, "`normalization` must be one of"),
        ({"normalization": ["none"]}, "`normalization` must be one of"),
        ({"gamma": 1, "normalization": "none"}, "`gamma` = 1 is alpha = infinity"),
        ({"alpha": 10**400, "normalization": "none"}, "range of the tokens' numbers"),
        ({"gamma": np.eye(2), "normalization": "sphere"}, "I - G invertible"),
    ],
    ids=str,
)
def test_other_arguments_of_a_layer_get_one_line(more: dict[str, Any], said: str) -> None:
    refused(hm.layer, Z, match=said, **more)
    refused(hm.simulate, Z, 2, match=said, **more)


@pytest.mark.parametrize("save", ["first", None, 3, [], [5], [-1], [1.5]], ids=str)
def test_layers_to_save_must_exist(save: Any) -> None:
    refused(hm.simulate, Z, 3, save=save, match="`save` must")


TAKEN = {
    "integers": (10 * Z).astype(int),
    "booleans": Z[:2] > 0.5,
    "lists of arrays": list(Z),
    "tuples": tuple(map(tuple, Z)),
    "other byte order": Z.astype(">f8"),
    "another layout": np.asfortranarray(Z)[::-1],
    "read only": np.broadcast_to(np.ones(2), (3, 2)),
    "integer tensor": torch.ones(3, 2, dtype=torch.int64),
    "fractions": [[Fraction(1, 3), Fraction(1)], [Fraction(2), Fraction(-1, 7)]],
    "integers beyond 2^53": [[2**70, 1], [1, 2]],
    "one token": [[2.0]],
    "one zero": [[0.0, 0.0]],
    "the largest doubles": [[1.7e308, -1.7e308], [1e308, 1.7e308]],
    "the smallest doubles": [[5e-322, 0.0], [0.0, 1e-322]],
}


@pytest.mark.parametrize("case", TAKEN)
def test_what_is_a_system_is_taken(case: str) -> None:
    z = TAKEN[case]
    plain = np.array([[float(x) for x in row] for row in z])
    assert hm.equilibrium(z).status == "proved"
    run = hm.simulate(z, 40)
    assert run.status == "settled"
    assert np.asarray(run.zs[0]) == pytest.approx(plain, rel=1e-15)
    scale = np.abs(plain).max() or 1.0
    gap = np.asarray(run.z) / scale - np.asarray(hm.equilibrium(z).limit) / scale
    assert np.abs(gap).max() < 1e-5


def test_data_frames_are_taken_as_their_values() -> None:
    frame = pd.DataFrame(Z, columns=["x", "y"])
    assert np.array_equal(hm.layer(frame), hm.layer(Z))


def test_a_head_without_a_matrix_takes_the_identity() -> None:
    given = hm.layer(Z, A=[None, 2 * np.eye(1)], heads=2)
    assert np.array_equal(given, hm.layer(Z, heads=2))
    pairs = [(np.ones((1, 1)), np.ones((1, 1)))] * 2
    assert np.array_equal(hm.layer(Z, A=pairs, heads=2), hm.layer(Z, heads=2))


@pytest.mark.parametrize("power", [-323, -300, 0, 200, 307])
@pytest.mark.parametrize("after", ["sphere", "layernorm"])
def test_lengths_are_one_for_tokens_of_any_size(power: int, after: str) -> None:
    z = np.array([[3.0, 4.0], [0.0, -1.0]]) * 10.0**power
    done = hm.layer(z, normalization=after)
    assert done == pytest.approx(hm.layer(z / z.max(), normalization=after), rel=1e-12)
    assert np.linalg.norm(done, axis=1) == pytest.approx(1 if after == "sphere" else 2**0.5)


def test_a_matrix_step_may_be_of_fractions_or_of_another_precision() -> None:
    half = [[Fraction(1, 2), 0], [0, Fraction(1, 2)]]
    wanted = hm.layer(Z, gamma=0.5)
    assert hm.layer(Z, gamma=half) == pytest.approx(wanted)
    assert hm.layer(Z, gamma=0.5 * torch.eye(2)) == pytest.approx(wanted)
    assert hm.layer(torch.tensor(Z), gamma=0.5 * torch.eye(2)).dtype == torch.float64


def test_a_certificate_is_not_read_from_other_data() -> None:
    for data in (None, 5, "x", [], {}, {"a": 1}):
        refused(hm.Certificate.from_dict, data, match="a certificate has the entries A, ar")


@pytest.mark.parametrize("known", [[5], [-1], ["a"], 5, None, [1.5]], ids=str)
def test_known_vertices_are_indices(known: Any) -> None:
    refused(hm.Polytope.of, [[1.0, 2.0]], known_vertices=known, match="`known_vertices` must be")


@pytest.mark.parametrize("tol", [-1, 1, np.nan, "a", None], ids=str)
def test_the_tolerance_of_a_polytope_is_below_one(tol: Any) -> None:
    refused(hm.Polytope.of, [[1.0, 2.0]], tol=tol, match=r"`tol` must be in \[0, 1\)")
