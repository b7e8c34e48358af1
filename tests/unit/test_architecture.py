"""The house rules that a machine can check: ranks, sizes, honest tests."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "hardmax"
RANKS = {
    "_types": 0,
    "_errors": 0,
    "_check": 0.5,
    "io": 1,
    "rational": 1,
    "corpus": 1,
    "tokens": 2,
    "select": 3,
    "dynamics": 4,
    "analysis": 5,
    "exact": 5,
    "learn": 6,
    "plot": 7,
    "explain": 8,
    "estimators": 9,
    "lab": 10,
    "cli": 11,
    "explorer": 11,
    "__main__": 12,
    "__init__": 12,
}
SOURCES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def part_of(module: str) -> str:
    """The ranked part of a dotted name: hardmax.plot.scene -> plot."""
    names = module.split(".")
    return names[1] if len(names) > 1 else "__init__"


def imports_of(path: Path) -> set[str]:
    """Dotted names of our modules that a file imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if (node.module or "").split(".")[0] == "hardmax":
                found |= {f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.split(".")[0] == "hardmax"}
    return found


def test_every_part_of_the_package_has_a_rank() -> None:
    parts = {p.relative_to(PACKAGE).parts[0].removesuffix(".py") for p in SOURCES}
    assert parts <= RANKS.keys()


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_modules_import_only_from_lower_ranks_or_their_own_folder(path: Path) -> None:
    here = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for module in imports_of(path):
        there = part_of(module)
        if there == "__version__" or there not in RANKS:
            there = "__init__"
        allowed = there == here or RANKS[there] < RANKS[here] or module == "hardmax.__version__"
        assert allowed, f"{here} (rank {RANKS[here]}) imports {module}"


def test_exact_sees_neither_analysis_nor_learn() -> None:
    seen = {m for p in (PACKAGE / "exact").rglob("*.py") for m in imports_of(p)}
    assert not {m for m in seen if part_of(m) in ("analysis", "learn")}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_and_functions_stay_readable(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            lines = node.end_lineno - _first(node).lineno + 1
            assert lines <= 65, f"{node.name} has {lines} lines"


def _first(function: ast.FunctionDef) -> ast.stmt:
    """The first statement: a signature with many options and its docstring are no burden."""
    described = ast.get_docstring(function) is not None and len(function.body) > 1
    return function.body[1 if described else 0]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_modules_have_a_docstring_and_do_not_print(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "no module docstring"
    if "cli" in path.parts:
        return
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    names = {n.func.id for n in calls if isinstance(n.func, ast.Name)}
    assert "print" not in names


@pytest.mark.parametrize("path", TESTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_comparison_is_thrown_away_and_raises_name_the_message(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Compare):
            name = ast.unparse(node.value).split("(")[0]
            assert not re.search(r"\b(allclose|isclose|array_equal|equal)$", name), node.lineno
            assert not isinstance(node.value, ast.Compare), node.lineno
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.raises":
            if ast.unparse(node.args[0]) == "KeyboardInterrupt":
                continue  # it carries no message
            assert "match" in {k.arg for k in node.keywords}, node.lineno
        if isinstance(node, ast.Attribute) and ast.unparse(node) in (
            "pytest.mark.skip",
            "pytest.mark.xfail",
        ):
            raise AssertionError(f"line {node.lineno}: skipped")
