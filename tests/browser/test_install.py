"""Finding a browser: the order, and what is said when one is missing."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import install


def program(folder: Path, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty PATH, no variable and no cache."""
    monkeypatch.delenv(install.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(install, "CACHE", tmp_path / "cache")
    return tmp_path


def test_nothing_is_found_on_a_bare_machine(bare: Path) -> None:
    assert install.find() is None


def test_the_variable_comes_first_then_the_path_then_the_cache(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install.cached().parent.mkdir(parents=True)
    kept = program(install.cached().parent, "chromium")
    assert install.find() == str(kept)
    google = program(bare / "bin", "google-chrome")
    assert install.find() == str(google)
    ours = program(bare / "bin", "chromium")
    assert install.find() == str(ours)
    chosen = program(bare / "elsewhere", "my-browser")
    monkeypatch.setenv(install.VARIABLE, str(chosen))
    assert install.find() == str(chosen)


def test_a_variable_that_names_no_program_is_an_error(
    bare: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(install.VARIABLE, str(bare / "nothing"))
    with pytest.raises(install.BrowserMissingError, match="must name a program that can be run"):
        install.find()
    assert install.main() == 1
    assert "Correct it, or unset it." in capsys.readouterr().err


def test_other_machines_are_told_what_to_do(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install.sys, "platform", "darwin")
    with pytest.raises(install.BrowserMissingError, match="set HARDMAX_CHROMIUM to its path"):
        install.install()


def test_an_altered_download_is_refused(bare: Path) -> None:
    npm = program(bare / "bin", "npm")
    npm.write_text(f"#!{sys.executable}\nopen('browser.tgz', 'w').write('other')\n")
    digest = hashlib.sha512(b"other").digest()
    assert digest.hex() != install.SHA512
    with pytest.raises(install.BrowserMissingError, match=r"browser\.tgz has SHA-512"):
        install._fetch(str(npm), bare)


def test_a_failed_download_keeps_the_cache_and_shows_the_error(bare: Path) -> None:
    for name in ("npm", "node"):
        program(bare / "bin", name).write_text(f"#!{sys.executable}\nraise SystemExit('no such')\n")
    with pytest.raises(install.BrowserMissingError, match="no such"):
        install.install()
    assert list(install.CACHE.iterdir()) == []


@pytest.mark.browser
def test_the_browser_found_starts() -> None:
    path = install.find()
    assert path is not None, "run `python tests/browser/install.py`"
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
