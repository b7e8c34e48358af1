"""A training from the command line: interrupted, killed, on a terminal, in two processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import Result

from hardmax.estimators.classifier import HardmaxClassifier, load
from hardmax.learn.checkpoint import Checkpoint
from tests.unit.cli.test_cli_train import FAST, call, trained

__all__ = ["call", "trained"]
Call = Callable[..., Result]
ONE = ["train", "reviews.csv", "--out", "m", *FAST, "--set", "members=2"]
LONG = ["train", "corpus", "--out", "m", "--epochs", "25", "--set", "members=2", "--ngrams", "1"]
LONG += ["--dim", "2", "--heads", "1"]


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Ctrl-C after so many checkpoints; 0 for none."""
    write = Checkpoint.write

    def stop(count: int) -> None:
        left = [count]

        def later(self: Checkpoint, *args: Any) -> None:
            write(self, *args)
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt

        monkeypatch.setattr(Checkpoint, "write", later)

    return stop


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("count", [1, 6])
def test_after_an_interruption_the_same_command_goes_on_to_the_same_model(
    call: Call, cut: Callable[[int], None], count: int
) -> None:
    assert call(*ONE).exit_code == 0
    whole = files(Path("m"))
    cut(count)
    again = [*ONE[:3], "n", *ONE[4:]]
    stopped = call(*again)
    assert stopped.exit_code == 130
    assert "kept in n.part.0" in stopped.stderr
    assert "give the same command again" in stopped.stderr
    assert not Path("n").exists()
    cut(0)
    assert call(*again).exit_code == 0
    assert files(Path("n")) == whole
    assert [path.name for path in Path().glob("*.part*")] == []


def test_an_interruption_in_the_first_epoch_keeps_nothing_and_says_so(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hardmax.learn.trainer.Trainer.step", stop)
    result = call(*ONE)
    assert result.exit_code == 130
    assert "nothing is kept" in result.stderr


def test_a_checkpoint_that_was_named_stays(call: Call) -> None:
    assert call(*ONE, "--checkpoint", "here").exit_code == 0
    assert sorted(path.name for path in Path().glob("here*")) == ["here.0", "here.1"]


def test_what_another_training_left_is_named_and_not_overwritten(
    call: Call, cut: Callable[[int], None]
) -> None:
    cut(1)
    assert call(*ONE).exit_code == 130
    left = Path("m.part.0").read_bytes()
    cut(0)
    result = call(*ONE, "--set", "alpha=2")
    assert result.exit_code == 2
    assert "m.part.0: the checkpoint of another training" in result.stderr
    assert Path("m.part.0").read_bytes() == left


def test_any_parameter_can_be_set(call: Call) -> None:
    more = ["alpha=0.5", "A=[[1,0],[0,2]]", 'stop_words=["and"]', "schedule=constant"]
    assert call(*ONE, *(part for pair in more for part in ("--set", pair))).exit_code == 0
    s = load("m").settings_
    assert (s.alpha, s.stop_words, s.schedule, s.A[1]) == (
        0.5, ("and",), "constant", ((1.0, 0.0), (0.0, 2.0)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("colour=1", "expected NAME=VALUE"),
        ("alpha", "expected NAME=VALUE"),
        ("callbacks=1", "expected NAME=VALUE"),
        ("device=cpu", "expected NAME=VALUE"),
        ("alpha=no", "`alpha` must be"),
    ],
)
def test_parameters_that_do_not_exist_or_fit_are_one_line(
    call: Call, pair: str, message: str
) -> None:
    result = call(*ONE, "--set", pair)
    assert result.exit_code == 2
    assert message in result.stderr.splitlines()[-1]


def test_the_preset_of_the_paper_trains_from_its_name(call: Call) -> None:
    args = ["--preset", "paper", "--epochs", "2", "--out", "p"]
    assert call("train", "reviews.csv", *args).exit_code == 0
    s = load("p").settings_
    assert (s.temperature, s.depth, s.max_words) == (0.001, 8, 128)


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", **more}


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "hardmax", *args]


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    env, rng = environment(), np.random.default_rng(1)
    subprocess.run(command(*LONG), cwd=tmp_path, env=env, check=True, capture_output=True)
    other = [*LONG[:3], "n", *LONG[4:]]
    kills = 0
    for wait in rng.uniform(0.02, 0.8, 2):
        run = subprocess.Popen(command(*other), cwd=tmp_path, env=env, stderr=subprocess.PIPE)
        before = {p.name: p.stat().st_mtime_ns for p in tmp_path.glob("n.part*")}
        while run.poll() is None and before == {
            p.name: p.stat().st_mtime_ns for p in tmp_path.glob("n.part*")
        }:
            time.sleep(0.01)  # until this run has written something itself
        time.sleep(wait)
        run.send_signal(signal.SIGKILL)
        kills += run.wait() == -signal.SIGKILL
        assert run.stderr is not None
        run.stderr.close()
    if not (tmp_path / "n").exists():
        subprocess.run(command(*other), cwd=tmp_path, env=env, check=True, capture_output=True)
    assert kills >= 1
    assert files(tmp_path / "n") == files(tmp_path / "m")
    assert [path.name for path in tmp_path.iterdir() if path.name not in "mn"] == []


@pytest.mark.slow
def test_a_terminal_shows_loss_validation_and_time_left(tmp_path: Path) -> None:
    import pty

    lead, follow = pty.openpty()
    args = command(*LONG, "--validation", "0.2")
    run = subprocess.Popen(
        args, cwd=tmp_path, env=environment(TERM="xterm", COLUMNS="100"), stderr=follow,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    os.close(follow)
    shown = b""
    while True:
        try:
            part = os.read(lead, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    out, _ = run.communicate(timeout=60)
    os.close(lead)
    assert run.returncode == 0
    words = shown.decode(errors="replace")
    seen = re.search(r"epoch \d+ of 50, loss \d\.\d+, validation 0\.\d+, \d:\d\d left", words)
    assert seen is not None
    assert b"epoch" not in out.splitlines()[0]


@pytest.mark.slow
def test_two_processes_of_torchrun_save_one_model(tmp_path: Path) -> None:
    args = ["train", "corpus", "--out", "m", "--epochs", "3", "--set", "members=1"]
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run(
        [*run, "-m", "hardmax", *args], cwd=tmp_path, env=environment(), capture_output=True,
        text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("saved m") == 1
    from hardmax.learn.data import corpus

    texts, labels = corpus("train")
    alone = HardmaxClassifier(epochs=3, members=1).fit(texts, labels).decision_function(texts)
    assert np.allclose(load(tmp_path / "m").decision_function(texts), alone, atol=1e-2)
