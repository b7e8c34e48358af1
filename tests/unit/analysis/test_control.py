"""Scores chosen so that given tokens lead: answers, and proofs of both kinds."""

from __future__ import annotations

import dataclasses
import itertools
import json
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hardmax import equilibrium, simulate
from hardmax._errors import InputError, MissingExtraError, ShapeError
from hardmax.analysis import _control_dual as dual
from hardmax.analysis import _control_faces as faces
from hardmax.analysis import _control_program as program
from hardmax.analysis import _control_turn as turn
from hardmax.analysis import control as module
from hardmax.analysis._control_proof import is_semidefinite
from hardmax.analysis._control_wishes import read_wishes
from hardmax.analysis._exact_linear import rank as rank_of
from hardmax.analysis.control import Control, ControlCertificate, Wish, choose_matrix
from hardmax.tokens.points import arrangement


def draw(seed: int) -> tuple[np.ndarray, list[int], list[tuple[int, int]]]:
    """Tokens with d 1-6, n 3-60, 1-4 leads and sometimes follows."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 7)), int(rng.integers(3, 61))
    z = rng.normal(size=(n, d))
    order = rng.permutation(n).tolist()
    count = min(int(rng.integers(1, 5)), n)
    more = int(rng.integers(0, 4)) if seed % 2 else 0
    return z, order[:count], [(i, order[0]) for i in order[count : count + more]]


def exactly(A: np.ndarray, z: np.ndarray, i: int, target: int) -> bool:
    """Whether token i scores `target` strictly best, in Fractions."""
    whole = [[Fraction(v) for v in row] for row in z.tolist()]
    q = [sum(Fraction(a) * v for a, v in zip(row, whole[i], strict=True)) for row in A.tolist()]
    scores = [sum(a * b for a, b in zip(q, row, strict=True)) for row in whole]
    return all(scores[target] > s for j, s in enumerate(scores) if whole[j] != whole[target])


def contradiction(proof: ControlCertificate) -> list[list[Fraction]]:
    """sum of weight (a b^T + b a^T) of an infeasible certificate, written out."""
    z = [[Fraction(v) for v in row] for row in proof.tokens]
    d = len(z[0])
    total = [[Fraction(0)] * d for _ in range(d)]
    for m in proof.multipliers or ():
        a, weight = z[m.token], Fraction(m.weight)
        b = [p - q for p, q in zip(z[m.target], z[m.other], strict=True)]
        assert weight > 0
        for i, j in itertools.product(range(d), repeat=2):
            total[i][j] += weight * (a[i] * b[j] + a[j] * b[i])
    return total


@pytest.mark.parametrize("seed", range(40))
def test_every_random_answer_is_proved_and_holds_when_written_out(seed: int) -> None:
    z, lead, follow = draw(seed)
    found = choose_matrix(z, lead, follow=follow)
    assert found.status != "undecided"
    assert found.certificate is not None
    assert found.certificate.verify()
    if found.feasible:
        assert found.A is not None
        assert np.array_equal(found.A, found.A.T)
        assert np.linalg.eigvalsh(found.A)[0] > -1e-12
        assert all(exactly(found.A, z, i, i) for i in lead)
        assert all(exactly(found.A, z, i, target) for i, target in follow)
        eq = equilibrium(z, A=found.A)
        assert eq.certificate.proved
        assert set(lead) <= set(eq.leaders)
        assert all(eq.leaders[eq.labels[i]] == target for i, target in follow)
    else:
        total = contradiction(found.certificate)
        scale = max(abs(v) for row in total for v in row) or 1
        floats = np.array([[float(v / scale) for v in row] for row in total])
        assert np.linalg.eigvalsh(floats)[-1] < 1e-12


def test_both_answers_occur_among_the_random_draws() -> None:
    found = [choose_matrix(*draw(seed)[:2]).status for seed in range(30)]
    assert 5 < found.count("infeasible") < 25


def test_one_lead_in_the_plane_agrees_with_trying_all_directions() -> None:
    angles = np.linspace(0, 2 * np.pi, 20_000, endpoint=False)
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    infeasible = 0
    for seed in range(60):
        z = np.random.default_rng(seed).normal(size=(10, 2))
        wanted = np.vstack([z[0], z[0] - z[1:]])
        possible = bool((directions @ wanted.T > 0).all(axis=1).any())
        found = choose_matrix(z, [0])
        assert found.feasible == possible
        infeasible += not possible
    assert 15 < infeasible < 45


def test_follows_are_chosen_at_the_first_layer() -> None:
    z = np.random.default_rng(3).normal(size=(12, 4))
    found = choose_matrix(z, [0, 1], follow=[(2, 0), (3, 1)])
    assert found.feasible
    run = simulate(z, 1, A=found.A)
    assert run.follows[0, [0, 1, 2, 3]].tolist() == [0, 1, 0, 1]


def test_a_point_between_two_others_cannot_lead_though_all_margins_are_zero() -> None:
    found = choose_matrix([[1, 1], [2, 0], [0, 2]], [0])
    assert found.status == "infeasible"
    assert found.certificate is not None
    weights = {m.other: Fraction(m.weight) for m in found.certificate.multipliers or ()}
    assert weights[1] == weights[2]
    assert contradiction(found.certificate) == [[0, 0], [0, 0]]
    nearly = choose_matrix([[1, 1 + 1e-9], [2, 0], [0, 2]], [0])
    assert nearly.feasible
    assert nearly.margin == pytest.approx(1e-9, rel=0.5)


def test_two_leads_can_be_impossible_together_and_possible_alone() -> None:
    for seed in range(200):
        z = np.random.default_rng(seed).normal(size=(8, 2))
        if choose_matrix(z, [0]).feasible and choose_matrix(z, [1]).feasible:
            found = choose_matrix(z, [0, 1])
            if not found.feasible:
                break
    assert found.certificate is not None
    assert {m.token for m in found.certificate.multipliers or ()} == {0, 1}
    assert found.certificate.verify()


def test_wishes_that_exclude_each_other_by_one_product_are_refuted() -> None:
    rng = np.random.default_rng(7)
    for _ in range(6):
        z = np.round(rng.normal(size=(25, int(rng.integers(4, 8)))) * 64) / 64
        z[2] = z[0] + z[1]  # 0 leads: <A z_0, z_1> < 0
        z[3] = z[4] + z[0]  # 1 follows 3 and not 4: <A z_1, z_0> > 0
        found = choose_matrix(z, [0, 3], follow=[(1, 3)])
        assert found.status == "infeasible"
        assert found.certificate is not None
        assert found.certificate.verify()


def test_smaller_faces_prove_what_the_first_leaves_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dual, "_refute_pairs", lambda *args: None)
    monkeypatch.setattr(dual, "_refute_groups", lambda *args: (None, None))
    for count in (3, 5):
        rng = np.random.default_rng(count)
        p, rest = rng.integers(-64, 65, size=(count, 4)), rng.integers(-64, 65, size=(20, 4))
        z = np.vstack([p, rng.integers(-9, 10, size=4) - p, rest]) / 16
        follow = [(count + i, i) for i in range(count)]
        found = choose_matrix(z, list(range(count)), follow=follow)
        assert found.status == "infeasible"
        assert found.certificate is not None
        assert found.certificate.verify()
    possible = choose_matrix([[2, 0], [0, 1], [1, 1]], [0, 1])
    assert faces.refute_on_faces(read_wishes([[2, 0], [0, 1], [1, 1]], [0, 1], (), 1, None)) is None
    assert possible.feasible


def test_any_change_to_a_certificate_is_noticed() -> None:
    good = choose_matrix([[2, 0], [0, 1], [1, 1]], [0, 1]).certificate
    bad = choose_matrix([[1, 1, 0], [2, 0, 0], [0, 2, 0], [0, 0, -5]], [0]).certificate
    assert good is not None
    assert bad is not None
    assert bad.multipliers is not None
    first = bad.multipliers[0]
    altered: list[ControlCertificate] = [
        dataclasses.replace(good, matrix=(("1", "0"), ("1/2", "1"))),
        dataclasses.replace(good, matrix=(("1", "2"), ("2", "1"))),
        dataclasses.replace(good, matrix=None),
        dataclasses.replace(good, wishes=((2, 0), (2, 1))),
        dataclasses.replace(good, wishes=((7, 7),)),
        dataclasses.replace(good, kind="infeasible"),
        dataclasses.replace(good, shape="diagonal", matrix=(("2", "1/9"), ("1/9", "2"))),
        dataclasses.replace(good, rank=1),
        dataclasses.replace(good, where="limit"),
        dataclasses.replace(bad, multipliers=()),
        dataclasses.replace(bad, multipliers=bad.multipliers[:1]),
        dataclasses.replace(
            bad, multipliers=(dataclasses.replace(first, weight="-1"), *bad.multipliers[1:])
        ),
        dataclasses.replace(
            bad, multipliers=(dataclasses.replace(first, weight="1000"), *bad.multipliers[1:])
        ),
        dataclasses.replace(bad, tokens=(*bad.tokens[:1], ("3", "0", "0"), *bad.tokens[2:])),
        dataclasses.replace(bad, kind="feasible"),
    ]
    assert good.verify()
    assert bad.verify()
    assert [c.verify() for c in altered] == [False] * len(altered)
    assert [c.sealed().verify() for c in altered] == [False] * len(altered)


def leaves(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all texts and numbers in plain data."""
    if isinstance(data, dict | list):
        items = data.items() if isinstance(data, dict) else enumerate(data)
        return [p for key, value in items for p in leaves(value, (*path, key))]
    return [path]


def other(value: Any) -> Any:
    """A value of the same kind that is not the same."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str) and value[-1:].isdigit():
        return value[:-1] + str((int(value[-1]) + 1) % 10)
    return "x" if value is None else value + "x"


@pytest.mark.parametrize("kind", ["feasible", "infeasible", "limit"])
def test_any_altered_number_of_a_certificate_fails(kind: str) -> None:
    z = [[2, 0], [0, 1], [1, 0.2], [0.5, 0.5]]
    found = {
        "feasible": lambda: choose_matrix(z, [0, 1], follow=[(3, 0)]),
        "infeasible": lambda: choose_matrix(z, [2]),
        "limit": lambda: choose_matrix(z, [0, 1], where="limit"),
    }[kind]()
    assert found.certificate is not None
    data = found.certificate.to_dict()
    assert ControlCertificate.from_dict(data).verify()
    places = leaves(data)
    assert len(places) > 12
    for path in places:
        changed = json.loads(json.dumps(data))
        part = changed
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = other(part[path[-1]])
        try:
            good = ControlCertificate.from_dict(changed).verify()
        except InputError:
            good = False
        assert not good, path


@pytest.mark.parametrize(
    ("options", "status"),
    [({}, "feasible"), ({"where": "limit"}, "feasible"), ({"shape": "diagonal"}, "feasible")],
)
def test_certificates_survive_json(options: dict[str, Any], status: str) -> None:
    found = choose_matrix([[2, 0], [0, 1], [1, 0.2]], [0, 1], **options)
    assert found.status == status
    data = json.loads(json.dumps(found.to_dict()))
    copy = ControlCertificate.from_dict(data["certificate"])
    assert copy == found.certificate
    assert copy.verify()
    with pytest.raises(InputError, match="this is no certificate"):
        ControlCertificate.from_dict({"kind": "feasible"})


def test_fractions_and_extreme_numbers_are_decided_exactly() -> None:
    third = Fraction(1, 3)
    assert choose_matrix([[third, third], [2 * third, 0], [0, 2 * third]], [0]).status == (
        "infeasible"
    )
    close = [[third, third + Fraction(1, 10**12)], [2 * third, 0], [0, 2 * third]]
    found = choose_matrix(close, [0])
    assert found.feasible
    assert found.certificate is not None
    assert found.certificate.verify()
    assert choose_matrix([[1e300], [5e-324], [-3.0]], [0]).feasible
    assert choose_matrix([[1e300], [5e-324], [-3.0]], [1]).status == "infeasible"


def test_equal_tokens_count_as_one_and_a_lone_class_leads() -> None:
    z = [[2, 0], [2, 0], [0, 1], [0, 1]]
    found = choose_matrix(z, [0, 1, 2])
    assert found.feasible
    assert found.wishes == (Wish(0, 0), Wish(2, 2))
    assert choose_matrix([[1, 2], [1, 2]], [1]).margin == np.inf
    assert choose_matrix(z, [1, 3], follow=[(0, 3)]).status == "infeasible"


@pytest.mark.parametrize(
    ("lead", "follow"),
    [([0], []), ([1, 2], [(0, 1)]), ([1, 2], [(3, 1), (3, 2)]), ([1, 2], [(2, 1)])],
)
def test_zero_tokens_and_contradictory_wishes_are_refuted(
    lead: list[int], follow: list[tuple[int, int]]
) -> None:
    z = [[0.0, 0], [1, 0], [0, 1], [0.3, 0.4]]
    for shape in ("full", "diagonal"):
        found = choose_matrix(z, lead, follow=follow, shape=shape)
        assert found.status == "infeasible"
        assert found.certificate is not None
        assert found.certificate.verify()
        assert found.interval[1] == 0


def test_the_margin_is_the_largest_and_does_not_depend_on_the_scale() -> None:
    z = draw(4)[0]
    z = z[:, :2] if z.shape[1] > 2 else z
    order = np.argsort(-np.linalg.norm(z, axis=1))
    found = choose_matrix(z, order[:2])
    low, high = found.interval
    assert found.margin == low
    assert high - low < 1e-7
    rng = np.random.default_rng(0)
    a, b = [], []
    for i in order[:2]:
        for j in range(len(z)):
            if j != i:
                a.append(z[i] / np.linalg.norm(z[i]))
                b.append((z[i] - z[j]) / np.linalg.norm(z[i] - z[j]))
    for _ in range(2000):
        L = rng.normal(size=(2, 2))
        A = L @ L.T * 2 / np.sum(L * L)
        assert min(np.einsum("ki,ij,kj->k", a, A, b)) <= high
    other = choose_matrix(z * 1024, order[:2])
    assert other.margin == pytest.approx(found.margin, rel=1e-6)


def test_diagonal_matrices_are_decided_exactly() -> None:
    rng = np.random.default_rng(8)
    seen = set()
    for _ in range(30):
        z = rng.normal(size=(12, 3))
        found = choose_matrix(z, [0, 1], shape="diagonal")
        seen.add(found.status)
        assert found.certificate is not None
        assert found.certificate.verify()
        if found.feasible:
            assert found.A is not None
            assert np.array_equal(found.A, np.diag(np.diag(found.A)))
            assert choose_matrix(z, [0, 1]).feasible
    assert seen == {"feasible", "infeasible"}


@pytest.mark.parametrize("rank", [1, 2])
def test_a_matrix_of_low_rank_is_exactly_of_that_rank(rank: int) -> None:
    z = np.random.default_rng(5).normal(size=(30, 4))
    lead = np.argsort(-np.linalg.norm(z, axis=1))[:2]
    found = choose_matrix(z, lead, rank=rank)
    assert found.feasible
    assert found.factor is not None
    assert found.factor.shape == (rank, 4)
    assert found.certificate is not None
    assert found.certificate.rank == rank
    assert found.certificate.verify()
    assert set(lead.tolist()) <= set(equilibrium(z, A=found.scores).leaders)


def test_a_rank_that_is_not_found_is_undecided_and_impossible_wishes_stay_refuted() -> None:
    corners = [[1, 0], [0, 1], [-1, 0], [0, -1]]  # with rank 1 at most two can be extreme
    assert choose_matrix(corners, [0, 1, 2, 3], rank=1).status == "undecided"
    assert choose_matrix([*corners, [0.1, 0]], [4], rank=1).status == "infeasible"


def test_the_nearest_matrix_is_the_wished_one_when_that_will_do() -> None:
    z = np.random.default_rng(0).normal(size=(30, 3))
    lead = np.argsort(-np.linalg.norm(z, axis=1))[:3].tolist()
    best = choose_matrix(z, lead).A
    assert best is not None
    same = choose_matrix(z, lead, closest_to=best)
    assert same.distance == 0
    wanted = np.diag([1.0, -2.0, 3.0])
    near = choose_matrix(z, lead, closest_to=wanted)
    assert near.feasible
    assert near.distance is not None
    assert near.distance < min(np.linalg.norm(best - wanted), np.linalg.norm(np.eye(3) - wanted))
    assert near.margin is not None
    assert near.margin == pytest.approx(1e-3, rel=1e-2)
    short = choose_matrix(z, lead, closest_to=wanted, shape="diagonal")
    assert short.A is not None
    assert np.array_equal(short.A, np.diag(np.diag(short.A)))


def test_the_fewest_wishes_are_left_out() -> None:
    rng = np.random.default_rng(1)
    for _ in range(6):
        z = rng.normal(size=(10, 2))
        lead = [0, 1, 2, 3]
        found = choose_matrix(z, lead, relax=True)
        assert found.violated is not None
        assert found.violated_proved
        fewest = next(
            size
            for size in range(5)
            if size == 4
            or any(
                choose_matrix(z, keep).feasible for keep in itertools.combinations(lead, 4 - size)
            )
        )
        assert len(found.violated) == fewest
        assert all(c.verify() for c in found.conflicts)
        left = {w.token for w in found.violated}
        assert all(left & {w[0] for w in c.wishes} for c in found.conflicts)
        if found.A is not None:
            assert all(exactly(found.A, z, i, i) for i in lead if i not in left)


def test_wishes_for_the_limit_may_be_born_later() -> None:
    z = arrangement("emerging")
    assert choose_matrix(z, [0, 1, 2]).status == "infeasible"
    found = choose_matrix(z, [0, 1, 2], where="limit", alpha=0.5)
    assert found.feasible
    assert found.certificate is not None
    assert found.certificate.verify()
    eq = equilibrium(z, A=found.A, alpha=0.5)
    assert {0, 1, 2} <= set(eq.leaders)
    assert max(eq.born) > 0
    assert found.certificate.limit is not None
    worse = dataclasses.replace(found.certificate, wishes=((4, 4),)).sealed()
    assert not worse.verify()


def test_a_failed_search_for_the_limit_proves_nothing() -> None:
    found = choose_matrix([[0.0], [1.0], [2.0]], [0, 1], where="limit", tries=5)
    assert (found.status, found.A, found.certificate) == ("undecided", None, None)


def test_undecided_keeps_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "refute", lambda *args: (None, None))
    again = choose_matrix([[1, 1], [2, 0], [0, 2]], [0])
    assert again.status == "infeasible"  # found in another basis
    monkeypatch.setattr(module, "decide_turned", lambda wishes: (None, None))
    found = choose_matrix([[1, 1], [2, 0], [0, 2]], [0])
    assert (found.status, found.A, found.margin) == ("undecided", None, None)
    low, high = found.interval
    assert -1e-6 < low <= high < 1e-6


def test_a_missing_solver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(MissingExtraError, match=r"hardmax\[control\]"):
        choose_matrix([[2, 0], [0, 1]], [0])


def test_few_of_many_inequalities_give_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    z = np.random.default_rng(2).normal(size=(60, 3))
    lead = np.argsort(-np.linalg.norm(z, axis=1))[:3].tolist()
    follow = [(i, lead[0]) for i in range(60) if z[i] @ z[lead[0]] > 3]
    target = np.diag([1.0, -2.0, 3.0])
    asked: tuple[dict[str, Any], ...] = (
        {"lead": lead},
        {"lead": lead, "shape": "diagonal"},
        {"lead": lead, "follow": follow},
        {"lead": list(range(8))},
        {"lead": lead, "closest_to": target},
    )
    whole = [choose_matrix(z, **options) for options in asked]
    monkeypatch.setattr(program, "_MANY", 10)
    monkeypatch.setattr(program, "_STEP", 8)
    for options, one in zip(asked, whole, strict=True):
        two = choose_matrix(z, **options)
        assert two.status == one.status
        assert (two.margin is None) == (one.margin is None)
        if one.A is not None and two.A is not None:
            assert np.allclose(one.A, two.A, atol=1e-3)
            assert two.margin == pytest.approx(one.margin, abs=1e-6)
    assert {one.status for one in whole} == {"feasible", "infeasible"}


def test_a_factorisation_that_breaks_down_is_tried_again() -> None:
    rng = np.random.default_rng(2487)
    d, n = int(rng.integers(1, 9)), int(np.exp(rng.uniform(np.log(4), np.log(150))))
    z = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-8, 8, size=(n, 1))
    found = choose_matrix(z, [0, 1, 2, 4])
    assert found.feasible
    assert found.margin == pytest.approx(0.2197, abs=1e-3)


def test_arrays_and_tensors_of_wishes_are_read() -> None:
    z = np.array([[2, 0], [0, 1], [1, 1], [0.5, 0.2]], dtype=np.float32)
    pairs = [[3, 0]]
    one = choose_matrix(z, np.array([0, 1]), follow=np.array(pairs))
    two = choose_matrix(torch.tensor(z), torch.tensor([0, 1]), follow=torch.tensor(pairs))
    assert one.feasible
    assert one.certificate == two.certificate
    assert choose_matrix(z, np.int64(0)).wishes == (Wish(0, 0),)


def test_two_hundred_tokens_in_ten_dimensions() -> None:
    z = np.random.default_rng(0).normal(size=(200, 10))
    found = choose_matrix(z, [0, 1, 2, 3], follow=[(4, 0), (5, 1)])
    assert found.feasible
    lead = list(range(12))
    none = choose_matrix(z * np.linspace(0.1, 1, 200)[:, None], lead)
    assert none.status == "infeasible"
    assert none.certificate is not None
    assert none.certificate.verify()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"lead": []}, InputError, "at least one token"),
        ({"lead": [3]}, InputError, "from 0 to 2; got 3"),
        ({"lead": [-1]}, InputError, "from 0 to 2; got -1"),
        ({"lead": [0.5]}, InputError, r"from 0 to 2; got 0\.5"),
        ({"lead": "0"}, InputError, "a list of token numbers"),
        ({"lead": [True]}, InputError, "got True"),
        ({"follow": [(1, 2)]}, InputError, "Add 2 to `lead`"),
        ({"follow": [1]}, InputError, r"pairs \(follower, leader\)"),
        ({"where": "later"}, InputError, "`where` must be one of"),
        ({"shape": "round"}, InputError, "`shape` must be one of"),
        ({"rank": 0}, InputError, "`rank` must be an integer >= 1"),
        ({"rank": 1, "shape": "diagonal"}, InputError, "`rank` goes with"),
        ({"relax": True, "where": "limit"}, InputError, "`relax` goes with"),
        ({"closest_to": [[1.0]]}, ShapeError, r"must be \(2, 2\)"),
        ({"closest_to": [[1.0, 2], [0, 1]]}, InputError, "must be symmetric"),
        ({"least": -1.0}, InputError, "`least` must be"),
        ({"tries": -1}, InputError, "`tries` must be an integer >= 0"),
        ({"seed": "x"}, InputError, "`seed` must be an integer >= 0"),
        ({"z": [[np.nan, 0], [1, 1]]}, InputError, "`z` must be finite"),
        (
            {"lead": [0, 1], "follow": [(2, 0), (2, 1)], "where": "limit"},
            InputError,
            "cannot end at two leaders",
        ),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], error: type[Exception], message: str) -> None:
    given_: dict[str, Any] = {"z": [[2, 0], [0, 1], [1, 1]], "lead": [0], **options}
    with pytest.raises(error, match=message):
        choose_matrix(given_.pop("z"), given_.pop("lead"), **given_)


@given(st.integers(1, 4), st.integers(0, 4), st.integers(0, 10**6), st.integers(-2, 2))
def test_semidefinite_is_decided_as_by_eigenvalues(d: int, r: int, seed: int, extra: int) -> None:
    L = np.random.default_rng(seed).integers(-3, 4, size=(r, d))
    matrix = L.T @ L
    matrix[0, 0] += extra
    least = np.linalg.eigvalsh(matrix.astype(float))[0]
    assert is_semidefinite(matrix.tolist()) == (least > -1e-9)


def test_the_record_is_plain_data() -> None:
    found = choose_matrix([[1, 1], [2, 0], [0, 2]], [0, 1], relax=True)
    assert isinstance(found, Control)
    data = json.loads(json.dumps(found.to_dict()))
    assert data["violated"] == [[0, 0]]
    assert data["interval"] == [None, 0.0]
    assert data["certificate"]["kind"] == "infeasible"


# --------------------------------------------------------- features of very different sizes


def uneven(seed: int) -> tuple[np.ndarray, list[int], list[tuple[int, int]]]:
    """Coordinates of sizes from 1e-6 to 1e6 around a far point, and what some A does."""
    rng = np.random.default_rng(seed)
    size = 10.0 ** np.array([-6, -2, 0, 3, 6])
    z = (rng.normal(size=(25, 5)) + np.array([9, -7, 5, 8, -6])) * size
    A = np.diag(1 / size) @ (np.eye(5) + 0.1) @ np.diag(1 / size)
    scores = z @ A @ z.T
    target = scores.argmax(axis=1)
    leads = np.flatnonzero(target == np.arange(25)).tolist()
    return z, leads, [(i, int(v)) for i, v in enumerate(target) if i != v and v in leads]


def test_another_basis_decides_what_floats_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    z, lead, follow = uneven(0)
    wishes = read_wishes(z, lead, follow, 1.0, None)
    found, proof = turn.decide_turned(wishes)
    assert proof is None
    assert found is not None
    assert found.proof.verify()
    assert np.trace(found.A) == pytest.approx(5)
    none = read_wishes([[1e9, 1e-9], [2e9, 0], [0, 2e-9]], [0], (), 1.0, None)
    found, proof = turn.decide_turned(none)
    assert found is None
    assert proof is not None
    assert proof.verify()
    monkeypatch.setattr(turn, "_LARGEST", 4)
    assert turn.decide_turned(wishes) == (None, None)


def test_the_basis_is_invertible_and_exact_also_for_tokens_in_a_subspace() -> None:
    z = [[1, 2, 3], [2, 4, 6], [1, 0, 1], [0, 2, 2]]
    wishes = read_wishes(z, [1], (), 1.0, None)
    other = turn.turned(wishes)
    assert other is not None
    assert rank_of([list(column) for column in other.basis]) == 3
    whole = [[Fraction(v) for v in row] for row in z]
    turned_rows = [[sum(w * v for w, v in zip(c, row, strict=True)) for c in other.basis]
                   for row in whole]  # fmt: skip
    ratio = {Fraction(p) / q for got, row in zip(other.points, turned_rows, strict=True)
             for p, q in zip(got, row, strict=True) if q}  # fmt: skip
    assert len(ratio) == 1
    assert all(row[2] == 0 for row in other.points)
    found = choose_matrix(z, [1])
    assert found.feasible
