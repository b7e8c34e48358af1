"""The README is true: its Python gives the outputs shown, and so do its commands."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from hardmax.cli.main import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```console\n\$ (.*?)\n(.*?)```", README, flags=re.S)
COMMANDS = dict(BLOCKS)


def run(command: str, folder: Path) -> str:
    """What a command prints, in a folder of its own, with the console script of this Python."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "COLUMNS": "100"}
    done = subprocess.run(
        command.split(), cwd=folder, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def untrained(line: str) -> str:
    """A line without what a training gives, which another machine rounds otherwise."""
    line = re.sub(r"^(trained|accuracy|leaders for \w+) .*", r"\1", line)
    return re.sub(r"(Without) the .*|^\w+ \(logit .*", r"\1", line)


def test_the_python_of_the_readme_gives_the_outputs_shown() -> None:
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.attempted >= 8
    assert result.failed == 0


def test_the_readme_shows_both_make_targets() -> None:
    assert {"make demo", "make test"} <= COMMANDS.keys()


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("hardmax ")])
def test_commands_print_what_the_readme_shows(command: str, tmp_path: Path) -> None:
    assert lines(run(command, tmp_path)) == lines(COMMANDS[command])


def test_make_demo_prints_what_the_readme_shows(tmp_path: Path) -> None:
    """The recipe of the target is run as it stands, the environment being there already."""
    makefile = (ROOT / "Makefile").read_text()
    recipe = re.search(r"^demo:.*\n\t\$\(BIN\)/(.*)$", makefile, flags=re.M)
    assert recipe is not None
    printed = lines(run(recipe.group(1), tmp_path))
    shown = lines(COMMANDS["make demo"])
    assert shown[-1] == printed[-1]
    rest = iter(map(untrained, printed))
    assert all(untrained(line) in rest for line in shown if line != "...")  # in this order
    right = [re.search(r"accuracy +([\d.]+)%", "\n".join(part)) for part in (shown, printed)]
    assert abs(float(right[0][1]) - float(right[1][1])) < 3
    assert (tmp_path / "hardmax-demo.html").stat().st_size > 10_000


def test_make_test_runs_the_whole_suite(request: pytest.FixtureRequest) -> None:
    """Where all folders are collected, the count shown is that of the suite, up to a twentieth."""
    make = shutil.which("make")
    assert make is not None
    plan = subprocess.run(
        [make, "-n", "-B", "test"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert re.search(r"pytest .*--cov-fail-under=95", plan)
    shown = re.search(r"^([\d,]+) passed", COMMANDS["make test"], flags=re.M)
    assert shown is not None
    items = request.session.items
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    if folders <= {item.path.parent for item in items}:
        assert abs(int(shown[1].replace(",", "")) / len(items) - 1) < 0.05


def test_links_and_pictures_of_the_readme_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_the_readme_names_every_command() -> None:
    table = README.split("| command | what it does |", 1)[1].split("\n\n", 1)[0]
    named = set(re.findall(r"`(?:hardmax )?(\w+)`", table))
    assert named == set(typer.main.get_command(app).commands)
