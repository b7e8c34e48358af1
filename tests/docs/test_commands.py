"""The page of commands is what the help says now."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_commands_is_fresh() -> None:
    spec = importlib.util.spec_from_file_location("write_commands", DOCS / "write_commands.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (DOCS / "commands.md").read_text()
    assert written == module.text(), "run: python docs/write_commands.py"
