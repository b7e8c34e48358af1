"""A way to call the command line inside the process, in an empty folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hardmax.cli.main import app

Call = Callable[..., Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """`call("simulate", "triangle")` gives exit code, standard output and error."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> Result:
        return CliRunner().invoke(app, list(args), catch_exceptions=False)

    return run


@pytest.fixture
def refusal(call: Call) -> Callable[..., str]:
    """The one line of a refused call: exit status 2, nothing on standard output."""

    def run(*args: str) -> str:
        result = call(*args)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        (line,) = result.stderr.splitlines()
        assert line.startswith("error: ")
        return line

    return run
