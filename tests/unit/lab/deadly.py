"""Tasks that kill their process; few imports, since each new process reads this."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def dies_once(path: str) -> int:
    """Kills its process when nothing is at `path` yet."""
    place = Path(path)
    if not place.exists():
        place.write_text("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return 7


def dies_always(task: object) -> int:
    """Kills its process."""
    os.kill(os.getpid(), signal.SIGKILL)
    return 0
