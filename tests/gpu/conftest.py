"""Where the kernels run: on a GPU where there is one, else in Triton's interpreter.

`tests/conftest.py` switches the interpreter on.  What cannot run somewhere is not
collected there; the table says why.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

CUDA = torch.cuda.is_available()
REASONS = {
    "test_cloud.py": ("Triton is not installed", find_spec("triton") is not None),
    "test_batch.py": ("Triton is not installed", find_spec("triton") is not None),
    "test_large.py": ("no GPU: sizes that the interpreter cannot reach", CUDA),
}
collect_ignore = [name for name, (_, runs) in REASONS.items() if not runs]


def pytest_report_header() -> list[str]:
    """Say where the kernels run and what is left out."""
    where = torch.cuda.get_device_name() if CUDA else "Triton's interpreter"
    left = [f"{name}: not collected, {why}" for name, (why, runs) in REASONS.items() if not runs]
    return [f"GPU kernels in {where}", *left]


@pytest.fixture(scope="session")
def device() -> torch.device:
    """The GPU, or main memory for the interpreter."""
    return torch.device("cuda" if CUDA else "cpu")


@pytest.fixture(scope="session")
def scale() -> int:
    """How much larger than for the interpreter the clouds may be."""
    return 16 if CUDA else 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every file of this folder is in the table."""
    here = Path(__file__).parent
    names = {item.path.name for item in items if item.path.parent == here}
    assert names <= REASONS.keys(), names - REASONS.keys()
