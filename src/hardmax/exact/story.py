"""What a tree asks, in words and numbers: the data of its pictures."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hardmax._types import Array
from hardmax.exact.data import Corpus
from hardmax.exact.tree import Tree

__all__ = ["Story", "StoryNode", "StoryTest", "tell"]


@dataclass(frozen=True)
class StoryTest:
    """Sequences that hold one of `tokens` go to node `child`, or get `label` (child -1)."""

    tokens: tuple[str, ...]
    size: int
    height: int
    child: int
    label: int


@dataclass(frozen=True)
class StoryNode:
    """A class of `size` sequences with code `base`; those that stay get `label`."""

    base: int
    level: int
    size: int
    tests: tuple[StoryTest, ...]
    label: int


@dataclass(frozen=True)
class Story:
    """The split tree with the names of the tokens it asks about; node 0 is the root."""

    nodes: tuple[StoryNode, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Story:
        """The story that `to_dict` wrote."""
        return cls(
            tuple(
                StoryNode(
                    **{
                        **n,
                        "tests": tuple(
                            StoryTest(**{**t, "tokens": tuple(t["tokens"])}) for t in n["tests"]
                        ),
                    }
                )
                for n in data["nodes"]
            )
        )

    def trace(self, held: set[str]) -> list[tuple[int, int, str | None]]:
        """The way of a sequence that holds the tokens `held`: (node, test, token) by step.

        The last step has test -1 and no token where the sequence stays.
        """
        at = 0
        steps: list[tuple[int, int, str | None]] = []
        while at >= 0 and self.nodes:
            node = self.nodes[at]
            for i, test in enumerate(node.tests):
                token = next((t for t in test.tokens if t in held), None)
                if token is not None:
                    steps.append((at, i, token))
                    at = test.child
                    break
            else:
                steps.append((at, -1, None))
                at = -1
        return steps


def token_name(corpus: Corpus, index: int) -> str:
    """The word of a token, or its coordinates."""
    if corpus.words is not None:
        return corpus.words[index]
    return coordinates_name(corpus.table[index])


def coordinates_name(token: Array) -> str:
    """Coordinates in the shortest digits that give them back; a mark where they are many."""
    head = ", ".join(repr(float(x)) for x in token[:4])
    if len(token) <= 4:
        return f"({head})"
    mark = hashlib.blake2b(np.ascontiguousarray(token).tobytes(), digest_size=4).hexdigest()
    return f"({head}, ... #{mark})"


def tell(tree: Tree, corpus: Corpus) -> Story:
    """The tree as plain records."""
    number = {id(node): i for i, node in enumerate(tree.nodes)}
    nodes = []
    for node in tree.nodes:
        tests = tuple(
            StoryTest(
                tuple(token_name(corpus, w) for w in t.tokens),
                len(t.members),
                t.height,
                -1 if t.child is None else number[id(t.child)],
                t.label,
            )
            for t in node.tests
        )
        nodes.append(StoryNode(node.base, node.level, len(node.members), tests, node.label))
    return Story(tuple(nodes))
