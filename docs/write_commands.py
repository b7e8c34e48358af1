"""Write docs/commands.md from the help texts: python docs/write_commands.py."""

from __future__ import annotations

import re
from pathlib import Path

import typer
from typer.testing import CliRunner

from hardmax.cli.main import app

PAGE = Path(__file__).with_name("commands.md")
HEAD = """# Commands

Each command is one call of the library plus printing. `--json` prints exactly the data of the
Python object. Exit status: 0 done, 1 a claim does not hold, 2 a mistake in what was given (one
line on standard error), 130 interrupted.
"""


def names() -> list[str]:
    """All commands, and the commands of groups."""
    found = []
    for name, command in typer.main.get_command(app).commands.items():
        found.append(name)
        found += [f"{name} {sub}" for sub in getattr(command, "commands", {})]
    return found


def text() -> str:
    """The page."""
    runner = CliRunner(env={"COLUMNS": "96", "TERM": "dumb", "NO_COLOR": "1"})
    parts = [HEAD]
    for name in names():
        shown = runner.invoke(app, [*name.split(), "--help"]).stdout
        lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()]
        body = "\n".join(lines).strip("\n")
        parts.append(f"## {name}\n\n```text\n{body}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(text())
