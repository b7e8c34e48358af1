"""The command line as a whole: help, exit statuses, one line per mistake."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hardmax
from tests.unit.cli.conftest import Call

COMMANDS = (
    "demo",
    "simulate",
    "equilibrium",
    "control",
    "sweep",
    "train",
    "evaluate",
    "predict",
    "explain",
    "overview",
    "faithfulness",
    "construct",
    "reproduce",
    "data",
)
NEEDS_A_DOWNLOAD = (  # tested on small data elsewhere
    "hardmax data imdb",
    "hardmax train imdb",
    "hardmax reproduce --short",
    "hardmax reproduce accuracies leaders",
)
NEEDS_A_PIPE = ("cat ",)
REVIEWS = [
    ("good and warm", "positive"),
    ("cold and bad", "negative"),
    ("fine in the end", "positive"),
    ("no use at all", "negative"),
    ("a warm welcome", "positive"),
    ("a bad start", "negative"),
    ("good food and fine rooms", "positive"),
    ("cold food", "negative"),
]
SEQUENCES = {"sequences": [[[0, 1], [1, 0]], [[0, 1], [1, 1]], [[1, 0]]], "labels": [0, 1, 0]}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small classifier, trained once."""
    from hardmax import HardmaxClassifier

    texts, labels = zip(*REVIEWS * 4, strict=True)
    folder = tmp_path_factory.mktemp("saved") / "model"
    HardmaxClassifier(2, 1, members=1, min_count=1, epochs=2).fit(list(texts), list(labels)).save(
        folder
    )
    return folder


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small constructed network."""
    from hardmax import construct

    folder = tmp_path_factory.mktemp("constructed") / "net"
    construct(SEQUENCES["sequences"], SEQUENCES["labels"]).save(folder)
    return folder


def _process(*args: str, **settings: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hardmax", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, **settings)


def _examples(help_text: str) -> list[str]:
    """The paragraphs after the heading, which the help wraps, as one line each."""
    paragraphs = re.split(r"\n\s*\n", help_text.partition("Example")[2])
    lines = [" ".join(paragraph.split()) for paragraph in paragraphs]
    return [line for line in lines if line.startswith("hardmax ")]


def test_help_of_everything_imports_nothing_heavy() -> None:
    calls = [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)]
    code = (
        "import sys\nfrom hardmax.cli.main import main\n"
        f"for args in {calls!r}:\n"
        "    sys.argv[1:] = args\n"
        "    try:\n        main()\n"
        "    except SystemExit as end:\n        assert end.code == 0\n"
        "heavy = 'torch numba matplotlib scipy sklearn PIL numpy'\n"
        "sys.stderr.write(' '.join(m for m in heavy.split() if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.count("Usage:") == 1 + len(COMMANDS)


def test_help_lists_every_command_and_no_arguments_show_it(call: Call) -> None:
    text = call("--help").stdout
    assert all(f" {name} " in text for name in COMMANDS)
    assert call().stdout.strip() == text.strip()
    assert call().exit_code == 0
    assert call("-h").stdout == text


def test_version_is_that_of_the_package(call: Call) -> None:
    assert call("--version").stdout == f"hardmax {hardmax.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_ends_with_an_example(call: Call, name: str) -> None:
    examples = _examples(call(name, "--help").stdout)
    assert examples
    assert all(example.startswith(f"hardmax {name}") for example in examples)


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_every_example_in_the_help_works(
    call: Call, name: str, model: Path, net: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hardmax.learn.presets._STEPS", 1)  # short trainings
    examples = _examples(call(*filter(None, [name]), "--help").stdout)
    rows = [f"{text},{stars}" for text, stars in REVIEWS]
    Path("reviews.csv").write_text("\n".join(["review,stars", *rows]) + "\n")
    Path("data.json").write_text(json.dumps(SEQUENCES))
    Path("sequences.json").write_text(json.dumps({"sequences": SEQUENCES["sequences"]}))
    Path("review.txt").write_text("warm rooms, but cold food")
    for example in examples:
        if example.startswith(NEEDS_A_DOWNLOAD + NEEDS_A_PIPE):
            continue
        for folder in ("model", "net"):
            shutil.rmtree(folder, ignore_errors=True)
        if name != "train":
            shutil.copytree(model, "model")
        if name != "construct":
            shutil.copytree(net, "net")
        result = call(*shlex.split(example)[1:])
        assert result.exit_code == 0, (example, result.output)
        assert result.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("simulat triangle", "No such command 'simulat'. Did you mean 'simulate'? See: hardmax"),
        ("simulate", "Missing argument 'SOURCE'. See: hardmax simulate --help"),
        ("simulate triangle --dept 3", "No such option: --dept"),
        ("simulate triangle --depth x", "Invalid value for '--depth'"),
        ("simulate triangle --depth -1", "Invalid value for '--depth'"),
        ("simulate triangle --seed -1", "Invalid value for '--seed'"),
        ("simulate triangle --normalization up", "'up' is not one of 'rescale', 'none', 'sphere'"),
        ("simulate triangle --dtype float16", "'float16' is not one of 'float64', 'float32'"),
        ("reproduce figure9", "'figure9' is not one of 'figure2', 'losses'"),
        ("demo more", "Got unexpected extra argument"),
    ],
)
def test_mistyped_commands_are_refused_in_one_line(
    refusal: Callable[..., str], args: str, message: str
) -> None:
    assert message in refusal(*args.split())


def test_interruption_ends_with_130_and_one_line(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hardmax.dynamics.run

    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(hardmax.dynamics.run, "simulate", interrupted)
    result = call("simulate", "triangle")
    assert result.exit_code == 130
    assert result.stderr == "interrupted\n"


def test_too_little_memory_is_one_line(
    refusal: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import hardmax.dynamics.run

    def large(*args: object, **kwargs: object) -> None:
        raise MemoryError

    monkeypatch.setattr(hardmax.dynamics.run, "simulate", large)
    assert "not enough memory for this size" in refusal("simulate", "triangle")


def test_a_fault_of_ours_shows_its_traceback(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    import hardmax.dynamics.run

    def faulty(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(hardmax.dynamics.run, "simulate", faulty)
    with pytest.raises(ZeroDivisionError, match="ours"):
        call("simulate", "triangle")


def test_real_process_reports_a_mistake_with_status_2() -> None:
    done = _process("simulate", "trianlge")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: .*Did you mean triangle\?\n", done.stderr)


def test_a_reader_that_leaves_early_is_not_a_fault() -> None:
    command = f"{sys.executable} -m hardmax simulate gaussian:n=3000 --depth 1 --json | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("{\n", "")


def test_a_pipe_gets_whole_lines_and_plain_characters_where_it_takes_no_others() -> None:
    settings = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "40"}
    done = _process("equilibrium", "emerging", "--alpha", "1/2", "--exact", env=settings)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert "\x1b" not in done.stdout
    assert "(-1/18, 5/36)" in done.stdout
    assert "every class follows a leader alone from layer 1 on\n" in done.stdout
