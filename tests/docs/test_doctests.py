"""The examples of docstrings and of the documentation give the outputs they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "hardmax"
MODULES = sorted(
    ".".join(("hardmax", *p.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for p in PACKAGE.rglob("*.py")
    if p.stem != "__main__" and ">>>" in p.read_text()
)
PAGES = sorted(p for p in (ROOT / "docs").glob("*.md") if ">>>" in p.read_text())


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module_are_true(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_of_a_page_are_true(page: Path) -> None:
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 0
    assert result.failed == 0
