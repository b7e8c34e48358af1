"""Scenes: what of a run and its limit they hold, and that they can be saved."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from hardmax import equilibrium, simulate
from hardmax._errors import DataError, InputError, ShapeError
from hardmax.plot.plain import plain
from hardmax.plot.scene import Scene, SceneLeader, scene_of
from tests.unit.plot.scenes import EMERGING, SQUARE, by_hand, cloud, emerging, square


def through_json(scene: Scene) -> Scene:
    return Scene.from_dict(json.loads(json.dumps(scene.to_dict(), allow_nan=False)))


def same_bits(a: Any, b: Any) -> bool:
    """Equal shapes and bits; every NaN counts as one."""
    return a.shape == b.shape and np.array_equal(
        np.where(np.isnan(a), np.nan, a).view(np.int64),
        np.where(np.isnan(b), np.nan, b).view(np.int64),
    )


# ------------------------------------------------------------------ from a run


def test_a_scene_holds_the_positions_and_choices_of_its_run() -> None:
    run = simulate(EMERGING, 6, alpha=0.5)
    scene = scene_of(run)
    assert same_bits(scene.zs, np.asarray(run.zs))
    assert np.array_equal(scene.follows[:6], run.follows)
    assert scene.layers == run.layers


def test_at_the_last_layer_the_choice_before_stands() -> None:
    run = simulate(EMERGING, 4, alpha=0.5)
    assert np.array_equal(scene_of(run).follows[4], run.follows[3])


def test_a_run_of_no_layers_shows_no_choice() -> None:
    scene = scene_of(simulate(EMERGING, 0))
    assert scene.zs.shape == (1, 8, 2)
    assert (scene.follows == -1).all()


def test_layers_that_were_not_saved_do_not_shift_the_choices() -> None:
    run = simulate(EMERGING, 5, alpha=0.5, save=[1, 4])
    scene = scene_of(run)
    assert scene.layers == (1, 4)
    assert np.array_equal(scene.follows, run.follows[[1, 4]])
    assert scene.row(4) == 1


def test_leaders_have_the_birth_and_the_names_of_their_tokens() -> None:
    names = [f"word {i}" for i in range(8)]
    scene = emerging(names=names)
    assert [(x.index, x.born, x.name) for x in scene.leaders] == [
        (0, 0, "word 0"),
        (1, 1, "word 1"),
        (2, 0, "word 2"),
    ]


def test_a_leader_is_shown_from_its_birth_on() -> None:
    scene = emerging()
    assert scene.leaders_at(0).tolist() == [0, 2]
    assert scene.leaders_at(1).tolist() == [0, 1, 2]


def test_a_leader_born_after_the_run_comes_from_the_limit() -> None:
    run = simulate(EMERGING, 1, alpha=0.5)
    assert [leader.index for leader in run.leaders] == [0, 2]
    scene = scene_of(run, equilibrium(EMERGING, alpha=0.5))
    assert scene.leader_indices.tolist() == [0, 1, 2]
    assert scene.leaders_at(scene.layers[0]).tolist() == [0, 2]


def test_points_without_a_leader_are_the_middles_of_two_sides() -> None:
    rests = square().rests()
    assert sorted(map(tuple, rests.tolist())) == [(-1.0, 0.0), (1.0, 0.0)]
    assert len(emerging().rests()) == 0


def test_the_limit_and_the_polytope_are_those_of_the_equilibrium() -> None:
    eq = equilibrium(SQUARE, alpha=0.5)
    scene = scene_of(simulate(SQUARE, 3, alpha=0.5), eq)
    assert scene.limit is not None
    assert same_bits(scene.limit, np.array(eq.limit))
    assert scene.vertices is not None
    assert eq.polytope is not None
    assert same_bits(scene.vertices, np.array(eq.polytope.vertices))
    assert scene.status == eq.status


def test_notes_name_tolerances_step_and_precision() -> None:
    run = simulate(np.array(EMERGING, dtype=np.float32), 3, alpha=0.5, tie_tol=1e-4)
    notes = scene_of(run, notes={"seed": 7}).notes
    assert notes["tie_tol"] == 1e-4
    assert notes["merge_tol"] == 1e-3
    assert notes["gamma"] == pytest.approx(1 / 3)
    assert notes["precision"] == "float32"
    assert notes["seed"] == 7


def test_steps_that_differ_are_all_noted() -> None:
    notes = scene_of(simulate(EMERGING, 3, alpha=[0.5, 1, 2])).notes
    assert notes["gamma"] == pytest.approx([1 / 3, 1 / 2, 2 / 3])


def test_a_torch_run_gives_the_scene_of_the_numpy_run() -> None:
    ours = scene_of(simulate(torch.tensor(EMERGING, dtype=torch.float64), 5, alpha=0.5))
    assert same_bits(ours.zs, scene_of(simulate(EMERGING, 5, alpha=0.5)).zs)


def test_padding_has_no_position_and_follows_nobody() -> None:
    z = np.array([EMERGING, EMERGING])
    mask = np.ones((2, 8), bool)
    mask[1, 5:] = False
    run = simulate(z, 4, alpha=0.5, mask=mask)
    padded, full = scene_of(run, sequence=1), scene_of(run, sequence=0)
    assert np.isnan(padded.zs[:, 5:]).all()
    assert np.isfinite(padded.zs[:, :5]).all()
    assert (padded.follows[:, 5:] == -1).all()
    assert np.isfinite(full.zs).all()


def test_the_limit_of_the_real_tokens_is_placed_among_the_padding() -> None:
    mask = np.array([[False, *[True] * 8]])
    z = np.array([[[9.0, 9.0], *EMERGING]])
    run = simulate(z, 1, alpha=0.5, mask=mask)
    scene = scene_of(run, equilibrium(EMERGING, alpha=0.5), sequence=0)
    assert scene.limit is not None
    assert np.isnan(scene.limit[0]).all()
    assert scene.leader_indices.tolist() == [1, 2, 3]


def test_a_head_is_shown_in_its_own_coordinates() -> None:
    z = np.random.default_rng(1).normal(size=(9, 4))
    run = simulate(z, 3, heads=2)
    scene = scene_of(run, head=1)
    assert same_bits(scene.zs, np.asarray(run.zs)[..., 2:])
    assert np.array_equal(scene.follows[:3], run.follows[:, 1])
    assert [x.index for x in scene.leaders] == [x.index for x in run.leaders if x.head == 1]
    assert scene.notes["head"] == 1


def test_a_batch_needs_a_choice_of_sequence() -> None:
    run = simulate(np.array([EMERGING, EMERGING]), 1)
    with pytest.raises(InputError, match="Choose it with `sequence=0`"):
        scene_of(run)
    with pytest.raises(InputError, match="`sequence` must be 0 to 1; got 2"):
        scene_of(run, sequence=2)
    with pytest.raises(InputError, match="this run is one system"):
        scene_of(simulate(EMERGING, 1), sequence=0)
    with pytest.raises(InputError, match="`head` must be 0 to 0; got 1"):
        scene_of(simulate(EMERGING, 1), head=1)


def test_names_and_limit_of_other_tokens_are_refused() -> None:
    run = simulate(EMERGING, 1)
    with pytest.raises(ShapeError, match="`names` must be 8 strings"):
        scene_of(run, names=["one"])
    with pytest.raises(ShapeError, match="`equilibrium` must be of the same tokens"):
        scene_of(run, equilibrium(SQUARE))


@pytest.mark.parametrize("z", [[[2.0, 1.0]], [[1.0, 1.0]] * 3, [[0.0, 0.0]] * 2, [[0.0], [1.0]]])
def test_small_systems_become_scenes(z: list[list[float]]) -> None:
    scene = scene_of(simulate(z, 2), equilibrium(z))
    assert scene.tokens == len(z)
    assert same_bits(through_json(scene).zs, scene.zs)


# ------------------------------------------------------------------ what a scene refuses


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"zs": np.zeros((3, 2))}, r"`zs` must be \(k, n, d\)"),
        ({"layers": (0, 0)}, "2 increasing numbers"),
        ({"layers": (0, 1, 2)}, "2 increasing numbers"),
        ({"follows": np.zeros((1, 3), int)}, r"`follows` must be \(2, 3\)"),
        ({"limit": np.zeros((3, 1))}, r"`limit` must be \(3, 2\)"),
        ({"points": np.zeros((4, 3))}, r"`points` must be \(4, 2\)"),
        ({"vertices": np.zeros(2)}, r"`vertices` must be \(2, 2\)"),
        ({"names": ("a",)}, "`names` must be 3 strings"),
        ({"leaders": (SceneLeader(3, 0, "3"),)}, "one of the 3 tokens"),
        ({"zs": np.zeros((2, 0, 2)), "follows": np.zeros((2, 0), int)}, "needs a layer, a token"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    fit = {"zs": np.zeros((2, 3, 2)), "layers": (0, 1), "follows": np.zeros((2, 3), int)}
    with pytest.raises(ShapeError, match=message):
        Scene(**(fit | change))


def test_a_missing_layer_is_named_with_those_there_are() -> None:
    with pytest.raises(InputError, match="layer 7 is not in the scene, which holds layers 0, 1, 2"):
        emerging(2).row(7)
    with pytest.raises(InputError, match="layers 0 to 30"):
        emerging(30).row(31)


# ------------------------------------------------------------------ saved and read


def test_a_scene_survives_json_bit_for_bit() -> None:
    for scene in (emerging(names=list("abcdefgh"), title="<b>"), square(), cloud(9, 3, 4)):
        back = through_json(scene)
        assert back.to_dict() == scene.to_dict()
        assert same_bits(back.zs, scene.zs)
        assert back.leaders == scene.leaders
        assert back.faces == scene.faces


@given(
    arrays(
        np.float64,
        array_shapes(min_dims=3, max_dims=3, max_side=4),
        elements=st.floats(width=64),
    )
)
def test_any_positions_survive_json(zs: np.ndarray[Any, Any]) -> None:
    assert same_bits(through_json(by_hand(zs)).zs, zs)


def test_an_empty_set_of_points_keeps_its_width() -> None:
    scene = by_hand(np.zeros((1, 2, 3)), points=np.empty((0, 3)), vertices=np.empty((0, 3)))
    back = through_json(scene)
    assert back.points is not None
    assert back.points.shape == (0, 3)


def test_other_data_are_refused() -> None:
    good = emerging(1).to_dict()
    with pytest.raises(DataError, match="format 'hardmax-scene' and version 1; got None"):
        Scene.from_dict({})
    with pytest.raises(DataError, match="and 2"):
        Scene.from_dict(good | {"version": 2})
    with pytest.raises(DataError, match="could not be read: 'zs'"):
        Scene.from_dict({key: value for key, value in good.items() if key != "zs"})
    with pytest.raises(DataError, match="could not be read"):
        Scene.from_dict(good | {"zs": [[["no number"]]]})
    with pytest.raises(DataError, match="`follows` must be"):
        Scene.from_dict(good | {"follows": [[1]]})


def test_plain_data_can_be_written_as_json() -> None:
    values = {
        "fraction": Fraction(1, 3),
        "array": np.arange(2),
        "number": np.float32(0.5),
        "flag": np.bool_(True),
        "nan": math.nan,
        "far": -math.inf,
        "set": {3},
        "record": SceneLeader(1, 2, "x", (1,)),
        "other": complex(1, 2),
        5: None,
    }
    assert json.loads(json.dumps(plain(values), allow_nan=False)) == {
        "fraction": "1/3",
        "array": [0, 1],
        "number": 0.5,
        "flag": True,
        "nan": None,
        "far": "-inf",
        "set": [3],
        "record": {"index": 1, "born": 2, "name": "x", "members": [1]},
        "other": "(1+2j)",
        "5": None,
    }
