"""Kill a training ten times at random moments; the model must be that of an undisturbed one.

    python benchmarks/text_kill.py --record

`hardmax train` on the shipped reviews, first undisturbed, then killed with signal 9 after random
times that are counted from the start of the process, so that reading, training, writing of
checkpoints and of the model are all hit.  The same command is given again until it ends.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import arguments, report, table

KILLS = 10


def command(name: str, quick: bool) -> list[str]:
    """One training; the preset "plane" when quick."""
    more = ["--preset", "plane"] if quick else ["--set", "members=2"]
    return [sys.executable, "-m", "hardmax", "train", "corpus", "--out", name, *more]


def kept(folder: Path) -> int:
    """How many epochs the checkpoints hold."""
    from safetensors.numpy import load_file

    total = 0
    for place in folder.glob("b.part*"):
        card = load_file(place)["card"].tobytes().decode()
        total += card.count('"epoch"')
    return total


def main() -> None:
    """Train, kill, compare."""
    args = arguments(__doc__ or "")
    rng = np.random.default_rng()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        subprocess.run(command("a", args.quick), cwd=folder, check=True, capture_output=True)
        whole = time.perf_counter() - start
        while len(rows) < KILLS:
            run = subprocess.Popen(
                command("b", args.quick), cwd=folder, stdout=-3, stderr=-3, start_new_session=True
            )
            wait = float(rng.uniform(0.3 * whole, 0.8 * whole))
            try:
                run.wait(wait)
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
                run.wait()
                rows.append([len(rows) + 1, f"{wait:.2f} s", kept(folder)])
            if (folder / "b").exists():  # it ended before its time: begin anew
                compare(folder)
                subprocess.run(["rm", "-r", "b"], cwd=folder, check=True)
        subprocess.run(command("b", args.quick), cwd=folder, check=True, capture_output=True)
        compare(folder)
        left = sorted(p.name for p in folder.iterdir())
    said = f"Undisturbed: {whole:.1f} s. After the last kill the command was given once more.\n\n"
    end = f"\n\nAll bytes of the model equal those of the undisturbed training; left over: {left}."
    text = said + table(["kill", "after", "epochs kept"], rows) + end
    report("A training killed ten times", text, args.record)


def compare(folder: Path) -> None:
    """Both models are the same bytes."""
    for place in (folder / "a").iterdir():
        if place.read_bytes() != (folder / "b" / place.name).read_bytes():
            sys.exit(f"{place.name} differs")


if __name__ == "__main__":
    main()
