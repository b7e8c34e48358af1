"""The tests of this folder on a machine that has torch and Triton and nothing else.

    PYTHONPATH=src:. python3 tests/gpu/plain.py [FILE.json]

A few lines stand in for pytest: parameters, the two fixtures of `conftest.py`, monkeypatch.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import math
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

FILES = ("test_cloud", "test_batch", "test_large")


class Patches:
    """What `monkeypatch` does in these tests."""

    def __init__(self) -> None:
        self.old: list[tuple[Any, str, Any]] = []

    def setattr(self, place: str, value: Any) -> None:
        """Set module.name until `undo`."""
        module, name = place.rsplit(".", 1)
        owner = importlib.import_module(module)
        self.old.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Put everything back."""
        while self.old:
            setattr(*self.old.pop())


class Near:
    """A number up to one millionth of itself."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return math.isclose(float(other), self.value, rel_tol=1e-6)  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]


def parametrize(names: str, values: Any, ids: Any = None) -> Callable[[Any], Any]:
    """Note the values on the function."""

    def mark(test: Any) -> Any:
        test.ways = [*getattr(test, "ways", []), (names, list(values))]
        return test

    return mark


def stand_in() -> ModuleType:
    """A module with the parts of pytest that these tests use."""
    module, marks = ModuleType("pytest"), ModuleType("mark")
    vars(marks)["parametrize"] = parametrize
    vars(module).update(mark=marks, approx=Near, MonkeyPatch=Patches)
    return module


def cases(test: Any) -> Iterator[dict[str, Any]]:
    """Every combination of the parameters of a test."""
    ways = getattr(test, "ways", [])
    for values in itertools.product(*(values for _, values in ways)):
        yield {name: value for (name, _), value in zip(ways, values, strict=True)}


def run(module: str, known: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The name of each case of a file, and its failure or nothing."""
    tests = vars(importlib.import_module(f"tests.gpu.{module}"))
    for name, test in tests.items():
        if not name.startswith("test_"):
            continue
        for given in cases(test):
            patches = Patches()
            extra = {**known, "monkeypatch": patches}
            wanted = {k: v for k, v in extra.items() if k in inspect.signature(test).parameters}
            try:
                test(**given, **wanted)
                failure = ""
            except Exception:
                failure = traceback.format_exc(limit=-3)
            patches.undo()
            yield f"{module}::{name} {given or ''}".strip(), failure


def main() -> int:
    """Run all files; 1 when a test failed."""
    sys.modules["pytest"] = stand_in()
    cuda = torch.cuda.is_available()
    known = {"device": torch.device("cuda" if cuda else "cpu"), "scale": 16 if cuda else 1}
    start, found = time.perf_counter(), []
    for module in FILES if cuda else FILES[:2]:
        for name, failure in run(module, known):
            found.append((name, failure))
            print("FAILED" if failure else "passed", name, failure, flush=True)
    failed = [name for name, failure in found if failure]
    where = torch.cuda.get_device_name() if cuda else "Triton's interpreter"
    seconds = round(time.perf_counter() - start)
    print(f"{len(found) - len(failed)} passed, {len(failed)} failed in {seconds} s on {where}")
    if len(sys.argv) > 1:
        data = {"where": where, "run": len(found), "failed": failed, "seconds": seconds}
        Path(sys.argv[1]).write_text(json.dumps(data))
    return min(1, len(failed))


if __name__ == "__main__":
    sys.exit(main())
