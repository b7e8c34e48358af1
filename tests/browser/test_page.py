"""Pages in a real browser: what moves, what is said, what must not happen."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hardmax.cli.demo import demo_page
from hardmax.lab.demo import review_classifier
from hardmax.lab.reproduce import figure2
from hardmax.plot.colours import NOBODY, colours
from hardmax.plot.page import page
from hardmax.plot.scene import Scene, SceneLeader
from tests.unit.plot.scenes import by_hand, cloud, emerging, scene_from, square

pytestmark = pytest.mark.browser

SLIDER = "input[type=range]"
NAMES = ["acting", "plot", "boring", "great", "dull", "slow", "fine", "good"]
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
HOSTILE = "</script><script>window.broken=1</script><img src=x onerror='window.broken=1'>\"'\x00\n"


def dots(seen: Any) -> np.ndarray[Any, Any]:
    """Where the dots are on the paper: (n, 2), NaN for a hidden one."""
    return np.array(
        seen.page.eval_on_selector_all(
            "circle.dot[data-token]",
            """all => all.map(dot => dot.getAttribute("visibility") === "hidden" ? [NaN, NaN]
               : [Number(dot.getAttribute("cx")), Number(dot.getAttribute("cy"))])""",
        ),
        dtype=float,
    )


def fills(seen: Any) -> list[str]:
    script = 'all => all.map(dot => dot.getAttribute("fill"))'
    return list(seen.page.eval_on_selector_all("circle.dot[data-token]", script))


def stars(seen: Any) -> dict[int, list[float]]:
    """The visible stars by token, with their places on the paper."""
    found = seen.page.eval_on_selector_all(
        "path.star[data-leader]",
        """all => all.filter(star => star.getAttribute("visibility") === "visible")
           .map(star => [star.dataset.leader, star.getAttribute("transform")])""",
    )
    return {
        int(token): [float(x) for x in re.findall(r"-?[\d.]+", where)[:2]] for token, where in found
    }


def unscaled(paper: Any, z: Any) -> None:
    """Assert that the paper shows the positions at one scale, upright."""
    right, up = paper[:, 0], -paper[:, 1]
    scale = np.ptp(right) / np.ptp(z[:, 0])
    assert scale > 0
    assert right - right[0] == pytest.approx(scale * (z[:, 0] - z[0, 0]), abs=0.02)
    assert up - up[0] == pytest.approx(scale * (z[:, 1] - z[0, 1]), abs=0.02)


# ------------------------------------------------------------------ the layers


def test_the_slider_moves_the_tokens_as_the_scene_says(visit: Callable[..., Any]) -> None:
    scene = emerging(names=NAMES)
    seen = visit(page(scene))
    at_once = dots(seen)
    unscaled(at_once, scene.zs[0])
    seen.press(SLIDER, "ArrowRight", 2)
    unscaled(dots(seen), scene.zs[2])
    assert np.abs(dots(seen) - at_once).max() > 20
    seen.press(SLIDER, "End")
    unscaled(dots(seen), scene.zs[-1])
    seen.press(SLIDER, "Home")
    assert dots(seen) == pytest.approx(at_once)


def test_stars_appear_when_leaders_are_born(visit: Callable[..., Any]) -> None:
    seen = visit(page(emerging(names=NAMES)))
    assert set(stars(seen)) == {0, 2}
    seen.press(SLIDER, "ArrowRight")
    assert set(stars(seen)) == {0, 1, 2}
    places = dots(seen)
    for token, place in stars(seen).items():
        assert place == pytest.approx(places[token].tolist())


def test_dots_have_the_colours_of_the_tokens_followed(visit: Callable[..., Any]) -> None:
    scene = square(4)
    seen = visit(page(scene))
    tint = colours(scene)
    for row in range(2):
        assert fills(seen) == [tint.get(i, NOBODY) for i in scene.follows[row].tolist()]
        seen.press(SLIDER, "ArrowRight")
    assert NOBODY in fills(seen)


def test_the_description_follows_the_slider(visit: Callable[..., Any]) -> None:
    seen = visit(page(emerging(names=NAMES)))
    before = "Layer 0 of 30: 8 tokens, 2 leaders: acting, boring."
    after = "Layer 1 of 30: 8 tokens, 3 leaders: acting, plot, boring."
    picture = seen.page.get_by_role("img").first
    assert seen.text(".description") == before
    assert picture.get_attribute("aria-label") == before
    seen.press(SLIDER, "ArrowRight")
    assert seen.text(".description") == after
    assert picture.get_attribute("aria-label") == after
    assert seen.text(".controls output") == "1"
    assert seen.page.get_by_role("slider").get_attribute("aria-valuetext") == "layer 1"


def test_layers_that_were_not_saved_keep_their_numbers(visit: Callable[..., Any]) -> None:
    scene = Scene(np.zeros((2, 1, 2)), (3, 10), np.zeros((2, 1), int))
    seen = visit(page(scene))
    assert seen.text(".description") == "Layer 3 of 10: 1 token, no leader yet."
    seen.press(SLIDER, "ArrowRight")
    assert seen.text(".controls output") == "10"


def test_the_table_counts_the_followers_of_the_layer(visit: Callable[..., Any]) -> None:
    scene = emerging()
    seen = visit(page(scene))
    for row in (0, 1):
        for leader in scene.leaders:
            shown = seen.text(f'tr[data-leader="{leader.index}"] .followers')
            others = np.flatnonzero(scene.follows[row] == leader.index)
            assert int(shown) == len(set(others.tolist()) - {leader.index})
        unborn = seen.page.locator('tr[data-leader="1"]').get_attribute("class") or ""
        assert ("unborn" in unborn) == (row == 0)
        seen.press(SLIDER, "ArrowRight")


# ------------------------------------------------------------------ playing


def test_play_reaches_the_last_layer_and_stops(visit: Callable[..., Any]) -> None:
    scene = emerging(3)
    seen = visit(page(scene))
    seen.page.get_by_role("button", name="Play").press("Enter")
    assert seen.text("button.play") == "Pause"
    seen.page.get_by_role("button", name="Play").wait_for(timeout=20_000)
    assert seen.text(".controls output") == "3"
    unscaled(dots(seen), scene.zs[3])


def test_a_playing_token_glides_along_a_straight_line(visit: Callable[..., Any]) -> None:
    scene = by_hand([[[0, 0], [4, 4]], [[4, 0], [4, 4]]], leaders=(1,))
    seen = visit(page(scene))
    start = dots(seen)
    seen.press(SLIDER, "End")
    end = dots(seen)
    seen.page.get_by_role("button", name="Play").click()
    seen.page.wait_for_function(
        f"""() => {{ const x = Number(document.querySelector("circle.dot").getAttribute("cx"));
                 return x > {start[0, 0]} + 5 && x < {end[0, 0]} - 5; }}""",
        timeout=20_000,
    )


def test_moving_the_slider_pauses(visit: Callable[..., Any]) -> None:
    seen = visit(page(emerging()))
    seen.page.get_by_role("button", name="Play").click()
    seen.press(SLIDER, "End")
    assert seen.text("button.play") == "Play"
    assert seen.text(".controls output") == "30"


def test_who_wants_less_motion_sees_layers_only(visit: Callable[..., Any]) -> None:
    scene = by_hand([[[0, 0], [4, 4]], [[4, 0], [4, 4]], [[4, 1], [4, 4]]])
    seen = visit(page(scene), reduced_motion="reduce")
    seen.page.evaluate(
        """() => { window.seen = new Set();
          const dot = document.querySelector("circle.dot");
          new MutationObserver(() => window.seen.add(dot.getAttribute("cx")))
            .observe(dot, {attributes: true}); }"""
    )
    start = dots(seen)[0, 0]
    seen.page.get_by_role("button", name="Play").click()
    seen.page.get_by_role("button", name="Play").wait_for(timeout=20_000)
    places = {float(x) for x in seen.page.evaluate("() => [...window.seen]")}
    assert places <= {start, dots(seen)[0, 0]}
    assert seen.text(".controls output") == "2"


# ------------------------------------------------------------------ one token


def test_pointing_at_a_token_says_where_it_is_and_whom_it_follows(
    visit: Callable[..., Any],
) -> None:
    seen = visit(page(emerging(names=NAMES)))
    box = seen.page.locator('circle.dot[data-token="6"]').bounding_box()
    seen.page.mouse.move(box["x"] + box["width"] / 2 + 2, box["y"] + box["height"] / 2)
    assert seen.text(".token") == "Token 6 “fine” at (0.8, 0.1); it follows 0 “acting”."
    seen.press(SLIDER, "End")
    assert seen.text(".token") == "Token 6 “fine” at (1, 0.3333); it follows 0 “acting”."


def test_arrow_keys_go_from_token_to_token(visit: Callable[..., Any]) -> None:
    seen = visit(page(square(2)))
    seen.press(".stage", "ArrowRight")
    assert seen.text(".token") == "Token 0 at (1, 1); it is a leader."
    seen.press(".stage", "ArrowLeft")
    assert seen.text(".token").startswith("Token 6 at (0.25, 0.4); it follows 0.")
    seen.press(".stage", "ArrowLeft", 2)
    assert seen.text(".token") == "Token 4 at (−0.5, 0); it follows several tokens, or none."
    ring = seen.page.locator("circle.ring")
    assert ring.get_attribute("visibility") == "visible"
    assert float(ring.get_attribute("cx")) == pytest.approx(dots(seen)[4, 0], abs=0.01)


def test_a_token_without_a_position_is_hidden(visit: Callable[..., Any]) -> None:
    z = np.ones((2, 3, 2))
    z[:, 1], z[1, 2] = np.nan, np.inf
    seen = visit(page(by_hand(z)))
    assert np.isnan(dots(seen)).any(axis=1).tolist() == [False, True, False]
    seen.press(SLIDER, "ArrowRight")
    assert np.isnan(dots(seen)).any(axis=1).tolist() == [False, True, True]
    seen.press(".stage", "ArrowRight", 2)
    assert seen.text(".token").startswith("Token 1 has no known position")


# ------------------------------------------------------------------ other dimensions


def test_space_turns_by_dragging_and_by_keys(visit: Callable[..., Any]) -> None:
    scene = cloud(20, 3, 3)
    seen = visit(page(scene))
    before = dots(seen)
    box = seen.page.locator(".stage").bounding_box()
    seen.page.mouse.move(box["x"] + 200, box["y"] + 200)
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + 290, box["y"] + 200, steps=3)
    seen.page.mouse.up()
    turned = dots(seen)
    assert np.abs(turned - before).max() > 10
    seen.page.mouse.move(box["x"] + 100, box["y"] + 250)
    assert dots(seen) == pytest.approx(turned)
    seen.press(".stage", "Shift+ArrowUp", 20)
    flat = dots(seen)
    assert np.abs(flat - turned).max() > 10
    radius = np.linalg.norm(scene.zs[0] - scene.zs[0].mean(axis=0), axis=1).max()
    assert radius > 0
    assert ((flat > 0) & (flat < 640)).all()


def test_from_straight_above_space_shows_its_first_two_coordinates(
    visit: Callable[..., Any],
) -> None:
    scene = cloud(15, 3, 1)
    seen = visit(page(scene))
    seen.press(".stage", "Shift+ArrowDown", 20)
    paper = dots(seen)
    apart = np.linalg.norm(paper - paper[0], axis=1)
    wish = np.linalg.norm(scene.zs[0, :, :2] - scene.zs[0, 0, :2], axis=1)
    assert apart / apart.max() == pytest.approx(wish / wish.max(), abs=2e-3)


def test_one_coordinate_runs_from_left_to_right(visit: Callable[..., Any]) -> None:
    scene = cloud(6, 1, 4)
    seen = visit(page(scene))
    first = dots(seen)
    assert np.ptp(first[:, 0]) == 0
    assert np.argsort(-first[:, 1]).tolist() == np.argsort(scene.zs[0, :, 0]).tolist()
    seen.press(SLIDER, "ArrowRight")
    assert dots(seen)[0, 0] > first[0, 0] + 100


def test_of_many_coordinates_two_are_shown(visit: Callable[..., Any]) -> None:
    scene = cloud(9, 6, 1)
    seen = visit(page(scene, axes=(5, 2)))
    unscaled(dots(seen), scene.zs[0][:, [5, 2]])
    assert "coordinate 5 and coordinate 2 of 6" in seen.text(".hint")


@pytest.mark.parametrize("z", [[[2.0, 1.0]], [[1.0, 1.0]] * 3, [[0.0]] * 2, [[1.0, 2.0, 3.0]] * 2])
def test_small_systems_are_shown(visit: Callable[..., Any], z: list[list[float]]) -> None:
    seen = visit(page(scene_from(z, 2)))
    assert np.isfinite(dots(seen)).all()
    seen.press(SLIDER, "End")
    assert np.isfinite(dots(seen)).all()


# ------------------------------------------------------------------ what must not happen


def test_hostile_texts_are_shown_and_never_run(visit: Callable[..., Any]) -> None:
    scene = Scene(
        np.array([[[0.0, 0.0], [1.0, 1.0]]]),
        (0,),
        np.array([[1, 1]]),
        (SceneLeader(1, 0, HOSTILE, (1,)),),
        names=(HOSTILE, HOSTILE),
        title=HOSTILE,
        status=HOSTILE,
        notes={"certificate": HOSTILE, HOSTILE: HOSTILE},
    )
    seen = visit(page(scene))
    seen.press(".stage", "ArrowRight")
    seen.page.locator("summary").click()
    assert seen.page.evaluate("() => window.broken") is None
    assert seen.page.locator("img").count() == 0
    for place in ("h1", ".status", "td bdi", ".token", "dd"):
        assert "<script>window.broken=1" in seen.text(place)
    assert "<script>" in (seen.page.locator("svg text.name").text_content() or "")


def test_a_foreign_script_may_not_run(visit: Callable[..., Any]) -> None:
    html = page(emerging(1)).replace("</body>", "<script>window.broken = 1</script></body>")
    seen = visit(html)
    assert seen.page.evaluate("() => window.broken") is None
    assert any("Content Security Policy" in line for line in seen.wrong)
    seen.wrong.clear()


def test_several_scenes_move_apart(visit: Callable[..., Any]) -> None:
    seen = visit(page([emerging(5, title="One"), square(5, title="Two")], title="Both"))
    seen.page.locator(SLIDER).nth(1).press("End")
    outputs = seen.page.locator(".controls output").all_inner_texts()
    assert outputs == ["0", "5"]


def test_without_javascript_the_leaders_can_still_be_read(visit: Callable[..., Any]) -> None:
    seen = visit(page(emerging(names=NAMES)), java_script_enabled=False)
    assert seen.text("tbody tr").split() == ["acting", "0", "0", "1", "3", "(1,", "0.333)"]
    assert seen.text("noscript") == "The picture needs JavaScript; the table does not."


# ------------------------------------------------------------------ screens


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_both_schemes(visit: Callable[..., Any], scheme: str) -> None:
    seen = visit(page(emerging()), color_scheme=scheme)
    ink, paper = seen.page.evaluate(
        """() => { const style = getComputedStyle(document.body);
          return [style.color, style.backgroundColor]; }"""
    )
    ink, paper = (brightness(colour) for colour in (ink, paper))
    assert (paper > ink) == (scheme == "light")
    assert contrast(ink, paper) > 7
    muted = brightness(
        seen.page.evaluate("() => getComputedStyle(document.querySelector('.legend')).color")
    )
    assert contrast(muted, paper) > 4.5


def brightness(colour: str) -> float:
    """Relative luminance of "rgb(r, g, b)", as in WCAG 2."""
    parts = np.array([int(x) for x in re.findall(r"\d+", colour)[:3]]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(a: float, b: float) -> float:
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


@pytest.mark.parametrize("d", [2, 3])
def test_a_phone_needs_no_sideways_scroll(visit: Callable[..., Any], d: int) -> None:
    names = ["a-very-long-word-without-any-space-" * 3] * 30
    seen = visit(page(cloud(30, d, 3, names=names, title="T" * 200)), **PHONE)
    wide = seen.page.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= 360
    assert seen.page.locator("button.play").bounding_box()["height"] >= 32


@pytest.mark.parametrize("width", [360, 962, 1280])
@pytest.mark.parametrize("d", [2, 3])
def test_the_table_of_leaders_shows_its_last_column(
    visit: Callable[..., Any], d: int, width: int
) -> None:
    seen = visit(page(cloud(60, d, seed=3)), viewport={"width": width, "height": 740})
    region = "div.wide:has(tr[data-leader])"
    hidden = seen.page.eval_on_selector(region, "box => box.scrollWidth - box.clientWidth")
    assert hidden == 0


def test_a_tap_chooses_a_token(visit: Callable[..., Any]) -> None:
    seen = visit(page(emerging(names=NAMES)), **PHONE)
    box = seen.page.locator('circle.dot[data-token="4"]').bounding_box()
    seen.page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert seen.text(".token").startswith("Token 4 “dull”")


def test_everything_can_be_reached_by_tab(visit: Callable[..., Any]) -> None:
    seen = visit(page(emerging(2)))
    reached = []
    for _ in range(5):
        seen.page.keyboard.press("Tab")
        reached.append(
            seen.page.evaluate(
                "() => document.activeElement.className || document.activeElement.tagName"
            )
        )
    assert reached == ["stage plane", "play", "INPUT", "wide", "SUMMARY"]


def test_the_page_of_the_demo_explains_a_review_and_steps_through_the_arrangements(
    visit: Callable[..., Any],
) -> None:
    reviews = review_classifier()
    seen = visit(demo_page(figure2(), reviews))
    assert seen.page.locator("section.scene").count() == 5
    for number, last in enumerate([2, 30, 30, 30, 30]):
        scene = f"#scene-{number}"
        seen.press(f"{scene} {SLIDER}", "End")
        assert seen.text(f"{scene} output") == str(last)
    assert seen.text(".review").split() == reviews.explanation.text.split()
    stars = seen.page.locator("#scene-0 path.star[visibility=visible]")
    assert stars.count() == len(reviews.explanation.leaders)
    shown = "img => img.complete && img.naturalWidth > 300"
    assert seen.page.eval_on_selector("img", shown)
