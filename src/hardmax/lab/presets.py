"""The open questions as grids, each by a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hardmax._errors import InputError

__all__ = ["QUESTIONS", "Question", "question"]


@dataclass(frozen=True)
class Question:
    """A question, the grid that measures it, and what to look at."""

    about: str
    grid: Mapping[str, Any]
    measures: tuple[str, ...]


QUESTIONS = {
    "matrices": Question(
        "clusters by class of A: the convergence proof needs A symmetric positive definite",
        {
            "matrix": [
                "spd", "spd+0.5skew", "spd+3skew", "skew", "indefinite", "symmetric", "negative",
                "general", "low-rank-psd", "low-rank", "vv", "uv",
            ],
            "d": [2, 4], "n": 40, "alpha": 0.5, "depth": 2000,
        },
        ("clusters", "converged", "settled_at", "largest"),
    ),
    "depth": Question(
        "finite depth: how many layers until the final choices are made",
        {"d": [2, 4, 8, 16], "alpha": [0.1, 0.5, 1.0, 2.35], "n": 128},
        ("settled_at", "arrived_at", "final_6", "final_12"),
    ),
    "heads": Question(
        "several heads, each with its own A and values",
        {
            "heads": [1, 2, 4, 8], "values": ["identity", "blocks", "rotation"],
            "matrix": "spd", "d": 8, "n": 40,
        },
        ("clusters", "converged", "settled_at", "same"),
    ),
    "temperature": Question(
        "softmax instead of hardmax, and how long its clusters last",
        {
            "temperature": [0.0, 0.01, 0.03, 0.1, 0.3, 1.0], "d": [2, 4], "n": 40, "depth": 2000,
        },
        ("clusters", "distance", "plateau", "life"),
    ),
    "normalization": Question(
        "what follows the attention: nothing, rescaling, the sphere, LayerNorm",
        {
            "normalization": ["rescale", "none", "sphere", "layernorm"],
            "matrix": ["identity", "spd", "general"], "d": 4, "n": 40,
        },
        ("clusters", "converged", "settled_at", "same"),
    ),
    "feed-forward": Question(
        "feed-forward layers between the attention layers",
        {
            "feed_forward": [0.0, 0.01, 0.03, 0.1, 0.3],
            "normalization": ["rescale", "sphere", "layernorm"],
            "matrix": "spd", "d": 4, "n": 40, "depth": 2000,
        },
        ("clusters", "converged", "settled_at", "same"),
    ),
    "causal": Question(
        "causal masks: a token sees only itself and those before it",
        {
            "causal": [False, True], "matrix": ["identity", "spd", "general", "negative"],
            "d": [2, 4], "n": 40,
        },
        ("clusters", "leaders", "settled_at", "same"),
    ),
}  # fmt: skip
"""The open questions by name."""


def question(name: str) -> Question:
    """A question by its name.

    Raises
    ------
    InputError
        For an unknown name.
    """
    if name not in QUESTIONS:
        known = ", ".join([*QUESTIONS, "classifier"])
        raise InputError(f"{name!r} is no question. Known are {known}.")
    return QUESTIONS[name]
