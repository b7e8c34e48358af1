"""The public list: short, sorted, importable, and resolved only on use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import hardmax


def test_the_public_list_is_sorted_short_and_importable() -> None:
    names = [n for n in hardmax.__all__ if n != "__version__"]
    assert names == sorted(names)
    assert len(names) <= 25
    for name in names:
        assert callable(getattr(hardmax, name)), name
    assert set(names) <= set(dir(hardmax))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'softmax'"):
        _ = hardmax.softmax


@pytest.mark.parametrize("command", ["import hardmax", "from hardmax.cli.main import main"])
def test_importing_stays_quick(command: str) -> None:
    code = f"import sys; {command}; print([m for m in ('torch', 'numba', 'matplotlib', 'scipy', "
    code += "'sklearn') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_message_tree_starts_at_one_error() -> None:
    from hardmax import _errors

    kinds = [getattr(_errors, n) for n in _errors.__all__]
    assert all(issubclass(k, hardmax.HardmaxError) for k in kinds)
    assert issubclass(_errors.InputError, ValueError)
    assert "pip install 'hardmax[exact]'" in str(_errors.MissingExtraError("flint", "exact"))
