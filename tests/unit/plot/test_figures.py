"""Figures: what is drawn is what the scene says, for every kind of scene."""

from __future__ import annotations

import subprocess
import sys
from io import BytesIO
from typing import Any

import numpy as np
import pytest

from hardmax._errors import InputError
from hardmax.plot.colours import colours, rgb, token_colours
from hardmax.plot.figures import (
    animate,
    draw_layers,
    draw_trajectories,
    draw_trajectories_3d,
    save_figure,
)
from hardmax.plot.scene import Scene
from tests.unit.plot.scenes import by_hand, cloud, emerging, scene_from, square

HOSTILE = ["$\\frac$", "_x", "a\x00b", "<script>", "", "$$", "\\", "50%"]


def part(ax: Any, label: str) -> Any:
    """The one artist of an axes with a label."""
    (found,) = [
        artist
        for artist in (*ax.collections, *ax.patches, *ax.lines)
        if artist.get_label() == label
    ]
    return found


def parts(ax: Any) -> set[str]:
    return {artist.get_label() for artist in (*ax.collections, *ax.patches, *ax.lines)}


def saved(figure: Any, kind: str = "png") -> bytes:
    file = BytesIO()
    save_figure(figure, file, kind, dpi=40)
    return file.getvalue()


def drawn(scene: Scene, **chosen: Any) -> Any:
    """The axes of the trajectories, after a real drawing."""
    ax = draw_trajectories(scene, **chosen)
    saved(ax.figure)
    return ax


# ------------------------------------------------------------------ layers


def test_a_row_per_scene_and_a_panel_per_layer() -> None:
    scenes = [emerging(title="first"), square(title="second")]
    figure = draw_layers(scenes, layers=(0, 1, 30))
    assert [ax.get_title() for ax in figure.axes] == ["$k = 0$", "$k = 1$", "$k = 30$", "", "", ""]
    assert [ax.get_ylabel() for ax in figure.axes] == ["first", "", "", "second", "", ""]
    assert saved(figure).startswith(b"\x89PNG")


@pytest.mark.parametrize("layer", [0, 1, 5])
def test_stars_stand_where_the_leaders_of_the_layer_are(layer: int) -> None:
    scene = emerging()
    (ax,) = draw_layers(scene, layers=(layer,)).axes
    leaders = scene.leaders_at(layer)
    assert len(leaders) == (2 if layer == 0 else 3)
    assert np.array_equal(part(ax, "leaders").get_offsets(), scene.zs[layer][leaders])
    tint = colours(scene)
    assert part(ax, "leaders").get_facecolor()[:, :3] == pytest.approx(
        np.array([rgb(tint[i]) for i in leaders.tolist()])
    )


@pytest.mark.parametrize("layer", [0, 2])
def test_dots_have_the_colours_of_the_tokens_followed(layer: int) -> None:
    scene = emerging()
    (ax,) = draw_layers(scene, layers=(layer,)).axes
    others = np.setdiff1d(np.arange(scene.tokens), scene.leaders_at(layer))
    dots = part(ax, "tokens")
    assert np.array_equal(dots.get_offsets(), scene.zs[layer][others])
    assert dots.get_facecolor()[:, :3] == pytest.approx(token_colours(scene, layer)[others])


def test_the_polytope_is_filled_with_its_corners_in_order() -> None:
    (ax,) = draw_layers(square(), layers=(0,)).axes
    corners = part(ax, "polytope").get_xy()
    assert {tuple(corner) for corner in corners} == {(x, y) for x in (-1, 1) for y in (-1, 1)}
    sides = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    assert sides.tolist() == [2.0] * 4


def test_panels_of_a_row_share_one_square_frame() -> None:
    axes = draw_layers(emerging(), layers=(0, 30)).axes
    assert axes[0].get_xlim() == axes[1].get_xlim()
    width, height = (np.diff(lim)[0] for lim in (axes[0].get_xlim(), axes[0].get_ylim()))
    assert width == pytest.approx(height)


def test_layers_need_something_to_draw() -> None:
    with pytest.raises(InputError, match="needs a scene and a layer; got 0 and 5"):
        draw_layers([])
    with pytest.raises(InputError, match="layer 5 is not in the scene"):
        draw_layers(emerging(3))
    with pytest.raises(InputError, match=r"Choose two, as in `axes=\(0, 1\)`"):
        draw_layers(cloud(6, 3, 1), layers=(0,))


# ------------------------------------------------------------------ trajectories


def test_a_tail_goes_through_every_saved_position() -> None:
    scene = emerging(4)
    ax = drawn(scene)
    tails = part(ax, "tails").get_segments()
    assert len(tails) == scene.tokens
    assert all(np.array_equal(tail, scene.zs[:, i]) for i, tail in enumerate(tails))
    assert part(ax, "tails").get_color()[:, :3] == pytest.approx(token_colours(scene, -1))


def test_stars_carry_the_names_of_their_leaders() -> None:
    scene = emerging(names=[f"word {i}" for i in range(8)])
    ax = drawn(scene)
    places = {text.get_text(): text.xy for text in ax.texts}
    assert places == {
        leader.name: tuple(scene.zs[-1][leader.index].tolist()) for leader in scene.leaders
    }


@pytest.mark.parametrize("d", [1, 2])
def test_names_stand_inside_the_axes(d: int) -> None:
    ax = drawn(cloud(40, d, 30, seed=1))
    assert ax.texts
    frame = ax.get_window_extent()
    for name in ax.texts:
        box = name.get_window_extent()
        assert frame.x0 <= box.x0 < box.x1 <= frame.x1


def test_many_leaders_are_drawn_without_names() -> None:
    scene = scene_from(np.stack([np.cos(t := np.arange(40) / 6.5), np.sin(t)], axis=1), 1)
    assert len(scene.leaders) == 40
    assert len(drawn(scene).texts) == 0
    round_about = by_hand(np.zeros((1, 40, 3)), [range(40)], tuple(range(40)))
    assert len(draw_trajectories_3d(round_about).texts) == 0


def test_limits_without_a_leader_are_marked() -> None:
    ax = drawn(square())
    marked = {tuple(point) for point in part(ax, "rests").get_offsets().tolist()}
    assert marked == {(-1.0, 0.0), (1.0, 0.0)}
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "limit point without a leader" in legend
    assert "follows several, or none" in legend
    plain = [text.get_text() for text in drawn(emerging()).get_legend().get_texts()]
    assert "limit point without a leader" not in plain


def test_the_chosen_coordinates_are_drawn() -> None:
    scene = cloud(12, 5, 3)
    ax = drawn(scene, axes=(4, 1))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("coordinate 4", "coordinate 1")
    leaders = scene.leader_indices
    assert np.array_equal(part(ax, "leaders").get_offsets(), scene.zs[-1][leaders][:, [4, 1]])


def test_one_coordinate_is_drawn_against_the_layer() -> None:
    scene = cloud(6, 1, 4)
    ax = drawn(scene)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("layer", "position")
    tail = part(ax, "tails").get_segments()[2]
    assert tail[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert np.array_equal(tail[:, 1], scene.zs[:, 2, 0])


def test_trajectories_are_drawn_into_given_axes() -> None:
    first = draw_trajectories(emerging(1))
    assert draw_trajectories(square(1), first) is first


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize(
    "z",
    [
        [[2.0, 1.0]],
        [[1.0, 1.0]] * 4,
        [[0.0, 0.0]] * 2,
        [[1e-300, 0.0], [0.0, -1e-300]],
        [[1e6, 1.0], [1e6, 1.0 + 1e-8]],
        [[1e200, 0.0], [0.0, 1.0]],
    ],
)
def test_extreme_systems_are_drawn(z: list[list[float]], d: int) -> None:
    scene = by_hand([np.array(z)[:, :d]] * 2, follows=[[0] * len(z)] * 2, leaders=(0,))
    assert "leaders" in parts(drawn(scene))
    assert saved(draw_layers(scene, layers=(0, 1))).startswith(b"\x89PNG")


def test_a_scene_without_leaders_or_limit_is_drawn() -> None:
    z = np.random.default_rng(0).normal(size=(3, 5, 2))
    ax = drawn(by_hand(z))
    assert len(part(ax, "leaders").get_offsets()) == 0
    assert "polytope" not in parts(ax)


def test_unknown_positions_and_limits_are_left_out() -> None:
    z = np.random.default_rng(0).normal(size=(3, 5, 2))
    z[1:, 4] = np.nan
    z[2, 3] = np.inf
    scene = by_hand(
        z, leaders=(0, 4), limit=np.full((5, 2), np.nan), points=np.full((1, 2), np.nan)
    )
    ax = drawn(scene)
    assert np.isfinite([*ax.get_xlim(), *ax.get_ylim()]).all()
    assert saved(draw_layers(scene, layers=(0, 2))).startswith(b"\x89PNG")


def test_ten_thousand_tokens_are_drawn_with_as_few_artists_as_ten() -> None:
    z = np.random.default_rng(0).normal(size=(4, 10_000, 2))
    many = by_hand(z, follows=np.zeros((4, 10_000), int), leaders=(0,))
    few = by_hand(z[:, :10], follows=np.zeros((4, 10), int), leaders=(0,))
    assert len(drawn(many).get_children()) == len(drawn(few).get_children())
    assert part(drawn(many), "tokens").get_alpha() < part(drawn(few), "tokens").get_alpha()


def test_hostile_names_and_titles_are_drawn_as_they_are() -> None:
    scene = emerging(3, names=HOSTILE, title="$\\frac{$")
    ax = drawn(scene)
    assert ax.get_title() == "$\\frac{$"
    assert [text.get_text() for text in ax.texts] == ["$\\frac$", "_x", "a\ufffdb"]
    assert saved(draw_layers(scene, layers=(0,)), "svg").startswith(b"<?xml")
    assert len(animate(scene, steps_between=1, size=80)) == 4
    space = cloud(8, 3, 1, names=HOSTILE, title="$\\frac{$")
    assert saved(draw_trajectories_3d(space).figure).startswith(b"\x89PNG")
    assert len(animate(space, steps_between=1, size=80)) == 2


# ------------------------------------------------------------------ space


def test_space_shows_leaders_tails_and_faces() -> None:
    scene = cloud(30, 3)
    ax = draw_trajectories_3d(scene)
    saved(ax.figure)
    star = np.stack([np.asarray(x) for x in part(ax, "leaders")._offsets3d], axis=1)
    wish = scene.zs[-1][scene.leader_indices]
    assert np.array_equal(np.sort(star, axis=0), np.sort(wish, axis=0))
    assert len(part(ax, "polytope").get_facecolor()) >= 1
    assert len(part(ax, "polytope")._faces) == len(scene.faces)
    assert {text.get_text().strip() for text in ax.texts} == {x.name for x in scene.leaders}


def test_space_draws_flat_and_thin_polytopes() -> None:
    flat = np.array([[1.0, 0, 0], [0, 1, 0], [-1, -1, 0], [0.1, 0.1, 0]])
    for z in (flat, flat[:2], flat[:1]):
        assert saved(draw_trajectories_3d(scene_from(z, 3)).figure).startswith(b"\x89PNG")


def test_space_needs_three_coordinates() -> None:
    with pytest.raises(InputError, match="Use `draw_trajectories`"):
        draw_trajectories_3d(emerging(1))
    with pytest.raises(InputError, match=r"Choose three, as in `axes=\(0, 1, 2\)`"):
        draw_trajectories_3d(cloud(5, 4, 1))
    with pytest.raises(InputError, match="three different coordinates from 0 to 3"):
        draw_trajectories_3d(cloud(5, 4, 1), axes=(0, 1, 1))
    assert draw_trajectories_3d(cloud(5, 4, 1), axes=(3, 1, 0)).get_xlabel() == "coordinate 3"


# ------------------------------------------------------------------ files


@pytest.mark.parametrize(
    ("kind", "magic"),
    [("png", b"\x89PNG\r\n"), ("pdf", b"%PDF-"), ("svg", b"<?xml"), (".SVG", b"<?xml")],
)
def test_a_scene_gives_the_same_file_every_time(kind: str, magic: bytes) -> None:
    first, second = (saved(draw_trajectories(emerging(3)).figure, kind) for _ in range(2))
    assert first.startswith(magic)
    assert first == second


def test_other_formats_are_refused() -> None:
    with pytest.raises(InputError, match="one of png, pdf, svg; got 'gif'"):
        saved(draw_trajectories(emerging(1)).figure, "gif")


def test_drawing_touches_neither_pyplot_nor_torch() -> None:
    code = (
        "import sys, numpy as np; from hardmax.plot.record import Scene;"
        "from hardmax.plot.page import page;"
        "s = Scene(np.zeros((1, 2, 2)), (0,), np.zeros((1, 2), int)); page(s);"
        "assert 'matplotlib' not in sys.modules;"
        "from hardmax.plot.figures import draw_layers; draw_layers(s, layers=(0,));"
        "assert not {'matplotlib.pyplot', 'torch'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
