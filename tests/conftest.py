"""What all tests share: the repository on the path, and one hypothesis profile."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from hypothesis import HealthCheck, settings

if not torch.cuda.is_available():  # read when Triton is first imported, if it is there
    os.environ.setdefault("TRITON_INTERPRET", "1")

ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

settings.register_profile(
    "hardmax",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("hardmax")
