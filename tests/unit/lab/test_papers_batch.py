"""Items into a folder: kept, resumed, one failing not losing the others; command and page."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hardmax._errors import DataError, InputError, OutputError
from hardmax.cli.main import app
from hardmax.cli.reproduce import Item as Names
from hardmax.lab.papers import registry
from hardmax.lab.papers.batch import reproduce_items
from hardmax.lab.papers.outcome import Context, Item, Outcome, claim, near
from hardmax.plot.reproduction import said

DOT = bytes.fromhex("89504e470d0a1a0a")


def item(name: str, *, holds: bool = True, error: Exception | None = None) -> Item:
    def compute(context: Context) -> Outcome:
        CALLS.append(name)
        context.progress(name, 1, 2)
        if error is not None:
            raise error
        found = (claim(f"{name} <b>", holds, {"x": 1.5}), near("y", 1.0, 2.0, 0.1, why="chance"))
        return Outcome(
            name, f"Title of {name}", "a paper", context, found, {"n": [1, 2]},
            {f"{name}.png": lambda file: file.write(DOT)}, (f"why {name}", "shared reason"),
        )  # fmt: skip

    return Item(name, name, compute)


CALLS: list[str] = []


@pytest.fixture
def items(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put other items into the register."""
    CALLS.clear()

    def put(*made: Item) -> None:
        monkeypatch.setattr(registry, "ITEMS", made)

    put(item("figure2"), item("losses"), item("fw-rates"))
    return put


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(app, ["reproduce", *args], catch_exceptions=False)


def test_the_command_knows_every_item() -> None:
    assert [str(name) for name in Names] == [entry.name for entry in registry.ITEMS]


def test_every_item_leaves_numbers_pictures_and_a_place_on_the_page(
    items: Any, tmp_path: Path
) -> None:
    told: list[str] = []
    batch = reproduce_items(
        [], Context(short=True), folder=tmp_path / "r", done=lambda name, _: told.append(name)
    )
    assert told == ["figure2", "losses", "fw-rates"]
    data = json.loads((tmp_path / "r" / "losses.json").read_text())
    assert (data["form"], data["numbers"], data["verdict"]) == ("short", {"n": [1, 2]}, "differs")
    assert data["made_with"]["seed"] == 0
    assert (tmp_path / "r" / "fw-rates.png").read_bytes() == DOT
    page = (tmp_path / "r" / "index.html").read_text()
    assert page.count("data:image/png;base64,") == 3
    assert page.count("<td>shared reason</td><td>figure2, losses, fw-rates</td>") == 1
    assert "figure2 &lt;b&gt;" in page
    assert "default-src 'none'" in page
    linked = re.findall(r"""\b(?:src|href|srcset|data)=["']([^"']*)""", page)
    assert {link.split(",")[0] for link in linked if link[0] != "#"} == {
        "data:", "data:image/png;base64"
    }  # fmt: skip
    with open(tmp_path / "r" / "comparisons.csv") as file:
        table = list(csv.DictReader(file))
    assert [row["item"] for row in table] == sorted([*told, *told], key=told.index)
    assert (table[0]["ours"], table[1]["paper"]) == ("{'x': 1.5}", "1.0")
    assert batch.sound


def test_finished_items_are_kept_and_settings_do_not_mix(items: Any, tmp_path: Path) -> None:
    reproduce_items(["losses"], Context(short=True), folder=tmp_path)
    batch = reproduce_items([], Context(short=True), folder=tmp_path)
    assert CALLS == ["losses", "figure2", "fw-rates"]
    assert batch.kept == ["losses"]
    with pytest.raises(OutputError, match=r"holds figure2 of another run \(form short, seed 0\)"):
        reproduce_items([], Context(seed=1), folder=tmp_path)
    reproduce_items(["losses"], Context(seed=1), folder=tmp_path, force=True)
    assert json.loads((tmp_path / "losses.json").read_text())["seed"] == 1
    assert json.loads((tmp_path / "figure2.json").read_text())["seed"] == 0


@pytest.mark.parametrize("damage", ["", "{}", '{"item": "losses"}', "[1]"])
def test_damaged_results_are_made_again(items: Any, tmp_path: Path, damage: str) -> None:
    (tmp_path / "losses.json").write_text(damage)
    assert reproduce_items(["losses"], Context(), folder=tmp_path).kept == []
    (tmp_path / "losses.png").unlink()
    assert reproduce_items(["losses"], Context(), folder=tmp_path).kept == []


def test_other_weights_are_another_run(items: Any, tmp_path: Path) -> None:
    weights = tmp_path / "w"
    weights.write_bytes(b"1")
    reproduce_items(["losses"], Context(weights=weights), folder=tmp_path)
    weights.write_bytes(b"2")
    with pytest.raises(OutputError, match=r"of another run \(other weights\)"):
        reproduce_items(["losses"], Context(weights=weights), folder=tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        reproduce_items(["losses"], Context(weights=tmp_path / "none"), folder=tmp_path)


def test_one_that_fails_does_not_lose_the_others(items: Any, tmp_path: Path) -> None:
    items(
        item("figure2", error=DataError("no reviews")), item("losses", error=MemoryError()),
        item("fw-cells", error=ZeroDivisionError("ours")), item("fw-rates"),
    )  # fmt: skip
    batch = reproduce_items([], Context(), folder=tmp_path)
    assert list(batch.records) == ["fw-rates"]
    assert batch.failed == {"figure2": "no reviews", "losses": "not enough memory"}
    assert batch.to_dict()["failed"]["fw-cells"] == "ZeroDivisionError('ours')"
    assert "Title of fw-rates" in (tmp_path / "index.html").read_text()


def test_a_place_that_is_no_folder_and_an_unknown_item_are_refused(
    items: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be a folder of results"):
        reproduce_items([], Context(), folder=tmp_path / "file")
    with pytest.raises(InputError, match="no item 'x'"):
        reproduce_items(["x"], Context(), folder=tmp_path)
    with pytest.raises(OutputError, match="cannot be made"):
        registry.reproduce("losses", Context(work=tmp_path / "file" / "work"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"), (True, "yes"), (False, "no"), (0.123456789, "0.12346"), (3, "3"),
        ({"a": 1.5}, "a: 1.5"), ([1, None], "1, none"), ("x" * 300, "x" * 237 + "..."),
    ],
)  # fmt: skip
def test_values_are_short_texts(value: Any, text: str) -> None:
    assert said(value) == text


# ------------------------------------------------------------------ the command


def test_items_are_printed_with_their_verdicts(items: Any, call: Any, tmp_path: Path) -> None:
    result = call("--short", "--seed", "4")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "losses: differs (agrees 1, differs 1; short form, seed 4" in result.stdout
    assert result.stdout.endswith("wrote reproduction/index.html: 3 items\n")
    again = call("--short", "--seed", "4")
    assert again.stdout.endswith("3 items (3 from an earlier run)\n")


def test_json_is_the_data_of_the_batch(items: Any, call: Any) -> None:
    result = call("losses", "--json", "--out", "r")
    data = json.loads(result.stdout)
    assert (data["folder"], data["failed"]) == ("r", {})
    assert data["items"][0]["comparisons"][1]["rule"] == "at most 0.1 apart (chance)"
    assert result.stderr == "wrote r/index.html: 1 item\n"


def test_exit_1_when_an_exact_fact_fails(items: Any, call: Any) -> None:
    items(item("figure2", holds=False), item("losses"))
    result = call("figure2", "losses")
    assert result.exit_code == 1
    assert result.stderr == "error: a fact that needs no training does not hold\n"


def test_exit_2_with_one_line_per_reason(items: Any, call: Any) -> None:
    reason = DataError("no\nreviews")
    items(item("losses", error=reason), item("leaders", error=reason), item("fw-rates"))
    result = call("--short")
    assert result.exit_code == 2
    assert result.stderr == "error: losses, leaders: no reviews\n"
    assert "wrote reproduction/index.html: 1 item" in result.stdout
    items(item("losses", error=reason))
    assert call("losses", "--out", "r").stdout == ""


def test_a_fault_of_ours_is_raised_when_the_others_are_done(items: Any, call: Any) -> None:
    items(item("losses", error=ZeroDivisionError("ours")), item("fw-rates"))
    with pytest.raises(ZeroDivisionError, match="ours"):
        call("--out", "r")
    assert CALLS == ["losses", "fw-rates"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("losses --out a.png", "--out a.png: expected a folder; only figure2 alone"),
        ("losses --training none", "--training none: there is no such place."),
        ("--weights none", "--weights none: there is no such place."),
        ("losses --device cuda", "--device cuda: torch finds no GPU here"),
        ("figure9", "'figure9' is not one of 'figure2', 'losses'"),
    ],
)
def test_mistakes_are_one_line_before_any_work(
    items: Any, call: Any, monkeypatch: pytest.MonkeyPatch, args: str, message: str
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    result = call(*args.split())
    assert (result.exit_code, result.stdout, CALLS) == (2, "", [])
    (line,) = result.stderr.splitlines()
    assert message in line
