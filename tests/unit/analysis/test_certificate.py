"""Certificates: true ones verify, and nothing else does."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
import torch

import hardmax as hm
from hardmax import Certificate, HardmaxError

HALF = F(1, 2)
FIGURE = [
    [F(1), F(1, 3)],
    [F(-1, 12), F(1, 12)],
    [F(-1), F(-1)],
    [F(0), F(1, 4)],
    [F(-3, 10), F(-7, 10)],
    [F(-6, 10), F(-9, 10)],
]
SQUARE = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0], [-0.5, 0.0], [0.5, 0.0], [0.1, 0.2]]


def gaussian(n: int = 9, d: int = 2, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(n, d))


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "floats": (gaussian(), {"alpha": 0.3}),
    "with a matrix": (gaussian(8, 2, 1), {"A": np.array([[2.0, 0.5], [0.5, 1.0]]), "gamma": 0.4}),
    "float32": (gaussian(7, 3, 2).astype(np.float32), {"alpha": 1.3}),
    "fractions": (FIGURE, {"alpha": HALF}),
    "ties": (np.array(SQUARE), {"alpha": 0.5}),
    "duplicates": (gaussian(4, 2, 3)[[0, 1, 1, 2, 3, 3]], {"alpha": 0.7}),
    "one token": (np.array([[2.0, 1.0]]), {}),
    "a pair of factors": (gaussian(6, 3, 5), {"A": (gaussian(1, 3, 6),) * 2, "alpha": 0.5}),
    "a full step": (np.array([(1, 1), (1, -1), (0.5, 0), (0.5, 0.1)]), {"gamma": 1}),
    "a proved collapse": (gaussian(6, 2, 7), {"A": -np.eye(2), "gamma": 0.4}),
    "a leader born late": (np.array(FIGURE, dtype=float), {"alpha": 0.5}),
    "exact on demand": (gaussian(6, 2, 4), {"alpha": 0.2, "exact": True}),
}


@pytest.fixture(params=list(CASES))
def case(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    z, arguments = CASES[request.param]
    eq = hm.equilibrium(z, **arguments)
    assert eq.certificate.proved
    return z, eq.certificate


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every entry of nested data that is no container."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    elif isinstance(data, (list, tuple)):
        for key, value in enumerate(data):
            yield from leaves(value, (*path, key))
    else:
        yield path, data


def put(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    out = copy.deepcopy(data)
    at = out
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return out


def alterations(value: Any) -> list[Any]:
    """Other values of the same kind: one ulp, one unit, another letter."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, -value - 1]
    if isinstance(value, float):
        return [float(np.nextafter(value, np.inf)), float(np.nextafter(value, -np.inf)), -value - 1]
    if isinstance(value, str):
        return _strings(value)
    return []  # None: `test_a_matrix_put_in_does_not_verify`


def _strings(value: str) -> list[str]:
    try:
        exact = F(value)
    except ValueError:
        last = "0" if value[-1] != "0" else "1"
        return [value[:-1] + last, value + "0", ""]
    ulp = F(float(np.nextafter(float(exact), np.inf))) - F(float(exact))
    return [str(exact + 1), str(exact + ulp), str(exact - F(1, 10**30))]


def cells(z: Any) -> Iterator[tuple[int, int]]:
    yield from np.ndindex(len(z), len(z[0]))


# ------------------------------------------------------------------ true ones


def test_a_certificate_verifies_its_data(case: tuple[Any, Certificate]) -> None:
    z, certificate = case
    assert certificate.proved
    for arithmetic in (None, "float", "rational"):
        assert certificate.verify(z, arithmetic=arithmetic) is True


def test_a_certificate_survives_json(case: tuple[Any, Certificate]) -> None:
    z, certificate = case
    text = json.dumps(certificate.to_dict(), allow_nan=False)
    again = Certificate.from_dict(json.loads(text))
    assert again == certificate
    assert again.verify(z) is True
    assert again.verify(z, arithmetic="rational") is True


def test_the_same_numbers_in_another_form_verify() -> None:
    z = gaussian(7, 3, 2).astype(np.float32)
    certificate = hm.equilibrium(z).certificate
    forms = [
        z.astype(np.float64),
        z.tolist(),
        torch.tensor(z),
        torch.tensor(z, dtype=torch.float64),
        [[F(float(x)) for x in row] for row in z],
        np.asfortranarray(z),
        z[::-1][::-1],
    ]
    for form in forms:
        assert certificate.verify(form) is True


def test_the_sign_of_zero_does_not_matter() -> None:
    z = np.array([[1.0, 0.0], [0.0, 2.0], [0.3, 0.1]])
    certificate = hm.equilibrium(z).certificate
    z[0, 1] = -0.0
    assert certificate.verify(z) is True


def test_verifying_changes_nothing() -> None:
    z = gaussian()
    certificate = hm.equilibrium(z).certificate
    before, kept = certificate.to_dict(), z.copy()
    certificate.verify(z)
    assert certificate.to_dict() == before
    assert np.array_equal(z, kept)


# ------------------------------------------------------------------ altered certificates


def test_no_altered_number_verifies(case: tuple[Any, Certificate]) -> None:
    z, certificate = case
    data = certificate.to_dict()
    wrong, count = [], 0
    for path, value in leaves(data):
        for other in alterations(value):
            if other == value:
                continue
            count += 1
            altered = Certificate.from_dict(put(data, path, other))
            if altered.verify(z) is not False:
                wrong.append((path, value, other))
    assert wrong == []
    assert count >= 15


def test_no_altered_number_verifies_in_rationals(case: tuple[Any, Certificate]) -> None:
    z, certificate = case
    data = certificate.to_dict()
    for path, value in leaves(data):
        for other in [x for x in alterations(value) if x != value][:1]:
            altered = Certificate.from_dict(put(data, path, other))
            assert altered.verify(z, arithmetic="rational") is False, path


def test_no_replaced_field_verifies(case: tuple[Any, Certificate]) -> None:
    z, certificate = case
    for spec in dataclasses.fields(certificate):
        value = getattr(certificate, spec.name)
        swaps = alterations(value) if not isinstance(value, tuple) else [(), value + value[:1]]
        for other in swaps:
            if other == value:
                continue
            altered = dataclasses.replace(certificate, **{spec.name: other})
            assert altered.verify(z) is False, (spec.name, other)


def test_dropped_and_doubled_entries_do_not_verify(case: tuple[Any, Certificate]) -> None:
    z, certificate = case
    data = certificate.to_dict()
    for key in ("leaders", "born", "labels", "limit", "layers"):
        shorter = put(data, (key,), data[key][:-1])
        longer = put(data, (key,), data[key] + data[key][-1:])
        for altered in (shorter, longer):
            assert Certificate.from_dict(altered).verify(z) is False, key


def test_swapped_labels_do_not_verify() -> None:
    z = gaussian(12)
    data = hm.equilibrium(z, alpha=0.3).certificate.to_dict()
    labels = data["labels"]
    i, j = next((i, j) for i in range(12) for j in range(i) if labels[i] != labels[j])
    labels[i], labels[j] = labels[j], labels[i]
    assert Certificate.from_dict(data).verify(z) is False


def test_a_matrix_put_in_does_not_verify() -> None:
    certificate = hm.equilibrium(gaussian()).certificate
    assert certificate.A is None
    for rows in ((("1", "0"), ("0", "2")), (("1", "1/2"), ("1/2", "1")), (("1",),), ()):
        assert dataclasses.replace(certificate, A=rows).verify(gaussian()) is False


def test_a_layer_more_or_less_does_not_verify() -> None:
    z = gaussian(30, 2, 3)
    eq = hm.equilibrium(z, alpha=0.1)
    assert eq.settled_at >= 2
    for shift in (-2, -1, 1, 5):
        altered = dataclasses.replace(eq.certificate, settled_at=eq.settled_at + shift)
        assert altered.verify(z) is False


@pytest.mark.parametrize("other", ["1/3", "0.5000000000000001", "2", "0", "-1/2", "nan", "x", ""])
def test_another_step_does_not_verify(other: str) -> None:
    certificate = hm.equilibrium(gaussian(), gamma=0.5).certificate
    assert dataclasses.replace(certificate, gamma=other).verify(gaussian()) is False


def unproved() -> list[tuple[Any, Any]]:
    """Tokens and equilibria without a proof: too few layers, a swap that never ends."""
    z, pair = gaussian(30, 2, 3), np.array([[3.0], [-1.0]])
    few = hm.equilibrium(z, alpha=0.1, max_depth=2)
    swap = hm.equilibrium(pair, A=[[-1.0]], gamma=1, max_depth=50)
    return [(z, few), (pair, swap)]


def test_one_that_claims_a_proof_where_there_is_none_does_not_verify() -> None:
    for z, eq in unproved():
        certificate = eq.certificate
        assert not certificate.proved
        assert certificate.verify(z) is False
        for layer in (None, 0, len(certificate.layers) - 1, len(certificate.layers)):
            claim = dataclasses.replace(certificate, proved=True, settled_at=layer)
            assert claim.verify(z) is False
            assert claim.verify(z, arithmetic="rational") is False


@pytest.mark.parametrize("junk", [None, [], {}, "x", [[["x"]]], float("nan"), 10**400])
def test_junk_in_any_field_is_false_and_no_error(junk: Any) -> None:
    certificate = hm.equilibrium(gaussian()).certificate
    for spec in dataclasses.fields(certificate):
        if getattr(certificate, spec.name) == junk:
            continue
        altered = dataclasses.replace(certificate, **{spec.name: junk})
        assert altered.verify(gaussian()) is False, spec.name


def test_missing_and_malformed_entries_are_reported() -> None:
    data = hm.equilibrium(gaussian()).certificate.to_dict()
    wrong = [{k: v for k, v in data.items() if k != "gamma"}, {**data, "colour": "red"}]
    wrong += [{**data, "layers": 3}, {**data, "layers": [{"x": 1}]}, {**data, "layers": [3]}]
    for entry in wrong:
        with pytest.raises(HardmaxError, match="certificate"):
            Certificate.from_dict(entry)


# ------------------------------------------------------------------ altered data


def test_no_token_moved_by_one_ulp_verifies(case: tuple[Any, Certificate]) -> None:
    z, certificate = case
    for i, c in cells(z):
        for sign in (np.inf, -np.inf):
            other = copy.deepcopy(z)
            if isinstance(z, np.ndarray):
                other[i, c] = np.nextafter(z[i, c], z.dtype.type(sign))
            else:
                other[i][c] = z[i][c] + (1 if sign > 0 else -1) * F(1, 10**40)
            assert certificate.verify(other) is False, (i, c)
            assert certificate.verify(other, arithmetic="rational") is False, (i, c)


def test_no_two_different_tokens_may_be_swapped(case: tuple[Any, Certificate]) -> None:
    z, certificate = case
    for i in range(len(z)):
        for j in range(i):
            order = list(range(len(z)))
            order[i], order[j] = j, i
            other = [z[k] for k in order]
            same = all(a == b for a, b in zip(z[i], z[j], strict=True))
            assert certificate.verify(other) is same, (i, j)


def test_other_shapes_do_not_verify(case: tuple[Any, Certificate]) -> None:
    z, certificate = case
    rows = [list(row) for row in z]
    others: list[Any] = [
        rows[:-1],
        [*rows, rows[0]],
        [[*row, 0.0] for row in rows],
        [rows],
        rows[0],
        [],
        "z",
        None,
    ]
    for other in others:
        assert certificate.verify(other) is False


def test_data_that_is_not_finite_does_not_verify() -> None:
    certificate = hm.equilibrium(gaussian()).certificate
    for bad in (np.nan, np.inf, -np.inf):
        z = gaussian()
        z[0, 0] = bad
        assert certificate.verify(z) is False


def test_rounding_to_float32_is_noticed() -> None:
    certificate = hm.equilibrium(gaussian()).certificate
    assert certificate.verify(gaussian().astype(np.float32)) is False


# ------------------------------------------------------------------ what it says


def test_the_margin_is_the_smallest_of_the_exact_ones() -> None:
    from tests import oracle

    for seed in range(5):
        z = gaussian(15, 3, seed)
        eq = hm.equilibrium(z, alpha=0.4)
        found = oracle.answer(z, alpha=0.4)
        assert eq.certificate.margin == pytest.approx(found.margin, rel=1e-6)


def test_floats_suffice_for_random_tokens_and_rationals_for_ties() -> None:
    assert hm.equilibrium(gaussian(20)).certificate.arithmetic == "float"
    assert hm.equilibrium(SQUARE, alpha=0.5).certificate.arithmetic == "rational"


def test_the_reason_says_why() -> None:
    for _, eq in unproved():
        assert "not every class follows a leader" in eq.certificate.reason
    assert "follows a leader alone" in hm.equilibrium(gaussian()).certificate.reason
    assert "tie" in hm.equilibrium(SQUARE, alpha=0.5).certificate.reason
