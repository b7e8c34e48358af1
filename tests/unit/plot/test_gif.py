"""Animations: how many frames, and what moves in them."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hardmax._errors import InputError
from hardmax.plot.colours import token_colours
from hardmax.plot.figures import animate, save_gif
from hardmax.plot.gif import _Stage
from hardmax.plot.record import Scene
from hardmax.plot.shapes import view_of
from hardmax.plot.turntable import Turntable
from tests.unit.plot.scenes import by_hand, cloud, emerging


def pixels(image: Image.Image) -> np.ndarray[Any, Any]:
    return np.asarray(image.convert("RGB")).astype(int)


def gif(scene: Any, **said: Any) -> Any:
    file = BytesIO()
    save_gif(scene, file, **said)
    file.seek(0)
    return Image.open(file)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_there_are_steps_between_all_saved_layers(d: int) -> None:
    frames = animate(cloud(9, d, 3), steps_between=2, size=120)
    assert len(frames) == 2 * 3 + 1
    assert {frame.size for frame in frames} == {(120, 120)}
    assert (pixels(frames[0]) != pixels(frames[-1])).any()


def test_one_saved_layer_is_one_frame() -> None:
    assert len(animate(emerging(0), size=100)) == 1


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5])
def test_a_token_lies_on_the_straight_line_between_two_layers(share: float) -> None:
    scene = emerging(3)
    stage = _Stage(scene, view_of(scene, None), 120)
    stage.shot(1, share)
    wish = (1 - share) * scene.zs[1] + share * scene.zs[2]
    assert np.asarray(stage.dots.get_offsets()) == pytest.approx(wish)
    assert stage.dots.get_facecolor()[:, :3] == pytest.approx(token_colours(scene, 1))


def test_a_star_appears_at_its_birth() -> None:
    scene = emerging(3)
    stage = _Stage(scene, view_of(scene, None), 120)
    before = pixels(stage.shot(0, 0.0))
    assert [size > 0 for size in stage.stars.get_sizes()] == [True, False, True]
    after = pixels(stage.shot(1, 0.0))
    assert [size > 0 for size in stage.stars.get_sizes()] == [True, True, True]
    assert (before != after).any()


def test_the_file_is_a_gif_that_repeats_and_stays_at_the_end() -> None:
    image = gif(emerging(4), steps_between=3, size=120, milliseconds=40)
    assert image.format == "GIF"
    assert image.info["loop"] == 0
    assert image.n_frames == 3 * 4 + 1
    times = []
    for frame in range(image.n_frames):
        image.seek(frame)
        times.append(image.info["duration"])
    assert times == [40] * 12 + [800]


def test_the_colours_of_the_file_are_those_of_the_frames() -> None:
    scene = emerging(2)
    frame, stored = animate(scene, size=160)[0], gif(scene, size=160)
    gap = np.abs(pixels(frame) - pixels(stored)).max(axis=2)
    assert np.quantile(gap, 0.95) <= 4
    assert (gap > 40).mean() < 0.02


@pytest.mark.slow
def test_three_hundred_tokens_and_thirty_layers_fit_in_three_megabytes() -> None:
    file = BytesIO()
    save_gif(cloud(300, 2, 30), file)
    assert 10_000 < len(file.getvalue()) < 3_000_000


def test_tokens_without_a_position_are_not_drawn() -> None:
    z = np.random.default_rng(0).normal(size=(3, 4, 2))
    z[:, 3] = np.nan
    assert len(animate(by_hand(z, leaders=(3,)), steps_between=1, size=100)) == 3
    space = np.full((2, 2, 3), np.nan)
    assert len(animate(by_hand(space, leaders=(0,)), steps_between=1, size=100)) == 2


def test_more_than_three_coordinates_must_be_chosen_from() -> None:
    scene = cloud(5, 4, 1)
    with pytest.raises(InputError, match="Choose two"):
        animate(scene)
    assert len(animate(scene, axes=(2, 3), steps_between=1, size=100)) == 2
    flat = animate(cloud(5, 3, 1), axes=(0, 1), steps_between=1, size=100)
    assert len(flat) == 2


@pytest.mark.parametrize("wrong", [{"steps_between": 0}, {"size": 0}])
def test_numbers_below_one_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match="must be at least 1"):
        animate(emerging(1), **wrong)


def test_names_of_leaders_turn_with_their_stars_and_appear_at_birth() -> None:
    flat = emerging(2)
    zs = np.concatenate([flat.zs, 0 * flat.zs[..., :1]], axis=2)
    scene = Scene(zs, flat.layers, flat.follows, flat.leaders)
    table = Turntable(scene, 160)
    assert set(table.names) == {0, 1, 2}
    moments = [(0, 0.0), (1, 0.5)]
    shown = []
    for _ in table.frames(moments):
        shown.append([name.get_visible() for name in table.names.values()])
    assert shown == [[True, False, True], [True, True, True]]
    there = zs[1] + 0.5 * (zs[2] - zs[1])
    for token, name in table.names.items():
        assert name.get_position_3d() == pytest.approx(there[token])
        assert name.get_text().strip() == str(token)


def test_the_turning_picture_keeps_its_labels_on_the_canvas() -> None:
    table = Turntable(cloud(30, 3, 4), 240)
    for _ in table.frames([(row, 0.0) for row in range(5)]):
        for axis in (table.ax.xaxis, table.ax.yaxis, table.ax.zaxis):
            box = axis.label.get_window_extent()
            assert min(box.x0, box.y0) >= 0
            assert max(box.x1, box.y1) <= 240
